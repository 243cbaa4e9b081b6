use std::path::{Path, PathBuf};

use super::Globals;
use super::runs;
use crate::diagnostic::CommandError;
use crate::domain::Exit;
use crate::present::sweep_summary;
use crate::record;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run file [default: the newest in results/]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
}

pub fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let path = match args.run {
        Some(path) => path,
        None => record::newest(Path::new(runs::RESULTS))?,
    };
    say!(
        "{}",
        sweep_summary(&record::read(&path)?, &runs::style(globals))
    );
    Ok(Exit::Done)
}
