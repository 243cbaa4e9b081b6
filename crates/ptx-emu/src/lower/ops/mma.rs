//! `mma.sync` and its block-scaled form.

use super::Form;
use super::matrix::{fragment, next_type, shape};
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::operands::{immediate_u32, wrong};
use crate::lower::words::Format;
use crate::op::*;

/// Bits one element takes in a fragment register.
fn element_bits(ty: Num, unpacked: bool) -> u32 {
    match ty {
        // `.kind::f8f6f4` holds every element in a byte.
        Num::E2m1 | Num::E2m3 | Num::E3m2 if unpacked => 8,
        Num::E2m1 => 4,
        Num::S4 | Num::U4 => 4,
        Num::B1 => 1,
        other => other.bits(),
    }
}

/// Whether a kind holds every element in a byte, and whether it has block scales.
const KINDS: &[(&str, (bool, bool))] = &[
    ("kind::f8f6f4", (true, false)),
    ("kind::mxf8f6f4", (true, true)),
    ("kind::mxf4", (false, true)),
    ("kind::mxf4nvf4", (false, true)),
];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ordered = form
        .words
        .pick(&[("sp", false), ("sp::ordered_metadata", true)]);
    let sparse = ordered.is_some();
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    let (m, n, k) = shape(&mut form.words)?;
    let layouts = &[("row", false), ("col", true)];
    let a_col = form.words.need(layouts, "the layout of A")?;
    let b_row = !form.words.need(layouts, "the layout of B")?;
    let (unpacked, scaled) = form.words.pick(KINDS).unwrap_or((false, false));
    let scale = scale_words(&mut form, scaled)?;
    let satfinite = form.words.take("satfinite");
    let b1_op = form
        .words
        .pick(&[("and", BoolOp::And), ("xor", BoolOp::Xor)]);
    if b1_op.is_some() {
        form.words.exactly("popc")?;
    }
    let [d_ty, a_ty, b_ty, c_ty] = types(&mut form)?;
    form.words.finish()?;
    let types = [d_ty, a_ty, b_ty, c_ty];
    match sparse {
        true => check_sparse((m, n, k), types, a_col || b_row)?,
        false => check((m, n, k), types, a_col, b_row)?,
    }
    let (operands, rest) = match form.operands {
        [d, a, b, c, rest @ ..] => ([d, a, b, c], rest),
        other => {
            return Err(Problem::OperandCount {
                expected: "at least 4".into(),
                found: other.len(),
            });
        }
    };
    let [d, a, b, c] = operands;
    // The oldest shape is computed four times over, by groups of eight lanes.
    let copies = if (m, n, k) == (8, 8, 4) && a_ty == Num::F16 {
        4
    } else {
        1
    };
    let [m32, n32, k32] = [m, n, k].map(u32::from);
    let count =
        |elements: u32, ty: Num| fragment_registers(elements * copies, element_bits(ty, unpacked));
    let a_elements = m32 * k32 / if sparse { 2 } else { 1 };
    let a = values(emitter, a, count(a_elements, a_ty), a_ty, false)?;
    let b = values(emitter, b, count(n32 * k32, b_ty), b_ty, false)?;
    let c = values(emitter, c, count(m32 * n32, c_ty), c_ty, false)?;
    let (sparse, rest) = sparse_operands(emitter, ordered, rest)?;
    let block_scale = scale_operands(emitter, scale, rest)?;
    let d = values(emitter, d, count(m32 * n32, d_ty), d_ty, true)?;
    emitter.emit(Op::Mma(Box::new(Mma {
        m,
        n,
        k,
        d_ty,
        c_ty,
        a_ty,
        b_ty,
        d,
        a,
        b,
        c,
        satfinite,
        a_col,
        b_row,
        b1_op,
        sparse,
        block_scale,
    })));
    Ok(())
}

/// Registers of a fragment spread over 32 lanes; f64 counts 64-bit registers.
fn fragment_registers(elements: u32, bits: u32) -> usize {
    let register = bits.max(32);
    (elements * bits).div_ceil(32 * register).max(1) as usize
}

fn types(form: &mut Form<'_, '_>) -> Lowered<[Num; 4]> {
    Ok([
        next_type(&mut form.words)?,
        next_type(&mut form.words)?,
        next_type(&mut form.words)?,
        next_type(&mut form.words)?,
    ])
}

/// Shapes by operand type.
fn check(shape: (u16, u16, u16), types: [Num; 4], a_col: bool, b_row: bool) -> Lowered<()> {
    use Num::*;
    let [d, a, b, c] = types;
    let small = |ty| matches!(ty, E4m3 | E5m2 | E2m1 | E2m3 | E3m2);
    let accumulates = |allowed: &[Num]| allowed.contains(&d) && allowed.contains(&c);
    let fits = match (a, shape) {
        // C may be widened, D not narrowed.
        (F16, (8, 8, 4)) => b == F16 && accumulates(&[F16, F32]) && (d, c) != (F16, F32),
        (F16, (16, 8, 8 | 16)) => b == F16 && d == c && accumulates(&[F16, F32]),
        (Bf16, (16, 8, 8 | 16)) => b == Bf16 && accumulates(&[F32]),
        (Tf32, (16, 8, 4 | 8)) => b == Tf32 && accumulates(&[F32]),
        (F64, (8, 8, 4) | (16, 8, 4 | 8 | 16)) => b == F64 && accumulates(&[F64]),
        (S8 | U8, (8, 8, 16) | (16, 8, 16 | 32)) => matches!(b, S8 | U8) && accumulates(&[S32]),
        (S4 | U4, (8, 8, 32) | (16, 8, 32 | 64)) => matches!(b, S4 | U4) && accumulates(&[S32]),
        (B1, (8, 8, 128) | (16, 8, 128 | 256)) => b == B1 && accumulates(&[S32]),
        (a, (16, 8, 16 | 32 | 64 | 128)) if small(a) => small(b) && accumulates(&[F16, F32]),
        _ => false,
    };
    if !fits {
        return illegal("mma has no such shape for these types");
    }
    if (a_col || b_row) && !(shape == (8, 8, 4) && a == F16) {
        return illegal("this shape has row-major A and column-major B");
    }
    Ok(())
}

