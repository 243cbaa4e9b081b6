//! Clusters that take over others.

use ptx_emu::{DeviceLimits, Launch, LaunchError};

use crate::{config, kernel, run};

/// Each CTA adds one to the word of every index it works for: its own, and those it is given until
/// there are none. `{rank}` and `{multicast}` are filled in.
const PERSISTENT: &str = "
    mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %cluster_nctarank;
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r12, %nctaid.x;
    mov.u32 %r4, answer; mov.u32 %r5, bar; mov.u32 %r6, 0;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [bar], 1;
    @!%p1 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    WORK: mad.lo.u32 %r7, %r3, %r12, %r2; mul.wide.u32 %rd4, %r7, 4; add.s64 %rd4, %rd1, %rd4;
    @!%p1 red.global.add.u32 [%rd4], 1;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.ne.u32 %p2, %r10, {leader}; or.pred %p3, %p1, %p2;
    @!%p3 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{multicast}.b128 [%r4], [%r5];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], %r6; @!%p4 bra WAIT;
    xor.b32 %r6, %r6, 1;
    ld.shared.b128 %q1, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %q1;
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    @!%p5 bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r2, %r3, %r8, _}, %q1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r9, %q1;
    add.u32 %r2, %r9, %r10;
    bra WORK;
    DONE:";

/// Runs it on a grid of 12 × 4 and gives how often each index was worked for.
fn counts(cluster: u32, multicast: bool, seed: u64, sms: u32) -> Result<Vec<u32>, LaunchError> {
    let body = match multicast {
        true => PERSISTENT
            .replace("{multicast}", ".multicast::cluster::all")
            .replace("{leader}", "0"),
        false => PERSISTENT
            .replace("{multicast}", "")
            .replace("{leader}", "%r10"),
    };
    let mut config = config("sm_100a", seed);
    config.limits = DeviceLimits {
        sms,
        ctas_per_sm: 1,
        ..DeviceLimits::B200
    };
    let launch = Launch::new("k")
        .grid([12, 4, 1])
        .block([64, 1, 1])
        .cluster([cluster, 1, 1])
        .config(config);
    run(&kernel("sm_100a", &body), launch, &[], |_| None)
}

#[test]
fn every_index_is_worked_for_once() {
    for seed in 0..12 {
        for (cluster, multicast) in [(1, false), (1, true), (2, true), (4, true)] {
            let counts = counts(cluster, multicast, seed, 8).unwrap_or_else(|e| panic!("{e}"));
            assert!(
                counts[..48].iter().all(|&n| n == 1),
                "seed {seed}: {counts:?}"
            );
            assert!(counts[48..].iter().all(|&n| n == 0), "seed {seed}");
        }
    }
}

/// One CTA for the whole grid, and a device that holds all of them: nobody is left to take over.
#[test]
fn one_multiprocessor_and_many_give_the_same() {
    for sms in [1, 48, 148] {
        let counts = counts(1, false, 3, sms).unwrap_or_else(|e| panic!("{e}"));
        assert!(
            counts[..48].iter().all(|&n| n == 1),
            "{sms} SMs: {counts:?}"
        );
    }
}

/// Who took what depends on the seed and on nothing else.
#[test]
fn the_same_seed_gives_the_same_owners() {
    let body = PERSISTENT
        .replace("{multicast}", "")
        .replace("{leader}", "%r10")
        .replace("red.global.add.u32 [%rd4], 1", "st.global.u32 [%rd4], %r20")
        .replace(
            "mov.u32 %r6, 0;",
            "mov.u32 %r6, 0; mad.lo.u32 %r20, %r3, %r12, %r2;",
        );
    let module = kernel("sm_100a", &body);
    let owners = |seed, threads| {
        let mut config = config("sm_100a", seed);
        config.threads = threads;
        let launch = Launch::new("k")
            .grid([12, 4, 1])
            .block([32, 1, 1])
            .config(config);
        run(&module, launch, &[], |_| None).unwrap_or_else(|e| panic!("{e}"))
    };
    let first: Vec<_> = (0..6).map(|seed| owners(seed, 1)).collect();
    for (seed, first) in first.iter().enumerate() {
        assert_eq!(&owners(seed as u64, 2), first, "seed {seed}");
    }
    let taken = |owners: &Vec<u32>| (0..48).any(|i| owners[i] != i as u32);
    assert!(first.iter().any(taken), "no cluster took over another");
    assert!(first.iter().any(|o| o != &first[0]), "seeds do not differ");
}
