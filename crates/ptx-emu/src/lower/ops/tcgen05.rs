//! `tcgen05`: tensor memory, and the tensor cores that accumulate in it.

use super::fragment::fragment;
use super::row::bare;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly, immediate, immediate_u32, wrong};
use crate::lower::modifiers::Modifiers;
use crate::op::*;
use crate::tensor::tcgen05::{CopyShape, Kind, MoveShape, Unpacked, Vector};

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let action = form
        .words
        .next()
        .ok_or(Problem::MissingModifier("an action"))?;
    match action {
        "alloc" | "dealloc" | "relinquish_alloc_permit" => allocation(emitter, form, action),
        "mma" => mma(emitter, form),
        "cp" => copy(emitter, form),
        "shift" => {
            let group = cta_group(&mut form.words)?;
            form.words.end(&["down"])?;
            let [at] = exactly(form.operands)?;
            let at = tensor_address(emitter, at)?;
            emitter.emit(Op::TmemShift { group, at });
            Ok(())
        }
        "commit" => commit(emitter, form),
        "ld" => tile(emitter, form, false),
        "st" => tile(emitter, form, true),
        "wait::ld" | "wait::st" => {
            form.words.end(&["sync", "aligned"])?;
            let store = action == "wait::st";
            bare(emitter, &form, Op::TmemWait { store })
        }
        "fence::before_thread_sync" | "fence::after_thread_sync" => {
            let after = action == "fence::after_thread_sync";
            bare(emitter, &form, Op::TmemFence { after })
        }
        other => Err(Problem::UnknownModifier(other.to_owned())),
    }
}

fn cta_group(words: &mut Modifiers<'_>) -> Lowered<CtaGroup> {
    let groups = &[
        ("cta_group::1", CtaGroup::One),
        ("cta_group::2", CtaGroup::Pair),
    ];
    words.need(groups, "cta_group::1 or ::2")
}

/// `[taddr]` or `[taddr+columns]`
fn tensor_address<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>) -> Lowered<Addr> {
    let addr = emitter.addr(operand, Space::Shared)?;
    match addr.base {
        Base::R32(_) | Base::Abs => Ok(addr),
        _ => wrong("an address of tensor memory, in a 32-bit register", operand),
    }
}

fn allocation<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    action: &str,
) -> Lowered<()> {
    let group = cta_group(&mut form.words)?;
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    let other = emitter.program.insts.iter().any(|inst| match inst.op {
        Op::TmemAlloc { group: of, .. }
        | Op::TmemDealloc { group: of, .. }
        | Op::TmemRelinquish { group: of } => of != group,
        _ => false,
    });
    if other {
        return illegal(
            "tensor memory of one kernel is allocated by single CTAs or by pairs, not both",
        );
    }
    if action == "relinquish_alloc_permit" {
        return bare(emitter, &form, Op::TmemRelinquish { group });
    }
    let space = match action == "alloc" && form.words.take("shared::cta") {
        true => Space::Shared,
        false => Space::Generic,
    };
    form.words.end(&["b32"])?;
    let [at, columns] = exactly(form.operands)?;
    if let Operand::Constant(_) = columns {
        let count = immediate(columns)?;
        if !(32..=512).contains(&count) || count.count_ones() != 1 {
            return illegal(format!(
                "{count} columns of tensor memory: 32, 64, 128, 256 or 512 can be had"
            ));
        }
    }
    let columns = emitter.s32(columns, Num::U32)?;
    match action {
        "alloc" => {
            let dst = emitter.addr(at, space)?;
            emitter.emit(Op::TmemAlloc {
                group,
                space,
                dst,
                columns,
            });
        }
        _ => {
            let at = emitter.s32(at, Num::U32)?;
            emitter.emit(Op::TmemDealloc { group, at, columns });
        }
    }
    Ok(())
}

const KINDS: &[(&str, Kind)] = &[
    ("kind::f16", Kind::F16),
    ("kind::tf32", Kind::Tf32),
    ("kind::f8f6f4", Kind::F8f6f4),
    ("kind::i8", Kind::I8),
    ("kind::mxf8f6f4", Kind::Mxf8f6f4),
    ("kind::mxf4", Kind::Mxf4),
    ("kind::mxf4nvf4", Kind::Mxf4nvf4),
];

