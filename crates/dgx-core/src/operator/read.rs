//! From an operator's file as written to an [`Operator`] that is right in itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use super::language::{Checker, Graph, Meaning, functions, parse, whole};
use super::wire::{self, Bound, OperatorFile};
use super::{
    ElementType, Extent, Limit, MAX_RANK, Mistake, Number, Op, Operator, Output, Requirement,
    Tensor, Value, trial,
};
use crate::diagnostic::{InputError, SourceFile};
use crate::document::{self, Document, Formula, Spanned, Table};
use crate::domain::{bounds, content_hash, printable_line};
use crate::expr::ExprError;

const GUIDE: &str = "docs/operators.md lists the keys";
pub(super) const MAX_SIZES: usize = 8;
const MAX_TENSORS: usize = 32;
const MAX_SMALL: usize = 8;
/// Longest name of a size, a tensor or a constant.
const MAX_NAME: usize = 32;
/// What a small problem may take: proofs and the emulator try all of them.
const SMALL_BYTES: u64 = 64 << 20;
const SMALL_FLOPS: f64 = 1e10;

/// Words of the language, of front matter, of the kernel's struct and of C++.
const RESERVED: &str = "and or not in if else inf nan groups sms tiles scratch index tile_begin \
    alignas alignof asm auto bool break case catch char class const constexpr continue decltype \
    default delete do double enum explicit export extern false float for friend goto inline int \
    long mutable namespace new noexcept nullptr operator private protected public register \
    requires return short signed sizeof static struct switch template this throw true try \
    typedef typename union unsigned using virtual void volatile while dgx";

impl Operator {
    /// Reads and checks an operator's file.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let remedy = "give the path of an operator's file, e.g. operators/rms-norm.toml";
        Self::from_source(SourceFile::read(path, "operator", remedy)?)
    }

    /// Checks an operator's file that was read already.
    pub fn from_source(file: SourceFile) -> Result<Self, InputError> {
        let document = Document::whole(&file, GUIDE);
        let wire: OperatorFile = document.parse()?;
        let mut reader = Reader {
            document: &document,
            names: BTreeMap::new(),
            sizes: Vec::new(),
        };
        reader.sizes(&wire.sizes)?;
        let requires = reader.requires(&wire.requires)?;
        let small = reader.small(&wire, &requires)?;
        let trials = trial::trials(&small, &requires);
        let (inputs, tensors) = reader.tensors(&wire, &trials)?;
        reader.constants(&wire.constants)?;
        let mut graph = Graph::new(&reader.sizes, trials);
        let (outputs, mistakes) = reader.values(&wire, &inputs, tensors, &mut graph)?;
        let flops = wire.flops.as_ref().map(|f| reader.whole(f)).transpose()?;
        let operator = Self {
            name: name_of(&file.path),
            digest: content_hash([file.text.as_bytes()]),
            summary: printable_line(wire.summary.get_ref()),
            sizes: reader.sizes,
            groups: wire.groups,
            requires,
            small,
            constants: constants(&wire.constants),
            inputs,
            outputs,
            mistakes,
            flops,
            file: file.clone(),
        };
        operator.check_uses(&document, &wire)?;
        operator.check_small(&document, &wire)?;
        Ok(operator)
    }

    /// Everything that is declared is used.
    fn check_uses(&self, document: &Document<'_>, wire: &OperatorFile) -> Result<(), InputError> {
        let (mut inputs, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        let outputs = self.outputs.iter().map(|output| &output.tensor);
        for tensor in self.inputs.iter().chain(outputs) {
            tensor
                .extents
                .iter()
                .for_each(|extent| extent.sizes(&mut sizes));
        }
        for output in &self.outputs {
            inputs.extend(output.start);
            for node in &output.value.nodes {
                match &node.op {
                    Op::Input(input) => _ = inputs.insert(*input),
                    Op::Size(size) => _ = sizes.insert(*size),
                    Op::Slice { begin, end, .. } => {
                        begin.sizes(&mut sizes);
                        end.sizes(&mut sizes);
                    }
                    _ => {}
                }
            }
        }
        if let Some(size) = (0..self.sizes.len()).find(|size| !sizes.contains(size)) {
            let written = &wire.sizes.get_ref()[size];
            return Err(document.error(
                written.span(),
                format!(
                    "no tensor and no value uses the size `{}`",
                    written.get_ref()
                ),
                "remove it, or use it",
            ));
        }
        match (0..self.inputs.len()).find(|input| !inputs.contains(input)) {
            None => Ok(()),
            Some(input) => {
                let Tensor { name, place, .. } = &self.inputs[input];
                let message = format!("no value uses the input `{name}`");
                Err(document.error(place.clone(), message, "remove it, or use it"))
            }
        }
    }

    /// Small problems are small.
    fn check_small(&self, document: &Document<'_>, wire: &OperatorFile) -> Result<(), InputError> {
        for (index, sizes) in self.small.iter().enumerate() {
            let work = self.work(sizes);
            if work.bytes > SMALL_BYTES || work.flops() > SMALL_FLOPS {
                let place = wire
                    .small
                    .get(index)
                    .map_or(wire.sizes.span(), Spanned::span);
                let message = format!(
                    "a small problem of {} bytes and {:.1e} operations",
                    work.bytes,
                    work.flops()
                );
                let remedy = "proofs and the emulator try it: list smaller sizes in `small`";
                return Err(document.error(place, message, remedy));
            }
        }
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    printable_line(&stem.to_string_lossy())
}

/// The entries of a table in the order they are written.
fn ordered<T>(table: &Table<T>) -> Vec<(&Spanned<String>, &T)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn constants(table: &Table<Spanned<f64>>) -> Vec<(String, f64)> {
    let entries = ordered(table).into_iter();
    entries
        .map(|(name, value)| (name.get_ref().clone(), *value.get_ref()))
        .collect()
}

struct Reader<'a> {
    document: &'a Document<'a>,
    names: BTreeMap<String, Meaning>,
    sizes: Vec<String>,
}

