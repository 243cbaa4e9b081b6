//! What a trace of a launch tells.

use ptx_emu::trace::{Event, Trace, Watch};
use ptx_emu::{
    Config, Fill, Launch, LaunchError, MapElement, Memory, Module, Params, Profile, Report,
    Swizzle, TensorMap, Tiled,
};

const REGISTERS: &str = "
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<80>;
    .shared .align 8 .b64 bars[4]; .shared .align 1024 .b8 tile[16384];
";

/// A kernel of this body, one instruction a line.
fn kernel(params: &str, body: &str) -> Module {
    kernel_for("sm_90a", params, body)
}

fn kernel_for(target: &str, params: &str, body: &str) -> Module {
    let head = format!(".version 8.8\n.target {target}\n.address_size 64\n");
    let text = format!("{head}.visible .entry k({params}) {{\n{REGISTERS}{body}\nret;\n}}");
    Module::load(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// Line of a kernel's first instruction.
const FIRST: u32 = 8;

fn watch(ctas: &[u64]) -> Watch {
    Watch {
        ctas: ctas.to_vec(),
        only: false,
    }
}

/// The events of a warp, instructions by their line in the body, from 0.
fn told(trace: &Trace, cta: usize, warp: usize) -> Vec<String> {
    let line = |pc: u32| trace.lines[pc as usize] - FIRST;
    let event = |event: &Event| match event {
        Event::Run { first, end } => format!("{}-{}", line(*first), line(*end - 1)),
        Event::Did { at, deed } => {
            let deed = format!("{deed:?}").replace("BarrierAt { rank: 0, address: ", "{ ");
            format!("{} {deed}", line(*at))
        }
    };
    trace.ctas[cta].warps[warp].iter().map(event).collect()
}

/// A body that finds its thread in `%r1`, the first byte of a page of its CTA in `%rd1`, and of
/// its word in it in `%rd3`.
fn paged(body: &str) -> Module {
    let body = format!(
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 4096; add.u64 %rd1, %rd1, %rd2; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd1, %rd3;
{body}"
    );
    kernel(".param .u64 out", &body)
}

/// Runs such a body on one page a CTA.
fn run(body: &str, launch: Launch, watch: &Watch) -> (Report, Trace, Vec<u8>) {
    let module = paged(body);
    let mut memory = Memory::new();
    let bytes = 4096 * u64::from(launch.grid[0]);
    let out = memory.alloc(bytes).expect("room");
    let launch = launch.params(Params::new().pointer(out));
    let traced = launch.run_traced(&module, &mut memory, watch);
    let (report, trace) = traced.unwrap_or_else(|e| panic!("{e}"));
    (
        report,
        trace,
        memory.read_vec(out, bytes).expect("allocated"),
    )
}

fn warp() -> Launch {
    Launch::new("k").block([32, 1, 1])
}

/// A producer warp fills a ring of two stages with boxes of a tensor; a consumer warp reads them.
const RING: &str = "mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    setp.ne.u32 %p2, %r1, 0;
    mov.u32 %r2, bars;
    mov.u32 %r3, tile;
    @%p2 bra READY;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.init.shared.b64 [%r2+8], 1;
    mbarrier.init.shared.b64 [%r2+16], 32;
    mbarrier.init.shared.b64 [%r2+24], 32;
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
    mov.u32 %r4, 0;
    @%p1 bra CONSUME;
    @%p2 bra END;
PRODUCE:
    and.b32 %r5, %r4, 1;
    shr.u32 %r6, %r4, 1;
    mad.lo.u32 %r7, %r5, 8, %r2;
    mad.lo.u32 %r8, %r5, 1024, %r3;
    xor.b32 %r6, %r6, 1;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r7+16], %r6;
    @!%p3 bra EMPTY;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 512;
    mul.lo.u32 %r9, %r4, 8;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [map, {0, %r9}], [%r7];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p4, %r4, 3;
    @%p4 bra PRODUCE;
    bra END;
CONSUME:
    and.b32 %r5, %r4, 1;
    shr.u32 %r6, %r4, 1;
    mad.lo.u32 %r7, %r5, 8, %r2;
    mad.lo.u32 %r8, %r5, 1024, %r3;
    and.b32 %r10, %r1, 31;
    mad.lo.u32 %r8, %r10, 16, %r8;
FULL:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r6;
    @%p3 bra FILLED;
    nanosleep.u32 20;
    bra FULL;
FILLED:
    ld.shared.v4.b32 {%r11, %r12, %r13, %r14}, [%r8];
    mbarrier.arrive.shared.b64 _, [%r7+16];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p4, %r4, 3;
    @%p4 bra CONSUME;
END:
    ";

fn ring(config: &Config) -> Trace {
    let module = kernel(".param .align 64 .b8 map[128]", RING);
    let mut memory = Memory::new();
    memory.alloc(100).expect("room");
    let tensor = memory.alloc(4096).expect("room");
    let map = TensorMap::tiled(Tiled {
        element: MapElement::F32,
        address: tensor.0 + 64,
        dims: &[16, 20],
        strides: &[96],
        box_dims: &[16, 8],
        element_strides: &[1, 1],
        swizzle: Swizzle::None,
        fill: Fill::Zero,
    });
    let params = Params::new().tensor_map(&map.expect("a good map"));
    let launch = Launch::new("k").block([64, 1, 1]).params(params);
    let launch = launch.config(*config);
    let alone = launch.run(&module, &mut memory).expect("a correct kernel");
    let traced = launch.run_traced(&module, &mut memory, &watch(&[0]));
    let (report, trace) = traced.expect("a correct kernel");
    assert_eq!(report, alone);
    assert_eq!(trace.regions, [100, 4096]);
    trace
}

#[test]
fn a_ring_is_told_turn_by_turn_and_waits_once() {
    let trace = ring(&Config::default());
    let load = |at: &str, rows: u32, barrier: u32| {
        format!(
            "27 Bulk {{ way: Load, at: Some(GlobalBytes {{ region: 1, {at} }}), rows: {rows}, \
             bytes: 512, to: 1, barrier: Some({{ {barrier} }}), pair: false }}"
        )
    };
    let producer = [
        "0-5",
        "6 Init { barrier: { 1024 }, count: 1 }",
        "7 Init { barrier: { 1032 }, count: 1 }",
        "8 Init { barrier: { 1040 }, count: 32 }",
        "9 Init { barrier: { 1048 }, count: 32 }",
        "10 Fence { proxy: false, beyond_cta: true }",
        "12 Barrier { id: 0, threads: 64, waits: true }",
        "13-15",
        // The lanes that leave.
        "52-52",
        "17-21",
        "23 Await { barrier: { 1040 }, parity: 1 }",
        "24-24",
        "25 Arrive { barrier: { 1024 }, arrivals: 1, expects: 512 }",
        "26-26",
        &load("first: 64, bytes: 512, sectors: 16", 8, 1024),
        "28-30",
        "17-21",
        "23 Await { barrier: { 1048 }, parity: 1 }",
        "24-24",
        "25 Arrive { barrier: { 1032 }, arrivals: 1, expects: 512 }",
        "26-26",
        &load("first: 832, bytes: 512, sectors: 16", 8, 1032),
        "28-30",
        "17-21",
        "23 Await { barrier: { 1040 }, parity: 0 }",
        "24-24",
        "25 Arrive { barrier: { 1024 }, arrivals: 1, expects: 512 }",
        "26-26",
        // The tensor ends in this box.
        &load("first: 1600, bytes: 256, sectors: 8", 4, 1024),
        "28-31",
        "52-52",
    ];
    assert_eq!(told(&trace, 0, 0), producer);
    let mut consumer = vec![
        "0-5".to_owned(),
        "12 Barrier { id: 0, threads: 64, waits: true }".to_owned(),
        "13-14".to_owned(),
    ];
    for (turn, (full, parity)) in [(1024, 0), (1032, 0), (1024, 1)].into_iter().enumerate() {
        consumer.extend([
            "33-38".to_owned(),
            format!("40 Await {{ barrier: {{ {full} }}, parity: {parity} }}"),
            "41-41".to_owned(),
            "45 Shared { wavefronts: 4, bytes: 512, writes: false, atomic: false }".to_owned(),
            format!(
                "46 Arrive {{ barrier: {{ {} }}, arrivals: 32, expects: 0 }}",
                full + 16
            ),
            if turn < 2 { "47-49" } else { "47-52" }.to_owned(),
        ]);
    }
    assert_eq!(told(&trace, 0, 1), consumer);
}

/// How often a wait was in vain is the schedule's business.
#[test]
fn a_ring_is_the_same_whatever_the_schedule() {
    let trace = ring(&Config::default());
    for seed in 1..12 {
        let config = Config {
            seed,
            ..Config::default()
        };
        assert_eq!(ring(&config), trace, "seed {seed}");
    }
}

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
        "12 Global { at: GlobalBytes { region: 0, first: 0, bytes: 128, sectors: 4 }, \
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
fn accesses_say_what_they_cost() {
    let body = "mov.u32 %r3, tile;
        mad.lo.u32 %r4, %r1, 8, %r3;
        ld.shared.b32 %r5, [%r4];
        mad.lo.u32 %r4, %r1, 128, %r3;
        st.shared.v4.b32 [%r4], {%r5, %r5, %r5, %r5};
        ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r3];
        atom.shared.add.u32 %r9, [%r3], 1;
        mad.lo.u32 %r4, %r1, 16, %r3;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4];
        mad.lo.u32 %r4, %r1, 128, %r3;
        stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r5, %r6};
        mul.wide.u32 %rd4, %r1, 64;
        sub.u64 %rd4, %rd1, %rd4;
        ld.global.b32 %r5, [%rd4+2048];
        ld.global.v2.b32 {%r5, %r6}, [%rd1+40];
        mov.u64 %rd5, %clock64;
        mov.u32 %r6, %clock;
        cp.async.ca.shared.global [%r4], [%rd3], 4;
        cp.async.commit_group;
        cp.async.wait_group 0;
        cp.async.bulk.prefetch.L2.global [%rd1], 1024;
        griddepcontrol.wait;
        setmaxnreg.dec.sync.aligned.u32 24;";
    let (report, trace, _) = run(body, warp(), &watch(&[0]));
    let shared = |line: u32, wavefronts: u32, bytes: u32, writes: bool, atomic: bool| {
        format!(
            "{line} Shared {{ wavefronts: {wavefronts}, bytes: {bytes}, writes: {writes}, \
             atomic: {atomic} }}"
        )
    };
    let bytes = |first: u32, bytes: u32, sectors: u32| {
        format!(
            "at: GlobalBytes {{ region: 0, first: {first}, bytes: {bytes}, sectors: {sectors} }}"
        )
    };
    let events = [
        "0-2",
        &shared(3, 2, 128, false, false),
        "4-4",
        &shared(5, 32, 512, true, false),
        &shared(6, 1, 512, false, false),
        &shared(7, 1, 128, true, true),
        "8-8",
        &shared(9, 4, 512, false, false),
        "10-10",
        &shared(11, 16, 256, true, false),
        "12-13",
        &format!(
            "14 Global {{ {}, writes: false, atomic: false }}",
            bytes(64, 128, 32)
        ),
        &format!(
            "15 Global {{ {}, writes: false, atomic: false }}",
            bytes(40, 256, 1)
        ),
        "16 Stamp",
        "16-16",
        "17 Stamp",
        "17-17",
        &format!("18 LaneCopy {{ {} }}", bytes(0, 128, 4)),
        "19 LaneCommit",
        "20 LaneWait(0)",
        "21 Bulk { way: Prefetch",
        "22 AwaitLaunch",
        "23 Registers(24)",
        "24-24",
    ];
    let mut told = told(&trace, 0, 0);
    let prefetches = told.iter().filter(|t| t.starts_with("21 ")).count();
    assert_eq!(prefetches, 32);
    told.dedup_by_key(|t| t.split(' ').next().map(str::to_owned));
    let prefetch = told.iter_mut().find(|t| t.starts_with("21 "));
    prefetch
        .expect("one is left")
        .truncate("21 Bulk { way: Prefetch".len());
    assert_eq!(told, events);
    // Beyond the 1 + 4 + 1 + 1 + 4 + 2 that nothing could save.
    assert_eq!(report.counters.bank_conflicts, 1 + 28 + 14);
}

