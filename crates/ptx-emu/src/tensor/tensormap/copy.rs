//! Copies between a box of the tensor and shared memory.
//!
//! A box is a list of rows; a row is contiguous in global memory and, before swizzling, in shared
//! memory. Swizzles see absolute shared addresses, so a box must be addressed as the CTA does.

use super::{Fill, Mode, OUT_OF_BOUNDS, TensorMap, TensorMapError};
use crate::memory::HostBytes;
use crate::numeric::Format;
use crate::numeric::convert::{Cvt, float_to_float};
use crate::tensor::Swizzle;

/// One row of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Byte offset in the box, before swizzling.
    pub shared: u32,
    /// The part inside the tensor, if any; the rest is filled (loads) or dropped (stores).
    pub inside: Option<Inside>,
}

/// The part of a row that exists in global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Global address of its first byte.
    pub global: u64,
    /// Bytes of the row before it.
    pub skip: u32,
    /// Its length in bytes.
    pub len: u32,
}

/// The rows of a box at some coordinates, in shared-memory order.
#[derive(Debug, Clone)]
pub(crate) struct Rows<'m> {
    map: &'m TensorMap,
    coords: [i32; 5],
    /// Position of the next row in dimensions 1 to 4 of the box.
    index: [u32; 4],
    /// Rows of the box along each of those.
    steps: [u32; 4],
    offsets: [u16; 3],
    /// The inner extent cut to the tensor, relative to the start of a line: the same in all rows.
    clip: Option<Inside>,
    next: u32,
    count: u32,
    /// The rows of `tile::gather4` and `tile::scatter4`.
    picked: Option<[i32; 4]>,
    /// Bytes from each row to the next in shared memory.
    pitch: u32,
}

impl Iterator for Rows<'_> {
    type Item = Row;

    #[inline]
    fn next(&mut self) -> Option<Row> {
        if self.next == self.count {
            return None;
        }
        let row = match &self.map.mode {
            Mode::Tiled { .. } => {
                let row = self.tiled_row();
                self.advance();
                row
            }
            Mode::Im2col(window) => {
                let coords = &self.coords[..self.map.rank];
                window.row(self.map, coords, &self.offsets, self.next)
            }
        };
        self.next += 1;
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.count - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Rows<'_> {}

impl Rows<'_> {
    #[inline]
    fn tiled_row(&self) -> Row {
        let map = self.map;
        let mut line = map.address;
        let mut inside = true;
        for d in 1..map.rank {
            let step = i64::from(self.index[d - 1]) * i64::from(map.element_strides[d]);
            let at = match self.picked {
                Some(rows) => i64::from(rows[self.next as usize]),
                None => i64::from(self.coords[d]) + step,
            };
            inside &= (0..map.dims[d] as i64).contains(&at);
            line = line.wrapping_add((at as u64).wrapping_mul(map.strides[d - 1]));
        }
        Row {
            shared: self.next * self.pitch,
            inside: match inside {
                true => self.clip.map(|clip| Inside {
                    global: line.wrapping_add(clip.global),
                    ..clip
                }),
                false => None,
            },
        }
    }

    /// The first and last step of dimension `d` whose coordinate is inside the tensor.
    fn inside_steps(&self, extents: &[u32; 5], d: usize) -> Option<(i64, i64)> {
        let stride = i64::from(self.map.element_strides[d]);
        let first = i64::from(self.coords[d]);
        let steps = i64::from(extents[d].div_ceil(self.map.element_strides[d]));
        let low = (-first).max(0).div_euclid(stride) + i64::from((-first).max(0) % stride != 0);
        let last = (self.map.dims[d] as i64 - 1 - first)
            .div_euclid(stride)
            .min(steps - 1);
        (low <= last).then_some((low, last))
    }

    #[inline]
    fn advance(&mut self) {
        for (index, steps) in self.index.iter_mut().zip(self.steps) {
            *index += 1;
            if *index < steps {
                return;
            }
            *index = 0;
        }
    }
}

