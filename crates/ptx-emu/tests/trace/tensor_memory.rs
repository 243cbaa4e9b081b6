//! What is done in tensor memory.

use ptx_emu::{Config, DeviceLimits, Memory};

use super::{kernel_for, told, warp, watch};

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
        limits: DeviceLimits::B200,
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
