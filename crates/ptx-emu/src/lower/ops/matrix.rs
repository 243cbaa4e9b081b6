//! Tensor-core instructions and matrix fragments.

use super::fragment::{fragment, next_type, shape};
use super::mma::{element, sparsity};
use super::row::bare;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{exactly, immediate, immediate_u32};
use crate::lower::modifiers::Modifiers;
use crate::op::*;
use crate::tensor::matrix::Tile;
use crate::tensor::wgmma::{self, Accumulator};

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "wgmma" => wgmma(emitter, form),
        "mma" => super::mma::lower(emitter, form),
        "movmatrix" => {
            for word in ["sync", "aligned", "m8n8", "trans", "b16"] {
                form.words.exactly(word)?;
            }
            form.words.finish()?;
            let [d, a] = exactly(form.operands)?;
            let a = emitter.s32(a, Num::B32)?;
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Movmatrix { d, a });
            Ok(())
        }
        _ => matrix_move(emitter, form),
    }
}

fn wgmma<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let action = form
        .words
        .next()
        .ok_or(Problem::MissingModifier("an action"))?;
    let sparse = action == "mma_async" && form.words.take("sp");
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    match action {
        "fence" => bare(emitter, &form, Op::WgmmaFence),
        "commit_group" => bare(emitter, &form, Op::WgmmaCommit),
        "wait_group" => {
            form.words.finish()?;
            let [n] = exactly(form.operands)?;
            let n = immediate_u32(n)?;
            if n > 7 {
                return illegal("at most 7 groups can stay pending");
            }
            emitter.emit(Op::WgmmaWait { n });
            Ok(())
        }
        "mma_async" => wgmma_mma(emitter, form, sparse),
        other => Err(Problem::UnknownModifier(other.to_owned())),
    }
}

/// Bits of K that one instruction covers.
const WGMMA_K_BITS: u32 = 256;

fn wgmma_mma<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    sparse: bool,
) -> Lowered<()> {
    let (m, n, k) = shape(&mut form.words)?;
    let satfinite = form.words.take("satfinite");
    let d_ty = next_type(&mut form.words)?;
    let a_ty = next_type(&mut form.words)?;
    let b_ty = next_type(&mut form.words)?;
    if a_ty == Num::B1 {
        form.words.exactly("and")?;
        form.words.exactly("popc")?;
    }
    form.words.finish()?;
    // A sparse A covers twice the k in the same bytes.
    let stored_k = if sparse { k / 2 } else { k };
    check_wgmma((m, n, stored_k), d_ty, a_ty, b_ty, satfinite)?;
    if sparse && (a_ty == Num::B1 || k % 2 == 1) {
        return illegal("wgmma has no such sparse product");
    }
    let (fixed, metadata, flags) = match form.operands {
        [d, a, b, metadata, selector, scale, flags @ ..] if sparse => {
            ([d, a, b, scale], Some((metadata, selector)), flags)
        }
        [d, a, b, scale, flags @ ..] if !sparse => ([d, a, b, scale], None, flags),
        _ => {
            return Err(Problem::OperandCount {
                expected: format!("at least {}", if sparse { 6 } else { 4 }),
                found: form.operands.len(),
            });
        }
    };
    let sparse = match metadata {
        Some((metadata, selector)) => Some(sparsity(emitter, metadata, selector, false)?),
        None => None,
    };
    let [d, a, b, scale] = fixed;
    let from_registers = matches!(a, Operand::Vector(_));
    let flags = Flags::read(flags, a_ty, from_registers)?;
    let a = match a {
        Operand::Vector(_) => WgmmaA::Regs(fragment(emitter, a, 4, false, true)?),
        desc => WgmmaA::Desc(emitter.s64(desc, Num::B64)?),
    };
    let b_desc = emitter.s64(b, Num::B64)?;
    let (scale_d, zero_d) = scale_operand(emitter, scale)?;
    let registers = usize::from(n) * 64 / 128 / if d_ty == Num::F16 { 2 } else { 1 };
    let d = fragment(emitter, d, registers, true, true)?;
    let sums = match d_ty {
        Num::F16 => Accumulator::F16,
        Num::F32 => Accumulator::F32,
        _ => Accumulator::S32,
    };
    let (a_element, b_element) = (element(a_ty)?, element(b_ty)?);
    let negate = flags.negate_a != flags.negate_b;
    let form = wgmma::Form::new(n.into(), a_element, b_element, sums, negate, satfinite)
        .map_err(|e| Problem::Illegal(e.to_string()))?;
    emitter.emit(Op::Wgmma(Box::new(Wgmma {
        n,
        k,
        form,
        d,
        a,
        b_desc,
        scale_d,
        zero_d,
        trans_a: flags.trans_a,
        trans_b: flags.trans_b,
        sparse,
    })));
    Ok(())
}

