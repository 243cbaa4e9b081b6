//! What the SMs are given to do, and what all others leave them of L2 and memory.

use ptx_emu::mixed::{MixedMap, MixedSet};
use ptx_emu::trace::{GlobalBytes, Trace};

use crate::cubin::Code;
use ptx_machine::Machine;

/// What the SMs are given to do.
#[derive(Debug)]
pub(crate) struct Work<'w> {
    pub(crate) code: &'w Code,
    /// Whether the SMs have run it before.
    pub(crate) fetched: bool,
    pub(crate) trace: &'w Trace,
    /// Clusters in the order in which they come, as indices of the trace's CTAs by rank.
    pub(crate) clusters: Vec<Vec<usize>>,
    /// CTAs an SM holds at once.
    pub(crate) resident: usize,
    /// Cycles after the start of this launch at which the one before has ended.
    pub(crate) gate: f64,
    /// Bytes a cycle one SM gets of what all get from L2.
    pub(crate) l2_share: f64,
    /// Bytes a cycle one SM may send of what all send to L2.
    pub(crate) store_share: f64,
    /// Bytes a cycle one SM gets of what all get from memory.
    pub(crate) memory_share: f64,
    /// The same while what is read drives out what others have written, and for how many bytes
    /// of one SM that is so.
    pub(crate) dirty_share: f64,
    pub(crate) dirty_bytes: f64,
    /// SMs that have anything to do.
    pub(crate) sms: f64,
    /// For each region the part of what is read first that comes from memory; others have read
    /// the rest by then.
    pub(crate) cold: Vec<f64>,
    /// For each region the part of what is read that no other SM reads.
    pub(crate) alone: Vec<f64>,
    /// Accesses, by their first sectors, that more than one of the traced clusters makes.
    pub(crate) shared: MixedSet<(u32, u64)>,
    /// For sectors that are updated atomically, by their regions: how many times what is replayed
    /// all SMs do together. One that is not here is updated by one SM alone.
    pub(crate) updaters: MixedMap<(u32, u64), f64>,
    /// Whether L2 begins with none of what the call needs and full of dirty lines: tensor maps,
    /// parameters and the code that is not near then come from memory.
    pub(crate) flushed: bool,
    /// Pages of regions that launches before have used, with the last of them, and the bits of an
    /// address within one.
    pub(crate) warm: &'w MixedMap<(u32, u64), usize>,
    /// The part of what each launch before has used that is still in L2.
    pub(crate) kept: Vec<f64>,
    pub(crate) page: u32,
}

impl Work<'_> {
    /// Bytes a cycle that L2 gives one SM of these: more of what many ask for.
    pub(super) fn l2_rate(&self, at: &GlobalBytes, machine: &Machine) -> f64 {
        let alone = self.alone.get(at.region as usize).copied().unwrap_or(1.0);
        let cost = machine.l2_same + (1.0 - machine.l2_same) * alone;
        (self.l2_share / cost).min(machine.l2_port)
    }

    /// Bytes a cycle that one SM sends to L2.
    pub(super) fn store_rate(&self, machine: &Machine) -> f64 {
        self.store_share.min(machine.store_port)
    }

    /// The part of these bytes that memory must give if this SM has not read them yet.
    pub(super) fn coldness(&self, at: &GlobalBytes) -> f64 {
        let region = at.region as usize;
        match self.warm.get(&(at.region, at.first >> self.page)) {
            Some(&launch) => {
                self.alone.get(region).copied().unwrap_or(0.0) * (1.0 - self.kept[launch])
            }
            None => self.cold.get(region).copied().unwrap_or(0.0),
        }
    }
}
