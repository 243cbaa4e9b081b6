//! A measured run beside the times that the model predicts for it.

use std::collections::HashSet;

use super::document::RunAgreement;
use super::{Errors, ModelledCell, Step, differences, orders};
use crate::contest::lineage::lineage;
use dgx_core::diagnostic::InputError;
use dgx_core::domain::{ContenderId, Device, Group, Timing};
use dgx_core::rank::Ranking;
use dgx_core::record::Run;

/// A run, and how well the model agrees with it.
#[derive(Debug)]
pub(crate) struct ModelComparison {
    pub(crate) run: Run,
    pub(crate) found: RunAgreement,
}

impl ModelComparison {
    pub(crate) fn new(
        run: Run,
        ranking: &Ranking,
        cells: Vec<ModelledCell>,
        changed: Vec<ContenderId>,
    ) -> Self {
        let found = RunAgreement {
            file: (run.path.file_stem().unwrap_or_default())
                .to_string_lossy()
                .into_owned(),
            round: run.header.name.clone(),
            errors: Errors::of(&cells),
            orders: orders(&cells),
            differences: differences(&cells, &neighbours(&run, ranking)),
            changed,
            cells,
        };
        Self { run, found }
    }

    /// What identifies the same cell in another run.
    fn key(&self, cell: &ModelledCell) -> (ContenderId, Vec<Group>) {
        let shape = self.run.shape(&cell.shape);
        let groups = shape.map_or_else(Vec::new, |shape| shape.groups.clone());
        (cell.contender.clone(), groups)
    }
}

/// Refuses a run that was not measured on `device`.
pub(crate) fn measured_on(run: &Run, device: &Device) -> Result<(), InputError> {
    let file = run.path.display();
    let record = &run.header.device;
    if run.timing() != Timing::Measured {
        return Err(InputError::new(
            format!("{file} holds {} times", run.timing().as_str()),
            "name a run that was measured on a GPU",
        ));
    }
    if (&record.name, record.sms) != (&device.name, device.limits.sms) {
        return Err(InputError::new(
            format!(
                "{file} was measured on {} with {} SMs, and the target is {} with {}",
                record.name, record.sms, device.name, device.limits.sms
            ),
            "name the target of that card: --target",
        ));
    }
    Ok(())
}

/// Marks the cells that were examined while the model was built: those of the rounds with these
/// names, and the same cells in other runs.
pub(crate) fn mark_seen(comparisons: &mut [ModelComparison], rounds: &[String]) {
    let mut seen: HashSet<(ContenderId, Vec<Group>)> = HashSet::new();
    let is_seen = |comparison: &&ModelComparison| rounds.contains(&comparison.run.header.name);
    for comparison in comparisons.iter().filter(is_seen) {
        seen.extend(
            comparison
                .found
                .cells
                .iter()
                .map(|cell| comparison.key(cell)),
        );
    }
    for comparison in comparisons {
        let keys = comparison
            .found
            .cells
            .iter()
            .map(|cell| comparison.key(cell));
        let keys: Vec<_> = keys.collect();
        for (cell, key) in comparison.found.cells.iter_mut().zip(keys) {
            cell.seen = seen.contains(&key);
        }
    }
}

/// Each contender with its parent, and every two contenders that differ in one parameter of a
/// variant.
fn neighbours(run: &Run, ranking: &Ranking) -> Vec<(Step, ContenderId, ContenderId)> {
    let nodes = lineage(run, ranking).into_iter();
    let parents = nodes.filter_map(|node| Some((Step::Design, node.parent?, node.contender)));
    let mut pairs: Vec<_> = parents.collect();
    let contenders = &run.header.contenders;
    for (index, a) in contenders.iter().enumerate() {
        for b in &contenders[index + 1..] {
            let mut params = a.params.iter();
            let differing = params
                .by_ref()
                .filter(|(name, value)| b.params.get(*name) != Some(value));
            if a.variant == b.variant && differing.count() == 1 {
                pairs.push((Step::Choice, a.id.clone(), b.id.clone()));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    fn compared(name: &str) -> ModelComparison {
        let mut run = Synthetic {
            entries: vec![
                SyntheticContender::ok("base[S=1]", 1.0),
                SyntheticContender::ok("base[S=2]", 0.9),
                SyntheticContender::ok("next[S=2]", 0.8).child_of("base"),
            ],
            ..Synthetic::round4()
        }
        .run();
        name.clone_into(&mut run.header.name);
        let ranking = Ranking::of(&run);
        let shape = run.header.shapes[0].name.clone();
        let cells = run.header.contenders.iter().map(|contender| ModelledCell {
            contender: contender.id.clone(),
            shape: shape.clone(),
            measured: ranking
                .cell(&contender.id, &shape)
                .unwrap()
                .time
                .as_ref()
                .unwrap()
                .estimate()
                .0,
            modelled: 10.0,
            bound: String::new(),
            seen: false,
            remark: None,
        });
        let cells = cells.collect();
        ModelComparison::new(run, &ranking, cells, Vec::new())
    }

    #[test]
    fn parents_and_the_choices_of_a_parameter_are_neighbours() {
        let run = compared("round1").run;
        let pairs = neighbours(&run, &Ranking::of(&run));
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(_, a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert!(pairs.contains(&("base[S=2]", "next[S=2]")), "{pairs:?}");
        assert!(pairs.contains(&("base[S=1]", "base[S=2]")), "{pairs:?}");
        assert_eq!(pairs.len(), 2);
        // All modelled alike: no sign is right.
        let differences = compared("round1").found.differences;
        assert_eq!(differences.len(), 2);
        assert!(differences.iter().all(|difference| !difference.right()));
    }

    #[test]
    fn a_cell_that_was_seen_is_seen_in_every_run() {
        let seen = |names: [&str; 2], rounds: &[&str]| {
            let mut comparisons = names.map(compared);
            // The second run has another contender besides.
            comparisons[1].found.cells[0].contender = ContenderId::from_text("new");
            let rounds: Vec<String> = rounds.iter().map(|&name| name.to_owned()).collect();
            mark_seen(&mut comparisons, &rounds);
            comparisons.map(|c| c.found.cells.iter().filter(|cell| cell.seen).count())
        };
        assert_eq!(seen(["final", "odd"], &["final"]), [3, 2]);
        assert_eq!(seen(["final", "odd"], &["odd"]), [2, 3]);
        assert_eq!(seen(["final", "odd"], &[]), [0, 0]);
    }

    #[test]
    fn a_run_of_another_card_or_of_no_card_is_refused() {
        let usual = dgx_core::config::target::default_device();
        let compare = |run: &Run, device: &Device| {
            measured_on(run, device).map_err(|e| e.message().to_owned())
        };
        let mut run = Synthetic::round4().run();
        usual.name.clone_into(&mut run.header.device.name);
        run.header.device.sms = usual.limits.sms;
        assert_eq!(compare(&run, usual), Ok(()));
        let another = Device {
            name: "another".to_owned(),
            ..usual.clone()
        };
        let why = compare(&run, &another).unwrap_err();
        assert!(why.contains("the target is another"), "{why}");
        let modelled = Synthetic::round4().modelled().run();
        let why = compare(&modelled, usual).unwrap_err();
        assert!(why.contains("holds modelled times"), "{why}");
    }
}
