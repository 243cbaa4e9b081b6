//! Bulk and tensor copies, and tensor maps in memory.

use super::atomic::OPERATIONS;
use super::row::bare;
use crate::front::ast::{Address, Operand};
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly, immediate_u32, wrong};
use crate::lower::modifiers::Modifiers;
use crate::op::*;

/// `cp.async.bulk…` and `cp.reduce.async.bulk…`, after those words.
pub(super) fn lower<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    reduce: bool,
) -> Lowered<()> {
    if form.words.take_first("commit_group") {
        return bare(emitter, &form, Op::BulkCommit);
    }
    if form.words.take_first("wait_group") {
        let read = form.words.take("read");
        form.words.finish()?;
        let [n] = exactly(form.operands)?;
        let n = immediate_u32(n)?;
        emitter.emit(Op::BulkWait { n, read });
        return Ok(());
    }
    let prefetch = form.words.take_first("prefetch");
    match (form.words.take_first("tensor"), prefetch) {
        (true, _) => tensor(emitter, form, reduce, prefetch),
        (false, true) => bulk_prefetch(emitter, form),
        (false, false) => bulk(emitter, form, reduce),
    }
}

const MBARRIER: &str = "mbarrier::complete_tx::bytes";

/// Destination and source words, in this order.
fn direction(words: &mut Modifiers<'_>) -> Lowered<(BulkDir, Space)> {
    let to = words
        .next()
        .ok_or(Problem::MissingModifier("a destination"))?;
    let from = words.next().ok_or(Problem::MissingModifier("a source"))?;
    Ok(match (to, from) {
        ("shared::cluster", "global") => (BulkDir::GlobalToShared, Space::SharedCluster),
        ("shared::cta", "global") => (BulkDir::GlobalToShared, Space::Shared),
        ("global", "shared::cta") => (BulkDir::SharedToGlobal, Space::Shared),
        ("shared::cluster", "shared::cta") => (BulkDir::SharedToCluster, Space::SharedCluster),
        _ => return illegal(format!("no bulk copy goes from .{from} to .{to}")),
    })
}

fn zero_addr() -> Addr {
    Addr {
        base: Base::Abs,
        offset: 0,
    }
}

/// Operands after the fixed ones, in their fixed order.
struct Tail<'x, 'a> {
    rest: &'x [Operand<'a>],
}

impl<'x, 'a> Tail<'x, 'a> {
    fn next(&mut self, what: &str) -> Lowered<&'x Operand<'a>> {
        match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                Ok(first)
            }
            [] => illegal(format!("missing operand: {what}")),
        }
    }

    fn finish(self) -> Lowered<()> {
        match self.rest {
            [] => Ok(()),
            [extra, ..] => wrong("no further operand", extra),
        }
    }
}

fn bulk<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>, reduce: bool) -> Lowered<()> {
    let (dir, shared) = direction(&mut form.words)?;
    let multicast = form.words.take("multicast::cluster");
    let hint = form.words.hints();
    let masked = form.words.take("cp_mask");
    completion(&mut form.words, dir)?;
    let reduce = match reduce {
        true => Some(reduction(&mut form.words, dir)?),
        false => None,
    };
    form.words.finish()?;
    if multicast && (dir, shared) != (BulkDir::GlobalToShared, Space::SharedCluster) {
        return illegal("multicast goes from global to shared::cluster");
    }
    let mut tail = Tail {
        rest: form.operands,
    };
    let (to_space, from_space) = match dir {
        BulkDir::SharedToGlobal => (Space::Global, Space::Shared),
        BulkDir::SharedToCluster => (Space::SharedCluster, Space::Shared),
        _ => (shared, Space::Global),
    };
    let dst = emitter.addr(tail.next("destination")?, to_space)?;
    let src = emitter.addr(tail.next("source")?, from_space)?;
    let bytes = emitter.s32(tail.next("size")?, Num::U32)?;
    let mbar = match dir {
        BulkDir::SharedToGlobal => None,
        _ => Some(emitter.addr(tail.next("mbarrier")?, shared)?),
    };
    let multicast = match multicast {
        true => Some(emitter.s32(tail.next("CTA mask")?, Num::U16)?),
        false => None,
    };
    if hint {
        emitter.s64(tail.next("cache policy")?, Num::B64)?;
    }
    let byte_mask = match masked {
        true => Some(emitter.s32(tail.next("byte mask")?, Num::U16)?),
        false => None,
    };
    tail.finish()?;
    emitter.emit(Op::Bulk(Box::new(BulkCopy {
        dir,
        dst,
        src,
        bytes,
        mbar,
        multicast,
        reduce,
        byte_mask,
    })));
    Ok(())
}

