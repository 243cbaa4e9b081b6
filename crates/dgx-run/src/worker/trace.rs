use dgx_core::speech::{Level, level};

/// Reports on stderr what is being done, if `DGX_LOG=trace`.
pub fn trace(text: impl FnOnce() -> String) {
    if level() >= Level::Trace {
        remark!("[dgx {}] {}", std::process::id(), text());
    }
}
