//! `cvt` in all its forms.

use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly};
use crate::lower::modifiers::{Modifiers, TYPES};
use crate::op::*;

/// Pairs of small floats.
const PAIRS: &[(&str, Num)] = &[
    ("f16x2", Num::F16),
    ("bf16x2", Num::Bf16),
    ("e4m3x2", Num::E4m3),
    ("e5m2x2", Num::E5m2),
    ("e2m1x2", Num::E2m1),
    ("e2m3x2", Num::E2m3),
    ("e3m2x2", Num::E3m2),
    ("ue8m0x2", Num::Ue8m0),
    ("s2f6x2", Num::S2f6),
];

/// Rounding words and whether they round to an integer.
const ROUNDS: &[(&str, (Round, bool))] = &[
    ("rn", (Round::Near, false)),
    ("rz", (Round::Zero, false)),
    ("rm", (Round::Down, false)),
    ("rp", (Round::Up, false)),
    ("rna", (Round::NearAway, false)),
    ("rni", (Round::Near, true)),
    ("rzi", (Round::Zero, true)),
    ("rmi", (Round::Down, true)),
    ("rpi", (Round::Up, true)),
];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take_first("pack") {
        return pack_integers(emitter, form);
    }
    if form.words.take_first("rs") {
        return stochastic(emitter, form);
    }
    let rounding = form.words.pick(ROUNDS);
    let (round, integer) = rounding.unwrap_or_default();
    let m = CvtMods {
        round,
        integer,
        ftz: form.words.take("ftz"),
        sat: form.words.take("sat"),
        satfinite: form.words.take("satfinite"),
        relu: form.words.take("relu"),
    };
    let scaled = form.words.take("scaled::n2::ue8m0");
    let to = form_type(&mut form.words)?;
    let from = form_type(&mut form.words)?;
    form.words.finish()?;
    if scaled || [to, from].contains(&Shape::Two(Num::S2f6)) {
        return with_scales(emitter, form.operands, (to, from), m, scaled);
    }
    match (to, from) {
        (Shape::One(to), Shape::One(from)) => {
            scalar(emitter, form.operands, to, from, m, rounding.is_some())
        }
        (Shape::Two(to), Shape::One(Num::F32)) => {
            check_pair(to, Num::F32, m, rounding.is_some())?;
            from_singles(emitter, form.operands, to, m)
        }
        (Shape::Two(to), Shape::Two(from)) => {
            check_pair(to, from, m, rounding.is_some())?;
            pair(emitter, form.operands, to, from, m)
        }
        _ => illegal("there is no conversion between these types"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One(Num),
    Two(Num),
}

/// The next type word, in order: the result's first.
fn form_type(words: &mut Modifiers<'_>) -> Lowered<Shape> {
    let word = words.next().ok_or(Problem::MissingModifier("a type"))?;
    let find = |table: &[(&str, Num)]| {
        let found = table.iter().find(|&&(name, _)| name == word);
        found.map(|&(_, ty)| ty)
    };
    if let Some(ty) = find(PAIRS) {
        return Ok(Shape::Two(ty));
    }
    match find(TYPES) {
        Some(ty) if ty.is_integer() && ty != Num::B128 => Ok(Shape::One(ty)),
        Some(ty @ (Num::F16 | Num::Bf16 | Num::Tf32 | Num::F32 | Num::F64)) => Ok(Shape::One(ty)),
        _ => Err(Problem::UnknownModifier(word.to_owned())),
    }
}

fn scalar<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
    to: Num,
    from: Num,
    m: CvtMods,
    rounded: bool,
) -> Lowered<()> {
    check_scalar(to, from, m, rounded)?;
    let [d, a] = exactly(operands)?;
    let (mut a, a_bits) = emitter.wide_source(a, from)?;
    // Of a wider source register the low part is used.
    if a_bits > from.bits() {
        a = narrow(emitter, a, from.bits())?;
    }
    let (d, d_bits) = emitter.wide_target(d, to.bits())?;
    if d_bits == to.bits() || d == Slot::Sink {
        emitter.emit(Op::Cvt { from, to, m, d, a });
        return Ok(());
    }
    // A wider destination is extended, with the sign if the type has one.
    let part = match to.bits() {
        64 => Slot::W64(emitter.temp64()),
        _ => Slot::W32(emitter.temp32()),
    };
    emitter.emit(Op::Cvt {
        from,
        to,
        m,
        d: part,
        a,
    });
    let (from, to) = match (to.is_signed(), to.bits(), d_bits) {
        (true, bits, wide) => (integer(bits, true)?, integer(wide, true)?),
        (false, bits, wide) => (integer(bits, false)?, integer(wide, false)?),
    };
    emitter.emit(Op::Cvt {
        from,
        to,
        m: CvtMods::default(),
        d,
        a: part,
    });
    Ok(())
}

