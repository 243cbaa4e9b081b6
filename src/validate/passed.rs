use crate::domain::ContenderId;

/// Proof that a contender's output on a shape was checked and found right.
/// Only this module can make one, and measuring asks for it: timing a kernel
/// that was not validated does not type-check.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    contender: ContenderId,
    shape: String,
}

impl Passed {
    pub fn contender(&self) -> &ContenderId {
        &self.contender
    }

    pub fn shape(&self) -> &str {
        &self.shape
    }
}
