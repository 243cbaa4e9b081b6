use std::collections::BTreeMap;
use std::fmt;

use crate::domain::Joined;
use serde::{Deserialize, Serialize};

/// The printed name of a contender: a variant with its parameters, `interleaved` or
/// `pipelined[STAGES=3]`. Users may also write `pipelined:STAGES=3`, which no shell reads as a
/// pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContenderId(String);

impl ContenderId {
    /// The name of `variant` with these parameters, keys in sorted order.
    pub fn new(variant: &str, params: &BTreeMap<String, i64>) -> Self {
        if params.is_empty() {
            return Self(variant.to_owned());
        }
        let list = params.iter().map(|(k, v)| format!("{k}={v}")).joined(",");
        Self(format!("{variant}[{list}]"))
    }

    /// A name read back from a run file.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A name as a user wrote it, in either spelling and with its parameters in any order. Other
    /// text stays unchanged, and will not be found.
    pub fn written(text: &str) -> Self {
        match Self::parts(text) {
            Ok((variant, params)) => Self::new(&variant, &params),
            Err(_) => Self(text.trim().to_owned()),
        }
    }

    /// Variant and parameters of `name`, `name:KEY=1:KEY=2` or
    /// `name[KEY=1,KEY=2]`.
    pub fn parts(text: &str) -> Result<(String, BTreeMap<String, i64>), String> {
        let text = text.trim();
        let (variant, list, comma) = match (text.split_once('['), text.split_once(':')) {
            // A shell has sets of characters; names do not.
            (Some((before, rest)), Some(_)) if before.contains(':') => {
                return Err(format!(
                    "`[{rest}` is not a pattern: use `*` and `?`, and separate several by commas"
                ));
            }
            (Some((variant, rest)), _) => {
                let list = rest.strip_suffix(']');
                let list = list.ok_or_else(|| format!("`{text}` has no closing bracket"))?;
                (variant, list, ',')
            }
            (None, Some((variant, list))) => (variant, list, ':'),
            (None, None) => return Ok((text.to_owned(), BTreeMap::new())),
        };
        let mut params = BTreeMap::new();
        for entry in list.split(comma) {
            let parsed = entry
                .split_once('=')
                .and_then(|(key, value)| Some((key.trim(), value.trim().parse::<i64>().ok()?)));
            let Some((key, value)) = parsed else {
                return Err(format!("`{}` is not KEY=integer", entry.trim()));
            };
            if params.insert(key.to_owned(), value).is_some() {
                return Err(format!("`{key}` is fixed twice"));
            }
        }
        Ok((variant.trim().to_owned(), params))
    }

    /// As a user types it: `pipelined:STAGES=3`.
    pub fn typed(&self) -> String {
        let plain = self.0.replacen('[', ":", 1).replace(',', ":");
        super::typed(plain.strip_suffix(']').unwrap_or(&self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The variant's name: the part before the bracket.
    pub fn variant(&self) -> &str {
        self.0.split('[').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for ContenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_lists_parameters_in_sorted_order() {
        let params = BTreeMap::from([("STAGES".to_owned(), 3), ("BN".to_owned(), 64)]);
        let id = ContenderId::new("pipelined", &params);
        assert_eq!(id.as_str(), "pipelined[BN=64,STAGES=3]");
        assert_eq!(id.variant(), "pipelined");
        assert_eq!(id.typed(), "pipelined:BN=64:STAGES=3");
        assert_eq!(ContenderId::from_text("two-pass").typed(), "two-pass");
    }

    #[test]
    fn both_spellings_are_one_name() {
        for text in [
            "pipelined[BN=64,STAGES=3]",
            "pipelined[STAGES=3, BN=64]",
            "pipelined:STAGES=3:BN=64",
            " pipelined:BN=64:STAGES=3 ",
        ] {
            let id = ContenderId::written(text);
            assert_eq!(id.as_str(), "pipelined[BN=64,STAGES=3]", "{text}");
            assert_eq!(ContenderId::written(&id.typed()), id);
        }
        for (text, why) in [
            ("a:", "`` is not KEY=integer"),
            ("a:X", "`X` is not KEY=integer"),
            (
                "a:X=[12]",
                "`[12]` is not a pattern: use `*` and `?`, and separate several by commas",
            ),
            ("a:X=1,Y=2", "`X=1,Y=2` is not KEY=integer"),
            ("a:X=1:X=2", "`X` is fixed twice"),
            ("a[X=1", "no closing bracket"),
        ] {
            let said = ContenderId::parts(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
            assert_eq!(ContenderId::written(text).as_str(), text);
        }
    }
}
