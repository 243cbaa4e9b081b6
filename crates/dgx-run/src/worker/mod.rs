//! Contenders run in worker processes, so that one that crashes, hangs or breaks its context costs
//! a process and not the sweep. `Worker` is the supervisor's side; `serve` is the worker's, and
//! `validate`, `measure` and `examine` serve the modules of the same names in `sweep`. Both sides
//! talk over a socket that is the worker's stdin; its stdout is for the output of kernels.

mod calls;
mod examine;
mod kept_call;
mod measure;
mod printed;
mod problems;
mod process;
mod protocol;
mod rejections;
mod serve;
mod trace;
mod validate;

pub use kept_call::KeptCall;
pub use problems::answers;
pub(crate) use process::{NoReply, Worker};
pub(crate) use protocol::{CellCode, CellJob, Judged, KeepRequest, MeasureJob, Reply, Request};
pub use serve::serve;
pub use trace::trace;
