//! Shared memory used before its CTA has begun, or when that may have ended.

use super::*;

/// The neighbour's number in `%r6`, and in `%r7` where it has what is at `%r2`.
const NEIGHBOUR: &str =
    "mov.u32 %r6, %cluster_ctarank; xor.b32 %r6, %r6, 1; mapa.shared::cluster.u32 %r7, %r2, %r6;";

#[test]
fn a_neighbour_is_read_that_may_have_ended() {
    // That the barrier releases nothing is all the same: it is behind the reads.
    for order in ["", ".relaxed"] {
        let found = Planted::new(
            Hazard::Lifetime,
            format!(
                "st.shared.u32 [%r2], %r1; barrier.cluster.arrive; barrier.cluster.wait; {NEIGHBOUR}
                 ld.shared::cluster.u32 %r8, [%r7]; //here
                 mad.lo.u32 %r8, %r6, 32, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
                 st.global.u32 [%rd4], %r8;
                 <<barrier.cluster.arrive{order}; barrier.cluster.wait;>>
                 ret; //there"
            ),
        )
        .on(pair())
        .check();
        assert_eq!((found.at.space, found.at.name.as_str()), ("shared", "tile"));
        assert!(found.remedy.contains("cluster.sync()"), "{found}");
        let there = found.there.expect("an end");
        assert_eq!(there.deed, "the CTA ends");
        assert_ne!(there.place.cta, found.here.place.cta);
    }
}

#[test]
fn a_neighbour_is_written_that_may_not_have_begun() {
    for order in ["", ".relaxed"] {
        let found = Planted::new(
            Hazard::Lifetime,
            format!(
                "{NEIGHBOUR}
                 <<barrier.cluster.arrive{order}; barrier.cluster.wait;>>
                 st.shared::cluster.u32 [%r7], %r1; //here
                 barrier.cluster.arrive; barrier.cluster.wait;
                 ld.shared.u32 %r8, [%r2];
                 mad.lo.u32 %r8, %r6, 32, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
                 st.global.u32 [%rd4], %r8;"
            ),
        )
        .on(pair())
        .check();
        assert!(found.missing.contains("has started"), "{found}");
    }
}

/// Each CTA has a barrier that its neighbour comes to.
fn arrival(end: &str) -> Planted {
    let body = format!(
        "setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, full; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
         READY: barrier.cluster.arrive.relaxed; barrier.cluster.wait; {NEIGHBOUR} @%p1 bra END;
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7]; //here
         {end}
         END: ret; //there"
    );
    Planted::new(Hazard::Lifetime, body).on(pair())
}

#[test]
fn a_neighbours_barrier_may_be_gone() {
    arrival("<<WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;>>").check();
    // Nothing need be acquired to know that it came.
    let relaxed = "<<WAIT: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;>>";
    arrival(relaxed).check();
    // Who has ended is waited for at a barrier of the cluster no longer.
    arrival("<<barrier.cluster.arrive.relaxed; barrier.cluster.wait;>>").check();
}

#[test]
fn a_store_still_reads_when_its_cta_ends() {
    let body = "st.shared.u32 [%r2], %r1; fence.proxy.async.shared::cta; bar.sync 0;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
         cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], 512; //here
         cp.async.bulk.commit_group; <<cp.async.bulk.wait_group.read 0;>>
         END: ret; //there";
    let found = Planted::new(Hazard::Lifetime, body).strict().check();
    assert!(found.remedy.contains("wait_group.read"), "{found}");
    // The hardware waits for it, and so it is not said unless asked for.
    for seed in 0..4 {
        let lenient = Planted::new(Hazard::Lifetime, body);
        assert!(lenient.run(false, seed).0.all.is_empty());
    }
}

#[test]
fn a_store_is_never_committed() {
    Planted::new(
        Hazard::Lifetime,
        "st.shared.u32 [%r2], %r1; fence.proxy.async.shared::cta; bar.sync 0;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
         cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], 512; //here
         <<cp.async.bulk.commit_group;>> cp.async.bulk.wait_group 0;
         END: ret; //there",
    )
    .strict()
    .check();
}

#[test]
fn a_copy_comes_when_its_cta_has_ended() {
    let found = Planted::new(
        Hazard::Lifetime,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5]; //here
         <<WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;>>
         END: ret; //there",
    )
    .check();
    assert!(found.missing.contains("has ended"), "{found}");
}

#[test]
fn a_copy_for_both_comes_when_one_has_ended() {
    // The first CTA has it brought to both; the second waits for it or does not.
    Planted::new(
        Hazard::Lifetime,
        "setp.ne.u32 %p1, %r1, 0; mov.u32 %r6, %cluster_ctarank; mov.b16 %rs1, 3; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         READY: barrier.cluster.arrive; barrier.cluster.wait;
         setp.ne.or.u32 %p2, %r6, 0, %p1; @%p2 bra ISSUED;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%rd8], 512, [%r5], %rs1; //here
         ISSUED: <<||setp.ne.u32 %p3, %r6, 0; @%p3 bra END;>>
         WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0; @!%p3 bra WAIT;
         END: ret; //there",
    )
    .on(pair())
    .check();
}

/// An H200 lost none of 670 million words that nobody waited for before the CTA ended, and nearly
/// all that were overwritten.
#[test]
fn a_store_that_no_group_has_is_waited_for_by_nobody() {
    let store = |behind: &str| {
        format!(
            "st.shared.u32 [%r2], %r1; fence.proxy.async.shared::cta; bar.sync 0;
             setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
             cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], 512; //there
             <<cp.async.bulk.commit_group;>> cp.async.bulk.wait_group.read 0;
             {behind} END:"
        )
    };
    let overwritten = "mov.u32 %r7, 0;\nst.shared.u32 [%r4], %r7; //here\n";
    Planted::new(Hazard::Race, store(overwritten)).check();
    let (found, _) = Planted::new(Hazard::Lifetime, store("")).run(false, 0);
    assert!(found.all.is_empty(), "{:#?}", found.all);
    let (found, _) = Planted::new(Hazard::Lifetime, store(""))
        .strict()
        .run(false, 0);
    assert!(found.all.iter().any(|f| f.hazard == Hazard::Lifetime));
    let (found, _) = Planted::new(Hazard::Lifetime, store(""))
        .strict()
        .run(true, 0);
    assert!(found.all.is_empty(), "{:#?}", found.all);
}
