//! An operator: the computation, defined by one TOML file. Read and checked here; nothing is
//! evaluated.

mod built_in;
mod demand;
mod extent;
mod language;
mod mask;
mod product;
mod read;
mod record;
mod tolerance;
mod types;
mod value;
mod work;

use std::ops::Range;

use crate::diagnostic::{InputError, SourceFile};

pub use built_in::{built_in, find, local_names, names};
pub use extent::Extent;
pub use product::Product;
pub use read::schema;
pub use record::{OperatorRecord, default_operator, known, named, wire};
pub use types::{ElementType, Number, Scale};
pub use value::{BinaryOp, Node, NodeId, Op, ReduceOp, UnaryOp, Value};
pub use work::Work;

/// Maximum number of axes of a tensor.
pub const MAX_RANK: usize = 5;

/// An operator, read from its file and consistent.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The stem of its file.
    pub name: String,
    pub file: SourceFile,
    /// Content hash of the text.
    pub digest: String,
    pub summary: String,
    /// The sizes of a shape, in the order of its name.
    pub sizes: Vec<String>,
    /// Whether a shape may list several problems.
    pub groups: bool,
    pub requires: Vec<Requirement>,
    /// Sizes for checks, each in the order of `sizes`; never empty.
    pub small: Vec<Vec<u64>>,
    pub constants: Vec<(String, f64)>,
    /// In the order of the file, as are outputs.
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Output>,
    pub mistakes: Vec<Mistake>,
    /// Operations of one problem, if the file gives them.
    pub flops: Option<Extent>,
}

/// Two files with the same text are one operator.
impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.digest == other.digest
    }
}

impl Eq for Operator {}

/// A condition on sizes: its value must not be 0.
#[derive(Clone, Debug)]
pub struct Requirement {
    pub text: String,
    pub condition: Extent,
}

#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    pub element: ElementType,
    /// First axis first; one to five.
    pub extents: Vec<Extent>,
    /// Minimum and maximum of the data, if the file gives them.
    pub range: Option<(Limit, Limit)>,
    /// Its name in the file.
    pub place: Range<usize>,
}

/// The minimum or the maximum of the data.
#[derive(Clone, Debug)]
pub enum Limit {
    Number(f64),
    Extent(Extent),
}

#[derive(Clone, Debug)]
pub struct Output {
    pub tensor: Tensor,
    pub value: Value,
    /// `None` if it follows from the type.
    pub atol: Option<f64>,
    pub rtol: Option<f64>,
    /// The input whose contents it has before the call.
    pub start: Option<usize>,
    /// Its value in the file.
    pub place: Range<usize>,
}

/// A value that a wrong kernel may have computed in place of an output.
#[derive(Clone, Debug)]
pub struct Mistake {
    pub name: String,
    pub output: usize,
    pub value: Value,
    /// Its value in the file.
    pub place: Range<usize>,
}

impl Operator {
    /// The sizes of a problem in this operator's order; `None` if one is missing.
    pub fn sizes_of(&self, size: impl Fn(&str) -> Option<u64>) -> Option<Vec<u64>> {
        self.sizes.iter().map(|name| size(name)).collect()
    }

    /// The first requirement that `sizes` do not meet.
    pub fn unmet(&self, sizes: &[u64]) -> Option<&Requirement> {
        read::trial::unmet(&self.requires, sizes)
    }

    /// Why no problem of these sizes can be laid out, and the remedy; the sizes meet the operator's
    /// requirements.
    pub fn layout_error(&self, sizes: &[u64]) -> Option<(String, String)> {
        let outputs = self.outputs.iter().map(|output| &output.tensor);
        let mut tensors = self.inputs.iter().chain(outputs);
        let layout_error = tensors.find_map(|tensor| tensor.layout_error(&self.sizes, sizes));
        layout_error.or_else(|| {
            let values = self.outputs.iter().map(|output| &output.value);
            let mut values = values.chain(self.mistakes.iter().map(|mistake| &mistake.value));
            let slice = &self.file.text[values.find_map(|value| value.cut_short(sizes))?];
            let message = format!("`{slice}` reaches beyond its axis");
            Some((message, "say in `requires` which sizes it needs".to_owned()))
        })
    }

    /// An error at `place` of the file.
    pub fn error(
        &self,
        place: Range<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> InputError {
        self.file.error(place, message, remedy)
    }
}

impl Tensor {
    /// Extents as numbers, first axis first.
    pub fn extents(&self, sizes: &[u64]) -> Option<Vec<u64>> {
        let extent = |extent: &Extent| u64::try_from(extent.eval(sizes)?).ok();
        self.extents.iter().map(extent).collect()
    }

    /// Minimum and maximum of the data, if the file gives them.
    pub fn range(&self, sizes: &[u64]) -> Option<(f64, f64)> {
        let limit = |limit: &Limit| match limit {
            Limit::Number(value) => Some(*value),
            Limit::Extent(extent) => Some(extent.eval(sizes)? as f64),
        };
        let (low, high) = self.range.as_ref()?;
        Some((limit(low)?, limit(high)?))
    }

    /// Why it cannot be laid out for these sizes, and the remedy.
    fn layout_error(&self, names: &[String], sizes: &[u64]) -> Option<(String, String)> {
        let pairs = names.iter().zip(sizes);
        let at: Vec<String> = pairs
            .map(|(name, size)| format!("{name} = {size}"))
            .collect();
        let (name, at) = (&self.name, at.join(", "));
        for extent in &self.extents {
            if !matches!(extent.eval(sizes), Some(1..)) {
                let value = match extent.eval(sizes) {
                    Some(value) => value.to_string(),
                    None => "a number that overflows".to_owned(),
                };
                let message = format!(
                    "an extent of `{name}`, {}, is {value} ({at})",
                    extent.shown(names)
                );
                let remedy = "extents are 1 or more; where sizes must be so, say it in `requires`";
                return Some((message, remedy.to_owned()));
            }
        }
        let last = self.extents.last()?.eval(sizes)?;
        let block = match self.element.scale() {
            Some(scale) => scale.block as i64,
            None => (8 / self.element.bits().min(8)) as i64,
        };
        if last % block != 0 {
            let element = self.element.name();
            let message = format!("rows of `{name}` have {last} elements of {element} ({at})");
            let remedy = format!(
                "{element} comes in blocks of {block}: say in `requires` that they divide it"
            );
            return Some((message, remedy));
        }
        if self.bytes(sizes).is_none() {
            let message = format!("`{name}` takes 2^63 bytes or more ({at})");
            return Some((message, "give smaller extents".to_owned()));
        }
        None
    }

    /// Bytes with scales; `None` if they do not fit 63 bits.
    pub fn bytes(&self, sizes: &[u64]) -> Option<u64> {
        let extents = self.extents(sizes)?;
        let (columns, leading) = extents.split_last()?;
        let rows = leading
            .iter()
            .try_fold(1_u64, |rows, e| rows.checked_mul(*e))?;
        self.element.bytes(rows, *columns)
    }
}

#[cfg(test)]
mod tests;
