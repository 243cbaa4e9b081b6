use crate::validate::{JudgedImage, Passed};
use dgx_core::domain::ContenderId;

/// One contender that is timed.
#[derive(Debug)]
pub(super) struct TimedContender {
    pub contender: ContenderId,
    /// Timed a second time in each block: the A/A arm.
    pub twice: bool,
    /// The proof that it is right, until it is found wrong. `None` while a call is timed, until
    /// that call is judged.
    pub proof: Option<Passed>,
}

/// A proof that does not fit the shape that is timed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proof for {proof} was brought where {shape} is timed")]
pub(super) struct ProofMismatch {
    proof: String,
    shape: String,
}

/// The contenders that are timed on one shape.
#[derive(Debug)]
pub(super) struct TimedContenders {
    pub shape: String,
    pub lanes: Vec<TimedContender>,
}

impl TimedContenders {
    pub(super) fn new(shape: &str) -> Self {
        Self {
            shape: shape.to_owned(),
            lanes: Vec::new(),
        }
    }

    /// Admits the proof's subject, if it is for exactly this shape.
    pub(super) fn enter(&mut self, passed: Passed, twice: bool) -> Result<(), ProofMismatch> {
        let JudgedImage {
            contender,
            shape,
            image,
        } = passed.subject();
        if *shape != self.shape {
            return Err(ProofMismatch {
                proof: format!("{contender} on {shape} (image {image})"),
                shape: self.shape.clone(),
            });
        }
        self.lanes.push(TimedContender {
            contender: contender.clone(),
            twice,
            proof: Some(passed),
        });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::operator::{GroupOracle, Operands, Oracle};

    use crate::validate::{CallEffects, Tolerance, prove};
    use dgx_core::domain::Distribution;

    fn subject(contender: &str, shape: &str) -> JudgedImage {
        JudgedImage {
            contender: ContenderId::from_text(contender),
            shape: shape.to_owned(),
            image: "i".to_owned(),
        }
    }

    /// Only judging makes a proof, so this judges an output of one element.
    fn proof(subject: JudgedImage) -> Passed {
        let group = dgx_core::record::synthetic::group(1, 1, 16);
        let shape = dgx_core::domain::Shape {
            name: subject.shape.clone(),
            groups: vec![group],
        };
        let operands = Operands::draw(
            dgx_core::operator::default_operator(),
            &shape,
            Distribution::Benchmark,
            1,
        );
        let oracle = Oracle {
            groups: vec![GroupOracle {
                rows: 1,
                columns: 1,
                gate: vec![0.0],
                up: vec![1.0],
                values: Vec::new(),
            }],
        };
        let exhibit = CallEffects {
            copied: None,
            outputs: &[crate::operator::OutputValues::of_bits(
                dgx_core::operator::ElementType::F16,
                std::iter::once(0),
            )],
            trespasses: Vec::new(),
        };
        let tolerance = Tolerance {
            rtol: 0.0,
            atol: 0.0,
        };
        prove(subject, exhibit, &operands, &oracle, tolerance).unwrap()
    }

    /// Contenders of these names on shape `s`, the first entered twice.
    pub(crate) fn timed(names: &[&str]) -> TimedContenders {
        let mut timed = TimedContenders::new("s");
        for (place, name) in names.iter().enumerate() {
            timed.enter(proof(subject(name, "s")), place == 0).unwrap();
        }
        timed
    }

    #[test]
    fn a_proof_opens_no_other_shape() {
        let mut elsewhere = TimedContenders::new("t");
        let refused = elsewhere.enter(proof(subject("x", "s")), false);
        let text = refused.unwrap_err().to_string();
        assert_eq!(
            text,
            "a proof for x on s (image i) was brought where t is timed"
        );
        assert!(elsewhere.is_empty());
        let mut here = TimedContenders::new("s");
        assert!(here.enter(proof(subject("x", "s")), false).is_ok());
    }
}
