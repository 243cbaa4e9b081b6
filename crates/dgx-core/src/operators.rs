//! Operators as rounds, run files and workers name them, and their properties for the sizes of a
//! shape.

use std::sync::{Arc, LazyLock, Mutex};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::diagnostic::{InputError, SourceFile};
use crate::domain::roofline::ResourceDemand;
use crate::domain::{Group, Shape};
use crate::operator::{
    self, BinaryOp, ElementType, Number, Op, Operator, Output, Tensor, UnaryOp, Value,
};

/// The default operator.
pub fn default_operator() -> &'static Arc<Operator> {
    static OPERATOR: LazyLock<Arc<Operator>> = LazyLock::new(|| {
        let first = operator::names().next().and_then(operator::built_in);
        Arc::new(first.expect("an operator is built in").clone())
    });
    &OPERATOR
}

/// The operator of that name, or the usual one without a name. A file in `operators/` takes
/// precedence over a built-in one.
pub fn named(name: Option<&str>) -> Result<Arc<Operator>, InputError> {
    let found = operator::find(name.unwrap_or(&default_operator().name))?;
    Ok(match found == **default_operator() {
        true => Arc::clone(default_operator()),
        false => Arc::new(found),
    })
}

/// The names of all operators: those built in, and those in `operators/`.
pub fn known() -> impl Iterator<Item = String> {
    operator::names()
        .map(str::to_owned)
        .chain(operator::local_names())
}

/// An operator in run files and requests to workers: with its whole text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorRecord {
    pub name: String,
    /// Content hash of the text.
    pub digest: String,
    /// The file.
    pub text: String,
}

impl OperatorRecord {
    pub fn of(operator: &Operator) -> Self {
        Self {
            name: operator.name.clone(),
            digest: operator.digest.clone(),
            text: operator.file.text.to_string(),
        }
    }

    /// The record in a run file: `None` for the usual operator.
    pub fn unless_usual(operator: &Operator) -> Option<Self> {
        (*operator != **default_operator()).then(|| Self::of(operator))
    }

    /// The operator of this record. Each text is parsed once.
    pub fn read(&self) -> Result<Arc<Operator>, String> {
        static READ: Mutex<Vec<Arc<Operator>>> = Mutex::new(Vec::new());
        let mut read = READ.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let same = |o: &&Arc<Operator>| o.name == self.name && *o.file.text == *self.text;
        if let Some(known) = read.iter().chain([default_operator()]).find(same) {
            return Ok(Arc::clone(known));
        }
        let file = SourceFile {
            path: format!("operators/{}.toml", self.name).into(),
            text: self.text.as_str().into(),
        };
        let operator = Operator::from_source(file).map_err(|error| error.to_string())?;
        if operator.digest != self.digest {
            return Err(format!(
                "the text of operator `{}` is not its digest's",
                self.name
            ));
        }
        let operator = Arc::new(operator);
        read.push(Arc::clone(&operator));
        Ok(operator)
    }
}

/// For `#[serde(with = …)]`: an operator as its record.
pub mod wire {
    use super::*;

    pub fn serialize<S: Serializer>(operator: &Operator, wire: S) -> Result<S::Ok, S::Error> {
        OperatorRecord::of(operator).serialize(wire)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(wire: D) -> Result<Arc<Operator>, D::Error> {
        let record = OperatorRecord::deserialize(wire)?;
        record.read().map_err(serde::de::Error::custom)
    }
}

impl Operator {
    /// Sizes of a group in this operator's order; `None` if one is missing.
    pub fn sizes_in(&self, group: &Group) -> Option<Vec<u64>> {
        self.sizes_of(|name| group.get(name).map(u64::from))
    }

    /// The minimum work of any design: each operation and each byte once.
    pub fn least_work(&self, shape: &Shape) -> ResourceDemand {
        self.work_of(&shape.groups)
    }

    /// The same for a shape's groups.
    pub fn work_of(&self, groups: &[Group]) -> ResourceDemand {
        let mut work = ResourceDemand::default();
        for group in groups {
            let Some(sizes) = self.sizes_in(group) else {
                continue;
            };
            let least = self.work(&sizes);
            for (rate, flops) in least.products {
                *work.products.entry(rate).or_default() += flops;
            }
            work.memory_bytes += least.bytes as f64;
        }
        work
    }

    /// Bytes of all outputs.
    pub fn bytes_written(&self, groups: &[Group]) -> u64 {
        let sizes = groups.iter().filter_map(|group| self.sizes_in(group));
        let bytes = |sizes: &[u64]| -> u64 {
            let outputs = self.outputs.iter();
            outputs.filter_map(|o| o.tensor.bytes(sizes)).sum()
        };
        sizes.map(|sizes| bytes(&sizes)).sum()
    }

    /// The operations that a rate on `shape` is stated in.
    pub fn operations(&self, shape: &Shape) -> f64 {
        let sizes = shape.groups.iter().filter_map(|group| self.sizes_in(group));
        sizes.map(|sizes| self.work(&sizes).flops()).sum()
    }

    /// Its name, and a hash of its text: `softmax (1f0c9a)`.
    pub fn version(&self) -> String {
        let digest = &self.digest[..self.digest.len().min(6)];
        format!("{} ({digest})", self.name)
    }

    /// Inputs, then outputs.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.inputs
            .iter()
            .chain(self.outputs.iter().map(|o| &o.tensor))
    }
}

/// The relative error allowed for sums and functions in f32.
const F32_SUMS: f64 = 1e-5;

impl Value {
    /// Whether f32 arithmetic rounds more than once in it.
    fn rounds(&self) -> bool {
        self.nodes.iter().any(|node| match node.op {
            Op::Unary(op) => !matches!(
                op,
                UnaryOp::Negate
                    | UnaryOp::Abs
                    | UnaryOp::Relu
                    | UnaryOp::Floor
                    | UnaryOp::Round
                    | UnaryOp::Sign
            ),
            Op::Binary(op) => matches!(op, BinaryOp::Divide | BinaryOp::Power),
            Op::Reduce(..) | Op::Softmax(_) | Op::Cumsum(_) | Op::MatMul => true,
            _ => false,
        })
    }
}

impl Output {
    /// The allowed error of an element, relative and absolute: the file's, or twice the rounding
    /// error of the type. Without `atol` the same share of the output's root mean square is added:
    /// see `Tolerance` in dgx-run's `validate`.
    pub fn tolerance(&self) -> (f64, f64) {
        (self.relative(), self.atol.unwrap_or(0.0))
    }

    /// The relative part. Codes of 8 bits or fewer must be the nearest; kernels compute f32 values
    /// in f32.
    fn relative(&self) -> f64 {
        let element = self.tensor.element;
        let rounding = element.unit_roundoff();
        self.rtol.unwrap_or(match element {
            _ if self.is_coded() => rounding,
            ElementType::F32 if self.value.rounds() => F32_SUMS,
            _ => 2.0 * rounding,
        })
    }

    /// Whether its elements are integers or have few codes, of which a correct kernel writes the
    /// nearest: no tolerance is given.
    pub fn is_coded(&self) -> bool {
        let element = self.tensor.element;
        let few = element.bits() <= 8 || element.number() != Number::Real;
        few && self.rtol.is_none() && self.atol.is_none()
    }
}

/// Two files with the same text are one operator.
impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.digest == other.digest
    }
}

impl Eq for Operator {}
