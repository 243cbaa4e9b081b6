//! Contenders run in worker processes, so that one that crashes, hangs or
//! breaks its context costs a process and not the sweep. [`Worker`] is the
//! supervisor's end of the line; [`mod@serve`] is the worker's. They speak over a
//! socket that is the worker's stdin; its stdout belongs to what kernels print.

mod calls;
mod examine;
mod judge;
mod keep;
mod problems;
mod process;
mod protocol;
mod rejections;
mod serve;
mod timing;
mod trace;
mod words;

pub(crate) use keep::Kept;
pub(crate) use problems::answers;
pub(crate) use process::{Lost, Worker};
pub(crate) use protocol::{
    Keep, MeasureEntry, MeasureJob, ProblemKey, Reply, Request, ValidateJob,
};
pub(crate) use serve::serve;
pub(crate) use trace::trace;
