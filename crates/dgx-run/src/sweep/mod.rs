//! A round, from its file to its verdicts: the one module that knows every
//! stage left of the run file. Each stage appends what it finds as it finds it.

mod alone;
mod backend;
mod build;
mod environment;
mod examine;
mod measure;
mod oracles;
mod pool;
mod progress;
mod resume;
mod shard;
mod standing;
mod trace;
mod validate;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

pub use alone::{Booth, LoneCell, Trial};
pub use backend::{BackendChoice, Gpus, choose};
pub(crate) use build::refusal_of;
pub use build::{inspect, unit};
pub use environment::{contender_record, git_state, host, started};
pub use progress::{Bar, Progress};
pub use resume::Resumed;
pub use shard::ShardOf;
pub use trace::CompiledCell;

use crate::backend::Emulation;
use crate::catalog::{Catalog, YARDSTICK};
use crate::compile::{Compiler, Limits, cache_root};
use crate::plan::{Machine, Plan};
use crate::validate::Tolerance;
use backend::{Emulated, Stage};
use build::{Built, Images};
use dgx_core::config::Round;
use dgx_core::config::target::usual;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{ContenderId, Exit};
use dgx_core::interrupt::{self, Words};
use dgx_core::record::schema::{End, Line, Settings};
use dgx_core::record::{Run, WriteError, Writer};
use dgx_core::record::{stamp, verdict_exit};
use examine::Examination;
use oracles::Oracles;
use pool::{Bars, Field, Spent};
use resume::Finished;

const SWEEPING: Words = Words {
    first: Some("stopping after what is under way; Ctrl-C again ends at once"),
    second: "ended at once; finished cells are kept: dgx sweep --resume",
};

/// Everything a sweep is told, resolved.
#[derive(Debug)]
pub struct Options {
    pub round: Round,
    /// How the command line departs from the round as it is written.
    pub departures: Vec<String>,
    pub variants: Vec<PathBuf>,
    pub results: PathBuf,
    /// The very file to begin, instead of a new one among the results.
    pub into: Option<PathBuf>,
    /// The part of the round to run.
    pub shard: Option<ShardOf>,
    pub backend: BackendChoice,
    /// Which cards to run on, where there are several.
    pub gpus: Gpus,
    /// What the fake backend plays.
    pub script: Option<PathBuf>,
    pub seed: u64,
    /// In place of a secret that is drawn.
    pub data_seed: Option<u64>,
    pub emulation: Emulation,
    /// What to model times for, where it is not the usual.
    pub target: Option<String>,
    /// What compiling one image may take.
    pub limits: Limits,
    pub resume: Option<Resumed>,
}

/// What a sweep leaves behind.
#[derive(Debug)]
pub struct Swept {
    pub run: Run,
    pub exit: Exit,
    /// Seconds by stage.
    pub seconds: BTreeMap<String, f64>,
}

/// What the stages that run contenders work with on one card.
struct Session<'a> {
    field: &'a Field<'a>,
    plan: &'a Plan,
    settings: &'a Settings,
    stage: &'a mut Stage,
    /// The places of those dealt to this card.
    shapes: &'a [usize],
    oracles: &'a Oracles,
    finished: &'a Finished,
    progress: &'a Progress,
    /// Seconds it stood waiting for the compiler.
    waited: Cell<f64>,
}

impl Session<'_> {
    fn tolerance(&self) -> Tolerance {
        Tolerance {
            rtol: self.settings.rtol,
            atol: self.settings.atol,
        }
    }

    fn append(&self, line: &Line) -> Result<(), CommandError> {
        append(self.field.writer, line)
    }

    /// The image of a build, or the compiler's message; none if the sweep is
    /// to stop.
    fn image(&self, build: usize) -> Result<Option<Result<Built, String>>, CommandError> {
        let began = Instant::now();
        let image = self.field.images.wait(build);
        self.waited
            .set(self.waited.get() + began.elapsed().as_secs_f64());
        match image {
            None if !interrupt::requested() => Err(could_not_run("the compiler ended early")),
            image => Ok(image),
        }
    }

    /// Whether to begin nothing more.
    fn stopped(&self) -> bool {
        interrupt::requested() || self.field.failed.load(Ordering::Relaxed)
    }
}

