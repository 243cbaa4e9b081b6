//! How shards become jobs: a `[slurm]` table, in a round or in a user's settings for all rounds.

use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::limits::Retries;
use super::wire;
use crate::diagnostic::{InputError, SourceFile};
use crate::document::{Document, Value, Within, optional, refused};
use crate::home::user_folder;

const GUIDE: &str = "docs/cluster.md lists the keys";
/// More tasks than any cluster accepts in one array.
const MOST: u32 = 100_000;

/// Options for Slurm; absent ones are left to Slurm, or to dgx.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Slurm {
    /// Number of shards, and how many at once: 16, or "16%4".
    #[schemars(with = "Option<Value>")]
    pub array: Option<Array>,
    /// Partition to submit to.
    #[serde(deserialize_with = "line::<String, _>")]
    pub partition: Option<String>,
    /// Resources of each task; empty for none.
    #[serde(deserialize_with = "line::<String, _>")]
    pub gres: Option<String>,
    /// Time limit of a task, in sbatch's format.
    #[serde(deserialize_with = "line::<Value, _>")]
    #[schemars(with = "Option<Value>")]
    pub time: Option<String>,
    /// How often a failed task is submitted again.
    #[serde(deserialize_with = "optional::<Retries, _>")]
    #[schemars(with = "Within<Retries>")]
    pub retries: Option<u32>,
    /// Further arguments for sbatch.
    #[serde(deserialize_with = "lines")]
    pub sbatch_args: Vec<String>,
}

fn line<'de, T, D>(wire: D) -> Result<Option<String>, D::Error>
where
    T: Deserialize<'de> + ToString,
    D: Deserializer<'de>,
{
    let text = T::deserialize(wire)?.to_string();
    match text.chars().any(char::is_control) {
        true => Err(refused("not one line of text", "write what sbatch takes")),
        false => Ok(Some(text)),
    }
}

fn lines<'de, D: Deserializer<'de>>(wire: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Line(#[serde(deserialize_with = "line::<String, _>")] Option<String>);
    let lines = Vec::<Line>::deserialize(wire)?;
    Ok(lines.into_iter().filter_map(|line| line.0).collect())
}

/// `N`, or `N%M`: the number of shards, and how many run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    pub shards: u32,
    pub at_once: Option<u32>,
}

impl FromStr for Array {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n));
        let array = match text.split_once('%') {
            None => number(text).map(|shards| (shards, None)),
            Some((shards, at_once)) => number(shards).zip(number(at_once).map(Some)),
        };
        let (shards, at_once) =
            array.ok_or_else(|| format!("write N or N%M, of 1 to {MOST}: `{text}` is neither"))?;
        Ok(Self { shards, at_once })
    }
}

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(wire: D) -> Result<Self, D::Error> {
        let text = Value::deserialize(wire)?.to_string();
        let parsed = text.parse();
        parsed.map_err(|why: String| refused(why, "e.g. array = \"16%4\""))
    }
}

impl Slurm {
    /// These options, with missing ones taken from `base`.
    pub fn over(self, base: Self) -> Self {
        Self {
            array: self.array.or(base.array),
            partition: self.partition.or(base.partition),
            gres: self.gres.or(base.gres),
            time: self.time.or(base.time),
            retries: self.retries.or(base.retries),
            // Later arguments override earlier ones in sbatch.
            sbatch_args: [base.sbatch_args, self.sbatch_args].concat(),
        }
    }

    /// The user's settings for all rounds: `$DGX_CONFIG`, else `~/.config/dgx/config.toml`, if
    /// there is one.
    pub fn of_user() -> Result<Self, InputError> {
        let named = std::env::var_os("DGX_CONFIG").filter(|v| !v.is_empty());
        let named = named.map(PathBuf::from);
        let usual = || {
            let path = user_folder("XDG_CONFIG_HOME", ".config")?.join("config.toml");
            path.exists().then_some(path)
        };
        let Some(path) = named.or_else(usual) else {
            return Ok(Self::default());
        };
        let remedy = "fix it, or name another file in DGX_CONFIG";
        let file = SourceFile::read(&path, "user config", remedy)?;
        let document = Document::whole(&file, GUIDE);
        Ok(document.parse::<wire::UserFile>()?.slurm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Slurm, InputError> {
        let file = SourceFile {
            path: "config.toml".into(),
            text: text.into(),
        };
        let document = Document::whole(&file, GUIDE);
        Ok(document.parse::<wire::UserFile>()?.slurm)
    }

    #[test]
    fn what_is_nearer_wins_and_words_add_up() {
        let user = parsed(
            "[slurm]\npartition = \"gpu\"\ntime = \"1:00:00\"\nsbatch_args = [\"--account=a\"]\n",
        );
        let round = parsed("[slurm]\narray = \"16%4\"\ntime = 30\nsbatch_args = [\"--mem=8G\"]\n");
        let slurm = round.unwrap().over(user.unwrap());
        assert_eq!(slurm.partition.as_deref(), Some("gpu"));
        assert_eq!(slurm.time.as_deref(), Some("30"));
        assert_eq!(slurm.sbatch_args, ["--account=a", "--mem=8G"]);
        let array = slurm.array.unwrap();
        assert_eq!((array.shards, array.at_once), (16, Some(4)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        for (text, why) in [
            ("[slurm]\narray = \"0\"\n", "write N or N%M"),
            ("[slurm]\narray = \"4%0\"\n", "write N or N%M"),
            ("[slurm]\nretries = -1\n", "retries = -1 is out of range"),
            ("[slurm]\npartion = \"gpu\"\n", "partion"),
            ("[slurm]\ntime = \"1\\n2\"\n", "not one line"),
        ] {
            let said = parsed(text).unwrap_err().to_string();
            assert!(
                said.contains("config.toml:2:") && said.contains(why),
                "{said}"
            );
        }
    }
}
