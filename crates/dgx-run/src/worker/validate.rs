use std::io::Write;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::calls::{CallPurpose, ScheduledCall, calls};
use super::kept_call::{KeptCall, keep};
use super::problems::{Problem, Problems};
use super::protocol::{CellJob, Judged, Reply};
use super::trace::trace;
use crate::backend::{
    Backend, CallInput, CallSeed, Emulation, Loaded, Modelled, Observation, RunFailure,
};
use crate::operator::{Operands, Oracle, ProblemKey, Recipe};
use dgx_core::domain::{BackendKind, Hazard, HazardWatch, Status, Verdict};

use crate::validate::{CallEffects, Element, PosedOperands, Tolerance, Wrong, examine};
use dgx_core::domain::Distribution;

/// An emulated call that takes longer makes its cell an expensive one.
const CHEAP: Duration = Duration::from_secs(1);
/// Calls of an expensive cell that need not be thorough.
const FEW_CALLS: usize = 2;

/// Time limit of the call that looks for the cause of a failure: a contender that is wrong on one
/// large shape may be wrong on all of them.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls one cell with every distribution until one shows it wrong, and replies with its verdict.
/// False if this process is no longer usable.
pub(super) fn judge(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &CellJob,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    let image = match job.code.fetch() {
        Ok(image) => image,
        Err(message) => {
            send(&Reply::Failed { message });
            return true;
        }
    };
    let emulated = backend.kind() == BackendKind::Emu;
    let mut state = Judging::new(job, emulated);
    let keys = job.settings.distributions.iter();
    let keys: Vec<ProblemKey> = keys.map(|d| job.problem(*d)).collect();
    // A call for its time alone needs no expected result.
    if !job.settings.time_only {
        for text in problems.solve(&keys, backend) {
            send(&Reply::Note { text });
        }
    }
    let began = Instant::now();
    // Reading a contender's code counts as its own time.
    send(&Reply::Running);
    let loaded = backend.load(job.code.job(&image));
    send(&Reply::Ran);
    match loaded {
        Ok(mut loaded) if job.settings.time_only => {
            time_only(loaded.as_mut(), job, &mut state, send);
        }
        Ok(mut loaded) => {
            call_all(loaded.as_mut(), problems, job, &mut state, send);
        }
        Err(failure) => state.fail(failure),
    }
    if state.harness {
        // Nothing is known of the contender.
        let message = state.verdict.reason.unwrap_or_default();
        send(&Reply::Failed { message });
        return false;
    }
    state.verdict.millis = began.elapsed().as_secs_f64() * 1e3;
    let fatal = state.fatal;
    send(&Reply::Judged(Judged {
        verdict: state.verdict,
        modelled: state.modelled,
        fatal,
    }));
    !fatal
}

fn call_all(
    loaded: &mut dyn Loaded,
    problems: &mut Problems,
    job: &CellJob,
    state: &mut Judging,
    send: &mut dyn FnMut(&Reply),
) {
    let thorough = job.thorough || !state.emulated;
    let cell = format!("{} on {}", job.code.contender, job.shape.name);
    let seed = job.settings.data_seed();
    let calls = calls(&job.settings.distributions, seed, &cell);
    let mut took = Duration::ZERO;
    let mut before = None;
    for (place, &planned) in calls.iter().enumerate() {
        if place >= FEW_CALLS && took > CHEAP && !thorough {
            state.verdict.unseen = unseen(&job.settings.distributions, &calls[..place]);
            break;
        }
        let problem = problems.get(&job.problem(planned.distribution));
        let call = ValidationCall {
            place,
            planned,
            problem: &problem,
            call_seed: CallSeed::of_call(seed, place as u64).with(planned.poison),
            before,
            job,
        };
        if state.verdict.status != Status::Ok {
            call.count(loaded, state, send);
            break;
        }
        let (began, used) = (Instant::now(), processor_time());
        call.make(loaded, state, send);
        // On a busy machine a cheap call may last long.
        took = took.max(began.elapsed().min(processor_time() - used));
        // The timed call is still missing. A card has no counters.
        let uncounted = state.emulated && place == 0 && !state.counted;
        match state.verdict.status {
            Status::Ok => {}
            Status::Wrong | Status::Racy if uncounted => {}
            _ => break,
        }
        before = Some((planned.distribution, call.call_seed));
    }
}

/// The processor time of this process.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The distributions that none of these calls was made with.
fn unseen(all: &[Distribution], calls: &[ScheduledCall]) -> Vec<Distribution> {
    let seen = |d: &&Distribution| calls.iter().any(|call| call.distribution == **d);
    all.iter().filter(|d| !seen(d)).copied().collect()
}

