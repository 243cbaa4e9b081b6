//! TOML as people write it: a whole round file, or the front matter of a `.cu`. Turns parser errors
//! into errors that point into the file.

mod values;

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned};

use crate::decode;
use crate::diagnostic::{InputError, SourceFile, nearest};
use crate::expr::{Expr, ExprError};

pub use values::{Allowed, OneOrMany, Value, Within, optional};

/// A value and its place in the TOML. Its schema is that of the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct Spanned<T>(toml::Spanned<T>);

impl<T> Spanned<T> {
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }
}

impl Borrow<str> for Spanned<String> {
    fn borrow(&self) -> &str {
        self.get_ref()
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A table whose order matters: sort the entries by the place of their key.
pub type Table<T> = BTreeMap<Spanned<String>, T>;

/// Separates a message from its remedy in the text given to serde.
const REMEDY: char = '\u{1e}';
/// Stands for the key of the value in a message.
const KEY: char = '\u{1f}';

/// Refuses a value while it is read. The error points at the value.
pub fn refused<E: de::Error>(message: impl fmt::Display, remedy: impl fmt::Display) -> E {
    E::custom(format_args!("{message}{REMEDY}{remedy}"))
}

/// A section of TOML in a file.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    file: &'a SourceFile,
    range: Range<usize>,
    /// Where its keys are explained.
    guide: &'static str,
}

impl<'a> Document<'a> {
    pub fn new(file: &'a SourceFile, range: Range<usize>, guide: &'static str) -> Self {
        Self { file, range, guide }
    }

    /// A whole file of TOML.
    pub fn whole(file: &'a SourceFile, guide: &'static str) -> Self {
        Self::new(file, 0..file.text.len(), guide)
    }

    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        let text = &self.file.text[self.range.clone()];
        toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            // A missing key is reported at its whole table, often the whole
            // text: point at the first line of it.
            let first_line = text[span.start.min(text.len())..]
                .find('\n')
                .map_or(span.end, |len| span.end.min(span.start + len));
            let (before, rest) = text.split_at(span.start.min(text.len()));
            let key = key_before(before);
            let (message, remedy) = match error.message().split_once(REMEDY) {
                Some((message, remedy)) => (message.replace(KEY, key), remedy.to_owned()),
                None => match toml::from_str::<toml::Table>(text) {
                    Ok(_) => self.explain(error.message(), key),
                    Err(_) => explain_syntax(error.message(), key, rest),
                },
            };
            self.error(span.start..first_line, message, remedy)
        })
    }

    /// An error at `span` of the TOML.
    pub fn error(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> InputError {
        self.file.error(self.place(span), message, remedy)
    }

    /// `span` of the TOML as bytes of the file.
    pub fn place(&self, span: Range<usize>) -> Range<usize> {
        self.range.start + span.start..self.range.start + span.end
    }

    /// The expression in the string value at `span`.
    pub fn formula(&self, text: &str, span: Range<usize>) -> Result<Formula, InputError> {
        let place = self.place(span);
        let formula = Formula {
            expr: Expr::integer(0),
            text: text.to_owned(),
            file: self.file.clone(),
            place,
        };
        match Expr::parse(text) {
            Ok(expr) => Ok(Formula { expr, ..formula }),
            Err(error) => Err(formula.error(&error)),
        }
    }

    /// A literal integer in place of an expression.
    pub fn number(&self, value: i64, span: Range<usize>) -> Formula {
        Formula {
            expr: Expr::integer(value),
            text: value.to_string(),
            file: self.file.clone(),
            place: self.place(span),
        }
    }

    /// What is wrong with the value of `key`, in our words, with a remedy.
    fn explain(&self, message: &str, key: &str) -> (String, String) {
        let message = decode::plain(message.trim());
        let guide = self.guide;
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        if let Some((shown, _)) = message.split_once(", expected")
            && message.starts_with("unknown")
        {
            let remedy = match quoted.split_first() {
                Some((wrong, known)) => match nearest(wrong, known.iter().copied()) {
                    Some(close) => format!("did you mean `{close}`? ({guide})"),
                    None => format!("use one of {}; {guide}", known.join(", ")),
                },
                None => guide.to_owned(),
            };
            return (shown.to_owned(), remedy);
        }
        if message.ends_with(" is missing") {
            let key = quoted.first().copied().unwrap_or("?");
            let remedy = format!("add `{key} = …`; {guide}");
            return (message, remedy);
        }
        if let Some((_, wanted)) = message.rsplit_once(", expected ")
            && message.starts_with("found ")
        {
            let remedy = format!("write {wanted}{}", example(key, wanted));
            return (message, remedy);
        }
        (message.replace('\n', "; "), guide.to_owned())
    }
}

/// The parser's message about text that is not TOML, with a remedy. `rest` begins at the error.
fn explain_syntax(message: &str, key: &str, rest: &str) -> (String, String) {
    let value = rest.lines().next().unwrap_or_default().trim_start();
    let is_absent = value.is_empty() || value.starts_with('#');
    let (message, remedy) = match message.trim() {
        "string values must be quoted, expected literal string" if is_absent => {
            return (
                format!("`{key}` has no value"),
                format!("write `{key} = …`"),
            );
        }
        "string values must be quoted, expected literal string"
        | "invalid boolean, expected `true`"
        | "invalid boolean, expected `false`" => (
            "a text is not in quotes",
            "write it as \"…\"; without quotes, a value is a number, true or false",
        ),
        "invalid basic string, expected `\"`" => ("the string is not closed", "add `\"`"),
        "duplicate key" => ("duplicate key", "keep one of them"),
        other => (other, "correct the TOML here"),
    };
    (message.replace('\n', "; "), remedy.to_owned())
}

