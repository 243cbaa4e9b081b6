//! What the emulator counted, as run files name it, and the figures that
//! tables and pages make of it. One definition, so that they cannot disagree.

use std::collections::BTreeMap;

use super::Run;
use crate::domain::{Bytes, ContenderId, INSTRUCTIONS};

/// Counters by name.
pub(crate) type Counts = BTreeMap<String, f64>;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    Bytes,
}

/// A number shown to a reader: one counter, or several that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    /// Over two lines where that keeps its column narrow.
    pub title: &'static str,
    pub unit: Unit,
    /// The counters it is the sum of.
    pub of: &'static [&'static str],
}

/// Figures that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    pub title: &'static str,
    pub figures: &'static [Figure],
}

const fn count(title: &'static str, of: &'static [&'static str]) -> Figure {
    let unit = Unit::Count;
    Figure { title, unit, of }
}

const fn bytes(title: &'static str, of: &'static [&'static str]) -> Figure {
    let unit = Unit::Bytes;
    Figure { title, unit, of }
}

/// Everything that is counted, in the order it is shown.
pub(crate) const PANELS: [Panel; 3] = [
    Panel {
        title: "work",
        figures: &[
            count("launches", &["launches"]),
            count("CTAs", &["ctas"]),
            count("MMA FLOPs\nissued", &["mma-flops"]),
            count("MMA FLOPs\nuseful", &["mma-flops-useful"]),
            count("barrier\nwaits", &["barrier-waits"]),
            count("bank\nconflicts", &["bank-conflicts"]),
            count("bulk\ncopies", &["bulk-copies"]),
            count("atomics", &["atomics"]),
            count("early\nreads", &["early-reads"]),
        ],
    },
    Panel {
        title: "bytes, all and of distinct 32-byte sectors",
        figures: &[
            bytes("global\nread", &["global-read", "async-read"]),
            bytes("distinct", &["global-unique-read"]),
            bytes("global\nwritten", &["global-written", "async-written"]),
            bytes("distinct", &["global-unique-written"]),
            bytes(
                "shared\nread",
                &["shared-read", "shared-async-read", "shared-tensor-read"],
            ),
            bytes("distinct", &["shared-unique-read"]),
            bytes(
                "shared\nwritten",
                &["shared-written", "shared-async-written"],
            ),
            bytes("distinct", &["shared-unique-written"]),
            bytes("local\nread", &["local-read"]),
            bytes("local\nwritten", &["local-written"]),
        ],
    },
    Panel {
        title: "warp instructions by class",
        figures: &[
            count("all", INSTRUCTIONS),
            count("int", &["instructions-int"]),
            count("float", &["instructions-float"]),
            count("double", &["instructions-double"]),
            count("half", &["instructions-half"]),
            count("convert", &["instructions-convert"]),
            count("mufu", &["instructions-mufu"]),
            count("global", &["instructions-global"]),
            count("shared", &["instructions-shared"]),
            count("other\nmemory", &["instructions-other-memory"]),
            count("control", &["instructions-control"]),
            count("sync", &["instructions-sync"]),
            count("async", &["instructions-async"]),
            count("tensor", &["instructions-tensor"]),
        ],
    },
];

impl Figure {
    /// `None` where the run does not have all of its counters.
    pub(crate) fn value(&self, counts: &Counts) -> Option<f64> {
        self.of.iter().map(|name| counts.get(*name)).sum()
    }

    /// A value as a reader wants it: three digits and a prefix.
    pub(crate) fn text(&self, value: f64) -> String {
        match self.unit {
            Unit::Bytes => Bytes(value.max(0.0) as u64).to_string(),
            Unit::Count => prefixed(value),
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

impl Run {
    /// A contender's counters on one shape; `None` where nothing was emulated.
    pub(crate) fn counts(&self, contender: &ContenderId, shape: &str) -> Option<&Counts> {
        let counts = &self.verdict(contender, shape)?.counters;
        (!counts.is_empty()).then_some(counts)
    }

    /// Its counters summed over those of `shapes` that have any, and how many
    /// of them do.
    pub(crate) fn summed_counts<'s>(
        &self,
        contender: &ContenderId,
        shapes: impl IntoIterator<Item = &'s str>,
    ) -> Option<(Counts, usize)> {
        let mut sum = Counts::new();
        let mut counted = 0;
        for counts in shapes.into_iter().filter_map(|s| self.counts(contender, s)) {
            counted += 1;
            for (name, value) in counts {
                *sum.entry(name.clone()).or_default() += value;
            }
        }
        (counted > 0).then_some((sum, counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_lacks_a_value_when_a_part_of_it_is_missing() {
        let figure = count("both", &["a", "b"]);
        let mut counts = Counts::from([("a".to_owned(), 1.0)]);
        assert_eq!(figure.value(&counts), None);
        counts.insert("b".to_owned(), 2.0);
        assert_eq!(figure.value(&counts), Some(3.0));
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