/// One of a validation's calls.
struct ValidationCall<'a> {
    place: usize,
    planned: ScheduledCall,
    problem: &'a Problem,
    call_seed: CallSeed,
    /// The data of the call before this one.
    before: Option<(Distribution, CallSeed)>,
    job: &'a CellJob,
}

impl ValidationCall<'_> {
    fn data(&self, watch: HazardWatch, time_limit: Duration) -> CallInput<'_> {
        let emulation = Emulation::from(&self.job.settings);
        CallInput {
            operands: &self.problem.operands,
            key: &self.problem.name,
            call_seed: self.call_seed,
            time_limit,
            timed: watch == HazardWatch::Off && self.planned.purpose == CallPurpose::Time,
            emulation: Emulation {
                schedule: emulation.schedule.wrapping_add(self.planned.schedule),
                mirrored: self.planned.mirrored,
                watch,
                ..emulation
            },
        }
    }

    /// Sums of exact data are exact, and so is their comparison.
    fn tolerance(&self) -> Tolerance {
        let operator = &self.job.operator;
        let exact = (self.planned.distribution == Distribution::Exact)
            .then(|| Recipe::of(operator))
            .flatten();
        match exact.is_some_and(|recipe| recipe.is_sum(operator)) {
            true => Tolerance::of_rounding(&operator.outputs[0]),
            false => Tolerance::from(&self.job.settings),
        }
    }

    /// Makes the call only for its counters: they repeat from run to run only with the schedule of
    /// the timed call.
    fn count(&self, loaded: &mut dyn Loaded, state: &mut Judging, send: &mut dyn FnMut(&Reply)) {
        let data = self.data(HazardWatch::Off, self.job.time_limit);
        match self.call(loaded, &data, send) {
            Ok(observation) => state.verdict.counters = observation.counters,
            // The verdict is already known.
            Err(failure) => state.fatal |= failure.fatal,
        }
    }

    /// Every call of a validation; `cargo bench --bench default_job` counts the lines.
    fn call(
        &self,
        loaded: &mut dyn Loaded,
        data: &CallInput<'_>,
        send: &mut dyn FnMut(&Reply),
    ) -> Result<Observation, RunFailure> {
        let job = self.job;
        trace(|| format!("call {} on {}", job.code.contender, job.shape.name));
        send(&Reply::Running);
        let ran = loaded.call(data);
        send(&Reply::Ran);
        ran
    }

    fn make(&self, loaded: &mut dyn Loaded, state: &mut Judging, send: &mut dyn FnMut(&Reply)) {
        let job = self.job;
        let watch = match self.planned.purpose {
            CallPurpose::Hazards => state.watch,
            CallPurpose::Time | CallPurpose::Result => HazardWatch::Off,
        };
        let ran = self.call(loaded, &self.data(watch, job.time_limit), send);
        let (said, returned) = match &ran {
            Ok(observation) => (observation.printed.clone(), true),
            Err(failure) => (failure.printed.to_string(), false),
        };
        let first = state.take(ran, self);
        if let Some(request) = &job.keep {
            // The search repeats the call; a call that does not return is not repeated.
            send(&Reply::Running);
            let data = self.data(HazardWatch::Off, job.time_limit);
            let element = first.map(|first| at(first, self.problem));
            let note = KeptCall {
                call: self.place,
                distribution: self.planned.distribution,
                call_seed: self.call_seed,
                before: self.before,
                printed: said,
                search: None,
                buffers: Vec::new(),
                missing: None,
            };
            keep(
                request,
                &job.operator,
                loaded,
                note,
                |loaded| match returned {
                    true => loaded.search(&data, element),
                    false => None,
                },
            );
            send(&Reply::Ran);
        }
        if let Some(closer) = state.closer(job).filter(|closer| *closer != watch) {
            // Repeated, to find the cause.
            let limit = job.time_limit.min(PATIENCE);
            state.add_hazards(match self.call(loaded, &self.data(closer, limit), send) {
                Ok(observation) => observation.hazards,
                Err(failure) => failure.hazards,
            });
        }
    }
}

/// An element's group, and its index there.
fn at(element: Element, problem: &Problem) -> (usize, usize) {
    let columns = problem.oracle.groups[element.group].columns;
    (element.group, element.row * columns + element.column)
}

