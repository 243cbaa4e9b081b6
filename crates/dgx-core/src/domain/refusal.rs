/// The remedy for a source that does not declare a kernel as it is launched.
pub const DECLARE: &str = "declare it";

/// Whether a launch was refused because of its source, not because of the device. A run file
/// contains only the text of a refusal.
pub fn is_undeclared(refusal: &str) -> bool {
    let signs = [
        DECLARE,
        "`args` gives",
        "there is no kernel",
        "kernels are called",
    ];
    signs.iter().any(|sign| refusal.contains(sign))
}
