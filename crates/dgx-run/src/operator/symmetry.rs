//! Changes of a call's data whose effect on the result is known: permuted sizes, changed signs.
//! Each candidate is tried on an operator's small shapes, by evaluation; those that hold there are
//! returned.

use dgx_core::operator::{ElementType, Extent, Number, Operator, Tensor};
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::evaluate::Problem;
use super::format::Packed;

/// A change of the inputs that changes the outputs in a known way. Sizes, inputs and outputs are
/// given by their indices in the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    /// The indices of a size are permuted in every tensor that has it, inputs and outputs alike, in
    /// pieces of `unit`: blocks that share a scale, or a byte, stay together.
    Permute { size: usize, unit: u64 },
    /// These inputs are negated at some indices of a size, and so are those outputs; the other
    /// outputs stay the same.
    Negate {
        size: usize,
        inputs: Vec<usize>,
        outputs: Vec<usize>,
    },
}

/// Data sets on which a symmetry must hold, for each small shape.
const TRIALS: u64 = 2;
/// Tolerance for equal results, relative to the largest of them.
const SAME: f64 = 1e-11;

/// The symmetries of an operator that hold on its small shapes. Those of single tensors come before
/// those of two, and combinations of others are left out.
pub(super) fn symmetries(operator: &Operator) -> Vec<Symmetry> {
    let Some(trials) = trials(operator) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for size in 0..operator.sizes.len() {
        let permutation = permutation(operator, size);
        found.extend(permutation.filter(|symmetry| holds(operator, &trials, symmetry)));
        found.extend(negations(operator, &trials, size));
    }
    found
}

/// The permutation of a size, unless an extent is computed from it.
fn permutation(operator: &Operator, size: usize) -> Option<Symmetry> {
    let outputs = operator.outputs.iter().map(|output| &output.tensor);
    let tensors: Vec<&Tensor> = operator.inputs.iter().chain(outputs).collect();
    let extents = || tensors.iter().flat_map(|tensor| &tensor.extents);
    if extents().any(|extent| *extent != Extent::Size(size) && mentions(extent, size)) {
        return None;
    }
    let units = tensors
        .iter()
        .filter(|tensor| tensor.extents.last() == Some(&Extent::Size(size)))
        .map(|tensor| match tensor.element.scale() {
            Some(scale) => scale.block,
            None => (8 / tensor.element.bits()).max(1),
        });
    let unit = units.max().unwrap_or(1);
    extents()
        .any(|extent| *extent == Extent::Size(size))
        .then_some(Symmetry::Permute { size, unit })
}

fn mentions(extent: &Extent, size: usize) -> bool {
    match extent {
        Extent::Number(_) => false,
        Extent::Size(own) => *own == size,
        Extent::Of(_, of) => mentions(&of.0, size) || mentions(&of.1, size),
    }
}

/// Negations along a size of one input, and of two if neither holds alone.
fn negations(operator: &Operator, trials: &[SymmetryTrial], size: usize) -> Vec<Symmetry> {
    let has = |tensor: &Tensor| tensor.extents.contains(&Extent::Size(size));
    let signed: Vec<usize> = (0..operator.inputs.len())
        .filter(|i| has(&operator.inputs[*i]) && is_signed(&operator.inputs[*i]))
        .collect();
    let outputs: Vec<usize> = (0..operator.outputs.len())
        .filter(|o| has(&operator.outputs[*o].tensor) && is_signed(&operator.outputs[*o].tensor))
        .collect();
    let try_inputs = |inputs: Vec<usize>| {
        // All outputs that can, or none: testing every subset would be too much.
        let signs = [outputs.clone(), Vec::new()];
        let negations = signs.map(|outputs| Symmetry::Negate {
            size,
            inputs: inputs.clone(),
            outputs,
        });
        negations
            .into_iter()
            .find(|negation| holds(operator, trials, negation))
    };
    let mut found = Vec::new();
    let mut alone = Vec::new();
    for input in &signed {
        if let Some(negation) = try_inputs(vec![*input]) {
            found.push(negation);
            alone.push(*input);
        }
    }
    let others: Vec<usize> = signed.into_iter().filter(|i| !alone.contains(i)).collect();
    for (at, first) in others.iter().enumerate() {
        for second in &others[at + 1..] {
            found.extend(try_inputs(vec![*first, *second]));
        }
    }
    // One input combined with several others, as in two products of it.
    if others.len() > 2 && !found.iter().any(is_pair) {
        found.extend(try_inputs(others));
    }
    found
}