/// One call for its time. Its output is incomplete and not checked.
fn time_only(
    loaded: &mut dyn Loaded,
    job: &CellJob,
    state: &mut Judging,
    send: &mut dyn FnMut(&Reply),
) {
    let Some(&distribution) = job.settings.distributions.first() else {
        return;
    };
    // A kernel's path does not depend on its elements, and its results are not checked.
    let operands = Operands::blank(&job.operator, &job.shape);
    send(&Reply::Running);
    let ran = loaded.call(&CallInput {
        operands: &operands,
        key: &job.problem(distribution).name(),
        call_seed: CallSeed::of_call(job.settings.data_seed(), 0),
        time_limit: job.time_limit,
        timed: true,
        emulation: Emulation::from(&job.settings),
    });
    send(&Reply::Ran);
    state.verdict.status = Status::NotValidated;
    match ran {
        Ok(observation) => state.time(observation.modelled),
        Err(failure) => state.fail(failure),
    }
}

/// The verdict so far.
struct Judging {
    verdict: Verdict,
    emulated: bool,
    /// How closely calls are watched for hazards; `Off` on a card.
    watch: HazardWatch,
    /// The cause of a wrong result is known.
    caused: bool,
    /// The timed call was made.
    counted: bool,
    modelled: Option<Modelled>,
    fatal: bool,
    /// Something failed that is not the contender's fault.
    harness: bool,
}

impl Judging {
    fn new(job: &CellJob, emulated: bool) -> Self {
        Self {
            verdict: Verdict::new(&job.code.contender, &job.shape.name, Status::Ok),
            emulated,
            watch: match emulated {
                true => job.settings.hazards,
                false => HazardWatch::Off,
            },
            caused: false,
            counted: false,
            modelled: None,
            fatal: false,
            harness: false,
        }
    }

    fn fail(&mut self, failure: RunFailure) {
        // Where a GPU's kernels print to. A failed write does not matter.
        let _ = std::io::stdout().write_all(failure.printed.as_bytes());
        self.verdict.status = failure.status;
        self.verdict.reason = Some(failure.message);
        self.verdict.detail = failure.detail;
        self.fatal = failure.fatal;
        self.harness = failure.harness;
        self.add_hazards(failure.hazards);
    }

    /// How closely a failure is to be watched when the call is repeated; `None` if that would show
    /// nothing. The CTAs of a sample may not include the cause of a wrong result.
    fn closer(&self, job: &CellJob) -> Option<HazardWatch> {
        let watch = self.watch;
        let unexplained = !self.caused && self.verdict.hazards.is_empty();
        match self.verdict.status {
            _ if watch == HazardWatch::Off => None,
            Status::Wrong if unexplained && job.expected != Status::Wrong => Some(match watch {
                HazardWatch::Some => HazardWatch::All,
                whole => whole,
            }),
            Status::Wrong | Status::Crashed => Some(watch),
            _ => None,
        }
    }

    /// Adds hazards: as the reason if the result is correct, as the likely cause if it is wrong.
    fn add_hazards(&mut self, hazards: Vec<Hazard>) {
        self.verdict.add_hazards(hazards);
    }

    fn time(&mut self, modelled: Option<Result<Modelled, String>>) {
        match modelled.transpose() {
            Ok(modelled) => {
                let remark = modelled
                    .as_ref()
                    .and_then(|modelled| modelled.remark.clone());
                self.verdict.reason = remark.or(self.verdict.reason.take());
                self.modelled = modelled;
            }
            Err(why) => self.verdict.reason = Some(format!("no time can be modelled: {why}")),
        }
    }

    /// Adds the result of a call; returns the first wrong element, if there is one.
    fn take(
        &mut self,
        ran: Result<Observation, RunFailure>,
        call: &ValidationCall<'_>,
    ) -> Option<Element> {
        let observation = match ran {
            Ok(observation) => observation,
            Err(failure) => {
                self.fail(failure);
                return None;
            }
        };
        let _ = std::io::stdout().write_all(observation.printed.as_bytes());
        let tolerance = call.tolerance();
        let judge = |exhibit: CallEffects<'_>, operands: &dyn PosedOperands, oracle: &Oracle| {
            examine(exhibit, operands, oracle, tolerance)
        };
        let exhibit = observation.exhibit();
        let finding = call
            .problem
            .judged(exhibit, call.call_seed, tolerance, judge);
        let (cause, hazards) = (observation.read_early, observation.hazards);
        // The timed call represents the cell: its counters and time are compared between
        // contenders. A wrong design is counted too, but has no time.
        if call.planned.purpose == CallPurpose::Time {
            self.counted = true;
            self.verdict.counters = observation.counters;
            if finding.is_ok() {
                self.time(observation.modelled);
            }
        }
        let first = match finding {
            Ok(worst) => {
                let so_far = self.verdict.worst.unwrap_or(0.0);
                self.verdict.worst = Some(so_far.max(worst));
                None
            }
            Err(Wrong {
                reason,
                detail,
                worst,
                first,
            }) => {
                self.verdict.status = Status::Wrong;
                let distribution = call.planned.distribution;
                let mut reason = format!("{reason} ({distribution} data)");
                let mut explanation = detail;
                if let Some(cause) = cause {
                    self.caused = true;
                    let cause = format!("cause: {cause}");
                    reason = format!("{reason}; {cause}");
                    explanation =
                        Some(explanation.map_or(cause.clone(), |s| format!("{cause}\n{s}")));
                }
                self.verdict.reason = Some(reason);
                self.verdict.detail = explanation;
                self.verdict.worst = worst;
                first
            }
        };
        self.add_hazards(hazards);
        first
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operator::OutputValues;
    use crate::plan::OperatorCall;
    use crate::worker::CellCode;
    use dgx_core::domain::{ContenderId, Shape};
    use dgx_core::operator::ElementType;
    use dgx_core::record::schema::Settings;
    use dgx_core::record::synthetic::group;

