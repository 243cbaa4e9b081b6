//! `wmma.load`, `wmma.store` and `wmma.mma`.

use super::fragment::{next_type, shape};
use super::mma::{accumulator, bit_product, element, values};
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::exactly;
use crate::lower::modifiers::Modifiers;
use crate::op::*;
use crate::tensor::wmma::{self, Fragment, Part, Shape};

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let action = form
        .words
        .next()
        .ok_or(Problem::MissingModifier("load, store or mma"))?;
    match action {
        "load" => {
            let parts = &[("a", Part::A), ("b", Part::B), ("c", Part::C)];
            let part = form.words.need(parts, "a, b or c")?;
            moves(emitter, form, part, false)
        }
        "store" => {
            form.words.exactly("d")?;
            moves(emitter, form, Part::C, true)
        }
        "mma" => multiply(emitter, form),
        other => Err(Problem::UnknownModifier(other.to_owned())),
    }
}

/// Row-major or column-major.
fn by_column(words: &mut Modifiers<'_>) -> Lowered<bool> {
    words.need(&[("row", false), ("col", true)], "a layout")
}

fn tile(words: &mut Modifiers<'_>) -> Lowered<Shape> {
    let (m, n, k) = shape(words)?;
    let [m, n, k] = [m, n, k].map(u32::from);
    Ok(Shape { m, n, k })
}

/// Bits of an element in memory and in a fragment.
fn element_bits(ty: Num) -> u32 {
    match ty {
        Num::S4 | Num::U4 => 4,
        Num::B1 => 1,
        Num::Tf32 => 32,
        other => other.bits(),
    }
}

/// Whether operands of a type exist in a shape.
fn fits(ty: Num, Shape { m, n, k }: Shape) -> bool {
    let three = matches!((m, n), (16, 16) | (32, 8) | (8, 32));
    match ty {
        Num::F16 | Num::Bf16 | Num::S8 | Num::U8 => three && k == 16,
        Num::Tf32 => (m, n, k) == (16, 16, 8),
        Num::F64 => (m, n, k) == (8, 8, 4),
        Num::S4 | Num::U4 => (m, n, k) == (8, 8, 32),
        Num::B1 => (m, n, k) == (8, 8, 128),
        _ => false,
    }
}

/// Whether sums of a type exist in a shape.
fn sums_fit(ty: Num, shape: Shape) -> bool {
    match ty {
        Num::F16 => fits(Num::F16, shape),
        Num::F32 => fits(Num::F16, shape) || fits(Num::Tf32, shape),
        Num::F64 => fits(Num::F64, shape),
        Num::S32 => [Num::S8, Num::S4, Num::B1].iter().any(|&t| fits(t, shape)),
        _ => false,
    }
}

/// Registers the ISA gives a fragment: f16 operands have eight in every shape.
fn registers(part: Part, shape: Shape, ty: Num) -> usize {
    if ty == Num::F16 && part != Part::C {
        return 8;
    }
    let bits = element_bits(ty);
    Fragment { part, shape, bits }.registers() as usize
}

fn moves<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    part: Part,
    store: bool,
) -> Lowered<()> {
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    let spaces = &[
        ("global", Space::Global),
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
    ];
    let space = form.words.pick(spaces).unwrap_or(Space::Generic);
    let by_column = by_column(&mut form.words)?;
    let shape = tile(&mut form.words)?;
    let ty = next_type(&mut form.words)?;
    form.words.finish()?;
    let exists = match part {
        Part::C => sums_fit(ty, shape),
        _ => fits(ty, shape),
    };
    if !exists {
        return illegal("wmma has no such shape for this type");
    }
    let bits = element_bits(ty);
    if bits < 8 && by_column != (part == Part::B) {
        return illegal("elements of less than a byte need row-major A and column-major B");
    }
    let (first, second, stride) = match form.operands {
        [first, second] => (first, second, None),
        [first, second, stride] => (first, second, Some(stride)),
        other => {
            return Err(Problem::OperandCount {
                expected: "2 or 3".into(),
                found: other.len(),
            });
        }
    };
    let (fragment, address) = if store {
        (second, first)
    } else {
        (first, second)
    };
    let addr = emitter.addr(address, space)?;
    let stride = stride.map(|s| emitter.s32(s, Num::U32)).transpose()?;
    let regs = values(
        emitter,
        fragment,
        registers(part, shape, ty),
        register_type(ty),
        !store,
    )?;
    emitter.emit(Op::WmmaMove(Box::new(WmmaMove {
        store,
        fragment: Fragment { part, shape, bits },
        by_column,
        addr,
        space,
        stride,
        regs,
    })));
    Ok(())
}

