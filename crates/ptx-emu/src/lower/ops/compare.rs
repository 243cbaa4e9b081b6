//! Comparison and selection.

use super::float::half_format;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly};
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "setp" => setp(emitter, form),
        "set" => set(emitter, form),
        "selp" => selp(emitter, form),
        _ => slct(emitter, form),
    }
}

/// Comparison words; the unsigned ones (`lo` …) also fix the sign.
const COMPARISONS: &[(&str, (Cmp, bool))] = &[
    ("eq", (Cmp::Eq, false)),
    ("ne", (Cmp::Ne, false)),
    ("lt", (Cmp::Lt, false)),
    ("le", (Cmp::Le, false)),
    ("gt", (Cmp::Gt, false)),
    ("ge", (Cmp::Ge, false)),
    ("lo", (Cmp::Lt, true)),
    ("ls", (Cmp::Le, true)),
    ("hi", (Cmp::Gt, true)),
    ("hs", (Cmp::Ge, true)),
    ("equ", (Cmp::Equ, false)),
    ("neu", (Cmp::Neu, false)),
    ("ltu", (Cmp::Ltu, false)),
    ("leu", (Cmp::Leu, false)),
    ("gtu", (Cmp::Gtu, false)),
    ("geu", (Cmp::Geu, false)),
    ("num", (Cmp::Num, false)),
    ("nan", (Cmp::Nan, false)),
];

const BOOLEANS: &[(&str, BoolOp)] = &[
    ("and", BoolOp::And),
    ("or", BoolOp::Or),
    ("xor", BoolOp::Xor),
];

struct Comparison {
    cmp: Cmp,
    unsigned: bool,
    boolean: Option<BoolOp>,
    ftz: bool,
    ty: Num,
}

impl Comparison {
    /// Emits the bare comparison into `d`, and for packed halves the high one into `q`.
    fn emit<'a>(
        &self,
        emitter: &mut Emitter<'_, 'a>,
        a: &Operand<'a>,
        b: &Operand<'a>,
        d: P,
        q: Option<P>,
    ) -> Lowered<()> {
        let (cmp, ty, ftz) = (self.cmp, self.ty, self.ftz);
        if ty.is_integer() {
            return self.emit_integer(emitter, a, b, d);
        }
        if self.unsigned {
            return illegal("an unsigned comparison on a float type");
        }
        if let Some(fmt) = half_format(ty) {
            let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
            emitter.emit(Op::SetpH {
                fmt,
                cmp,
                ftz,
                d,
                q,
                a,
                b,
            });
            return Ok(());
        }
        match ty {
            Num::F32 => {
                let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
                emitter.emit(Op::SetpF32 { cmp, ftz, d, a, b });
            }
            Num::F64 => {
                let (a, b) = (emitter.s64(a, ty)?, emitter.s64(b, ty)?);
                emitter.emit(Op::SetpF64 { cmp, d, a, b });
            }
            _ => return illegal("not a type that can be compared"),
        }
        Ok(())
    }

    fn emit_integer<'a>(
        &self,
        emitter: &mut Emitter<'_, 'a>,
        a: &Operand<'a>,
        b: &Operand<'a>,
        d: P,
    ) -> Lowered<()> {
        let (cmp, ty) = (self.cmp, self.ty);
        let ordered = matches!(
            cmp,
            Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge
        );
        if !ordered || self.ftz {
            return illegal("a comparison for floats on an integer type");
        }
        let signed = ty.is_signed() && !self.unsigned;
        if ty.bits() == 64 {
            let (a, b) = (emitter.s64(a, ty)?, emitter.s64(b, ty)?);
            emitter.emit(Op::SetpI64 {
                cmp,
                signed,
                d,
                a,
                b,
            });
            return Ok(());
        }
        let w = super::integer::width(ty)?;
        let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
        emitter.emit(Op::SetpI32 {
            w,
            cmp,
            signed,
            d,
            a,
            b,
        });
        Ok(())
    }

    fn packed(&self) -> bool {
        matches!(self.ty, Num::F16x2 | Num::Bf16x2)
    }
}

