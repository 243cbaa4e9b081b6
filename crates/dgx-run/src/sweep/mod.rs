//! A round, from its file to its verdicts: the one module that knows every stage up to the run
//! file. Each stage appends its results at once.

mod board;
mod build;
mod cell;
mod current_verdicts;
mod environment;
mod examine;
mod measure;
mod oracles;
mod pool;
mod progress;
mod resume;
mod runner;
mod shard;
mod validate;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

pub use build::{RefusedCell, inspect, unit};
pub use cell::CompiledCell;
pub(crate) use cell::{launchable, planned};
pub use environment::{contender_record, git_state, host, started};
pub use progress::{Bar, Progress};
pub use resume::{Resumed, as_begun};
pub use runner::{BackendChoice, FakeFlags, Gpus, Runner, choose};
pub use shard::ShardOf;

use crate::catalog::Catalog;
use crate::compile::{CompileLimits, Compiler, cache_root};
use crate::plan::{Plan, PlanTarget};
use crate::validate::check_operator;
use build::{Images, RunnableImage};
use dgx_core::config::Round;
use dgx_core::config::target::default_device;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::interrupt::{self, SignalMessages};
use dgx_core::record::schema::{Header, Line, RunEnd, Settings};
use dgx_core::record::{Run, WriteError, Writer};
use dgx_core::record::{stamp, verdict_exit};
use examine::Examination;
use oracles::Oracles;
use pool::{Bars, CardSeconds, Sweep};

const SWEEPING: SignalMessages = SignalMessages {
    first: Some("stopping after the running calls; press Ctrl-C again to end now"),
    second: "ended; finished cells are kept: dgx sweep --resume",
};

/// The options of a sweep from the command line.
#[derive(Debug)]
pub struct Options {
    pub round: Round,
    /// How the command line departs from the round.
    pub departures: Vec<String>,
    pub variants: Vec<PathBuf>,
    pub results: PathBuf,
    /// The file to begin, instead of a new one among the results.
    pub into: Option<PathBuf>,
    /// The part of the round to run.
    pub shard: Option<ShardOf>,
    pub backend: BackendChoice,
    /// The cards to run on, if there are several.
    pub gpus: Gpus,
    pub fake: FakeFlags,
    /// The settings; those of the resumed run, if there is one.
    pub settings: Settings,
    /// Limits for compiling one image.
    pub limits: CompileLimits,
    pub resume: Option<Resumed>,
}

/// The result of a sweep.
#[derive(Debug)]
pub struct SweepResult {
    pub run: Run,
    pub exit: Exit,
}

/// The state of the stages that run contenders on one card.
struct CardSession<'a> {
    sweep: &'a Sweep<'a>,
    runner: &'a mut Runner,
    /// The indices of this card's shapes.
    shapes: &'a [usize],
    oracles: &'a Oracles,
    /// The recorded run at the beginning.
    begun: &'a Run,
    /// Seconds spent waiting for the compiler.
    waited: Cell<f64>,
}

impl CardSession<'_> {
    fn append(&self, line: &Line) -> Result<(), CommandError> {
        append(self.sweep.writer, line)
    }

    /// The image of a build, or the compiler's message; `None` if the sweep is to stop.
    fn image(&self, build: usize) -> Result<Option<Result<RunnableImage, String>>, CommandError> {
        let began = Instant::now();
        let image = self.sweep.images.wait(build);
        self.waited
            .set(self.waited.get() + began.elapsed().as_secs_f64());
        match image {
            None if !interrupt::requested() => Err(could_not_run("the compiler ended early")),
            image => Ok(image),
        }
    }

    /// Whether to begin nothing more.
    fn stopped(&self) -> bool {
        interrupt::requested() || self.sweep.failed.load(Ordering::Relaxed)
    }
}

fn append(writer: &Mutex<Writer>, line: &Line) -> Result<(), CommandError> {
    let mut writer = writer.lock().unwrap_or_else(|e| e.into_inner());
    writer.append(line).map_err(|e| write_error(&e))
}

