//! Barriers that are used before they are made, too often, or by too few.

use super::*;

#[test]
fn a_barrier_is_used_before_it_is_known_to_be_there() {
    Planted::new(
        Hazard::BarrierInit,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 128; //there
         fence.mbarrier_init.release.cluster;
         READY: <<bar.sync 0;||nanosleep.u32 1000;>>
         mbarrier.arrive.shared.b64 %rd5, [%r5]; //here
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;",
    )
    .check();
}

#[test]
fn a_fence_for_barriers_is_enough_before_an_arrival_that_releases_nothing() {
    // Each CTA arrives at the barrier of the other.
    Planted::new(
        Hazard::BarrierInit,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; //there
         <<fence.mbarrier_init.release.cluster;>>
         READY: barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;
         mov.u32 %r6, %cluster_ctarank; xor.b32 %r6, %r6, 1; mapa.shared::cluster.u32 %r7, %r5, %r6;
         @%p1 bra END;
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7]; //here
         END: barrier.cluster.arrive; barrier.cluster.wait;",
    )
    .on(pair())
    .check();
}

#[test]
fn an_arrival_that_releases_nothing_needs_a_fence_before_it() {
    Planted::new(
        Hazard::Race,
        "st.shared.u32 [%r2], %r1; //there
         <<fence.acq_rel.cluster;||fence.mbarrier_init.release.cluster;>>
         barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;
         mov.u32 %r6, %cluster_ctarank; xor.b32 %r6, %r6, 1; mapa.shared::cluster.u32 %r7, %r2, %r6;
         ld.shared::cluster.u32 %r8, [%r7]; //here
         barrier.cluster.arrive; barrier.cluster.wait;",
    )
    .on(pair())
    .check();
}

#[test]
fn a_barrier_is_made_anew_while_others_use_it() {
    Planted::new(
        Hazard::BarrierInUse,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 128; fence.mbarrier_init.release.cluster;
         READY: bar.sync 0;
         mbarrier.arrive.shared.b64 %rd5, [%r5];
         WAIT:
         mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; //there
         @!%p2 bra WAIT;
         <<bar.sync 0;>> @%p1 bra END;
         mbarrier.inval.shared.b64 [%r5]; //here
         END:",
    )
    .check();
}

#[test]
fn a_wait_is_over_behind_a_barrier_that_releases_nothing() {
    Planted::new(
        Hazard::BarrierInUse,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 128; fence.mbarrier_init.release.cluster;
         READY: barrier.cluster.arrive; barrier.cluster.wait;
         mbarrier.arrive.shared.b64 %rd5, [%r5];
         WAIT:
         mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; //there
         @!%p2 bra WAIT;
         <<barrier.cluster.arrive.relaxed; barrier.cluster.wait;>> @%p1 bra END;
         mbarrier.inval.shared.b64 [%r5]; //here
         END:",
    )
    .on(pair().block([128, 1, 1]))
    .check();
}

#[test]
fn a_barrier_is_made_anew_without_an_end() {
    Planted::new(
        Hazard::BarrierInUse,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
         mbarrier.init.shared.b64 [%r5], 1; //there
         <<mbarrier.inval.shared.b64 [%r5];>>
         mbarrier.init.shared.b64 [%r5], 1; //here
         END:",
    )
    .check();
}

#[test]
fn the_bytes_of_a_barrier_are_used_without_its_end() {
    Planted::new(
        Hazard::BarrierInUse,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
         mbarrier.init.shared.b64 [%r5], 1; //there
         <<mbarrier.inval.shared.b64 [%r5];>>
         st.shared.u32 [%r5+4], %r1; //here
         END:",
    )
    .check();
}

#[test]
fn a_barrier_gets_more_arrivals_than_it_was_made_for() {
    // One warp is in time, the other comes a phase too late: its word may not be there.
    Planted::new(
        Hazard::BarrierCount,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], <<2||1>>; //there
         fence.mbarrier_init.release.cluster;
         READY: bar.sync 0;
         setp.ne.u32 %p3, %r19, 0; setp.ge.u32 %p4, %r1, 64; or.pred %p3, %p3, %p4; @%p3 bra ARRIVED;
         mbarrier.arrive.shared.b64 %rd5, [%r5]; //here
         ARRIVED:",
    )
    .strict()
    .check();
}

#[test]
fn a_barrier_waits_for_arrivals_that_never_come() {
    let found = Planted::new(
        Hazard::BarrierCount,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], <<128||129>>; //there
         fence.mbarrier_init.release.cluster;
         READY: bar.sync 0;
         mbarrier.arrive.shared.b64 %rd5, [%r5];
         WAIT:
         mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; //here
         @!%p2 bra WAIT;",
    )
    .check();
    assert_eq!(found.at.detail, "1 of 129 arrivals are missing");
}

#[test]
fn a_barrier_expects_more_bytes_than_come() {
    let found = Planted::new(
        Hazard::ExpectTx,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], <<512||768>>; //there
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5];
         READY: bar.sync 0;
         WAIT:
         mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; //here
         @!%p2 bra WAIT;",
    )
    .check();
    assert_eq!(found.at.detail, "256 bytes were expected that never came");
}

