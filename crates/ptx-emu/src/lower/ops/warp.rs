//! Exchange among the lanes of a warp.

use super::row::row;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{exactly, wrong};
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "elect" => {
            form.words.end(&["sync"])?;
            let [result, mask] = exactly(form.operands)?;
            let mask = emitter.s32(mask, Num::B32)?;
            let Operand::Pair(d, p) = result else {
                return wrong("a register and a predicate `d|p`", result);
            };
            let d = emitter.dslot(d, 32)?;
            let p = emitter.dp_or_sink(p)?;
            emitter.emit(Op::Elect { d, p, mask });
            Ok(())
        }
        "shfl" => shuffle(emitter, form),
        "vote" => vote(emitter, form),
        "match" => matching(emitter, form),
        _ => redux(emitter, form),
    }
}

fn synchronised(form: &mut Form<'_, '_>) -> Lowered<()> {
    match form.words.take("sync") {
        true => Ok(()),
        false => Err(Problem::MissingModifier(
            "sync (sm_70 and later have no other form)",
        )),
    }
}

/// `d` or `d|p`
fn result_pair<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
) -> Lowered<(R32, Option<P>)> {
    match operand {
        Operand::Pair(d, p) => {
            let d = match &**d {
                Operand::Sink => emitter.temp32(),
                d => emitter.d32(d, 32)?,
            };
            Ok((d, Some(emitter.dp_or_sink(p)?)))
        }
        d => Ok((emitter.d32(d, 32)?, None)),
    }
}

fn shuffle<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    synchronised(&mut form)?;
    let modes = &[
        ("up", ShflMode::Up),
        ("down", ShflMode::Down),
        ("bfly", ShflMode::Bfly),
        ("idx", ShflMode::Idx),
    ];
    let mode = form.words.need(modes, "up, down, bfly or idx")?;
    form.words.end(&["b32"])?;
    let [result, a, b, c, mask] = exactly(form.operands)?;
    let a = emitter.s32(a, Num::B32)?;
    let b = emitter.s32(b, Num::B32)?;
    let c = emitter.s32(c, Num::B32)?;
    let mask = emitter.s32(mask, Num::B32)?;
    let (d, p) = result_pair(emitter, result)?;
    emitter.emit(Op::Shfl {
        mode,
        d,
        p,
        a,
        b,
        c,
        mask,
    });
    Ok(())
}

fn vote<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    synchronised(&mut form)?;
    let modes = &[
        ("all", Vote::All),
        ("any", Vote::Any),
        ("uni", Vote::Uni),
        ("ballot", Vote::Ballot),
    ];
    let vote = form.words.need(modes, "all, any, uni or ballot")?;
    let [d, p, mask] = exactly(form.operands)?;
    let (p, negate) = emitter.sp(p)?;
    let mask = emitter.s32(mask, Num::B32)?;
    if vote == Vote::Ballot {
        form.words.end(&["b32"])?;
        let d = emitter.d32(d, 32)?;
        emitter.emit(Op::Ballot { d, p, negate, mask });
    } else {
        form.words.end(&["pred"])?;
        let d = emitter.dp(d)?;
        emitter.emit(Op::VotePred {
            vote,
            d,
            p,
            negate,
            mask,
        });
    }
    Ok(())
}

fn matching<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    synchronised(&mut form)?;
    let all = form
        .words
        .need(&[("any", false), ("all", true)], "any or all")?;
    let ty = form.words.last_ty()?;
    if !matches!(ty, Num::B32 | Num::B64) {
        return illegal("match is for .b32 and .b64");
    }
    let [result, a, mask] = exactly(form.operands)?;
    let a = emitter.source(a, ty)?;
    let mask = emitter.s32(mask, Num::B32)?;
    let (d, p) = result_pair(emitter, result)?;
    if p.is_some() && !all {
        return illegal("match.any gives no predicate");
    }
    emitter.emit(Op::Match { all, d, p, a, mask });
    Ok(())
}

fn redux<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    synchronised(&mut form)?;
    let words = &[
        ("add", "add"),
        ("min", "min"),
        ("max", "max"),
        ("and", "and"),
        ("or", "or"),
        ("xor", "xor"),
    ];
    let name = form.words.need(words, "an operation")?;
    let abs = form.words.take("abs");
    let nan = form.words.take("NaN");
    let ty = form.words.last_ty()?;
    if (abs || nan) && ty != Num::F32 {
        return illegal(".abs and .NaN go with .f32");
    }
    let signed = ty.is_signed();
    let op = match (name, ty) {
        ("add", Num::U32 | Num::S32) => Redux::Add,
        ("min", Num::U32 | Num::S32) if signed => Redux::MinS,
        ("max", Num::U32 | Num::S32) if signed => Redux::MaxS,
        ("min", Num::U32) => Redux::MinU,
        ("max", Num::U32) => Redux::MaxU,
        ("min", Num::F32) => Redux::MinF { abs, nan },
        ("max", Num::F32) => Redux::MaxF { abs, nan },
        ("and", Num::B32) => Redux::And,
        ("or", Num::B32) => Redux::Or,
        ("xor", Num::B32) => Redux::Xor,
        _ => return illegal("this reduction does not exist for this type"),
    };
    row!(emitter, form, Redux { op } [d: ty] = [a: ty, mask: Num::B32])
}