/// Runs a round, or the rest of one.
pub fn sweep(mut options: Options) -> Result<SweepResult, CommandError> {
    interrupt::install(SWEEPING);
    check_operator(&options.round.operator)?;
    Writer::probe(options.folder()).map_err(|e| write_error(&e))?;
    let catalog = Catalog::open(&options.variants)?;
    let here = std::env::current_dir().unwrap_or_default();
    let cache = cache_root(&here);
    let compiler = Compiler::new(&cache, options.limits)?;
    let mut clock = StageClock::start();
    // Opening the device counts as running on it.
    let opened = clock.time("validate", || Runner::open(&options, &compiler, &cache));
    let mut runners = match opened {
        Ok(runners) => runners,
        Err(mistake) if mistake.exit() == Exit::Usage => return Err(mistake),
        Err(why) => return Err(compile_only(&options, &catalog, &compiler, &why)),
    };
    let mut round = options.round.clone();
    let shard = match options.shard {
        Some(shard) => Some(shard.cut(&mut round, runners[0].kind().timing())?),
        None => None,
    };
    let plan = Plan::new(round, &catalog, &runners[0].machine())?;
    let units: Vec<_> = plan.builds.iter().map(build::unit).collect();
    compiler.can_compile(&units)?;
    options.settings.distributions = plan.round.validation.distributions.clone();
    let mut header = environment::header(&plan, &options.settings, &runners, &compiler);
    header.departures = std::mem::take(&mut options.departures);
    header.shard = shard;
    let (writer, begun) = begin(&mut options, &header, &runners)?;
    let progress = announced(&plan, &header, &runners);
    let bars = Bars::new(&progress, &plan, &options.settings, header.device.timing);
    let sweep = Sweep {
        plan: &plan,
        settings: &options.settings,
        cache: &cache,
        images: &Images::of(&plan),
        writer: &Mutex::new(writer),
        progress: &progress,
        bars: &bars,
        failed: AtomicBool::new(false),
    };
    let outcome = run(&sweep, &mut runners, &compiler, &begun);
    let path = sweep.path();
    if let Ok(spent) = &outcome {
        spent.add_to(&mut clock);
    }
    let outcome = outcome.and_then(|spent| {
        let run = reread(&path)?;
        bars.end(&run);
        Ok(run.decision(spent.measuring()))
    });
    let decision =
        finish(outcome, sweep.writer, &clock).inspect_err(|_| progress.resume_hint(&path))?;
    progress.summary(&decision, clock.total());

    let run = dgx_core::record::read(&path).map_err(CommandError::from)?;
    let exit = match interrupt::requested() {
        true => {
            progress.resume_hint(&path);
            Exit::CouldNotRun
        }
        false => verdict_exit(&run),
    };
    Ok(SweepResult { run, exit })
}

impl Options {
    /// The folder of the run file.
    fn folder(&self) -> &Path {
        match self.into.as_deref().map(Path::parent) {
            Some(Some(folder)) if folder.as_os_str().is_empty() => Path::new("."),
            Some(Some(folder)) => folder,
            _ => &self.results,
        }
    }
}

/// Begins a run file, or opens the one to be resumed; returns the recorded run.
fn begin(
    options: &mut Options,
    header: &Header,
    runners: &[Runner],
) -> Result<(Writer, Run), CommandError> {
    if let Some(resumed) = options.resume.take() {
        let uuid = |runner: &Runner| runner.card().map(str::to_owned);
        let cards: Vec<Option<String>> = runners.iter().map(uuid).collect();
        return resumed.go_on(header, &cards);
    }
    let writer = match &options.into {
        Some(file) => Writer::begin(file, header),
        None => Writer::create(&options.results, header, &stamp()),
    };
    let writer = writer.map_err(|e| write_error(&e))?;
    let begun = reread(writer.path())?;
    Ok((writer, begun))
}

fn announced(plan: &Plan, header: &Header, runners: &[Runner]) -> Progress {
    let progress = Progress::begin();
    let cards = runners.iter().filter(|runner| runner.measures()).count();
    progress.announce(plan, &header.device, cards);
    let wanted = plan.round.yardstick.filter(|_| runners[0].measures());
    if let Some(Err(why)) = wanted.map(|yardstick| runners[0].has_yardstick(yardstick)) {
        progress.warn(&format!("no cublas row: {why}"));
    }
    progress
}

/// Compiles, validates, times and examines, side by side.
fn run(
    sweep: &Sweep<'_>,
    runners: &mut Vec<Runner>,
    compiler: &Compiler,
    begun: &Run,
) -> Result<CardSeconds, CommandError> {
    let examination = Examination::new(sweep, runners, begun);
    let outcome = thread::scope(|scope| {
        examination.start(scope);
        let compiling = scope.spawn(|| build::all(sweep, compiler, begun));
        let swept = sweep.run(runners, begun);
        examination.end(swept.is_ok());
        sweep.images.give_up();
        let compiled = compiling
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic));
        compiled.and(swept)
    });
    let examined = examination.report_left_out();
    outcome.and_then(|spent| examined.map(|()| spent))
}

