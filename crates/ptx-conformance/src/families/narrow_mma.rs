//! `mma.sync` of 8-, 6- and 4-bit floats, with scales and without.
//!
//! Every kernel takes its fragments, scales and accumulators from memory as they lie in registers,
//! so that layouts and selectors are part of what is compared.

use crate::case::{Case, Compare, Element, Launch};
use crate::kernel::Kernel;
use crate::values::SplitMix;

use super::CONSUMER;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    let types = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"];
    let mut cases = Vec::new();
    for a in types {
        for b in types {
            for d in ["f32", "f16"] {
                let form =
                    format!("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{d}.{a}.{b}.{d}");
                cases.push(case(&form, [a, b], d == "f16", None));
            }
            let form = format!(
                "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0"
            );
            cases.push(case(&form, [a, b], false, Some(("ue8m0", [2, 1], [3, 3]))));
        }
    }
    let fours = [
        ("mxf4.block_scale.scale_vec::2X", "ue8m0", [2, 0], [0, 2]),
        (
            "mxf4nvf4.block_scale.scale_vec::2X",
            "ue8m0",
            [0, 1],
            [2, 1],
        ),
        (
            "mxf4nvf4.block_scale.scale_vec::4X",
            "ue4m3",
            [0, 1],
            [0, 3],
        ),
    ];
    for (kind, scale, of_a, of_b) in fours {
        let form =
            format!("mma.sync.aligned.m16n8k64.row.col.kind::{kind}.f32.e2m1.e2m1.f32.{scale}");
        cases.push(case(&form, ["packed"; 2], false, Some((scale, of_a, of_b))));
    }
    cases
}

/// A register of elements: bytes that hold a code, or eight codes of four bits.
fn word(ty: &str, rng: &mut SplitMix) -> u32 {
    let bytes: [u8; 4] = std::array::from_fn(|_| {
        let byte = rng.next() as u8;
        match ty {
            "e2m1" => (byte & 15) << 2,
            "e2m3" | "e3m2" => byte & 63,
            // NaN and infinity have cases of their own kind nowhere: keep to numbers.
            "e4m3" if byte & 0x7f == 0x7f => 0,
            "e5m2" if byte & 0x7c == 0x7c => byte & 0x83,
            _ => byte,
        }
    });
    u32::from_le_bytes(bytes)
}

/// The type of scales, and byte-id and thread-id of A's and of B's.
type Scales<'t> = Option<(&'t str, [u32; 2], [u32; 2])>;

fn case(form: &str, [a, b]: [&str; 2], halves: bool, scales: Scales<'_>) -> Case {
    let mut rng = SplitMix(0x6e61_7272);
    let mut words: Vec<u32> = Vec::new();
    // By register: four of A, two of B, four of C, two of scales, 32 lanes each.
    for register in 0..12 {
        words.extend((0..32).map(|_| match register {
            0..4 => word(a, &mut rng),
            4..6 => word(b, &mut rng),
            6..10 if halves => 0x3c00_bc00,
            6..10 => (rng.unit() * 8.0 - 4.0).to_bits(),
            _ => match scales {
                Some(("ue4m3", ..)) => rng.next() as u32 & 0x7777_7777,
                _ => 0x7878_7878 + (rng.next() as u32 & 0x0707_0707),
            },
        }));
    }
    let sums = if halves { 2 } else { 4 };
    let mut body =
        String::from("mad.wide.u32 %l0, %thread, 4, %in0;\nmad.wide.u32 %l1, %thread, 4, %out0;\n");
    for register in 0..12 {
        body.push_str(&format!(
            "ld.global.b32 %r{}, [%l0+{}];\n",
            20 + register,
            128 * register
        ));
    }
    let list = |first: usize, count: usize| {
        let names: Vec<String> = (first..first + count).map(|i| format!("%r{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let picked = scales.map_or(String::new(), |(_, [x, y], [z, w])| {
        format!(", %r30, {{{x}, {y}}}, %r31, {{{z}, {w}}}")
    });
    body.push_str(&format!(
        "{form} {}, {}, {}, {}{picked};\n",
        list(40, sums),
        list(20, 4),
        list(24, 2),
        list(26, sums)
    ));
    for register in 0..sums {
        body.push_str(&format!(
            "st.global.b32 [%l1+{}], %r{};\n",
            128 * register,
            40 + register
        ));
    }
    let (element, relative) = match halves {
        true => (Element::F16, 1e-2),
        false => (Element::F32, 1e-4),
    };
    Kernel::new(form, Launch::single(32))
        .target(CONSUMER)
        .input(words.iter().flat_map(|word| word.to_le_bytes()).collect())
        .output(128 * sums)
        .compare(Compare::Near {
            element,
            relative,
            absolute: 1e-3,
        })
        .body(&body)
        .case()
}
