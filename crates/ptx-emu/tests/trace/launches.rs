//! Who is told of a launch, and in which order.

use ptx_emu::trace::Watch;
use ptx_emu::{Config, LaunchError, Memory, Params};

use super::{FIRST, paged, run, told, warp, watch};

#[test]
fn diverged_paths_are_told_as_they_ran() {
    let body = "and.b32 %r3, %r1, 1;
        setp.ne.u32 %p1, %r3, 0;
        @%p1 bra ODD;
        add.u32 %r4, %r1, 1;
        bra JOIN;
ODD:
        add.u32 %r4, %r1, 2;
        add.u32 %r4, %r4, 2;
JOIN:
        setp.gt.u32 %p2, %r1, 40;
        @%p2 st.global.b32 [%rd3], %r4;
        st.global.b32 [%rd3], %r4;";
    let (_, trace, _) = run(body, warp(), &watch(&[0]));
    let events = [
        "0-3",
        "7-8",
        "4-5",
        // A store for nobody is no deed.
        "10-11",
        "12 Global { at: GlobalBytes { region: 0, first: 0, bytes: 128, sectors: 4, lines: 1, blocks: 1 }, \
         writes: true, atomic: false }",
        "13-13",
    ];
    assert_eq!(told(&trace, 0, 0), events);
    let leaders = (0..trace.lines.len()).filter(|&pc| trace.leaders[pc]);
    let lines: Vec<u32> = leaders.map(|pc| trace.lines[pc] - FIRST).collect();
    // The last is what follows `ret`.
    assert_eq!(lines, [0, 4, 7, 10, 13]);
}

/// Lanes that stand before an exchange and let the others come first have not executed it.
#[test]
fn an_exchange_is_told_when_it_happens() {
    let body = "setp.lt.u32 %p1, %r1, 8;
        @%p1 bra LOW;
        bar.warp.sync 0xffffffff;
        bra JOIN;
LOW:
        bar.warp.sync 0xffffffff;
JOIN:
        bar.sync 0;";
    let (_, trace, _) = run(body, warp(), &watch(&[0]));
    // The lower lanes are there first, and come last.
    let events = [
        "0-6",
        "8 Barrier { id: 0, threads: 32, waits: true }",
        "9-9",
    ];
    assert_eq!(told(&trace, 0, 0), events);
}

#[test]
fn others_need_not_run() {
    let body = "st.global.b32 [%rd3], 7;";
    let launch = warp().grid([6, 1, 1]);
    let only = Watch {
        ctas: vec![4, 1],
        only: true,
    };
    let (report, trace, out) = run(body, launch.clone(), &only);
    assert_eq!(report.counters.ctas, 2);
    let ran: Vec<usize> = (0..6).filter(|cta| out[4096 * cta] == 7).collect();
    assert_eq!(ran, [1, 4]);
    let numbers: Vec<u64> = trace.ctas.iter().map(|cta| cta.cta).collect();
    assert_eq!(numbers, [1, 4]);
    let (report, all, out) = run(body, launch.clone(), &watch(&[1, 4]));
    assert_eq!(report.counters.ctas, 6);
    assert_eq!(out[4096 * 5], 7);
    assert_eq!(all, trace);
    let module = paged(body);
    let mut memory = Memory::new();
    let out = memory.alloc(6 * 4096).expect("room");
    let launch = launch.params(Params::new().pointer(out));
    let wrong = launch.run_traced(&module, &mut memory, &watch(&[6]));
    let Err(LaunchError::Shape { reason, .. }) = wrong else {
        panic!("{wrong:?}");
    };
    assert_eq!(reason, "CTA 6 is to be traced, but the grid has 6, from 0");
}

#[test]
fn the_ctas_of_a_cluster_are_told_together() {
    let body = "mov.u32 %r3, %cluster_ctarank;
        xor.b32 %r4, %r3, 1;
        mov.u32 %r5, bars;
        mapa.shared::cluster.u32 %r6, %r5, %r4;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra READY;
        mbarrier.init.shared.b64 [%r5], 32;
        mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 128;
READY:
        barrier.cluster.arrive;
        barrier.cluster.wait;
        mov.u32 %r7, tile;
        shl.b32 %r8, %r1, 2;
        add.u32 %r7, %r7, %r8;
        mapa.shared::cluster.u32 %r9, %r7, %r4;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r9], %r1, [%r6];
        setp.ne.u32 %p2, %r1, 0;
        @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