/// Loads complete on an mbarrier, stores in a bulk group.
fn completion(words: &mut Modifiers<'_>, dir: BulkDir) -> Lowered<()> {
    match dir {
        BulkDir::SharedToGlobal => words.exactly("bulk_group"),
        BulkDir::Prefetch => Ok(()),
        _ => words.exactly(MBARRIER),
    }
}

fn reduction(words: &mut Modifiers<'_>, dir: BulkDir) -> Lowered<(AtomOp, Num)> {
    if dir == BulkDir::GlobalToShared {
        return illegal("reductions write to global memory or to another CTA");
    }
    words.take("noftz");
    let op = words.need(OPERATIONS, "a reduction")?;
    let ty = words.ty()?;
    match op {
        AtomOp::Exch | AtomOp::Cas => illegal("no such reduction"),
        _ => Ok((op, ty)),
    }
}

fn bulk_prefetch<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("L2")?;
    form.words.exactly("global")?;
    let hint = form.words.hints();
    form.words.finish()?;
    let ([src, bytes], rest) = at_least(form.operands, usize::from(hint))?;
    let src = emitter.addr(src, Space::Global)?;
    let bytes = emitter.s32(bytes, Num::U32)?;
    super::memory::hint_operand(emitter, rest)?;
    emitter.emit(Op::Bulk(Box::new(BulkCopy {
        dir: BulkDir::Prefetch,
        dst: zero_addr(),
        src,
        bytes,
        mbar: None,
        multicast: None,
        reduce: None,
        byte_mask: None,
    })));
    Ok(())
}

const DIMS: &[(&str, u8)] = &[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];

const MODES: &[(&str, TensorMode)] = &[
    ("tile", TensorMode::Tile),
    ("im2col", TensorMode::Im2col),
    ("im2col_no_offs", TensorMode::Im2col),
    ("tile::gather4", TensorMode::Rows4),
    ("tile::scatter4", TensorMode::Rows4),
];

/// Modes that are not supported yet.
const WIDE_MODES: [&str; 2] = ["im2col::w", "im2col::w::128"];

