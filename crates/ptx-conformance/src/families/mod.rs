//! The cases, by the part of the ISA they exercise.

mod atomic;
mod barrier;
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
mod special;
mod tensor_copy;
mod warp;
mod wgmma;

use crate::case::Case;

/// A table of cases that share a theme, and the golden file they are stored in.
#[derive(Debug)]
pub struct Family {
    /// Its name in listings.
    pub name: &'static str,
    /// The golden file's stem.
    pub group: &'static str,
    /// Builds its cases.
    pub cases: fn() -> Vec<Case>,
}

const fn family(name: &'static str, group: &'static str, cases: fn() -> Vec<Case>) -> Family {
    Family { name, group, cases }
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
];

/// The golden files' stems, each once.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<_> = FAMILIES.iter().map(|f| f.group).collect();
    groups.dedup();
    groups
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
        assert!(groups.len() <= 6);
    }
}
