//! `mma.sync` in every shape and type of Hopper.
//!
//! Lanes load their fragments straight from memory, so that the fragment layouts are part
//! of what is compared.

use crate::case::{Case, Compare, Element, Launch};
use crate::kernel::Kernel;
use crate::numbers::{Number, Number::*, pack_bits};
use crate::values::SplitMix;

/// Warps per case, each with fragments of its own.
const WARPS: usize = 4;

/// Shape, and the types of D, A, B and C.
type Form = ([usize; 3], Number, Number, Number);

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in forms() {
        cases.push(case(form, "", "exact"));
        if form.1.is_float() {
            cases.push(case(form, "", "random"));
        } else if form.2 != B1 {
            cases.push(case(form, ".satfinite", "saturating"));
            cases.push(case(form, "", "wrapping"));
        }
    }
    for shape in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
        for op in [".xor.popc", ".and.popc"] {
            cases.push(case((shape, S32, B1, B1), op, "exact"));
        }
    }
    cases
}

/// `(shape, accumulator, A, B)`.
fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for shape in [[16, 8, 8], [16, 8, 16]] {
        forms.push((shape, F32, F16, F16));
        forms.push((shape, F16, F16, F16));
        forms.push((shape, F32, Bf16, Bf16));
    }
    for shape in [[16, 8, 4], [16, 8, 8]] {
        forms.push((shape, F32, Tf32, Tf32));
    }
    for shape in [[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]] {
        forms.push((shape, F64, F64, F64));
    }
    for shape in [[8, 8, 16], [16, 8, 16], [16, 8, 32]] {
        for (a, b) in [(S8, S8), (U8, U8), (S8, U8), (U8, S8)] {
            forms.push((shape, S32, a, b));
        }
    }
    for shape in [[8, 8, 32], [16, 8, 32], [16, 8, 64]] {
        for (a, b) in [(S4, S4), (U4, U4), (S4, U4), (U4, S4)] {
            forms.push((shape, S32, a, b));
        }
    }
    for shape in [[16, 8, 16], [16, 8, 32]] {
        for (a, b) in [(E4m3, E4m3), (E5m2, E5m2), (E4m3, E5m2), (E5m2, E4m3)] {
            forms.push((shape, F32, a, b));
            forms.push((shape, F16, a, b));
        }
    }
    forms
}

fn case((shape, acc, a, b): Form, modifier: &str, data: &str) -> Case {
    let [m, n, k] = shape;
    let name = format!(
        "mma.sync.aligned.m{m}n{n}k{k}.row.col{}.{}.{}.{}.{}{}",
        if modifier == ".satfinite" {
            modifier
        } else {
            ""
        },
        acc.name(),
        a.name(),
        b.name(),
        acc.name(),
        if modifier == ".satfinite" {
            ""
        } else {
            modifier
        },
    );
    let register_bits = if acc == F64 { 64 } else { 32 };
    let count = |rows: usize, columns: usize, number: Number| {
        rows * columns * number.bits() / 32 / register_bits
    };
    let counts = [
        count(m, k, a),
        count(k, n, b),
        count(m, n, acc),
        count(m, n, acc),
    ];
    let mut rng = SplitMix(0x6d6d61 + (m * n * k) as u64);
    let fragments = |number: Number, registers: usize, rng: &mut SplitMix| {
        let elements = WARPS * 32 * registers * register_bits / number.bits();
        let values: Vec<u64> = (0..elements)
            .map(|_| value(number, data, number == acc, rng))
            .collect();
        pack_bits(&values, number.bits())
    };
    let class = if register_bits == 64 { 'l' } else { 'r' };
    let width = register_bits / 8;
    let list = |first: usize, count: usize| {
        let names: Vec<String> = (first..first + count)
            .map(|i| format!("%{class}{i}"))
            .collect();
        format!("{{{}}}", names.join(", "))
    };
    let first = [20, 28, 36, 44];
    let mut body = String::new();
    for operand in 0..3 {
        body.push_str(&format!(
            "mad.wide.u32 %l0, %thread, {}, %in{operand};\n",
            counts[operand] * width
        ));
        for i in 0..counts[operand] {
            body.push_str(&format!(
                "ld.global.b{register_bits} %{class}{}, [%l0+{}];\n",
                first[operand] + i,
                i * width
            ));
        }
    }
    body.push_str(&format!(
        "{name} {}, {}, {}, {};\nmad.wide.u32 %l0, %thread, {}, %out0;\n",
        list(first[3], counts[3]),
        list(first[0], counts[0]),
        list(first[1], counts[1]),
        list(first[2], counts[2]),
        counts[3] * width
    ));
    for i in 0..counts[3] {
        body.push_str(&format!(
            "st.global.b{register_bits} [%l0+{}], %{class}{};\n",
            i * width,
            first[3] + i
        ));
    }
    Kernel::new(format!("{name}/{data}"), Launch::single(32 * WARPS as u32))
        .input(fragments(a, counts[0], &mut rng))
        .input(fragments(b, counts[1], &mut rng))
        .input(fragments(acc, counts[2], &mut rng))
        .output(WARPS * 32 * counts[3] * width)
        .compare(if data == "random" {
            tolerance(acc, a)
        } else {
            Compare::Exact
        })
        .body(&body)
        .case()
}

fn value(number: Number, data: &str, accumulator: bool, rng: &mut SplitMix) -> u64 {
    match data {
        "exact" => number.small(rng),
        // Accumulators at the ends of the range, so that the sum leaves it.
        "saturating" | "wrapping" if accumulator => {
            [0x7fff_fff0, 0x8000_0010, 0x7fff_ffff, 0x8000_0000][rng.below(4) as usize]
        }
        _ => number.ordinary(rng),
    }
}

/// Bounds for sums whose order and alignment the ISA leaves open.
pub(super) fn tolerance(acc: Number, operand: Number) -> Compare {
    match (acc, operand) {
        (F16, _) => Compare::Near {
            element: Element::F16,
            relative: 4e-3,
            absolute: 4e-3,
        },
        (F64, _) => Compare::Near {
            element: Element::F64,
            relative: 1e-14,
            absolute: 1e-14,
        },
        (_, E4m3 | E5m2) => Compare::Near {
            element: Element::F32,
            relative: 1e-3,
            absolute: 2e-3,
        },
        _ => Compare::Near {
            element: Element::F32,
            relative: 2e-6,
            absolute: 2e-6,
        },
    }
}
