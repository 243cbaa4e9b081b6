//! Finds contenders that are correct only by luck: every call is watched for hazards, in several
//! legal orders of warps and copies, on small shapes. Nothing is timed, and no run file is written.

mod shapes;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

pub use shapes::{any_round, parse as parse_shape, size_text};

use crate::backend::emu::EmuBackend;
use crate::backend::{
    Backend, CallInput, CallSeed, Emulation, Job, Loaded, Observation, RunFailure,
};
use crate::catalog::{Catalog, Contender};
use crate::compile::{Compiler, Image};
use crate::operator::{Operands, Oracle, OutputValues};
use dgx_core::config::Round;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Bytes, Device, Hazard, HazardWatch, Status, add_hazard};
use dgx_core::interrupt::{self, SignalMessages};
use dgx_core::sanitize::{
    Deviation, SanitizeCase, SanitizeReport, SanitizeSettings, SanitizedCell,
};

use crate::plan::Plan;
use crate::sweep::{Bar, launchable, planned, unit};
use crate::validate::{Tolerance, Wrong, examine};
use dgx_core::domain::Distribution;

/// Data and canaries are the same in every schedule.
const SEED: u64 = 1;

/// A contender, and the case it runs.
#[derive(Debug)]
pub struct SanitizeTask {
    pub contender: Contender,
    pub case: SanitizeCase,
    plan: Plan,
}

/// Tasks of a contender on shapes chosen for it.
pub fn tasks(
    round: &Round,
    contender: &Contender,
    given: &[SanitizeCase],
    catalog: &Catalog,
    device: &Device,
) -> Result<Vec<SanitizeTask>, InputError> {
    let cases = match given {
        [] => shapes::chosen(round, contender, catalog, device)?,
        given => given.to_vec(),
    };
    let task = |case: SanitizeCase| {
        let plan = shapes::plan(round, contender, &case, catalog, device)?;
        Ok(SanitizeTask {
            contender: contender.clone(),
            case,
            plan,
        })
    };
    cases.into_iter().map(task).collect()
}

impl SanitizeTask {
    /// Why the contender does not support the shape, if so.
    pub fn refusal(&self) -> Option<&str> {
        self.plan.cells[0].unsupported()
    }

    fn ended(&self, status: Status, reason: impl Into<String>) -> SanitizedCell {
        SanitizedCell {
            contender: self.contender.id.clone(),
            expect: self.contender.variant.expect,
            case: self.case.clone(),
            status,
            reason: Some(reason.into()),
            hazards: Vec::new(),
            deviation: None,
            unwatched: Bytes(0),
        }
    }
}

const EXAMINING: SignalMessages = SignalMessages {
    first: Some(
        "stopping after the running calls and printing the findings; press Ctrl-C again to end now",
    ),
    second: "ended; --export-json has the cells that were done",
};

/// Saves the results so far.
pub type SaveReport<'a> = dyn Fn(&SanitizeReport) + Sync + 'a;

/// Compiles and examines all tasks, in order, or as many as the user waits for. Intermediate
/// results are passed to `kept`, so that they are not lost with the process.
pub fn examine_all(
    tasks: &[SanitizeTask],
    settings: &SanitizeSettings,
    compiler: &Compiler,
    bar: &Bar<'_>,
    kept: Option<&SaveReport<'_>>,
) -> Result<SanitizeReport, CommandError> {
    interrupt::install(EXAMINING);
    let builds: Vec<_> = tasks
        .iter()
        .flat_map(|t| &t.plan.builds)
        .map(unit)
        .collect();
    let compiled = compiler.compile_all(&builds, |_, _| {}, interrupt::requested)?;
    // A task has at most one build.
    let mut images = compiled.into_iter();
    let images: Vec<Option<Result<Image, String>>> = tasks
        .iter()
        .map(|task| match task.plan.builds.is_empty() {
            true => None,
            false => images.next().flatten().map(|compiled| compiled.outcome),
        })
        .collect();
    let ended: Vec<OnceLock<SanitizedCell>> = tasks.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let keeping = Mutex::new(());
    // Separate threads: a rayon thread that waits for the CTAs of a call could start another cell
    // in the meantime, and the call's time would run out.
    let work = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(task) = tasks.get(index)
            && !interrupt::requested()
        {
            // Hundreds of cells: a terminal shows a bar; a log lists them only if the user asked
            // for it.
            let (contender, shape) = (&task.contender.id, &task.case.shape.name);
            bar.at(format!("{contender} on {shape}"));
            let Some(examined) = examined(task, images[index].as_ref(), settings) else {
                continue;
            };
            // Each index is taken once.
            let _ = ended[index].set(examined);
            if let Some(kept) = kept {
                let _alone = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                kept(&report_of(tasks, &ended));
            }
            bar.step(1.0);
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let (working, all_ended) = mpsc::channel::<()>();
        for _ in 0..cores.min(tasks.len()) {
            let working = working.clone();
            scope.spawn(move || {
                let _until_it_ends = working;
                work();
            });
        }
        drop(working);
        let second = Duration::from_secs(1);
        while all_ended.recv_timeout(second) == Err(RecvTimeoutError::Timeout) {
            bar.heartbeat();
        }
    });
    Ok(report_of(tasks, &ended))
}

