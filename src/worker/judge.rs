use std::io::Write;
use std::time::{Duration, Instant};

use super::keep::{Kept, keep};
use super::problems::{Problem, Problems};
use super::protocol::{ProblemKey, Reply, ValidateJob};
use crate::backend::{
    Backend, Data, Emulation, Job, Loaded, Modelled, Observation, RunFailure, Salt,
};
use crate::compile::Cache;
use crate::domain::{Hazard, Status, Verdict, Watch};
use crate::operator::{Distribution, Operands};
use crate::validate::{self, Element, Exhibit, Finding, Tolerance, Wrong};

/// Calls of a validation at the least: what the first leaves behind, in the
/// variables of its module or elsewhere, is there for the second to stumble
/// over.
const LEAST_CALLS: usize = 2;

/// How long the call may take that looks for the cause of a failure: whoever is wrong on large
/// shapes may be wrong on all of them.
const PATIENCE: Duration = Duration::from_secs(20);

/// Holds a run against the oracle, and against what it may touch.
pub(super) fn examine(
    observation: &Observation,
    problem: &Problem,
    tolerance: Tolerance,
) -> Finding {
    let trespasses = words(observation);
    let exhibit = Exhibit {
        c: &observation.c,
        trespasses: &trespasses,
    };
    validate::examine(exhibit, &problem.operands, &problem.oracle, tolerance)
}

/// What a run changed and should not have.
pub(super) fn words(observation: &Observation) -> Vec<String> {
    let trespasses = observation.trespasses.iter();
    trespasses.map(ToString::to_string).collect()
}

/// Calls one cell with every distribution until one shows it wrong, and answers
/// with its verdict. False when this process can do nothing more.
pub(super) fn judge(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &ValidateJob,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    let image = match Cache::fetch(&job.image) {
        Ok(Ok(image)) => image,
        Ok(Err(message)) => return unreadable(job, &message, send),
        Err(error) => return unreadable(job, &error.to_string(), send),
    };
    let mut state = Judging {
        verdict: Verdict::new(&job.contender, &job.shape.name, Status::Ok),
        caused: false,
        modelled: None,
        fatal: false,
    };
    let began = Instant::now();
    // Reading a contender's code is its own time as well.
    send(&Reply::Running);
    let loaded = backend.load(Job {
        contender: &job.contender,
        image: &image,
        call: &job.call,
    });
    send(&Reply::Ran);
    match loaded {
        Ok(mut loaded) if job.emulation.time_only => {
            time_only(loaded.as_mut(), job, &mut state, send);
        }
        Ok(mut loaded) => call_all(loaded.as_mut(), problems, job, &mut state, send),
        Err(failure) => state.fail(failure),
    }
    state.verdict.millis = began.elapsed().as_secs_f64() * 1e3;
    let fatal = state.fatal;
    send(&Reply::Judged {
        verdict: state.verdict,
        modelled: state.modelled,
        fatal,
    });
    !fatal
}

/// The distributions of a validation's calls, one after another.
fn calls(distributions: &[Distribution]) -> impl Iterator<Item = Distribution> {
    let count = match distributions.len() {
        0 => 0,
        some => some.max(LEAST_CALLS),
    };
    distributions.iter().copied().cycle().take(count)
}

fn call_all(
    loaded: &mut dyn Loaded,
    problems: &mut Problems,
    job: &ValidateJob,
    state: &mut Judging,
    send: &mut dyn FnMut(&Reply),
) {
    for (place, distribution) in calls(&job.distributions).enumerate() {
        let problem = problems.get(&ProblemKey {
            shape: job.shape.clone(),
            distribution,
            seed: job.seed,
        });
        let data = |watch: Watch, time_limit: Duration| Data {
            operands: &problem.operands,
            key: &problem.name,
            salt: Salt::of_call(job.seed, place as u64),
            time_limit,
            emulation: Emulation {
                // Every call in another order: what one hides, the next may show.
                schedule: job.emulation.schedule.wrapping_add(place as u64),
                watch,
                ..job.emulation
            },
        };
        let call = |loaded: &mut dyn Loaded, data: Data<'_>, send: &mut dyn FnMut(&Reply)| {
            send(&Reply::Running);
            let ran = loaded.call(&data);
            send(&Reply::Ran);
            ran
        };
        // The first is timed.
        let watch = match place {
            0 => Watch::Off,
            _ => job.emulation.watch,
        };
        let ran = call(loaded, data(watch, job.time_limit), send);
        let (said, returned) = match &ran {
            Ok(observation) => (observation.printed.clone(), true),
            Err(failure) => (failure.printed.to_string(), false),
        };
        let first = state.take(ran, &problem, distribution.as_str(), job.tolerance);
        if let Some(wish) = &job.keep {
            // Searching calls it once more; one that does not return is not
            // asked again.
            send(&Reply::Running);
            let data = data(Watch::Off, job.time_limit);
            let element = first.map(|first| at(first, &problem));
            let note = Kept::new(place, distribution, data.salt, said);
            keep(wish, loaded, note, |loaded| match returned {
                true => loaded.search(&data, element),
                false => None,
            });
            send(&Reply::Ran);
        }
        if let Some(closer) = state.closer(job).filter(|closer| *closer != watch) {
            // The same once more, to find out why.
            let limit = job.time_limit.min(PATIENCE);
            state.blame(match call(loaded, data(closer, limit), send) {
                Ok(observation) => observation.hazards,
                Err(failure) => failure.hazards,
            });
        }
        if state.verdict.status != Status::Ok {
            break;
        }
    }
}