    /// Gives a wrong result whenever it returns, and counts its timed call.
    struct Stub {
        calls: usize,
        second: Option<RunFailure>,
    }

    impl Loaded for Stub {
        fn call(&mut self, data: &CallInput<'_>) -> Result<Observation, RunFailure> {
            self.calls += 1;
            if let Some(failure) = self.second.clone().filter(|_| self.calls == 2) {
                return Err(failure);
            }
            let counted = data.timed.then(|| ("loads".to_owned(), 1.0));
            Ok(Observation {
                outputs: vec![OutputValues::rounded(
                    ElementType::F16,
                    [1.0; 128].into_iter(),
                )],
                counters: BTreeMap::from_iter(counted),
                ..Observation::default()
            })
        }
    }

    fn judged(stub: &mut Stub, seed: u64, emulated: bool) -> Judging {
        let folder = tempfile::tempdir().unwrap();
        let (m, n, k) = (1, 128, 256);
        let job = CellJob {
            code: CellCode {
                contender: ContenderId::new("x", &BTreeMap::new()),
                image: folder.path().to_owned(),
                call: OperatorCall::default(),
            },
            operator: dgx_core::operator::default_operator().clone(),
            shape: Shape {
                name: "s".to_owned(),
                groups: vec![group(m, n, k)],
            },
            settings: Settings {
                distributions: Distribution::USUAL.to_vec(),
                seed,
                rtol: 1e-3,
                atol: 1e-3,
                ..Settings::default()
            },
            time_limit: PATIENCE,
            thorough: true,
            expected: Status::Ok,
            keep: None,
        };
        let mut state = Judging::new(&job, emulated);
        let mut problems = Problems::new(folder.path());
        call_all(stub, &mut problems, &job, &mut state, &mut |_| {});
        state
    }

    #[test]
    fn what_is_wrong_is_counted_in_the_emulator_and_called_no_more_on_a_card() {
        for seed in 0..8 {
            let mut stub = Stub {
                calls: 0,
                second: None,
            };
            let state = judged(&mut stub, seed, true);
            assert_eq!(state.verdict.status, Status::Wrong);
            assert_eq!(state.verdict.counters.len(), 1, "seed {seed}");
            let mut stub = Stub {
                calls: 0,
                second: None,
            };
            judged(&mut stub, seed, false);
            assert_eq!(stub.calls, 1, "seed {seed}");
        }
    }

    #[test]
    fn a_call_for_counters_that_fails_leaves_the_verdict() {
        let mut fatal = 0;
        for seed in 0..8 {
            let mut stub = Stub {
                calls: 0,
                second: Some(RunFailure::crashed("gone")),
            };
            let state = judged(&mut stub, seed, true);
            assert_eq!(state.verdict.status, Status::Wrong);
            let reason = state.verdict.reason.unwrap();
            assert!(!reason.contains("gone"), "{reason}");
            assert_eq!(state.fatal, stub.calls == 2);
            fatal += usize::from(state.fatal);
        }
        assert!((1..8).contains(&fatal), "{fatal}");
    }

    #[test]
    fn a_cell_of_long_calls_says_which_data_it_did_not_see() {
        for seed in 0..8 {
            let calls = calls(&Distribution::USUAL, seed, "x on s");
            let left = unseen(&Distribution::USUAL, &calls[..FEW_CALLS]);
            assert_eq!(left.len(), 1, "{left:?}");
            assert_eq!(unseen(&Distribution::USUAL, &calls), []);
        }
    }

    #[test]
    fn the_harness_failed_and_not_the_contender() {
        let mut stub = Stub {
            calls: 1,
            second: Some(RunFailure::harness("no SM was met")),
        };
        assert!(judged(&mut stub, 1, false).harness);
    }
}
