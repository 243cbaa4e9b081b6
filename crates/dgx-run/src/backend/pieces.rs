//! The contents of memory before a call, piece by piece, and the bytes that must be unchanged after
//! it. One description for all backends: the emulator applies it on the CPU with the code here, a
//! GPU with the kernels of tools.cu.

use std::borrow::Cow;
use std::ops::Range;

use super::call_seed::CallSeed;
use super::tables::{PrivateZones, input_fields};
use super::zones::Zones;
use super::{ForbiddenWrite, ForbiddenWriteKind};
use crate::operator::{Axis, Moves, input_axes, of_scales};
use dgx_core::domain::Group;
use dgx_core::fields::{Field, PointedPart};
use dgx_core::operator::{ElementType, Operator};

/// Bytes laid at a time.
const STRETCH: u64 = 1 << 20;

/// A stretch of memory and its contents before each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub at: u64,
    pub bytes: u64,
    pub what: PieceContents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceContents {
    /// Between buffers; no kernel may write there.
    Canary,
    /// An output: poison of its type, to be overwritten.
    Poison(ElementType),
    /// Scratch: poison of any type, for free use.
    Scratch,
    /// Bytes that differ from address to address.
    Noise,
    /// Scratch that is clear before and must be clear after.
    Zero,
    /// An input or a table, to be read only.
    Same(PieceSource),
    /// An input, likewise, shuffled: on the CPU beforehand, on a GPU while it is written.
    Shuffled { source: PieceSource, of: Shuffled },
    /// An output that begins with the contents of an input, to be overwritten.
    Begun { source: PieceSource, of: Shuffled },
    /// A variable of the module: restored to its initial value. Also an output that begins with the
    /// contents of an input that no call shuffles.
    Variable(PieceSource),
}

/// The changes that calls make to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shuffled {
    pub form: PointedPart,
    pub moves: Moves,
}

impl Shuffled {
    /// A field of group `index`, if calls of the operator shuffle it.
    fn new(operator: &Operator, field: &Field, index: usize, group: &Group) -> Option<Self> {
        let tensor = operator.tensor(field);
        let extents = tensor.extents(&operator.sizes_in(group)?)?;
        let extents: Vec<usize> = extents.iter().map(|extent| *extent as usize).collect();
        let mut axes = input_axes(operator, field.tensor, &extents);
        if axes.iter().all(Axis::is_still) {
            return None;
        }
        let scale = tensor
            .element
            .scale()
            .filter(|_| field.form != PointedPart::Elements);
        if let Some(scale) = scale {
            axes = of_scales(&axes, scale.block as u32);
        }
        let bits = scale.map_or(tensor.element.bits(), |_| 8);
        Some(Self {
            form: field.form,
            moves: Moves::new(&axes, index, bits),
        })
    }
}

/// Where the bytes of a piece come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceSource {
    /// A tensor, by its zone.
    Input(usize),
    /// A table of the call, by its index.
    Table(usize),
    /// A variable of the module, by its index.
    Variable(usize),
}

impl PieceContents {
    pub(super) fn source(self) -> Option<PieceSource> {
        match self {
            Self::Same(source)
            | Self::Shuffled { source, .. }
            | Self::Begun { source, .. }
            | Self::Variable(source) => Some(source),
            Self::Canary | Self::Poison(_) | Self::Scratch | Self::Noise | Self::Zero => None,
        }
    }

    /// Whether a call may rely on the contents.
    pub(super) fn is_defined(self) -> bool {
        self.source().is_some() || self == Self::Zero
    }

    /// The meaning of a change of such a piece; `None` if it may change.
    pub(super) fn broken(self) -> Option<ForbiddenWriteKind> {
        match self {
            Self::Canary => Some(ForbiddenWriteKind::OutOfBounds),
            Self::Zero => Some(ForbiddenWriteKind::NotCleared),
            Self::Same(_) | Self::Shuffled { .. } => Some(ForbiddenWriteKind::InputChanged),
            Self::Poison(_) | Self::Scratch | Self::Noise => None,
            Self::Begun { .. } | Self::Variable(_) => None,
        }
    }
}

