//! Single elements of every type.

use dgx_core::operator::ElementType;
use half::{bf16, f16};

use super::{E2M1, E4M3, E5M2, E8M0, Small};

/// The formats of at most eight bits that use a table. For a block-scaled type: that of its
/// elements.
pub(super) fn table(element: ElementType) -> Option<&'static Small> {
    use ElementType::*;
    match element {
        E4m3 | Mxfp8 => Some(&E4M3),
        E5m2 => Some(&E5M2),
        E2m1 | Nvfp4 | Mxfp4 => Some(&E2M1),
        E8m0 => Some(&E8M0),
        F64 | F32 | F16 | Bf16 | I32 | I8 | U8 | Bool => None,
    }
}

/// The exact value of an element's bits. An element of a block-scaled type is taken without its
/// scale.
pub fn decode(element: ElementType, bits: u64) -> f64 {
    use ElementType::*;
    match element {
        F64 => f64::from_bits(bits),
        F32 => f64::from(f32::from_bits(bits as u32)),
        F16 => f16::from_bits(bits as u16).to_f64(),
        Bf16 => bf16::from_bits(bits as u16).to_f64(),
        I32 => f64::from(bits as u32 as i32),
        I8 => f64::from(bits as u8 as i8),
        U8 => f64::from(bits as u8),
        Bool => f64::from(u8::from(bits as u8 != 0)),
        E4m3 | E5m2 | E2m1 | E8m0 | Mxfp4 | Mxfp8 | Nvfp4 => {
            table(element).expect("a small format").decode(bits as u8)
        }
    }
}

/// The bits nearest to a value, ties to even, like the conversion instruction of the type:
/// - f32, f16, bf16 overflow to infinity (`cvt.rn`);
/// - e4m3, e5m2 and e2m1 saturate to the largest finite value, infinity too
///   (`cvt.rn.satfinite`); NaN stays NaN, and 6 in e2m1, which has none;
/// - integers saturate, and NaN is 0 (`cvt.rni.sat`);
/// - bool is whether the value is not 0.
pub fn encode(element: ElementType, value: f64) -> u64 {
    use ElementType::*;
    match element {
        F64 => value.to_bits(),
        F32 => u64::from((value as f32).to_bits()),
        F16 => u64::from(to_16_bits::<10>(value, 15)),
        Bf16 => u64::from(to_16_bits::<7>(value, 127)),
        // `as` saturates, and makes NaN 0.
        I32 => u64::from(value.round_ties_even() as i32 as u32),
        I8 => u64::from(value.round_ties_even() as i8 as u8),
        U8 => u64::from(value.round_ties_even() as u8),
        Bool => u64::from(value != 0.0),
        E4m3 | E5m2 | E2m1 | E8m0 | Mxfp4 | Mxfp8 | Nvfp4 => {
            u64::from(table(element).expect("a small format").encode(value))
        }
    }
}

/// The nearest value that the type has.
pub fn rounded(element: ElementType, value: f64) -> f64 {
    decode(element, encode(element, value))
}

/// A 16-bit float of `MANTISSA` bits and the bias of its exponent, to the nearest. Written for
/// speed: all drawn data go through it.
fn to_16_bits<const MANTISSA: u32>(value: f64, bias: u64) -> u16 {
    let magnitude = value.to_bits() & (u64::MAX >> 1);
    let sign = (value.to_bits() >> 48) as u16 & 0x8000;
    let infinity = ((1 << (15 - MANTISSA)) - 1) << MANTISSA;
    let (rebias, dropped) = (1023 - bias, 52 - MANTISSA);
    if value.is_nan() {
        return sign | infinity | 1 << (MANTISSA - 1);
    }
    // Below the normal numbers every unit is the same: an addition that leaves no bits below it
    // rounds to it.
    if magnitude < (rebias + 1) << 52 {
        let unit = f64::from_bits((rebias + 1 + u64::from(dropped)) << 52);
        return sign | (f64::from_bits(magnitude) + unit).to_bits() as u16;
    }
    let even = magnitude >> dropped & 1;
    let rounded = (magnitude + (1 << (dropped - 1)) - 1 + even) >> dropped;
    let code = rounded - (rebias << MANTISSA);
    sign | code.min(infinity.into()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of a 16-bit type, the midpoint to the next, and values just beside that
    /// midpoint, which f32 cannot distinguish from it.
    #[test]
    fn sixteen_bits_round_once() {
        for element in [ElementType::F16, ElementType::Bf16] {
            let infinity = encode(element, f64::INFINITY);
            for bits in 0..infinity {
                let low = decode(element, bits);
                assert_eq!(encode(element, low), bits);
                assert_eq!(encode(element, -low), bits | 0x8000);
                if bits + 1 == infinity {
                    continue;
                }
                let middle = (low + decode(element, bits + 1)) / 2.0;
                let even = bits + bits % 2;
                let hair = |up: u64| f64::from_bits(middle.to_bits() - 1 + up);
                assert_eq!(encode(element, hair(0)), bits, "{middle:e}");
                assert_eq!(encode(element, middle), even, "{middle:e}");
                assert_eq!(encode(element, hair(2)), bits + 1, "{middle:e}");
            }
            assert!(decode(element, encode(element, f64::NAN)).is_nan());
            assert!(decode(element, encode(element, -f64::NAN)).is_nan());
            assert_eq!(encode(element, f64::NEG_INFINITY), infinity | 0x8000);
            assert_eq!(encode(element, 1e300), infinity);
            assert_eq!(encode(element, -1e300), infinity | 0x8000);
        }
        assert_eq!(rounded(ElementType::F16, 65519.999), 65504.0);
        assert_eq!(rounded(ElementType::F16, 65520.0), f64::INFINITY);
        assert_eq!(rounded(ElementType::F16, 1e-300), 0.0);
    }

    #[test]
    fn integers_saturate_and_round_to_even() {
        use ElementType::{Bool, I8, I32, U8};
        let cases = [
            (I8, 2.5, 2.0),
            (I8, 3.5, 4.0),
            (I8, -200.0, -128.0),
            (I8, f64::INFINITY, 127.0),
            (U8, -3.0, 0.0),
            (U8, 300.0, 255.0),
            (I32, -1.5, -2.0),
            (I32, 1e300, f64::from(i32::MAX)),
            (I32, f64::NAN, 0.0),
            (Bool, 0.1, 1.0),
            (Bool, -0.0, 0.0),
            (Bool, f64::NAN, 1.0),
        ];
        for (element, value, wanted) in cases {
            assert_eq!(rounded(element, value), wanted, "{element:?} {value}");
        }
        for code in 0..=255_u64 {
            assert_eq!(encode(I8, decode(I8, code)), code);
            assert_eq!(encode(U8, decode(U8, code)), code);
        }
    }

    #[test]
    fn wide_types_are_those_of_the_host() {
        for value in [0.1, -1e-45, 1e300, f64::NEG_INFINITY, -0.0] {
            assert_eq!(encode(ElementType::F64, value), value.to_bits());
            assert_eq!(rounded(ElementType::F32, value), f64::from(value as f32));
        }
        assert!(rounded(ElementType::F32, f64::NAN).is_nan());
    }
}
