//! Contenders run in worker processes, so that one that crashes, hangs or
//! breaks its context costs a process and not the sweep. `Worker` is the
//! supervisor's end of the line; `serve` is the worker's, and `validate`,
//! `measure` and `examine` do what the modules of these names in `sweep` ask for.
//! They speak over a socket that is the worker's stdin; its stdout belongs to what
//! kernels print.

mod calls;
mod examine;
mod keep;
mod measure;
mod printed;
mod problems;
mod process;
mod protocol;
mod rejections;
mod serve;
mod trace;
mod validate;

pub use keep::Kept;
pub use problems::answers;
pub(crate) use process::{NoReply, Worker};
pub(crate) use protocol::{CellCode, CellJob, Keep, MeasureJob, ProblemKey, Reply, Request};
pub use serve::serve;
pub use trace::trace;
