//! Clusters: distributed shared memory, cluster barriers and cluster coordinates.

use std::fmt::Write;

use crate::case::{Case, Launch};
use crate::kernel::Kernel;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        coordinates(),
        barriers(),
        remote_access(),
        remote_atomics(),
        asynchronous_stores(),
    ]
    .concat()
}

const RENDEZVOUS: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// One word per register, from thread 0 of each CTA.
fn registers(name: &str, launch: Launch, attributes: &str, names: &[&str]) -> Case {
    let ctas: u32 = launch.grid.iter().product();
    let mut body = String::from(
        "mov.u32 %r0, %nctaid.x;\nmov.u32 %r1, %nctaid.y;\nmov.u32 %r2, %ctaid.z;\nmov.u32 %r3, %ctaid.y;\nmov.u32 %r4, %ctaid.x;\n\
         mad.lo.u32 %r5, %r2, %r1, %r3;\nmad.lo.u32 %r5, %r5, %r0, %r4;\nsetp.ne.u32 %p0, %thread, 0;\n@%p0 bra OUT;\n",
    );
    let _ = writeln!(body, "mad.wide.u32 %l0, %r5, {}, %out0;", names.len() * 4);
    for (i, register) in names.iter().enumerate() {
        let _ = writeln!(
            body,
            "mov.u32 %r6, %{register};\nst.global.b32 [%l0+{}], %r6;",
            4 * i
        );
    }
    body.push_str("OUT:");
    Kernel::new(name, launch)
        .forms(names.iter().map(|n| format!("mov.u32 %{n}")))
        .attributes(attributes)
        .output(ctas as usize * names.len() * 4)
        .body(&body)
        .case()
}

fn coordinates() -> Vec<Case> {
    let names = [
        "clusterid.x",
        "clusterid.y",
        "clusterid.z",
        "nclusterid.x",
        "nclusterid.y",
        "nclusterid.z",
        "cluster_ctaid.x",
        "cluster_ctaid.y",
        "cluster_ctaid.z",
        "cluster_nctaid.x",
        "cluster_nctaid.y",
        "cluster_nctaid.z",
        "cluster_ctarank",
        "cluster_nctarank",
    ];
    let launch = |grid, cluster| Launch {
        grid,
        block: [32, 1, 1],
        cluster,
        shared: 0,
    };
    let explicit = "mov.pred %p1, %is_explicit_cluster;\nselp.u32 %r0, 1, 0, %p1;\nsetp.eq.u32 %p0, %thread, 0;\n@%p0 st.global.b32 [%out0], %r0;";
    let explicitness = |name: &str, launch: Launch| {
        Kernel::new(format!("mov.pred %is_explicit_cluster/{name}"), launch)
            .output(4)
            .body(explicit)
            .case()
    };
    vec![
        registers(
            "special/cluster-coordinates-1d",
            launch([8, 1, 1], [4, 1, 1]),
            "",
            &names,
        ),
        registers(
            "special/cluster-coordinates-2d",
            launch([4, 6, 1], [2, 3, 1]),
            "",
            &names,
        ),
        registers(
            "special/cluster-coordinates-3d",
            launch([2, 2, 4], [1, 2, 2]),
            "",
            &names,
        ),
        registers(
            "special/cluster-coordinates-none",
            launch([3, 2, 1], [1, 1, 1]),
            "",
            &names,
        ),
        registers(
            "special/required-cluster",
            launch([4, 2, 1], [2, 2, 1]),
            ".explicitcluster\n.reqnctapercluster 2, 2, 1",
            &names,
        ),
        explicitness("cluster", launch([2, 1, 1], [2, 1, 1])),
        explicitness("none", launch([1, 1, 1], [1, 1, 1])),
    ]
}

/// Every CTA writes its slot, meets the cluster, and reads the next CTA's.
fn exchange(name: &str, forms: &[&str], meet: &str, read: &str) -> Case {
    Kernel::new(name, Launch { grid: [8, 1, 1], ..Launch::one_cluster(4, 64) })
        .forms(forms.iter().copied())
        .declare(".shared .align 16 .b8 slots[256];")
        .output(8 * 256)
        .body(&format!(
            "mov.u32 %r0, slots;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %cluster_ctarank;\nmad.lo.u32 %r3, %thread, 4, %r0;\nmad.lo.u32 %r4, %r1, 1000, %thread;\n\
             st.shared.b32 [%r3], %r4;\n{meet}add.u32 %r5, %r2, 1;\nand.b32 %r5, %r5, 3;\nxor.b32 %r6, %thread, 21;\nmad.lo.u32 %r3, %r6, 4, %r0;\n{read}\
             mad.lo.u32 %r8, %r1, 64, %thread;\nmad.wide.u32 %l0, %r8, 4, %out0;\nst.global.b32 [%l0], %r7;\n{RENDEZVOUS}"
        ))
        .case()
}

