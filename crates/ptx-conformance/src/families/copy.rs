//! Asynchronous copies without tensor maps: `cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk`.

use crate::case::{Case, Launch};
use crate::kernel::Kernel;
use crate::values::Ty::{self, *};

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        small_copies(),
        bulk_loads(),
        bulk_stores(),
        cluster_copies(),
        reductions_to_global(),
        reductions_to_shared(),
    ]
    .concat()
}

/// Reads the neighbour's 16-byte slot and writes it out.
const READ_BACK: &str = "bar.sync 0;\nxor.b32 %r3, %thread, 43;\nmad.lo.u32 %r2, %r3, 16, %r1;\nld.shared.v2.b64 {%l2, %l3}, [%r2];\n\
    mad.wide.u32 %l1, %thread, 16, %out0;\nst.global.v2.b64 [%l1], {%l2, %l3};\n";

/// Fills the slots with a pattern, so that bytes a copy leaves alone are known.
const FILL: &str = "mov.u32 %r1, slots;\nmad.lo.u32 %r2, %thread, 16, %r1;\nmov.b64 %l0, 0x1122334455667788;\nst.shared.v2.b64 [%r2], {%l0, %l0};\n\
    mad.wide.u32 %l0, %thread, 16, %in0;\n";

fn small(name: String, copy: &str) -> Case {
    Kernel::new(name, Launch::single(64))
        .declare(".shared .align 16 .b8 slots[1024];")
        .input(U64.pack(&U64.random(91, 128)))
        .output(1024)
        .body(&format!("{FILL}{copy}{READ_BACK}"))
        .case()
}

fn small_copies() -> Vec<Case> {
    let mut cases = Vec::new();
    let finish = "cp.async.commit_group;\ncp.async.wait_group 0;\n";
    for (cache, sizes) in [("ca", &[4, 8, 16][..]), ("cg", &[16])] {
        for &size in sizes {
            let form = format!("cp.async.{cache}.shared.global");
            cases.push(small(
                format!("{form}/{size}"),
                &format!("{form} [%r2], [%l0], {size};\n{finish}"),
            ));
            // The number of source bytes varies by thread, from none to all.
            let zero_fill = format!(
                "rem.u32 %r4, %thread, {};\n{form} [%r2], [%l0], {size}, %r4;\n{finish}",
                size + 1
            );
            cases.push(small(format!("{form}/{size}-zero-filled"), &zero_fill));
            let ignored = format!(
                "and.b32 %r4, %thread, 4;\nsetp.ne.u32 %p0, %r4, 0;\n{form} [%r2], [%l0], {size}, %p0;\n{finish}"
            );
            cases.push(small(format!("{form}/{size}-ignored-source"), &ignored));
        }
    }
    for hint in ["L2::64B", "L2::128B", "L2::256B"] {
        let form = format!("cp.async.cg.shared.global.{hint}");
        cases.push(small(
            form.clone(),
            &format!("{form} [%r2], [%l0], 16;\ncp.async.wait_all;\n"),
        ));
    }
    cases.push(small(
        "cp.async.wait_all/two-copies".to_owned(),
        "cp.async.ca.shared.global [%r2], [%l0], 8;\ncp.async.ca.shared::cta.global [%r2+8], [%l0+4], 4;\ncp.async.wait_all;\n",
    ));
    cases.push(groups());
    cases
}

