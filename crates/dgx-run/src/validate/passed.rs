use super::{Element, Judgement, PosedOperands, Tolerance, judge};
use crate::operator::{Oracle, OutputValues};
use dgx_core::domain::ContenderId;

/// The subject of a verdict: one image of one contender on one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedImage {
    pub contender: ContenderId,
    pub shape: String,
    /// Identifies the code that ran.
    pub image: String,
}

/// Proof that exactly this code gave a right output on this shape, in this process. Reading the
/// clock consumes it: the next call is timed with a proof from judging this one. [`prove`] makes
/// the first, by judging an output, and nothing else can: it cannot be built elsewhere, copied, or
/// deserialised.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    subject: JudgedImage,
}

impl Passed {
    pub fn subject(&self) -> &JudgedImage {
        &self.subject
    }

    /// Consumes the proof for one timed call; `suspect` if the device doubts its output.
    pub(crate) fn spend(self, suspect: bool) -> UsedProof {
        UsedProof {
            subject: self.subject,
            suspect,
        }
    }
}

/// The remainder of a proof after the clock was read with it. Only judging the output of that call
/// makes it a proof again.
#[derive(Debug, PartialEq, Eq)]
pub struct UsedProof {
    subject: JudgedImage,
    suspect: bool,
}

impl UsedProof {
    pub fn subject(&self) -> &JudgedImage {
        &self.subject
    }

    /// A proof for the next call, if the device judged this one right; else the host must judge.
    pub(crate) fn renewed(self) -> Result<Passed, Self> {
        match self.suspect {
            true => Err(self),
            false => Ok(Passed {
                subject: self.subject,
            }),
        }
    }
}

/// Does not compile if a type has one of the traits: then two impls apply.
macro_rules! never {
    ($($type:ty: $trait:path;)*) => {$(
        const _: fn() = || {
            struct Has;
            trait OutputName<A> {
                fn answer() {}
            }
            impl<T> OutputName<()> for T {}
            impl<T: $trait> OutputName<Has> for T {}
            <$type as OutputName<_>>::answer();
        };
    )*};
}

// Each would be another way to a proof.
never! {
    Passed: Clone;
    Passed: Default;
    Passed: serde::de::DeserializeOwned;
    UsedProof: Clone;
    UsedProof: Default;
    UsedProof: serde::de::DeserializeOwned;
}

/// The effects of a call that are judged.
#[derive(Clone, Debug)]
pub struct CallEffects<'a> {
    /// Of each group, in the shape's order.
    pub outputs: &'a [OutputValues],
    /// Forbidden changes, in words.
    pub trespasses: Vec<String>,
    /// For a copy, which computes nothing: whether it equals its source.
    pub copied: Option<bool>,
}

/// How a call is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// One line.
    pub reason: String,
    pub detail: Option<String>,
    /// The largest error over its tolerance, if outputs were compared.
    pub worst: Option<f64>,
    /// The first wrong element, if outputs were compared.
    pub first: Option<Element>,
}

/// Checks a call against the oracle, and against the memory it may touch: the largest error over
/// its tolerance if it is right.
pub(crate) fn examine(
    exhibit: CallEffects<'_>,
    operands: &dyn PosedOperands,
    oracle: &Oracle,
    tolerance: Tolerance,
) -> Result<f64, Wrong> {
    if let Some(first) = exhibit.trespasses.first() {
        return Err(Wrong {
            reason: first.clone(),
            detail: (exhibit.trespasses.len() > 1).then(|| exhibit.trespasses.join("\n")),
            worst: None,
            first: None,
        });
    }
    match exhibit.copied {
        Some(true) => return Ok(0.0),
        Some(false) => {
            return Err(Wrong {
                reason: "the copy differs from its source".to_owned(),
                detail: None,
                worst: None,
                first: None,
            });
        }
        None => {}
    }
    match judge(exhibit.outputs, operands, oracle, tolerance) {
        Judgement::Right { worst } => Ok(worst),
        Judgement::Wrong(mismatch) => Err(Wrong {
            reason: mismatch.reason(),
            detail: Some(mismatch.detail()),
            // JSON has no infinity: NaN in the output is past any number.
            worst: Some(mismatch.worst.min(f64::MAX)),
            first: Some(mismatch.first),
        }),
    }
}

/// The proof that `subject` is right, if the call shows it; else the reason.
pub fn prove(
    subject: JudgedImage,
    exhibit: CallEffects<'_>,
    operands: &dyn PosedOperands,
    oracle: &Oracle,
    tolerance: Tolerance,
) -> Result<Passed, Wrong> {
    examine(exhibit, operands, oracle, tolerance).map(|_| Passed { subject })
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::operator::Operands;
    use dgx_core::domain::Distribution;
    use dgx_core::domain::Shape;
    use dgx_core::operator::{ElementType, default_operator};
    use dgx_core::record::synthetic::group;

    fn halves(c: &[Vec<u16>]) -> Vec<OutputValues> {
        let bits =
            |c: &Vec<u16>| OutputValues::of_bits(ElementType::F16, c.iter().map(|b| (*b).into()));
        c.iter().map(bits).collect()
    }

    #[test]
    fn only_a_right_output_that_left_the_rest_alone_is_proof() {
        let shape = Shape {
            name: "s".to_owned(),
            groups: vec![group(3, 128, 256)],
        };
        let subject = || JudgedImage {
            contender: ContenderId::from_text("x"),
            shape: "s".to_owned(),
            image: "i".to_owned(),
        };
        let tolerance = Tolerance {
            rtol: 1e-3,
            atol: 1e-3,
        };
        let operands = Operands::draw(default_operator(), &shape, Distribution::Benchmark, 1);
        let oracle = Oracle::compute(&operands);
        let answer = &oracle.groups[0];
        let bits = |i| f16::from_f64(answer.c(i)).to_bits();
        let mut c = vec![(0..3 * 128).map(bits).collect::<Vec<u16>>()];
        let proof = |c: &[Vec<u16>], trespasses: &[String]| {
            let trespasses = trespasses.to_vec();
            let outputs = &halves(c);
            let exhibit = CallEffects {
                copied: None,
                outputs,
                trespasses,
            };
            prove(subject(), exhibit, &operands, &oracle, tolerance)
        };
        assert_eq!(proof(&c, &[]).unwrap().subject(), &subject());
        assert!(proof(&c, &["wrote out of bounds".to_owned()]).is_err());
        for wrong in [0x7fff, 0x7c00, bits(7) ^ 0x8000] {
            let right = std::mem::replace(&mut c[0][7], wrong);
            assert!(proof(&c, &[]).is_err(), "{wrong:#x}");
            c[0][7] = right;
        }
        let spent = |suspect| proof(&c, &[]).unwrap().spend(suspect);
        assert_eq!(spent(false).renewed().unwrap().subject(), &subject());
        assert_eq!(spent(true).renewed().unwrap_err().subject(), &subject());
        let again = |c: &[Vec<u16>]| {
            let trespasses = Vec::new();
            let outputs = &halves(c);
            let exhibit = CallEffects {
                copied: None,
                outputs,
                trespasses,
            };
            let subject = spent(true).subject().clone();
            prove(subject, exhibit, &operands, &oracle, tolerance)
        };
        assert_eq!(again(&c).unwrap().subject(), &subject());
        assert!(again(&[vec![0; 3 * 128]]).is_err());
    }
}
