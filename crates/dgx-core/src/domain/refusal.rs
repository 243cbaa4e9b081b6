/// What somebody is told to do whose source does not declare a kernel as it is
/// launched.
pub const DECLARE: &str = "declare it";

/// Whether a launch was refused for its source, and not for what the device
/// has. A run file has the words of a refusal, and no more.
pub fn is_undeclared(refusal: &str) -> bool {
    let signs = [
        DECLARE,
        "`args` gives",
        "there is no kernel",
        "kernels are called",
    ];
    signs.iter().any(|sign| refusal.contains(sign))
}
