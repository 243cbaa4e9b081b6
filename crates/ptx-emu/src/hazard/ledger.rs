//! What orders the accesses of a cluster: its warps, their asynchronous work, and barriers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::clock::{Clock, Knowledge};
use super::meeting::{Barrier, Meeting, Seat};
use super::shadow::{Actor, Trace};
use super::strands::{Groups, Strands};
use super::warp::{MOVES, Move, Warp};
use super::works::{WORKS, Work, Works};
use crate::exec::listen::agent::{Agent, Proxy};
use crate::exec::origin::{Origin, SharedAt};
use crate::mixed::MixedMap;

/// The ordering state of a cluster.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) cluster: u64,
    pub(super) strands: Strands,
    pub(super) warps: Vec<Warp>,
    pub(super) works: Works,
    pub(super) named: MixedMap<(u32, u32), Meeting>,
    pub(super) all: Meeting,
    pub(super) barriers: MixedMap<(u32, u32), Barrier>,
    seats: MixedMap<(u32, u32), Seat>,
    /// Where each warp last requested or released registers.
    pub(super) rationed: BTreeMap<u32, Origin>,
    /// The joint knowledge of the four warps of a product when they issued it.
    products: MixedMap<(u32, u64), Knowledge>,
    /// The product of each work.
    product_of: MixedMap<u32, (u32, u64)>,
}

impl Ledger {
    pub(super) fn new(cluster: u64, strands: Strands) -> Self {
        let mut warps: Vec<Warp> = Vec::new();
        warps.resize_with(strands.warps as usize, Warp::default);
        let mut ledger = Self {
            cluster,
            strands,
            warps,
            works: Works::default(),
            named: MixedMap::default(),
            all: Meeting::default(),
            barriers: MixedMap::default(),
            seats: MixedMap::default(),
            rationed: BTreeMap::new(),
            products: MixedMap::default(),
            product_of: MixedMap::default(),
        };
        for warp in 0..strands.warps {
            ledger.step(warp);
        }
        ledger
    }

    /// The strand of the warp of an access.
    pub(super) fn strand(&self, from: Origin) -> u32 {
        self.strands.warp(from.cta, from.warp)
    }

    pub(super) fn actor(&self, from: Origin) -> Actor {
        match from.work {
            0 => Actor::Warp(self.strand(from)),
            work => Actor::Work(work as u32),
        }
    }

    /// The knowledge of an actor.
    pub(super) fn knowledge(&self, actor: Actor) -> Option<&Arc<Knowledge>> {
        match actor {
            Actor::Warp(warp) => Some(&self.warps[warp as usize].known),
            Actor::Work(work) => self.works.get(work).map(|work| &work.known),
        }
    }

    /// A warp's next step.
    pub(super) fn step(&mut self, warp: u32) {
        let w = &mut self.warps[warp as usize];
        w.step += 1;
        let own = &mut Arc::make_mut(&mut w.known).own;
        own.generic.raise(warp, w.step);
        if self.strands.has_neighbours() {
            own.ran.raise(warp, w.step);
        }
    }

    /// A warp learns something.
    pub(super) fn teach(&mut self, warp: u32, lesson: impl FnOnce(&mut Knowledge)) {
        let w = &mut self.warps[warp as usize];
        w.lessons += 1;
        lesson(Arc::make_mut(&mut w.known));
        self.step(warp);
    }

    /// Lanes of a warp wait for its other lanes, if these are on other paths.
    pub(super) fn lanes_meet(&mut self, from: Origin) {
        if from.branch.is_one_of_several() {
            let warp = self.strand(from);
            let w = &mut self.warps[warp as usize];
            w.met = w.step;
            self.step(warp);
        }
    }

    /// Whether an access of the same warp was made on another path, without a wait since.
    pub(super) fn lanes_apart(&self, old: &Trace, from: Origin) -> bool {
        let w = &self.warps[self.strand(from) as usize];
        from.work == 0 && old.branch.apart(from.branch) && old.step > w.met
    }

