//! Turns steps into C++: expressions, and the statements before them.

use std::collections::{BTreeMap, BTreeSet};

use dgx_core::operator::{
    ElementType, Extent, MAX_RANK, NodeId, Number, Op, Operator, Tensor, Value,
};

use super::is_one;
use super::parts::{ScratchKind, ScratchPart};
use super::types::{Numbers, is_narrow};

/// Precedence of C++ operators.
pub(super) const TERNARY: u8 = 1;
pub(super) const OR: u8 = 2;
pub(super) const AND: u8 = 3;
pub(super) const COMPARED: u8 = 4;
pub(super) const SUM: u8 = 5;
pub(super) const PRODUCT: u8 = 6;
pub(super) const SIGN: u8 = 7;
pub(super) const WORD: u8 = 8;

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub text: String,
    pub level: u8,
    pub number: Number,
}

impl Code {
    pub(super) fn new(text: impl Into<String>, level: u8, number: Number) -> Self {
        Self {
            text: text.into(),
            level,
            number,
        }
    }

    /// As an operand of an operator with this precedence.
    pub(super) fn at(&self, level: u8) -> String {
        match self.level < level {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }

    /// As a number of this kind.
    pub(super) fn to(self, number: Number) -> Self {
        match (self.number, number) {
            (Number::Integer, Number::Real) => {
                let text = match self.text.parse::<i64>() {
                    Ok(whole) => format!("real({whole})"),
                    Err(_) => format!("real({})", self.text),
                };
                Self::new(text, WORD, number)
            }
            _ => self,
        }
    }
}

/// Statements of one block, and the names they define.
#[derive(Default)]
struct Block {
    lines: Vec<String>,
    named: BTreeMap<(NodeId, Vec<String>), Code>,
}

pub(super) struct Writer<'a> {
    pub(super) operator: &'a Operator,
    pub(super) value: &'a Value,
    parts: &'a [ScratchPart],
    pub(super) numbers: Numbers,
    /// How many steps read each step.
    readers: Vec<usize>,
    /// From the outermost to the innermost.
    blocks: Vec<Block>,
    taken: BTreeSet<String>,
    /// Parts that this kernel reads.
    read: BTreeSet<usize>,
    /// The part this kernel computes.
    own: Option<(NodeId, ScratchKind)>,
    /// The indices of its elements.
    at: Vec<String>,
    /// Leading axes along which every part is read at this kernel's own indices.
    aligned: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        operator: &'a Operator,
        value: &'a Value,
        parts: &'a [ScratchPart],
        numbers: Numbers,
    ) -> Self {
        let mut readers = vec![0; value.nodes.len()];
        for input in value.nodes.iter().flat_map(|node| &node.inputs) {
            readers[*input] += 1;
        }
        let words = ["at", "pair", "both", "args", "group", "real", "integer"];
        let taken = words.into_iter().map(str::to_owned);
        let names = parts.iter().map(|part| part.name.clone());
        Self {
            operator,
            value,
            parts,
            numbers,
            readers,
            blocks: vec![Block::default()],
            taken: taken.chain(names).collect(),
            read: BTreeSet::new(),
            own: None,
            at: Vec::new(),
            aligned: MAX_RANK,
        }
    }

    /// Leading axes along which every part so far is read at this kernel's own indices.
    pub(super) fn aligned(&self) -> usize {
        self.aligned
    }

    /// The statements, and the parts they read.
    pub(super) fn finish(self) -> (Vec<String>, BTreeSet<usize>) {
        let blocks = self.blocks.into_iter();
        (blocks.flat_map(|block| block.lines).collect(), self.read)
    }

    pub(super) fn line(&mut self, line: String) {
        let block = self.blocks.last_mut().expect("the outermost block stays");
        block.lines.push(line);
    }

    /// Names that are not to be used.
    pub(super) fn reserve(&mut self, words: &[&str]) {
        self.taken
            .extend(words.iter().map(|word| (*word).to_owned()));
    }

    pub(super) fn fresh(&mut self, word: &str) -> String {
        let mut name = word.to_owned();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{word}_{count}");
        }
        name
    }

    /// Statements of a block under `head`, which ends in a brace.
    pub(super) fn block(&mut self, head: String, body: impl FnOnce(&mut Self)) {
        self.blocks.push(Block::default());
        body(self);
        let block = self.blocks.pop().expect("it was pushed");
        self.line(head);
        for line in block.lines {
            self.line(format!("  {line}"));
        }
        self.line("}".to_owned());
    }

    /// A name for the index along each axis of the kernel's elements; 0 for axes of extent 1.
    pub(super) fn indices(&mut self, extents: &[Extent]) -> Vec<String> {
        let mut at = Vec::with_capacity(extents.len());
        for extent in extents {
            at.push(match is_one(extent) {
                true => "0".to_owned(),
                false => self.index(extent),
            });
        }
        self.at = at;
        self.at.clone()
    }

    pub(super) fn index(&mut self, extent: &Extent) -> String {
        let word = match extent.first_size() {
            Some(size) => format!("i_{}", self.operator.sizes[size]),
            None => "i".to_owned(),
        };
        self.fresh(&word)
    }

    /// Indices of an element from its offset, `at`.
    pub(super) fn placed(&self, at: &[String], extents: &[Extent]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut from = "at".to_owned();
        let first = at.iter().position(|index| index != "0");
        for (axis, index) in at.iter().enumerate().rev() {
            if index == "0" {
                continue;
            }
            let extent = extent(self.operator, &extents[axis]);
            lines.push(match Some(axis) == first {
                true => format!("const u64 {index} = {from};"),
                false => format!("const u64 {index} = {from} % {extent};"),
            });
            from = format!("{from} / {extent}");
        }
        lines
    }

    /// The offset of an element in a tensor of these extents.
    pub(super) fn offset(&self, at: &[String], extents: &[Extent]) -> String {
        let mut offset: Option<Code> = None;
        for (index, own) in at.iter().zip(extents) {
            if is_one(own) {
                continue;
            }
            offset = Some(match offset {
                None => Code::new(index.clone(), level_of(index), Number::Integer),
                Some(before) => {
                    let extent = extent(self.operator, own);
                    let (before, index) = (
                        before.at(PRODUCT),
                        Code::new(index.clone(), level_of(index), Number::Integer),
                    );
                    Code::new(
                        format!("{before} * {extent} + {}", index.at(SUM)),
                        SUM,
                        Number::Integer,
                    )
                }
            });
        }
        offset.map_or("0".to_owned(), |offset| offset.text)
    }

    /// A step at indices of a tensor that it is broadcast to.
    pub(super) fn stretched(&mut self, id: NodeId, at: &[String]) -> Code {
        let extents = &self.value.node(id).extents;
        let own = &at[at.len() - extents.len()..];
        let pairs = own.iter().zip(extents);
        let own: Vec<String> = pairs
            .map(|(index, extent)| match is_one(extent) {
                true => "0".to_owned(),
                false => index.clone(),
            })
            .collect();
        self.step(id, &own)
    }

    /// A step at these indices. A step that is read twice gets a name.
    pub(super) fn step(&mut self, id: NodeId, at: &[String]) -> Code {
        let key = (id, at.to_vec());
        let named = self.blocks.iter().find_map(|block| block.named.get(&key));
        if let Some(code) = named {
            return code.clone();
        }
        let code = match self.kept(id, ScratchKind::Value, at) {
            Some(code) => code,
            None => self.computed(id, at),
        };
        let plain = matches!(
            self.value.node(id).op,
            Op::Constant(_) | Op::Size(_) | Op::Index(_)
        );
        if plain || self.readers[id] < 2 || code.level == WORD && !code.text.contains(['(', '[']) {
            return code;
        }
        let word = match &self.value.node(id).op {
            Op::Input(input) => self.operator.inputs[*input].name.clone(),
            Op::Output(output) => self.operator.outputs[*output].tensor.name.clone(),
            _ => "part".to_owned(),
        };
        let (name, kind) = (self.fresh(&word), Numbers::kind(code.number));
        self.line(format!("const {kind} {name} = {};", code.text));
        let named = Code::new(name, WORD, code.number);
        let block = self.blocks.last_mut().expect("the outermost block stays");
        block.named.insert(key, named.clone());
        named
    }

    /// A step's value from another kernel.
    pub(super) fn kept(&mut self, id: NodeId, kept: ScratchKind, at: &[String]) -> Option<Code> {
        if self.own == Some((id, kept)) {
            return None;
        }
        let same = |part: &ScratchPart| part.node == id && part.kept == kept;
        let place = self.parts.iter().position(same)?;
        self.read.insert(place);
        let part = &self.parts[place];
        let mut own = self.at.iter().zip(at);
        let aligned = match at.len() == self.at.len() {
            true => own.position(|(own, other)| own != other),
            false => Some(0),
        };
        self.aligned = self.aligned.min(aligned.unwrap_or(at.len()));
        let offset = self.offset(at, &part.extents);
        let number = match kept {
            ScratchKind::Rank => Number::Integer,
            _ => part.number,
        };
        Some(Code::new(format!("{}[{offset}]", part.name), WORD, number))
    }

    /// The value of the part that this kernel computes.
    pub(super) fn part(&mut self, part: &ScratchPart, at: &[String]) -> String {
        self.own = Some((part.node, part.kept));
        match part.kept {
            ScratchKind::Value => self.computed(part.node, at).text,
            ScratchKind::Top => self.top(part.node, at),
            ScratchKind::Total => self.total(part.node, at),
            ScratchKind::Rank => self.rank(part.node, at),
        }
    }

    /// An element of a tensor.
    pub(super) fn load(&self, tensor: &Tensor, at: &[String]) -> Code {
        let (name, offset) = (&tensor.name, self.offset(at, &tensor.extents));
        let element = tensor.element;
        let kind = element.name();
        let text = match element {
            ElementType::Nvfp4 | ElementType::Mxfp4 | ElementType::Mxfp8 => {
                format!("{kind}(group.{name}, group.sf{name}, {offset})")
            }
            ElementType::E2m1 => {
                let at =
                    Code::new(offset.clone(), level_of(&offset), Number::Integer).at(PRODUCT + 1);
                format!("from_e2m1(group.{name}[{at} / 2] >> {at} % 2 * 4 & 15)")
            }
            _ if is_narrow(element) => format!("from_{kind}(group.{name}[{offset}])"),
            _ => format!("group.{name}[{offset}]"),
        };
        let text = match element.number() {
            Number::Real if self.numbers.double && element != ElementType::F64 => {
                format!("real({text})")
            }
            Number::Integer if self.numbers.long => format!("integer({text})"),
            _ => text,
        };
        Code::new(text, WORD, element.number())
    }

    /// Writes an element of an output.
    pub(super) fn store(&mut self, tensor: &Tensor, value: Code) {
        let (name, element) = (&tensor.name, tensor.element);
        let value = value.to(element.number());
        if is_narrow(element) {
            let (value, kind) = (self.narrowed(value.text), element.name());
            let line = match element {
                ElementType::E2m1 => format!("both |= to_e2m1({value}) << at % 2 * 4;"),
                _ => format!("group.{name}[at] = to_{kind}({value});"),
            };
            return self.line(line);
        }
        let value = match element {
            ElementType::I8 | ElementType::U8 | ElementType::I32 => {
                self.clamped(element, value).text
            }
            _ => value.text,
        };
        self.line(format!("group.{name}[at] = {value};"));
    }

    /// A real as a float that rounds to 16 bits or fewer like the real itself.
    pub(super) fn narrowed(&self, real: String) -> String {
        if !self.numbers.double {
            return real;
        }
        format!("narrowed({real})")
    }

    /// An integer within the limits of its type.
    pub(super) fn clamped(&self, element: ElementType, value: Code) -> Code {
        let (least, most) = element.limits();
        let value = value.to(Number::Real).text;
        let text = format!("clamped({value}, {least}, {most})");
        Code::new(text, WORD, Number::Integer)
    }
}