#[test]
fn a_copy_is_counted_in_the_wrong_phase() {
    // The phase is over with the copy that comes first; the other one belongs to nobody.
    Planted::new(
        Hazard::ExpectTx,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], <<1024||512>>; //there
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5]; \
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+512], [%rd8+512], 512, [%r5]; //here
         READY: bar.sync 0;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;",
    )
    .check();
}

#[test]
fn a_parity_is_lapped() {
    // The producer does not wait for the reader, who cannot tell the first phase from the third.
    Planted::new(
        Hazard::ParityLap,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; //there
         fence.mbarrier_init.release.cluster;
         READY: bar.sync 0; mov.u32 %r7, 0;
         @%p1 bra OTHERS;
         PHASE: mbarrier.arrive.shared.b64 %rd5, [%r5]; add.u32 %r7, %r7, 1;
         setp.lt.u32 %p2, %r7, <<1||3>>; @%p2 bra PHASE;
         OTHERS: nanosleep.u32 100000;
         WAIT:
         mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; //here
         @!%p2 bra WAIT;",
    )
    .check();
}

#[test]
fn a_parity_is_known_where_the_last_arrival_is() {
    // The barrier of the CTA tells all that the second phase is over, though nobody waited for it.
    let body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.shared.b64 %rd5, [%r5]; mbarrier.arrive.shared.b64 %rd5, [%r5];
         <<||bra READY; LATE:>> mbarrier.arrive.shared.b64 %rd5, [%r5]; <<||bra LATER;>>
         READY: bar.sync 0; <<||@!%p1 bra LATE; LATER: nanosleep.u32 100000;>>
         WAIT:
         mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;";
    let known = Planted::new(Hazard::ParityLap, body);
    for (seed, correct) in (0..4).flat_map(|seed| [(seed, true), (seed, false)]) {
        let (found, _) = known.run(correct, seed);
        assert!(found.all.is_empty(), "{correct}: {:#?}", found.all);
    }
}

#[test]
fn a_barrier_is_reached_by_a_part_of_a_warp() {
    let found = Planted::new(
        Hazard::PartialWarp,
        "setp.ge.u32 %p1, %r19, <<32||16>>; @%p1 bra APART;
         barrier.sync.aligned 1, 128; //here
         bra MET;
         APART: barrier.sync 1, 128;
         MET:",
    )
    .check();
    assert_eq!(found.at.name, "1");
    assert!(found.at.detail.contains("0xffff0000"), "{found}");
}

#[test]
fn strictly_bytes_tell_that_their_sender_saw_a_phase() {
    // CTA 0 arrives at a barrier of CTA 1, which answers with a copy, and arrives again.
    let found = Planted::new(
        Hazard::BarrierCount,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [empty], 1; //there
         st.shared.v4.u32 [%r4], {%r1,%r1,%r1,%r1}; fence.mbarrier_init.release.cluster; fence.proxy.async;
         READY: barrier.cluster.arrive; barrier.cluster.wait;
         @%p1 bra END;
         mov.u32 %r6, %cluster_ctarank; xor.b32 %r7, %r6, 1;
         mov.u32 %r8, empty; mapa.shared::cluster.u32 %r9, %r8, %r7;
         setp.ne.u32 %p2, %r6, 0; @%p2 bra SENDER;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [full], 16;
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];
         <<WAIT: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [full], 0; @!%p3 bra WAIT;||nanosleep.u32 100000;>>
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9]; //here
         bra END;
         SENDER: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [empty], 0; @!%p3 bra SENDER;
         mapa.shared::cluster.u32 %r10, %r5, %r7; add.u32 %r11, %r4, 16;
         mapa.shared::cluster.u32 %r11, %r11, %r7;
         cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r4], 16, [%r10];
         AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [empty], 1; @!%p3 bra AGAIN;
         END: barrier.cluster.arrive; barrier.cluster.wait;",
    )
    .on(pair())
    .strict();
    found.check();
}

#[test]
fn a_copy_reads_what_st_async_wrote() {
    // Each CTA writes to the other's memory, and sends on what came.
    Planted::new(
        Hazard::ProxyFence,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [full], 1; fence.mbarrier_init.release.cluster;
         READY: barrier.cluster.arrive; barrier.cluster.wait;
         @%p1 bra END;
         mov.u32 %r6, %cluster_ctarank; xor.b32 %r7, %r6, 1;
         mapa.shared::cluster.u32 %r8, %r4, %r7; mapa.shared::cluster.u32 %r10, %r5, %r7;
         mul.wide.u32 %rd4, %r6, 16; add.s64 %rd4, %rd4, %rd1;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [full], 16;
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r8], {%r1,%r1,%r1,%r1}, [%r10]; //there
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [full], 0; @!%p3 bra WAIT;
         <<fence.proxy.async.shared::cta;>>
         cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r4], 16; //here
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
         END: barrier.cluster.arrive; barrier.cluster.wait;",
    )
    .on(pair())
    .check();
}
