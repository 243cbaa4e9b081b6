//! The values an operator computes, and those of its known mistakes.

use super::wire::{self, OperatorFile};
use super::{Reader, ordered};
use crate::diagnostic::InputError;
use crate::document::Spanned;
use crate::domain::{bounds, printable_line};
use crate::operator::{
    Mistake, NodeId, Number, Op, Output, Tensor, Value,
    language::{Checker, Graph, Meaning, parse},
};

/// A larger relative tolerance is meaningless: half a step of e2m1.
const LOOSEST: f64 = 0.25;

impl Reader<'_> {
    /// The values of all outputs, from the first to the last.
    pub(super) fn values(
        &mut self,
        wire: &OperatorFile,
        inputs: &[Tensor],
        tensors: Vec<Tensor>,
        graph: &mut Graph,
    ) -> Result<Vec<Output>, InputError> {
        let written = ordered(&wire.outputs);
        for (name, _) in written.iter().flat_map(|(_, output)| ordered(&output.lets)) {
            self.declare(name, Meaning::Part(None))?;
        }
        let mut outputs = Vec::new();
        for ((_, output), tensor) in written.iter().zip(tensors) {
            for (name, text) in ordered(&output.lets) {
                let part = self.check(text, graph, None)?;
                self.names
                    .insert(name.get_ref().clone(), Meaning::Part(Some(part)));
            }
            let value = self.value(&output.value, &tensor, graph)?;
            let meaning = Meaning::Tensor(Op::Output(outputs.len()), tensor.clone());
            self.names.insert(tensor.name.clone(), meaning);
            outputs.push(Output {
                value,
                atol: self.tolerance("atol", output.atol.as_ref(), &tensor)?,
                rtol: self.tolerance("rtol", output.rtol.as_ref(), &tensor)?,
                start: self.start(output, inputs, &tensor)?,
                place: self.document.place(output.value.span()),
                tensor,
            });
        }
        Ok(outputs)
    }

    /// The root of a text: of a part, or of a tensor's value.
    fn check(
        &self,
        text: &Spanned<String>,
        graph: &mut Graph,
        tensor: Option<&Tensor>,
    ) -> Result<NodeId, InputError> {
        let formula = &self.formula(text.get_ref(), text.span());
        let names = &self.names;
        let root = parse(&formula.text).and_then(|term| {
            let mut checker = Checker {
                graph,
                names,
                formula,
            };
            match tensor {
                Some(tensor) => checker.value(&term, tensor),
                None => checker.term(&term),
            }
        });
        root.map_err(|error| formula.error(&error))
    }

    fn value(
        &self,
        text: &Spanned<String>,
        tensor: &Tensor,
        graph: &mut Graph,
    ) -> Result<Value, InputError> {
        let root = self.check(text, graph, Some(tensor))?;
        let value = graph.value(root);
        let reads = |op: &Op| matches!(op, Op::Input(_) | Op::Output(_) | Op::Index(_));
        match value.nodes.iter().any(|node| reads(&node.op)) {
            true => Ok(value),
            false => {
                let message = format!("`{}` does not depend on any input", tensor.name);
                self.refuse(text.span(), message, "use an input in its value")
            }
        }
    }

    pub(super) fn mistakes(
        &self,
        wire: &OperatorFile,
        outputs: &[Output],
        graph: &mut Graph,
    ) -> Result<Vec<Mistake>, InputError> {
        let mut mistakes = Vec::new();
        let common = ordered(&wire.mistake);
        if let (Some((name, _)), [first, _, ..]) = (common.first(), outputs) {
            let first = &first.tensor.name;
            let remedy = format!("with several outputs, write it under [out.{first}.mistake]");
            return self.refuse(name.span(), "a mistake of which output?", remedy);
        }
        for (index, (_, written)) in ordered(&wire.outputs).into_iter().enumerate() {
            let own = ordered(&written.mistake);
            for (name, text) in common.iter().chain(&own) {
                let value = self.mistake(name, text, &outputs[index], graph)?;
                mistakes.push(Mistake {
                    name: printable_line(name.get_ref()),
                    output: index,
                    value,
                    place: self.document.place(text.span()),
                });
            }
        }
        Ok(mistakes)
    }

    fn mistake(
        &self,
        name: &Spanned<String>,
        text: &Spanned<String>,
        output: &Output,
        graph: &mut Graph,
    ) -> Result<Value, InputError> {
        if let Err(why) = bounds::name("mistake", name.get_ref()) {
            return self.refuse(name.span(), why, "say in a few words what went wrong");
        }
        let value = self.value(text, &output.tensor, graph)?;
        if value.is_same(&output.value) {
            let message = format!("this is the value of `{}` itself", output.tensor.name);
            let remedy = "write what a wrong kernel computes in its place";
            return self.refuse(text.span(), message, remedy);
        }
        Ok(value)
    }

    fn tolerance(
        &self,
        key: &str,
        written: Option<&Spanned<f64>>,
        tensor: &Tensor,
    ) -> Result<Option<f64>, InputError> {
        let Some(written) = written else {
            return Ok(None);
        };
        let value = *written.get_ref();
        let remedy = if !(value >= 0.0 && value.is_finite()) {
            "give a number that is not negative, e.g. 1e-3"
        } else if tensor.element.number() != Number::Real && value != 0.0 {
            "integers and bool are compared exactly: remove it"
        } else if key == "rtol" && value > LOOSEST {
            "nearly anything would pass: give at most 0.25"
        } else {
            return Ok(Some(value));
        };
        self.refuse(written.span(), format!("{key} is {value:?}"), remedy)
    }

    fn start(
        &self,
        output: &wire::Output,
        inputs: &[Tensor],
        tensor: &Tensor,
    ) -> Result<Option<usize>, InputError> {
        let Some(start) = &output.start else {
            return Ok(None);
        };
        let (name, span) = (start.get_ref(), start.span());
        let Some(index) = inputs.iter().position(|input| input.name == *name) else {
            let message = format!("`{name}` is not an input");
            return self.refuse(span, message, "name the input it starts from");
        };
        let input = &inputs[index];
        if input.element != tensor.element || input.extents != tensor.extents {
            let message = format!("`{name}` and `{}` differ", tensor.name);
            let remedy = "an output starts from an input of its type and size";
            return self.refuse(span, message, remedy);
        }
        Ok(Some(index))
    }
}
