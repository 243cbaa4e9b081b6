//! Random operands. Each tensor of each group has its own stream of one generator, cut into chunks
//! of rows, so that the data depend on the seed alone and not on the number of cores.

use std::sync::LazyLock;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;

use super::SCALE_BLOCK;
use super::format::encode_e4m3;
use dgx_core::domain::Distribution;

pub(super) mod exact;
mod kind;
pub(super) mod plain;

/// Rows drawn by one generator.
const CHUNK_ROWS: usize = 32;

/// The side of a product that a tensor is on, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandSide {
    Left,
    Right(usize),
}

/// One of a group's random streams.
#[derive(Clone, Copy, Debug)]
enum RandomStream {
    Levels = 0,
    Left = 1,
    FirstRight = 2,
    SecondRight = 3,
    KindsOfLeft = 4,
    KindsOfRight = 5,
}

impl OperandSide {
    fn stream(self) -> RandomStream {
        match self {
            Self::Left => RandomStream::Left,
            Self::Right(0) => RandomStream::FirstRight,
            Self::Right(_) => RandomStream::SecondRight,
        }
    }

    fn kinds(self) -> RandomStream {
        match self {
            Self::Left => RandomStream::KindsOfLeft,
            Self::Right(_) => RandomStream::KindsOfRight,
        }
    }
}

/// Draws the operands of one group.
pub(super) struct OperandDraw {
    seed: u64,
    group: usize,
    distribution: Distribution,
    /// For each block of 16 along K, the exponent around which A's scales lie; B's lie around
    /// [`LEVEL`] minus that. With scales over 18 binades on both sides, most products would leave
    /// fp16 unless large ones are paired with small ones.
    levels: Vec<i32>,
    /// A block where A's scales are the largest, and one where B's are.
    high: usize,
    low: usize,
    /// Where rows of A, and of B, are padding together: see [`kind`].
    runs: [[u32; 2]; 2],
    /// The first row and the first block that have a NaN: see [`kind`].
    nans: [u32; 2],
    /// The first row with the largest scale: see [`kind`].
    top_row: u32,
}

/// Exponent of the product of two paired scales.
const LEVEL: i32 = -8;
/// If one side's exponent is within this of [`LEVEL`], the other may peak.
const PEAK_REACH: i32 = 1;
/// Of 256 blocks of a row this many are peaks, where allowed, and as many have a tiny scale.
const SELDOM: u32 = 8;
const TWICE_SELDOM: u32 = 2 * SELDOM;

/// Uniform in [0, 1) by 16 random bits, as e4m3.
static UNIFORM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..=u16::MAX)
        .map(|u| encode_e4m3(f64::from(u) / 65536.0))
        .collect()
});

impl OperandDraw {
    pub(super) fn new(seed: u64, group: usize, columns: usize, distribution: Distribution) -> Self {
        let blocks = columns / SCALE_BLOCK;
        let mut draw = Self {
            seed,
            group,
            distribution,
            levels: Vec::new(),
            high: 0,
            low: 0,
            runs: [[0; 2]; 2],
            nans: [0; 2],
            top_row: 0,
        };
        let mut rng = draw.rng(RandomStream::Levels, 0);
        let exponents = LEVEL.unsigned_abs() + 1;
        let mut level = || LEVEL + (rng.next_u32() % exponents) as i32;
        draw.levels = (0..blocks).map(|_| level()).collect();
        // Even the shortest K contains the top binades on both sides.
        draw.high = rng.next_u32() as usize % blocks;
        draw.low = (draw.high + 1 + rng.next_u32() as usize % (blocks - 1).max(1)) % blocks;
        draw.runs = [[(); 2]; 2].map(|run| run.map(|()| rng.next_u32()));
        draw.nans = [(); 2].map(|()| rng.next_u32());
        draw.top_row = rng.next_u32();
        draw.levels[draw.low] = LEVEL;
        draw.levels[draw.high] = 0;
        draw
    }

    fn rng(&self, stream: RandomStream, chunk: usize) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&(self.group as u64).to_le_bytes());
        key[16] = self.distribution as u8;
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream((stream as u64) << 48 | chunk as u64);
        rng
    }

    /// Packed elements and row-major scales of a tensor of `rows` × `columns`.
    pub(super) fn tensor(
        &self,
        side: OperandSide,
        rows: usize,
        columns: usize,
    ) -> (Vec<u8>, Vec<u8>) {
        let (width, scale_width) = (columns / 2, columns / SCALE_BLOCK);
        let mut elements = vec![0; rows * width];
        let mut scales = vec![0; rows * scale_width];
        elements
            .par_chunks_mut(CHUNK_ROWS * width)
            .zip(scales.par_chunks_mut(CHUNK_ROWS * scale_width))
            .enumerate()
            .for_each(|(chunk, (elements, scales))| {
                let mut rng = self.rng(side.stream(), chunk);
                if self.distribution == Distribution::Benchmark {
                    return benchmark(&mut rng, elements, scales);
                }
                // B1 and B2 draw the same: some columns of C need both.
                let mut kinds = self.rng(side.kinds(), chunk);
                let lines = elements.chunks_mut(width);
                for (place, (row, scales)) in lines.zip(scales.chunks_mut(scale_width)).enumerate()
                {
                    let index = chunk * CHUNK_ROWS + place;
                    let kind = self.kind(side, rows, index, kinds.next_u64());
                    self.full_row(&mut rng, side, row, scales);
                    self.alter(&mut rng, side, kind, row, scales);
                }
            });
        (elements, scales)
    }

    fn full_row(&self, rng: &mut ChaCha8Rng, side: OperandSide, row: &mut [u8], scales: &mut [u8]) {
        rng.fill_bytes(row);
        let blocks = row.chunks_mut(SCALE_BLOCK / 2).zip(scales);
        for ((elements, scale), e) in blocks.zip(&self.levels) {
            let random = rng.next_u32();
            let own = match side {
                OperandSide::Left => *e,
                OperandSide::Right(_) => LEVEL - e,
            };
            // Each scale is independent of its neighbours.
            *scale = match random >> 24 {
                0..SELDOM if own >= -PEAK_REACH => {
                    only_one(elements, random >> 16);
                    peak_scale(random)
                }
                SELDOM..TWICE_SELDOM => tiny_scale(random),
                _ => level_scale(own, random),
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

/// Clears all elements of a block but one.
fn only_one(elements: &mut [u8], random: u32) {
    let kept = random as usize % SCALE_BLOCK;
    for (i, byte) in elements.iter_mut().enumerate() {
        *byte &= match (kept / 2 == i, kept % 2) {
            (false, _) => 0,
            (true, 0) => 0x0f,
            (true, _) => 0xf0,
        };
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
