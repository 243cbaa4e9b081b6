//! `args`: the arguments of a kernel with its own signature. They are compared with its declaration
//! after it is compiled.

use std::ops::Range;

use super::front_matter::{Reader, is_identifier};
use super::variant::{Scratch, TensorMap};
use super::vocabulary::{Argument, Arguments, Number, NumberType, OperandRef};
use super::wire::{self, Composed};
use dgx_core::diagnostic::{InputError, nearest};
use dgx_core::document::{Formula, Spanned, Value};
use dgx_core::domain::printable_line;

/// More than any kernel has.
const MAX_ARGS: usize = 256;
/// Bytes of a kernel's parameters.
const MAX_BYTES: u32 = 32_764;
/// The argument that turns tensors and sizes into arrays.
const GROUPS: &str = "groups";

type KernelArgument = Argument<Formula, Formula>;

/// What names may mean besides numbers.
#[derive(Clone, Copy)]
pub(super) struct Buffers<'a> {
    pub(super) scratch: &'a [Scratch],
    pub(super) maps: &'a [TensorMap],
}

impl Reader<'_> {
    pub(super) fn args(
        &self,
        list: &Spanned<Vec<Spanned<wire::Arg>>>,
        buffers: Buffers<'_>,
    ) -> Result<Arguments<Formula, Formula>, InputError> {
        if list.get_ref().len() > MAX_ARGS {
            let message = format!("{} args, {MAX_ARGS} at most", list.get_ref().len());
            let error = self.document.error(list.span(), message, "pass a struct");
            return Err(error);
        }
        let is_groups = |arg: &Spanned<wire::Arg>| matches!(arg.get_ref(), wire::Arg::Text(t) if t.trim() == GROUPS);
        let arrays = list.get_ref().iter().any(is_groups);
        let args = list.get_ref().iter();
        let text = |arg: &Spanned<wire::Arg>| {
            let written = self.file.text.get(self.document.place(arg.span()));
            shortened(written.unwrap_or_default().trim_matches('"'))
        };
        let texts = args.clone().map(text).collect();
        let list = args.map(|arg| self.arg(arg.get_ref(), arg.span(), arrays, buffers));
        Ok(Arguments {
            arrays,
            texts,
            list: list.collect::<Result<_, _>>()?,
        })
    }

    fn arg(
        &self,
        arg: &wire::Arg,
        span: Range<usize>,
        arrays: bool,
        buffers: Buffers<'_>,
    ) -> Result<KernelArgument, InputError> {
        let (number_type, number) = match arg {
            wire::Arg::Text(text) => return self.named(text, span, arrays, buffers),
            wire::Arg::Integer(_) | wire::Arg::Real(_) => {
                return Ok(Argument::Number(self.number(arg, span)?));
            }
            wire::Arg::Composed(Composed::Struct(members)) => {
                let member = |arg: &wire::Arg| match arg {
                    wire::Arg::Composed(Composed::At(byte)) => self.place(*byte, &span),
                    _ => self.arg(arg, self.within(arg, &span), arrays, buffers),
                };
                return Ok(Argument::Struct(
                    members.iter().map(member).collect::<Result<_, _>>()?,
                ));
            }
            wire::Arg::Composed(Composed::At(byte)) => {
                let message = format!("`{{ at = {byte} }}` is a place in a struct");
                let remedy = "write it among the members of { struct = [...] }";
                return Err(self.document.error(span, message, remedy));
            }
            wire::Arg::Composed(Composed::I8(number)) => (NumberType::I8, number),
            wire::Arg::Composed(Composed::I16(number)) => (NumberType::I16, number),
            wire::Arg::Composed(Composed::I32(number)) => (NumberType::I32, number),
            wire::Arg::Composed(Composed::I64(number)) => (NumberType::I64, number),
            wire::Arg::Composed(Composed::F16(number)) => (NumberType::F16, number),
            wire::Arg::Composed(Composed::Bf16(number)) => (NumberType::Bf16, number),
            wire::Arg::Composed(Composed::F32(number)) => (NumberType::F32, number),
            wire::Arg::Composed(Composed::F64(number)) => (NumberType::F64, number),
        };
        let place = self.within(number, &span);
        Ok(Argument::Typed(number_type, self.number(number, place)?))
    }

    /// A byte at which a member begins.
    fn place(&self, byte: u32, span: &Range<usize>) -> Result<KernelArgument, InputError> {
        if byte <= MAX_BYTES {
            return Ok(Argument::At(byte));
        }
        let message = format!("`{{ at = {byte} }}` is beyond every parameter");
        let remedy = format!("a kernel's parameters take {MAX_BYTES} bytes at most");
        Err(self.document.error(span.clone(), message, remedy))
    }

    /// The place of an argument's text inside another.
    fn within(&self, arg: &wire::Arg, span: &Range<usize>) -> Range<usize> {
        let wire::Arg::Text(text) = arg else {
            return span.clone();
        };
        let quoted = format!("\"{text}\"");
        let whole = self.file.text.get(self.document.place(span.clone()));
        let place = whole.and_then(|whole| whole.find(&quoted));
        place.map_or(span.clone(), |at| {
            let start = span.start + at;
            start..start + quoted.len()
        })
    }

    /// The meaning of a name; other text is an expression.
    fn named(
        &self,
        text: &str,
        span: Range<usize>,
        arrays: bool,
        buffers: Buffers<'_>,
    ) -> Result<KernelArgument, InputError> {
        let name = text.trim();
        let fields = self.operator.fields();
        self.one_meaning(name, span.clone(), buffers)?;
        if let Some(place) = fields.iter().position(|field| field.name == name) {
            return Ok(Argument::Operand(OperandRef::Field(place)));
        }
        if let Some(own) = buffers.scratch.iter().find(|s| s.name == name) {
            return Ok(match own.per_group {
                true => Argument::Operand(OperandRef::Scratch(own.slot)),
                false => Argument::CallScratch(own.slot),
            });
        }
        if let Some(place) = buffers.maps.iter().position(|map| map.name == name) {
            return Ok(Argument::Map(place));
        }
        if arrays && self.is_per_group(name) {
            let formula = self.formula_at(&Value::Text(name.to_owned()), span)?;
            return Ok(Argument::PerGroup(formula));
        }
        let is_constant = self.operator.constants.iter().any(|(own, _)| own == name);
        if is_identifier(name) && !is_constant && !self.knows(name) {
            let fields = fields.iter().map(|field| field.name.as_str());
            let scratch = buffers.scratch.iter().map(|s| s.name.as_str());
            let numbers = self.operator.sizes.iter().chain(&self.names);
            let constants = self.operator.constants.iter().map(|(name, _)| name);
            let numbers = numbers.chain(constants).map(String::as_str);
            let known = fields.chain(scratch).chain(numbers);
            let remedy = match nearest(name, known.clone()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("it may be one of {}", known.collect::<Vec<_>>().join(" ")),
            };
            let message = format!("`{name}` is no tensor, buffer, size or constant");
            return Err(self.document.error(span, message, remedy));
        }
        let arg = wire::Arg::Text(text.to_owned());
        Ok(Argument::Number(self.number(&arg, span)?))
    }

    /// Refuses a name with two meanings.
    fn one_meaning(
        &self,
        name: &str,
        span: Range<usize>,
        buffers: Buffers<'_>,
    ) -> Result<(), InputError> {
        let is = |own: &str| own == name;
        let meanings = [
            (
                "a tensor",
                self.operator.fields().iter().any(|f| is(&f.name)),
            ),
            (
                "a scratch buffer",
                buffers.scratch.iter().any(|s| is(&s.name)),
            ),
            ("a map", buffers.maps.iter().any(|map| is(&map.name))),
            (
                "a constant of the operator",
                self.operator.constants.iter().any(|(c, _)| is(c)),
            ),
            ("a number", self.knows(name)),
        ];
        let mut meant = meanings.iter().filter(|(_, so)| *so).map(|(what, _)| what);
        match (meant.next(), meant.next()) {
            (Some(one), Some(two)) => {
                let message = format!("`{name}` is {one} and {two}");
                Err(self.document.error(span, message, "rename one of them"))
            }
            _ => Ok(()),
        }
    }

    fn number(&self, arg: &wire::Arg, span: Range<usize>) -> Result<Number<Formula>, InputError> {
        let value = match arg {
            wire::Arg::Real(value) if !value.is_finite() => {
                let remedy = "let the kernel make it, e.g. from 0";
                let message = format!("{value} cannot be an argument");
                return Err(self.document.error(span, message, remedy));
            }
            wire::Arg::Real(value) => return Ok(Number::Real(*value)),
            wire::Arg::Integer(value) => Value::Integer(*value),
            wire::Arg::Text(text) => {
                let mut constants = self.operator.constants.iter();
                if let Some((_, value)) = constants.find(|(name, _)| name == text.trim()) {
                    return Ok(Number::Real(*value));
                }
                Value::Text(text.clone())
            }
            wire::Arg::Composed(_) => {
                let message = "a number of two types";
                let error = self.document.error(span, message, "name one type");
                return Err(error);
            }
        };
        self.formula_at(&value, span).map(Number::Integer)
    }
}

/// The beginning of an argument, enough to recognise it, on one line.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 40;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = printable_line(&line);
    match line.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
