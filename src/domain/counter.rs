use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// Something the emulator counts that a gate can hold against a baseline: one
/// counter of the run file, or several that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counter {
    name: &'static str,
    /// Names in the run file whose sum it is.
    of: &'static [&'static str],
}

/// Warp instructions by class, as run files name them.
pub(crate) const INSTRUCTIONS: &[&str] = &[
    "instructions-int",
    "instructions-float",
    "instructions-double",
    "instructions-half",
    "instructions-convert",
    "instructions-mufu",
    "instructions-global",
    "instructions-shared",
    "instructions-other-memory",
    "instructions-control",
    "instructions-sync",
    "instructions-async",
    "instructions-tensor",
];

const fn counter(name: &'static str, of: &'static [&'static str]) -> Counter {
    Counter { name, of }
}

impl Counter {
    pub(crate) const ALL: &[Self] = &[
        counter("instructions", INSTRUCTIONS),
        counter("tensor-instructions", &["instructions-tensor"]),
        counter("mma-flops", &["mma-flops"]),
        counter("global-bytes-read", &["global-read", "async-read"]),
        counter("global-bytes-written", &["global-written", "async-written"]),
        counter("memory-bytes-read", &["global-unique-read"]),
        counter("memory-bytes-written", &["global-unique-written"]),
        counter("shared-bytes-read", &["shared-read"]),
        counter("shared-bytes-written", &["shared-written"]),
        counter("bank-conflicts", &["bank-conflicts"]),
        counter("barrier-waits", &["barrier-waits"]),
        counter("bulk-copies", &["bulk-copies"]),
        counter("atomics", &["atomics"]),
        counter("launches", &["launches"]),
        counter("ctas", &["ctas"]),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|c| c.name == name).copied()
    }

    /// Every name, for an error that lists them.
    pub(crate) fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|c| c.name).collect();
        names.join(", ")
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.name
    }

    /// Its value; `None` where the record lacks a part of it.
    pub(crate) fn value(self, counters: &BTreeMap<String, f64>) -> Option<f64> {
        self.of.iter().map(|name| counters.get(*name)).sum()
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_missing_is_not_zero() {
        let mut counters = BTreeMap::from([("global-read".to_owned(), 3.0)]);
        let bytes = Counter::named("global-bytes-read").unwrap();
        assert_eq!(bytes.value(&counters), None);
        counters.insert("async-read".to_owned(), 4.0);
        assert_eq!(bytes.value(&counters), Some(7.0));
        assert_eq!(Counter::named("bank_conflicts"), None);
    }
}
