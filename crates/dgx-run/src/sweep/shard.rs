use std::fmt;
use std::str::FromStr;

use crate::plan::shards;
use dgx_core::config::Round;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Timing, counted};
use dgx_core::record::schema::Shard;

/// A part of a round, as `2/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardOf {
    /// From 1.
    pub number: u32,
    pub of: u32,
}

impl ShardOf {
    /// Leaves the round only the shapes of this part, and returns the part.
    pub fn cut(self, round: &mut Round, timing: Timing) -> Result<Shard, CommandError> {
        let all = round.shapes.clone();
        let none = || {
            CommandError::usage(
                format!(
                    "not every shard of {} would have a shape: the round has {}, and contenders \
                     are compared shape by shape",
                    self.of,
                    all.len()
                ),
                format!("use at most {}", counted(all.len(), "shard")),
            )
        };
        if self.of as usize > all.len() {
            return Err(none());
        }
        let dealt = shards(&round.operator, &all, self.of as usize, timing);
        let places = dealt.get(self.number as usize - 1).ok_or_else(none)?;
        round.keep(|shape| places.iter().any(|place| all[*place].name == shape.name));
        Ok(Shard {
            number: self.number,
            of: self.of,
            shapes: all,
        })
    }
}

impl FromStr for ShardOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((number, of)) if number >= 1 && number <= of => Ok(Self { number, of }),
            Some((number, of)) => Err(format!(
                "there is no shard {number} of {of}; write I/N with I from 1 to N"
            )),
            None => Err("write I/N, e.g. 2/4 for the second of four".to_owned()),
        }
    }
}

impl fmt::Display for ShardOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_so_many() {
        let shard: ShardOf = "2/4".parse().unwrap();
        assert_eq!((shard.number, shard.of), (2, 4));
        assert_eq!(shard.to_string(), "2/4");
        for (text, why) in [
            ("0/4", "no shard 0 of 4"),
            ("5/4", "no shard 5 of 4"),
            ("2", "write I/N"),
            ("a/b", "write I/N"),
            ("1/99999999999", "write I/N"),
        ] {
            let said = text.parse::<ShardOf>().unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
