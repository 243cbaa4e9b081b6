//! What comes from far: code, and bytes that several ask for.

use ptx_emu::trace::Direction;

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
        let call = CallTimes::replay(&machine, &vec![launch; launches], false);
        let times = call.expect("an end").launches;
        times[launches - 1].cycles
    };
    // 41 instructions are six lines, and the first is there.
    let first = replay(false, 1) - replay(true, 1);
    assert!((400.0..=500.0).contains(&first), "{first}");
    // A launch before has run it already.
    assert_eq!(replay(false, 2), replay(true, 1));
    // So it has where each launch was read from the cubin by itself.
    let again = code.clone();
    let launches = [&code, &again].map(|code| Launched {
        fetched: false,
        ..launched(code, &trace, 1, 1)
    });
    let call = CallTimes::replay(&machine, &launches, false).expect("an end");
    assert_eq!(call.launches[1].cycles, replay(true, 1));
}

/// What a launch does not bring near the SMs comes by kilobytes, later from memory than from L2.
#[test]
fn code_behind_what_is_near_comes_by_kilobytes() {
    const INSTRUCTIONS: usize = 3 * 64;
    let slot = (Kind::Slot, Deed::Sleep(0));
    let all: Vec<usize> = (0..INSTRUCTIONS).collect();
    // The first of three kilobytes is near, and the exit behind them in a fourth.
    let (code, trace) = kernel(&[slot; INSTRUCTIONS], &[&[&all]]);
    let machine = Machine {
        near_code_bytes: 1024.0,
        far_fetch_latency: 1000.0,
        far_fetch_cold_latency: 3000.0,
        ..machine()
    };
    let launch = Launched {
        fetched: false,
        ..launched(&code, &trace, 1, 1)
    };
    let warm = CallTimes::replay_warm(&machine, &[launch], false);
    let cold = CallTimes::replay(&machine, &[launch], false);
    for (call, latency) in [(warm, 1000.0), (cold, 3000.0)] {
        let cycles = call.expect("an end").launches[0].cycles;
        let least = 3.0 * latency;
        assert!((least..=least + 200.0).contains(&cycles), "{cycles}");
    }
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
            lines: 1,
            blocks: 1,
        },
        writes: false,
        atomic: false,
    };
    let loads: Vec<_> = (0..8).map(|line| (Kind::Global, load(line))).collect();
    let places: Vec<usize> = (0..8).collect();
    let (code, trace) = kernel(&loads, &[&[&places, &places, &places, &places]]);
    (in_turn(code), trace)
}

/// Each instruction begins when the one before has its result.
fn in_turn(mut code: Code) -> Code {
    for instruction in &mut code.instructions {
        instruction.result = Some(0);
        instruction.waits = 1;
    }
    code
}

