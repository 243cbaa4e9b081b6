//! Float and half arithmetic.

use super::row::row;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly};
use crate::lower::modifiers::Modifiers;
use crate::op::*;

pub(super) const ROUNDS: &[(&str, Round)] = &[
    ("rn", Round::Near),
    ("rz", Round::Zero),
    ("rm", Round::Down),
    ("rp", Round::Up),
];

pub(super) fn half_format(ty: Num) -> Option<HFmt> {
    Some(match ty {
        Num::F16 => HFmt::F16,
        Num::F16x2 => HFmt::F16x2,
        Num::Bf16 => HFmt::Bf16,
        Num::Bf16x2 => HFmt::Bf16x2,
        _ => return None,
    })
}

/// Rounding, flushing and clamping words.
fn modifiers(words: &mut Modifiers<'_>) -> FMods {
    FMods {
        round: words.pick(ROUNDS).unwrap_or_default(),
        ftz: words.take("ftz"),
        sat: words.take("sat"),
        relu: words.take("relu"),
        oob: false,
    }
}

/// `add`, `sub`, `mul`, `mad`, `fma`, `div`, `min`, `max`, `abs`, `neg` on floats.
pub(super) fn arithmetic<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let rounded = ROUNDS.iter().any(|&(word, _)| form.words.contains(word));
    let mut m = modifiers(&mut form.words);
    m.oob = form.words.take("oob");
    if form.words.take("f32x2") {
        if m.sat || m.relu || m.oob {
            return illegal(".f32x2 has rounding and .ftz only");
        }
        if form.opcode == "fma" && !rounded {
            return Err(Problem::MissingModifier("a rounding"));
        }
        return packed(emitter, form, m);
    }
    let ty = form.words.ty()?;
    if let Some(from) = form.words.pick(&[("f16", Num::F16), ("bf16", Num::Bf16)]) {
        return mixed(emitter, form, m, ty, from);
    }
    if m.oob && (form.opcode != "fma" || half_format(ty).is_none()) {
        return illegal(".oob is for fma on half types");
    }
    match form.opcode {
        "fma" | "mad" => fused(emitter, form, m, ty),
        "abs" | "neg" => {
            form.words.finish()?;
            let op = if form.opcode == "abs" {
                FUn::Abs
            } else {
                FUn::Neg
            };
            unary(emitter, &form, op, m, ty)
        }
        _ => {
            let magnitudes = !form.words.contains("xorsign") && form.words.take("abs");
            let op = operator(&mut form)?;
            form.words.finish()?;
            if m.relu && half_format(ty).is_none() {
                return illegal(".relu is for half types");
            }
            if magnitudes && form.operands.len() != 4 {
                return illegal(".abs is for min and max of three");
            }
            fold(emitter, &form, op, m, ty, magnitudes)
        }
    }
}

fn operator(form: &mut Form<'_, '_>) -> Lowered<FBin> {
    let nan = form.words.take("NaN");
    let magnitude = form.words.take("xorsign");
    if magnitude {
        form.words.exactly("abs")?;
    }
    let approx = form.words.take("approx");
    let full = form.words.take("full");
    Ok(match (form.opcode, nan, magnitude, approx, full) {
        ("add", false, false, false, false) => FBin::Add,
        ("sub", false, false, false, false) => FBin::Sub,
        ("mul", false, false, false, false) => FBin::Mul,
        ("div", false, false, false, false) => FBin::Div,
        ("div", false, false, true, false) => FBin::DivApprox,
        ("div", false, false, false, true) => FBin::DivFull,
        ("min", false, false, false, false) => FBin::Min,
        ("max", false, false, false, false) => FBin::Max,
        ("min", true, false, false, false) => FBin::MinNan,
        ("max", true, false, false, false) => FBin::MaxNan,
        ("min", false, true, false, false) => FBin::MinXorsignAbs,
        ("max", false, true, false, false) => FBin::MaxXorsignAbs,
        ("min", true, true, false, false) => FBin::MinNanXorsignAbs,
        ("max", true, true, false, false) => FBin::MaxNanXorsignAbs,
        ("rem" | "sad", ..) => {
            return Err(Problem::UnknownInstruction(format!(
                "{} on floats",
                form.opcode
            )));
        }
        _ => return illegal("these modifiers do not go together"),
    })
}

