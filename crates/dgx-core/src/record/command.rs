use jiff::Zoned;

use super::portable_word;

/// Part of a run file's name: local time to the minute.
pub fn stamp() -> String {
    Zoned::now().strftime("%Y%m%d-%H%M").to_string()
}

/// The command line, without the paths of this machine.
pub fn argv() -> Vec<String> {
    let project = std::env::current_dir().unwrap_or_default();
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| portable_word(&word.to_string_lossy(), &project));
    std::iter::once("dgx".to_owned()).chain(words).collect()
}
