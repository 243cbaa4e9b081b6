//! Predication, divergence, loops, calls and indirect branches.

use crate::case::{Case, Launch};
use crate::elementwise::Elementwise;
use crate::kernel::Kernel;
use crate::values::Ty::*;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [branches(), loops(), calls(), tables()].concat()
}

fn indices() -> Vec<u64> {
    (0..192).collect()
}

fn over_indices(name: &str, body: &str) -> Elementwise {
    Elementwise::new(name)
        .operand(U32, indices())
        .result(U32)
        .body(body)
}

fn branches() -> Vec<Case> {
    let predication = "setp.lt.u32 %p0, %a, 77;\nmov.b32 %d, 5;\n@%p0 add.u32 %d, %a, 100;\n@!%p0 mul.lo.u32 %d, %a, %a;";
    let nested = "and.b32 %r0, %a, 1;\nsetp.eq.u32 %p0, %r0, 0;\nand.b32 %r1, %a, 6;\nsetp.eq.u32 %p1, %r1, 4;\n\
        mov.b32 %d, 1;\n@%p0 bra EVEN;\n@%p1 bra ODD_FOUR;\nmad.lo.u32 %d, %a, 3, %d;\nbra MEET_ODD;\n\
        ODD_FOUR:\nmad.lo.u32 %d, %a, 5, %d;\nMEET_ODD:\nadd.u32 %d, %d, 1000;\nbra MEET;\n\
        EVEN:\n@!%p1 bra MEET;\nmad.lo.u32 %d, %a, 7, %d;\nMEET:\nbar.warp.sync 0xffffffff;\n\
        shfl.sync.bfly.b32 %r2, %d, 1, 0x1f, 0xffffffff;\nadd.u32 %d, %d, %r2;";
    let early = "setp.gt.u32 %p0, %a, 90;\nmov.b32 %d, %a;\n@%p0 bra DONE;\nadd.u32 %d, %d, 11;";
    let uniform = "mov.b32 %d, %a;\nbra.uni SKIP;\nadd.u32 %d, %d, 1;\nSKIP:\nadd.u32 %d, %d, 2;";
    vec![
        over_indices("bra/predicated-instructions", predication).case(),
        over_indices("bra/nested-divergence", nested).case(),
        over_indices("bra/early-leave", early).case(),
        over_indices("bra.uni/over", uniform).case(),
        exits(),
    ]
}

/// Odd threads leave before the barrier, which must not wait for them.
fn exits() -> Case {
    Kernel::new("exit/before-barrier", Launch::single(128))
        .forms(["exit", "ret"])
        .output(128 * 4)
        .body(
            "and.b32 %r0, %thread, 1;\nsetp.ne.u32 %p0, %r0, 0;\nmad.wide.u32 %l0, %thread, 4, %out0;\n\
             st.global.b32 [%l0], %thread;\n@%p0 exit;\nsetp.gt.u32 %p1, %thread, 95;\n@%p1 ret;\n\
             bar.sync 0;\nadd.u32 %r1, %thread, 1000;\nst.global.b32 [%l0], %r1;",
        )
        .case()
}

fn loops() -> Vec<Case> {
    let collatz = "mov.b32 %d, 0;\nadd.u32 %r0, %a, 1;\nSTEP:\nsetp.le.u32 %p0, %r0, 1;\n@%p0 bra OUT;\n\
        and.b32 %r1, %r0, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra HALVE;\nmad.lo.u32 %r0, %r0, 3, 1;\nbra NEXT;\n\
        HALVE:\nshr.u32 %r0, %r0, 1;\nNEXT:\nadd.u32 %d, %d, 1;\nbra STEP;\nOUT:";
    let nested = "mov.b32 %d, 0;\nmov.b32 %r0, 0;\nOUTER:\nsetp.ge.u32 %p0, %r0, %a;\n@%p0 bra OUT;\nmov.b32 %r1, 0;\n\
        INNER:\nadd.u32 %d, %d, %r1;\nadd.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %d, 5000;\n@%p1 bra OUT;\n\
        setp.lt.u32 %p2, %r1, %r0;\n@%p2 bra INNER;\nadd.u32 %r0, %r0, 3;\nbra OUTER;\nOUT:";
    let last = "mov.b32 %d, %a;\nmov.b32 %r0, 10;\nAGAIN:\nmad.lo.u32 %d, %d, 5, 1;\nsub.u32 %r0, %r0, 1;\n\
        setp.ne.u32 %p0, %r0, 0;\n@%p0 bra.uni AGAIN;";
    vec![
        over_indices("bra/divergent-trip-counts", collatz).case(),
        over_indices("bra/nested-loops-with-break", nested).case(),
        over_indices("bra.uni/loop", last).case(),
    ]
}

