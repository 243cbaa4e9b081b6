//! The device that is emulated, as far as its limits go.

/// The device whose limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Compute capability times ten: which `.target` the device runs.
    pub capability: u32,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Most shared bytes of one CTA, static and dynamic together.
    pub shared_per_cta: u32,
    /// Shared bytes of one multiprocessor.
    pub shared_per_sm: u32,
    /// Threads of one multiprocessor.
    pub threads_per_sm: u32,
    /// CTAs of one multiprocessor.
    pub ctas_per_sm: u32,
    /// 32-bit registers of one multiprocessor.
    pub registers_per_sm: u32,
    /// Most CTAs in a cluster.
    pub max_cluster: u32,
}

impl Profile {
    /// NVIDIA H200 (and H100 SXM).
    pub const H200: Self = Self {
        capability: 90,
        sms: 132,
        shared_per_cta: 232_448,
        shared_per_sm: 233_472,
        threads_per_sm: 2048,
        ctas_per_sm: 32,
        registers_per_sm: 65_536,
        max_cluster: 16,
    };

    /// Whether a module for `target` runs here. PTX runs on its own architecture and later ones,
    /// but what was made for one chip (`sm_90a`) or one family (`sm_100f`) stays there.
    pub(crate) fn runs(&self, target: &str) -> bool {
        let Some(rest) = target.strip_prefix("sm_") else {
            return false;
        };
        let number = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
        match (number.parse::<u32>(), &rest[number.len()..]) {
            (Ok(n), "") => n <= self.capability,
            (Ok(n), "a") => n == self.capability,
            (Ok(n), "f") => n / 10 == self.capability / 10 && n <= self.capability,
            _ => false,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::H200
    }
}
