//! Lanes that take no part in a warp-wide instruction which counts on them.
//!
//! An H200 waits for the lanes that the mask names until they have come or ended, at whatever
//! instruction they come; what it reads from lanes that have ended is zero.

use super::cluster::Cluster;
use super::exchange::{members, parties, readers_of};
use super::signal::{Absent, Signal};
use super::sync::illegal;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::op::{Op, Pc};

impl Cluster<'_> {
    /// Lanes that are named and stand before another instruction of this kind: a card lets both
    /// meet. Here they have met if no values go from one to the other.
    pub(super) fn meets_elsewhere(
        &self,
        w: &mut Warp,
        mask: u32,
        op: &Op,
    ) -> Result<(), Box<FaultKind>> {
        if mask == w.live {
            return Ok(());
        }
        let Some(register) = members(op) else {
            return Ok(());
        };
        let named = w.get(register)[mask.trailing_zeros() as usize];
        let away = named & w.live & !mask;
        let insts = &self.env.program.insts;
        let kind = |pc: Pc| {
            insts
                .get(pc as usize)
                .map(|inst| std::mem::discriminant(&inst.op))
        };
        let own = Some(std::mem::discriminant(op));
        let standing = w.stack.iter().filter(|path| path.parked && path.pc != w.pc);
        let standing = standing.filter(|path| kind(path.pc) == own);
        let there = standing.fold(0, |all, path| all | path.mask & away);
        if there != 0 && !matches!(op, Op::WarpSync { .. }) {
            return Err(illegal(format!(
                "lanes {mask:#010x} and {there:#010x} of a warp exchange values at two \
                 instructions, which is not emulated: move the exchange out of the branches"
            )));
        }
        w.excused |= there;
        Ok(())
    }

    /// Says who is missing where the lanes of `mask` exchange something.
    #[cold]
    pub(super) fn tell_of_absent(&mut self, w: &mut Warp, mask: u32, op: &Op) {
        let Some(register) = members(op) else {
            return;
        };
        let named = *w.get(register);
        for party in parties(named, mask) {
            let members = named[party.trailing_zeros() as usize];
            let met = w.excused & party != 0;
            w.excused &= !party;
            let unnamed = party & !members;
            let away = members & w.live & !party & !w.excused;
            let readers = match *op {
                Op::Shfl { mode, b, c, .. } => {
                    readers_of(w, party, !(party & members), mode, [b, c])
                }
                _ => 0,
            };
            let absent = match () {
                () if unnamed != 0 => Absent::Unnamed { lanes: unnamed },
                () if away != 0 && !met => Absent::Away { lanes: away },
                () if readers != 0 => Absent::Read { lanes: readers },
                () => continue,
            };
            self.signal(w.origin(party), Signal::Absent(absent));
        }
    }
}
