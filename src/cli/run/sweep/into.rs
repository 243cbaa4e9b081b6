//! `--into` with a file that already has a run: exit code 0 must mean that the file contains
//! everything the command asked for.

use std::path::Path;

use super::super::machine;
use super::{Args, adjust, departures, settings};
use crate::cli::{Globals, runs};
use dgx_core::config::Round;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::BackendKind;
use dgx_core::record::Run;
use dgx_core::record::schema::{DeviceRecord, Header};
use dgx_run::catalog::Catalog;
use dgx_run::plan::{Plan, PlanTarget};
use dgx_run::sweep::as_begun;

/// Checks that a continued file contains what was asked for: otherwise exit code 0 would be wrong.
pub(super) fn is_of(header: &Header, args: &Args, file: &Path) -> Result<(), CommandError> {
    let part = |shard: Option<(u32, u32)>| match shard {
        Some((number, of)) => format!("shard {number}/{of}"),
        None => "the whole round".to_owned(),
    };
    let has = part(header.shard.as_ref().map(|s| (s.number, s.of)));
    let asked = part(args.shard.map(|s| (s.number, s.of)));
    let text = match &args.config {
        Some(config) => Round::read(config)?.file.text.to_string(),
        None => header.config.text.clone(),
    };
    let why = match text == header.config.text {
        false => "another round".to_owned(),
        true if has != asked => format!("{has}, not {asked}"),
        true => return began_alike(header, args, file),
    };
    Err(CommandError::usage(
        format!("{} is of {why}", file.display()),
        "name another file with --into, or the round and shard it is of",
    ))
}

/// Refuses a command that lacks flags the file began with: without them it asks for another run.
fn began_alike(header: &Header, args: &Args, file: &Path) -> Result<(), CommandError> {
    let then = &header.settings;
    let mut round = runs::round_of(args.config.as_deref(), header)?;
    adjust(&mut round.measurement, args);
    let asked = settings(args, &round);
    let seed = round.validation.seed.filter(|_| args.seed.is_none());
    let as_long = then.max_seconds == asked.max_seconds;
    let flags = [
        ("--seed", seed.is_some_and(|seed| seed != then.seed)),
        ("--data-seed", then.secret_given && args.data_seed.is_none()),
        (
            "--schedule",
            args.schedule.is_none() && then.schedule != asked.schedule,
        ),
        ("--exact-sums", then.exact_sums && !args.exact_sums),
        (
            "--hazards",
            args.hazards.is_none() && !then.time_only && then.hazards != asked.hazards,
        ),
        (
            "--min-blocks",
            as_long && args.min_blocks.is_none() && then.min_blocks != asked.min_blocks,
        ),
        ("--thorough", then.max_seconds > asked.max_seconds),
    ];
    let flags = flags.into_iter().filter(|(_, differs)| *differs);
    let now = departures(args);
    let dropped = header.departures.iter().filter(|flag| !now.contains(flag));
    let flags: Vec<String> = (flags.map(|(flag, _)| flag.to_owned()))
        .chain(dropped.cloned())
        .collect();
    if flags.is_empty() {
        return Ok(());
    }
    Err(CommandError::usage(
        format!(
            "{} began with {}, which this command lacks",
            file.display(),
            flags.join(", ")
        ),
        "add that, remove the file, or name another with --into",
    ))
}

/// Refuses a complete run whose sources, shapes or device have changed since.
pub(super) fn still_holds(
    run: &Run,
    round: Round,
    args: &Args,
    globals: &Globals,
) -> Result<(), CommandError> {
    let (device, card) = machine::device(args.target.as_deref(), args.backend)?;
    let catalog = Catalog::open(&globals.variants)?;
    let plan = Plan::new(round, &catalog, &PlanTarget::of(&device))?;
    let backend = match (args.backend.kind(), card) {
        (BackendKind::Fake, _) => BackendKind::Fake,
        (_, Some(_)) => BackendKind::Cuda,
        (_, None) => BackendKind::Emu,
    };
    let device = match backend {
        // The device of the fake backend is in its script.
        BackendKind::Fake => run.header.device.clone(),
        backend => DeviceRecord::new(backend, &device),
    };
    as_begun(run, &plan, &device)
}
