use bytemuck::{NoUninit, cast_slice};
use dgx_core::operator::ElementType;

use super::driver::{DeviceMemory, Result, Stream};
use super::tools::{Tools, blocks, launch, uploaded};
use crate::backend::call_seed::CallSeed;
use crate::backend::pieces::{Piece, PieceContents, PieceSource, poison_word};
use crate::operator::Moves;
use dgx_core::fields::PointedPart;

/// Bytes a block works on. Keep in step with tools.cu.
pub(super) const CHUNK: u64 = 32768;

/// `Piece` of tools.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
pub(super) struct WirePiece {
    pub at: u64,
    pub from: u64,
    pub bytes: u64,
    pub first: u64,
    pub kind: u32,
    pub element: u32,
    pub moves: Moves,
}

/// Pieces in the device's format, and their number of chunks in all; `address` gives the place of a
/// source.
pub(super) fn wire(
    pieces: &[Piece],
    address: impl Fn(PieceSource) -> u64,
) -> (Vec<WirePiece>, u64) {
    let mut first = 0;
    let mut table = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (kind, element) = match piece.what {
            PieceContents::Canary => (0, 0),
            PieceContents::Poison(element) => (1, element as u32),
            PieceContents::Scratch => (2, 0),
            PieceContents::Zero => (3, 0),
            PieceContents::Same(_) => (4, 0),
            PieceContents::Variable(_) => (5, 0),
            PieceContents::Shuffled { of, .. } if of.form == PointedPart::Atoms => (7, 0),
            PieceContents::Shuffled { .. } => (6, 0),
            PieceContents::Begun { .. } => (8, 0),
            PieceContents::Noise => (9, 0),
        };
        let moves = match piece.what {
            PieceContents::Shuffled { of, .. } | PieceContents::Begun { of, .. } => of.moves,
            _ => Moves::default(),
        };
        table.push(WirePiece {
            at: piece.at,
            from: piece.what.source().map_or(0, &address),
            bytes: piece.bytes,
            first,
            kind,
            element,
            moves,
        });
        first += piece.bytes.div_ceil(CHUNK);
    }
    (table, first)
}

/// `Poisons` of tools.cu, by the index of a type. Scale types have none.
pub(super) type Poisons = [u64; ElementType::ALL.len() + 1];

pub(super) fn poisons(call_seed: CallSeed) -> Poisons {
    let mut words = [0; ElementType::ALL.len() + 1];
    for element in ElementType::ALL {
        words[element as usize] = poison_word(call_seed, element);
    }
    words
}

/// The memory to write before a call on one data set, and to check afterwards.
#[derive(Debug)]
pub(super) struct Program {
    /// Inputs first: they are many, and not always checked. Variables of the module last: they are
    /// not always restored.
    pieces: Vec<Piece>,
    table: DeviceMemory,
    input_chunks: u64,
    /// All but the variables'.
    call_chunks: u64,
    chunks: u64,
}

impl Program {
    pub(super) fn new(
        [inputs, own, variables]: [&[Piece]; 3],
        address: impl Fn(PieceSource) -> u64,
        stream: &Stream,
    ) -> Result<Self> {
        let pieces = [inputs, own, variables].concat();
        let (table, chunks) = wire(&pieces, &address);
        Ok(Self {
            table: uploaded(cast_slice(&table), stream)?,
            pieces,
            input_chunks: wire(inputs, &address).1,
            call_chunks: chunks - wire(variables, &address).1,
            chunks,
        })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Queues writing everything to its place; variables only if the values that earlier calls left
    /// in them are to be forgotten.
    pub(super) fn lay(&self, tools: &Tools, call_seed: CallSeed, forget: bool) -> Result<()> {
        let chunks = match forget {
            true => self.chunks,
            false => self.call_chunks,
        };
        let (table, count) = (self.table.address, self.pieces.len() as u32);
        launch!(
            tools.lay,
            &tools.stream,
            &blocks(chunks),
            [table, count, 0_u64, call_seed.0, poisons(call_seed)]
        )
    }

    /// Queues checking that nothing changed; the complement of the lowest changed address goes to
    /// `lowest`, which must be 0 before.
    pub(super) fn check(
        &self,
        tools: &Tools,
        call_seed: CallSeed,
        inputs_too: bool,
        lowest: u64,
    ) -> Result<()> {
        let skip = if inputs_too { 0 } else { self.input_chunks };
        let (table, count) = (self.table.address, self.pieces.len() as u32);
        launch!(
            tools.check,
            &tools.stream,
            &blocks(self.call_chunks - skip),
            [table, count, skip, call_seed.0, lowest]
        )
    }

    /// The lowest changed address, including inputs.
    pub(super) fn lowest_change(&self, tools: &Tools, call_seed: CallSeed) -> Result<Option<u64>> {
        let lowest = uploaded(&[0; 8], &tools.stream)?;
        self.check(tools, call_seed, true, lowest.address)?;
        let mut found = [0; 8];
        tools.stream.download(&mut found, lowest.address)?;
        Ok(match u64::from_le_bytes(found) {
            0 => None,
            complement => Some(!complement),
        })
    }
}
