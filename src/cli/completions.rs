use clap_complete::Shell;
use clap_complete::env::Shells;

use super::{Globals, complete};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Put into the file that your shell reads when it starts:
  bash  ~/.bashrc                     source <(dgx completions bash)
  zsh   ~/.zshrc, after compinit      source <(dgx completions zsh)
  fish  ~/.config/fish/config.fish    dgx completions fish | source

Commands, flags and their values are completed, with the rounds, runs, contenders
and shapes that are in the folder: `dgx debug mine smoke --shape <TAB>` offers the
shapes of smoke. The script runs dgx at each TAB.")]
pub(super) struct Args {
    /// The shell [default: that of $SHELL]
    #[arg(value_enum)]
    shell: Option<Shell>,
}

/// Bash splits words at `:` and `=`, which occur in names of contenders: the parts are joined
/// again, and the part already on the line is removed from the answers.
const BASH: &str = r#"
_dgx() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local -a COMP_WORDS
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *[[:space:]] ]] && COMP_WORDS+=("")
    local COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    local word="${COMP_WORDS[COMP_CWORD]}"
    _clap_complete_dgx dgx "$word"
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[:=]}"}"}")
}
complete -o nospace -o bashdefault -o nosort -F _dgx dgx 2> /dev/null ||
    complete -o nospace -o bashdefault -F _dgx dgx
"#;

/// Prints the script that completes a command line.
pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let shell = args.shell.or_else(Shell::from_env).ok_or_else(|| {
        let message = "$SHELL names no shell that can complete";
        CommandError::usage(message, "name one: `dgx completions bash`, zsh or fish")
    })?;
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        let program = program();
        let written =
            completer.write_registration(complete::VARIABLE, "dgx", "dgx", &program, &mut script);
        written.map_err(|error| {
            let message = format!("cannot write the script: {error}");
            CommandError::could_not_run(message, "try again")
        })?;
    }
    if shell == Shell::Bash {
        script.extend(BASH.as_bytes());
    }
    say!("{}", String::from_utf8_lossy(&script).trim());
    Ok(Exit::Done)
}

/// The dgx that the script calls: by its bare name if it was started by that, else by its path.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let bare = std::path::Path::new(&called).components().count() == 1;
    let path = std::env::current_exe().unwrap_or_else(|_| called.clone().into());
    match bare {
        true => called.to_string_lossy().into_owned(),
        false => path.display().to_string(),
    }
}
