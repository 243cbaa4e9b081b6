//! Arithmetic whose opcode integers and floats share.

use super::float;
use super::row::row;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::form::Form;
use crate::lower::modifiers::TYPES;
use crate::op::*;

/// The low or the high half of a product.
const LOW_HIGH: &[(&str, bool)] = &[("lo", false), ("hi", true)];

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
    binary_op(emitter, &form, ty, op)
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
    let ty = Num::B32;
    row!(emitter, form, Bin16x2 { op } [d: ty] = [a: ty, b: ty])
}

fn unary<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    let op = match form.opcode {
        "abs" => IUn::Abs,
        _ => IUn::Neg,
    };
    if !ty.is_signed() {
        return illegal("the type must be signed");
    }
    unary_op(emitter, &form, ty, op)
}

/// `d = a op b` on integers of one type.
pub(super) fn binary_op<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    ty: Num,
    op: IBin,
) -> Lowered<()> {
    if ty.bits() == 64 {
        return row!(emitter, form, Bin64 { op } [d: ty] = [a: ty, b: ty]);
    }
    let w = width(ty)?;
    row!(emitter, form, Bin32 { w, op } [d: ty] = [a: ty, b: ty])
}

/// One-operand integer operation of any width.
pub(super) fn unary_op<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    ty: Num,
    op: IUn,
) -> Lowered<()> {
    if ty.bits() == 64 {
        return row!(emitter, form, Un64 { op } [d: ty] = [a: ty]);
    }
    let w = width(ty)?;
    row!(emitter, form, Un32 { w, op } [d: ty] = [a: ty])
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
    binary_op(emitter, form, ty, op)
}

fn mul_wide<'a>(emitter: &mut Emitter<'_, 'a>, form: &Form<'_, 'a>, ty: Num) -> Lowered<()> {
    let signed = ty.is_signed();
    match ty.bits() {
        64 => illegal(".wide has no 64-bit form"),
        32 => row!(emitter, form, MulWide32 { signed } [d: Num::B64] = [a: ty, b: ty]),
        _ => {
            width(ty)?;
            row!(emitter, form, MulWide16 { signed } [d: Num::B32] = [a: ty, b: ty])
        }
    }
}

fn mad<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    ty: Num,
    half: Half,
    sat: bool,
) -> Lowered<()> {
    let signed = ty.is_signed();
    match (ty.bits(), half) {
        (64, Half::Hi) => {
            row!(emitter, form, MadHi64 { signed } [d: ty] = [a: ty, b: ty, c: ty])
        }
        (64, _) => row!(emitter, form, MadLo64 {} [d: ty] = [a: ty, b: ty, c: ty]),
        (_, Half::Hi) => {
            let w = width(ty)?;
            row!(emitter, form, MadHi32 { w, signed, sat } [d: ty] = [a: ty, b: ty, c: ty])
        }
        _ => {
            let w = width(ty)?;
            row!(emitter, form, MadLo32 { w } [d: ty] = [a: ty, b: ty, c: ty])
        }
    }
}

fn mad_wide<'a>(emitter: &mut Emitter<'_, 'a>, form: &Form<'_, 'a>, ty: Num) -> Lowered<()> {
    let signed = ty.is_signed();
    match ty.bits() {
        64 => illegal(".wide has no 64-bit form"),
        32 => {
            let wide = Num::U64;
            row!(emitter, form, MadWide32 { signed } [d: wide] = [a: ty, b: ty, c: wide])
        }
        _ => {
            width(ty)?;
            let wide = Num::U32;
            row!(emitter, form, MadWide16 { signed } [d: wide] = [a: ty, b: ty, c: wide])
        }
    }
}

fn sad<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    let signed = ty.is_signed();
    if ty.bits() == 64 {
        return row!(emitter, form, Sad64 { signed } [d: ty] = [a: ty, b: ty, c: ty]);
    }
    let w = width(ty)?;
    row!(emitter, form, Sad32 { w, signed } [d: ty] = [a: ty, b: ty, c: ty])
}

fn mul24<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let hi = form.words.need(LOW_HIGH, "lo or hi")?;
    let ty = form.words.ty()?;
    let sat = form.words.take("sat");
    form.words.finish()?;
    let signed = ty.is_signed();
    if ty.bits() != 32 || !ty.is_integer() || (sat && !(signed && hi && form.opcode == "mad24")) {
        return illegal("24-bit multiplication is for .s32 and .u32; .sat for mad24.hi.s32");
    }
    let op = match (hi, signed) {
        _ if form.opcode == "mad24" => {
            return row!(emitter, form, Mad24 { signed, hi, sat } [d: ty] = [a: ty, b: ty, c: ty]);
        }
        (false, true) => IBin::Mul24LoS,
        (false, false) => IBin::Mul24LoU,
        (true, true) => IBin::Mul24HiS,
        (true, false) => IBin::Mul24HiU,
    };
    binary_op(emitter, &form, ty, op)
}

fn carry<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let carry_out = form.words.take("cc");
    let carry_in = form.opcode.ends_with('c');
    if form.opcode.starts_with("mad") {
        return carry_mad(emitter, form, carry_in, carry_out);
    }
    let sub = form.opcode.starts_with("sub");
    let ty = form.words.last_ty()?;
    match ty.bits() {
        32 if ty.is_integer() => {
            row!(emitter, form, Carry32 { sub, carry_in, carry_out } [d: ty] = [a: ty, b: ty])
        }
        64 if ty.is_integer() => {
            row!(emitter, form, Carry64 { sub, carry_in, carry_out } [d: ty] = [a: ty, b: ty])
        }
        _ => illegal("carries exist for 32- and 64-bit integers"),
    }
}

fn carry_mad<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    carry_in: bool,
    carry_out: bool,
) -> Lowered<()> {
    let hi = form.words.need(LOW_HIGH, "lo or hi")?;
    let ty = form.words.last_ty()?;
    let signed = ty.is_signed();
    match ty.bits() {
        32 if ty.is_integer() => row!(
            emitter, form,
            MadCarry32 { hi, signed, carry_in, carry_out } [d: ty] = [a: ty, b: ty, c: ty]
        ),
        64 if ty.is_integer() => row!(
            emitter, form,
            MadCarry64 { hi, signed, carry_in, carry_out } [d: ty] = [a: ty, b: ty, c: ty]
        ),
        _ => illegal("carries exist for 32- and 64-bit integers"),
    }
}

fn dot<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let sign = &[("u32", false), ("s32", true)];
    let half = form.words.pick(LOW_HIGH);
    let a_signed = form.words.need(sign, "the type of a")?;
    let b_signed = form.words.need(sign, "the type of b")?;
    form.words.finish()?;
    let ty = Num::B32;
    match (form.opcode, half) {
        ("dp4a", None) => {
            row!(emitter, form, Dp4a { a_signed, b_signed } [d: ty] = [a: ty, b: ty, c: ty])
        }
        ("dp2a", Some(hi)) => {
            row!(emitter, form, Dp2a { a_signed, b_signed, hi } [d: ty] = [a: ty, b: ty, c: ty])
        }
        _ => illegal("dp2a needs .lo or .hi, dp4a has neither"),
    }
}
