//! Arithmetic whose opcode integers and floats share.

use super::{Form, float};
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::operands::exactly;
use crate::lower::words::TYPES;
use crate::op::*;

/// Packed pairs of 16-bit integers.
const PAIRS: &[(&str, bool)] = &[("u16x2", false), ("s16x2", true)];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "addc" | "subc" | "madc" => return carry(emitter, form),
        "add" | "sub" | "mad" if form.words.contains("cc") => return carry(emitter, form),
        "dp4a" | "dp2a" => return dot(emitter, form),
        "mul24" | "mad24" => return mul24(emitter, form),
        "fma" => return float::arithmetic(emitter, form),
        _ => {}
    }
    if let Some(signed) = form.words.pick(PAIRS) {
        return pair(emitter, form, signed);
    }
    // The first type decides; a float form may have a second.
    let integer = TYPES
        .iter()
        .any(|&(name, ty)| ty.is_integer() && form.words.contains(name));
    if !integer {
        return float::arithmetic(emitter, form);
    }
    match form.opcode {
        "mul" | "mad" => multiply(emitter, form),
        "sad" => sad(emitter, form),
        "abs" | "neg" => unary(emitter, form),
        _ => binary(emitter, form),
    }
}

pub(super) fn width(ty: Num) -> Lowered<W> {
    match ty.bits() {
        16 => Ok(W::B16),
        32 => Ok(W::B32),
        _ => illegal("this instruction has no form for 8-bit types"),
    }
}

fn binary<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.ty()?;
    let sat = form.words.take("sat");
    let relu = form.words.take("relu");
    let signed = ty.is_signed();
    let pick = |on_signed, on_unsigned| if signed { on_signed } else { on_unsigned };
    let op = match (form.opcode, sat, relu) {
        ("add", false, false) => IBin::Add,
        ("sub", false, false) => IBin::Sub,
        ("add", true, false) if ty == Num::S32 => IBin::AddSat,
        ("sub", true, false) if ty == Num::S32 => IBin::SubSat,
        ("div", false, false) => pick(IBin::DivS, IBin::DivU),
        ("rem", false, false) => pick(IBin::RemS, IBin::RemU),
        ("min", false, false) => pick(IBin::MinS, IBin::MinU),
        ("max", false, false) => pick(IBin::MaxS, IBin::MaxU),
        ("min", false, true) if ty == Num::S32 => IBin::MinSRelu,
        ("max", false, true) if ty == Num::S32 => IBin::MaxSRelu,
        _ => return illegal(".sat and .relu go with .s32 only"),
    };
    form.words.finish()?;
    binary_op(emitter, form.operands, ty, op)
}

fn pair<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>, signed: bool) -> Lowered<()> {
    let relu = form.words.take("relu");
    let op = match (form.opcode, signed, relu) {
        ("add", _, false) => I16x2::Add,
        ("min", true, false) => I16x2::MinS,
        ("min", false, false) => I16x2::MinU,
        ("max", true, false) => I16x2::MaxS,
        ("max", false, false) => I16x2::MaxU,
        ("min", true, true) => I16x2::MinSRelu,
        ("max", true, true) => I16x2::MaxSRelu,
        _ => return illegal("packed 16-bit integers have add, min and max only"),
    };
    form.words.finish()?;
    let [d, a, b] = exactly(form.operands)?;
    let (a, b) = (emitter.s32(a, Num::B32)?, emitter.s32(b, Num::B32)?);
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::Bin16x2 { op, d, a, b });
    Ok(())
}

fn unary<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.ty()?;
    form.words.finish()?;
    let op = match form.opcode {
        "abs" => IUn::Abs,
        _ => IUn::Neg,
    };
    if !ty.is_signed() {
        return illegal("the type must be signed");
    }
    unary_op(emitter, form.operands, ty, op)
}

/// `d = a op b` on integers of one type.
pub(super) fn binary_op<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
    ty: Num,
    op: IBin,
) -> Lowered<()> {
    let [d, a, b] = exactly(operands)?;
    if ty.bits() == 64 {
        let (a, b) = (emitter.s64(a, ty)?, emitter.s64(b, ty)?);
        let d = emitter.d64(d)?;
        emitter.emit(Op::Bin64 { op, d, a, b });
        return Ok(());
    }
    let w = width(ty)?;
    let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
    let d = emitter.d32(d, ty.bits())?;
    emitter.emit(Op::Bin32 { w, op, d, a, b });
    Ok(())
}

