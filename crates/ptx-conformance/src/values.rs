//! Deterministic operand values: the edges of each type, cross products, dense samples.

use half::{bf16, f16};

use crate::numbers::pack_bits;

/// Operand types, by the values worth trying and the bytes they take in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Ty {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F64,
    F16x2,
    Bf16x2,
    U16x2,
    S16x2,
}

impl Ty {
    /// Bytes in memory.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }

    /// The untyped register that holds it (8-bit values live in 16-bit registers).
    pub(crate) fn register(self) -> &'static str {
        match self.bytes() {
            1 | 2 => ".b16",
            4 => ".b32",
            _ => ".b64",
        }
    }

    /// The type suffix of a load or store of it.
    pub(crate) fn access(self) -> &'static str {
        match self.bytes() {
            1 => "u8",
            2 => "b16",
            4 => "b32",
            _ => "b64",
        }
    }

    /// The edges of the type: where rounding, sign, overflow, flushing and NaN rules show.
    pub(crate) fn edges(self) -> Vec<u64> {
        match self {
            Self::U8 | Self::S8 => {
                vec![0, 1, 2, 7, 31, 32, 0x55, 0x7f, 0x80, 0x81, 0xaa, 0xfe, 0xff]
            }
            Self::U16 | Self::S16 => integer_edges(16),
            Self::U32 | Self::S32 => integer_edges(32),
            Self::U64 | Self::S64 => integer_edges(64),
            Self::F16 => float_edges(5, 10),
            Self::Bf16 => float_edges(8, 7),
            Self::F32 => float_edges(8, 23),
            Self::F64 => float_edges(11, 52),
            Self::F16x2 => paired(&float_edges(5, 10)),
            Self::Bf16x2 => paired(&float_edges(8, 7)),
            Self::U16x2 | Self::S16x2 => paired(&integer_edges(16)),
        }
    }

    /// A shorter list for three-operand cross products.
    pub(crate) fn few_edges(self) -> Vec<u64> {
        match self {
            Self::U16 | Self::S16 => few_integer_edges(16),
            Self::U32 | Self::S32 => few_integer_edges(32),
            Self::U64 | Self::S64 => few_integer_edges(64),
            Self::F16 => few_float_edges(5, 10),
            Self::Bf16 => few_float_edges(8, 7),
            Self::F32 => few_float_edges(8, 23),
            Self::F64 => few_float_edges(11, 52),
            Self::F16x2 => paired(&few_float_edges(5, 10)),
            Self::Bf16x2 => paired(&few_float_edges(8, 7)),
            Self::U16x2 | Self::S16x2 => paired(&few_integer_edges(16)),
            Self::U8 | Self::S8 => self.edges(),
        }
    }

    /// `count` values with uniformly random bits.
    pub(crate) fn random(self, seed: u64, count: usize) -> Vec<u64> {
        let mut rng = SplitMix(seed);
        (0..count)
            .map(|_| rng.next() & mask(self.bytes() as u32 * 8))
            .collect()
    }

    /// Little-endian bytes of the values.
    pub(crate) fn pack(self, values: &[u64]) -> Vec<u8> {
        pack_bits(values, 8 * self.bytes())
    }
}

/// A small deterministic generator (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct SplitMix(pub u64);

