//! Which instruction belongs to which `.version`, as ptxas has it: conversions, whose newer pairs
//! of types look like older ones. Compilers write the version that their text needs.

use super::error::{Lowered, illegal};
use crate::front::ast::Instruction;

/// Packed floats of eight bits or fewer.
const SMALL: [&str; 5] = ["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2"];

/// Refuses an instruction that is newer than the module's version.
pub(super) fn check(version: (u32, u32), instruction: &Instruction<'_>) -> Lowered<()> {
    let needs = match instruction.opcode {
        "cvt" => conversion(&instruction.modifiers),
        _ => None,
    };
    match needs {
        Some(needs @ (major, minor)) if version < needs => illegal(format!(
            "this conversion needs .version {major}.{minor} or later, and the module has {}.{}",
            version.0, version.1
        )),
        _ => Ok(()),
    }
}

fn conversion(modifiers: &[&str]) -> Option<(u32, u32)> {
    let &[.., to, from] = modifiers else {
        return None;
    };
    let small = |word: &str| SMALL.contains(&word);
    match (to, from) {
        ("s2f6x2", _) | (_, "s2f6x2") => Some((9, 1)),
        (to, "bf16x2") if small(to) => Some((9, 1)),
        ("e2m1x2" | "e2m3x2" | "e3m2x2", "f16x2") => Some((9, 1)),
        ("bf16x2", from) if small(from) => Some((9, 2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::conversion;

    /// The results of ptxas 13.4.
    #[test]
    fn conversions_have_their_versions() {
        for (form, version) in [
            ("rn.satfinite.e2m1x2.f32", None),
            ("rn.f16x2.e2m1x2", None),
            ("rn.satfinite.e4m3x2.f16x2", None),
            ("rn.satfinite.e2m1x2.f16x2", Some((9, 1))),
            ("rn.satfinite.e5m2x2.bf16x2", Some((9, 1))),
            ("rn.satfinite.s2f6x2.f32", Some((9, 1))),
            ("rn.bf16x2.s2f6x2", Some((9, 1))),
            ("rn.scaled::n2::ue8m0.bf16x2.e4m3x2", Some((9, 2))),
        ] {
            let words: Vec<&str> = form.split('.').collect();
            assert_eq!(conversion(&words), version, "{form}");
        }
    }
}
