//! `tcgen05`: tensor memory, and the tensor cores that sum in it.

use super::{Addr, P, R32, R64, SlotList};
use crate::tensor::tcgen05::{CopyShape, Kind, MoveShape, Unpacked, Vector};

/// `.cta_group::1` or `::2`: one CTA works, or a pair of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CtaGroup {
    One,
    Pair,
}

impl CtaGroup {
    /// CTAs that take part.
    pub(crate) fn ctas(self) -> u32 {
        match self {
            CtaGroup::One => 1,
            CtaGroup::Pair => 2,
        }
    }
}

/// `tcgen05.mma`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TmemMma {
    pub group: CtaGroup,
    pub kind: Kind,
    /// `.ws`: B stays, and M may be 32.
    pub stationary: bool,
    /// Where D lies.
    pub d: Addr,
    pub a: TmemA,
    /// Descriptor of B.
    pub b: R64,
    /// Where the metadata of a sparse A lies.
    pub metadata: Option<Addr>,
    /// Instruction descriptor.
    pub shape: R32,
    /// Scales of A and B, and how many each row has.
    pub scales: Option<(Addr, Addr, Vector)>,
    /// Lanes of D that are not written, 32 a register; empty if all are.
    pub disabled: SlotList,
    /// `enable-input-d`
    pub accumulate: Accumulate,
    /// `scale-input-d`: D is multiplied by 2 to minus this first.
    pub scale_d: u8,
    /// `.ashift`: each row of A is that of the lane above it.
    pub shifted: bool,
    /// What the tensor core keeps of A, or of B where that is stationary.
    pub collector: Collector,
}

/// `.collector::BUFFER::USAGE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collector {
    /// 0 for A; of four for B.
    pub buffer: u8,
    pub usage: Usage,
}

/// What a product does with a collector's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    Fill,
    Use,
    LastUse,
    Discard,
}

impl Usage {
    /// The operand is taken from the buffer.
    pub(crate) fn takes(self) -> bool {
        matches!(self, Self::Use | Self::LastUse)
    }

    /// The buffer holds the operand afterwards.
    pub(crate) fn keeps(self) -> bool {
        matches!(self, Self::Fill | Self::Use)
    }
}

/// A operand of a [`TmemMma`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TmemA {
    /// Matrix descriptor.
    Desc(R64),
    /// In tensor memory.
    Tmem(Addr),
}

/// Whether D is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accumulate {
    Always(bool),
    If { p: P, negate: bool },
}

/// `tcgen05.ld` / `tcgen05.st`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TmemMove {
    /// Store rather than load.
    pub store: bool,
    pub shape: MoveShape,
    /// Columns of tensor memory from the first half to the second of `.16x32bx2`.
    pub split: u32,
    /// `.pack::16b`, `.unpack::16b`: a register is the low halves of two columns.
    pub packed: bool,
    pub at: Addr,
    pub regs: SlotList,
}

/// `tcgen05.cp`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TmemCopy {
    pub group: CtaGroup,
    pub shape: CopyShape,
    /// Widened to a byte each on the way.
    pub unpacked: Option<Unpacked>,
    pub to: Addr,
    /// Matrix descriptor of the source.
    pub from: R64,
}
