//! Hopper's shared-memory matrix descriptors: from 64 bits to the address of each element.
//!
//! A matrix operand is read in 16-byte chunks. K-major operands hold consecutive k in a chunk,
//! MN-major ("transposed") ones hold eight consecutive rows (or columns) of one k.

use thiserror::Error;

use super::Swizzle;

/// Which dimension is contiguous in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Major {
    K,
    Mn,
}

/// Why a descriptor is illegal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum DescriptorError {
    #[error(
        "matrix descriptor {bits:#018x} sets reserved bits {reserved:#x}: mask address and offsets to 14 bits after shifting right by 4"
    )]
    Reserved { bits: u64, reserved: u64 },
    #[error(
        "matrix descriptor {bits:#018x} has base offset {base_offset} without a swizzle: the base offset is for swizzled tiles only"
    )]
    BaseOffset { bits: u64, base_offset: u32 },
    #[error(
        "matrix descriptor {bits:#018x} has other bits than 0b001 at 46 to 48: it was made for Hopper, or not at all"
    )]
    Version { bits: u64 },
    #[error(
        "matrix descriptor {bits:#018x} has an absolute leading offset (bit 52), which only sm_103a reads"
    )]
    Absolute { bits: u64 },
    #[error("matrix descriptor {bits:#018x} has swizzle {code}: 0, 1, 2, 4 and 6 exist")]
    Swizzle { bits: u64, code: u64 },
}

/// A decoded descriptor: where a matrix operand lies in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Matrix {
    /// Shared address of the first element, before swizzling.
    pub start: u32,
    /// Leading-dimension byte offset.
    pub leading: u32,
    /// Stride-dimension byte offset.
    pub stride: u32,
    /// Phase of the swizzle pattern at `start`, for tiles not aligned to its period.
    pub base_offset: u32,
    pub swizzle: Swizzle,
    pub major: Major,
    /// Elements of a chunk, for MN-major tiles.
    pub unit: u32,
}

/// Bits that mean nothing: 14–15, 30–31, 46–48, 52–61.
const RESERVED: u64 = 0x3ff1_c000_c000_c000;

/// Of sm_100: 14–15, 30–31, 53–60.
const RESERVED_SM100: u64 = 0x1fe0_0000_c000_c000;

