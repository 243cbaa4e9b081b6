use super::*;
use half::{bf16, f16};
use proptest::prelude::*;

const S32: Integer = Integer {
    bits: 32,
    signed: true,
};
const U8: Integer = Integer {
    bits: 8,
    signed: false,
};
const S64: Integer = Integer {
    bits: 64,
    signed: true,
};

fn number(format: Format, bits: u64) -> f64 {
    f64::from_bits(float_to_float(format, Format::F64, bits, Cvt::default()))
}

#[test]
fn every_half_widens_as_the_half_crate_says() {
    for bits in 0..=u16::MAX {
        let (ours, theirs) = (
            number(Format::F16, bits.into()),
            f16::from_bits(bits).to_f64(),
        );
        assert!(
            ours == theirs || ours.is_nan() && theirs.is_nan(),
            "{bits:#x}"
        );
        let (ours, theirs) = (
            number(Format::BF16, bits.into()),
            bf16::from_bits(bits).to_f64(),
        );
        assert!(
            ours == theirs || ours.is_nan() && theirs.is_nan(),
            "{bits:#x}"
        );
    }
}

/// The nearest code by search over all codes, ties to the even one, is what `.rn` means.
fn nearest_by_search(format: Format, codes: u64, x: f64) -> u64 {
    let top = codes / 2;
    let candidates = (0..top).filter(|&c| number(format, c).is_finite());
    let best = candidates
        .min_by(|&a, &b| {
            let gap = |c| (number(format, c) - x.abs()).abs();
            gap(a).total_cmp(&gap(b)).then((a & 1).cmp(&(b & 1)))
        })
        .expect("a format has finite codes");
    best | if x.is_sign_negative() { top } else { 0 }
}

#[test]
fn small_formats_round_to_the_nearest_code() {
    let satfinite = Cvt {
        satfinite: true,
        ..Cvt::default()
    };
    let formats = [
        (Format::E4M3, 256),
        (Format::E5M2, 256),
        (Format::E2M1, 16),
        (Format::E2M3, 64),
        (Format::E3M2, 64),
    ];
    for (format, codes) in formats {
        for step in (0..0x1_0000u32).step_by(7) {
            let half = f16::from_bits(step as u16);
            if half.is_nan() {
                continue;
            }
            let got = float_to_float(Format::F16, format, step.into(), satfinite);
            let want = nearest_by_search(format, codes, half.to_f64().clamp(-1e6, 1e6));
            assert_eq!(got, want, "{format:?} {half}");
        }
    }
}

#[test]
fn nan_becomes_what_the_hardware_writes() {
    let satfinite = Cvt {
        satfinite: true,
        ..Cvt::default()
    };
    let nan = 0xffc0_1234;
    for (format, want) in [
        (Format::F16, 0x7fff),
        (Format::TF32, 0x7fff_e000),
        (Format::E4M3, 0x7f),
        (Format::E2M1, 7),
    ] {
        assert_eq!(float_to_float(Format::F32, format, nan, satfinite), want);
    }
    assert_eq!(
        float_to_int(Format::F32, S32, nan, Rounding::Zero, false),
        0
    );
    assert_eq!(
        float_to_int(Format::F32, S64, nan, Rounding::Zero, false),
        1 << 63
    );
    assert_eq!(
        float_to_float(
            Format::F32,
            Format::F16,
            nan,
            Cvt {
                relu: true,
                ..Cvt::default()
            }
        ),
        0x7fff
    );
}

#[test]
fn some_conversions_keep_the_payload_of_nan() {
    let rn = Cvt::default();
    assert_eq!(
        float_to_float(Format::F32, Format::F64, 0x7f80_0001, rn),
        0x7ff8_0000_2000_0000
    );
    let ftz = Cvt { ftz: true, ..rn };
    assert_eq!(
        float_to_float(Format::F32, Format::F64, 0xff80_0001, ftz),
        0x7fff_ffff_e000_0000
    );
    assert_eq!(
        float_to_float(Format::F64, Format::F16, 0xfff0_0000_0000_0001, rn),
        0xfe00
    );
    assert_eq!(
        float_to_float(Format::BF16, Format::F32, 0x7f81, rn),
        0x7f81_0000
    );
    let rna = Cvt {
        rounding: Rounding::NearestAway,
        ..rn
    };
    assert_eq!(
        float_to_float(Format::F32, Format::TF32, 0x7f9e_186d, rna),
        0x7f9e_0000
    );
    assert_eq!(
        float_to_float(
            Format::F32,
            Format::TF32,
            0xff80_0001,
            Cvt {
                satfinite: true,
                ..rna
            }
        ),
        0xff7f_e000
    );
}

#[test]
fn integers_saturate_and_extend() {
    let bits = |x: f32| u64::from(x.to_bits());
    assert_eq!(
        float_to_int(Format::F32, S32, bits(3e9), Rounding::Zero, false),
        0x7fff_ffff
    );
    assert_eq!(
        float_to_int(Format::F32, U8, bits(-1.0), Rounding::Zero, false),
        0
    );
    assert_eq!(
        float_to_int(Format::F32, U8, bits(2.5), Rounding::NearestEven, false),
        2
    );
    assert_eq!(
        float_to_int(Format::F32, S32, bits(-2.5), Rounding::Down, false),
        (-3i32) as u32 as u64
    );
    assert_eq!(int_to_int(S32, U8, (-5i32) as u32 as u64, true), 0);
    assert_eq!(
        int_to_int(
            Integer {
                bits: 8,
                signed: true
            },
            S64,
            0x80,
            false
        ),
        (-128i64) as u64
    );
    assert_eq!(
        round_to_integral(
            Format::F32,
            Format::F32,
            bits(-0.3),
            Rounding::NearestEven,
            Cvt::default()
        ),
        0x8000_0000
    );
}