/// Two groups in flight; the first is read while the second may still be copying.
fn groups() -> Case {
    Kernel::new("cp.async.wait_group/one-left", Launch::single(64))
        .forms(["cp.async.wait_group", "cp.async.commit_group"])
        .declare(".shared .align 16 .b8 slots[2048];")
        .input(U64.pack(&U64.random(92, 256)))
        .output(1024)
        .output(1024)
        .body(
            "mov.u32 %r1, slots;\nmad.lo.u32 %r2, %thread, 16, %r1;\nmad.wide.u32 %l0, %thread, 16, %in0;\n\
             cp.async.cg.shared.global [%r2], [%l0], 16;\ncp.async.commit_group;\n\
             cp.async.cg.shared.global [%r2+1024], [%l0+1024], 16;\ncp.async.commit_group;\n\
             cp.async.wait_group 1;\nbar.sync 0;\nxor.b32 %r3, %thread, 43;\nmad.lo.u32 %r2, %r3, 16, %r1;\n\
             ld.shared.v2.b64 {%l2, %l3}, [%r2];\nmad.wide.u32 %l1, %thread, 16, %out0;\nst.global.v2.b64 [%l1], {%l2, %l3};\n\
             cp.async.wait_group 0;\nbar.sync 0;\nld.shared.v2.b64 {%l2, %l3}, [%r2+1024];\n\
             mad.wide.u32 %l1, %thread, 16, %out1;\nst.global.v2.b64 [%l1], {%l2, %l3};",
        )
        .case()
}

const STAGE: &str = ".shared .align 128 .b8 slots[1024];\n.shared .align 8 .b64 bar;";

/// Initialises a barrier for one arrival, visible to the async proxy and the cluster.
const INIT: &str = "mov.u32 %r1, slots;\nmov.u32 %r0, bar;\nsetp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], 1;\n\
    fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";

const WAIT: &str =
    "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0;\n@!%p0 bra WAIT;\n";

fn bulk_loads() -> Vec<Case> {
    let mut cases = Vec::new();
    for destination in ["shared::cluster", "shared::cta"] {
        let form = format!("cp.async.bulk.{destination}.global.mbarrier::complete_tx::bytes");
        for bytes in [16, 48, 1024] {
            cases.push(bulk_load(
                format!("{form}/{bytes}"),
                &format!("{form} [%r1], [%in0], {bytes}, [%r0];"),
                bytes,
            ));
        }
    }
    let hinted = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint";
    cases.push(bulk_load(
        hinted.to_owned(),
        &format!("createpolicy.fractional.L2::evict_first.b64 %l5;\n@%p1 {hinted} [%r1], [%in0], 512, [%r0], %l5;"),
        512,
    ));
    let prefetched = "cp.async.bulk.prefetch.L2.global [%in0], 512;\n@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in0], 512, [%r0];";
    cases.push(bulk_load(
        "cp.async.bulk.prefetch.L2.global/before-load".to_owned(),
        prefetched,
        512,
    ));
    cases
}

fn bulk_load(name: String, copy: &str, bytes: usize) -> Case {
    Kernel::new(name, Launch::single(64))
        .declare(STAGE)
        .input(U64.pack(&U64.random(93, 128)))
        .output(1024)
        .body(&format!(
            "{FILL}bar.sync 0;\n{INIT}@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes};\n@%p1 {copy}\n{WAIT}{READ_BACK}"
        ))
        .case()
}

/// Moves the input into shared memory by ordinary stores and hands it to the async proxy.
const PUBLISH: &str = "mov.u32 %r1, slots;\nmad.lo.u32 %r2, %thread, 16, %r1;\nmad.wide.u32 %l0, %thread, 16, %in0;\nld.global.v2.b64 {%l2, %l3}, [%l0];\n\
    st.shared.v2.b64 [%r2], {%l2, %l3};\nfence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.eq.u32 %p1, %thread, 0;\n";

