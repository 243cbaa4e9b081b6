//! From operands as they lie in shared memory or registers to the vectors the kernel multiplies.
//!
//! A panel of A has, per k, the 16 rows of a warp with each value four times: 64 floats. A panel
//! of B has, per group of 8 columns and per k, the four even columns and then the four odd ones.

use super::super::descriptor::{Major, Matrix};
#[cfg(target_arch = "x86_64")]
use super::x86::{self, Fragment, Groups, Kind};
use super::{Form, OperandA, Step, WgmmaError};
use crate::numeric::Lanes;
use crate::numeric::simd::Level;

/// Floats per k in a panel of A.
pub(super) const A_WIDTH: usize = 64;
/// Floats per k and column group in a panel of B.
pub(super) const B_WIDTH: usize = 8;

/// Sixteen bytes of shared memory.
pub(super) type Chunk = [u8; 16];

pub(super) fn chunk(shared: &[u8], address: u32, operand: char) -> Result<&Chunk, WgmmaError> {
    let start = address as usize;
    shared
        .get(start..start.wrapping_add(16))
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(WgmmaError::OutOfShared {
            operand,
            address,
            size: shared.len(),
        })
}

/// The fragment registers of one warp for a K-major A in shared memory: a register's eight rows
/// of four words are eight chunks.
pub(super) fn fragment(
    matrix: &Matrix,
    warp: u32,
    shared: &[u8],
) -> Result<[Lanes; 4], WgmmaError> {
    let mut registers = [[0u32; 32]; 4];
    let addresses = [0, 1].map(|half| matrix.group_chunks(2 * warp + half));
    for (index, register) in registers.iter_mut().enumerate() {
        let rows = &addresses[index & 1];
        for (words, row) in register.as_chunks_mut::<4>().0.iter_mut().zip(rows) {
            let bytes = chunk(shared, row[index / 2], 'A')?.as_chunks::<4>().0;
            for (word, bytes) in words.iter_mut().zip(bytes) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
    }
    Ok(registers)
}

/// Calls `each` with every element code of a 16-row slab of A: (row, k, code).
pub(super) fn each_a(
    form: &Form,
    step: &Step<'_>,
    warp: usize,
    shared: &[u8],
    mut each: impl FnMut(usize, usize, u32),
) -> Result<(), WgmmaError> {
    let owned;
    let registers: [&Lanes; 4] = match &step.a {
        OperandA::Registers(warps) => warps[warp],
        OperandA::Shared(matrix) if matrix.major == Major::K => {
            owned = fragment(matrix, warp as u32, shared)?;
            owned.each_ref()
        }
        OperandA::Shared(matrix) => {
            for k in 0..16 {
                for half in 0..2 {
                    let address = matrix.column_chunk(2 * warp as u32 + half, k);
                    let codes = chunk(shared, address, 'A')?.as_chunks::<2>().0;
                    for (row, code) in codes.iter().enumerate() {
                        let code = u32::from(u16::from_le_bytes(*code));
                        each(8 * half as usize + row, k as usize, code);
                    }
                }
            }
            return Ok(());
        }
    };
    let per_word = (32 / form.a.bits()) as usize;
    let mask = u32::MAX >> (32 - form.a.bits());
    for (index, register) in registers.iter().enumerate() {
        for (lane, word) in register.iter().enumerate() {
            let (row, k) = (8 * (index & 1) + lane / 4, 4 * (index / 2) + lane % 4);
            for e in 0..per_word {
                let code = word >> (e as u32 * form.a.bits()) & mask;
                each(row, k * per_word + e, code);
            }
        }
    }
    Ok(())
}

/// The chunks of the first eight rows of A, if it is in shared memory and the other rows lie as
/// they do.
pub(super) fn regular_rows(step: &Step<'_>, shared: &[u8]) -> Option<[[u32; 2]; 8]> {
    match &step.a {
        OperandA::Shared(matrix) if matrix.major == Major::K => {
            matrix.regular_chunks(8, shared.len())
        }
        _ => None,
    }
}

/// Expands A of one instruction for one warp into `panel`. `rows` is what [`regular_rows`] found.
pub(super) fn expand_a(
    form: &Form,
    level: Level,
    (step, rows): (&Step<'_>, Option<[[u32; 2]; 8]>),
    warp: usize,
    shared: &[u8],
    panel: &mut [f32],
) -> Result<(), WgmmaError> {
    #[cfg(target_arch = "x86_64")]
    if let Some(kind) = Kind::of(form.a).filter(|_| level >= Level::Avx2) {
        let owned;
        let fragment = match &step.a {
            OperandA::Registers(warps) => Some(Fragment::Registers(warps[warp])),
            OperandA::Shared(matrix) if matrix.major == Major::K => Some(match rows {
                Some(chunks) => {
                    let stride = matrix.stride as usize;
                    Fragment::Shared(Groups {
                        base: shared.as_ptr().wrapping_add(2 * warp * stride),
                        chunks,
                        stride,
                    })
                }
                None => {
                    owned = fragment(matrix, warp as u32, shared)?;
                    Fragment::Registers(owned.each_ref())
                }
            }),
            OperandA::Shared(_) => None,
        };
        if let Some(fragment) = fragment {
            // SAFETY: the level was detected, and the chunks lie within shared memory.
            unsafe {
                match level {
                    Level::Avx512 => x86::expand_a_avx512(kind, form.negate, fragment, panel),
                    _ => x86::expand_a_avx2(kind, form.negate, fragment, panel),
                }
            }
            return Ok(());
        }
    }
    let _ = (level, rows);
    each_a(form, step, warp, shared, |row, k, code| {
        let value = form.a.value(code);
        let value = if form.negate { -value } else { value };
        let start = k * A_WIDTH + 4 * row;
        panel[start..start + 4].fill(value);
    })
}

/// Where column c of a group stands among the group's eight: even ones first.
pub(super) const fn slot(column: usize) -> usize {
    (column & 1) * 4 + column / 2
}

/// Calls `each` with every element code of one column group of B: (column in group, k, code).
pub(super) fn each_b(
    form: &Form,
    matrix: &Matrix,
    group: usize,
    shared: &[u8],
    mut each: impl FnMut(usize, usize, u32),
) -> Result<(), WgmmaError> {
    if matrix.major == Major::Mn {
        for k in 0..16 {
            let address = matrix.column_chunk(group as u32, k);
            let codes = chunk(shared, address, 'B')?.as_chunks::<2>().0;
            for (column, code) in codes.iter().enumerate() {
                each(column, k as usize, u32::from(u16::from_le_bytes(*code)));
            }
        }
        return Ok(());
    }
    let per_word = (32 / form.b.bits()) as usize;
    let mask = u32::MAX >> (32 - form.b.bits());
    for column in 0..8 {
        for half in 0..2 {
            let address = matrix.row_chunk((8 * group + column) as u32, half);
            let words = chunk(shared, address, 'B')?.as_chunks::<4>().0;
            for (w, word) in words.iter().enumerate() {
                let word = u32::from_le_bytes(*word);
                let first = (4 * half as usize + w) * per_word;
                for e in 0..per_word {
                    each(column, first + e, word >> (e as u32 * form.b.bits()) & mask);
                }
            }
        }
    }
    Ok(())
}

/// Expands B of one instruction into the panels of its column groups.
pub(super) fn expand_b<'p>(
    form: &Form,
    level: Level,
    matrix: &Matrix,
    shared: &[u8],
    panels: impl Iterator<Item = &'p mut [f32]>,
) -> Result<(), WgmmaError> {
    #[cfg(target_arch = "x86_64")]
    if let Some(kind) = Kind::of(form.b).filter(|_| level >= Level::Avx2)
        && matrix.major == Major::K
    {
        return expand_k_major(kind, form.n / 8, matrix, shared, panels);
    }
    let _ = level;
    for (group, panel) in panels.enumerate() {
        each_b(form, matrix, group, shared, |column, k, code| {
            panel[k * B_WIDTH + slot(column)] = form.b.value(code);
        })?;
    }
    Ok(())
}

/// Expands a K-major B by vector code: all column groups at once where they lie alike, as they
/// do in tiles that a copy wrote.
#[cfg(target_arch = "x86_64")]
fn expand_k_major<'p>(
    kind: Kind,
    groups: u32,
    matrix: &Matrix,
    shared: &[u8],
    panels: impl Iterator<Item = &'p mut [f32]>,
) -> Result<(), WgmmaError> {
    let columns = |chunks| Groups {
        base: shared.as_ptr(),
        chunks,
        stride: matrix.stride as usize,
    };
    if let Some(chunks) = matrix.regular_chunks(groups, shared.len()) {
        let panels = panels.take(groups as usize);
        // SAFETY: the level was detected, and the chunks of all groups lie within shared memory.
        unsafe { x86::expand_b(kind, columns(chunks), panels) };
        return Ok(());
    }
    for (group, panel) in panels.enumerate() {
        let chunks = matrix.group_chunks(group as u32);
        for address in chunks.as_flattened() {
            chunk(shared, *address, 'B')?;
        }
        // SAFETY: the level was detected, and the chunks were just found.
        unsafe { x86::expand_b(kind, columns(chunks), std::iter::once(panel)) };
    }
    Ok(())
}
