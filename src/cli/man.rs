use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;

use super::{Cli, Globals};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::speech;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx man                            dgx(1)
  dgx man ~/.local/share/man/man1    then: man dgx, man dgx-sweep")]
pub(super) struct Args {
    /// Folder for the pages, dgx.1 and one for each command [default: show the page of
    /// dgx]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Shows the page of dgx, or writes the manual: that page and one for each
/// command.
pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let Some(folder) = &args.folder else {
        return show();
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| write(folder))
        .map_err(|error| {
            let message = format!("cannot write to {}: {error}", folder.display());
            CommandError::usage(message, "name a folder that can be written to")
        })?;
    say!("man pages are in {}", folder.display());
    Ok(Exit::Done)
}

/// Shows the page of dgx in man(1), or prints it if there is no terminal.
fn show() -> Result<Exit, CommandError> {
    let failed = |why: String| {
        let remedy = "`dgx --help` prints the same; `dgx man DIR` writes the pages";
        CommandError::could_not_run(why, remedy)
    };
    let folder = tempfile::tempdir().map_err(|e| failed(e.to_string()))?;
    write(folder.path()).map_err(|e| failed(e.to_string()))?;
    let page = folder.path().join("dgx.1");
    if !std::io::stdout().is_terminal() {
        let text = std::fs::read_to_string(&page).map_err(|e| failed(e.to_string()))?;
        speech::deliver(&text);
        return Ok(Exit::Done);
    }
    let shown = Command::new("man").arg("-l").arg(&page).status();
    let shown = shown.map_err(|e| failed(format!("man cannot be run: {e}")))?;
    match shown.success() {
        true => Ok(Exit::Done),
        false => Err(failed(format!("man ended with {shown}"))),
    }
}

fn write(folder: &Path) -> std::io::Result<()> {
    let made = tempfile::tempdir()?;
    clap_mangen::generate_to(Cli::command(), made.path())?;
    for page in std::fs::read_dir(made.path())? {
        let page = page?;
        let text = std::fs::read_to_string(page.path())?;
        std::fs::write(folder.join(page.file_name()), plain(&text))?;
    }
    Ok(())
}

/// Replaces every character that is not ASCII by its number: groff expects that unless it gets an
/// encoding.
fn plain(text: &str) -> String {
    let written = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => format!("\\[u{:04X}]", u32::from(c)),
    };
    text.chars().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_characters_that_any_groff_reads() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let pages: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(pages.len() > 20);
        let mut numbered = 0;
        for page in pages {
            let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
            assert!(text.is_ascii());
            numbered += text.matches("\\[u2026]").count();
        }
        assert!(numbered > 0, "an ellipsis is somewhere");
    }
}
