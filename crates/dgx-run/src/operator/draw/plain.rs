//! Random data of any type, tensor by tensor: for operators with independent operands.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;

use super::CHUNK_ROWS;
use crate::operator::{
    Tensor,
    format::{decode, encode},
};
use dgx_core::domain::Distribution;
use dgx_core::operator::{ElementType, Number, Op, Operator};

/// Separates these streams from those of products.
const FIRST_STREAM: u64 = 16;
/// One of this many rows is zero, except in `benchmark`; and one of this many slices of the leading
/// axes.
const EMPTY: u32 = 16;
/// With this many slices, at least one is zero.
const SLICES: usize = 3;
/// The stream of a tensor that decides which slices are zero.
const SLICE_STREAM: usize = (1 << 48) - 1;
/// Exponents of `full`: squares and their sums along a row stay finite in fp16.
const BINADES: i32 = 6;
/// The same for operands of a product that is the result.
const PRODUCT_BINADES: i32 = 4;

/// A nearly constant row: its mean is some thousand times its deviation, so a variance computed as
/// the difference of two means has no digits left in f32. The step is one of bf16.
const LEVEL: f64 = 15.4375;
const STEP: f64 = 0.0625;

/// The distance of whole rows from zero: beyond the range of any exponential in f32, and in 16 bits
/// beyond a thousand, from which some maxima start.
const FAR: f64 = 2000.0;
const FAR_F32: f64 = 120.0;
/// The spread of typical logits.
const SPREAD: f64 = 8.0;
/// Beyond fp16 and far below its lowest number, as magnitudes.
const LARGE: f64 = (1 << 20) as f64;
/// Below the normal numbers of fp16.
const SUBNORMAL: f64 = 1.0 / (1 << 14) as f64;
/// Exponents of unusual e8m0 scales stay below this.
const FAR_SCALE: i32 = 20;

/// Smaller constants of an operator may matter only for small data.
const SMALL_CONSTANT: f64 = 0.0625;

/// The source of a tensor's data.
pub(crate) struct DataSource<'a> {
    pub seed: u64,
    pub group: usize,
    /// Index among the inputs.
    pub tensor: usize,
    pub distribution: Distribution,
    /// Minimum and maximum, if the operator gives them.
    pub range: Option<(f64, f64)>,
    /// Magnitudes of data for which the operator's small constants matter.
    pub quiet: &'a [f64],
    pub sums: SumKind,
}

/// The kind of sums in an operator, which limits its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumKind {
    /// Nothing, or elements of one tensor.
    Elements,
    /// Products that are the result.
    Result,
    /// Products that are used further: an exponential of a large one has no digits left.
    Products,
}

impl SumKind {
    pub(crate) fn of(operator: &Operator) -> Self {
        let outputs = operator.outputs.iter();
        let mut nodes = outputs.flat_map(|output| &output.value.nodes);
        match operator.product() {
            Some(_) => Self::Result,
            None if nodes.any(|node| node.op == Op::MatMul) => Self::Products,
            None => Self::Elements,
        }
    }

    /// Exponents of `full` are between this and its negative.
    fn binades(self) -> i32 {
        match self {
            Self::Result => PRODUCT_BINADES,
            Self::Elements | Self::Products => BINADES,
        }
    }
}

/// Magnitudes of data for which the constants of an operator matter: an epsilon is added to
/// squares, or to values that are not squared.
pub(crate) fn quiet(constants: &[(String, f64)]) -> Vec<f64> {
    let small = constants.iter().map(|(_, value)| value.abs());
    let small = small.filter(|value| (f64::MIN_POSITIVE..SMALL_CONSTANT).contains(value));
    small.flat_map(|value| [value.sqrt(), value]).collect()
}

fn plain_real(element: ElementType) -> bool {
    element.number() == Number::Real && element.scale().is_none()
}

