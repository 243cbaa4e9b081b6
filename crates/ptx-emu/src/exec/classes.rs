//! Which unit an instruction keeps busy, and which ones other CTAs can see.

use crate::counters::Class;
use crate::op::{BulkDir, FUn, Num, Op, Order, Program, Space};

fn memory(space: Space) -> Class {
    match space {
        Space::Generic | Space::Global => Class::Global,
        Space::Shared | Space::SharedCluster => Class::Shared,
        Space::Local | Space::Const | Space::Param => Class::OtherMemory,
    }
}

/// The class of an instruction.
pub(super) fn class(op: &Op) -> Class {
    match op {
        Op::F32Un { op, .. } | Op::HUn { op, .. } | Op::F64Un { op, .. } => match op {
            FUn::Neg | FUn::Abs | FUn::Sqrt | FUn::Rcp => Class::Float,
            _ => Class::Mufu,
        },
        Op::F32Bin { .. } | Op::F32Fma { .. } | Op::F32x2Bin { .. } | Op::F32x2Fma { .. } => {
            Class::Float
        }
        Op::FmaMixed { .. } | Op::SetpF32 { .. } | Op::Testp32 { .. } => Class::Float,
        Op::F64Bin { .. } | Op::F64Fma { .. } | Op::SetpF64 { .. } | Op::Testp64 { .. } => {
            Class::Double
        }
        Op::HBin { .. } | Op::HFma { .. } | Op::SetpH { .. } => Class::Half,
        Op::Cvt { from, to, .. } if is_int(*from) && is_int(*to) => Class::Int,
        Op::Cvt { .. } | Op::CvtPack { .. } | Op::CvtPair { .. } | Op::CvtPackInt { .. } => {
            Class::Convert
        }
        Op::Ld { space, .. } | Op::St { space, .. } | Op::Prefetch { space, .. } => memory(*space),
        Op::Atom(atom) => memory(atom.space),
        Op::MatrixMove(_) => Class::Shared,
        Op::WmmaMove(m) => memory(m.space),
        Op::Bra { .. } | Op::Brx { .. } | Op::Call { .. } | Op::CallIndirect { .. } => {
            Class::Control
        }
        Op::Ret | Op::Exit | Op::Trap | Op::Brkpt | Op::AssertFail { .. } => Class::Control,
        Op::Printf { .. } | Op::Nop | Op::Nanosleep { .. } => Class::Control,
        Op::Setmaxnreg { .. } | Op::GridDep { .. } => Class::Control,
        Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => {
            Class::Sync
        }
        Op::Shfl { .. } | Op::VotePred { .. } | Op::Ballot { .. } | Op::Match { .. } => Class::Sync,
        Op::Redux { .. } | Op::Elect { .. } | Op::Fence { .. } | Op::Mbar(_) => Class::Sync,
        Op::CpAsync { .. } | Op::CpAsyncCommit | Op::CpAsyncWait { .. } => Class::Async,
        Op::CpAsyncMbarArrive { .. } | Op::Bulk(_) | Op::Tensor(_) | Op::BulkCommit => Class::Async,
        Op::BulkWait { .. } | Op::TensormapReplace { .. } | Op::TensormapCp { .. } => Class::Async,
        Op::PrefetchTensormap { .. } | Op::StAsync { .. } | Op::RedAsync { .. } => Class::Async,
        Op::Wgmma(_)
        | Op::WgmmaFence
        | Op::WgmmaCommit
        | Op::WgmmaWait { .. }
        | Op::Mma(_)
        | Op::Wmma(_) => Class::Tensor,
        _ => Class::Int,
    }
}

fn is_int(num: Num) -> bool {
    use Num::{B8, B16, B32, B64, S8, S16, S32, S64, U8, U16, U32, U64};
    matches!(
        num,
        B8 | B16 | B32 | B64 | U8 | S8 | U16 | S16 | U32 | S32 | U64 | S64
    )
}

/// Whether CTAs of the program may talk to each other through global memory.
pub(crate) fn communicates(program: &Program) -> bool {
    let seen = |space: Space| matches!(space, Space::Global | Space::Generic);
    program.insts.iter().any(|inst| match &inst.op {
        Op::Ld { space, order, .. } | Op::St { space, order, .. } => {
            *order != Order::Weak && seen(*space)
        }
        Op::Atom(atom) => seen(atom.space),
        Op::Bulk(bulk) => bulk.dir == BulkDir::SharedToGlobal && bulk.reduce.is_some(),
        Op::Tensor(tensor) => tensor.reduce.is_some(),
        _ => false,
    })
}
