use std::time::{Duration, Instant};

use super::problems::Problems;
use super::protocol::{ProblemKey, Reply, ValidateJob};
use crate::backend::{Backend, Data, Emulation, Job, Loaded, RunFailure, Salt};
use crate::compile::Cache;
use dgx_core::domain::{Hazard, Watch};

/// Calls one cell once, watched for hazards.
pub(super) fn examine(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &ValidateJob,
) -> Reply {
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
    job: &ValidateJob,
) -> Result<Vec<Hazard>, String> {
    let image = Cache::fetch(&job.image).map_err(|e| e.to_string())??;
    let distribution = job.distributions.last().ok_or("there are no data")?;
    let key = ProblemKey {
        shape: job.shape.clone(),
        distribution: *distribution,
        seed: job.seed,
    };
    let (operands, name) = (problems.operands(&key), key.name());
    let call = Job {
        contender: &job.contender,
        image: &image,
        call: &job.call,
    };
    let mut loaded = backend.load(call).map_err(|failure| failure.message)?;
    let data = |alone: bool, time_limit: Duration| Data {
        operands: &operands,
        key: &name,
        salt: Salt::of_call(job.seed, 1),
        time_limit,
        timed: false,
        emulation: Emulation {
            alone,
            ..job.emulation
        },
    };
    let mut call = |alone, limit| hazards(loaded.as_mut(), &data(alone, limit));
    let began = Instant::now();
    let sampled = job.emulation.watch == Watch::Some;
    let left = |found: Result<_, RunFailure>| found.map_err(|failure| failure.message);
    match call(sampled, job.time_limit) {
        // Without the other CTAs it may have waited for what never came, or
        // read what nobody had written.
        Err(_) if sampled => {
            let rest = job.time_limit.saturating_sub(began.elapsed());
            left(call(false, rest))
        }
        found => left(found),
    }
}

/// What a call shows, also one that fails after it has shown something.
fn hazards(loaded: &mut dyn Loaded, data: &Data<'_>) -> Result<Vec<Hazard>, RunFailure> {
    match loaded.call(data) {
        Ok(seen) => Ok(seen.hazards),
        Err(failure) if !data.emulation.alone && !failure.hazards.is_empty() => Ok(failure.hazards),
        Err(failure) => Err(failure),
    }
}
