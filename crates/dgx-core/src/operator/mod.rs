//! An operator: what is computed, as one file of TOML says it. Read and
//! checked here; nothing is evaluated.

mod extent;
mod types;
mod value;

use std::ops::Range;

use crate::diagnostic::{InputError, SourceFile};

pub use extent::Extent;
pub use types::{ElementType, Number, Scale};
pub use value::{BinaryOp, Node, NodeId, Op, ReduceOp, UnaryOp, Value};

/// An operator whose file was read and is right in itself.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The stem of its file.
    pub name: String,
    pub file: SourceFile,
    /// Content hash of the text.
    pub digest: String,
    pub summary: String,
    /// What a shape gives, in the order of its name.
    pub sizes: Vec<String>,
    /// Whether a shape may list several problems.
    pub groups: bool,
    pub requires: Vec<Requirement>,
    /// Sizes to prove things on, each in the order of `sizes`; never empty.
    pub small: Vec<Vec<u64>>,
    pub constants: Vec<(String, f64)>,
    /// In the order of the file, as are outputs.
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Output>,
    pub mistakes: Vec<Mistake>,
    /// Operations of one problem, where the file says so.
    pub flops: Option<Extent>,
}

/// What sizes must meet: not 0.
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
    /// Least and most that data may be, where the file says so.
    pub range: Option<(f64, f64)>,
    /// Its name in the file.
    pub place: Range<usize>,
}

#[derive(Clone, Debug)]
pub struct Output {
    pub tensor: Tensor,
    pub value: Value,
    /// None where it follows from the type.
    pub atol: Option<f64>,
    pub rtol: Option<f64>,
    /// The input whose contents it has before the call.
    pub start: Option<usize>,
    /// Its value in the file.
    pub place: Range<usize>,
}

/// What a wrong kernel may have computed in place of an output.
#[derive(Clone, Debug)]
pub struct Mistake {
    pub name: String,
    pub output: usize,
    pub value: Value,
    /// Its value in the file.
    pub place: Range<usize>,
}

impl Operator {
    /// The sizes of a problem in this operator's order; none where one is missing.
    pub fn sizes_of(&self, size: impl Fn(&str) -> Option<u64>) -> Option<Vec<u64>> {
        self.sizes.iter().map(|name| size(name)).collect()
    }

    /// The first requirement that `sizes` do not meet.
    pub fn unmet(&self, sizes: &[u64]) -> Option<&Requirement> {
        let meets = |r: &&Requirement| matches!(r.condition.eval(sizes), Some(v) if v != 0);
        self.requires.iter().find(|r| !meets(r))
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

    /// Bytes with scales; none where they do not fit 63 bits.
    pub fn bytes(&self, sizes: &[u64]) -> Option<u64> {
        let extents = self.extents(sizes)?;
        let (columns, leading) = extents.split_last()?;
        let rows = leading
            .iter()
            .try_fold(1_u64, |rows, e| rows.checked_mul(*e))?;
        self.element.bytes(rows, *columns)
    }
}
