//! The command line: one file per verb, each an `Args` and a `run` that reads
//! as the pipeline. Parsing ends here; the modules behind see resolved values.

mod attach;
mod binding;
mod cache;
mod calibrate;
mod check;
mod cluster;
mod compare;
mod compile_worker;
mod complete;
mod completions;
mod debug;
mod dispatch;
mod doctor;
mod explain;
mod gate;
mod jury;
mod list;
mod man;
mod merge;
mod named;
mod new;
mod profile;
mod report;
mod results;
mod rounds;
mod runs;
mod sanitize;
mod schema;
mod select;
mod show;
mod subject;
mod sweep;
mod watch;
mod worker;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use nix::sys::signal::{SigHandler, Signal, signal};

use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::speech::{self, Colour, LEVEL, Level, Lost};

/// Compare competing designs of one GPU kernel: check each result, time the
/// correct ones side by side, and rank them.
#[derive(Debug, Parser)]
#[command(
    name = "dgx",
    version,
    after_help = exit_codes(),
    after_long_help = long_help(),
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// Flags every command takes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Folder with variants; may be given several times [default: variants]
    #[arg(long, global = true, value_name = "DIR")]
    pub variants: Vec<PathBuf>,
    /// When to print in colour; auto: on a terminal, unless NO_COLOR is set or
    /// TERM is dumb
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Colour,
    /// Print only results, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more: every cell, and every column of lists; given twice, also what
    /// workers do [default: $DGX_LOG: quiet, usual, verbose or trace]
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Globals {
    fn level(&self) -> Result<Level, CommandError> {
        Ok(match (self.quiet, self.verbose) {
            (true, _) => Level::Quiet,
            (false, 0) => Level::of_environment().map_err(|why| {
                let message = format!("{LEVEL} has an unknown value: {why}");
                CommandError::new(Exit::Usage, message, "unset it for the default")
            })?,
            (false, 1) => Level::Verbose,
            (false, _) => Level::Trace,
        })
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile, validate and time a round's contenders, and rank them
    Sweep(Box<sweep::Args>),
    /// Follow the cluster jobs of a sweep again, and submit what is not done
    Attach(attach::Args),
    /// Join the run files of a round that was swept in parts
    Merge(merge::Args),
    /// Print the tables of a run again, on any machine
    Show(show::Args),
    /// Compare two contenders, or two run files
    Compare(compare::Args),
    /// Check a run against its rules; exit 1 if one fails
    Gate(gate::Args),
    /// Write a run, or several, as one HTML page
    Report(report::Args),
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
    /// Find races and other hazards that a correct result does not show
    Sanitize(sanitize::Args),
    /// Recount a round's jury and compare its vote with the measurement
    Jury(jury::Args),
    /// Print the history of all rounds
    Rounds(rounds::Args),
    /// List the runs in results/, or remove old ones
    Results(results::Args),
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
    /// Print the JSON Schema of rounds, front matter or exports
    Schema(schema::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
    /// Show the manual, or write its pages
    Man(man::Args),
    #[command(hide = true)]
    Worker(worker::Args),
    #[command(hide = true)]
    CompileWorker(compile_worker::Args),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    ignore_file_size_signal();
    if complete::answer() {
        return Exit::Done.into();
    }
    let cli = match command()
        .try_get_matches()
        .and_then(|m| Cli::from_arg_matches(&m))
    {
        Ok(cli) => cli,
        Err(asked) => return help_or_usage(&asked).into(),
    };
    match cli.globals.level() {
        Ok(level) => {
            let word = level.to_possible_value();
            if let Some(word) = word {
                // SAFETY: nothing has started a thread yet. Workers hear it so.
                unsafe { std::env::set_var(LEVEL, word.get_name()) };
            }
            speech::settle(level, cli.globals.color);
        }
        Err(mistake) => {
            mistake.print();
            return mistake.exit().into();
        }
    }
    let verdict_is_all = matches!(cli.command, Command::Gate(_));
    let exit = execute(cli).unwrap_or_else(|error| {
        error.print();
        error.exit()
    });
    exit_code(exit, verdict_is_all, speech::lost()).into()
}

/// The words dgx takes. A number that is below zero is a number, and refused as
/// one where it may not be; no flag of dgx looks like it.
fn command() -> clap::Command {
    let command = Cli::command().mut_subcommands(|verb| verb.allow_negative_numbers(true));
    complete::completed(command)
}

/// A file that reaches the limit of `ulimit -f` is a write that failed, to be
/// told as such, and no reason to be killed without a word.
fn ignore_file_size_signal() {
    // SAFETY: the disposition runs no code of ours.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
}

/// What clap ends a command line with: the help that was asked for, or an
/// error.
fn help_or_usage(asked: &clap::Error) -> Exit {
    let printed = asked.print().and_then(|()| std::io::stdout().flush());
    if asked.use_stderr() {
        return Exit::Usage;
    }
    speech::keep(printed);
    exit_code(Exit::Done, false, speech::lost())
}

/// The exit code, given what became of the words. Who closes a pipe has seen
/// enough, and the command's own code stands; but a gate whose findings nobody
/// got, or anything that met a full disk, has not done what it was asked to.
fn exit_code(exit: Exit, verdict_is_all: bool, lost: Option<Lost>) -> Exit {
    match lost {
        None => exit,
        Some(Lost::ReaderGone) if !verdict_is_all => exit,
        Some(why) => {
            remark!("dgx: standard output was cut short: {why}");
            Exit::CouldNotRun
        }
    }
}

fn execute(cli: Cli) -> Result<Exit, CommandError> {
    let globals = &cli.globals;
    match cli.command {
        Command::Sweep(args) => sweep::run(*args, globals),
        Command::Attach(args) => attach::run(args, globals),
        Command::Merge(args) => merge::run(args, globals),
        Command::Show(args) => show::run(args, globals),
        Command::Compare(args) => compare::run(args, globals),
        Command::Gate(args) => gate::run(args, globals),
        Command::Report(args) => report::run(args, globals),
        Command::Dispatch(args) => dispatch::run(args, globals),
        Command::New(args) => new::run(args, globals),
        Command::Watch(args) => watch::run(args, globals),
        Command::Debug(args) => debug::run(*args, globals),
        Command::Explain(args) => explain::run(args, globals),
        Command::Profile(args) => profile::run(args, globals),
        Command::Sanitize(args) => sanitize::run(args, globals),
        Command::Jury(args) => jury::run(args, globals),
        Command::Rounds(args) => rounds::run(args, globals),
        Command::Results(args) => results::run(args, globals),
        Command::List(args) => list::run(args, globals),
        Command::Check(args) => check::run(args, globals),
        Command::Calibrate(args) => calibrate::run(args, globals),
        Command::Doctor(args) => doctor::run(args, globals),
        Command::Cache(args) => cache::run(args, globals),
        Command::Schema(args) => schema::run(args, globals),
        Command::Completions(args) => completions::run(args, globals),
        Command::Man(args) => man::run(args, globals),
        Command::Worker(args) => worker::run(args, globals),
        Command::CompileWorker(args) => compile_worker::run(args, globals),
    }
}

fn exit_codes() -> String {
    let list: Vec<String> = Exit::ALL
        .iter()
        .map(|(exit, meaning)| format!("  {}  {meaning}", *exit as u8))
        .collect();
    format!("Exit codes:\n{}", list.join("\n"))
}

fn long_help() -> String {
    format!(
        "Start here:\n  \
         dgx doctor          what this machine has\n  \
         dgx list            the variants in variants/\n  \
         dgx check round4    compile the round, run nothing\n  \
         dgx sweep round4    validate, time and rank it\n\n\
         A ROUND is a file, or its name in configs/. A RUN is a file, its name in\n\
         results/, or a round's name for its newest run. A contender is written\n\
         pipelined, or pipelined:STAGES=2 for one of its choices; patterns stand in\n\
         quotes: --only 'pipe*,two-pass'.\n\n\
         A variant is one file, variants/NAME.cu: see docs/variants.md.\n\n{}",
        exit_codes()
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_and_help_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_lists_every_exit_code() {
        let help = Cli::command().render_help().to_string();
        for (exit, meaning) in Exit::ALL {
            assert!(help.contains(&format!("{}  {meaning}", exit as u8)));
        }
    }
}
