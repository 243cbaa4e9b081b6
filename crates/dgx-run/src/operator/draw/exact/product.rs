//! Operands of `@`. What is summed over is cut into thirds. The left operand
//! repeats itself in each; the right has x, y and z with x + y + z = 0, but 1
//! at eight places of each column. The sum grows through the first third, and
//! at the end eight terms are left.

use dgx_core::operator::ElementType;
use rayon::prelude::*;

use super::{ExactData, below, bits, fits, plain, sign};
use crate::operator::format::{encode, pack};

/// One operand: its input, and the axis that is summed over (from the end).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductOperand {
    pub input: usize,
    pub axis: usize,
    pub role: OperandRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandRole {
    Repeated,
    Cancelling,
}

/// Places of a column where the three parts leave a remainder.
const LEFT_OVER: usize = 8;
/// Approximate sum of the first third, in units.
const REACH: f64 = 1_048_576.0;
/// The same for fp8, whose products Hopper adds with fewer bits.
const REACH_FP8: f64 = 8192.0;
/// The reach of f32 operands with wide numbers.
const WIDE_REACH: usize = 1365;
/// Scales of three bits, none a power of two.
const SCALES: [f64; 3] = [1.25, 1.5, 1.75];

/// Only i8 has a number without a negative: one of this many places has it.
pub(super) const LEAST: f64 = -128.0;
const SELDOM: usize = 32;

/// How a line along the sum is filled.
struct LineFill {
    element: ElementType,
    third: usize,
    /// Elements that share a scale, or 1.
    block: usize,
    /// Largest number of the left operand, and of x.
    most: [usize; 2],
    /// For all tensors of the problem, and for this one.
    seeds: [u64; 2],
    /// Whether [`LEAST`] is among the numbers.
    least: bool,
}

/// Whether sums of this length can be cut in thirds and stay exact.
pub(super) fn has_data(element: ElementType, length: u64) -> bool {
    let block = element.scale().map_or(1, |scale| scale.block);
    (3 * block..=super::recipe::LONGEST).contains(&length)
}

/// A tensor. `seeds` are the problem's and its own; `least` says whether its range includes
/// [`LEAST`]. `None` if the sum is too short to be cut.
pub(super) fn draw(
    element: ElementType,
    extents: &[usize],
    side: &ProductOperand,
    seeds: [u64; 2],
    least: bool,
) -> Option<ExactData> {
    let axis = extents.len() - 1 - side.axis;
    let (length, inner) = (extents[axis], extents[axis + 1..].iter().product::<usize>());
    let block = element.scale().map_or(1, |scale| scale.block as usize);
    let third = length / block / 3 * block;
    if third == 0 {
        return None;
    }
    let line = LineFill {
        element,
        third,
        block,
        most: largest(element, third),
        seeds,
        least: least && element == ElementType::I8,
    };
    let count = extents.iter().product::<usize>() / length;
    let mut numbers = vec![0.0; count * length];
    let lines = numbers.par_chunks_mut(length * inner).enumerate();
    lines.for_each(|(outer, numbers)| {
        for own in 0..inner {
            let values = match side.role {
                OperandRole::Repeated => line.repeated(outer * inner + own, length),
                OperandRole::Cancelling => line.cancelling(outer * inner + own, length),
            };
            for (place, value) in values.into_iter().enumerate() {
                numbers[own + place * inner] = value;
            }
        }
    });
    if block == 1 {
        return Some(plain(element, &numbers, extents));
    }
    let owners = (0..count).into_par_iter();
    let scales = owners.flat_map_iter(|own| line.scales(own, length));
    Some(ExactData {
        elements: pack(element.element(), &numbers, length),
        scales: scales.collect(),
    })
}

/// The largest number of the left operand, and of x.
fn largest(element: ElementType, third: usize) -> [usize; 2] {
    use ElementType::*;
    let reach = |left: usize, reach: f64, most: usize| {
        let mean = (left as f64 + 1.0) / 2.0;
        let x = 2.0 * reach / (third as f64 * mean);
        [left, (x as usize).clamp(3, most)]
    };
    match element {
        E2m1 | Nvfp4 | Mxfp4 => [4, 6],
        E4m3 | E5m2 | Mxfp8 => reach(2, REACH_FP8, 7),
        F32 | F64 => [1, 8],
        I8 | U8 => reach(8, REACH, 60),
        Bf16 => reach(8, REACH, 120),
        _ => reach(8, REACH, 1000),
    }
}

