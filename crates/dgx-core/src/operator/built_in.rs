//! The operators built into dgx, so that it works from any folder.

use std::path::Path;
use std::sync::LazyLock;

use super::Operator;
use super::read::is_name;
use crate::diagnostic::{InputError, SourceFile, did_you_mean};
use crate::files;

macro_rules! committed {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../operators/", $name, ".toml")))),+]
    };
}

/// The usual one first.
const COMMITTED: &[(&str, &str)] = committed![
    "nvfp4-dual-gemm",
    "nvfp4-gemm",
    "nvfp4-gemv",
    "f16-gemm",
    "rms-norm",
    "layer-norm",
    "softmax",
    "attention",
];

static BUILT_IN: LazyLock<Vec<Operator>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        let file = SourceFile {
            path: format!("operators/{name}.toml").into(),
            text: (*text).into(),
        };
        Operator::from_source(file).expect("a test reads all that are built in")
    };
    COMMITTED.iter().map(read).collect()
});

/// The names of all built-in operators, the usual one first.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMITTED.iter().map(|(name, _)| *name)
}

/// The built-in operator of this name.
pub fn built_in(name: &str) -> Option<&'static Operator> {
    BUILT_IN.iter().find(|operator| operator.name == name)
}

/// The names of the files in `operators/` that replace no built-in operator.
pub fn local_names() -> Vec<String> {
    let files = files::ending_in(Path::new("operators"), "toml");
    let stems = files.iter().filter_map(|path| path.file_stem()?.to_str());
    let own = stems.filter(|stem| is_name(stem) && built_in(stem).is_none());
    own.map(str::to_owned).collect()
}

/// An operator by its name: `operators/NAME.toml` in this folder, or a built-in one.
pub fn find(name: &str) -> Result<Operator, InputError> {
    let local = Path::new("operators").join(format!("{name}.toml"));
    if is_name(name) && local.is_file() {
        return Operator::read(&local);
    }
    built_in(name).cloned().ok_or_else(|| {
        let local = local_names();
        let mut known: Vec<&str> = names().collect();
        known.extend(local.iter().map(String::as_str));
        let remedy = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
            format!(
                "there are {}; `dgx new --operator {name}` writes a file to begin from",
                known.join(", ")
            )
        });
        InputError::new(format!("there is no operator `{name}`"), remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_committed_operator_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../operators");
        let mut built_in: Vec<&str> = names().collect();
        built_in.sort_unstable();
        let files = files::ending_in(Path::new(folder), "toml");
        let stems = files.iter().filter_map(|path| path.file_stem()?.to_str());
        assert_eq!(stems.collect::<Vec<_>>(), built_in);
    }
}
