use std::fmt::Write;

use crate::operator::Found;

/// One element of C that is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    pub group: usize,
    pub row: usize,
    pub column: usize,
    pub found: Found,
    pub expected: f64,
}

impl Element {
    pub fn got(&self) -> f64 {
        self.found.value()
    }
}

/// How an output differs from the right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    pub wrong: usize,
    pub total: usize,
    /// Of the wrong ones: still poison.
    pub unwritten: usize,
    /// Of the wrong ones: NaN that was written.
    pub nan: usize,
    pub first: Element,
    /// What it is an element of: "group 3", "output y".
    pub whose: String,
    /// Largest error over what is allowed; infinite where one cannot be compared.
    pub worst: f64,
    /// The elements are within the tolerance, and too small for it: what is
    /// allowed is what rounding explains.
    pub by_rounding: bool,
    /// Where: "every element of group 3", "rows ≥ 64 of each 128 …".
    pub place: String,
    /// What a wrong element looks like, where it looks like something: begins
    /// with a verb.
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

    /// The whole story.
    pub fn detail(&self) -> String {
        let (Element { row, column, .. }, whose) = (self.first, &self.whose);
        let mut text = format!(
            "{} of {} elements are wrong; {}\n",
            self.wrong,
            self.total,
            self.how_far()
        );
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "first: {whose}, row {row}, column {column}: got {}, expected {}",
            shown(self.first.found),
            significant(self.first.expected)
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

    fn how_far(&self) -> String {
        match (self.by_rounding, self.worst.is_finite()) {
            (true, _) => format!(
                "off by {:.1} times more than rounding explains in so small a value",
                self.worst
            ),
            (false, true) => format!("the worst error is {:.3e} times the tolerance", self.worst),
            (false, false) => "some are NaN or infinite".to_owned(),
        }
    }
}

fn shown(found: Found) -> String {
    match found.written {
        false => "nothing (never written)".to_owned(),
        true => significant(found.value()),
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
