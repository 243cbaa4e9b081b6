use dgx_core::domain::{Bytes, Limits};

const WARP: u32 = 32;
/// Parts of an SM: a warp's registers must all come from one, on every chip since sm_50.
const SCHEDULERS: u32 = 4;
/// Shared memory is handed out to blocks in units of this many bytes.
const SHARED_UNIT: u64 = 128;

/// How many blocks of a kernel fit on an SM, and what limits the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    pub blocks: u32,
    pub limit: &'static str,
}

/// Columns of tensor memory of an SM, on every chip that has it.
const TENSOR_COLUMNS: u32 = 512;

impl Residency {
    /// With blocks that allocate this many columns of tensor memory, and wait until they are free.
    pub(crate) fn with_columns(self, columns: u32) -> Self {
        match TENSOR_COLUMNS.checked_div(columns) {
            Some(blocks) if blocks < self.blocks => Self {
                blocks,
                limit: "tensor memory",
            },
            _ => self,
        }
    }
}

/// Blocks of a kernel that an SM can hold at once.
pub fn residency(limits: &Limits, registers: u32, threads: u32, smem: Bytes) -> Residency {
    let warps = threads.div_ceil(WARP).max(1);
    let warp_registers = (registers.max(1) * WARP).next_multiple_of(limits.register_unit);
    let block_smem = (smem.0 + limits.shared_reserved.0).max(1);
    let block_smem = block_smem.next_multiple_of(SHARED_UNIT);
    let warps_by_registers = limits.registers_per_sm / SCHEDULERS / warp_registers * SCHEDULERS;
    let by_smem = u32::try_from(limits.shared_per_sm.0 / block_smem);
    let by_limit = [
        (by_smem.unwrap_or(limits.blocks_per_sm), "shared memory"),
        (warps_by_registers / warps, "registers"),
        (limits.threads_per_sm / WARP / warps, "warps"),
        (limits.blocks_per_sm, "CTAs"),
    ];
    let (blocks, limit) = by_limit
        .into_iter()
        .min_by_key(|(blocks, _)| *blocks)
        .unwrap_or((0, ""));
    Residency { blocks, limit }
}

/// The resources of one block of a kernel on an SM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    pub registers: u32,
    pub threads: u32,
    pub smem: Bytes,
}

impl Footprint {
    /// Registers, shared memory, warps, and one block.
    fn takes(&self, limits: &Limits) -> [u64; 4] {
        let warps = self.threads.div_ceil(WARP).max(1);
        let registers = (self.registers.max(1) * WARP).next_multiple_of(limits.register_unit);
        let smem = (self.smem.0 + limits.shared_reserved.0).next_multiple_of(SHARED_UNIT);
        [u64::from(registers * warps), smem, u64::from(warps), 1]
    }

    /// Whether an SM with this many blocks of another kernel has room for one.
    pub(crate) fn fits_beside(&self, limits: &Limits, other: &Self, count: u32) -> bool {
        let has = [
            u64::from(limits.registers_per_sm),
            limits.shared_per_sm.0,
            u64::from(limits.threads_per_sm / WARP),
            u64::from(limits.blocks_per_sm),
        ];
        let taken = self.takes(limits).into_iter().zip(other.takes(limits));
        let wanted = taken.map(|(own, others)| own + u64::from(count) * others);
        wanted.zip(has).all(|(wanted, has)| wanted <= has)
    }
}

/// Resident warps of a kernel over the maximum of an SM.
pub fn occupancy(limits: &Limits, threads: u32, residency: Residency) -> f64 {
    let warps = threads.div_ceil(WARP).max(1);
    f64::from(residency.blocks * warps) / f64::from(limits.threads_per_sm / WARP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::config::target::default_device;

    #[test]
    fn a_block_finds_room_beside_others_or_not() {
        let block = |registers, smem| Footprint {
            registers,
            threads: 128,
            smem: Bytes(smem),
        };
        let (small, large) = (block(32, 1 << 10), block(168, 200 << 10));
        let fits =
            |one: &Footprint, other, count| one.fits_beside(&default_device().limits, other, count);
        assert!(fits(&large, &small, 2) && fits(&small, &large, 1));
        assert!(!fits(&large, &large, 1), "shared memory");
        assert!(!fits(&small, &small, 16), "warps");
        assert!(fits(&small, &small, 15));
        assert!(!fits(&block(255, 0), &block(255, 0), 2), "registers");
    }

    #[test]
    fn the_scarcest_resource_decides() {
        let h200 = &default_device().limits;
        let share = |registers, threads, smem| {
            occupancy(h200, threads, residency(h200, registers, threads, smem))
        };
        assert_eq!(share(168, 384, Bytes(200 * 1024)), 12.0 / 64.0);
        assert_eq!(share(32, 1024, Bytes(0)), 1.0);
        assert_eq!(share(128, 256, Bytes(0)), 16.0 / 64.0);
        assert_eq!(share(255, 1024, Bytes(0)), 0.0);
    }

    #[test]
    fn columns_of_tensor_memory_keep_others_out() {
        let four = Residency {
            blocks: 4,
            limit: "shared memory",
        };
        let with = |columns| {
            let Residency { blocks, limit } = four.with_columns(columns);
            (blocks, limit)
        };
        assert_eq!(with(0), (4, "shared memory"));
        assert_eq!(with(128), (4, "shared memory"));
        assert_eq!(with(256), (2, "tensor memory"));
        assert_eq!(with(512), (1, "tensor memory"));
    }

    /// As `cuOccupancyMaxActiveBlocksPerMultiprocessor` counts: 25 warps of 80
    /// registers would fit in all, but only six in each quarter.
    #[test]
    fn the_registers_of_a_warp_come_from_one_scheduler() {
        let h200 = &default_device().limits;
        let blocks = |registers, threads| residency(h200, registers, threads, Bytes(0)).blocks;
        assert_eq!(blocks(80, 160), 4);
        assert_eq!(blocks(80, 768), 1);
        assert_eq!(blocks(80, 800), 0);
        assert_eq!(blocks(168, 384), 1);
        assert_eq!(blocks(168, 416), 0);
    }

    #[test]
    fn shared_memory_is_handed_out_in_units() {
        let h200 = &default_device().limits;
        let half = h200.shared_per_sm.0 / 2 - h200.shared_reserved.0;
        let blocks = |smem| residency(h200, 32, 128, Bytes(smem)).blocks;
        assert_eq!(
            (blocks(half), blocks(half - 127), blocks(half + 1)),
            (2, 2, 1)
        );
        let ninth = h200.shared_per_sm.0 / 9 - h200.shared_reserved.0;
        assert_eq!((ninth + 1024) % 128, 85);
        assert_eq!(blocks(ninth), 8);
    }

    #[test]
    fn the_limit_is_named() {
        let h200 = &default_device().limits;
        assert_eq!(
            residency(h200, 168, 256, Bytes(200 * 1024)).limit,
            "shared memory"
        );
        assert_eq!(residency(h200, 128, 256, Bytes(0)).limit, "registers");
        assert_eq!(residency(h200, 32, 1024, Bytes(0)).limit, "registers");
        assert_eq!(residency(h200, 16, 1024, Bytes(0)).limit, "warps");
        assert_eq!(residency(h200, 16, 32, Bytes(0)).limit, "CTAs");
    }
}
