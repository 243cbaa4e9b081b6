//! Bitwise logic, shifts and bit fields.

use super::integer::{binary_op, unary_op, width};
use super::row::row;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{exactly, immediate_u32, wrong};
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "and" | "or" | "xor" => logic(emitter, form),
        "not" | "cnot" => not(emitter, form),
        "shl" | "shr" => shift(emitter, form),
        "lop3" => lop3(emitter, form),
        "shf" => funnel(emitter, form),
        "prmt" => permute(emitter, form),
        "bfe" => extract(emitter, form),
        "bfi" => insert(emitter, form),
        "bfind" | "popc" | "clz" => count(emitter, form),
        "bmsk" | "szext" => mask(emitter, form),
        "brev" => {
            let ty = form.words.last_ty()?;
            match ty {
                Num::B32 | Num::B64 => unary_op(emitter, &form, ty, IUn::Brev),
                _ => illegal("brev is for .b32 and .b64"),
            }
        }
        _ => {
            form.words.end(&["b32"])?;
            let ty = Num::B32;
            row!(emitter, form, Fns {} [d: ty] = [mask: ty, base: ty, offset: Num::S32])
        }
    }
}

fn untyped(ty: Num) -> Lowered<Num> {
    match ty {
        Num::B16 | Num::B32 | Num::B64 => Ok(ty),
        _ => illegal("the type must be .b16, .b32 or .b64"),
    }
}

fn logic<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take("pred") {
        return predicate_logic(emitter, form);
    }
    let ty = untyped(form.words.ty()?)?;
    form.words.finish()?;
    let op = match form.opcode {
        "and" => IBin::And,
        "or" => IBin::Or,
        _ => IBin::Xor,
    };
    binary_op(emitter, &form, ty, op)
}

fn predicate_logic<'a>(emitter: &mut Emitter<'_, 'a>, form: Form<'_, 'a>) -> Lowered<()> {
    form.words.finish()?;
    let op = match form.opcode {
        "and" => BoolOp::And,
        "or" => BoolOp::Or,
        _ => BoolOp::Xor,
    };
    let [d, a, b] = exactly(form.operands)?;
    let (a, na) = emitter.sp(a)?;
    let (b, nb) = emitter.sp(b)?;
    let d = emitter.dp(d)?;
    emitter.emit(Op::PLogic {
        op,
        d,
        a,
        na,
        b,
        nb,
    });
    Ok(())
}

fn not<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take("pred") {
        form.words.finish()?;
        let [d, a] = exactly(form.operands)?;
        let (a, negated) = emitter.sp(a)?;
        let d = emitter.dp(d)?;
        emitter.emit(Op::PMov {
            d,
            a,
            negate: !negated,
        });
        return Ok(());
    }
    let ty = untyped(form.words.ty()?)?;
    form.words.finish()?;
    let op = if form.opcode == "not" {
        IUn::Not
    } else {
        IUn::Cnot
    };
    unary_op(emitter, &form, ty, op)
}

fn shift<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    if !ty.is_integer() || ty.bits() < 16 || ty.bits() > 64 {
        return illegal("shifts are for 16-, 32- and 64-bit types");
    }
    let op = match (form.opcode, ty.is_signed()) {
        ("shl", _) => IBin::Shl,
        (_, true) => IBin::ShrS,
        (_, false) => IBin::ShrU,
    };
    if ty.bits() == 64 {
        return row!(emitter, form, Shift64 { op } [d: ty] = [a: ty, b: Num::U32]);
    }
    let w = width(ty)?;
    row!(emitter, form, Bin32 { w, op } [d: ty] = [a: ty, b: Num::U32])
}

fn lut(operand: &Operand<'_>) -> Lowered<u8> {
    match u8::try_from(immediate_u32(operand)?) {
        Ok(lut) => Ok(lut),
        Err(_) => wrong("a truth table from 0 to 255", operand),
    }
}

