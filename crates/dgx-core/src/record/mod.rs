//! The run file: the observations of a sweep, one JSON object a line, appended as they are made.
//! All later stages of the pipeline read only this file.

mod command;
mod contradiction;
pub mod counters;
mod edge;
mod folder;
mod foreign;
mod lines;
mod loading;
mod lock;
mod names;
mod parse;
mod portable;
mod progress;
mod reader;
mod replace;
mod run;
pub mod schema;
mod strictness;
#[cfg(any(test, feature = "synthetic"))]
#[path = "tests/synthetic.rs"]
pub mod synthetic;
#[cfg(test)]
mod tests;
mod verdict;
mod writer;

pub use crate::domain::printable;
pub use command::{argv, stamp};
pub use folder::{Newest, PassedOver, Search, is_called_after, missing, newest, newest_first};
pub use foreign::ForeignCell;
pub use foreign::{Foreign, Times};
pub use lock::{LockOutcome, try_lock};
pub(crate) use portable::ELIDED;
pub use portable::{PortablePaths, is_elided, portable, portable_word};
#[cfg(any(test, feature = "synthetic"))]
pub use reader::read_text;
pub use reader::{ReadError, header, read, runs_in};
pub use replace::Slot;
pub use run::{Resources, Run};
pub use verdict::verdict_exit;
pub use writer::{WriteError, Writer, begun, end, ended};
