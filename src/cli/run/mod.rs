//! The commands that compile or run kernels. Without the feature `run` there
//! are none of them, and dgx links neither CUDA nor the emulator.

mod attach;
mod binding;
mod cache;
mod calibrate;
mod check;
mod cluster;
mod compile_worker;
mod debug;
mod dispatch;
mod doctor;
mod examined_round;
mod explain;
mod list;
mod machine;
mod new;
mod profile;
mod program;
mod sanitize;
mod sweep;
mod watch;
mod worker;

use clap::Subcommand;

use super::Globals;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compile, validate and time a round's contenders, and rank them
    Sweep(Box<sweep::Args>),
    /// Follow the cluster jobs of a sweep again, and submit what is not done
    Attach(attach::Args),
    /// Write a variant that picks the fastest contender for each shape of a run
    Dispatch(dispatch::Args),
    /// Write a variant that passes validation, and a round that contains it
    New(new::Args),
    /// Sweep a round again whenever you save a file of it
    Watch(watch::Args),
    /// Show what is wrong with one contender on one shape, where, and the likely cause
    Debug(Box<debug::Args>),
    /// Show what limits a contender: registers, shared memory, waves, bottleneck
    Explain(explain::Args),
    /// Show where the time of one contender on one shape goes, on a GPU or modelled
    Profile(profile::Args),
    /// Run a CUDA program without a GPU, and list the kernels it launched
    Run(program::Args),
    /// Find races and other hazards that a correct result does not show
    Sanitize(sanitize::Args),
    /// List the variants, or what a round would run
    List(list::Args),
    /// Check a round: read, plan and compile it, but run nothing
    Check(check::Args),
    /// Measure a GPU with probes, fit the model to it, and compare model and GPU
    Calibrate(calibrate::Args),
    /// Report driver, GPU and compiler, and where each was found
    Doctor(doctor::Args),
    /// Print the size of the cache of images and expected results, or empty it
    Cache(cache::Args),
    #[command(hide = true)]
    Worker(worker::Args),
    #[command(hide = true)]
    CompileWorker(compile_worker::Args),
}

pub(super) fn execute(command: Command, globals: &Globals) -> Result<Exit, CommandError> {
    if let Some(folder) = globals.include.iter().find(|folder| !folder.is_dir()) {
        let message = format!("there is no folder {} (--include)", folder.display());
        return Err(CommandError::usage(message, "name a folder of headers"));
    }
    dgx_run::toolkit::include_also(&globals.include);
    match command {
        Command::Sweep(args) => sweep::run(*args, globals),
        Command::Attach(args) => attach::run(args, globals),
        Command::Dispatch(args) => dispatch::run(args, globals),
        Command::New(args) => new::run(args, globals),
        Command::Watch(args) => watch::run(args, globals),
        Command::Debug(args) => debug::run(*args, globals),
        Command::Explain(args) => explain::run(args, globals),
        Command::Profile(args) => profile::run(args, globals),
        Command::Run(args) => program::run(args, globals),
        Command::Sanitize(args) => sanitize::run(args, globals),
        Command::List(args) => list::run(args, globals),
        Command::Check(args) => check::run(args, globals),
        Command::Calibrate(args) => calibrate::run(args, globals),
        Command::Doctor(args) => doctor::run(args, globals),
        Command::Cache(args) => cache::run(args, globals),
        Command::Worker(args) => worker::run(args, globals),
        Command::CompileWorker(args) => compile_worker::run(args, globals),
    }
}
