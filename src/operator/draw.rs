//! Random operands. Each tensor of each group has its own stream of one
//! generator, cut into chunks of rows, so that the data depend on the seed
//! alone and not on the number of cores.

use std::sync::LazyLock;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::format::encode_e4m3;
use super::{Distribution, SCALE_BLOCK};

/// Rows drawn by one generator.
const CHUNK_ROWS: usize = 32;

/// Which of a group's random streams is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tensor {
    A = 1,
    B1 = 2,
    B2 = 3,
}

/// What draws the operands of one group.
pub(super) struct Draw {
    seed: u64,
    group: usize,
    distribution: Distribution,
    /// One entry per block of 16 along K; used by [`Distribution::Full`].
    balance: Vec<Balance>,
}

/// Which scales meet in a block along K. With scales over 18 binades on both
/// sides, most products would leave fp16 unless large ones met small ones.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Balance {
    /// A's scales lie around 2^e, B's around 2^(LEVEL - e).
    Level(i32),
    /// The top binades on one side, subnormals and zero on the other, and few
    /// non-zero elements.
    Peak { of_a: bool },
}

/// Exponent of the product of two scales that meet in a level block.
const LEVEL: i32 = -8;
/// One block in this many is a peak.
const PEAK_EVERY: u32 = 16;

/// Uniform in [0, 1) by 16 random bits, as e4m3.
static UNIFORM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..=u16::MAX)
        .map(|u| encode_e4m3(f64::from(u) / 65536.0))
        .collect()
});

impl Draw {
    pub(super) fn new(seed: u64, group: usize, k: usize, distribution: Distribution) -> Self {
        let mut draw = Self {
            seed,
            group,
            distribution,
            balance: Vec::new(),
        };
        let mut rng = draw.rng(0, 0);
        draw.balance = (0..k / SCALE_BLOCK)
            .map(|block| balance(block, rng.next_u32()))
            .collect();
        draw
    }

    fn rng(&self, tensor: u64, chunk: usize) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&(self.group as u64).to_le_bytes());
        key[16] = self.distribution as u8;
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(tensor << 48 | chunk as u64);
        rng
    }

    /// Packed elements and row-major scales of a tensor of `rows` × `k`.
    pub(super) fn tensor(&self, tensor: Tensor, rows: usize, k: usize) -> (Vec<u8>, Vec<u8>) {
        let (width, scale_width) = (k / 2, k / SCALE_BLOCK);
        let mut elements = vec![0; rows * width];
        let mut scales = vec![0; rows * scale_width];
        elements
            .par_chunks_mut(CHUNK_ROWS * width)
            .zip(scales.par_chunks_mut(CHUNK_ROWS * scale_width))
            .enumerate()
            .for_each(|(chunk, (elements, scales))| {
                let mut rng = self.rng(tensor as u64, chunk);
                match self.distribution {
                    Distribution::Benchmark => benchmark(&mut rng, elements, scales),
                    Distribution::Full => {
                        let rows = elements.chunks_mut(width);
                        for (row, row_scales) in rows.zip(scales.chunks_mut(scale_width)) {
                            self.full_row(&mut rng, tensor, row, row_scales);
                        }
                    }
                }
            });
        (elements, scales)
    }

    fn full_row(&self, rng: &mut ChaCha8Rng, tensor: Tensor, row: &mut [u8], scales: &mut [u8]) {
        rng.fill_bytes(row);
        let blocks = row.chunks_mut(SCALE_BLOCK / 2).zip(scales);
        for ((elements, scale), balance) in blocks.zip(&self.balance) {
            let random = rng.next_u32();
            *scale = match *balance {
                Balance::Level(e) if tensor == Tensor::A => level_scale(e, random),
                Balance::Level(e) => level_scale(LEVEL - e, random),
                Balance::Peak { of_a } => {
                    thin_out(elements, rng);
                    match of_a == (tensor == Tensor::A) {
                        true => peak_scale(random),
                        false => tiny_scale(random),
                    }
                }
            };
        }
    }
}

/// Nibbles masked to |v| ≤ 1.5, scales uniform.
fn benchmark(rng: &mut ChaCha8Rng, elements: &mut [u8], scales: &mut [u8]) {
    rng.fill_bytes(elements);
    for byte in elements {
        *byte &= 0b1011_1011;
    }
    for pair in scales.chunks_mut(2) {
        let random = rng.next_u32();
        for (scale, half) in pair.iter_mut().zip([random as u16, (random >> 16) as u16]) {
            *scale = UNIFORM[usize::from(half)];
        }
    }
}

/// The first two blocks are peaks of either kind, so that even the shortest K
/// sees the top binades on both sides.
fn balance(block: usize, random: u32) -> Balance {
    if block < 2 {
        return Balance::Peak { of_a: block == 0 };
    }
    if random.is_multiple_of(PEAK_EVERY) {
        return Balance::Peak {
            of_a: (random >> 8).is_multiple_of(2),
        };
    }
    Balance::Level((random >> 8) as i32 % (1 - LEVEL) + LEVEL)
}

/// Within a binade of 2^e, which lies between 2^LEVEL and 1.
fn level_scale(e: i32, random: u32) -> u8 {
    let jitter = (random >> 8) as i32 % 3 - 1;
    BINADES[(e + jitter - (LEVEL - 1)) as usize][(random & 7) as usize]
}

/// The e4m3 codes of eight values in each binade from 2^(LEVEL - 1) to 2.
static BINADES: LazyLock<[[u8; 8]; BINADE_COUNT]> = LazyLock::new(|| {
    std::array::from_fn(|binade| {
        let unit = 2f64.powi(binade as i32 + LEVEL - 1);
        std::array::from_fn(|eighth| encode_e4m3(unit * (1.0 + eighth as f64 / 8.0)))
    })
});
const BINADE_COUNT: usize = (3 - LEVEL) as usize;

/// Codes of 1 to 448: the top nine binades.
fn peak_scale(random: u32) -> u8 {
    const FIRST: u32 = 0x38;
    const COUNT: u32 = 0x7f - FIRST;
    (FIRST + random % COUNT) as u8
}

/// Zero half the time, else one of the seven subnormals.
fn tiny_scale(random: u32) -> u8 {
    let code = (random & 15) as u8;
    code.saturating_sub(8)
}

/// Clears seven nibbles in eight.
fn thin_out(elements: &mut [u8], rng: &mut ChaCha8Rng) {
    let keep = |random: u64| random & random >> 16 & random >> 32;
    for four in elements.chunks_mut(4) {
        let kept = keep(rng.next_u64());
        for (i, byte) in four.iter_mut().enumerate() {
            if kept >> (2 * i) & 1 == 0 {
                *byte &= 0xf0;
            }
            if kept >> (2 * i + 1) & 1 == 0 {
                *byte &= 0x0f;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_level_scales_is_their_definition() {
        for e in LEVEL..=0 {
            for random in (0..3 << 8).map(|r| r ^ 0xdead_0000) {
                let jitter = (random >> 8) as i32 % 3 - 1;
                let value = 2f64.powi(e + jitter) * (1.0 + f64::from(random & 7) / 8.0);
                assert_eq!(level_scale(e, random), encode_e4m3(value));
            }
        }
    }
}
