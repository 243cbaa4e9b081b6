//! Each step of a value as C++.

use dgx_core::operator::{BinaryOp, ElementType, Extent, NodeId, Number, Op, ReduceOp, UnaryOp};

use super::code::{AND, COMPARED, Code, OR, PRODUCT, SIGN, SUM, TERNARY, WORD, Writer, extent};
use super::parts::ScratchKind;
use super::types::{Numbers, REALS};

impl Writer<'_> {
    pub(super) fn computed(&mut self, id: NodeId, at: &[String]) -> Code {
        let value = self.value;
        let node = value.node(id);
        let (number, inputs) = (node.number, &node.inputs);
        match &node.op {
            Op::Input(input) => {
                let operator = self.operator;
                self.load(&operator.inputs[*input], at)
            }
            Op::Output(output) => {
                let operator = self.operator;
                self.load(&operator.outputs[*output].tensor, at)
            }
            Op::Constant(value) => constant(*value, number),
            Op::Size(size) => {
                let name = &self.operator.sizes[*size];
                Code::new(format!("integer(group.{name})"), WORD, number)
            }
            Op::Index(_) => Code::new(format!("integer({})", at[0]), WORD, number),
            Op::Unary(op) => {
                let of = self.stretched(inputs[0], at).to(number);
                unary(*op, of)
            }
            Op::Binary(op) => {
                let (a, b) = (self.stretched(inputs[0], at), self.stretched(inputs[1], at));
                binary(*op, a, b, number)
            }
            Op::Where => self.choose(inputs, at, number),
            Op::MatMul => self.product(id, at),
            Op::Transpose => {
                let mut own = at.to_vec();
                let rank = own.len();
                own.swap(rank - 2, rank - 1);
                self.step(inputs[0], &own)
            }
            Op::Permute(axes) => {
                let (rank, mut own) = (at.len(), at.to_vec());
                for (to, from) in axes.iter().enumerate() {
                    own[rank - 1 - from].clone_from(&at[rank - 1 - to]);
                }
                self.step(inputs[0], &own)
            }
            Op::Slice { axis, begin, .. } => {
                let (mut own, place) = (at.to_vec(), at.len() - 1 - axis);
                if *begin != Extent::Number(0) {
                    own[place] = format!("{} + {}", own[place], extent(self.operator, begin));
                }
                self.step(inputs[0], &own)
            }
            Op::Reduce(op, axis) => self.reduce(*op, inputs[0], *axis, at),
            Op::Softmax(axis) => self.softmax(id, *axis, at),
            Op::Cumsum(axis) => self.running(id, *axis, at),
            Op::Argsort(axis) => self.order(id, *axis, at),
            Op::Take(axis) => self.take(id, *axis, at),
            Op::Cast(element) => {
                let of = self.stretched(inputs[0], at);
                self.cast(*element, of)
            }
        }
    }

    fn choose(&mut self, inputs: &[NodeId], at: &[String], number: Number) -> Code {
        let [condition, x, y] = [0, 1, 2].map(|input| self.stretched(inputs[input], at));
        let (x, y) = (x.to(number), y.to(number));
        let text = format!(
            "{} ? {} : {}",
            condition.at(TERNARY + 1),
            x.at(TERNARY + 1),
            y.at(TERNARY + 1)
        );
        Code::new(text, TERNARY, number)
    }

    /// A loop along `along`: `body` gets the index.
    fn each(&mut self, along: &Extent, body: impl FnOnce(&mut Self, &str)) {
        let index = self.index(along);
        let extent = extent(self.operator, along);
        let head = format!("for (u64 {index} = 0; {index} < {extent}; ++{index}) {{");
        self.block(head, |writer| body(writer, &index));
    }

    fn product(&mut self, id: NodeId, at: &[String]) -> Code {
        let value = self.value;
        let node = value.node(id);
        let (a, b, number) = (node.inputs[0], node.inputs[1], node.number);
        let along = value.node(a).extents.last().cloned();
        let along = along.unwrap_or(Extent::Number(1));
        let (rank, sum) = (at.len(), self.fresh("sum"));
        self.line(format!("{} {sum} = 0;", Numbers::kind(number)));
        self.each(&along, |writer, index| {
            let (mut left, mut right) = (at.to_vec(), at.to_vec());
            left[rank - 1] = index.to_owned();
            right[rank - 2] = index.to_owned();
            let (a, b) = (writer.stretched(a, &left), writer.stretched(b, &right));
            let (a, b) = (a.to(number).at(PRODUCT), b.to(number).at(PRODUCT + 1));
            writer.line(format!("{sum} += {a} * {b};"));
        });
        Code::new(sum, WORD, number)
    }

    fn reduce(&mut self, op: ReduceOp, of: NodeId, axis: usize, at: &[String]) -> Code {
        let value = self.value;
        let node = value.node(of);
        let place = node.extents.len() - 1 - axis;
        let along = &node.extents[place];
        let number = match op {
            ReduceOp::Mean => Number::Real,
            _ => node.number,
        };
        let kind = Numbers::kind(number);
        let (word, start) = match op {
            ReduceOp::Sum | ReduceOp::Mean => ("sum", "0".to_owned()),
            ReduceOp::Max => ("most", self.start(number, "-")),
            ReduceOp::Min => ("least", self.start(number, "")),
        };
        let name = self.fresh(word);
        self.line(format!("{kind} {name} = {start};"));
        self.each(along, |writer, index| {
            let mut own = at.to_vec();
            own[place] = index.to_owned();
            let term = writer.stretched(of, &own).to(number).text;
            let line = match op {
                ReduceOp::Sum | ReduceOp::Mean => format!("{name} += {term};"),
                ReduceOp::Max => format!("{name} = maximum<{kind}>({name}, {term});"),
                ReduceOp::Min => format!("{name} = minimum<{kind}>({name}, {term});"),
            };
            writer.line(line);
        });
        match op {
            ReduceOp::Mean => {
                let extent = extent(self.operator, along);
                Code::new(format!("{name} / real({extent})"), PRODUCT, number)
            }
            _ => Code::new(name, WORD, number),
        }
    }

    /// The initial value of a minimum or maximum: beyond all numbers on that side.
    fn start(&self, number: Number, sign: &str) -> String {
        if number == Number::Real {
            return format!("{sign}infinity()");
        }
        match self.numbers.long {
            true => format!("{sign}9223372036854775807"),
            false => format!("{sign}2147483647"),
        }
    }

    /// The index along an axis of a step's only input, replaced.
    fn along(&self, id: NodeId, axis: usize) -> (NodeId, usize, Extent) {
        let of = self.value.node(id).inputs[0];
        let extents = &self.value.node(of).extents;
        let place = extents.len() - 1 - axis;
        (of, place, extents[place].clone())
    }

    fn softmax(&mut self, id: NodeId, axis: usize, at: &[String]) -> Code {
        let (of, place, _) = self.along(id, axis);
        let mut row = at.to_vec();
        row[place] = "0".to_owned();
        let top = self.kept(id, ScratchKind::Top, &row);
        let total = self.kept(id, ScratchKind::Total, &row);
        let (top, total) = top.zip(total).expect("every softmax has both parts");
        let x = self.stretched(of, at).to(Number::Real).at(SUM);
        let text = format!("exp({x} - {}) / {}", top.text, total.text);
        Code::new(text, PRODUCT, Number::Real)
    }

    /// The maximum of a softmax.
    pub(super) fn top(&mut self, id: NodeId, at: &[String]) -> String {
        let Op::Softmax(axis) = self.value.node(id).op else {
            unreachable!("of a softmax alone");
        };
        let (of, ..) = self.along(id, axis);
        let most = self.reduce(ReduceOp::Max, of, axis, at);
        most.to(Number::Real).text
    }

    /// The sum of the exponentials of a softmax.
    pub(super) fn total(&mut self, id: NodeId, at: &[String]) -> String {
        let Op::Softmax(axis) = self.value.node(id).op else {
            unreachable!("of a softmax alone");
        };
        let (of, place, along) = self.along(id, axis);
        let top = self.kept(id, ScratchKind::Top, at);
        let top = top.expect("the maximum is computed before").text;
        let sum = self.fresh("sum");
        self.line(format!("real {sum} = 0;"));
        self.each(&along, |writer, index| {
            let mut own = at.to_vec();
            own[place] = index.to_owned();
            let x = writer.stretched(of, &own).to(Number::Real).at(SUM);
            writer.line(format!("{sum} += exp({x} - {top});"));
        });
        sum
    }

    fn running(&mut self, id: NodeId, axis: usize, at: &[String]) -> Code {
        let (of, place, along) = self.along(id, axis);
        let number = self.value.node(id).number;
        let (sum, kind) = (self.fresh("sum"), Numbers::kind(number));
        self.line(format!("{kind} {sum} = 0;"));
        let (index, last) = (self.index(&along), at[place].clone());
        let head = format!("for (u64 {index} = 0; {index} <= {last}; ++{index}) {{");
        self.block(head, |writer| {
            let mut own = at.to_vec();
            own[place] = index;
            let term = writer.stretched(of, &own).text;
            writer.line(format!("{sum} += {term};"));
        });
        Code::new(sum, WORD, number)
    }

    fn order(&mut self, id: NodeId, axis: usize, at: &[String]) -> Code {
        let (_, place, along) = self.along(id, axis);
        let (found, wanted) = (self.fresh("found"), at[place].clone());
        self.line(format!("integer {found} = 0;"));
        self.each(&along, |writer, index| {
            let mut own = at.to_vec();
            own[place] = index.to_owned();
            let rank = writer.kept(id, ScratchKind::Rank, &own);
            let rank = rank.expect("every argsort has its part").text;
            let here = format!("{rank} == integer({wanted})");
            writer.line(format!("if ({here}) {found} = integer({index});"));
        });
        Code::new(found, WORD, Number::Integer)
    }

    /// The position of an element when all are sorted.
    pub(super) fn rank(&mut self, id: NodeId, at: &[String]) -> String {
        let Op::Argsort(axis) = self.value.node(id).op else {
            unreachable!("of an argsort alone");
        };
        let (of, place, along) = self.along(id, axis);
        let (own, rank) = (self.fresh("own"), self.fresh("rank"));
        let x = self.stretched(of, at).to(Number::Real).text;
        self.line(format!("const real {own} = {x};"));
        self.line(format!("integer {rank} = 0;"));
        let here = at[place].clone();
        self.each(&along, |writer, index| {
            let mut other = at.to_vec();
            other[place] = index.to_owned();
            let x = writer.stretched(of, &other).to(Number::Real).text;
            let name = writer.fresh("other");
            writer.line(format!("const real {name} = {x};"));
            let first =
                format!("before({name}, {own}) || (!before({own}, {name}) && {index} < {here})");
            writer.line(format!("if ({first}) ++{rank};"));
        });
        rank
    }

    fn take(&mut self, id: NodeId, axis: usize, at: &[String]) -> Code {
        let value = self.value;
        let node = value.node(id);
        let (x, number) = (node.inputs[0], node.number);
        let extents = &value.node(x).extents;
        let along = extent(self.operator, &extents[extents.len() - 1 - axis]);
        let index = self.stretched(node.inputs[1], at).text;
        let (place, taken) = (self.fresh("place"), self.fresh("taken"));
        let start = match number {
            Number::Real => "not_a_number()",
            _ => "0",
        };
        self.line(format!("const integer {place} = {index};"));
        self.line(format!("{} {taken} = {start};", Numbers::kind(number)));
        self.block(
            format!("if ({place} >= 0 && {place} < integer({along})) {{"),
            |writer| {
                // If the index has fewer axes than x, x still has all of its own.
                let mut own = at.to_vec();
                let at = own.len() - 1 - axis;
                own[at].clone_from(&place);
                let code = writer.stretched(x, &own).text;
                writer.line(format!("{taken} = {code};"));
            },
        );
        Code::new(taken, WORD, number)
    }

    fn cast(&mut self, element: ElementType, of: Code) -> Code {
        let number = element.number();
        let text = match element {
            ElementType::F64 => return of.to(number),
            ElementType::F32 => format!("real(float({}))", of.to(Number::Real).text),
            ElementType::Bool => format!("({} != 0)", of.at(COMPARED + 1)),
            ElementType::I32 | ElementType::I8 | ElementType::U8 => {
                return self.clamped(element, of);
            }
            _ => {
                let (of, name) = (self.narrowed(of.to(Number::Real).text), element.name());
                format!("real(from_{name}(to_{name}({of})))")
            }
        };
        Code::new(text, WORD, number)
    }
}

