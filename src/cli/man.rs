use std::path::PathBuf;

use clap::CommandFactory;

use super::{Cli, Globals};
use crate::diagnostic::CommandError;
use crate::domain::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  dgx man ~/.local/share/man/man1    then: man dgx, man dgx-sweep")]
pub(super) struct Args {
    /// Folder for the pages, dgx.1 and one for each command
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the manual: a page for dgx and one for each command.
pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| {
            let message = format!("cannot write to {}: {error}", folder.display());
            CommandError::new(Exit::Usage, message, "name a folder that can be written to")
        })?;
    say!("man pages are in {}", folder.display());
    Ok(Exit::Done)
}
