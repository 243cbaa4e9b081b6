//! `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`, `vmad`, `vset`, and their forms with
//! the suffix 2 or 4.

use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::wrong;
use crate::op::*;

const SIGNS: &[(&str, bool)] = &[("u32", false), ("s32", true)];

const COMPARISONS: &[(&str, Cmp)] = &[
    ("eq", Cmp::Eq),
    ("ne", Cmp::Ne),
    ("lt", Cmp::Lt),
    ("le", Cmp::Le),
    ("gt", Cmp::Gt),
    ("ge", Cmp::Ge),
];

const SECOND: &[(&str, VideoThen)] = &[
    ("add", VideoThen::Add),
    ("min", VideoThen::Min),
    ("max", VideoThen::Max),
];

const PARTS: &[(&str, Part)] = &[
    ("b0", Part { shift: 0, bits: 8 }),
    ("b1", Part { shift: 8, bits: 8 }),
    ("b2", Part { shift: 16, bits: 8 }),
    ("b3", Part { shift: 24, bits: 8 }),
    ("h0", Part { shift: 0, bits: 16 }),
    (
        "h1",
        Part {
            shift: 16,
            bits: 16,
        },
    ),
];

/// Whether an opcode is one of this family.
pub(super) fn is_video(opcode: &str) -> bool {
    kind(opcode).is_some()
}

/// The operation of an opcode, and its number of parts; details of shifts, sets and products
/// follow.
fn kind(opcode: &str) -> Option<(VideoKind, u8)> {
    let (name, parts) = match opcode.as_bytes() {
        [.., b'2'] => (&opcode[..opcode.len() - 1], 2),
        [.., b'4'] => (&opcode[..opcode.len() - 1], 4),
        _ => (opcode, 1),
    };
    let kind = match (name, parts) {
        ("vadd", _) => VideoKind::Add,
        ("vsub", _) => VideoKind::Sub,
        ("vabsdiff", _) => VideoKind::AbsDiff,
        ("vmin", _) => VideoKind::Min,
        ("vmax", _) => VideoKind::Max,
        ("vavrg", 2 | 4) => VideoKind::Average,
        ("vset", _) => VideoKind::Set(Cmp::Eq),
        ("vshl", 1) => VideoKind::Shl { clamp: true },
        ("vshr", 1) => VideoKind::Shr { clamp: true },
        ("vmad", 1) => VideoKind::Mad {
            negate_product: false,
            negate_c: false,
            plus_one: false,
            shift: 0,
        },
        _ => return None,
    };
    Some((kind, parts))
}

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let Some((mut kind, parts)) = kind(form.opcode) else {
        return Err(Problem::UnknownInstruction(form.opcode.to_owned()));
    };
    let mut signed = [false; 3];
    let first = usize::from(matches!(kind, VideoKind::Set(_)));
    for sign in &mut signed[first..] {
        *sign = form.words.need(SIGNS, "u32 or s32")?;
    }
    let plus_one = form.words.take("po");
    let sat = form.words.take("sat");
    kind = match kind {
        VideoKind::Set(_) => VideoKind::Set(form.words.need(COMPARISONS, "a comparison")?),
        VideoKind::Shl { .. } | VideoKind::Shr { .. } => {
            let clamp = form
                .words
                .need(&[("clamp", true), ("wrap", false)], "clamp or wrap")?;
            match kind {
                VideoKind::Shl { .. } => VideoKind::Shl { clamp },
                _ => VideoKind::Shr { clamp },
            }
        }
        other => other,
    };
    let shift = match kind {
        VideoKind::Mad { .. } => form.words.pick(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0),
        _ => 0,
    };
    let second = match kind {
        VideoKind::Mad { .. } => None,
        _ => form.words.pick(SECOND),
    };
    form.words.finish()?;
    let mut operands = Operands::read(form.operands)?;
    if let VideoKind::Mad { .. } = kind {
        kind = VideoKind::Mad {
            negate_product: operands.negated[0] != operands.negated[1],
            negate_c: operands.negated[2],
            plus_one,
            shift,
        };
    } else if plus_one || operands.negated.contains(&true) {
        return illegal("only vmad negates and adds one");
    }
    let mut video = Video {
        kind,
        signed,
        sat,
        then: second.unwrap_or(VideoThen::Nothing),
        parts,
        part: Part::ALL,
        mask: 0,
        a_part: Part::ALL,
        b_part: Part::ALL,
        a_select: [0; 4],
        b_select: [0; 4],
        d: R32(0),
        a: R32(0),
        b: R32(0),
        c: R32(0),
    };
    match parts {
        1 => operands.scalar(&mut video, second.is_some())?,
        _ => operands.packed(&mut video, second)?,
    }
    video.a = emitter.s32(&operands.values[0], Num::B32)?;
    video.b = emitter.s32(&operands.values[1], Num::B32)?;
    video.c = match &operands.c {
        Some(c) => emitter.s32(c, Num::B32)?,
        None => emitter.const32(0),
    };
    video.d = emitter.d32(&operands.d, 32)?;
    emitter.emit(Op::Video(Box::new(video)));
    Ok(())
}

