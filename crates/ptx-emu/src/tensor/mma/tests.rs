//! Layouts by one-hot operands, sums against their definition, and equality of the paths.

use super::*;
use half::f16;

fn refs(registers: &[Lanes]) -> Vec<&Lanes> {
    registers.iter().collect()
}

fn f16_form(k: u32, d: Accumulator) -> Form {
    Form::new(
        (16, 8, k),
        Element::F16,
        Element::F16,
        d,
        BitProduct::And,
        false,
    )
    .expect("exists")
}

/// One-hot A against a B that tells (k, n): D has the row of A and B's value.
#[test]
fn fragments_are_laid_out_as_documented() {
    let form = f16_form(16, Accumulator::F32);
    let mut b = [[0u32; 32]; 2];
    for (j, register) in b.iter_mut().enumerate() {
        for (lane, word) in register.iter_mut().enumerate() {
            for e in 0..2 {
                let (k, n) = (8 * j + 2 * (lane % 4) + e, lane / 4);
                *word |= u32::from(f16::from_f32((k * 8 + n) as f32).to_bits()) << (16 * e);
            }
        }
    }
    for register in 0..4 {
        for lane in 0..32 {
            for e in 0..2 {
                let mut a = [[0u32; 32]; 4];
                a[register][lane] = 0x3c00 << (16 * e);
                let (row, k) = (
                    lane / 4 + 8 * (register & 1),
                    2 * (lane % 4) + e + 8 * (register / 2),
                );
                let d = form
                    .run(&refs(&a), &refs(&b), &refs(&[[0; 32]; 4]), Numerics::Fast)
                    .expect("counts match");
                for (i, d) in d.iter().enumerate().take(4) {
                    for (l, &got) in d.iter().enumerate() {
                        let (r, n) = (l / 4 + 8 * (i / 2), 2 * (l % 4) + (i & 1));
                        let want = if r == row { (k * 8 + n) as f32 } else { 0.0 };
                        assert_eq!(f32::from_bits(got), want);
                    }
                }
            }
        }
    }
}

fn noise(seed: u32, count: usize) -> Vec<Lanes> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..count)
        .map(|_| std::array::from_fn(|_| next()))
        .collect()
}

/// Integer forms against the definition, with the layout formulated from the k side.
#[test]
fn integer_products_are_exact_in_every_shape() {
    let shapes = [
        (8, 16, Element::S8),
        (16, 16, Element::U8),
        (16, 32, Element::S8),
        (8, 32, Element::S4),
        (16, 32, Element::U4),
        (16, 64, Element::S4),
    ];
    for (m, k, element) in shapes {
        let form = Form::new(
            (m, 8, k),
            element,
            element,
            Accumulator::S32,
            BitProduct::And,
            false,
        )
        .expect("exists");
        let (a, b) = (
            noise(m * k, form.a_registers()),
            noise(7 * m * k, form.b_registers()),
        );
        let c = noise(3, form.d_registers());
        let d = form
            .run(&refs(&a), &refs(&b), &refs(&c), Numerics::Fast)
            .expect("counts match");
        let per = 32 / element.bits() as usize;
        let pick = |word: u32, k: usize| {
            element.integer(
                word >> (k % per * element.bits() as usize) & (u32::MAX >> (32 - element.bits())),
            )
        };
        for row in 0..m as usize {
            for n in 0..8 {
                let (i, lane) = (2 * (row / 8) + n % 2, row % 8 * 4 + n / 2);
                let mut want = c[i][lane] as i32;
                for k in 0..k as usize {
                    let (block, t) = (k / (4 * per), k / per % 4);
                    let x = a[block * (m as usize / 8) + row / 8][row % 8 * 4 + t];
                    want = want.wrapping_add(pick(x, k) * pick(b[block][n * 4 + t], k));
                }
                assert_eq!(d[i][lane] as i32, want, "{form:?} ({row}, {n})");
            }
        }
    }
}

