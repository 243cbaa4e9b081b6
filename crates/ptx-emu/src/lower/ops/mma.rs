//! `mma.sync`.

use super::fragment::{fragment, next_type, shape};
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{immediate_u32, wrong};
use crate::op::*;
use crate::tensor::mma::narrow::{Narrow, Scales};
use crate::tensor::mma::octets::Octets;
use crate::tensor::mma::sparse::Sparse;
use crate::tensor::mma::{Accumulator, BitProduct};
use crate::tensor::scaled::{Scale, Scaled};
use crate::tensor::{self, Element};

/// Bits one element takes in a fragment register.
fn element_bits(ty: Num) -> u32 {
    match ty {
        Num::S4 | Num::U4 => 4,
        Num::B1 => 1,
        other => other.bits(),
    }
}

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
    if let Some(kind) = form.words.pick(KINDS) {
        if sparse {
            let name = "mma.sp of narrow kinds".to_owned();
            return Err(Problem::UnknownInstruction(name));
        }
        if a_col || b_row || (m, n) != (16, 8) {
            return illegal("this kind has m16n8, row-major A and column-major B");
        }
        return narrow(emitter, form, kind, k);
    }
    let satfinite = form.words.take("satfinite");
    let b1_op = form
        .words
        .pick(&[("and", BoolOp::And), ("xor", BoolOp::Xor)]);
    if b1_op.is_some() {
        form.words.exactly("popc")?;
    }
    // Sums of f64 are rounded to nearest, which may be written explicitly.
    let nearest = form.words.take("rn");
    let [d_ty, a_ty, b_ty, c_ty] = types(&mut form)?;
    form.words.finish()?;
    if nearest && d_ty != Num::F64 {
        return illegal(".rn goes with f64");
    }
    let types = [d_ty, a_ty, b_ty, c_ty];
    match sparse {
        true => check_sparse((m, n, k), types, a_col || b_row)?,
        false => check((m, n, k), types, a_col, b_row)?,
    }
    let ([d, a, b, c], rest) = match form.operands {
        [d, a, b, c, rest @ ..] => ([d, a, b, c], rest),
        other => {
            return Err(Problem::OperandCount {
                expected: "at least 4".into(),
                found: other.len(),
            });
        }
    };
    let octets = (m, n, k) == (8, 8, 4) && a_ty == Num::F16;
    // The oldest shape is computed four times over, by groups of eight lanes.
    let copies = if octets { 4 } else { 1 };
    let [m32, n32, k32] = [m, n, k].map(u32::from);
    let count = |elements: u32, ty: Num| fragment_registers(elements * copies, element_bits(ty));
    let a_elements = m32 * k32 / if sparse { 2 } else { 1 };
    let a = values(emitter, a, count(a_elements, a_ty), a_ty, false)?;
    let b = values(emitter, b, count(n32 * k32, b_ty), b_ty, false)?;
    let c = values(emitter, c, count(m32 * n32, c_ty), c_ty, false)?;
    let sparsity = sparse_operands(emitter, ordered, rest)?;
    let d = values(emitter, d, count(m32 * n32, d_ty), d_ty, true)?;
    let elements = (element(a_ty)?, element(b_ty)?);
    let sums = (accumulator(c_ty)?, accumulator(d_ty)?);
    let product = match sparsity {
        Some(sparsity) => {
            let chosen = (sparsity.selector, sparsity.ordered);
            Sparse::new(k32, elements, sums.1, satfinite, chosen)
                .map(Product::Sparse)
                .map_err(|e| Problem::Illegal(e.to_string()))?
        }
        None if octets => Product::Octets(Octets {
            a_by_column: a_col,
            b_by_row: b_row,
            c: sums.0,
            d: sums.1,
        }),
        None => {
            let (a, b) = elements;
            let bits = bit_product(b1_op);
            tensor::mma::Form::new((m32, n32, k32), a, b, sums.1, bits, satfinite)
                .map(Product::Dense)
                .map_err(|e| Problem::Illegal(e.to_string()))?
        }
    };
    emitter.emit(Op::Mma(Box::new(Mma {
        product,
        d,
        a,
        b,
        c,
        metadata: sparsity.map(|sparsity| sparsity.metadata),
        scales: None,
    })));
    Ok(())
}

/// The kinds of products of narrow floats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F8f6f4,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