/// Slices of this many rows, and the magnitude of the elements of each.
struct Slices {
    rows: usize,
    sizes: Vec<SliceMagnitude>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SliceMagnitude {
    Ordinary,
    Zero,
    /// At most this.
    Quiet(f64),
}

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RowPattern {
    Ordinary,
    Zero,
    Ones,
    Level,
    /// Far from zero: a softmax must subtract its maximum.
    Far(f64),
    /// Between rows of equal elements and rows in which one element dominates.
    Spread,
    /// Zeros except for the largest element, and one a step below it.
    Peak(PeakEnd),
    /// Beyond fp16, or every code of a short type.
    Large,
    /// Below the normal numbers of fp16.
    Small,
    /// With a NaN among codes, or scales.
    Nan,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum PeakEnd {
    First,
    Last,
}

const KINDS: [RowPattern; 16] = [
    RowPattern::Zero,
    RowPattern::Ordinary,
    RowPattern::Ones,
    RowPattern::Far(1.0),
    RowPattern::Ordinary,
    RowPattern::Spread,
    RowPattern::Peak(PeakEnd::Last),
    RowPattern::Ordinary,
    RowPattern::Level,
    RowPattern::Far(-1.0),
    RowPattern::Large,
    RowPattern::Ordinary,
    RowPattern::Peak(PeakEnd::First),
    RowPattern::Small,
    RowPattern::Spread,
    RowPattern::Nan,
];

/// The kinds of a tensor's rows.
enum RowPatterns {
    Ordinary,
    /// A single row gets the simplest kind.
    Drawn,
    /// Of sixteen rows every kind occurs.
    InTurn {
        first: usize,
    },
}

impl RowPatterns {
    fn of(&self, row: usize, rng: &mut ChaCha8Rng) -> RowPattern {
        match self {
            Self::Ordinary => RowPattern::Ordinary,
            Self::Drawn => match rng.next_u32() % EMPTY {
                0 => RowPattern::Zero,
                1 => RowPattern::Ones,
                2 => RowPattern::Level,
                _ => RowPattern::Ordinary,
            },
            Self::InTurn { first } => KINDS[first.wrapping_add(row) % KINDS.len()],
        }
    }
}

impl DataSource<'_> {
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
        let slices = self.slices(element, &tensor.extents);
        let kinds = self.kinds(rows);
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
                for (place, row) in elements.chunks_mut(width).enumerate() {
                    let number = chunk * CHUNK_ROWS + place;
                    let kind = kinds.of(number, &mut rng);
                    self.row(&mut rng, element, kind, row);
                    for slices in &slices {
                        match slices.sizes[number / slices.rows] {
                            SliceMagnitude::Ordinary => {}
                            SliceMagnitude::Zero => row.fill(0),
                            SliceMagnitude::Quiet(most) => self.words(element, row, || {
                                encode(element, most * (2.0 * unit(&mut rng) - 1.0))
                            }),
                        }
                    }
                }
                for scale in scales.iter_mut() {
                    *scale = self.scale(&mut rng, element);
                }
                for (place, row) in scales.chunks_mut(scale_width.max(1)).enumerate() {
                    let kind = kinds.of(chunk * CHUNK_ROWS + place, &mut rng);
                    self.odd_scales(&mut rng, element, kind, row);
                }
            });
        self.ends(tensor);
    }

    /// Unusual scales, in `corner`.
    fn odd_scales(
        &self,
        rng: &mut ChaCha8Rng,
        element: ElementType,
        kind: RowPattern,
        scales: &mut [u8],
    ) {
        let Some(scale) = element.scale() else {
            return;
        };
        if self.distribution != Distribution::Corner {
            return;
        }
        match kind {
            RowPattern::Nan => {
                let place = rng.next_u32() as usize % scales.len();
                scales[place] = encode(scale.element, f64::NAN) as u8;
            }
            RowPattern::Large | RowPattern::Small if scale.element == ElementType::E8m0 => {
                let sign = if kind == RowPattern::Large { 1 } else { -1 };
                for scale in scales {
                    let exponent = sign * (rng.next_u32() as i32 % FAR_SCALE).abs();
                    *scale = encode(ElementType::E8m0, 2f64.powi(exponent)) as u8;
                }
            }
            _ => {}
        }
    }

    /// Whether there are zeros and equal values among the data.
    fn uneven(&self) -> bool {
        self.distribution != Distribution::Benchmark && self.range.is_none()
    }

    fn kinds(&self, rows: usize) -> RowPatterns {
        let first = self.rng(SLICE_STREAM - 2).next_u32() as usize;
        match self.uneven() {
            false => RowPatterns::Ordinary,
            true if rows > 1 => RowPatterns::InTurn { first },
            true => RowPatterns::Drawn,
        }
    }

    /// Slices for every number of leading axes: a sum over the others reads only one of them. Some
    /// of those with several rows are zero; some of all are so small that the operator's constants
    /// matter.
    fn slices(&self, element: ElementType, extents: &[usize]) -> Vec<Slices> {
        let mut rng = self.rng(SLICE_STREAM);
        let leading = &extents[..extents.len().saturating_sub(1)];
        let rows: usize = leading.iter().product();
        let quiet = if plain_real(element) { self.quiet } else { &[] };
        let mut found = Vec::new();
        for axes in (1..=leading.len()).filter(|_| self.uneven()) {
            let count: usize = leading[..axes].iter().product();
            let mut sizes = vec![SliceMagnitude::Ordinary; count];
            let mut one = 0;
            if axes < leading.len() && count > 1 && rows / count > 1 {
                for size in &mut sizes {
                    if rng.next_u32().is_multiple_of(EMPTY) {
                        *size = SliceMagnitude::Zero;
                    }
                }
                one = rng.next_u32() as usize % count;
                if count >= SLICES {
                    sizes[one] = SliceMagnitude::Zero;
                }
            }
            self.choose_small_slices(quiet, one, &mut sizes);
            found.push(Slices {
                rows: (rows / count).max(1),
                sizes,
            });
        }
        found
    }

    /// Makes a slice quiet for each magnitude, those after `one`; if there are too few for that,
    /// one, in data that have no other purpose.
    fn choose_small_slices(&self, quiet: &[f64], one: usize, sizes: &mut [SliceMagnitude]) {
        let count = sizes.len();
        let wanted = match count {
            SLICES.. => quiet.len().min(count - 2),
            _ => usize::from(self.distribution != Distribution::Full).min(quiet.len()),
        };
        for (nth, magnitude) in quiet[..wanted].iter().enumerate() {
            sizes[(one + 1 + nth) % count] = SliceMagnitude::Quiet(*magnitude);
        }
    }

    fn row(&self, rng: &mut ChaCha8Rng, element: ElementType, kind: RowPattern, row: &mut [u8]) {
        let columns = row.len() * 8 / element.bits() as usize;
        let even = |rng: &mut ChaCha8Rng| 2.0 * unit(rng) - 1.0;
        let has_range = element.limits().1 > LARGE;
        match kind {
            RowPattern::Zero => row.fill(0),
            // The mean of this many equal values is exact in any order of summation.
            RowPattern::Ones if columns.is_power_of_two() => {
                let one = encode(element.element(), 1.0);
                self.words(element, row, || one);
            }
            RowPattern::Level if plain_real(element) => self.words(element, row, || {
                let up = rng.next_u32().is_multiple_of(EMPTY);
                encode(element, if up { LEVEL + STEP } else { LEVEL })
            }),
            RowPattern::Far(sign) if self.is_wide(element) && self.sums == SumKind::Elements => {
                let far = match element {
                    ElementType::F16 | ElementType::Bf16 => FAR,
                    _ => FAR_F32,
                };
                self.words(element, row, || {
                    encode(element, sign * far + SPREAD * even(rng))
                });
            }
            RowPattern::Spread if self.is_wide(element) => {
                self.words(element, row, || encode(element, SPREAD / 2.0 * even(rng)));
            }
            RowPattern::Peak(place) if self.is_wide(element) && columns > 1 => {
                let place = match place {
                    PeakEnd::First => 0,
                    PeakEnd::Last => columns - 1,
                };
                let next = 2.0 * element.unit_roundoff();
                let mut at = 0;
                self.words(element, row, || {
                    let value = match at {
                        _ if at == place => SPREAD,
                        _ if at == columns / 2 => SPREAD * (1.0 - next),
                        _ => 0.0,
                    };
                    at += 1;
                    encode(element, value)
                });
            }
            RowPattern::Large if self.distribution != Distribution::Full => match element {
                _ if self.is_wide(element) && has_range && self.sums != SumKind::Products => {
                    self.words(element, row, || encode(element, LARGE * even(rng)));
                }
                ElementType::E4m3 | ElementType::E5m2 => self.codes(rng, element, row),
                _ => self.words(element, row, || self.bits(rng, element)),
            },
            RowPattern::Large if element == ElementType::E4m3 => self.codes(rng, element, row),
            RowPattern::Small if self.is_wide(element) => {
                let small = if has_range { 1.0 / LARGE } else { SUBNORMAL };
                self.words(element, row, || encode(element, small * even(rng)));
            }
            RowPattern::Nan if matches!(element, ElementType::E4m3 | ElementType::E5m2) => {
                self.words(element, row, || self.bits(rng, element));
                if self.distribution != Distribution::Full {
                    row[rng.next_u32() as usize % columns] = encode(element, f64::NAN) as u8;
                }
            }
            _ => self.words(element, row, || self.bits(rng, element)),
        }
    }

    /// A float of 16 bits or more.
    fn is_wide(&self, element: ElementType) -> bool {
        plain_real(element) && element.bits() >= 16
    }

    /// Every number of a type of 8 bits.
    fn codes(&self, rng: &mut ChaCha8Rng, element: ElementType, row: &mut [u8]) {
        for code in row {
            let mut next = || rng.next_u32() as u8;
            *code = next();
            while !decode(element, u64::from(*code)).is_finite() {
                *code = next();
            }
        }
    }

    /// If there is a range, its ends are among the data.
    fn ends(&self, tensor: &mut Tensor) {
        let bytes = tensor.element.bits() as usize / 8;
        let Some((low, high)) = self.range.filter(|_| bytes > 0) else {
            return;
        };
        let count = tensor.elements.len() / bytes;
        let mut rng = self.rng(SLICE_STREAM - 1);
        let first = rng.next_u32() as usize % count.max(1);
        for (place, value) in [(first, low), ((first + count / 2) % count.max(1), high)] {
            if let Some(word) = tensor.elements.chunks_exact_mut(bytes).nth(place) {
                let code = encode(tensor.element, value).to_le_bytes();
                word.copy_from_slice(&code[..bytes]);
            }
        }
    }

    fn words(&self, element: ElementType, row: &mut [u8], mut next: impl FnMut() -> u64) {
        match element.bits() {
            4 => {
                for byte in row {
                    let [low, high] = [(); 2].map(|()| next() as u8);
                    *byte = low | high << 4;
                }
            }
            bits => {
                for word in row.chunks_exact_mut(bits as usize / 8) {
                    let code = next().to_le_bytes();
                    word.copy_from_slice(&code[..word.len()]);
                }
            }
        }
    }

    fn bits(&self, rng: &mut ChaCha8Rng, element: ElementType) -> u64 {
        let element = element.element();
        let unit = unit(rng);
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
                let exponent =
                    (word >> 1) as i32 % (2 * self.sums.binades() + 1) - self.sums.binades();
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

/// Uniform in [0, 1).
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32()) / 2f64.powi(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::{GroupOperands, decode};
    use dgx_core::domain::Group;
    use dgx_core::operator::named;

    fn drawn(distribution: Distribution, extents: &[usize]) -> Vec<f64> {
        let mut tensor = Tensor {
            name: "x".to_owned(),
            element: ElementType::F32,
            extents: extents.to_vec(),
            elements: vec![0; 4 * extents.iter().product::<usize>()],
            scales: Vec::new(),
        };
        let source = DataSource {
            seed: 1,
            group: 0,
            tensor: 0,
            distribution,
            range: None,
            quiet: &[],
            sums: SumKind::Elements,
        };
        source.fill(&mut tensor);
        let words = tensor.elements.as_chunks::<4>().0.iter();
        let value = |word: &[u8; 4]| decode(ElementType::F32, u32::from_le_bytes(*word).into());
        words.map(value).collect()
    }

    /// A norm over two axes meets a group of zeros, like one over the last axis a row of them.
    #[test]
    fn slices_of_leading_axes_are_zero_and_rows_constant_or_nearly() {
        let zero = |values: &[f64]| values.iter().all(|value| *value == 0.0);
        let extents = [2, 16, 3, 32];
        let full = drawn(Distribution::Full, &extents);
        let groups: Vec<bool> = full.chunks(3 * 32).map(zero).collect();
        let empty = groups.iter().filter(|empty| **empty).count();
        assert!((1..16).contains(&empty), "{empty}");
        let ones = full.chunks(32).filter(|row| row.iter().all(|v| *v == 1.0));
        assert!(ones.count() > 0);
        let level = |row: &[f64]| row.iter().all(|v| [LEVEL, LEVEL + STEP].contains(v));
        assert!(full.chunks(32).any(level));
        let tame = drawn(Distribution::Benchmark, &extents);
        assert!(!tame.chunks(32).any(zero));
        // Of three groups one is empty.
        let few = drawn(Distribution::Corner, &[1, 3, 5, 77]);
        assert!(few.chunks(5 * 77).any(zero));
    }

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
