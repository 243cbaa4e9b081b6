//! Random data of any type, tensor by tensor: for operators whose operands
//! nothing ties together.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::CHUNK_ROWS;
use crate::operator::Tensor;
use crate::operator::format::encode;
use dgx_core::domain::Distribution;
use dgx_core::operator::{ElementType, Number};

/// Keeps these streams apart from those of products.
const FIRST_STREAM: u64 = 16;
/// Of so many rows one is zero, outside of `benchmark`.
const EMPTY: u32 = 16;
/// Exponents of `full`: squares and their sums stay finite in fp16.
const BINADES: i32 = 6;

/// Where a tensor's data come from.
pub(crate) struct Source {
    pub seed: u64,
    pub group: usize,
    /// Place among the inputs.
    pub tensor: usize,
    pub distribution: Distribution,
    /// Least and most, where the operator says so.
    pub range: Option<(f64, f64)>,
}

impl Source {
    fn rng(&self, chunk: usize) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&(self.group as u64).to_le_bytes());
        key[16] = self.distribution as u8;
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream((FIRST_STREAM + self.tensor as u64) << 48 | chunk as u64);
        rng
    }

    /// Fills a blank tensor.
    pub(crate) fn fill(&self, tensor: &mut Tensor) {
        let (element, rows) = (tensor.element, tensor.rows().max(1));
        let (width, scale_width) = (tensor.elements.len() / rows, tensor.scales.len() / rows);
        let mut scales: Vec<&mut [u8]> = match scale_width {
            0 => (0..rows.div_ceil(CHUNK_ROWS))
                .map(|_| &mut [][..])
                .collect(),
            _ => tensor.scales.chunks_mut(CHUNK_ROWS * scale_width).collect(),
        };
        tensor
            .elements
            .par_chunks_mut(CHUNK_ROWS * width)
            .zip(scales.par_iter_mut())
            .enumerate()
            .for_each(|(chunk, (elements, scales))| {
                let mut rng = self.rng(chunk);
                for row in elements.chunks_mut(width) {
                    self.row(&mut rng, element, row);
                }
                for scale in scales.iter_mut() {
                    *scale = self.scale(&mut rng, element);
                }
            });
    }

    fn row(&self, rng: &mut ChaCha8Rng, element: ElementType, row: &mut [u8]) {
        let empty = self.distribution != Distribution::Benchmark
            && self.range.is_none()
            && rng.next_u32().is_multiple_of(EMPTY);
        if empty {
            return row.fill(0);
        }
        match element.bits() {
            4 => {
                for byte in row {
                    let [low, high] = [(); 2].map(|()| self.bits(rng, element) as u8);
                    *byte = low | high << 4;
                }
            }
            bits => {
                for word in row.chunks_exact_mut(bits as usize / 8) {
                    let code = self.bits(rng, element).to_le_bytes();
                    word.copy_from_slice(&code[..word.len()]);
                }
            }
        }
    }

    fn bits(&self, rng: &mut ChaCha8Rng, element: ElementType) -> u64 {
        let element = element.element();
        let unit = f64::from(rng.next_u32()) / 2f64.powi(32);
        if let Some((low, high)) = self.range {
            let value = match element.number() {
                Number::Real => low + (high - low) * unit,
                _ => (low + ((high - low + 1.0) * unit).floor()).min(high),
            };
            return encode(element, value);
        }
        let full = self.distribution != Distribution::Benchmark;
        let value = match element {
            ElementType::Bool => f64::from(unit < 0.5),
            ElementType::I8 if full => (unit * 256.0).floor() - 128.0,
            ElementType::U8 if full => (unit * 256.0).floor(),
            ElementType::U8 => (unit * 9.0).floor(),
            ElementType::I32 if full => (unit * 2001.0).floor() - 1000.0,
            ElementType::I8 | ElementType::I32 => (unit * 9.0).floor() - 4.0,
            _ if full => {
                let word = rng.next_u32();
                let exponent = (word >> 1) as i32 % (2 * BINADES + 1) - BINADES;
                let sign = if word & 1 == 1 { -1.0 } else { 1.0 };
                sign * 2f64.powi(exponent) * (1.0 + unit)
            }
            _ => 2.0 * unit - 1.0,
        };
        encode(element, value)
    }

    fn scale(&self, rng: &mut ChaCha8Rng, element: ElementType) -> u8 {
        let Some(scale) = element.scale() else {
            return 0;
        };
        let word = rng.next_u32();
        let value = match self.distribution {
            Distribution::Benchmark => f64::from(word) / 2f64.powi(32),
            _ => 2f64.powi((word >> 3) as i32 % 7 - 3) * (1.0 + f64::from(word & 7) / 8.0),
        };
        encode(scale.element, value) as u8
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::{GroupOperands, decode};
    use dgx_core::domain::{Distribution, Group};
    use dgx_core::operators::named;

    #[test]
    fn data_of_a_norm_are_finite_and_depend_on_seed_and_distribution() {
        let operator = named(Some("rms-norm")).unwrap();
        let group = Group::new([("m", 70), ("n", 256)]);
        let draw = |how, seed| GroupOperands::draw(&operator, &group, 0, how, seed);
        for how in Distribution::ALL {
            let drawn = draw(how, 1);
            for tensor in &drawn.inputs {
                let words = tensor.elements.as_chunks::<2>().0.iter();
                let value = |w: &[u8; 2]| decode(tensor.element, u16::from_le_bytes(*w).into());
                let values: Vec<f64> = words.map(value).collect();
                assert!(values.iter().all(|value| value.is_finite()));
            }
            assert_eq!(drawn, draw(how, 1));
            assert_ne!(drawn.inputs[0], draw(how, 2).inputs[0]);
        }
        let same = draw(Distribution::Full, 1).inputs == draw(Distribution::Benchmark, 1).inputs;
        assert!(!same);
    }
}
