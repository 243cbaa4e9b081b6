//! Missing waits for what is copied or multiplied asynchronously.

use ptx_emu::{Launch, LaunchError};

use crate::{SEEDS, Seen, kernel, planted, run, seeded};

/// Half of the seeds deliver late. Those must notice, so that every validation does.
const LATE: usize = SEEDS as usize / 2;
const PAIRS: usize = LATE;

#[test]
fn a_missing_wait_for_cp_async() {
    let body = "shl.b32 %r2, %r1, 4; mov.u32 %r4, tile; add.u32 %r2, %r2, %r4;
         mul.wide.u32 %rd4, %r1, 16; add.s64 %rd4, %rd4, %rd8;
         cp.async.cg.shared.global [%r2], [%rd4], 16; cp.async.commit_group;
         <<cp.async.wait_group 0;>> ld.shared.u32 %r7, [%r2]; st.global.u32 [%rd3], %r7;";
    let seen = planted("cp.async", body, 256, &|i| 4 * i as u32);
    seen.at_least(LATE + 50, PAIRS);
}

/// Thread 0 copies 1 KiB; everybody reads it after a wait on its barrier.
fn loading(wait: &str) -> String {
    format!(
        "mov.u32 %r4, tile; mov.u32 %r5, full; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 1024;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd8], 1024, [%r5];
         READY: bar.sync 0;
         {wait}
         shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4; ld.shared.u32 %r7, [%r2];
         st.global.u32 [%rd3], %r7;"
    )
}

#[test]
fn a_missing_wait_for_a_bulk_copy() {
    let body =
        loading("<<WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;>>");
    let seen = planted("bulk", &body, 256, &|i| i as u32);
    seen.at_least(LATE + 25, PAIRS);
}

#[test]
fn a_wait_without_its_loop() {
    for wait in ["try_wait", "test_wait"] {
        let body = loading(&format!(
            "WAIT: mbarrier.{wait}.parity.shared.b64 %p2, [%r5], 0; <<@!%p2 bra WAIT;>>"
        ));
        let seen = planted(wait, &body, 256, &|i| i as u32);
        seen.at_least(LATE + 25, PAIRS);
    }
}

/// Eight warps and four stages: thread 0 of warp 0 copies, the others add up what has come.
fn ring(full: &str, empty: &str) -> String {
    format!(
        "mov.u32 %r4, tile; mov.u32 %r5, full; mov.u32 %r6, empty;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mov.u32 %r7, 0;
         INIT: shl.b32 %r8, %r7, 3; add.u32 %r9, %r5, %r8; add.u32 %r10, %r6, %r8;
         mbarrier.init.shared.b64 [%r9], 1; mbarrier.init.shared.b64 [%r10], 7;
         add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4; @%p2 bra INIT;
         fence.mbarrier_init.release.cluster;
         READY: bar.sync 0; mov.u32 %r7, 0; mov.u32 %r20, 0;
         setp.ne.u32 %p3, %r18, 0; @%p3 bra CONSUME; @%p1 bra END;
         PRODUCE: and.b32 %r8, %r7, 3; shl.b32 %r9, %r8, 3; add.u32 %r10, %r5, %r9;
         add.u32 %r11, %r6, %r9; shr.u32 %r12, %r7, 2; xor.b32 %r12, %r12, 1; and.b32 %r12, %r12, 1;
         {empty}
         shl.b32 %r13, %r8, 10; add.u32 %r13, %r13, %r4; mul.wide.u32 %rd4, %r7, 1024;
         add.s64 %rd4, %rd4, %rd8; mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r10], 1024;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%rd4], 1024, [%r10];
         add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 24; @%p2 bra PRODUCE; bra END;
         CONSUME: and.b32 %r8, %r7, 3; shl.b32 %r9, %r8, 3; add.u32 %r10, %r5, %r9;
         add.u32 %r11, %r6, %r9; shr.u32 %r12, %r7, 2; and.b32 %r12, %r12, 1;
         {full}
         shl.b32 %r13, %r8, 10; add.u32 %r13, %r13, %r4; shl.b32 %r14, %r1, 2;
         add.u32 %r13, %r13, %r14; sub.u32 %r13, %r13, 128; ld.shared.u32 %r15, [%r13];
         add.u32 %r20, %r20, %r15; setp.eq.u32 %p4, %r19, 0;
         @%p4 mbarrier.arrive.shared.b64 %rd6, [%r11];
         add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 24; @%p2 bra CONSUME;
         st.global.u32 [%rd3], %r20;
         END:"
    )
}