const READ: &str = "mapa.shared::cluster.u32 %r9, %r3, %r5;\nld.shared::cluster.b32 %r7, [%r9];\n";

fn barriers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (arrive, wait) in [
        ("barrier.cluster.arrive", "barrier.cluster.wait"),
        (
            "barrier.cluster.arrive.release.aligned",
            "barrier.cluster.wait.acquire.aligned",
        ),
        (
            "barrier.cluster.arrive.release",
            "barrier.cluster.wait.acquire",
        ),
        (
            "barrier.cluster.arrive.aligned",
            "barrier.cluster.wait.aligned",
        ),
    ] {
        let meet = format!("{arrive};\n{wait};\n");
        cases.push(exchange(
            &format!("{arrive}/exchange"),
            &[
                arrive,
                wait,
                "mapa.shared::cluster.u32",
                "ld.shared::cluster.b32",
            ],
            &meet,
            READ,
        ));
    }
    let relaxed = "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n";
    cases.push(exchange(
        "barrier.cluster.arrive.relaxed.aligned/fenced",
        &[
            "barrier.cluster.arrive.relaxed.aligned",
            "fence.acq_rel.cluster",
        ],
        relaxed,
        READ,
    ));
    cases
}

fn remote_access() -> Vec<Case> {
    let generic = "mov.u64 %l1, slots;\ncvta.shared.u64 %l1, %l1;\nmad.wide.u32 %l1, %r6, 4, %l1;\nmapa.u64 %l2, %l1, %r5;\nld.b32 %r7, [%l2];\n";
    let rank = "mapa.shared::cluster.u32 %r9, %r3, %r5;\ngetctarank.shared::cluster.u32 %r7, %r9;\nld.shared::cluster.b32 %r10, [%r9];\nmad.lo.u32 %r7, %r7, 100000, %r10;\n";
    let wide = "cvt.u64.u32 %l1, %r3;\nmapa.shared::cluster.u64 %l2, %l1, %r5;\ngetctarank.shared::cluster.u64 %r10, %l2;\nld.shared::cluster.u32 %r7, [%l2];\nmad.lo.u32 %r7, %r10, 100000, %r7;\n";
    let window = "mov.u64 %l1, slots;\ncvta.shared.u64 %l1, %l1;\nmapa.u64 %l2, %l1, %r5;\nisspacep.shared::cta %p0, %l2;\nisspacep.shared::cluster %p1, %l2;\ngetctarank.u64 %r10, %l2;\n\
        selp.u32 %r7, 1, 0, %p0;\nselp.u32 %r9, 2, 0, %p1;\nor.b32 %r7, %r7, %r9;\nmad.lo.u32 %r7, %r10, 8, %r7;\n";
    let store = Kernel::new("st.shared::cluster.v2.b32/next-rank", Launch::one_cluster(2, 32))
        .forms(["st.shared::cluster.v2.b32", "st.shared::cluster.b16"])
        .declare(".shared .align 16 .b8 slots[320];")
        .output(2 * 256 + 128)
        .body(&format!(
            "mov.u32 %r0, slots;\nmov.u32 %r1, %cluster_ctarank;\nxor.b32 %r2, %r1, 1;\nmad.lo.u32 %r3, %thread, 8, %r0;\n{RENDEZVOUS}\
             mapa.shared::cluster.u32 %r4, %r3, %r2;\nmad.lo.u32 %r5, %r1, 100, %thread;\nst.shared::cluster.v2.b32 [%r4], {{%r5, %thread}};\n\
             mad.lo.u32 %r6, %thread, 2, %r0;\nmapa.shared::cluster.u32 %r6, %r6, %r2;\ncvt.u16.u32 %h0, %r5;\nst.shared::cluster.b16 [%r6+256], %h0;\n{RENDEZVOUS}\
             ld.shared.v2.b32 {{%r7, %r8}}, [%r3];\nmad.lo.u32 %r9, %r1, 32, %thread;\nmad.wide.u32 %l0, %r9, 8, %out0;\nst.global.v2.b32 [%l0], {{%r7, %r8}};\n\
             mad.lo.u32 %r6, %thread, 2, %r0;\nld.shared.b16 %h1, [%r6+256];\nmad.wide.u32 %l1, %r9, 2, %out0;\nst.global.b16 [%l1+512], %h1;"
        ))
        .case();
    vec![
        exchange(
            "mapa.u64/generic",
            &["mapa.u64", "ld.b32"],
            RENDEZVOUS,
            generic,
        ),
        exchange(
            "getctarank.shared::cluster.u32/next-rank",
            &["getctarank.shared::cluster.u32"],
            RENDEZVOUS,
            rank,
        ),
        exchange(
            "mapa.shared::cluster.u64/next-rank",
            &[
                "mapa.shared::cluster.u64",
                "getctarank.shared::cluster.u64",
                "ld.shared::cluster.u32",
            ],
            RENDEZVOUS,
            wide,
        ),
        exchange(
            "isspacep.shared::cluster/remote",
            &[
                "isspacep.shared::cluster",
                "isspacep.shared::cta",
                "getctarank.u64",
            ],
            RENDEZVOUS,
            window,
        ),
        store,
    ]
}

