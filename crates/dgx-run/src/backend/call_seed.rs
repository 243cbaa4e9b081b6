use serde::{Deserialize, Serialize};

use crate::operator::{OutputValues, Shuffle, encode};

use dgx_core::domain::mix;
use dgx_core::operator::ElementType;

/// The contents of outputs and scratch before a call. A single kind would hide some reads of them:
/// a maximum ignores NaN, `x != 0` treats NaN as set, a sum does not show zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Poison {
    /// A NaN that arithmetic does not produce, if the type has one; else any bits.
    Nan,
    Zero,
    /// Finite, and larger than kernels' results.
    Large,
    /// The same, negative.
    Low,
    One,
}

impl Poison {
    /// The kinds of poison that a validation uses besides NaN.
    pub(crate) const OTHERS: [Self; 4] = [Self::Zero, Self::Large, Self::Low, Self::One];

    /// By the last three bits of a call seed. tools.cu has the same order.
    const BY_BITS: [Self; 8] = [
        Self::Nan,
        Self::Nan,
        Self::Nan,
        Self::Nan,
        Self::Zero,
        Self::Large,
        Self::Low,
        Self::One,
    ];

    /// Elements of a type; `random` chooses among suitable ones.
    fn element(self, element: ElementType, random: u64) -> u64 {
        let element = element.element();
        let sign = 1u64 << (element.bits() - 1);
        match self {
            Self::Nan => nan(element, random),
            // Neither true nor false, in either kind of call.
            Self::Large | Self::Low if element == ElementType::Bool => nan(element, random),
            Self::Zero => 0,
            Self::Large => large(element, random),
            Self::Low if element == ElementType::U8 => 1 + random % 4,
            Self::Low => large(element, random) | sign,
            Self::One => encode(element, 1.0),
        }
    }
}

/// A value that arithmetic does not produce.
fn nan(element: ElementType, random: u64) -> u64 {
    // Processors return all ones, or only the first bit, for 0/0.
    let nan = |exponent: u64, bits: u32| {
        let quiet = 1 << (bits - 1);
        let payload = 1 + random % ((1 << bits) - 3);
        exponent | if payload == quiet { quiet + 1 } else { payload }
    };
    match element {
        ElementType::F16 => nan(0x7c00, 10),
        ElementType::Bf16 => nan(0x7f80, 7),
        ElementType::F32 => nan(0x7f80_0000, 23),
        ElementType::F64 => nan(0x7ff0 << 48, 52),
        ElementType::E4m3 => 0xff,
        ElementType::E5m2 => 0xfd + random % 2,
        // Random bits, so that no value is poison in every call.
        ElementType::E2m1 => random & 15,
        ElementType::I32 => random & 0xffff_ffff,
        ElementType::Bool => 2 + random % 0xfe,
        _ => random & 0xff,
    }
}

/// One of the largest numbers of a type.
fn large(element: ElementType, random: u64) -> u64 {
    match element {
        ElementType::F16 => 0x7800 + random % 0x400,
        ElementType::Bf16 => 0x7e00 + random % 0x100,
        ElementType::F32 => 0x7e00_0000 + random % 0x100_0000,
        ElementType::F64 => (0x7fd0 << 48) + random % (1 << 52),
        ElementType::E4m3 | ElementType::E5m2 => 0x78 + random % 4,
        ElementType::E2m1 => 7,
        ElementType::I32 => 0x7000_0000 + random % 0x1000_0000,
        ElementType::U8 => 0xf0 + random % 16,
        _ => 0x70 + random % 16,
    }
}

/// Makes the memory of one call unlike that of any other: how operands are shuffled, the poison of
/// outputs and scratch, the pattern of canaries. Data that a kernel kept from an earlier call are
/// wrong in this one. tools.cu computes the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSeed(pub u64);

impl CallSeed {
    /// The seed of a validation's call: the same in every sweep with that seed, so that a verdict
    /// repeats.
    pub fn of_call(seed: u64, call: u64) -> Self {
        Self(mix(seed ^ mix(call + 1))).with(Poison::Nan)
    }

    /// The same with another poison.
    pub(crate) fn with(self, poison: Poison) -> Self {
        let bits = Poison::BY_BITS.iter().position(|kind| *kind == poison);
        Self(self.0 & !7 | bits.unwrap_or(0) as u64)
    }