fn mma<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let stationary = form.words.take("ws");
    let sparse = form.words.take("sp");
    if sparse && stationary {
        return illegal("sparse tcgen05.mma.ws is not emulated");
    }
    let group = cta_group(&mut form.words)?;
    let kind = form.words.need(KINDS, "a kind")?;
    let vector = scale_vector(&mut form.words, kind)?;
    let shifted = form.words.take("ashift");
    let collector = collector(&mut form.words, stationary, shifted)?;
    form.words.finish()?;
    if shifted && kind.scaled() {
        return illegal(".ashift does not go with block_scale");
    }
    if stationary && (group == CtaGroup::Pair || kind.scaled()) {
        return illegal(".ws goes with cta_group::1 and without block_scale");
    }
    let ([d, a, b, metadata, shape], mut rest) = match form.operands {
        [d, a, b, at, shape, rest @ ..] if sparse => ([d, a, b, at, shape], rest),
        [d, a, b, shape, rest @ ..] if !sparse => ([d, a, b, d, shape], rest),
        other => {
            return Err(Problem::OperandCount {
                expected: format!("at least {}", 5 + u32::from(sparse)),
                found: other.len(),
            });
        }
    };
    let d = tensor_address(emitter, d)?;
    let a = match a {
        Operand::Address(_) => TmemA::Tmem(tensor_address(emitter, a)?),
        desc => TmemA::Desc(emitter.s64(desc, Num::B64)?),
    };
    if shifted && matches!(a, TmemA::Desc(_)) {
        return illegal(".ashift goes with an A in tensor memory");
    }
    let b = emitter.s64(b, Num::B64)?;
    let metadata = match sparse {
        true => Some(tensor_address(emitter, metadata)?),
        false => None,
    };
    let shape = emitter.s32(shape, Num::B32)?;
    let mut scales = None;
    if let Some(vector) = vector {
        let [sfa, sfb, more @ ..] = rest else {
            return illegal("block_scale needs the scales of A and B");
        };
        rest = more;
        let sfa = tensor_address(emitter, sfa)?;
        scales = Some((sfa, tensor_address(emitter, sfb)?, vector));
    }
    let mut disabled = SlotList { start: 0, len: 0 };
    if let [mask @ Operand::Vector(_), more @ ..] = rest {
        if kind.scaled() || stationary {
            return illegal("a mask of lanes goes with neither block_scale nor .ws");
        }
        disabled = fragment(emitter, mask, 4 * group.ctas() as usize, false, false)?;
        rest = more;
    }
    let ([enable], rest) = at_least(rest, 1)?;
    let accumulate = match enable {
        Operand::Constant(_) => Accumulate::Always(immediate(enable)? != 0),
        predicate => {
            let (p, negate) = emitter.sp(predicate)?;
            Accumulate::If { p, negate }
        }
    };
    let scale_d = match rest {
        [] => 0,
        [_] if stationary => return illegal("the mask of zero columns of .ws is not emulated"),
        [scale, ..] => {
            let power = immediate_u32(scale)?;
            if power > 15 || !matches!(kind, Kind::F16 | Kind::Tf32) {
                return illegal("scale-input-d is 0 to 15, of kind::f16 and kind::tf32");
            }
            power as u8
        }
    };
    emitter.emit(Op::TmemMma(Box::new(TmemMma {
        group,
        kind,
        stationary,
        d,
        a,
        b,
        metadata,
        shape,
        scales,
        disabled,
        accumulate,
        scale_d,
        shifted,
        collector,
    })));
    Ok(())
}

/// The number of scales of a row; `None` without `.block_scale`.
fn scale_vector(words: &mut Modifiers<'_>, kind: Kind) -> Lowered<Option<Vector>> {
    let scaled = words.take("block_scale");
    if scaled != kind.scaled() {
        return illegal(match scaled {
            true => "this kind has no .block_scale",
            false => "this kind needs .block_scale",
        });
    }
    if !scaled {
        return Ok(None);
    }
    let numbers = &[
        ("scale_vec::1X", Vector::One),
        ("scale_vec::2X", Vector::Two),
        ("scale_vec::4X", Vector::Four),
    ];
    if let Some(vector) = words.pick(numbers) {
        return fitting(kind, vector);
    }
    let sizes = &[("block16", 16u32), ("block32", 32)];
    match (words.pick(sizes), kind) {
        (Some(16), _) => fitting(kind, Vector::Four),
        (Some(_) | None, Kind::Mxf8f6f4) => Ok(Some(Vector::One)),
        (Some(_), _) | (None, Kind::Mxf4) => Ok(Some(Vector::Two)),
        (None, _) => Err(Problem::MissingModifier(
            "the scales' block, .block16 or .block32",
        )),
    }
}

fn fitting(kind: Kind, vector: Vector) -> Lowered<Option<Vector>> {
    let fits = match kind {
        Kind::Mxf8f6f4 => vector == Vector::One,
        Kind::Mxf4 => vector == Vector::Two,
        _ => vector != Vector::One,
    };
    match fits {
        true => Ok(Some(vector)),
        false => illegal("this kind has another number of scales"),
    }
}

