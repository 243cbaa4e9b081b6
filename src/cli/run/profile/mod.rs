mod over;
mod text;

use std::path::{Path, PathBuf};

use self::over::ReferenceCell;
use self::text::{EpilogueThreshold, text};
use super::examined_round::examined_round;
use super::explain::plan_for;
use super::machine;
use crate::cli::{Globals, named, runs, select};
use crate::present::{accuracy_in_short, accuracy_on};
use dgx_core::config::Round;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{BackendKind, Chip, ContenderId, Device, Exit, Shape, Timing};
use dgx_core::record::schema::DeviceRecord;
use dgx_run::backend::cuda::StampedCalls;
use dgx_run::backend::emu::{LaunchLayout, machine};
use dgx_run::catalog::Catalog;
use dgx_run::compile::Compiler;
use dgx_run::profile::{ProfileLabels, ProfiledCell, Sources, chrome, json, page, stamps};
use dgx_run::sweep::{BackendChoice, CompiledCell, Progress};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx profile interleaved round4 --shape g8-k7168
  dgx profile interleaved --target b200 --html page.html
  dgx profile interleaved --trace trace.json    open it at ui.perfetto.dev
  dgx profile interleaved --json gpu.json       on a GPU: measured, beside modelled
  dgx profile interleaved --over gpu.json       without it: modelled over that

Stages add up to the call. The line below them says whether the epilogue is
worth work. docs/profile.md explains each word.")]
pub(crate) struct Args {
    /// Contender: a variant, or one of its parameter choices
    contender: String,
    /// A round or a run, for its shapes [default: the newest run if that has the
    /// contender, else configs/CONTENDER.toml, else the newest run]
    #[arg(value_name = "ROUND|RUN", value_parser = named::round_or_run())]
    of: Option<PathBuf>,
    /// One of the round's shapes, by its name or a pattern in quotes [default: its first]
    #[arg(long, value_name = "SHAPE")]
    shape: Option<String>,
    /// Measure on a GPU, by timestamps that the kernels write, or model
    #[arg(long, value_enum, default_value = "auto")]
    backend: BackendChoice,
    #[arg(long, value_name = "TARGET", help = machine::target_help(
        "Device to model",
        " or a file; numbers can be changed, e.g. h200,sms=144 [default: the run's, else h200]",
    ))]
    target: Option<String>,
    /// Compare with a run's time of the same cell (whole times), or with another
    /// profile's --json (stage by stage)
    #[arg(long, value_name = "RUN|PROFILE.json", value_parser = named::run())]
    over: Option<PathBuf>,
    /// Write the shares as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the timeline as a Chrome trace, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write shares and timeline as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    compile: machine::CompileLimitFlags,
}

/// Shows where the time of one cell goes: on the GPU here, or in virtual time.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    let (mut round, run) = examined_round(args.of.as_deref(), &args.contender, &catalog)?;
    let path = run.as_ref().map_or(&round.file.path, |run| &run.path);
    let read = [Some(path.as_path()), args.over.as_deref()];
    runs::probe(
        [&args.json, &args.trace, &args.html],
        read.into_iter().flatten(),
    )?;
    let shape = shape(&round, args.shape.as_deref(), path)?;
    let bar = EpilogueThreshold::of(&round);
    round.shapes = vec![shape];
    let (device, gpu) = match (device(args.backend, args.target.as_deref())?, &run) {
        ((_, None), Some(run)) if args.target.is_none() => (runs::device_of(run)?, None),
        (device, _) => device,
    };
    let plan = plan_for(&args.contender, round, &catalog, &device)?;
    let contender = match plan.contenders.as_slice() {
        [only] => &only.id,
        several => return Err(ambiguous(&args.contender, several.iter().map(|c| &c.id))),
    };
    let over = match &args.over {
        Some(path) => Some(ReferenceCell::read(path, contender, &plan.shapes[0].name)?),
        None => None,
    };
    let compiler = machine::compiler(args.compile.limits())?;
    let cell = CompiledCell::runnable(&plan, 0, 0, &compiler)?;
    let operator = &plan.round.operator.name;
    let progress = Progress::begin();
    let what = format!("{contender} on {}", cell.shape.name);
    let modelled = progress.during("profile", &what, || {
        modelled(&cell, contender, &device, operator)
    });
    let mut notes = Vec::new();
    let mut profiles = Vec::new();
    match gpu {
        None => profiles.push(modelled?.0),
        Some(chip) => {
            let known = modelled.as_ref().map_or(&[][..], |(_, laid)| laid);
            profiles.push(measured(&cell, contender, &device, chip, known, &compiler)?);
            match modelled {
                Ok((profile, _)) => profiles.push(profile),
                Err(why) => notes.push(format!("Nothing is modelled: {why}")),
            }
        }
    }

    let shown: Vec<&ProfiledCell> = profiles.iter().collect();
    let sentence = accuracy_in_short(&DeviceRecord::new(BackendKind::Emu, &device), operator);
    let mut lines = vec![text::epilogue(shown[0], &bar)];
    lines.extend(over.as_ref().map(|over| over.sentence(shown[0])));
    lines.extend(notes);
    say!(
        "{}",
        text(
            &shown,
            over.as_ref(),
            &lines,
            &sentence.unwrap_or_default(),
            &runs::style(globals)
        )
    );
    let sources = Sources::read(cell.image().map_or("", |image| &image.ptx));
    runs::write_all([
        (&args.json, &|| json(&shown)),
        (&args.trace, &|| chrome(&shown, &sources)),
        (&args.html, &|| page(&shown, &sources, &lines)),
    ])?;
    Ok(Exit::Done)
}