/// Two operands, or three for `min` and `max`, which may be of magnitudes.
fn fold<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    op: FBin,
    m: FMods,
    ty: Num,
    magnitudes: bool,
) -> Lowered<()> {
    use FBin::*;
    let third_allowed = matches!(op, Min | Max | MinNan | MaxNan) && ty == Num::F32;
    let ([d, a, b], rest) = at_least(form.operands, usize::from(third_allowed))?;
    if let [c] = rest {
        let mut sources = [
            emitter.s32(a, ty)?,
            emitter.s32(b, ty)?,
            emitter.s32(c, ty)?,
        ];
        if magnitudes {
            for source in &mut sources {
                let d = emitter.temp32();
                emitter.emit(Op::F32Un {
                    op: FUn::Abs,
                    m: FMods::default(),
                    d,
                    a: *source,
                });
                *source = d;
            }
        }
        let [a, b, c] = sources;
        let both = emitter.temp32();
        emitter.emit(Op::F32Bin {
            op,
            m,
            d: both,
            a,
            b,
        });
        let d = emitter.d32(d, 32)?;
        emitter.emit(Op::F32Bin {
            op,
            m,
            d,
            a: both,
            b: c,
        });
        return Ok(());
    }
    binary(emitter, form, op, m, ty)
}

fn binary<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    op: FBin,
    m: FMods,
    ty: Num,
) -> Lowered<()> {
    use FBin::{Copysign, Div, DivApprox, DivFull};
    if let Some(fmt) = half_format(ty) {
        return match op {
            Div | DivApprox | DivFull | Copysign => illegal("half types have no such instruction"),
            _ => row!(emitter, form, HBin { fmt, op, m } [d: ty] = [a: ty, b: ty]),
        };
    }
    match ty {
        Num::F32 => row!(emitter, form, F32Bin { op, m } [d: ty] = [a: ty, b: ty]),
        Num::F64 if matches!(op, DivApprox | DivFull) || m.ftz || m.sat => illegal("not for .f64"),
        Num::F64 => row!(emitter, form, F64Bin { op, m } [d: ty] = [a: ty, b: ty]),
        _ => illegal("not a type of this instruction"),
    }
}

fn fused<'a>(emitter: &mut Emitter<'_, 'a>, form: Form<'_, 'a>, m: FMods, ty: Num) -> Lowered<()> {
    form.words.finish()?;
    if let Some(fmt) = half_format(ty) {
        return row!(emitter, form, HFma { fmt, m } [d: ty] = [a: ty, b: ty, c: ty]);
    }
    match ty {
        Num::F32 => row!(emitter, form, F32Fma { m } [d: ty] = [a: ty, b: ty, c: ty]),
        Num::F64 => row!(emitter, form, F64Fma { m } [d: ty] = [a: ty, b: ty, c: ty]),
        _ => illegal("not a type of this instruction"),
    }
}

/// Two f32 side by side in 64 bits.
fn packed<'a>(emitter: &mut Emitter<'_, 'a>, form: Form<'_, 'a>, m: FMods) -> Lowered<()> {
    form.words.finish()?;
    let ty = Num::B64;
    let op = match form.opcode {
        "fma" => return row!(emitter, form, F32x2Fma { m } [d: ty] = [a: ty, b: ty, c: ty]),
        "add" => FBin::Add,
        "sub" => FBin::Sub,
        "mul" => FBin::Mul,
        _ => return illegal(".f32x2 has add, sub, mul and fma only"),
    };
    row!(emitter, form, F32x2Bin { op, m } [d: ty] = [a: ty, b: ty])
}

