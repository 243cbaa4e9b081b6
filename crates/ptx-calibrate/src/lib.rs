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

pub use answers::Answers;
pub use fit::{CaseFit, Fit, Fitted, Standing};
pub use fitting::fit_answers;
pub use measure::measure;
pub use model::model;
pub use only::Only;
pub use probe::{Read, cases, probes};
