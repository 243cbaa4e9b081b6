//! What the tensor core of a CTA or pair was given.

use std::ops::Range;

use super::reach::Reach;
use crate::exec::origin::{Origin, SharedAt};
use crate::op::Collector;
use crate::tensor::descriptor::Matrix;
use crate::tensor::tcgen05::{CopyShape, Form, Product, TensorColumns, Unpacked};

/// Something in the queue of a CTA or pair.
pub(crate) struct Issued {
    pub(crate) from: Origin,
    pub(crate) ctas: CtaRange,
    pub(crate) work: Work,
    /// What it writes, in each of its CTAs.
    pub(crate) writes: Reach,
}

pub(crate) type CtaRange = Range<usize>;

pub(crate) enum Work {
    Mma(Box<Multiply>),
    Copy {
        shape: CopyShape,
        unpacked: Option<Unpacked>,
        matrix: Matrix,
        /// A source had yet to arrive when it was issued.
        early: bool,
    },
    Shift,
    Commit(Vec<SharedAt>),
}

/// A product, as it was issued.
pub(crate) struct Multiply {
    pub(crate) product: Product,
    pub(crate) at: TensorColumns,
    pub(crate) a: OperandA,
    pub(crate) b: Matrix,
    /// Lanes of each CTA that are not written.
    pub(crate) disabled: [u128; 2],
    /// An operand had yet to arrive when it was issued.
    pub(crate) early: bool,
    pub(crate) collector: Collector,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandA {
    Shared(Matrix),
    Tmem {
        column: u32,
        half: u32,
        shifted: bool,
    },
}

/// What a buffer of the collector holds: an operand, as its product named it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collected {
    operand: OperandA,
    form: Form,
}

impl Multiply {
    /// The operand that its collector may keep: A, or B if that is stationary.
    pub(crate) fn collected(&self) -> Collected {
        let form = self.product.form;
        match form.stationary {
            // Whatever A is multiplied with it.
            true => Collected {
                operand: OperandA::Shared(self.b),
                form: Form {
                    a: form.b,
                    m: 0,
                    transpose_a: false,
                    ..form
                },
            },
            false => Collected {
                operand: self.a,
                form: Form {
                    b: form.a,
                    n: 0,
                    transpose_b: false,
                    scaling: None,
                    ..form
                },
            },
        }
    }
}

impl Issued {
    /// The instruction.
    pub(crate) fn name(&self) -> &'static str {
        match self.work {
            Work::Mma(_) => "the tcgen05.mma",
            Work::Copy { .. } => "the tcgen05.cp",
            Work::Shift => "the tcgen05.shift",
            Work::Commit(_) => "the tcgen05.commit",
        }
    }
}
