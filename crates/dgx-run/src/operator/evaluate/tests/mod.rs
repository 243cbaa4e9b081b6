//! The evaluator against loops written out here, for each operator.

mod built_in;
mod dual;
mod language;
mod large;
mod movement;
mod paper;

use std::path::PathBuf;

use dgx_core::diagnostic::SourceFile;
use dgx_core::operator::{ElementType, Number, Operator};
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::{Evaluator, Problem};
use crate::operator::{Packed, quantise};

pub(crate) fn operator(text: &str) -> Operator {
    let path = PathBuf::from("test.toml");
    let text = text.into();
    Operator::from_source(SourceFile { path, text }).unwrap_or_else(|e| panic!("{}", e.message()))
}

/// An operator whose first output is `value` of inputs `x` and `y` (and a vector `v`) of f32.
pub(crate) fn expression(size: &str, value: &str, small: &str) -> Operator {
    operator(&format!(
        "summary = \"test\"\nsizes = [\"m\", \"n\"]\nsmall = [{small}]\n\
         [in.x]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
         [in.y]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
         [in.v]\ntype = \"f32\"\nsize = [\"n\"]\n\
         [out.z]\ntype = \"f32\"\nsize = [{size}]\nvalue = \"{value}\"\n\
         [out.all]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\nvalue = \"x + y + v\"\n"
    ))
}

/// Drawn inputs of a problem.
pub(crate) struct Case {
    pub(crate) sizes: Vec<u64>,
    extents: Vec<Vec<usize>>,
    elements: Vec<ElementType>,
    bytes: Vec<(Vec<u8>, Vec<u8>)>,
    /// The inputs, read back.
    numbers: Vec<Vec<f64>>,
    /// The values of earlier outputs, as f64.
    pub(crate) above: Vec<(Vec<usize>, Vec<f64>)>,
}

impl Case {
    pub(crate) fn draw(operator: &Operator, sizes: &[u64], seed: u64) -> Self {
        assert!(operator.layout_error(sizes).is_none(), "{sizes:?}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut case = Self {
            sizes: sizes.to_vec(),
            extents: Vec::new(),
            elements: Vec::new(),
            bytes: Vec::new(),
            numbers: Vec::new(),
            above: Vec::new(),
        };
        for tensor in &operator.inputs {
            let extents = tensor.extents(sizes).unwrap();
            let extents: Vec<usize> = extents.iter().map(|e| *e as usize).collect();
            let (low, high) = tensor.range(sizes).unwrap_or((-2.0, 2.0));
            let count: usize = extents.iter().product();
            let drawn = (0..count).map(|_| low + (high - low) * rng.random::<f64>());
            let drawn: Vec<f64> = match tensor.element.number() {
                Number::Real => drawn.collect(),
                _ => drawn.map(f64::round).collect(),
            };
            case.push(tensor.element, extents, &drawn);
        }
        case
    }

    fn push(&mut self, element: ElementType, extents: Vec<usize>, drawn: &[f64]) {
        let width = extents[extents.len() - 1];
        self.bytes.push(quantise(element, drawn, width));
        self.elements.push(element);
        self.extents.push(extents);
        self.numbers.push(Vec::new());
        self.read_back(self.bytes.len() - 1);
    }

    fn read_back(&mut self, input: usize) {
        let packed = self.packed(input);
        let width = packed.width();
        let rows = packed.extents.iter().product::<usize>() / width;
        let mut numbers = vec![0.0; rows * width];
        for (row, out) in numbers.chunks_mut(width).enumerate() {
            packed.read(row, 0..width, out);
        }
        self.numbers[input] = numbers;
    }

    /// Puts a number into an input that has no scales.
    pub(crate) fn set(&mut self, input: usize, place: usize, number: f64) {
        let mut numbers = self.numbers[input].clone();
        numbers[place] = number;
        let width = *self.extents[input].last().unwrap();
        self.bytes[input] = quantise(self.elements[input], &numbers, width);
        self.read_back(input);
    }

