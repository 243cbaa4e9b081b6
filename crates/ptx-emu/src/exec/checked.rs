//! What an instruction comes to: a value, or the fault of its kernel.

use crate::fault::FaultKind;

/// A value, or the fault that keeps an instruction from it.
pub(crate) type Checked<T> = Result<T, Box<FaultKind>>;

/// Something a kernel must not do.
pub(crate) fn illegal(reason: impl Into<String>) -> Box<FaultKind> {
    Box::new(FaultKind::illegal(reason))
}
