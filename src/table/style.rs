use std::fmt::Display;

use super::Tone;
use dgx_core::domain::Joined;
use dgx_core::speech;

/// The width, and whether to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub colour: bool,
    pub width: usize,
}

impl Style {
    /// The style of files and pipes: plain, 100 columns.
    pub(crate) const PLAIN: Self = Self {
        colour: false,
        width: 100,
    };

    /// For results, by their stream.
    pub(crate) fn detect() -> Self {
        Self {
            colour: speech::results_coloured(),
            width: speech::width().unwrap_or(Self::PLAIN.width).max(40),
        }
    }

    fn wrap(&self, code: &str, text: impl Display) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_string()
        }
    }

    pub(crate) fn bold(&self, text: impl Display) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(&self, text: impl Display) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn good(&self, text: impl Display) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(&self, text: impl Display) -> String {
        self.wrap("31", text)
    }

    pub(crate) fn doubtful(&self, text: impl Display) -> String {
        self.wrap("33", text)
    }

    /// Styled by tone.
    pub(crate) fn toned(&self, tone: Tone, text: impl Display) -> String {
        match tone {
            Tone::Plain => text.to_string(),
            Tone::Good => self.good(text),
            Tone::Bad => self.bad(text),
            Tone::Doubtful => self.doubtful(text),
            Tone::Faint => self.dim(text),
        }
    }

    /// The same, narrower by so many characters.
    pub(crate) fn narrower(&self, by: usize) -> Self {
        Self {
            width: self.width.saturating_sub(by),
            ..*self
        }
    }

    /// A bold name before its text, wrapped.
    pub(crate) fn titled(&self, name: &str, text: &str) -> String {
        let folded = self.narrower(1).fold(&format!("{name} {text}"), 2);
        folded.replacen(name, &format!("{} ", self.bold(name)), 1)
    }

    /// Joins parts two spaces apart on as few lines as hold them whole; lines after the first are
    /// indented.
    pub(crate) fn joined(&self, parts: &[String], indent: usize) -> String {
        let room = self.narrower(indent);
        let mut lines: Vec<String> = Vec::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let part = room.fold(part, 2);
            let length = |text: &str| text.chars().count();
            match lines.last_mut() {
                Some(line) if length(line) + 2 + length(&part) <= room.width => {
                    line.push_str("  ");
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
        let text = lines.join("\n");
        text.replace('\n', &format!("\n{}", " ".repeat(indent)))
    }

    /// Wraps plain text to the style's width; lines after the first are indented.
    pub(crate) fn fold(&self, text: &str, indent: usize) -> String {
        let mut lines: Vec<String> = vec![String::new()];
        for word in text.split_whitespace() {
            let last = lines.len() - 1;
            let length = lines[last].chars().count();
            if length > indent && length + 1 + word.chars().count() > self.width {
                lines.push(format!("{}{word}", " ".repeat(indent)));
            } else {
                let line = &mut lines[last];
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
        lines.join("\n")
    }
}

/// Every line two spaces in; empty ones stay empty.
pub(crate) fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("  {line}"),
    });
    lines.joined("\n")
}
