//! A checked expression, for evaluators, generators and counters.

use std::ops::Range;

use super::{ElementType, Extent, Number};

/// The index of a node in [`Value::nodes`].
pub type NodeId = usize;

/// The computation: a graph in which equal parts occur once. Every node comes after its inputs. Its
/// root may have extents of 1, or fewer axes, where the output has more: it is broadcast.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub nodes: Vec<Node>,
    pub root: NodeId,
}

/// One step. Axes in `op` count from the end: 0 is the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub op: Op,
    pub inputs: Vec<NodeId>,
    /// First axis first; empty for a number. Operands of elementwise steps are aligned at the last
    /// axis, and an extent of 1 is stretched.
    pub extents: Vec<Extent>,
    pub number: Number,
    /// Its place in the operator's file.
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// An input, by its index in the file.
    Input(usize),
    /// The kernel's contents of an earlier output.
    Output(usize),
    Constant(f64),
    /// A size, by its index in the operator's list.
    Size(usize),
    /// The index along an axis; the extents of the others are 1.
    Index(usize),
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// Condition, value if it is true, value otherwise.
    Where,
    /// Of the last two axes; those before them are broadcast.
    MatMul,
    /// The last two axes exchanged.
    Transpose,
    /// Axis a of the result is axis `[a]` of the input, both counted from the end.
    Permute(Vec<usize>),
    /// Indices from `begin` up to `end`, both from 0, `end` left out.
    Slice {
        axis: usize,
        begin: Extent,
        end: Extent,
    },
    /// The axis stays, with extent 1.
    Reduce(ReduceOp, usize),
    Softmax(usize),
    /// The sum of all elements up to each, itself included.
    Cumsum(usize),
    /// Indices that sort ascending; equal elements keep their order.
    Argsort(usize),
    /// Inputs: x, index. Element by element, the index replaces the one along the axis; along the
    /// other axes x and index are broadcast.
    Take(usize),
    /// Rounded to the type: floats to nearest even, integers towards zero, both saturating if the
    /// type has no infinity.
    Cast(ElementType),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Negate,
    Exp,
    Exp2,
    Log,
    Log2,
    Sqrt,
    Rsqrt,
    Abs,
    Tanh,
    Sigmoid,
    Silu,
    /// With erf, not the approximation by tanh.
    Gelu,
    Relu,
    Erf,
    Sin,
    Cos,
    Floor,
    /// To the nearest integer, halves to the even one.
    Round,
    Sign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Rounded down.
    FloorDivide,
    /// With the sign of the divisor.
    Remainder,
    Power,
    Maximum,
    Minimum,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    Sum,
    Mean,
    Max,
    Min,
}

impl BinaryOp {
    /// Its symbol in the language.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
            Self::Power => "pow",
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::And => "and",
            Self::Or => "or",
        }
    }

    pub fn compares(self) -> bool {
        use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(
            self,
            Equal | Greater | GreaterEqual | Less | LessEqual | NotEqual
        )
    }
}

impl Value {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// The place of a slice that is empty, or outside its axis, for `sizes`.
    pub(super) fn cut_short(&self, sizes: &[u64]) -> Option<Range<usize>> {
        let cut = |node: &&Node| {
            let Op::Slice { axis, begin, end } = &node.op else {
                return false;
            };
            let whole = &self.nodes[node.inputs[0]].extents;
            let extent = &whole[whole.len() - 1 - axis];
            match (begin.eval(sizes), end.eval(sizes), extent.eval(sizes)) {
                (Some(begin), Some(end), Some(extent)) => begin < 0 || end <= begin || end > extent,
                _ => true,
            }
        };
        self.nodes.iter().find(cut).map(|node| node.span.clone())
    }

    /// Whether both have the same steps, wherever they are written.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.nodes.iter().zip(&other.nodes);
        self.nodes.len() == other.nodes.len()
            && pairs.all(|(a, b)| a.op == b.op && a.inputs == b.inputs)
    }
}

impl Node {
    /// Extents as numbers, first axis first. `sizes` are in the operator's order and meet its
    /// requirements; then every extent is at least 1.
    pub fn extents(&self, sizes: &[u64]) -> Option<Vec<u64>> {
        let extent = |extent: &Extent| u64::try_from(extent.eval(sizes)?).ok();
        self.extents.iter().map(extent).collect()
    }
}