fn is_pair(symmetry: &Symmetry) -> bool {
    matches!(symmetry, Symmetry::Negate { inputs, .. } if inputs.len() == 2)
}

/// Whether one bit is the sign, and both signs may occur.
fn is_signed(tensor: &Tensor) -> bool {
    tensor.element.number() == Number::Real && tensor.range.is_none()
}

/// Whether a permutation or negation holds on all small shapes.
fn holds(operator: &Operator, trials: &[SymmetryTrial], symmetry: &Symmetry) -> bool {
    let changed = |trial: &SymmetryTrial| -> Option<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(trial.seed ^ 1);
        let change = Change::draw(symmetry, &trial.sizes, &mut rng);
        let inputs: Vec<Vec<f64>> = trial
            .inputs
            .iter()
            .zip(&operator.inputs)
            .enumerate()
            .map(|(i, (numbers, tensor))| change.input(i, numbers, tensor, &trial.sizes))
            .collect();
        let found = trial.evaluate(operator, &inputs)?;
        let outputs = operator.outputs.iter().zip(&trial.results).enumerate();
        let wanted = outputs
            .map(|(o, (output, numbers))| change.output(o, numbers, &output.tensor, &trial.sizes));
        let all = found.iter().zip(wanted).all(|(f, w)| same(f, &w));
        all.then_some(())
    };
    trials.iter().all(|trial| changed(trial).is_some())
}

/// A random instance of a symmetry.
struct Change<'a> {
    symmetry: &'a Symmetry,
    size: usize,
    order: Vec<usize>,
    signs: Vec<f64>,
}

impl<'a> Change<'a> {
    fn draw(symmetry: &'a Symmetry, sizes: &[u64], rng: &mut ChaCha8Rng) -> Self {
        let (size, unit) = match symmetry {
            Symmetry::Permute { size, unit } => (*size, *unit as usize),
            Symmetry::Negate { size, .. } => (*size, 1),
        };
        let extent = sizes[size] as usize;
        // An incomplete piece stays in place.
        let mut pieces: Vec<usize> = (0..extent / unit).collect();
        pieces.shuffle(rng);
        let moved = pieces.iter().flat_map(|p| p * unit..(p + 1) * unit);
        let order = moved.chain(extent / unit * unit..extent).collect();
        let signs = (0..extent).map(|_| if rng.random::<bool>() { 1.0 } else { -1.0 });
        Self {
            symmetry,
            size,
            order,
            signs: signs.collect(),
        }
    }

    fn input(&self, input: usize, numbers: &[f64], tensor: &Tensor, sizes: &[u64]) -> Vec<f64> {
        let negated =
            matches!(self.symmetry, Symmetry::Negate { inputs, .. } if inputs.contains(&input));
        self.applied(negated, numbers, tensor, sizes)
    }

    fn output(&self, output: usize, numbers: &[f64], tensor: &Tensor, sizes: &[u64]) -> Vec<f64> {
        let negated =
            matches!(self.symmetry, Symmetry::Negate { outputs, .. } if outputs.contains(&output));
        self.applied(negated, numbers, tensor, sizes)
    }

    fn applied(&self, negated: bool, numbers: &[f64], tensor: &Tensor, sizes: &[u64]) -> Vec<f64> {
        let mut numbers = numbers.to_vec();
        let extents = tensor.extents(sizes).unwrap_or_default();
        for (axis, extent) in tensor.extents.iter().enumerate() {
            if *extent != Extent::Size(self.size) {
                continue;
            }
            let inner: u64 = extents[axis + 1..].iter().product();
            let (inner, own) = (inner as usize, extents[axis] as usize);
            let before = numbers.clone();
            let place = |at: usize| (at / inner / own, at / inner % own, at % inner);
            for (at, to) in numbers.iter_mut().enumerate() {
                let (outer, index, rest) = place(at);
                match self.symmetry {
                    Symmetry::Permute { .. } => {
                        *to = before[(outer * own + self.order[index]) * inner + rest];
                    }
                    Symmetry::Negate { .. } if negated => *to *= self.signs[index],
                    _ => {}
                }
            }
        }
        numbers
    }
}

