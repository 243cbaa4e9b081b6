//! The dual GEMM, against its own oracle.

use dgx_core::domain::{Distribution, Group};
use dgx_core::operator::{BinaryOp, Extent, Node, Number, Op, UnaryOp, Value};

use crate::operator::{
    GroupOperands, Operands, Oracle,
    evaluate::{Evaluator, Problem},
};
use dgx_core::operator::default_operator;
use dgx_core::record::synthetic::group;

/// `silu(a @ b1.T) * (a @ b2.T)`, sizes m, n, k.
fn value() -> Value {
    let node = |op: Op, inputs: &[usize], extents: [usize; 2]| Node {
        op,
        inputs: inputs.to_vec(),
        extents: extents.map(Extent::Size).to_vec(),
        number: Number::Real,
        span: 0..0,
    };
    let nodes = vec![
        node(Op::Input(0), &[], [0, 2]),
        node(Op::Input(1), &[], [1, 2]),
        node(Op::Transpose, &[1], [2, 1]),
        node(Op::MatMul, &[0, 2], [0, 1]),
        node(Op::Unary(UnaryOp::Silu), &[3], [0, 1]),
        node(Op::Input(2), &[], [1, 2]),
        node(Op::Transpose, &[5], [2, 1]),
        node(Op::MatMul, &[0, 6], [0, 1]),
        node(Op::Binary(BinaryOp::Multiply), &[4, 7], [0, 1]),
    ];
    Value { nodes, root: 8 }
}

fn problem(operands: &GroupOperands) -> Problem<'_> {
    operands.problem(default_operator())
}

fn extents(group: &Group) -> [u64; 2] {
    ["m", "n"].map(|size| group.get(size).unwrap().into())
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Every bit of C, for all rows together, for some, and for single elements.
#[test]
fn has_the_bits_of_the_oracle() {
    let value = value();
    for (m, n, k) in [
        (3, 128, 256),
        (37, 640, 512),
        (1030, 128, 256),
        (5, 128, 7168),
    ] {
        let group = group(m, n, k);
        for distribution in Distribution::ALL {
            let operands = GroupOperands::draw(default_operator(), &group, 0, distribution, 7);
            let problem = problem(&operands);
            let evaluator = Evaluator::new(&value, &extents(&group), &problem).unwrap();
            let groups = vec![operands.clone()];
            let oracle = Oracle::compute(&Operands {
                operator: default_operator().clone(),
                groups,
            });
            let wanted = |at: usize| oracle.groups[0].c(at);
            let all = evaluator.rows(0..m as usize);
            assert_eq!(all.len(), (m * n) as usize);
            for (at, found) in all.iter().enumerate() {
                assert!(same(*found, wanted(at)), "{distribution} {m}x{n}x{k} {at}");
            }
            let width = n as usize;
            let some = evaluator.rows(1..3);
            assert!(some.iter().zip(&all[width..]).all(|(a, b)| same(*a, *b)));
            for (row, column) in [(0, 0), (m as usize - 1, width - 1), (2, 77)] {
                let found = evaluator.element(row, column);
                assert!(same(found, wanted(row * width + column)), "{distribution}");
            }
        }
    }
}
