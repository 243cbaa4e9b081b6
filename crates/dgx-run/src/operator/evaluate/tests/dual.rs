//! The dual GEMM, against its own oracle.

use std::time::{Duration, Instant};

use dgx_core::domain::{Distribution, Group};
use dgx_core::operator::{BinaryOp, Extent, Node, Number, Op, UnaryOp, Value};

use crate::operator::evaluate::{Evaluator, Problem};
use crate::operator::{GroupOperands, Operands, Oracle};
use dgx_core::operators::usual;
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
    operands.problem(usual())
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
            let operands = GroupOperands::draw(usual(), &group, 0, distribution, 7);
            let problem = problem(&operands);
            let evaluator = Evaluator::new(&value, &extents(&group), &problem).unwrap();
            let groups = vec![operands.clone()];
            let oracle = Oracle::compute(&Operands {
                operator: usual().clone(),
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

/// Run with `--release --ignored --nocapture`: both in turn, the minimum of each.
#[test]
#[ignore = "a benchmark: docs/internals/evaluation.md has its command"]
fn is_as_fast_as_the_oracle() {
    let value = value();
    for (m, n, k) in [(256, 4096, 7168), (1024, 2048, 2048), (64, 4096, 1536)] {
        let group = group(m, n, k);
        let operands = GroupOperands::draw(usual(), &group, 0, Distribution::Benchmark, 7);
        let problem = problem(&operands);
        let evaluator = Evaluator::new(&value, &extents(&group), &problem).unwrap();
        let whole = Operands {
            operator: usual().clone(),
            groups: vec![operands.clone()],
        };
        let mut least = [Duration::MAX; 2];
        for _ in 0..7 {
            let start = Instant::now();
            // The oracle keeps both products, and computes C when it is compared.
            let oracle = Oracle::compute(&whole);
            let c: Vec<f64> = (0..(m * n) as usize)
                .map(|at| oracle.groups[0].c(at))
                .collect();
            least[0] = least[0].min(start.elapsed());
            let start = Instant::now();
            let rows = evaluator.rows(0..m as usize);
            least[1] = least[1].min(start.elapsed());
            assert_eq!(c.len(), rows.len());
        }
        let ratio = least[1].as_secs_f64() / least[0].as_secs_f64();
        println!(
            "{m}x{n}x{k}: oracle {:?}, evaluator {:?}, {ratio:.3}",
            least[0], least[1]
        );
    }
}
