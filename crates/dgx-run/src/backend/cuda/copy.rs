//! The yardstick of memory-bound operators: a copy that moves the minimum number of bytes.

use super::driver::{DeviceMemory, Graph, Result, Stream};
use super::program::Program;
use super::tools::Tools;
use crate::backend::call_seed::CallSeed;
use crate::backend::pieces::{Piece, PieceContents, PieceSource};
use dgx_core::domain::Group;
use dgx_core::operator::Operator;

/// Other sizes take half as long again in a graph's copy node: on an H200 174 µs for 234,881,040
/// bytes, 114 for 234,881,024.
const PAGE: u64 = 4096;

#[derive(Debug)]
pub(super) struct Copy {
    source: DeviceMemory,
    target: DeviceMemory,
    /// Writes new contents of both.
    contents: Program,
    /// Compares the target with its expected contents.
    wanted: Program,
}

impl Copy {
    pub(super) fn new(operator: &Operator, groups: &[Group], stream: &Stream) -> Result<Self> {
        // The copy reads as many bytes as it writes.
        let bytes = operator.work_of(groups).memory_bytes / 2.0;
        let bytes = (bytes as u64).next_multiple_of(PAGE).max(PAGE);
        let (source, target) = (DeviceMemory::new(bytes)?, DeviceMemory::new(bytes)?);
        let piece = |memory: &DeviceMemory, what| Piece {
            at: memory.address,
            bytes,
            what,
        };
        let contents = [&source, &target].map(|memory| piece(memory, PieceContents::Noise));
        let wanted = [piece(&target, PieceContents::Same(PieceSource::Input(0)))];
        let program = |pieces: &[Piece]| {
            let address = |_| source.address;
            Program::new([&[], pieces, &[]], address, stream)
        };
        Ok(Self {
            contents: program(&contents)?,
            wanted: program(&wanted)?,
            source,
            target,
        })
    }

    pub(super) fn capture(&self, stream: &Stream) -> Result<Graph> {
        stream.capture(|| stream.copy(self.target.address, self.source.address, self.source.bytes))
    }

    /// Queues new contents of the source. The target's old contents never equal it: noise depends
    /// on the address.
    pub(super) fn lay(&self, tools: &Tools, call_seed: CallSeed) -> Result<()> {
        self.contents.lay(tools, call_seed, false)
    }

    /// Queues the comparison of both, as [`Program::check`] does.
    pub(super) fn check(&self, tools: &Tools, call_seed: CallSeed, lowest: u64) -> Result<()> {
        self.wanted.check(tools, call_seed, true, lowest)
    }

    /// Whether the target equals the source.
    pub(super) fn is_same(&self, tools: &Tools, call_seed: CallSeed) -> Result<bool> {
        let changed = self.wanted.lowest_change(tools, call_seed)?;
        Ok(changed.is_none())
    }
}
