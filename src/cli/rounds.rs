use std::path::PathBuf;

use super::{Globals, runs};
use crate::contest::rounds::history;
use crate::contest::story;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder with the round files
    #[arg(long, value_name = "DIR", default_value = "configs")]
    configs: PathBuf,
    /// Folder with the run files
    #[arg(long, value_name = "DIR", default_value = runs::RESULTS)]
    results: PathBuf,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let style = runs::style(globals);
    let chapters = history(&args.configs, &args.results)?;
    say!("{}", story::history(&chapters, &style));
    Ok(Exit::Done)
}