fn integer(bits: u32, signed: bool) -> Lowered<Num> {
    Ok(match (bits, signed) {
        (8, false) => Num::U8,
        (8, true) => Num::S8,
        (16, false) => Num::U16,
        (16, true) => Num::S16,
        (32, false) => Num::U32,
        (32, true) => Num::S32,
        (64, false) => Num::U64,
        (64, true) => Num::S64,
        _ => return illegal("no integer type has this width"),
    })
}

/// The low `bits` of a slot, zero-extended in a slot of that width.
fn narrow(emitter: &mut Emitter<'_, '_>, slot: Slot, bits: u32) -> Lowered<Slot> {
    let low = match slot {
        Slot::W64(a) => {
            let lo = emitter.temp32();
            emitter.emit(Op::Unpack64 {
                lo: Slot::W32(lo),
                hi: Slot::Sink,
                a,
            });
            lo
        }
        Slot::W32(a) => a,
        Slot::Sink => return Ok(slot),
    };
    if bits >= 32 {
        return Ok(Slot::W32(low));
    }
    let mask = emitter.const32((1 << bits) - 1);
    let d = emitter.temp32();
    emitter.emit(Op::Bin32 {
        w: W::B32,
        op: IBin::And,
        d,
        a: low,
        b: mask,
    });
    Ok(Slot::W32(d))
}

fn check_scalar(to: Num, from: Num, m: CvtMods, rounded: bool) -> Lowered<()> {
    let float = |ty: Num| !ty.is_integer();
    if to == Num::Tf32 {
        return match from == Num::F32 && rounded && !m.integer {
            true => Ok(()),
            false => illegal("tf32 is made from .f32 with a rounding"),
        };
    }
    if from == Num::Tf32 {
        return illegal("there is no conversion from tf32");
    }
    if m.relu && !(matches!(to, Num::F16 | Num::Bf16) && from == Num::F32) {
        return illegal(".relu goes with .f16, .bf16 and .tf32 results");
    }
    if m.satfinite && !matches!(to, Num::F16 | Num::Bf16) {
        return illegal(".satfinite goes with small float results");
    }
    match (float(to), float(from)) {
        (false, true) if rounded && !m.integer => {
            illegal("float to integer needs .rni, .rzi, .rmi or .rpi")
        }
        (false, true) if !rounded => Err(Problem::MissingModifier("a rounding to integer")),
        (true, false) if m.integer || !rounded => Err(Problem::MissingModifier(
            "a rounding: integer to float needs .rn, .rz, .rm or .rp",
        )),
        (false, false) if rounded => illegal("integer to integer does not round"),
        (true, true) if to.bits() < from.bits() && !rounded => Err(Problem::MissingModifier(
            "a rounding: the result is narrower",
        )),
        _ => Ok(()),
    }
}

/// Register width of a pair: two fp4 share a byte, two fp8 or fp6 have 16 bits, two halves 32.
fn pair_bits(ty: Num) -> u32 {
    match ty {
        Num::F16 | Num::Bf16 => 32,
        Num::E2m1 => 8,
        _ => 16,
    }
}