    /// A copy or product begins. `kind` are the groups it belongs to, if it signals no barrier.
    pub(super) fn issue(
        &mut self,
        from: Origin,
        work: u32,
        kind: Option<Groups>,
        awaited: Option<SharedAt>,
    ) {
        let warp = self.strand(from);
        let strands = self.strands;
        let ticket = |open: u32, kind| (strands.groups(warp, kind), open + 1);
        let w = &mut self.warps[warp as usize];
        let known = Arc::clone(&w.known);
        let (mut group, mut read, mut place) = (None, None, None);
        let lanes = kind == Some(Groups::Lanes);
        match kind {
            Some(Groups::Lanes) => {
                group = Some(ticket(w.open[0], Groups::Lanes));
                let before = w.lanes_done + w.lanes.len() as u32;
                place = Some(ticket(before, Groups::LaneOrder));
                w.lanes.push_back(work);
            }
            Some(Groups::Bulk) => {
                group = Some(ticket(w.open[1], Groups::Bulk));
                read = Some(ticket(w.open[1], Groups::BulkRead));
            }
            Some(Groups::Products) => {
                group = Some(ticket(w.open[2], Groups::Products));
                let key = (strands.warpgroup(warp), w.products);
                w.products += 1;
                self.product_of.insert(work, key);
                self.products.entry(key).or_default().join(&known);
            }
            Some(Groups::Pipe) => {
                place = Some(ticket(w.piped, Groups::Pipe));
                w.piped += 1;
            }
            _ => {}
        }
        let awaited = awaited.and_then(|at| {
            let barrier = self.barriers.get(&(at.cta, at.offset))?;
            Some((at, barrier.meeting.over))
        });
        self.works.push(
            work,
            Work {
                from,
                agent: None,
                known,
                group,
                read,
                phases: Vec::new(),
                unsignalled: Vec::new(),
                uses: [0; 2],
                at: 0,
                awaited,
                place,
                lanes,
            },
        );
        if self.product_of.len() > WORKS {
            let oldest = self.works.first;
            self.product_of.retain(|work, _| *work >= oldest);
        }
        self.step(warp);
    }

    /// A work accesses memory: it reads or writes shared memory of a CTA from some address on, if
    /// `shared` is set.
    pub(super) fn acts(&mut self, work: u32, agent: Agent, shared: Option<(bool, SharedAt)>) {
        // By now all four warps of a product have issued it.
        let together = self.product_of.remove(&work);
        let together = together.and_then(|key| self.products.remove(&key));
        let Some(work) = self.works.get_mut(work) else {
            return;
        };
        if let Some(together) = together {
            work.known = Arc::new(together);
        }
        work.agent = Some(agent);
        if let Some((writes, at)) = shared {
            if work.uses == [0; 2] {
                work.at = at.offset;
            }
            work.uses[usize::from(writes)] |= 1 << at.cta;
            work.unsignalled.extend(writes.then_some(at.cta));
        }
        if !work.lanes {
            return;
        }
        let warp = self.strands.warp(work.from.cta, work.from.warp);
        let w = &mut self.warps[warp as usize];
        let done = |number: &u32| {
            self.works
                .get(*number)
                .is_none_or(|work| work.agent.is_some())
        };
        while w.lanes.front().is_some_and(done) {
            w.lanes.pop_front();
            w.lanes_done += 1;
        }
    }

    /// A group of a warp is full.
    pub(super) fn commit(&mut self, from: Origin, agent: Agent, group: u64) {
        let warp = self.strand(from);
        let open = &mut self.warps[warp as usize].open;
        match agent {
            Agent::LaneCopy => open[0] = group as u32 + 1,
            Agent::BulkCopy => open[1] = group as u32 + 1,
            Agent::TensorCore => open[2] = group as u32 + 1,
            _ => {}
        }
    }

    /// A warp has waited for its groups.
    pub(super) fn groups_over(&mut self, from: Origin, agent: Agent, below: u64, read: bool) {
        let warp = self.strand(from);
        let strands = self.strands;
        let kinds: &[Groups] = match (agent, read) {
            (Agent::LaneCopy, _) => &[Groups::Lanes],
            (Agent::BulkCopy, true) => &[Groups::BulkRead],
            (Agent::BulkCopy, false) => &[Groups::Bulk, Groups::BulkRead],
            (Agent::TensorCore, _) => &[Groups::Products],
            _ => &[],
        };
        if agent == Agent::LaneCopy {
            // `cp.async.wait_all` also includes copies that are in no group yet.
            let open = &mut self.warps[warp as usize].open[0];
            *open = (*open).max(below as u32);
        }
        self.teach(warp, |known| {
            for kind in kinds {
                let strand = strands.groups(warp, *kind);
                known.own.generic.raise(strand, below as u32);
            }
        });
    }

    /// A work signals a barrier in a phase: its writes so far are known with that phase.
    pub(super) fn signals(&mut self, work: u32, (strand, phase): (u32, u32)) {
        let Some(work) = self.works.get_mut(work) else {
            return;
        };
        let mut written = std::mem::take(&mut work.unsignalled);
        if written.is_empty() {
            written.push(u32::MAX);
        }
        let known = written.into_iter().map(|cta| (cta, strand, phase));
        work.phases.extend(known);
    }

