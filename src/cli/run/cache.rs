use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::Globals;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Bytes, Exit, printable_line};
use dgx_core::files::entries;
use dgx_run::compile::{IMAGES, cache_root, is_image, remove_image};
use dgx_run::operator::{ANSWERS, ANSWERS_LIMIT, is_ours};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It is $DGX_CACHE, else .dgx/cache of the checkout, else the user's cache folder.
Images (compiled kernels) stay until you empty the cache; expected results take
at most 4 GiB, and the least recently used go first. dgx makes all of it again
when needed. Only files that dgx wrote are removed; links are not followed. A
running sweep that needs a removed entry reports it.")]
pub(crate) struct Args {
    /// Empty the cache
    #[arg(value_enum)]
    clean: Option<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// Empty the cache
    Clean,
}

/// One folder of the cache.
struct CachePart {
    name: &'static str,
    limit: Option<Bytes>,
    /// Whether dgx wrote the files there.
    is_ours: fn(&Path) -> bool,
    /// Removes the part; whether all of it is gone.
    remove: fn(&Path) -> io::Result<bool>,
}

const PARTS: [CachePart; 2] = [
    CachePart {
        name: IMAGES,
        limit: None,
        is_ours: is_image,
        remove: remove_image,
    },
    CachePart {
        name: ANSWERS,
        limit: Some(Bytes(ANSWERS_LIMIT)),
        is_ours,
        remove: |path| match fs::remove_file(path) {
            // Another process may have removed it first.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        },
    },
];

/// Prints the size of the cache, or empties it.
pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let here = std::env::current_dir().unwrap_or_default();
    let root = cache_root(&here);
    say!("{}", root.display());
    if args.clean.is_some() {
        refuse_links(&root)?;
    }
    let mut left = Vec::new();
    for part in PARTS {
        let folder = root.join(part.name);
        let (ours, others): (Vec<_>, Vec<_>) = entries(&folder)
            .into_iter()
            .partition(|path| (part.is_ours)(path));
        let bytes = Bytes(ours.iter().map(|path| size(path)).sum());
        let of = part
            .limit
            .map_or(String::new(), |limit| format!(" of {limit} at most"));
        say!("{:>8}  {:>6}  {bytes}{of}", part.name, ours.len());
        left.extend(others);
        for path in ours.iter().filter(|_| args.clean.is_some()) {
            if !(part.remove)(path).map_err(|error| irremovable(path, &error))? {
                left.push(path.clone());
            }
        }
    }
    if args.clean.is_some() {
        say!("removed");
        for path in left {
            let path = printable_line(&path.display().to_string());
            remark!("warning: left {path}: dgx did not write it, or not all of it");
        }
    }
    Ok(Exit::Done)
}

/// The target of a link may not be a cache: it may be anything.
fn refuse_links(root: &Path) -> Result<(), CommandError> {
    let above = root.parent().filter(|_| root.ends_with(".dgx/cache"));
    let parts = PARTS.map(|part| root.join(part.name));
    let mut folders = above
        .into_iter()
        .chain([root])
        .chain(parts.iter().map(PathBuf::as_path));
    if let Some(path) = folders.find(|path| path.is_symlink()) {
        let behind = fs::read_link(path).unwrap_or_default();
        return Err(CommandError::could_not_run(
            format!(
                "{} is a link to {}, and links are not followed: nothing was removed",
                path.display(),
                behind.display()
            ),
            "remove the link, or clean the folder behind it: have DGX_CACHE name that folder",
        ));
    }
    Ok(())
}

fn irremovable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::could_not_run(
        format!("cannot remove {}: {error}", path.display()),
        "remove it by hand, or have DGX_CACHE name another folder",
    )
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
