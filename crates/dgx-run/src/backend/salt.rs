use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::POISON;
use crate::operator::Shuffle;

use dgx_core::domain::mix;

/// What makes the memory of one call unlike that of any other: how operands are
/// shuffled, what poisons outputs and scratch, what canaries look like. Whatever
/// a kernel kept of an earlier call is wrong in this one. tools.cu computes the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salt(pub u64);

impl Salt {
    /// The salt of a validation's call: the same in every sweep of that seed,
    /// so that a verdict repeats.
    pub fn of_call(seed: u64, call: u64) -> Self {
        Self(mix(seed ^ mix(call + 1)))
    }

    /// An fp16 NaN that arithmetic does not make.
    pub(crate) fn poison(self) -> u16 {
        let payload = 1 + (mix(self.0) % 0x3fd) as u16;
        // 0x7e00 and 0x7fff are what processors answer to 0/0.
        0x7c00 | if payload == 0x200 { 0x201 } else { payload }
    }

    /// fp16 bits, with [`POISON`] where nothing was written.
    pub fn written(self, bytes: &[u8]) -> Vec<u16> {
        let poison = self.poison();
        let halves = bytes.par_chunks_exact(2);
        halves
            .map(|pair| match u16::from_le_bytes([pair[0], pair[1]]) {
                bits if bits == poison => POISON,
                bits => bits,
            })
            .collect()
    }

    /// Which problem is made of a data set.
    pub(crate) fn shuffle(self) -> Shuffle {
        Shuffle::new(self.0)
    }

    /// What canaries are from an address on: NaN as e4m3, and two as fp16.
    pub(crate) fn canaries(self, from: u64, bytes: &mut [u8]) {
        self.fill(from, bytes, |bit, _| 0x7f | bit << 7);
    }

    /// What scratch holds from an address on: NaN as fp16, bf16, fp32 and fp8.
    pub fn scratch(self, from: u64, bytes: &mut [u8]) {
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
}
