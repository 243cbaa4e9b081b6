use super::Globals;
use crate::diagnostic::CommandError;
use crate::domain::Exit;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    Err(CommandError::new(
        Exit::CouldNotRun,
        "dgx rounds is not in this build",
        "build a newer dgx",
    ))
}
