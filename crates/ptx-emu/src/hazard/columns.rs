//! Tensor memory: the last write of each column, in blocks of sixteen lanes, and the reads since. A
//! warp's loads and stores are in flight until it waits for them; work given to the tensor core is
//! executed in order and ends with a commit.

use std::cell::RefCell;

use super::Sighting;
use super::finding::Hazard;
use super::judge::judge;
use super::shadow::{Actor, Lanes, Met, Trace};
use super::watcher::{Remembered, Watcher};
use super::words::Side;
use crate::exec::listen::visit::{Act, Bytes, Visit};
use crate::exec::origin::Branch;

/// Parts of a column that are distinguished.
const BLOCKS: u32 = 8;
pub(super) const LANES: u32 = 128 / BLOCKS;

/// The parts of a column that contain these lanes, a bit each.
pub(super) fn blocks_of(lanes: u128) -> u8 {
    let any = |block: u32| u8::from(lanes >> (block * LANES) & 0xffff != 0) << block;
    (0..BLOCKS).map(any).sum()
}

impl Watcher<'_> {
    pub(super) fn hear_tensor(&mut self, visit: &Visit<'_>, cta: u32) {
        let Bytes::Columns {
            first,
            count,
            lanes,
        } = visit.bytes
        else {
            return;
        };
        let Self {
            detector,
            ledger,
            memory,
            ..
        } = self;
        let shadow = match memory {
            Remembered::Users(_, tensor) => &mut tensor[cta as usize],
            Remembered::Filled(_) => return self.glance_at_tensor(visit, cta),
        };
        let issuer = ledger.actor(visit.from);
        let Some(known) = ledger.knowledge(issuer).cloned() else {
            return;
        };
        let own = ledger.strand(visit.from);
        let (actor, step) = match (issuer, visit.act) {
            (Actor::Warp(warp), Act::Free) => (issuer, ledger.warps[warp as usize].step),
            // Hardware makes readers wait for loads, so the warp itself need not.
            (Actor::Warp(warp), Act::Read) if detector.scoreboard && !detector.strict => {
                (issuer, ledger.warps[warp as usize].step)
            }
            (Actor::Warp(warp), act) => {
                let number = ledger.moves_on(warp, visit.from.pc, act.writes());
                (Actor::Warp(ledger.moves(warp, act.writes())), number)
            }
            (Actor::Work(_), _) => (issuer, 0),
        };
        let strict = detector.strict;
        let behind = RefCell::new(Vec::new());
        let over = |old: &Trace, write: bool| match (old.actor, actor) {
            (old, new) if old == new => true,
            (Actor::Work(old), Actor::Work(new)) if ledger.queued_before(old, new) => {
                behind.borrow_mut().push(old);
                true
            }
            (Actor::Warp(strand), _) if ledger.strands.owner(strand) == own => {
                ledger.over(&known.own.generic, old, write, cta)
            }
            _ => {
                let clock = match strict {
                    true => &known.own.proxied[2],
                    false => &known.own.generic,
                };
                ledger.over(clock, old, write, cta)
            }
        };
        let new = Trace {
            actor,
            step,
            pc: visit.from.pc,
            branch: Branch::default(),
            lane: 0,
            bytes: 0,
            strength: 0,
        };
        let mut caller = shadow.call(visit.act, new, over);
        let blocks = blocks_of(lanes);
        if blocks == u8::MAX {
            let words = first * BLOCKS..(first + count) * BLOCKS;
            shadow.touch(&mut caller, words, Lanes::one(0));
        } else {
            let each = (first..first + count).flat_map(|column| {
                let block = (0..BLOCKS).filter(|block| blocks >> block & 1 == 1);
                block.map(move |block| column * BLOCKS + block)
            });
            for word in each {
                shadow.touch(&mut caller, word..word + 1, Lanes::one(0));
            }
        }
        let met = caller.met;
        if let Actor::Work(work) = issuer {
            ledger.relies(work, &behind.take());
        }
        let Some((met, word)) = met else {
            return;
        };
        let here = Side::new(visit.agent, visit.act, visit.from);
        let spot = detector.tensor_spot(cta, word / BLOCKS, word % BLOCKS * LANES);
        let sighting = match met {
            Met::Nothing => Some(Sighting::one(Hazard::UninitialisedTensor, here)),
            met => judge(ledger, met, here, |old, wrote| {
                match ledger.over(&known.own.generic, old, wrote, cta) {
                    true => Hazard::TensorFence,
                    false => Hazard::Race,
                }
            }),
        };
        if let Some(sighting) = sighting {
            detector.report(ledger.cluster, sighting.at(spot));
        }
    }

    /// Newly allocated columns are uninitialised.
    pub(super) fn allocates(&mut self, cta: u32, first: u32, columns: u32) {
        match &mut self.memory {
            Remembered::Users(_, tensor) => {
                tensor[cta as usize].forget(first * BLOCKS..(first + columns) * BLOCKS);
            }
            Remembered::Filled(filled) => filled[cta as usize].allocate(first, columns),
        }
    }
}
