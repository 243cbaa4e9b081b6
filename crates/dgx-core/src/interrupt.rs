//! Ctrl-C and similar signals: after the first a command ends in order, after the second at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SigHandler, Signal, signal};

use crate::domain::Exit;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static WORDS: Mutex<SignalMessages> = Mutex::new(SignalMessages {
    first: None,
    second: "",
});

/// The messages at the first signal and at the second. Without a message for the first, there is
/// nothing to end in order, and the first signal acts like the second.
#[derive(Clone, Copy)]
pub struct SignalMessages {
    pub first: Option<&'static str>,
    pub second: &'static str,
}

/// The first Ctrl-C, SIGTERM or SIGHUP asks the command to end after the current step; the second
/// ends the process. Installing twice, or without support for signals, is harmless.
pub fn install(words: SignalMessages) {
    *WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
    let undisturbed = hangup_is_ignored();
    let _ = ctrlc::set_handler(|| {
        let words = *WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        let again = REQUESTED.swap(true, Ordering::SeqCst);
        match words.first.filter(|_| !again) {
            Some(first) => remark!("\n{first}"),
            None => {
                remark!("\n{}", words.second);
                std::process::exit(Exit::CouldNotRun as i32);
            }
        }
    });
    if undisturbed {
        ignore_hangup();
    }
}

/// `nohup` starts a program so, and that must not change.
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
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// The user decided to go on.
pub fn forget() {
    REQUESTED.store(false, Ordering::SeqCst);
}
