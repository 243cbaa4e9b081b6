use ptx_emu::{FaultKind, LaunchError};

use super::printed;
use crate::backend::RunFailure;
use dgx_core::domain::Status;

/// Text of a failure if the time was up before a hang was proved.
pub const STILL_RUNNING: &str = FaultKind::STILL_RUNNING;

/// A launch that did not finish, with the status that a GPU would give.
pub(super) fn failure(error: &LaunchError) -> RunFailure {
    let fault = match error {
        LaunchError::Fault(fault) if matches!(fault.kind, FaultKind::NotEmulated { .. }) => {
            return RunFailure::unsupported(fault.to_string());
        }
        LaunchError::Fault(fault) => fault,
        LaunchError::Refused { .. } => {
            return RunFailure::unsupported(error.to_string());
        }
        _ => return RunFailure::refused(error.to_string()),
    };
    let status = match &fault.kind {
        kind if kind.is_hang() => Status::Hung,
        _ => Status::Crashed,
    };
    let explanation = fault.to_string();
    let mut message = explanation.lines().next().unwrap_or_default().to_owned();
    if let Some(early) = &fault.early {
        message += &format!("; cause: {early}");
    }
    // The emulator's memory is discarded; its process is still usable.
    RunFailure {
        detail: Some(explanation),
        printed: printed::lines(None, &fault.printed).into(),
        ..RunFailure::new(status, message)
    }
}