impl SplitMix {
    /// The next 64 random bits.
    #[allow(clippy::should_implement_trait)]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A value below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A float in [-1, 1).
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

fn mask(bits: u32) -> u64 {
    if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

fn integer_edges(bits: u32) -> Vec<u64> {
    let top = 1u64 << (bits - 1);
    let all = mask(bits);
    let mut edges = vec![0, 1, 2, 3, 5, 7, 100, 255, 256];
    edges.extend([bits as u64 - 1, bits as u64, bits as u64 + 1]);
    edges.extend([top - 1, top, top + 1, all - 99, all - 2, all - 1, all]);
    edges.extend([0x5555_5555_5555_5555 & all, 0xdead_beef_1234_9abc & all]);
    edges
}

fn few_integer_edges(bits: u32) -> Vec<u64> {
    let top = 1u64 << (bits - 1);
    let all = mask(bits);
    vec![
        0,
        1,
        3,
        255,
        top - 1,
        top,
        all - 4,
        all,
        0xdead_beef_1234_9abc & all,
    ]
}

fn float_edges(exponent: u32, mantissa: u32) -> Vec<u64> {
    let sign = 1u64 << (exponent + mantissa);
    let one = ((1u64 << (exponent - 1)) - 1) << mantissa;
    let ulp_of_exponent = 1u64 << mantissa;
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let mut positive = vec![
        0,
        1,                   // least subnormal
        ulp_of_exponent - 1, // greatest subnormal
        ulp_of_exponent,     // least normal
        ulp_of_exponent + 1,
        one - ulp_of_exponent, // 0.5
        one - 1,               // just below one
        one,
        one + 1,                                        // just above one
        one + ulp_of_exponent,                          // 2
        one + ulp_of_exponent + (ulp_of_exponent >> 1), // 3
        one + 3 * ulp_of_exponent + 5,                  // a little over 8
        one - mantissa as u64 * ulp_of_exponent,        // half an ulp of one, about
        one - (mantissa as u64 + 1) * ulp_of_exponent,
        one + ((mantissa as u64) << mantissa) + 1,
        infinity - 1, // greatest finite
        infinity,
        infinity | (ulp_of_exponent >> 1), // quiet NaN
        infinity | 1,                      // signalling NaN
    ];
    // Formats with few exponents reach a negative field above; those wrap and are dropped.
    positive.retain(|&v| v < sign);
    let negative: Vec<u64> = positive.iter().map(|v| v | sign).collect();
    positive.extend(negative);
    positive.push(sign | infinity | (ulp_of_exponent >> 1) | 3);
    positive
}

fn few_float_edges(exponent: u32, mantissa: u32) -> Vec<u64> {
    let sign = 1u64 << (exponent + mantissa);
    let one = ((1u64 << (exponent - 1)) - 1) << mantissa;
    let unit = 1u64 << mantissa;
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let positive = [
        0,
        1,
        unit - 1,
        unit,
        one,
        one + 1,
        one + unit + 3,
        infinity - 1,
        infinity,
        infinity | 1,
    ];
    positive
        .iter()
        .copied()
        .chain(positive.iter().map(|v| v | sign))
        .collect()
}

/// Two-lane words in which each edge meets its neighbours.
fn paired(edges: &[u64]) -> Vec<u64> {
    let n = edges.len();
    (0..n)
        .map(|i| edges[i] | edges[(i * 7 + 3) % n] << 16)
        .collect()
}

/// Every pair of `a` and `b`, as two parallel operand lists.
pub(crate) fn cross2(a: &[u64], b: &[u64]) -> [Vec<u64>; 2] {
    let first = a
        .iter()
        .flat_map(|&x| std::iter::repeat_n(x, b.len()))
        .collect();
    let second = a.iter().flat_map(|_| b.iter().copied()).collect();
    [first, second]
}

/// Every triple of `a`, `b` and `c`, as three parallel operand lists.
pub(crate) fn cross3(a: &[u64], b: &[u64], c: &[u64]) -> [Vec<u64>; 3] {
    let [ab, ba] = cross2(a, b);
    let index: Vec<u64> = (0..ab.len() as u64).collect();
    let [pairs, third] = cross2(&index, c);
    let pick = |list: &[u64]| pairs.iter().map(|&i| list[i as usize]).collect();
    [pick(&ab), pick(&ba), third]
}

/// All 16-bit patterns.
pub(crate) fn all16() -> Vec<u64> {
    (0..1 << 16).collect()
}

/// All 8-bit patterns in both lanes of a 16-bit word.
pub(crate) fn all8x2() -> Vec<u64> {
    (0..256).map(|v| v | (255 - v) << 8).collect()
}

/// f32 bits over all exponents: several mantissas in each binade, both signs, and the edges.
pub(crate) fn dense_f32() -> Vec<u64> {
    let mut rng = SplitMix(32);
    let mut values = Ty::F32.edges();
    for exponent in 0..256u64 {
        for _ in 0..8 {
            let bits = exponent << 23 | rng.below(1 << 23);
            values.extend([bits, bits | 1 << 31]);
        }
    }
    values
}

/// f64 bits near the exponents that narrower types and integers can hold, and the edges.
pub(crate) fn dense_f64() -> Vec<u64> {
    let mut rng = SplitMix(64);
    let mut values = Ty::F64.edges();
    for exponent in (1023 - 160)..(1023 + 140u64) {
        for _ in 0..4 {
            let bits = exponent << 52 | rng.below(1 << 52);
            values.extend([bits, bits | 1 << 63]);
        }
    }
    for n in [
        0.5f64,
        1.5,
        2.5,
        127.5,
        128.0,
        255.5,
        32767.5,
        65535.5,
        2147483647.5,
        4294967295.5,
    ] {
        values.extend([n.to_bits(), (-n).to_bits()]);
    }
    values
}

/// f32 values whose conversion to integers rounds, ties or saturates.
pub(crate) fn integer_boundaries_f32() -> Vec<u64> {
    let mut values = dense_f32();
    for n in -300..300i32 {
        values.push(u64::from((n as f32 / 2.0).to_bits()));
        values.push(u64::from((n as f32 / 2.0 + 0.25).to_bits()));
    }
    for power in [7, 8, 15, 16, 23, 24, 31, 32, 63, 64] {
        let bits = (2f32).powi(power).to_bits();
        for near in bits - 2..=bits + 2 {
            values.extend([u64::from(near), u64::from(near | 1 << 31)]);
        }
    }
    values
}

/// For a narrow float format, f32 values at, just below and just above each rounding
/// boundary (the values themselves and the midpoints between neighbours).
pub(crate) fn boundaries_f32(finite: &[f64]) -> Vec<u64> {
    let mut values = Vec::new();
    for pair in finite.windows(2) {
        for point in [pair[0], (pair[0] + pair[1]) / 2.0] {
            let bits = (point as f32).to_bits();
            for near in [bits.saturating_sub(1), bits, bits + 1] {
                values.extend([u64::from(near), u64::from(near | 1 << 31)]);
            }
        }
    }
    values
}

/// The finite non-negative values of f16, thinned to every `step`-th above the subnormals.
pub(crate) fn finite_f16(step: usize) -> Vec<f64> {
    (0..0x7c00u16)
        .filter(|&b| b < 0x20 || (0x3f0..0x410).contains(&b) || b as usize % step < 2 || b > 0x7be0)
        .map(|b| f16::from_bits(b).to_f64())
        .collect()
}

/// The finite non-negative values of bf16, thinned to every `step`-th.
pub(crate) fn finite_bf16(step: usize) -> Vec<f64> {
    (0..0x7f80u16)
        .filter(|&b| b < 0x20 || b as usize % step < 2 || b > 0x7f70)
        .map(|b| bf16::from_bits(b).to_f64())
        .collect()
}

/// The finite non-negative values of an 8-bit float with `mantissa` bits.
pub(crate) fn finite_fp8(mantissa: u32) -> Vec<f64> {
    let bias = (1 << (6 - mantissa)) - 1;
    let last = if mantissa == 3 { 0x7f } else { 0x7c };
    (0..last)
        .map(|bits: i32| {
            let exponent = bits >> mantissa;
            let fraction = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
            match exponent {
                0 => fraction * (2f64).powi(1 - bias),
                e => (1.0 + fraction) * (2f64).powi(e - bias),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_values_end_at_the_greatest_finite_one() {
        assert_eq!(finite_fp8(3).last(), Some(&448.0));
        assert_eq!(finite_fp8(2).last(), Some(&57344.0));
    }

    #[test]
    fn cross_products_are_complete() {
        let [a, b, c] = cross3(&[1, 2], &[3, 4], &[5, 6]);
        let triples: Vec<_> = (0..8).map(|i| (a[i], b[i], c[i])).collect();
        assert_eq!(triples[0], (1, 3, 5));
        assert_eq!(triples[7], (2, 4, 6));
        assert_eq!(triples.len(), 8);
    }

    #[test]
    fn edges_fit_their_type() {
        for ty in [Ty::F16, Ty::Bf16, Ty::U16, Ty::F32, Ty::F16x2] {
            assert!(
                ty.edges().iter().all(|&v| v < 1 << (8 * ty.bytes())),
                "{ty:?}"
            );
        }
    }
}
