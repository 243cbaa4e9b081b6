//! Exchanges inside a warp.

use std::fmt::Write;

use crate::case::{Case, Launch};
use crate::kernel::Kernel;
use crate::values::Ty::*;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [shuffles(), votes(), matches(), reductions(), masks()].concat()
}

/// A one-warp kernel whose lane reads word `lane` of the input into `%r0` and its address
/// of the output into `%l0`; successive results lie 32 words apart.
fn warp(name: impl Into<String>, words: Vec<u64>, results: usize) -> Kernel {
    Kernel::new(name, Launch::single(32))
        .input(U32.pack(&words))
        .output(results * 128)
        .body("mad.wide.u32 %l1, %thread, 4, %in0;\nld.global.b32 %r0, [%l1];\nmad.wide.u32 %l0, %thread, 4, %out0;")
}

fn put(result: usize, register: &str) -> String {
    format!("st.global.b32 [%l0+{}], {register};\n", result * 128)
}

fn words() -> Vec<u64> {
    U32.random(71, 32)
}

fn shuffles() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in ["up", "down", "bfly", "idx"] {
        for (label, clamp) in [
            ("zero", 0),
            ("full", 0x1f),
            ("width-8", 0x181f),
            ("width-16", 0x101f),
            ("width-8-zero", 0x1800),
            ("bound-20", 0x14),
        ] {
            let mut body = String::new();
            let sources = ["0", "1", "2", "5", "8", "16", "31", "33", "%thread", "%r0"];
            for (i, source) in sources.iter().enumerate() {
                let _ = write!(
                    body,
                    "shfl.sync.{mode}.b32 %r1|%p0, %r0, {source}, {clamp}, 0xffffffff;\nselp.u32 %r2, 1, 0, %p0;\n{}{}",
                    put(2 * i, "%r1"),
                    put(2 * i + 1, "%r2")
                );
            }
            let name = format!("shfl.sync.{mode}.b32/{label}");
            cases.push(warp(name, words(), 2 * sources.len()).body(&body).case());
        }
    }
    let divergent = format!(
        "and.b32 %r3, %thread, 1;\nsetp.eq.u32 %p1, %r3, 0;\nmov.b32 %r1, 7;\n@!%p1 bra ODD;\n\
         shfl.sync.bfly.b32 %r1, %r0, 2, 0x1f, 0x55555555;\nbra MEET;\n\
         ODD:\nshfl.sync.bfly.b32 %r1, %r0, 4, 0x1f, 0xaaaaaaaa;\nMEET:\n{}",
        put(0, "%r1")
    );
    cases.push(
        warp("shfl.sync.bfly.b32/divergent-halves", words(), 1)
            .body(&divergent)
            .case(),
    );
    cases
}

fn votes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (label, setup) in [
        ("mixed", "setp.gt.u32 %p0, %r0, 0x80000000;\n"),
        ("none", "setp.gt.u32 %p0, %thread, 40;\n"),
        ("every", "setp.lt.u32 %p0, %thread, 40;\n"),
    ] {
        let mut body = setup.to_owned();
        for (i, mode) in ["all", "any", "uni"].iter().enumerate() {
            let _ = write!(
                body,
                "vote.sync.{mode}.pred %p1, %p0, 0xffffffff;\nselp.u32 %r1, 1, 0, %p1;\n{}\
                 vote.sync.{mode}.pred %p1, !%p0, 0xffffffff;\nselp.u32 %r1, 1, 0, %p1;\n{}",
                put(2 * i, "%r1"),
                put(2 * i + 1, "%r1")
            );
        }
        let _ = write!(
            body,
            "vote.sync.ballot.b32 %r1, %p0, 0xffffffff;\n{}vote.sync.ballot.b32 %r1, !%p0, 0xffffffff;\n{}",
            put(6, "%r1"),
            put(7, "%r1")
        );
        cases.push(
            warp(format!("vote.sync/{label}"), words(), 8)
                .forms([
                    "vote.sync.all.pred",
                    "vote.sync.any.pred",
                    "vote.sync.uni.pred",
                    "vote.sync.ballot.b32",
                ])
                .body(&body)
                .case(),
        );
    }
    let partial = format!(
        "setp.lt.u32 %p1, %thread, 12;\nsetp.gt.u32 %p0, %r0, 0x80000000;\nmov.b32 %r1, 0;\n@!%p1 bra REST;\n\
         vote.sync.ballot.b32 %r1, %p0, 0xfff;\nbra MEET;\nREST:\nvote.sync.ballot.b32 %r1, %p0, 0xfffff000;\nMEET:\n{}",
        put(0, "%r1")
    );
    cases.push(
        warp("vote.sync.ballot.b32/partial", words(), 1)
            .body(&partial)
            .case(),
    );
    cases
}