/// How such a value of `key` is written, to follow a remedy; empty if there is no short example.
fn example(key: &str, wanted: &str) -> String {
    let value = match wanted {
        "a whole number" | "a whole number of at least 0" => "30",
        "a number" => "1.5",
        "true or false" => "true",
        "a string" => "\"…\"",
        "a list" => "[…]",
        _ => return String::new(),
    };
    match key.is_empty() {
        true => String::new(),
        false => format!(", e.g. `{key} = {value}`"),
    }
}

/// The key whose value comes next; empty if it is not named right before it.
fn key_before(text: &str) -> &str {
    let Some(text) = text.trim_end().strip_suffix('=') else {
        return "";
    };
    let text = text.trim_end();
    let other = |c: char| !c.is_alphanumeric() && !"-_".contains(c);
    text.rsplit(other).next().unwrap_or_default()
}

/// The beginning of a text, enough to recognise it.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 120;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An expression and its place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula {
    pub expr: Expr,
    pub text: String,
    /// The file it was read from: a variant also has formulas of those it extends.
    pub file: SourceFile,
    /// The value in the file, quotes included.
    pub place: Range<usize>,
}

impl Formula {
    /// `error` of this formula as an error of the file it was read from.
    pub fn error(&self, error: &ExprError) -> InputError {
        let message = format!("in `{}`: {}", shortened(&self.text), error.message);
        let place = self.inner(&error.span);
        self.file.error(place, message, &error.remedy)
    }

    /// Bytes of the file that `span` of the expression came from; the whole value if escapes make
    /// that uncertain.
    pub(crate) fn inner(&self, span: &Range<usize>) -> Range<usize> {
        let Some(raw) = self.file.text.get(self.place.clone()) else {
            return self.place.clone();
        };
        match raw.find(self.text.as_str()) {
            Some(quote) if !self.text.is_empty() => {
                let start = self.place.start + quote;
                start + span.start..start + span.end.max(span.start + 1).min(self.text.len())
            }
            _ => self.place.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[allow(dead_code)]
        baseline: String,
    }

    fn error_of(toml: &str) -> InputError {
        let file = SourceFile {
            path: "a.cu".into(),
            text: format!("/*dgx\n{toml}*/").into(),
        };
        let range = 6..file.text.len() - 2;
        Document::new(&file, range, "see docs")
            .parse::<Table>()
            .unwrap_err()
    }

    #[test]
    fn unknown_key_gets_the_nearest_and_the_line_of_the_file() {
        let error = error_of("baseline = \"a\"\nbase = 1\n");
        assert_eq!(error.location().as_deref(), Some("a.cu:3:1"));
        assert_eq!(error.message(), "unknown key `base`");
    }

    #[test]
    fn missing_and_mistyped_keys_are_named() {
        assert_eq!(error_of("").message(), "the key `baseline` is missing");
        assert!(
            error_of("baseline = 3\n")
                .message()
                .contains("expected a string")
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_shown_as_it_should_be() {
        let remedy = |toml: &str| error_of(toml).remedy().to_owned();
        assert_eq!(
            remedy("baseline = 3\n"),
            "write a string, e.g. `baseline = \"…\"`"
        );
        assert_eq!(
            example("min_blocks", "a whole number"),
            ", e.g. `min_blocks = 30`"
        );
        assert_eq!(example("", "a whole number"), "");
        assert_eq!(example("m", "an integer, or a list of them"), "");
    }

    #[test]
    fn what_is_not_toml_is_explained_without_its_keys() {
        let explained = |toml: &str| {
            let error = error_of(toml);
            (error.message().to_owned(), error.remedy().to_owned())
        };
        let absent = (
            "`baseline` has no value".to_owned(),
            "write `baseline = …`".to_owned(),
        );
        for toml in ["baseline = \n", "baseline =", "baseline = # none yet\n"] {
            assert_eq!(explained(toml), absent, "{toml}");
        }
        for toml in ["baseline = swap-ab\n", "baseline = two-pass\n"] {
            let (message, remedy) = explained(toml);
            assert_eq!(message, "a text is not in quotes", "{toml}");
            assert!(remedy.contains("\"…\""), "{remedy}");
        }
        for toml in ["baseline \"a\"\n", "[gate\n", "baseline = [1\n"] {
            assert_eq!(explained(toml).1, "correct the TOML here", "{toml}");
        }
    }

    #[test]
    fn a_formula_points_into_its_string() {
        let file = SourceFile {
            path: "a.toml".into(),
            text: "grid = \"1 / zz\"".into(),
        };
        let document = Document::whole(&file, "");
        let formula = document.formula("1 / zz", 7..15).unwrap();
        let error = ExprError::new(4..6, "unknown", "know");
        assert_eq!(
            formula.error(&error).location().as_deref(),
            Some("a.toml:1:13")
        );
    }
}
