//! Moves, packing, and addresses between spaces.

use super::memory;
use super::row::row;
use crate::front::ast::{Constant, Operand};
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{exactly, wrong};
use crate::op::*;

/// All of [`memory::SPACES`] but the last.
const SPACES: &[(&str, Space)] = memory::SPACES.split_at(memory::SPACES.len() - 1).0;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "mov" => mov(emitter, form),
        "cvta" => {
            let to_generic = !form.words.take("to");
            let space = form.words.need(SPACES, "a state space")?;
            form.words.end(&["u64"])?;
            // In a function, parameters lie in local memory.
            let space = match space {
                Space::Param if !emitter.in_kernel => Space::Local,
                other => other,
            };
            let ty = Num::U64;
            row!(emitter, form, Cvta { space, to_generic } [d: ty] = [a: ty])
        }
        "isspacep" => {
            let space = form.words.need(SPACES, "a state space")?;
            form.words.finish()?;
            let ty = Num::U64;
            row!(emitter, form, Isspacep { space } [d: ty] = [a: ty])
        }
        "mapa" => mapa(emitter, form),
        "getctarank" => {
            let generic = !form.words.take("shared::cluster");
            let ty = form.words.last_ty()?;
            row!(emitter, form, GetCtaRank { generic } [d: Num::U32] = [a: ty])
        }
        _ => {
            form.words.end(&["b32"])?;
            row!(emitter, form, Activemask {} [d: Num::B32] = [])
        }
    }
}

fn mapa<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let generic = !form.words.take("shared::cluster");
    let ty = form.words.last_ty()?;
    match ty {
        Num::U32 if !generic => row!(emitter, form, Mapa32 {} [d: ty] = [a: ty, b: ty]),
        Num::U64 => row!(emitter, form, Mapa64 { generic } [d: ty] = [a: ty, b: Num::U32]),
        _ => illegal("mapa is for .u64, and .u32 with .shared::cluster"),
    }
}

fn mov<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take("pred") {
        form.words.finish()?;
        let [d, a] = exactly(form.operands)?;
        return mov_pred(emitter, d, a);
    }
    if let Some(parts) = form.words.pick(&[("v2", 2), ("v4", 4)]) {
        return mov_vector(emitter, form, parts);
    }
    let ty = form.words.last_ty()?;
    let [d, a] = exactly(form.operands)?;
    match (d, a) {
        (d, Operand::Vector(parts)) => pack(emitter, d, parts, ty),
        (Operand::Vector(parts), a) => unpack(emitter, parts, a, ty),
        (d, a) if ty.bits() == 128 => mov128(emitter, d, a),
        (d, a) => mov_one(emitter, d, a, ty),
    }
}

fn mov_pred<'a>(emitter: &mut Emitter<'_, 'a>, d: &Operand<'a>, a: &Operand<'a>) -> Lowered<()> {
    if *a == Operand::Name("%is_explicit_cluster") {
        let a = emitter.special32(Special::IsExplicitCluster);
        let b = emitter.const32(0);
        let d = emitter.dp(d)?;
        emitter.emit(Op::SetpI32 {
            w: W::B32,
            cmp: Cmp::Ne,
            signed: false,
            d,
            a,
            b,
        });
        return Ok(());
    }
    let (a, negate) = emitter.sp(a)?;
    let d = emitter.dp(d)?;
    emitter.emit(Op::PMov { d, a, negate });
    Ok(())
}

fn mov_one<'a>(
    emitter: &mut Emitter<'_, 'a>,
    d: &Operand<'a>,
    a: &Operand<'a>,
    ty: Num,
) -> Lowered<()> {
    match ty.bits() {
        64 => {
            // The 32-bit specials may be read as 64 bits.
            if emitter.is_special32(a)? {
                let lo = emitter.s32(a, Num::U32)?;
                let hi = emitter.const32(0);
                let d = emitter.d64(d)?;
                emitter.emit(Op::Pack64 { d, lo, hi });
                return Ok(());
            }
            let a = emitter.s64(a, ty)?;
            let d = emitter.d64(d)?;
            emitter.emit(Op::Mov64 { d, a });
        }
        bits => {
            let a = emitter.s32(a, ty)?;
            let d = emitter.d32(d, bits)?;
            emitter.note_copy(d, a);
            emitter.emit(Op::Mov32 { d, a });
        }
    }
    Ok(())
}

