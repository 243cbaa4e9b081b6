//! The one door to standard output and standard error. A stream may be a full
//! disk or a pipe whose reader went away: neither is a reason to panic, and
//! neither may turn a verdict into another. What could not be said is
//! remembered, and the exit code is made from that at the very end.

use std::fmt::Arguments;
use std::io::{ErrorKind, Result, Write};
use std::sync::Mutex;

/// Prints a line of results.
macro_rules! say {
    ($($text:tt)*) => { $crate::speech::say(format_args!($($text)*)) };
}

/// Prints a line beside the results, on standard error.
macro_rules! remark {
    ($($text:tt)*) => { $crate::speech::remark(format_args!($($text)*)) };
}

static LOST: Mutex<Option<Lost>> = Mutex::new(None);

/// Why a line of results never reached its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The reader has seen enough (`| head`).
    ReaderGone,
    /// The line could not be written at all, e.g. to a full disk.
    Failed(String),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ReaderGone => f.write_str("its reader went away"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// Prints a line, by one write: a reader that stops at the first match has the
/// rest in its pipe by then.
pub(crate) fn say(text: Arguments) {
    if lost().is_none() {
        let mut stdout = std::io::stdout().lock();
        let line = format!("{text}\n");
        keep(
            stdout
                .write_all(line.as_bytes())
                .and_then(|()| stdout.flush()),
        );
    }
}

/// Notes how a write to standard output went.
pub(crate) fn keep(written: Result<()>) {
    let Err(error) = written else { return };
    let why = match error.kind() {
        ErrorKind::BrokenPipe => Lost::ReaderGone,
        _ => Lost::Failed(error.to_string()),
    };
    if let Ok(mut lost) = LOST.lock() {
        lost.get_or_insert(why);
    }
}

/// What the first line that could not be printed met with.
pub(crate) fn lost() -> Option<Lost> {
    LOST.lock().ok()?.clone()
}

/// Prints a line on standard error; where that cannot be, nobody is there to
/// be told.
pub(crate) fn remark(text: Arguments) {
    let line = format!("{text}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
