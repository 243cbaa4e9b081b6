//! Tensors and constants.

use super::wire::{Amount, Input, OperatorFile};
use super::{Reader, ordered};
use crate::diagnostic::InputError;
use crate::document::{self, Spanned, Table};
use crate::operator::{ElementType, Limit, MAX_RANK, Op, Tensor, language::Meaning};

const MAX_TENSORS: usize = 32;

impl Reader<'_> {
    pub(super) fn inputs(
        &mut self,
        wire: &OperatorFile,
        trials: &[Vec<u64>],
    ) -> Result<Vec<Tensor>, InputError> {
        let mut inputs: Vec<Tensor> = Vec::new();
        for (name, input) in ordered(&wire.inputs) {
            let mut tensor = self.tensor(name, input.element, &input.size, trials)?;
            tensor.range = self.range(name, input)?;
            self.check_range(&tensor, input, trials)?;
            let op = Op::Input(inputs.len());
            self.declare(name, Meaning::Tensor(op, tensor.clone()))?;
            inputs.push(tensor);
        }
        for input in inputs
            .iter()
            .filter(|input| input.element.scale().is_some())
        {
            let scales = [
                format!("sf{}", input.name),
                format!("sf{}_atoms", input.name),
            ];
            let taken = |name: &&Spanned<String>| scales.contains(name.get_ref());
            if let Some(name) = wire.inputs.keys().chain(wire.outputs.keys()).find(taken) {
                let message = format!("`{}` names the scales of `{}`", name.get_ref(), input.name);
                return self.refuse(name.span(), message, "choose another name");
            }
        }
        Ok(inputs)
    }

    pub(super) fn outputs(
        &mut self,
        wire: &OperatorFile,
        trials: &[Vec<u64>],
    ) -> Result<Vec<Tensor>, InputError> {
        let mut outputs = Vec::new();
        for (name, output) in ordered(&wire.outputs) {
            let element = *output.element.get_ref();
            if element.scale().is_some() {
                let (message, plain) = (
                    format!("an output of type {}", element.name()),
                    element.element().name(),
                );
                let remedy = format!("write two outputs: elements of type {plain}, and the scales");
                return self.refuse(output.element.span(), message, remedy);
            }
            outputs.push(self.tensor(name, element, &output.size, trials)?);
            // Known once its value is.
            self.declare(name, Meaning::Part(None))?;
        }
        if outputs.is_empty() {
            let remedy = "add [out.y] with `type`, `size` and `value`";
            return self.refuse(wire.summary.span(), "no output", remedy);
        }
        if wire.inputs.len() + outputs.len() > MAX_TENSORS {
            let message = format!("more than {MAX_TENSORS} tensors");
            return self.refuse(wire.summary.span(), message, "join some along an axis");
        }
        Ok(outputs)
    }

    fn tensor(
        &self,
        name: &Spanned<String>,
        element: ElementType,
        size: &Spanned<Vec<Spanned<document::Value>>>,
        trials: &[Vec<u64>],
    ) -> Result<Tensor, InputError> {
        let rank = size.get_ref().len();
        if !(1..=MAX_RANK).contains(&rank) {
            let remedy = format!("a tensor has 1 to {MAX_RANK} axes; size = [1] is one number");
            return self.refuse(size.span(), format!("the tensor has {rank} axes"), remedy);
        }
        let extents = size.get_ref().iter().map(|extent| self.whole(extent));
        let tensor = Tensor {
            name: name.get_ref().clone(),
            element,
            extents: extents.collect::<Result<_, _>>()?,
            range: None,
            place: self.document.place(name.span()),
        };
        let mut misfits = trials
            .iter()
            .filter_map(|sizes| tensor.layout_error(&self.sizes, sizes));
        match misfits.next() {
            Some((message, remedy)) => self.refuse(size.span(), message, remedy),
            None => Ok(tensor),
        }
    }

    fn range(
        &self,
        name: &Spanned<String>,
        input: &Input,
    ) -> Result<Option<(Limit, Limit)>, InputError> {
        let Some(range) = &input.range else {
            if input.element == ElementType::I32 {
                let message = format!("the i32 input `{}` has no `range`", name.get_ref());
                let remedy = "say what it may be: range = [0, \"v - 1\"]";
                return self.refuse(name.span(), message, remedy);
            }
            return Ok(None);
        };
        if input.element.scale().is_some() {
            let message = format!("`{}` has scales, and a range", name.get_ref());
            let remedy = "leave `range` out: elements and scales are drawn together";
            return self.refuse(range.span(), message, remedy);
        }
        let limit = |bound: &Spanned<Amount>| match bound.get_ref() {
            Amount::Number(value) => Ok(Limit::Number(*value)),
            Amount::Text(text) => Ok(Limit::Extent(self.whole_text(text, bound.span())?)),
        };
        let [low, high] = range.get_ref();
        Ok(Some((limit(low)?, limit(high)?)))
    }

    fn check_range(
        &self,
        tensor: &Tensor,
        input: &Input,
        trials: &[Vec<u64>],
    ) -> Result<(), InputError> {
        let (least, most) = tensor.element.limits();
        for (low, high) in trials.iter().filter_map(|sizes| tensor.range(sizes)) {
            // A NaN is not in order either.
            let in_order = least <= low && low <= high && high <= most;
            if !in_order {
                let span = input
                    .range
                    .as_ref()
                    .map_or(input.size.span(), Spanned::span);
                let message = format!(
                    "the range from {low} to {high} of {}",
                    tensor.element.name()
                );
                let remedy = format!("give the least and the most, within {least} and {most}");
                return self.refuse(span, message, remedy);
            }
        }
        Ok(())
    }

    pub(super) fn constants(
        &mut self,
        table: &Table<Spanned<Amount>>,
    ) -> Result<Vec<(String, f64)>, InputError> {
        let mut constants = Vec::new();
        for (key, written) in ordered(table) {
            let (name, span) = (key.get_ref(), written.span());
            let value = match written.get_ref() {
                Amount::Number(value) if value.is_finite() => *value,
                Amount::Number(value) => {
                    return self.refuse(span, format!("{name} is {value}"), "give a finite number");
                }
                Amount::Text(text) => {
                    let message = format!("{name} = {text:?} is not a number");
                    let remedy = "constants are numbers; `let` names parts of a value";
                    return self.refuse(span, message, remedy);
                }
            };
            self.declare(key, Meaning::Constant(value))?;
            constants.push((name.clone(), value));
        }
        Ok(constants)
    }
}
