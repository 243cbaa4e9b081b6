use crate::domain::{ContenderId, Status};
use crate::record::schema::Verdict;

/// Proof that a contender's output on a shape was checked and found right.
/// Measuring asks for it: timing a kernel that was not validated does not
/// type-check. The only way to one is a verdict that says `ok`, from this run
/// or from the run file it resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    contender: ContenderId,
    shape: String,
}

impl Passed {
    /// The proof in `verdict`, if it is one.
    pub fn from_verdict(verdict: &Verdict) -> Option<Self> {
        let within = verdict.worst.is_some_and(|worst| worst <= 1.0);
        (verdict.status == Status::Ok && within).then(|| Self {
            contender: verdict.contender.clone(),
            shape: verdict.shape.clone(),
        })
    }

    pub fn contender(&self) -> &ContenderId {
        &self.contender
    }

    pub fn shape(&self) -> &str {
        &self.shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: Status, worst: Option<f64>) -> Verdict {
        Verdict {
            contender: ContenderId::from_text("x"),
            shape: "s".to_owned(),
            status,
            reason: None,
            detail: None,
            worst,
            millis: 1.0,
            counters: Default::default(),
        }
    }

    #[test]
    fn only_an_ok_verdict_within_tolerance_is_proof() {
        assert!(Passed::from_verdict(&verdict(Status::Ok, Some(0.5))).is_some());
        for status in Status::ALL.into_iter().filter(|s| *s != Status::Ok) {
            assert!(Passed::from_verdict(&verdict(status, Some(0.5))).is_none());
        }
        for worst in [None, Some(1.5), Some(f64::NAN), Some(f64::INFINITY)] {
            assert!(Passed::from_verdict(&verdict(Status::Ok, worst)).is_none());
        }
    }
}
