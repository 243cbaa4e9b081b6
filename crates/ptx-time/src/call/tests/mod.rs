mod clock;
mod memory;
mod partition;
mod tensor_memory;

use super::*;
use crate::sass::{Kind, Sass};
use ptx_emu::trace::{BarrierAt, CtaTrace, GlobalBytes};

/// Two warps meet at a barrier, then do two tiles each: a product and a store.
fn two_tiles() -> (Code, Trace) {
    let kinds = [
        Kind::Barrier,
        Kind::Mma,
        Kind::Global,
        Kind::Mma,
        Kind::Global,
        Kind::Exit,
    ];
    let instruction = |kind| Sass {
        stall: 2,
        ..Sass::plain(kind)
    };
    let code = Code {
        instructions: kinds.map(instruction).to_vec(),
        lines: (1..=6).collect(),
    };
    let barrier = Deed::Barrier {
        id: 0,
        threads: 64,
        waits: true,
    };
    let product = Deed::Mma {
        shape: [16, 8, 16],
        bits: 16,
    };
    let store = Deed::Global {
        at: GlobalBytes {
            region: 0,
            first: 0,
            bytes: 128,
            sectors: 4,
            lines: 1,
            blocks: 1,
        },
        writes: true,
        atomic: false,
    };
    let deeds = [barrier, product, store, product, store];
    let did = (0..).zip(deeds).map(|(at, deed)| Event::Did { at, deed });
    let warp: Vec<Event> = did.chain([Event::Run { first: 5, end: 6 }]).collect();
    let trace = Trace {
        lines: (1..=6).collect(),
        leaders: vec![true, false, false, false, false, false],
        regions: vec![1 << 20],
        ctas: vec![CtaTrace {
            cta: 7,
            cluster: 7,
            rank: 0,
            warps: vec![warp.clone(), warp],
        }],
    };
    (code, trace)
}

#[test]
fn a_warps_time_is_told_once_and_where_it_went() {
    let (code, trace) = two_tiles();
    let machine = Machine::from_numbers(|_| Some(8.0)).unwrap();
    let launch = Launched {
        code: &code,
        trace: &trace,
        ctas: 1,
        cluster: 1,
        resident: 1,
        dependent: false,
        beside: false,
        fetched: true,
    };
    let call = CallTimes::replay(&machine, &[launch], true).unwrap();
    let times = &call.launches[0];
    assert_eq!(times.ctas[0].cta, 7);
    for warp in 0..2 {
        let spans: Vec<&Span> = times.spans.iter().filter(|s| s.warp == warp).collect();
        for pair in spans.windows(2) {
            assert!(pair[0].to <= pair[1].from, "{pair:?}");
        }
        let told: f64 = spans.iter().map(|s| s.to - s.from).sum();
        assert!(told <= times.cycles, "{told} of {}", times.cycles);
        let tiles = times.epilogues.iter().filter(|e| e.warp == warp);
        assert!(tiles.clone().all(|e| e.from <= e.to));
        assert_eq!(tiles.count(), 2);
    }
    let waits = times
        .spans
        .iter()
        .filter(|s| s.activity == Activity::Barrier);
    let lines: Vec<u32> = waits.map(|s| s.line).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|&line| line == 1),
        "{lines:?}"
    );
}

/// A kernel of one instruction for each deed, and CTAs whose warps do them: by their places.
fn kernel(deeds: &[(Kind, Deed)], ctas: &[&[&[usize]]]) -> (Code, Trace) {
    let instruction = |kind| Sass {
        stall: 2,
        guarded: kind == Kind::Exit,
        ..Sass::plain(kind)
    };
    let kinds = deeds.iter().map(|deed| deed.0).chain([Kind::Exit]);
    let count = deeds.len() as u32 + 1;
    let code = Code {
        instructions: kinds.map(instruction).collect(),
        lines: (1..=count).collect(),
    };
    let warp = |places: &&[usize]| -> Vec<Event> {
        let did = places.iter().map(|&place| Event::Did {
            at: place as u32,
            deed: deeds[place].1,
        });
        let end = Event::Run {
            first: count - 1,
            end: count,
        };
        did.chain([end]).collect()
    };
    let cta = |(rank, warps): (u32, &&[&[usize]])| CtaTrace {
        cta: u64::from(rank),
        cluster: 0,
        rank,
        warps: warps.iter().map(warp).collect(),
    };
    let trace = Trace {
        lines: (1..=count).collect(),
        leaders: vec![false; count as usize],
        regions: vec![1 << 20],
        ctas: (0..).zip(ctas).map(cta).collect(),
    };
    (code, trace)
}