const KINDS: &[(&str, Kind)] = &[
    ("kind::f8f6f4", Kind::F8f6f4),
    ("kind::mxf8f6f4", Kind::Mxf8f6f4),
    ("kind::mxf4", Kind::Mxf4),
    ("kind::mxf4nvf4", Kind::Mxf4nvf4),
];

/// `mma.sync…kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 d, a, b, c, sfa,
/// {byte, thread}, sfb, {byte, thread}` and similar forms.
fn narrow<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    kind: Kind,
    k: u16,
) -> Lowered<()> {
    let scaled = kind != Kind::F8f6f4;
    if scaled {
        form.words.exactly("block_scale")?;
    }
    let each = form.words.pick(&[
        ("scale_vec::1X", 1),
        ("scale_vec::2X", 2),
        ("scale_vec::4X", 4),
    ]);
    let types = types(&mut form)?;
    let scale = match scaled {
        false => None,
        true => Some(form.words.need(
            &[("ue8m0", Scale::Ue8m0), ("ue4m3", Scale::Ue4m3)],
            "the type of scales",
        )?),
    };
    form.words.finish()?;
    let [d_ty, a_ty, b_ty, c_ty] = types;
    let elements = (element(a_ty)?, element(b_ty)?);
    let packed = matches!(kind, Kind::Mxf4 | Kind::Mxf4nvf4);
    let fits = match packed {
        true => k == 64 && (a_ty, b_ty) == (Num::E2m1, Num::E2m1),
        false => k == 32 && [a_ty, b_ty].into_iter().all(is_narrow),
    };
    let sums = d_ty == c_ty && (d_ty == Num::F32 || (!scaled && d_ty == Num::F16));
    if !fits || !sums {
        return illegal("mma has no such shape for these types");
    }
    let scales = match (kind, each, scale) {
        (Kind::F8f6f4, None, _) => None,
        (Kind::Mxf8f6f4, None | Some(1), Some(Scale::Ue8m0)) => {
            Some((Scaled::Eights(elements.0, elements.1), 1))
        }
        (Kind::Mxf4, None | Some(2), Some(Scale::Ue8m0))
        | (Kind::Mxf4nvf4, Some(2), Some(Scale::Ue8m0)) => Some((Scaled::Fours(Scale::Ue8m0), 2)),
        (Kind::Mxf4nvf4, Some(4), Some(scale)) => Some((Scaled::Fours(scale), 4)),
        (Kind::Mxf4nvf4, None, _) => return Err(Problem::MissingModifier("scale_vec::2X or 4X")),
        _ => return illegal("this kind has no such scales"),
    };
    let scales = scales.map(|(kind, each)| Scales { kind, each });
    let ([d, a, b, c], rest) = match form.operands {
        [d, a, b, c, rest @ ..] if rest.len() == if scaled { 4 } else { 0 } => ([d, a, b, c], rest),
        other => {
            return Err(Problem::OperandCount {
                expected: if scaled { "8" } else { "4" }.into(),
                found: other.len(),
            });
        }
    };
    let sum_registers = if d_ty == Num::F16 { 2 } else { 4 };
    let a = values(emitter, a, 4, a_ty, false)?;
    let b = values(emitter, b, 2, b_ty, false)?;
    let c = values(emitter, c, sum_registers, c_ty, false)?;
    let block_scales = match (scales, rest) {
        (Some(scales), [of_a, pick_a, of_b, pick_b]) => Some([
            block_scales(emitter, of_a, pick_a, |byte, thread| {
                scales.selects(byte, thread, true)
            })?,
            block_scales(emitter, of_b, pick_b, |byte, thread| {
                scales.selects(byte, thread, false)
            })?,
        ]),
        _ => None,
    };
    let d = values(emitter, d, sum_registers, d_ty, true)?;
    let product = Product::Narrow(Narrow {
        a: elements.0,
        b: elements.1,
        d: accumulator(d_ty)?,
        scales,
    });
    emitter.emit(Op::Mma(Box::new(Mma {
        product,
        d,
        a,
        b,
        c,
        metadata: None,
        scales: block_scales,
    })));
    Ok(())
}

fn is_narrow(ty: Num) -> bool {
    matches!(
        ty,
        Num::E4m3 | Num::E5m2 | Num::E2m3 | Num::E3m2 | Num::E2m1
    )
}