/// An element's group, and its place there.
fn at(element: Element, problem: &Problem) -> (usize, usize) {
    let columns = problem.operands.groups[element.group].group.n as usize;
    (element.group, element.row * columns + element.column)
}

/// One call for its time. What it computes is not looked at, nor is it whole.
fn time_only(
    loaded: &mut dyn Loaded,
    job: &ValidateJob,
    state: &mut Judging,
    send: &mut dyn FnMut(&Reply),
) {
    let Some(&distribution) = job.distributions.first() else {
        return;
    };
    let key = ProblemKey {
        shape: job.shape.clone(),
        distribution,
        seed: job.seed,
    };
    // Where a kernel goes does not depend on its elements, and nobody looks at what it makes of them.
    let operands = Operands::blank(&job.shape);
    send(&Reply::Running);
    let ran = loaded.call(&Data {
        operands: &operands,
        key: &key.name(),
        salt: Salt::of_call(job.seed, 0),
        time_limit: job.time_limit,
        emulation: job.emulation,
    });
    send(&Reply::Ran);
    state.verdict.status = Status::NotValidated;
    match ran {
        Ok(observation) => state.time(observation.modelled),
        Err(failure) => state.fail(failure),
    }
}

fn unreadable(job: &ValidateJob, why: &str, send: &mut dyn FnMut(&Reply)) -> bool {
    let message = format!("cannot read the image of {}: {why}", job.contender);
    send(&Reply::Failed { message });
    true
}

/// A verdict in the making.
struct Judging {
    verdict: Verdict,
    /// A wrong result's cause is known.
    caused: bool,
    modelled: Option<Modelled>,
    fatal: bool,
}

impl Judging {
    fn fail(&mut self, failure: RunFailure) {
        // Where a GPU's kernels print to. What cannot be said is not missed.
        let _ = std::io::stdout().write_all(failure.printed.as_bytes());
        self.verdict.status = failure.status;
        self.verdict.reason = Some(failure.message);
        self.verdict.detail = failure.detail;
        self.fatal = failure.fatal;
        self.blame(failure.hazards);
    }

    /// How closely a failure is to be watched when it is called once more; not at all where that
    /// would tell nothing. The CTAs of a sample may all be innocent of a wrong result.
    fn closer(&self, job: &ValidateJob) -> Option<Watch> {
        let watch = job.emulation.watch;
        let unexplained = !self.caused && self.verdict.hazards.is_empty();
        match self.verdict.status {
            _ if watch == Watch::Off => None,
            Status::Wrong if unexplained && job.expected != Status::Wrong => Some(match watch {
                Watch::Some => Watch::All,
                whole => whole,
            }),
            Status::Wrong | Status::Crashed => Some(watch),
            _ => None,
        }
    }

    /// Adds what was found to what is known already: as the reason of what is
    /// right in spite of it, as the likely cause of what is not.
    fn blame(&mut self, hazards: Vec<Hazard>) {
        self.verdict.blame(hazards);
    }

    fn time(&mut self, modelled: Option<Result<Modelled, String>>) {
        match modelled.transpose() {
            Ok(modelled) => self.modelled = modelled,
            Err(why) => self.verdict.reason = Some(format!("no time can be modelled: {why}")),
        }
    }

    /// Takes in what a call did; the first wrong element, if there is one.
    fn take(
        &mut self,
        ran: Result<Observation, RunFailure>,
        problem: &Problem,
        distribution: &str,
        tolerance: Tolerance,
    ) -> Option<Element> {
        let observation = match ran {
            Ok(observation) => observation,
            Err(failure) => {
                self.fail(failure);
                return None;
            }
        };
        let _ = std::io::stdout().write_all(observation.printed.as_bytes());
        let finding = examine(&observation, problem, tolerance);
        let (cause, hazards) = (observation.read_early, observation.hazards);
        // The first distribution speaks for the call: its counters and time are
        // the ones compared between contenders. What a wrong design did is
        // counted too, but it has no time.
        if self.modelled.is_none() && self.verdict.counters.is_empty() {
            self.verdict.counters = observation.counters;
            if matches!(finding, Finding::Right { .. }) {
                self.time(observation.modelled);
            }
        }
        let first = match finding {
            Finding::Right { worst } => {
                let so_far = self.verdict.worst.unwrap_or(0.0);
                self.verdict.worst = Some(so_far.max(worst));
                None
            }
            Finding::Wrong(Wrong {
                reason,
                detail,
                worst,
                first,
            }) => {
                self.verdict.status = Status::Wrong;
                let mut reason = format!("{reason} ({distribution} data)");
                let mut story = detail;
                if let Some(cause) = cause {
                    self.caused = true;
                    let cause = format!("cause: {cause}");
                    reason = format!("{reason}; {cause}");
                    story = Some(story.map_or(cause.clone(), |s| format!("{cause}\n{s}")));
                }
                self.verdict.reason = Some(reason);
                self.verdict.detail = story;
                self.verdict.worst = worst;
                first
            }
        };
        self.blame(hazards);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_validation_calls_twice_at_least() {
        let names = |distributions: &[Distribution]| -> Vec<&str> {
            calls(distributions).map(Distribution::as_str).collect()
        };
        assert_eq!(names(&Distribution::ALL), ["benchmark", "full"]);
        assert_eq!(names(&[Distribution::Full]), ["full", "full"]);
    }
}
