use dgx_core::speech::{Level, level};

/// Says on stderr what is being done, where `DGX_LOG=trace` asks for it.
pub fn trace(text: impl FnOnce() -> String) {
    if level() >= Level::Trace {
        remark!("[dgx {}] {}", std::process::id(), text());
    }
}