impl Piece {
    /// The bytes of this piece before a call, those in `range`. `source` is the whole of its
    /// source.
    pub(super) fn laid<'a>(
        &self,
        call_seed: CallSeed,
        source: &'a [u8],
        range: Range<u64>,
    ) -> Cow<'a, [u8]> {
        let at = self.at + range.start;
        let of_source = |source: &'a [u8]| &source[range.start as usize..range.end as usize];
        let mut bytes = match self.what {
            PieceContents::Same(_)
            | PieceContents::Shuffled { .. }
            | PieceContents::Begun { .. }
            | PieceContents::Variable(_) => {
                return Cow::Borrowed(of_source(source));
            }
            _ => vec![0; (range.end - range.start) as usize],
        };
        match self.what {
            PieceContents::Canary => call_seed.canaries(at, &mut bytes),
            PieceContents::Scratch => call_seed.scratch(at, &mut bytes),
            PieceContents::Noise => call_seed.noise(at, &mut bytes),
            PieceContents::Poison(element) => {
                let mut word = poison_word(call_seed, element).to_le_bytes();
                word.rotate_left((at % 8) as usize);
                let (whole, last) = bytes.as_chunks_mut::<8>();
                whole.fill(word);
                last.copy_from_slice(&word[..last.len()]);
            }
            _ => {}
        }
        Cow::Owned(bytes)
    }

    /// The piece in stretches that need little memory at a time.
    pub(super) fn stretches(&self) -> impl Iterator<Item = Range<u64>> {
        let bytes = self.bytes;
        let starts = (0..bytes).step_by(STRETCH as usize);
        starts.map(move |start| start..(start + STRETCH).min(bytes))
    }

    /// The first byte of `now` that changed, if the piece had to stay unchanged.
    pub(super) fn first_change(
        &self,
        call_seed: CallSeed,
        source: &[u8],
        now: &[u8],
    ) -> Option<u64> {
        self.what.broken()?;
        self.stretches().find_map(|stretch| {
            let laid = self.laid(call_seed, source, stretch.clone());
            let now = &now[stretch.start as usize..stretch.end as usize];
            // Whole slices first: unchanged is the rule, and memcmp is fast.
            if *laid == *now {
                return None;
            }
            let at = laid.iter().zip(now).position(|(laid, now)| laid != now)?;
            Some(stretch.start + at as u64)
        })
    }
}

/// Poison in eight bytes of memory.
pub(super) fn poison_word(call_seed: CallSeed, element: ElementType) -> u64 {
    let poison = call_seed.poison(element);
    let bits = element.bits();
    let copies = (0..64 / bits).map(|copy| poison << (copy * bits));
    copies.fold(0, |word, copy| word | copy)
}

/// The guards of an allocation.
fn canaries(zones: &Zones, base: u64) -> impl Iterator<Item = Piece> {
    zones.guards().map(move |(begin, end)| Piece {
        at: base + begin,
        bytes: end - begin,
        what: PieceContents::Canary,
    })
}

fn piece(zones: &Zones, base: u64, zone: usize, what: PieceContents) -> Piece {
    let zone = zones.zone(zone);
    Piece {
        at: base + zone.offset,
        bytes: zone.bytes,
        what,
    }
}

/// All groups' operands, with their guards.
pub(super) fn inputs(
    zones: &Zones,
    base: u64,
    operator: &Operator,
    groups: &[Group],
) -> Vec<Piece> {
    let fields = input_fields(operator);
    let tensors = (0..zones.all().len()).map(|zone| {
        let (group, field) = (zone / fields.len(), &fields[zone % fields.len()]);
        let source = PieceSource::Input(zone);
        let what = match Shuffled::new(operator, field, group, &groups[group]) {
            Some(of) => PieceContents::Shuffled { source, of },
            None => PieceContents::Same(source),
        };
        piece(zones, base, zone, what)
    });
    some(canaries(zones, base).chain(tensors))
}

/// The outputs of every group; those that begin with an input's contents get them from `inputs`.
pub(super) fn outputs(
    zones: &Zones,
    base: u64,
    operator: &Operator,
    inputs: &[Piece],
) -> Vec<Piece> {
    let fields = input_fields(operator);
    let begun = |group: usize, input: usize| {
        let is_it = |field: &Field| field.tensor == input && field.form == PointedPart::Elements;
        let zone = group * fields.len() + fields.iter().position(is_it)?;
        let source = Some(PieceSource::Input(zone));
        let laid = inputs.iter().find(|piece| piece.what.source() == source)?;
        match laid.what {
            PieceContents::Shuffled { source, of } => Some(PieceContents::Begun { source, of }),
            other => other.source().map(PieceContents::Variable),
        }
    };
    let c = (0..zones.all().len()).map(|zone| {
        let (group, place) = (zone / operator.outputs.len(), zone % operator.outputs.len());
        let output = &operator.outputs[place];
        let what = output.start.and_then(|input| begun(group, input));
        let poison = PieceContents::Poison(output.tensor.element);
        piece(zones, base, zone, what.unwrap_or(poison))
    });
    some(canaries(zones, base).chain(c))
}

