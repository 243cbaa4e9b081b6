//! Tensors as they lie in memory: row-major, every row of the last axis begun
//! at a byte, elements of four bits two to a byte (low half first), and the
//! scales of a block-scaled type in rows of their own.

use std::ops::Range;
use std::sync::LazyLock;

use dgx_core::operator::ElementType;
use half::bf16;
use rayon::prelude::*;

use super::element::{decode, encode, table};
use super::{E2M1, Small};

/// The format of a block's scale, and how many elements share it.
fn scale(element: ElementType) -> Option<(&'static Small, usize)> {
    let scale = element.scale()?;
    Some((table(scale.element)?, scale.block as usize))
}

/// Bytes of a row of `width` elements.
pub(crate) fn row_bytes(element: ElementType, width: usize) -> usize {
    (width * element.bits() as usize).div_ceil(8)
}

/// Scales of a row of `width` elements, a byte each.
pub(crate) fn row_scales(element: ElementType, width: usize) -> usize {
    scale(element).map_or(0, |(_, block)| width.div_ceil(block))
}

/// A tensor's bytes, borrowed.
#[derive(Clone, Debug)]
pub struct Packed<'a> {
    pub element: ElementType,
    pub elements: &'a [u8],
    /// Empty unless the type is block-scaled.
    pub scales: &'a [u8],
    pub extents: Vec<usize>,
}

impl Packed<'_> {
    /// The extent of the last axis; 1 for a single number.
    pub fn width(&self) -> usize {
        self.extents.last().copied().unwrap_or(1)
    }

    /// Whether there are as many bytes as the extents require.
    pub fn is_whole(&self) -> bool {
        let width = self.width();
        let leading = self.extents.len().saturating_sub(1);
        let rows: usize = self.extents[..leading].iter().product();
        self.elements.len() == rows * row_bytes(self.element, width)
            && self.scales.len() == rows * row_scales(self.element, width)
    }

    /// Some columns of row `row`, all leading axes counted as one.
    pub fn read(&self, row: usize, columns: Range<usize>, out: &mut [f64]) {
        let bytes = row_bytes(self.element, self.width());
        let elements = &self.elements[row * bytes..][..bytes];
        let Some((format, block)) = scale(self.element) else {
            return read_elements(self.element, elements, columns, out);
        };
        let width = self.width().div_ceil(block);
        let scales = &self.scales[row * width..][..width];
        let mut column = columns.start;
        while column < columns.end {
            let end = (column - column % block + block).min(columns.end);
            let own = &mut out[column - columns.start..end - columns.start];
            read_elements(self.element, elements, column..end, own);
            let scale = format.decode(scales[column / block]);
            for value in own {
                *value *= scale;
            }
            column = end;
        }
    }
}

/// Elements of one row, without scales.
fn read_elements(element: ElementType, row: &[u8], columns: Range<usize>, out: &mut [f64]) {
    use ElementType::*;
    match element {
        F64 => wide(row, columns, out, f64::from_le_bytes),
        F32 => wide(row, columns, out, |b| f64::from(f32::from_le_bytes(b))),
        F16 => wide(row, columns, out, |b| from_f16(u16::from_le_bytes(b))),
        Bf16 => wide(row, columns, out, |b| bf16::from_le_bytes(b).to_f64()),
        I32 => wide(row, columns, out, |b| f64::from(i32::from_le_bytes(b))),
        I8 | U8 | Bool => wide(row, columns, out, |[b]| decode(element, u64::from(b))),
        E4m3 | E5m2 | E8m0 | Mxfp8 => {
            let values = table(element).expect("a small format").values();
            wide(row, columns, out, |[b]| values[usize::from(b)]);
        }
        E2m1 | Nvfp4 | Mxfp4 => nibbles(row, columns, out),
    }
}

/// For each packed byte, its two elements.
static PAIRS: LazyLock<[[f64; 2]; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| [byte & 15, byte >> 4].map(|c| E2M1.decode(c as u8)))
});

/// Elements of four bits.
fn nibbles(row: &[u8], columns: Range<usize>, out: &mut [f64]) {
    let pairs = &*PAIRS;
    let (first, mut out) = (columns.start, out);
    if !first.is_multiple_of(2) && !out.is_empty() {
        out[0] = pairs[usize::from(row[first / 2])][1];
        out = &mut out[1..];
    }
    let bytes = &row[first.div_ceil(2)..];
    let (whole, rest) = out.as_chunks_mut::<2>();
    for (pair, byte) in whole.iter_mut().zip(bytes) {
        *pair = pairs[usize::from(*byte)];
    }
    if let Some(last) = rest.first_mut() {
        *last = pairs[usize::from(bytes[whole.len()])][0];
    }
}

/// Elements of `N` bytes each.
fn wide<const N: usize>(
    row: &[u8],
    columns: Range<usize>,
    out: &mut [f64],
    value: impl Fn([u8; N]) -> f64,
) {
    let elements = &row.as_chunks::<N>().0[columns];
    for (out, element) in out.iter_mut().zip(elements) {
        *out = value(*element);
    }
}

/// fp16 by a multiplication, which a compiler vectorises.
fn from_f16(bits: u16) -> f64 {
    let magnitude = u64::from(bits & 0x7fff);
    // Its exponent and mantissa in those of an f64; the bias is corrected after.
    let finite = f64::from_bits(magnitude << 42) * f64::from_bits((1023 + 1008) << 52);
    let special = f64::from_bits(magnitude << 42 | 0x7ff << 52);
    let value = if magnitude < 0x7c00 { finite } else { special };
    f64::from_bits(value.to_bits() | u64::from(bits >> 15) << 63)
}