fn tensor<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    reduce: bool,
    prefetch: bool,
) -> Lowered<()> {
    let dims = form.words.need(DIMS, "1d to 5d")?;
    if let Some(mode) = WIDE_MODES.iter().find(|mode| form.words.contains(mode)) {
        let name = format!("cp.async.bulk.tensor in mode {mode}");
        return Err(Problem::UnknownInstruction(name));
    }
    // CUTLASS puts it first, the manual last.
    let pair = form
        .words
        .pick(&[("cta_group::1", false), ("cta_group::2", true)]);
    let (dir, shared_space) = match prefetch {
        true => {
            form.words.exactly("L2")?;
            form.words.exactly("global")?;
            (BulkDir::Prefetch, Space::Shared)
        }
        false => direction(&mut form.words)?,
    };
    if dir == BulkDir::SharedToCluster || (reduce && dir != BulkDir::SharedToGlobal) {
        return illegal("no tensor copy has this direction");
    }
    completion(&mut form.words, dir)?;
    let reduce = match reduce {
        true => Some(form.words.need(OPERATIONS, "a reduction")?),
        false => None,
    };
    let scatter = form.words.contains("tile::scatter4");
    let mode = form.words.pick(MODES).unwrap_or(TensorMode::Tile);
    let multicast = form.words.take("multicast::cluster");
    let hint = form.words.hints();
    form.words.finish()?;
    if mode == TensorMode::Rows4 && (dims != 2 || scatter != (dir == BulkDir::SharedToGlobal)) {
        return illegal("tile::gather4 loads and tile::scatter4 stores rows of a .2d tensor");
    }
    if pair.is_some() && dir != BulkDir::GlobalToShared {
        return illegal(".cta_group goes with loads");
    }
    if multicast && shared_space != Space::SharedCluster {
        return illegal("multicast goes to shared::cluster");
    }
    let mut tail = Tail {
        rest: form.operands,
    };
    let mut shared = zero_addr();
    if dir == BulkDir::GlobalToShared {
        shared = emitter.addr(tail.next("destination")?, shared_space)?;
    }
    let coordinates = match mode {
        TensorMode::Rows4 => 5,
        _ => dims,
    };
    let (map, coords) = map_and_coordinates(emitter, tail.next("tensor map")?, coordinates)?;
    if dir == BulkDir::SharedToGlobal {
        shared = emitter.addr(tail.next("source")?, Space::Shared)?;
    }
    let mbar = match dir {
        BulkDir::GlobalToShared => Some(emitter.addr(tail.next("mbarrier")?, shared_space)?),
        _ => None,
    };
    let extra = offsets(emitter, &mut tail, dir, dims, mode)?;
    let multicast = match multicast {
        true => Some(emitter.s32(tail.next("CTA mask")?, Num::U16)?),
        false => None,
    };
    if hint {
        emitter.s64(tail.next("cache policy")?, Num::B64)?;
    }
    tail.finish()?;
    emitter.emit(Op::Tensor(Box::new(TensorCopy {
        dir,
        dims,
        mode,
        shared,
        map,
        coords,
        extra,
        mbar,
        multicast,
        pair: pair == Some(true),
        reduce,
    })));
    Ok(())
}

/// `[map, {c0, c1}]`
fn map_and_coordinates<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    dims: u8,
) -> Lowered<(Addr, SlotList)> {
    let Operand::TensorAddress(map, coordinates) = operand else {
        return wrong("a tensor map with coordinates", operand);
    };
    let wanted = usize::from(dims);
    if coordinates.len() != wanted {
        return illegal(format!(
            "{wanted} coordinates are needed, found {}",
            coordinates.len()
        ));
    }
    let map: Address<'a> = *map;
    let (map, _) = emitter.resolve_address(map, Space::Generic)?;
    let mut slots = Vec::new();
    for coordinate in coordinates {
        slots.push(Slot::W32(emitter.s32(coordinate, Num::S32)?));
    }
    Ok((map, emitter.list(&slots)?))
}

/// im2col offsets of loads and prefetches.
fn offsets<'a>(
    emitter: &mut Emitter<'_, 'a>,
    tail: &mut Tail<'_, 'a>,
    dir: BulkDir,
    dims: u8,
    mode: TensorMode,
) -> Lowered<SlotList> {
    if mode != TensorMode::Im2col || dir == BulkDir::SharedToGlobal {
        return emitter.list(&[]);
    }
    if dims < 3 {
        return illegal("im2col needs at least three dimensions");
    }
    let operand = tail.next("im2col offsets")?;
    let Operand::Vector(items) = operand else {
        return wrong("a vector of im2col offsets", operand);
    };
    if items.len() != usize::from(dims - 2) {
        return illegal(format!("{} im2col offsets are needed", dims - 2));
    }
    let mut slots = Vec::new();
    for item in items {
        slots.push(Slot::W32(emitter.s32(item, Num::U16)?));
    }
    emitter.list(&slots)
}