/// The operands without their selectors and signs.
struct Operands<'a> {
    d: Operand<'a>,
    values: [Operand<'a>; 2],
    c: Option<Operand<'a>>,
    /// Selectors of d, a and b.
    selectors: [Option<&'a str>; 3],
    /// Signs before a, b and c.
    negated: [bool; 3],
}

impl<'a> Operands<'a> {
    fn read(operands: &[Operand<'a>]) -> Lowered<Self> {
        let (d, a, b, c) = match operands {
            [d, a, b] => (d, a, b, None),
            [d, a, b, c] => (d, a, b, Some(c)),
            other => {
                return Err(Problem::OperandCount {
                    expected: "3 or 4".into(),
                    found: other.len(),
                });
            }
        };
        let sign = |operand: &Operand<'a>| match operand {
            Operand::Negated(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let part = |operand: Operand<'a>| match operand {
            Operand::Member(name, part) => (Operand::Name(name), Some(part)),
            other => (other, None),
        };
        let (a, a_negated) = sign(a);
        let (b, b_negated) = sign(b);
        let c = c.map(sign);
        let c_negated = c.as_ref().is_some_and(|(_, negated)| *negated);
        let (d, d_part) = part(d.clone());
        let (a, a_part) = part(a);
        let (b, b_part) = part(b);
        Ok(Self {
            d,
            values: [a, b],
            c: c.map(|(c, _)| c),
            selectors: [d_part, a_part, b_part],
            negated: [a_negated, b_negated, c_negated],
        })
    }

    fn scalar(&mut self, video: &mut Video, second: bool) -> Lowered<()> {
        let part = |selector: Option<&str>| match selector {
            None => Ok(Part::ALL),
            Some(word) => PARTS
                .iter()
                .find(|(name, _)| *name == word)
                .map(|(_, part)| *part)
                .ok_or_else(|| Problem::UnknownModifier(word.to_owned())),
        };
        let [d, a, b] = self.selectors;
        (video.part, video.a_part, video.b_part) = (part(d)?, part(a)?, part(b)?);
        let mad = matches!(video.kind, VideoKind::Mad { .. });
        if d.is_some() && !mad && !second {
            video.then = VideoThen::Merge;
        }
        let wants_c = mad || second || d.is_some();
        match self.c.is_some() == wants_c && !(d.is_some() && (mad || second)) {
            true => Ok(()),
            false => {
                illegal("a third operand goes with a second operation or a part of the result")
            }
        }
    }

    fn packed(&mut self, video: &mut Video, second: Option<VideoThen>) -> Lowered<()> {
        let letter = if video.parts == 2 { 'h' } else { 'b' };
        if matches!(second, Some(VideoThen::Min | VideoThen::Max)) {
            return illegal("a packed video instruction only adds its parts up");
        }
        let Some(_) = &self.c else {
            return wrong("a third value to merge into or add to", &self.d);
        };
        let digits = |word: &str, below: u8| -> Lowered<Vec<u8>> {
            let unknown = || Problem::UnknownModifier(word.to_owned());
            let digits = word.strip_prefix(letter).ok_or_else(unknown)?;
            // Written from the highest part down.
            let digits = digits.bytes().rev();
            digits
                .map(|digit| Some(digit.wrapping_sub(b'0')).filter(|&d| d < below))
                .collect::<Option<Vec<u8>>>()
                .ok_or_else(unknown)
        };
        let [d, a, b] = self.selectors;
        video.mask = match d {
            None => (1 << video.parts) - 1,
            Some(word) => digits(word, video.parts)?
                .iter()
                .fold(0, |mask, &part| mask | 1 << part),
        };
        let both = [
            (a, 0, &mut video.a_select),
            (b, video.parts, &mut video.b_select),
        ];
        for (selector, first, select) in both {
            let chosen = match selector {
                None => (first..first + video.parts).collect(),
                Some(word) => digits(word, 2 * video.parts)?,
            };
            if chosen.len() != usize::from(video.parts) {
                return illegal(format!("a selector names {} parts", video.parts));
            }
            select[..chosen.len()].copy_from_slice(&chosen);
        }
        Ok(())
    }
}
