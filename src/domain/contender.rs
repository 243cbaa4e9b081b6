use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The printed name of one contender: a variant with its parameters chosen,
/// `interleaved` or `pipelined[STAGES=3]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ContenderId(String);

impl ContenderId {
    /// The name of `variant` with these parameters, keys in sorted order.
    pub(crate) fn new(variant: &str, params: &BTreeMap<String, i64>) -> Self {
        if params.is_empty() {
            return Self(variant.to_owned());
        }
        let list: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        Self(format!("{variant}[{}]", list.join(",")))
    }

    /// A name read back from a run file or typed by a user.
    pub(crate) fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The variant's name: what stands before the bracket.
    pub(crate) fn variant(&self) -> &str {
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
    }
}