fn remote_atomics() -> Vec<Case> {
    let mut cases = Vec::new();
    for (form, operand) in [
        ("atom.shared::cluster.add.u32", "%thread"),
        ("red.shared::cluster.add.u32", "%thread"),
        ("red.relaxed.cluster.shared::cluster.xor.b32", "%r6"),
        ("atom.shared::cluster.max.u32", "%r6"),
    ] {
        let result = if form.starts_with("atom") {
            "%r10, "
        } else {
            ""
        };
        cases.push(
            Kernel::new(format!("{form}/next-rank"), Launch::one_cluster(4, 64))
                .declare(".shared .align 4 .b32 total;")
                .output(16)
                .body(&format!(
                    "mov.u32 %r0, total;\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p0, %thread, 0;\n@%p0 st.shared.b32 [%r0], %r1;\n{RENDEZVOUS}\
                     add.u32 %r2, %r1, 1;\nand.b32 %r2, %r2, 3;\nmapa.shared::cluster.u32 %r3, %r0, %r2;\nmad.lo.u32 %r6, %r1, 1000, %thread;\n\
                     {form} {result}[%r3], {operand};\n{RENDEZVOUS}ld.shared.b32 %r7, [%r0];\nmad.wide.u32 %l0, %r1, 4, %out0;\n@%p0 st.global.b32 [%l0], %r7;"
                ))
                .case(),
        );
    }
    cases
}

/// `st.async` and `red.async`: remote writes that complete on the receiver's barrier.
fn asynchronous_stores() -> Vec<Case> {
    let mut cases = Vec::new();
    for (form, value, width) in [
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32",
            "%r6",
            4,
        ),
        (
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64",
            "%l5",
            8,
        ),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32",
            "{%r6, %r1, %thread, %r6}",
            16,
        ),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32",
            "{%r6, %thread}",
            8,
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
            "%r6",
            4,
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32",
            "%r6",
            4,
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.and.b32",
            "%r6",
            4,
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32",
            "%r6",
            4,
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64",
            "%l5",
            8,
        ),
    ] {
        cases.push(
            Kernel::new(form, Launch::one_cluster(2, 32))
                .declare(".shared .align 16 .b8 slots[512];\n.shared .align 8 .b64 bar;")
                .output(1024)
                .body(&format!(
                    "mov.u32 %r0, bar;\nmov.u32 %r9, slots;\nmad.lo.u32 %r3, %thread, 16, %r9;\nmov.b64 %l0, 0x0000000700000005;\nst.shared.v2.b64 [%r3], {{%l0, %l0}};\n\
                     setp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], 1;\nfence.mbarrier_init.release.cluster;\n{RENDEZVOUS}\
                     @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {total};\nmov.u32 %r1, %cluster_ctarank;\nxor.b32 %r2, %r1, 1;\n\
                     mapa.shared::cluster.u32 %r4, %r3, %r2;\nmapa.shared::cluster.u32 %r5, %r0, %r2;\nmad.lo.u32 %r6, %r1, 77, %thread;\nmul.wide.u32 %l5, %r6, 0x10000001;\n\
                     {form} [%r4], {value}, [%r5];\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [%r0], 0;\n@!%p0 bra WAIT;\n\
                     ld.shared.v2.b64 {{%l2, %l3}}, [%r3];\nmad.lo.u32 %r7, %r1, 32, %thread;\nmad.wide.u32 %l1, %r7, 16, %out0;\nst.global.v2.b64 [%l1], {{%l2, %l3}};\n{RENDEZVOUS}",
                    total = 32 * width
                ))
                .case(),
        );
    }
    cases
}