/// The longest row: 256 elements of 8 bytes.
const MAX_ROW: usize = 2048;

/// What the gaps between spaced-out elements hold, which nobody may use.
const GAP: u8 = 0xff;

/// Whether a row lies in a range of global memory.
fn within((low, len): (u64, u64), row: &Inside) -> bool {
    let offset = row.global.checked_sub(low);
    offset.is_some_and(|offset| offset.saturating_add(u64::from(row.len)) <= len)
}

/// A row within the box, which begins at `low`.
fn row_of<'m>(whole: HostBytes<'m>, low: u64, row: &Inside) -> HostBytes<'m> {
    let first = (row.global - low) as usize;
    whole.part(first..first + row.len as usize)
}

impl TensorMap {
    /// The rows of the box at `coords`, one per dimension, contiguous dimension first.
    #[cfg(test)]
    pub(crate) fn rows(&self, coords: &[i32]) -> Result<Rows<'_>, TensorMapError> {
        self.rows_at(coords, &[])
    }

    /// The rows of the box at `coords`, one per dimension, contiguous dimension first, with the
    /// offsets of an im2col copy.
    pub(crate) fn rows_at(
        &self,
        coords: &[i32],
        offsets: &[u16],
    ) -> Result<Rows<'_>, TensorMapError> {
        if coords.len() != self.rank {
            return Err(TensorMapError::Coordinates {
                rank: self.rank,
                got: coords.len(),
            });
        }
        if self.element.packed_chunk().is_some() && coords[0] % 128 != 0 {
            let reason = "are copied from whole 128 elements on";
            return Err(TensorMapError::Padded(reason));
        }
        let bits = i64::from(coords[0]) * self.element.bits() as i64;
        if bits % 128 != 0 {
            return Err(TensorMapError::Unaligned {
                coordinate: coords[0],
                bits,
            });
        }
        let mut all = [0; 5];
        all[..self.rank].copy_from_slice(coords);
        let mut moved = [0; 3];
        for (to, from) in moved.iter_mut().zip(offsets) {
            *to = *from;
        }
        let mut steps = [1; 4];
        if let Mode::Tiled { extents } = &self.mode {
            let outer = extents.iter().zip(&self.element_strides);
            for (steps, (extent, stride)) in steps.iter_mut().zip(outer.take(self.rank).skip(1)) {
                *steps = extent.div_ceil(*stride);
            }
        }
        Ok(Rows {
            map: self,
            steps,
            coords: all,
            index: [0; 4],
            offsets: moved,
            clip: self.clip_row(coords[0], 0),
            next: 0,
            count: self.row_count(),
            picked: None,
            pitch: self.row_pitch(),
        })
    }

    /// Four rows from one column on: `{column, row, row, row, row}`. The map is one
    /// [`TensorMap::of_four_rows`].
    pub(crate) fn picked_rows(&self, coords: &[i32]) -> Result<Rows<'_>, TensorMapError> {
        let &[column, a, b, c, d] = coords else {
            return Err(TensorMapError::Coordinates {
                rank: 5,
                got: coords.len(),
            });
        };
        let rows = self.rows_at(&[column, a], &[])?;
        let picked = Some([a, b, c, d]);
        Ok(Rows { picked, ..rows })
    }

    /// Whether a box may be stored at `coords`: it may hang over the far edges only.
    pub(crate) fn check_store(&self, coords: &[i32]) -> Result<(), TensorMapError> {
        if self.element.packed_chunk().is_some() {
            return Err(TensorMapError::Padded("are loaded only"));
        }
        match coords.iter().position(|&c| c < 0) {
            Some(dimension) => Err(TensorMapError::NegativeStore {
                dimension,
                coordinate: coords[dimension],
            }),
            None => Ok(()),
        }
    }

    /// The global bytes the box touches: first address and length of the range that covers all
    /// rows inside the tensor, or `None` if none is.
    pub(crate) fn extent(rows: &Rows<'_>) -> Option<(u64, u64)> {
        match &rows.map.mode {
            Mode::Tiled { extents } if rows.picked.is_none() => {
                let clip = rows.clip?;
                let mut low = rows.map.address.wrapping_add(clip.global);
                let mut len = u64::from(clip.len);
                for d in 1..rows.map.rank {
                    let (first, last) = rows.inside_steps(extents, d)?;
                    let (stride, step) = (rows.map.strides[d - 1], rows.map.element_strides[d]);
                    let at = i64::from(rows.coords[d]) + first * i64::from(step);
                    low = low.wrapping_add((at as u64).wrapping_mul(stride));
                    len += (last - first) as u64 * u64::from(step) * stride;
                }
                Some((low, len))
            }
            Mode::Tiled { .. } | Mode::Im2col(_) => {
                let inside = rows.clone().filter_map(|row| row.inside);
                let ranges = inside.map(|i| (i.global, i.global + u64::from(i.len)));
                let (low, high) = ranges.reduce(|(low, high), (a, b)| (low.min(a), high.max(b)))?;
                Some((low, high - low))
            }
        }
    }

    /// Loads the box into `shared` at address `at` (the CTA's shared memory from address 0).
    ///
    /// `resolve` gives a range of global memory, or the caller's error. It is asked once for the
    /// whole box where that lies in one piece, and row by row otherwise.
    ///
    /// # Safety
    /// Nobody may write meanwhile what `resolve` returns.
    pub(crate) unsafe fn load<'m, E>(
        &self,
        rows: Rows<'_>,
        shared: &mut [u8],
        at: u32,
        mut resolve: impl FnMut(u64, u64) -> Result<HostBytes<'m>, E>,
    ) -> Result<(), E> {
        let whole =
            Self::extent(&rows).and_then(|(low, len)| Some((low, len, resolve(low, len).ok()?)));
        let row_bytes = self.row_bytes() as usize;
        for row in rows {
            let address = at + row.shared;
            let Some(inside) = row.inside else {
                self.fill_row(shared, address, row_bytes);
                continue;
            };
            let len = inside.len as usize;
            let source = match whole {
                Some((low, len, whole)) if within((low, len), &inside) => {
                    row_of(whole, low, &inside)
                }
                _ => resolve(inside.global, u64::from(inside.len))?,
            };
            // SAFETY: by the caller's promise.
            let source = unsafe { source.read() };
            if let Some(packed) = self.element.packed_chunk() {
                let mut buffer = [GAP; MAX_ROW];
                let chunks = buffer.as_chunks_mut::<16>().0.iter_mut();
                for (chunk, packed) in chunks.zip(source.chunks_exact(packed)) {
                    chunk[..packed.len()].copy_from_slice(packed);
                }
                write_row(shared, self.swizzle, address, &buffer[..row_bytes]);
            } else if len == row_bytes && !self.element.is_rounded() {
                write_row(shared, self.swizzle, address, source);
            } else {
                let mut buffer = [0; MAX_ROW];
                let buffer = &mut buffer[..row_bytes];
                self.fill_bytes(buffer);
                let target = &mut buffer[inside.skip as usize..][..len];
                target.copy_from_slice(source);
                if self.element.is_rounded() {
                    round_to_tf32(target);
                }
                write_row(shared, self.swizzle, address, buffer);
            }
        }
        Ok(())
    }

    /// Merges the box from `shared` at address `at` into global memory, row by row; what lies outside
    /// the tensor is dropped. `resolve` as for [`TensorMap::load`].
    ///
    /// # Safety
    /// Nobody else may reach meanwhile what `resolve` returns.
    pub(crate) unsafe fn store<'m, E>(
        &self,
        rows: Rows<'_>,
        shared: &[u8],
        at: u32,
        mut resolve: impl FnMut(u64, u64) -> Result<HostBytes<'m>, E>,
        merge: impl Fn(&mut [u8], &[u8]),
    ) -> Result<(), E> {
        let whole =
            Self::extent(&rows).and_then(|(low, len)| Some((low, len, resolve(low, len).ok()?)));
        let row_bytes = self.row_bytes() as usize;
        let mut buffer = [0; MAX_ROW];
        for row in rows {
            let Some(inside) = row.inside else { continue };
            let target = match whole {
                Some((low, len, whole)) if within((low, len), &inside) => {
                    row_of(whole, low, &inside)
                }
                _ => resolve(inside.global, u64::from(inside.len))?,
            };
            // SAFETY: by the caller's promise.
            let target = unsafe { target.write() };
            read_row(
                shared,
                self.swizzle,
                at + row.shared,
                &mut buffer[..row_bytes],
            );
            merge(
                target,
                &buffer[inside.skip as usize..][..inside.len as usize],
            );
        }
        Ok(())
    }

    fn fill_row(&self, shared: &mut [u8], address: u32, row_bytes: usize) {
        let mut buffer = [0; MAX_ROW];
        self.fill_bytes(&mut buffer[..row_bytes]);
        write_row(shared, self.swizzle, address, &buffer[..row_bytes]);
    }

    fn fill_bytes(&self, bytes: &mut [u8]) {
        match self.fill {
            Fill::Zero => bytes.fill(0),
            Fill::Nan => {
                for pair in bytes.as_chunks_mut::<2>().0 {
                    *pair = OUT_OF_BOUNDS.to_le_bytes();
                }
            }
        }
    }
}