fn bulk_stores() -> Vec<Case> {
    let store = "cp.async.bulk.global.shared::cta.bulk_group";
    let commit = "@%p1 cp.async.bulk.commit_group;\n";
    let whole = |wait: &str| format!("@%p1 {store} [%out0], [%r1], 1024;\n{commit}@%p1 {wait};\n");
    let two = format!(
        "@%p1 {store} [%out0], [%r1], 256;\n{commit}@%p1 {store} [%out0+512], [%r1+256], 128;\n{commit}\
         @%p1 cp.async.bulk.wait_group.read 1;\n@%p1 cp.async.bulk.wait_group 0;\n"
    );
    let hinted = format!(
        "createpolicy.fractional.L2::evict_first.b64 %l5;\n@%p1 {store}.L2::cache_hint [%out0], [%r1], 1024, %l5;\n{commit}@%p1 cp.async.bulk.wait_group 0;\n"
    );
    let table = [
        (
            format!("{store}/whole"),
            whole("cp.async.bulk.wait_group 0"),
            store.to_owned(),
        ),
        (
            "cp.async.bulk.wait_group.read/then-exit".to_owned(),
            whole("cp.async.bulk.wait_group.read 0"),
            "cp.async.bulk.wait_group.read".to_owned(),
        ),
        (
            "cp.async.bulk.wait_group/two-groups".to_owned(),
            two,
            "cp.async.bulk.wait_group".to_owned(),
        ),
        (
            format!("{store}.L2::cache_hint"),
            hinted,
            format!("{store}.L2::cache_hint"),
        ),
    ];
    table
        .into_iter()
        .map(|(name, body, form)| {
            Kernel::new(name, Launch::single(64))
                .forms([form, "cp.async.bulk.commit_group".to_owned()])
                .declare(".shared .align 128 .b8 slots[1024];")
                .input(U64.pack(&U64.random(94, 128)))
                .output(1024)
                .body(&format!("{PUBLISH}{body}"))
                .case()
        })
        .collect()
}

/// Copies between CTAs of a cluster, and one load for several CTAs.
fn cluster_copies() -> Vec<Case> {
    let rendezvous = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    let read_back = "xor.b32 %r3, %thread, 43;\nmad.lo.u32 %r2, %r3, 16, %r7;\nld.shared.v2.b64 {%l2, %l3}, [%r2];\n\
        mov.u32 %r9, %cluster_ctarank;\nmad.lo.u32 %r8, %r9, 64, %thread;\nmad.wide.u32 %l1, %r8, 16, %out0;\nst.global.v2.b64 [%l1], {%l2, %l3};\n";
    let to_peer = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    let peer = Kernel::new(format!("{to_peer}/next-rank"), Launch::one_cluster(2, 64))
        .forms([to_peer, "mapa.shared::cluster.u32"])
        .declare(".shared .align 128 .b8 slots[1024];\n.shared .align 128 .b8 landing[1024];\n.shared .align 8 .b64 bar;")
        .input(U64.pack(&U64.random(95, 128)))
        .output(2048)
        .body(&format!(
            "{PUBLISH}{INIT}{rendezvous}@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;\nmov.u32 %r7, landing;\nmov.u32 %r9, %cluster_ctarank;\n\
             xor.b32 %r5, %r9, 1;\nmapa.shared::cluster.u32 %r4, %r7, %r5;\nmapa.shared::cluster.u32 %r6, %r0, %r5;\n\
             @%p1 {to_peer} [%r4], [%r1], 1024, [%r6];\n{WAIT}{read_back}{rendezvous}"
        ))
        .case();
    let multicast =
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster";
    let several = Kernel::new(format!("{multicast}/three-of-four"), Launch::one_cluster(4, 64))
        .declare(STAGE)
        .input(U64.pack(&U64.random(96, 128)))
        .output(4096)
        .body(&format!(
            "{FILL}bar.sync 0;\n{INIT}{rendezvous}mov.u32 %r9, %cluster_ctarank;\nsetp.ne.u32 %p2, %r9, 1;\nand.pred %p3, %p1, %p2;\n\
             @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;\nsetp.eq.and.u32 %p4, %r9, 2, %p1;\nmov.b16 %h0, 0xd;\n\
             @%p4 {multicast} [%r1], [%in0], 1024, [%r0], %h0;\n@!%p2 bra OVER;\n{WAIT}OVER:\nmov.b32 %r7, %r1;\n{read_back}{rendezvous}"
        ))
        .case();
    vec![peer, several]
}

