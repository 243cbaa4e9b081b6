//! Threads, copies and CTAs that do not wait for each other.

use super::*;

#[test]
fn a_barrier_is_missing() {
    let found = Planted::new(
        Hazard::Race,
        "st.shared.u32 [%r2], %r1; //there
         <<bar.sync 0;>> xor.b32 %r3, %r2, 128;
         ld.shared.u32 %r7, [%r3]; //here
         st.global.u32 [%rd3], %r7;",
    )
    .check();
    assert_eq!((found.at.space, found.at.name.as_str()), ("shared", "tile"));
    assert!(found.remedy.contains("__syncthreads()"), "{found}");
}

#[test]
fn a_copy_is_not_waited_for() {
    let found = Planted::new(
        Hazard::Race,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5]; //there
         READY: bar.sync 0;
         <<WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;>>
         ld.shared.u32 %r7, [%r2]; //here
         st.global.u32 [%rd3], %r7;",
    )
    .check();
    assert!(found.missing.contains("no wait for"), "{found}");
}

#[test]
fn a_proxy_fence_is_missing() {
    Planted::new(
        Hazard::ProxyFence,
        "st.shared.u32 [%r2], %r1; //there
         <<fence.proxy.async.shared::cta;>> bar.sync 0;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
         cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], 512; //here
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:",
    )
    .check();
}

#[test]
fn two_ctas_write_the_same_word() {
    let found = Planted::new(
        Hazard::Race,
        "mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd4, %r6, <<128||0>>; add.s64 %rd3, %rd3, %rd4;
         setp.ne.u32 %p1, %r6, 0; @%p1 bra OTHER;
         st.global.u32 [%rd3], %r1; //there
         bra END;
         OTHER:
         st.global.u32 [%rd3], %r1; //here
         END:",
    )
    .on(two_ctas())
    .check();
    assert_eq!((found.at.space, found.at.name.as_str()), ("global", "out"));
    let there = found.there.expect("two sides").place;
    assert_ne!(found.here.place.cta, there.cta);
}

#[test]
fn who_writes_the_same_does_not_race() {
    // Everybody raises the flag, or notes where the results go; only who writes another is in the
    // way.
    let note = |bad: &str| {
        let body = format!(
            "mov.b64 %rd5, <<%rd1||{bad}>>; setp.ge.u32 %p2, %r1, 64; @%p2 bra LATER;
             st.shared.v2.b64 [%r4], {{%rd1, %rd8}}; //there
             bra MET; LATER:
             st.shared.v2.b64 [%r4], {{%rd5, %rd8}}; //here
             MET: bar.sync 0;
             ld.shared.u32 %r7, [%r4]; st.global.u32 [%rd3], %r7;"
        );
        Planted::new(Hazard::Race, body)
    };
    note("%rd8").check();
    note("%rd2").check();
    // By the letter it is one all the same.
    let (found, _) = note("%rd8").strict().run(true, 0);
    assert!(found.all.iter().all(|f| f.hazard == Hazard::Race));
    assert!(!found.all.is_empty());
}

#[test]
fn who_writes_the_same_matrix_or_to_another_cta_does_not_race() {
    for store in [
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6]",
        "st.shared::cluster.u32 [%r7]",
    ] {
        let body = format!(
            "and.b32 %r6, %r1, 7; shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r4;
             mapa.shared::cluster.u32 %r7, %r4, 0; mov.u32 %r8, 5; mov.u32 %r9, <<5||6>>;
             setp.ge.u32 %p2, %r1, 64; @%p2 bra LATER;
             {store}, {{%r8}}; //there
             bra MET; LATER:
             {store}, {{%r9}}; //here
             MET: bar.sync 0;
             ld.shared.u32 %r7, [%r4]; st.global.u32 [%rd3], %r7;"
        );
        Planted::new(Hazard::Race, body).check();
    }
}

#[test]
fn who_reads_what_others_write_races_though_they_write_the_same() {
    Planted::new(
        Hazard::Race,
        "st.shared.u32 [%r2], 0; setp.ge.u32 %p1, %r1, 96; bar.sync 0; @%p1 bra READER;
         st.shared.u32 [%r4], 1; //there
         READER: <<bar.sync 0;>>
         ld.shared.u32 %r7, [%r4]; //here
         st.global.u32 [%rd3], %r7;",
    )
    .check();
}

#[test]
fn a_release_does_not_reach_the_other_cta() {
    Planted::new(
        Hazard::Scope,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r6, %ctaid.x; mov.u32 %r7, 1;
         setp.ne.u32 %p2, %r6, 0; @%p2 bra READ;
         st.global.u32 [%rd1+64], %r1;
         st.release.<<gpu||cta>>.global.u32 [%rd1+128], %r7; //there
         bra END;
         READ:
         ld.acquire.gpu.global.u32 %r7, [%rd1+128]; //here
         setp.eq.u32 %p3, %r7, 0; @%p3 bra READ;
         ld.global.u32 %r8, [%rd1+64]; st.global.u32 [%rd1+256], %r8; END:",
    )
    .on(two_ctas())
    .check();
}