/// `add/sub/fma.f32.f16`: half operands, single result. Halves widen exactly, so the sum forms
/// are a fused multiplication by one.
fn mixed<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: Form<'_, 'a>,
    m: FMods,
    ty: Num,
    from: Num,
) -> Lowered<()> {
    form.words.finish()?;
    if ty != Num::F32 {
        return illegal("mixed precision has an .f32 result");
    }
    if form.opcode == "fma" {
        return row!(emitter, form, FmaMixed { from, m } [d: ty] = [a: from, b: from, c: ty]);
    }
    let one = match from {
        Num::F16 => half::f16::ONE.to_bits(),
        _ => half::bf16::ONE.to_bits(),
    };
    let [d, a, c] = exactly(form.operands)?;
    let a = emitter.s32(a, from)?;
    let b = emitter.const32(u32::from(one));
    let mut c = emitter.s32(c, ty)?;
    match form.opcode {
        "add" => {}
        "sub" => {
            let negated = emitter.temp32();
            emitter.emit(Op::F32Un {
                op: FUn::Neg,
                m: FMods::default(),
                d: negated,
                a: c,
            });
            c = negated;
        }
        _ => return illegal("mixed precision has add, sub and fma only"),
    }
    let d = emitter.d32(d, 32)?;
    emitter.emit(Op::FmaMixed {
        from,
        m,
        d,
        a,
        b,
        c,
    });
    Ok(())
}

fn unary<'a>(
    emitter: &mut Emitter<'_, 'a>,
    form: &Form<'_, 'a>,
    op: FUn,
    m: FMods,
    ty: Num,
) -> Lowered<()> {
    if let Some(fmt) = half_format(ty) {
        return row!(emitter, form, HUn { fmt, op, m } [d: ty] = [a: ty]);
    }
    match ty {
        Num::F32 => row!(emitter, form, F32Un { op, m } [d: ty] = [a: ty]),
        Num::F64 => row!(emitter, form, F64Un { op, m } [d: ty] = [a: ty]),
        _ => illegal("not a type of this instruction"),
    }
}

/// Functions of one value, `copysign` and `testp`.
pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "testp" => return testp(emitter, form),
        "copysign" => {
            let ty = form.words.last_ty()?;
            return binary(emitter, &form, FBin::Copysign, FMods::default(), ty);
        }
        _ => {}
    }
    let approx = form.words.take("approx");
    let rounded = ROUNDS.iter().any(|&(word, _)| form.words.contains(word));
    let m = modifiers(&mut form.words);
    let ty = form.words.last_ty()?;
    let op = match (form.opcode, approx) {
        ("rcp", true) => FUn::RcpApprox,
        ("sqrt", true) => FUn::SqrtApprox,
        ("rcp", false) if rounded => FUn::Rcp,
        ("sqrt", false) if rounded => FUn::Sqrt,
        ("rsqrt", true) => FUn::RsqrtApprox,
        ("sin", true) => FUn::SinApprox,
        ("cos", true) => FUn::CosApprox,
        ("lg2", true) => FUn::Lg2Approx,
        ("ex2", true) => FUn::Ex2Approx,
        ("tanh", true) => FUn::TanhApprox,
        _ => return Err(Problem::MissingModifier("approx or a rounding")),
    };
    let half = half_format(ty).is_some();
    let double = ty == Num::F64;
    let exists = match op {
        FUn::Ex2Approx | FUn::TanhApprox => !double,
        FUn::Rcp | FUn::Sqrt => !half,
        FUn::RcpApprox | FUn::RsqrtApprox => !half,
        _ => !half && !double,
    };
    match exists && !m.sat && !m.relu {
        true => unary(emitter, &form, op, m, ty),
        false => illegal("not a type or modifier of this instruction"),
    }
}

fn testp<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let tests = &[
        ("finite", FTest::Finite),
        ("infinite", FTest::Infinite),
        ("number", FTest::Number),
        ("notanumber", FTest::NotANumber),
        ("normal", FTest::Normal),
        ("subnormal", FTest::Subnormal),
    ];
    let test = form.words.need(tests, "a property")?;
    let ty = form.words.last_ty()?;
    match ty {
        Num::F32 => row!(emitter, form, Testp32 { test } [d: ty] = [a: ty]),
        Num::F64 => row!(emitter, form, Testp64 { test } [d: ty] = [a: ty]),
        _ => illegal("testp is for .f32 and .f64"),
    }
}
