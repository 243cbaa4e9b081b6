//! What a profile is compared with: the same cell in a run, or in another profile.

use std::path::Path;

use serde::Deserialize;

use crate::cli::runs;
use crate::present::signed_percent;
use dgx_core::decode::plain_in_line;
use dgx_core::diagnostic::{CommandError, InputError, SourceFile};
use dgx_core::domain::{ContenderId, Micros, Timing, typed};
use dgx_core::rank::{Ranking, Timed};
use dgx_run::profile::{ProfiledCell, StageTime};

/// The same cell in a run file or in another profile.
pub(super) struct ReferenceCell {
    pub timing: Timing,
    pub micros: Micros,
    /// Empty unless a profile wrote the file.
    pub stages: Vec<StageTime>,
    on: String,
    file: String,
}

/// The fields of a profile's `--json` that are read again.
#[derive(Deserialize)]
struct ProfileFile {
    profiles: Vec<ReadProfile>,
}

#[derive(Deserialize)]
struct ReadProfile {
    contender: ContenderId,
    shape: String,
    timing: Timing,
    target: String,
    micros: Micros,
    stages: Vec<StageTime>,
}

impl ReferenceCell {
    pub(super) fn read(
        path: &Path,
        contender: &ContenderId,
        shape: &str,
    ) -> Result<Self, CommandError> {
        match path.extension().is_some_and(|end| end == "json") {
            true => Self::of_profile(path, contender, shape),
            false => Self::of_run(path, contender, shape),
        }
    }

    /// Takes the measured profile if the file has both kinds.
    fn of_profile(path: &Path, contender: &ContenderId, shape: &str) -> Result<Self, CommandError> {
        let remedy = "name a file that `dgx profile --json` wrote, or a run (.jsonl)";
        let file = SourceFile::read(path, "profile", remedy)?;
        let wrong = |why: String| InputError::new(format!("{}: {why}", path.display()), remedy);
        let written: ProfileFile = serde_json::from_str(&file.text).map_err(|e| {
            let (line, why) = (e.line(), plain_in_line(&e));
            InputError::new(format!("{}:{line}: {why}", path.display()), remedy)
        })?;
        let measured = |p: &&ReadProfile| p.timing == Timing::Measured;
        let first = written.profiles.iter().find(measured);
        let found = first.or(written.profiles.first());
        let found = found.ok_or_else(|| wrong("it has no profiles".to_owned()))?;
        let (has, wanted) = (
            (found.contender.as_str(), found.shape.as_str()),
            (contender.as_str(), shape),
        );
        if has != wanted {
            return Err(wrong(format!(
                "it is of {} on {}, not of {} on {}",
                has.0, has.1, wanted.0, wanted.1
            ))
            .into());
        }
        if !(found.micros.0.is_finite() && found.micros.0 > 0.0) {
            return Err(wrong(format!("{} µs is not a time", found.micros.0)).into());
        }
        Ok(Self {
            timing: found.timing,
            micros: found.micros,
            stages: found.stages.clone(),
            on: found.target.clone(),
            file: path.display().to_string(),
        })
    }

    fn of_run(path: &Path, contender: &ContenderId, shape: &str) -> Result<Self, CommandError> {
        let run = runs::load(Some(path))?;
        let id = runs::contender(&run, contender.as_str())?;
        let missing = |what: String| {
            let remedy = format!("`dgx show {}` prints what it has", typed(path));
            InputError::new(format!("{what} in {}", path.display()), remedy)
        };
        let shapes = &run.header.shapes;
        if !shapes.iter().any(|known| known.name == shape) {
            return Err(missing(format!("there is no shape `{shape}`")).into());
        }
        let ranking = Ranking::of(&run);
        let time = ranking.cell(&id, shape).and_then(|cell| cell.time.as_ref());
        let time = time.ok_or_else(|| missing(format!("{id} has no time on {shape}")))?;
        Ok(Self {
            micros: Timed::estimate(time),
            timing: run.timing(),
            stages: Vec::new(),
            on: run.header.device.name.clone(),
            file: path.display().to_string(),
        })
    }

    /// Both whole times in one sentence.
    pub(super) fn sentence(&self, profile: &ProfiledCell) -> String {
        let Self {
            micros,
            timing,
            on,
            file,
            ..
        } = self;
        let ratio = |a: Micros, b: Micros| signed_percent(a.0 / b.0 - 1.0);
        let off = match (profile.timing, timing) {
            (Timing::Modelled, Timing::Modelled) | (Timing::Measured, Timing::Measured) => {
                format!("this one differs by {}", ratio(profile.micros, *micros))
            }
            (Timing::Modelled, _) => {
                format!("the model is off by {}", ratio(profile.micros, *micros))
            }
            _ => format!("it is off by {}", ratio(*micros, profile.micros)),
        };
        format!(
            "{file} has {micros} µs ({} on {on}): {off}.",
            timing.as_str()
        )
    }
}
