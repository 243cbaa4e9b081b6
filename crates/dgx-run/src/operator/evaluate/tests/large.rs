//! Sizes at which intermediate tensors do not fit in memory.

use std::time::Instant;

use dgx_core::operator::{Operator, built_in};

use super::{Case, expression};
use crate::operator::{Evaluator, Packed, Problem};

/// The scores of the whole are 17 GB; a row of them is 64 KB.
#[test]
fn rows_of_a_large_attention_need_little() {
    let operator: &Operator = built_in("attention").unwrap();
    let case = Case::draw(operator, &[1, 4, 4096, 16], 1);
    case.evaluate(operator, 0, |evaluator| {
        assert!((1024..=8192).contains(&evaluator.rows_per_block()));
        let row = 3 * 4096 + 4000;
        let rows = evaluator.rows(row..row + 2);
        assert!((rows[5] - evaluator.element(row, 5)).abs() < 1e-12);
    });
}

/// A row longer than a tile is cut, and its sum computed separately.
#[test]
fn a_long_row_is_cut() {
    let operator = expression("\"m\", \"n\"", "x - mean(x, -1) + v", "{ m = 1, n = 8 }");
    let n = (1 << 20) + 77;
    let case = Case::draw(&operator, &[1, n], 2);
    let n = n as usize;
    let mean = (0..n).map(|j| case.at(0, &[0, j])).sum::<f64>() / n as f64;
    case.evaluate(&operator, 0, |evaluator| {
        let row = evaluator.rows(0..1);
        for (j, found) in row.iter().enumerate() {
            let wanted = case.at(0, &[0, j]) - mean + case.at(2, &[j]);
            assert!((found - wanted).abs() < 1e-12, "{j}");
        }
    });
}

/// The peak memory of this process, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() / 1024
}

/// Run alone with `--ignored --nocapture`: prints time and memory of rows of
/// the largest shapes.
#[test]
#[ignore = "a benchmark: docs/internals/evaluation.md has its command"]
fn memory_and_time_of_large_shapes() {
    let shapes: [(&str, &[u64], usize); 4] = [
        ("rms-norm", &[16384, 7168], 16384),
        ("softmax", &[1024, 65536], 1024),
        ("attention", &[1, 32, 8192, 128], 8192),
        ("f16-gemm", &[8192, 8192, 8192], 512),
    ];
    for (name, sizes, rows) in shapes {
        let operator = built_in(name).unwrap();
        let bytes = |tensor: &dgx_core::operator::Tensor| {
            let count = tensor.bytes(sizes).unwrap() as usize;
            // 16-bit numbers below 2 in both formats.
            let pattern = |i: usize| {
                if i.is_multiple_of(2) {
                    (i % 251) as u8
                } else {
                    0x3b
                }
            };
            (0..count).map(pattern).collect::<Vec<u8>>()
        };
        let inputs: Vec<Vec<u8>> = operator.inputs.iter().map(bytes).collect();
        let packed = operator.inputs.iter().zip(&inputs);
        let problem = Problem {
            sizes: sizes.to_vec(),
            inputs: packed
                .map(|(tensor, bytes)| Packed {
                    element: tensor.element,
                    elements: bytes,
                    scales: &[],
                    extents: extents(&tensor.extents(sizes).unwrap()),
                })
                .collect(),
            outputs: Vec::new(),
        };
        let output = &operator.outputs[0];
        let asked = output.tensor.extents(sizes).unwrap();
        let evaluator = Evaluator::new(&output.value, &asked, &problem).unwrap();
        let start = Instant::now();
        let found = evaluator.rows(0..rows);
        let (rows_took, start) = (start.elapsed(), Instant::now());
        let element = evaluator.element(rows - 1, 3);
        assert!((found[found.len() - evaluator.width() + 3] - element).abs() < 1e-9);
        println!(
            "{name} {sizes:?}: {rows} rows in {rows_took:?}, one element in {:?}, {} MB",
            start.elapsed(),
            peak()
        );
    }
}

fn extents(extents: &[u64]) -> Vec<usize> {
    extents.iter().map(|e| *e as usize).collect()
}
