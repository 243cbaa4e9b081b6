//! Tensor copies of Blackwell: 4- and 6-bit elements, other atoms of the swizzle, four rows at
//! once, and pairs of CTAs.

use crate::case::{Case, Launch, MapBuffer, MapSpec, MapType, Swizzle};
use crate::families::BLACKWELL;
use crate::kernel::Kernel;

/// The family's cases.
pub(in crate::families) fn cases() -> Vec<Case> {
    [packed(), atoms(), gathered(), scattered(), pairs()].concat()
}

const TILE: usize = 4096;

const BEGIN: &str = "mov.u32 %r1, tile;\nmov.u32 %r0, bar;\nsetp.eq.u32 %p1, %thread, 0;\n\
    @%p1 mbarrier.init.shared::cta.b64 [%r0], 1;\nfence.mbarrier_init.release.cluster;\n\
    mov.b64 %l0, map0;\ncvta.param.u64 %l0, %l0;\nmov.u32 %r9, %cluster_ctarank;\n\
    barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Waits, and traps after about 20 ms: other bytes than expected are to fail, not to hang.
const WAIT: &str = "mov.b32 %r23, 0;\nWAIT:\nmbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0;\n\
    @%p0 bra LANDED;\nnanosleep.u32 1000;\nadd.u32 %r23, %r23, 1;\nsetp.lt.u32 %p0, %r23, 20000;\n\
    @%p0 bra WAIT;\ntrap;\nLANDED:\n";

/// Writes `bytes` of the tile to the CTA's part of the output.
fn dump(bytes: usize) -> String {
    format!(
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmad.wide.u32 %l2, %r9, {bytes}, %out0;\n\
         mul.lo.u32 %r10, %thread, 16;\nDUMP:\nsetp.ge.u32 %p5, %r10, {bytes};\n@%p5 bra DUMPED;\n\
         add.u32 %r11, %r1, %r10;\nld.shared.v2.b64 {{%l10, %l11}}, [%r11];\ncvt.u64.u32 %l12, %r10;\n\
         add.u64 %l12, %l12, %l2;\nst.global.v2.b64 [%l12], {{%l10, %l11}};\nadd.u32 %r10, %r10, 2048;\n\
         bra DUMP;\nDUMPED:\n"
    )
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 37 + i / 251) as u8).collect()
}

fn kernel(name: String, form: &str, ctas: u32, map: MapSpec) -> Kernel {
    Kernel::new(name, Launch::one_cluster(ctas, 128))
        .target(BLACKWELL)
        .forms([form])
        .declare(&format!(
            ".shared .align 1024 .b8 tile[{TILE}];\n.shared .align 8 .b64 bar;"
        ))
        .map(map)
}

/// One CTA loads `bytes` by `form` at `at` and dumps `shown` of its tile.
fn load(label: &str, form: &str, at: &str, map: MapSpec, bytes: usize, shown: usize) -> Case {
    kernel(format!("{form}/{label}"), form, 1, map)
        .input(pattern(1 << 14))
        .output(shown)
        .body(&format!(
            "{BEGIN}@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes};\n\
             @%p1 {form} [%r1], [%l0, {at}], [%r0];\n{WAIT}{}",
            dump(shown)
        ))
        .case()
}

const LOAD: &str = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes";
const INPUT: MapBuffer = MapBuffer::Input(0);

/// Spaced-out elements leave gaps whose bytes nobody promises, so only a map without gaps is dumped
/// as it is; the others are masked.
fn packed() -> Vec<Case> {
    let map = |element| MapSpec::dense(INPUT, element, &[256, 16], &[128, 4]);
    let mut cases = Vec::new();
    for swizzle in [Swizzle::None, Swizzle::B64] {
        let map = map(MapType::U4).swizzled(swizzle);
        let label = format!("16U4_ALIGN8B-{}", swizzle.label());
        cases.push(load(&label, LOAD, "{32, 3}", map, 256, 256));
    }
    let padded = [
        ("16U4_ALIGN16B", MapType::U4Align16, 4),
        ("16U6_ALIGN16B", MapType::U6Align16, 6),
    ];
    for (name, element, bits) in padded {
        for swizzle in [Swizzle::None, Swizzle::B128] {
            let map = map(element).swizzled(swizzle);
            let label = format!("{name}-{}", swizzle.label());
            let mut case = load(&label, LOAD, "{128, 13}", map, 4 * 128 * bits / 8, 512);
            // The upper half (of 4-bit elements) or word of each sixteen bytes is a gap.
            let masked = match bits {
                4 => "mov.b64 %l11, 0;\n",
                _ => "and.b64 %l11, %l11, 0xffffffff;\n",
            };
            let load = "ld.shared.v2.b64 {%l10, %l11}, [%r11];\n";
            case.ptx = case.ptx.replace(load, &format!("{load}{masked}"));
            cases.push(case);
        }
    }
    cases
}

