use std::fmt::Display;
use std::io::IsTerminal;

/// How wide, and whether in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub colour: bool,
    pub width: usize,
}

impl Style {
    /// What files and pipes get: plain, 100 columns.
    pub(crate) const PLAIN: Self = Self {
        colour: false,
        width: 100,
    };

    /// For standard output as it is: colour only on a terminal and not under
    /// `NO_COLOR`, as wide as the terminal.
    pub(crate) fn detect() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let quiet = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let width = terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
        Self {
            colour: terminal && !quiet,
            width: width.or(columns).unwrap_or(Self::PLAIN.width).max(40),
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

    /// Folds plain text into lines of the style's width, those after the first
    /// indented.
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
