//! Turns an operator's file as written into a consistent [`Operator`].

mod names;
mod tensors;
pub(super) mod trial;
mod values;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use schemars::{Schema, SchemaGenerator};

use super::language::{Graph, Meaning, parse, whole};
use super::{Extent, Op, Operator, Requirement, Tensor};
use crate::diagnostic::{InputError, SourceFile};
use crate::document::{self, Document, Formula, Spanned, Table};
use crate::domain::{bounds, content_hash, printable_line};
use wire::OperatorFile;

const GUIDE: &str = "`dgx schema operator` lists the keys";
const MAX_SIZES: usize = 8;
const MAX_SMALL: usize = 8;
/// Maximum size of a small problem: checks and the emulator try all of them.
const SMALL_BYTES: u64 = 64 << 20;
const SMALL_FLOPS: f64 = 1e10;

/// Whether this can be the name of an operator in rounds and commands.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// The schema of an operator's file, for editors and other programs.
pub fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<OperatorFile>()
}

impl Operator {
    /// Reads and checks an operator's file.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let remedy = "give the path of an operator's file, e.g. operators/rms-norm.toml";
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if !is_name(&stem) {
            let message = format!("`{}` cannot be an operator's name", printable_line(&stem));
            let remedy = "name the file with letters, digits, `-`, `_` and `.` alone";
            return Err(InputError::new(message, remedy));
        }
        Self::from_source(SourceFile::read(path, "operator", remedy)?)
    }

    /// Checks an operator's file that is already in memory.
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
        let inputs = reader.inputs(&wire, &trials)?;
        let tensors = reader.outputs(&wire, &trials)?;
        let constants = reader.constants(&wire.constants)?;
        let mut graph = Graph::new(&reader.sizes, trials);
        let outputs = reader.values(&wire, &inputs, tensors, &mut graph)?;
        let mistakes = reader.mistakes(&wire, &outputs, &mut graph)?;
        let flops = reader.flops(&wire, &small)?;
        reader.check_uses(&wire, &inputs, &outputs)?;
        let stem = file.path.file_stem().unwrap_or_default();
        let operator = Self {
            name: printable_line(&stem.to_string_lossy()),
            digest: content_hash([file.text.as_bytes()]),
            summary: printable_line(wire.summary.get_ref()),
            sizes: reader.sizes,
            groups: wire.groups,
            requires,
            small,
            constants,
            inputs,
            outputs,
            mistakes,
            flops,
            file: file.clone(),
        };
        operator.check_small(&document, &wire)?;
        Ok(operator)
    }

    /// Checks that small problems are small.
    fn check_small(&self, document: &Document<'_>, wire: &OperatorFile) -> Result<(), InputError> {
        for (index, sizes) in self.small.iter().enumerate() {
            let flops = self.work(sizes).flops();
            let tensors = self.tensors().map(|tensor| tensor.bytes(sizes));
            let bytes = tensors.fold(0, |sum: u64, bytes| {
                sum.saturating_add(bytes.unwrap_or(u64::MAX))
            });
            if bytes > SMALL_BYTES || flops > SMALL_FLOPS {
                let written = wire.small.get(index);
                return Err(document.error(
                    written.map_or(wire.sizes.span(), Spanned::span),
                    format!("a small problem of {bytes} bytes and {flops:.1e} operations"),
                    "proofs and the emulator try it: list smaller sizes in `small`",
                ));
            }
        }
        Ok(())
    }
}

/// The entries of a table in the order they are written.
fn ordered<T>(table: &Table<T>) -> Vec<(&Spanned<String>, &T)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

struct Reader<'a> {
    document: &'a Document<'a>,
    names: BTreeMap<String, Meaning>,
    sizes: Vec<String>,
}

