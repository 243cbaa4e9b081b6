//! Global memory: an SM's own cache, its shares of L2 and of memory, and copies in bulk.

use ptx_emu::trace::{BarrierAt, GlobalBytes, Way};

use super::{BLOCK, CYCLE, SECTOR, Sim, Sm, Ticks, Work, ticks};
use crate::machine::Machine;
use crate::times::Cause;

/// What an access is known by in an SM's cache, which has a line sector by sector: its first one. Its
/// others may lie behind it or in other rows.
pub(crate) fn first_sector(at: &GlobalBytes) -> (u32, u64) {
    (at.region, at.first / SECTOR)
}

/// Of whole sectors.
fn bytes_of(at: &GlobalBytes) -> f64 {
    f64::from(at.sectors) * SECTOR as f64
}

/// Cycles over which it is told how busy memory is.
const WHILE: f64 = 1000.0;

/// How far the last of a hundred SMs lies behind the mean after one turn, in turns: 2.5 times the
/// deviation of a place that is any with the same chance. After more it grows as their root.
const CHANCE: f64 = 0.72;

/// What L2 gets from memory for an access: where it begins, and how many bytes. They are whole
/// blocks where L2 is told so, of which what is not asked for is there for the next, and the sectors
/// alone otherwise.
pub(crate) fn brought(at: &GlobalBytes, by_blocks: bool) -> (u64, f64) {
    match by_blocks {
        true => (
            at.first / BLOCK * BLOCK,
            f64::from(at.blocks) * BLOCK as f64,
        ),
        false => (at.first / SECTOR * SECTOR, bytes_of(at)),
    }
}

impl Sm {
    /// Gets bytes from memory, and says when they are in L2. Each sector comes by itself, and the
    /// last of many is later than one alone. Where memory is busy all are, however few are asked
    /// for at once.
    fn draw(
        &mut self,
        now: Ticks,
        (bytes, blocks): (f64, f64),
        m: &Machine,
        work: &Work<'_>,
    ) -> Ticks {
        let taken = bytes + blocks * m.memory_piece;
        let share = match self.drawn < work.dirty_bytes {
            true => work.dirty_share,
            false => work.memory_share,
        };
        // How busy memory is: where all SMs ask at the same time, as this one has been of late;
        // otherwise as it was in the mean, and what the others leave free now is this one's.
        let passed = now.saturating_sub(self.told) as f64 / CYCLE;
        self.told = self.told.max(now);
        self.load *= (-passed / WHILE).exp();
        let (load, share) = match work.in_step {
            true => (self.load.min(1.0), share),
            false => {
                let mean = self.taken / share / (now as f64 / CYCLE).max(1.0);
                let load = mean.min(1.0);
                (load, share * work.sms / (1.0 + (work.sms - 1.0) * load))
            }
        };
        self.load += taken / share / WHILE;
        self.taken += taken;
        self.drawn += bytes;
        // Of SMs that ask together it is a matter of chance whose turn comes when: the last waits for
        // all, the mean one for half, and who was last once will not be every time.
        if self.memory <= now {
            self.bursts += 1.0;
        }
        let long = taken / share;
        let turn = match work.in_step {
            true => {
                let later = CHANCE * (self.bursts.sqrt() - (self.bursts - 1.0).sqrt());
                let others = (work.sms - 1.0) * (0.5 + later).min(1.0);
                (1.0 + others) / work.sms
            }
            false => 1.0,
        };
        let start = self.memory.max(now);
        self.memory = start + ticks(long);
        let sectors = (bytes / SECTOR as f64).max(1.0);
        let busy = now + ticks(m.memory_busy_latency * load);
        let given = start + ticks(long * turn);
        given.max(busy) + ticks(m.memory_latency + m.memory_spread * sectors.ln())
    }
}

