//! What accesses, products and copies of lanes say.

use ptx_emu::{Config, Launch};

use super::{run, told, warp, watch};

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
    let bytes = |first: u32, bytes: u32, sectors: u32, lines: u32, blocks: u32| {
        format!(
            "at: GlobalBytes {{ region: 0, first: {first}, bytes: {bytes}, sectors: {sectors}, \
             lines: {lines}, blocks: {blocks} }}"
        )
    };
    let events = [
        "0-2",
        &shared(3, 2, 128, false, false),
        "4-4",
        &shared(5, 32, 512, true, false),
        &shared(6, 1, 512, false, false),
        &shared(7, 32, 128, true, true),
        "8-8",
        &shared(9, 4, 512, false, false),
        "10-10",
        &shared(11, 16, 256, true, false),
        "12-13",
        &format!(
            "14 Global {{ {}, writes: false, atomic: false }}",
            bytes(64, 128, 32, 17, 9)
        ),
        &format!(
            "15 Global {{ {}, writes: false, atomic: false }}",
            bytes(40, 256, 1, 1, 1)
        ),
        "16 Stamp",
        "16-16",
        "17 Stamp",
        "17-17",
        &format!("18 LaneCopy {{ {} }}", bytes(0, 128, 4, 1, 1)),
        "19 LaneCommit",
        "20 LaneWait(0)",
        "21 Bulk { direction: Prefetch",
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
        .truncate("21 Bulk { direction: Prefetch".len());
    assert_eq!(told, events);
    // Beyond the 1 + 4 + 1 + 1 + 4 + 2 that nothing could save.
    assert_eq!(report.counters.bank_conflicts, 1 + 28 + 14);
}

/// CTAs that draw tickets and wait for a flag, so that they take turns.

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
            "8 LaneCopy { at: GlobalBytes { region: 0, first: 0, bytes: 128, sectors: 4, lines: 1, blocks: 1 } }",
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
