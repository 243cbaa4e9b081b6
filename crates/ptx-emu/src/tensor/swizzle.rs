//! Shared-memory swizzles: which 16-byte chunk of a row a chunk is stored in.

/// A swizzle permutes 16-byte chunks by exclusive-or with higher bits of the absolute shared
/// address, so that rows read down a column fall in different banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Swizzle {
    #[default]
    /// As the addresses say.
    None,
    /// Bit 4 ^= bit 7.
    B32,
    /// Bits 4–5 ^= bits 7–8.
    B64,
    /// Bits 4–6 ^= bits 7–9.
    B128,
    /// As `B128` with 32-byte chunks: bits 5–6 ^= bits 7–8.
    B128Atom32,
    /// As `B128Atom32`, with the two halves of each 32 bytes of odd rows exchanged (bit 3 ^= 7).
    B128Atom32Flip8,
    /// As `B128` with 64-byte chunks: bit 6 ^= bit 7.
    B128Atom64,
}

impl Swizzle {
    /// Width in bytes of the rows the pattern works on; 16 where there is no pattern.
    pub(crate) const fn span(self) -> u32 {
        match self {
            Self::None => 16,
            Self::B32 => 32,
            Self::B64 => 64,
            _ => 128,
        }
    }

    /// In words, with an article.
    pub(crate) fn described(self) -> String {
        match (self, self.atom()) {
            (Self::None, _) => "no swizzle".to_owned(),
            (_, 16) => format!("a swizzle of {} bytes", self.span()),
            (_, atom) => format!("a swizzle of {} bytes in atoms of {atom}", self.span()),
        }
    }

    /// Bytes that stay together.
    pub(crate) const fn atom(self) -> u32 {
        match self {
            Self::B128Atom32 => 32,
            Self::B128Atom32Flip8 => 8,
            Self::B128Atom64 => 64,
            _ => 16,
        }
    }

    /// Where the byte of a linear address is stored.
    #[inline]
    pub(crate) const fn apply(self, address: u32) -> u32 {
        let flipped = match self {
            Self::B128Atom32Flip8 => address >> 7 & 1,
            _ => 0,
        };
        address ^ self.mask(address) ^ flipped << 3
    }

    /// The bits of a chunk's address that change.
    #[inline]
    const fn mask(self, address: u32) -> u32 {
        // What depends on the swizzle alone comes first, so that loops over addresses find it once.
        let (rows, shift) = match self {
            Self::None => (0, 4),
            Self::B32 => (1, 4),
            Self::B64 => (3, 4),
            Self::B128 => (7, 4),
            Self::B128Atom32 | Self::B128Atom32Flip8 => (3, 5),
            Self::B128Atom64 => (1, 6),
        };
        (address >> 7 & rows) << shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Swizzle; 7] = [
        Swizzle::None,
        Swizzle::B32,
        Swizzle::B64,
        Swizzle::B128,
        Swizzle::B128Atom32,
        Swizzle::B128Atom32Flip8,
        Swizzle::B128Atom64,
    ];

    #[test]
    fn a_swizzle_is_its_own_inverse_and_stays_in_its_row() {
        for swizzle in ALL {
            for address in 0..4096 {
                let stored = swizzle.apply(address);
                assert_eq!(swizzle.apply(stored), address);
                assert_eq!(
                    stored / swizzle.span().max(128),
                    address / swizzle.span().max(128)
                );
                assert_eq!(stored % swizzle.atom(), address % swizzle.atom());
                assert_eq!(swizzle.apply(address + 1024), stored + 1024);
            }
        }
    }

    #[test]
    fn the_128_byte_pattern_spreads_a_column_over_all_chunks() {
        let chunks: Vec<u32> = (0..8)
            .map(|row| Swizzle::B128.apply(row * 128) % 128 / 16)
            .collect();
        assert_eq!(chunks, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(Swizzle::B64.apply(128 + 16), 128);
        assert_eq!(Swizzle::B32.apply(128 + 16), 128);
    }
}
