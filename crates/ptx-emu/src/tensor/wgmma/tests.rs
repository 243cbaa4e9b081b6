//! Layouts by one-hot operands, arithmetic against plain sums, and equality of the paths.

use super::exact::place;
use super::*;
use crate::tensor::Swizzle;
use crate::tensor::descriptor::Major;
use half::f16;
use proptest::prelude::*;

const SMEM: usize = 128 * 1024;
const B_AT: u32 = 64 * 1024;

/// A tile of 16-bit elements laid out as `matrix` says.
fn store(shared: &mut [u8], matrix: &Matrix, mn: u32, k: u32, value: f32) {
    let address = matrix.half_address(mn, k) as usize;
    shared[address..address + 2].copy_from_slice(&f16::from_f32(value).to_bits().to_le_bytes());
}

fn tile(start: u32, swizzle: Swizzle, major: Major) -> Matrix {
    let (leading, stride) = match (swizzle, major) {
        (Swizzle::None, Major::K) => (128, 256),
        (Swizzle::None, Major::Mn) => (8192, 128),
        (swizzle, Major::K) => (16, 8 * swizzle.span()),
        (swizzle, Major::Mn) => (16 * swizzle.span(), 8 * swizzle.span()),
    };
    Matrix {
        start,
        leading,
        stride,
        base_offset: 0,
        swizzle,
        major,
        unit: 8,
    }
}

struct Registers(Vec<Lanes>);

impl Registers {
    fn new(form: &Form, fill: u32) -> Self {
        Self(vec![[fill; 32]; 4 * form.registers()])
    }

