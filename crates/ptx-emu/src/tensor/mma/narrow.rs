//! `mma.sync` of 8-, 6- and 4-bit floats, with scales or without: `kind::f8f6f4`, `mxf8f6f4`,
//! `mxf4` and `mxf4nvf4`.
//!
//! Fragments lie as the others do: four bytes to a word, of which a 6-bit element has the lower six
//! bits and a 4-bit one bits 2 to 5; only `mxf4` and `mxf4nvf4` pack eight 4-bit elements. Scales
//! come in one register. Of each four lanes, thread-id picks two for A, the first for row g and the
//! second for row g + 8, and one for B; byte-id picks the first byte.

use super::super::fused::{Fused, Term, dot_f16, dot_f32};
use super::super::scaled::{Row, Scaled};
use super::super::{Element, Numerics};
use super::{Accumulator, Form, MAX_D};
use crate::numeric::Lanes;
use crate::numeric::arith::canonical_f32;
use crate::numeric::halves::Half;

/// Everything about such a product but its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Narrow {
    pub(crate) a: Element,
    pub(crate) b: Element,
    pub(crate) d: Accumulator,
    pub(crate) scales: Option<Scales>,
}

/// How its operands are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scales {
    pub(crate) kind: Scaled,
    /// Scales of a row: 1, 2 or 4.
    pub(crate) each: usize,
}

/// The scales of one operand, and which lanes and bytes hold them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selected<'r> {
    pub(crate) register: &'r Lanes,
    pub(crate) byte: u32,
    pub(crate) thread: u32,
}

impl Selected<'_> {
    fn of(&self, lane: usize) -> [u8; 4] {
        let [mut bytes, from] = [[0; 4], self.register[lane].to_le_bytes()];
        for (to, from) in bytes.iter_mut().zip(&from[self.byte as usize..]) {
            *to = *from;
        }
        bytes
    }

    fn of_row(&self, row: usize) -> [u8; 4] {
        self.of(4 * (row % 8) + 2 * self.thread as usize + row / 8)
    }

    fn of_column(&self, column: usize) -> [u8; 4] {
        self.of(4 * column + self.thread as usize)
    }
}

impl Scales {
    /// Whether a selector may be this.
    pub(crate) fn selects(&self, byte: u32, thread: u32, of_a: bool) -> bool {
        let bytes = match self.each {
            1 => byte < 4,
            2 => byte == 0 || byte == 2,
            _ => byte == 0,
        };
        bytes && thread < if of_a { 2 } else { 4 }
    }
}

impl Narrow {
    /// Elements are packed rather than a byte each.
    fn packed(&self) -> bool {
        matches!(self.scales, Some(scales) if matches!(scales.kind, Scaled::Fours(_)))
    }

    pub(crate) fn k(&self) -> usize {
        if self.packed() { 64 } else { 32 }
    }

    /// Multiplications and additions, as FLOP are counted.
    pub(crate) fn flops(&self) -> u64 {
        2 * 16 * 8 * self.k() as u64
    }

    /// The code of an element in its byte.
    fn code(&self, element: Element, byte: u32) -> u8 {
        match element.bits() {
            4 if !self.packed() => byte as u8 >> 2 & 15,
            bits => (byte & (0xff >> (8 - bits))) as u8,
        }
    }