fn comparison(form: &mut Form<'_, '_>) -> Lowered<Comparison> {
    let (cmp, unsigned) = form.words.need(COMPARISONS, "a comparison")?;
    Ok(Comparison {
        cmp,
        unsigned,
        boolean: form.words.pick(BOOLEANS),
        ftz: form.words.take("ftz"),
        ty: form.words.ty()?,
    })
}

fn setp<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let comparison = comparison(&mut form)?;
    form.words.finish()?;
    let wanted = usize::from(comparison.boolean.is_some());
    let ([result, a, b], rest) = at_least(form.operands, wanted)?;
    if rest.len() != wanted {
        return illegal("a boolean operator needs a third source, and only then");
    }
    if comparison.boolean.is_none() && !matches!(result, Operand::Pair(..)) && !comparison.packed()
    {
        let d = emitter.dp_or_sink(result)?;
        return comparison.emit(emitter, a, b, d, None);
    }
    setp_combined(emitter, &comparison, result, [a, b], rest.first())
}

/// `setp` with two results or a boolean operator. Everything goes through temporaries, because
/// results, source and guard may overlap.
fn setp_combined<'a>(
    emitter: &mut Emitter<'_, 'a>,
    comparison: &Comparison,
    result: &Operand<'a>,
    [a, b]: [&Operand<'a>; 2],
    c: Option<&Operand<'a>>,
) -> Lowered<()> {
    let (p, q) = match result {
        Operand::Pair(p, q) => (&**p, Some(&**q)),
        single => (single, None),
    };
    let first = emitter.temp_pred();
    let second = comparison.packed().then(|| emitter.temp_pred());
    comparison.emit(emitter, a, b, first, second)?;
    let (second, second_negated) = match second {
        Some(second) => (second, false),
        None => (first, true),
    };
    let source = c.map(|c| emitter.sp(c)).transpose()?;
    let outcome = |emitter: &mut Emitter<'_, 'a>, value: P, negated: bool| {
        let d = emitter.temp_pred();
        let combined = comparison.boolean.zip(source);
        emitter.emit(match combined {
            Some((op, (b, nb))) => Op::PLogic {
                op,
                d,
                a: value,
                na: negated,
                b,
                nb,
            },
            None => Op::PMov {
                d,
                a: value,
                negate: negated,
            },
        });
        d
    };
    let p_value = outcome(emitter, first, false);
    let q_value = q.map(|q| (q, outcome(emitter, second, second_negated)));
    emitter.protect_guard();
    let d = emitter.dp_or_sink(p)?;
    emitter.emit(Op::PMov {
        d,
        a: p_value,
        negate: false,
    });
    if let Some((q, a)) = q_value {
        let d = emitter.dp_or_sink(q)?;
        emitter.emit(Op::PMov {
            d,
            a,
            negate: false,
        });
    }
    Ok(())
}

/// `set`: all ones or 1.0 instead of a predicate.
fn set<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let (cmp, unsigned) = form.words.need(COMPARISONS, "a comparison")?;
    let boolean = form.words.pick(BOOLEANS);
    let ftz = form.words.take("ftz");
    let to = form.words.ty()?;
    let comparison = Comparison {
        cmp,
        unsigned,
        boolean,
        ftz,
        ty: form.words.ty()?,
    };
    form.words.finish()?;
    let wanted = usize::from(boolean.is_some());
    let ([d, a, b], rest) = at_least(form.operands, wanted)?;
    if rest.len() != wanted {
        return illegal("a boolean operator needs a third source, and only then");
    }
    let low = emitter.temp_pred();
    let high = comparison.packed().then(|| emitter.temp_pred());
    comparison.emit(emitter, a, b, low, high)?;
    if let (Some(op), [c]) = (boolean, rest) {
        let (c, nb) = emitter.sp(c)?;
        for d in [Some(low), high].into_iter().flatten() {
            emitter.emit(Op::PLogic {
                op,
                d,
                a: d,
                na: false,
                b: c,
                nb,
            });
        }
    }
    write_truth(emitter, d, to, low, high)
}