fn mov128<'a>(emitter: &mut Emitter<'_, 'a>, d: &Operand<'a>, a: &Operand<'a>) -> Lowered<()> {
    let from = emitter.source128(a)?;
    let target = emitter.target(d, 128)?;
    let to = emitter.halves(target);
    for (d, a) in to.into_iter().zip(from) {
        emitter.emit(Op::Mov64 { d, a });
    }
    Ok(())
}

fn part_type(bits: u32) -> Lowered<Num> {
    Ok(match bits {
        8 => Num::B8,
        16 => Num::B16,
        32 => Num::B32,
        64 => Num::B64,
        _ => return illegal("the vector's elements do not divide the type"),
    })
}

/// `mov.b64 d, {lo, hi}`
fn pack<'a>(
    emitter: &mut Emitter<'_, 'a>,
    d: &Operand<'a>,
    parts: &[Operand<'a>],
    ty: Num,
) -> Lowered<()> {
    let bits = ty.bits() / (parts.len().max(1) as u32);
    let part = part_type(bits)?;
    let mut slots = Vec::new();
    for operand in parts {
        slots.push(emitter.source(operand, part)?);
    }
    match (ty.bits(), slots.as_slice()) {
        (128, &[Slot::W64(lo), Slot::W64(hi)]) => {
            let target = emitter.target(d, 128)?;
            let to = emitter.halves(target);
            // Through a temporary: the high source may be the low destination.
            let kept = emitter.temp64();
            emitter.emit(Op::Mov64 { d: kept, a: hi });
            emitter.emit(Op::Mov64 { d: to[0], a: lo });
            emitter.emit(Op::Mov64 { d: to[1], a: kept });
        }
        (128, &[a, b, c, e]) => {
            let target = emitter.target(d, 128)?;
            let to = emitter.halves(target);
            for (d, pair) in to.into_iter().zip([[a, b], [c, e]]) {
                let [Slot::W32(lo), Slot::W32(hi)] = pair else {
                    return illegal("elements of 32 bits make up 128");
                };
                emitter.emit(Op::Pack64 { d, lo, hi });
            }
        }
        (64, &[Slot::W32(lo), Slot::W32(hi)]) => {
            let d = emitter.d64(d)?;
            emitter.emit(Op::Pack64 { d, lo, hi });
        }
        (32, &[Slot::W32(lo), Slot::W32(hi)]) => {
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Pack32 { d, lo, hi });
        }
        (16 | 32 | 64, slots) => {
            let d = emitter.dslot(d, ty.bits())?;
            let parts = emitter.list(slots)?;
            let bits = bits as u8;
            emitter.emit(Op::PackN { d, bits, parts });
        }
        _ => return illegal("no such packing"),
    }
    Ok(())
}

/// `mov.b64 {lo, hi}, a`
fn unpack<'a>(
    emitter: &mut Emitter<'_, 'a>,
    parts: &[Operand<'a>],
    a: &Operand<'a>,
    ty: Num,
) -> Lowered<()> {
    let bits = ty.bits() / (parts.len().max(1) as u32);
    part_type(bits)?;
    if ty.bits() == 128 {
        let from = emitter.source128(a)?;
        return unpack128(emitter, parts, from, bits);
    }
    let source = emitter.source(a, part_type(ty.bits())?)?;
    let mut slots = Vec::new();
    for part in parts {
        slots.push(emitter.dslot(part, bits)?);
    }
    match (source, slots.as_slice()) {
        (Slot::W64(a), &[lo, hi]) => emitter.emit(Op::Unpack64 { lo, hi, a }),
        (Slot::W32(a), &[lo, hi]) if bits == 16 => emitter.emit(Op::Unpack32 { lo, hi, a }),
        (a, slots) => {
            let parts = emitter.list(slots)?;
            let bits = bits as u8;
            emitter.emit(Op::UnpackN { a, bits, parts });
        }
    }
    Ok(())
}

