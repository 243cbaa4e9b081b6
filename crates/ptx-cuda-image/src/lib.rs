//! Puts the shared library of `ptx-cuda` into the program that depends on it.
//!
//! Cargo builds a dependency's shared library beside its rlib and finishes both before the
//! dependent is compiled, but gives no name for the one. The compiler is given the path of the
//! other, `--extern ptx_cuda=…/libptx_cuda….rlib`, and there the library is found.

use std::path::{Path, PathBuf};

use proc_macro::TokenStream;

/// The bytes of the shared library, as a `&[u8]`. Under `cargo check` there is none, and they are
/// empty: such a program is never run.
#[proc_macro]
pub fn library(_: TokenStream) -> TokenStream {
    let Some(rlib) = dependency(std::env::args()) else {
        return code("compile_error!(\"this crate does not depend on ptx-cuda\")");
    };
    let library = rlib.with_extension("so");
    match rlib.extension().is_some_and(|kind| kind == "rmeta") {
        true => code("&[]"),
        false => code(&format!(
            "include_bytes!({:?})",
            library.display().to_string()
        )),
    }
}

/// What the compiler was given for `ptx_cuda`.
fn dependency(mut args: impl Iterator<Item = String>) -> Option<PathBuf> {
    args.find_map(|arg| {
        let path = arg.strip_prefix("ptx_cuda=")?;
        Some(Path::new(path).to_owned())
    })
}

fn code(text: &str) -> TokenStream {
    text.parse().expect("an expression")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependency_is_found_among_the_arguments() {
        let args = [
            "rustc",
            "--extern",
            "ptx_emu=/a.rlib",
            "--extern",
            "ptx_cuda=/b-1.rlib",
        ];
        let found = dependency(args.into_iter().map(str::to_owned));
        assert_eq!(found, Some(PathBuf::from("/b-1.rlib")));
    }
}
