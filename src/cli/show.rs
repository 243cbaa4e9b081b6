use std::path::PathBuf;

use super::Globals;
use super::runs;
use crate::diagnostic::CommandError;
use crate::domain::Exit;
use crate::present::sweep_summary;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run file [default: the newest in results/]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let run = runs::load(args.run.as_deref())?;
    say!("{}", sweep_summary(&run, &runs::style(globals)));
    Ok(Exit::Done)
}