fn machine() -> Machine {
    Machine::from_numbers(|name| match name {
        "wgmma_latency" => Some(100.0),
        "remote_latency" => Some(300.0),
        "clock_mhz" | "rested_clock_mhz" => Some(1000.0),
        "near_code_bytes" => Some(65536.0),
        _ => Some(8.0),
    })
    .expect("a number for every name")
}

fn launched<'l>(code: &'l Code, trace: &'l Trace, ctas: u64, cluster: u32) -> Launched<'l> {
    Launched {
        code,
        trace,
        ctas,
        cluster,
        resident: 1,
        dependent: false,
        beside: false,
        fetched: true,
    }
}

fn cycles((code, trace): &(Code, Trace), cluster: u32) -> f64 {
    let launch = launched(code, trace, u64::from(cluster), cluster);
    let call = CallTimes::replay(&machine(), &[launch], false).expect("an end");
    call.launches[0].cycles
}

const WGMMA: (Kind, Deed) = (
    Kind::Wgmma,
    Deed::Wgmma {
        n: 64,
        bits: 16,
        registers: true,
        sparse: false,
    },
);

#[test]
fn a_wait_for_products_leaves_as_many_groups_under_way_as_it_says() {
    let commit = (Kind::Slot, Deed::WgmmaCommit);
    let deeds = |groups| {
        [
            WGMMA,
            commit,
            WGMMA,
            commit,
            (Kind::WgmmaWait, Deed::WgmmaWait(groups)),
        ]
    };
    let time = |groups| cycles(&kernel(&deeds(groups), &[&[&[0, 1, 2, 3, 4]]]), 1);
    let (none, one, two) = (time(0), time(1), time(2));
    // 64 columns at eight cycles a group.
    assert!((none - one - 512.0).abs() < 20.0, "{none} {one}");
    assert!(one > two + 400.0, "{one} {two}");
}

#[test]
fn products_of_a_partitions_warps_come_one_after_the_other() {
    let deeds = [
        WGMMA,
        (Kind::Slot, Deed::WgmmaCommit),
        (Kind::WgmmaWait, Deed::WgmmaWait(0)),
    ];
    let all: &[usize] = &[0, 1, 2];
    let (four, five) = (
        cycles(&kernel(&deeds, &[&[all; 4]]), 1),
        cycles(&kernel(&deeds, &[&[all; 5]]), 1),
    );
    assert!((five - four - 512.0).abs() < 40.0, "{five} after {four}");
}

#[test]
fn a_cluster_waits_for_what_another_of_its_ctas_tells() {
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let deeds = [
        (Kind::Arrive, Deed::Init { barrier, count: 1 }),
        (
            Kind::Arrive,
            Deed::Arrive {
                barrier,
                arrivals: 1,
                expects: 0,
            },
        ),
        (Kind::Phase, Deed::Await { barrier, parity: 0 }),
    ];
    let near = cycles(&kernel(&deeds, &[&[&[0, 1, 2]], &[&[]]]), 2);
    let far = cycles(&kernel(&deeds, &[&[&[0, 2]], &[&[1]]]), 2);
    assert!(far > near + 250.0, "{far} {near}");
    // A barrier that is waited for before it is made is not forgotten.
    let early = kernel(&deeds, &[&[&[2]], &[&[0, 1]]]);
    assert!(cycles(&early, 2) > 300.0);
}

