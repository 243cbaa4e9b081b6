use rayon::prelude::*;

use super::format::{decode, encode};
use dgx_core::operator::ElementType;

/// The contents of an output of a group after a call, element by element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputValues {
    pub element: ElementType,
    /// Packed as in memory.
    bytes: Vec<u8>,
    /// The value of an element before the call: a NaN that arithmetic does not produce, if the type
    /// has one.
    poison: u64,
}

/// One element of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputElement {
    pub element: ElementType,
    pub bits: u64,
    /// Whether it differs from its value before the call.
    pub written: bool,
}

impl OutputElement {
    pub fn value(self) -> f64 {
        match self.element {
            // Neither true nor false.
            ElementType::Bool if self.bits > 1 => f64::NAN,
            element => decode(element, self.bits),
        }
    }
}

impl OutputValues {
    pub fn new(element: ElementType, bytes: Vec<u8>, poison: u64) -> Self {
        Self {
            element,
            bytes,
            poison,
        }
    }

    /// An output without unwritten elements.
    pub fn whole(element: ElementType, bytes: Vec<u8>) -> Self {
        Self::new(element, bytes, poison_kept(element))
    }

    /// As if a kernel had rounded these values. No element counts as unwritten.
    pub fn rounded(element: ElementType, values: impl Iterator<Item = f64>) -> Self {
        let codes = values.map(|value| encode(element, value));
        Self::of_bits(element, codes)
    }

    /// Elements by their bits.
    pub fn of_bits(element: ElementType, codes: impl Iterator<Item = u64>) -> Self {
        let bytes = match element.bits() {
            4 => {
                let codes: Vec<u64> = codes.collect();
                let pairs = codes.chunks(2);
                pairs
                    .map(|pair| (pair[0] | pair.get(1).unwrap_or(&0) << 4) as u8)
                    .collect()
            }
            bits => {
                let width = bits as usize / 8;
                codes
                    .flat_map(|code| code.to_le_bytes().into_iter().take(width))
                    .collect()
            }
        };
        Self::whole(element, bytes)
    }

    pub fn len(&self) -> usize {
        self.bytes.len() * 8 / self.element.bits() as usize
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn at(&self, index: usize) -> OutputElement {
        let bits = self.bits(index);
        OutputElement {
            element: self.element,
            bits,
            written: bits != self.poison,
        }
    }

    fn bits(&self, index: usize) -> u64 {
        let byte = |at: usize| u64::from(self.bytes[at]);
        match self.element.bits() {
            4 => byte(index / 2) >> (4 * (index % 2)) & 15,
            8 => byte(index),
            16 => byte(2 * index) | byte(2 * index + 1) << 8,
            bits => {
                let width = bits as usize / 8;
                let word = &self.bytes[index * width..][..width];
                word.iter()
                    .rev()
                    .fold(0, |word, b| word << 8 | u64::from(*b))
            }
        }
    }

    pub(crate) fn all(&self) -> impl IndexedParallelIterator<Item = OutputElement> + '_ {
        (0..self.len()).into_par_iter().map(|index| self.at(index))
    }

    /// The same with other elements.
    pub(crate) fn with_bytes(&self, bytes: Vec<u8>) -> Self {
        Self { bytes, ..*self }
    }

    /// Whether every element was written.
    pub(crate) fn is_whole(&self) -> bool {
        self.all().all(|found| found.written)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Changes an element, for a script or a test.
    #[cfg(any(test, feature = "fake"))]
    pub fn set(&mut self, index: usize, bits: u64) {
        let width = self.element.bits() as usize / 8;
        let word = &mut self.bytes[index * width..][..width];
        word.copy_from_slice(&bits.to_le_bytes()[..width]);
    }

    /// With the same poison for all calls, so that two calls can be compared.
    pub(crate) fn settled(mut self) -> Self {
        let kept = poison_kept(self.element);
        if self.element.has_nan() && self.poison != kept && self.element.bits() >= 8 {
            let width = self.element.bits() as usize / 8;
            let (poison, kept_bytes) = (self.poison.to_le_bytes(), kept.to_le_bytes());
            self.bytes.par_chunks_exact_mut(width).for_each(|word| {
                if *word == poison[..width] {
                    word.copy_from_slice(&kept_bytes[..width]);
                }
            });
            self.poison = kept;
        }
        self
    }
}

/// Replaces unwritten elements once the call is over: a NaN if the type has one, else a value that
/// no element has.
fn poison_kept(element: ElementType) -> u64 {
    match element.element() {
        ElementType::F16 => 0x7e5a,
        ElementType::Bf16 => 0x7fda,
        ElementType::F32 => 0x7fc0_5a5a,
        ElementType::F64 => 0x7ff8_5a5a_7ff8_5a5a,
        ElementType::E4m3 => 0xff,
        ElementType::E5m2 => 0xfd,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_width_come_back() {
        for element in ElementType::ALL {
            let element = element.element();
            let values = [1.0, 0.0, 1.0, 1.0, 0.0];
            let written = OutputValues::rounded(element, values.into_iter());
            let found: Vec<f64> = (0..5).map(|i| written.at(i).value()).collect();
            assert_eq!(found, values, "{}", element.name());
            assert!((0..5).all(|i| written.at(i).written), "{}", element.name());
        }
    }

    #[test]
    fn what_nobody_wrote_is_known_whatever_the_poison_was() {
        let poisons = [(ElementType::F16, 0x7d01), (ElementType::F32, 0x7f80_0123)];
        for (element, poison) in poisons {
            let mut one = OutputValues::rounded(element, [1.0, 2.0].into_iter());
            one.set(1, poison);
            let written = OutputValues::new(element, one.bytes.clone(), poison).settled();
            assert_eq!([0, 1].map(|i| written.at(i).written), [true, false]);
            assert!(written.at(1).value().is_nan());
        }
        let neither = OutputValues::new(ElementType::Bool, vec![1, 0x5a], u64::MAX);
        assert!(neither.at(1).value().is_nan());
    }
}
