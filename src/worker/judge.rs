use std::time::Instant;

use super::problems::{Problem, Problems};
use super::protocol::{ProblemKey, Reply, Tolerance, ValidateJob};
use crate::backend::{Backend, Job, Modelled, Observation, RunFailure};
use crate::compile::{Cache, Image};
use crate::domain::Status;
use crate::record::schema::Verdict;
use crate::validate::{self, Judgement};

/// What one output shows.
pub enum Finding {
    /// Right; the largest error over its tolerance.
    Right { worst: f64 },
    Wrong {
        reason: String,
        detail: Option<String>,
        worst: Option<f64>,
    },
}

/// Holds a run against the oracle, and against what it may touch.
pub fn examine(observation: &Observation, problem: &Problem, tolerance: Tolerance) -> Finding {
    if let Some(first) = observation.trespasses.first() {
        let all: Vec<String> = observation
            .trespasses
            .iter()
            .map(ToString::to_string)
            .collect();
        return Finding::Wrong {
            reason: first.to_string(),
            detail: (all.len() > 1).then(|| all.join("\n")),
            worst: None,
        };
    }
    let tolerance = validate::Tolerance {
        rtol: tolerance.rtol,
        atol: tolerance.atol,
    };
    match validate::judge(
        &observation.c,
        &problem.operands,
        &problem.oracle,
        tolerance,
    ) {
        Judgement::Right { worst } => Finding::Right { worst },
        Judgement::Wrong(mismatch) => Finding::Wrong {
            reason: mismatch.reason(),
            detail: Some(mismatch.detail()),
            // JSON has no infinity: NaN in the output is past any number.
            worst: Some(mismatch.worst.min(f64::MAX)),
        },
    }
}

/// Runs one cell on every distribution until one shows it wrong, and answers
/// with its verdict. False when this process can do nothing more.
pub fn judge(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &ValidateJob,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    let image = match Cache::read(&job.image) {
        Ok(Ok(image)) => image,
        Ok(Err(message)) => return unreadable(job, &message, send),
        Err(error) => return unreadable(job, &error.to_string(), send),
    };
    let mut state = Judging {
        verdict: Verdict {
            contender: job.contender.clone(),
            shape: job.shape.name.clone(),
            status: Status::Ok,
            reason: None,
            detail: None,
            worst: None,
            millis: 0.0,
            counters: Default::default(),
        },
        modelled: None,
        fatal: false,
    };
    let began = Instant::now();
    for &distribution in &job.distributions {
        let problem = problems.get(&ProblemKey {
            shape: job.shape.clone(),
            distribution,
            seed: job.seed,
        });
        send(&Reply::Running);
        let ran = run(backend, &image, job, &problem);
        send(&Reply::Ran);
        state.take(ran, &problem, distribution.as_str(), job.tolerance);
        if state.verdict.status != Status::Ok {
            break;
        }
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

fn run(
    backend: &mut dyn Backend,
    image: &Image,
    job: &ValidateJob,
    problem: &Problem,
) -> Result<Observation, RunFailure> {
    backend.run(&Job {
        image,
        call: &job.call,
        operands: &problem.operands,
        operands_key: &problem.name,
        time_limit: job.time_limit,
        emulation: job.emulation,
    })
}

fn unreadable(job: &ValidateJob, why: &str, send: &mut dyn FnMut(&Reply)) -> bool {
    let message = format!("cannot read the image of {}: {why}", job.contender);
    send(&Reply::Failed { message });
    true
}

/// A verdict in the making.
struct Judging {
    verdict: Verdict,
    modelled: Option<Modelled>,
    fatal: bool,
}

impl Judging {
    fn take(
        &mut self,
        ran: Result<Observation, RunFailure>,
        problem: &Problem,
        distribution: &str,
        tolerance: Tolerance,
    ) {
        let observation = match ran {
            Ok(observation) => observation,
            Err(failure) => {
                self.verdict.status = failure.status;
                self.verdict.reason = Some(failure.message);
                self.verdict.detail = failure.detail;
                self.fatal = failure.fatal;
                return;
            }
        };
        let finding = examine(&observation, problem, tolerance);
        let cause = observation.read_early;
        // The first distribution speaks for the call: its counters and time are
        // the ones compared between contenders. What a wrong design did is
        // counted too, but it has no time.
        if self.modelled.is_none() && self.verdict.counters.is_empty() {
            self.verdict.counters = observation.counters;
            if matches!(finding, Finding::Right { .. }) {
                self.modelled = observation.modelled;
            }
        }
        match finding {
            Finding::Right { worst } => {
                let so_far = self.verdict.worst.unwrap_or(0.0);
                self.verdict.worst = Some(so_far.max(worst));
            }
            Finding::Wrong {
                reason,
                detail,
                worst,
            } => {
                self.verdict.status = Status::Wrong;
                let mut reason = format!("{reason} ({distribution} data)");
                let mut story = detail;
                if let Some(cause) = cause {
                    let cause = format!("read too early: {cause}");
                    reason = format!("{reason}; {cause}");
                    story = Some(story.map_or(cause.clone(), |s| format!("{cause}\n{s}")));
                }
                self.verdict.reason = Some(reason);
                self.verdict.detail = story;
                self.verdict.worst = worst;
            }
        }
    }
}