#[test]
fn pairs_put_the_first_operand_on_top() {
    let rn = Cvt::default();
    assert_eq!(
        pair_from_f32(Format::F16, 1f32.to_bits(), 2f32.to_bits(), rn),
        0x3c00_4000
    );
    assert_eq!(
        pair_to_pair(Format::E4M3, Format::F16, 0x3840, rn),
        0x3c00_4000
    );
    assert_eq!(
        pair_from_f32(Format::E2M1, 1f32.to_bits(), 6f32.to_bits(), rn),
        0x27
    );
    assert_eq!(ue8m0_from_f32(3f32.to_bits(), Rounding::Up), 129);
    assert_eq!(ue8m0_from_f32(3f32.to_bits(), Rounding::Zero), 128);
}

#[test]
fn fixed_point_and_scales() {
    let one = |x: f32, scale| to_s2f6(Format::F32, u64::from(x.to_bits()), scale, false);
    assert_eq!(one(1.0, 127), 64);
    assert_eq!(one(-1.0, 128), 0xe0);
    assert_eq!(one(5.0, 127), 127);
    assert_eq!(one(-5.0, 127), 0x81);
    assert_eq!(one(f32::NEG_INFINITY, 127), 0x81);
    assert_eq!(one(f32::NAN, 127), 127);
    assert_eq!(one(0.5 / 64.0, 127), 0);
    assert_eq!(one(1.5 / 64.0, 127), 2);
    assert_eq!(
        to_s2f6(Format::F32, u64::from((-1f32).to_bits()), 127, true),
        0
    );
    let rn = Cvt::default();
    // 1.0 and -0.5 in fixed point; twice and half of them.
    assert_eq!(scaled_to_bf16(None, 0x40e0, 0x807e, rn), 0x4000_be80);
    assert_eq!(
        scaled_to_bf16(Some(Format::E2M1), 0x2f, 0x7f7f, rn),
        0x3f80_c0c0
    );
    assert_eq!(
        scaled_to_bf16(Some(Format::E4M3), 0x3838, 0xff7f, rn),
        0x7fff_3f80
    );
}

#[test]
fn stochastic_rounding_carries_into_the_result() {
    let satfinite = Cvt {
        satfinite: true,
        ..Cvt::default()
    };
    let one = |to, x: f32, random: u32| {
        let bits = x.to_bits();
        stochastic(to, &[bits; 4], random, satfinite) & ((1 << pair_width(to)) - 1)
    };
    // 1.25 lies half-way between the e2m1 codes 2 (1.0) and 3 (1.5): the top bit decides.
    assert_eq!(one(Format::E2M1, 1.25, 0x0080_0000), 3);
    assert_eq!(one(Format::E2M1, 1.25, 0x007f_00ff), 2);
    // What is exact stays, whatever the bits, and what is too large is the largest.
    assert_eq!(one(Format::E2M1, 1.5, u32::MAX), 3);
    assert_eq!(one(Format::E2M1, -100.0, u32::MAX), 0xf);
    assert_eq!(one(Format::E2M1, f32::NAN, 0), 7);
    assert_eq!(one(Format::E4M3, f32::NAN, 0), 0x7f);
    // A quarter above 1.0 in e4m3 (step 1/8): three quarters of all bits leave it there.
    let ups = (0..256u32).filter(|b| one(Format::E4M3, 1.03125, b << 8) == 0x39);
    assert_eq!(ups.count(), 64);
    // Each half has bits of its own: only the upper one of f16 is rounded up here.
    let above = (1.0f32 + f32::EPSILON * 4096.0).to_bits();
    let cvt = Cvt::default();
    assert_eq!(
        stochastic(Format::F16, &[above; 2], 0x1000_0000, cvt),
        0x3c01_3c00
    );
    assert_eq!(
        stochastic(
            Format::BF16,
            &[1.003_906_3f32.to_bits(); 2],
            0x8000_7fff,
            cvt
        ),
        0x3f81_3f80
    );
    // The first of four is on top, and shares its bits with the second.
    let four = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits);
    assert_eq!(stochastic(Format::E2M1, &four, 0, satfinite), 0x2456);
    assert_eq!(
        stochastic(
            Format::E5M2,
            &[1.125f32.to_bits(); 4],
            0x8000_0000,
            satfinite
        ),
        0x3d3d_3c3c
    );
    let relu = Cvt {
        relu: true,
        ..satfinite
    };
    assert_eq!(
        stochastic(Format::E2M3, &[(-1f32).to_bits(); 4], 0, relu),
        0
    );
}

proptest! {
    #[test]
    fn integers_become_floats_as_on_the_host(x in any::<i64>()) {
        prop_assert_eq!(int_to_float(S64, Format::F32, x as u64, Cvt::default()), u64::from((x as f32).to_bits()));
        prop_assert_eq!(int_to_float(Integer { bits: 64, signed: false }, Format::F64, x as u64, Cvt::default()), (x as u64 as f64).to_bits());
    }

    #[test]
    fn narrowing_agrees_with_the_half_crate(x in any::<f32>()) {
        prop_assume!(!x.is_nan());
        let bits = u64::from(x.to_bits());
        prop_assert_eq!(float_to_float(Format::F32, Format::F16, bits, Cvt::default()), u64::from(f16::from_f32(x).to_bits()));
        prop_assert_eq!(float_to_float(Format::F32, Format::BF16, bits, Cvt::default()), u64::from(bf16::from_f32(x).to_bits()));
        prop_assert_eq!(float_to_int(Format::F32, S32, bits, Rounding::Zero, false), u64::from(x as i32 as u32));
    }
}
