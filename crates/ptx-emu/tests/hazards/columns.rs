//! Tensor memory.

use super::*;

/// A product of zeros into columns 0 to 7, its wait, and its result.
fn columns(hazard: Hazard, edits: &[(&str, &str)]) -> Planted {
    let mut body = "mov.u32 %r7, 0; mov.u32 %r8, 0; shl.b32 %r6, %r1, 4; add.u32 %r6, %r6, %r4;
FILL: st.shared.v4.u32 [%r6], {%r7,%r7,%r7,%r7}; add.u32 %r6, %r6, 2048;
add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 8; @%p1 bra FILL;
fence.proxy.async.shared::cta;
setp.ne.u32 %p2, %r18, 0; @%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [empty], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED: setp.ne.u32 %p6, %r1, 0; @%p6 bra READY;
mbarrier.init.shared::cta.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
ld.shared.b32 %r6, [empty]; shl.b32 %r9, %r18, 21; add.u32 %r9, %r9, %r6;
cvt.u64.u32 %rd4, %r4; shr.u64 %rd4, %rd4, 4; add.u64 %rd4, %rd4, 0x0000401000080000;
mov.b32 %r10, 0x8020010; setp.ne.b32 %p0, 0, 0;
BEFORE
@%p6 bra ISSUED;
MMA
COMMIT
ISSUED:
WAIT
AFTER
LOAD
LOADED
st.global.b32 [%rd3], %r20;
END
bar.sync 0;
@%p2 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64; FREE
DONE:"
        .to_owned();
    let usual = [
        ("BEFORE", ""),
        (
            "MMA",
            "tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd4, %rd4, %r10, %p0;",
        ),
        (
            "COMMIT",
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5];",
        ),
        (
            "WAIT",
            "W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 0; @!%p4 bra W;",
        ),
        ("AFTER", "tcgen05.fence::after_thread_sync;"),
        (
            "LOADED",
            "tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync;",
        ),
        (
            "LOAD",
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9];",
        ),
        ("END", ""),
        ("FREE", ""),
    ];
    for (mark, text) in edits.iter().chain(&usual) {
        let line = format!("\n{mark}");
        let at = body
            .find(&line)
            .map(|at| at + 1)
            .or_else(|| body.find(mark));
        let Some(at) = at else { continue };
        body.replace_range(at..at + mark.len(), text);
    }
    Planted {
        target: "sm_100a",
        ..Planted::new(hazard, body)
    }
}

const MMA: &str = "tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd4, %rd4, %r10, %p0;";

#[test]
fn tensor_memory_is_read_before_the_tensor_core_is_done() {
    let found = columns(
        Hazard::Race,
        &[
            ("MMA", &format!("{MMA} //there")),
            (
                "WAIT",
                "<<W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 0; @!%p4 bra W;>>",
            ),
            (
                "LOAD\n",
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9]; //here\n",
            ),
            (
                "END",
                "V: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 0; @!%p4 bra V;",
            ),
        ],
    )
    .check();
    assert_eq!(found.at.space, "tensor");
    assert!(found.remedy.contains("tcgen05.commit"), "{found}");
}

#[test]
fn the_first_product_adds_to_nothing() {
    columns(
        Hazard::UninitialisedTensor,
        &[
            ("BEFORE", "<<||setp.eq.b32 %p0, 0, 0;>>"),
            ("MMA", &format!("{MMA} //here")),
        ],
    )
    .check();
}

#[test]
fn a_register_is_used_before_its_load_is_waited_for() {
    columns(
        Hazard::HeldRegister,
        &[
            (
                "LOAD\n",
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9]; //there\n",
            ),
            (
                "LOADED",
                "<<tcgen05.wait::ld.sync.aligned;>>\nadd.u32 %r20, %r20, 1; //here",
            ),
            ("END", "tcgen05.wait::ld.sync.aligned;"),
        ],
    )
    .check();
}

#[test]
fn a_store_is_not_waited_for() {
    columns(
        Hazard::Race,
        &[
            (
                "AFTER",
                "tcgen05.fence::after_thread_sync;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r1}; //there
<<tcgen05.wait::st.sync.aligned;>>",
            ),
            (
                "LOAD\n",
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9]; //here\n",
            ),
            ("END", "tcgen05.wait::st.sync.aligned;"),
        ],
    )
    .check();
}

#[test]
fn columns_are_written_again_while_they_are_read() {
    // The issuer does not wait for the other warps' loads.
    columns(
        Hazard::Race,
        &[
            (
                "LOAD\n",
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9]; //there\n",
            ),
            (
                "END",
                "<<bar.sync 0;>> @%p6 bra AGAIN;
tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd4, %rd4, %r10, %p0; //here
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5];
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 1; @!%p4 bra AGAIN;",
            ),
        ],
    )
    .check();
}

#[test]
fn columns_are_freed_while_they_are_read() {
    columns(
        Hazard::Race,
        &[
            (
                "LOAD\n",
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9]; //there\n",
            ),
            ("END", "<<bar.sync 0;>>"),
            ("bar.sync 0;\n@%p2 bra DONE;", "@%p2 bra DONE;"),
            ("FREE", "//here"),
        ],
    )
    .check();
}

