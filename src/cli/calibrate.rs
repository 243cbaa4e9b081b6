use std::path::{Path, PathBuf};

use super::Globals;
use super::runs;
use crate::calibrate::{self, Answer, Answers, Read, probes};
use crate::diagnostic::{CommandError, InputError, SourceFile};
use crate::domain::Exit;
use crate::export;

/// Put small questions to the GPU: what its instructions, memories, barriers
/// and launches cost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Ask the GPU here, and write its answers to FILE as JSON lines
    #[arg(long, value_name = "FILE", required_unless_present_any = ["list", "show"])]
    measure: Option<PathBuf>,
    /// Print the answers in FILE
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    show: Option<PathBuf>,
    /// Say what would be asked, and ask nothing
    #[arg(long, conflicts_with_all = ["measure", "show"])]
    list: bool,
    /// Only cases with this in their names, e.g. wgmma/rs
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    #[command(flatten)]
    compile: runs::CompileLimits,
}

pub(crate) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let only = args.only.as_deref();
    if let Some(path) = args.show {
        return show(&path, only);
    }
    let Some(path) = args.measure else {
        list(only);
        return Ok(Exit::Done);
    };
    export::probe(&path)?;
    let compiler = runs::compiler(args.compile.limits(), "scripts/dgx fetches NVRTC")?;
    let answers = calibrate::measure(only, &compiler)?;
    let text = answers.to_text().map_err(|error| {
        let message = format!("cannot write the answers down: {error}");
        CommandError::new(Exit::CouldNotRun, message, "ask again")
    })?;
    export::write(&path, &text)?;
    say!("{} cases in {}", answers.answers.len(), path.display());
    Ok(Exit::Done)
}

fn list(only: Option<&str>) {
    for probe in probes() {
        say!("{}: {}", probe.name, probe.question);
        let names = probe.cases.iter().map(|case| case.name.as_str());
        for name in names.filter(|name| only.is_none_or(|text| name.contains(text))) {
            say!("  {name}");
        }
    }
}

fn show(path: &Path, only: Option<&str>) -> Result<Exit, CommandError> {
    let remedy = "name a file that dgx calibrate --measure wrote";
    let file = SourceFile::read(path, "answers", remedy)?;
    let answers = Answers::from_text(&file.text)
        .map_err(|why| InputError::new(format!("{}: {why}", path.display()), remedy))?;
    let asked = &answers.asked;
    say!("{}, {}", asked.device.name, asked.started);
    let wanted = |answer: &&Answer| only.is_none_or(|text| answer.name.contains(text));
    for answer in answers.answers.iter().filter(wanted) {
        let unit = match answer.read {
            Read::Cycles => "cycles",
            Read::Nanos => "ns",
            Read::Micros => "µs",
        };
        say!("{:44} {:>12.2} {unit}", answer.name, answer.median());
    }
    Ok(Exit::Done)
}
