use std::path::{Path, PathBuf};

use super::Globals;
use crate::compile::cache_root;
use crate::diagnostic::CommandError;
use crate::domain::{Bytes, Exit};
use crate::operator::{ANSWERS, ANSWERS_LIMIT};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It is $DGX_CACHE, else .dgx/cache of the checkout, else the user's cache folder.
Images (compiled kernels) are kept until they are cleaned away; answers (of the
oracle) take 4 GiB at most, and those used longest ago go first. All of it can
be made again: cleaning costs time and nothing else. A sweep under way may need
what is cleaned away, and say so.")]
pub(super) struct Args {
    /// Remove all that is kept
    #[arg(value_enum)]
    clean: Option<Deed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Deed {
    /// Remove all that is kept
    Clean,
}

/// Says how large the cache is, or empties it.
pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let here = std::env::current_dir().unwrap_or_default();
    let root = cache_root(&here);
    let kept = [("images", None), (ANSWERS, Some(Bytes(ANSWERS_LIMIT)))];
    say!("{}", root.display());
    for (name, limit) in kept {
        let folder = root.join(name);
        let (count, size) = (entries(&folder).len(), Bytes(size(&folder)));
        let of = limit.map_or(String::new(), |limit| format!(" of {limit} at most"));
        say!("{name:>8}  {count:>6}  {size}{of}");
        if args.clean.is_some() {
            remove(&folder)?;
        }
    }
    if args.clean.is_some() {
        say!("removed");
    }
    Ok(Exit::Done)
}

/// Entry by entry: whoever makes one meanwhile needs the folder.
fn remove(folder: &Path) -> Result<(), CommandError> {
    for path in entries(folder) {
        let removed = match path.is_dir() && !path.is_symlink() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        // Another may have removed it first.
        if let Err(error) = removed.or_else(|e| match path.exists() {
            true => Err(e),
            false => Ok(()),
        }) {
            let message = format!("cannot remove {}: {error}", path.display());
            let remedy = "remove it by hand, or have DGX_CACHE name another folder";
            return Err(CommandError::new(Exit::CouldNotRun, message, remedy));
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Bytes of all files in it; links are not followed.
fn size(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else {
        return 0;
    };
    match about.is_dir() {
        true => entries(path).iter().map(|path| size(path)).sum(),
        false => about.len(),
    }
}