/// The part of an operand that the tensor core keeps, or reuses.
fn collector(words: &mut Modifiers<'_>, stationary: bool, shifted: bool) -> Lowered<Collector> {
    const USES: [(&str, Usage); 4] = [
        ("fill", Usage::Fill),
        ("use", Usage::Use),
        ("lastuse", Usage::LastUse),
        ("discard", Usage::Discard),
    ];
    let buffers: &[&str] = match stationary {
        true => &["b0", "b1", "b2", "b3"],
        false => &["a"],
    };
    for (buffer, name) in (0..).zip(buffers) {
        for (word, usage) in USES {
            if words.take(&format!("collector::{name}::{word}")) {
                if shifted && usage.keeps() {
                    return illegal(".ashift goes with neither ::fill nor ::use");
                }
                return Ok(Collector { buffer, usage });
            }
        }
    }
    Ok(Collector {
        buffer: 0,
        usage: Usage::Discard,
    })
}

fn copy<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let group = cta_group(&mut form.words)?;
    let shapes = &[
        ("128x256b", CopyShape::S128x256),
        ("128x128b", CopyShape::S128x128),
        ("4x256b", CopyShape::S4x256),
        ("64x128b", CopyShape::S64x128Halves),
        ("32x128b", CopyShape::S32x128),
    ];
    let shape = match form.words.need(shapes, "a shape")? {
        CopyShape::S64x128Halves => {
            let casts = &[
                ("warpx2::02_13", CopyShape::S64x128Halves),
                ("warpx2::01_23", CopyShape::S64x128Pairs),
            ];
            form.words.need(casts, "warpx2::02_13 or ::01_23")?
        }
        CopyShape::S32x128 => {
            form.words.exactly("warpx4")?;
            CopyShape::S32x128
        }
        whole => whole,
    };
    let unpacked = match form.words.take("b8x16") {
        true => {
            let formats = &[
                ("b4x16_p64", Unpacked::Fours),
                ("b6x16_p32", Unpacked::Sixes),
            ];
            Some(form.words.need(formats, "b4x16_p64 or b6x16_p32")?)
        }
        false => None,
    };
    form.words.finish()?;
    let [to, from] = exactly(form.operands)?;
    let to = tensor_address(emitter, to)?;
    let from = emitter.s64(from, Num::B64)?;
    emitter.emit(Op::TmemCopy(Box::new(TmemCopy {
        group,
        shape,
        unpacked,
        to,
        from,
    })));
    Ok(())
}

fn commit<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let group = cta_group(&mut form.words)?;
    form.words.exactly("mbarrier::arrive::one")?;
    let space = match form.words.take("shared::cluster") {
        true => Space::SharedCluster,
        false => Space::Generic,
    };
    let multicast = form.words.take("multicast::cluster");
    form.words.end(&["b64"])?;
    let ([barrier], rest) = at_least(form.operands, 1)?;
    let barrier = emitter.addr(barrier, space)?;
    let multicast = match (multicast, rest) {
        (true, [mask]) => Some(emitter.s32(mask, Num::U16)?),
        (false, []) => None,
        (true, _) => return illegal("a multicast needs the mask of its CTAs"),
        (false, [extra, ..]) => return wrong("no further operand", extra),
    };
    emitter.emit(Op::TmemCommit {
        group,
        space,
        barrier,
        multicast,
    });
    Ok(())
}

fn tile<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>, store: bool) -> Lowered<()> {
    if !store && form.words.take("red") {
        return illegal("tcgen05.ld.red is not emulated");
    }
    form.words.exactly("sync")?;
    form.words.exactly("aligned")?;
    let lanes = form
        .words
        .next()
        .ok_or(Problem::MissingModifier("a shape"))?;
    let times = form
        .words
        .next()
        .ok_or(Problem::MissingModifier("a number of times"))?;
    let number = times.strip_prefix('x').and_then(|n| n.parse().ok());
    let shape = number.and_then(|number| MoveShape::new(lanes, number));
    let shape = shape.ok_or_else(|| Problem::UnknownModifier(format!("{lanes}.{times}")))?;
    let packed = form
        .words
        .take(if store { "unpack::16b" } else { "pack::16b" });
    form.words.end(&["b32"])?;
    let split = lanes == "16x32bx2";
    let (regs, at, offset) = match (form.operands, store, split) {
        ([regs, at], false, false) | ([at, regs], true, false) => (regs, at, None),
        ([regs, at, offset], false, true) | ([at, offset, regs], true, true) => {
            (regs, at, Some(offset))
        }
        _ => {
            return Err(Problem::OperandCount {
                expected: (2 + u32::from(split)).to_string(),
                found: form.operands.len(),
            });
        }
    };
    let at = tensor_address(emitter, at)?;
    let split = match offset {
        Some(offset) => immediate_u32(offset)?,
        None => 0,
    };
    let regs = fragment(emitter, regs, shape.registers(), !store, !store)?;
    emitter.emit(Op::TmemMove(Box::new(TmemMove {
        store,
        shape,
        split,
        packed,
        at,
        regs,
    })));
    Ok(())
}
