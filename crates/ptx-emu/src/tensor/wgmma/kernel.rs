//! The inner loops: a 16-row slab of one warp times a few groups of 8 columns.

use std::cell::RefCell;

use super::super::Element;
use super::expand::{A_WIDTH, B_WIDTH, expand_a, expand_b, regular_rows};
#[cfg(target_arch = "x86_64")]
use super::x86::{self, Fragment, Groups, Kind};
use super::{Form, Step, WgmmaError};
#[cfg(target_arch = "x86_64")]
use crate::numeric::NAN_F32;
use crate::numeric::simd::Level;
use crate::numeric::{Lanes, lanes};

/// Instructions expanded together: enough k to pay for loading the accumulators, few enough that
/// a panel of A stays in the first-level cache.
const CHAIN: usize = 4;
/// Column groups multiplied together: their accumulators fill the 512-bit register file.
const GROUPS: usize = 3;

/// A cache line of floats: a vector load that crosses lines costs two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A panel that grows to the largest product seen.
#[derive(Default)]
struct Panel(Vec<Line>);

impl Panel {
    fn floats(&mut self, len: usize) -> &mut [f32] {
        let lines = len.div_ceil(16);
        if self.0.len() < lines {
            self.0.resize(lines, Line([0.0; 16]));
        }
        // SAFETY: lines are arrays of floats without padding.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }
}

/// Panels are reused between calls of a thread; they hold nothing a later call reads.
#[derive(Default)]
struct Scratch {
    a: Panel,
    b: Panel,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// One slab: `k` columns of A in `a`, `k` rows of each group of B in `b`, groups one after the
/// other, four registers of `d` per group.
struct Slab<'p, 'd, 'r> {
    k: usize,
    a: &'p [f32],
    b: &'p [f32],
    d: &'d mut [&'r mut Lanes],
    /// Start from D instead of zero.
    accumulate: bool,
}

