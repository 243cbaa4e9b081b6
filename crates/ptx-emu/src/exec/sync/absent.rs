//! Lanes that take no part in a warp-wide instruction which counts on them.
//!
//! An H200 waits for the lanes that the mask names until they have come or ended, at whatever
//! instruction they come; what it reads from lanes that have ended is zero.

use crate::exec::alu::exchange::{members, parties, readers_of};
use crate::exec::alu::joint;
use crate::exec::cluster::Cluster;
use crate::exec::listen::signal::{Absent, Signal};
use crate::exec::warp::{Parting, Path, Warp};
use crate::fault::FaultKind;
use crate::op::{Inst, Op, Pc};

impl Cluster<'_> {
    /// Lanes that are named and stand before another instruction of this kind: a card lets both
    /// meet. True if they have exchanged what they had to, and go on behind their own instructions.
    pub(crate) fn meets_elsewhere(
        &self,
        w: &mut Warp,
        mask: u32,
        op: &Op,
    ) -> Result<bool, Box<FaultKind>> {
        if mask == w.live {
            return Ok(false);
        }
        let Some(register) = members(op) else {
            return Ok(false);
        };
        let named = w.get(register)[mask.trailing_zeros() as usize];
        let away = named & w.live & !mask;
        let insts = &self.env.program.insts;
        let of = |pc: Pc| insts.get(pc as usize).map(|inst| &inst.op);
        let kind = |pc: Pc| of(pc).map(std::mem::discriminant);
        let own = Some(std::mem::discriminant(op));
        let (pc, live) = (w.pc, w.live);
        let stands = |path: &Path| {
            path.parked && path.pc != pc && kind(path.pc) == own && path.mask & away != 0
        };
        let standing: Vec<(u32, Pc)> = (w.stack.iter())
            .filter(|path| stands(path))
            .map(|path| (path.mask & live, path.pc))
            .collect();
        let there = standing.iter().fold(0, |all, (lanes, _)| all | lanes);
        if there == 0 {
            return Ok(false);
        }
        if matches!(op, Op::WarpSync { .. }) {
            w.excused |= there & away;
            return Ok(false);
        }
        let others: Vec<(u32, &Op)> = (standing.iter())
            .filter_map(|&(lanes, pc)| Some((lanes, of(pc)?)))
            .collect();
        if there & !away != 0 || !joint::exchange_all(w, mask, op, &others) {
            return Err(Box::new(FaultKind::NotEmulated {
                reason: format!(
                    "lanes {mask:#010x} and {there:#010x} of a warp exchange values at instructions \
                     that differ: move the exchange out of the branches"
                ),
            }));
        }
        // Whose path ends there is counted where it joins the others.
        w.stack.retain_mut(|path| {
            let met = stands(path);
            path.pc += Pc::from(met);
            path.parked &= !met;
            !met || path.pc != path.rpc
        });
        Ok(true)
    }

    /// Says who is missing where the lanes of `mask` exchange something.
    #[cold]
    pub(crate) fn tell_of_absent(&mut self, w: &mut Warp, mask: u32, op: &Op) {
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
            let past = self.went_past(w, party, members & !w.live);
            let absent = match () {
                () if unnamed != 0 => Absent::Unnamed { lanes: unnamed },
                () if away != 0 && !met => Absent::Away { lanes: away },
                () if past != 0 => Absent::Away { lanes: past },
                () if readers != 0 => Absent::Read { lanes: readers },
                () => continue,
            };
            self.signal(w.origin(party), Signal::Absent(absent));
        }
    }

    /// Those of the ended lanes that left the party, never to come to this instruction, and ended
    /// after code that the party has yet to execute: a card lets the party wait for them meanwhile.
    /// Lanes that only ended are not waited for.
    fn went_past(&mut self, w: &Warp, party: u32, ended: u32) -> u32 {
        let left = |parting: &&Parting| parting.from & party != 0 && parting.lanes & ended != 0;
        let env = self.env;
        let insts = &env.program.insts;
        let mut past = 0;
        for parting in w.partings.iter().filter(left) {
            let went = self.passes.entry((w.pc, parting.pc));
            if *went.or_insert_with(|| passes(insts, w.pc, parting.pc)) {
                past |= parting.lanes & ended;
            }
        }
        past
    }
}

/// Whether threads at `other` never come to `here`, and yet do some of what is done behind it.
fn passes(insts: &[Inst], here: Pc, other: Pc) -> bool {
    let (behind, ahead) = (reached(insts, here), reached(insts, other));
    let does = |inst: &Inst| !matches!(inst.op, Op::Bra { .. } | Op::Ret | Op::Exit);
    let mut common = insts.iter().zip(behind.iter().zip(&ahead));
    !ahead[here as usize] && common.any(|(inst, (a, b))| *a && *b && does(inst))
}

/// The instructions that a thread which stands at `from` may come to, this one among them.
fn reached(insts: &[Inst], from: Pc) -> Vec<bool> {
    let mut seen = vec![false; insts.len()];
    let mut open = vec![from];
    while let Some(pc) = open.pop() {
        let (Some(inst), Some(seen)) = (insts.get(pc as usize), seen.get_mut(pc as usize)) else {
            continue;
        };
        if std::mem::replace(seen, true) {
            continue;
        }
        let goes_on = match &inst.op {
            Op::Bra { target, .. } => {
                open.push(*target);
                false
            }
            Op::Brx { targets, .. } => {
                open.extend(targets.iter().copied());
                false
            }
            Op::Ret | Op::Exit => false,
            _ => true,
        };
        if goes_on || inst.guard.pred.is_some() {
            open.push(pc + 1);
        }
    }
    seen
}
