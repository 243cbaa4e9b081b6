//! Missing and wrong barriers between warps.

use ptx_emu::Launch;

use crate::{planted, planted_in};

/// Address of the word of thread `%r1` in `%r2`, of its neighbour a warp further on in `%r3`.
const NEIGHBOURS: &str = "shl.b32 %r2, %r1, 2; mov.u32 %r4, tile; add.u32 %r2, %r2, %r4;
    mov.u32 %r5, %ntid.x; add.u32 %r6, %r1, 32; rem.u32 %r6, %r6, %r5; shl.b32 %r3, %r6, 2;
    add.u32 %r3, %r3, %r4;";

/// Words that neighbours read and then overwrite, twice, with the barrier in between that may be
/// missing.
const OVERWRITE: &str =
    "st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r7, [%r3]; <<bar.sync 0;>>
    add.u32 %r8, %r1, 1000; st.shared.u32 [%r2], %r8; bar.sync 0;
    ld.shared.u32 %r9, [%r3]; sub.u32 %r9, %r9, 1000; min.u32 %r10, %r7, %r9;
    max.u32 %r11, %r7, %r9; shl.b32 %r11, %r11, 16; or.b32 %r10, %r10, %r11;
    st.global.u32 [%rd3], %r10;";

fn neighbour(threads: usize) -> impl Fn(usize) -> u32 {
    move |i| ((i + 32) % threads) as u32
}

#[test]
fn a_barrier_missing_before_a_read() {
    for threads in [64, 128, 256, 1024] {
        let body = format!(
            "{NEIGHBOURS} st.shared.u32 [%r2], %r1; <<bar.sync 0;>> ld.shared.u32 %r7, [%r3];
             st.global.u32 [%rd3], %r7;"
        );
        let seen = planted("read", &body, threads, &neighbour(threads as usize));
        seen.at_least(108, 60);
    }
}

#[test]
fn a_barrier_missing_after_one_warp_has_filled_a_table() {
    for (warp, threads) in [(0, 256), (7, 256), (0, 128), (3, 128)] {
        let body = format!(
            "mov.u32 %r4, tile; shl.b32 %r5, %r19, 2; add.u32 %r5, %r4, %r5;
             setp.eq.u32 %p1, %r18, {warp}; @%p1 st.shared.u32 [%r5], %r19; <<bar.sync 0;>>
             ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd3], %r7;"
        );
        let seen = planted("table", &body, threads, &|i| i as u32 % 32);
        seen.at_least(88, 54);
    }
}

#[test]
fn a_barrier_missing_before_an_overwrite() {
    let body = format!("{NEIGHBOURS} {OVERWRITE}");
    for threads in [64, 256] {
        let right = |i: usize| neighbour(threads as usize)(i) * 0x1_0001;
        let seen = planted("overwrite", &body, threads, &right);
        seen.at_least(86, 54);
    }
}

/// Most of its clusters have no slow warps.
#[test]
fn barriers_missing_in_a_large_grid() {
    let (ctas, threads) = (64, 256);
    let launch = Launch::new("k").grid([ctas, 1, 1]).block([threads, 1, 1]);
    let own = format!(
        "{NEIGHBOURS} mov.u32 %r20, %ctaid.x; mad.lo.u32 %r20, %r20, %r5, %r1;
         mul.wide.u32 %rd2, %r20, 4; add.s64 %rd3, %rd1, %rd2;"
    );
    let after = format!(
        "{own} mov.u32 %r22, tile; shl.b32 %r23, %r19, 2; add.u32 %r22, %r22, %r23;
         setp.eq.u32 %p1, %r18, 7; @%p1 st.shared.u32 [%r22], %r19; <<bar.sync 0;>>
         ld.shared.u32 %r7, [%r22]; st.global.u32 [%rd3], %r7;"
    );
    planted_in(&launch, "table", &after, &|i| i as u32 % 32).at_least(120, 60);
    let overwrite = format!("{own} {OVERWRITE}");
    let right = |i: usize| neighbour(256)(i % 256) * 0x1_0001;
    planted_in(&launch, "overwrite", &overwrite, &right).at_least(120, 60);
}