/// Packed bytes of rows of `width` values, each rounded to the nearest element; values of a
/// block-scaled type are taken without their scales.
pub fn pack(element: ElementType, values: &[f64], width: usize) -> Vec<u8> {
    let (bits, width) = (element.bits() as usize, width.max(1));
    let whole = values.len() / width * row_bytes(element, width);
    let mut packed = vec![0; whole + row_bytes(element, values.len() % width)];
    let rows = packed.par_chunks_mut(row_bytes(element, width));
    let rows = rows.zip(values.par_chunks(width));
    rows.for_each(|(to, row)| match bits {
        4 => {
            for (to, pair) in to.iter_mut().zip(row.chunks(2)) {
                let codes = pair.iter().map(|v| encode(element, *v) as u8);
                *to = codes.rev().fold(0, |byte, code| byte << 4 | code);
            }
        }
        _ => {
            for (to, value) in to.chunks_exact_mut(bits / 8).zip(row) {
                to.copy_from_slice(&encode(element, *value).to_le_bytes()[..bits / 8]);
            }
        }
    });
    packed
}

/// Packed bytes and scales of rows of `width` values. A block's scale maps its largest magnitude to
/// the largest element: rounded to the nearest e4m3 in nvfp4, to the power of two at or below it in
/// mxfp4 and mxfp8 (where the largest element may then saturate, as in OCP's recipe).
pub fn quantise(element: ElementType, values: &[f64], width: usize) -> (Vec<u8>, Vec<u8>) {
    let Some((format, block)) = scale(element) else {
        return (pack(element, values, width), Vec::new());
    };
    let largest = table(element)
        .expect("a block has small elements")
        .largest();
    let mut scaled = values.to_vec();
    let mut scales = Vec::new();
    for row in scaled.chunks_mut(width) {
        for block in row.chunks_mut(block) {
            let most = block.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            let wanted = match element {
                ElementType::Nvfp4 => most / largest,
                _ => floor_power(most) / floor_power(largest),
            };
            let code = format.encode(wanted);
            scales.push(code);
            let by = format.decode(code);
            for value in block {
                *value = if by == 0.0 { 0.0 } else { *value / by };
            }
        }
    }
    (pack(element, &scaled, width), scales)
}

/// The largest power of two not above a magnitude; 0 for 0.
fn floor_power(magnitude: f64) -> f64 {
    if magnitude == 0.0 {
        return 0.0;
    }
    2f64.powi(magnitude.log2().floor() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: [ElementType; 11] = [
        ElementType::F64,
        ElementType::F32,
        ElementType::F16,
        ElementType::Bf16,
        ElementType::E4m3,
        ElementType::E5m2,
        ElementType::E2m1,
        ElementType::I32,
        ElementType::I8,
        ElementType::U8,
        ElementType::Bool,
    ];

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    #[test]
    fn fp16_by_multiplication_is_fp16() {
        for bits in 0..=u16::MAX {
            let wanted = half::f16::from_bits(bits).to_f64();
            assert!(same(from_f16(bits), wanted), "{bits:#x}");
        }
    }

    /// Any columns of any row, with a width that does not fill its last byte.
    #[test]
    fn what_is_packed_is_read_again() {
        for element in PLAIN {
            let (rows, width) = (3, 37);
            let values: Vec<f64> = (0..rows * width).map(|i| (i % 13) as f64 / 2.0).collect();
            let elements = pack(element, &values, width);
            let packed = Packed {
                element,
                elements: &elements,
                scales: &[],
                extents: vec![rows, width],
            };
            assert!(packed.is_whole(), "{element:?}");
            for (row, columns) in [(0, 0..37), (1, 5..36), (2, 36..37), (2, 4..4)] {
                let mut out = vec![0.0; columns.len()];
                packed.read(row, columns.clone(), &mut out);
                for (column, found) in columns.zip(out) {
                    let wanted = super::super::rounded(element, values[row * width + column]);
                    assert!(same(found, wanted), "{element:?} {row} {column}");
                }
            }
        }
    }

    #[test]
    fn blocks_are_scaled_along_the_last_axis() {
        use ElementType::{Mxfp4, Mxfp8, Nvfp4};
        for (element, block) in [(Nvfp4, 16), (Mxfp4, 32), (Mxfp8, 32)] {
            let width = 2 * block + 4;
            let values: Vec<f64> = (0..2 * width)
                .map(|i| ((i * 37 % 101) as f64 - 50.0) * 2f64.powi((i / block) as i32))
                .collect();
            let (elements, scales) = quantise(element, &values, width);
            assert_eq!(scales.len(), 2 * 3);
            let packed = Packed {
                element,
                elements: &elements,
                scales: &scales,
                extents: vec![2, width],
            };
            assert!(packed.is_whole());
            let mut out = vec![0.0; width];
            for row in 0..2 {
                packed.read(row, 0..width, &mut out);
                for (start, block) in values[row * width..][..width].chunks(block).enumerate() {
                    let most = block.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                    for (i, value) in block.iter().enumerate() {
                        let found = out[start * packed_block(element) + i];
                        assert!((found - value).abs() <= most / 4.0, "{element:?} {value}");
                    }
                }
                let mut part = vec![0.0; 7];
                packed.read(row, block - 3..block + 4, &mut part);
                assert_eq!(part, out[block - 3..block + 4]);
            }
        }
    }

    fn packed_block(element: ElementType) -> usize {
        scale(element).unwrap().1
    }

    #[test]
    fn a_block_of_zeros_has_no_nan() {
        for element in [ElementType::Nvfp4, ElementType::Mxfp4, ElementType::Mxfp8] {
            let (elements, _) = quantise(element, &[0.0; 32], 32);
            assert!(elements.iter().all(|byte| *byte == 0), "{element:?}");
        }
    }
}