/// Scratch, and the tables for a kernel.
pub(super) fn private(private: &PrivateZones, base: u64) -> Vec<Piece> {
    let zones = &private.zones;
    let scratch = private.scratch.iter().map(|s| {
        let what = if s.zero {
            PieceContents::Zero
        } else {
            PieceContents::Scratch
        };
        piece(zones, base, s.zone, what)
    });
    let tables = private.tables.iter().enumerate().map(|(table, zone)| {
        let what = PieceContents::Same(PieceSource::Table(table));
        piece(zones, base, *zone, what)
    });
    some(canaries(zones, base).chain(scratch).chain(tables))
}

fn some(pieces: impl Iterator<Item = Piece>) -> Vec<Piece> {
    pieces.filter(|p| p.bytes > 0).collect()
}

/// The meaning of a changed byte at `address`; `arenas` are the allocations it can be in, each with
/// its base.
pub(super) fn explain(pieces: &[Piece], arenas: &[(&Zones, u64)], address: u64) -> ForbiddenWrite {
    let hit = pieces
        .iter()
        .find(|p| (p.at..p.at + p.bytes).contains(&address));
    let kind = hit.and_then(|p| p.what.broken());
    let home = arenas
        .iter()
        .find(|(zones, base)| (*base..base + zones.bytes()).contains(&address));
    let (buffer, offset) = match home {
        Some((zones, base)) => zones.nearest(address - base),
        None => ("memory".to_owned(), 0),
    };
    ForbiddenWrite {
        buffer,
        kind: kind.unwrap_or(ForbiddenWriteKind::OutOfBounds),
        offset,
        by: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL_SEED: CallSeed = CallSeed(0x5eed);

    #[test]
    fn what_was_laid_is_unchanged_until_somebody_writes() {
        let source: Vec<u8> = (0..=255).collect();
        for what in [
            PieceContents::Canary,
            PieceContents::Zero,
            PieceContents::Same(PieceSource::Table(1)),
        ] {
            let piece = Piece {
                at: 0x1003,
                bytes: 256,
                what,
            };
            let mut now = piece.laid(CALL_SEED, &source, 0..256).into_owned();
            for cut in [1, 7, 100] {
                let parts = [0..cut, cut..256].map(|range| piece.laid(CALL_SEED, &source, range));
                assert_eq!(parts.concat(), now);
            }
            assert_eq!(now.len(), 256);
            assert_eq!(piece.first_change(CALL_SEED, &source, &now), None);
            now[77] ^= 0x10;
            assert_eq!(piece.first_change(CALL_SEED, &source, &now), Some(77));
            // Contents that an earlier call found there are wrong now.
            if what == PieceContents::Canary {
                let earlier = piece.laid(CallSeed(1), &source, 0..256);
                assert!(piece.first_change(CALL_SEED, &source, &earlier).is_some());
            }
        }
    }

    #[test]
    fn what_may_be_written_is_not_compared() {
        for what in [
            PieceContents::Poison(ElementType::F16),
            PieceContents::Scratch,
            PieceContents::Variable(PieceSource::Variable(0)),
        ] {
            let piece = Piece {
                at: 256,
                bytes: 4,
                what,
            };
            assert_eq!(piece.first_change(CALL_SEED, &[1; 4], &[9; 4]), None);
        }
    }

    #[test]
    fn a_changed_address_names_its_buffer_and_what_it_means() {
        let mut zones = Zones::default();
        zones.add("c of group 0", 500);
        let pieces = outputs(
            &zones,
            0x10_0000,
            dgx_core::operator::default_operator(),
            &[],
        );
        let offset = zones.zone(0).offset;
        let found = explain(&pieces, &[(&zones, 0x10_0000)], 0x10_0000 + offset + 503);
        let text = "wrote out of bounds of c of group 0, at byte 503";
        assert_eq!(found.to_string(), text);
    }
}
