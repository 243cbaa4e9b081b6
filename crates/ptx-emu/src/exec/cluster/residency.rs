//! How many CTAs a device holds at once, and what there is no more of.
//!
//! As NVIDIA's occupancy calculator counts for compute capability 9.0: registers are handed out to
//! warps in units of 256, each of the four schedulers has its quarter of them, and shared memory
//! comes in units of 128 bytes.

use crate::limits::DeviceLimits;

/// Registers are given to a warp in multiples of this.
const REGISTER_UNIT: u32 = 256;

/// Schedulers of a multiprocessor, each with its share of the registers.
const SCHEDULERS: u32 = 4;

/// Shared bytes are given to a CTA in multiples of this.
const SHARED_UNIT: u32 = 128;

/// What one CTA takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) threads: u32,
    /// Shared bytes, with the KiB that each CTA reserves.
    pub(crate) shared: u32,
    /// Registers per thread, if known.
    pub(crate) registers: Option<u32>,
    /// CTAs of a cluster.
    pub(crate) cluster: u32,
}

/// What fits at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Residency {
    /// CTAs of one multiprocessor; 0 if not even one fits.
    pub(crate) per_sm: u32,
    pub(crate) clusters: u64,
    pub(crate) ctas: u64,
    /// What there is no more of, in words.
    pub(crate) limit: &'static str,
}

/// Registers of a warp as they are handed out.
pub(crate) fn registers_of_warp(per_thread: u32) -> u32 {
    (per_thread * 32).next_multiple_of(REGISTER_UNIT)
}

impl Residency {
    pub(crate) fn of(limits: &DeviceLimits, demand: &Demand) -> Self {
        let warps = demand.threads.div_ceil(32);
        let by_registers = demand.registers.map_or(u32::MAX, |registers| {
            let of_warp = registers_of_warp(registers).max(1);
            let per_scheduler = limits.registers_per_sm / SCHEDULERS / of_warp;
            per_scheduler * SCHEDULERS / warps
        });
        let shared = demand.shared.max(1).next_multiple_of(SHARED_UNIT);
        let counts = [
            (limits.ctas_per_sm, "the number of CTAs"),
            (limits.threads_per_sm / (warps * 32), "threads"),
            (limits.shared_per_sm / shared, "shared memory"),
            (by_registers, "registers"),
        ];
        let (per_sm, limit) = counts
            .into_iter()
            .min_by_key(|(count, _)| *count)
            .unwrap_or((0, "nothing"));
        let clusters = u64::from(limits.sms * per_sm / demand.cluster).max(1);
        Self {
            per_sm,
            clusters,
            ctas: clusters * u64::from(demand.cluster),
            limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(threads: u32, shared: u32, registers: Option<u32>) -> (u32, &'static str) {
        let demand = Demand {
            threads,
            shared: shared + 1024,
            registers,
            cluster: 1,
        };
        let residency = Residency::of(&DeviceLimits::H200, &demand);
        (residency.per_sm, residency.limit)
    }

    /// Figures of NVIDIA's occupancy calculator.
    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(of(32, 0, Some(16)), (32, "the number of CTAs"));
        assert_eq!(of(1024, 0, Some(32)), (2, "threads"));
        assert_eq!(of(256, 0, Some(64)), (4, "registers"));
        assert_eq!(of(384, 0, Some(168)), (1, "registers"));
        assert_eq!(of(128, 100_000, Some(32)), (2, "shared memory"));
        assert_eq!(of(1024, 0, Some(65)), (0, "registers"));
        assert_eq!(of(1024, 0, None), (2, "threads"));
        assert_eq!(of(160, 0, Some(128)), (3, "registers"));
    }
}