    fn packed(&self, input: usize) -> Packed<'_> {
        let (elements, scales) = &self.bytes[input];
        Packed {
            element: self.elements[input],
            elements,
            scales,
            extents: self.extents[input].clone(),
        }
    }

    /// An element of an input.
    pub(crate) fn at(&self, input: usize, place: &[usize]) -> f64 {
        let axes = self.extents[input].iter().zip(place);
        self.numbers[input][axes.fold(0, |at, (extent, index)| at * extent + index)]
    }

    /// The last axis of an input at a place of the others.
    pub(crate) fn line(&self, input: usize, place: &[usize]) -> &[f64] {
        let (width, leading) = self.extents[input].split_last().unwrap();
        let axes = leading.iter().zip(place);
        let row = axes.fold(0, |row, (extent, index)| row * extent + index);
        &self.numbers[input][row * width..][..*width]
    }

    /// Calls `with` with the evaluator of an output.
    pub(crate) fn evaluate<R>(
        &self,
        operator: &Operator,
        output: usize,
        with: impl FnOnce(&Evaluator<'_>) -> R,
    ) -> R {
        let bytes: Vec<Vec<u8>> = self
            .above
            .iter()
            .map(|(_, numbers)| numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
            .collect();
        let outputs = self.above.iter().zip(&bytes);
        let problem = Problem {
            sizes: self.sizes.clone(),
            inputs: (0..self.bytes.len()).map(|i| self.packed(i)).collect(),
            outputs: outputs
                .map(|((extents, _), bytes)| Packed {
                    element: ElementType::F64,
                    elements: bytes,
                    scales: &[],
                    extents: extents.clone(),
                })
                .collect(),
        };
        let output = &operator.outputs[output];
        let extents = output.tensor.extents(&self.sizes).unwrap();
        with(&Evaluator::new(&output.value, &extents, &problem).unwrap())
    }

    /// Compares an output with `naive`, a function of its indices: all rows
    /// together, some rows, single elements.
    pub(crate) fn check(
        &self,
        operator: &Operator,
        output: usize,
        naive: impl Fn(&[usize]) -> f64,
    ) {
        let extents = operator.outputs[output]
            .tensor
            .extents(&self.sizes)
            .unwrap();
        let extents: Vec<usize> = extents.iter().map(|e| *e as usize).collect();
        let count: usize = extents.iter().product();
        let place = |at: usize| {
            let mut rest = at;
            let mut place = vec![0; extents.len()];
            for (index, extent) in place.iter_mut().zip(&extents).rev() {
                *index = rest % extent;
                rest /= extent;
            }
            place
        };
        let wanted: Vec<f64> = (0..count).map(|at| naive(&place(at))).collect();
        self.evaluate(operator, output, |evaluator| {
            let (rows, width) = (evaluator.row_count(), evaluator.width());
            let all = evaluator.rows(0..rows);
            assert_eq!(all.len(), count);
            for (at, (found, wanted)) in all.iter().zip(&wanted).enumerate() {
                assert!(near(*found, *wanted), "{:?}: {found} {wanted}", place(at));
            }
            let some = rows / 3..(rows / 3 + 2).min(rows);
            let found = evaluator.rows(some.clone());
            for (found, wanted) in found.iter().zip(&wanted[some.start * width..]) {
                assert!(near(*found, *wanted), "some rows: {found} {wanted}");
            }
            for (row, column) in [(0, 0), (rows - 1, width - 1), (rows / 2, width / 3)] {
                let found = evaluator.element(row, column);
                let wanted = wanted[row * width + column];
                assert!(near(found, wanted), "{row}, {column}: {found} {wanted}");
            }
        });
    }
}

fn near(found: f64, wanted: f64) -> bool {
    found == wanted
        || found.is_nan() && wanted.is_nan()
        || (found - wanted).abs() <= 1e-12 * (1.0 + wanted.abs())
}