fn lop3<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("b32")?;
    let boolean = form.words.pick(&[("or", true), ("and", false)]);
    form.words.finish()?;
    let Some(or) = boolean else {
        let [d, a, b, c, table] = exactly(form.operands)?;
        let lut = lut(table)?;
        let ty = Num::B32;
        let (a, b, c) = (
            emitter.s32(a, ty)?,
            emitter.s32(b, ty)?,
            emitter.s32(c, ty)?,
        );
        let d = emitter.d32(d, 32)?;
        emitter.emit(Op::Lop3 { lut, d, a, b, c });
        return Ok(());
    };
    let [result, a, b, c, table, q] = exactly(form.operands)?;
    let Operand::Pair(d, p) = result else {
        return wrong("a register and a predicate `d|p`", result);
    };
    let lut = lut(table)?;
    let ty = Num::B32;
    let (a, b, c) = (
        emitter.s32(a, ty)?,
        emitter.s32(b, ty)?,
        emitter.s32(c, ty)?,
    );
    let (mut q, negated) = emitter.sp(q)?;
    if negated {
        let copy = emitter.temp_pred();
        emitter.emit(Op::PMov {
            d: copy,
            a: q,
            negate: true,
        });
        q = copy;
    }
    let d = emitter.dslot(d, 32)?;
    let p = emitter.dp(p)?;
    emitter.emit(Op::Lop3Pred {
        lut,
        or,
        d,
        p,
        q,
        a,
        b,
        c,
    });
    Ok(())
}

fn funnel<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let left = form.words.need(&[("l", true), ("r", false)], "l or r")?;
    let wrap = form
        .words
        .need(&[("wrap", true), ("clamp", false)], "wrap or clamp")?;
    form.words.end(&["b32"])?;
    let ty = Num::B32;
    row!(emitter, form, Shf { left, wrap } [d: ty] = [a: ty, b: ty, c: ty])
}

fn permute<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let modes = &[
        ("f4e", PrmtMode::F4e),
        ("b4e", PrmtMode::B4e),
        ("rc8", PrmtMode::Rc8),
        ("ecl", PrmtMode::Ecl),
        ("ecr", PrmtMode::Ecr),
        ("rc16", PrmtMode::Rc16),
    ];
    form.words.exactly("b32")?;
    let mode = form.words.pick(modes).unwrap_or(PrmtMode::Index);
    form.words.finish()?;
    let ty = Num::B32;
    row!(emitter, form, Prmt { mode } [d: ty] = [a: ty, b: ty, c: ty])
}

fn extract<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    let (signed, at) = (ty.is_signed(), Num::U32);
    match ty {
        Num::U32 | Num::S32 => {
            row!(emitter, form, Bfe32 { signed } [d: ty] = [a: ty, b: at, c: at])
        }
        Num::U64 | Num::S64 => {
            row!(emitter, form, Bfe64 { signed } [d: ty] = [a: ty, b: at, c: at])
        }
        _ => illegal("bfe is for 32- and 64-bit integers"),
    }
}

fn insert<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    let at = Num::U32;
    match ty {
        Num::B32 => row!(emitter, form, Bfi32 {} [d: ty] = [a: ty, e: ty, b: at, c: at]),
        Num::B64 => row!(emitter, form, Bfi64 {} [d: ty] = [a: ty, e: ty, b: at, c: at]),
        _ => illegal("bfi is for .b32 and .b64"),
    }
}

fn count<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let shift_amount = form.words.take("shiftamt");
    let ty = form.words.last_ty()?;
    let op = match (form.opcode, shift_amount, ty) {
        ("popc", false, Num::B32 | Num::B64) => ICount::Popc,
        ("clz", false, Num::B32 | Num::B64) => ICount::Clz,
        ("bfind", false, Num::S32 | Num::S64) => ICount::BfindS,
        ("bfind", false, Num::U32 | Num::U64) => ICount::BfindU,
        ("bfind", true, Num::S32 | Num::S64) => ICount::BfindShiftS,
        ("bfind", true, Num::U32 | Num::U64) => ICount::BfindShiftU,
        _ => return illegal("not a type or modifier of this instruction"),
    };
    match ty.bits() {
        64 => row!(emitter, form, Count64 { op } [d: Num::B32] = [a: ty]),
        _ => row!(emitter, form, Count32 { op } [d: ty] = [a: ty]),
    }
}

fn mask<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let clamp = form
        .words
        .need(&[("clamp", true), ("wrap", false)], "clamp or wrap")?;
    let ty = form.words.last_ty()?;
    let signed = ty.is_signed();
    match (form.opcode, ty) {
        ("bmsk", Num::B32) => {
            row!(emitter, form, Bmsk { clamp } [d: ty] = [a: ty, b: Num::U32])
        }
        ("szext", Num::U32 | Num::S32) => {
            row!(emitter, form, Szext { signed, clamp } [d: ty] = [a: ty, b: Num::U32])
        }
        _ => Err(Problem::MissingModifier("a 32-bit type")),
    }
}