fn ring_sum(thread: usize) -> u32 {
    let word = |slab: u32| slab * 256 + thread as u32 - 32;
    match thread {
        0..32 => 0,
        _ => (0..24).map(word).sum(),
    }
}

const FULL: &str = "WF: mbarrier.try_wait.parity.shared.b64 %p5, [%r10], %r12; @!%p5 bra WF;";
const EMPTY: &str = "WE: mbarrier.try_wait.parity.shared.b64 %p5, [%r11], %r12; @!%p5 bra WE;";

#[test]
fn waits_missing_in_a_ring_of_eight_warps_and_four_stages() {
    let full = format!("<<{FULL}>>");
    let seen = planted("full wait", &ring(&full, EMPTY), 256, &ring_sum);
    seen.at_least(114, PAIRS);
    let empty = format!("<<{EMPTY}>>");
    let seen = planted("empty wait", &ring(FULL, &empty), 256, &ring_sum);
    seen.at_least(114, PAIRS);
    let full = FULL.replace("@!%p5 bra WF;", "<<@!%p5 bra WF;>>");
    let seen = planted("full loop", &ring(&full, EMPTY), 256, &ring_sum);
    seen.at_least(112, PAIRS);
    let empty = EMPTY.replace("@!%p5 bra WE;", "<<@!%p5 bra WE;>>");
    let seen = planted("empty loop", &ring(FULL, &empty), 256, &ring_sum);
    seen.at_least(112, PAIRS);
}

/// 256 threads fill 1 KiB, thread 0 stores it, and they fill it again, twice.
fn storing(before: &str, after: &str) -> String {
    let round = |n: u32| {
        format!(
            "add.u32 %r7, %r1, {}; st.shared.u32 [%r2], %r7; fence.proxy.async; {before}
             @%p1 bra STORED{n}; cp.async.bulk.global.shared::cta.bulk_group [%rd1+{}], [%r4], 1024;
             cp.async.bulk.commit_group; {after}
             STORED{n}: bar.sync 0;",
            n * 256,
            n * 1024
        )
    };
    format!(
        "mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4;
         setp.ne.u32 %p1, %r1, 0; {} {} @%p1 bra END; cp.async.bulk.wait_group 0; END:",
        round(0),
        round(1)
    )
}

#[test]
fn shared_memory_reused_while_a_bulk_store_reads_it() {
    let body = storing("bar.sync 0;", "<<cp.async.bulk.wait_group.read 0;>>");
    let seen = planted("store", &body, 256, &|i| i as u32);
    seen.at_least(LATE + 25, PAIRS);
}

#[test]
fn a_bulk_store_of_what_is_not_complete() {
    let body = storing("<<bar.sync 0;>>", "cp.async.bulk.wait_group.read 0;");
    let seen = planted("early store", &body, 256, &|i| i as u32);
    seen.at_least(74, PAIRS - 10);
}

#[test]
fn a_store_that_was_read_is_not_yet_written() {
    // The flag of the same thread comes before the bytes unless it waits for all of them.
    let body = "mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4;
         setp.ne.u32 %p1, %r1, 0; st.shared.u32 [%r2], %r1; fence.proxy.async; bar.sync 0;
         @%p1 bra END; cp.async.bulk.global.shared::cta.bulk_group [%rd1+4096], [%r4], 1024;
         cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
         <<cp.async.bulk.wait_group 0;>> ld.global.u32 %r7, [%rd1+4100];
         st.global.u32 [%rd1], %r7; END:";
    let seen = planted("written", body, 256, &|i| u32::from(i == 0));
    assert_eq!((seen.seeds, seen.pairs), (LATE, PAIRS));
}

