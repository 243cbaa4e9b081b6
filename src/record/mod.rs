//! The run file: what a sweep saw, one JSON object a line, appended as it is
//! known. Everything right of it in the pipeline reads only this.

mod clean;
pub mod counters;
mod edge;
mod folder;
mod lines;
mod loading;
mod lock;
mod names;
mod parse;
mod place;
mod reader;
mod run;
pub mod schema;
#[cfg(test)]
pub mod synthetic;
#[cfg(test)]
mod tests;
mod writer;

pub use crate::domain::printable;
pub use folder::newest_first;
pub use place::{portable, portable_word};
#[cfg(test)]
pub use reader::read_text;
pub use reader::{ReadError, header, newest, read, runs_in};
pub use run::{Resources, Run};
pub use writer::{WriteError, Writer};
