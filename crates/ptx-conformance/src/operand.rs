//! wgmma operands in shared memory: canonical layouts, swizzles and descriptors.

use crate::case::Swizzle;

/// Which dimension of an operand is contiguous in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Major {
    /// The reduction dimension.
    K,
    /// The row (A) or column (B) dimension.
    Mn,
}

/// The placement of an operand of `mn` × `k` elements in shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Rows of A or columns of B.
    pub mn: usize,
    /// Reduction elements of one instruction.
    pub k: usize,
    /// Bytes of an element.
    pub bytes: usize,
    /// Contiguous dimension.
    pub major: Major,
    /// Swizzle of the tile.
    pub swizzle: Swizzle,
    /// Byte offset of the operand inside a wider K-major row (a later k step).
    pub advance: usize,
}

impl Layout {
    /// 16-byte units per row of the swizzle atom.
    fn units(&self) -> usize {
        self.swizzle.span() as usize / 16
    }

    /// Elements in 16 bytes.
    fn per_unit(&self) -> usize {
        16 / self.bytes
    }

    /// The descriptor's leading and stride byte offsets.
    pub(crate) fn offsets(&self) -> (usize, usize) {
        let groups = self.mn.div_ceil(8);
        let atom = 8 * 16 * self.units();
        match (self.major, self.swizzle) {
            // Core matrices of 128 bytes: all of one k column, then the next.
            (Major::K, Swizzle::None) => (groups * 128, 128),
            // The leading offset is unused here; 16 is what compilers put.
            (Major::K, _) => (16, atom),
            (Major::Mn, Swizzle::None) => {
                // Core matrices are 8 k rows of 16 bytes; along MN first, then along k.
                let along_mn = 128;
                (self.mn.div_ceil(self.per_unit()) * along_mn, along_mn)
            }
            (Major::Mn, _) => {
                // Atoms of 8 k rows; along k first, then along MN.
                let k_groups = self.k.div_ceil(8);
                (k_groups * atom, atom)
            }
        }
    }

    /// The byte offset of element (`mn`, `k`) from the 1024-byte aligned tile.
    pub(crate) fn offset(&self, mn: usize, k: usize) -> usize {
        let (leading, stride) = self.offsets();
        let per_unit = self.per_unit();
        let plain = match (self.major, self.swizzle) {
            (Major::K, Swizzle::None) => {
                mn / 8 * stride + mn % 8 * 16 + k / per_unit * leading + k % per_unit * self.bytes
            }
            (Major::K, _) => {
                mn / 8 * stride + mn % 8 * 16 * self.units() + k * self.bytes + self.advance
            }
            (Major::Mn, Swizzle::None) => {
                mn / per_unit * stride + mn % per_unit * self.bytes + k % 8 * 16 + k / 8 * leading
            }
            (Major::Mn, _) => {
                let row = self.units() * per_unit;
                mn / row * leading
                    + mn % row * self.bytes
                    + k % 8 * 16 * self.units()
                    + k / 8 * stride
            }
        };
        swizzled(plain, self.swizzle)
    }

    /// Bytes of the whole tile.
    pub(crate) fn tile_bytes(&self) -> usize {
        let mut last = 0;
        for mn in 0..self.mn {
            for k in 0..self.k {
                last = last.max(self.offset(mn, k));
            }
        }
        (last + self.bytes).next_multiple_of(1024)
    }

    /// The tile's bytes for elements given by (`mn`, `k`); the rest is a filler that would show.
    pub(crate) fn image(&self, element: impl Fn(usize, usize) -> u64) -> Vec<u8> {
        let mut image = vec![0x5b; self.tile_bytes()];
        for mn in 0..self.mn {
            for k in 0..self.k {
                let at = self.offset(mn, k);
                image[at..at + self.bytes]
                    .copy_from_slice(&element(mn, k).to_le_bytes()[..self.bytes]);
            }
        }
        image
    }

    /// The descriptor without its start address, which the kernel adds.
    pub(crate) fn descriptor(&self) -> u64 {
        let (leading, stride) = self.offsets();
        (leading as u64 >> 4) << 16
            | (stride as u64 >> 4) << 32
            | self.swizzle.descriptor_code() << 62
    }
}

/// XORs the 16-byte unit's index with the row's, over as many bits as the swizzle is wide.
fn swizzled(offset: usize, swizzle: Swizzle) -> usize {
    let bits = swizzle.span() as usize / 16 - 1;
    offset ^ ((offset >> 7 & bits) << 4)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_elements_share_a_byte() {
        for swizzle in Swizzle::ALL {
            for major in [Major::K, Major::Mn] {
                for mn in [64, 24, 256] {
                    let layout = Layout {
                        mn,
                        k: 16,
                        bytes: 2,
                        major,
                        swizzle,
                        advance: 0,
                    };
                    let places: BTreeSet<_> = (0..mn * 16)
                        .map(|i| layout.offset(i / 16, i % 16))
                        .collect();
                    assert_eq!(places.len(), mn * 16, "{layout:?}");
                }
            }
        }
    }

    #[test]
    fn a_128_byte_swizzle_turns_rows() {
        let layout = Layout {
            mn: 16,
            k: 16,
            bytes: 2,
            major: Major::K,
            swizzle: Swizzle::B128,
            advance: 0,
        };
        assert_eq!(layout.offset(0, 0), 0);
        assert_eq!(layout.offset(1, 0), 128 + 16);
        assert_eq!(layout.offset(9, 8), 1024 + 128);
    }
}
