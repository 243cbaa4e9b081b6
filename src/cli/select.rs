//! Selects contenders and shapes of a round or a run.

use std::str::FromStr;

use dgx_core::config::Round;
use dgx_core::diagnostic::{InputError, nearest};
use dgx_core::domain::Pattern;
use dgx_core::record::Run;

/// Names or patterns in one word: `a,b:X=2` or `'pipe*,two-pass'`. Commas and semicolons separate
/// them; those within brackets belong to a contender's parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let mut depth = 0;
        let parts = list.split(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            depth <= 0 && matches!(c, ',' | ';')
        });
        let names: Vec<String> = parts.map(|name| name.trim().to_owned()).collect();
        match names.iter().any(String::is_empty) {
            true => Err("a name in the list is empty; put one comma between two names".to_owned()),
            false => Ok(Self(names)),
        }
    }
}

/// The selected shapes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Shapes {
    /// Only these shapes: names, or patterns in quotes, e.g. '256x*,g8-*'
    #[arg(long, value_name = "SHAPE")]
    shape: Vec<Names>,
}

impl Shapes {
    pub(super) fn is_all(&self) -> bool {
        self.shape.is_empty()
    }

    /// As they were written.
    pub(super) fn words(&self) -> impl Iterator<Item = &String> {
        self.shape.iter().flat_map(|names| &names.0)
    }

    /// Removes all other shapes from a round.
    pub(super) fn keep_in_round(&self, round: &mut Round) -> Result<(), InputError> {
        let names = round.shapes.iter().map(|shape| shape.name.as_str());
        if let Some(kept) = self.of(&names.collect::<Vec<_>>())? {
            round.keep(|shape| kept.contains(&shape.name));
        }
        Ok(())
    }

    /// Removes all other shapes from a run.
    pub(super) fn keep_in_run(&self, run: &mut Run) -> Result<(), InputError> {
        let names = run.header.shapes.iter().map(|shape| shape.name.as_str());
        if let Some(kept) = self.of(&names.collect::<Vec<_>>())? {
            run.keep_shapes(|name| kept.iter().any(|one| one == name));
        }
        Ok(())
    }

    /// The selected shapes, or `None` for all; a word that matches none is an error.
    fn of(&self, names: &[&str]) -> Result<Option<Vec<String>>, InputError> {
        let mut kept = Vec::new();
        for word in self.words() {
            kept.extend(matching(word, names)?.into_iter().map(str::to_owned));
        }
        Ok((!self.is_all()).then_some(kept))
    }
}

/// The shapes that a word matches, at least one.
pub(super) fn matching<'n>(word: &str, names: &[&'n str]) -> Result<Vec<&'n str>, InputError> {
    let pattern = Pattern::new(word);
    let found = names.iter().copied().filter(|name| pattern.matches(name));
    let found: Vec<&str> = found.collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let remedy = match nearest(word, names.iter().copied()) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("it has {}", names.join(", ")),
    };
    let message = match pattern.is_wild() {
        true => format!("no shape matches `{word}`"),
        false => format!("there is no shape `{word}`"),
    };
    Err(InputError::new(message, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_contenders_parts_outside_brackets() {
        let parts = |list: &str| list.parse::<Names>().unwrap().0;
        assert_eq!(parts("a,b"), ["a", "b"]);
        assert_eq!(parts("a; b"), ["a", "b"]);
        assert_eq!(
            parts("pipelined[STAGES=2,BM=64],b:Y=2:Z=3;c[X=1]"),
            ["pipelined[STAGES=2,BM=64]", "b:Y=2:Z=3", "c[X=1]"]
        );
        assert!("a,,b".parse::<Names>().is_err() && "".parse::<Names>().is_err());
    }

    #[test]
    fn shapes_are_meant_by_name_or_pattern_and_a_word_for_none_is_a_mistake() {
        let names = ["256x3072x4096", "512x3072x4096", "g8-k7168"];
        assert_eq!(matching("256*", &names).unwrap(), ["256x3072x4096"]);
        assert_eq!(matching("*x3072x*", &names).unwrap().len(), 2);
        assert_eq!(matching("g8-k7168", &names).unwrap(), ["g8-k7168"]);
        let why = matching("g8-k716", &names).unwrap_err();
        assert!(why.to_string().contains("no shape `g8-k716`"), "{why}");
        assert!(matching("1024*", &names).is_err());
    }
}
