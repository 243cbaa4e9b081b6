//! Turns terms into steps of the graph, with their types and extents.

use std::collections::BTreeMap;
use std::ops::Range;

use super::call::functions;
use super::graph::{DraftNode, ExtentConflict, Graph};
use super::parse::{Term, TermKind};
use crate::diagnostic::did_you_mean;
use crate::document::Formula;
use crate::expr::ExprError;
use crate::operator::{BinaryOp, Extent, NodeId, Number, Op, Tensor, UnaryOp};

/// The meaning of a name.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// An input or an earlier output: the step that reads it.
    Tensor(Op, Tensor),
    Size(usize),
    Constant(f64),
    /// A named part; `None` until it is known.
    Part(Option<NodeId>),
}

/// Checks one expression.
pub(crate) struct Checker<'a> {
    pub(crate) graph: &'a mut Graph,
    pub(crate) names: &'a BTreeMap<String, Meaning>,
    pub(crate) formula: &'a Formula,
}

pub(crate) type Checked = Result<NodeId, ExprError>;

impl Checker<'_> {
    /// The value computed for `tensor`.
    pub(crate) fn value(&mut self, term: &Term, tensor: &Tensor) -> Checked {
        let root = self.term(term)?;
        self.fit(root, term, tensor)
    }

    /// The value with the type and the extents of its tensor.
    fn fit(&mut self, mut root: NodeId, term: &Term, tensor: &Tensor) -> Checked {
        let name = &tensor.name;
        let (is, wants) = (self.graph.node(root).number, tensor.element.number());
        if is != wants && (is, wants) != (Number::Integer, Number::Real) {
            let element = tensor.element.name();
            return refuse(
                &term.span,
                format!("the value is {}, and `{name}` is {element}", called(is)),
                format!("write {element}(…) to convert it, or change the type of `{name}`"),
            );
        }
        let rank = tensor.extents.len();
        for axis in 0..self.graph.rank(root).max(rank) {
            let wanted = rank.checked_sub(axis + 1).map(|at| &tensor.extents[at]);
            match (self.graph.extent(root, axis), wanted) {
                (None, Some(extent)) => root = self.graph.resolve(root, axis, extent),
                (Some(extent), Some(wanted))
                    if self.graph.is_one(&extent) || self.graph.same(&extent, wanted) => {}
                _ => return Err(self.unfit(root, term, tensor)),
            }
        }
        Ok(root)
    }

    fn unfit(&self, root: NodeId, term: &Term, tensor: &Tensor) -> ExprError {
        let wanted: Vec<String> = tensor
            .extents
            .iter()
            .map(|e| e.shown(&self.graph.names))
            .collect();
        let remedy = match self.graph.rank(root) == tensor.extents.len() + 1 {
            true => "a reduction keeps its axis, with extent 1: add 1 to `size` in that place",
            false => "change the value, or `size`",
        };
        let (is, wanted) = (self.graph.shown(root), wanted.join(", "));
        let message = format!("the value is {is}, and `{}` is [{wanted}]", tensor.name);
        ExprError::new(term.span.clone(), message, remedy)
    }

    pub(crate) fn term(&mut self, term: &Term) -> Checked {
        if self.graph.is_full() {
            let message = "the values of this file take too many steps";
            let remedy = "split the operator in two, or name common parts with `let`";
            return refuse(&term.span, message, remedy);
        }
        match &term.kind {
            TermKind::Number { value, whole } => {
                let number = if *whole {
                    Number::Integer
                } else {
                    Number::Real
                };
                Ok(self.leaf(Op::Constant(*value), number, &term.span))
            }
            TermKind::Name(name) => self.name(name, &term.span),
            TermKind::Negate(of) => self.negate(of, &term.span),
            TermKind::Binary(op, both) => {
                let (a, b) = (self.term(&both.0)?, self.term(&both.1)?);
                self.binary(*op, a, b, &term.span)
            }
            TermKind::MatMul(both) => self.product(&both.0, &both.1, &term.span),
            TermKind::Transpose(of) => self.transpose(of, &term.span),
            TermKind::Subscript(of, subscripts) => self.slices(of, subscripts, &term.span),
            TermKind::Call(name, args) => self.call(name, args, &term.span),
        }
    }

    /// The text at `span`.
    pub(super) fn written(&self, span: &Range<usize>) -> &str {
        self.formula.text.get(span.clone()).unwrap_or_default()
    }

    pub(super) fn step(
        &mut self,
        op: Op,
        inputs: Vec<NodeId>,
        extents: Vec<Option<Extent>>,
        number: Number,
        span: &Range<usize>,
    ) -> NodeId {
        let span = self.formula.inner(span);
        self.graph.add(DraftNode {
            op,
            inputs,
            extents,
            number,
            span,
        })
    }

    fn leaf(&mut self, op: Op, number: Number, span: &Range<usize>) -> NodeId {
        self.step(op, Vec::new(), Vec::new(), number, span)
    }

    fn name(&mut self, name: &str, span: &Range<usize>) -> Checked {
        match self.names.get(name) {
            Some(Meaning::Tensor(op, tensor)) => {
                let extents = tensor.extents.iter().cloned().map(Some).collect();
                Ok(self.step(
                    op.clone(),
                    Vec::new(),
                    extents,
                    tensor.element.number(),
                    span,
                ))
            }
            Some(Meaning::Size(size)) => Ok(self.leaf(Op::Size(*size), Number::Integer, span)),
            Some(Meaning::Constant(value)) => {
                let whole = value.fract() == 0.0;
                let number = if whole { Number::Integer } else { Number::Real };
                Ok(self.leaf(Op::Constant(*value), number, span))
            }
            Some(Meaning::Part(Some(id))) => Ok(*id),
            Some(Meaning::Part(None)) => Err(ExprError::new(
                span.clone(),
                format!("`{name}` is not known yet here"),
                "a value may use outputs and parts above it, never itself",
            )),
            None if name == "inf" => Ok(self.leaf(Op::Constant(f64::INFINITY), Number::Real, span)),
            None => Err(self.unknown(name, span)),
        }
    }

    fn unknown(&self, name: &str, span: &Range<usize>) -> ExprError {
        let message = format!("unknown name `{name}`");
        let remedy = match functions().any(|known| known == name) {
            true => format!("`{name}` is a function: write {name}(…)"),
            false => did_you_mean(name, self.names.keys().map(String::as_str))
                .unwrap_or_else(|| "names are sizes, tensors, constants and `let`".to_owned()),
        };
        ExprError::new(span.clone(), message, remedy)
    }

    fn negate(&mut self, of: &Term, span: &Range<usize>) -> Checked {
        let id = self.term(of)?;
        match self.graph.node(id) {
            DraftNode {
                op: Op::Constant(value),
                number,
                ..
            } if *value != 0.0 => {
                let (value, number) = (-value, *number);
                Ok(self.leaf(Op::Constant(value), number, span))
            }
            _ => self.unary(UnaryOp::Negate, id, span),
        }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, id: NodeId, span: &Range<usize>) -> Checked {
        use UnaryOp::{Abs, Floor, Negate, Relu, Round, Sign};
        self.numeric(id, span)?;
        let number = match op {
            Negate | Abs | Relu | Sign | Floor | Round => self.graph.node(id).number,
            _ => Number::Real,
        };
        let extents = self.graph.node(id).extents.clone();
        Ok(self.step(Op::Unary(op), vec![id], extents, number, span))
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        a: NodeId,
        b: NodeId,
        span: &Range<usize>,
    ) -> Checked {
        use BinaryOp::{And, Divide, Equal, NotEqual, Or, Power};
        let numbers = [a, b].map(|id| self.graph.node(id).number);
        let truths = numbers.iter().filter(|n| **n == Number::Truth).count();
        let number = match op {
            And | Or if truths < 2 => {
                let message = format!("an operand of `{}` is a number", op.symbol());
                let remedy = "`and` and `or` are for comparisons and bool";
                return refuse(span, message, remedy);
            }
            And | Or => Number::Truth,
            Equal | NotEqual if truths == 2 => Number::Truth,
            _ if truths > 0 => {
                let message = format!("an operand of `{}` is not a number", op.symbol());
                return refuse(span, message, NUMBER_FROM_TRUTH);
            }
            Divide | Power => Number::Real,
            _ if op.compares() => Number::Truth,
            _ => wider(numbers[0], numbers[1]),
        };
        self.elementwise(Op::Binary(op), vec![a, b], number, span)
    }

    /// A step on operands that are broadcast.
    pub(super) fn elementwise(
        &mut self,
        op: Op,
        mut ids: Vec<NodeId>,
        number: Number,
        span: &Range<usize>,
    ) -> Checked {
        let rank = ids.iter().map(|id| self.graph.rank(*id)).max().unwrap_or(0);
        let mut extents = Vec::new();
        for axis in (0..rank).rev() {
            extents.push(self.meet(&mut ids, axis, span)?);
        }
        Ok(self.step(op, ids, extents, number, span))
    }

    pub(super) fn meet(
        &mut self,
        ids: &mut [NodeId],
        axis: usize,
        span: &Range<usize>,
    ) -> Result<Option<Extent>, ExprError> {
        let axes = vec![axis; ids.len()];
        self.graph.meet(ids, &axes).map_err(|clash| {
            let shown: Vec<String> = ids
                .iter()
                .filter(|id| self.graph.rank(**id) > 0)
                .map(|id| self.graph.shown(*id))
                .collect();
            let along = format!("along axis -{}", axis + 1);
            let meets = format!("{} meets {}", shown[0], shown[1..].join(" and "));
            let message = self.clash(&clash, span, |a, b| format!("{meets}: {a} and {b} {along}"));
            let remedy = "axes are aligned at the last one, and only an extent of 1 is stretched; \
                          `.T` exchanges the last two";
            ExprError::new(span.clone(), message, remedy)
        })
    }

    /// A sentence with the first trial sizes for which two extents differ.
    pub(super) fn clash(
        &self,
        ExtentConflict(one, other): &ExtentConflict,
        span: &Range<usize>,
        says: impl Fn(i64, i64) -> String,
    ) -> String {
        let written = self.written(span);
        match self.graph.counterexample([one, other], |[a, b]| a != b) {
            Some((sizes, Some([a, b]))) => {
                let sizes = self.graph.sizes_shown(sizes);
                format!("`{written}`: {} ({sizes})", says(a, b))
            }
            _ => format!("`{written}`: its extents overflow"),
        }
    }

    pub(super) fn numeric(&self, id: NodeId, span: &Range<usize>) -> Result<(), ExprError> {
        match self.graph.node(id).number {
            Number::Truth => refuse(span, "the operand is not a number", NUMBER_FROM_TRUTH),
            _ => Ok(()),
        }
    }

    pub(super) fn meets_nothing(&self, span: &Range<usize>) -> ExprError {
        let written = self.written(span);
        ExprError::new(
            span.clone(),
            format!("the extent of i(axis) in `{written}` is unknown"),
            "combine it with a tensor first: where(i(-1) < 3, x, 0)",
        )
    }
}

const NUMBER_FROM_TRUTH: &str = "a comparison or bool is not a number: where(c, 1, 0) makes one";

pub(super) fn refuse<T>(
    span: &Range<usize>,
    message: impl Into<String>,
    remedy: impl Into<String>,
) -> Result<T, ExprError> {
    Err(ExprError::new(span.clone(), message, remedy))
}

pub(super) fn wider(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Integer, Number::Integer) => Number::Integer,
        _ => Number::Real,
    }
}

fn called(number: Number) -> &'static str {
    match number {
        Number::Real => "a real number",
        Number::Integer => "an integer",
        Number::Truth => "true or false",
    }
}
