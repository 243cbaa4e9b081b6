//! Products that add to registers which nobody gave a value.

use crate::exec::cluster::Cluster;
use crate::exec::cluster::template::UNSET;
use crate::exec::listen::signal::Signal;
use crate::exec::origin::Origin;
use crate::exec::warp::Warp;
use crate::op::{Slot, SlotList, pool};

/// Whether a register of a warp holds what registers hold before they are written. Memory that
/// nobody wrote is all ones.
fn is_unset(lanes: &[u32; 32]) -> bool {
    let first = lanes[0];
    first & UNSET == UNSET && first != u32::MAX && lanes.iter().all(|lane| *lane == first)
}

impl Cluster<'_> {
    /// How many of these registers nobody gave a value.
    fn unset(&self, w: &Warp, list: SlotList) -> u32 {
        let slots = pool(self.env.program, list).iter();
        let unset = slots.filter(|slot| match slot {
            Slot::W32(r) => is_unset(w.get(*r)),
            Slot::W64(_) | Slot::Sink => false,
        });
        unset.count() as u32
    }

    /// A product of one warp adds to what is in these registers.
    #[inline(always)]
    pub(super) fn sum_set(&mut self, w: &Warp, mask: u32, list: SlotList) {
        if self.ear.is_some() {
            let registers = self.unset(w, list);
            self.tell_of_unset(w.origin(mask), registers, list);
        }
    }

    /// A product of the four warps from `first` on does, at the instruction `pc`.
    pub(super) fn sums_set(&mut self, cta: usize, first: usize, pc: u32, list: SlotList) {
        if self.ear.is_none() {
            return;
        }
        for warp in first..first + 4 {
            let registers = self.unset(&self.ctas[cta].warps[warp], list);
            let from = Origin {
                cta: cta as u32,
                warp: warp as u32,
                lanes: u32::MAX,
                pc,
                ..Origin::default()
            };
            self.tell_of_unset(from, registers, list);
        }
    }

    fn tell_of_unset(&mut self, from: Origin, registers: u32, list: SlotList) {
        let of = list.len.into();
        if registers > 0 {
            self.signal(from, Signal::Unset { registers, of });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arithmetic_makes_is_set() {
        assert!(is_unset(&[UNSET | 0x0012_0004; 32]));
        for value in [
            0,
            0x7fff_ffff,
            u32::MAX,
            0x7fc0_0000,
            0xffc0_0000,
            0x3f80_0000,
        ] {
            assert!(!is_unset(&[value; 32]), "{value:#x}");
        }
        let mut sums = [UNSET; 32];
        sums[31] = 1;
        assert!(!is_unset(&sums));
    }
}