#[test]
fn who_asks_behind_the_last_arrival_does_not_stand_still() {
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let arrive = Deed::Arrive {
        barrier,
        arrivals: 1,
        expects: 0,
    };
    let deeds = [
        (Kind::Arrive, Deed::Init { barrier, count: 1 }),
        (Kind::Slot, Deed::Sleep(100)),
        (Kind::Arrive, arrive),
        (Kind::Phase, Deed::Await { barrier, parity: 0 }),
    ];
    let time = |warps: &[&[usize]]| {
        let (code, trace) = kernel(&deeds, &[warps]);
        let mut machine = machine();
        machine.wake_latency = 1000.0;
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let soon = time(&[&[0, 2, 3]]);
    assert!(soon < 100.0, "{soon}");
    let late = time(&[&[0, 3], &[1, 2]]);
    assert!((1100.0..1200.0).contains(&late), "{late}");
}

#[test]
fn a_barrier_of_all_does_not_wait_for_warps_that_have_gone() {
    let barrier = |threads| {
        let deed = Deed::Barrier {
            id: 0,
            threads,
            waits: true,
        };
        kernel(&[(Kind::Barrier, deed)], &[&[&[0], &[0], &[]]])
    };
    cycles(&barrier(96), 1);
    // One for two warps of three counts those two.
    cycles(&barrier(64), 1);
}

#[test]
fn what_is_resident_together_shares_an_sm() {
    let deeds = [
        WGMMA,
        (Kind::Slot, Deed::WgmmaCommit),
        (Kind::WgmmaWait, Deed::WgmmaWait(0)),
    ];
    let (code, trace) = kernel(&deeds, &[&[&[0, 1, 2]]]);
    let time = |resident| {
        let launch = Launched {
            resident,
            ..launched(&code, &trace, 16, 1)
        };
        let call = CallTimes::replay(&machine(), &[launch], false).expect("an end");
        call.launches[0].cycles
    };
    // Eight SMs, two CTAs each: together their warps have a partition each.
    assert!(time(2) < 0.7 * time(1), "{} {}", time(2), time(1));
}

#[test]
fn many_rounds_are_told_from_some() {
    let (code, trace) = two_tiles();
    let launch = launched(&code, &trace, 8 * 100, 1);
    let told = CallTimes::replay(&machine(), &[launch], false).expect("an end");
    let all = CallTimes::replay(&machine(), &[launch], true).expect("an end");
    let (told, all) = (&told.launches[0], &all.launches[0]);
    assert_eq!(
        (told.rounds, told.ctas.len(), all.ctas.len()),
        (100, 2, 100)
    );
    for (told, all) in [
        (told.cycles, all.cycles),
        (told.tensor_cycles, all.tensor_cycles),
    ] {
        assert!((told / all - 1.0).abs() < 0.01, "{told} for {all}");
    }
    // More of them where it takes longer until the first reads have no traces left.
    let mut machine = machine();
    machine.dirty_bytes = 1e9;
    let told = CallTimes::replay(&machine, &[launch], false).expect("an end");
    assert_eq!(told.launches[0].ctas.len(), 8);
}

#[test]
fn a_dependent_launch_begins_when_it_is_let() {
    let store = two_tiles().1.ctas[0].warps[0][2];
    let Event::Did { deed: store, .. } = store else {
        unreachable!("a store stands there")
    };
    let sleep = (Kind::Slot, Deed::Sleep(5000));
    let let_go = (Kind::AllowLaunch, Deed::AllowLaunch);
    let start = |places: &[usize]| {
        let (code, trace) = kernel(
            &[let_go, sleep, let_go, (Kind::Global, store)],
            &[&[places]],
        );
        let launch = launched(&code, &trace, 1, 1);
        let next = Launched {
            dependent: true,
            beside: true,
            fetched: true,
            ..launch
        };
        let mut quick = machine();
        quick.dependent_start_micros = 0.0;
        let call = CallTimes::replay(&quick, &[launch, next], false).expect("an end");
        call.launches[1].start
    };
    assert!(start(&[0, 1]) < 100.0);
    assert!(
        (5000.0..5100.0).contains(&start(&[1, 2])),
        "{}",
        start(&[1, 2])
    );
    assert!(start(&[1]) > 5000.0, "its end lets it");
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let (code, trace) = two_tiles();
    let refused = |machine: &Machine, trace: &Trace, cluster| {
        let launch = launched(&code, trace, 1, cluster);
        CallTimes::replay(machine, &[launch], false).expect_err("refused")
    };
    assert_eq!(
        refused(&machine(), &Trace::default(), 1),
        ReplayError::Empty
    );
    let size = ReplayError::Cluster { traced: 1, size: 2 };
    assert_eq!(refused(&machine(), &trace, 2), size);
    let mut foreign = trace.clone();
    foreign.lines.truncate(3);
    assert_eq!(refused(&machine(), &foreign, 1), ReplayError::Foreign);
    for (name, number) in [
        ("l2_port", 0.0),
        ("sms", -1.0),
        ("memory_bandwidth", f64::NAN),
        ("barrier_latency", f64::INFINITY),
        ("alu_interval", -2.0),
    ] {
        let mut wrong = machine();
        *wrong.number_mut(name).expect("a name") = number;
        assert_eq!(refused(&wrong, &trace, 1), ReplayError::Machine(name));
    }
}

#[test]
fn the_way_to_the_end_is_told_once_and_through_those_waited_for() {
    let (code, trace) = two_tiles();
    let machine = Machine::from_numbers(|_| Some(8.0)).unwrap();
    let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false).unwrap();
    let times = &call.launches[0];
    let told: f64 = times.way.iter().sum();
    assert!((told - times.cycles).abs() < 1e-6, "{:?}", times.way);
    let of = |cause: Cause| times.way[cause as usize];
    assert_eq!(of(Cause::Launch), 8.0, "{:?}", times.way);
    assert!(of(Cause::Barriers) >= 8.0, "{:?}", times.way);
    assert!((call.way().iter().sum::<f64>() - call.micros).abs() < 1e-9);
    // What is on the way is what removing it can save at most.
    let free = Machine::from_numbers(|name| match name {
        "barrier_latency" | "barrier_interval" => Some(0.0),
        _ => Some(8.0),
    });
    let without =
        CallTimes::replay(&free.unwrap(), &[launched(&code, &trace, 1, 1)], false).unwrap();
    let saved = times.cycles - without.launches[0].cycles;
    assert!(saved > 0.0 && saved <= of(Cause::Barriers), "{saved}");
}

