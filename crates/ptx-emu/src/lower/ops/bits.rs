//! Bitwise logic, shifts and bit fields.

use super::Form;
use super::integer::{binary_op, unary_op, width};
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::operands::{exactly, immediate_u32, wrong};
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
            let ty = form.words.ty()?;
            form.words.finish()?;
            match ty {
                Num::B32 | Num::B64 => unary_op(emitter, form.operands, ty, IUn::Brev),
                _ => illegal("brev is for .b32 and .b64"),
            }
        }
        _ => {
            form.words.exactly("b32")?;
            form.words.finish()?;
            let [d, mask, base, offset] = exactly(form.operands)?;
            let mask = emitter.s32(mask, Num::B32)?;
            let base = emitter.s32(base, Num::B32)?;
            let offset = emitter.s32(offset, Num::S32)?;
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Fns {
                d,
                mask,
                base,
                offset,
            });
            Ok(())
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
    binary_op(emitter, form.operands, ty, op)
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
    unary_op(emitter, form.operands, ty, op)
}

fn shift<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.ty()?;
    form.words.finish()?;
    if !ty.is_integer() || ty.bits() < 16 || ty.bits() > 64 {
        return illegal("shifts are for 16-, 32- and 64-bit types");
    }
    let op = match (form.opcode, ty.is_signed()) {
        ("shl", _) => IBin::Shl,
        (_, true) => IBin::ShrS,
        (_, false) => IBin::ShrU,
    };
    let [d, a, amount] = exactly(form.operands)?;
    let b = emitter.s32(amount, Num::U32)?;
    if ty.bits() == 64 {
        let a = emitter.s64(a, ty)?;
        let d = emitter.d64(d)?;
        emitter.emit(Op::Shift64 { op, d, a, b });
        return Ok(());
    }
    let w = width(ty)?;
    let a = emitter.s32(a, ty)?;
    let d = emitter.d32(d, ty.bits())?;
    emitter.emit(Op::Bin32 { w, op, d, a, b });
    Ok(())
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
    form.words.exactly("b32")?;
    form.words.finish()?;
    let [d, a, b, c] = exactly(form.operands)?;
    let ty = Num::B32;
    let (a, b, c) = (
        emitter.s32(a, ty)?,
        emitter.s32(b, ty)?,
        emitter.s32(c, ty)?,
    );
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::Shf {
        left,
        wrap,
        d,
        a,
        b,
        c,
    });
    Ok(())
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
    let [d, a, b, c] = exactly(form.operands)?;
    let ty = Num::B32;
    let (a, b, c) = (
        emitter.s32(a, ty)?,
        emitter.s32(b, ty)?,
        emitter.s32(c, ty)?,
    );
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::Prmt { mode, d, a, b, c });
    Ok(())
}

fn extract<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.ty()?;
    form.words.finish()?;
    let signed = ty.is_signed();
    let [d, a, b, c] = exactly(form.operands)?;
    let position = emitter.s32(b, Num::U32)?;
    let length = emitter.s32(c, Num::U32)?;
    match ty {
        Num::U32 | Num::S32 => {
            let a = emitter.s32(a, ty)?;
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Bfe32 {
                signed,
                d,
                a,
                b: position,
                c: length,
            });
        }
        Num::U64 | Num::S64 => {
            let a = emitter.s64(a, ty)?;
            let d = emitter.d64(d)?;
            emitter.emit(Op::Bfe64 {
                signed,
                d,
                a,
                b: position,
                c: length,
            });
        }
        _ => return illegal("bfe is for 32- and 64-bit integers"),
    }
    Ok(())
}

fn insert<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.ty()?;
    form.words.finish()?;
    let [d, a, e, b, c] = exactly(form.operands)?;
    let position = emitter.s32(b, Num::U32)?;
    let length = emitter.s32(c, Num::U32)?;
    match ty {
        Num::B32 => {
            let (a, e) = (emitter.s32(a, ty)?, emitter.s32(e, ty)?);
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Bfi32 {
                d,
                a,
                e,
                b: position,
                c: length,
            });
        }
        Num::B64 => {
            let (a, e) = (emitter.s64(a, ty)?, emitter.s64(e, ty)?);
            let d = emitter.d64(d)?;
            emitter.emit(Op::Bfi64 {
                d,
                a,
                e,
                b: position,
                c: length,
            });
        }
        _ => return illegal("bfi is for .b32 and .b64"),
    }
    Ok(())
}

fn count<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let shift_amount = form.words.take("shiftamt");
    let ty = form.words.ty()?;
    form.words.finish()?;
    let op = match (form.opcode, shift_amount, ty) {
        ("popc", false, Num::B32 | Num::B64) => ICount::Popc,
        ("clz", false, Num::B32 | Num::B64) => ICount::Clz,
        ("bfind", false, Num::S32 | Num::S64) => ICount::BfindS,
        ("bfind", false, Num::U32 | Num::U64) => ICount::BfindU,
        ("bfind", true, Num::S32 | Num::S64) => ICount::BfindShiftS,
        ("bfind", true, Num::U32 | Num::U64) => ICount::BfindShiftU,
        _ => return illegal("not a type or modifier of this instruction"),
    };
    let [d, a] = exactly(form.operands)?;
    if ty.bits() == 64 {
        let a = emitter.s64(a, ty)?;
        let d = emitter.d32(d, 32)?;
        emitter.emit(Op::Count64 { op, d, a });
    } else {
        let a = emitter.s32(a, ty)?;
        let d = emitter.d32(d, 32)?;
        emitter.emit(Op::Count32 { op, d, a });
    }
    Ok(())
}

fn mask<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let clamp = form
        .words
        .need(&[("clamp", true), ("wrap", false)], "clamp or wrap")?;
    let ty = form.words.ty()?;
    form.words.finish()?;
    let [d, a, b] = exactly(form.operands)?;
    let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, Num::U32)?);
    let d = emitter.d32(d, 32)?;
    emitter.emit(match (form.opcode, ty) {
        ("bmsk", Num::B32) => Op::Bmsk { clamp, d, a, b },
        ("szext", Num::U32 | Num::S32) => Op::Szext {
            signed: ty.is_signed(),
            clamp,
            d,
            a,
            b,
        },
        _ => return Err(Problem::MissingModifier("a 32-bit type")),
    });
    Ok(())
}