/// CTAs that draw tickets and wait for a flag, so that they take turns.
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

#[test]
fn products_are_told_warp_by_warp() {
    let d: Vec<String> = (0..4).map(|i| format!("%f{i}")).collect();
    let d = d.join(", ");
    let body = format!(
        "mov.u32 %r3, tile;
        cvt.u64.u32 %rd4, %r3;
        shr.u64 %rd4, %rd4, 4;
        or.b64 %rd4, %rd4, 0x4000004000010000;
        fence.proxy.async.shared::cta;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{d}}}, %rd4, %rd4, 0, 1, 1, 0, 0;
        wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {{{d}}}, {{%r1, %r1, %r1, %r1}}, %rd4, 1, 1, 1;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{d}}}, {{%r1, %r1, %r1, %r1}}, {{%r1, %r1}}, {{{d}}};"
    );
    let launch = Launch::new("k").block([128, 1, 1]);
    let (_, trace, _) = run(&body, launch, &watch(&[0]));
    let events = [
        "0-4",
        "5 Fence { proxy: true, beyond_cta: false }",
        "6 WgmmaFence",
        "7 Wgmma { n: 8, bits: 16, registers: false, sparse: false }",
        "8 Wgmma { n: 8, bits: 8, registers: true, sparse: false }",
        "9 WgmmaCommit",
        "10 WgmmaWait(0)",
        "11 Mma { shape: [16, 8, 16], bits: 16 }",
        "12-12",
    ];
    for warp in 0..4 {
        assert_eq!(told(&trace, 0, warp), events);
    }
}