fn atoms() -> Vec<Case> {
    let case = |swizzle: Swizzle| {
        let map = MapSpec::dense(INPUT, MapType::U32, &[32, 64], &[32, 16]).swizzled(swizzle);
        load(swizzle.label(), LOAD, "{0, 5}", map, 2048, 2048)
    };
    Swizzle::ATOMS.into_iter().map(case).collect()
}

fn gathered() -> Vec<Case> {
    let mut cases = Vec::new();
    for to in ["cta", "cluster"] {
        let form = format!(
            "cp.async.bulk.tensor.2d.shared::{to}.global.tile::gather4.mbarrier::complete_tx::bytes"
        );
        for swizzle in [Swizzle::None, Swizzle::B128] {
            let map = MapSpec::dense(INPUT, MapType::U32, &[32, 64], &[32, 1]).swizzled(swizzle);
            let rows = "{0, 63, 5, 64, -1}";
            cases.push(load(swizzle.label(), &form, rows, map, 512, 512));
        }
        let map = MapSpec::dense(INPUT, MapType::U16, &[48, 64], &[32, 1]);
        cases.push(load(
            "over-the-edge",
            &form,
            "{32, 1, 2, 1, 7}",
            map,
            256,
            256,
        ));
    }
    cases
}

fn scattered() -> Vec<Case> {
    let form = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group";
    let map = MapSpec::dense(MapBuffer::Output(0), MapType::U32, &[32, 64], &[32, 1]);
    let fill = "mul.lo.u32 %r10, %thread, 4;\nadd.u32 %r11, %r1, %r10;\nmad.lo.u32 %r12, %thread, 977, 5;\n\
        st.shared.b32 [%r11], %r12;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
    vec![
        kernel(format!("{form}/rows"), form, 1, map)
            .output(64 * 128)
            .body(&format!(
                "{BEGIN}{fill}@%p1 {form} [%l0, {{0, 9, 2, 77, 60}}], [%r1];\n\
                 @%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\nbar.sync 0;"
            ))
            .case(),
    ]
}

/// Both CTAs load, and the even one's barrier hears of it; and one CTA for both.
fn pairs() -> Vec<Case> {
    let map = || MapSpec::dense(INPUT, MapType::U32, &[32, 64], &[32, 4]);
    let form = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2";
    let leaders = [
        ("mapped", "mapa.shared::cluster.u32 %r2, %r0, 0;"),
        ("masked", "and.b32 %r2, %r0, 0xfeffffff;"),
    ];
    let wait_in_even = format!("setp.ne.u32 %p6, %r9, 0;\n@%p6 bra LANDED;\n{WAIT}");
    let mut cases = Vec::new();
    for (label, leader) in leaders {
        let body = format!(
            "{BEGIN}{leader}\nmul.lo.u32 %r3, %r9, 4;\nsetp.eq.u32 %p7, %r9, 0;\nand.pred %p7, %p7, %p1;\n\
             @%p7 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;\n\
             @%p1 {form} [%r1], [%l0, {{0, %r3}}], [%r2];\n{wait_in_even}{}",
            dump(512)
        );
        cases.push(
            kernel(format!("{form}/{label}"), form, 2, map())
                .input(pattern(1 << 14))
                .output(1024)
                .body(&body)
                .case(),
        );
    }
    let multicast = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2";
    let body = format!(
        "{BEGIN}setp.eq.u32 %p7, %r9, 0;\nand.pred %p7, %p7, %p1;\nmov.b16 %h0, 3;\n\
         @%p7 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;\n\
         @%p7 {multicast} [%r1], [%l0, {{0, 8}}], [%r0], %h0;\n{wait_in_even}{}",
        dump(512)
    );
    cases.push(
        kernel(format!("{multicast}/pair"), multicast, 2, map())
            .input(pattern(1 << 14))
            .output(1024)
            .body(&body)
            .case(),
    );
    cases
}
