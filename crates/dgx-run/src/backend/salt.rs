use serde::{Deserialize, Serialize};

use crate::operator::{Shuffle, Written};

use dgx_core::domain::mix;
use dgx_core::operator::ElementType;

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

    /// What elements of a type hold before a call: a NaN that arithmetic does
    /// not make, where the type has one; else any bits.
    pub(crate) fn poison(self, element: ElementType) -> u64 {
        let random = mix(self.0);
        // Processors answer with all ones, or the first bit alone, to 0/0.
        let nan = |exponent: u64, bits: u32| {
            let quiet = 1 << (bits - 1);
            let payload = 1 + random % ((1 << bits) - 3);
            exponent | if payload == quiet { quiet + 1 } else { payload }
        };
        match element.element() {
            ElementType::F16 => nan(0x7c00, 10),
            ElementType::Bf16 => nan(0x7f80, 7),
            ElementType::F32 => nan(0x7f80_0000, 23),
            ElementType::F64 => nan(0x7ff0 << 48, 52),
            ElementType::E4m3 => 0xff,
            ElementType::E5m2 => 0xfd + random % 2,
            // One byte of them, so that no value is poison in every call.
            ElementType::E2m1 => random & 15,
            ElementType::I32 => random & 0xffff_ffff,
            ElementType::Bool => 2 + random % 0xfe,
            _ => random & 0xff,
        }
    }

    /// An output as a call left it, all poison the same.
    pub fn written(self, element: ElementType, bytes: Vec<u8>) -> Written {
        Written::new(element, bytes, self.poison(element)).settled()
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
    use crate::operator::decode;

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
            let poison = salt.poison(ElementType::F16) as u16;
            assert!(f16::from_bits(poison).is_nan());
            assert!(![0x7e00, 0x7fff].contains(&poison));
            for element in ElementType::ALL.into_iter().filter(|e| e.has_nan()) {
                let value = decode(element, salt.poison(element));
                assert!(value.is_nan(), "{}", element.name());
            }
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