fn append(writer: &Mutex<Writer>, line: &Line) -> Result<(), CommandError> {
    let mut writer = writer.lock().unwrap_or_else(|e| e.into_inner());
    writer.append(line).map_err(|e| write_error(&e))
}

/// The name the yardstick has in tables.
pub(crate) fn yardstick_id() -> ContenderId {
    ContenderId::from_text(YARDSTICK)
}

/// Runs a round, or what is left of one.
pub fn sweep(mut options: Options) -> Result<Swept, CommandError> {
    interrupt::install(SWEEPING);
    let folder = match options.into.as_deref().map(Path::parent) {
        Some(Some(folder)) if folder.as_os_str().is_empty() => Path::new("."),
        Some(Some(folder)) => folder,
        _ => &options.results,
    };
    Writer::probe(folder).map_err(|e| write_error(&e))?;
    let catalog = Catalog::open(&options.variants)?;
    let here = std::env::current_dir().unwrap_or_default();
    let cache = cache_root(&here);
    let compiler =
        Compiler::new(&cache, options.limits).map_err(|e| could_not_run(&e.to_string()))?;
    let mut clock = StageClock::start();

    let emulated = Emulated {
        target: options.target.clone(),
        times_of: (options.emulation.time_only).then_some(options.round.shapes.len()),
    };
    // Opening the device belongs to running on it.
    let opened = clock.time("validate", || {
        Stage::open(
            options.backend,
            &options.gpus,
            options.script.as_deref(),
            &emulated,
            &compiler,
            &cache,
        )
    });
    let mut stages = match opened {
        Ok(stages) => stages,
        Err(mistake) if mistake.exit() == Exit::Usage => return Err(mistake),
        Err(why) => return Err(compile_only(&options, &catalog, &compiler, &why)),
    };
    let mut round = options.round.clone();
    let shard = match options.shard {
        Some(shard) => Some(shard.cut(&mut round, stages[0].kind().timing())?),
        None => None,
    };
    let plan = Plan::new(round, &catalog, &stages[0].machine())?;
    let mut settings = settings(&plan.round, &options);
    settings.target = options.target.take();
    let mut header = environment::header(&plan, &settings, &stages, &compiler);
    header.departures = std::mem::take(&mut options.departures);
    header.shard = shard;
    let (writer, finished) = match options.resume.take() {
        Some(resumed) => {
            let uuid = |stage: &Stage| stage.card().map(str::to_owned);
            let cards: Vec<Option<String>> = stages.iter().map(uuid).collect();
            resumed.go_on(&header, &cards)?
        }
        None => {
            let begun = match &options.into {
                Some(file) => Writer::begin(file, &header),
                None => Writer::create(&options.results, &header, &stamp()),
            };
            (begun.map_err(|e| write_error(&e))?, Finished::default())
        }
    };
    // A resumed run goes on with the data and the emulator it began with.
    let settings = finished.settings.clone().unwrap_or(settings);
    let progress = Progress::begin();
    let cards = stages.iter().filter(|stage| stage.measures()).count();
    progress.announce(&plan, &header.device, cards);
    if let (true, Err(why)) = (
        plan.round.yardstick && stages[0].measures(),
        stages[0].yardstick(),
    ) {
        progress.warn(&format!("no cublas row: {why}"));
    }

    let (images, writer) = (Images::of(&plan), Mutex::new(writer));
    let bars = Bars::new(&progress, &plan, &settings, header.device.timing);
    let field = Field {
        plan: &plan,
        settings: &settings,
        cache: &cache,
        images: &images,
        writer: &writer,
        progress: &progress,
        bars: &bars,
        failed: AtomicBool::new(false),
    };
    let examination = Examination::new(&field, &stages, &finished);
    let outcome = thread::scope(|scope| {
        examination.start(scope);
        let compile = || build::all(&compiler, &plan, &finished, &writer, &images, &progress);
        let compiling = scope.spawn(compile);
        let swept = field.sweep(&mut stages, finished.clone());
        examination.end(swept.is_ok());
        images.give_up();
        let compiled = compiling
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic));
        compiled.and(swept)
    });
    let examined = examination.conclude();
    let outcome = outcome.and_then(|spent| examined.map(|()| spent));
    let spent = match &outcome {
        Ok(spent) => spent.clone(),
        Err(_) => Spent::default(),
    };
    spent.tell(&mut clock);
    let mut writer = writer.into_inner().unwrap_or_else(|e| e.into_inner());
    let outcome = outcome.and_then(|spent| {
        let run = reread(writer.path())?;
        bars.end(&run);
        Ok(run.decision(spent.measuring()))
    });
    let decision = finish(outcome, &mut writer, &clock)
        .inspect_err(|_| progress.resume_hint(writer.path()))?;
    progress.summary(&decision, clock.total());

    let run = dgx_core::record::read(writer.path()).map_err(CommandError::from)?;
    let exit = match interrupt::requested() {
        true => {
            progress.resume_hint(writer.path());
            Exit::CouldNotRun
        }
        false => verdict_exit(&run),
    };
    Ok(Swept {
        run,
        exit,
        seconds: clock.seconds(),
    })
}