    /// Bytes of a work reach a barrier: everything its warp knew at the issue happened before.
    pub(super) fn sends(&mut self, work: u32, at: SharedAt, over: u64) {
        let Self {
            works, barriers, ..
        } = self;
        if let (Some(work), Some(barrier)) =
            (works.get(work), barriers.get_mut(&(at.cta, at.offset)))
        {
            barrier.sent(over, &work.known.own.generic);
        }
    }

    /// The agent of an access: a thread, or the unit that performs its work.
    pub(super) fn agent_of(&self, from: Origin) -> Agent {
        match from.work {
            0 => Agent::Thread,
            work => (self.works.get(work as u32)).map_or(Agent::BulkCopy, Work::performer),
        }
    }

    /// A work arrives at a barrier for its warp: `cp.async.mbarrier.arrive`, executed by the last
    /// copy, or `tcgen05.commit`. The warp's earlier works are then complete.
    pub(super) fn arrives(&mut self, number: u32, key: (u32, u32), over: u64, release: bool) {
        let (Some(work), Some(barrier)) = (self.works.get(number), self.barriers.get_mut(&key))
        else {
            return;
        };
        match release {
            true => barrier.meeting.arrive(over, &work.known),
            false => barrier.meeting.arrive(over, &Knowledge::default()),
        }
        let warp = self.strands.warp(work.from.cta, work.from.warp);
        match work.place {
            Some((strand, _)) if work.lanes => {
                let done = self.warps[warp as usize].lanes_done;
                barrier.meeting.tells((strand, done));
            }
            Some(place) => {
                barrier.meeting.tells(place);
                barrier
                    .meeting
                    .tells_all(&self.warps[warp as usize].carried);
            }
            None => {}
        }
    }

    /// All of a warp's tensor-core work is complete: a commit that reaches a barrier at once.
    pub(super) fn done(&self, warp: u32) -> Clock {
        let w = &self.warps[warp as usize];
        let mut done = w.carried.clone();
        done.raise(self.strands.groups(warp, Groups::Pipe), w.piped);
        done
    }

    /// A work of the tensor core relies on earlier ones of any warp: they are complete when it is.
    pub(super) fn relies(&mut self, work: u32, on: &[u32]) {
        let Some(warp) = self.works.get(work).map(|work| self.strand(work.from)) else {
            return;
        };
        for &other in on {
            let Some(before) = self.works.get(other) else {
                continue;
            };
            let (place, giver) = (before.place, self.strand(before.from));
            if giver == warp {
                continue;
            }
            let known = self.warps[giver as usize].carried.clone();
            let carried = &mut self.warps[warp as usize].carried;
            carried.join(&known);
            if let Some((strand, number)) = place {
                carried.raise(strand, number);
            }
        }
    }

    /// Whether the tensor core executes a work before another: the same warp issued both, or knew
    /// of the first when it issued the second.
    pub(super) fn queued_before(&self, first: u32, second: u32) -> bool {
        let (Some(first), Some(second)) = (self.works.get(first), self.works.get(second)) else {
            return true;
        };
        self.strand(first.from) == self.strand(second.from)
            || self.knows_issue(&second.known.own.generic, first)
    }

    /// A new barrier.
    pub(super) fn init(&mut self, from: Origin, at: SharedAt) {
        let maker = self.strand(from);
        let key = (at.cta, at.offset);
        self.end(key);
        let strand = self.strands.first_barrier() + Seat::STRANDS * self.seats.len() as u32;
        let seat = self.seats.entry(key).or_insert(Seat::new(strand));
        let barrier = Barrier::new(seat.taken(), from);
        let (made, turn) = barrier.seat.made();
        self.barriers.insert(key, barrier);
        self.warps[maker as usize].unfenced.push(key);
        self.teach(maker, |known| known.own.generic.raise(made, turn));
    }

    /// A barrier ceases to exist.
    pub(super) fn end(&mut self, key: (u32, u32)) {
        if let (Some(old), Some(seat)) = (self.barriers.remove(&key), self.seats.get_mut(&key)) {
            seat.left(&old);
        }
    }

    /// Whether copies may read this write only after a proxy fence: a thread's own write, or its
    /// `st.async`. (Strictly also its `cp.async`, for which no program uses a fence.)
    pub(super) fn wrote_as_thread(&self, actor: Actor) -> bool {
        match actor {
            Actor::Warp(_) => true,
            Actor::Work(work) => (self.works.get(work))
                .is_some_and(|work| work.performer() == Agent::LaneCopy && !work.is_grouped()),
        }
    }

