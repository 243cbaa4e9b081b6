use std::time::{Duration, Instant};

use super::problems::Problems;
use super::protocol::{CellJob, Reply};
use crate::backend::{Backend, CallInput, CallSeed, Emulation, Loaded, RunFailure};
use dgx_core::domain::{Hazard, HazardWatch};

/// Calls one cell once, watched for hazards.
pub(super) fn examine(backend: &mut dyn Backend, problems: &mut Problems, job: &CellJob) -> Reply {
    match watched(backend, problems, job) {
        Ok(hazards) => Reply::Examined {
            hazards,
            left_out: None,
        },
        Err(why) => Reply::Examined {
            hazards: Vec::new(),
            left_out: Some(why),
        },
    }
}

fn watched(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &CellJob,
) -> Result<Vec<Hazard>, String> {
    let image = job.code.fetch()?;
    let settings = &job.settings;
    let distribution = settings.distributions.last().ok_or("there are no data")?;
    let key = job.problem(*distribution);
    let (operands, name) = (problems.operands(&key), key.name());
    let loaded = backend.load(job.code.job(&image));
    let mut loaded = loaded.map_err(|failure| failure.message)?;
    let data = |alone: bool, time_limit: Duration| CallInput {
        operands: &operands,
        key: &name,
        call_seed: CallSeed::of_call(settings.data_seed(), 1),
        time_limit,
        timed: false,
        emulation: Emulation {
            alone,
            ..Emulation::from(settings)
        },
    };
    let mut call = |alone, limit| hazards(loaded.as_mut(), &data(alone, limit));
    let began = Instant::now();
    let sampled = settings.hazards == HazardWatch::Some;
    let left = |found: Result<_, RunFailure>| found.map_err(|failure| failure.message);
    match call(sampled, job.time_limit) {
        // Without the other CTAs it may have waited in vain, or read unwritten memory.
        Err(_) if sampled => {
            let rest = job.time_limit.saturating_sub(began.elapsed());
            left(call(false, rest))
        }
        found => left(found),
    }
}

/// The hazards of a call, even if it fails later.
fn hazards(loaded: &mut dyn Loaded, data: &CallInput<'_>) -> Result<Vec<Hazard>, RunFailure> {
    match loaded.call(data) {
        Ok(seen) => Ok(seen.hazards),
        Err(failure) if !data.emulation.alone && !failure.hazards.is_empty() => Ok(failure.hazards),
        Err(failure) => Err(failure),
    }
}