/// The device to profile on or to model; with a chip, it is a GPU.
fn device(
    choice: BackendChoice,
    target: Option<&str>,
) -> Result<(Device, Option<Chip>), CommandError> {
    let refused = |message: &str, remedy: &str| Err(InputError::new(message, remedy).into());
    match (choice, target) {
        (choice, _) if choice.kind() == BackendKind::Fake => refused(
            "a script has no warps to profile",
            "choose --backend cuda or emu",
        ),
        (BackendChoice::Cuda, Some(_)) => refused(
            "--target is for the model: a real card cannot be changed",
            "leave out --target, or --backend cuda",
        ),
        (choice, target) => machine::device(target, choice),
    }
}

/// The cell in virtual time, and the launches that the emulator recorded.
fn modelled(
    cell: &CompiledCell<'_>,
    contender: &ContenderId,
    device: &Device,
    operator: &str,
) -> Result<(ProfiledCell, Vec<LaunchLayout>), CommandError> {
    let machine = machine(device).map_err(|why| InputError::new(why, "choose another --target"))?;
    let record = DeviceRecord::new(BackendKind::Emu, device);
    cell.traced(|traced| {
        let call = traced.replay(machine, true)?;
        let labels = ProfileLabels {
            contender,
            shape: &cell.shape.name,
            timing: Timing::Modelled,
            target: &device.name,
            accuracy: accuracy_on(&record, operator).unwrap_or_default(),
            sms: machine.sms as u64,
        };
        let laid = traced.laid();
        Ok((ProfiledCell::new(labels, call, &laid), laid))
    })
}

/// The cell on the GPU here.
fn measured(
    cell: &CompiledCell<'_>,
    contender: &ContenderId,
    device: &Device,
    chip: Chip,
    known: &[LaunchLayout],
    compiler: &Compiler,
) -> Result<ProfiledCell, CommandError> {
    let (stamping, calls) = cell.stamped(chip, compiler)?;
    let StampedCalls { stamps, last, .. } = &calls;
    let sms = u64::from(device.limits.sms);
    let (call, laid, lost) =
        stamps::decode(stamps, &stamping, *last, sms, known).map_err(|why| {
            CommandError::could_not_run(
                format!("the stamps of {contender} cannot be read: {why}"),
                "every kernel begins with DGX_STAMP_KERNEL(args, NAME), see docs/profile.md",
            )
        })?;
    let labels = ProfileLabels {
        contender,
        shape: &cell.shape.name,
        timing: Timing::Measured,
        target: &device.name,
        accuracy: text::stamped(&device.name, &calls, lost),
        sms,
    };
    Ok(ProfiledCell::new(labels, call, &laid))
}

/// The selected shape, or the round's first.
pub(super) fn shape(round: &Round, word: Option<&str>, path: &Path) -> Result<Shape, CommandError> {
    let Some(word) = word else {
        return Ok(round.shapes[0].clone());
    };
    let names: Vec<&str> = round.shapes.iter().map(|s| s.name.as_str()).collect();
    let of = format!("in {}", path.display());
    let found = select::matching(word, &names).map_err(|why| why.noting(&of))?;
    match found.as_slice() {
        [only] => {
            let mut shapes = round.shapes.iter();
            let shape = shapes.find(|shape| shape.name == *only);
            Ok(shape.unwrap_or(&round.shapes[0]).clone())
        }
        several => {
            let message = format!("`{word}` is {} shapes", several.len());
            Err(InputError::new(message, format!("name one of {}", several.join(", "))).into())
        }
    }
}

pub(super) fn ambiguous<'a>(
    name: &str,
    ids: impl Iterator<Item = &'a ContenderId>,
) -> CommandError {
    let all: Vec<String> = ids.map(ContenderId::typed).collect();
    let message = format!("`{name}` is {} contenders", all.len());
    InputError::new(message, format!("name one of {}", all.join(", "))).into()
}
