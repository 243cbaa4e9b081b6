//! Data handed from one CTA to another by a flag in global memory.

use ptx_emu::Launch;

use crate::{Seen, planted_in};

const CTAS: u32 = 16;
const THREADS: u32 = 128;

/// Every CTA prepares a word per thread and raises its flag, waits for the next one's and takes
/// what that one has prepared. `%rd4` and `%rd5` are the places of the two words, `%rd6` and `%rd7`
/// those of the two flags, `%r7` is the word, and `%p1` holds for the thread with the flag.
fn handed_over(name: &str, produce: &str, consume: &str) -> Seen {
    let body = format!(
        "setp.eq.u32 %p1, %r1, 0;
         mov.u32 %r2, %ctaid.x; add.u32 %r3, %r2, 1; rem.u32 %r3, %r3, {CTAS};
         mad.lo.u32 %r7, %r2, {THREADS}, %r1; mad.lo.u32 %r8, %r3, {THREADS}, %r1;
         mul.wide.u32 %rd4, %r7, 4; add.s64 %rd3, %rd1, %rd4; add.s64 %rd4, %rd8, %rd4;
         mul.wide.u32 %rd5, %r8, 4; add.s64 %rd5, %rd8, %rd5;
         mul.wide.u32 %rd6, %r2, 4; add.s64 %rd6, %rd8, %rd6;
         mul.wide.u32 %rd7, %r3, 4; add.s64 %rd7, %rd8, %rd7;
         {produce}
         @!%p1 bra GO;
         POLL: ld.acquire.gpu.global.u32 %r9, [%rd7]; setp.lt.u32 %p3, %r9, {RAISED}; @%p3 bra POLL;
         GO: {consume}
         ld.global.u32 %r10, [%rd5+32768]; st.global.u32 [%rd3], %r10;"
    );
    let launch = Launch::new("k").grid([CTAS, 1, 1]).block([THREADS, 1, 1]);
    let words = CTAS * THREADS;
    planted_in(&launch, name, &body, &|i| (i as u32 + THREADS) % words)
}

/// More than the words that stand there before.
const RAISED: u32 = 0x0010_0000;
const WRITE: &str = "st.global.u32 [%rd4+32768], %r7;";
const BARRIER: &str = "bar.sync 0;";

fn release() -> String {
    format!("@%p1 st.release.gpu.global.u32 [%rd6], {RAISED};")
}

#[test]
fn a_flag_raised_before_the_other_warps_have_written() {
    let produce = format!("{WRITE} <<bar.sync 0;>> {}", release());
    handed_over("release", &produce, BARRIER).at_least(98, 55);
    let produce = format!(
        "{WRITE} <<bar.sync 0;>> fence.acq_rel.gpu;
         @%p1 atom.global.add.u32 %r11, [%rd6], {RAISED};"
    );
    handed_over("ticket", &produce, BARRIER).at_least(98, 55);
}

#[test]
fn a_flag_raised_before_the_data() {
    // Without what is taken out the word is written after the flag.
    let late = format!("setp.eq.u32 %p4, %r12, 0; @%p4 {WRITE}");
    let produce = format!(
        "mov.u32 %r12, 0; <<{WRITE} mov.u32 %r12, 1;>> bar.sync 0; {} {late}",
        release()
    );
    handed_over("first", &produce, BARRIER).at_least(114, 60);
}

#[test]
fn a_flag_that_only_one_warp_waits_for() {
    let produce = format!("{WRITE} bar.sync 0; {}", release());
    handed_over("wait", &produce, "<<bar.sync 0;>>").at_least(114, 60);
}