impl Matrix {
    /// Reads an sm_90 descriptor.
    pub(crate) fn decode(bits: u64, major: Major) -> Result<Self, DescriptorError> {
        let reserved = bits & RESERVED;
        if reserved != 0 {
            return Err(DescriptorError::Reserved { bits, reserved });
        }
        let field = |low: u32| ((bits >> low & 0x3fff) << 4) as u32;
        let base_offset = (bits >> 49 & 7) as u32;
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::B128,
            2 => Swizzle::B64,
            _ => Swizzle::B32,
        };
        if swizzle == Swizzle::None && base_offset != 0 {
            return Err(DescriptorError::BaseOffset { bits, base_offset });
        }
        Ok(Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base_offset,
            swizzle,
            major,
            unit: 8,
        })
    }

    /// Reads an sm_100 descriptor, of a tile with `unit` elements in a chunk.
    pub(crate) fn decode_sm100(
        bits: u64,
        major: Major,
        unit: u32,
    ) -> Result<Self, DescriptorError> {
        let reserved = bits & RESERVED_SM100;
        if reserved != 0 {
            return Err(DescriptorError::Reserved { bits, reserved });
        }
        if bits >> 46 & 7 != 1 {
            return Err(DescriptorError::Version { bits });
        }
        if bits >> 52 & 1 == 1 {
            return Err(DescriptorError::Absolute { bits });
        }
        let field = |low: u32| ((bits >> low & 0x3fff) << 4) as u32;
        let base_offset = (bits >> 49 & 7) as u32;
        let swizzle = match bits >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::B128Atom32,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            code => return Err(DescriptorError::Swizzle { bits, code }),
        };
        // Triton sets it by the address alone; without a pattern there is nothing to shift.
        let base_offset = match swizzle {
            Swizzle::None => 0,
            _ => base_offset,
        };
        Ok(Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base_offset,
            swizzle,
            major,
            unit,
        })
    }

    /// The descriptor's 64 bits: the inverse of [`Matrix::decode`].
    pub(crate) fn encode(&self) -> u64 {
        let field = |bytes: u32| u64::from(bytes >> 4 & 0x3fff);
        let swizzle: u64 = match self.swizzle {
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
            _ => 0,
        };
        // Hopper has none of these; the bit keeps them apart.
        let small_atoms = u64::from(self.swizzle == Swizzle::B128Atom32) << 61;
        small_atoms
            | field(self.start)
            | field(self.leading) << 16
            | field(self.stride) << 32
            | u64::from(self.base_offset) << 49
            | swizzle << 62
    }

    /// K-major: shared address of the chunk that holds `16 * chunk` bytes on in row (or column)
    /// `mn`. MN-major is [`Matrix::column_chunk`].
    #[inline]
    pub(crate) fn row_chunk(&self, mn: u32, chunk: u32) -> u32 {
        let (group, row) = (mn / 8, mn % 8);
        let linear = match self.swizzle {
            Swizzle::None => self.start + group * self.stride + chunk * self.leading + row * 16,
            swizzle => self.start + group * self.stride + row * swizzle.span() + chunk * 16,
        };
        self.stored(linear)
    }

    /// K-major: shared addresses of the two chunks of each of the rows (or columns) from
    /// `8 * group` on.
    #[inline(always)]
    pub(crate) fn group_chunks(&self, group: u32) -> [[u32; 2]; 8] {
        let (row, chunk) = match self.swizzle {
            Swizzle::None => (16, self.leading),
            swizzle => (swizzle.span(), 16),
        };
        let first = self.start + group * self.stride;
        let mut all = [[0; 2]; 8];
        for (r, pair) in all.iter_mut().enumerate() {
            let linear = first + r as u32 * row;
            *pair = [self.stored(linear), self.stored(linear + chunk)];
        }
        all
    }

    /// K-major: the first of [`Matrix::group_chunks`], if each of `groups` groups lies as the one
    /// before it, a stride further on, and all of them within `size` bytes.
    #[inline]
    pub(crate) fn regular_chunks(&self, groups: u32, size: usize) -> Option<[[u32; 2]; 8]> {
        let chunks = self.group_chunks(0);
        // A descriptor's patterns repeat after eight rows.
        let alike = match self.swizzle {
            Swizzle::None => true,
            swizzle => self.stride.is_multiple_of(8 * swizzle.span()),
        };
        let highest = chunks
            .as_flattened()
            .iter()
            .fold(0, |most, &at| most.max(at));
        let end = u64::from(highest) + u64::from(self.stride) * u64::from(groups - 1) + 16;
        (alike && end <= size as u64).then_some(chunks)
    }

    /// MN-major: shared address of the chunk that holds rows (or columns) from `unit * group` on
    /// at `k`.
    #[inline]
    pub(crate) fn column_chunk(&self, group: u32, k: u32) -> u32 {
        let (outer, inner) = (k / 8, k % 8);
        let linear = match self.swizzle {
            Swizzle::None => self.start + group * self.stride + outer * self.leading + inner * 16,
            swizzle => {
                let per_span = swizzle.span() / 16;
                self.start
                    + group / per_span * self.leading
                    + group % per_span * 16
                    + outer * self.stride
                    + inner * swizzle.span()
            }
        };
        self.stored(linear)
    }

    /// Shared address of one 16-bit element of either majorness.
    #[cfg(test)]
    pub(crate) fn half_address(&self, mn: u32, k: u32) -> u32 {
        match self.major {
            Major::K => self.row_chunk(mn, k / 8) + k % 8 * 2,
            Major::Mn => self.column_chunk(mn / 8, k) + mn % 8 * 2,
        }
    }

    /// The tile that follows this one along k, where one instruction reads both (sparse ones do);
    /// `None` if the swizzle has no room for it.
    pub(crate) fn next_k(&self) -> Option<Self> {
        // Groups of eight k in the 32 bytes of an instruction.
        let eights = self.unit / 4;
        let step = match (self.swizzle, self.major) {
            (Swizzle::None, Major::K) => 2 * self.leading,
            (Swizzle::None, Major::Mn) => eights * self.leading,
            (_, Major::Mn) => eights * self.stride,
            (swizzle, Major::K) if swizzle.span() >= 64 => 32,
            _ => return None,
        };
        Some(Self {
            start: self.start + step,
            ..*self
        })
    }

    /// Bytes of a tile of `rows` rows (or columns): an instruction's k is 32 bytes in every type.
    pub(crate) fn bytes(&self, rows: u32) -> u64 {
        u64::from(rows) * 32
    }

    /// Shared addresses of all 16-byte chunks of a tile of `rows` rows (or columns).
    pub(crate) fn chunks(&self, rows: u32) -> impl Iterator<Item = u32> + '_ {
        // Of 2 · rows chunks, K-major has two in each row, MN-major one for each k in `unit` rows.
        let deep = 2 * self.unit;
        (0..2 * rows).map(move |i| match self.major {
            Major::K => self.row_chunk(i / 2, i % 2),
            Major::Mn => self.column_chunk(i / deep, i % deep),
        })
    }

    /// The swizzle sees absolute addresses, less the phase a base offset declares.
    #[inline]
    fn stored(&self, linear: u32) -> u32 {
        let phase = self.base_offset << 7;
        self.swizzle
            .apply(linear.wrapping_sub(phase))
            .wrapping_add(phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_survive_a_round_trip() {
        let matrix = Matrix {
            start: 0x1c20,
            leading: 16,
            stride: 1024,
            base_offset: 3,
            swizzle: Swizzle::B128,
            major: Major::K,
            unit: 8,
        };
        assert_eq!(Matrix::decode(matrix.encode(), Major::K), Ok(matrix));
    }

    #[test]
    fn reserved_bits_are_named() {
        let error = Matrix::decode(1 << 46, Major::K).expect_err("bit 46 is reserved");
        assert!(error.to_string().contains("0x400000000000"), "{error}");
    }

    /// Row r of a 128-byte swizzled tile lies in its own 128 bytes, chunk c at c ^ (r & 7).
    #[test]
    fn k_major_rows_follow_the_swizzle() {
        for (swizzle, mask) in [(Swizzle::B128, 7), (Swizzle::B64, 3), (Swizzle::B32, 1)] {
            let span = swizzle.span();
            let matrix = Matrix {
                start: 4096,
                leading: 0,
                stride: 8 * span,
                base_offset: 0,
                swizzle,
                major: Major::K,
                unit: 8,
            };
            for row in 0..64 {
                for chunk in 0..2 {
                    let line = (4096 + row * span) / 128;
                    let want = 4096 + row * span + ((chunk ^ (line & mask)) & (span / 16 - 1)) * 16;
                    let within = 4096 + row * span;
                    let got = matrix.row_chunk(row, chunk);
                    assert_eq!(got / span * span, within / span * span);
                    assert_eq!(got, want, "{swizzle:?} row {row} chunk {chunk}");
                    let group = matrix.group_chunks(row / 8);
                    assert_eq!(group[row as usize % 8][chunk as usize], want);
                    let size = 4096 + 8 * 8 * span as usize;
                    let first = matrix.regular_chunks(8, size).expect("all are alike");
                    let further = row / 8 * matrix.stride;
                    assert_eq!(first[row as usize % 8][chunk as usize] + further, want);
                    assert_eq!(matrix.regular_chunks(8, size - 1), None);
                    let odd = Matrix {
                        stride: matrix.stride / 2,
                        ..matrix
                    };
                    assert_eq!(odd.regular_chunks(8, size), None);
                }
            }
        }
    }

    #[test]
    fn unswizzled_core_matrices_are_contiguous() {
        let matrix = Matrix {
            start: 0,
            leading: 128,
            stride: 256,
            base_offset: 0,
            swizzle: Swizzle::None,
            major: Major::K,
            unit: 8,
        };
        assert_eq!(matrix.row_chunk(3, 0), 48);
        assert_eq!(matrix.row_chunk(3, 1), 176);
        assert_eq!(matrix.row_chunk(9, 1), 256 + 128 + 16);
        assert_eq!(matrix.group_chunks(1)[1], [256 + 16, 256 + 128 + 16]);
    }

    #[test]
    fn transposed_tiles_step_by_the_leading_offset_along_mn() {
        let matrix = Matrix {
            start: 0,
            leading: 2048,
            stride: 1024,
            base_offset: 0,
            swizzle: Swizzle::B128,
            major: Major::Mn,
            unit: 8,
        };
        assert_eq!(matrix.column_chunk(0, 1), 128 + 16);
        assert_eq!(matrix.column_chunk(8, 0), 2048);
        assert_eq!(matrix.column_chunk(0, 8), 1024);
        assert_eq!(matrix.half_address(9, 0), 16 + 2);
    }
}
