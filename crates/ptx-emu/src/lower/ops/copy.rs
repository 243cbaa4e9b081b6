//! `cp`: the thread's own asynchronous copies; bulk copies have their own module.

use super::bulk;
use super::row::bare;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly, immediate_u32};
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take_first("reduce") {
        form.words.exactly("async")?;
        form.words.exactly("bulk")?;
        return bulk::lower(emitter, form, true);
    }
    form.words.exactly("async")?;
    if form.words.take_first("bulk") {
        return bulk::lower(emitter, form, false);
    }
    if form.words.take_first("commit_group") {
        return bare(emitter, &form, Op::CpAsyncCommit);
    }
    if form.words.take_first("wait_all") {
        return bare(emitter, &form, Op::CpAsyncWait { n: 0, all: true });
    }
    if form.words.take_first("wait_group") {
        form.words.finish()?;
        let [n] = exactly(form.operands)?;
        let n = immediate_u32(n)?;
        emitter.emit(Op::CpAsyncWait { n, all: false });
        return Ok(());
    }
    if form.words.take_first("mbarrier") {
        return arrive(emitter, form);
    }
    copy(emitter, form)
}

fn arrive<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("arrive")?;
    let noinc = form.words.take("noinc");
    let spaces = &[("shared", Space::Shared), ("shared::cta", Space::Shared)];
    let space = form.words.pick(spaces).unwrap_or(Space::Generic);
    form.words.end(&["b64"])?;
    let [address] = exactly(form.operands)?;
    let addr = emitter.addr(address, space)?;
    emitter.emit(Op::CpAsyncMbarArrive { noinc, space, addr });
    Ok(())
}

fn copy<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let l2_only = form
        .words
        .need(&[("ca", false), ("cg", true)], "ca or cg")?;
    if !form.words.take("shared") && !form.words.take("shared::cta") {
        return Err(Problem::MissingModifier("shared"));
    }
    form.words.exactly("global")?;
    let hint = form.words.hints();
    form.words.finish()?;
    let ([dst, src, size], rest) = at_least(form.operands, 1 + usize::from(hint))?;
    let bytes = immediate_u32(size)?;
    if !matches!(bytes, 4 | 8 | 16) || (l2_only && bytes != 16) {
        return illegal("cp.async copies 4, 8 or 16 bytes, and .cg 16 only");
    }
    let rest = match (hint, rest) {
        (true, [rest @ .., policy]) => {
            emitter.s64(policy, Num::B64)?;
            rest
        }
        (true, []) => return illegal("L2::cache_hint needs a policy"),
        (false, rest) => rest,
    };
    let dst = emitter.addr(dst, Space::Shared)?;
    let src = emitter.addr(src, Space::Global)?;
    let (src_bytes, ignore) = match rest {
        [] => (None, None),
        [last] => source_limit(emitter, last)?,
        _ => return illegal("too many operands"),
    };
    emitter.emit(Op::CpAsync {
        dst,
        src,
        bytes: bytes as u8,
        src_bytes,
        ignore,
    });
    Ok(())
}

/// A source size, or a predicate for writing zeros.
fn source_limit<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
) -> Lowered<(Option<R32>, Option<P>)> {
    let register = emitter.register(operand)?;
    let negated = matches!(operand, Operand::Not(_));
    if !negated && register.is_none_or(|register| register.bits != 1) {
        return Ok((Some(emitter.s32(operand, Num::U32)?), None));
    }
    let (p, negate) = emitter.sp(operand)?;
    if !negate {
        return Ok((None, Some(p)));
    }
    let d = emitter.temp_pred();
    emitter.emit(Op::PMov { d, a: p, negate });
    Ok((None, Some(d)))
}
