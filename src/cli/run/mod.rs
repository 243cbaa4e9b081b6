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
mod explain;
mod list;
mod machine;
mod new;
mod profile;
mod sanitize;
mod subject;
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
    /// Follow the jobs of a sweep on a cluster again, and submit what is not done
    Attach(attach::Args),
    /// Make a variant that picks, on each shape of a run, who won there
    Dispatch(dispatch::Args),
    /// Begin a variant that is right at once, and a round with it
    New(new::Args),
    /// Sweep what changed, again and again, while files are edited
    Watch(watch::Args),
    /// Tell everything about one contender on one shape: how it is wrong, where, and why
    Debug(Box<debug::Args>),
    /// Show what bounds a contender: registers, shared memory, waves, what binds
    Explain(explain::Args),
    /// Show where the time of one contender on one shape goes, on a GPU or modelled
    Profile(profile::Args),
    /// Look for races and hazards that a right result does not show
    Sanitize(sanitize::Args),
    /// List the variants, or what a round would run
    List(list::Args),
    /// Do everything for a round but run it
    Check(check::Args),
    /// Ask a GPU what its parts cost, fit the model to it, and say how far off the model is
    Calibrate(calibrate::Args),
    /// Say what is here: driver, GPU, compiler, and where each was found
    Doctor(doctor::Args),
    /// Say how large the cache of images and answers is, or empty it
    Cache(cache::Args),
    #[command(hide = true)]
    Worker(worker::Args),
    #[command(hide = true)]
    CompileWorker(compile_worker::Args),
}

pub(super) fn obey(command: Command, globals: &Globals) -> Result<Exit, CommandError> {
    match command {
        Command::Sweep(args) => sweep::run(*args, globals),
        Command::Attach(args) => attach::run(args, globals),
        Command::Dispatch(args) => dispatch::run(args, globals),
        Command::New(args) => new::run(args, globals),
        Command::Watch(args) => watch::run(args, globals),
        Command::Debug(args) => debug::run(*args, globals),
        Command::Explain(args) => explain::run(args, globals),
        Command::Profile(args) => profile::run(args, globals),
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