/// `tensormap.replace` and `tensormap.cp_fenceproxy`
pub(super) fn tensormap<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take_first("cp_fenceproxy") {
        for word in ["global", "shared::cta", "tensormap::generic", "release"] {
            form.words.exactly(word)?;
        }
        let Some(scope) = form.words.scope() else {
            return Err(Problem::MissingModifier("a scope"));
        };
        form.words.end(&["sync", "aligned"])?;
        let [dst, src, size] = exactly(form.operands)?;
        let bytes = immediate_u32(size)?;
        if bytes != 128 {
            return illegal("a tensor map has 128 bytes");
        }
        let dst = emitter.addr(dst, Space::Global)?;
        let src = emitter.addr(src, Space::Shared)?;
        emitter.emit(Op::TensormapCp {
            scope,
            dst,
            src,
            bytes,
        });
        return Ok(());
    }
    form.words.exactly("replace")?;
    form.words.exactly("tile")?;
    replace(emitter, form)
}

#[derive(Clone, Copy)]
enum Field {
    Plain(MapField, Num),
    Indexed(fn(u8) -> MapField, Num),
}

const FIELDS: &[(&str, Field)] = &[
    (
        "global_address",
        Field::Plain(MapField::GlobalAddress, Num::B64),
    ),
    ("rank", Field::Plain(MapField::Rank, Num::B32)),
    ("box_dim", Field::Indexed(MapField::BoxDim, Num::B32)),
    ("global_dim", Field::Indexed(MapField::GlobalDim, Num::B32)),
    (
        "global_stride",
        Field::Indexed(MapField::GlobalStride, Num::B64),
    ),
    (
        "element_stride",
        Field::Indexed(MapField::ElementStride, Num::B32),
    ),
    ("elemtype", Field::Plain(MapField::ElementType, Num::B32)),
    (
        "interleave_layout",
        Field::Plain(MapField::InterleaveLayout, Num::B32),
    ),
    (
        "swizzle_mode",
        Field::Plain(MapField::SwizzleMode, Num::B32),
    ),
    (
        "swizzle_atomicity",
        Field::Plain(MapField::SwizzleAtomicity, Num::B32),
    ),
    ("fill_mode", Field::Plain(MapField::FillMode, Num::B32)),
];

fn replace<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let field = form.words.need(FIELDS, "a field")?;
    let spaces = &[
        ("global", Space::Global),
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
    ];
    let space = form.words.pick(spaces).unwrap_or(Space::Generic);
    form.words.exactly("b1024")?;
    let given = form.words.last_ty()?;
    let (field, ty, address, value) = match field {
        Field::Plain(field, ty) => {
            let [address, value] = exactly(form.operands)?;
            (field, ty, address, value)
        }
        Field::Indexed(field, ty) => {
            let [address, index, value] = exactly(form.operands)?;
            match u8::try_from(immediate_u32(index)?) {
                Ok(index) if index < 5 => (field(index), ty, address, value),
                _ => return illegal("the dimension must be 0 to 4"),
            }
        }
    };
    if given != ty {
        return illegal("the field has another width");
    }
    if let Operand::Constant(_) = value {
        let target = emitter.unit.target;
        let small = target.is_some_and(|target| !target.is_blackwell_or_later());
        let most = match field {
            MapField::ElementType if small => 12,
            MapField::ElementType => 15,
            MapField::InterleaveLayout => 2,
            MapField::SwizzleMode | MapField::SwizzleAtomicity => 3,
            MapField::FillMode => 1,
            _ => u32::MAX,
        };
        if ty == Num::B32 && immediate_u32(value)? > most {
            return illegal(format!("this field holds 0 to {most}"));
        }
    }
    let addr = emitter.addr(address, space)?;
    let value = emitter.source(value, ty)?;
    emitter.emit(Op::TensormapReplace {
        field,
        space,
        addr,
        value,
    });
    Ok(())
}