/// If nothing can run, compiling still shows whether the round is valid.
fn compile_only(
    options: &Options,
    catalog: &Catalog,
    compiler: &Compiler,
    why: &CommandError,
) -> CommandError {
    let plan = match Plan::new(
        options.round.clone(),
        catalog,
        &PlanTarget::of(default_device()),
    ) {
        Ok(plan) => plan,
        Err(error) => return error.into(),
    };
    for mistake in plan.mistakes() {
        CommandError::from(mistake.clone()).print();
    }
    let units: Vec<_> = plan.builds.iter().map(build::unit).collect();
    let compiled = match compiler.compile_all(&units, |_, _| {}, || false) {
        Ok(compiled) => compiled,
        Err(error) => return error.into(),
    };
    let failed: Vec<&String> = compiled
        .iter()
        .flatten()
        .filter_map(|c| c.outcome.as_ref().err())
        .collect();
    failed.iter().for_each(|message| remark!("{message}"));
    let good = compiled.len() - failed.len();
    could_not_run(&format!(
        "{good} of {} images compile, but nothing can run them: {why}",
        compiled.len()
    ))
}

/// Writes the last line, even if a stage failed.
fn finish(
    outcome: Result<String, CommandError>,
    writer: &Mutex<Writer>,
    clock: &StageClock,
) -> Result<String, CommandError> {
    let interrupted = interrupt::requested();
    let reason = match &outcome {
        Err(error) => Some(error.to_string()),
        Ok(_) if interrupted => Some("interrupted".to_owned()),
        Ok(_) => None,
    };
    let end = RunEnd {
        complete: reason.is_none(),
        reason,
        seconds: clock.seconds(),
        decision: outcome.as_ref().ok().filter(|d| !d.is_empty()).cloned(),
    };
    let mut writer = writer.lock().unwrap_or_else(|e| e.into_inner());
    writer
        .append(&Line::End(end))
        .and_then(|()| writer.sync())
        .map_err(|e| write_error(&e))?;
    outcome
}

/// Whether a run was begun in this file.
pub fn begun(path: &Path) -> Result<bool, CommandError> {
    dgx_core::record::begun(path).map_err(|e| write_error(&e))
}

fn write_error(error: &WriteError) -> CommandError {
    error.into()
}

fn reread(path: &Path) -> Result<Run, CommandError> {
    dgx_core::record::read(path)
        .map_err(|e| could_not_run(&format!("the run file cannot be read back: {e}")))
}

fn could_not_run(message: &str) -> CommandError {
    CommandError::could_not_run(
        message,
        "`dgx doctor` shows what is installed and what is missing",
    )
}

/// Seconds by stage; the rest is the harness's own.
struct StageClock {
    began: Instant,
    stages: BTreeMap<String, f64>,
}

impl StageClock {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            stages: BTreeMap::new(),
        }
    }

    fn time<T>(&mut self, stage: &str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        *self.stages.entry(stage.to_owned()).or_default() += began.elapsed().as_secs_f64();
        result
    }

    fn add(&mut self, stage: &str, seconds: f64) {
        *self.stages.entry(stage.to_owned()).or_default() += seconds;
    }

    /// Moves seconds that validating and measuring spent waiting to a separate stage.
    fn move_waiting(&mut self, stage: &str, waited: &BTreeMap<&'static str, f64>) {
        for (from, seconds) in waited {
            if let Some(s) = self.stages.get_mut(*from) {
                *s = (*s - seconds).max(0.0);
            }
            self.add(stage, *seconds);
        }
    }

    fn total(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn seconds(&self) -> BTreeMap<String, f64> {
        let mut seconds = self.stages.clone();
        let claimed: f64 = seconds.values().sum();
        seconds.insert("other".to_owned(), (self.total() - claimed).max(0.0));
        seconds
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::emu::counter_names;
    use dgx_core::domain::Counter;

    #[test]
    fn every_counter_on_record_is_in_a_table() {
        let recorded = counter_names();
        let parts = Counter::all().flat_map(|counter| counter.of);
        let shown: Vec<&str> = parts.copied().collect();
        for name in &recorded {
            assert!(shown.contains(&name.as_str()), "{name} is in no table");
        }
        for name in shown {
            let counted = recorded.iter().any(|n| n == name);
            assert!(counted, "{name} is never recorded");
        }
    }
}
