//! Terms that are whole numbers computed from sizes alone.

use super::parse::{Term, TermKind};
use crate::diagnostic::did_you_mean;
use crate::expr::ExprError;
use crate::operator::{BinaryOp, Extent};

/// The extent that a term means, with sizes called `names`.
pub(crate) fn whole(term: &Term, names: &[String]) -> Result<Extent, ExprError> {
    let error =
        |message: String, remedy: &str| Err(ExprError::new(term.span.clone(), message, remedy));
    match &term.kind {
        TermKind::Number { value, whole: true } => Ok(Extent::Number(*value as i64)),
        TermKind::Number { value, .. } => error(
            format!("{value} is not a whole number"),
            "extents are whole numbers: use //",
        ),
        TermKind::Name(name) => match names.iter().position(|known| known == name) {
            Some(size) => Ok(Extent::Size(size)),
            None => {
                let near = did_you_mean(name, names.iter().map(String::as_str));
                let remedy = near.unwrap_or_else(|| format!("the sizes are {}", names.join(", ")));
                error(format!("`{name}` is not one of the sizes"), &remedy)
            }
        },
        TermKind::Negate(of) => Ok(Extent::of(
            BinaryOp::Subtract,
            Extent::Number(0),
            whole(of, names)?,
        )),
        TermKind::Binary(BinaryOp::Divide, _) => error(
            "`/` does not make a whole number".to_owned(),
            "write // to round down",
        ),
        TermKind::Binary(op, both) => Ok(Extent::of(
            *op,
            whole(&both.0, names)?,
            whole(&both.1, names)?,
        )),
        TermKind::Call(name, args)
            if args.len() == 2 && (name == "maximum" || name == "minimum") =>
        {
            let op = match name.as_str() {
                "maximum" => BinaryOp::Maximum,
                _ => BinaryOp::Minimum,
            };
            Ok(Extent::of(
                op,
                whole(&args[0], names)?,
                whole(&args[1], names)?,
            ))
        }
        _ => error(
            "this is not a whole number of sizes".to_owned(),
            "use sizes, whole numbers, + - * // %, comparisons, maximum(a, b) and minimum(a, b)",
        ),
    }
}
