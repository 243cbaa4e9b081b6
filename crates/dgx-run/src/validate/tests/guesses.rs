//! Mistakes are recognised by their values.

use super::*;

#[test]
fn wrong_formulas_are_named() {
    type Formula = fn(f64, f64) -> f64;
    let cases: [(Formula, &str); 18] = [
        (|g, _| g, "A·B1ᵀ: no gate, no second GEMM"),
        (|_, u| u, "A·B2ᵀ: no gate"),
        (|g, u| g * u, "silu is missing"),
        (|g, u| silu(u) * g, "B1 and B2 are swapped"),
        (|g, _| silu(g), "the second GEMM is missing"),
        (|g, u| 2.0 * silu(g) * u, "off by a factor of 2.000"),
        (|g, u| g / (1.0 + g.exp()) * u, "exp(x) for exp(-x)"),
        (|g, u| g / (1.0 + (-g).exp2()) * u, "2ˣ for eˣ"),
        (|g, u| g * (1.0 + (-g).exp()) * u, "multiplied, not divided"),
        (|g, u| g * g.exp() * u, "without the 1 of 1 + exp(-x)"),
        (|g, u| g.tanh() * u, "tanh in place"),
        (|g, u| silu(g) * silu(u), "silu on both products"),
        (|g, u| silu(silu(g)) * u, "silu twice"),
        (|g, u| silu(g * u), "silu behind the product"),
        (|g, _| silu(g) * g, "B1 is used for B2"),
        (|_, u| silu(u) * u, "B2 is used for B1"),
        (
            |g, u| g / (1.0 + (-1.702 * g).exp()) * u,
            "gelu's approximation",
        ),
        (
            |g, u| 0.5 * g * (1.0 + (0.797_884_56 * (g + 0.044_715 * g.powi(3))).tanh()) * u,
            "gelu in place of silu",
        ),
    ];
    for (formula, expected) in cases {
        let reason = case().with(formula).reason();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn a_single_gemm_is_told_in_one_line() {
    let reason = case().with(|g, _| g).reason();
    assert!(
        reason.ends_with("A·B1ᵀ: no gate, no second GEMM"),
        "{reason}"
    );
}

#[test]
fn misplaced_values_are_traced() {
    let mut shifted = case();
    let n = 256;
    for c in &mut shifted.c {
        let right = c.clone();
        c[n..].copy_from_slice(&right[..right.len() - n]);
    }
    let reason = shifted.reason();
    assert!(
        reason.contains("hold the value of the row before"),
        "{reason}"
    );

    let mut mixed = case();
    mixed.c[2] = mixed.c[0].clone();
    let reason = mixed.reason();
    assert!(reason.contains("hold the values of group 0"), "{reason}");
}

#[test]
fn mistakes_in_the_sum_over_k_are_named() {
    let dropped = case().answering(|g| {
        let k = g.left().columns();
        for row in g.inputs[2].elements.chunks_mut(k / 2) {
            row[k / 2 - 32..].fill(0);
        }
    });
    let reason = dropped.reason();
    assert!(
        reason.contains("lack the last 64 of K in A·B2ᵀ"),
        "{reason}"
    );

    let permuted = case().answering(|g| {
        g.inputs[1]
            .scales
            .chunks_mut(2)
            .for_each(|pair| pair.swap(0, 1))
    });
    let reason = permuted.reason();
    assert!(
        reason.contains("have neighbouring scales of B1 exchanged"),
        "{reason}"
    );

    let nibbles = case().answering(|g| {
        g.inputs[0]
            .elements
            .iter_mut()
            .for_each(|b| *b = b.rotate_left(4))
    });
    let reason = nibbles.reason();
    assert!(
        reason.contains("have the nibbles of A exchanged"),
        "{reason}"
    );
}

/// The result with scales from other places: `of` gives the row and block.
fn with_scales_of(of: impl Fn(usize, usize) -> (usize, usize), tensors: &str) -> String {
    let case = case_of(&[(130, 256, 512)], Distribution::Benchmark);
    let case = case.answering(|g| {
        let across = g.left().columns() / 16;
        for (name, tensor) in ["A", "B1", "B2"].into_iter().zip(&mut g.inputs) {
            let codes = &mut tensor.scales;
            let right = codes.clone();
            for (i, code) in codes.iter_mut().enumerate() {
                let (row, block) = of(i / across, i % across);
                if tensors.contains(name) {
                    *code = right.get(row * across + block).copied().unwrap_or(0);
                }
            }
        }
    });
    case.reason()
}

/// Common mistakes with scales, elements and signs.
#[test]
fn everyday_mistakes_with_scales_and_elements_are_named() {
    type Tamper = fn(&mut GroupOperandsMut);
    fn signless(packed: &mut [u8]) {
        packed.iter_mut().for_each(|byte| *byte &= 0x77);
    }
    fn without_halves(packed: &mut [u8]) {
        let lost = |nibble: u8| if nibble & 7 == 1 { nibble & 8 } else { nibble };
        packed
            .iter_mut()
            .for_each(|b| *b = lost(*b & 15) | lost(*b >> 4) << 4);
    }
    let tampered: [(Tamper, &str); 8] = [
        (
            |g| g.inputs[2].scales = g.gate().scales.clone(),
            "have the scales of B1 for those of B2",
        ),
        (
            |g| g.inputs[1].scales = g.up().scales.clone(),
            "have the scales of B2 for those of B1",
        ),
        (
            |g| {
                let scales = g.gate().scales.clone();
                g.inputs[1].scales = std::mem::replace(&mut g.inputs[2].scales, scales);
            },
            "have the scales of B1 and B2 exchanged",
        ),
        (
            |g| g.inputs.iter_mut().for_each(|t| signless(&mut t.elements)),
            "ignore the signs of A, B1 and B2's elements",
        ),
        (
            |g| signless(&mut g.inputs[2].elements),
            "ignore the signs of B2's elements",
        ),
        (
            |g| without_halves(&mut g.inputs[0].elements),
            "take 0.5 in A for 0",
        ),
        (
            |g| {
                g.inputs[1]
                    .elements
                    .iter_mut()
                    .for_each(|byte| *byte = *byte & 15 | *byte << 4)
            },
            "have the low nibbles of B1 for the high ones too",
        ),
        (|g| g.inputs[0].scales.fill(0x38), "ignore the scales of A"),
    ];
    for (tamper, words) in tampered {
        let reason = case().answering(tamper).reason();
        // "Every element has", but "elements have".
        let (_, words) = words.split_once(' ').expect("a verb");
        assert!(reason.contains(words), "{words}: {reason}");
    }
    // In one product alone: the other has its scales.
    let whole = case();
    let without = case().answering(|g| g.inputs[0].scales.fill(0x38));
    let lacking = Oracle::compute(&{
        let mut operands = without.operands.clone();
        operands
            .groups
            .iter_mut()
            .for_each(|g| g.inputs[0].scales.fill(0x38));
        operands
    });
    for (of_gate, words) in [(true, "A·B1ᵀ"), (false, "A·B2ᵀ")] {
        let mut mixed = case();
        let groups = whole.oracle.groups.iter().zip(&lacking.groups);
        for (c, (whole, lacking)) in mixed.c.iter_mut().zip(groups) {
            for (i, c) in c.iter_mut().enumerate() {
                let (gate, up) = match of_gate {
                    true => (lacking.gate[i], whole.up[i]),
                    false => (whole.gate[i], lacking.up[i]),
                };
                *c = bits(silu(gate.into()) * f64::from(up));
            }
        }
        let reason = mixed.reason();
        let words = format!("the scales of A in {words} alone");
        assert!(reason.contains(&words), "{words}: {reason}");
    }
}

/// For zeros, no other hypothesis that also gives zero is reported.
#[test]
fn zeros_are_explained_one_way() {
    for distribution in Distribution::ALL {
        let mut zeros = case_of(&[(40, 256, 512)], distribution);
        zeros.c[0].fill(0);
        assert_eq!(told(&zeros), ["is zero"], "{distribution}");
    }
    let relu = case().with(|g, u| g.max(0.0) * u);
    assert_eq!(
        told(&relu),
        ["is what a known mistake gives: relu in place of silu"]
    );
}

#[test]
fn scales_of_another_place_are_named() {
    let next = |block: usize| block / 16 * 16 + (block + 4) % 16;
    let told = [
        (
            with_scales_of(|row, block| (row, next(block)), "A B1 B2"),
            "have the scales of A, B1 and B2 from the wrong atom: one atom (64 of K) on in every 4",
        ),
        (
            with_scales_of(
                |row, block| (row, if block < 4 { block } else { block - 4 }),
                "B1",
            ),
            "have the scales of B1 from the wrong atom: one atom (64 of K) late",
        ),
        (
            with_scales_of(|row, block| (row & !64, block), "B1 B2"),
            "have the scales of B1 and B2 from the column 64 before, the wrong part of an atom's 128",
        ),
        (
            with_scales_of(
                |row, block| (row / 128 * 128 + row % 128 / 4 + row % 4 * 32, block),
                "A",
            ),
            "have the scale atoms of A read row by row",
        ),
        (
            with_scales_of(|row, block| (row, block / 2), "A B1 B2"),
            "have the scales of A, B1 and B2 indexed by 32 of K, not by 16",
        ),
        (
            with_scales_of(
                |row, block| ((row * 32 + block) / 2 / 32, (row * 32 + block) / 2 % 32),
                "B2",
            ),
            "have the scales of B2 indexed by 32 of K, not by 16, rows included",
        ),
        (
            with_scales_of(|row, _| (row, 0), "B1"),
            "have the scales of B1 from the first 16 of K always",
        ),
        (
            with_scales_of(|_, block| (0, block), "A"),
            "have the scales of A from the first row always",
        ),
    ];
    for (reason, words) in told {
        assert!(reason.contains(words), "{words}: {reason}");
    }
}

#[test]
fn a_tile_one_step_late_is_named() {
    let late = case_of(&[(64, 128, 512)], Distribution::Benchmark).answering(|g| {
        let (k, step) = (g.left().columns(), 64);
        for row in g.inputs[0].elements.chunks_mut(k / 2) {
            row.copy_within(..(k - step) / 2, step / 2);
        }
        for row in g.inputs[0].scales.chunks_mut(k / 16) {
            row.copy_within(..(k - step) / 16, step / 16);
        }
    });
    let reason = late.reason();
    assert!(
        reason.contains("have A one K block of 64 late in both products"),
        "{reason}"
    );
}

fn told(case: &Case) -> Vec<String> {
    let wrong_output = explain_wrong(
        &halves(&case.c),
        &case.operands,
        &case.oracle,
        TOLERANCE,
        None,
    );
    let fits = wrong_output.expect("it is wrong").fits;
    fits.into_iter().map(|fit| fit.what).collect()
}

/// Puts the right value of another place into each element.
fn moved(mut case: Case, from: impl Fn(usize, usize, usize, usize) -> (usize, usize)) -> Case {
    for (c, answer) in case.c.iter_mut().zip(&case.oracle.groups) {
        let (m, n) = (answer.rows, answer.columns);
        for (i, c) in c.iter_mut().enumerate() {
            let (row, column) = from(i / n, i % n, m, n);
            *c = bits(answer.c(row * n + column));
        }
    }
    case
}

#[test]
fn values_in_the_wrong_place_are_found_wherever_they_are_from() {
    let transposed = moved(case(), |row, column, m, n| {
        let at = row * n + column;
        (at % m, at / m)
    });
    assert_eq!(
        told(&transposed)[0],
        "holds C transposed: it is stored column by column"
    );
    let pairs = moved(case(), |row, column, _, _| (row, column ^ 8));
    assert_eq!(told(&pairs)[0], "has columns exchanged in blocks of 8");
    let odd = moved(case(), |row, column, m, n| {
        ((row + 3) % m, (column + 5) % n)
    });
    assert_eq!(
        told(&odd)[0],
        "holds the value of the row 3 after and the column 5 after"
    );
}

#[test]
fn scales_that_are_off_before_the_gate_are_told_by_their_power() {
    let twice = case().with(|g, u| silu(g / 8.0) * u / 8.0);
    let told_of = told(&twice);
    assert_eq!(told_of[0], "has both products times 2⁻³: a scale is off");
    let gate = case().with(|g, u| silu(4.0 * g) * u);
    assert_eq!(told(&gate)[0], "has A·B1ᵀ times 2²: a scale is off");
}

#[test]
fn any_stretch_of_k_that_is_left_out_or_taken_twice_is_named() {
    let cut = |from: usize, to: usize| {
        case_of(&[(40, 128, 512)], Distribution::Benchmark).answering(move |g| {
            let k = g.left().columns();
            for row in g.inputs[0].elements.chunks_mut(k / 2) {
                row[from / 2..to / 2].fill(0);
            }
        })
    };
    assert_eq!(
        told(&cut(464, 512))[0],
        "lacks the last 48 of K in both products"
    );
    assert_eq!(told(&cut(128, 192))[0], "lacks 128 to 191 of K");
}

#[test]
fn a_short_k_leaves_no_room_for_long_steps() {
    let zero = case_of(&[(40, 128, 64)], Distribution::Benchmark).with(|g, u| g + 3.0 * u + 7.0);
    assert!(zero.mismatch().guess.is_none());
}

#[test]
fn what_the_call_before_left_is_stale() {
    let mut case = case();
    let groups = [(40, 256, 512), (150, 256, 256), (40, 256, 512)];
    let earlier = case_of(&groups, Distribution::Benchmark);
    let before = &earlier.oracle;
    for (c, answer) in case.c.iter_mut().zip(&before.groups) {
        for (i, c) in c.iter_mut().enumerate() {
            *c = bits(answer.c(i));
        }
    }
    let wrong_output = explain_wrong(
        &halves(&case.c),
        &case.operands,
        &case.oracle,
        TOLERANCE,
        Some(before),
    );
    let fits = wrong_output.expect("it is wrong").fits;
    assert_eq!(
        fits[0].what,
        "holds what belongs to the call before: stale data"
    );
}

#[test]
fn what_is_nearly_right_is_not_called_anything_else() {
    let mut state = 1_u32;
    let mut case = case();
    for c in case.c.iter_mut().flatten() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = 1.0 + 0.03 * (f64::from(state >> 16) / 65536.0 - 0.5);
        *c = bits(half::f16::from_bits(*c).to_f64() * noise);
    }
    let fits = told(&case);
    assert_eq!(fits.len(), 1, "{fits:?}");
    assert!(
        fits[0].starts_with("is within 5 % of the right value"),
        "{fits:?}"
    );
}

/// Swapping the nibbles of all operands changes no sum: such a hypothesis explains nothing.
#[test]
fn one_factor_for_all_is_told_as_that() {
    for factor in [1.0009, 1.003, 0.999, 1.02] {
        let case = case().with(|g, u| factor * silu(g) * u);
        let wanted = format!("is {factor:.4} times the right value");
        let (mismatch, wrong_output) = (case.mismatch(), told(&case));
        let close = |what: &str| {
            let number = what.split(' ').find_map(|word| word.parse::<f64>().ok());
            number.is_some_and(|number| (number - factor).abs() < 2e-4)
        };
        let guess = mismatch.guess.expect(&wanted);
        assert!(close(&guess) || factor == 1.02, "{wanted}: {guess}");
        assert!(
            wrong_output.iter().any(|fit| close(fit)),
            "{wanted}: {wrong_output:?}"
        );
        assert!(
            !wrong_output.iter().any(|fit| fit.contains("nibbles")),
            "{wrong_output:?}"
        );
    }
}

/// Sums in which every sixteen terms are rounded to this many bits.
fn with_sums_of(bits_kept: i32) -> Case {
    let mut case = case_of(&[(24, 128, 512)], Distribution::Full);
    let kept = |x: f64| {
        let unit = 2f64.powi(x.abs().max(1e-30).log2().floor() as i32 + 1 - bits_kept);
        (x / unit).round() * unit
    };
    let sum = |terms: &Vec<f64>| {
        let steps = terms.chunks(16).map(|step| step.iter().sum::<f64>());
        steps.fold(0.0, |sum, step| kept(sum + step))
    };
    for index in 0..case.c[0].len() {
        let element = Element {
            group: 0,
            row: index / 128,
            column: index % 128,
            found: half(0),
            expected: 0.0,
        };
        let [gate, up] = reduction::Terms::of(&case.operands.groups[0], &element).products();
        case.c[0][index] = bits(silu(sum(&gate)) * sum(&up));
    }
    case
}

#[test]
fn sums_of_few_bits_are_told_as_that() {
    for kept in [9, 11, 13] {
        let case = with_sums_of(kept);
        let reason = case.reason();
        assert!(reason.contains("low precision, not indexing"), "{reason}");
        let about = |bits: i32| format!("about {bits} bits");
        let near = (kept - 3..=kept + 3).any(|bits| reason.contains(&about(bits)));
        assert!(near, "{kept}: {reason}");
        assert_eq!(told(&case).len(), 1);
    }
}

/// A missing term, or a gate that is only nearly silu, is not lost precision.
#[test]
fn other_small_errors_are_not_called_lost_bits() {
    let short = case_of(&[(24, 128, 512)], Distribution::Full).answering(|g| {
        let k = g.left().columns();
        g.inputs[2]
            .elements
            .chunks_mut(k / 2)
            .for_each(|row| row[7] &= 0xf0);
    });
    let bent = case().with(|g, u| silu(g) * u * (1.0 + 0.004 * g.sin()));
    for case in [short, bent] {
        let reason = case.reason();
        assert!(!reason.contains("bits"), "{reason}");
    }
}
