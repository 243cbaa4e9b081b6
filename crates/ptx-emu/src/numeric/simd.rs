//! Which vector instructions this machine has, decided once.

use std::sync::OnceLock;

/// Instruction sets the kernels are written for, weakest first. Every level computes the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust; what other architectures get.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ, VL besides.
    Avx512,
}

impl Level {
    /// The best level of this machine.
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Self::detect)
    }

    /// Every level this machine can run, weakest first.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self::Portable, Self::Avx2, Self::Avx512]
            .into_iter()
            .filter(|&level| level <= Self::best())
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Self {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx512, avx2) {
            (true, _) => Self::Avx512,
            (_, true) => Self::Avx2,
            _ => Self::Portable,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Self {
        Self::Portable
    }
}