#[test]
fn bits_are_counted() {
    for (product, want) in [(BitProduct::And, 256 + 5), (BitProduct::Xor, 5)] {
        let form = Form::new(
            (16, 8, 256),
            Element::B1,
            Element::B1,
            Accumulator::S32,
            product,
            false,
        )
        .expect("exists");
        let ones = [[u32::MAX; 32]; 4];
        let d = form
            .run(
                &refs(&ones),
                &refs(&ones[..2]),
                &refs(&[[5; 32]; 4]),
                Numerics::Fast,
            )
            .expect("counts match");
        assert!(d[..4].iter().flatten().all(|&x| x == want));
    }
}

#[test]
fn exact_and_fast_agree_where_sums_are_exact() {
    for d in [Accumulator::F16, Accumulator::F32] {
        let form = f16_form(16, d);
        let small = |seed, n| -> Vec<Lanes> {
            noise(seed, n)
                .into_iter()
                .map(|r| {
                    r.map(|x| {
                        let part =
                            |x: u32| u32::from(f16::from_f32((x % 15) as f32 - 7.0).to_bits());
                        part(x >> 16) << 16 | part(x & 0xffff)
                    })
                })
                .collect()
        };
        let (a, b) = (small(5, 4), small(6, 2));
        let c = vec![[0; 32]; form.d_registers()];
        let run = |numerics| {
            form.run(&refs(&a), &refs(&b), &refs(&c), numerics)
                .expect("counts match")
        };
        assert_eq!(run(Numerics::Fast), run(Numerics::Exact));
    }
}

#[test]
fn vectors_give_what_the_plain_sums_give() {
    let forms = [
        ((16, 8, 16), Element::F16, Element::F16),
        ((16, 8, 16), Element::Bf16, Element::Bf16),
        ((16, 8, 8), Element::Tf32, Element::Tf32),
        ((16, 8, 32), Element::E4m3, Element::E5m2),
    ];
    for (shape, left, right) in forms {
        let form = Form::new(shape, left, right, Accumulator::F32, BitProduct::And, false)
            .expect("exists");
        // Exponents near the middle, so that no product leaves the range of f32.
        let middle = |registers: Vec<Lanes>| -> Vec<Lanes> {
            let tame = |x: u32| x & 0xb3b3_b3b3 | 0x2020_2020;
            registers.into_iter().map(|r| r.map(tame)).collect()
        };
        let (a, b) = (middle(noise(5, 4)), middle(noise(6, 2)));
        let c = middle(noise(7, 4));
        let (a, b, c) = (refs(&a), refs(&b), refs(&c));
        let plain = form.floats(&a, &b, &c);
        assert_eq!(form.run(&a, &b, &c, Numerics::Fast), Ok(plain), "{form:?}");
    }
}

#[test]
fn doubles_keep_their_words_in_order() {
    let form = Form::new(
        (8, 8, 4),
        Element::F64,
        Element::F64,
        Accumulator::F64,
        BitProduct::And,
        false,
    )
    .expect("exists");
    let split = |x: f64| [[x.to_bits() as u32; 32], [(x.to_bits() >> 32) as u32; 32]];
    let (a, b) = (split(1.5), split(2.1));
    let c = [split(0.25), split(-1.0)].concat();
    let d = form
        .run(&refs(&a), &refs(&b), &refs(&c), Numerics::Fast)
        .expect("counts match");
    let got = |i: usize| f64::from_bits(u64::from(d[2 * i + 1][9]) << 32 | u64::from(d[2 * i][9]));
    let sum = |c: f64| (0..4).fold(c, |s, _| 1.5f64.mul_add(2.1, s));
    assert_eq!((got(0), got(1)), (sum(0.25), sum(-1.0)));
}

#[test]
fn unknown_forms_are_refused() {
    let form = Form::new(
        (16, 8, 24),
        Element::F16,
        Element::F16,
        Accumulator::F32,
        BitProduct::And,
        false,
    );
    assert!(form.is_err());
    let form = f16_form(8, Accumulator::F32);
    let error = form.run(&[], &[], &[], Numerics::Fast);
    assert_eq!(
        error,
        Err(MmaError::Registers {
            operand: 'A',
            expected: 2,
            got: 0
        })
    );
}
