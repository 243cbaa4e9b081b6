use dgx_core::operator::built_in;

use super::*;

fn permute(size: usize, unit: u64) -> Symmetry {
    Symmetry::Permute { size, unit }
}

fn negate(size: usize, inputs: &[usize], outputs: &[usize]) -> Symmetry {
    Symmetry::Negate {
        size,
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
    }
}

fn of(name: &str) -> Vec<Symmetry> {
    symmetries(built_in(name).unwrap())
}

#[test]
fn a_product_has_all_of_them() {
    let wanted = [
        permute(0, 1),
        negate(0, &[0], &[0]),
        permute(1, 1),
        negate(1, &[1], &[0]),
        permute(2, 1),
        negate(2, &[0, 1], &[]),
    ];
    assert_eq!(of("f16-gemm"), wanted);
}

/// silu has no symmetry of sign; blocks of 16 stay together.
#[test]
fn the_dual_product_has_those_of_its_second_weights() {
    let wanted = [
        permute(0, 1),
        permute(1, 1),
        negate(1, &[2], &[0]),
        permute(2, 16),
        negate(2, &[0, 1, 2], &[]),
    ];
    assert_eq!(of("nvfp4-dual-gemm"), wanted);
}

#[test]
fn norms_and_softmax() {
    let wanted = [
        permute(0, 1),
        negate(0, &[0], &[0]),
        permute(1, 1),
        negate(1, &[0], &[0]),
        negate(1, &[1], &[0]),
    ];
    assert_eq!(of("rms-norm"), wanted);
    assert_eq!(of("softmax"), [permute(0, 1), permute(1, 1)]);
}

/// A causal mask forbids a permutation of the sequence.
#[test]
fn attention_has_no_permutation_of_its_sequence() {
    let found = of("attention");
    assert!(!found.contains(&permute(2, 1)), "{found:?}");
    for wanted in [
        permute(0, 1),
        permute(1, 1),
        permute(3, 1),
        negate(3, &[2], &[0]),
        negate(3, &[0, 1], &[]),
    ] {
        assert!(found.contains(&wanted), "{wanted:?}");
    }
}
