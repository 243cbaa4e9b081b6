//! The functions.

use std::ops::Range;

use super::check::{Checked, Checker, refuse, wider};
use super::parse::{Term, TermKind};
use crate::diagnostic::did_you_mean;
use crate::domain::{Joined, counted};
use crate::expr::ExprError;
use crate::operator::{
    BinaryOp, ElementType, Extent, MAX_RANK, NodeId, Number, Op, ReduceOp, UnaryOp,
};

#[derive(Clone, Copy)]
enum Function {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Reduce(ReduceOp),
    Softmax,
    Cumsum,
    Argsort,
    Where,
    Take,
    Permute,
    Index,
    Cast(ElementType),
}

const FUNCTIONS: [(&str, Function); 32] = [
    ("exp", Function::Unary(UnaryOp::Exp)),
    ("exp2", Function::Unary(UnaryOp::Exp2)),
    ("log", Function::Unary(UnaryOp::Log)),
    ("log2", Function::Unary(UnaryOp::Log2)),
    ("sqrt", Function::Unary(UnaryOp::Sqrt)),
    ("rsqrt", Function::Unary(UnaryOp::Rsqrt)),
    ("abs", Function::Unary(UnaryOp::Abs)),
    ("tanh", Function::Unary(UnaryOp::Tanh)),
    ("sigmoid", Function::Unary(UnaryOp::Sigmoid)),
    ("silu", Function::Unary(UnaryOp::Silu)),
    ("gelu", Function::Unary(UnaryOp::Gelu)),
    ("relu", Function::Unary(UnaryOp::Relu)),
    ("erf", Function::Unary(UnaryOp::Erf)),
    ("sin", Function::Unary(UnaryOp::Sin)),
    ("cos", Function::Unary(UnaryOp::Cos)),
    ("floor", Function::Unary(UnaryOp::Floor)),
    ("round", Function::Unary(UnaryOp::Round)),
    ("sign", Function::Unary(UnaryOp::Sign)),
    ("pow", Function::Binary(BinaryOp::Power)),
    ("maximum", Function::Binary(BinaryOp::Maximum)),
    ("minimum", Function::Binary(BinaryOp::Minimum)),
    ("sum", Function::Reduce(ReduceOp::Sum)),
    ("mean", Function::Reduce(ReduceOp::Mean)),
    ("max", Function::Reduce(ReduceOp::Max)),
    ("min", Function::Reduce(ReduceOp::Min)),
    ("softmax", Function::Softmax),
    ("cumsum", Function::Cumsum),
    ("argsort", Function::Argsort),
    ("where", Function::Where),
    ("take", Function::Take),
    ("permute", Function::Permute),
    ("i", Function::Index),
];

/// The names of all functions, casts among them.
pub(crate) fn functions() -> impl Iterator<Item = &'static str> {
    let casts = ElementType::ALL.into_iter().map(ElementType::name);
    FUNCTIONS.into_iter().map(|(name, _)| name).chain(casts)
}

impl Function {
    fn named(name: &str) -> Option<Self> {
        let function = FUNCTIONS.iter().find(|(known, _)| *known == name);
        let cast = || ElementType::named(name).map(Self::Cast);
        function.map(|(_, function)| *function).or_else(cast)
    }

    /// Its arguments, as they are written.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Unary(_) | Self::Cast(_) => &["x"],
            Self::Binary(_) => &["x", "y"],
            Self::Reduce(_) | Self::Softmax | Self::Cumsum | Self::Argsort => &["x", "axis"],
            Self::Where => &["condition", "x", "y"],
            Self::Take => &["x", "index", "axis"],
            Self::Permute => &["x", "axis", "…"],
            Self::Index => &["axis"],
        }
    }
}

