use std::sync::OnceLock;

/// Says on stderr what is being done, where `DGX_LOG` asks for it.
pub(crate) fn trace(text: impl FnOnce() -> String) {
    static ON: OnceLock<bool> = OnceLock::new();
    let on = *ON.get_or_init(|| {
        std::env::var("DGX_LOG").is_ok_and(|v| !matches!(v.as_str(), "" | "0" | "off"))
    });
    if on {
        remark!("[dgx {}] {}", std::process::id(), text());
    }
}
