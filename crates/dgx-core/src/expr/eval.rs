use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::levels::{SET, levels};
use super::{Binary, CALL_NAMES, ExprError, ExprKind, Function, Node, Unary};
use crate::diagnostic::did_you_mean;
use crate::domain::Group;

/// Steps that an evaluation may still take: nested sums multiply.
#[derive(Clone, Debug)]
pub struct Steps(Cell<u64>);

impl Steps {
    /// Far more than the expressions of one contender on one shape need.
    pub const MOST: u64 = 20_000_000;
    /// The same over all shapes of a round.
    pub const MOST_IN_ALL: u64 = 200_000_000;

    pub fn new(most: u64) -> Self {
        Self(Cell::new(most))
    }

    pub fn left(&self) -> u64 {
        self.0.get()
    }

    fn take(&self, node: &Node) -> Result<(), ExprError> {
        match self.0.get() {
            0 => self.take_many(1, node.span.clone()),
            left => {
                self.0.set(left - 1);
                Ok(())
            }
        }
    }

    /// For other work that an expression requires.
    pub fn take_many(&self, steps: u64, span: Range<usize>) -> Result<(), ExprError> {
        let left = self.0.get().checked_sub(steps).ok_or_else(|| {
            ExprError::new(
                span,
                "evaluating takes more steps than a contender may",
                "do not nest sum, most, least and bits, name inner ones as constants; \
                 choose among fewer values, or use larger tiles",
            )
        })?;
        self.0.set(left);
        Ok(())
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::new(Self::MOST)
    }
}

/// The meaning of names during an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Parameters and constants.
    pub constants: &'a BTreeMap<String, i64>,
    /// The names defined by `let`: a value for each group.
    pub lets: &'a BTreeMap<String, Vec<i64>>,
    pub groups: &'a [Group],
    /// Tiles of each group, once they are known.
    pub tiles: Option<&'a [i64]>,
    /// The group meant by a bare size, `tiles` or `let`; `None` if no group is meant, and then all
    /// groups must agree.
    pub group: Option<usize>,
    pub sms: u32,
    pub steps: &'a Steps,
}

