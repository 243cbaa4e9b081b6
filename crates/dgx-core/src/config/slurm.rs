//! How shards become jobs: a `[slurm]` table, in a round or in what a user
//! keeps for all rounds.

use std::path::PathBuf;
use std::str::FromStr;

use super::limits::RETRIES;
use super::wire;
use crate::diagnostic::{InputError, SourceFile};
use crate::document::{Document, Spanned};
use crate::home::user_folder;

const GUIDE: &str = "docs/cluster.md lists the keys";
/// More tasks than any cluster takes in one array.
const MOST: u32 = 100_000;

/// What is asked of Slurm; what is absent is left to it, or to dgx.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slurm {
    pub array: Option<Array>,
    pub partition: Option<String>,
    /// Empty for none.
    pub gres: Option<String>,
    pub time: Option<String>,
    /// How often a task that failed is submitted again.
    pub retries: Option<u32>,
    /// Further words for `sbatch`.
    pub sbatch_args: Vec<String>,
}

/// `N`, or `N%M`: so many shards, so many at once.
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

impl Slurm {
    /// What this leaves open as `base` has it.
    pub fn over(self, base: Self) -> Self {
        Self {
            array: self.array.or(base.array),
            partition: self.partition.or(base.partition),
            gres: self.gres.or(base.gres),
            time: self.time.or(base.time),
            retries: self.retries.or(base.retries),
            // Later words win with sbatch.
            sbatch_args: [base.sbatch_args, self.sbatch_args].concat(),
        }
    }

    /// What the user keeps for all rounds: `$DGX_CONFIG`, else
    /// `~/.config/dgx/config.toml`, if there is one.
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
        let document = Document::new(&file, 0..file.text.len(), GUIDE);
        let wire: wire::UserFile = document.parse()?;
        read(&document, wire.slurm)
    }
}

pub(super) fn read(
    document: &Document<'_>,
    wire: Option<wire::Slurm>,
) -> Result<Slurm, InputError> {
    let Some(wire) = wire else {
        return Ok(Slurm::default());
    };
    let line = |text: String, span| match text.chars().any(char::is_control) {
        true => Err(document.error(span, "not one line of text", "write what sbatch takes")),
        false => Ok(text),
    };
    let word = |text: Spanned<String>| line(text.get_ref().clone(), text.span());
    let number_or_text = |value: Spanned<toml::Value>| match value.get_ref() {
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::String(text) => line(text.clone(), value.span()),
        _ => Err(document.error(
            value.span(),
            "neither a number nor text",
            "see docs/cluster.md",
        )),
    };
    let array = |value: Spanned<toml::Value>| {
        let span = value.span();
        let parsed = number_or_text(value)?.parse();
        parsed.map_err(|why: String| document.error(span, why, "e.g. array = \"16%4\""))
    };
    let retries = |count: Spanned<i64>| {
        let parsed = u32::try_from(*count.get_ref())
            .ok()
            .filter(|n| RETRIES.contains(n));
        let why = || {
            document.error(
                count.span(),
                "no number of retries",
                format!("give {} to {}", RETRIES.start(), RETRIES.end()),
            )
        };
        parsed.ok_or_else(why)
    };
    Ok(Slurm {
        array: wire.array.map(array).transpose()?,
        partition: wire.partition.map(word).transpose()?,
        gres: wire.gres.map(word).transpose()?,
        time: wire.time.map(number_or_text).transpose()?,
        retries: wire.retries.map(retries).transpose()?,
        sbatch_args: wire
            .sbatch_args
            .into_iter()
            .map(word)
            .collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Slurm, InputError> {
        let file = SourceFile {
            path: "config.toml".into(),
            text: text.into(),
        };
        let document = Document::new(&file, 0..file.text.len(), GUIDE);
        let wire: wire::UserFile = document.parse()?;
        read(&document, wire.slurm)
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
            ("[slurm]\nretries = -1\n", "no number of retries"),
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