/// Data of a small shape, and the results.
struct SymmetryTrial {
    seed: u64,
    sizes: Vec<u64>,
    inputs: Vec<Vec<f64>>,
    results: Vec<Vec<f64>>,
}

/// `None` if a small shape cannot be evaluated, or an output is all zeros or has no finite value:
/// then it shows nothing.
fn trials(operator: &Operator) -> Option<Vec<SymmetryTrial>> {
    let mut trials = Vec::new();
    for sizes in &operator.small {
        for seed in 0..TRIALS {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let draw = |tensor: &Tensor| -> Option<Vec<f64>> {
                let count: u64 = tensor.extents(sizes)?.iter().product();
                Some((0..count).map(|_| drawn(tensor, sizes, &mut rng)).collect())
            };
            let inputs = operator
                .inputs
                .iter()
                .map(draw)
                .collect::<Option<Vec<_>>>()?;
            let mut trial = SymmetryTrial {
                seed,
                sizes: sizes.clone(),
                inputs,
                results: Vec::new(),
            };
            trial.results = trial.evaluate(operator, &trial.inputs)?;
            let telling = |numbers: &Vec<f64>| numbers.iter().any(|x| x.is_finite() && *x != 0.0);
            if !trial.results.iter().all(telling) {
                return None;
            }
            trials.push(trial);
        }
    }
    Some(trials)
}

/// A small number of the tensor's kind, in its range.
fn drawn(tensor: &Tensor, sizes: &[u64], rng: &mut ChaCha8Rng) -> f64 {
    let (low, high) = tensor.range(sizes).unwrap_or(match tensor.element {
        ElementType::U8 => (0.0, 4.0),
        ElementType::Bool => (0.0, 1.0),
        _ => (-3.0, 3.0),
    });
    let drawn = low + (high - low) * rng.random::<f64>();
    match tensor.element.number() {
        Number::Real => (drawn * 16.0).round() / 16.0,
        Number::Integer | Number::Truth => drawn.round(),
    }
}

impl SymmetryTrial {
    /// All outputs; one that names another reads its computed value.
    fn evaluate(&self, operator: &Operator, inputs: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
        let bytes =
            |numbers: &[f64]| -> Vec<u8> { numbers.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let packed: Vec<Vec<u8>> = inputs.iter().map(|numbers| bytes(numbers)).collect();
        let tensors = operator.inputs.iter().zip(&packed);
        let inputs: Vec<Packed<'_>> = tensors
            .map(|(tensor, bytes)| as_f64(tensor, bytes, &self.sizes))
            .collect::<Option<_>>()?;
        let mut results: Vec<Vec<f64>> = Vec::new();
        for output in &operator.outputs {
            let above: Vec<Vec<u8>> = results.iter().map(|numbers| bytes(numbers)).collect();
            let outputs = operator.outputs.iter().zip(&above);
            let problem = Problem {
                sizes: self.sizes.clone(),
                inputs: inputs.clone(),
                outputs: outputs
                    .map(|(output, bytes)| as_f64(&output.tensor, bytes, &self.sizes))
                    .collect::<Option<_>>()?,
            };
            let evaluator = problem.evaluator(&output.value, &output.tensor).ok()?;
            results.push(evaluator.rows(0..evaluator.row_count()));
        }
        Some(results)
    }
}

/// A tensor with its numbers as f64, not rounded to its type.
fn as_f64<'b>(tensor: &Tensor, bytes: &'b [u8], sizes: &[u64]) -> Option<Packed<'b>> {
    let extents = tensor.extents(sizes)?;
    Some(Packed {
        element: ElementType::F64,
        elements: bytes,
        scales: &[],
        extents: extents.into_iter().map(|e| e as usize).collect(),
    })
}

fn same(found: &[f64], wanted: &[f64]) -> bool {
    let finite = wanted.iter().filter(|x| x.is_finite());
    let most = finite.fold(0.0, |most: f64, x| most.max(x.abs()));
    let mut pairs = found.iter().zip(wanted);
    pairs.all(|(a, b)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= SAME * most)
}

#[cfg(test)]
mod tests;
