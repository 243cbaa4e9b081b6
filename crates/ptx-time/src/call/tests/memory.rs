//! What comes from far: code, and bytes that several ask for.

use super::*;
use crate::sm::LINE;

#[test]
fn code_comes_line_by_line_the_first_time() {
    let slot = (Kind::Slot, Deed::Sleep(0));
    let places: Vec<usize> = (0..40).collect();
    let (code, trace) = kernel(&[slot; 40], &[&[&places]]);
    let mut machine = machine();
    machine.fetch_interval = 100.0;
    let replay = |fetched: bool, launches: usize| {
        let launch = Launched {
            fetched,
            ..launched(&code, &trace, 1, 1)
        };
        let call = Call::replay(&machine, &vec![launch; launches], false);
        let times = call.expect("an end").launches;
        times[launches - 1].cycles
    };
    // 41 instructions are six lines, and the first is there.
    let first = replay(false, 1) - replay(true, 1);
    assert!((400.0..=500.0).contains(&first), "{first}");
    // A launch before has run it already.
    assert_eq!(replay(false, 2), replay(true, 1));
}

/// One in which nothing takes long but what is said to.
fn wide() -> Machine {
    let mut machine = machine();
    for rate in ["l2_bandwidth", "memory_bandwidth", "dirty_bandwidth"] {
        *machine.number_mut(rate).expect("a name") = 1e13;
    }
    machine
}

/// Warps that read one line after the other, each when the one before has come.
fn walk() -> (Code, Trace) {
    let load = |line: u64| Deed::Global {
        at: GlobalBytes {
            region: 0,
            first: line * LINE,
            bytes: 4,
            sectors: 1,
        },
        writes: false,
        atomic: false,
    };
    let loads: Vec<_> = (0..8).map(|line| (Kind::Global, load(line))).collect();
    let places: Vec<usize> = (0..8).collect();
    let (mut code, trace) = kernel(&loads, &[&[&places, &places, &places, &places]]);
    for instruction in &mut code.instructions {
        instruction.result = Some(0);
        instruction.waits = 1;
    }
    (code, trace)
}

#[test]
fn who_asks_for_what_is_under_way_waits_for_it_too() {
    let mut machine = wide();
    machine.l2_latency = 1000.0;
    let walked = |warps: usize| {
        let (code, mut trace) = walk();
        trace.ctas[0].warps.truncate(warps);
        let call = Call::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let alone = walked(1);
    assert!(alone > 8000.0, "{alone}");
    // Nobody gets ahead by what another has asked for.
    let together = walked(4);
    assert!(
        (alone..alone + 100.0).contains(&together),
        "{together} and {alone}"
    );
}

#[test]
fn a_copy_of_what_is_prefetched_waits_until_that_is_there() {
    let at = Some(GlobalBytes {
        region: 0,
        first: 0,
        bytes: 128,
        sectors: 4,
    });
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let copy = |way: Way, barrier: Option<BarrierAt>| Deed::Bulk {
        way,
        at,
        rows: 1,
        bytes: 128,
        to: 0,
        barrier,
        pair: false,
    };
    let arrive = Deed::Arrive {
        barrier,
        arrivals: 1,
        expects: 128,
    };
    let deeds = [
        (Kind::Arrive, Deed::Init { barrier, count: 1 }),
        (Kind::Bulk, copy(Way::Prefetch, None)),
        (Kind::Arrive, arrive),
        (Kind::Bulk, copy(Way::Load, Some(barrier))),
        (Kind::Phase, Deed::Await { barrier, parity: 0 }),
    ];
    let mut machine = wide();
    machine.memory_latency = 5000.0;
    let cycles = |places: &[usize]| {
        let (code, trace) = kernel(&deeds, &[&[places]]);
        let call = Call::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let fetched = cycles(&[0, 2, 3, 4]);
    let prefetched = cycles(&[0, 1, 2, 3, 4]);
    assert!(fetched > 5000.0, "{fetched}");
    assert!(
        (fetched - prefetched).abs() < 100.0,
        "{prefetched} and {fetched}"
    );
}