    /// Whether an access of the own cluster is complete for this clock; `cta` is where the memory
    /// is.
    pub(super) fn over(&self, clock: &Clock, old: &Trace, write: bool, cta: u32) -> bool {
        match old.actor {
            Actor::Warp(warp) => clock.at(warp) >= old.step,
            Actor::Work(work) => {
                let Some(work) = self.works.get(work) else {
                    return true;
                };
                let group = match write {
                    true => work.group,
                    false => work.read.or(work.group),
                };
                let mut tickets = group.into_iter().chain(work.place);
                let told = tickets.any(|(strand, at)| clock.at(strand) >= at);
                let mut phases = work.phases.iter();
                told || phases.any(|&(whose, strand, phase)| {
                    (whose == cta || whose == u32::MAX || !write) && clock.at(strand) >= phase
                })
            }
        }
    }

    /// A warp waits for its loads from tensor memory, or its stores there.
    pub(super) fn moved(&mut self, from: Origin, store: bool) {
        let warp = self.strand(from);
        let number = &mut self.warps[warp as usize].moves[usize::from(store)];
        *number += 1;
        let (number, strand) = (*number, self.moves(warp, store));
        self.teach(warp, |known| known.own.generic.raise(strand, number));
    }

    /// A warp loads from tensor memory, or stores there: the number of the wait that completes it.
    pub(super) fn moves_on(&mut self, warp: u32, pc: u32, store: bool) -> u32 {
        let after = self.works.last();
        let w = &mut self.warps[warp as usize];
        let number = w.moves[usize::from(store)] + 1;
        let moved = &mut w.moved[usize::from(store)];
        moved.push_back(Move {
            number,
            pc,
            step: w.step,
            after,
        });
        if moved.len() > MOVES {
            moved.pop_front();
        }
        number
    }

    /// A load or store of tensor memory, from its recorded access.
    pub(super) fn move_of(&self, old: &Trace, strand: u32) -> Option<Move> {
        let warp = self.strands.owner(strand);
        let store = match strand {
            strand if strand == self.moves(warp, true) => true,
            strand if strand == self.moves(warp, false) => false,
            _ => return None,
        };
        let mut moved = self.warps[warp as usize].moved[usize::from(store)].iter();
        let same = |moved: &&Move| (moved.number, moved.pc) == (old.step, old.pc);
        moved.rfind(same).copied()
    }

    /// Whether the issue of a work is known.
    pub(super) fn knows_issue(&self, known: &Clock, work: &Work) -> bool {
        let warp = self.strand(work.from);
        known.at(warp) > work.known.own.generic.at(warp)
    }

    /// Whether a work is a product that a warp issued with others.
    pub(super) fn issued_together(&self, work: &Work, from: Origin) -> bool {
        let group = |from: Origin| self.strands.warpgroup(self.strand(from));
        let product = work.agent == Some(Agent::TensorCore) && work.is_grouped();
        product && group(work.from) == group(from)
    }

    /// The strand of a warp's loads or stores of tensor memory.
    pub(super) fn moves(&self, warp: u32, store: bool) -> u32 {
        let kind = match store {
            true => Groups::TensorStores,
            false => Groups::TensorLoads,
        };
        self.strands.groups(warp, kind)
    }

    /// A warp learns the knowledge of all that arrived in complete phases of a barrier, now or at
    /// its next fence that acquires.
    pub(super) fn learn(&mut self, warp: u32, key: (u32, u32), over: u64, acquires: bool) {
        let Some(barrier) = self.barriers.get_mut(&key) else {
            return;
        };
        let (strand, phase) = barrier.seat.phase(over);
        let told = barrier.meeting.passed(over);
        let w = &mut self.warps[warp as usize];
        if !acquires {
            w.hears(told);
            w.heard.own.generic.raise(strand, phase);
            return;
        }
        w.lessons += 1;
        let known = Arc::make_mut(&mut w.known);
        known.join(told);
        known.own.generic.raise(strand, phase);
        self.step(warp);
    }

    /// The ticket that shows the completion of a work on global memory.
    pub(super) fn global_ticket(&self, actor: Actor) -> Option<(u32, u32)> {
        match actor {
            Actor::Warp(warp) => Some((warp, self.warps[warp as usize].step)),
            Actor::Work(work) => self.works.get(work)?.group,
        }
    }
}

/// Whether an agent accesses memory through the async proxy.
pub(super) fn by_async_proxy(agent: Agent) -> bool {
    agent.proxy() == Proxy::Async
}