#[test]
fn copies_of_lanes_tell_their_barrier() {
    let body = "mov.u32 %r3, tile;
        mov.u32 %r5, bars;
        shl.b32 %r4, %r1, 2;
        add.u32 %r3, %r3, %r4;
        setp.ne.u32 %p1, %r1, 0;
        @!%p1 mbarrier.init.shared.b64 [%r5], 32;
        bar.warp.sync 0xffffffff;
        cp.async.ca.shared.global [%r3], [%rd3], 4;
        cp.async.mbarrier.arrive.shared.b64 [%r5];
        cp.async.mbarrier.arrive.noinc.shared.b64 [%r5];
WAIT:
        mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
        @!%p3 bra WAIT;
        cp.async.wait_all;";
    for seed in 0..4 {
        let config = Config {
            seed,
            ..Config::default()
        };
        let (_, trace, _) = run(body, warp().config(config), &watch(&[0]));
        let events = [
            "0-5",
            "6 Init { barrier: { 1024 }, count: 32 }",
            "7-7",
            "8 LaneCopy { at: GlobalBytes { region: 0, first: 0, bytes: 128, sectors: 4 } }",
            "9 LaneArrive { barrier: { 1024 }, arrivals: 0 }",
            "10 LaneArrive { barrier: { 1024 }, arrivals: 32 }",
            "12 Await { barrier: { 1024 }, parity: 0 }",
            "13-13",
            "14 LaneCommit",
            "14 LaneWait(0)",
            "15-15",
        ];
        assert_eq!(told(&trace, 0, 0), events, "seed {seed}");
    }
}