impl Slab<'_, '_, '_> {
    fn run(self, level: Level) {
        let groups = self.d.len() / 4;
        assert!(self.a.len() >= self.k * A_WIDTH && self.b.len() >= groups * self.k * B_WIDTH);
        match level {
            // SAFETY: the caller's level was detected; the panels were measured above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe {
                match groups {
                    1 => self.avx512::<1>(),
                    2 => self.avx512::<2>(),
                    3 => self.avx512::<3>(),
                    _ => self.portable(),
                }
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { self.avx2() },
            _ => self.portable(),
        }
    }

    /// Products of all operand types are exact in f32 (but for bf16 and tf32 at the ends of
    /// their range), so a multiplication and an addition round like the fused instruction.
    fn portable(self) {
        let groups = self.b.chunks_exact(self.k * B_WIDTH);
        for (registers, b) in self.d.chunks_exact_mut(4).zip(groups) {
            for (index, register) in registers.iter_mut().enumerate() {
                let mut sums = [[0f32; 4]; 8];
                if self.accumulate {
                    let old = register.as_chunks::<4>().0;
                    for (sum, old) in sums.iter_mut().zip(old) {
                        *sum = old.map(f32::from_bits);
                    }
                }
                let (rows, columns) = (8 * (index / 2), index & 1);
                let a = self.a.as_chunks::<4>().0.chunks_exact(A_WIDTH / 4);
                let b = b.as_chunks::<4>().0.chunks_exact(B_WIDTH / 4);
                for (a, b) in a.zip(b) {
                    let b = b[columns];
                    for (sum, a) in sums.iter_mut().zip(&a[rows..rows + 8]) {
                        for c in 0..4 {
                            sum[c] += a[c] * b[c];
                        }
                    }
                }
                for (new, sum) in register.as_chunks_mut::<4>().0.iter_mut().zip(&sums) {
                    *new = sum.map(crate::numeric::arith::canonical_f32);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2(self) {
        use std::arch::x86_64::*;
        let nan = _mm256_set1_ps(f32::from_bits(NAN_F32));
        for (group, registers) in self.d.chunks_exact_mut(4).enumerate() {
            for (half, pair) in registers.chunks_exact_mut(2).enumerate() {
                let mut sums = [[_mm256_setzero_ps(); 4]; 2];
                // SAFETY: registers have four vectors each; panels were measured by `run`.
                unsafe {
                    if self.accumulate {
                        for (sums, register) in sums.iter_mut().zip(pair.iter()) {
                            for (v, sum) in sums.iter_mut().enumerate() {
                                *sum = _mm256_loadu_ps(register.as_ptr().add(8 * v).cast());
                            }
                        }
                    }
                    let mut a = self.a.as_ptr().add(32 * half);
                    let mut b = self.b.as_ptr().add(group * self.k * B_WIDTH);
                    for _ in 0..self.k {
                        let even = _mm256_broadcast_ps(&*b.cast());
                        let odd = _mm256_broadcast_ps(&*b.add(4).cast());
                        let [evens, odds] = &mut sums;
                        for (v, (left, right)) in evens.iter_mut().zip(odds).enumerate() {
                            let rows = _mm256_loadu_ps(a.add(8 * v));
                            *left = _mm256_fmadd_ps(rows, even, *left);
                            *right = _mm256_fmadd_ps(rows, odd, *right);
                        }
                        a = a.add(A_WIDTH);
                        b = b.add(B_WIDTH);
                    }
                    for (sums, register) in sums.iter().zip(pair.iter_mut()) {
                        for (v, &sum) in sums.iter().enumerate() {
                            let bad = _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum);
                            let sum = _mm256_blendv_ps(sum, nan, bad);
                            _mm256_storeu_ps(register.as_mut_ptr().add(8 * v).cast(), sum);
                        }
                    }
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    unsafe fn avx512<const G: usize>(self) {
        use std::arch::x86_64::*;
        let nan = _mm512_set1_ps(f32::from_bits(NAN_F32));
        // Sums 2r and 2r+1 are the two halves of register r of each group.
        let mut sums = [[_mm512_setzero_ps(); 8]; G];
        // SAFETY: registers have two vectors each; panels were measured by `run`.
        unsafe {
            if self.accumulate {
                for (g, sums) in sums.iter_mut().enumerate() {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let register = self.d[4 * g + v / 2].as_ptr();
                        *sum = _mm512_loadu_ps(register.add(16 * (v & 1)).cast());
                    }
                }
            }
            let mut a = self.a.as_ptr();
            let mut b = self.b.as_ptr();
            for _ in 0..self.k {
                let rows = [
                    _mm512_loadu_ps(a),
                    _mm512_loadu_ps(a.add(16)),
                    _mm512_loadu_ps(a.add(32)),
                    _mm512_loadu_ps(a.add(48)),
                ];
                for (g, sums) in sums.iter_mut().enumerate() {
                    let columns = b.add(g * self.k * B_WIDTH);
                    let even = _mm512_broadcast_f32x4(_mm_loadu_ps(columns));
                    let odd = _mm512_broadcast_f32x4(_mm_loadu_ps(columns.add(4)));
                    sums[0] = _mm512_fmadd_ps(rows[0], even, sums[0]);
                    sums[1] = _mm512_fmadd_ps(rows[1], even, sums[1]);
                    sums[2] = _mm512_fmadd_ps(rows[0], odd, sums[2]);
                    sums[3] = _mm512_fmadd_ps(rows[1], odd, sums[3]);
                    sums[4] = _mm512_fmadd_ps(rows[2], even, sums[4]);
                    sums[5] = _mm512_fmadd_ps(rows[3], even, sums[5]);
                    sums[6] = _mm512_fmadd_ps(rows[2], odd, sums[6]);
                    sums[7] = _mm512_fmadd_ps(rows[3], odd, sums[7]);
                }
                a = a.add(A_WIDTH);
                b = b.add(B_WIDTH);
            }
            for (g, sums) in sums.iter().enumerate() {
                for (v, &sum) in sums.iter().enumerate() {
                    let bad = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
                    let sum = _mm512_mask_blend_ps(bad, sum, nan);
                    let register = self.d[4 * g + v / 2].as_mut_ptr();
                    _mm512_storeu_ps(register.add(16 * (v & 1)).cast(), sum);
                }
            }
        }
    }
}

/// Expands a few instructions' operands and multiplies; `each` gets every slab of the product,
/// with the registers from its first group on and whether to start from them.
fn multiply(
    form: &Form,
    level: Level,
    steps: &[Step<'_>],
    shared: &[u8],
    mut each: impl FnMut(usize, usize, Panels<'_>),
) -> Result<(), WgmmaError> {
    let per_step = form.k() as usize;
    let k = steps.len() * per_step;
    let groups = form.n as usize / 8;
    SCRATCH.with_borrow_mut(|scratch| {
        let a_panel = scratch.a.floats(k * A_WIDTH);
        let b_panel = scratch.b.floats(k * groups * B_WIDTH);
        for (s, step) in steps.iter().enumerate() {
            let of_step = s * per_step * B_WIDTH..(s + 1) * per_step * B_WIDTH;
            let groups = b_panel.chunks_exact_mut(k * B_WIDTH);
            let panels = groups.map(|group| &mut group[of_step.clone()]);
            expand_b(form, level, &step.b, shared, panels)?;
        }
        let mut rows = [None; CHAIN];
        for (rows, step) in rows.iter_mut().zip(steps) {
            *rows = regular_rows(step, shared);
        }
        for warp in 0..4 {
            let panels = a_panel.chunks_exact_mut(per_step * A_WIDTH);
            for ((step, rows), panel) in steps.iter().zip(rows).zip(panels) {
                expand_a(form, level, (step, rows), warp, shared, panel)?;
            }
            for first in (0..groups).step_by(GROUPS) {
                let panels = Panels {
                    level,
                    k,
                    groups: GROUPS.min(groups - first),
                    a: a_panel,
                    b: &b_panel[first * k * B_WIDTH..],
                };
                each(warp, first, panels);
            }
        }
        Ok(())
    })
}

/// Expanded operands of one slab.
struct Panels<'p> {
    level: Level,
    k: usize,
    groups: usize,
    a: &'p [f32],
    b: &'p [f32],
}

impl Panels<'_> {
    fn into(self, d: &mut [&mut Lanes], accumulate: bool) {
        Slab {
            k: self.k,
            a: self.a,
            b: self.b,
            d,
            accumulate,
        }
        .run(self.level);
    }

    /// The product alone, in f32, into registers of the caller's.
    fn into_fresh(self, registers: &mut [Lanes; 4 * GROUPS], accumulate: bool) {
        let count = 4 * self.groups;
        let mut all = registers.each_mut();
        self.into(&mut all[..count], accumulate);
    }
}

/// A·B + C of one warp's fragments, as `mma.sync` has them, where K fills 32 bytes and the vector
/// units can widen both types: the same slab as a warp's share of a wgmma, one group wide.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fragments(
    (left, a): (Element, [&Lanes; 4]),
    (right, b): (Element, [&Lanes; 2]),
    c: [&Lanes; 4],
) -> Option<[Lanes; 4]> {
    let level = Level::in_force();
    let (left, right) = Kind::of(left).zip(Kind::of(right))?;
    if level < Level::Avx2 {
        return None;
    }
    // Four lanes of B's registers are a column's chunk, as it would lie in shared memory.
    let registers = b.map(|register| *register);
    let columns = Groups {
        base: registers.as_ptr().cast(),
        chunks: std::array::from_fn(|column| [16 * column as u32, 128 + 16 * column as u32]),
        stride: 0,
    };
    let a = Fragment::Registers(a);
    let k = left.depth();
    let mut d = c.map(|register| *register);
    SCRATCH.with_borrow_mut(|scratch| {
        let (a_panel, b_panel) = (scratch.a.floats(k * A_WIDTH), scratch.b.floats(k * B_WIDTH));
        // SAFETY: the level was detected, and the chunks are those of two registers.
        unsafe {
            match level {
                Level::Avx512 => x86::expand_a_avx512(left, false, a, a_panel),
                _ => x86::expand_a_avx2(left, false, a, a_panel),
            }
            x86::expand_b(right, columns, std::iter::once(&mut *b_panel));
        }
        Slab {
            k,
            a: a_panel,
            b: b_panel,
            d: &mut d.each_mut(),
            accumulate: true,
        }
        .run(level);
    });
    Some(d)
}

/// f32 accumulators.
pub(super) fn floats(
    form: &Form,
    level: Level,
    steps: &[Step<'_>],
    shared: &[u8],
    d: &mut [&mut Lanes],
) -> Result<(), WgmmaError> {
    let registers = form.registers();
    for chain in steps.chunks(CHAIN) {
        let accumulate = chain[0].accumulate;
        multiply(form, level, chain, shared, |warp, first, panels| {
            let start = warp * registers + 4 * first;
            let count = 4 * panels.groups;
            panels.into(&mut d[start..start + count], accumulate);
        })?;
    }
    Ok(())
}

/// f16 accumulators: one rounding per instruction.
pub(super) fn halves(
    form: &Form,
    level: Level,
    steps: &[Step<'_>],
    shared: &[u8],
    d: &mut [&mut Lanes],
) -> Result<(), WgmmaError> {
    let registers = form.registers();
    for step in steps.chunks(1) {
        let accumulate = step[0].accumulate;
        multiply(form, level, step, shared, |warp, first, panels| {
            let start = warp * registers + 2 * first;
            let packed = &mut d[start..start + 2 * panels.groups];
            let mut wide = [[0u32; 32]; 4 * GROUPS];
            for (pair, register) in wide.as_chunks_mut::<2>().0.iter_mut().zip(packed.iter()) {
                pair[0] = lanes::f32_from_f16(register);
                pair[1] = lanes::f32_from_f16(&register.map(|x| x >> 16));
            }
            panels.into_fresh(&mut wide, accumulate);
            for (pair, register) in wide.as_chunks::<2>().0.iter().zip(packed) {
                **register = lanes::f16x2_from_f32(&pair[1], &pair[0]);
            }
        })?;
    }
    Ok(())
}

/// 8-bit integers. A product has 16 bits and an instruction sums 32 of them: exact in f32.
pub(super) fn integers(
    form: &Form,
    level: Level,
    steps: &[Step<'_>],
    shared: &[u8],
    d: &mut [&mut Lanes],
) -> Result<(), WgmmaError> {
    debug_assert!(matches!(form.a, Element::S8 | Element::U8));
    let registers = form.registers();
    for step in steps.chunks(1) {
        let accumulate = step[0].accumulate;
        multiply(form, level, step, shared, |warp, first, panels| {
            let start = warp * registers + 4 * first;
            let integers = &mut d[start..start + 4 * panels.groups];
            let mut sums = [[0u32; 32]; 4 * GROUPS];
            panels.into_fresh(&mut sums, false);
            for (sum, register) in sums.iter().zip(integers) {
                for (sum, lane) in sum.iter().zip(register.iter_mut()) {
                    // SAFETY: an exact integer of at most 22 bits; the checked cast is slow.
                    let sum: i32 = unsafe { f32::from_bits(*sum).to_int_unchecked() };
                    let old = if accumulate { *lane as i32 } else { 0 };
                    *lane = match form.satfinite {
                        true => old.saturating_add(sum),
                        false => old.wrapping_add(sum),
                    } as u32;
                }
            }
        })?;
    }
    Ok(())
}
