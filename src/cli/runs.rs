//! Finding and reading run files for the commands that look at them.

use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::builder::{StringValueParser, TypedValueParser};

use super::select::Shapes;
use super::{Globals, known};
use crate::contest::rounds::settle_baseline;
use crate::export::{self, RunExport};
use crate::present::{Commands, Folders, Style, SummaryOptions, sweep_summary};
use dgx_core::config::{Baseline, Round, Selection, target};
use dgx_core::diagnostic::{CommandError, InputError, did_you_mean};
use dgx_core::domain::{ContenderId, Device, Joined};
use dgx_core::files::folder_of;
use dgx_core::interchange;
use dgx_core::record::schema::Header;
use dgx_core::record::{self, Newest, Run, Search};

/// Where sweeps put their run files.
pub(super) const RESULTS: &str = "results";
/// Where `dgx watch` puts its run files: each replaces the one before.
pub(super) const WATCHED: &str = "results/watch";

/// The runs that a command without a named run uses, and among which a round's name means the
/// newest: those of sweeps and of `dgx watch`, the last written first.
pub(super) fn newest_first() -> Vec<PathBuf> {
    record::newest_first(&[Path::new(RESULTS), Path::new(WATCHED)])
}

/// The newest complete run, after a warning about newer files.
pub(super) fn newest() -> Result<PathBuf, record::ReadError> {
    Ok(newest_of(None)?.announced())
}

/// The same, of the round of this name if there is one.
pub(super) fn newest_of(round: Option<&str>) -> Result<Newest, record::ReadError> {
    let found = record::newest(newest_first(), round, Search::Whole, |_| Ok(true));
    found.ok_or_else(|| record::ReadError::NoRuns {
        dir: RESULTS.into(),
    })
}

/// Reads the given run file, including other tools' files, or the newest.
pub(super) fn load(path: Option<&Path>) -> Result<Run, CommandError> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => newest()?,
    };
    if interchange::is_foreign(&path) {
        return Ok(interchange::read(&path)?);
    }
    Ok(record::read(&path)?)
}

/// The same, with only some of its shapes. The tables mention it.
pub(super) fn load_part(path: Option<&Path>, shapes: &Shapes) -> Result<Run, CommandError> {
    let mut run = load(path)?;
    let all = run.header.shapes.len();
    shapes.keep_in_run(&mut run)?;
    if run.header.shapes.len() < all {
        let kept = run.header.shapes.len();
        say!("{kept} of {all} shapes were chosen (--shape); the tables leave out the others.\n");
    }
    Ok(run)
}

/// Reads a round file; if its baseline is an earlier round's winner, finds the winner in the runs
/// in `results/`.
pub(super) fn round(path: &Path) -> Result<Round, CommandError> {
    let mut round = Round::read(path)?;
    settle_baseline(&mut round, Path::new(RESULTS))?;
    Ok(round)
}

/// The device of a run, as far as its record describes it.
pub(super) fn device_of(run: &Run) -> Result<Device, InputError> {
    let mut device = match &run.header.settings.target {
        Some(target) => target::find(target)?,
        None => target::like(&run.header.device.name, None)
            .unwrap_or(target::default_device())
            .clone(),
    };
    device.limits.sms = run.header.device.sms;
    Ok(device)
}

/// The round of a run: the contenders and the baseline it began with, however they were chosen.
/// Without a config, the recorded text is used.
pub(super) fn round_of(config: Option<&Path>, header: &Header) -> Result<Round, CommandError> {
    let mut round = match config {
        Some(config) => Round::read(config)?,
        None => header.config.round()?,
    };
    let ids = header.contenders.iter().map(|c| &c.id);
    round.contenders = ids
        .map(|id| selection(id.as_str()))
        .collect::<Result<_, _>>()?;
    round.baseline = Baseline::Contender(selection(header.baseline.as_str())?);
    let of_some = |flag: &String| flag.starts_with("--shape ");
    if header.shard.is_some() || header.departures.iter().any(of_some) {
        round.keep(|shape| header.shapes.contains(shape));
    }
    Ok(round)
}

/// A contender as a command line names it.
pub(super) fn selection(text: &str) -> Result<Selection, CommandError> {
    Selection::parse(text, 0..0).map_err(|why| {
        CommandError::usage(
            format!("`{text}` names no contender: {why}"),
            "write NAME or NAME:PARAM=1; `dgx list` lists the variants",
        )
    })
}

/// A time limit on the command line: more than 0, and at most a day.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    const DAY: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= DAY => Ok(value),
        Ok(_) => Err(format!("write seconds, more than 0 and at most {DAY}")),
        Err(_) => Err("write seconds, e.g. 300".to_owned()),
    }
}

/// A whole number on the command line.
pub(super) fn whole(range: RangeInclusive<u32>) -> impl TypedValueParser<Value = u32> {
    StringValueParser::new().try_map(move |text: String| {
        let number = text
            .parse::<u32>()
            .ok()
            .filter(|number| range.contains(number));
        let (least, most) = (range.start(), range.end());
        number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
    })
}

/// A seed, or another number without a limit.
pub(super) fn natural(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// The contender a user means: its full name, or a variant that has only one.
pub(super) fn contender(run: &Run, name: &str) -> Result<ContenderId, CommandError> {
    let written = ContenderId::written(name);
    if let Some(exact) = run.entrants().find(|id| **id == written) {
        return Ok(exact.clone());
    }
    let of_variant: Vec<&ContenderId> = run.entrants().filter(|id| id.variant() == name).collect();
    match of_variant.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(unknown_contender(run, name, "")),
        several => {
            let all = several.iter().map(|id| id.typed()).joined(", ");
            let message = format!("`{name}` has several contenders in {}", run.path.display());
            Err(InputError::new(message, format!("name one of {all}")).into())
        }
    }
}

