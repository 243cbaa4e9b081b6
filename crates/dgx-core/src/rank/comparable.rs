//! Whether the times of two runs may stand in one table.

use std::fmt;

use crate::record::Run;

const OPERATORS: &str = "are of different operators";

/// Why the times of two runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub base: String,
    pub candidate: String,
    /// What differs.
    differs: &'static str,
}

impl Mismatch {
    /// Whether the runs can still be shown side by side, labelled: both computed the same.
    pub fn is_of_devices(&self) -> bool {
        self.differs != OPERATORS
    }

    /// What to do instead.
    pub fn remedy(&self) -> &'static str {
        match self.is_of_devices() {
            true => {
                "times of different devices say little about a design; \
                 --across-devices compares them anyway, labelled"
            }
            false => "compare runs of one operator, whose file says the same in both",
        }
    }

    /// `come from different devices: NVIDIA H200 (cuda, measured) against …`.
    pub fn why(&self) -> String {
        format!("{}: {self}", self.differs)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} against {}", self.base, self.candidate)
    }
}

/// `None` if both runs timed the same kind of device in the same way, and modelled times use the
/// same numbers.
pub fn mismatch(base: &Run, candidate: &Run) -> Option<Mismatch> {
    if base.operator != candidate.operator {
        return Some(Mismatch {
            base: base.operator.version(),
            candidate: candidate.operator.version(),
            differs: OPERATORS,
        });
    }
    let kind = |run: &Run| {
        let device = &run.header.device;
        (device.backend, device.timing, device.name.clone())
    };
    if kind(base) != kind(candidate) {
        return Some(Mismatch {
            base: describe(base),
            candidate: describe(candidate),
            differs: "come from different devices",
        });
    }
    let model = |run: &Run| match &run.header.device.model {
        Some(digest) => format!("{}, model {digest}", describe(run)),
        None => format!("{}, no model on record", describe(run)),
    };
    (model(base) != model(candidate)).then(|| Mismatch {
        base: model(base),
        candidate: model(candidate),
        differs: "are modelled by different numbers",
    })
}

/// `NVIDIA H200 (cuda, measured)`.
pub fn describe(run: &Run) -> String {
    let device = &run.header.device;
    let timing = device.timing.as_str();
    format!("{} ({}, {timing})", device.name, device.backend)
}

/// Whether two runs timed the same cards; `None` if that is not recorded, or nothing was timed.
pub fn same_card(base: &Run, candidate: &Run) -> Option<bool> {
    let cards = |run: &Run| {
        let cards: Vec<String> = run.cards().into_iter().map(str::to_owned).collect();
        (run.timing().sampled() && !cards.is_empty()).then_some(cards)
    };
    Some(cards(base)? == cards(candidate)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::synthetic::Synthetic;

    #[test]
    fn times_of_another_operator_are_not_held_against_each_other() {
        let one = Synthetic::round4().run();
        let mut other = Synthetic::round4().run();
        other.operator = crate::operator::named(Some("nvfp4-gemm")).unwrap();
        let reason = mismatch(&one, &other).unwrap().why();
        let begin = "are of different operators: nvfp4-dual-gemm (";
        assert!(reason.starts_with(begin), "{reason}");
    }

    #[test]
    fn times_of_other_numbers_or_of_none_are_not_held_against_each_other() {
        let run = |model: Option<&str>| {
            let mut run = Synthetic::round4().modelled().run();
            run.header.device.model = model.map(str::to_owned);
            run
        };
        let why = |a: Option<&str>, b: Option<&str>| mismatch(&run(a), &run(b)).map(|m| m.why());
        assert_eq!(why(Some("a"), Some("a")), None);
        assert_eq!(why(None, None), None);
        let reason = why(None, Some("a")).unwrap();
        assert_eq!(
            reason,
            "are modelled by different numbers: NVIDIA H200 (emu, modelled), no model on record \
             against NVIDIA H200 (emu, modelled), model a"
        );
        let measured = Synthetic::round4().run();
        let reason = mismatch(&measured, &run(Some("a"))).unwrap().why();
        assert!(
            reason.starts_with("come from different devices: "),
            "{reason}"
        );
    }
}
