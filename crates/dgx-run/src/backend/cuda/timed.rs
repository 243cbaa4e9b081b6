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
pub(super) struct TimedCall {
    subject: Subject,
    launcher: Launcher,
    graph: Graph,
    tolerance: Tolerance,
    /// One for each data set.
    rounds: Vec<(Program, Option<Judge>)>,
    /// The programs name their addresses.
    _sets: Vec<Rc<DataSet>>,
}

#[derive(Debug)]
enum Launcher {
    Contender(Box<Prepared>),
    Yardstick(Box<Yardstick>),
}

impl TimedCall {
    pub(super) fn contender(
        subject: Subject,
        prepared: Prepared,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let graph = prepared.capture()?;
        let launcher = Launcher::Contender(Box::new(prepared));
        Self::new(subject, launcher, graph, sets, tolerance)
    }

    pub(super) fn yardstick(
        subject: Subject,
        yardstick: Yardstick,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let graph = yardstick.capture()?;
        let launcher = Launcher::Yardstick(Box::new(yardstick));
        Self::new(subject, launcher, graph, sets, tolerance)
    }

    fn new(
        subject: Subject,
        launcher: Launcher,
        graph: Graph,
        sets: &[Rc<DataSet>],
        tolerance: Tolerance,
    ) -> Result<Self, RunFailure> {
        let ground = launcher.ground();
        let rounds = sets
            .iter()
            .map(|set| Ok((ground.program(set)?, ground.bench_judge(set)?)))
            .collect::<Result<_, CudaError>>()?;
        Ok(Self {
            subject,
            launcher,
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
        self.launcher.ground()
    }

    /// The contender's call; the yardstick's kernels are its library's own.
    pub(super) fn prepared(&self) -> Option<&Prepared> {
        match &self.launcher {
            Launcher::Contender(prepared) => Some(prepared),
            Launcher::Yardstick(_) => None,
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
        match &self.launcher {
            Launcher::Contender(_) => Ok(()),
            Launcher::Yardstick(yardstick) => yardstick.dequantise(),
        }
    }
}

impl Launcher {
    fn ground(&self) -> &Ground {
        match self {
            Self::Contender(prepared) => prepared.ground(),
            Self::Yardstick(yardstick) => yardstick.ground(),
        }
    }
}