impl Scope<'_> {
    /// The value of an expression, or of a part of it.
    pub fn eval(&self, node: &Node) -> Result<i64, ExprError> {
        self.steps.take(node)?;
        match &node.kind {
            ExprKind::Integer(value) => Ok(*value),
            ExprKind::Name(name) => self.name(name, &node.span),
            ExprKind::Unary(operator, operand) => {
                let value = self.eval(operand)?;
                match operator {
                    Unary::Not => Ok(i64::from(value == 0)),
                    Unary::Negate => checked(value.checked_neg(), node),
                }
            }
            ExprKind::Binary(operator, left, right) => self.binary(*operator, left, right, node),
            ExprKind::Choice(condition, yes, no) => {
                let taken = if self.eval(condition)? != 0 { yes } else { no };
                self.eval(taken)
            }
            ExprKind::Call(function, args) => self.call(*function, args, node),
        }
    }

    fn binary(
        &self,
        operator: Binary,
        left: &Node,
        right: &Node,
        node: &Node,
    ) -> Result<i64, ExprError> {
        let a = self.eval(left)?;
        // The right side is not evaluated if the left decides, so that a guard (`b != 0 && a / b >
        // 1`) works.
        match operator {
            Binary::Or if a != 0 => return Ok(1),
            Binary::And if a == 0 => return Ok(0),
            _ => {}
        }
        let b = self.eval(right)?;
        if matches!(operator, Binary::Divide | Binary::Remainder) && b == 0 {
            return Err(division_by_zero(right));
        }
        let value = match operator {
            Binary::Or | Binary::And => Some(i64::from(b != 0)),
            Binary::Equal => Some(i64::from(a == b)),
            Binary::NotEqual => Some(i64::from(a != b)),
            Binary::Less => Some(i64::from(a < b)),
            Binary::LessEqual => Some(i64::from(a <= b)),
            Binary::Greater => Some(i64::from(a > b)),
            Binary::GreaterEqual => Some(i64::from(a >= b)),
            Binary::Add => a.checked_add(b),
            Binary::Subtract => a.checked_sub(b),
            Binary::Multiply => a.checked_mul(b),
            Binary::Divide => a.checked_div(b),
            Binary::Remainder => a.checked_rem(b),
        };
        checked(value, node)
    }

    fn call(&self, function: Function, args: &[Node], node: &Node) -> Result<i64, ExprError> {
        match function {
            Function::Sum | Function::Most | Function::Least | Function::Bits => {
                self.over_groups(function, &args[0], node)
            }
            Function::Levels => self.levels(args),
            Function::Next => self.next(args),
            Function::Min | Function::Max => {
                let mut best = self.eval(&args[0])?;
                for arg in &args[1..] {
                    let value = self.eval(arg)?;
                    best = match function {
                        Function::Min => best.min(value),
                        _ => best.max(value),
                    };
                }
                Ok(best)
            }
            Function::Cdiv | Function::Align => {
                let (a, b) = (self.eval(&args[0])?, self.eval(&args[1])?);
                if b == 0 {
                    return Err(division_by_zero(&args[1]));
                }
                if b < 0 {
                    return Err(ExprError::new(
                        args[1].span.clone(),
                        format!("`{function}` by a negative number, {b}"),
                        "give a positive second argument",
                    ));
                }
                let quotient = a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0);
                match function {
                    Function::Cdiv => Ok(quotient),
                    _ => checked(quotient.checked_mul(b), node),
                }
            }
        }
    }

    fn over_groups(&self, function: Function, arg: &Node, node: &Node) -> Result<i64, ExprError> {
        let mut result: Option<i64> = None;
        for group in 0..self.groups.len() {
            let inner = Self {
                group: Some(group),
                ..*self
            };
            let mut value = inner.eval(arg)?;
            if function == Function::Bits {
                value = bit(value, arg)?;
            }
            result = Some(match (function, result) {
                (_, None) => value,
                (Function::Bits, Some(set)) => set | value,
                (Function::Most, Some(best)) => best.max(value),
                (Function::Least, Some(best)) => best.min(value),
                (_, Some(sum)) => checked(sum.checked_add(value), node)?,
            });
        }
        Ok(result.unwrap_or(0))
    }

    fn levels(&self, args: &[Node]) -> Result<i64, ExprError> {
        let mut weights = [0_u64; SET];
        for group in 0..self.groups.len() {
            let inner = Self {
                group: Some(group),
                ..*self
            };
            let member = inner.eval(&args[0])?;
            let set = bit(member, &args[0])?;
            let weight = u64::try_from(inner.eval(&args[1])?).map_err(|_| {
                ExprError::new(
                    args[1].span.clone(),
                    "a weight of `levels` is negative",
                    "weigh the groups by something that is at least 0",
                )
            })?;
            let at = &mut weights[set.trailing_zeros() as usize];
            // A member counts even if raising it costs nothing.
            *at = at.saturating_add(weight.max(1));
        }
        let most = self.eval(&args[2])?;
        match usize::try_from(most) {
            Ok(most @ 1..) => Ok(levels(&weights, most)),
            _ => Err(ExprError::new(
                args[2].span.clone(),
                format!("{most} levels"),
                "allow one at least",
            )),
        }
    }

    fn next(&self, args: &[Node]) -> Result<i64, ExprError> {
        let (set, from) = (self.eval(&args[0])?, self.eval(&args[1])?);
        let rest = match from {
            ..=0 => set,
            1..=62 => set >> from << from,
            _ => 0,
        };
        match rest {
            1.. => Ok(i64::from(rest.trailing_zeros())),
            _ => Err(ExprError::new(
                args[1].span.clone(),
                format!("no member of the set is {from} or above"),
                "make the set of values that are as large, with `bits` or `levels`",
            )),
        }
    }

    fn name(&self, name: &str, span: &Range<usize>) -> Result<i64, ExprError> {
        if let Some(value) = self.constants.get(name) {
            return Ok(*value);
        }
        if let Some(values) = self.lets.get(name) {
            return self.of_group(name, span, |_, i| values.get(i).copied());
        }
        match name {
            "groups" => Ok(self.groups.len() as i64),
            "sms" => Ok(i64::from(self.sms)),
            "tiles" => self.of_group(name, span, |scope, i| scope.tiles.map(|tiles| tiles[i])),
            _ if self.is_size(name) => self.of_group(name, span, |scope, i| {
                scope.groups[i].get(name).map(i64::from)
            }),
            _ => {
                let sizes = self.groups.first().into_iter().flat_map(Group::iter);
                let known = self.constants.keys().map(String::as_str);
                Err(unknown(
                    name,
                    span,
                    known.chain(sizes.map(|(name, _)| name)),
                ))
            }
        }
    }

    fn is_size(&self, name: &str) -> bool {
        let group = self.groups.first();
        group.is_some_and(|group| group.get(name).is_some())
    }

    fn of_group(
        &self,
        name: &str,
        span: &Range<usize>,
        value: impl Fn(&Self, usize) -> Option<i64>,
    ) -> Result<i64, ExprError> {
        let groups = match self.group {
            Some(group) => group..group + 1,
            None => 0..self.groups.len(),
        };
        let mut agreed = None;
        for group in groups {
            let Some(value) = value(self, group) else {
                return Err(not_yet(name, span));
            };
            match agreed {
                Some(other) if other != value => return Err(ambiguous(name, span, other, value)),
                _ => agreed = Some(value),
            }
        }
        Ok(agreed.unwrap_or(0))
    }
}