fn unpack128<'a>(
    emitter: &mut Emitter<'_, 'a>,
    parts: &[Operand<'a>],
    from: [R64; 2],
    bits: u32,
) -> Lowered<()> {
    match parts {
        [lo, hi] => {
            for (part, a) in [lo, hi].into_iter().zip(from) {
                if let Slot::W64(d) = emitter.dslot(part, 64)? {
                    emitter.emit(Op::Mov64 { d, a });
                }
            }
        }
        [w0, w1, w2, w3] if bits == 32 => {
            for (pair, a) in [[w0, w1], [w2, w3]].into_iter().zip(from) {
                let lo = emitter.dslot(pair[0], 32)?;
                let hi = emitter.dslot(pair[1], 32)?;
                emitter.emit(Op::Unpack64 { lo, hi, a });
            }
        }
        _ => return illegal("128 bits split into two or four"),
    }
    Ok(())
}

/// `mov.v4.u32 {a, b, c, d}, %tid;`, and `{a, b}, {b, a}`
fn mov_vector<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    parts: usize,
) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    let [d, a] = exactly(form.operands)?;
    let targets = elements(d, parts)?;
    let mut sources = elements(a, parts)?;
    for source in &mut sources {
        // The fourth element of `%tid` and similar registers is zero.
        if let Operand::Member(name, "w") = *source
            && name.starts_with('%')
            && emitter.register(source)?.is_none()
        {
            *source = Operand::Constant(Constant::Int(0));
        }
    }
    let mut to = Vec::new();
    let mut from = Vec::new();
    for (d, a) in targets.iter().zip(&sources) {
        to.push(emitter.target(d, ty.bits())?);
        from.push(emitter.register(a)?);
    }
    // All are read before any is written.
    let late = |at: usize| from[at + 1..].contains(&Some(to[at]));
    if !(0..parts).any(late) {
        for (d, a) in targets.iter().zip(&sources) {
            mov_one(emitter, d, a, ty)?;
        }
        return Ok(());
    }
    let mut kept = Vec::new();
    for a in &sources {
        kept.push(match emitter.source(a, ty)? {
            Slot::W64(a) => {
                let d = emitter.temp64();
                emitter.emit(Op::Mov64 { d, a });
                Slot::W64(d)
            }
            Slot::W32(a) => {
                let d = emitter.temp32();
                emitter.note_copy(d, a);
                emitter.emit(Op::Mov32 { d, a });
                Slot::W32(d)
            }
            Slot::Sink => Slot::Sink,
        });
    }
    for (d, a) in to.into_iter().zip(kept) {
        match (emitter.any_slot(d), a) {
            (Slot::W64(d), Slot::W64(a)) => emitter.emit(Op::Mov64 { d, a }),
            (Slot::W32(d), Slot::W32(a)) => {
                emitter.note_copy(d, a);
                emitter.emit(Op::Mov32 { d, a });
            }
            _ => return illegal("elements of another width than the vector's type"),
        }
    }
    Ok(())
}

fn elements<'a>(operand: &Operand<'a>, parts: usize) -> Lowered<Vec<Operand<'a>>> {
    match operand {
        Operand::Vector(items) if items.len() == parts => Ok(items.clone()),
        Operand::Name(name) if name.starts_with('%') => Ok(["x", "y", "z", "w"][..parts]
            .iter()
            .map(|member| Operand::Member(name, member))
            .collect()),
        other => wrong(format!("a vector of {parts}"), other),
    }
}