/// f64 fragments have 64-bit registers, all others 32-bit ones.
fn register_type(ty: Num) -> Num {
    match ty {
        Num::F64 => Num::F64,
        _ => Num::B32,
    }
}

fn multiply<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let b1_op = form
        .words
        .pick(&[("and", BoolOp::And), ("xor", BoolOp::Xor)]);
    if b1_op.is_some() {
        form.words.exactly("popc")?;
    }
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    // Layouts were fixed when the fragments were loaded; sums of f64 are rounded to nearest.
    by_column(&mut form.words)?;
    by_column(&mut form.words)?;
    form.words.take("rn");
    let shape = tile(&mut form.words)?;
    let satfinite = form.words.take("satfinite");
    let [d_ty, a_ty, b_ty, c_ty] = types(&mut form.words)?;
    form.words.finish()?;
    check(shape, [d_ty, a_ty, b_ty, c_ty], b1_op.is_some())?;
    let [d, a, b, c] = exactly(form.operands)?;
    let a = operand(emitter, a, (Part::A, shape, a_ty), false)?;
    let b = operand(emitter, b, (Part::B, shape, b_ty), false)?;
    let c = operand(emitter, c, (Part::C, shape, c_ty), false)?;
    let d = operand(emitter, d, (Part::C, shape, d_ty), true)?;
    let elements = (element(a_ty)?, element(b_ty)?);
    let sums = (accumulator(c_ty)?, accumulator(d_ty)?);
    let form = wmma::Wmma::new(shape, elements, sums, bit_product(b1_op), satfinite)
        .map_err(|e| Problem::Illegal(e.to_string()))?;
    emitter.emit(Op::Wmma(Box::new(Wmma { form, d, a, b, c })));
    Ok(())
}

/// D, A, B and C; the oldest form names only D and C, and multiplies f16.
fn types(words: &mut Modifiers<'_>) -> Lowered<[Num; 4]> {
    let d = next_type(words)?;
    let second = next_type(words)?;
    match next_type(words) {
        Err(Problem::MissingModifier(_)) => Ok([d, Num::F16, Num::F16, second]),
        third => Ok([d, second, third?, next_type(words)?]),
    }
}

fn check(shape: Shape, [d, a, b, c]: [Num; 4], bitwise: bool) -> Lowered<()> {
    use Num::*;
    let types_fit = match a {
        F16 => b == F16 && matches!(c, F16 | F32) && matches!(d, F16 | F32),
        Bf16 | Tf32 => b == a && (c, d) == (F32, F32),
        F64 => (b, c, d) == (F64, F64, F64),
        S8 | U8 | S4 | U4 | B1 => b == a && (c, d) == (S32, S32),
        _ => false,
    };
    match types_fit && fits(a, shape) && bitwise == (a == B1) {
        true => Ok(()),
        false => illegal("wmma has no such shape for these types"),
    }
}

fn operand<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    (part, shape, ty): (Part, Shape, Num),
    write: bool,
) -> Lowered<SlotList> {
    let count = registers(part, shape, ty);
    values(emitter, operand, count, register_type(ty), write)
}
