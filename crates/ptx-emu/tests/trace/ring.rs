//! A ring of copies, its barriers and its turns.

use ptx_emu::trace::Trace;
use ptx_emu::{Config, Fill, Launch, MapElement, Memory, Params, Swizzle, TensorMap, Tiled};

use super::{kernel, told, watch};

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
    let (mut report, trace) = traced.expect("a correct kernel");
    // Only a traced launch has a busiest cluster with a trace.
    assert_eq!(report.most.of_traced, alone.most.of_all);
    report.most = alone.most;
    assert_eq!(report, alone);
    assert_eq!(trace.regions, [100, 4096]);
    trace
}

#[test]
fn a_ring_is_told_turn_by_turn_and_waits_once() {
    let trace = ring(&Config::default());
    let load = |at: &str, rows: u32, barrier: u32| {
        format!(
            "27 Bulk {{ direction: Load, at: Some(GlobalBytes {{ region: 1, {at} }}), rows: {rows}, \
             bytes: 512, to: 1, barrier: Some({{ {barrier} }}), pair: false, map: Some(0) }}"
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
        &load(
            "first: 64, bytes: 512, sectors: 16, lines: 7, blocks: 4",
            8,
            1024,
        ),
        "28-30",
        "17-21",
        "23 Await { barrier: { 1048 }, parity: 1 }",
        "24-24",
        "25 Arrive { barrier: { 1032 }, arrivals: 1, expects: 512 }",
        "26-26",
        &load(
            "first: 832, bytes: 512, sectors: 16, lines: 7, blocks: 4",
            8,
            1032,
        ),
        "28-30",
        "17-21",
        "23 Await { barrier: { 1040 }, parity: 0 }",
        "24-24",
        "25 Arrive { barrier: { 1024 }, arrivals: 1, expects: 512 }",
        "26-26",
        // The tensor ends in this box.
        &load(
            "first: 1600, bytes: 256, sectors: 8, lines: 4, blocks: 2",
            4,
            1024,
        ),
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