/// The rules of conversions between packed types, as in ptxas.
fn check_pair(to: Num, from: Num, m: CvtMods, rounded: bool) -> Lowered<()> {
    let half = |ty| matches!(ty, Num::F16 | Num::Bf16);
    if !rounded {
        return Err(Problem::MissingModifier(
            "a rounding: packed types need one",
        ));
    }
    if m.integer || m.ftz || m.sat {
        return illegal("packed types have no .sat, .ftz or rounding to integers");
    }
    if to == Num::Ue8m0 {
        if !matches!(m.round, Round::Zero | Round::Up) || m.relu {
            return illegal("ue8m0 is rounded by .rz or .rp, without .relu");
        }
        return match from {
            Num::F32 | Num::Bf16 => Ok(()),
            _ => illegal("ue8m0 is made from .f32 and .bf16x2"),
        };
    }
    if from == Num::Ue8m0 && (to != Num::Bf16 || m.relu) {
        return illegal("ue8m0 becomes .bf16x2, without .relu");
    }
    if !half(to) && !m.satfinite {
        return Err(Problem::MissingModifier("satfinite"));
    }
    let near = m.round == Round::Near || (half(to) && from == Num::F32 && m.round == Round::Zero);
    match near {
        true => Ok(()),
        false => illegal("packed types are rounded by .rn"),
    }
}

/// Pairs that are multiplied (or, becoming s2f6, divided) by a power of two each; by one without
/// scales.
fn with_scales<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
    (to, from): (Shape, Shape),
    m: CvtMods,
    scaled: bool,
) -> Lowered<()> {
    if m.round != Round::Near || m.integer || m.ftz || m.sat {
        return illegal("s2f6 and scaled types are rounded by .rn");
    }
    let (from, to, singles) = match (from, to) {
        (Shape::One(Num::F32), Shape::Two(Num::S2f6)) => (Num::F32, Num::S2f6, true),
        (Shape::Two(Num::Bf16), Shape::Two(Num::S2f6)) => (Num::Bf16, Num::S2f6, false),
        (Shape::Two(from), Shape::Two(Num::Bf16))
            if !matches!(from, Num::F16 | Num::Bf16 | Num::Ue8m0) =>
        {
            (from, Num::Bf16, false)
        }
        _ => return illegal("there is no such conversion with scales"),
    };
    if to == Num::S2f6 && !m.satfinite {
        return Err(Problem::MissingModifier("satfinite"));
    }
    let count = 2 + usize::from(singles) + usize::from(scaled);
    if operands.len() != count {
        return Err(Problem::OperandCount {
            expected: count.to_string(),
            found: operands.len(),
        });
    }
    let source = match (from, pair_bits(from)) {
        (Num::F32, _) => Num::F32,
        (_, 8) => Num::B8,
        (_, 16) => Num::B16,
        _ => Num::B32,
    };
    let a = emitter.s32(&operands[1], source)?;
    let b = match singles {
        true => Some(emitter.s32(&operands[2], source)?),
        false => None,
    };
    let scales = match scaled {
        true => emitter.s32(&operands[count - 1], Num::B16)?,
        false => emitter.const32(0x7f7f),
    };
    let d = emitter.d32(&operands[0], pair_bits(to))?;
    emitter.emit(Op::CvtScaled {
        from,
        to,
        m,
        d,
        a,
        b,
        scales,
    });
    Ok(())
}

/// Floats in fours.
const FOURS: &[(&str, Num)] = &[
    ("e4m3x4", Num::E4m3),
    ("e5m2x4", Num::E5m2),
    ("e2m1x4", Num::E2m1),
    ("e2m3x4", Num::E2m3),
    ("e3m2x4", Num::E3m2),
];

