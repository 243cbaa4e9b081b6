//! A user's mistake: file and place, what is wrong there, and a remedy. Modules make an
//! [`InputError`]; only this one formats it for a screen.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use textwrap::{WordSeparator, WordSplitter};

use crate::domain::{Exit, harmful, printable, printable_line};
use crate::files;
use crate::speech;

/// A text file in memory, kept so that an error can point into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    pub path: PathBuf,
    pub text: Arc<str>,
}

impl SourceFile {
    /// Reads `path`; `what` names its role in the message ("config", "variant").
    pub fn read(path: &Path, what: &str, remedy: &str) -> Result<Self, InputError> {
        match files::read_text(path, files::LARGEST) {
            Ok(text) => Ok(Self {
                path: path.to_owned(),
                text: text.into(),
            }),
            Err(error) => Err(InputError::new(
                format!("cannot read {what} {}: {error}", path.display()),
                match error.starts_with("it is not UTF-8") {
                    true => "save it as UTF-8",
                    false => remedy,
                },
            )),
        }
    }

    /// An error at `span` (bytes of this file), labelled with the mistake.
    pub fn error(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> InputError {
        InputError {
            message: printable(&message.into()),
            remedy: printable(&remedy.into()),
            place: Some(FilePlace {
                file: self.clone(),
                span: clamp(span, self.text.len()),
            }),
        }
    }

    /// Line and column, from 1, of a byte of this file.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

fn clamp(span: Range<usize>, len: usize) -> Range<usize> {
    let start = span.start.min(len);
    start..span.end.clamp(start, len)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FilePlace {
    file: SourceFile,
    span: Range<usize>,
}

/// An error in the user's input: what is wrong, where, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    message: String,
    remedy: String,
    place: Option<FilePlace>,
}

impl InputError {
    /// An error without a place in a file (a path, a flag).
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            message: printable(&message.into()),
            remedy: printable(&remedy.into()),
            place: None,
        }
    }

    /// The same error, with a note on its relation to the user's command.
    pub fn noting(mut self, note: &str) -> Self {
        self.message = format!("{} ({})", self.message, printable(note));
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// `file:line:column`, if there is one.
    pub fn location(&self) -> Option<String> {
        let place = self.place.as_ref()?;
        let (line, column) = place.file.position(place.span.start);
        let path = printable_line(&place.file.path.display().to_string());
        Some(format!("{path}:{line}:{column}"))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location() {
            Some(location) => write!(f, "{location}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for InputError {}

/// Why a command ended early, with its exit code.
#[derive(Debug)]
pub struct CommandError {
    exit: Exit,
    error: InputError,
}

impl CommandError {
    pub fn new(exit: Exit, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit,
            error: InputError::new(message, remedy),
        }
    }

    /// The user asked for something impossible.
    pub fn usage(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, remedy)
    }

    /// The machine, a file or a tool failed.
    pub fn could_not_run(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Exit::CouldNotRun, message, remedy)
    }

    /// The data do not decide it.
    pub fn inconclusive(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Exit::Inconclusive, message, remedy)
    }

    /// The same with a further remedy.
    pub fn advising(mut self, remedy: &str) -> Self {
        self.error.remedy = format!("{}; {remedy}", self.error.remedy);
        self
    }

    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Writes the report to stderr.
    pub fn print(&self) {
        let coloured = speech::coloured(&std::io::stderr());
        remark!("{}", render(&self.error, coloured));
    }
}

impl From<InputError> for CommandError {
    fn from(error: InputError) -> Self {
        Self {
            exit: Exit::Usage,
            error,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for CommandError {}

/// The whole report: message, excerpt of the file, remedy.
pub fn render(error: &InputError, coloured: bool) -> String {
    let theme = if coloured {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::none()
    };
    let width = speech::width().unwrap_or(100);
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(width.clamp(60, 120))
        .with_context_lines(1)
        .with_links(false)
        // Names and paths stay whole, so that they can be copied.
        .with_word_separator(WordSeparator::AsciiSpace)
        .with_word_splitter(WordSplitter::NoHyphenation)
        .with_break_words(false);
    match handler.render_report(&mut text, &Report::new(error)) {
        Ok(()) => text.trim_end().to_owned(),
        Err(fmt::Error) => format!("error: {error}\n  help: {}", error.remedy),
    }
}

/// [`InputError`] in miette's form; its message without the location, which the excerpt's frame
/// already shows.
#[derive(Debug)]
struct Report {
    message: String,
    remedy: String,
    source: Option<Excerpt>,
    span: Range<usize>,
}

impl Report {
    fn new(error: &InputError) -> Self {
        let excerpt = error.place.as_ref().map(Excerpt::of);
        let (source, span) = excerpt.map_or((None, 0..0), |(e, span)| (Some(e), span));
        Self {
            message: error.message.clone(),
            remedy: error.remedy.clone(),
            source,
            span,
        }
    }
}

/// The part of a file that is shown: all of it, or one line if the file has control characters or
/// very long lines.
#[derive(Debug)]
struct Excerpt {
    name: String,
    text: String,
    /// Lines and characters left out before it.
    skipped: (usize, usize),
}

/// Maximum characters of a line that are shown, and how many of them before the place.
const WIDE: usize = 400;
const BEFORE: usize = 60;

impl Excerpt {
    /// The excerpt and the span in it.
    fn of(place: &FilePlace) -> (Self, Range<usize>) {
        let FilePlace { file, span } = place;
        let name = printable_line(&file.path.display().to_string());
        let plain = |line: &str| line.len() <= WIDE && !line.chars().any(harmful);
        if file.text.split('\n').all(|line| plain(line.trim_end())) {
            let whole = Self {
                name,
                text: file.text.to_string(),
                skipped: (0, 0),
            };
            return (whole, span.clone());
        }
        let (line, column) = file.position(span.start);
        let text = file.text.split('\n').nth(line - 1).unwrap_or_default();
        let skip = (column - 1).saturating_sub(BEFORE);
        let shown: Vec<char> = text.trim_end().chars().skip(skip).take(WIDE).collect();
        let written = |part: &[char]| printable(&part.iter().collect::<String>());
        let before = (column - 1 - skip).min(shown.len());
        let marked = file.text.get(span.clone()).unwrap_or_default();
        let marked = marked
            .split('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count();
        let after = (before + marked.max(1)).min(shown.len());
        let start = written(&shown[..before]).len();
        let end = start + written(&shown[before..after]).len();
        let excerpt = Self {
            name,
            text: written(&shown),
            skipped: (line - 1, skip),
        };
        (excerpt, start..end)
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.read_span(span, before, after)?;
        let (lines, columns) = self.skipped;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            found.data(),
            *found.span(),
            found.line() + lines,
            found.column() + columns,
            found.line_count(),
        )))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.remedy))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.source.as_ref()?;
        let label = LabeledSpan::new(None, self.span.start, self.span.len());
        Some(Box::new(std::iter::once(label)))
    }
}