    fn run(
        &mut self,
        form: &Form,
        level: Level,
        steps: &[Step<'_>],
        shared: &[u8],
        numerics: Numerics,
    ) -> Result<(), WgmmaError> {
        let mut d: Vec<&mut Lanes> = self.0.iter_mut().collect();
        form.run_at(level, steps, shared, &mut d, numerics)
    }

    fn f32(&self, form: &Form, row: usize, column: usize) -> f32 {
        let (register, lane) = place(row % 16, column);
        f32::from_bits(self.0[row / 16 * form.registers() + register][lane])
    }
}

fn f16_form(n: u32) -> Form {
    Form::new(
        n,
        Element::F16,
        Element::F16,
        Accumulator::F32,
        false,
        false,
    )
    .expect("a legal form")
}

/// A[i][k] = i when k is the hot one, B[j][k] likewise: D[i][j] = i * j if they meet.
#[test]
fn every_layout_puts_every_element_in_its_place() {
    let form = f16_form(96);
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        for (major_a, major_b) in [
            (Major::K, Major::K),
            (Major::Mn, Major::K),
            (Major::K, Major::Mn),
            (Major::Mn, Major::Mn),
        ] {
            for hot in [0, 3, 8, 15] {
                let (a, b) = (tile(0, swizzle, major_a), tile(B_AT, swizzle, major_b));
                let mut shared = vec![0u8; SMEM];
                for row in 0..64 {
                    store(&mut shared, &a, row, hot, row as f32 + 1.0);
                }
                for column in 0..96 {
                    store(&mut shared, &b, column, hot, column as f32 - 40.0);
                }
                for level in Level::available() {
                    let mut d = Registers::new(&form, f32::NAN.to_bits());
                    let step = Step {
                        a: OperandA::Shared(a),
                        b,
                        accumulate: false,
                    };
                    d.run(&form, level, &[step], &shared, Numerics::Fast)
                        .expect("inside shared memory");
                    for row in 0..64 {
                        for column in 0..96 {
                            let want = (row as f32 + 1.0) * (column as f32 - 40.0);
                            assert_eq!(
                                d.f32(&form, row, column),
                                want,
                                "{level:?} {swizzle:?} {major_a:?} {major_b:?} k{hot} ({row}, {column})"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_accumulator_layout_is_the_documented_one() {
    for i in 0..64 {
        for lane in 0..32 {
            let row = lane / 4 + 8 * ((i / 2) & 1);
            let column = 8 * (i / 4) + 2 * (lane % 4) + (i & 1);
            assert_eq!(place(row, column), (i, lane));
        }
    }
}

/// Each fragment register and lane holds rows r, r+8 and k, k+8 as the PTX ISA draws them.
#[test]
fn register_fragments_hold_the_documented_elements() {
    let form = f16_form(8);
    let b = tile(B_AT, Swizzle::None, Major::K);
    let mut shared = vec![0u8; SMEM];
    for k in 0..16 {
        store(&mut shared, &b, k % 8, k, if k < 8 { 1.0 } else { 100.0 });
    }
    for register in 0..4 {
        for lane in 0..32 {
            let mut warps = [[[0u32; 32]; 4]; 4];
            warps[2][register][lane] = 0x4000_3c00; // (1, 2)
            let mut d = Registers::new(&form, 0);
            let step = Step {
                a: OperandA::Registers(warps.each_ref().map(|w| w.each_ref())),
                b,
                accumulate: true,
            };
            d.run(&form, Level::best(), &[step], &shared, Numerics::Fast)
                .expect("inside shared memory");
            let row = 32 + lane / 4 + 8 * (register & 1);
            let column = 2 * (lane % 4);
            let scale = if register < 2 { 1.0 } else { 100.0 };
            assert_eq!(
                d.f32(&form, row, column),
                scale,
                "register {register} lane {lane}"
            );
            assert_eq!(d.f32(&form, row, column + 1), 2.0 * scale);
            assert_eq!(d.0.iter().flatten().filter(|&&x| x != 0).count(), 2);
        }
    }
}

/// Pseudo-random bytes for operands of any type; no NaN or infinity in any of them.
fn noise(seed: u32, len: usize, mask: u8) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8 & mask
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn operand_forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for (a, b, d) in [
        (Element::F16, Element::F16, Accumulator::F32),
        (Element::F16, Element::F16, Accumulator::F16),
        (Element::Bf16, Element::Bf16, Accumulator::F32),
        (Element::Tf32, Element::Tf32, Accumulator::F32),
        (Element::E4m3, Element::E5m2, Accumulator::F32),
        (Element::E5m2, Element::E4m3, Accumulator::F16),
        (Element::S8, Element::U8, Accumulator::S32),
        (Element::U8, Element::S8, Accumulator::S32),
        (Element::B1, Element::B1, Accumulator::S32),
    ] {
        for n in [8, 24, 128, 176, 256] {
            let negate = d != Accumulator::S32 && n == 24;
            forms.push(Form::new(n, a, b, d, negate, n == 128).expect("a legal form"));
        }
    }
    forms
}

/// Every form, chain and level gives the sums an f64 (or i64) loop gives.
#[test]
fn sums_are_right_for_every_type() {
    for (seed, form) in operand_forms().into_iter().enumerate() {
        // Exponents near the middle of the range: where products underflow, the path without a
        // fused multiply-add may round differently.
        let shared: Vec<u8> = noise(seed as u32, SMEM, 0xb3)
            .into_iter()
            .map(|byte| byte | 0x20)
            .collect();
        let (a, b) = (
            tile(0, Swizzle::B128, Major::K),
            tile(B_AT, Swizzle::B64, Major::K),
        );
        let at = |m: Matrix, by: u32| Matrix {
            start: m.start + by,
            ..m
        };
        let steps = [
            Step {
                a: OperandA::Shared(a),
                b,
                accumulate: true,
            },
            Step {
                a: OperandA::Shared(at(a, 32)),
                b: at(b, 32),
                accumulate: true,
            },
        ];
        let mut first: Option<Registers> = None;
        for level in Level::available() {
            let mut d = Registers::new(&form, 0);
            d.run(&form, level, &steps, &shared, Numerics::Fast)
                .expect("inside shared memory");
            check_against_sums(&form, &steps, &shared, &d);
            match &first {
                None => first = Some(d),
                Some(first) => assert!(first.0 == d.0, "{form:?} at {level:?}"),
            }
        }
    }
}

fn check_against_sums(form: &Form, steps: &[Step<'_>], shared: &[u8], d: &Registers) {
    let value = |element: Element, code: u32| match matches!(element, Element::S8 | Element::U8) {
        true => f64::from(element.integer(code)),
        false => f64::from(element.value(code)),
    };
    let mut a = vec![vec![0f64; 512]; 64];
    let mut b = vec![vec![0f64; 512]; form.n as usize];
    let per = form.k() as usize;
    for (s, step) in steps.iter().enumerate() {
        for warp in 0..4 {
            expand::each_a(form, step, warp, shared, |r, k, code| {
                a[16 * warp + r][s * per + k] = value(form.a, code)
            })
            .expect("inside");
        }
        for group in 0..form.n as usize / 8 {
            expand::each_b(form, &step.b, group, shared, |c, k, code| {
                b[8 * group + c][s * per + k] = value(form.b, code)
            })
            .expect("inside");
        }
    }
    for row in (0..64).step_by(5) {
        for (column, b) in b.iter().enumerate() {
            let dot: f64 = a[row].iter().zip(b).map(|(x, y)| x * y).sum();
            let size: f64 = a[row].iter().zip(b).map(|(x, y)| (x * y).abs()).sum();
            let want = if form.negate { -dot } else { dot };
            let (register, lane) = place(row % 16, column);
            let warp = row / 16 * form.registers();
            let (got, tolerance) = match form.d {
                Accumulator::F32 => (f64::from(f32::from_bits(d.0[warp + register][lane])), 1e-6),
                Accumulator::S32 => (f64::from(d.0[warp + register][lane] as i32), 0.0),
                Accumulator::F16 => {
                    let word = d.0[warp + register / 2][lane];
                    (
                        f16::from_bits((word >> (16 * (register & 1))) as u16).to_f64(),
                        2e-3,
                    )
                }
            };
            if form.d == Accumulator::F16 && want.abs() > 60000.0 {
                continue;
            }
            assert!(
                (got - want).abs() <= tolerance * size,
                "{form:?} ({row}, {column}): {got} for {want}"
            );
        }
    }
}

#[test]
fn integer_sums_saturate_only_when_asked() {
    let shared = vec![0x7f; SMEM];
    let matrix = tile(0, Swizzle::None, Major::K);
    let step = Step {
        a: OperandA::Shared(matrix),
        b: matrix,
        accumulate: true,
    };
    for (satfinite, want) in [
        (true, i32::MAX),
        (false, i32::MAX.wrapping_add(32 * 127 * 127)),
    ] {
        let form = Form::new(
            8,
            Element::S8,
            Element::S8,
            Accumulator::S32,
            false,
            satfinite,
        )
        .expect("a legal form");
        let mut d = Registers::new(&form, i32::MAX as u32);
        d.run(&form, Level::best(), &[step], &shared, Numerics::Fast)
            .expect("inside");
        assert!(d.0.iter().flatten().all(|&x| x as i32 == want));
    }
}

#[test]
fn illegal_forms_and_operands_say_why() {
    let shape = Form::new(
        12,
        Element::F16,
        Element::F16,
        Accumulator::F32,
        false,
        false,
    );
    assert_eq!(
        shape,
        Err(WgmmaError::Shape {
            n: 12,
            integer: false
        })
    );
    assert!(Form::new(40, Element::S8, Element::S8, Accumulator::S32, false, false).is_err());
    assert!(
        Form::new(
            64,
            Element::Bf16,
            Element::F16,
            Accumulator::F32,
            false,
            false
        )
        .is_err()
    );
    let form = f16_form(64);
    let step = Step {
        a: OperandA::Shared(tile(0, Swizzle::B128, Major::K)),
        b: tile(1024, Swizzle::B128, Major::K),
        accumulate: true,
    };
    let error =
        Registers::new(&form, 0).run(&form, Level::best(), &[step], &[0; 4096], Numerics::Fast);
    assert!(
        matches!(error, Err(WgmmaError::OutOfShared { .. })),
        "{error:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// On data whose sums are exact, the hardware-like sum and the fast one agree.
    #[test]
    fn exact_and_fast_agree_on_small_integers(seed in any::<u32>(), groups in 1u32..8, chained in 1usize..7) {
        let form = f16_form(8 * groups);
        let (a, b) = (tile(0, Swizzle::B128, Major::K), tile(B_AT, Swizzle::B128, Major::K));
        let mut shared = vec![0u8; SMEM];
        for (i, byte) in noise(seed, 64 * 64 + 64 * 64, 0x1f).into_iter().enumerate() {
            let (matrix, mn, k) = (if i < 4096 { &a } else { &b }, i as u32 % 4096 / 64, i as u32 % 64);
            let moved = Matrix { start: matrix.start + k / 16 * 32, ..*matrix };
            store(&mut shared, &moved, mn, k % 16, f32::from(byte) - 15.0);
        }
        let steps: Vec<Step<'_>> = (0..chained)
            .map(|s| {
                let by = 32 * (s as u32 % 4);
                Step { a: OperandA::Shared(Matrix { start: a.start + by, ..a }), b: Matrix { start: b.start + by, ..b }, accumulate: s != 2 }
            })
            .collect();
        let mut exact = Registers::new(&form, 3f32.to_bits());
        exact.run(&form, Level::Portable, &steps, &shared, Numerics::Exact).expect("inside");
        for level in Level::available() {
            let mut fast = Registers::new(&form, 3f32.to_bits());
            fast.run(&form, level, &steps, &shared, Numerics::Fast).expect("inside");
            prop_assert!(fast.0 == exact.0, "{level:?}");
        }
    }
}