/// Where nothing can run, compiling still tells whether the round would.
fn compile_only(
    options: &Options,
    catalog: &Catalog,
    compiler: &Compiler,
    why: &CommandError,
) -> CommandError {
    let plan = match Plan::new(options.round.clone(), catalog, &Machine::of(usual())) {
        Ok(plan) => plan,
        Err(error) => return error.into(),
    };
    for mistake in plan.mistakes() {
        CommandError::from(mistake.clone()).print();
    }
    let units: Vec<_> = plan.builds.iter().map(build::unit).collect();
    let compiled = match compiler.compile_all(&units, |_, _| {}, || false) {
        Ok(compiled) => compiled,
        Err(error) => return could_not_run(&error.to_string()),
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

/// Writes the last line, also when a stage could not go on.
fn finish(
    outcome: Result<String, CommandError>,
    writer: &mut Writer,
    clock: &StageClock,
) -> Result<String, CommandError> {
    let interrupted = interrupt::requested();
    let reason = match &outcome {
        Err(error) => Some(error.to_string()),
        Ok(_) if interrupted => Some("interrupted".to_owned()),
        Ok(_) => None,
    };
    let end = End {
        complete: reason.is_none(),
        reason,
        seconds: clock.seconds(),
        decision: outcome.as_ref().ok().filter(|d| !d.is_empty()).cloned(),
    };
    writer
        .append(&Line::End(end))
        .and_then(|()| writer.sync())
        .map_err(|e| write_error(&e))?;
    outcome
}

fn settings(round: &Round, options: &Options) -> Settings {
    let emulation = options.emulation;
    Settings {
        seed: options.seed,
        secret: Some(options.data_seed.unwrap_or_else(rand::random)),
        secret_given: options.data_seed.is_some(),
        rtol: round.validation.rtol,
        atol: round.validation.atol,
        distributions: round
            .validation
            .distributions
            .iter()
            .map(|d| d.as_str().to_owned())
            .collect(),
        min_blocks: round.measurement.min_blocks,
        max_seconds: round.measurement.max_seconds,
        processes: round.measurement.processes,
        cold_l2: round.measurement.cold_l2,
        schedule: emulation.schedule,
        exact_sums: emulation.exact_sums,
        time_only: emulation.time_only,
        hazards: emulation.watch,
        target: None,
    }
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
    CommandError::new(
        Exit::CouldNotRun,
        message,
        "`dgx doctor` shows what is here and what is missing",
    )
}

/// Seconds by stage; what no stage claims is the harness's own.
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

    /// Moves seconds that validating and measuring spent waiting to a stage of their own.
    fn carve(&mut self, stage: &str, waited: &BTreeMap<&'static str, f64>) {
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
