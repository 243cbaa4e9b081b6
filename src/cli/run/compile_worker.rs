use std::io::{stdin, stdout};

use crate::cli::Globals;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_run::compile::serve;

/// Compiles for a sweep; speaks JSON lines on stdin and stdout.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bytes of memory it may take
    #[arg(long)]
    memory: u64,
}

pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    serve(args.memory, stdin().lock(), stdout().lock())
        .map(|()| Exit::Done)
        .map_err(|error| {
            CommandError::could_not_run(
                error.to_string(),
                "`dgx doctor` shows what is installed and what is missing",
            )
        })
}
