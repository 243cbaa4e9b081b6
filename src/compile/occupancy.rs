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

/// Resident warps of a kernel over the most an SM can hold.
pub fn occupancy(registers: u32, threads: u32, smem: Bytes) -> f64 {
    let warps = threads.div_ceil(32).max(1);
    let warp_registers = (registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
    let by_warps = WARPS / warps;
    let by_registers = REGISTERS / warp_registers / warps;
    let by_smem = u32::try_from(SMEM / (smem.0 + SMEM_RESERVED)).unwrap_or(BLOCKS);
    let blocks = by_warps.min(by_registers).min(by_smem).min(BLOCKS);
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
}