#[test]
fn strictly_tensor_memory_needs_its_own_fence() {
    let planted = |strict| {
        let planted = columns(
            Hazard::TensorFence,
            &[
                ("MMA", &format!("{MMA} //there")),
                ("AFTER", "<<tcgen05.fence::after_thread_sync;>>"),
                (
                    "LOAD\n",
                    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r9]; //here\n",
                ),
                (
                    "bar.sync 0;\n@%p2 bra DONE;",
                    "bar.sync 0; tcgen05.fence::after_thread_sync;\n@%p2 bra DONE;",
                ),
            ],
        );
        match strict {
            true => planted.strict(),
            false => planted,
        }
    };
    planted(true).check();
    assert!(planted(false).run(false, 0).0.all.is_empty());
}

const PASS: &str = "tcgen05.fence::before_thread_sync; bar.sync 0; \
                    tcgen05.fence::after_thread_sync;";

/// A of the product lies in columns 32 to 39, where somebody puts it before.
fn from_columns(put: &str) -> Planted {
    columns(
        Hazard::Race,
        &[
            ("BEFORE", put),
            (
                "MMA",
                "tcgen05.mma.cta_group::1.kind::f16 [%r6], [%r6+32], %rd4, %r10, %p0; //here",
            ),
        ],
    )
}

#[test]
fn a_product_speaks_for_the_copy_of_another_warp_that_it_reads() {
    let copy = |pass: &str| {
        from_columns(&format!(
            "setp.ne.u32 %p3, %r1, 32; @%p3 bra COPIED;
tcgen05.cp.cta_group::1.128x256b [%r6+32], %rd4; //there
COPIED: {pass}"
        ))
    };
    let found = copy(
        "<<tcgen05.fence::before_thread_sync; bar.sync 0;>> tcgen05.fence::after_thread_sync;",
    )
    .check();
    assert!(found.missing.contains("two warps"), "{found}");
}

#[test]
fn a_commit_does_not_speak_for_another_warp_that_nothing_of_it_relies_on() {
    // The copy goes where no product reads, and somebody else does once that is over.
    let found = columns(
        Hazard::Race,
        &[
            (
                "BEFORE",
                &format!(
                    "setp.ne.u32 %p3, %r1, <<0||32>>; @%p3 bra COPIED;
tcgen05.cp.cta_group::1.128x256b [%r6+40], %rd4; //there
COPIED: {PASS}"
                ),
            ),
            (
                "LOADED",
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r21}, [%r9+40]; //here
tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync;",
            ),
        ],
    )
    .check();
    assert!(found.missing.contains("no wait for"), "{found}");
}

const STORE: &str = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9+32], \
                     {%r7,%r7,%r7,%r7,%r7,%r7,%r7,%r7}; //there";

#[test]
fn a_store_that_is_not_waited_for_is_what_is_missing() {
    let found = from_columns(&format!(
        "{STORE}\n<<tcgen05.wait::st.sync.aligned;>> {PASS}"
    ))
    .check();
    assert!(found.missing.contains("a store may still"), "{found}");
    assert!(found.remedy.starts_with("tcgen05.wait::st"), "{found}");
    // What the product adds to.
    let found = columns(
        Hazard::Race,
        &[
            (
                "BEFORE",
                &format!(
                    "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9], \
                     {{%r7,%r7,%r7,%r7,%r7,%r7,%r7,%r7}}; //there
<<tcgen05.wait::st.sync.aligned;>> {PASS} setp.eq.b32 %p0, 0, 0;"
                ),
            ),
            ("MMA", &format!("{MMA} //here")),
        ],
    )
    .check();
    assert!(found.missing.contains("a store may still"), "{found}");
}

#[test]
fn a_store_and_a_product_that_nothing_orders() {
    let planted = from_columns(&format!(
        "{STORE}\ntcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; \
         <<bar.sync 0;>> tcgen05.fence::after_thread_sync;"
    ));
    planted.check();
    for seed in 0..6 {
        for found in planted.run(false, seed).0.all {
            assert!(!found.missing.contains("no wait for"), "{found}");
        }
    }
}

#[test]
fn a_tile_is_released_by_a_commit() {
    let found = columns(
        Hazard::Race,
        &[
            ("MMA", &format!("{MMA} //there")),
            (
                "WAIT",
                "<<W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 0; @!%p4 bra W;>>
st.shared.u32 [%r2], %r7; //here
V: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 0; @!%p4 bra V;",
            ),
        ],
    )
    .check();
    assert!(!found.remedy.contains("wgmma"), "{found}");
    assert!(found.remedy.contains("tcgen05.commit"), "{found}");
}

/// Where readers wait by themselves, what they load is loaded when they have come further.
#[test]
fn a_load_that_its_readers_wait_for_is_over_behind_a_barrier() {
    let mut planted = columns(Hazard::Race, &[("LOADED", "")]);
    planted.scoreboard = true;
    for seed in 0..4 {
        let (found, _) = planted.run(true, seed);
        assert!(found.all.is_empty(), "{:#?}", found.all);
    }
    // Not by the letter.
    planted.sanitize.strict = true;
    let kinds: Vec<Hazard> = planted
        .run(true, 0)
        .0
        .all
        .iter()
        .map(|f| f.hazard)
        .collect();
    assert!(kinds.contains(&Hazard::Race) && kinds.contains(&Hazard::HeldRegister));
}