impl Sim<'_> {
    /// When bytes for global memory have left.
    pub(super) fn store(&mut self, sm: usize, now: Ticks, at: &GlobalBytes) -> Ticks {
        let m = self.machine;
        let state = &mut self.sms[sm];
        let lines = f64::from(at.lines) * m.line_interval;
        state.lsu = state.lsu.max(now) + ticks(lines + f64::from(at.sectors) / m.sectors_per_cycle);
        let bytes = bytes_of(at);
        state.stores = state.stores.max(now) + ticks(bytes / self.work.store_rate(m));
        state.stores.max(state.lsu)
    }

    /// When bytes of global memory have come, and what took longest; `cached` if the SM's own cache
    /// may have them, `by_blocks` if L2 gets what lies beside them.
    pub(super) fn fetch(
        &mut self,
        index: usize,
        now: Ticks,
        at: &GlobalBytes,
        cached: bool,
        by_blocks: bool,
    ) -> (Ticks, Cause) {
        let m = self.machine;
        let cold = self.work.coldness(at);
        let rate = self.work.l2_rate(at, m);
        let warp = &self.warps[index];
        let place = first_sector(at);
        // Where others read something else, another CTA told by this trace does so, too.
        let turn = match self.work.shared.contains(&place) {
            true => 0,
            false => self.ctas[warp.cta].turn,
        };
        let sector = (place.0, place.1, turn);
        let state = &mut self.sms[warp.sm];
        // Lines are looked for one by one.
        state.lsu = state.lsu.max(now) + ticks(f64::from(at.lines) * m.line_interval);
        if cached && let Some(&there) = state.sectors.get(&sector) {
            // Who asks for what is under way waits as long as who asked first.
            return (there.max(state.lsu + ticks(m.l1_latency)), Cause::Latency);
        }
        let bytes = bytes_of(at);
        state.lsu += ticks(f64::from(at.sectors) / m.sectors_per_cycle);
        state.l2 = state.l2.max(now) + ticks(bytes / rate);
        let latency = m.l2_latency + m.l2_spread * f64::from(at.sectors.max(1)).ln();
        let mut done = state.l2.max(state.lsu) + ticks(latency);
        let (first, brought) = brought(at, by_blocks);
        let place = (at.region, first, turn);
        if let Some(&there) = state.seen.get(&place) {
            done = done.max(there);
        } else if cold > 0.0 {
            let asked = (brought * cold, f64::from(at.blocks) * cold);
            let late = state.draw(now, asked, m, self.work);
            done = done.max(late + ticks(latency));
            state.seen.insert(place, done);
        }
        if cached {
            state.sectors.insert(sector, done);
        }
        let queued = [
            (state.memory.saturating_sub(now), Cause::Memory),
            (state.l2.max(state.lsu).saturating_sub(now), Cause::L2),
        ];
        let (long, cause) = queued[usize::from(queued[1].0 > queued[0].0)];
        match long > done - now - long.min(done - now) {
            true => (done, cause),
            false => (done, Cause::Latency),
        }
    }

    /// When an SM knows a tensor map, which its first use finds in memory. Who fetches it ahead has
    /// it as soon as any other line.
    pub(super) fn map_read(&mut self, sm: usize, now: Ticks, map: u64, ahead: bool) -> Ticks {
        let m = self.machine;
        let latency = match (ahead, self.work.cold_maps) {
            (true, true) => m.l2_latency + m.memory_latency,
            (true, false) => m.l2_latency,
            (false, true) => m.map_latency,
            (false, false) => m.map_l2_latency,
        };
        let known = now + ticks(latency);
        *self.sms[sm].maps.entry(map).or_insert(known)
    }

    /// A copy that a warp asked for, and that begins once its map is known.
    #[expect(clippy::too_many_arguments, reason = "they are the deed's")]
    pub(super) fn bulk(
        &mut self,
        index: usize,
        (asked, now): (Ticks, Ticks),
        way: Way,
        at: Option<GlobalBytes>,
        (rows, tensor): (u32, bool),
        bytes: u32,
        (to, pair): (u32, bool),
        barrier: Option<BarrierAt>,
    ) {
        let m = self.machine;
        let (sm, cta) = (self.warps[index].sm, self.warps[index].cta);
        let rate = at.map_or(m.l2_port, |at| self.work.l2_rate(&at, m));
        let state = &mut self.sms[sm];
        let engine = state.copies.max(now);
        state.copies = engine + ticks(m.bulk_interval + m.row_interval * f64::from(rows));
        let sent = state.copies;
        let size = at.as_ref().map_or(0.0, bytes_of);
        let mut done = match way {
            Way::Exchange => {
                state.remote = state.remote.max(engine) + ticks(f64::from(bytes) / m.remote_port);
                state.remote.max(sent) + ticks(m.remote_latency)
            }
            Way::Store => {
                state.stores = state.stores.max(engine) + ticks(size / self.work.store_rate(m));
                state.stores.max(sent) + ticks(m.bulk_store_latency)
            }
            Way::Load | Way::Prefetch => {
                state.l2 = state.l2.max(engine) + ticks(size / rate);
                state.l2.max(sent) + ticks(m.bulk_latency)
            }
        };
        let last = match way {
            Way::Exchange => state.remote,
            Way::Store => state.stores,
            Way::Load | Way::Prefetch => state.l2,
        };
        // When its last queue lets it through; what comes after that is latency.
        let (mut reached, mut queue) = (last.max(sent), Cause::L2);
        if let (Way::Load | Way::Prefetch, Some(at)) = (way, at) {
            let cold = self.work.coldness(&at);
            let (first, brought) = brought(&at, tensor);
            // L2 tells how much of it others have read before.
            let place = (at.region, first, self.ctas[cta].turn);
            if let Some(&there) = state.seen.get(&place) {
                done = done.max(there);
            } else if cold > 0.0 {
                let asked = (brought * cold, f64::from(at.blocks) * cold);
                let late = state.draw(engine, asked, m, self.work);
                if state.memory > state.l2.max(sent) {
                    (reached, queue) = (state.memory, Cause::Memory);
                }
                done = done.max(late + ticks(m.bulk_latency));
                state.seen.insert(place, done);
            }
        }
        let reached = reached.clamp(now, done);
        match (way, barrier) {
            (Way::Prefetch, _) => {}
            (Way::Store, _) | (_, None) => {
                let warp = &mut self.warps[index];
                if way == Way::Store {
                    warp.stored = Some(now);
                }
                warp.copies_cause = match reached - now > done - reached {
                    true => queue,
                    false => Cause::Latency,
                };
                warp.bulk_open = warp.bulk_open.max(done);
            }
            (_, Some(barrier)) => {
                let mut passed = self.way(index, asked);
                passed.go(Cause::Latency, now - asked + (done - reached));
                passed.go(queue, reached - now);
                let own = 1 << barrier.rank;
                let receivers = if to == 0 { own } else { to };
                for rank in (0..32).filter(|rank| receivers >> rank & 1 == 1) {
                    let told = match pair {
                        true => (rank & !1) | (barrier.rank & 1),
                        false => rank,
                    };
                    let barrier = BarrierAt {
                        rank: told,
                        address: barrier.address,
                    };
                    self.send(done, cta, barrier, (0, bytes), passed);
                }
            }
        }
    }
}
