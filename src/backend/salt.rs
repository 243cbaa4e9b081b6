/// What makes the memory of one call unlike that of any other: which rows of
/// B2 change their sign, what poisons outputs and scratch, what canaries look
/// like. A kernel that brings along anything from an earlier call, wherever it
/// kept it, brings along the wrong thing. tools.cu computes the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub u64);

/// Keeps rows apart from addresses in what is hashed.
const ROWS: u64 = 1 << 63;

impl Salt {
    /// The salt of a validation's call: the same in every sweep of that seed,
    /// so that a verdict repeats.
    pub(crate) fn of_call(seed: u64, call: u64) -> Self {
        Self(mix(seed ^ mix(call + 1)))
    }

    /// An fp16 NaN that arithmetic does not make.
    pub(crate) fn poison(self) -> u16 {
        let payload = 1 + (mix(self.0) % 0x3fd) as u16;
        // 0x7e00 and 0x7fff are what processors answer to 0/0.
        0x7c00 | if payload == 0x200 { 0x201 } else { payload }
    }

    /// Whether row `row` of a group's B2, and with it column `row` of its C,
    /// has its sign changed.
    pub(crate) fn negates(self, group: usize, row: u64) -> bool {
        self.hash(ROWS | (group as u64) << 40 | row) & 1 == 1
    }

    /// What canaries are from an address on: NaN as e4m3, and two as fp16.
    pub(crate) fn canaries(self, from: u64, bytes: &mut [u8]) {
        self.fill(from, bytes, |bit, _| 0x7f | bit << 7);
    }

    /// What scratch holds from an address on: NaN as fp16, bf16, fp32 and fp8.
    pub(crate) fn scratch(self, from: u64, bytes: &mut [u8]) {
        self.fill(from, bytes, |bit, odd| match odd {
            false => 0xff,
            true => 0x7f | bit << 7,
        });
    }

    /// `byte` makes each byte of a bit and of whether its address is odd. One
    /// hash has the bits of sixteen: there can be gigabytes.
    fn fill(self, from: u64, bytes: &mut [u8], byte: impl Fn(u8, bool) -> u8) {
        let (mut address, mut rest) = (from, bytes);
        while !rest.is_empty() {
            let (bits, place) = (self.hash(address / 16), address % 16);
            let count = (16 - place as usize).min(rest.len());
            let (word, after) = rest.split_at_mut(count);
            for (at, slot) in (place..).zip(word) {
                *slot = byte((bits >> at & 1) as u8, at % 2 == 1);
            }
            (address, rest) = (address + count as u64, after);
        }
    }

    fn hash(self, what: u64) -> u64 {
        mix(self.0 ^ mix(what))
    }
}

/// A bijection of 64-bit words that leaves no pattern (the finaliser of
/// SplitMix64).
pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    type Fill = fn(Salt, u64, &mut [u8]);

    fn filled(fill: Fill, salt: Salt, from: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        fill(salt, from, &mut bytes);
        bytes
    }

    #[test]
    fn what_lies_at_an_address_does_not_depend_on_where_filling_began() {
        for fill in [Salt::canaries as Fill, Salt::scratch] {
            let whole = filled(fill, Salt(3), 0x100, 100);
            for from in 0..100 {
                let part = filled(fill, Salt(3), 0x100 + from as u64, 100 - from);
                assert_eq!(part, whole[from..]);
            }
        }
    }

    #[test]
    fn poison_and_canaries_are_nan_and_change_with_the_salt() {
        let mut poisons = std::collections::BTreeSet::new();
        for call in 0..500 {
            let salt = Salt::of_call(7, call);
            let poison = salt.poison();
            assert!(f16::from_bits(poison).is_nan());
            assert!(![0x7e00, 0x7fff].contains(&poison));
            poisons.insert(poison);
            for fill in [Salt::canaries as Fill, Salt::scratch] {
                let bytes = filled(fill, salt, 0, 64);
                for pair in bytes.chunks_exact(2) {
                    assert!(f16::from_le_bytes([pair[0], pair[1]]).is_nan());
                }
            }
        }
        assert!(poisons.len() > 200);
        let pattern = |call| filled(Salt::canaries, Salt::of_call(7, call), 0, 64);
        assert_ne!(pattern(0), pattern(1));
    }

    #[test]
    fn about_half_the_rows_change_their_sign_and_others_each_time() {
        let rows = |call| -> Vec<bool> {
            let salt = Salt::of_call(1, call);
            (0..4096).map(|row| salt.negates(2, row)).collect()
        };
        let share = rows(0).iter().filter(|n| **n).count();
        assert!((1800..2300).contains(&share), "{share} of 4096");
        let same = rows(0).into_iter().zip(rows(1)).filter(|(a, b)| a == b);
        assert!((1800..2300).contains(&same.count()));
    }
}