/// Loads of tf32 tensors round f32 words as `cvt.rn.tf32.f32` does.
fn round_to_tf32(row: &mut [u8]) {
    for word in row.as_chunks_mut::<4>().0 {
        let bits = u64::from(u32::from_le_bytes(*word));
        let rounded = float_to_float(Format::F32, Format::TF32, bits, Cvt::default());
        *word = (rounded as u32).to_le_bytes();
    }
}

/// Writes a row whose chunks are swizzled by their absolute address.
pub(crate) fn write_row(shared: &mut [u8], swizzle: Swizzle, address: u32, row: &[u8]) {
    match swizzle.atom() {
        _ if swizzle == Swizzle::None => {
            shared[address as usize..][..row.len()].copy_from_slice(row);
        }
        8 => write_chunks::<8>(shared, swizzle, address, row),
        _ => write_chunks::<16>(shared, swizzle, address, row),
    }
}

/// Reads a row whose chunks are swizzled by their absolute address.
pub(crate) fn read_row(shared: &[u8], swizzle: Swizzle, address: u32, row: &mut [u8]) {
    match swizzle.atom() {
        _ if swizzle == Swizzle::None => {
            row.copy_from_slice(&shared[address as usize..][..row.len()]);
        }
        8 => read_chunks::<8>(shared, swizzle, address, row),
        _ => read_chunks::<16>(shared, swizzle, address, row),
    }
}