impl Reader<'_> {
    fn error(&self, span: Range<usize>, message: String, remedy: &str) -> InputError {
        self.document.error(span, message, remedy)
    }

    /// Gives `name` its meaning, where it has none yet.
    fn declare(&mut self, name: &Spanned<String>, meaning: Meaning) -> Result<(), InputError> {
        let (word, span) = (name.get_ref().as_str(), name.span());
        let plain = word.len() <= MAX_NAME
            && word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain {
            let remedy = format!("use a letter, then letters, digits and _; {MAX_NAME} at most");
            let message = format!("`{}` cannot be a name", word.escape_debug());
            return Err(self.error(span, message, &remedy));
        }
        if functions().any(|known| known == word) {
            let remedy = "choose another: tensors, sizes, constants and functions share names";
            return Err(self.error(span, format!("`{word}` is a function"), remedy));
        }
        if RESERVED.split_whitespace().any(|known| known == word) {
            let remedy = "choose another: it means something in values, kernels or C++";
            return Err(self.error(span, format!("`{word}` is reserved"), remedy));
        }
        if self.names.insert(word.to_owned(), meaning).is_some() {
            let remedy = "choose another: tensors, sizes, constants and `let` share names";
            return Err(self.error(span, format!("a second meaning of `{word}`"), remedy));
        }
        Ok(())
    }

    fn sizes(&mut self, sizes: &Spanned<Vec<Spanned<String>>>) -> Result<(), InputError> {
        let count = sizes.get_ref().len();
        if !(1..=MAX_SIZES).contains(&count) {
            let remedy = format!("give between 1 and {MAX_SIZES}");
            return Err(self.error(sizes.span(), format!("{count} sizes"), &remedy));
        }
        for (index, size) in sizes.get_ref().iter().enumerate() {
            self.declare(size, Meaning::Size(index))?;
            self.sizes.push(size.get_ref().clone());
        }
        Ok(())
    }

    fn constants(&mut self, table: &Table<Spanned<f64>>) -> Result<(), InputError> {
        for (name, value) in ordered(table) {
            let number = *value.get_ref();
            if !number.is_finite() {
                let message = format!("{} = {number}", name.get_ref());
                return Err(self.error(value.span(), message, "give a finite number"));
            }
            self.declare(name, Meaning::Constant(number))?;
        }
        Ok(())
    }

    /// Where the text of an expression stands.
    fn formula(&self, text: &str, span: Range<usize>) -> Formula {
        Formula {
            text: text.to_owned(),
            ..self.document.number(0, span)
        }
    }

    fn whole_text(&self, text: &str, span: Range<usize>) -> Result<Extent, InputError> {
        let formula = self.formula(text, span);
        let extent = parse(text).and_then(|term| whole(&term, &self.sizes));
        extent.map_err(|error| formula.error(&error))
    }

    fn whole(&self, value: &Spanned<document::Value>) -> Result<Extent, InputError> {
        match value.get_ref() {
            document::Value::Integer(value) => Ok(Extent::Number(*value)),
            document::Value::Text(text) => self.whole_text(text, value.span()),
        }
    }

    fn requires(&self, list: &[Spanned<String>]) -> Result<Vec<Requirement>, InputError> {
        let read = |text: &Spanned<String>| {
            Ok(Requirement {
                text: text.get_ref().clone(),
                condition: self.whole_text(text.get_ref(), text.span())?,
            })
        };
        list.iter().map(read).collect()
    }

    fn small(
        &self,
        wire: &OperatorFile,
        requires: &[Requirement],
    ) -> Result<Vec<Vec<u64>>, InputError> {
        if let Some(entry) = wire.small.get(MAX_SMALL) {
            let message = format!("{} small problems", wire.small.len());
            return Err(self.error(entry.span(), message, "list the few that differ most"));
        }
        if wire.small.is_empty() {
            let found = trial::small(self.sizes.len(), requires).ok_or_else(|| {
                let message = "no small sizes were found that meet `requires`".to_owned();
                self.error(
                    wire.sizes.span(),
                    message,
                    "add `small = [{ … }]` with one problem",
                )
            });
            return Ok(vec![found?]);
        }
        let read = |entry: &Spanned<Table<Spanned<i64>>>| {
            let sizes = self.problem(entry)?;
            match trial::unmet(requires, &sizes) {
                None => Ok(sizes),
                Some(requirement) => {
                    let message = format!("`{}` does not hold here", requirement.text);
                    Err(self.error(entry.span(), message, "list sizes that meet `requires`"))
                }
            }
        };
        wire.small.iter().map(read).collect()
    }

    /// The sizes of one small problem.
    fn problem(&self, entry: &Spanned<Table<Spanned<i64>>>) -> Result<Vec<u64>, InputError> {
        for name in entry.get_ref().keys() {
            if !self.sizes.contains(name.get_ref()) {
                let message = format!("`{}` is not one of the sizes", name.get_ref());
                let remedy = format!("give {}", self.sizes.join(", "));
                return Err(self.error(name.span(), message, &remedy));
            }
        }
        let size = |name: &String| {
            let Some(size) = entry.get_ref().get(name.as_str()) else {
                let message = format!("the size `{name}` is missing");
                return Err(self.error(entry.span(), message, &format!("add {name} = …")));
            };
            match u64::try_from(*size.get_ref()) {
                Ok(value) if (1..=u64::from(bounds::EXTENT)).contains(&value) => Ok(value),
                _ => {
                    let message = format!("{name} = {} is out of range", size.get_ref());
                    let remedy = format!("give between 1 and {}", bounds::EXTENT);
                    Err(self.error(size.span(), message, &remedy))
                }
            }
        };
        self.sizes.iter().map(size).collect()
    }

    /// Inputs and outputs.
    fn tensors(
        &mut self,
        wire: &OperatorFile,
        trials: &[Vec<u64>],
    ) -> Result<(Vec<Tensor>, Vec<Tensor>), InputError> {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (name, input) in ordered(&wire.inputs) {
            let mut tensor = self.tensor(name, input.element, &input.size, trials)?;
            tensor.range = self.range(name, input)?;
            let meaning = Meaning::Tensor(Op::Input(inputs.len()), tensor.clone());
            self.declare(name, meaning)?;
            inputs.push(tensor);
        }
        for (name, output) in ordered(&wire.outputs) {
            let element = *output.element.get_ref();
            if element.scale().is_some() {
                let (block, plain) = (element.name(), element.element().name());
                let message = format!("an output of type {block}");
                let remedy = format!("write two outputs: elements of type {plain}, and the scales");
                return Err(self.error(output.element.span(), message, &remedy));
            }
            outputs.push(self.tensor(name, element, &output.size, trials)?);
            // Known once its value is.
            self.declare(name, Meaning::Part(None))?;
        }
        if outputs.is_empty() {
            let remedy = "add [out.y] with `type`, `size` and `value`";
            return Err(self.error(wire.summary.span(), "no output".to_owned(), remedy));
        }
        if inputs.len() + outputs.len() > MAX_TENSORS {
            let message = format!("more than {MAX_TENSORS} tensors");
            return Err(self.error(wire.summary.span(), message, "join some along an axis"));
        }
        for scaled in inputs
            .iter()
            .filter(|input| input.element.scale().is_some())
        {
            for name in ordered(&wire.inputs).iter().map(|(name, _)| *name) {
                let (scales, atoms) = (
                    format!("sf{}", scaled.name),
                    format!("sf{}_atoms", scaled.name),
                );
                if *name.get_ref() == scales || *name.get_ref() == atoms {
                    let message = format!(
                        "the scales of `{}` are called `{name}`",
                        scaled.name,
                        name = name.get_ref()
                    );
                    return Err(self.error(name.span(), message, "choose another name"));
                }
            }
        }
        Ok((inputs, outputs))
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
            return Err(self.error(size.span(), format!("{rank} axes"), &remedy));
        }
        let extents = size.get_ref().iter().map(|extent| self.whole(extent));
        let tensor = Tensor {
            name: name.get_ref().clone(),
            element,
            extents: extents.collect::<Result<_, _>>()?,
            range: None,
            place: self.document.place(name.span()),
        };
        for sizes in trials {
            if let Some((message, remedy)) = tensor.misfit(&self.sizes, sizes) {
                return Err(self.document.error(size.span(), message, remedy));
            }
        }
        Ok(tensor)
    }

    fn range(
        &self,
        name: &Spanned<String>,
        input: &wire::Input,
    ) -> Result<Option<(Limit, Limit)>, InputError> {
        let Some(range) = &input.range else {
            if input.element == ElementType::I32 {
                let message = format!("the i32 input `{}` has no `range`", name.get_ref());
                let remedy = "say what it may be: range = [0, \"v - 1\"]";
                return Err(self.error(name.span(), message, remedy));
            }
            return Ok(None);
        };
        let limit = |bound: &Spanned<Bound>| match bound.get_ref() {
            Bound::Number(value) => Ok(Limit::Number(*value)),
            Bound::Text(text) => Ok(Limit::Extent(self.whole_text(text, bound.span())?)),
        };
        let [low, high] = range.get_ref();
        let (low, high) = (limit(low)?, limit(high)?);
        if let (Limit::Number(low), Limit::Number(high)) = (&low, &high) {
            let (least, most) = input.element.limits();
            // A NaN is not in order either.
            let in_order = least <= *low && low <= high && *high <= most;
            if !in_order {
                let message = format!("the range from {low} to {high} of {}", input.element.name());
                let remedy = format!("give the least and the most, within {least} and {most}");
                return Err(self.error(range.span(), message, &remedy));
            }
        }
        Ok(Some((low, high)))
    }

    /// The values of all outputs, from the first to the last, then mistakes.
    fn values(
        &mut self,
        wire: &OperatorFile,
        inputs: &[Tensor],
        tensors: Vec<Tensor>,
        graph: &mut Graph,
    ) -> Result<(Vec<Output>, Vec<Mistake>), InputError> {
        let (mut outputs, mut mistakes) = (Vec::new(), Vec::new());
        let written = ordered(&wire.outputs);
        for (_, output) in &written {
            for (name, _) in ordered(&output.lets) {
                self.declare(name, Meaning::Part(None))?;
            }
        }
        for (index, ((_, output), tensor)) in written.iter().zip(tensors).enumerate() {
            for (name, text) in ordered(&output.lets) {
                let part = self.part(text, graph)?;
                self.names
                    .insert(name.get_ref().clone(), Meaning::Part(Some(part)));
            }
            let value = self.value(&output.value, &tensor, graph)?;
            let meaning = Meaning::Tensor(Op::Output(index), tensor.clone());
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
        if let Some((name, _)) = ordered(&wire.mistake).first()
            && outputs.len() > 1
        {
            let first = &outputs[0].tensor.name;
            let message = "a mistake of which output?".to_owned();
            let remedy = format!("with several outputs, write it under [out.{first}.mistake]");
            return Err(self.error(name.span(), message, &remedy));
        }
        for (index, (_, output)) in written.iter().enumerate() {
            let own = if index == 0 {
                ordered(&wire.mistake)
            } else {
                Vec::new()
            };
            for (name, text) in own.into_iter().chain(ordered(&output.mistake)) {
                mistakes.push(self.mistake(name, text, (index, &outputs[index]), graph)?);
            }
        }
        Ok((outputs, mistakes))
    }

    fn part(&self, text: &Spanned<String>, graph: &mut Graph) -> Result<usize, InputError> {
        let formula = self.formula(text.get_ref(), text.span());
        let term = parse(&formula.text).map_err(|error| formula.error(&error))?;
        let names = &self.names;
        Checker {
            graph,
            names,
            formula: &formula,
        }
        .part(&term)
    }

    fn value(
        &self,
        text: &Spanned<String>,
        tensor: &Tensor,
        graph: &mut Graph,
    ) -> Result<Value, InputError> {
        let formula = self.formula(text.get_ref(), text.span());
        let term = parse(&formula.text).map_err(|error| formula.error(&error))?;
        let names = &self.names;
        let value = Checker {
            graph,
            names,
            formula: &formula,
        }
        .value(&term, tensor)?;
        let reads = |op: &Op| matches!(op, Op::Input(_) | Op::Output(_) | Op::Index(_));
        if !value.nodes.iter().any(|node| reads(&node.op)) {
            let message = format!("`{}` does not depend on any input", tensor.name);
            let error = ExprError::new(0..formula.text.len(), message, "use an input in it");
            return Err(formula.error(&error));
        }
        Ok(value)
    }

    fn mistake(
        &self,
        name: &Spanned<String>,
        text: &Spanned<String>,
        (index, output): (usize, &Output),
        graph: &mut Graph,
    ) -> Result<Mistake, InputError> {
        bounds::name("mistake", name.get_ref())
            .map_err(|why| self.error(name.span(), why, "say in a few words what went wrong"))?;
        let value = self.value(text, &output.tensor, graph)?;
        if value.is_same(&output.value) {
            let message = format!("this is the value of `{}` itself", output.tensor.name);
            let remedy = "write what a wrong kernel computes in its place";
            return Err(self.error(text.span(), message, remedy));
        }
        Ok(Mistake {
            name: printable_line(name.get_ref()),
            output: index,
            value,
            place: self.document.place(text.span()),
        })
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
        let error =
            |remedy: &str| Err(self.error(written.span(), format!("{key} = {value}"), remedy));
        if !(value >= 0.0 && value.is_finite()) {
            return error("give a number that is not negative, e.g. 1e-3");
        }
        if tensor.element.number() != Number::Real && value != 0.0 {
            return error("integers and bool are compared exactly: remove it");
        }
        if key == "rtol" && value >= 1.0 {
            return error("all zeros would pass: give less than 1");
        }
        Ok(Some(value))
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
        let named = |input: &Tensor| input.name == *start.get_ref();
        let Some(index) = inputs.iter().position(named) else {
            let message = format!("`{}` is not an input", start.get_ref());
            return Err(self.error(start.span(), message, "name the input it starts from"));
        };
        let same =
            inputs[index].element == tensor.element && inputs[index].extents == tensor.extents;
        match same {
            true => Ok(Some(index)),
            false => {
                let message = format!("`{}` and `{}` differ", start.get_ref(), tensor.name);
                let remedy = "an output starts from an input of its type and size";
                Err(self.error(start.span(), message, remedy))
            }
        }
    }
}
