//! `flags`: additional options for NVRTC.

use super::front_matter::Reader;
use super::wire::FrontMatter;
use dgx_core::diagnostic::InputError;
use dgx_core::domain::printable_line;

/// Flags that change how a source is read or compiled. Others access files, make no image, or
/// change dgx's own flags.
const ALLOWED: [&str; 22] = [
    "D",
    "U",
    "default-device",
    "define-macro",
    "device-as-default-execution-space",
    "device-float128",
    "device-int128",
    "diag-error",
    "diag-suppress",
    "diag-warn",
    "disable-warnings",
    "extra-device-vectorization",
    "fmad",
    "ftz",
    "maxrregcount",
    "prec-div",
    "prec-sqrt",
    "restrict",
    "std",
    "undefine-macro",
    "use_fast_math",
    "w",
];

/// A flag without its dashes and its value.
fn name(flag: &str) -> &str {
    let plain = flag.trim_start_matches('-');
    match plain.split_once('=') {
        _ if plain.starts_with(['D', 'U']) => &plain[..1],
        Some((name, _)) => name,
        None => plain,
    }
}

impl Reader<'_> {
    /// The flags it names, else those of the variant it extends.
    pub(super) fn flags(&self, wire: &FrontMatter) -> Result<Vec<String>, InputError> {
        let Some(flags) = &wire.flags else {
            let parent = self.parent.as_ref();
            return Ok(parent.map_or(Vec::new(), |parent| parent.flags.clone()));
        };
        let flags = flags.iter().map(|written| {
            let flag = written.get_ref();
            if flag.starts_with('-') && ALLOWED.contains(&name(flag)) && !flag.contains('\0') {
                return Ok(flag.clone());
            }
            let message = format!("`{}` may not be among `flags`", printable_line(flag));
            let remedy = "possible are -DNAME=VALUE, --std=c++20, --use_fast_math, --maxrregcount=N, \
                -default-device and others of the language; `include` names folders, `arch` the target";
            Err(self.document.error(written.span(), message, remedy))
        });
        flags.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_outside_is_not_allowed() {
        let allowed = |flag| ALLOWED.contains(&name(flag));
        for flag in [
            "--std=c++20",
            "-std=c++14",
            "-DN=4",
            "-UN",
            "--ftz=true",
            "-default-device",
        ] {
            assert!(allowed(flag), "{flag}");
        }
        for flag in [
            "-I/etc",
            "--include-path=/etc",
            "-include=a.h",
            "-arch=sm_80",
            "-rdc=true",
            "-dc",
            "--device-c",
            "-pch",
            "--pch-dir=x",
            "--gpu-architecture=sm_80",
            "--time=f",
            "-dlto",
            "--fdevice-time-trace=f",
            "--ptxas-options=-o x",
            "",
        ] {
            assert!(!allowed(flag), "{flag}");
        }
    }
}
