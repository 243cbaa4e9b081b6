//! Products of everything but packed 4-bit floats: f32 multiply-adds in order of k.

use super::BLOCK;
use crate::numeric::simd::Level;

/// Columns computed together.
const TOGETHER: usize = 4;

/// Sixteen rows by some columns, added to: `rows` has sixteen values for each k, `columns` all k of
/// each column.
pub(super) fn multiply(
    level: Level,
    rows: &[[f32; BLOCK]],
    columns: &[f32],
    sums: &mut [[f32; BLOCK]],
) {
    match level {
        // SAFETY: the caller's level was detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(rows, columns, sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(rows, columns, sums) },
        // Products are exact in f32 (but for bf16 and tf32 at the ends of their range), so this
        // rounds like the fused instruction.
        _ => each_column(rows, columns, sums, |x, y, z| x * y + z),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn avx512(rows: &[[f32; BLOCK]], columns: &[f32], sums: &mut [[f32; BLOCK]]) {
    each_column(
        rows,
        columns,
        sums,
        #[inline(always)]
        |x, y, z| x.mul_add(y, z),
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(rows: &[[f32; BLOCK]], columns: &[f32], sums: &mut [[f32; BLOCK]]) {
    each_column(
        rows,
        columns,
        sums,
        #[inline(always)]
        |x, y, z| x.mul_add(y, z),
    );
}

#[inline(always)]
fn each_column(
    rows: &[[f32; BLOCK]],
    columns: &[f32],
    sums: &mut [[f32; BLOCK]],
    add: impl Fn(f32, f32, f32) -> f32,
) {
    let depth = rows.len();
    let (whole, rest) = sums.as_chunks_mut::<TOGETHER>();
    let done = whole.len() * TOGETHER;
    for (sums, columns) in whole.iter_mut().zip(columns.chunks_exact(TOGETHER * depth)) {
        let mut partial = *sums;
        for (k, row) in rows.iter().enumerate() {
            for (c, sum) in partial.iter_mut().enumerate() {
                let column = columns[c * depth + k];
                for i in 0..BLOCK {
                    sum[i] = add(row[i], column, sum[i]);
                }
            }
        }
        *sums = partial;
    }
    for (sum, column) in rest
        .iter_mut()
        .zip(columns[done * depth..].chunks_exact(depth))
    {
        for (row, &y) in rows.iter().zip(column) {
            for i in 0..BLOCK {
                sum[i] = add(row[i], y, sum[i]);
            }
        }
    }
}
