//! A CTA: its memories, its barriers and its warps.

use crate::exec::storage::bytes::AlignedBytes;
use crate::exec::storage::mbarrier::Mbarriers;
use crate::exec::storage::named::NamedBarrier;
use crate::exec::storage::tmem::Tmem;
use crate::exec::storage::touched::Touched;
use crate::exec::warp::Warp;

/// Shared bytes a bulk copy has yet to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Instruction that issued the copy.
    pub(crate) pc: u32,
}

#[derive(Default)]
pub(crate) struct Cta {
    pub(crate) id: [u32; 3],
    pub(crate) shared: AlignedBytes,
    pub(crate) touched: Touched,
    pub(crate) mbarriers: Mbarriers,
    pub(crate) tmem: Tmem,
    /// Destinations of bulk copies under way.
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) named: Vec<NamedBarrier>,
    /// Those that somebody has arrived at, a bit each.
    pub(crate) awaited: u16,
    /// Boxed, because a warp is taken out for each of its turns, many of which are short.
    #[expect(clippy::vec_box, reason = "a turn swaps pointers, not warps")]
    pub(crate) warps: Vec<Box<Warp>>,
    /// Warps that have not ended.
    pub(crate) running: u32,
    /// Warps, a bit each, that have ended or wait for others and were looked at since anything
    /// could have woken them: a barrier clears it.
    pub(crate) asleep: u64,
    /// Registers per thread times warps not handed out, once `setmaxnreg` is used.
    pub(crate) free_registers: Option<i64>,
}

impl Cta {
    /// Warps that are not asleep, a bit each.
    #[inline(always)]
    pub(crate) fn awake(&self) -> u64 {
        !self.asleep & !u64::MAX.unbounded_shl(self.warps.len() as u32)
    }

    /// Bytes it holds on to.
    pub(crate) fn storage(&self) -> usize {
        let registers = self.warps.iter().map(|w| w.storage());
        self.shared.storage() + self.tmem.storage() + registers.sum::<usize>()
    }
}