/// `cvt.rs.f16x2.f32 d, a, b, random` and `cvt.rs.satfinite.e4m3x4.f32 d, {a, b, e, f}, random`
fn stochastic<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let m = CvtMods {
        satfinite: form.words.take("satfinite"),
        relu: form.words.take("relu"),
        ..CvtMods::default()
    };
    let halves = form
        .words
        .pick(&[("f16x2", Num::F16), ("bf16x2", Num::Bf16)]);
    let (to, four) = match halves {
        Some(half) => (half, false),
        None => (form.words.need(FOURS, "a packed type")?, true),
    };
    form.words.end(&["f32"])?;
    if four && !m.satfinite {
        return Err(Problem::MissingModifier("satfinite"));
    }
    let (d, singles, random) = match form.operands {
        [d, Operand::Vector(items), random] if four && items.len() == 4 => (d, &items[..], random),
        [d, _, _, random] if !four => (d, &form.operands[1..3], random),
        other => {
            return Err(Problem::OperandCount {
                expected: if four { "3, a vector of 4 second" } else { "4" }.into(),
                found: other.len(),
            });
        }
    };
    let mut slots = Vec::new();
    for single in singles {
        slots.push(Slot::W32(emitter.s32(single, Num::F32)?));
    }
    let from = emitter.list(&slots)?;
    let random = emitter.s32(random, Num::B32)?;
    let bits = match (four, to) {
        (true, Num::E2m1) => 16,
        _ => 32,
    };
    let d = emitter.d32(d, bits)?;
    emitter.emit(Op::CvtStochastic {
        to,
        m,
        d,
        from,
        random,
    });
    Ok(())
}

/// Two singles into a pair: the first operand is the high element.
fn from_singles<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
    to: Num,
    m: CvtMods,
) -> Lowered<()> {
    let [d, a, b] = exactly(operands)?;
    let (a, b) = (emitter.s32(a, Num::F32)?, emitter.s32(b, Num::F32)?);
    let d = emitter.d32(d, pair_bits(to))?;
    emitter.emit(Op::CvtPack { to, m, d, a, b });
    Ok(())
}

fn pair<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
    to: Num,
    from: Num,
    m: CvtMods,
) -> Lowered<()> {
    let half = |ty| matches!(ty, Num::F16 | Num::Bf16);
    if half(to) == half(from) {
        return illegal("pairs convert between halves and smaller floats only");
    }
    let [d, a] = exactly(operands)?;
    let source = match pair_bits(from) {
        8 => Num::B8,
        16 => Num::B16,
        _ => Num::B32,
    };
    let a = emitter.s32(a, source)?;
    let d = emitter.d32(d, pair_bits(to))?;
    emitter.emit(Op::CvtPair { from, to, m, d, a });
    Ok(())
}

/// `cvt.pack.sat.u8.s32.b32 d, a, b, c`
fn pack_integers<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("sat")?;
    let narrow = &[
        ("s16", Num::S16),
        ("u16", Num::U16),
        ("s8", Num::S8),
        ("u8", Num::U8),
        ("s4", Num::S4),
        ("u4", Num::U4),
        ("s2", Num::S2),
        ("u2", Num::U2),
    ];
    let to = form.words.need(narrow, "a narrow integer type")?;
    let from_signed = form.words.need(&[("s32", true), ("u32", false)], "s32")?;
    let third = form.words.take("b32");
    form.words.finish()?;
    let wide = matches!(to, Num::S16 | Num::U16);
    if third == wide {
        return illegal("16-bit results have no .b32 source, narrower ones need it");
    }
    let ([d, a, b], rest) = at_least(form.operands, usize::from(third))?;
    let (a, b) = (emitter.s32(a, Num::B32)?, emitter.s32(b, Num::B32)?);
    let c = match rest {
        [c] => Some(emitter.s32(c, Num::B32)?),
        _ => None,
    };
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::CvtPackInt {
        to,
        from_signed,
        d,
        a,
        b,
        c,
    });
    Ok(())
}
