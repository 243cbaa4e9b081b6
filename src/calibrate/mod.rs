//! What a GPU answers to small questions: probes, each one kernel that asks
//! one thing, and the command that puts them to a card and writes down what it
//! said. Nothing in here draws a conclusion.

mod answers;
mod measure;
mod probe;
#[cfg(test)]
mod tests;

pub(crate) use answers::{Answer, Answers};
pub(crate) use measure::measure;
pub(crate) use probe::{Read, probes};
