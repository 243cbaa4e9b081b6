//! The only way to standard output and standard error: verbosity, colours and width are decided
//! here, once. A stream may be a full disk or a pipe whose reader has gone: neither may cause a
//! panic or change a verdict. A failed write is remembered and changes the exit code at the very
//! end. Colours are the only escapes that pass: no kernel, source or file controls the terminal.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Result, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use clap::ValueEnum;

use crate::printable::on_screen;

/// Prints a line of results.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::speech::say(format_args!($($text)*)) };
}

/// Prints a line on standard error, beside the results: a warning, an error, or a question.
#[macro_export]
macro_rules! remark {
    ($($text:tt)*) => { $crate::speech::remark(format_args!($($text)*)) };
}

/// Prints information about progress, unless the level is quiet.
#[macro_export]
macro_rules! inform {
    ($($text:tt)*) => {
        if $crate::speech::level() >= $crate::speech::Level::Usual {
            $crate::speech::remark(format_args!($($text)*));
        }
    };
}

/// How much is printed beside the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Warnings and errors.
    Quiet,
    /// What is done, stage by stage.
    #[default]
    Usual,
    /// And cell by cell.
    Verbose,
    /// And what worker processes do.
    Trace,
}

/// The variable with the level, if no flag gives it.
pub const LEVEL: &str = "DGX_LOG";

impl Level {
    pub fn of_environment() -> std::result::Result<Self, String> {
        match std::env::var(LEVEL) {
            Ok(word) if !word.is_empty() => word.parse(),
            _ => Ok(Self::default()),
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        <Self as ValueEnum>::from_str(word, false)
            .map_err(|_| format!("`{word}` is not one of quiet, usual, verbose, trace"))
    }
}

/// Whether to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal that has it, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Plain text
    Never,
}

static MANNER: OnceLock<(Level, Colour)> = OnceLock::new();

/// Sets level and colour; the first call counts.
pub fn settle(level: Level, colour: Colour) {
    MANNER.get_or_init(|| (level, colour));
}

/// The level. A worker reads it from its environment.
pub fn level() -> Level {
    MANNER
        .get_or_init(|| (Level::of_environment().unwrap_or_default(), Colour::Auto))
        .0
}

/// Whether to write results in colour, wherever they go: call it only after anything that may call
/// [`reserve_output`].
pub fn results_coloured() -> bool {
    match TAKEN.load(Ordering::Relaxed) {
        true => coloured(&std::io::stderr()),
        false => coloured(&std::io::stdout()),
    }
}

/// Whether to write to a stream in colour.
pub fn coloured(stream: &impl IsTerminal) -> bool {
    match MANNER.get().map_or(Colour::Auto, |(_, colour)| *colour) {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
            stream.is_terminal() && !plain && !is_dumb_terminal()
        }
    }
}

/// Whether standard error is a terminal that can show progress bars.
pub fn can_draw() -> bool {
    std::io::stderr().is_terminal() && !is_dumb_terminal()
}

/// Whether the terminal can only print.
fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// The number of columns, from `COLUMNS` or the terminal.
pub fn width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
    asked.filter(|columns| *columns > 0).or_else(terminal)
}

/// Standard output is reserved for data that another program reads.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Reserves standard output for `deliver`: everything else goes to standard error from here on.
pub fn reserve_output() {
    TAKEN.store(true, Ordering::Relaxed);
}

/// Writes a file's text to standard output, with one write: a reader that stops at the first match
/// then has the rest in its pipe.
pub fn deliver(text: &str) {
    if lost().is_none() {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        keep(written.and_then(|()| stdout.flush()));
    }
}

static LOST: Mutex<Option<OutputLoss>> = Mutex::new(None);

/// Why a line of results did not reach its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputLoss {
    /// The reader has closed the pipe (`| head`).
    ReaderGone,
    /// The line could not be written at all, e.g. to a full disk.
    Failed(String),
}

impl std::fmt::Display for OutputLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ReaderGone => f.write_str("its reader went away"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// Prints a line.
pub fn say(text: Arguments) {
    match TAKEN.load(Ordering::Relaxed) {
        true => remark(text),
        false => {
            let line = on_screen(&text.to_string(), coloured(&std::io::stdout()));
            deliver(&format!("{line}\n"));
        }
    }
}

/// Records the result of a write to standard output.
pub fn keep(written: Result<()>) {
    let Err(error) = written else { return };
    let why = match error.kind() {
        ErrorKind::BrokenPipe => OutputLoss::ReaderGone,
        _ => OutputLoss::Failed(error.to_string()),
    };
    if let Ok(mut lost) = LOST.lock() {
        lost.get_or_insert(why);
    }
}

/// The reason why the first lost line could not be printed.
pub fn lost() -> Option<OutputLoss> {
    LOST.lock().ok()?.clone()
}

/// Prints a line on standard error; if that fails, there is no way left to report it.
pub fn remark(text: Arguments) {
    let stderr = std::io::stderr();
    let line = on_screen(&text.to_string(), coloured(&stderr)) + "\n";
    let _ = stderr.lock().write_all(line.as_bytes());
}