fn constant(value: f64, number: Number) -> Code {
    if value.is_infinite() {
        return match value > 0.0 {
            true => Code::new("infinity()", WORD, Number::Real),
            false => Code::new("-infinity()", SIGN, Number::Real),
        };
    }
    let level = if value < 0.0 { SIGN } else { WORD };
    match number {
        Number::Integer => Code::new(format!("{value}"), level, number),
        _ => Code::new(format!("real({value:?})"), WORD, number),
    }
}

fn unary(op: UnaryOp, of: Code) -> Code {
    let number = of.number;
    let call = |name: &str| Code::new(format!("{name}({})", of.text), WORD, number);
    match op {
        UnaryOp::Negate => Code::new(format!("-{}", of.at(SIGN + 1)), SIGN, number),
        UnaryOp::Floor | UnaryOp::Round if number == Number::Integer => of,
        UnaryOp::Exp => call("exp"),
        UnaryOp::Exp2 => call("exp2"),
        UnaryOp::Log => call("log"),
        UnaryOp::Log2 => call("log2"),
        UnaryOp::Sqrt => call("sqrt"),
        UnaryOp::Rsqrt => call("rsqrt"),
        UnaryOp::Abs => call(if number == Number::Real {
            "fabs"
        } else {
            "abs"
        }),
        UnaryOp::Tanh => call("tanh"),
        UnaryOp::Erf => call("erf"),
        UnaryOp::Sin => call("sin"),
        UnaryOp::Cos => call("cos"),
        UnaryOp::Floor => call("floor"),
        UnaryOp::Round => call("rint"),
        UnaryOp::Sigmoid => call("sigmoid"),
        UnaryOp::Silu => call("silu"),
        UnaryOp::Gelu => call("gelu"),
        UnaryOp::Relu => {
            let kind = Numbers::kind(number);
            Code::new(format!("maximum<{kind}>({}, 0)", of.text), WORD, number)
        }
        UnaryOp::Sign => call(&format!("sign<{}>", Numbers::kind(number))),
    }
}