/// Shapes of sparse products by operand type; those of Hopper, whatever a later chip adds.
fn check_sparse(shape: (u16, u16, u16), types: [Num; 4], transposed: bool) -> Lowered<()> {
    use Num::*;
    let [d, a, b, c] = types;
    let small = |ty| matches!(ty, E4m3 | E5m2 | E2m1 | E2m3 | E3m2);
    let same = d == c;
    let fits = match (a, shape) {
        (F16, (16, 8, 16 | 32)) => b == F16 && same && matches!(d, F16 | F32),
        (Bf16, (16, 8, 16 | 32)) => b == Bf16 && same && d == F32,
        (Tf32, (16, 8, 8 | 16)) => b == Tf32 && same && d == F32,
        (S8 | U8, (16, 8, 32 | 64)) => matches!(b, S8 | U8) && same && d == S32,
        (S4 | U4, (16, 8, 64 | 128)) => matches!(b, S4 | U4) && same && d == S32,
        (a, (16, 8, 64 | 128)) if small(a) => small(b) && same && matches!(d, F16 | F32),
        _ => false,
    };
    match fits && !transposed {
        true => Ok(()),
        false => illegal("mma.sp has no such shape for these types"),
    }
}

pub(super) fn values<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    registers: usize,
    ty: Num,
    write: bool,
) -> Lowered<SlotList> {
    if ty != Num::F64 {
        return fragment(emitter, operand, registers, write, false);
    }
    let items = match operand {
        Operand::Vector(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    if items.len() != registers {
        return wrong(format!("{registers} registers"), operand);
    }
    let mut slots = Vec::new();
    for item in items {
        slots.push(Slot::W64(match write {
            true => emitter.d64(item)?,
            false => emitter.s64(item, Num::F64)?,
        }));
    }
    emitter.list(&slots)
}

fn sparse_operands<'x, 'a>(
    emitter: &mut Emitter<'_, 'a>,
    ordered: Option<bool>,
    rest: &'x [Operand<'a>],
) -> Lowered<(Option<Sparsity>, &'x [Operand<'a>])> {
    match (ordered, rest) {
        (None, rest) => Ok((None, rest)),
        (Some(ordered), [metadata, selector, rest @ ..]) => {
            let sparsity = sparsity(emitter, metadata, selector, ordered)?;
            Ok((Some(sparsity), rest))
        }
        (Some(_), _) => illegal("a sparse mma needs metadata and a selector"),
    }
}

/// The metadata and selector operands.
pub(super) fn sparsity<'a>(
    emitter: &mut Emitter<'_, 'a>,
    metadata: &Operand<'a>,
    selector: &Operand<'a>,
    ordered: bool,
) -> Lowered<Sparsity> {
    let metadata = emitter.s32(metadata, Num::B32)?;
    let selector = immediate_u32(selector)?;
    if selector > 3 {
        return illegal("the sparsity selector must be 0 to 3");
    }
    Ok(Sparsity {
        metadata,
        selector: selector as u8,
        ordered,
    })
}

fn scale_words(form: &mut Form<'_, '_>, scaled: bool) -> Lowered<Option<(u8, Num)>> {
    if !form.words.take("block_scale") {
        return match scaled {
            true => Err(Problem::MissingModifier("block_scale")),
            false => Ok(None),
        };
    }
    let vectors = &[
        ("scale_vec::1X", 1),
        ("scale_vec::2X", 2),
        ("scale_vec::4X", 4),
    ];
    let vec = form.words.pick(vectors).unwrap_or(1);
    let types = &[("ue8m0", Num::Ue8m0), ("ue4m3", Num::E4m3)];
    let ty = form.words.need(types, "a scale type")?;
    Ok(Some((vec, ty)))
}

/// `scale-a, {byte-id-a, thread-id-a}, scale-b, {byte-id-b, thread-id-b}`
fn scale_operands<'a>(
    emitter: &mut Emitter<'_, 'a>,
    scale: Option<(u8, Num)>,
    rest: &[Operand<'a>],
) -> Lowered<Option<BlockScale>> {
    let Some((vec, ty)) = scale else {
        return match rest {
            [] => Ok(None),
            [extra, ..] => wrong("no further operand", extra),
        };
    };
    let [a, a_ids, b, b_ids] = rest else {
        return illegal("a block-scaled mma needs scales and their selectors");
    };
    Ok(Some(BlockScale {
        vec,
        ty,
        a: emitter.s32(a, Num::B32)?,
        a_ids: selectors(a_ids)?,
        b: emitter.s32(b, Num::B32)?,
        b_ids: selectors(b_ids)?,
    }))
}

fn selectors(operand: &Operand<'_>) -> Lowered<(u8, u8)> {
    let Operand::Vector(items) = operand else {
        return wrong("{byte id, thread id}", operand);
    };
    let [byte, thread] = items.as_slice() else {
        return wrong("{byte id, thread id}", operand);
    };
    match (immediate_u32(byte)?, immediate_u32(thread)?) {
        (byte @ 0..=3, thread @ 0..=3) => Ok((byte as u8, thread as u8)),
        _ => illegal("byte and thread ids are 0 to 3"),
    }
}
