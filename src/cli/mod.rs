//! The command line: one file per verb, each an `Args` and a `run` that reads
//! as the pipeline. Parsing ends here; the modules behind see resolved values.

mod compare;
mod complete;
mod completions;
mod gate;
mod jury;
mod known;
mod man;
mod merge;
mod named;
mod report;
mod results;
mod rounds;
#[cfg(feature = "run")]
mod run;
mod runs;
mod schema;
mod select;
mod show;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use nix::sys::signal::{SigHandler, Signal, signal};

use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Exit, Joined, printable_line};
use dgx_core::speech::{self, Colour, LEVEL, Level, OutputLoss};

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
    /// Folder of headers that sources may include; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// When to print in colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Colour,
    /// Print only results, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// -v: every cell and column; -vv: worker logs [default: $DGX_LOG: quiet,
    /// usual, verbose or trace]
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Globals {
    fn level(&self) -> Result<Level, CommandError> {
        Ok(match (self.quiet, self.verbose) {
            (true, _) => Level::Quiet,
            (false, 0) => Level::of_environment().map_err(|why| {
                let message = format!("{LEVEL} has an unknown value: {why}");
                CommandError::usage(message, "unset it for the default")
            })?,
            (false, 1) => Level::Verbose,
            (false, _) => Level::Trace,
        })
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "run")]
    #[command(flatten)]
    Run(run::Command),
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
    /// Recount a round's jury and compare its vote with the measurement
    Jury(jury::Args),
    /// Print the history of all rounds
    Rounds(rounds::Args),
    /// List the runs in results/, or remove old ones
    Results(results::Args),
    /// Print the JSON Schema of rounds, operators, front matter or exports
    Schema(schema::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
    /// Show the manual, or write its pages
    Man(man::Args),
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
                // SAFETY: no thread has been started yet. Workers inherit the level from this
                // variable.
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

/// The command line of dgx. A negative number is read as a value, and refused where it is not
/// allowed, since no flag of dgx looks like one.
fn command() -> clap::Command {
    let command = Cli::command().mut_subcommands(|verb| verb.allow_negative_numbers(true));
    complete::completed(command)
}

/// Reaching the limit of `ulimit -f` is a failed write, which is reported; without this it would
/// kill dgx silently.
fn ignore_file_size_signal() {
    // SAFETY: the disposition runs no code of ours.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
}

/// Prints clap's help or error, and returns the exit code for it.
fn help_or_usage(asked: &clap::Error) -> Exit {
    if let Some(error) = refused_value(asked) {
        error.print();
        return error.exit();
    }
    let printed = asked.print().and_then(|()| std::io::stdout().flush());
    if asked.use_stderr() {
        return Exit::Usage;
    }
    speech::keep(printed);
    exit_code(Exit::Done, false, speech::lost())
}

/// The error of a value that its parser refused: what is wrong and, after a semicolon, the remedy;
/// or the remedy alone.
fn refused_value(asked: &clap::Error) -> Option<CommandError> {
    let why = asked.source()?.to_string();
    let text = |kind| match asked.get(kind)? {
        ContextValue::String(text) => Some(text.as_str()),
        _ => None,
    };
    let name = text(ContextKind::InvalidArg)?.split(' ').next()?;
    let name = name.trim_matches(['<', '>', '[', ']', '.']);
    let value = printable_line(text(ContextKind::InvalidValue)?);
    Some(match why.rsplit_once("; ") {
        Some((why, remedy)) => CommandError::usage(format!("{name} `{value}`: {why}"), remedy),
        None => CommandError::usage(format!("{name} cannot be `{value}`"), why),
    })
}

/// The exit code, given failures to write output. If a reader closes a pipe, the command's own code
/// stands; but a gate whose findings were not delivered, or any command that met a full disk, has
/// failed.
fn exit_code(exit: Exit, verdict_is_all: bool, lost: Option<OutputLoss>) -> Exit {
    match lost {
        None => exit,
        Some(OutputLoss::ReaderGone) if !verdict_is_all => exit,
        Some(why) => {
            remark!("dgx: standard output was cut short: {why}");
            Exit::CouldNotRun
        }
    }
}

fn execute(cli: Cli) -> Result<Exit, CommandError> {
    let globals = &cli.globals;
    match cli.command {
        #[cfg(feature = "run")]
        Command::Run(command) => run::execute(command, globals),
        Command::Merge(args) => merge::run(args, globals),
        Command::Show(args) => show::run(args, globals),
        Command::Compare(args) => compare::run(args, globals),
        Command::Gate(args) => gate::run(args, globals),
        Command::Report(args) => report::run(args, globals),
        Command::Jury(args) => jury::run(args, globals),
        Command::Rounds(args) => rounds::run(args, globals),
        Command::Results(args) => results::run(args, globals),
        Command::Schema(args) => schema::run(args, globals),
        Command::Completions(args) => completions::run(args, globals),
        Command::Man(args) => man::run(args, globals),
    }
}

fn exit_codes() -> String {
    let list = Exit::ALL
        .iter()
        .map(|(exit, meaning)| format!("  {}  {meaning}", *exit as u8))
        .joined("\n");
    format!("Exit codes:\n{list}")
}

fn long_help() -> String {
    format!(
        "Start here:\n  \
         dgx doctor        what this machine has\n  \
         dgx new mine      write a kernel, variants/mine.cu, and a round of it\n  \
         dgx check mine    compile the round, run nothing\n  \
         dgx sweep mine    validate, time and rank it\n\n\
         A ROUND is a file, or its name in configs/. A RUN is a file, its name in\n\
         results/, or a round's name for its newest run. A contender is written\n\
         pipelined, or pipelined:STAGES=2 for one parameter value; patterns stand in\n\
         quotes: --only 'pipe*,two-pass'.\n\n\
         A variant is one file, variants/NAME.cu: `dgx schema variant` lists its keys.\n\n{}",
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