impl Reader<'_> {
    fn refuse<T>(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Result<T, InputError> {
        Err(self.document.error(span, message, remedy))
    }

    /// The place of an expression's text.
    fn formula(&self, text: &str, span: Range<usize>) -> Formula {
        Formula {
            text: text.to_owned(),
            ..self.document.number(0, span)
        }
    }

    fn whole_text(&self, text: &str, span: Range<usize>) -> Result<Extent, InputError> {
        let extent = parse(text).and_then(|term| whole(&term, &self.sizes));
        extent.map_err(|error| self.formula(text, span).error(&error))
    }

    fn whole(&self, value: &Spanned<document::Value>) -> Result<Extent, InputError> {
        match value.get_ref() {
            document::Value::Integer(value) => Ok(Extent::Number(*value)),
            document::Value::Text(text) => self.whole_text(text, value.span()),
        }
    }

    fn sizes(&mut self, sizes: &Spanned<Vec<Spanned<String>>>) -> Result<(), InputError> {
        let count = sizes.get_ref().len();
        if !(1..=MAX_SIZES).contains(&count) {
            let remedy = format!("give between 1 and {MAX_SIZES}");
            return self.refuse(sizes.span(), format!("{count} sizes"), remedy);
        }
        for (index, size) in sizes.get_ref().iter().enumerate() {
            self.declare(size, Meaning::Size(index))?;
            self.sizes.push(size.get_ref().clone());
        }
        Ok(())
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
            let message = format!("`small` lists {} problems", wire.small.len());
            return self.refuse(entry.span(), message, "list the few that differ most");
        }
        if wire.small.is_empty() {
            let Some(found) = trial::small(self.sizes.len(), requires) else {
                let message = "no small sizes were found that meet `requires`";
                let remedy = "add `small = [{ … }]` with one problem";
                return self.refuse(wire.sizes.span(), message, remedy);
            };
            return Ok(vec![found]);
        }
        let read = |entry: &Spanned<Table<Spanned<i64>>>| {
            let sizes = self.problem(entry)?;
            let Some(Requirement { text, .. }) = trial::unmet(requires, &sizes) else {
                return Ok(sizes);
            };
            let message = format!("`{text}` does not hold here");
            self.refuse(entry.span(), message, "list sizes that meet `requires`")
        };
        wire.small.iter().map(read).collect()
    }

    /// The sizes of one small problem.
    fn problem(&self, entry: &Spanned<Table<Spanned<i64>>>) -> Result<Vec<u64>, InputError> {
        let known = |name: &&Spanned<String>| self.sizes.contains(name.get_ref());
        if let Some(name) = entry.get_ref().keys().find(|name| !known(name)) {
            let message = format!("`{}` is not one of the sizes", name.get_ref());
            return self.refuse(
                name.span(),
                message,
                format!("give {}", self.sizes.join(", ")),
            );
        }
        let size = |name: &String| {
            let Some(size) = entry.get_ref().get(name.as_str()) else {
                let message = format!("the size `{name}` is missing");
                return self.refuse(entry.span(), message, format!("add {name} = …"));
            };
            match u64::try_from(*size.get_ref()) {
                Ok(value) if (1..=u64::from(bounds::EXTENT)).contains(&value) => Ok(value),
                _ => {
                    let message = format!("{name} = {} is out of range", size.get_ref());
                    let remedy = format!("give between 1 and {}", bounds::EXTENT);
                    self.refuse(size.span(), message, remedy)
                }
            }
        };
        self.sizes.iter().map(size).collect()
    }

    fn flops(&self, wire: &OperatorFile, small: &[Vec<u64>]) -> Result<Option<Extent>, InputError> {
        let Some(written) = &wire.flops else {
            return Ok(None);
        };
        let flops = self.whole(written)?;
        match small
            .iter()
            .all(|sizes| matches!(flops.eval(sizes), Some(1..)))
        {
            true => Ok(Some(flops)),
            false => {
                let message = "not a positive number of operations for the sizes of `small`";
                self.refuse(
                    written.span(),
                    message,
                    "count the operations of one problem",
                )
            }
        }
    }

    /// Checks that everything declared is used.
    fn check_uses(
        &self,
        wire: &OperatorFile,
        inputs: &[Tensor],
        outputs: &[super::Output],
    ) -> Result<(), InputError> {
        let (mut used, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        let tensors = inputs
            .iter()
            .chain(outputs.iter().map(|output| &output.tensor));
        tensors
            .flat_map(|tensor| &tensor.extents)
            .for_each(|extent| extent.sizes(&mut sizes));
        used.extend(outputs.iter().filter_map(|output| output.start));
        for node in outputs.iter().flat_map(|output| &output.value.nodes) {
            match &node.op {
                Op::Input(input) => _ = used.insert(*input),
                Op::Size(size) => _ = sizes.insert(*size),
                Op::Slice { begin, end, .. } => {
                    begin.sizes(&mut sizes);
                    end.sizes(&mut sizes);
                }
                _ => {}
            }
        }
        if let Some(size) = (0..self.sizes.len()).find(|size| !sizes.contains(size)) {
            let message = format!(
                "no tensor and no value uses the size `{}`",
                self.sizes[size]
            );
            let place = wire.sizes.get_ref()[size].span();
            return self.refuse(place, message, "remove it, or use it");
        }
        if let Some(input) = (0..inputs.len()).find(|input| !used.contains(input)) {
            let message = format!("no value uses the input `{}`", inputs[input].name);
            return self.refuse(inputs[input].place.clone(), message, "remove it, or use it");
        }
        Ok(())
    }
}