/// Whatever is issued to the tensor cores of a Blackwell, by one CTA or a pair: `G` is how many.
const TENSOR: &str = "mov.u32 %r1, %tid.x;
    mov.u32 %r2, bars;
    mov.u32 %r3, tile;
    mov.u32 %r4, %cluster_ctarank;
    or.b32 %r5, %r1, %r4;
    setp.ne.u32 %p2, %r1, 0;
    setp.ne.u32 %p1, %r5, 0;
    @!%p2 mbarrier.init.shared.b64 [%r2], 1;
    tcgen05.alloc.cta_group::G.sync.aligned.shared::cta.b32 [%r2+8], 64;
    tcgen05.relinquish_alloc_permit.cta_group::G.sync.aligned;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ld.shared.b32 %r6, [%r2+8];
    mov.u32 %r7, 0;
    tcgen05.st.sync.aligned.16x64b.x4.b32 [%r6], {%r7, %r7, %r7, %r7};
    tcgen05.wait::st.sync.aligned;
    cvt.u64.u32 %rd4, %r3;
    shr.u64 %rd4, %rd4, 4;
    or.b64 %rd4, %rd4, 0x4000404000000000;
    mov.u32 %r9, IDESC;
    mov.b16 %rs1, 3;
    @%p1 bra ISSUED;
    tcgen05.cp.cta_group::G.32x128b.warpx4 [%r6+32], %rd4;
    tcgen05.mma.cta_group::G.kind::f16.collector::a::fill [%r6], %rd4, %rd4, %r9, 0;
    tcgen05.mma.cta_group::G.kind::f16.collector::a::lastuse [%r6], %rd4, %rd4, %r9, 1;
    tcgen05.mma.cta_group::G.kind::f16 [%r6], [%r6+32], %rd4, %r9, 1;
    tcgen05.shift.cta_group::G.down [%r6+32];
    tcgen05.commit.cta_group::G.mbarrier::arrive::one.shared::cluster.MULTICASTb64 [%r2]MASK;
