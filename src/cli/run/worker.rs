use std::io::{BufReader, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::cli::Globals;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_run::backend::Opening;
use dgx_run::child::run_in_background;
use dgx_run::worker::serve;

/// Runs contenders for a sweep; speaks JSON lines over the socket on stdin.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    opening: Opening,
    /// Keep to this core, and let every other process go first
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Cache folder
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
}

pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    // The supervisor reacts to signals that go to all processes (from a batch system or a closed
    // session): a worker that died of one would look crashed.
    let _ = ctrlc::set_handler(|| {});
    if let Some(core) = args.core {
        run_in_background(core).map_err(|e| {
            CommandError::could_not_run(
                format!("cannot lower the worker's priority: {e}"),
                "`dgx sweep` starts its workers itself",
            )
        })?;
    }
    let line = || stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let (requests, replies) = line().and_then(|one| Ok((one, line()?))).map_err(|e| {
        CommandError::could_not_run(
            format!("a worker was started without dgx: {e}"),
            "`dgx sweep` starts its workers itself",
        )
    })?;
    serve(
        &args.opening,
        &args.cache,
        BufReader::new(requests),
        replies,
    );
    Ok(Exit::Done)
}