    fn kind(self) -> Poison {
        Poison::BY_BITS[(self.0 & 7) as usize]
    }

    /// The contents of elements of a type before a call.
    pub(crate) fn poison(self, element: ElementType) -> u64 {
        self.kind().element(element, mix(self.0))
    }

    /// An output after a call, with all poison normalised. Other poison may as well have been
    /// written: only a call with NaN shows that an element was not.
    pub fn written(self, element: ElementType, bytes: Vec<u8>) -> OutputValues {
        match self.kind() {
            Poison::Nan => OutputValues::new(element, bytes, self.poison(element)).settled(),
            _ => OutputValues::whole(element, bytes),
        }
    }

    /// The shuffle that makes a problem of a data set.
    pub(crate) fn shuffle(self) -> Shuffle {
        Shuffle::new(self.0)
    }

    /// The canaries from an address on: NaN as e4m3, and two as fp16.
    pub(crate) fn canaries(self, from: u64, bytes: &mut [u8]) {
        self.fill(from, bytes, |bit, _| 0x7f | bit << 7);
    }

    /// Bytes that differ from address to address: NaN as fp16, bf16, fp32 and fp8.
    pub(crate) fn noise(self, from: u64, bytes: &mut [u8]) {
        self.fill(from, bytes, |bit, at| match at % 2 {
            0 => 0xff,
            _ => 0x7f | bit << 7,
        });
    }

    /// The contents of scratch from an address on, whose type is not known: the same kind of number
    /// as fp16, bf16, fp32 and fp8; ones are integers.
    pub fn scratch(self, from: u64, bytes: &mut [u8]) {
        match self.kind() {
            Poison::Nan => self.noise(from, bytes),
            Poison::Zero => bytes.fill(0),
            Poison::Large => self.fill(from, bytes, |bit, _| 0x7a | bit),
            Poison::Low => self.fill(from, bytes, |bit, _| 0xfa | bit),
            Poison::One => self.fill(from, bytes, |_, at| u8::from(at % 4 == 0)),
        }
    }

    /// `byte` makes each byte from a random bit and its index modulo sixteen. One hash gives the
    /// bits for sixteen bytes, because there can be gigabytes.
    fn fill(self, from: u64, bytes: &mut [u8], byte: impl Fn(u8, u64) -> u8) {
        // Sixteen bytes where all bits are 0, and where all are 1: of a hash, each bit chooses.
        let all = |bit| u128::from_le_bytes(std::array::from_fn(|at| byte(bit, at as u64)));
        let (zeros, ones): (u128, u128) = (all(0), all(1));
        let sixteen = |nth: u64| -> [u8; 16] {
            let [low, high, ..] = self.hash(nth).to_le_bytes();
            let chosen = u128::from(bytes_of(low)) | u128::from(bytes_of(high)) << 64;
            (zeros ^ (zeros ^ ones) & chosen).to_le_bytes()
        };
        let place = (from % 16) as usize;
        let before = (16 - place) % 16;
        let (first, rest) = bytes.split_at_mut(before.min(bytes.len()));
        let count = first.len();
        if count > 0 {
            first.copy_from_slice(&sixteen(from / 16)[place..place + count]);
        }
        let (whole, last) = rest.as_chunks_mut::<16>();
        let next = from.div_ceil(16);
        for (nth, to) in (next..).zip(&mut *whole) {
            *to = sixteen(nth);
        }
        last.copy_from_slice(&sixteen(next + whole.len() as u64)[..last.len()]);
    }

    fn hash(self, what: u64) -> u64 {
        mix(self.0 ^ mix(what))
    }
}

