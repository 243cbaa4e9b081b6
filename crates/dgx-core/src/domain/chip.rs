use std::fmt;

use serde::{Deserialize, Serialize};

/// A chip by its compute capability: `sm_90` is 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Chip {
    pub major: u32,
    pub minor: u32,
}

impl Chip {
    /// Those that NVRTC 13 compiles for. The file of a device may name another.
    pub const KNOWN: [Self; 12] = [
        Self::new(7, 5),
        Self::new(8, 0),
        Self::new(8, 6),
        Self::new(8, 7),
        Self::new(8, 8),
        Self::new(8, 9),
        Self::new(9, 0),
        Self::new(10, 0),
        Self::new(10, 3),
        Self::new(11, 0),
        Self::new(12, 0),
        Self::new(12, 1),
    ];

    const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The chip that a compile target is named after, e.g. `sm_90a`.
    pub fn parse(arch: &str) -> Option<Self> {
        let (chip, _) = Self::split(arch)?;
        Some(chip)
    }

    /// A target's chip, and whether it is for that chip alone (`a`), for its family (`f`), or for
    /// all later ones.
    fn split(arch: &str) -> Option<(Self, &str)> {
        let rest = arch.strip_prefix("sm_")?;
        let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
        if !(2..=3).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (major, minor) = digits.split_at(digits.len() - 1);
        let chip = Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        };
        Some((chip, &rest[digits.len()..]))
    }

    /// Whether its tensor cores multiply block-scaled fp4 directly.
    pub fn multiplies_fp4(self) -> bool {
        self.major >= 10
    }

    /// The compile target with all instructions of this chip: from 9.0 on a chip has its own.
    pub fn target(self) -> String {
        match self.major {
            0..9 => self.to_string(),
            _ => format!("{self}a"),
        }
    }

    /// Why code for `arch` does not run here. PTX runs on its own chip and all later ones, but code
    /// for one chip or one family runs only there. A word that names no chip is left for the
    /// compiler to refuse.
    pub fn refuses(self, arch: &str) -> Option<String> {
        let (chip, suffix) = Self::split(arch)?;
        let family = chip.major == self.major && chip.minor <= self.minor;
        let (runs, only) = match suffix {
            "a" => (chip == self, " and runs nowhere else"),
            "f" => (family, " and its family"),
            _ => (chip <= self, " and later"),
        };
        (!runs).then(|| format!("it is compiled for {arch}{only}, and this device is {self}"))
    }
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_on_its_chip_its_family_or_all_later_ones() {
        let chip = |text: &str| Chip::parse(text).unwrap();
        for (arch, here, runs) in [
            ("sm_90a", "sm_90", true),
            ("sm_90a", "sm_100", false),
            ("sm_90a", "sm_89", false),
            ("sm_100a", "sm_100", true),
            ("sm_100a", "sm_103", false),
            ("sm_100a", "sm_90", false),
            ("sm_100f", "sm_100", true),
            ("sm_100f", "sm_103", true),
            ("sm_103f", "sm_100", false),
            ("sm_100f", "sm_120", false),
            ("sm_90", "sm_90", true),
            ("sm_90", "sm_100", true),
            ("sm_80", "sm_90", true),
            ("sm_90", "sm_89", false),
            ("sm_100", "sm_90", false),
            ("sm_103", "sm_100", false),
        ] {
            let refused = chip(here).refuses(arch);
            assert_eq!(refused.is_none(), runs, "{arch} on {here}: {refused:?}");
        }
        assert_eq!(
            chip("sm_100").refuses("sm_90a").unwrap(),
            "it is compiled for sm_90a and runs nowhere else, and this device is sm_100"
        );
    }

    #[test]
    fn what_names_no_chip_is_the_compilers_to_refuse() {
        for word in [
            "",
            "sm_",
            "sm_9",
            "sm_9000",
            "sm_90b",
            "compute_90",
            "sm_+1",
            "sm_９０",
        ] {
            assert_eq!(Chip::parse(word), None, "{word}");
            assert_eq!(Chip { major: 9, minor: 0 }.refuses(word), None, "{word}");
        }
    }

    #[test]
    fn a_chip_is_written_as_it_is_read() {
        for text in ["sm_80", "sm_90", "sm_103", "sm_120"] {
            assert_eq!(Chip::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Chip { major: 9, minor: 0 }.target(), "sm_90a");
        assert_eq!(Chip { major: 8, minor: 9 }.target(), "sm_89");
    }
}
