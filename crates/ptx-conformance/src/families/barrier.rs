//! CTA barriers: named, counted, split into arrive and wait, and with reductions.

use crate::case::{Case, Launch};
use crate::kernel::Kernel;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [exchanges(), hand_over(), reductions()].concat()
}

const SLOTS: &str = ".shared .align 4 .b8 slots[512];";

/// Threads write their slot, meet, and read another warp's slot.
fn exchange(name: &str, meet: &str) -> Case {
    Kernel::new(name, Launch::single(128))
        .declare(SLOTS)
        .output(512)
        .body(&format!(
            "mov.u32 %r0, slots;\nmad.lo.u32 %r1, %thread, 4, %r0;\nmul.lo.u32 %r2, %thread, 13;\nst.shared.b32 [%r1], %r2;\n{meet}\n\
             xor.b32 %r3, %thread, 95;\nmad.lo.u32 %r1, %r3, 4, %r0;\nld.shared.b32 %r4, [%r1];\n\
             mad.wide.u32 %l0, %thread, 4, %out0;\nst.global.b32 [%l0], %r4;"
        ))
        .case()
}

fn exchanges() -> Vec<Case> {
    let split = "setp.lt.u32 %p0, %thread, 64;\n@%p0 bra LOW;\nbarrier.sync 2;\nbra MEET;\nLOW:\nbarrier.sync 2;\nMEET:";
    let register = "mov.b32 %r9, 7;\nmov.b32 %r10, 128;\nbar.sync %r9, %r10;";
    vec![
        exchange("bar.sync/zero", "bar.sync 0;"),
        exchange("bar.sync/named-and-counted", "bar.sync 3, 128;"),
        exchange("bar.sync/in-registers", register),
        exchange("bar.cta.sync/named", "bar.cta.sync 1;"),
        exchange("barrier.sync/divergent-sites", split),
        exchange(
            "barrier.sync.aligned/counted",
            "barrier.sync.aligned 5, 128;",
        ),
        exchange("barrier.cta.sync/named", "barrier.cta.sync 15;"),
    ]
}

/// Two warps fill slots and arrive; two wait, read, and hand back on a second barrier.
fn hand_over() -> Vec<Case> {
    let mut cases = Vec::new();
    for (arrive, sync) in [
        ("bar.arrive", "bar.sync"),
        ("barrier.arrive", "barrier.sync"),
        ("barrier.cta.arrive.aligned", "barrier.cta.sync.aligned"),
    ] {
        cases.push(
            Kernel::new(format!("{arrive}/producer-and-consumer"), Launch::single(128))
                .forms([arrive, sync])
                .declare(SLOTS)
                .output(1024)
                .body(&format!(
                    "mov.u32 %r0, slots;\nand.b32 %r1, %thread, 63;\nmad.lo.u32 %r2, %r1, 4, %r0;\nmov.b32 %r3, 0;\n\
                     setp.ge.u32 %p0, %thread, 64;\n@%p0 bra CONSUME;\n\
                     PRODUCE:\nmad.lo.u32 %r4, %r3, 1000, %thread;\nst.shared.b32 [%r2], %r4;\n{arrive} 1, 128;\n{sync} 2, 128;\n\
                     add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 4;\n@%p1 bra PRODUCE;\nbra OUT;\n\
                     CONSUME:\n{sync} 1, 128;\nxor.b32 %r5, %r1, 33;\nmad.lo.u32 %r6, %r5, 4, %r0;\nld.shared.b32 %r7, [%r6];\n{arrive} 2, 128;\n\
                     mad.lo.u32 %r8, %r3, 64, %r1;\nmad.wide.u32 %l0, %r8, 4, %out0;\nst.global.b32 [%l0], %r7;\n\
                     add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 4;\n@%p1 bra CONSUME;\nOUT:"
                ))
                .case(),
        );
    }
    cases
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for prefix in ["bar.red", "barrier.red", "barrier.cta.red.aligned"] {
        for (label, condition) in [
            ("mixed", "gt.u32 %p0, %thread, 70"),
            ("every", "lt.u32 %p0, %thread, 500"),
            ("none", "gt.u32 %p0, %thread, 500"),
        ] {
            cases.push(
                Kernel::new(format!("{prefix}/{label}"), Launch::single(128))
                    .forms([format!("{prefix}.popc.u32"), format!("{prefix}.and.pred"), format!("{prefix}.or.pred")])
                    .output(512)
                    .body(&format!(
                        "setp.{condition};\n{prefix}.popc.u32 %r0, 1, %p0;\n{prefix}.popc.u32 %r1, 1, 128, !%p0;\n\
                         {prefix}.and.pred %p1, 2, %p0;\n{prefix}.or.pred %p2, 3, %p0;\n\
                         selp.u32 %r2, 0x10000, 0, %p1;\nselp.u32 %r3, 0x20000, 0, %p2;\nshl.b32 %r1, %r1, 8;\n\
                         or.b32 %r0, %r0, %r1;\nor.b32 %r0, %r0, %r2;\nor.b32 %r0, %r0, %r3;\n\
                         mad.wide.u32 %l0, %thread, 4, %out0;\nst.global.b32 [%l0], %r0;"
                    ))
                    .case(),
            );
        }
    }
    cases
}