#[test]
fn a_fence_does_not_reach_the_other_cta() {
    Planted::new(
        Hazard::Scope,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r6, %ctaid.x; mov.u32 %r7, 1;
         setp.ne.u32 %p2, %r6, 0; @%p2 bra READ;
         st.global.u32 [%rd1+64], %r1;
         fence.acq_rel.<<gpu||cta>>; //there
         st.relaxed.gpu.global.u32 [%rd1+128], %r7;
         bra END;
         READ:
         ld.relaxed.gpu.global.u32 %r7, [%rd1+128]; //here
         setp.eq.u32 %p3, %r7, 0; @%p3 bra READ;
         fence.acq_rel.gpu;
         ld.global.u32 %r8, [%rd1+64]; st.global.u32 [%rd1+256], %r8; END:",
    )
    .on(two_ctas())
    .check();
}

#[test]
fn shared_memory_is_read_that_nobody_wrote() {
    Planted::new(
        Hazard::UninitialisedShared,
        "<<st.shared.u32 [%r2], %r1;>>
         ld.shared.u32 %r7, [%r2]; //here
         st.global.u32 [%rd3], %r7;",
    )
    .check();
}

#[test]
fn a_sum_is_begun_in_shared_memory_that_nobody_cleared() {
    Planted::new(
        Hazard::UninitialisedShared,
        "<<st.shared.u32 [%r2], 0;>>
         atom.shared.add.u32 %r7, [%r2], %r1; //here
         st.global.u32 [%rd3], %r7;",
    )
    .check();
}

#[test]
fn a_slot_is_filled_again_before_it_was_read() {
    // The second copy waits for the first, but not for anybody who reads it.
    let found = Planted::new(
        Hazard::Overwritten,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5]; //there
         W0: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra W0;
         <<ld.shared.u32 %r7, [%r4]; st.global.u32 [%rd1+4096], %r7; fence.proxy.async;>>
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8+512], 512, [%r5]; //here
         W1: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 1; @!%p2 bra W1;
         READY: bar.sync 0;
         ld.shared.u32 %r7, [%r2]; st.global.u32 [%rd3], %r7;",
    )
    .check();
    assert!(found.missing.contains("never read"), "{found}");
}

/// The reader waits for every copy; that the next one is issued too early is another matter.
#[test]
fn a_slot_is_filled_again_while_it_is_read() {
    let load = "mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5];";
    let body = format!(
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster; {load}
         READY: bar.sync 0;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;
         ld.shared.u32 %r7, [%r2]; //here
         <<bar.sync 0;>> @%p1 bra NEXT;
         {load} //there
         NEXT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 1; @!%p2 bra NEXT;
         ld.shared.u32 %r8, [%r2]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd3], %r7;"
    );
    let planted = Planted::new(Hazard::Race, body);
    planted.check();
    for seed in 0..8 {
        let (found, _) = planted.run(false, seed);
        for finding in found.all.iter().filter(|f| f.hazard == Hazard::Race) {
            assert!(finding.remedy.contains("barrier"), "{finding}");
            assert!(!finding.missing.contains("no wait for"), "{finding}");
        }
    }
}

#[test]
fn one_warp_waits_for_a_copy_and_tells_nobody() {
    let body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 512, [%r5]; //there
         READY: bar.sync 0; @%p1 bra READ;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;
         READ: <<bar.sync 0;>>
         ld.shared.u32 %r7, [%r2]; //here
         st.global.u32 [%rd3], %r7;";
    let planted = Planted::new(Hazard::Race, body);
    planted.check();
    let told = (0..96).flat_map(|seed| planted.run(false, seed).0.all);
    let told: Vec<String> = told.map(|f| f.missing).collect();
    assert!(
        told.iter()
            .any(|missing| missing.contains("another warp waited")),
        "{told:?}"
    );
}

/// As NVIDIA's threadFenceReduction: the last CTA to take a ticket reads what all have written.
#[test]
fn a_reader_without_a_fence_of_its_own_has_words_of_its_own() {
    let body = "mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd4, %r6, 4; add.s64 %rd4, %rd4, %rd1;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra MEET;
         st.global.u32 [%rd4+64], %r6; //there
         fence.acq_rel.gpu; atom.global.inc.u32 %r7, [%rd1+128], 1; <<fence.acq_rel.gpu;>>
         st.shared.u32 [%r4], %r7;
         MEET: bar.sync 0; ld.shared.u32 %r8, [%r4];
         setp.ne.u32 %p2, %r8, 1; @%p2 bra DONE; setp.gt.u32 %p3, %r1, 1; @%p3 bra DONE;
         ld.global.u32 %r9, [%rd3+64]; //here
         st.global.u32 [%rd3+256], %r9;
         DONE:";
    let launch = Launch::new("k").grid([2, 1, 1]).block([64, 1, 1]);
    let found = Planted::new(Hazard::Race, body).on(launch).check();
    assert!(found.missing.contains("the reader has none"), "{found}");
    assert!(found.remedy.contains("threadFenceReduction"), "{found}");
}
