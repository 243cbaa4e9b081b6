//! `multimem`: memory that several devices hold copies of. Here there is one device, so a
//! multimem address is that of ordinary global memory and a reduction over all copies is a load.

use super::atomic::{self, OPERATIONS};
use super::memory::{self, Access};
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::exactly;
use crate::lower::modifiers::ORDERS;
use crate::op::*;

const VECTORS: &[(&str, usize)] = &[("v2", 2), ("v4", 4), ("v8", 8)];

/// One-byte floats, alone or packed, as the words they are moved in.
const SMALL: &[(&str, Num)] = &[
    ("e4m3", Num::B8),
    ("e5m2", Num::B8),
    ("e4m3x2", Num::B16),
    ("e5m2x2", Num::B16),
    ("e4m3x4", Num::B32),
    ("e5m2x4", Num::B32),
];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let kinds = &[("ld_reduce", 0), ("st", 1), ("red", 2)];
    let kind = form.words.need(kinds, "ld_reduce, st or red")?;
    let order = match kind {
        2 => form.words.order(ORDERS, Order::Relaxed, Scope::Gpu),
        _ => form.words.order(ORDERS, |_| Order::Weak, Scope::Gpu),
    };
    let space = match form.words.take("global") {
        true => Space::Global,
        false => Space::Generic,
    };
    let op = match kind {
        1 => None,
        _ => Some(form.words.need(OPERATIONS, "an operation")?),
    };
    let sum = form
        .words
        .pick(&[("acc::f32", Num::F32), ("acc::f16", Num::F16)]);
    let vector = form.words.pick(VECTORS).unwrap_or(1);
    let ty = match form.words.pick(SMALL) {
        Some(_) if kind == 2 => return illegal("multimem.red has no such type"),
        Some(ty) => {
            check_small(op, sum, ty, vector)?;
            ty
        }
        None => {
            let ty = form.words.ty()?;
            check(op, ty, vector)?;
            ty
        }
    };
    form.words.finish()?;
    let [first, second] = exactly(form.operands)?;
    if let (2, Some(op)) = (kind, op) {
        if !matches!(order, Order::Relaxed(_) | Order::Release(_)) {
            return illegal("multimem.red is relaxed or releases");
        }
        return atomic::reduce(emitter, (op, ty, vector), (space, order), (first, second));
    }
    let access = Access {
        space,
        order,
        vector,
        // In memory a packed pair is 32 bits and a bf16 16.
        ty: match ty.bits() {
            16 if !ty.is_integer() => Num::B16,
            32 if !ty.is_integer() => Num::B32,
            _ => ty,
        },
        hint: false,
        evicts: false,
    };
    match kind {
        0 => memory::load_from(emitter, &access, first, second),
        _ => memory::store_to(emitter, &access, first, second),
    }
}

/// Small floats come in groups of four to sixteen; their sums are f16.
fn check_small(op: Option<AtomOp>, sum: Option<Num>, ty: Num, vector: usize) -> Lowered<()> {
    let operation = matches!(op, None | Some(AtomOp::Add | AtomOp::Min | AtomOp::Max));
    let summed = sum.is_none() || (sum == Some(Num::F16) && op == Some(AtomOp::Add));
    let sized = (32..=128).contains(&(vector as u32 * ty.bits()));
    match operation && summed && sized {
        true => Ok(()),
        false => illegal("multimem has no such operation for this type"),
    }
}

fn check(op: Option<AtomOp>, ty: Num, vector: usize) -> Lowered<()> {
    use AtomOp::*;
    use Num::*;
    let half = matches!(ty, F16 | F16x2 | Bf16 | Bf16x2);
    let float = half || matches!(ty, F32 | F64);
    let integer = matches!(ty, B32 | B64 | U32 | S32 | U64 | S64);
    let fits = match op {
        None => float || integer,
        Some(Min | Max) => half || matches!(ty, U32 | S32 | U64 | S64),
        Some(Add) => float || matches!(ty, U32 | S32 | U64 | S64),
        Some(And | Or | Xor) => matches!(ty, B32 | B64),
        Some(_) => false,
    };
    // Vectors are of floats, and at most 16 bytes.
    let sized = vector == 1 || (float && ty != F64 && vector as u32 * ty.bits() <= 128);
    match fits && sized {
        true => Ok(()),
        false => illegal("multimem has no such operation for this type"),
    }
}
