use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C asks the sweep to end after what is under way; the second
/// ends the process. Installing twice, or where signals cannot be had, is harmless.
pub fn install() {
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            remark!("\nended at once; finished cells are kept: dgx sweep --resume");
            std::process::exit(130);
        }
        remark!("\nstopping after what is under way; Ctrl-C again ends at once");
    });
}

/// Whether the user asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