#[test]
fn a_barrier_missing_at_the_end_of_a_ring() {
    // Four slots are filled, read by the neighbours, and filled again.
    let body = format!(
        "{NEIGHBOURS} mov.u32 %r12, 0; mov.u32 %r13, 0;
         ROUND: mov.u32 %r14, 0;
         FILL: shl.b32 %r15, %r14, 10; add.u32 %r16, %r2, %r15; add.u32 %r17, %r1, %r13;
         st.shared.u32 [%r16], %r17; add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, 4; @%p1 bra FILL;
         bar.sync 0; mov.u32 %r14, 0;
         READ: shl.b32 %r15, %r14, 10; add.u32 %r16, %r3, %r15; ld.shared.u32 %r17, [%r16];
         add.u32 %r12, %r12, %r17; add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, 4; @%p1 bra READ;
         <<bar.sync 0;>>
         add.u32 %r13, %r13, 1; setp.lt.u32 %p1, %r13, 6; @%p1 bra ROUND;
         st.global.u32 [%rd3], %r12;"
    );
    let right = |i: usize| 24 * neighbour(256)(i) + 4 * 15;
    let seen = planted("ring", &body, 256, &right);
    seen.at_least(114, 60);
}

#[test]
fn a_named_barrier_for_too_few_threads() {
    // Four warps meet in pairs where all of them should.
    let good = format!(
        "{NEIGHBOURS} st.shared.u32 [%r2], %r1; <<bar.sync 0;>> bar.sync 1, 64;
         ld.shared.u32 %r7, [%r3]; st.global.u32 [%rd3], %r7;"
    );
    let seen = planted("named", &good, 128, &neighbour(128));
    seen.at_least(98, 56);
}

/// When the flag is raised the consumer is asleep and nobody else awake.
#[test]
fn a_barrier_announced_before_the_data_are_written() {
    let body = "mov.u32 %r4, tile; shl.b32 %r5, %r19, 2; add.u32 %r5, %r4, %r5; mov.u32 %r7, %r19;
         setp.ne.u32 %p1, %r18, 0; @%p1 bra WAIT;
         <<st.shared.u32 [%r5], %r19; bar.arrive 1, 64; bra DONE;>>
         bar.arrive 1, 64; st.shared.u32 [%r5], %r19; bra DONE;
         WAIT: bar.sync 1, 64; ld.shared.u32 %r7, [%r5];
         DONE: st.global.u32 [%rd3], %r7;";
    let seen = planted("announced", body, 64, &|i| i as u32 % 32);
    seen.at_least(45, 34);
}

#[test]
fn a_sum_over_warps_without_atomics() {
    let body = "mov.u32 %r4, tile; setp.eq.u32 %p1, %r1, 0; mov.u32 %r5, 0;
         @%p1 st.shared.u32 [%r4], %r5; bar.sync 0; setp.ne.u32 %p2, %r19, 0; @%p2 bra MET;
         <<atom.shared.add.u32 %r6, [%r4], 1; bra MET;>>
         ld.shared.u32 %r6, [%r4]; add.u32 %r6, %r6, 1; st.shared.u32 [%r4], %r6;
         MET: bar.sync 0; ld.shared.u32 %r7, [%r4]; st.global.u32 [%rd3], %r7;";
    let seen = planted("lost update", body, 256, &|_| 8);
    seen.at_least(100, 57);
}

#[test]
fn a_tree_sum_without_its_barriers() {
    let body = "mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4;
         st.shared.u32 [%r2], %r1; mov.u32 %r5, 128; bar.sync 0;
         STEP: setp.ge.u32 %p1, %r1, %r5; @%p1 bra SKIP; shl.b32 %r6, %r5, 2; add.u32 %r6, %r6, %r2;
         ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r8, [%r2]; add.u32 %r7, %r7, %r8;
         st.shared.u32 [%r2], %r7;
         SKIP: <<bar.sync 0;>> shr.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra STEP;
         bar.sync 0; ld.shared.u32 %r9, [%r4]; st.global.u32 [%rd3], %r9;";
    let seen = planted("tree", body, 256, &|_| 255 * 128);
    seen.at_least(88, 54);
}
