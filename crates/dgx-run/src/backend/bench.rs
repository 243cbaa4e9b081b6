//! Timing, for backends that have a clock.

use super::{Job, Observation, RunFailure, Salt};
use crate::operator::{Operands, Oracle};
use crate::validate::{Passed, Subject, Tolerance, UsedProof};
use dgx_core::domain::{ContenderId, KernelTime, Micros, Shape, Tuning};

/// Where a bench is set up: one shape, in one process of a sweep.
#[derive(Clone, Copy)]
pub struct BenchSetup<'a> {
    pub shape: &'a Shape,
    /// Data to change between from call to call. A backend that has no room
    /// for all of them takes the first few.
    pub sets: &'a [Set<'a>],
    /// Hides the answers on the device from who looks for them.
    pub seal: u64,
    /// Whether every timed call finds an L2 without its operands.
    pub cold_l2: bool,
    pub process: u32,
}

/// Operands and the answer to them.
#[derive(Clone, Copy)]
pub struct Set<'a> {
    pub name: &'a str,
    pub operands: &'a Operands,
    pub oracle: &'a Oracle,
}

/// The data of one call: which set, and what makes this call unlike the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallData {
    pub set: usize,
    pub salt: Salt,
}

/// One timed call.
#[derive(Debug, PartialEq)]
pub struct Timed {
    pub micros: Micros,
    /// Mean SM clock over the call, where it could be read.
    pub clock_mhz: Option<f64>,
    /// What is left of the proof the call was timed with.
    pub spent: UsedProof,
}

/// Calls contenders of one shape, again and again, and times them. Every call
/// finds its memory laid out anew, with its own data, and has its
/// output judged before the next.
pub trait Bench {
    /// How many data sets there are.
    fn sets(&self) -> usize;

    /// Makes a contender ready for calls; what a proof for it must be about.
    fn enter(&mut self, job: &Job<'_>, tolerance: Tolerance) -> Result<Subject, RunFailure>;

    /// The same for the yardstick of this name, done as it was kept or as is
    /// fastest; and how it is done, where there is a choice. On the data of the
    /// call made last.
    fn enter_yardstick(
        &mut self,
        name: &ContenderId,
        kept: Option<&Tuning>,
        tolerance: Tolerance,
    ) -> Result<(Subject, Option<Tuning>), String>;

    /// Calls without looking at the clock, and says whether the device has
    /// doubts about what the call did. What earlier calls left in the
    /// variables of its module stays there.
    fn rehearse(&mut self, subject: &Subject, data: CallData) -> Result<bool, RunFailure>;

    /// Times one call of whoever the proof is for, and uses the proof up.
    /// Errors say whether the device survived.
    fn time(&mut self, passed: Passed, data: CallData) -> Result<Timed, RunFailure>;

    /// What each kernel of one more call takes, where that can be told: the
    /// kernels wait for one another, so this is not how the call is timed.
    fn kernels(
        &mut self,
        _passed: &Passed,
        _data: CallData,
    ) -> Result<Vec<KernelTime>, RunFailure> {
        Ok(Vec::new())
    }

    /// Reads back what the call just made left in memory.
    fn observe(&mut self, subject: &Subject, data: CallData) -> Result<Observation, RunFailure>;
}

/// The entry a proof is for: nobody else's can be timed with it.
pub(crate) fn proven<'a, E>(
    entries: &'a [E],
    subject_of: impl Fn(&E) -> &Subject,
    subject: &Subject,
) -> Result<&'a E, RunFailure> {
    let mut entries = entries.iter();
    entries
        .find(|entry| subject_of(entry) == subject)
        .ok_or_else(|| {
            let Subject {
                contender,
                shape,
                image,
            } = subject;
            let refusal = format!("no {contender} for {shape} with image {image} is ready here");
            RunFailure::refused(refusal)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_opens_its_own_entry_and_no_other() {
        let subject = |contender: &str, shape: &str, image: &str| Subject {
            contender: ContenderId::from_text(contender),
            shape: shape.to_owned(),
            image: image.to_owned(),
        };
        let entries = [subject("x", "s", "i"), subject("y", "s", "i")];
        let found = |wanted: &Subject| proven(&entries, |e| e, wanted).cloned();
        assert_eq!(found(&entries[1]).as_ref(), Ok(&entries[1]));
        for other in [
            subject("z", "s", "i"),
            subject("x", "t", "i"),
            subject("x", "s", "another build"),
        ] {
            assert!(found(&other).is_err(), "{other:?}");
        }
    }
}
