//! Where tensors lie within allocations.

use crate::exec::listen::visit::Bytes;
use crate::memory::{DevicePtr, Memory};

/// A tensor, table or buffer within an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its name in messages.
    pub name: String,
    /// Its first byte.
    pub start: DevicePtr,
    /// Its bytes.
    pub len: u64,
}

/// A tensor by its offsets in its allocation.
#[derive(Debug)]
struct Tensor {
    name: String,
    start: u64,
    end: u64,
}

/// The tensors of each allocation, in the order of their addresses.
#[derive(Debug)]
pub(super) struct Tensors(Vec<Vec<Tensor>>);

impl Tensors {
    pub(super) fn new(memory: &Memory, regions: &[Region]) -> Self {
        let mut all: Vec<Vec<Tensor>> = Vec::new();
        all.resize_with(memory.regions().len(), Vec::new);
        for region in regions {
            if let Some(allocation) = memory.find(region.start.0) {
                let start = region.start.0 - memory.regions()[allocation].base;
                all[allocation].push(Tensor {
                    name: region.name.clone(),
                    start,
                    end: start + region.len,
                });
            }
        }
        for tensors in &mut all {
            tensors.sort_by_key(|tensor| tensor.start);
        }
        Self(all)
    }

    fn of(&self, allocation: usize) -> &[Tensor] {
        self.0.get(allocation).map_or(&[], Vec::as_slice)
    }

    /// Whether a quick check shows that all of an access is within tensors.
    pub(super) fn contain(&self, allocation: usize, bytes: Bytes<'_>) -> bool {
        let (first, end) = match bytes {
            Bytes::Piece { first, len } => (first, first + len),
            Bytes::Lanes { low, end, .. } => (low.into(), end.into()),
            Bytes::Tile { .. } | Bytes::Columns { .. } => return true,
        };
        self.outside(allocation, first, end - first).is_none()
    }

    /// The first byte of a piece that is in no tensor, if there are any.
    pub(super) fn outside(&self, allocation: usize, first: u64, len: u64) -> Option<u64> {
        let tensors = self.of(allocation);
        if tensors.is_empty() || len == 0 {
            return None;
        }
        let after = tensors.partition_point(|tensor| tensor.start <= first);
        let Some(tensor) = after.checked_sub(1).map(|at| &tensors[at]) else {
            return Some(first);
        };
        (first + len > tensor.end).then_some(first.max(tensor.end))
    }

    /// The tensor at or before an offset, with its own offset and the distance behind it.
    pub(super) fn name(&self, allocation: usize, offset: u64) -> Option<(&str, u64, String)> {
        let tensors = self.of(allocation);
        let after = tensors.partition_point(|tensor| tensor.start <= offset);
        let Some(tensor) = after.checked_sub(1).map(|at| &tensors[at]) else {
            let next = tensors.first()?;
            let before = format!("{} bytes before {}", next.start - offset, next.name);
            return Some(("", 0, before));
        };
        let past = match offset < tensor.end {
            true => String::new(),
            false => format!("{} bytes past its end", offset - tensor.end),
        };
        Some((&tensor.name, tensor.start, past))
    }
}
