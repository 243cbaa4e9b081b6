//! Atomics and reductions.

use super::memory::{SPACES, elements, hint_operand};
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::exactly;
use crate::lower::modifiers::ORDERS;
use crate::op::*;

pub(super) const OPERATIONS: &[(&str, AtomOp)] = &[
    ("exch", AtomOp::Exch),
    ("cas", AtomOp::Cas),
    ("add", AtomOp::Add),
    ("min", AtomOp::Min),
    ("max", AtomOp::Max),
    ("inc", AtomOp::Inc),
    ("dec", AtomOp::Dec),
    ("and", AtomOp::And),
    ("or", AtomOp::Or),
    ("xor", AtomOp::Xor),
];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    // Nothing waits for an `.mmio` one, so it is an ordinary reduction.
    if form.opcode == "red" && form.words.take_first("async") && !form.words.take("mmio") {
        return red_async(emitter, form);
    }
    let order = form.words.order(ORDERS, Order::Relaxed, Scope::Gpu);
    let space = form.words.pick(SPACES).unwrap_or(Space::Generic);
    if matches!(space, Space::Local | Space::Const | Space::Param) {
        return illegal("atomics work on global and shared memory");
    }
    let op = form.words.need(OPERATIONS, "an operation")?;
    form.words.take("noftz");
    let hint = form.words.hints();
    let vectors = &[("v2", 2), ("v4", 4), ("v8", 8)];
    let vector = form.words.pick(vectors).unwrap_or(1);
    let ty = form.words.last_ty()?;
    check(op, ty, vector, form.opcode)?;
    let reduces = form.opcode == "red";
    let fixed = 2 + usize::from(!reduces) + usize::from(op == AtomOp::Cas);
    if form.operands.len() < fixed || form.operands.len() > fixed + usize::from(hint) {
        return illegal(format!(
            "{} takes {fixed} operands, found {}",
            form.opcode,
            form.operands.len()
        ));
    }
    let (operands, rest) = form.operands.split_at(fixed);
    hint_operand(emitter, rest)?;
    let (result, operands) = match reduces {
        true => (None, operands),
        false => (Some(&operands[0]), &operands[1..]),
    };
    let addr = emitter.addr(&operands[0], space)?;
    let b = values(emitter, &operands[1], vector, ty)?;
    let c = match operands.get(2) {
        Some(new) => values(emitter, new, vector, ty)?,
        None => emitter.list(&[])?,
    };
    let d = match result {
        Some(result) => results(emitter, result, vector, ty)?,
        None => emitter.list(&[])?,
    };
    emitter.emit(Op::Atom(Box::new(Atom {
        space,
        op,
        ty,
        order,
        d,
        addr,
        b,
        c,
    })));
    Ok(())
}

/// A reduction whose modifiers and operands are known.
pub(super) fn reduce<'a>(
    emitter: &mut Emitter<'_, 'a>,
    (op, ty, vector): (AtomOp, Num, usize),
    (space, order): (Space, Order),
    (address, value): (&Operand<'a>, &Operand<'a>),
) -> Lowered<()> {
    let addr = emitter.addr(address, space)?;
    let b = values(emitter, value, vector, ty)?;
    let (c, d) = (emitter.list(&[])?, emitter.list(&[])?);
    emitter.emit(Op::Atom(Box::new(Atom {
        space,
        op,
        ty,
        order,
        d,
        addr,
        b,
        c,
    })));
    Ok(())
}

fn check(op: AtomOp, ty: Num, vector: usize, opcode: &str) -> Lowered<()> {
    use AtomOp::*;
    use Num::*;
    let fits = match op {
        Exch => matches!(ty, B32 | B64 | B128 | U32 | S32 | F32 | U64),
        Cas => matches!(ty, B16 | B32 | B64 | B128 | U32 | S32 | U64),
        Add => matches!(
            ty,
            U32 | S32 | U64 | S64 | F16 | F16x2 | Bf16 | Bf16x2 | F32 | F64
        ),
        Min | Max if vector > 1 => matches!(ty, F16 | F16x2 | Bf16 | Bf16x2),
        Min | Max => matches!(ty, U32 | S32 | U64 | S64),
        Inc | Dec => ty == U32,
        And | Or | Xor => matches!(ty, B32 | B64 | U32 | U64),
    };
    let vector_fits = vector == 1
        || (matches!(op, Add | Min | Max)
            && matches!(ty, F16 | F16x2 | Bf16 | Bf16x2 | F32)
            && vector as u32 * ty.bits() <= 128);
    if !fits || !vector_fits {
        return illegal("this atomic operation does not exist for this type");
    }
    if opcode == "red" && matches!(op, Exch | Cas) {
        return illegal("exch and cas give a result, so they are not reductions");
    }
    Ok(())
}

fn values<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    vector: usize,
    ty: Num,
) -> Lowered<SlotList> {
    let mut slots = Vec::new();
    for element in elements(operand, vector)? {
        if ty == Num::B128 {
            slots.extend(emitter.source128(element)?.map(Slot::W64));
        } else {
            slots.push(emitter.source(element, ty)?);
        }
    }
    emitter.list(&slots)
}

fn results<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    vector: usize,
    ty: Num,
) -> Lowered<SlotList> {
    let mut slots = Vec::new();
    for element in elements(operand, vector)? {
        if ty == Num::B128 {
            let register = emitter.target(element, 128)?;
            slots.extend(emitter.halves(register).map(Slot::W64));
        } else {
            slots.push(emitter.wanted(element, ty.bits())?);
        }
    }
    emitter.list(&slots)
}

/// `red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [a], b, [mbar]`
fn red_async<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("relaxed")?;
    form.words.scope();
    form.words.take("shared::cluster");
    form.words.exactly("mbarrier::complete_tx::bytes")?;
    let op = form.words.need(OPERATIONS, "an operation")?;
    let ty = form.words.last_ty()?;
    if matches!(op, AtomOp::Exch | AtomOp::Cas) || !ty.is_integer() || ty.bits() < 32 {
        return illegal("this reduction does not exist");
    }
    let [address, value, barrier] = exactly(form.operands)?;
    let addr = emitter.addr(address, Space::SharedCluster)?;
    let b = emitter.source(value, ty)?;
    let mbar = emitter.addr(barrier, Space::SharedCluster)?;
    emitter.emit(Op::RedAsync {
        op,
        ty,
        b,
        addr,
        mbar,
    });
    Ok(())
}
