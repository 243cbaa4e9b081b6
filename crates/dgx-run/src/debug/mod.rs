//! One cell, everything known: how a call is wrong and where, what it left in
//! memory, and the code that did it. Findings are gathered here; `present` makes
//! words of them, `dump` and `emit` make files.

mod dump;
mod emit;
mod npy;

use std::path::Path;

use tempfile::TempDir;

use crate::backend::Salt;
use crate::compile::Compiler;
use crate::operator::{Operands, Oracle, OracleCache};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{BackendKind, Device, Exit, Shape, Status, Verdict};

use crate::sweep::{Bar, Booth, LoneCell, Progress, Trial};
use crate::validate::{Story, story};
use crate::worker::{Kept, answers};
use dgx_core::domain::Distribution;

pub use dump::{Dump, Form, Request};
pub use emit::{Kind, emit};

/// What one backend shows of a cell.
pub struct Account {
    pub backend: BackendKind,
    pub device: Device,
    pub verdict: Verdict,
    /// The call that decided, and what is known of it.
    pub call: Option<Call>,
    /// How it fares on each distribution alone, where the verdict came before
    /// all were tried.
    pub others: Vec<(Distribution, Verdict)>,
    /// Holds what the call left, as long as somebody may ask for it.
    pub folder: TempDir,
}

/// A call, and what it left.
pub struct Call {
    pub kept: Kept,
    pub operands: Operands,
    pub oracle: Oracle,
    /// How C is wrong, if it is.
    pub story: Option<Story>,
}

/// Judges a cell on one backend and looks into what it did. No account if the
/// user asked to stop.
pub fn investigate(
    booth: &mut Booth,
    cell: &LoneCell<'_>,
    shape: &Shape,
    compiler: &Compiler,
    trial: &Trial,
    cache: &Path,
) -> Result<Option<Account>, CommandError> {
    let alone = match trial.distributions.len() {
        0 | 1 => 0,
        several => several,
    };
    let progress = Progress::begin();
    let bar = progress.slow("debug", 1 + alone);
    let account = looked_into(booth, cell, shape, compiler, trial, cache, &bar);
    bar.done("");
    account
}

fn looked_into(
    booth: &mut Booth,
    cell: &LoneCell<'_>,
    shape: &Shape,
    compiler: &Compiler,
    trial: &Trial,
    cache: &Path,
    bar: &Bar<'_>,
) -> Result<Option<Account>, CommandError> {
    let place = match booth.kind() {
        BackendKind::Emu => format!("emulated as {}", booth.device().name),
        _ => format!("on {}", booth.device().name),
    };
    bar.begin(&format!("all kinds of data, {place}"));
    let folder = tempfile::tempdir().map_err(|e| scratch_lost(&e))?;
    let judged = booth.judge(cell, compiler, trial, folder.path().to_owned())?;
    let Some((verdict, kept)) = judged else {
        return Ok(None);
    };
    bar.step(1.0);
    let answers = answers(cache);
    let call = match kept {
        Some(kept) => Some(Call::of(kept, shape, trial, &answers).map_err(|e| scratch_lost(&e))?),
        None => None,
    };
    let mut others = Vec::new();
    let ran = call.is_some();
    if ran && verdict.status != Status::Ok && trial.distributions.len() > 1 {
        for &distribution in &trial.distributions {
            let alone = Trial {
                distributions: vec![distribution],
                buffers: Vec::new(),
                ..trial.clone()
            };
            bar.begin(&format!("{distribution} data alone"));
            let passing = tempfile::tempdir().map_err(|e| scratch_lost(&e))?;
            let judged = booth.judge(cell, compiler, &alone, passing.path().to_owned())?;
            let Some((verdict, _)) = judged else {
                return Ok(None);
            };
            bar.step(1.0);
            others.push((distribution, verdict));
        }
    }
    Ok(Some(Account {
        backend: booth.kind(),
        device: booth.device().clone(),
        verdict,
        call,
        others,
        folder,
    }))
}

impl Call {
    fn of(
        kept: Kept,
        shape: &Shape,
        trial: &Trial,
        answers: &OracleCache,
    ) -> std::io::Result<Self> {
        let problem = |distribution, salt: Salt| {
            let operands = Operands::draw(shape, distribution, trial.seed);
            let oracle = answers.answer(shape, distribution, trial.seed, &operands);
            let shuffle = salt.shuffle();
            (operands.shuffled(shuffle), oracle.shuffled(shuffle))
        };
        let salt = kept.salt();
        let (operands, oracle) = problem(kept.distribution, salt);
        let written = kept.bytes("c")?.into_iter();
        let c: Vec<Vec<u16>> = written.map(|(_, bytes)| salt.written(&bytes)).collect();
        let before = kept.before();
        let earlier = before.map(|(distribution, salt)| problem(distribution, salt).1);
        let whole = c.len() == shape.groups.len();
        let tolerance = trial.tolerance;
        let told = whole.then(|| story(&c, &operands, &oracle, tolerance, earlier.as_ref()));
        Ok(Self {
            story: told.flatten(),
            kept,
            operands,
            oracle,
        })
    }
}

fn scratch_lost(error: &std::io::Error) -> CommandError {
    CommandError::new(
        Exit::CouldNotRun,
        format!("what a call left cannot be kept: {error}"),
        "free some space in the folder for temporary files, or set TMPDIR",
    )
}

/// Makes the folder that files are asked for in, before there is any work.
pub fn make_folder(folder: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))
}

fn unwritten(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(
        Exit::CouldNotRun,
        format!("cannot write {}: {error}", path.display()),
        "choose another folder, or free some space",
    )
}
