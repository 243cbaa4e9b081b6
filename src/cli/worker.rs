use std::io::{stdin, stdout};
use std::path::PathBuf;

use super::Globals;
use crate::diagnostic::CommandError;
use crate::domain::Exit;
use crate::worker::serve;

/// Runs contenders for a sweep; speaks JSON lines on stdin and stdout.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Backend to open: cuda or emu
    #[arg(long)]
    backend: String,
    /// Folder of the harness's own kernels, compiled
    #[arg(long, value_name = "DIR")]
    tools: Option<PathBuf>,
    /// Cache folder
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
}

pub fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    // A signal to everybody (a batch system's, a closed session's) is for the
    // supervisor to act on: a worker that died of it would look crashed.
    let _ = ctrlc::set_handler(|| {});
    serve(
        &args.backend,
        args.tools.as_deref(),
        &args.cache,
        stdin().lock(),
        stdout().lock(),
    );
    Ok(Exit::Done)
}