/// A remedy for a name similar to a known one.
pub fn did_you_mean<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(text, known).map(|close| format!("did you mean `{close}`?"))
}

/// The entry of `known` most similar to `text`, if one is close enough: names of one letter are
/// similar only if they are equal.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Such a long name is no typing error, and the search takes time proportional to its square.
    const LONGEST: usize = 200;
    if text.len() > LONGEST {
        return None;
    }
    let typed = text.to_lowercase();
    let limit = (text.chars().count() / 3).max(2);
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            (
                strsim::levenshtein(&typed, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| {
            let shared = candidate.chars().count().max(typed.chars().count()) - distance;
            *distance <= limit && shared > 0
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> SourceFile {
        SourceFile {
            path: "configs/x.toml".into(),
            text: "name = \"x\"\nµ = 1\nbasline = 3\n".into(),
        }
    }

    #[test]
    fn location_counts_lines_and_characters_from_one() {
        let at = file().text.find("= 1").unwrap();
        let error = file().error(at..at + 1, "odd", "even it");
        assert_eq!(error.location().as_deref(), Some("configs/x.toml:2:3"));
    }

    #[test]
    fn report_names_place_and_remedy_without_colour() {
        let at = file().text.find("basline").unwrap();
        let error = file().error(
            at..at + 7,
            "unknown key `basline`",
            "did you mean `baseline`?",
        );
        let text = render(&error, false);
        assert!(text.contains("configs/x.toml:3:1"), "{text}");
        assert!(text.contains("did you mean `baseline`?"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn span_past_the_end_still_renders() {
        let error = file().error(9_999..10_000, "gone", "look again");
        assert!(render(&error, false).contains("gone"));
    }

    #[test]
    fn lines_nobody_could_read_are_shown_in_part() {
        let text = format!("a = 1\nb = \"{}\" = 2\n", "\u{1b}[31mx".repeat(20_000));
        let file = SourceFile {
            path: "x.toml".into(),
            text: text.as_str().into(),
        };
        for at in [0, 6, 11, 12, 70_000, text.len() - 4, text.len()] {
            let error = file.error(at..at + 3, "odd \u{1b}[2J", "even it");
            let shown = render(&error, false);
            assert!(shown.len() < 8_000, "{at}: {}", shown.len());
            assert!(!shown.contains('\u{1b}'), "{shown}");
            assert!(shown.contains("x.toml:"), "{shown}");
        }
        let shown = render(&file.error(6..7, "odd", "even it"), false);
        assert!(shown.contains("x.toml:2:1"), "{shown}");
    }

    #[test]
    fn nearest_finds_typos_and_refuses_strangers() {
        let names = ["two-pass", "sequential", "interleaved"];
        assert_eq!(nearest("interleavd", names), Some("interleaved"));
        assert_eq!(nearest("Two-Pas", names), Some("two-pass"));
        assert_eq!(nearest("swap-ab", names), None);
        assert_eq!(nearest("q", ["m", "n"]), None);
        assert_eq!(nearest("mm", ["m", "n"]), Some("m"));
    }
}
