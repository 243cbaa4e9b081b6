mod compare;
mod fit;

use std::path::{Path, PathBuf};

use super::machine;
use crate::cli::{Globals, named, runs};
use crate::export;
use crate::present::{Column, Style, Table, percent};
use dgx_core::config::target;
use dgx_core::diagnostic::{CommandError, InputError, SourceFile};
use dgx_core::domain::Exit;
use ptx_calibrate::{Answers, Only, Read, cases, probes};

/// Ask a GPU what its instructions, memories, barriers and launches cost, fit
/// the model's numbers to its answers, and compare modelled times with measured
/// ones.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("action"),
    after_help = "Without arguments: print the error of each built-in target."
)]
pub(crate) struct Args {
    /// Model every cell of these runs, and compare with their times
    #[arg(value_name = "RUN", group = "action", value_parser = named::run())]
    runs: Vec<PathBuf>,
    /// Run the probes on this GPU and write its answers to FILE as JSON lines
    #[arg(long, value_name = "FILE", group = "action")]
    measure: Option<PathBuf>,
    /// Fit the numbers of the model to the answers in FILE
    #[arg(long, value_name = "FILE", group = "action")]
    fit: Option<PathBuf>,
    /// Print the answers in FILE
    #[arg(long, value_name = "FILE", group = "action")]
    show: Option<PathBuf>,
    /// List the probes, and run none
    #[arg(long, group = "action")]
    list: bool,
    /// Only cases whose names contain TEXT, e.g. wgmma/rs (--fit uses the others as
    /// well, but does not print them); with runs: only such cells, e.g. "auto 256x"
    #[arg(
        long,
        value_name = "TEXT",
        default_value_t,
        hide_default_value = true,
        requires = "action"
    )]
    only: Only,
    #[arg(
        long,
        value_name = "TARGET",
        default_value = "h200",
        conflicts_with_all = ["measure", "show", "list"],
        help = machine::target_help("What is modelled", ", or a target file")
    )]
    target: String,
    /// Write the target to FILE: with --fit its numbers, with runs the model's error
    #[arg(short, long, value_name = "FILE", requires = "action", conflicts_with_all = ["measure", "show", "list"])]
    output: Option<PathBuf>,
    /// With runs: write the comparison as JSON
    #[arg(long, value_name = "FILE", requires = "action", conflicts_with_all = ["measure", "fit", "show", "list"])]
    export_json: Option<PathBuf>,
    /// With runs: plot modelled against measured times as SVG
    #[arg(long, value_name = "FILE", requires = "action", conflicts_with_all = ["measure", "fit", "show", "list"])]
    plot: Option<PathBuf>,
    #[command(flatten)]
    compile: machine::CompileLimitFlags,
}

const ANSWERS: &str = "name a file that dgx calibrate --measure wrote";

pub(crate) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let only = &args.only;
    if let Some(path) = &args.show {
        return show(path, only);
    }
    if let Some(answers) = &args.fit {
        return fit::run(answers, &args, globals);
    }
    if let Some(path) = &args.measure {
        export::probe(path)?;
        let compiler = machine::compiler(args.compile.limits())?;
        let (answers, unasked) = ptx_calibrate::measure(only, &compiler)?;
        let text = answers.to_text().map_err(|error| {
            let message = format!("cannot write the answers down: {error}");
            CommandError::could_not_run(message, "ask again")
        })?;
        export::write(path, &text)?;
        say!("{} cases in {}", answers.answers.len(), path.display());
        if unasked > 0 {
            say!("{unasked} more cases need instructions that this GPU does not have");
        }
        return Ok(Exit::Done);
    }
    if args.list {
        return list(only, &runs::style(globals));
    }
    if args.runs.is_empty() {
        known(&runs::style(globals));
        return Ok(Exit::Done);
    }
    compare::run(&args, globals)
}

/// Prints the errors of the built-in targets.
fn known(style: &Style) {
    let mut grid = Table::new(vec![
        Column::key("target"),
        Column::left("device"),
        Column::right("median"),
        Column::right("p90"),
        Column::right("worst"),
        Column::right("cells"),
        Column::left("compared with runs of").weight(8).wraps(),
    ]);
    for (name, device) in target::built_in() {
        let own = device.calibration.as_ref();
        let own = own.filter(|known| known.device == device.name);
        let figures = own.map(|known| {
            let [median, p90, worst] = [known.median, known.p90, known.worst].map(percent);
            let cells = known.cells.to_string();
            [median, p90, worst, cells, known.run.clone()]
        });
        let unknown = || ["", "", "", "", "uncalibrated"].map(str::to_owned);
        let figures = figures.unwrap_or_else(unknown);
        let row = [name.to_owned(), device.name.clone()];
        grid.push(row.into_iter().chain(figures).collect());
    }
    say!("How far modelled times are off\n{}\n", grid.render(style));
    say!(
        "{}",
        style.dim("next: dgx calibrate RUN · dgx calibrate --measure FILE, on a GPU · --help")
    );
}

fn list(only: &Only, style: &Style) -> Result<Exit, CommandError> {
    only.of(cases(), |(_, case)| &case.name)?;
    for probe in probes() {
        let names = probe.cases.iter().map(|case| case.name.as_str());
        let mut names = names.filter(|name| only.lets_in(name)).peekable();
        if names.peek().is_some() {
            say!("{}", style.titled(probe.name, &probe.question));
        }
        names.for_each(|name| say!("  {name}"));
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Answers, InputError> {
    let file = SourceFile::read(path, "answers", ANSWERS)?;
    Answers::from_text(&file.text)
        .map_err(|why| InputError::new(format!("{}: {why}", path.display()), ANSWERS))
}

fn show(path: &Path, only: &Only) -> Result<Exit, CommandError> {
    let answers = read(path)?;
    let asked = &answers.asked;
    say!("{}, {}", asked.device.name, asked.started);
    for answer in only.of(&answers.answers, |answer| &answer.name)? {
        let unit = unit(answer.read);
        say!("{:44} {:>12.2} {unit}", answer.name, answer.median());
    }
    Ok(Exit::Done)
}

fn unit(read: Read) -> &'static str {
    match read {
        Read::Cycles => "cycles",
        Read::Nanos => "ns",
        Read::Micros => "µs",
    }
}
