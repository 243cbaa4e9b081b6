//! Messages for the user, on standard error.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;

/// Prints one line for the user.
pub(crate) fn say(text: &str) {
    // A program may have closed its standard error.
    let _ = writeln!(std::io::stderr(), "dgx: {text}");
}

/// Prints a sentence once per process.
pub(crate) fn say_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if said.insert(text.to_owned()) {
        say(text);
    }
}