/// Values for a reduction: the target's and the source's edges at different strides.
fn operands(ty: Ty) -> [Vec<u8>; 2] {
    let edges = ty.edges();
    let count = 1024 / ty.bytes();
    let values = |stride: usize| -> Vec<u64> {
        (0..count)
            .map(|i| edges[i * stride % edges.len()])
            .collect()
    };
    [ty.pack(&values(1)), ty.pack(&values(5))]
}

fn reductions_to_global() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, name, ty) in [
        ("add", "u32", U32),
        ("add", "s32", S32),
        ("add", "u64", U64),
        ("add", "f32", F32),
        ("add", "f64", F64),
        ("add.noftz", "f16", F16),
        ("add.noftz", "bf16", Bf16),
        ("min", "u32", U32),
        ("min", "s32", S32),
        ("min", "s64", S64),
        ("min", "f16", F16),
        ("min", "bf16", Bf16),
        ("max", "u32", U32),
        ("max", "s32", S32),
        ("max", "u64", U64),
        ("max", "f16", F16),
        ("max", "bf16", Bf16),
        ("inc", "u32", U32),
        ("dec", "u32", U32),
        ("and", "b32", U32),
        ("or", "b32", U32),
        ("xor", "b64", U64),
    ] {
        let form = format!("cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{name}");
        let [target, source] = operands(ty);
        cases.push(
            Kernel::new(form.clone(), Launch::single(64))
                .declare(".shared .align 128 .b8 slots[1024];")
                .input(source)
                .output_from(target)
                .body(&format!(
                    "{PUBLISH}@%p1 {form} [%out0], [%r1], 1024;\n@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;"
                ))
                .case(),
        );
    }
    cases
}

fn reductions_to_shared() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, name, ty) in [
        ("add", "u32", U32),
        ("add", "s32", S32),
        ("add", "u64", U64),
        ("min", "u32", U32),
        ("min", "s32", S32),
        ("max", "u32", U32),
        ("max", "s32", S32),
        ("inc", "u32", U32),
        ("dec", "u32", U32),
        ("and", "b32", U32),
        ("or", "b32", U32),
        ("xor", "b32", U32),
    ] {
        let form = format!(
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{name}"
        );
        let [target, source] = operands(ty);
        let rendezvous = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
        cases.push(
            Kernel::new(form.clone(), Launch::one_cluster(2, 64))
                .declare(".shared .align 128 .b8 slots[1024];\n.shared .align 128 .b8 landing[1024];\n.shared .align 8 .b64 bar;")
                .input(source)
                .input(target)
                .output(2048)
                .body(&format!(
                    "mov.u32 %r7, landing;\nmad.lo.u32 %r2, %thread, 16, %r7;\nmad.wide.u32 %l0, %thread, 16, %in1;\nld.global.v2.b64 {{%l2, %l3}}, [%l0];\n\
                     st.shared.v2.b64 [%r2], {{%l2, %l3}};\n{PUBLISH}{INIT}{rendezvous}\
                     @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1024;\nmov.u32 %r9, %cluster_ctarank;\nxor.b32 %r5, %r9, 1;\n\
                     mapa.shared::cluster.u32 %r4, %r7, %r5;\nmapa.shared::cluster.u32 %r6, %r0, %r5;\n@%p1 {form} [%r4], [%r1], 1024, [%r6];\n{WAIT}\
                     mad.lo.u32 %r2, %thread, 16, %r7;\nld.shared.v2.b64 {{%l2, %l3}}, [%r2];\nmad.lo.u32 %r8, %r9, 64, %thread;\n\
                     mad.wide.u32 %l1, %r8, 16, %out0;\nst.global.v2.b64 [%l1], {{%l2, %l3}};\n{rendezvous}"
                ))
                .case(),
        );
    }
    cases
}
