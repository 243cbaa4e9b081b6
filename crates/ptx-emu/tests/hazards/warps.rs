//! Lanes of one warp that count on each other.

use super::*;

/// Every instruction that exchanges something among the lanes of a mask.
const EXCHANGES: [&str; 7] = [
    "shfl.sync.bfly.b32 %r7, %r1, 1, 31, MASK;",
    "vote.sync.ballot.b32 %r7, %p1, MASK;",
    "vote.sync.any.pred %p2, %p1, MASK;",
    "match.any.sync.b32 %r7, %r1, MASK;",
    "redux.sync.add.u32 %r7, %r1, MASK;",
    "bar.warp.sync MASK;",
    "elect.sync %r7|%p2, MASK;",
];

#[test]
fn half_a_warp_comes_to_what_is_for_all_of_it() {
    for exchange in EXCHANGES {
        let exchange = exchange.replace("MASK", "<<0x0000ffff||-1>>");
        let body = format!(
            "mov.u32 %r7, 0; setp.ge.u32 %p1, %r19, 16; @%p1 bra REST;
             {exchange} //here
             REST: st.global.u32 [%rd3], %r7;"
        );
        let found = Planted::new(Hazard::PartialWarp, body).check();
        assert!(found.at.detail.contains("0xffff0000 are named"), "{found}");
        assert!(found.remedy.contains("name those that do"), "{found}");
    }
}

/// The same where the branch may end the thread, so that the halves meet nowhere but at the end.
#[test]
fn half_a_warp_comes_and_may_end_there() {
    for exchange in EXCHANGES {
        let exchange = exchange.replace("MASK", "<<0x0000ffff||-1>>");
        for [sense, first, second] in [["ge", "REST", "HALF"], ["lt", "HALF", "REST"]] {
            let half = format!(
                "HALF: {exchange} //here
                 setp.eq.u32 %p2, %r7, 12345; @%p2 bra END; bra REST;"
            );
            let body = format!(
                "mov.u32 %r7, 0; setp.{sense}.u32 %p1, %r19, 16; @%p1 bra {first}; bra {second};
                 {half}
                 REST: st.global.u32 [%rd3], %r7; END:"
            );
            let found = Planted::new(Hazard::PartialWarp, body).check();
            assert!(found.at.detail.contains("0xffff0000 are named"), "{found}");
        }
    }
}

#[test]
fn a_lane_executes_what_its_mask_does_not_name_it_for() {
    for exchange in EXCHANGES {
        let exchange = exchange.replace("MASK", "<<-1||0x55555555>>");
        let body = format!(
            "mov.u32 %r7, 0; setp.ge.u32 %p1, %r19, 16;
             {exchange} //here
             st.global.u32 [%rd3], %r7;"
        );
        let found = Planted::new(Hazard::PartialWarp, body).check();
        assert!(found.at.detail.contains("0xaaaaaaaa execute it"), "{found}");
    }
}

#[test]
fn a_shuffle_reads_from_lanes_that_have_ended() {
    let found = Planted::new(
        Hazard::PartialWarp,
        "and.b32 %r8, %r19, 1; setp.ne.u32 %p1, %r8, 0; @%p1 bra END;
         shfl.sync.bfly.b32 %r7, %r1, <<2||1>>, 31, 0x55555555; //here
         st.global.u32 [%rd3], %r7; END:",
    )
    .check();
    assert!(found.at.detail.contains("0x55555555 read from"), "{found}");
}

/// Nothing is said of a kernel.
#[track_caller]
fn unblamed(body: &str) {
    let planted = Planted::new(Hazard::Race, body);
    for seed in 0..4 {
        let (found, _) = planted.run(true, seed);
        assert!(found.all.is_empty(), "{body}: {:#?}", found.all);
    }
}

/// A card asks only those that have not ended, and votes without them.
#[test]
fn lanes_that_have_ended_need_not_come() {
    for exchange in &EXCHANGES[1..] {
        let exchange = exchange.replace("MASK", "-1");
        unblamed(&format!(
            "mov.u32 %r7, 0; and.b32 %r8, %r19, 1; setp.ne.u32 %p1, %r8, 0; @%p1 bra END;
             {exchange} st.global.u32 [%rd3], %r7; END:"
        ));
    }
}

/// Whatever they do before, as long as it is not what the others have yet to do.
#[test]
fn lanes_that_end_on_a_path_of_their_own_need_not_come() {
    for exchange in &EXCHANGES[1..] {
        let exchange = exchange.replace("MASK", "-1");
        unblamed(&format!(
            "mov.u32 %r7, 0; setp.ge.u32 %p1, %r19, 16; @%p1 bra OUT;
             {exchange} setp.eq.u32 %p2, %r7, 12345; @%p2 bra END;
             st.global.u32 [%rd3], %r7; bra END;
             OUT: st.global.u32 [%rd3], %r1; END:"
        ));
    }
}

