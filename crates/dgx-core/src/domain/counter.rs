//! The emulator's counters, with one name each for tables, gates and exports. A counter is one
//! number of the run file, or the sum of several that belong together.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::Bytes;

/// The unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CounterUnit {
    Count,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter {
    name: &'static str,
    unit: CounterUnit,
    /// Names in the run file, whose values it sums.
    pub of: &'static [&'static str],
}

/// Counters that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    pub title: &'static str,
    pub counters: &'static [Counter],
}

/// Warp instructions by class, as run files name them.
const INSTRUCTIONS: &[&str] = &[
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

const fn count(name: &'static str, of: &'static [&'static str]) -> Counter {
    let unit = CounterUnit::Count;
    Counter { name, unit, of }
}

const fn bytes(name: &'static str, of: &'static [&'static str]) -> Counter {
    let unit = CounterUnit::Bytes;
    Counter { name, unit, of }
}

/// All counters, in the order in which they are shown.
pub const PANELS: [Panel; 3] = [
    Panel {
        title: "work",
        counters: &[
            count("launches", &["launches"]),
            count("ctas", &["ctas"]),
            count("mma-flops", &["mma-flops"]),
            count("mma-flops-useful", &["mma-flops-useful"]),
            count("barrier-waits", &["barrier-waits"]),
            count("bank-conflicts", &["bank-conflicts"]),
            count("bulk-copies", &["bulk-copies"]),
            count("atomics", &["atomics"]),
            count("early-reads", &["early-reads"]),
        ],
    },
    Panel {
        title: "bytes, all and of distinct 32-byte sectors",
        counters: &[
            bytes("global-bytes-read", &["global-read", "async-read"]),
            bytes("global-distinct-read", &["global-unique-read"]),
            bytes("global-bytes-written", &["global-written", "async-written"]),
            bytes("global-distinct-written", &["global-unique-written"]),
            bytes(
                "shared-bytes-read",
                &["shared-read", "shared-async-read", "shared-tensor-read"],
            ),
            bytes("shared-distinct-read", &["shared-unique-read"]),
            bytes(
                "shared-bytes-written",
                &["shared-written", "shared-async-written"],
            ),
            bytes("shared-distinct-written", &["shared-unique-written"]),
            bytes("local-bytes-read", &["local-read"]),
            bytes("local-bytes-written", &["local-written"]),
        ],
    },
    Panel {
        title: "warp instructions, all and by class",
        counters: &[
            count("instructions", INSTRUCTIONS),
            count("instructions-int", &["instructions-int"]),
            count("instructions-float", &["instructions-float"]),
            count("instructions-double", &["instructions-double"]),
            count("instructions-half", &["instructions-half"]),
            count("instructions-convert", &["instructions-convert"]),
            count("instructions-mufu", &["instructions-mufu"]),
            count("instructions-global", &["instructions-global"]),
            count("instructions-shared", &["instructions-shared"]),
            count("instructions-other-memory", &["instructions-other-memory"]),
            count("instructions-control", &["instructions-control"]),
            count("instructions-sync", &["instructions-sync"]),
            count("instructions-async", &["instructions-async"]),
            count("instructions-tensor", &["instructions-tensor"]),
        ],
    },
];

impl Counter {
    pub fn all() -> impl Iterator<Item = Self> {
        PANELS.iter().flat_map(|panel| panel.counters).copied()
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|counter| counter.name == name)
    }

    pub fn names() -> Vec<&'static str> {
        Self::all().map(|counter| counter.name).collect()
    }

    pub fn as_str(self) -> &'static str {
        self.name
    }

    /// Its name as the heading of a narrow column: `bank-\nconflicts`.
    pub fn title(self) -> String {
        let (first, rest) = self.name.split_once('-').unwrap_or((self.name, ""));
        match rest {
            "" => first.to_owned(),
            rest => format!("{first}-\n{}", rest.replacen('-', "-\n", 1)),
        }
    }

    /// Its value; `None` if the record lacks a part of it.
    pub fn value(self, counters: &BTreeMap<String, f64>) -> Option<f64> {
        self.of.iter().map(|name| counters.get(*name)).sum()
    }

    /// A value for reading: three digits and a prefix.
    pub fn text(self, value: f64) -> String {
        match self.unit {
            CounterUnit::Bytes => Bytes(value.max(0.0) as u64).to_string(),
            CounterUnit::Count => prefixed(value),
        }
    }
}

/// `412`, `41.2 k`, `4.12 M`.
fn prefixed(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(unit, _)| value >= *unit) {
        None => format!("{value:.0}"),
        Some((unit, prefix)) => match value / unit {
            v if v < 9.995 => format!("{v:.2} {prefix}"),
            v if v < 99.95 => format!("{v:.1} {prefix}"),
            v => format!("{v:.0} {prefix}"),
        },
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

    /// The heading of a column is the name in a gate, and each name means one counter.
    #[test]
    fn titles_are_the_names() {
        let mut seen = std::collections::BTreeSet::new();
        for counter in Counter::all() {
            assert_eq!(counter.title().replace('\n', ""), counter.as_str());
            assert!(seen.insert(counter.as_str()), "{counter} is there twice");
        }
    }

    #[test]
    fn three_digits_and_a_prefix() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1000.0, "1.00 k"),
            (41_234.0, "41.2 k"),
            (999_999.0, "1000 k"),
            (9.996e6, "10.0 M"),
            (1.1e12, "1.10 T"),
        ] {
            assert_eq!(prefixed(value), text);
        }
    }
}