/// One m64n8k16 of ones by ones: 16 in every accumulator.
fn product(fill: &str, wait: &str) -> String {
    format!(
        "mov.u32 %r4, tile; shl.b32 %r2, %r1, 5; add.u32 %r2, %r2, %r4; mov.u32 %r5, 0x3c003c00;
         st.shared.v4.u32 [%r2], {{%r5,%r5,%r5,%r5}}; st.shared.v4.u32 [%r2+16], {{%r5,%r5,%r5,%r5}};
         fence.proxy.async; {fill}
         cvt.u64.u32 %rd4, %r4; shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x0000000800080000;
         wgmma.fence.sync.aligned;
         wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0,%f1,%f2,%f3}}, %rd4, %rd4, 0, 1, 1, 0, 0;
         wgmma.commit_group.sync.aligned; {wait}
         cvt.rzi.u32.f32 %r7, %f3; st.global.u32 [%rd3], %r7;"
    )
}

#[test]
fn accumulators_read_before_they_are_waited_for() {
    let body = product("bar.sync 0;", "<<wgmma.wait_group.sync.aligned 0;>>");
    let seen = planted("wgmma", &body, 128, &|_| 16);
    seen.at_least(SEEDS as usize, PAIRS);
}

#[test]
fn operands_overwritten_before_the_product_is_waited_for() {
    // A second warpgroup is told that the tile is free before the first has waited.
    let body = |release_first: bool| {
        let (first, last) = match release_first {
            true => ("bar.arrive 1, 256;", ""),
            false => ("", "bar.arrive 1, 256;"),
        };
        let wait = format!("{first} wgmma.wait_group.sync.aligned 0; {last}");
        format!(
            "setp.ge.u32 %p3, %r1, 128; @%p3 bra OTHER; {} bra END;
             OTHER: bar.sync 1, 256; mov.u32 %r4, tile; sub.u32 %r2, %r1, 128; shl.b32 %r2, %r2, 5;
             add.u32 %r2, %r2, %r4; mov.u32 %r5, 0; st.shared.v4.u32 [%r2], {{%r5,%r5,%r5,%r5}};
             st.shared.v4.u32 [%r2+16], {{%r5,%r5,%r5,%r5}}; mov.u32 %r7, 16;
             st.global.u32 [%rd3], %r7; END:",
            product("bar.sync 2, 128;", &wait)
        )
    };
    let wrong = |release_first: bool| {
        let module = kernel(&body(release_first));
        let seeds = (0..SEEDS).filter(|&seed| {
            let launch = Launch::new("k").block([256, 1, 1]).config(seeded(seed));
            match run(&module, launch) {
                Ok((out, _)) => out[..256].iter().any(|&x| x != 16),
                Err(LaunchError::Fault(_)) => true,
                Err(other) => panic!("{other}"),
            }
        });
        Seen::by(&seeds.collect::<Vec<_>>())
    };
    assert_eq!(wrong(false).seeds, 0);
    let seen = wrong(true);
    println!("released: {seen:?} of {SEEDS}");
    seen.at_least(LATE, PAIRS);
}

#[test]
fn whoever_spins_on_the_bytes_themselves_sees_them_come() {
    // No wait anywhere: the copy must land some day although its reader never stops.
    let body = loading(
        "ld.volatile.shared.u32 %r8, [%r4+1020]; SPIN: ld.volatile.shared.u32 %r8, [%r4+1020];
         setp.ne.u32 %p2, %r8, 255; @%p2 bra SPIN;",
    );
    assert_eq!(
        crate::noticed(&body, &crate::one_cta(64), &|i| i as u32),
        []
    );
}