WAIT:
        mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
        @!%p3 bra WAIT;
        ld.shared::cluster.b32 %r10, [%r9];
        barrier.cluster.arrive;
        barrier.cluster.wait;";
    let launch = warp().grid([4, 1, 1]).cluster([2, 1, 1]);
    let (_, trace, _) = run(body, launch, &watch(&[3]));
    let known: Vec<_> = trace
        .ctas
        .iter()
        .map(|c| (c.cta, c.cluster, c.rank))
        .collect();
    assert_eq!(known, [(2, 1, 0), (3, 1, 1)]);
    let events = [
        "0-6",
        "7 Init { barrier: BarrierAt { rank: 1, address: 1024 }, count: 32 }",
        "8 Arrive { barrier: BarrierAt { rank: 1, address: 1024 }, arrivals: 1, expects: 128 }",
        "10 ClusterArrive",
        "11 ClusterWait",
        "12-15",
        "16 Remote { rank: 0, bytes: 128, writes: true, barrier: Some({ 1024 }) }",
        "17-17",
        "18 Arrive { barrier: { 1024 }, arrivals: 31, expects: 0 }",
        "20 Await { barrier: BarrierAt { rank: 1, address: 1024 }, parity: 0 }",
        "21-21",
        "22 Remote { rank: 0, bytes: 128, writes: false, barrier: None }",
        "23 ClusterArrive",
        "24 ClusterWait",
        "25-25",
    ];
    assert_eq!(told(&trace, 1, 0), events);
}

#[test]
fn a_loop_that_ends_by_its_own_count_is_no_wait() {
    let polls = |step: &str| {
        let body = format!(
            "ld.param.u64 %rd1, [out];
            mov.u32 %r3, 0;
            mov.u32 %r6, 0;
            mul.lo.u32 %r5, %r1, {step};
    LOOP:
            cvt.u64.u32 %rd2, %r3;
            add.u64 %rd3, %rd1, %rd2;
            ld.volatile.global.b32 %r4, [%rd3];
            add.u32 %r3, %r3, %r5;
            add.u32 %r6, %r6, 1;
            setp.lt.u32 %p1, %r6, 4;
            @%p1 bra LOOP;"
        );
        let trace = run(&body, warp(), &watch(&[0])).1;
        let told = told(&trace, 0, 0);
        told.iter().filter(|told| told.contains("Global")).count()
    };
    // It ends by its own count, and nobody has written there.
    assert_eq!(polls("0"), 4);
    // Lane 0 stays where it is.
    assert_eq!(polls("4"), 4);
}

#[test]
fn a_trace_does_not_depend_on_the_threads() {
    let body = "ld.param.u64 %rd1, [out];
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra END;
        atom.global.add.u32 %r3, [%rd1], 1;
        setp.eq.u32 %p2, %r3, 15;
        @%p2 st.release.gpu.global.b32 [%rd1+64], 1;
WAIT:
        ld.acquire.gpu.global.b32 %r4, [%rd1+64];
        setp.eq.u32 %p3, %r4, 0;
        @%p3 bra WAIT;
END:";
    let all: Vec<u64> = (0..16).collect();
    let traced = |threads: usize, seed: u64| {
        let config = Config {
            threads,
            seed,
            ..Config::default()
        };
        let launch = warp().grid([16, 1, 1]).config(config);
        run(body, launch, &watch(&all)).1
    };
    for seed in 0..4 {
        let one = traced(1, seed);
        assert_eq!(one, traced(2, seed), "seed {seed}");
        for cta in 0..16 {
            let told = told(&one, cta, 0);
            let polls = told.iter().filter(|t| t.starts_with("8 Global")).count();
            assert_eq!(polls, 1, "{told:#?}");
        }
    }
}
