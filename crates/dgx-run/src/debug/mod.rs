//! Everything known about one cell: how and where a call is wrong, its memory afterwards, and its
//! code. This module gathers the findings; `present` puts them in words, `dump` and `emit` write
//! files.

mod dump;
mod emit;
mod npy;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::backend::CallSeed;
use crate::compile::Compiler;
use crate::operator::{Operands, Oracle, OutputValues, ProblemKey};
use crate::sweep::{Bar, CompiledCell, Progress, Runner};
use crate::validate::{Tolerance, WrongOutput, explain_wrong};
use crate::worker::{KeepRequest, KeptCall, answers};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{BackendKind, Device, Distribution, Status, Verdict};
use dgx_core::operator::Operator;
use dgx_core::record::schema::Settings;

pub use dump::{Dump, DumpFormat, DumpItem};
pub use emit::{CodeKind, emit};

/// The findings of one backend on a cell.
pub struct Diagnosis {
    pub backend: BackendKind,
    pub device: Device,
    pub verdict: Verdict,
    /// The call that decided the verdict.
    pub call: Option<CapturedCall>,
    /// The verdict on each distribution alone, if the cell's verdict came before all were tried.
    pub others: Vec<(Distribution, Verdict)>,
    /// Keeps the files of the call as long as they may be needed.
    pub folder: TempDir,
}

/// A call, and its buffers.
pub struct CapturedCall {
    pub kept: KeptCall,
    pub operands: Operands,
    pub oracle: Oracle,
    /// How C is wrong, if it is.
    pub wrong_output: Option<WrongOutput>,
}

/// A cell to debug, and the settings.
pub struct Investigation<'a> {
    pub cell: &'a CompiledCell<'a>,
    pub compiler: &'a Compiler,
    pub cache: &'a Path,
    pub settings: &'a Settings,
    pub time_limit: Duration,
    /// Buffers to keep besides C.
    pub buffers: Vec<String>,
}

impl Investigation<'_> {
    /// Judges the cell on one backend and analyses the result. `None` if the user asked to stop.
    pub fn diagnose(&self, runner: &mut Runner) -> Result<Option<Diagnosis>, CommandError> {
        let alone = match self.settings.distributions.len() {
            0 | 1 => 0,
            several => several,
        };
        let progress = Progress::begin();
        let bar = progress.slow("debug", 1 + alone);
        let diagnosis = self.look(runner, &bar);
        bar.done("");
        diagnosis
    }

    fn look(&self, runner: &mut Runner, bar: &Bar<'_>) -> Result<Option<Diagnosis>, CommandError> {
        let place = match runner.kind() {
            BackendKind::Emu => format!("emulated as {}", runner.device().name),
            _ => format!("on {}", runner.device().name),
        };
        bar.begin(&format!("all kinds of data, {place}"));
        let folder = temporary()?;
        let judged = self.judge(runner, self.settings, &self.buffers, &folder)?;
        let Some((verdict, kept)) = judged else {
            return Ok(None);
        };
        bar.step(1.0);
        let call = kept.map(|kept| self.call(kept)).transpose()?;
        let mut others = Vec::new();
        let distributions = &self.settings.distributions;
        if call.is_some() && verdict.status != Status::Ok && distributions.len() > 1 {
            for &distribution in distributions {
                let alone = Settings {
                    distributions: vec![distribution],
                    ..self.settings.clone()
                };
                bar.begin(&format!("{distribution} data alone"));
                let judged = self.judge(runner, &alone, &[], &temporary()?)?;
                let Some((verdict, _)) = judged else {
                    return Ok(None);
                };
                bar.step(1.0);
                others.push((distribution, verdict));
            }
        }
        Ok(Some(Diagnosis {
            backend: runner.kind(),
            device: runner.device().clone(),
            verdict,
            call,
            others,
            folder,
        }))
    }

    fn judge(
        &self,
        runner: &mut Runner,
        settings: &Settings,
        buffers: &[String],
        folder: &TempDir,
    ) -> Result<Option<(Verdict, Option<KeptCall>)>, CommandError> {
        let keep = KeepRequest {
            folder: folder.path().to_owned(),
            buffers: buffers.to_vec(),
        };
        self.cell
            .judge(runner, self.compiler, settings, self.time_limit, keep)
    }

    fn call(&self, kept: KeptCall) -> Result<CapturedCall, CommandError> {
        let (shape, seed) = (self.cell.shape, self.settings.data_seed());
        let answers = answers(self.cache);
        let problem = |distribution, call_seed: CallSeed| {
            let operator = &self.cell.plan.round.operator;
            let key = ProblemKey::new(operator, shape, distribution, seed);
            let operands = key.operands();
            let oracle = answers.answer(&key, &operands);
            let shuffle = call_seed.shuffle();
            let answer = oracle.shuffled(shuffle, &operands.operator, &operands.groups());
            (operands.shuffled(shuffle), answer)
        };
        let call_seed = kept.call_seed;
        let (operands, oracle) = problem(kept.distribution, call_seed);
        let outputs = written(&operands.operator, &kept).map_err(|e| scratch_lost(&e))?;
        let earlier = kept
            .before
            .map(|(distribution, call_seed)| problem(distribution, call_seed).1);
        let whole = outputs.len() == oracle.groups.len();
        let tolerance = Tolerance::from(self.settings);
        let wrong_output =
            whole.then(|| explain_wrong(&outputs, &operands, &oracle, tolerance, earlier.as_ref()));
        Ok(CapturedCall {
            wrong_output: wrong_output.flatten(),
            kept,
            operands,
            oracle,
        })
    }
}

/// The kept outputs, group by group.
fn written(operator: &Operator, kept: &KeptCall) -> std::io::Result<Vec<OutputValues>> {
    let mut all = Vec::new();
    for (place, output) in operator.outputs.iter().enumerate() {
        for (group, bytes) in kept.bytes(&output.tensor.name)? {
            let written = kept.call_seed.written(output.tensor.element, bytes);
            all.push(((group, place), written));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, written)| written).collect())
}

fn temporary() -> Result<TempDir, CommandError> {
    tempfile::tempdir().map_err(|e| scratch_lost(&e))
}

fn scratch_lost(error: &std::io::Error) -> CommandError {
    CommandError::could_not_run(
        format!("what a call left cannot be kept: {error}"),
        "free some space in the folder for temporary files, or set TMPDIR",
    )
}

/// Makes the folder for the requested files, before any work.
pub fn make_folder(folder: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))
}

fn unwritten(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::could_not_run(
        format!("cannot write {}: {error}", path.display()),
        "choose another folder, or free some space",
    )
}
