use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigHandler, Signal, signal};

use crate::domain::Exit;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C, SIGTERM or SIGHUP asks the sweep to end after what is
/// under way; the second ends the process. Installing twice, or where signals
/// cannot be had, is harmless.
pub(super) fn install() {
    let undisturbed = hangup_is_ignored();
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            remark!("\nended at once; finished cells are kept: dgx sweep --resume");
            std::process::exit(Exit::CouldNotRun as i32);
        }
        remark!("\nstopping after what is under way; Ctrl-C again ends at once");
    });
    if undisturbed {
        ignore_hangup();
    }
}

/// `nohup` starts a program so, and it must stay so.
fn hangup_is_ignored() -> bool {
    // SAFETY: neither disposition runs code of ours.
    let before = unsafe { signal(Signal::SIGHUP, SigHandler::SigDfl) };
    matches!(before, Ok(SigHandler::SigIgn))
}

fn ignore_hangup() {
    // SAFETY: as above.
    let _ = unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) };
}

/// Whether the user asked to stop.
pub(super) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