const FUNCTIONS: &str = "
.func (.param .b32 result) twice_plus(.param .b32 x, .param .b32 y)
{
.reg .b32 %f<4>;
ld.param.b32 %f0, [x];
ld.param.b32 %f1, [y];
mad.lo.u32 %f2, %f0, 2, %f1;
st.param.b32 [result], %f2;
ret;
}
.func (.param .b32 result) triple_xor(.param .b32 x, .param .b32 y)
{
.reg .b32 %f<4>;
ld.param.b32 %f0, [x];
ld.param.b32 %f1, [y];
mul.lo.u32 %f2, %f0, 3;
xor.b32 %f2, %f2, %f1;
st.param.b32 [result], %f2;
ret;
}
.func (.param .align 16 .b8 result[16]) rotated(.param .align 16 .b8 block[16])
{
.reg .b32 %f<8>;
.reg .b16 %g<4>;
ld.param.v4.b32 {%f0, %f1, %f2, %f3}, [block];
ld.param.u8 %g0, [block+5];
cvt.u32.u16 %f4, %g0;
add.u32 %f0, %f0, %f4;
st.param.v2.b32 [result], {%f1, %f2};
st.param.b32 [result+8], %f3;
st.param.b32 [result+12], %f0;
ret;
}
.func (.param .b32 result) triangle(.param .b32 n)
{
.reg .b32 %f<4>;
.reg .pred %q;
ld.param.b32 %f0, [n];
setp.eq.u32 %q, %f0, 0;
@%q bra BASE;
sub.u32 %f1, %f0, 1;
{
.param .b32 argument;
.param .b32 answer;
st.param.b32 [argument], %f1;
call (answer), triangle, (argument);
ld.param.b32 %f2, [answer];
}
add.u32 %f0, %f0, %f2;
BASE:
st.param.b32 [result], %f0;
ret;
}
";

/// A call of `target` (a name, or a register and prototype) with `%a` and 7.
fn call(uniform: &str, target: &str, prototype: &str) -> String {
    format!(
        "{{\n.param .b32 x;\n.param .b32 y;\n.param .b32 back;\nst.param.b32 [x], %a;\nst.param.b32 [y], 7;\n\
         call{uniform} (back), {target}, (x, y){prototype};\nld.param.b32 %d, [back];\n}}\n"
    )
}

fn calls() -> Vec<Case> {
    let divergent = format!(
        "and.b32 %r0, %a, 3;\nsetp.eq.u32 %p0, %r0, 2;\nmov.b32 %d, 9;\n@!%p0 bra OVER;\n{}OVER:\nadd.u32 %d, %d, 1;",
        call("", "twice_plus", "")
    );
    let indirect = format!(
        "and.b32 %r0, %a, 1;\nsetp.eq.u32 %p0, %r0, 0;\nmov.u64 %l0, twice_plus;\nmov.u64 %l1, triple_xor;\n\
         selp.b64 %l2, %l0, %l1, %p0;\nKIND: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n{}",
        call("", "%l2", ", KIND")
    );
    let block = "{\n.param .align 16 .b8 x[16];\n.param .align 16 .b8 back[16];\nadd.u32 %r0, %a, 1;\nshl.b32 %r1, %a, 9;\n\
        st.param.v2.b32 [x], {%a, %r1};\nst.param.b32 [x+8], %r0;\nst.param.b32 [x+12], 77;\ncall.uni (back), rotated, (x);\n\
        ld.param.v4.b32 {%r2, %r3, %r4, %r5}, [back];\n}\nmad.lo.u32 %d, %r2, 31, %r3;\nmad.lo.u32 %d, %d, 31, %r4;\nmad.lo.u32 %d, %d, 31, %r5;";
    let recursion = "and.b32 %r0, %a, 15;\n{\n.param .b32 x;\n.param .b32 back;\nst.param.b32 [x], %r0;\ncall (back), triangle, (x);\nld.param.b32 %d, [back];\n}";
    let with = |name: &str, body: &str| over_indices(name, body).module(FUNCTIONS);
    vec![
        with("call.uni/direct", &call(".uni", "twice_plus", "")).case(),
        with("call/divergent", &divergent).case(),
        with("call/indirect", &indirect).case(),
        with("call.uni/block-arguments", block)
            .forms([
                "call.uni",
                "st.param.v2.b32",
                "ld.param.v4.b32",
                "ld.param.u8",
                "st.param.b32",
                "ld.param.b32",
            ])
            .case(),
        with("call/recursive", recursion).case(),
    ]
}

fn tables() -> Vec<Case> {
    let body = "rem.u32 %r0, %a, 3;\nTARGETS: .branchtargets ZERO, ONE, TWO;\nbrx.idx %r0, TARGETS;\n\
        ZERO:\nadd.u32 %d, %a, 1000;\nbra MEET;\nONE:\nmul.lo.u32 %d, %a, 7;\nbra MEET;\nTWO:\nxor.b32 %d, %a, 0xff;\nMEET:";
    let uniform = "mov.u32 %r0, %ctaid.x;\nTARGETS: .branchtargets ZERO, ONE;\nbrx.idx.uni %r0, TARGETS;\n\
        ZERO:\nadd.u32 %d, %a, 50;\nbra MEET;\nONE:\nmul.lo.u32 %d, %a, 3;\nMEET:";
    vec![
        over_indices("brx.idx/divergent", body).case(),
        over_indices("brx.idx.uni/by-cta", uniform).case(),
    ]
}
