//! The run file: what a sweep saw, one JSON object a line, appended as it is
//! known. Everything right of it in the pipeline reads only this.

pub(crate) mod counters;
mod edge;
mod folder;
mod foreign;
mod lines;
mod loading;
mod lock;
mod names;
mod parse;
mod place;
mod progress;
mod reader;
mod replace;
mod run;
pub(crate) mod schema;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use crate::domain::printable;
pub(crate) use folder::{
    Newest, PassedOver, Search, is_called_after, missing, newest, newest_first,
};
pub(crate) use foreign::{Foreign, ForeignCell, Times};
pub(crate) use lock::{Claim, claim};
pub(crate) use place::{ELIDED, Portable, is_elided, portable, portable_word};
#[cfg(test)]
pub(crate) use reader::read_text;
pub(crate) use reader::{ReadError, header, read, runs_in};
pub(crate) use replace::Slot;
pub(crate) use run::{Resources, Run};
pub(crate) use writer::{WriteError, Writer, begun, end, ended};
