//! The device that is emulated, as far as its limits go.

/// The device whose limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
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
    /// Columns of tensor memory of one multiprocessor; 0 where there is none.
    pub tensor_columns: u32,
}

impl DeviceLimits {
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
        tensor_columns: 0,
    };

    /// NVIDIA B200.
    pub const B200: Self = Self {
        capability: 100,
        sms: 148,
        tensor_columns: 512,
        ..Self::H200
    };

    /// The device with the most that a module for `target` can ask for, so that what was made for
    /// one chip has one to run on: the H200's or the B200's limits, and less shared memory where
    /// the chip has less.
    pub fn of_target(target: &str) -> Option<Self> {
        let rest = target.strip_prefix("sm_")?;
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let capability: u32 = digits.parse().ok()?;
        Some(match capability {
            ..=90 => Self::H200,
            100..=119 => Self {
                capability,
                ..Self::B200
            },
            _ => Self {
                capability,
                shared_per_cta: 101_376,
                shared_per_sm: 102_400,
                threads_per_sm: 1536,
                ctas_per_sm: 24,
                max_cluster: 8,
                tensor_columns: 0,
                ..Self::B200
            },
        })
    }

    /// Whether a module for `target` runs here. PTX runs on its own architecture and later ones,
    /// but what was made for one chip (`sm_90a`) or one family (`sm_100f`) stays there.
    pub fn runs(&self, target: &str) -> bool {
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

impl Default for DeviceLimits {
    fn default() -> Self {
        Self::H200
    }
}
