//! Timing, for backends that have a clock.

use super::{CallSeed, Job, Observation, RunFailure};
use crate::operator::{Operands, Oracle};
use crate::validate::{JudgedImage, Passed, Tolerance, UsedProof};
use dgx_core::domain::{ContenderId, KernelTime, Micros, Shape, Tuning};

/// The setting of a bench: one shape, in one process of a sweep.
#[derive(Clone, Copy)]
pub struct BenchSetup<'a> {
    pub shape: &'a Shape,
    /// Data sets that calls alternate between. A backend without room for all of them takes the
    /// first few.
    pub sets: &'a [OperandSet<'a>],
    /// The key that hides expected results on the device from kernels that look for them.
    pub seal: u64,
    /// Whether operands are flushed from L2 before every timed call.
    pub cold_l2: bool,
    pub process: u32,
}

/// Operands and the expected result.
#[derive(Clone, Copy)]
pub struct OperandSet<'a> {
    pub name: &'a str,
    pub operands: &'a Operands,
    pub oracle: &'a Oracle,
}

/// The data of one call: its set, and the seed that makes it unlike other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallData {
    pub set: usize,
    pub call_seed: CallSeed,
}

/// One timed call.
#[derive(Debug, PartialEq)]
pub struct Timed {
    pub micros: Micros,
    /// Mean SM clock over the call, if it could be read.
    pub clock_mhz: Option<f64>,
    /// The remainder of the proof that the call consumed.
    pub spent: UsedProof,
}

/// Calls the contenders of one shape repeatedly, and times them. Every call gets freshly prepared
/// memory with its own data, and its output is judged before the next.
pub trait Bench {
    /// How many data sets there are.
    fn sets(&self) -> usize;

    /// Prepares a contender for calls; returns the subject that a proof must name.
    fn enter(&mut self, job: &Job<'_>, tolerance: Tolerance) -> Result<JudgedImage, RunFailure>;

    /// The same for the yardstick of this name, with the kept algorithms or the fastest ones;
    /// returns the choice, if there is one. Uses the data of the last call.
    fn enter_yardstick(
        &mut self,
        name: &ContenderId,
        kept: Option<&Tuning>,
        tolerance: Tolerance,
    ) -> Result<(JudgedImage, Option<Tuning>), String>;

    /// Calls without timing, and returns whether the device suspects an error. Values that earlier
    /// calls left in the module's variables stay there.
    fn rehearse(&mut self, subject: &JudgedImage, data: CallData) -> Result<bool, RunFailure>;

    /// Times one call of the proof's subject, and consumes the proof. Errors say whether the device
    /// survived.
    fn time(&mut self, passed: Passed, data: CallData) -> Result<Timed, RunFailure>;

    /// The time of each kernel of one more call, if it can be measured: the kernels wait for one
    /// another, so the call itself is not timed this way.
    fn kernels(
        &mut self,
        _passed: &Passed,
        _data: CallData,
    ) -> Result<Vec<KernelTime>, RunFailure> {
        Ok(Vec::new())
    }

    /// Reads back memory after the last call.
    fn observe(&mut self, subject: &JudgedImage, data: CallData)
    -> Result<Observation, RunFailure>;
}

/// The entry that a proof is for: no other can be timed with it.
pub(crate) fn proven<'a, E>(
    entries: &'a [E],
    subject_of: impl Fn(&E) -> &JudgedImage,
    subject: &JudgedImage,
) -> Result<&'a E, RunFailure> {
    let mut entries = entries.iter();
    entries
        .find(|entry| subject_of(entry) == subject)
        .ok_or_else(|| {
            let JudgedImage {
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
        let subject = |contender: &str, shape: &str, image: &str| JudgedImage {
            contender: ContenderId::from_text(contender),
            shape: shape.to_owned(),
            image: image.to_owned(),
        };
        let entries = [subject("x", "s", "i"), subject("y", "s", "i")];
        let found = |wanted: &JudgedImage| proven(&entries, |e| e, wanted).cloned();
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
