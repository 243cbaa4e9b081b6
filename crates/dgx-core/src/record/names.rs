use std::collections::HashMap;

use super::schema::Header;
use crate::domain::ContenderId;

/// The names in a header, numbered: contenders in its order, then the yardstick, then the
/// baseline's second entry, which has no name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Names {
    entrants: HashMap<String, usize>,
    shapes: HashMap<String, usize>,
    baseline: Option<usize>,
}

impl Names {
    pub(super) fn of(header: &Header) -> Self {
        let contenders = header.contenders.iter().map(|c| &c.id);
        let ids = contenders.chain(&header.yardstick);
        let named = |(i, id): (usize, &ContenderId)| (id.as_str().to_owned(), i);
        let entrants: HashMap<String, usize> = ids.enumerate().map(named).collect();
        let shapes = header.shapes.iter().enumerate();
        Self {
            baseline: entrants.get(header.baseline.as_str()).copied(),
            entrants,
            shapes: shapes.map(|(i, s)| (s.name.clone(), i)).collect(),
        }
    }

    pub(super) fn entrant(&self, name: &str) -> Option<usize> {
        self.entrants.get(name).copied()
    }

    pub(super) fn shape(&self, name: &str) -> Option<usize> {
        self.shapes.get(name).copied()
    }

    /// The arm of the baseline's second entry.
    pub(super) fn control(&self) -> usize {
        self.entrants.len()
    }

    /// Everything a block can time.
    pub(super) fn arms(&self) -> usize {
        self.entrants.len() + 1
    }

    pub(super) fn is_baseline(&self, entrant: usize) -> bool {
        self.baseline == Some(entrant)
    }
}