/// One-operand integer operation of any width.
pub(super) fn unary_op<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
    ty: Num,
    op: IUn,
) -> Lowered<()> {
    let [d, a] = exactly(operands)?;
    if ty.bits() == 64 {
        let a = emitter.s64(a, ty)?;
        let d = emitter.d64(d)?;
        emitter.emit(Op::Un64 { op, d, a });
        return Ok(());
    }
    let w = width(ty)?;
    let a = emitter.s32(a, ty)?;
    let d = emitter.d32(d, ty.bits())?;
    emitter.emit(Op::Un32 { w, op, d, a });
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Half {
    Lo,
    Hi,
    Wide,
}

const HALVES: &[(&str, Half)] = &[("lo", Half::Lo), ("hi", Half::Hi), ("wide", Half::Wide)];

fn multiply<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let half = form.words.need(HALVES, "lo, hi or wide")?;
    let ty = form.words.ty()?;
    let sat = form.words.take("sat");
    form.words.finish()?;
    if sat && (form.opcode, half, ty) != ("mad", Half::Hi, Num::S32) {
        return illegal(".sat goes with mad.hi.s32 only");
    }
    match (form.opcode, half) {
        ("mul", Half::Wide) => mul_wide(emitter, &form, ty),
        ("mul", _) => mul(emitter, &form, ty, half),
        (_, Half::Wide) => mad_wide(emitter, &form, ty),
        _ => mad(emitter, &form, ty, half, sat),
    }
}

fn mul<'a>(emitter: &mut Emitter<'_, 'a>, form: &Form<'_, 'a>, ty: Num, half: Half) -> Lowered<()> {
    let op = match (half, ty.is_signed()) {
        (Half::Hi, true) => IBin::MulHiS,
        (Half::Hi, false) => IBin::MulHiU,
        _ => IBin::MulLo,
    };
    binary_op(emitter, form.operands, ty, op)
}

fn mul_wide<'a>(emitter: &mut Emitter<'_, 'a>, form: &Form<'_, 'a>, ty: Num) -> Lowered<()> {
    let signed = ty.is_signed();
    let [d, a, b] = exactly(form.operands)?;
    let bits = ty.bits();
    if bits == 64 {
        return illegal(".wide has no 64-bit form");
    }
    let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
    if bits == 32 {
        let d = emitter.d64(d)?;
        emitter.emit(Op::MulWide32 { signed, d, a, b });
        return Ok(());
    }
    width(ty)?;
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::MulWide16 { signed, d, a, b });
    Ok(())
}

fn mad<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    ty: Num,
    half: Half,
    sat: bool,
) -> Lowered<()> {
    let signed = ty.is_signed();
    let [d, a, b, c] = exactly(form.operands)?;
    if ty.bits() == 64 {
        let (a, b, c) = (
            emitter.s64(a, ty)?,
            emitter.s64(b, ty)?,
            emitter.s64(c, ty)?,
        );
        let d = emitter.d64(d)?;
        emitter.emit(match half {
            Half::Hi => Op::MadHi64 { signed, d, a, b, c },
            _ => Op::MadLo64 { d, a, b, c },
        });
        return Ok(());
    }
    let w = width(ty)?;
    let (a, b, c) = (
        emitter.s32(a, ty)?,
        emitter.s32(b, ty)?,
        emitter.s32(c, ty)?,
    );
    let d = emitter.d32(d, ty.bits())?;
    emitter.emit(match half {
        Half::Hi => Op::MadHi32 {
            w,
            signed,
            sat,
            d,
            a,
            b,
            c,
        },
        _ => Op::MadLo32 { w, d, a, b, c },
    });
    Ok(())
}

fn mad_wide<'a>(emitter: &mut Emitter<'_, 'a>, form: &Form<'_, 'a>, ty: Num) -> Lowered<()> {
    let signed = ty.is_signed();
    let [d, a, b, c] = exactly(form.operands)?;
    let bits = ty.bits();
    if bits == 64 {
        return illegal(".wide has no 64-bit form");
    }
    let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
    if bits == 32 {
        let c = emitter.s64(c, Num::U64)?;
        let d = emitter.d64(d)?;
        emitter.emit(Op::MadWide32 { signed, d, a, b, c });
        return Ok(());
    }
    width(ty)?;
    let c = emitter.s32(c, Num::U32)?;
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::MadWide16 { signed, d, a, b, c });
    Ok(())
}

fn sad<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.ty()?;
    form.words.finish()?;
    let signed = ty.is_signed();
    let [d, a, b, c] = exactly(form.operands)?;
    if ty.bits() == 64 {
        let (a, b, c) = (
            emitter.s64(a, ty)?,
            emitter.s64(b, ty)?,
            emitter.s64(c, ty)?,
        );
        let d = emitter.d64(d)?;
        emitter.emit(Op::Sad64 { signed, d, a, b, c });
        return Ok(());
    }
    let w = width(ty)?;
    let (a, b, c) = (
        emitter.s32(a, ty)?,
        emitter.s32(b, ty)?,
        emitter.s32(c, ty)?,
    );
    let d = emitter.d32(d, ty.bits())?;
    emitter.emit(Op::Sad32 {
        w,
        signed,
        d,
        a,
        b,
        c,
    });
    Ok(())
}

