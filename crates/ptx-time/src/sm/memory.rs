//! Global memory: an SM's own cache, its shares of L2 and of memory, and copies in bulk.

use ptx_emu::trace::{BarrierAt, GlobalBytes, Way};

use super::{SECTOR, Sim, Sm, Ticks, Work, ticks};
use crate::sass::Kind;
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

impl Sm {
    /// Gets bytes from memory.
    fn draw(&mut self, now: Ticks, bytes: f64, work: &Work<'_>) {
        let share = match self.drawn < work.dirty_bytes {
            true => work.dirty_share,
            false => work.memory_share,
        };
        self.drawn += bytes;
        self.memory = self.memory.max(now) + ticks(bytes / share);
    }
}

impl Sim<'_> {
    /// When bytes for global memory have left.
    pub(super) fn store(&mut self, sm: usize, now: Ticks, at: &GlobalBytes) -> Ticks {
        let m = self.machine;
        let state = &mut self.sms[sm];
        state.lsu = state.lsu.max(now) + ticks(f64::from(at.sectors) / m.sectors_per_cycle);
        let bytes = bytes_of(at);
        state.stores = state.stores.max(now) + ticks(bytes / self.work.store_rate(m));
        state.stores.max(state.lsu)
    }

    /// When bytes of global memory have come, and what took longest; `cached` if the SM's own cache
    /// may have them.
    pub(super) fn fetch(
        &mut self,
        index: usize,
        now: Ticks,
        at: &GlobalBytes,
        cached: bool,
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
        if cached && let Some(&there) = state.sectors.get(&sector) {
            // Who asks for what is under way waits as long as who asked first.
            return (there.max(now + ticks(m.l1_latency)), Cause::Latency);
        }
        let bytes = bytes_of(at);
        let turns = f64::from(at.sectors) / m.sectors_per_cycle;
        state.lsu = state.lsu.max(now) + ticks(turns);
        state.l2 = state.l2.max(now) + ticks(bytes / rate);
        let mut done = state.l2.max(state.lsu) + ticks(m.l2_latency);
        if cold > 0.0 {
            state.draw(now, bytes * cold, self.work);
            done = done.max(state.memory + ticks(m.l2_latency)) + ticks(m.memory_latency);
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

    /// When a tensor copy knows its map: the first of an instruction finds it in memory.
    pub(super) fn map_read(&mut self, sm: usize, now: Ticks, op: Option<u32>) -> Ticks {
        let tensor = |op: &u32| self.work.code.instructions[*op as usize].kind == Kind::Tensor;
        match op.filter(tensor) {
            Some(op) if self.work.cold_maps => {
                let known = now + ticks(self.machine.map_latency);
                *self.sms[sm].maps.entry(op).or_insert(known)
            }
            _ => now,
        }
    }

    /// A copy that a warp asked for, and that begins once its map is known.
    #[expect(clippy::too_many_arguments, reason = "they are the deed's")]
    pub(super) fn bulk(
        &mut self,
        index: usize,
        (asked, now): (Ticks, Ticks),
        way: Way,
        at: Option<GlobalBytes>,
        rows: u32,
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
            // L2 tells how much of it others have read before.
            let place = (at.region, at.first, self.ctas[cta].turn);
            if let Some(&there) = state.seen.get(&place) {
                done = done.max(there);
            } else if cold > 0.0 {
                state.draw(engine, size * cold, self.work);
                if state.memory > state.l2.max(sent) {
                    (reached, queue) = (state.memory, Cause::Memory);
                }
                done = done.max(state.memory + ticks(m.bulk_latency)) + ticks(m.memory_latency);
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