impl Checker<'_> {
    pub(super) fn call(&mut self, name: &str, args: &[Term], span: &Range<usize>) -> Checked {
        let Some(function) = Function::named(name) else {
            return Err(self.no_function(name, span));
        };
        let wants = function.arguments();
        if args.len() != wants.len() && (args.is_empty() || !matches!(function, Function::Permute))
        {
            let takes = counted(wants.len(), "argument");
            let message = format!("`{name}` takes {takes}, not {}", args.len());
            let remedy = format!("write {name}({})", wants.join(", "));
            return refuse(span, message, remedy);
        }
        match function {
            Function::Index => self.index(&args[0], span),
            Function::Permute => self.permute(args, span),
            Function::Where => self.choose(args, span),
            Function::Take => self.gather(args, span),
            Function::Binary(op) => {
                let (a, b) = (self.term(&args[0])?, self.term(&args[1])?);
                self.binary(op, a, b, span)
            }
            Function::Unary(op) => {
                let id = self.term(&args[0])?;
                self.unary(op, id, span)
            }
            Function::Cast(element) => self.cast(element, &args[0], span),
            Function::Reduce(_) | Function::Softmax | Function::Cumsum | Function::Argsort => {
                self.along(function, args, span)
            }
        }
    }

    fn no_function(&self, name: &str, span: &Range<usize>) -> ExprError {
        let place = span.start..span.start + name.len();
        if self.names.contains_key(name) {
            let message = format!("`{name}` is not a function");
            return ExprError::new(place, message, "put an operator before the parenthesis");
        }
        let remedy = match name {
            "conv" | "conv1d" | "conv2d" | "conv3d" => {
                "a convolution cannot be written in this language".to_owned()
            }
            _ => did_you_mean(name, functions())
                .unwrap_or_else(|| format!("use one of {}", functions().joined(", "))),
        };
        ExprError::new(place, format!("there is no function `{name}`"), remedy)
    }

    /// The number that a term is, if extents depend on it.
    fn literal(&self, term: &Term) -> Result<i64, ExprError> {
        match &term.kind {
            TermKind::Number { value, whole: true } => Ok(*value as i64),
            TermKind::Negate(of) => self.literal(of).map(|value| -value),
            _ => {
                let message = format!("the axis `{}` is not a number", self.written(&term.span));
                Err(ExprError::new(
                    term.span.clone(),
                    message,
                    "write -1 for the last axis",
                ))
            }
        }
    }

    /// An axis of `id`, counted from the end.
    fn axis(&self, term: &Term, id: NodeId) -> Result<usize, ExprError> {
        let (axis, rank) = (self.literal(term)?, self.graph.rank(id) as i64);
        if (-rank..rank).contains(&axis) {
            let from_end = if axis < 0 { -axis } else { rank - axis };
            return Ok(from_end as usize - 1);
        }
        let shown = self.graph.shown(id);
        let message = format!("there is no axis {axis} in {shown}");
        let remedy = match rank {
            0 => "a number has no axes".to_owned(),
            _ => format!("axes go from -{rank} to {}; -1 is the last", rank - 1),
        };
        Err(ExprError::new(term.span.clone(), message, remedy))
    }

    fn index(&mut self, axis: &Term, span: &Range<usize>) -> Checked {
        let at = self.literal(axis)?;
        if !(-(MAX_RANK as i64)..0).contains(&at) {
            return refuse(
                &axis.span,
                format!("i({at}) does not count from the end"),
                format!("write i(-1) for the last axis, down to i(-{MAX_RANK})"),
            );
        }
        let axis = (-at) as usize - 1;
        let mut extents = vec![Some(Extent::Number(1)); axis + 1];
        extents[0] = None;
        Ok(self.step(Op::Index(axis), Vec::new(), extents, Number::Integer, span))
    }

    /// Functions along one axis.
    fn along(&mut self, function: Function, args: &[Term], span: &Range<usize>) -> Checked {
        let id = self.term(&args[0])?;
        self.numeric(id, &args[0].span)?;
        let axis = self.axis(&args[1], id)?;
        if self.graph.extent(id, axis).is_none() {
            return Err(self.meets_nothing(span));
        }
        let draft = self.graph.node(id);
        let (mut extents, mut number) = (draft.extents.clone(), draft.number);
        let op = match function {
            Function::Reduce(op) => {
                let at = extents.len() - 1 - axis;
                extents[at] = Some(Extent::Number(1));
                if op == ReduceOp::Mean {
                    number = Number::Real;
                }
                Op::Reduce(op, axis)
            }
            Function::Softmax => {
                number = Number::Real;
                Op::Softmax(axis)
            }
            Function::Cumsum => Op::Cumsum(axis),
            _ => {
                number = Number::Integer;
                Op::Argsort(axis)
            }
        };
        Ok(self.step(op, vec![id], extents, number, span))
    }

    fn choose(&mut self, args: &[Term], span: &Range<usize>) -> Checked {
        let [condition, x, y] = [0, 1, 2].map(|arg| self.term(&args[arg]));
        let ids = vec![condition?, x?, y?];
        let [condition, x, y] = [0, 1, 2].map(|at| self.graph.node(ids[at]).number);
        if condition != Number::Truth {
            let remedy = "the first argument of where is a comparison: where(x > 0, x, 0)";
            let message = "the condition of `where` is a number";
            return refuse(&args[0].span, message, remedy);
        }
        let number = match (x == Number::Truth, y == Number::Truth) {
            (true, true) => Number::Truth,
            (false, false) => wider(x, y),
            _ => {
                let message = "the values of `where` have different types";
                return refuse(span, message, "both values are numbers, or both are bool");
            }
        };
        self.elementwise(Op::Where, ids, number, span)
    }

    fn gather(&mut self, args: &[Term], span: &Range<usize>) -> Checked {
        let mut ids = [self.term(&args[0])?, self.term(&args[1])?];
        let axis = self.axis(&args[2], ids[0])?;
        if self.graph.node(ids[1]).number != Number::Integer {
            let remedy = "an index is an integer: i(axis), argsort, an i32 input, i32(x)";
            return refuse(
                &args[1].span,
                "the index of `take` is not an integer",
                remedy,
            );
        }
        if self.graph.extent(ids[0], axis).is_none() {
            return Err(self.meets_nothing(span));
        }
        let rank = ids
            .map(|id| self.graph.rank(id))
            .into_iter()
            .max()
            .unwrap_or(0);
        let mut extents = Vec::new();
        for at in (0..rank).rev() {
            extents.push(match at == axis {
                true => self.graph.extent(ids[1], axis),
                false => self.meet(&mut ids, at, span)?,
            });
        }
        let number = self.graph.node(ids[0]).number;
        Ok(self.step(Op::Take(axis), ids.to_vec(), extents, number, span))
    }

    fn permute(&mut self, args: &[Term], span: &Range<usize>) -> Checked {
        let id = self.term(&args[0])?;
        let axes = args[1..].iter().map(|axis| self.axis(axis, id));
        let axes = axes.collect::<Result<Vec<_>, _>>()?;
        let draft = self.graph.node(id);
        let rank = draft.extents.len();
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if sorted != (0..rank).collect::<Vec<_>>() {
            let message = format!("`{}` does not name each axis once", self.written(span));
            let remedy =
                format!("write permute(x, …) with the {rank} axes of x in their new order");
            return refuse(span, message, remedy);
        }
        let extents = axes
            .iter()
            .map(|from| draft.extents[rank - 1 - from].clone());
        let (extents, number) = (extents.collect(), draft.number);
        let from_end = axes.into_iter().rev().collect();
        Ok(self.step(Op::Permute(from_end), vec![id], extents, number, span))
    }

    fn cast(&mut self, element: ElementType, arg: &Term, span: &Range<usize>) -> Checked {
        if element.scale().is_some() {
            let (name, plain) = (element.name(), element.element().name());
            return refuse(
                span,
                format!("`{name}` is not one number: it shares scales"),
                format!("compute the scales, divide by them, and round with {plain}(x)"),
            );
        }
        let id = self.term(arg)?;
        let extents = self.graph.node(id).extents.clone();
        Ok(self.step(Op::Cast(element), vec![id], extents, element.number(), span))
    }
}
