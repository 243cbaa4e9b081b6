use std::rc::Rc;

use super::copy::Copy;
use super::cublas::{Cublas, find as find_cublas};
use super::driver::{Stream, free_memory};
use super::instance::{DataSet, Instance};
use super::prepared::PreparedCall;
use super::timed::TimedCall;
use super::timer::Timer;
use super::tools::Tools;
use super::{CudaBackend, CudaError};
use crate::backend::{
    Bench, BenchSetup, CallData, Job, Observation, OperandSet, RunFailure, Timed, proven,
};
use crate::operator::GroupOracle;
use crate::validate::{JudgedImage, Passed, Tolerance};
use dgx_core::config::Yardstick;
use dgx_core::domain::{ContenderId, KernelTime, Tuning};

/// The contenders of one shape on the GPU, ready to be called and timed.
pub(super) struct CudaBench<'a> {
    // Dropped first: it uses the fields below.
    entries: Vec<TimedCall>,
    timer: Timer,
    sets: Vec<Rc<DataSet>>,
    instance: Rc<Instance>,
    shape: String,
    tools: Rc<Tools>,
    /// Everything above lives in the backend's context.
    _backend: &'a mut CudaBackend,
}

impl<'a> CudaBench<'a> {
    pub(super) fn new(
        backend: &'a mut CudaBackend,
        setup: &BenchSetup<'_>,
    ) -> Result<Self, String> {
        let say = |e: CudaError| e.to_string();
        let first = setup.sets.first().ok_or("there are no data to time on")?;
        // Before the data sets: a new shape replaces the old one.
        let instance = backend.instance(first.operands).map_err(say)?;
        let tools = Rc::clone(&backend.tools);
        let sets = data_sets(setup, &tools.stream).map_err(say)?;
        let timer = Timer::new(&backend.device, &backend.scrub, setup.cold_l2).map_err(say)?;
        Ok(Self {
            shape: setup.shape.name.clone(),
            instance,
            sets,
            timer,
            entries: Vec::new(),
            tools,
            _backend: backend,
        })
    }

    fn subject(&self, contender: &ContenderId, image: String) -> JudgedImage {
        JudgedImage {
            contender: contender.clone(),
            shape: self.shape.clone(),
            image,
        }
    }

    fn add_entry(&mut self, entry: TimedCall) -> JudgedImage {
        let subject = entry.subject().clone();
        self.entries.push(entry);
        subject
    }
}

impl Bench for CudaBench<'_> {
    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn enter(&mut self, job: &Job<'_>, tolerance: Tolerance) -> Result<JudgedImage, RunFailure> {
        let subject = self.subject(job.contender, job.image.key.clone());
        let (instance, stream) = (Rc::clone(&self.instance), Rc::clone(&self.tools.stream));
        let prepared = PreparedCall::new(job.image, instance, job.call, stream)?;
        let prepared = prepared.forget_between_calls(job.image)?;
        let entry = TimedCall::contender(subject, prepared, &self.sets, tolerance)?;
        Ok(self.add_entry(entry))
    }

    /// On the contenders' data, which the last call left in the instance.
    fn enter_yardstick(
        &mut self,
        name: &ContenderId,
        kept: Option<&Tuning>,
        tolerance: Tolerance,
    ) -> Result<(JudgedImage, Option<Tuning>), String> {
        if *name == Yardstick::Copy.id() {
            let (operator, groups) = (self.instance.operator(), self.instance.groups());
            let stream = &self.tools.stream;
            let copy = Copy::new(operator, groups, stream).map_err(|e| e.to_string())?;
            let subject = self.subject(name, String::new());
            let entry = TimedCall::copy(subject, copy, stream).map_err(|e| e.message)?;
            return Ok((self.add_entry(entry), None));
        }
        let library = find_cublas()?;
        let (cublas, gemms) = Cublas::new(&self.tools, &self.instance, kept, &mut self.timer)?;
        let subject = self.subject(name, library.clone());
        let entry = TimedCall::cublas(subject, cublas, &self.sets, tolerance);
        let entry = entry.map_err(|e| e.message)?;
        let tuning = Tuning {
            shape: self.shape.clone(),
            library,
            gemms,
        };
        Ok((self.add_entry(entry), Some(tuning)))
    }

    fn rehearse(&mut self, subject: &JudgedImage, data: CallData) -> Result<bool, RunFailure> {
        let entry = proven(&self.entries, TimedCall::subject, subject)?;
        self.timer.rehearse(entry, data)
    }

    fn time(&mut self, passed: Passed, data: CallData) -> Result<Timed, RunFailure> {
        self.timer.time(passed, &self.entries, data)
    }

    fn kernels(&mut self, passed: &Passed, data: CallData) -> Result<Vec<KernelTime>, RunFailure> {
        let entry = proven(&self.entries, TimedCall::subject, passed.subject())?;
        self.timer.dissect(entry, data)
    }

    fn observe(
        &mut self,
        subject: &JudgedImage,
        data: CallData,
    ) -> Result<Observation, RunFailure> {
        let entry = proven(&self.entries, TimedCall::subject, subject)?;
        self.timer.observe(entry, data)
    }
}

/// The data sets with their expected results on the device: all of them, or as many as leave half
/// of its memory to the contenders.
fn data_sets(setup: &BenchSetup<'_>, stream: &Stream) -> Result<Vec<Rc<DataSet>>, CudaError> {
    let mut sets = Vec::new();
    for (place, set) in setup.sets.iter().enumerate() {
        let OperandSet {
            name,
            operands,
            oracle,
        } = *set;
        let answers: usize = oracle.groups.iter().map(GroupOracle::len).sum();
        // At most two products of each element.
        let needed = operands.bytes() + 8 * answers as u64;
        if !sets.is_empty() && 2 * needed > free_memory()? {
            break;
        }
        let seal = setup.seal.wrapping_add(place as u64);
        let set = DataSet::upload(name, operands, stream)?;
        let set = set.with_answer(&operands.operator, oracle, seal, stream)?;
        sets.push(Rc::new(set));
    }
    Ok(sets)
}
