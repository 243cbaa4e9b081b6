//! The strands of a cluster: everything whose progress a clock counts, each with a number.

/// The number of strands before those of mbarriers, and their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strands {
    pub(super) warps_per_cta: u32,
    pub(super) warps: u32,
}

/// Asynchronous work of a warp that completes in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Groups {
    /// `cp.async`
    Lanes,
    /// Bulk copies out of shared memory: all done.
    Bulk,
    /// … or at least read.
    BulkRead,
    /// wgmma, of the four warps together.
    Products,
    /// Work of a thread for the tensor core of its CTA, in order; commits signal barriers.
    Pipe,
    /// `cp.async`, in the order of issue; barriers are signalled when all up to one are complete.
    LaneOrder,
    /// `tcgen05.ld`, by its waits.
    TensorLoads,
    /// `tcgen05.st`, likewise.
    TensorStores,
}

/// Rows of strands, one of each for every warp.
const ROWS: u32 = 9;

impl Strands {
    pub(super) fn new(ctas: u32, threads_per_cta: u32) -> Self {
        let warps_per_cta = threads_per_cta.div_ceil(32);
        Self {
            warps_per_cta,
            warps: ctas * warps_per_cta,
        }
    }

    /// The steps of a warp.
    pub(super) fn warp(self, cta: u32, warp: u32) -> u32 {
        cta * self.warps_per_cta + warp
    }

    /// The warps of a CTA.
    pub(super) fn of_cta(self, cta: u32) -> std::ops::Range<u32> {
        self.warp(cta, 0)..self.warp(cta + 1, 0)
    }

    /// Whether the cluster has several CTAs, which share their memories.
    pub(super) fn has_neighbours(self) -> bool {
        self.warps > self.warps_per_cta
    }

    /// The warp of a strand, by the strand of its steps.
    pub(super) fn owner(self, strand: u32) -> u32 {
        strand % self.warps
    }

    /// The CTA of a warp or of one of its strands, and the warp's number there.
    pub(super) fn place(self, strand: u32) -> (u32, u32) {
        let warp = self.owner(strand);
        (warp / self.warps_per_cta, warp % self.warps_per_cta)
    }

    /// The first warp of the four that issue a product together.
    pub(super) fn warpgroup(self, strand: u32) -> u32 {
        let (cta, warp) = self.place(strand);
        self.warp(cta, warp / 4 * 4)
    }

    /// The strand of a warp's complete groups.
    pub(super) fn groups(self, strand: u32, kind: Groups) -> u32 {
        let (row, warp) = match kind {
            Groups::Lanes => (1, strand),
            Groups::Bulk => (2, strand),
            Groups::BulkRead => (3, strand),
            Groups::Products => (4, self.warpgroup(strand)),
            Groups::Pipe => (5, strand),
            Groups::LaneOrder => (6, strand),
            Groups::TensorLoads => (7, strand),
            Groups::TensorStores => (8, strand),
        };
        row * self.warps + warp
    }

    /// The strand that shows that the launch before is complete.
    pub(super) fn launch_before(self) -> u32 {
        ROWS * self.warps
    }

    /// The first strand that is free for a barrier.
    pub(super) fn first_barrier(self) -> u32 {
        ROWS * self.warps + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_strands_are_one() {
        let strands = Strands::new(2, 256);
        let mut seen = std::collections::BTreeSet::new();
        for warp in 0..strands.warps {
            assert!(seen.insert(warp));
            let alone = [
                Groups::Lanes,
                Groups::Bulk,
                Groups::BulkRead,
                Groups::Pipe,
                Groups::LaneOrder,
                Groups::TensorLoads,
                Groups::TensorStores,
            ];
            for kind in alone {
                assert_eq!(strands.owner(strands.groups(warp, kind)), warp);
                assert!(seen.insert(strands.groups(warp, kind)));
            }
            let fresh = seen.insert(strands.groups(warp, Groups::Products));
            assert_eq!(fresh, strands.warpgroup(warp) == warp);
        }
        assert!(seen.insert(strands.launch_before()));
        assert!(seen.iter().all(|strand| *strand < strands.first_barrier()));
        assert_eq!(strands.place(strands.warp(1, 3)), (1, 3));
    }
}