fn mul24<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let hi = form
        .words
        .need(&[("lo", false), ("hi", true)], "lo or hi")?;
    let ty = form.words.ty()?;
    let sat = form.words.take("sat");
    form.words.finish()?;
    let signed = ty.is_signed();
    if ty.bits() != 32 || !ty.is_integer() || (sat && !(signed && hi && form.opcode == "mad24")) {
        return illegal("24-bit multiplication is for .s32 and .u32; .sat for mad24.hi.s32");
    }
    if form.opcode == "mad24" {
        let [d, a, b, c] = exactly(form.operands)?;
        let (a, b, c) = (
            emitter.s32(a, ty)?,
            emitter.s32(b, ty)?,
            emitter.s32(c, ty)?,
        );
        let d = emitter.d32(d, 32)?;
        emitter.emit(Op::Mad24 {
            signed,
            hi,
            sat,
            d,
            a,
            b,
            c,
        });
        return Ok(());
    }
    let op = match (hi, signed) {
        (false, true) => IBin::Mul24LoS,
        (false, false) => IBin::Mul24LoU,
        (true, true) => IBin::Mul24HiS,
        (true, false) => IBin::Mul24HiU,
    };
    let [d, a, b] = exactly(form.operands)?;
    let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::Bin32 {
        w: W::B32,
        op,
        d,
        a,
        b,
    });
    Ok(())
}

fn carry<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let carry_out = form.words.take("cc");
    let carry_in = form.opcode.ends_with('c');
    if form.opcode.starts_with("mad") {
        return carry_mad(emitter, form, carry_in, carry_out);
    }
    let sub = form.opcode.starts_with("sub");
    let ty = form.words.ty()?;
    form.words.finish()?;
    let [d, a, b] = exactly(form.operands)?;
    match ty.bits() {
        32 if ty.is_integer() => {
            let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Carry32 {
                sub,
                carry_in,
                carry_out,
                d,
                a,
                b,
            });
        }
        64 if ty.is_integer() => {
            let (a, b) = (emitter.s64(a, ty)?, emitter.s64(b, ty)?);
            let d = emitter.d64(d)?;
            emitter.emit(Op::Carry64 {
                sub,
                carry_in,
                carry_out,
                d,
                a,
                b,
            });
        }
        _ => return illegal("carries exist for 32- and 64-bit integers"),
    }
    Ok(())
}

fn carry_mad<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    carry_in: bool,
    carry_out: bool,
) -> Lowered<()> {
    let hi = form
        .words
        .need(&[("lo", false), ("hi", true)], "lo or hi")?;
    let ty = form.words.ty()?;
    form.words.finish()?;
    let signed = ty.is_signed();
    let [d, a, b, c] = exactly(form.operands)?;
    match ty.bits() {
        32 if ty.is_integer() => {
            let (a, b, c) = (
                emitter.s32(a, ty)?,
                emitter.s32(b, ty)?,
                emitter.s32(c, ty)?,
            );
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::MadCarry32 {
                hi,
                signed,
                carry_in,
                carry_out,
                d,
                a,
                b,
                c,
            });
        }
        64 if ty.is_integer() => {
            let (a, b, c) = (
                emitter.s64(a, ty)?,
                emitter.s64(b, ty)?,
                emitter.s64(c, ty)?,
            );
            let d = emitter.d64(d)?;
            emitter.emit(Op::MadCarry64 {
                hi,
                signed,
                carry_in,
                carry_out,
                d,
                a,
                b,
                c,
            });
        }
        _ => return illegal("carries exist for 32- and 64-bit integers"),
    }
    Ok(())
}

fn dot<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let sign = &[("u32", false), ("s32", true)];
    let half = form.words.pick(&[("lo", false), ("hi", true)]);
    let a_signed = form.words.need(sign, "the type of a")?;
    let b_signed = form.words.need(sign, "the type of b")?;
    form.words.finish()?;
    let [d, a, b, c] = exactly(form.operands)?;
    let a = emitter.s32(a, Num::B32)?;
    let b = emitter.s32(b, Num::B32)?;
    let c = emitter.s32(c, Num::B32)?;
    let d = emitter.d32(d, 32)?;
    emitter.emit(match (form.opcode, half) {
        ("dp4a", None) => Op::Dp4a {
            a_signed,
            b_signed,
            d,
            a,
            b,
            c,
        },
        ("dp2a", Some(hi)) => Op::Dp2a {
            a_signed,
            b_signed,
            hi,
            d,
            a,
            b,
            c,
        },
        _ => return illegal("dp2a needs .lo or .hi, dp4a has neither"),
    });
    Ok(())
}
