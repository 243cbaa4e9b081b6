use crate::domain::ContenderId;
use crate::validate::{Passed, Subject};

/// Something a stopwatch can time, which knows whose code it runs on what.
pub trait Timeable {
    fn subject(&self) -> &Subject;
}

/// One contender ready to be timed: the thing itself, and the proof that it is
/// right. Only a [`Lineup`] makes one, and whatever reads the clock takes one.
#[derive(Debug)]
pub struct Lane<E> {
    passed: Passed,
    entry: E,
    /// Entered a second time in each block: the A/A arm.
    twice: bool,
}

impl<E> Lane<E> {
    pub fn contender(&self) -> &ContenderId {
        &self.passed.subject().contender
    }

    pub fn entry(&self) -> &E {
        &self.entry
    }

    pub fn twice(&self) -> bool {
        self.twice
    }
}

/// A proof that does not fit what it was brought for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proof for {proof} was brought for {wanted}")]
pub struct Unproven {
    proof: String,
    wanted: String,
}

/// Everybody who is timed on one shape.
#[derive(Debug)]
pub struct Lineup<E> {
    shape: String,
    lanes: Vec<Lane<E>>,
}

impl<E: Timeable> Lineup<E> {
    pub fn new(shape: &str) -> Self {
        Self {
            shape: shape.to_owned(),
            lanes: Vec::new(),
        }
    }

    /// Lets `entry` in, if the proof is for its very code on this very shape.
    pub fn enter(&mut self, passed: Passed, entry: E, twice: bool) -> Result<(), Unproven> {
        let (proof, wanted) = (passed.subject(), entry.subject());
        let words = |s: &Subject| format!("{} on {} (image {})", s.contender, s.shape, s.image);
        if proof != wanted || proof.shape != self.shape {
            return Err(Unproven {
                proof: words(proof),
                wanted: format!("{}, timed on {}", words(wanted), self.shape),
            });
        }
        self.lanes.push(Lane {
            passed,
            entry,
            twice,
        });
        Ok(())
    }
}

impl<E> Lineup<E> {
    pub fn shape(&self) -> &str {
        &self.shape
    }

    pub fn lanes(&self) -> &[Lane<E>] {
        &self.lanes
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::operator::{Distribution, GroupOracle, Operands, Oracle};
    use crate::validate::{Exhibit, Tolerance, prove};

    /// A thing to time that is only its name.
    #[derive(Debug)]
    pub struct Named(Subject);

    impl Named {
        pub fn name(&self) -> &str {
            self.0.contender.as_str()
        }
    }

    impl Timeable for Named {
        fn subject(&self) -> &Subject {
            &self.0
        }
    }

    fn subject(contender: &str, shape: &str, image: &str) -> Subject {
        Subject {
            contender: ContenderId::from_text(contender),
            shape: shape.to_owned(),
            image: image.to_owned(),
        }
    }

    /// There is no way to a proof but judging: so an output of one element is.
    fn proof(subject: Subject) -> Passed {
        let group = crate::domain::Group { m: 1, n: 1, k: 16 };
        let shape = crate::domain::Shape {
            name: subject.shape.clone(),
            groups: vec![group],
        };
        let operands = Operands::draw(&shape, Distribution::Benchmark, 1);
        let oracle = Oracle {
            groups: vec![GroupOracle {
                group,
                gate: vec![0.0],
                up: vec![1.0],
            }],
        };
        let exhibit = Exhibit {
            c: &[vec![0]],
            trespasses: &[],
        };
        let tolerance = Tolerance {
            rtol: 0.0,
            atol: 0.0,
        };
        prove(subject, exhibit, &operands, &oracle, tolerance).unwrap()
    }

    /// A lineup of these names on shape `s`, the first entered twice.
    pub fn lineup(names: &[&str]) -> Lineup<Named> {
        let mut lineup = Lineup::new("s");
        for (place, name) in names.iter().enumerate() {
            let subject = subject(name, "s", "i");
            let entered = lineup.enter(proof(subject.clone()), Named(subject), place == 0);
            entered.unwrap();
        }
        lineup
    }

    #[test]
    fn a_proof_opens_its_own_cell_and_no_other() {
        let own = subject("x", "s", "i");
        let others = [
            subject("y", "s", "i"),
            subject("x", "t", "i"),
            subject("x", "s", "another build"),
        ];
        for other in &others {
            let mut lineup = Lineup::new("s");
            let refused = lineup.enter(proof(other.clone()), Named(own.clone()), false);
            assert!(refused.is_err(), "{other:?}");
            assert!(lineup.lanes().is_empty());
        }
        // Right for its entry, but the clock runs on another shape.
        let mut elsewhere = Lineup::new("t");
        let refused = elsewhere.enter(proof(own.clone()), Named(own.clone()), false);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("a proof for x on s (image i)"), "{text}");
        let mut here = Lineup::new("s");
        assert!(here.enter(proof(own.clone()), Named(own), false).is_ok());
    }
}
