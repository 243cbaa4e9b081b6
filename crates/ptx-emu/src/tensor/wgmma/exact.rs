//! Element by element: hardware-like float sums, and single-bit products.

use super::super::fused::{Fused, Term, dot_f16, dot_f32};
use super::expand::{each_a, each_b};
use super::{Accumulator, Form, Step, WgmmaError};
use crate::numeric::Lanes;
use crate::numeric::halves::Half;

/// The widest K of a floating form.
const MAX_K: usize = 32;

/// Where in a warp's registers element (row, column) of its 16×N slab is: register and lane.
/// Packed f16 accumulators hold both columns of a pair in one register.
pub(super) fn place(row: usize, column: usize) -> (usize, usize) {
    let register = 4 * (column / 8) + 2 * (row / 8) + (column & 1);
    (register, 4 * (row % 8) + column % 8 / 2)
}

/// Sums as [`super::super::fused`] describes, one instruction after the other.
pub(super) fn floats(
    form: &Form,
    steps: &[Step<'_>],
    shared: &[u8],
    d: &mut [&mut Lanes],
) -> Result<(), WgmmaError> {
    let (Some(left), Some(right)) = (Fused::new(form.a), Fused::new(form.b)) else {
        return Err(WgmmaError::Types {
            a: form.a,
            b: form.b,
            d: form.d,
        });
    };
    let (k, registers) = (form.k() as usize, form.registers());
    let mut columns = vec![[Term::default(); MAX_K]; form.n as usize];
    for step in steps {
        for group in 0..form.n as usize / 8 {
            each_b(form, &step.b, group, shared, |column, k, code| {
                columns[8 * group + column][k] = right.term(code, false);
            })?;
        }
        for warp in 0..4 {
            let mut rows = [[Term::default(); MAX_K]; 16];
            each_a(form, step, warp, shared, |row, k, code| {
                rows[row][k] = left.term(code, form.negate);
            })?;
            let slab = &mut d[warp * registers..(warp + 1) * registers];
            for (r, row) in rows.iter().enumerate() {
                for (c, column) in columns.iter().enumerate() {
                    let (a, b) = (&row[..k], &column[..k]);
                    let (register, lane) = place(r, c);
                    match form.d {
                        Accumulator::F16 => {
                            let word = &mut slab[register / 2][lane];
                            let shift = 16 * (register & 1);
                            let old = Half::F16.widen((*word >> shift) as u16);
                            let old = if step.accumulate { old } else { 0.0 };
                            let new = u32::from(dot_f16((&left, &right), a, b, old));
                            *word = *word & !(0xffff << shift) | new << shift;
                        }
                        _ => {
                            let word = &mut slab[register][lane];
                            let old = if step.accumulate {
                                f32::from_bits(*word)
                            } else {
                                0.0
                            };
                            *word = dot_f32((&left, &right), a, b, old);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// `wgmma.*.b1.and.popc`: counts positions set in both operands.
pub(super) fn bits(
    form: &Form,
    steps: &[Step<'_>],
    shared: &[u8],
    d: &mut [&mut Lanes],
) -> Result<(), WgmmaError> {
    let registers = form.registers();
    let mut columns = vec![[0u32; 8]; form.n as usize];
    for step in steps {
        columns.fill([0; 8]);
        for group in 0..form.n as usize / 8 {
            each_b(form, &step.b, group, shared, |column, k, bit| {
                columns[8 * group + column][k / 32] |= bit << (k % 32);
            })?;
        }
        for warp in 0..4 {
            let mut rows = [[0u32; 8]; 16];
            each_a(form, step, warp, shared, |row, k, bit| {
                rows[row][k / 32] |= bit << (k % 32);
            })?;
            let slab = &mut d[warp * registers..(warp + 1) * registers];
            for (r, row) in rows.iter().enumerate() {
                for (c, column) in columns.iter().enumerate() {
                    let (register, lane) = place(r, c);
                    let count: u32 = row
                        .iter()
                        .zip(column)
                        .map(|(a, b)| (a & b).count_ones())
                        .sum();
                    let word = &mut slab[register][lane];
                    *word = if step.accumulate {
                        word.wrapping_add(count)
                    } else {
                        count
                    };
                }
            }
        }
    }
    Ok(())
}
