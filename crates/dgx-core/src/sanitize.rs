//! The findings of `dgx sanitize`: whether contenders are correct only by luck, in several legal
//! orders of warps and copies.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::{Bytes, ContenderHazard, ContenderId, Hazard, Shape, Status, each_once};

#[cfg(any(test, feature = "synthetic"))]
#[path = "sanitize/tests/synthetic.rs"]
pub mod synthetic;

/// Settings of a sanitize run.
#[derive(Clone, Debug)]
pub struct SanitizeSettings {
    /// Seeds of the orders to try; the others are compared with the first.
    pub schedules: Vec<u64>,
    pub strict: bool,
    /// How long one call may take.
    pub time_limit: Duration,
}

/// A shape to run on, and its purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanitizeCase {
    pub shape: Shape,
    /// Multiprocessors of the device it is planned for.
    pub sms: u32,
    /// The path it is meant to reach.
    pub reaches: &'static str,
}

/// The result of one contender on one shape.
#[derive(Clone, Debug)]
pub struct SanitizedCell {
    pub contender: ContenderId,
    /// The status its variant declares.
    pub expect: Status,
    pub case: SanitizeCase,
    pub status: Status,
    pub reason: Option<String>,
    /// Found in any schedule, each once.
    pub hazards: Vec<Hazard>,
    /// The first schedule whose result differs from the first's, or that did not end.
    pub deviation: Option<Deviation>,
    /// Global memory that was not watched, in the schedule with the most of it.
    pub unwatched: Bytes,
}

/// The results of all cells.
#[derive(Debug, Default)]
pub struct SanitizeReport {
    pub cells: Vec<SanitizedCell>,
    /// Cells that were not examined because the user stopped the command.
    pub left: Vec<(ContenderId, SanitizeCase)>,
}

/// A schedule whose findings differ from the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    pub schedule: u64,
    pub what: String,
}

impl SanitizeReport {
    /// The same with `tells` applied to its texts, which name files.
    pub fn with_paths(&self, tells: &dyn Fn(&str) -> String) -> Self {
        let mut cells = self.cells.clone();
        for cell in &mut cells {
            let hazards = cell.hazards.iter_mut();
            let accesses = hazards.flat_map(|hazard| {
                let Hazard { here, there, .. } = hazard;
                std::iter::once(here).chain(there)
            });
            let lines = accesses.flat_map(|access| &mut access.lines);
            let what = cell.deviation.as_mut().map(|deviation| &mut deviation.what);
            for text in lines.chain(what).chain(&mut cell.reason) {
                *text = tells(text);
            }
        }
        Self {
            cells,
            left: self.left.clone(),
        }
    }

    /// Every hazard once for each contender, in the order of the cells.
    pub fn found(&self) -> Vec<ContenderHazard<'_>> {
        each_once(self.cells.iter().flat_map(|cell| {
            let shape = cell.case.shape.name.as_str();
            let hazards = cell.hazards.iter();
            hazards.map(move |hazard| (&cell.contender, shape, hazard))
        }))
    }

    /// Contenders whose status differs from the one their variants declare, with their actual
    /// result. A contender that declares `racy` may also be wrong, since its luck may fail; one
    /// that has not run on all its shapes may still show it.
    pub fn unexpected(&self) -> BTreeMap<&ContenderId, String> {
        let mut unexpected = BTreeMap::new();
        let mut shown: BTreeMap<&ContenderId, bool> = BTreeMap::new();
        for cell in &self.cells {
            let racy = !cell.hazards.is_empty();
            let harmless = matches!(cell.status, Status::Ok | Status::Unsupported);
            let as_declared = match cell.expect {
                Status::Racy => harmless || racy,
                expect => (harmless || cell.status == expect) && !racy,
            };
            if !as_declared {
                let what = cell
                    .reason
                    .clone()
                    .unwrap_or_else(|| cell.status.to_string());
                unexpected.entry(&cell.contender).or_insert(what);
            }
            let declared = match cell.expect {
                Status::Ok => true,
                Status::Racy => racy,
                expect => cell.status == expect,
            };
            *shown.entry(&cell.contender).or_default() |= declared;
        }
        let left = |contender: &ContenderId| self.left.iter().any(|(id, _)| id == contender);
        for (contender, _) in shown.into_iter().filter(|(id, shown)| !shown && !left(id)) {
            let mut cells = self.cells.iter();
            let expect = cells.find(|cell| cell.contender == *contender);
            let expect = expect.map_or(Status::Ok, |cell| cell.expect);
            let what = format!("expect = \"{expect}\", and nothing of it was seen");
            unexpected.entry(contender).or_insert(what);
        }
        unexpected
    }
}

#[cfg(test)]
mod tests {
    use super::synthetic::{cell, hazard};
    use super::*;

    #[test]
    fn who_declares_to_be_racy_must_be_and_nobody_else_may() {
        let names = |cells: Vec<SanitizedCell>| -> Vec<String> {
            let report = SanitizeReport {
                cells,
                left: Vec::new(),
            };
            report
                .unexpected()
                .keys()
                .map(ToString::to_string)
                .collect()
        };
        let as_declared = vec![
            cell("right", Status::Ok, Status::Ok, vec![]),
            cell("right", Status::Ok, Status::Unsupported, vec![]),
            cell("lucky", Status::Racy, Status::Racy, vec![hazard(1)]),
            cell("lucky", Status::Racy, Status::Ok, vec![]),
            cell("unlucky", Status::Racy, Status::Hung, vec![hazard(1)]),
            cell("wrong", Status::Wrong, Status::Wrong, vec![]),
        ];
        assert_eq!(names(as_declared), Vec::<String>::new());
        let surprising = vec![
            cell("a", Status::Ok, Status::Racy, vec![hazard(1)]),
            cell("b", Status::Racy, Status::Ok, vec![]),
            cell("c", Status::Wrong, Status::Wrong, vec![hazard(1)]),
            cell("d", Status::Racy, Status::Wrong, vec![]),
        ];
        assert_eq!(names(surprising), ["a", "b", "c", "d"]);
    }

    #[test]
    fn who_was_not_on_all_its_shapes_may_yet_show_what_it_declares() {
        let lucky = cell("lucky", Status::Racy, Status::Ok, vec![]);
        let left = vec![(lucky.contender.clone(), lucky.case.clone())];
        let cells = vec![
            lucky,
            cell("bad", Status::Ok, Status::Racy, vec![hazard(1)]),
        ];
        let report = SanitizeReport { cells, left };
        let names: Vec<&str> = report.unexpected().keys().map(|id| id.as_str()).collect();
        assert_eq!(names, ["bad"]);
    }
}
