use std::collections::BTreeMap;

use dgx_core::domain::{ContenderId, Status, Verdict};
use dgx_core::record::Run;

/// The current verdicts while contenders are timed, including the yardstick's: they decide which
/// contender may be timed on which shape.
pub(super) struct CurrentVerdicts(BTreeMap<(ContenderId, String), Verdict>);

impl CurrentVerdicts {
    pub(super) fn of(run: &Run) -> Self {
        let shapes = || run.header.shapes.iter();
        let cells = run.entrants().flat_map(|id| shapes().map(move |s| (id, s)));
        let verdicts = cells.filter_map(|(id, shape)| run.verdict(id, &shape.name));
        Self(verdicts.map(|v| (cell(v), v.clone())).collect())
    }

    fn verdict(&self, contender: &ContenderId, shape: &str) -> Option<&Verdict> {
        self.0.get(&(contender.clone(), shape.to_owned()))
    }

    /// Whether the contender was validated on the shape, and not rejected since.
    pub(super) fn passed(&self, contender: &ContenderId, shape: &str) -> bool {
        self.verdict(contender, shape)
            .is_some_and(|v| v.status == Status::Ok && v.worst.is_some_and(|worst| worst <= 1.0))
    }

    /// Whether a verdict forbids timing it there: a yardstick is not validated beforehand.
    pub(super) fn rejected(&self, contender: &ContenderId, shape: &str) -> bool {
        self.verdict(contender, shape)
            .is_some_and(|v| v.status != Status::Ok)
    }

    /// Records a verdict found while timing; returns whether it is new. A rejected contender stays
    /// so, for the first reason.
    pub(super) fn reject(&mut self, verdict: &Verdict) -> bool {
        let news = !self.rejected(&verdict.contender, &verdict.shape);
        if news {
            self.0.insert(cell(verdict), verdict.clone());
        }
        news
    }
}

fn cell(verdict: &Verdict) -> (ContenderId, String) {
    (verdict.contender.clone(), verdict.shape.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::schema::Line;
    use dgx_core::record::synthetic::Synthetic;

    #[test]
    fn a_yardstick_rejected_on_a_shape_is_so_once_and_for_all() {
        let mut lines = Synthetic::round4().lines();
        let run = Synthetic::round4().run();
        let yardstick = run.header.yardstick.clone().unwrap();
        let (first, other) = (&run.header.shapes[0].name, &run.header.shapes[1].name);
        let mut standing = CurrentVerdicts::of(&run);
        assert!(!standing.rejected(&yardstick, first));
        let found = Verdict {
            reason: Some("when called again: C is zero".to_owned()),
            ..Verdict::new(&yardstick, first, Status::Wrong)
        };
        assert!(standing.reject(&found));
        for status in [Status::Wrong, Status::Crashed] {
            let again = Verdict {
                status,
                millis: 3.0,
                ..found.clone()
            };
            assert!(!standing.reject(&again), "one line in the run file");
        }
        assert!(standing.rejected(&yardstick, first));
        assert!(!standing.rejected(&yardstick, other));
        // A resumed sweep reads it from the run file.
        let end = lines.len() - 1;
        lines.insert(end, Line::Verdict(found));
        let text: String = lines
            .iter()
            .map(|line| serde_json::to_string(line).unwrap() + "\n")
            .collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let resumed = CurrentVerdicts::of(&dgx_core::record::read(file.path()).unwrap());
        assert!(resumed.rejected(&yardstick, first));
    }

    #[test]
    fn only_who_passed_is_timed() {
        let run = Synthetic::round4().run();
        let mut standing = CurrentVerdicts::of(&run);
        let (id, shape) = (&run.header.contenders[0].id, &run.header.shapes[0].name);
        assert!(standing.passed(id, shape));
        assert!(!standing.passed(&ContenderId::from_text("nobody"), shape));
        assert!(standing.reject(&Verdict::new(id, shape, Status::Crashed)));
        assert!(!standing.passed(id, shape));
    }
}