#[test]
fn a_trace_that_does_not_end_says_who_waits_where() {
    let (code, mut trace) = two_tiles();
    trace.ctas[0].warps.truncate(1);
    let machine = Machine::from_numbers(|_| Some(8.0)).unwrap();
    let stuck = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false).unwrap_err();
    let said = stuck.to_string();
    assert!(
        said.contains(": warps 0 of CTA 7 for barrier 0, where 32 threads have arrived"),
        "{said}"
    );
    let barrier = BarrierAt {
        rank: 0,
        address: 0x40,
    };
    let init = Deed::Init { barrier, count: 2 };
    let wait = Deed::Await { barrier, parity: 0 };
    let deeds = [init, wait];
    let did = (0..).zip(deeds).map(|(at, deed)| Event::Did { at, deed });
    trace.ctas[0].warps[0] = did.collect();
    let stuck = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false).unwrap_err();
    let said = stuck.to_string();
    assert!(
        said.contains("the mbarrier at 0x40 of rank 0, whose phase 0 lacks 2 arrivals"),
        "{said}"
    );
}

#[test]
fn ctas_that_do_what_a_traced_one_does_have_no_other_time() {
    let sleep = |nanos| (Kind::Slot, Deed::Sleep(nanos));
    let deeds = [sleep(100), sleep(900)];
    let (short, long): (&[&[usize]], &[&[usize]]) = (&[&[0]], &[&[1]]);
    let of = |ctas: &[&[&[usize]]]| {
        let (code, mut trace) = kernel(&deeds, ctas);
        for (number, cta) in (0..).zip(&mut trace.ctas) {
            (cta.cluster, cta.rank) = (number, 0);
        }
        (code, trace)
    };
    let machine = Machine {
        sms: 4.0,
        ..Machine::from_numbers(|_| Some(8.0)).unwrap()
    };
    let speaks = |ctas: u64, fixed: usize, all: &[&[&[usize]]]| {
        let (code, all) = of(all);
        let trace = Trace {
            ctas: all.ctas[..fixed].to_vec(),
            ..all.clone()
        };
        let launch = Launched {
            code: &code,
            trace: &trace,
            ctas,
            cluster: 1,
            resident: 1,
            dependent: false,
            beside: false,
            fetched: true,
        };
        launch.speaks_for(&machine, &all)
    };
    assert!(speaks(4, 1, &[short, short, short]));
    assert!(speaks(400, 1, &[short, short, short]));
    // One that is seen for the first time.
    assert!(!speaks(4, 1, &[short, short, long]));
    // Side by side the longest counts, one after another how many of each there are.
    assert!(speaks(4, 2, &[short, long, long]));
    assert!(!speaks(400, 2, &[short, long, long]));
}
