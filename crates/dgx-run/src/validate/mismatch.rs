use std::fmt::Write;

use crate::operator::OutputElement;
use dgx_core::operator::Number;

/// One element of C that is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    pub group: usize,
    pub row: usize,
    pub column: usize,
    pub found: OutputElement,
    pub expected: f64,
}

impl Element {
    pub fn got(&self) -> f64 {
        self.found.value()
    }

    fn is_integer(&self) -> bool {
        self.found.element.number() == Number::Integer
    }

    /// Whether no kernel can write the expected value: its type has no such integer.
    fn is_outside(&self) -> bool {
        let (least, most) = self.found.element.limits();
        self.is_integer() && !(least..=most).contains(&self.expected)
    }

    /// A value in the notation of its type.
    pub fn number(&self, value: f64) -> String {
        match self.is_integer() {
            true => format!("{value:.0}"),
            false => significant(value),
        }
    }
}

/// How an output differs from the right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    pub wrong: usize,
    pub total: usize,
    /// Wrong elements that are still poison.
    pub unwritten: usize,
    /// Wrong elements with a written NaN.
    pub nan: usize,
    pub first: Element,
    /// Its name: "group 3, row 1, column 2", `y[0,1,2]`.
    pub at: String,
    /// Largest error over its tolerance; infinite if an element cannot be compared.
    pub worst: f64,
    /// The elements are within the tolerance, which is too coarse for them: the rounding error is
    /// the limit.
    pub by_rounding: bool,
    /// Where: "every element of group 3", "rows ≥ 64 of each 128 …".
    pub place: String,
    /// The likely mistake, if there is one: begins with a verb.
    pub guess: Option<String>,
}

impl Mismatch {
    /// One line for a table.
    pub fn reason(&self) -> String {
        match &self.guess {
            Some(guess) => format!("{} {}", self.place, self.agreeing(guess)),
            None => format!("{} wrong, {}", self.place, self.how_far()),
        }
    }

    /// All details.
    pub fn detail(&self) -> String {
        let mut text = format!(
            "{} of {} elements are wrong; {}\n",
            self.wrong,
            self.total,
            self.how_far()
        );
        let number = |value: f64| self.first.number(value);
        let (mut got, mut expected) = (number(self.first.got()), number(self.first.expected));
        if got == expected {
            (got, expected) = (
                format!("{:.10e}", self.first.got()),
                format!("{:.10e}", self.first.expected),
            );
        }
        if !self.first.found.written {
            "nothing (never written)".clone_into(&mut got);
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "first: {}: got {}, expected {}{}",
            self.at,
            got,
            expected,
            match self.first.is_outside() {
                true => format!(", which lies outside {}", self.element()),
                false => String::new(),
            }
        );
        let _ = writeln!(text, "where: {}", self.place);
        for (count, what) in [
            (self.unwritten, "were never written"),
            (self.nan, "are NaN"),
        ] {
            if count > 0 {
                let _ = writeln!(text, "{count} of them {what}");
            }
        }
        if let Some(guess) = &self.guess {
            let _ = writeln!(text, "looks like: {guess}");
        }
        text.trim_end().to_owned()
    }

    /// The guess with its verb in the number of the place: "rows ≥ 64 … were".
    fn agreeing(&self, guess: &str) -> String {
        let plural = self.place.starts_with(|c: char| c.is_ascii_digit())
            || ["rows ", "columns "]
                .iter()
                .any(|noun| self.place.starts_with(noun));
        let (verb, rest) = guess.split_once(' ').unwrap_or((guess, ""));
        let verb = match verb {
            _ if !plural => verb,
            "is" => "are",
            "was" => "were",
            "has" => "have",
            other => other.trim_end_matches('s'),
        };
        format!("{verb} {rest}")
    }

    fn element(&self) -> &'static str {
        self.first.found.element.name()
    }

    fn how_far(&self) -> String {
        match (self.by_rounding, self.worst.is_finite()) {
            (true, _) => format!(
                "off by {:.1} times more than rounding explains in so small a value",
                self.worst
            ),
            (false, true) => {
                let worst = match self.worst {
                    worst if worst < 10.0 => format!("{worst:.1}"),
                    worst if worst < 1e6 => format!("{worst:.0}"),
                    worst => format!("{worst:.1e}"),
                };
                format!("the worst error is {worst} times the tolerance")
            }
            _ if self.first.is_outside() => {
                format!("what is expected lies outside {}", self.element())
            }
            _ if self.first.is_integer() => "integers are compared exactly".to_owned(),
            _ => "some are NaN or infinite".to_owned(),
        }
    }
}

/// Enough digits to see a difference at fp16's precision.
pub fn significant(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let digits = (4 - value.abs().max(1e-3).log10().floor() as i32).clamp(0, 7);
        format!("{value:.*}", digits as usize)
    } else {
        format!("{value:.4e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::operator::ElementType;

    fn mismatch(element: ElementType, bits: u64, expected: f64, worst: f64) -> Mismatch {
        let found = OutputElement {
            element,
            bits,
            written: true,
        };
        Mismatch {
            wrong: 1,
            total: 8,
            unwritten: 0,
            nan: 0,
            first: Element {
                group: 0,
                row: 1,
                column: 2,
                found,
                expected,
            },
            at: "row 1, column 2".to_owned(),
            worst,
            by_rounding: false,
            place: "one element".to_owned(),
            guess: None,
        }
    }

    #[test]
    fn integers_are_printed_as_integers() {
        let wrapped = (-2_122_600_000_i32) as u32;
        let found = mismatch(
            ElementType::I32,
            wrapped.into(),
            2_172_367_296.0,
            f64::INFINITY,
        );
        assert_eq!(
            found.reason(),
            "one element wrong, what is expected lies outside i32"
        );
        let detail = found.detail();
        assert!(
            detail.contains("got -2122600000, expected 2172367296, which lies outside i32"),
            "{detail}"
        );
        let found = mismatch(ElementType::I8, 3, 4.0, f64::INFINITY);
        assert_eq!(
            found.reason(),
            "one element wrong, integers are compared exactly"
        );
    }

    #[test]
    fn a_multiple_of_the_tolerance_is_a_plain_number() {
        for (worst, text) in [(7.692, "7.7"), (410.7, "411"), (12345678.0, "1.2e7")] {
            let found = mismatch(ElementType::F32, 0, 1.0, worst);
            let reason =
                format!("one element wrong, the worst error is {text} times the tolerance");
            assert_eq!(found.reason(), reason);
        }
    }
}