/// Writes the result of `set` for true or false.
fn write_truth<'a>(
    emitter: &mut Emitter<'_, 'a>,
    d: &Operand<'a>,
    to: Num,
    low: P,
    high: Option<P>,
) -> Lowered<()> {
    let truth = match to {
        Num::U32 | Num::S32 if high.is_some() => 0xffff,
        Num::U32 | Num::S32 => u32::MAX,
        Num::U16 | Num::S16 => 0xffff,
        Num::F32 => 1f32.to_bits(),
        Num::F16 | Num::F16x2 => u32::from(half::f16::ONE.to_bits()),
        Num::Bf16 | Num::Bf16x2 => u32::from(half::bf16::ONE.to_bits()),
        _ => return illegal("not a result type of set"),
    };
    let truth = emitter.const32(truth);
    let zero = emitter.const32(0);
    let choose = |emitter: &mut Emitter<'_, 'a>, d: R32, p: P| {
        emitter.emit(Op::Selp32 {
            d,
            a: truth,
            b: zero,
            p,
        });
    };
    match (to, high) {
        (Num::F16x2 | Num::Bf16x2 | Num::U32 | Num::S32, Some(high)) => {
            let (lo, hi) = (emitter.temp32(), emitter.temp32());
            choose(emitter, lo, low);
            choose(emitter, hi, high);
            let d = emitter.d32(d, 32)?;
            emitter.emit(Op::Pack32 { d, lo, hi });
        }
        (Num::F16x2 | Num::Bf16x2, None) | (_, Some(_)) => {
            return illegal("packed results need packed sources");
        }
        _ => {
            let d = emitter.d32(d, to.bits())?;
            choose(emitter, d, low);
        }
    }
    Ok(())
}

fn selp<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let ty = form.words.last_ty()?;
    let [d, a, b, p] = exactly(form.operands)?;
    let (p, negated) = emitter.sp(p)?;
    let (a, b) = if negated { (b, a) } else { (a, b) };
    match ty.bits() {
        64 => {
            let (a, b) = (emitter.s64(a, ty)?, emitter.s64(b, ty)?);
            let d = emitter.d64(d)?;
            emitter.emit(Op::Selp64 { d, a, b, p });
        }
        16 | 32 => {
            let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
            let d = emitter.d32(d, ty.bits())?;
            emitter.emit(Op::Selp32 { d, a, b, p });
        }
        _ => return illegal("selp is for 16-, 32- and 64-bit types"),
    }
    Ok(())
}

fn slct<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    // A flushed negative subnormal counts as zero; zero and minus zero both select `a`.
    let ftz = form.words.take("ftz");
    let ty = form.words.ty()?;
    let selector = form.words.last_ty()?;
    let float = match selector {
        Num::S32 if !ftz => false,
        Num::F32 => true,
        _ => return illegal("slct selects by .s32 or .f32"),
    };
    let [d, a, b, c] = exactly(form.operands)?;
    let mut c = emitter.s32(c, selector)?;
    if ftz {
        let flushed = emitter.temp32();
        let one = emitter.const32(1f32.to_bits());
        emitter.emit(Op::F32Bin {
            op: FBin::Mul,
            m: FMods {
                ftz: true,
                ..FMods::default()
            },
            d: flushed,
            a: c,
            b: one,
        });
        c = flushed;
    }
    match ty.bits() {
        64 => {
            let (a, b) = (emitter.s64(a, ty)?, emitter.s64(b, ty)?);
            let d = emitter.d64(d)?;
            emitter.emit(Op::Slct64 { d, a, b, c, float });
        }
        16 | 32 => {
            let (a, b) = (emitter.s32(a, ty)?, emitter.s32(b, ty)?);
            let d = emitter.d32(d, ty.bits())?;
            emitter.emit(Op::Slct32 { d, a, b, c, float });
        }
        _ => return illegal("slct is for 16-, 32- and 64-bit types"),
    }
    Ok(())
}