fn level_of(text: &str) -> u8 {
    if text.contains(" + ") || text.contains(" - ") {
        SUM
    } else if text.contains(' ') {
        PRODUCT
    } else {
        WORD
    }
}

/// An extent in C++.
pub(super) fn extent(operator: &Operator, extent: &Extent) -> String {
    match extent {
        Extent::Number(value) => value.to_string(),
        Extent::Size(size) => format!("group.{}", operator.sizes[*size]),
        // Intermediate differences may be negative.
        Extent::Of(..) => {
            let names = operator.sizes.iter();
            let signed: Vec<String> = names
                .map(|name| format!("(long long)group.{name}"))
                .collect();
            format!("u64{}", formula(extent, &signed))
        }
    }
}

fn formula(extent: &Extent, names: &[String]) -> String {
    use dgx_core::operator::BinaryOp;
    let (op, of) = match extent {
        Extent::Number(value) => return value.to_string(),
        Extent::Size(size) => return names[*size].clone(),
        Extent::Of(op, of) => (op, of),
    };
    let (a, b) = (formula(&of.0, names), formula(&of.1, names));
    match op {
        BinaryOp::Maximum => format!("({a} > {b} ? {a} : {b})"),
        BinaryOp::Minimum => format!("({a} < {b} ? {a} : {b})"),
        BinaryOp::FloorDivide => format!("({a} / {b})"),
        BinaryOp::And => format!("({a} && {b})"),
        BinaryOp::Or => format!("({a} || {b})"),
        other => format!("({a} {} {b})", other.symbol()),
    }
}

/// How many elements, in C++.
pub(super) fn count(operator: &Operator, extents: &[Extent]) -> String {
    let factors = extents.iter().filter(|extent| !is_one(extent));
    let factors: Vec<String> = factors.map(|e| extent(operator, e)).collect();
    match factors.split_first() {
        None => "1".to_owned(),
        Some((only, [])) => only.clone(),
        Some((first, rest)) => format!("u64({first}) * {}", rest.join(" * ")),
    }
}