ISSUED:
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r6];
    tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {%r12, %r13, %r14, %r15}, [%r6];
    tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r16, %r17}, [%r6], 4;
    tcgen05.wait::ld.sync.aligned;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.dealloc.cta_group::G.sync.aligned.b32 %r6, 64;";

/// What the warp of each CTA did.
fn tensor(ctas: u32) -> Vec<Vec<String>> {
    // kind::f16, of 64 x 16 a CTA: f32 = f16 * f16.
    let shape = 1 << 4 | 2 << 17 | (4 * ctas) << 24;
    let text = TENSOR.replace("::G", &format!("::{ctas}"));
    let text = text.replace("IDESC", &shape.to_string());
    let text = match ctas {
        1 => text.replace("MULTICAST", "").replace("MASK", ""),
        _ => text
            .replace("MULTICAST", "multicast::cluster.")
            .replace("MASK", ", %rs1"),
    };
    let module = kernel_for("sm_100a", "", &format!(".reg .b16 %rs<2>; {text}"));
    let config = Config {
        profile: Profile::B200,
        ..Config::default()
    };
    let launch = warp()
        .grid([ctas, 1, 1])
        .cluster([ctas, 1, 1])
        .config(config);
    let traced = launch.run_traced(&module, &mut Memory::new(), &watch(&[0]));
    let (_, trace) = traced.unwrap_or_else(|e| panic!("{e}"));
    (0..ctas as usize).map(|cta| told(&trace, cta, 0)).collect()
}

#[test]
fn tensor_memory_is_told_thread_by_thread() {
    let events = [
        "0-6",
        "7 Init { barrier: { 1024 }, count: 1 }",
        "8 TmemAlloc { columns: 64, ctas: 1 }",
        "9-9",
        "10 ClusterArrive",
        "11 ClusterWait",
        "12 Shared { wavefronts: 1, bytes: 128, writes: false, atomic: false }",
        "13-13",
        "14 TmemMove { columns: 8, lanes: 16, bits: 64, writes: true }",
        "15 TmemWait { stores: true }",
        "16-21",
        "22 TmemCopy { bytes: 512, ctas: 1 }",
        "23 TmemMma { shape: [64, 16, 16], ctas: 1, columns: 16, a: Shared }",
        "24 TmemMma { shape: [64, 16, 16], ctas: 1, columns: 16, a: Kept }",
        "25 TmemMma { shape: [64, 16, 16], ctas: 1, columns: 16, a: Tmem }",
        "26 TmemShift { ctas: 1 }",
        "27 TmemCommit { barrier: { 1024 }, to: 1 }",
        "30 Await { barrier: { 1024 }, parity: 0 }",
        "31-32",
        "33 TmemMove { columns: 2, lanes: 32, bits: 32, writes: false }",
        "34 TmemMove { columns: 16, lanes: 16, bits: 256, writes: false }",
        "35 TmemMove { columns: 4, lanes: 16, bits: 32, writes: false }",
        "36 TmemWait { stores: false }",
        "37 ClusterArrive",
        "38 ClusterWait",
        "39 TmemFree { columns: 64, ctas: 1 }",
        "40-40",
    ];
    assert_eq!(tensor(1), [events]);
}

#[test]
fn the_even_cta_of_a_pair_issues_for_both() {
    let of = |cta: &[String]| -> Vec<String> {
        let tmem = |t: &&String| t.contains("Tmem") && !t.contains("Move") && !t.contains("Wait");
        cta.iter().filter(tmem).cloned().collect()
    };
    let [even, odd] = &tensor(2)[..] else {
        panic!("two CTAs")
    };
    let events = [
        "8 TmemAlloc { columns: 64, ctas: 2 }",
        "22 TmemCopy { bytes: 512, ctas: 2 }",
        "23 TmemMma { shape: [128, 16, 16], ctas: 2, columns: 8, a: Shared }",
        "24 TmemMma { shape: [128, 16, 16], ctas: 2, columns: 8, a: Kept }",
        "25 TmemMma { shape: [128, 16, 16], ctas: 2, columns: 8, a: Tmem }",
        "26 TmemShift { ctas: 2 }",
        "27 TmemCommit { barrier: { 1024 }, to: 3 }",
        "39 TmemFree { columns: 64, ctas: 2 }",
    ];
    assert_eq!(of(even), events);
    assert_eq!(of(odd), [events[0], events[7]]);
    assert!(odd.iter().any(|t| t.contains("Await")));
}