fn examined(
    task: &SanitizeTask,
    image: Option<&Result<Image, String>>,
    settings: &SanitizeSettings,
) -> Option<SanitizedCell> {
    let ended = |status, why: &str| Some(task.ended(status, why));
    let call = match planned(&task.plan.cells[0].outcome) {
        Ok((_, call)) => call,
        Err(no) => return ended(no.status, &no.message),
    };
    // `None` if the user did not wait for it.
    let compiled = image?;
    let image = match launchable(compiled, |image| &image.kernels, &task.plan, call) {
        Ok(image) => image,
        Err(no) => return ended(no.status, no.detail.as_deref().unwrap_or(&no.message)),
    };
    let mut emulator = EmuBackend::new(task.plan.device.clone());
    let job = Job {
        contender: &task.contender.id,
        image,
        call,
    };
    match emulator.load(job) {
        Ok(mut loaded) => explore(task, loaded.as_mut(), settings),
        Err(failure) => ended(failure.status, &failure.message),
    }
}

/// Calls it in every schedule, unless the user asks to stop.
fn explore(
    task: &SanitizeTask,
    loaded: &mut dyn Loaded,
    settings: &SanitizeSettings,
) -> Option<SanitizedCell> {
    let shape = &task.case.shape;
    let operands = Operands::draw(
        &task.plan.round.operator,
        shape,
        Distribution::Benchmark,
        SEED,
    );
    let call_seed = CallSeed::of_call(SEED, 0);
    let oracle = Oracle::compute(&operands);
    let groups = operands.groups();
    let oracle = oracle.shuffled(call_seed.shuffle(), &operands.operator, &groups);
    let posed = operands.shuffled(call_seed.shuffle());
    let (rtol, atol) = task.plan.round.tolerance();
    let tolerance = Tolerance { rtol, atol };
    let mut log = CellLog::default();
    for &schedule in &settings.schedules {
        if interrupt::requested() {
            return None;
        }
        let ran = loaded.call(&CallInput {
            operands: &operands,
            key: &shape.name,
            call_seed,
            time_limit: settings.time_limit,
            timed: false,
            emulation: Emulation {
                schedule,
                watch: match settings.strict {
                    true => HazardWatch::Strict,
                    false => HazardWatch::All,
                },
                ..Emulation::default()
            },
        });
        let judged = ran.map(|observation| {
            let finding = examine(observation.exhibit(), &posed, &oracle, tolerance);
            (observation, finding)
        });
        log.take(schedule, judged);
    }
    Some(log.ended(task))
}

/// The results of one cell's schedules so far.
#[derive(Default)]
struct CellLog {
    reference: Option<Vec<OutputValues>>,
    hazards: Vec<Hazard>,
    failure: Option<(Status, String)>,
    deviation: Option<Deviation>,
    unwatched: u64,
    seen: u64,
}