fn binary(op: BinaryOp, a: Code, b: Code, number: Number) -> Code {
    let both = match (a.number, b.number) {
        (a, b) if a == b && !matches!(op, BinaryOp::Divide | BinaryOp::Power) => a,
        _ => Number::Real,
    };
    let (a, b) = (a.to(both), b.to(both));
    let (level, symbol) = match op {
        BinaryOp::Add | BinaryOp::Subtract => (SUM, op.symbol()),
        BinaryOp::Multiply | BinaryOp::Divide => (PRODUCT, op.symbol()),
        BinaryOp::And => (AND, "&&"),
        BinaryOp::Or => (OR, "||"),
        _ if op.compares() => (COMPARED, op.symbol()),
        _ => return called(op, &a, &b, both),
    };
    // Operators of equal precedence associate to the left, and comparisons are not chained.
    let left = if level == COMPARED { level + 1 } else { level };
    let text = format!("{} {symbol} {}", a.at(left), b.at(level + 1));
    Code::new(text, level, number)
}

fn called(op: BinaryOp, a: &Code, b: &Code, number: Number) -> Code {
    let of_reals = if number == Number::Real { REALS } else { "" };
    let kind = Numbers::kind(number);
    let name = match op {
        BinaryOp::Power => "pow".to_owned(),
        BinaryOp::Maximum | BinaryOp::Minimum => format!("{}<{kind}>", op.symbol()),
        BinaryOp::FloorDivide => format!("floor_divide{of_reals}"),
        _ => format!("remainder_of{of_reals}"),
    };
    Code::new(format!("{name}({}, {})", a.text, b.text), WORD, number)
}