impl LineFill {
    /// The sign of a place is the same in both operands, so that the first third only grows.
    fn sign(&self, place: usize) -> f64 {
        sign(self.seeds[0], [place, 2, 0])
    }

    /// One of the type's whole numbers up to `most`, not 0.
    fn number(&self, place: [usize; 3], most: usize) -> f64 {
        let first = 1 + below(self.seeds[1], place, most);
        let mut tried = first..=most;
        let found = tried.find(|n| fits(self.element.element(), *n as f64));
        found.unwrap_or(1) as f64
    }

    fn repeated(&self, own: usize, length: usize) -> Vec<f64> {
        let of_place = |place: usize| {
            let within = match place / self.third {
                0..3 => place % self.third,
                // Pairs of equal numbers: the terms after the thirds cancel each other.
                _ => 3 * self.third + (place - 3 * self.third) / 2,
            };
            let sign = self.sign(within);
            match sign < 0.0 && self.is_least(own, within) {
                true => LEAST,
                false => sign * self.number([own, within, 0], self.most[0]),
            }
        };
        (0..length).map(of_place).collect()
    }

    fn cancelling(&self, own: usize, length: usize) -> Vec<f64> {
        let mut line = vec![0.0; length];
        let step = self.third.div_ceil(LEFT_OVER);
        for place in 0..self.third {
            let run = place / step;
            let chosen = run * step + below(self.seeds[1], [own, run, 3], step);
            let left_over = f64::from(u8::from(place == chosen));
            let flip = sign(self.seeds[1], [own, place, 5]);
            let rest = left_over * flip;
            for (part, number) in self.three(own, place, rest).into_iter().enumerate() {
                line[part * self.third + place] = self.sign(place) * number;
            }
        }
        for (pair, numbers) in line[3 * self.third..].chunks_mut(2).enumerate() {
            let number = self.number([own, pair, 6], 2);
            for (to, sign) in numbers.iter_mut().zip([1.0, -1.0]) {
                *to = sign * number;
            }
        }
        line
    }

    /// x, y and z of the type, none of them 0, whose sum is `rest`.
    fn three(&self, own: usize, place: usize, rest: f64) -> [f64; 3] {
        let element = self.element.element();
        if self.is_wide(place) {
            let x = 4097.0 + 2.0 * below(self.seeds[1], [own, place, 7], 2048) as f64;
            let y = sign(self.seeds[1], [own, place, 8]);
            return [x, y, rest - x - y];
        }
        if self.is_least(own, place) {
            return match self.sign(place) < 0.0 {
                true => [-LEAST, LEAST / 2.0, rest + LEAST / 2.0],
                false => [-LEAST / 2.0, rest - LEAST / 2.0, LEAST],
            };
        }
        for attempt in 0.. {
            let random = bits(self.seeds[1], [own, place, 16 + attempt]) as usize;
            let x = (1 + random % self.most[1]) as f64;
            let half = self.most[1] / 2 + 1;
            let y =
                (1 + (random >> 20) % half) as f64 * if random >> 40 & 1 == 0 { 1.0 } else { -1.0 };
            let z = rest - x - y;
            if [x, y, z].iter().all(|n| *n != 0.0 && fits(element, *n)) {
                return [x, y, z];
            }
        }
        unreachable!("1, 1 and −2, or with ±1 left over 2, −2 and ±1, are of every type")
    }

    /// Whether a place has [`LEAST`].
    fn is_least(&self, own: usize, place: usize) -> bool {
        self.least && below(self.seeds[1], [own, place, 11], SELDOM) == 0
    }

    /// Whether a place has numbers of 13 bits, which TF32 rounds: as many as the sum allows.
    fn is_wide(&self, place: usize) -> bool {
        let wide = matches!(self.element, ElementType::F32 | ElementType::F64);
        wide && below(self.seeds[0], [place, 9, 0], self.third) < WIDE_REACH
    }

    /// Scales of one line, the same in each third.
    fn scales(&self, own: usize, length: usize) -> Vec<u8> {
        let scale = self.element.scale().expect("a block has one");
        let thirds = self.third / self.block;
        let of_block = |block: usize| {
            let within = if block < 3 * thirds {
                block % thirds
            } else {
                block
            };
            let choice = below(self.seeds[1], [own, within, 10], 3);
            let value = match scale.element {
                ElementType::E4m3 => SCALES[choice],
                _ if self.element == ElementType::Mxfp4 => [1.0, 2.0, 1.0][choice],
                _ => 1.0,
            };
            encode(scale.element, value) as u8
        };
        (0..length.div_ceil(self.block)).map(of_block).collect()
    }
}
