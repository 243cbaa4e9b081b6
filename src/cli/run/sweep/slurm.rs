//! A round as an array of Slurm jobs: the flags for it, the command of each task, and the
//! submission.

use super::super::{check, cluster};
use super::{Args, Engine};
use crate::cli::{Globals, runs};
use crate::cluster::{JobRequest, submit};
use dgx_core::config::{Round, Slurm};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{BackendKind, Device, Exit, Joined};
use dgx_core::record::portable;
use dgx_core::record::{argv, stamp};
use dgx_run::catalog::Catalog;
use dgx_run::plan::{Plan, PlanTarget, imbalance, shards};

/// The number of shards if the round gives none.
const SHARDS: u32 = 16;

/// Flags that need the other engine.
pub(super) fn check_engine(args: &Args) -> Result<(), CommandError> {
    let given = |flags: &[(&str, bool)]| {
        let flags = flags.iter().filter(|(_, given)| *given);
        flags.map(|(flag, _)| *flag).joined(" ")
    };
    let (conflict, remedy) = match args.engine {
        Engine::Local => (
            given(&[
                ("--array", args.array.is_some()),
                (
                    "--partition, --gres, --time, --retries or --sbatch-arg",
                    !args.slurm.is_empty(),
                ),
            ]),
            "add --engine slurm",
        ),
        Engine::Slurm => (
            given(&[
                ("--resume", args.resume.is_some()),
                ("--shard", args.shard.is_some()),
                ("--into", args.into.is_some()),
            ]),
            "leave it out: the engine chooses shards and files; `dgx attach RUN` continues a run",
        ),
    };
    match conflict.is_empty() {
        true => Ok(()),
        false => Err(CommandError::usage(
            match args.engine {
                Engine::Local => format!("{conflict} works with --engine slurm only"),
                Engine::Slurm => format!("{conflict} does not work with --engine slurm"),
            },
            remedy,
        )),
    }
}

/// Submits the round as an array of shards and follows it.
pub(super) fn on_slurm(
    round: &Round,
    args: &Args,
    device: &Device,
    globals: &Globals,
) -> Result<Exit, CommandError> {
    // Errors of the round are found before anything waits in a queue.
    let catalog = Catalog::open(&globals.variants)?;
    let plan = Plan::new(round.clone(), &catalog, &PlanTarget::of(device))?;
    args.exports.probe(args.config.as_deref())?;
    let slurm = args.slurm.slurm(args.array);
    let mut slurm = slurm.over(round.slurm.clone()).over(Slurm::of_user()?);
    let shapes = round.shapes.len() as u32;
    let asked = slurm.array.map_or(SHARDS, |array| array.shards);
    if slurm.array.is_some() && asked > shapes {
        remark!("{shapes} shards, not {asked}: the round has no more shapes");
    }
    if args.backend.kind() == BackendKind::Cuda {
        slurm.gres.get_or_insert_with(|| "gpu:1".to_owned());
    }
    let shards_of_it = asked.min(shapes);
    let timing = args.backend.kind().timing();
    let parts = shards(
        &round.operator,
        &round.shapes,
        shards_of_it as usize,
        timing,
    );
    inform!(
        "{}: {shapes} shapes in {shards_of_it} shards; the longest over the mean: {:.2}",
        round.name,
        imbalance(&round.operator, &round.shapes, &parts, timing)
    );
    if args.dry_run {
        check::summarise(&plan, device, &runs::style(globals));
        return Ok(check::print_mistakes(&plan));
    }
    let project = std::env::current_dir().unwrap_or_default();
    let followed = submit(JobRequest {
        name: round.name.clone(),
        text: round.file.text.to_string(),
        config: portable(&round.file.path, &project),
        results: args.results.clone(),
        argv: argv(),
        stamp: stamp(),
        shards: shards_of_it,
        slurm,
        words: passed_on(args, round, &plan, globals),
    })?;
    cluster::ending(&followed, args.config.as_deref(), &args.exports, globals)
}

/// The flags of the tasks: all flags given here, and everything settled or drawn for all tasks.
fn passed_on(args: &Args, round: &Round, plan: &Plan, globals: &Globals) -> Vec<String> {
    let mut words = Vec::new();
    let mut say = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    // A task without a GPU must fail instead of running elsewhere.
    say("--backend", args.backend.kind().to_string());
    if let Some(script) = &args.fake.script {
        say("--script", script.display().to_string());
    }
    for name in args.only.iter().flat_map(|list| &list.0) {
        say("--only", name.clone());
    }
    for name in args.shapes.words() {
        say("--shape", name.clone());
    }
    match &args.baseline {
        Some(baseline) => say("--baseline", baseline.clone()),
        None => say("--shard-baseline", plan.baseline.to_string()),
    }
    let seed = args
        .seed
        .or(round.validation.seed)
        .unwrap_or_else(rand::random);
    say("--seed", seed.to_string());
    let numbers = [
        ("--min-blocks", args.min_blocks.map(|n| n.to_string())),
        ("--timeout", args.timeout.map(|s| s.to_string())),
        ("--data-seed", args.data_seed.map(|s| s.to_string())),
        ("--schedule", args.schedule.map(|s| s.to_string())),
        ("--hazards", args.hazards.map(|h| h.to_string())),
        ("--target", args.target.clone()),
        (
            "--compile-timeout",
            Some(args.compile.compile_timeout.to_string()),
        ),
    ];
    for (flag, value) in numbers {
        if let Some(value) = value {
            say(flag, value);
        }
    }
    for folder in &globals.variants {
        say("--variants", folder.display().to_string());
    }
    let flags = [
        ("--quick", args.quick),
        ("--thorough", args.thorough),
        ("--exact-sums", args.exact_sums),
        ("--time-only", args.time_only),
    ];
    let flags = flags.iter().filter(|(_, given)| *given);
    words.extend(flags.map(|(flag, _)| (*flag).to_owned()));
    words
}
