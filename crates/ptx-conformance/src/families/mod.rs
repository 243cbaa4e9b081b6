//! The cases, by the part of the ISA they exercise.

mod atomic;
mod barrier;
mod blackwell;
mod cluster;
mod compare;
mod control;
mod convert;
mod copy;
mod float;
mod half;
mod integer;
mod matrix;
mod mbarrier;
mod memory;
mod mma;
mod narrow_mma;
mod special;
mod tcgen05;
mod tensor_copy;
mod warp;
mod wgmma;

use crate::case::Case;

/// The cards that goldens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Card {
    /// An H200, or another Hopper.
    Hopper,
    /// A B200. None has answered yet: until one does, its cases are only run.
    Blackwell,
    /// Blackwell without tensor memory, likewise.
    Consumer,
}

/// What the cases of a B200 are made for.
const BLACKWELL: &str = "sm_100a";
/// What those of the consumer chips are.
const CONSUMER: &str = "sm_120a";

impl Card {
    /// The major compute capability.
    pub fn capability(self) -> i32 {
        match self {
            Self::Hopper => 9,
            Self::Blackwell => 10,
            Self::Consumer => 12,
        }
    }
}

/// A table of cases that share a theme, and the golden file they are stored in.
#[derive(Debug)]
pub struct Family {
    /// Its name in listings.
    pub name: &'static str,
    /// The golden file's stem.
    pub group: &'static str,
    /// The card that answers.
    pub card: Card,
    /// Builds its cases.
    pub cases: fn() -> Vec<Case>,
}

const fn family(name: &'static str, group: &'static str, cases: fn() -> Vec<Case>) -> Family {
    Family {
        name,
        group,
        card: Card::Hopper,
        cases,
    }
}

/// All families, in the order of listings and golden files.
pub const FAMILIES: &[Family] = &[
    family("integer", "scalar", integer::cases),
    family("float", "scalar", float::cases),
    family("half", "scalar", half::cases),
    family("compare", "scalar", compare::cases),
    family("control", "scalar", control::cases),
    family("convert", "convert", convert::cases),
    family("memory", "memory", memory::cases),
    family("atomic", "memory", atomic::cases),
    family("warp", "memory", warp::cases),
    family("barrier", "memory", barrier::cases),
    family("mbarrier", "memory", mbarrier::cases),
    family("copy", "memory", copy::cases),
    family("cluster", "memory", cluster::cases),
    family("special", "memory", special::cases),
    family("tensor_copy", "tensor_copy", tensor_copy::cases),
    family("matrix", "matrix", matrix::cases),
    family("mma", "matrix", mma::cases),
    family("wgmma", "wgmma", wgmma::cases),
    Family {
        card: Card::Blackwell,
        ..family("tcgen05", "tcgen05", tcgen05::cases)
    },
    Family {
        card: Card::Blackwell,
        ..family("blackwell", "blackwell", blackwell::cases)
    },
    Family {
        card: Card::Blackwell,
        ..family("blackwell_copy", "blackwell", blackwell::copies::cases)
    },
    Family {
        card: Card::Consumer,
        ..family("narrow_mma", "narrow_mma", narrow_mma::cases)
    },
];

/// The golden files' stems, each once.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<_> = FAMILIES.iter().map(|f| f.group).collect();
    groups.dedup();
    groups
}

/// The card of a group.
pub fn card(group: &str) -> Card {
    let family = FAMILIES.iter().find(|f| f.group == group);
    family.map_or(Card::Hopper, |f| f.card)
}

/// The family of this name.
pub fn find(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.name == name)
}

/// Every case of the suite.
pub fn all() -> Vec<Case> {
    FAMILIES.iter().flat_map(|f| (f.cases)()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = BTreeSet::new();
        for case in all() {
            assert!(seen.insert(case.name.clone()), "{} twice", case.name);
        }
    }

    #[test]
    fn groups_are_contiguous_and_few() {
        let groups = groups();
        assert_eq!(groups.iter().collect::<BTreeSet<_>>().len(), groups.len());
        assert!(groups.len() <= 9);
    }
}