/// The error for an undefined name, with the nearest defined one.
pub fn unknown<'a>(
    name: &str,
    span: &Range<usize>,
    known: impl Iterator<Item = &'a str>,
) -> ExprError {
    let known = known.chain(CALL_NAMES);
    let remedy = did_you_mean(name, known)
        .unwrap_or_else(|| "define it under `const`, `let` or `params`".to_owned());
    ExprError::new(span.clone(), format!("unknown name `{name}`"), remedy)
}

/// The error for a name that gets its meaning only later.
pub fn not_yet(name: &str, span: &Range<usize>) -> ExprError {
    let remedy = match name {
        "tiles" => "give the variant a `tiles` expression, and use it only after that",
        _ => "let no two names be defined by each other",
    };
    let message = format!("`{name}` is not known yet here");
    ExprError::new(span.clone(), message, remedy)
}

fn ambiguous(name: &str, span: &Range<usize>, one: i64, other: i64) -> ExprError {
    ExprError::new(
        span.clone(),
        format!("`{name}` is ambiguous: groups differ in it ({one} and {other})"),
        format!("write which one: most({name}), least({name}) or sum({name})"),
    )
}

/// The set of `value` alone; the sign bit is not used.
fn bit(value: i64, node: &Node) -> Result<i64, ExprError> {
    if (0..=62).contains(&value) {
        return Ok(1 << value);
    }
    Err(ExprError::new(
        node.span.clone(),
        format!("`bits` of {value}: a set holds values from 0 to 62"),
        "scale the value down, or keep it in range with min and max",
    ))
}

fn division_by_zero(divisor: &Node) -> ExprError {
    ExprError::new(
        divisor.span.clone(),
        "division by zero",
        "make the divisor positive, or guard it: `x != 0 ? a / x : 0`",
    )
}

fn checked(value: Option<i64>, node: &Node) -> Result<i64, ExprError> {
    value.ok_or_else(|| {
        ExprError::new(
            node.span.clone(),
            "the value overflows 64 bits",
            "use smaller factors",
        )
    })
}
