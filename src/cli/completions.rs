use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Globals};
use crate::diagnostic::CommandError;
use crate::domain::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx completions bash > ~/.local/share/bash-completion/completions/dgx
  dgx completions zsh > ~/.zfunc/_dgx       with ~/.zfunc in fpath, before compinit
  dgx completions fish > ~/.config/fish/completions/dgx.fish

Commands, flags and their fixed values are completed; rounds, runs and contenders
are not: what would ask dgx for them is unstable in clap, and would run dgx at
every key. Files are completed by the shell, and a name that is nearly right is
answered with the one that is meant.")]
pub(super) struct Args {
    /// Whose words to complete
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints what completes the words of a command line.
pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let whole = Cli::command();
    let seen = whole
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    // What dgx runs itself is nobody's to type.
    let mut shown = Command::new("dgx")
        .args(whole.get_arguments().cloned())
        .subcommands(seen.cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "dgx", &mut script);
    say!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Done)
}
