//! Chooses the round in which `explain`, `profile`, `debug` and `sanitize` examine a contender.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::{named, runs};
use dgx_core::config::{Round, Selection};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Joined, Pattern, Timing, typed};
use dgx_core::operator::{self, Operator};
use dgx_core::record::{self, Run};
use dgx_run::catalog::Catalog;

/// The named or usual round, and its run if it comes from one.
pub(super) fn examined_round(
    of: Option<&Path>,
    contender: &str,
    catalog: &Catalog,
) -> Result<(Round, Option<Run>), CommandError> {
    match of {
        Some(path) => read(path),
        None => match default_round(contender)? {
            Some(found) => Ok(found),
            None => {
                check_variant(contender, catalog)?;
                Err(nowhere(contender).into())
            }
        },
    }
}

/// Refuses a contender of a variant that no folder has.
pub(super) fn check_variant(contender: &str, catalog: &Catalog) -> Result<(), CommandError> {
    let variant = runs::selection(contender)?.variant;
    if catalog.operators_of(&variant).next().is_some() {
        return Ok(());
    }
    catalog.knows(&variant).map_err(|missing| {
        let (message, remedy) = missing.explain();
        InputError::new(message, remedy).into()
    })
}

/// The round used to examine a contender unless one is named: that of the newest run if the
/// contender is in it, else the contender's own, since shapes of other rounds may be far too large
/// for it, else that of the newest run. Prints the choice.
pub(super) fn default_round(contender: &str) -> Result<Option<(Round, Option<Run>)>, CommandError> {
    let newest = runs::newest().ok();
    let meant = Pattern::new(contender);
    let in_it = |path: &PathBuf| {
        let header = record::header(path);
        header.is_ok_and(|header| header.contenders.iter().any(|c| meant.picks(&c.id)))
    };
    let own = || Some((own_round(contender)?, "as in", "its own round"));
    let first = newest.clone().filter(in_it);
    let first = first.map(|path| (path, "as in", "the newest run"));
    let last = || {
        let without = "the newest run, which does not contain it";
        Some((newest?, "on the shapes of", without))
    };
    let Some((path, how, whose)) = first.or_else(own).or_else(last) else {
        return Ok(None);
    };
    inform!("{contender} {how} {}, {whose}", path.display());
    read(&path).map(Some)
}

fn nowhere(contender: &str) -> InputError {
    let message = format!("no round is named, and {}/ has no run", runs::RESULTS);
    let rounds = named::rounds();
    let remedy = match rounds.is_empty() {
        true => format!("`dgx new {}` writes one", typed(contender)),
        false => format!("name one of {} after the contender", rounds.join(", ")),
    };
    InputError::new(message, remedy)
}

fn read(path: &Path) -> Result<(Round, Option<Run>), CommandError> {
    if path.extension().is_some_and(|e| e == "toml") {
        return Ok((Round::read(path)?, None));
    }
    let run = runs::load(Some(path))?;
    if let Some(tool) = &run.tool {
        let message = format!("{} was timed by {tool}: it has no round", path.display());
        return Err(InputError::new(message, "name a round, or a run file of `dgx sweep`").into());
    }
    let round = run.header.config.round()?;
    // Scripted times are no evidence.
    let run = Some(run).filter(|run| run.timing() != Timing::Scripted);
    Ok((round, run))
}

/// The round that `dgx new` wrote for a variant, if it still contains the variant.
fn own_round(contender: &str) -> Option<PathBuf> {
    let variant = Selection::parse(contender, 0..0).ok()?.variant;
    let path = Path::new(named::CONFIGS).join(format!("{variant}.toml"));
    let round = path.is_file().then(|| Round::read(&path).ok()).flatten()?;
    let has = round.contenders.iter().any(|c| c.variant == variant);
    has.then_some(path)
}

/// A word that may name a contender or a round: the round, unless there is a variant of that name.
pub(super) fn round_rather_than_variant(word: &str, catalog: &Catalog) -> Option<PathBuf> {
    let path = Path::new(word);
    if path.extension().is_some_and(|found| found == "toml") {
        return Some(path.to_owned());
    }
    let unknown = catalog.operators_of(word).next().is_none();
    named::round_file(&word.into()).ok().filter(|_| unknown)
}

/// The operator of a design that no round names: the usual one, or the only one that has a design
/// of that name.
pub(super) fn operator_of(name: &str, catalog: &Catalog) -> Result<Arc<Operator>, CommandError> {
    let found: Vec<Option<&str>> = catalog.operators_of(name).collect();
    match found.as_slice() {
        [Some(only)] => Ok(operator::named(Some(only))?),
        [Some(_), _, ..] => {
            let named = found.into_iter().flatten().joined(", ");
            let message = format!("`{name}` is a design of {named}");
            Err(InputError::new(message, "name a round of the one you mean").into())
        }
        _ => Ok(Arc::clone(operator::default_operator())),
    }
}