/// The error for a name that no contender of the run has. `also` ends the message: what else there
/// is none of.
pub(super) fn unknown_contender(run: &Run, name: &str, also: &str) -> CommandError {
    let known: Vec<String> = run.entrants().map(ContenderId::typed).collect();
    let remedy = did_you_mean(name, known.iter().map(String::as_str))
        .unwrap_or_else(|| format!("it has {}", known.join(", ")));
    let file = run.path.display();
    let message = format!("there is no contender `{name}` in {file}{also}");
    InputError::new(message, remedy).into()
}

/// Files to write besides what is printed.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Exports {
    /// Write the result as JSON; `-` is standard output, and the tables then go
    /// to standard error
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Write one line per cell as CSV; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Write one line per contender as CSV: rank and mean over all shapes; `-`
    /// is standard output
    #[arg(long, value_name = "FILE")]
    pub export_csv_summary: Option<PathBuf>,
    /// Write the tables as Markdown; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
}

impl Exports {
    /// Checks before any work that the files can be written.
    pub(super) fn probe<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), CommandError> {
        let files = [
            &self.export_json,
            &self.export_csv,
            &self.export_csv_summary,
            &self.export_markdown,
        ];
        probe(files, inputs)
    }

    pub(super) fn write(&self, document: &RunExport) -> Result<(), CommandError> {
        write_all([
            (&self.export_json, &|| document.json()),
            (&self.export_csv, &|| export::csv(document)),
            (&self.export_csv_summary, &|| export::csv_summary(document)),
            (&self.export_markdown, &|| export::markdown(document)),
        ])
    }
}

/// Checks before any work that the files can be written: all to different places, and none over an
/// input.
pub(super) fn probe<'a, const N: usize>(
    files: [&Option<PathBuf>; N],
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), CommandError> {
    let inputs: Vec<FileId> = inputs.into_iter().filter_map(FileId::of).collect();
    let mut written = Vec::new();
    for path in files.into_iter().flatten() {
        export::probe(path)?;
        let place = match export::is_standard_output(path) {
            true => Some(FileId::StandardOutput),
            false => FileId::of(path),
        };
        let Some(place) = place else {
            continue;
        };
        let why = if inputs.contains(&place) {
            "is read by this command, and would be overwritten"
        } else if written.contains(&place) {
            "is named by two exports"
        } else {
            written.push(place);
            continue;
        };
        let message = match place {
            FileId::StandardOutput => "two exports go to standard output".to_owned(),
            _ => format!("{} {why}", path.display()),
        };
        return Err(CommandError::usage(message, "choose another file"));
    }
    Ok(())
}

/// The identity of a file, whatever its path.
#[derive(PartialEq)]
enum FileId {
    StandardOutput,
    File { device: u64, inode: u64 },
    Nothing(PathBuf),
}

impl FileId {
    /// `None` for pipes and devices, which are not replaced by writing to them.
    fn of(path: &Path) -> Option<Self> {
        if let Ok(found) = path.metadata() {
            return found.is_file().then(|| Self::File {
                device: found.dev(),
                inode: found.ino(),
            });
        }
        let folder = folder_of(path).canonicalize().ok()?;
        Some(Self::Nothing(folder.join(path.file_name()?)))
    }
}

/// The run files a command may read: the one named, or any it could take.
pub(super) fn readable(named: Option<&Path>) -> Vec<PathBuf> {
    match named {
        Some(path) => vec![path.to_owned()],
        None => newest_first(),
    }
}

/// Writes the files that were asked for; a failure of one does not stop the others.
pub(super) fn write_all<const N: usize>(
    files: [(&Option<PathBuf>, &dyn Fn() -> String); N],
) -> Result<(), CommandError> {
    let written = files
        .into_iter()
        .filter_map(|(path, text)| Some(export::write(path.as_ref()?, &text())));
    written.fold(Ok(()), Result::and)
}

/// Prints the tables of a new run and the next commands, with the round's path if this command
/// knows it.
pub(super) fn summarise(run: &Run, round: Option<&Path>, counters: bool, globals: &Globals) {
    tell(run, round, counters, true, globals);
}

/// Prints the tables of a run again.
pub(super) fn show(run: &Run, counters: bool, globals: &Globals) {
    tell(run, None, counters, false, globals);
}

fn tell(run: &Run, round: Option<&Path>, counters: bool, new: bool, globals: &Globals) {
    let there = |path: &Path| path.canonicalize().ok();
    let newest = newest_of(None).ok().and_then(|found| there(&found.path));
    let folders = Folders::here(&globals.variants, &run.header);
    let round = round.map(|path| path.display().to_string());
    let commands = Commands {
        round: round.as_deref().unwrap_or(&run.header.config.path),
        ..Commands::for_run(run, &folders)
    };
    let is_here = |variant: &str| {
        let paths = folders.paths();
        paths.is_some_and(|paths| known::is_here(&paths, variant))
    };
    let options = SummaryOptions {
        counters,
        new,
        usual: newest.is_some() && newest == there(&run.path),
        commands: &commands,
        is_here: &is_here,
    };
    say!("{}", sweep_summary(run, &options, &style(globals)));
}

/// How to print.
pub(super) fn style(_globals: &Globals) -> Style {
    Style::detect()
}