#[test]
fn who_asks_for_what_is_under_way_waits_for_it_too() {
    let mut machine = wide();
    machine.l2_latency = 1000.0;
    let walked = |warps: usize| {
        let (code, mut trace) = walk();
        trace.ctas[0].warps.truncate(warps);
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
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

/// A load of 64 bytes.
fn load(first: u64) -> (Kind, Deed) {
    access(first, false)
}

/// A load or a store of 64 bytes.
fn access(first: u64, writes: bool) -> (Kind, Deed) {
    let at = GlobalBytes {
        region: 0,
        first,
        bytes: 64,
        sectors: 2,
        lines: 1,
        blocks: 1,
    };
    let atomic = false;
    (Kind::Global, Deed::Global { at, writes, atomic })
}

#[test]
fn the_other_half_of_a_line_is_asked_for_by_itself() {
    let mut machine = wide();
    machine.memory_bandwidth = 1e9;
    machine.dirty_bandwidth = 1e9;
    let read = |loads: [(Kind, Deed); 2]| {
        let (code, trace) = kernel(&loads, &[&[&[0, 1]]]);
        let code = in_turn(code);
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let (same, other) = (read([0, 0].map(load)), read([0, 64].map(load)));
    // Memory gives a byte a cycle.
    assert!(other > same + 64.0, "{same} and {other}");
    assert_eq!(other, read([0, LINE].map(load)));
    // Eight rows of 64 bytes, of which the first begins there.
    let mut rows = load(0);
    if let Deed::Global { at, .. } = &mut rows.1 {
        (at.bytes, at.sectors) = (512, 16);
    }
    assert!(read([rows, load(64)]) > read([rows, rows]) + 64.0);
}

#[test]
fn a_cta_reads_elsewhere_what_one_like_it_has_read_before() {
    let mut machine = wide();
    machine.memory_latency = 5000.0;
    // Two rounds of CTAs, of which two were watched: they read what is apart, or the same.
    let rounds = |apart: u64| {
        let (code, mut trace) = kernel(&[load(0), load(apart)], &[&[&[0]], &[&[1]]]);
        (trace.ctas[1].cluster, trace.ctas[1].rank) = (1, 0);
        let code = in_turn(code);
        let ctas = 2 * machine.sms as u64;
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, ctas, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let (others, same) = (rounds(1 << 16), rounds(0));
    assert!(others > 10_000.0, "{others}");
    assert!((5000.0..6000.0).contains(&same), "{same}");
}

#[test]
fn l2_keeps_what_was_used_last() {
    let mut machine = wide();
    let mut written = load(0);
    if let Deed::Global { writes, at, .. } = &mut written.1 {
        (*writes, at.bytes, at.sectors) = (true, 4096, 128);
    }
    let mut between = load(0);
    if let Deed::Global { at, .. } = &mut between.1 {
        (at.region, at.bytes, at.sectors) = (1, 8192, 256);
    }
    let deeds = [written, between, load(1 << 19)];
    let launch = |place: usize| {
        let (code, mut trace) = kernel(&deeds, &[&[&[place]]]);
        trace.regions = vec![1 << 20, 1 << 20];
        (in_turn(code), trace)
    };
    let (writer, reader, user) = (launch(0), launch(2), launch(1));
    machine.memory_latency = 5000.0;
    let last = |machine: &Machine, call: &[&(Code, Trace)]| {
        let launches: Vec<_> = call.iter().map(|(c, t)| launched(c, t, 1, 1)).collect();
        let call = CallTimes::replay(machine, &launches, false).expect("an end");
        call.launches[launches.len() - 1].cycles
    };
    machine.l2_bytes = 8192.0;
    // Another page of what was written, right behind it and after much else.
    assert!(last(&machine, &[&writer, &reader]) < 5000.0);
    assert!(last(&machine, &[&writer, &user, &reader]) > 5000.0);
    // Who finds everything finds that too.
    let launches = [&writer, &user, &writer, &reader].map(|(c, t)| launched(c, t, 1, 1));
    let warm = CallTimes::replay_warm(&machine, &launches, false).expect("an end");
    assert!(warm.launches[3].cycles < 5000.0);
    // There is room for both.
    machine.l2_bytes = 3.0 * 8192.0;
    assert!(last(&machine, &[&writer, &user, &reader]) < 5000.0);
}

#[test]
fn a_copy_of_what_is_prefetched_waits_until_that_is_there() {
    let at = Some(GlobalBytes {
        region: 0,
        first: 0,
        bytes: 128,
        sectors: 4,
        lines: 1,
        blocks: 1,
    });
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let copy = |direction: Direction, barrier: Option<BarrierAt>| Deed::Bulk {
        direction,
        at,
        rows: 1,
        bytes: 128,
        to: 0,
        barrier,
        pair: false,
        map: None,
    };
    let arrive = Deed::Arrive {
        barrier,
        arrivals: 1,
        expects: 128,
    };
    let deeds = [
        (Kind::Arrive, Deed::Init { barrier, count: 1 }),
        (Kind::Bulk, copy(Direction::Prefetch, None)),
        (Kind::Arrive, arrive),
        (Kind::Bulk, copy(Direction::Load, Some(barrier))),
        (Kind::Phase, Deed::Await { barrier, parity: 0 }),
    ];
    let mut machine = wide();
    machine.memory_latency = 5000.0;
    let cycles = |places: &[usize]| {
        let (code, trace) = kernel(&deeds, &[&[places]]);
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
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

#[test]
fn what_lies_in_a_block_comes_with_it() {
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let copy = |first: u64, map: Option<u64>| Deed::Bulk {
        direction: Direction::Load,
        at: Some(GlobalBytes {
            region: 0,
            first,
            bytes: 64,
            sectors: 2,
            lines: 1,
            blocks: 1,
        }),
        rows: 1,
        bytes: 64,
        to: 0,
        barrier: Some(barrier),
        pair: false,
        map,
    };
    let arrive = Deed::Arrive {
        barrier,
        arrivals: 1,
        expects: 64,
    };
    let phase = |parity| (Kind::Phase, Deed::Await { barrier, parity });
    let mut machine = wide();
    machine.memory_latency = 5000.0;
    let cycles = |second: u64, map: Option<u64>| {
        let deeds = [
            (Kind::Arrive, Deed::Init { barrier, count: 1 }),
            (Kind::Arrive, arrive),
            (Kind::Tensor, copy(0, map)),
            phase(0),
            (Kind::Arrive, arrive),
            (Kind::Tensor, copy(second, map)),
            phase(1),
        ];
        let places: Vec<usize> = (0..deeds.len()).collect();
        let (code, trace) = kernel(&deeds, &[&[&places]]);
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    // The next 64 bytes of the row, and those of the next block.
    let (beside, behind) = (cycles(64, Some(1)), cycles(256, Some(1)));
    assert!((5000.0..6000.0).contains(&beside), "{beside}");
    assert!(behind > 10_000.0, "{behind}");
    // A plain copy has nothing brought but what it asks for.
    assert!(cycles(64, None) > 10_000.0);
}

#[test]
fn the_first_use_of_a_line_of_constants_waits_for_it() {
    let replay = |lines: [u32; 3], warm: bool| {
        let slot = (Kind::Slot, Deed::Sleep(0));
        let (mut code, mut trace) = kernel(&[slot; 3], &[&[&[], &[]]]);
        for (sass, line) in code.instructions.iter_mut().zip(lines) {
            (sass.kind, sass.constants) = (Kind::Constant, Some(line));
        }
        for warp in &mut trace.ctas[0].warps {
            *warp = vec![Event::Run { first: 0, end: 4 }];
        }
        let mut machine = machine();
        machine.constant_line_latency = 100.0;
        machine.constant_cold_latency = 500.0;
        let launch = launched(&code, &trace, 1, 1);
        let call = match warm {
            true => CallTimes::replay_warm(&machine, &[launch], false),
            false => CallTimes::replay(&machine, &[launch], false),
        };
        call.expect("an end").launches[0].cycles
    };
    // The first line of all is there before a CTA begins; who comes second finds the others.
    let none = replay([0, 0, 0], false);
    assert_eq!(replay([0, 0, 0], true), none);
    let waited = |lines, warm| replay(lines, warm) - none;
    assert!((490.0..=510.0).contains(&waited([8, 8, 8], false)));
    assert!((980.0..=1020.0).contains(&waited([8, 9, 8], false)));
    assert!((190.0..=210.0).contains(&waited([8, 9, 8], true)));
}

#[test]
fn the_last_of_many_sectors_from_l2_is_later() {
    let mut machine = wide();
    machine.l2_spread = 100.0;
    let read = |sectors: u32| {
        let mut one = load(0);
        if let Deed::Global { at, .. } = &mut one.1 {
            at.sectors = sectors;
        }
        let (code, trace) = kernel(&[one, load(1 << 12)], &[&[&[0, 1]]]);
        let code = in_turn(code);
        let call = CallTimes::replay_warm(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let later = read(16) - read(1);
    assert!((270.0..=400.0).contains(&later), "{later}");
}

#[test]
fn loads_that_find_their_way_full_go_by_turns() {
    let mut machine = wide();
    machine.queue_cycles = 0.0;
    machine.l2_queue_cycles = 0.0;
    machine.line_interval = 100.0;
    let loads: Vec<_> = (0..32).map(|line| load(line * LINE)).collect();
    let places = |warp: usize| -> Vec<usize> { (8 * warp..8 * warp + 8).collect() };
    let all: Vec<Vec<usize>> = (0..4).map(places).collect();
    let warps: Vec<&[usize]> = all.iter().map(Vec::as_slice).collect();
    let (code, trace) = kernel(&loads, &[&warps]);
    let call = CallTimes::replay_warm(&machine, &[launched(&code, &trace, 1, 1)], true);
    let spans = call.expect("an end").launches.remove(0).spans;
    let ends = (0..4).map(|warp| {
        let of = spans.iter().filter(|span| span.warp == warp);
        of.map(|span| span.to).fold(0.0, f64::max)
    });
    let ends: Vec<f64> = ends.collect();
    let (first, last) = (
        ends.iter().copied().fold(f64::MAX, f64::min),
        ends.iter().copied().fold(0.0, f64::max),
    );
    // None has all of its eight loads through before the others have seven.
    assert!(last - first < 500.0, "{ends:?}");
}

/// For what is stored a flushed L2 writes dirty lines back, and the launch lasts as long as that.
#[test]
fn what_is_stored_takes_memorys_time() {
    let (bytes, rate) = (64.0, 0.5e9);
    let machine = Machine {
        memory_bandwidth: rate,
        store_bandwidth: 1e13,
        ..wide()
    };
    let stores: Vec<_> = (0..20).map(|i| access(i * 64, true)).collect();
    let places: Vec<usize> = (0..stores.len()).collect();
    let (code, trace) = kernel(&stores, &[&[&places]]);
    let launch = launched(&code, &trace, 1, 1);
    let cycles = |call: Result<CallTimes, _>| call.expect("an end").launches[0].cycles;
    let cold = cycles(CallTimes::replay(&machine, &[launch], false));
    let warm = cycles(CallTimes::replay_warm(&machine, &[launch], false));
    let written = stores.len() as f64 * bytes / rate * machine.clock_mhz * 1e6;
    assert!((written..=written + 200.0).contains(&cold), "{cold}");
    assert!(warm < written / 2.0, "{warm}");
}