/// Each half at a barrier of its own: a card lets them meet.
const APART: &str = "setp.ge.u32 %p1, %r19, 16; @%p1 bra READ;
     st.shared.u32 [%r2], %r1; //there
     <<bar.warp.sync -1;>> bra END;
     READ: <<bar.warp.sync -1;>>
     ld.shared.u32 %r7, [%r2+-64]; //here
     st.global.u32 [%rd3], %r7; END:";

#[test]
fn lanes_on_two_paths_do_not_wait_for_each_other() {
    let found = Planted::new(Hazard::Race, APART).check();
    assert!(found.remedy.contains("__syncwarp()"), "{found}");
    // Waiting for one's own half is no help.
    let halves = APART
        .replacen(
            "<<bar.warp.sync -1;>>",
            "<<bar.warp.sync -1;||bar.warp.sync 0x0000ffff;>>",
            1,
        )
        .replacen(
            "READ: <<bar.warp.sync -1;>>",
            "READ: <<bar.warp.sync -1;||bar.warp.sync 0xffff0000;>>",
            1,
        );
    Planted::new(Hazard::Race, halves).check();
    // A branch inside the branch.
    let inner = APART.replacen(
        "st.shared.u32 [%r2], %r1;",
        "setp.ge.u32 %p2, %r19, 8; @%p2 bra SAME; add.u32 %r1, %r1, 1; SAME: st.shared.u32 [%r2], %r1;",
        1,
    );
    Planted::new(Hazard::Race, inner).check();
}

/// On an H200 no lane read a stale word in such code, of 27 million each.
#[test]
fn lanes_that_have_joined_are_in_step() {
    unblamed(
        "st.shared.u32 [%r2], %r1; xor.b32 %r3, %r2, 4; ld.shared.u32 %r7, [%r3]; st.global.u32 [%rd3], %r7;",
    );
    unblamed(
        "setp.ge.u32 %p1, %r19, 16; @%p1 bra ELSE; st.shared.u32 [%r2], %r1; bra MET;
         ELSE: st.shared.u32 [%r2], %r2; MET: xor.b32 %r3, %r2, 64;
         ld.shared.u32 %r7, [%r3]; st.global.u32 [%rd3], %r7;",
    );
    unblamed(
        "setp.ge.u32 %p1, %r19, 16; @%p1 bra MET; st.shared.u32 [%r2], %r1;
         MET: add.u32 %r8, %r1, 1; @!%p1 bra END; ld.shared.u32 %r7, [%r2+-64];
         st.global.u32 [%rd3], %r7; END:",
    );
}

#[test]
fn lanes_that_meet_at_an_mbarrier_have_met() {
    unblamed(
        "shl.b32 %r8, %r18, 3; add.u32 %r8, %r8, %r5; setp.ne.u32 %p2, %r19, 0; @%p2 bra INIT;
         mbarrier.init.shared.b64 [%r8], 16; INIT: bar.warp.sync -1;
         setp.ge.u32 %p1, %r19, 16; @%p1 bra READ;
         st.shared.u32 [%r2], %r1; mbarrier.arrive.shared.b64 %rd5, [%r8]; bra END;
         READ: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0; @!%p2 bra READ;
         ld.shared.u32 %r7, [%r2+-64]; st.global.u32 [%rd3], %r7; END:",
    );
}

/// The ISA asks for the same qualifiers and mask, not for the same instruction.
#[test]
fn values_may_be_exchanged_between_two_instructions() {
    unblamed(
        "setp.ge.u32 %p1, %r19, 16; @%p1 bra ELSE;
         shfl.sync.bfly.b32 %r7, %r1, 16, 31, -1; bra END;
         ELSE: add.u32 %r1, %r1, 1; shfl.sync.bfly.b32 %r7, %r1, 16, 31, -1;
         END: st.global.u32 [%rd3], %r7;",
    );
}

/// A card lets them pass: who has ended is not waited for.
#[test]
fn strictly_a_barrier_for_all_is_not_for_those_that_are_left() {
    let half = "setp.ge.u32 %p1, %r1, 64; @%p1 bra END;
         bar.sync 0<<, 64>>; //here
         st.global.u32 [%rd3], %r1; END:";
    let found = Planted::new(Hazard::BarrierCount, half).strict().check();
    assert!(found.at.detail.contains("warps have ended"), "{found}");
    let (found, faulted) = Planted::new(Hazard::BarrierCount, half).run(false, 0);
    assert!(found.all.is_empty() && !faulted, "{:#?}", found.all);
}

/// A sum over 32 lanes in a block of eight: 24 of them do not exist.
#[test]
fn a_shuffle_reads_from_lanes_that_do_not_exist() {
    let body = "shfl.sync.down.b32 %r7, %r1, <<4||16>>, <<0x181f||31>>, 0xff; //here
         st.global.u32 [%rd3], %r7;";
    let launch = Launch::new("k").block([8, 1, 1]);
    let found = Planted::new(Hazard::PartialWarp, body).on(launch).check();
    assert!(found.at.detail.contains("do not exist"), "{found}");
}
