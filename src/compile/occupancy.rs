use crate::domain::Bytes;

/// Per-SM limits of compute capability 9.0; 10.0 has the same.
const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
const REGISTERS: u32 = 65_536;
const SMEM: u64 = 228 * 1024;
/// Shared memory the system keeps for itself in every block.
const SMEM_RESERVED: u64 = 1024;
/// Registers are handed out to warps in units of this many.
const REGISTER_UNIT: u32 = 256;

/// How many blocks of a kernel fit on an SM, and what keeps out the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    pub blocks: u32,
    pub limit: &'static str,
}

/// Blocks of a kernel that an SM can hold at once.
pub fn residency(registers: u32, threads: u32, smem: Bytes) -> Residency {
    let warps = threads.div_ceil(32).max(1);
    let warp_registers = (registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
    let by_smem = u32::try_from(SMEM / (smem.0 + SMEM_RESERVED)).unwrap_or(BLOCKS);
    let limits = [
        (by_smem, "shared memory"),
        (REGISTERS / warp_registers / warps, "registers"),
        (WARPS / warps, "warps"),
        (BLOCKS, "blocks"),
    ];
    let (blocks, limit) = limits
        .into_iter()
        .min_by_key(|(blocks, _)| *blocks)
        .unwrap_or((0, ""));
    Residency { blocks, limit }
}

/// Resident warps of a kernel over the most an SM can hold.
pub fn occupancy(registers: u32, threads: u32, smem: Bytes) -> f64 {
    let warps = threads.div_ceil(32).max(1);
    let blocks = residency(registers, threads, smem).blocks;
    f64::from(blocks * warps) / f64::from(WARPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(occupancy(168, 384, Bytes(200 * 1024)), 12.0 / 64.0);
        assert_eq!(occupancy(32, 1024, Bytes(0)), 1.0);
        assert_eq!(occupancy(128, 256, Bytes(0)), 16.0 / 64.0);
        assert_eq!(occupancy(255, 1024, Bytes(0)), 0.0);
    }

    #[test]
    fn the_limit_is_named() {
        assert_eq!(
            residency(168, 256, Bytes(200 * 1024)).limit,
            "shared memory"
        );
        assert_eq!(residency(128, 256, Bytes(0)).limit, "registers");
        assert_eq!(residency(32, 1024, Bytes(0)).limit, "registers");
        assert_eq!(residency(16, 1024, Bytes(0)).limit, "warps");
        assert_eq!(residency(16, 32, Bytes(0)).limit, "blocks");
    }
}
