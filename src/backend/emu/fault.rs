use ptx_emu::fault::FaultKind;
use ptx_emu::launch::LaunchError;

use crate::backend::RunFailure;
use crate::domain::Status;

/// A launch that did not finish, under the status a GPU would have earned it.
pub fn failure(error: &LaunchError) -> RunFailure {
    let LaunchError::Fault(fault) = error else {
        return RunFailure::refused(error.to_string());
    };
    let status = match fault.kind {
        FaultKind::Deadlock { .. } | FaultKind::StepLimit { .. } => Status::Hung,
        _ => Status::Crashed,
    };
    let story = relative(&fault.to_string());
    RunFailure {
        status,
        message: story.lines().next().unwrap_or_default().to_owned(),
        detail: Some(story),
        // The emulator's memory is thrown away; its process is none the worse.
        fatal: false,
    }
}

/// Source files named as a user would type them: the compiler knows them by
/// their absolute paths.
fn relative(story: &str) -> String {
    match std::env::current_dir() {
        Ok(here) => story.replace(&format!("{}/", here.display()), ""),
        Err(_) => story.to_owned(),
    }
}
