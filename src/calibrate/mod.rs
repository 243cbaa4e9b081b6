//! What a GPU answers to small questions, and what the model of it says to the
//! same. Probes are kernels that ask one thing each; they are put to a card,
//! which says what it says; and to the model, whose numbers are fitted until it
//! says the same. It can then be asked for the times of cells.

mod answers;
mod each;
mod fit;
mod fitting;
mod measure;
mod model;
mod only;
mod parameters;
mod probe;
#[cfg(test)]
mod tests;
mod traced;

pub(crate) use answers::Answers;
pub(crate) use fit::{CaseFit, Fit, Fitted, Standing};
pub(crate) use fitting::fit_answers;
pub(crate) use measure::measure;
pub(crate) use model::model;
pub(crate) use only::Only;
pub(crate) use probe::{Read, cases, probes};
