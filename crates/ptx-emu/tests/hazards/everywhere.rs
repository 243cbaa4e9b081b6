//! What every cluster is held to, also those whose accesses are not all remembered.

use super::*;

/// A slip that one CTA of eight makes; the accesses of another one are remembered.
fn sampled(hazard: Hazard, body: &'static str) -> Planted {
    let mut planted = Planted::new(hazard, body);
    planted.launch = Launch::new("k").grid([8, 1, 1]).block([128, 1, 1]);
    planted.sanitize.clusters = Some(1);
    planted
}

#[test]
fn shared_memory_that_nobody_wrote() {
    let found = sampled(
        Hazard::UninitialisedShared,
        "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p1, %r6, <<9||5>>; @%p1 bra UNFILLED;
         st.shared.u32 [%r2], %r1;
         UNFILLED: bar.sync 0;
         ld.shared.u32 %r7, [%r2]; //here
         mad.lo.u32 %r8, %r6, 128, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
         st.global.u32 [%rd4], %r7;",
    )
    .check();
    assert_eq!(found.here.place.cta, [5, 0, 0]);
    assert_eq!((found.at.name.as_str(), found.at.offset % 128), ("tile", 0));
}

/// Where there are many, the last one is looked at too: ragged ends lie there.
#[test]
fn shared_memory_that_nobody_wrote_at_the_ragged_end() {
    let body = "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p1, %r6, <<99||19>>; @%p1 bra UNFILLED;
         st.shared.u32 [%r2], %r1;
         UNFILLED: bar.sync 0;
         ld.shared.u32 %r7, [%r2]; //here
         st.global.u32 [%rd3], %r7;";
    let mut planted = sampled(Hazard::UninitialisedShared, body);
    planted.launch = Launch::new("k").grid([20, 1, 1]).block([128, 1, 1]);
    assert_eq!(planted.check().here.place.cta, [19, 0, 0]);
}

#[test]
fn a_sum_in_shared_memory_that_nobody_cleared() {
    let found = sampled(
        Hazard::UninitialisedShared,
        "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p1, %r6, <<9||5>>; @%p1 bra UNFILLED;
         st.shared.u32 [%r2], 0;
         UNFILLED: atom.shared.add.u32 %r7, [%r2], %r1; //here
         mad.lo.u32 %r8, %r6, 128, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
         st.global.u32 [%rd4], %r7;",
    )
    .check();
    assert_eq!(found.here.place.cta, [5, 0, 0]);
}

#[test]
fn a_byte_of_shared_memory_that_nobody_wrote() {
    let found = sampled(
        Hazard::UninitialisedShared,
        "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p1, %r6, <<9||5>>; st.shared.u32 [%r2+512], %r1;
         setp.eq.and.u32 %p1, %r1, 70, %p1; @%p1 bra UNFILLED;
         st.shared.u8 [%r2+3], %r1;
         UNFILLED: st.shared.u16 [%r2], %r1; st.shared.u8 [%r2+2], %r1;
         bar.sync 0;
         ld.shared.u32 %r7, [%r2]; //here
         mad.lo.u32 %r8, %r6, 128, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
         st.global.u32 [%rd4], %r7;",
    )
    .check();
    assert_eq!(
        (found.at.offset, found.here.place.lanes),
        (4 * 70 + 3, 1 << 6)
    );
}

#[test]
fn a_barrier_for_whole_warps() {
    let found = sampled(
        Hazard::PartialWarp,
        "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p2, %r6, <<9||5>>;
         setp.ge.and.u32 %p1, %r19, 16, %p2; @%p1 bra APART;
         barrier.sync.aligned 1, 128; //here
         bra MET;
         APART: barrier.sync 1, 128;
         MET:",
    )
    .check();
    assert_eq!(found.here.place.cta, [5, 0, 0]);
}

#[test]
fn a_barrier_that_is_not_known_to_be_there() {
    sampled(
        Hazard::BarrierInit,
        "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p3, %r6, <<9||5>>;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 128; //there
         fence.mbarrier_init.release.cluster;
         READY: @%p3 bra LATER; bar.sync 0;
         LATER: nanosleep.u32 1000;
         mbarrier.arrive.shared.b64 %rd5, [%r5]; //here
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;",
    )
    .check();
}