/// A register of scales and `{byte-id, thread-id}`, each a constant or a register.
fn block_scales<'a>(
    emitter: &mut Emitter<'_, 'a>,
    data: &Operand<'a>,
    pick: &Operand<'a>,
    selects: impl Fn(u32, u32) -> bool,
) -> Lowered<BlockScales> {
    let data = match data {
        Operand::Vector(items) if items.len() == 1 => &items[0],
        other => other,
    };
    let Operand::Vector(picks) = pick else {
        return wrong("a vector of byte-id and thread-id", pick);
    };
    let [byte, thread] = &picks[..] else {
        return wrong("a vector of byte-id and thread-id", pick);
    };
    let known = immediate_u32(byte).ok().zip(immediate_u32(thread).ok());
    if known.is_some_and(|(byte, thread)| !selects(byte, thread)) {
        return illegal("byte-id or thread-id names scales that are not there");
    }
    Ok(BlockScales {
        data: emitter.s32(data, Num::B32)?,
        byte: emitter.s32(byte, Num::U16)?,
        thread: emitter.s32(thread, Num::U16)?,
    })
}

/// The tensor-core element of a type.
pub(super) fn element(ty: Num) -> Lowered<Element> {
    Ok(match ty {
        Num::F64 => Element::F64,
        Num::S4 => Element::S4,
        Num::U4 => Element::U4,
        Num::F16 => Element::F16,
        Num::Bf16 => Element::Bf16,
        Num::Tf32 => Element::Tf32,
        Num::E4m3 => Element::E4m3,
        Num::E5m2 => Element::E5m2,
        Num::E2m3 => Element::E2m3,
        Num::E3m2 => Element::E3m2,
        Num::E2m1 => Element::E2m1,
        Num::S8 => Element::S8,
        Num::U8 => Element::U8,
        Num::B1 => Element::B1,
        other => return illegal(format!("tensor cores do not multiply {other:?} here")),
    })
}

/// The type of the sums.
pub(super) fn accumulator(ty: Num) -> Lowered<Accumulator> {
    Ok(match ty {
        Num::F16 => Accumulator::F16,
        Num::F32 => Accumulator::F32,
        Num::F64 => Accumulator::F64,
        Num::S32 => Accumulator::S32,
        other => return illegal(format!("tensor cores do not sum in {other:?}")),
    })
}

pub(super) fn bit_product(op: Option<BoolOp>) -> BitProduct {
    match op {
        Some(BoolOp::Xor) => BitProduct::Xor,
        _ => BitProduct::And,
    }
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
    let small = |ty| matches!(ty, E4m3 | E5m2);
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
        (a, (16, 8, 16 | 32)) if small(a) => small(b) && d == c && accumulates(&[F16, F32]),
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

/// Shapes of sparse products by operand type; those of Hopper, not those that later chips add.
fn check_sparse(shape: (u16, u16, u16), types: [Num; 4], transposed: bool) -> Lowered<()> {
    use Num::*;
    let [d, a, b, c] = types;
    let small = |ty| matches!(ty, E4m3 | E5m2);
    let same = d == c;
    let fits = match (a, shape) {
        (F16, (16, 8, 16 | 32)) => b == F16 && same && matches!(d, F16 | F32),
        (Bf16, (16, 8, 16 | 32)) => b == Bf16 && same && d == F32,
        (Tf32, (16, 8, 8 | 16)) => b == Tf32 && same && d == F32,
        (S8 | U8, (16, 8, 32 | 64)) => matches!(b, S8 | U8) && same && d == S32,
        (S4 | U4, (16, 8, 64 | 128)) => matches!(b, S4 | U4) && same && d == S32,
        (a, (16, 8, 64)) if small(a) => small(b) && same && matches!(d, F16 | F32),
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

fn sparse_operands<'a>(
    emitter: &mut Emitter<'_, 'a>,
    ordered: Option<bool>,
    rest: &[Operand<'a>],
) -> Lowered<Option<Sparsity>> {
    match (ordered, rest) {
        (None, []) => Ok(None),
        (Some(ordered), [metadata, selector]) => {
            sparsity(emitter, metadata, selector, ordered).map(Some)
        }
        (None, [extra, ..]) | (Some(_), [_, _, extra, ..]) => wrong("no further operand", extra),
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