impl CellLog {
    fn take(&mut self, schedule: u64, ran: Result<(Observation, Result<f64, Wrong>), RunFailure>) {
        let first = self.seen == 0;
        self.seen += 1;
        let (hazards, failed) = match ran {
            Err(failure) => {
                let RunFailure {
                    status,
                    message,
                    hazards,
                    ..
                } = failure;
                (hazards, Some((status, message)))
            }
            Ok((observation, finding)) => {
                let differs = match &self.reference {
                    Some(reference) => *reference != observation.outputs,
                    None => false,
                };
                self.unwatched = self.unwatched.max(observation.unwatched.0);
                if first {
                    self.reference = Some(observation.outputs);
                }
                let failed = finding.err().map(|wrong| (Status::Wrong, wrong.reason));
                if differs && failed.is_none() && self.deviation.is_none() {
                    // Sums in another order are not a mistake.
                    let what = "other bits, within tolerance".to_owned();
                    self.deviation = Some(Deviation { schedule, what });
                }
                (observation.hazards, failed)
            }
        };
        for hazard in hazards {
            add_hazard(&mut self.hazards, hazard);
        }
        if let Some((status, why)) = failed.filter(|_| self.failure.is_none()) {
            let what = format!("{status}: {why}");
            self.deviation = Some(Deviation { schedule, what });
            self.failure = Some((status, why));
        }
    }

    fn ended(self, task: &SanitizeTask) -> SanitizedCell {
        let found = self.hazards.first().map(ToString::to_string);
        let (status, reason) = match (self.failure, found) {
            (Some((status, why)), _) => (status, Some(why)),
            (None, Some(found)) => (Status::Racy, Some(found)),
            (None, None) => (Status::Ok, None),
        };
        SanitizedCell {
            reason,
            hazards: self.hazards,
            deviation: self.deviation,
            unwatched: Bytes(self.unwatched),
            ..task.ended(status, "")
        }
    }
}

/// The report on the tasks that have ended.
fn report_of(tasks: &[SanitizeTask], ended: &[OnceLock<SanitizedCell>]) -> SanitizeReport {
    let mut report = SanitizeReport::default();
    for (task, ended) in tasks.iter().zip(ended) {
        match ended.get() {
            Some(examined) => report.cells.push(examined.clone()),
            None => {
                let left = (task.contender.id.clone(), task.case.clone());
                report.left.push(left);
            }
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use dgx_core::operator::ElementType;
    use dgx_core::sanitize::synthetic::{cell, hazard};

    use super::*;

    #[test]
    fn the_first_schedule_that_differs_is_kept_and_a_failure_outranks_it() {
        let ran = |bits: u64| {
            let observation = Observation {
                outputs: vec![OutputValues::of_bits(
                    ElementType::F16,
                    std::iter::once(bits),
                )],
                ..Observation::default()
            };
            Ok((observation, Ok(0.1)))
        };
        let mut log = CellLog::default();
        for (schedule, bits) in [(0, 5), (1, 5), (2, 6), (3, 7)] {
            log.take(schedule, ran(bits));
        }
        assert_eq!(
            log.deviation.as_ref().map(|deviation| deviation.schedule),
            Some(2)
        );
        assert_eq!(log.failure, None);
        log.take(4, Err(RunFailure::hung("waits")));
        log.take(5, Err(RunFailure::crashed("dies")));
        let deviation = log.deviation.clone().unwrap();
        assert_eq!(
            (deviation.schedule, deviation.what.as_str()),
            (4, "hung: waits")
        );
    }

    #[test]
    fn a_hazard_met_in_several_schedules_is_told_once() {
        let mut log = CellLog::default();
        for schedule in 0..3 {
            let observation = Observation {
                hazards: vec![hazard(1), hazard(2)],
                ..Observation::default()
            };
            log.take(schedule, Ok((observation, Ok(0.0))));
        }
        let times: Vec<u64> = log.hazards.iter().map(|h| h.times).collect();
        assert_eq!(times, [3, 3]);
        let examined = vec![
            cell("x", Status::Ok, Status::Racy, log.hazards.clone()),
            cell("x", Status::Ok, Status::Racy, log.hazards),
        ];
        let report = SanitizeReport {
            cells: examined,
            left: Vec::new(),
        };
        let shapes: Vec<usize> = report.found().iter().map(|f| f.shapes.len()).collect();
        assert_eq!(shapes, [2, 2]);
    }
}
