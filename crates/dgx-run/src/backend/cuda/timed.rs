use std::rc::Rc;

use super::call_buffers::CallBuffers;
use super::copy::Copy;
use super::cublas::Cublas;
use super::driver::{CudaError, Graph, Stream};
use super::instance::DataSet;
use super::judge::Judge;
use super::prepared::PreparedCall;
use super::program::Program;
use super::tools::Tools;
use crate::backend::{CallData, Observation, RunFailure};
use crate::validate::{JudgedImage, Tolerance};

/// Something to time: a contender's call, or the yardstick, as a graph, with all that is needed to
/// prepare memory for it and to judge its output.
#[derive(Debug)]
pub(super) struct TimedCall {
    subject: JudgedImage,
    graph: Graph,
    work: TimedWork,
}

#[derive(Debug)]
enum TimedWork {
    Contender(Box<PreparedCall>, SetPrograms),
    Cublas(Box<Cublas>, SetPrograms),
    /// It uses its own data.
    Copy(Box<Copy>),
}

/// How memory is prepared for each data set, and the output judged.
#[derive(Debug)]
struct SetPrograms {
    rounds: Vec<(Program, Judge)>,
    /// The programs contain their addresses.
    _sets: Vec<Rc<DataSet>>,
}

impl SetPrograms {
    fn new(
        call_buffers: &CallBuffers,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, CudaError> {
        let round = |set: &Rc<DataSet>| {
            let judge = Judge::new(call_buffers, set, tolerance)?;
            Ok((call_buffers.program(set)?, judge))
        };
        Ok(Self {
            rounds: sets.iter().map(round).collect::<Result<_, CudaError>>()?,
            _sets: sets.to_vec(),
        })
    }
}

impl TimedCall {
    pub(super) fn contender(
        subject: JudgedImage,
        prepared: PreparedCall,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let rounds = SetPrograms::new(prepared.call_buffers(), sets, tolerance)?;
        Ok(Self {
            subject,
            graph: prepared.capture()?,
            work: TimedWork::Contender(Box::new(prepared), rounds),
        })
    }

    pub(super) fn cublas(
        subject: JudgedImage,
        cublas: Cublas,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let rounds = SetPrograms::new(cublas.call_buffers(), sets, tolerance)?;
        Ok(Self {
            subject,
            graph: cublas.capture()?,
            work: TimedWork::Cublas(Box::new(cublas), rounds),
        })
    }

    pub(super) fn copy(
        subject: JudgedImage,
        copy: Copy,
        stream: &Stream,
    ) -> Result<Self, RunFailure> {
        Ok(Self {
            subject,
            graph: copy.capture(stream)?,
            work: TimedWork::Copy(Box::new(copy)),
        })
    }

    /// The code and the shape.
    pub(super) fn subject(&self) -> &JudgedImage {
        &self.subject
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The contender's call; `None` for the yardstick, whose kernels are its library's own.
    pub(super) fn prepared(&self) -> Option<&PreparedCall> {
        match &self.work {
            TimedWork::Contender(prepared, _) => Some(prepared),
            TimedWork::Cublas(..) | TimedWork::Copy(_) => None,
        }
    }

    /// Local memory of each thread; unknown for the yardstick.
    pub(super) fn local_bytes(&self) -> u32 {
        self.prepared().map_or(0, PreparedCall::local_bytes)
    }

    /// Queues writing the data of a call to their place, and untimed work that depends on them.
    pub(super) fn lay(&self, tools: &Tools, data: CallData, forget: bool) -> Result<(), CudaError> {
        let rounds = match &self.work {
            TimedWork::Copy(copy) => return copy.lay(tools, data.call_seed),
            TimedWork::Contender(_, rounds) | TimedWork::Cublas(_, rounds) => rounds,
        };
        let (program, _) = &rounds.rounds[data.set];
        program.lay(tools, data.call_seed, forget)?;
        match &self.work {
            TimedWork::Cublas(cublas, _) => cublas.dequantise(),
            TimedWork::Contender(..) | TimedWork::Copy(_) => Ok(()),
        }
    }

    /// Queues judging the output, and checking everything but operands, which are written again for
    /// each call. Findings go to two words at `findings`, which must be 0 before.
    pub(super) fn look(
        &self,
        tools: &Tools,
        data: CallData,
        findings: u64,
    ) -> Result<(), CudaError> {
        match &self.work {
            TimedWork::Copy(copy) => copy.check(tools, data.call_seed, findings),
            TimedWork::Contender(_, rounds) | TimedWork::Cublas(_, rounds) => {
                let (program, judge) = &rounds.rounds[data.set];
                program.check(tools, data.call_seed, false, findings)?;
                judge.queue(tools, data.call_seed, findings + 8)
            }
        }
    }

    /// Reads back memory after the last call.
    pub(super) fn observe(&self, tools: &Tools, data: CallData) -> Result<Observation, CudaError> {
        let (call_buffers, rounds) = match &self.work {
            TimedWork::Copy(copy) => {
                return Ok(Observation {
                    copied: Some(copy.is_same(tools, data.call_seed)?),
                    ..Observation::default()
                });
            }
            TimedWork::Contender(prepared, rounds) => (prepared.call_buffers(), rounds),
            TimedWork::Cublas(cublas, rounds) => (cublas.call_buffers(), rounds),
        };
        let (program, _) = &rounds.rounds[data.set];
        call_buffers.observe(program, tools, data.call_seed)
    }
}