/// Where the chunks of `N` bytes of a row are stored.
#[inline(always)]
fn places<const N: usize>(
    swizzle: Swizzle,
    address: u32,
    len: usize,
) -> impl Iterator<Item = usize> {
    // Within a line of 128 bytes, which few rows leave, chunks change places by one exclusive-or.
    let flip = swizzle.apply(address) ^ address;
    let one_line = address as usize % 128 + len <= 128;
    (address..).step_by(N).map(move |at| match one_line {
        true => (at ^ flip) as usize,
        false => swizzle.apply(at) as usize,
    })
}

fn write_chunks<const N: usize>(shared: &mut [u8], swizzle: Swizzle, address: u32, row: &[u8]) {
    let chunks = row.as_chunks::<N>().0.iter();
    for (chunk, to) in chunks.zip(places::<N>(swizzle, address, row.len())) {
        shared[to..to + N].copy_from_slice(chunk);
    }
}

fn read_chunks<const N: usize>(shared: &[u8], swizzle: Swizzle, address: u32, row: &mut [u8]) {
    let places = places::<N>(swizzle, address, row.len());
    for (chunk, from) in row.as_chunks_mut::<N>().0.iter_mut().zip(places) {
        chunk.copy_from_slice(&shared[from..from + N]);
    }
}
