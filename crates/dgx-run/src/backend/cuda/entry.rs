use std::rc::Rc;

use super::cublas::Yardstick;
use super::driver::{CudaError, Graph};
use super::ground::{Ground, Judge};
use super::instance::DataSet;
use super::prepared::Prepared;
use super::program::Program;
use crate::backend::RunFailure;
use crate::validate::{Subject, Tolerance};

/// Something to time: a contender's call, or the yardstick, as a graph, with
/// all that is needed to lay memory out for it and to judge what it did.
#[derive(Debug)]
pub(super) struct Entry {
    subject: Subject,
    runner: Runner,
    graph: Graph,
    tolerance: Tolerance,
    /// One for each data set.
    rounds: Vec<(Program, Option<Judge>)>,
    /// The programs name their addresses.
    _sets: Vec<Rc<DataSet>>,
}

#[derive(Debug)]
enum Runner {
    Contender(Box<Prepared>),
    Yardstick(Box<Yardstick>),
}

impl Entry {
    pub(super) fn contender(
        subject: Subject,
        prepared: Prepared,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let graph = prepared.capture()?;
        let runner = Runner::Contender(Box::new(prepared));
        Self::new(subject, runner, graph, sets, tolerance)
    }

    pub(super) fn yardstick(
        subject: Subject,
        yardstick: Yardstick,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let graph = yardstick.capture()?;
        let runner = Runner::Yardstick(Box::new(yardstick));
        Self::new(subject, runner, graph, sets, tolerance)
    }

    fn new(
        subject: Subject,
        runner: Runner,
        graph: Graph,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let ground = runner.ground();
        let rounds = sets
            .iter()
            .map(|set| Ok((ground.program(set)?, ground.bench_judge(set)?)))
            .collect::<Result<_, CudaError>>()?;
        Ok(Self {
            subject,
            runner,
            graph,
            tolerance,
            rounds,
            _sets: sets.to_vec(),
        })
    }

    /// Whose code on what.
    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn ground(&self) -> &Ground {
        self.runner.ground()
    }

    /// The contender's call; the yardstick's kernels are its library's own.
    pub(super) fn prepared(&self) -> Option<&Prepared> {
        match &self.runner {
            Runner::Contender(prepared) => Some(prepared),
            Runner::Yardstick(_) => None,
        }
    }

    /// Local memory of each thread; nothing is known of the yardstick's.
    pub(super) fn local_bytes(&self) -> u32 {
        self.prepared().map_or(0, Prepared::local_bytes)
    }

    pub(super) fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// How memory is laid out for one data set, and its output judged.
    pub(super) fn round(&self, set: usize) -> &(Program, Option<Judge>) {
        &self.rounds[set]
    }

    /// Queues what follows from other data in place, and is not timed.
    pub(super) fn follow(&self) -> Result<(), CudaError> {
        match &self.runner {
            Runner::Contender(_) => Ok(()),
            Runner::Yardstick(yardstick) => yardstick.dequantise(),
        }
    }
}

impl Runner {
    fn ground(&self) -> &Ground {
        match self {
            Self::Contender(prepared) => prepared.ground(),
            Self::Yardstick(yardstick) => yardstick.ground(),
        }
    }
}