/// A byte of ones for each bit that is set, the first bit's lowest.
fn bytes_of(bits: u8) -> u64 {
    let one_each = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    // Adding carries into the top bit of a byte that is not 0, and never out of one.
    ((one_each + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101) * 0xff
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::operator::decode;

    type Fill = fn(CallSeed, u64, &mut [u8]);

    const FILLS: [Fill; 3] = [CallSeed::canaries, CallSeed::noise, CallSeed::scratch];

    fn filled(fill: Fill, call_seed: CallSeed, from: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        fill(call_seed, from, &mut bytes);
        bytes
    }

    #[test]
    fn what_lies_at_an_address_does_not_depend_on_where_filling_began() {
        for fill in FILLS {
            let whole = filled(fill, CallSeed(3), 0x100, 100);
            for from in 0..100 {
                let part = filled(fill, CallSeed(3), 0x100 + from as u64, 100 - from);
                assert_eq!(part, whole[from..]);
            }
        }
    }

    #[test]
    fn every_bit_of_a_hash_chooses_the_byte_at_its_place() {
        let call_seed = CallSeed(5);
        for nth in 0..64 {
            let mut bytes = [0; 16];
            call_seed.fill(16 * nth, &mut bytes, |bit, at| bit << 7 | at as u8);
            for (at, byte) in bytes.into_iter().enumerate() {
                let bit = (call_seed.hash(nth) >> at & 1) as u8;
                assert_eq!(byte, bit << 7 | at as u8);
            }
        }
    }

    #[test]
    fn poison_and_canaries_are_nan_and_change_with_the_seed() {
        let mut poisons = std::collections::BTreeSet::new();
        for call in 0..500 {
            let call_seed = CallSeed::of_call(7, call);
            let poison = call_seed.poison(ElementType::F16) as u16;
            assert!(f16::from_bits(poison).is_nan());
            assert!(![0x7e00, 0x7fff].contains(&poison));
            for element in ElementType::ALL.into_iter().filter(|e| e.has_nan()) {
                let value = decode(element, call_seed.poison(element));
                assert!(value.is_nan(), "{}", element.name());
            }
            poisons.insert(poison);
            for fill in FILLS {
                let bytes = filled(fill, call_seed, 0, 64);
                for pair in bytes.chunks_exact(2) {
                    assert!(f16::from_le_bytes([pair[0], pair[1]]).is_nan());
                }
            }
        }
        assert!(poisons.len() > 100);
        let pattern = |call| filled(CallSeed::canaries, CallSeed::of_call(7, call), 0, 64);
        assert_ne!(pattern(0), pattern(1));
    }

    /// Poison that a maximum, a minimum, a sum or a test for zero ignores in one call, it notices
    /// in another, and no element is right in all of them unless it was written.
    #[test]
    fn poison_is_zero_one_large_and_low_in_other_calls() {
        let call_seed = CallSeed(0xfeed_5eed_1234_5678);
        for element in ElementType::ALL.map(ElementType::element) {
            let value = |kind| decode(element, call_seed.with(kind).poison(element));
            assert_eq!(value(Poison::Zero), 0.0, "{}", element.name());
            assert_eq!(value(Poison::One), 1.0, "{}", element.name());
            if element != ElementType::Bool {
                let (low, large) = (value(Poison::Low), value(Poison::Large));
                assert!(large.is_finite() && large >= 6.0, "{}", element.name());
                assert!(low < large && low.is_finite(), "{}", element.name());
            }
        }
        let word = |kind| {
            filled(CallSeed::scratch, call_seed.with(kind), 64, 4)
                .try_into()
                .unwrap()
        };
        let float = |kind| f32::from_le_bytes(word(kind));
        assert!(float(Poison::Nan).is_nan());
        assert_eq!(float(Poison::Zero), 0.0);
        assert!(float(Poison::Large) > 1e30 && float(Poison::Low) < -1e30);
        assert_eq!(u32::from_le_bytes(word(Poison::One)), 1);
        let halves = |kind| filled(CallSeed::scratch, call_seed.with(kind), 64, 2);
        let half = |kind| f16::from_le_bytes(halves(kind).try_into().unwrap());
        assert!(half(Poison::Large) > f16::from_f32(4e4) && half(Poison::Low).is_finite());
        let kinds = (0..8).map(|bits| CallSeed(bits).kind());
        let kinds: std::collections::BTreeSet<Poison> = kinds.collect();
        assert_eq!(kinds.len(), 1 + Poison::OTHERS.len());
    }

    #[test]
    fn an_element_that_nobody_wrote_is_known_by_nan_alone() {
        let element = ElementType::F32;
        for kind in [Poison::Nan].into_iter().chain(Poison::OTHERS) {
            let call_seed = CallSeed::of_call(3, 1).with(kind);
            let bytes = (call_seed.poison(element) as u32).to_le_bytes();
            let found = call_seed.written(element, bytes.to_vec()).at(0);
            assert_eq!(found.written, kind != Poison::Nan, "{kind:?}");
        }
    }
}
