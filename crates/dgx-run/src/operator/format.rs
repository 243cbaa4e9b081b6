//! Number formats: what the bits of each element type stand for, and the bits
//! nearest to a value.

mod element;
mod small;
mod tensor;

pub use element::{decode, encode, rounded};
use small::{E2M1, E4M3, E5M2, E8M0, Small};
pub use tensor::{Packed, pack, quantise};

/// The value of the low four bits.
pub(crate) fn decode_e2m1(code: u8) -> f64 {
    E2M1.decode(code)
}

/// The value of an e4m3 byte: bias 7, no infinities, 0x7f and 0xff are NaN.
pub(crate) fn decode_e4m3(code: u8) -> f64 {
    E4M3.decode(code)
}

/// The nearest e4m3 code; the even one on a tie, 448 for anything above it.
pub(super) fn encode_e4m3(value: f64) -> u8 {
    E4M3.encode(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest finite e4m3 code, 448.
    const E4M3_MAX_CODE: u8 = 0x7e;

    #[test]
    fn e2m1_has_its_sixteen_values() {
        let values: Vec<f64> = (0..16).map(decode_e2m1).collect();
        assert_eq!(values[..8], [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert!(values[8] == 0.0 && values[8].is_sign_negative());
        assert_eq!(values[15], -6.0);
    }

    #[test]
    fn e4m3_landmarks() {
        assert_eq!(decode_e4m3(0x00), 0.0);
        assert_eq!(decode_e4m3(0x01), 2f64.powi(-9));
        assert_eq!(decode_e4m3(0x08), 2f64.powi(-6));
        assert_eq!(decode_e4m3(0x38), 1.0);
        assert_eq!(decode_e4m3(0x7e), 448.0);
        assert!(decode_e4m3(0x7f).is_nan() && decode_e4m3(0xff).is_nan());
        assert_eq!(decode_e4m3(0xb8), -1.0);
    }

    #[test]
    fn every_finite_code_encodes_to_itself_and_ties_go_to_even() {
        for code in 0..=E4M3_MAX_CODE {
            assert_eq!(encode_e4m3(decode_e4m3(code)), code);
        }
        for code in 0..E4M3_MAX_CODE {
            let middle = (decode_e4m3(code) + decode_e4m3(code + 1)) / 2.0;
            assert_eq!(encode_e4m3(middle), code + code % 2);
        }
        assert_eq!(encode_e4m3(1e9), E4M3_MAX_CODE);
    }

    #[test]
    fn an_element_times_its_scale_is_exact_in_fp16() {
        for element in 0..16 {
            for scale in 0..=E4M3_MAX_CODE {
                let product = decode_e2m1(element) * decode_e4m3(scale);
                assert_eq!(half::f16::from_f64(product).to_f64(), product);
            }
        }
    }
}