    /// D = A·B + C; four words of D, or two of f16. `selected` are the scales of A and of B.
    pub(crate) fn run(
        &self,
        a: &[&Lanes],
        b: &[&Lanes],
        c: &[&Lanes],
        selected: Option<[Selected<'_>; 2]>,
        numerics: Numerics,
    ) -> [Lanes; MAX_D] {
        let mut rows = [[0u8; 64]; 16];
        let mut columns = [[0u8; 64]; 8];
        let bits = if self.packed() { 4 } else { 8 };
        Form::each(a, bits, 2, |r, k, byte| {
            rows[r][k] = self.code(self.a, byte)
        });
        Form::each(b, bits, 1, |n, k, byte| {
            columns[n][k] = self.code(self.b, byte)
        });
        let k = self.k();
        super::accumulate(16, self.d, c, |row, column, old| {
            let (x, y) = (&rows[row][..k], &columns[column][..k]);
            match (self.scales, &selected) {
                (Some(scales), Some([of_a, of_b])) => {
                    let (s, t) = (of_a.of_row(row), of_b.of_column(column));
                    let a = Row {
                        codes: x,
                        scales: &s[..scales.each],
                    };
                    let b = Row {
                        codes: y,
                        scales: &t[..scales.each],
                    };
                    scales.kind.dot(a, b, f32::from_bits(old), numerics)
                }
                _ => self.plain(x, y, old, numerics),
            }
        })
    }

    /// One element of a product without scales.
    fn plain(&self, x: &[u8], y: &[u8], old: u32, numerics: Numerics) -> u32 {
        let first = match self.d {
            Accumulator::F16 => Half::F16.widen(old as u16),
            _ => f32::from_bits(old),
        };
        let fused = Fused::blackwell(self.a).zip(Fused::blackwell(self.b));
        if let (Numerics::Exact, Some((left, right))) = (numerics, &fused) {
            let terms = |fused: &Fused, codes: &[u8]| -> Vec<Term> {
                let term = |&code: &u8| fused.term(code.into(), false);
                codes.iter().map(term).collect()
            };
            let (x, y) = (terms(left, x), terms(right, y));
            return match self.d {
                Accumulator::F16 => dot_f16((left, right), &x, &y, first).into(),
                _ => dot_f32((left, right), &x, &y, first),
            };
        }
        let products = x.iter().zip(y);
        let sum = products.fold(first, |sum, (x, y)| {
            sum + self.a.value((*x).into()) * self.b.value((*y).into())
        });
        match self.d {
            Accumulator::F16 => Half::F16.narrow(sum).into(),
            _ => canonical_f32(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::scaled::Scale;

    /// Words whose every element is a different code, and the codes by row and k.
    fn fragment(words: usize, halves: usize, bits: u32, shift: u32) -> (Vec<Lanes>, Vec<Vec<u8>>) {
        let per_word = 32 / bits;
        let mut state = 7u32;
        let mut table = vec![vec![0; 64]; 8 * halves];
        let registers = (0..words)
            .map(|word| {
                std::array::from_fn(|lane| {
                    (0..per_word).fold(0, |value, e| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let code = state >> 27 & 15;
                        let k = (4 * (word / halves) + lane % 4) * per_word as usize + e as usize;
                        table[8 * (word % halves) + lane / 4][k] = code as u8;
                        value | code << (e * bits + shift)
                    })
                })
            })
            .collect();
        (registers, table)
    }

    fn value(code: u8) -> f64 {
        f64::from(Element::E2m1.value(code.into()))
    }

    /// Checks a product of e2m1 codes, whatever its kind, against sums of doubles.
    fn check(narrow: Narrow, numerics: Numerics, byte: u32) {
        let (bits, shift) = if narrow.packed() { (4, 0) } else { (8, 2) };
        let (a, rows) = fragment(4, 2, bits, shift);
        let (b, columns) = fragment(2, 1, bits, shift);
        let c: Vec<Lanes> = vec![[1.5f32.to_bits(); 32]; 4];
        // Scales are powers of two that differ by lane and byte; other lanes' would show.
        let scale = |lane: u32, byte: u32| 0x30 + (lane * 8 + byte * 8) % 32;
        let register: Lanes = std::array::from_fn(|lane| {
            (0..4).fold(0, |word, byte| {
                word | scale(lane as u32, byte) << (8 * byte)
            })
        });
        let power = |code: u32| match narrow.scales.map(|s| s.kind) {
            Some(Scaled::Fours(Scale::Ue4m3)) => 2f64.powi((code >> 3) as i32 - 7),
            _ => 2f64.powi(code as i32 - 127),
        };
        let selected = [1, 3].map(|thread| Selected {
            register: &register,
            byte,
            thread,
        });
        let (a, b, c) = (
            a.iter().collect::<Vec<_>>(),
            b.iter().collect::<Vec<_>>(),
            c.iter().collect::<Vec<_>>(),
        );
        let of = narrow.scales.map(|_| selected);
        let d = narrow.run(&a, &b, &c, of, numerics);
        for row in 0..16 {
            for column in 0..8 {
                let mut sum = 1.5;
                for k in 0..narrow.k() {
                    let mut product = value(rows[row][k]) * value(columns[column][k]);
                    if let Some(scales) = narrow.scales {
                        let block = byte + (k * scales.each / narrow.k()) as u32;
                        let lane = (4 * (row % 8) + 2 + row / 8) as u32;
                        product *= power(scale(lane, block));
                        product *= power(scale((4 * column + 3) as u32, block));
                    }
                    sum += product;
                }
                let register = 2 * (row / 8) + (column & 1);
                let found = f32::from_bits(d[register][4 * (row % 8) + column / 2]);
                let error = (f64::from(found) - sum).abs();
                assert!(error <= sum.abs() * 1e-5 + 1e-5, "{found} for {sum}");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_selected_scales() {
        let scaled = |kind, each| Narrow {
            a: Element::E2m1,
            b: Element::E2m1,
            d: Accumulator::F32,
            scales: Some(Scales { kind, each }),
        };
        for numerics in [Numerics::Fast, Numerics::Exact] {
            check(scaled(Scaled::Fours(Scale::Ue4m3), 4), numerics, 0);
            for byte in [0, 2] {
                check(scaled(Scaled::Fours(Scale::Ue8m0), 2), numerics, byte);
            }
            let eights = Scaled::Eights(Element::E2m1, Element::E2m1);
            for byte in 0..4 {
                check(scaled(eights, 1), numerics, byte);
            }
            let plain = Narrow {
                scales: None,
                ..scaled(eights, 1)
            };
            check(plain, numerics, 0);
        }
    }

    #[test]
    fn selectors_are_those_of_the_manual() {
        let scales = |each| Scales {
            kind: Scaled::Fours(Scale::Ue8m0),
            each,
        };
        assert!(scales(1).selects(3, 1, true) && !scales(1).selects(3, 2, true));
        assert!(scales(2).selects(2, 3, false) && !scales(2).selects(1, 0, false));
        assert!(scales(4).selects(0, 0, true) && !scales(4).selects(2, 0, true));
    }
}