fn check_wgmma((m, n, k): (u16, u16, u16), d: Num, a: Num, b: Num, satfinite: bool) -> Lowered<()> {
    use Num::*;
    let (bits, types_fit) = match a {
        F16 => (16, b == F16 && matches!(d, F16 | F32)),
        Bf16 => (16, b == Bf16 && d == F32),
        Tf32 => (32, b == Tf32 && d == F32),
        E4m3 | E5m2 => (8, matches!(b, E4m3 | E5m2) && matches!(d, F16 | F32)),
        S8 | U8 => (8, matches!(b, S8 | U8) && d == S32),
        B1 => (1, b == B1 && d == S32),
        _ => (0, false),
    };
    if !types_fit {
        return illegal("wgmma does not multiply these types");
    }
    let integer = matches!(a, S8 | U8 | B1);
    if satfinite && !matches!(a, S8 | U8) {
        return illegal(".satfinite goes with integer operands");
    }
    // Integer shapes grow by 16 from 32 on.
    let n_fits = match integer {
        true => matches!(n, 8 | 16 | 24) || (n.is_multiple_of(16) && (32..=256).contains(&n)),
        false => n.is_multiple_of(8) && (8..=256).contains(&n),
    };
    match m == 64 && n_fits && u32::from(k) * bits == WGMMA_K_BITS {
        true => Ok(()),
        false => illegal("wgmma has no such shape for these types"),
    }
}

/// The immediates after `scale-d`.
struct Flags {
    negate_a: bool,
    negate_b: bool,
    trans_a: bool,
    trans_b: bool,
}

impl Flags {
    fn read(operands: &[Operand<'_>], a_ty: Num, from_registers: bool) -> Lowered<Self> {
        let integer = matches!(a_ty, Num::S8 | Num::U8 | Num::B1);
        let half = matches!(a_ty, Num::F16 | Num::Bf16);
        let transposes = match (half, from_registers) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        let wanted = if integer { 0 } else { 2 + transposes };
        if operands.len() != wanted {
            return Err(Problem::OperandCount {
                expected: (4 + wanted).to_string(),
                found: 4 + operands.len(),
            });
        }
        let sign = |at: usize| match operands.get(at).map(immediate).transpose()? {
            None | Some(1) => Ok(false),
            Some(-1) => Ok(true),
            Some(_) => illegal("imm-scale must be 1 or -1"),
        };
        let transpose = |at: usize| match immediate(&operands[at])? {
            0 => Ok(false),
            1 => Ok(true),
            _ => illegal("imm-trans must be 0 or 1"),
        };
        Ok(Self {
            negate_a: sign(0)?,
            negate_b: sign(1)?,
            trans_a: if transposes == 2 {
                transpose(2)?
            } else {
                false
            },
            trans_b: match transposes {
                2 => transpose(3)?,
                1 => transpose(2)?,
                _ => false,
            },
        })
    }
}

/// `scale-d`: a predicate, or a constant.
fn scale_operand<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
) -> Lowered<(Option<P>, bool)> {
    if let Operand::Constant(_) = operand {
        return Ok((None, immediate(operand)? == 0));
    }
    let (p, negated) = emitter.sp(operand)?;
    if !negated {
        return Ok((Some(p), false));
    }
    let d = emitter.temp_pred();
    emitter.emit(Op::PMov {
        d,
        a: p,
        negate: true,
    });
    Ok((Some(d), false))
}

fn matrix_move<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let store = form.opcode == "stmatrix";
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    let trans = form.words.take("trans");
    let count = form
        .words
        .need(&[("x1", 1u8), ("x2", 2), ("x4", 4)], "x1, x2 or x4")?;
    let spaces = &[("shared", ()), ("shared::cta", ())];
    let space = match form.words.pick(spaces) {
        Some(()) => Space::Shared,
        None => Space::Generic,
    };
    let tile = tile(&mut form.words, trans, store)?;
    form.words.finish()?;
    if matches!(tile, Tile::Square { .. }) && count == 4 {
        return illegal("m16n16 has .x1 and .x2 only");
    }
    let registers = usize::from(count) * tile.registers();
    let [first, second] = exactly(form.operands)?;
    let (regs, address) = if store {
        (second, first)
    } else {
        (first, second)
    };
    let addr = emitter.addr(address, space)?;
    let regs = fragment(emitter, regs, registers, !store, false)?;
    emitter.emit(Op::MatrixMove(Box::new(MatrixMove {
        store,
        count,
        tile,
        addr,
        space,
        regs,
    })));
    Ok(())
}

/// Elements that are spread to bytes, by their bits.
const PACKED: &[(&str, u32)] = &[("b4x16_p64", 4), ("b6x16_p32", 6)];

/// Shape and elements of the matrices that are moved.
fn tile(words: &mut Modifiers<'_>, trans: bool, store: bool) -> Lowered<Tile> {
    if words.take("m16n16") {
        let bits = match words.take("b8x16") {
            true => words.need(PACKED, "b4x16_p64 or b6x16_p32")?,
            false => words.exactly("b8").map(|()| 8)?,
        };
        return match trans && !store {
            true => Ok(Tile::Square { bits }),
            false => illegal("m16n16 is loaded, with .trans"),
        };
    }
    if words.take("m16n8") {
        words.exactly("b8")?;
        return match trans && store {
            true => Ok(Tile::TallBytes),
            false => illegal("m16n8 is stored, with .trans"),
        };
    }
    if words.take("m8n16") {
        words.exactly("b8x16")?;
        let bits = words.need(PACKED, "b4x16_p64 or b6x16_p32")?;
        return match trans || store {
            true => illegal("m8n16 is loaded, without .trans"),
            false => Ok(Tile::Packed { bits }),
        };
    }
    match words.take("m8n8") && words.take("b16") {
        true => Ok(Tile::Halves { trans }),
        false => Err(Problem::MissingModifier("m8n8 and b16")),
    }
}
