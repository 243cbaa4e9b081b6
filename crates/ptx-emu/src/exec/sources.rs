//! Which 32-bit registers an instruction reads, for those that can meet an accumulator.

use std::collections::BTreeSet;

use super::convert::pool;
use crate::op::{Op, Program, R32, Slot, SlotList};

fn words(program: &Program, list: SlotList) -> impl Iterator<Item = R32> {
    pool(program, list).iter().filter_map(|slot| word(*slot))
}

fn word(slot: Slot) -> Option<R32> {
    match slot {
        Slot::W32(r) => Some(r),
        _ => None,
    }
}

/// 32-bit sources of arithmetic, moves, stores and matrix instructions.
pub(super) fn sources(program: &Program, op: &Op) -> Vec<R32> {
    match *op {
        Op::Bin32 { a, b, .. } | Op::F32Bin { a, b, .. } | Op::HBin { a, b, .. } => vec![a, b],
        Op::SetpI32 { a, b, .. } | Op::SetpF32 { a, b, .. } | Op::SetpH { a, b, .. } => vec![a, b],
        Op::CvtPack { a, b, .. } | Op::Selp32 { a, b, .. } | Op::Bin16x2 { a, b, .. } => vec![a, b],
        Op::Pack32 { lo, hi, .. } | Op::Pack64 { lo, hi, .. } => vec![lo, hi],
        Op::MadLo32 { a, b, c, .. } | Op::F32Fma { a, b, c, .. } | Op::HFma { a, b, c, .. } => {
            vec![a, b, c]
        }
        Op::Lop3 { a, b, c, .. } | Op::Prmt { a, b, c, .. } | Op::FmaMixed { a, b, c, .. } => {
            vec![a, b, c]
        }
        Op::F32Un { a, .. } | Op::HUn { a, .. } | Op::Un32 { a, .. } | Op::CvtPair { a, .. } => {
            vec![a]
        }
        Op::Mov32 { a, .. } | Op::Shfl { a, .. } | Op::Unpack32 { a, .. } | Op::Redux { a, .. } => {
            vec![a]
        }
        Op::Video(ref op) => vec![op.a, op.b, op.c],
        Op::Cvt { a, .. } => word(a).into_iter().collect(),
        Op::PackN { parts, .. } => words(program, parts).collect(),
        Op::St { s, .. } | Op::StAsync { s, .. } => words(program, s).collect(),
        Op::Atom(ref atom) => words(program, atom.b).collect(),
        Op::Mma(ref mma) => [mma.a, mma.b, mma.c]
            .iter()
            .flat_map(|&l| words(program, l))
            .collect(),
        Op::Wmma(ref wmma) => [wmma.a, wmma.b, wmma.c]
            .iter()
            .flat_map(|&l| words(program, l))
            .collect(),
        Op::WmmaMove(ref m) if m.store => words(program, m.regs).collect(),
        Op::MatrixMove(ref m) if m.store => words(program, m.regs).collect(),
        _ => Vec::new(),
    }
}

/// Marks the instructions that read what a wgmma writes (or a copy of it).
pub(super) fn readers(program: &Program) -> Vec<bool> {
    let mut written: BTreeSet<R32> = BTreeSet::new();
    for inst in &program.insts {
        if let Op::Wgmma(op) = &inst.op {
            written.extend(words(program, op.d));
        }
    }
    loop {
        let before = written.len();
        for inst in &program.insts {
            if let Op::Mov32 { d, a } = inst.op
                && written.contains(&a)
            {
                written.insert(d);
            }
        }
        if written.len() == before {
            break;
        }
    }
    let reads =
        |op: &Op| !written.is_empty() && sources(program, op).iter().any(|r| written.contains(r));
    program.insts.iter().map(|inst| reads(&inst.op)).collect()
}
