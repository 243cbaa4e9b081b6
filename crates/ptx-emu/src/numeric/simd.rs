//! Which vector instructions this machine has, decided once.

use std::cell::Cell;
use std::sync::OnceLock;

/// Instruction sets the kernels are written for, weakest first. Every level computes the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust; what other architectures get.
    Portable,
    /// AVX2, with FMA, F16C and the bit instructions that came with them.
    Avx2,
    /// AVX-512 F, BW, DQ, VL and VNNI besides.
    Avx512,
}

thread_local! {
    static IN_FORCE: Cell<Option<Level>> = const { Cell::new(None) };
}

/// An instruction set's name, and whether this machine has it.
#[cfg(target_arch = "x86_64")]
type Feature = (&'static str, fn() -> bool);

impl Level {
    /// The best level of this machine.
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Self::detect)
    }

    /// The level of the launch that this thread works for; the best where it works for none.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline]
    pub(crate) fn in_force() -> Self {
        IN_FORCE.get().unwrap_or_else(Self::best)
    }

    /// Lets this thread work at a level, or the best below it that there is.
    pub(crate) fn enforce(self) {
        IN_FORCE.set(Some(self.min(Self::best())));
    }

    /// Every level this machine can run, weakest first.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self::Portable, Self::Avx2, Self::Avx512]
            .into_iter()
            .filter(|&level| level <= Self::best())
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Self {
        let has = |level: Self| level.features().iter().all(|(_, detected)| detected());
        match (has(Self::Avx512), has(Self::Avx2)) {
            (true, _) => Self::Avx512,
            (_, true) => Self::Avx2,
            _ => Self::Portable,
        }
    }

    /// Every instruction set that code of this level may be compiled with, and whether this
    /// machine has it. A `#[target_feature]` enables nothing that is not listed here; a test
    /// reads the sources to see to it.
    #[cfg(target_arch = "x86_64")]
    fn features(self) -> &'static [Feature] {
        macro_rules! detected {
            ($($name:tt)+) => {
                &[$(($name, || is_x86_feature_detected!($name))),+]
            };
        }
        match self {
            Self::Portable => &[],
            Self::Avx2 => detected!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt"),
            Self::Avx512 => detected!(
                "avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt"
                "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vnni"
            ),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Self {
        Self::Portable
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::path::Path;

    /// Text of every source file of the crate.
    fn sources(folder: &Path, into: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                sources(&path, into);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("readable");
                into.push((path.display().to_string(), text));
            }
        }
    }

    #[test]
    fn a_launch_is_kept_to_its_level() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\nret;\n}\n";
        let module = crate::Module::load(ptx).expect("it compiles");
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        one.expect("a thread").install(|| {
            for level in Level::available() {
                let config = crate::Config {
                    level,
                    ..crate::Config::default()
                };
                let launch = crate::Launch::new("k").config(config);
                let ran = launch.run(&module, &mut crate::Memory::new());
                assert!(ran.is_ok());
                assert_eq!(Level::in_force(), level);
            }
        });
    }

    #[test]
    fn what_is_enabled_is_what_was_detected() {
        let names = |level: Level| level.features().iter().map(|(name, _)| *name);
        let (avx2, avx512): (Vec<_>, Vec<_>) =
            (names(Level::Avx2).collect(), names(Level::Avx512).collect());
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut files,
        );
        // Assembled, so that this line is not among what it finds.
        let attribute = ["#[target", "_feature("].concat();
        let mut seen = 0;
        for (file, text) in &files {
            for enabled in text.split(attribute.as_str()).skip(1) {
                let words = enabled.split('"').nth(1).expect("a list of features");
                let level = if words.contains("avx512") {
                    &avx512
                } else {
                    &avx2
                };
                for word in words.split(',') {
                    assert!(
                        level.contains(&word),
                        "{file} enables {word}, which is not checked"
                    );
                    seen += 1;
                }
            }
        }
        assert!(
            seen > 20,
            "only {seen} features were found: has the attribute another form?"
        );
    }

    #[test]
    fn a_level_is_chosen_only_with_all_its_features() {
        for level in Level::available() {
            let missing = level.features().iter().find(|(_, detected)| !detected());
            assert_eq!(missing.map(|(name, _)| name), None, "{level:?}");
        }
        let weaker = Level::Avx2.features().iter().map(|(name, _)| name);
        let stronger: Vec<_> = Level::Avx512
            .features()
            .iter()
            .map(|(name, _)| name)
            .collect();
        assert!(weaker.clone().all(|name| stronger.contains(&name)));
    }
}