/// A barrier that a warp knows of by way of another CTA: nobody followed that way, so nothing is
/// said.
#[test]
fn what_came_by_way_of_others_is_not_doubted() {
    let body = "mov.u32 %r6, %ctaid.x; mov.u32 %r7, 1; setp.ne.u32 %p4, %r6, 0;
         setp.ne.u32 %p1, %r19, 0; @%p1 bra END; @%p4 bra OTHER;
         setp.ne.u32 %p2, %r18, 0; @%p2 bra USER;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         st.release.gpu.global.u32 [%rd1], %r7; bra END;
         USER: setp.ne.u32 %p2, %r18, 1; @%p2 bra END;
         ANSWER: ld.acquire.gpu.global.u32 %r8, [%rd1+4]; setp.eq.u32 %p3, %r8, 0; @%p3 bra ANSWER;
         mbarrier.arrive.shared.b64 %rd5, [%r5]; bra END;
         OTHER: setp.ne.u32 %p2, %r18, 0; setp.ne.or.u32 %p2, %r6, 3, %p2; @%p2 bra END;
         ASK: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.eq.u32 %p3, %r8, 0; @%p3 bra ASK;
         st.release.gpu.global.u32 [%rd1+4], %r7; END:";
    for clusters in [Some(1), None] {
        let mut planted = sampled(Hazard::BarrierInit, body);
        planted.sanitize.clusters = clusters;
        for seed in 0..4 {
            let (found, _) = planted.run(true, seed);
            assert!(found.all.is_empty(), "{clusters:?}: {:#?}", found.all);
        }
    }
}

#[test]
fn ctas_that_race_though_others_talk() {
    // Every fourth CTA is followed. The counter tells nobody who wrote the word.
    let mut planted = sampled(
        Hazard::Race,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r6, %ctaid.x;
         atom.relaxed.gpu.global.add.u32 %r7, [%rd1+1024], 1;
         mul.wide.u32 %rd4, %r6, <<4||0>>; add.s64 %rd4, %rd4, %rd1;
         setp.ge.u32 %p2, %r6, 4; @%p2 bra LATE;
         st.global.u32 [%rd4], %r6; //there
         bra END;
         LATE:
         st.global.u32 [%rd4], %r6; //here
         END:",
    );
    planted.sanitize.clusters = Some(2);
    planted.check();
}

/// With the sample alone the same is found, and the others have not run.
#[test]
fn a_sample_can_run_without_the_others() {
    let body = "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p1, %r6, <<999||199>>; @%p1 bra UNFILLED;
         st.shared.u32 [%r2], %r1;
         UNFILLED: bar.sync 0;
         ld.shared.u32 %r7, [%r2]; //here
         mul.wide.u32 %rd4, %r6, 4; add.s64 %rd4, %rd4, %rd1; setp.ne.u32 %p2, %r1, 0;
         @!%p2 st.global.u32 [%rd4], 1;";
    let mut planted = sampled(Hazard::UninitialisedShared, body);
    planted.launch = Launch::new("k").grid([200, 1, 1]).block([128, 1, 1]);
    planted.sanitize.clusters = Some(2);
    planted.sanitize.alone = true;
    assert_eq!(planted.check().here.place.cta, [199, 0, 0]);
    let module = Module::load(&planted.text(true)).unwrap();
    let mut memory = Memory::new();
    let out = memory.alloc(4 * 200).unwrap();
    let launch = planted.launch.params(Params::new().u64(out.0).u64(out.0));
    let (report, found) = launch.run_sanitized(&module, &mut memory, &planted.sanitize);
    assert_eq!((report.unwrap().counters.ctas, found.clusters), (8, 2));
    let ran = memory.read_vec(out, 4 * 200).unwrap();
    assert_eq!(ran.iter().filter(|byte| **byte == 1).count(), 8);
}

/// Of sixteen CTAs two write the same word, neither of which is remembered.
#[test]
fn a_word_that_two_ctas_write() {
    let body = "mov.u32 %r6, %ctaid.x; mad.lo.u32 %r8, %r6, 128, %r1;
         setp.eq.u32 %p1, %r6, 11; @%p1 sub.u32 %r8, %r8, <<0||1>>;
         mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
         add.u32 %r9, %r6, 100;
         st.global.u32 [%rd4], %r9; //here //there";
    let mut planted = sampled(Hazard::Race, body);
    planted.launch = Launch::new("k").grid([16, 1, 1]).block([128, 1, 1]);
    for seed in 0..4 {
        assert!(planted.run(true, seed).0.all.is_empty());
        let found = planted.run(false, seed).0.all;
        let [race] = &found[..] else {
            panic!("{found:#?}")
        };
        let there = race.there.as_ref().expect("another write");
        let mut ctas = [race.here.place.cta[0], there.place.cta[0]];
        ctas.sort_unstable();
        assert_eq!((race.hazard, ctas), (Hazard::Race, [10, 11]));
        assert_eq!(race.at.offset, 4 * (11 * 128 - 1), "{race}");
        let text = planted.text(false);
        let line = text.lines().position(|line| line.ends_with("//there"));
        assert_eq!(
            line.map(|line| line as u32 + 1),
            Some(race.here.place.ptx_line)
        );
    }
    // The same value in both hurts nobody.
    let same = body.replace("add.u32 %r9, %r6, 100;", "mov.u32 %r9, 100;");
    planted.body = same;
    assert!(planted.run(false, 0).0.all.is_empty());
}