fn matches() -> Vec<Case> {
    let few: Vec<u64> = (0..32).map(|i| [3, 9, 3, 77, 9][i % 5] as u64).collect();
    let any = format!(
        "match.any.sync.b32 %r1, %r0, 0xffffffff;\n{}cvt.u64.u32 %l2, %r0;\nshl.b64 %l2, %l2, 33;\n\
         match.any.sync.b64 %r1, %l2, 0xffffffff;\n{}",
        put(0, "%r1"),
        put(1, "%r1")
    );
    let all = format!(
        "match.all.sync.b32 %r1|%p0, %r0, 0xffffffff;\nselp.u32 %r2, 1, 0, %p0;\n{}{}\
         cvt.u64.u32 %l2, %r0;\nmatch.all.sync.b64 %r1|%p0, %l2, 0xffffffff;\nselp.u32 %r2, 1, 0, %p0;\n{}{}",
        put(0, "%r1"),
        put(1, "%r2"),
        put(2, "%r1"),
        put(3, "%r2")
    );
    let all_forms = ["match.all.sync.b32", "match.all.sync.b64"];
    vec![
        warp("match.any.sync.b32/five-values", few.clone(), 2)
            .forms(["match.any.sync.b32", "match.any.sync.b64"])
            .body(&any)
            .case(),
        warp("match.all.sync.b32/different", few, 4)
            .forms(all_forms)
            .body(&all)
            .case(),
        warp("match.all.sync.b32/same", vec![5; 32], 4)
            .forms(all_forms)
            .body(&all)
            .case(),
    ]
}

fn reductions() -> Vec<Case> {
    let forms = [
        "add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32",
        "xor.b32",
    ];
    let case = |op: &&str| {
        let form = format!("redux.sync.{op}");
        let body = format!(
            "{form} %r1, %r0, 0xffffffff;\n{}setp.lt.u32 %p0, %thread, 20;\nmov.b32 %r1, 0;\n@!%p0 bra REST;\n\
             {form} %r1, %r0, 0xfffff;\nbra MEET;\nREST:\n{form} %r1, %r0, 0xfff00000;\nMEET:\n{}",
            put(0, "%r1"),
            put(1, "%r1")
        );
        warp(form.clone(), words(), 2).body(&body).case()
    };
    forms.iter().map(case).collect()
}

fn masks() -> Vec<Case> {
    let elect = format!(
        "elect.sync %r1|%p0, 0xffffffff;\nselp.u32 %r2, 1, 0, %p0;\n{}{}",
        put(0, "%r1"),
        put(1, "%r2")
    );
    let part = format!(
        "setp.lt.u32 %p1, %thread, 9;\nmov.b32 %r1, 99;\nmov.b32 %r2, 99;\n@%p1 bra MEET;\n\
         elect.sync %r1|%p0, 0xfffffe00;\nselp.u32 %r2, 1, 0, %p0;\nMEET:\n{}{}",
        put(0, "%r1"),
        put(1, "%r2")
    );
    let active = format!("activemask.b32 %r1;\n{}", put(0, "%r1"));
    let mut sync = String::from(
        "mov.u32 %r1, slots;\nmad.lo.u32 %r2, %thread, 4, %r1;\nst.shared.b32 [%r2], %r0;\nbar.warp.sync 0xffffffff;\n",
    );
    let _ = write!(
        sync,
        "xor.b32 %r3, %thread, 21;\nmad.lo.u32 %r2, %r3, 4, %r1;\nld.shared.b32 %r4, [%r2];\n{}",
        put(0, "%r4")
    );
    vec![
        warp("elect.sync/full", words(), 2).body(&elect).case(),
        warp("elect.sync/upper", words(), 2).body(&part).case(),
        warp("activemask.b32/converged", words(), 1)
            .body(&active)
            .case(),
        warp("bar.warp.sync/exchange", words(), 1)
            .declare(".shared .align 4 .b8 slots[128];")
            .body(&sync)
            .case(),
    ]
}
