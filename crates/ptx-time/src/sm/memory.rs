//! Global memory: an SM's own cache, its shares of L2 and of memory, and copies in bulk.

use ptx_emu::trace::{BarrierAt, Direction, GlobalBytes};

use super::{BLOCK, CYCLE, SECTOR, Sim, Sm, Ticks, Work, ticks};
use crate::times::Cause;
use ptx_machine::Machine;

/// What an access is known by in an SM's cache, which has a line sector by sector: its first one. Its
/// others may lie behind it or in other rows.
pub(crate) fn first_sector(at: &GlobalBytes) -> (u32, u64) {
    (at.region, at.first / SECTOR)
}

/// Of whole sectors.
fn bytes_of(at: &GlobalBytes) -> f64 {
    f64::from(at.sectors) * SECTOR as f64
}

/// Rows of a box that come as one does; of more the last is later.
const ROWS_AT_ONCE: f64 = 8.0;

/// What is asked of memory.
struct MemoryRequest {
    /// Region, first byte, and the turn of the CTA that asks.
    place: (u32, u64, u32),
    /// Of whole blocks, where L2 gets them, and how many.
    bytes: f64,
    blocks: f64,
    rows: f64,
    /// Whether the blocks lie apart from one another.
    scattered: bool,
    /// The part of them that is meant.
    part: f64,
    /// From L2 to the SM.
    latency: f64,
}

impl MemoryRequest {
    /// What L2 lacks of an access, of which so much is cold.
    fn of(at: &GlobalBytes, by_blocks: bool, turn: u32, cold: f64, latency: f64) -> Self {
        let (first, brought) = brought(at, by_blocks);
        Self {
            place: (at.region, first, turn),
            bytes: brought * cold,
            blocks: f64::from(at.blocks) * cold,
            rows: 1.0,
            scattered: at.blocks > 1 && bytes_of(at) < f64::from(at.blocks) * BLOCK as f64,
            part: bytes_of(at) / brought,
            latency,
        }
    }
}

/// When it is in L2: what was meant, and all of it.
struct Given {
    meant: Ticks,
    all: Ticks,
}

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
    /// Gets bytes from memory. Each sector comes by itself, and the last of many is later than one
    /// alone; of many rows still later. Where memory is busy all are, however few are asked for at
    /// once.
    fn draw(&mut self, now: Ticks, request: &MemoryRequest, m: &Machine, work: &Work<'_>) -> Given {
        let taken = request.bytes + request.blocks * m.memory_piece;
        let share = match self.drawn < work.dirty_bytes {
            true => work.dirty_share,
            false => work.memory_share,
        };
        self.parted |= self.memory <= now && self.burst.is_over(now);
        // All SMs begin at the same time, and the last has its first bytes when all have. By then
        // they are out of step: memory is as busy as it was in the mean, and what the others leave
        // free is this one's.
        let (load, share) = match self.parted {
            false => (0.0, share),
            true => {
                let mean = self.taken / share / (now as f64 / CYCLE).max(1.0);
                let load = mean.min(1.0);
                (load, share * work.sms / (1.0 + (work.sms - 1.0) * load))
            }
        };
        self.taken += taken;
        self.drawn += request.bytes;
        let long = taken / share;
        let start = self.memory.max(now);
        self.memory = start + ticks(long);
        let sectors = (request.bytes / SECTOR as f64).max(1.0);
        let rows = (request.rows / ROWS_AT_ONCE).max(1.0);
        let spread = m.memory_spread * sectors.ln() + m.memory_row_spread * rows.ln();
        let busy = now + ticks(m.memory_busy_latency * load);
        let before = request.part + (1.0 - request.part) * m.memory_beside;
        let late = match self.parted {
            false => ticks(self.late(now, request, share, m, work.sms)),
            true => 0,
        };
        let here = |turn: Ticks| turn.max(busy) + late + ticks(m.memory_latency + spread);
        let given = Given {
            meant: here(start + ticks(long * before)),
            all: here(self.memory),
        };
        self.burst.ask(now, taken, given.meant);
        given
    }

    /// When L2 has bytes that this SM stores. A flushed L2 is full of dirty lines, and for each byte
    /// it takes it writes one back: the flush's first, then the call's own.
    fn write(&mut self, now: Ticks, bytes: f64, m: &Machine, work: &Work<'_>) -> Ticks {
        self.stores = self.stores.max(now) + ticks(bytes / work.store_rate(m));
        if work.flushed {
            self.memory = self.memory.max(now) + ticks(bytes / work.memory_share);
            self.taken += bytes;
            self.stores = self.stores.max(self.memory);
        }
        self.stores
    }

    /// Cycles by which a request is later, while all SMs ask at once, than memory's rate and their
    /// order would have it. Memory serves some later requests first. Pieces that lie apart are
    /// scattered over channels: of n for each the fullest has the root of 2n ln(channels) more.
    fn late(&self, now: Ticks, request: &MemoryRequest, share: f64, m: &Machine, sms: f64) -> f64 {
        let overtaking = self.coming.asked_between(now, self.memory) / share;
        let overtaken = overtaking.min(m.memory_reordering);
        if !request.scattered {
            return overtaken;
        }
        let queue = self.memory.saturating_sub(now) as f64 / CYCLE + overtaken;
        let piece = request.bytes / request.blocks / (share * sms) * m.memory_channels;
        overtaken + (2.0 * queue * piece * m.memory_channels.max(1.0).ln()).sqrt()
    }

    /// When what was meant is here, which L2 alone would have sent by `done`. Who asks next finds all
    /// of it under way.
    fn bring(
        &mut self,
        (now, done): (Ticks, Ticks),
        request: &MemoryRequest,
        m: &Machine,
        work: &Work<'_>,
    ) -> Ticks {
        let given = self.draw(now, request, m, work);
        let latency = ticks(request.latency);
        let done = done.max(given.meant + latency);
        self.seen
            .insert(request.place, done.max(given.all + latency));
        done
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
        state.write(now, bytes, m, self.work).max(state.lsu)
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
        let request = MemoryRequest::of(at, by_blocks, turn, cold, latency);
        if let Some(&there) = state.seen.get(&request.place) {
            done = done.max(there);
        } else if cold > 0.0 {
            done = state.bring((now, done), &request, m, self.work);
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
        let latency = match (ahead, self.work.flushed) {
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
        direction: Direction,
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
        let mut done = match direction {
            Direction::Exchange => {
                state.remote = state.remote.max(engine) + ticks(f64::from(bytes) / m.remote_port);
                state.remote.max(sent) + ticks(m.remote_latency)
            }
            Direction::Store => {
                state.write(engine, size, m, self.work).max(sent) + ticks(m.bulk_store_latency)
            }
            Direction::Load | Direction::Prefetch => {
                state.l2 = state.l2.max(engine) + ticks(size / rate);
                state.l2.max(sent) + ticks(m.bulk_latency)
            }
        };
        let (last, mut queue) = match direction {
            Direction::Exchange => (state.remote, Cause::L2),
            Direction::Store if state.stores == state.memory => (state.stores, Cause::Memory),
            Direction::Store => (state.stores, Cause::L2),
            Direction::Load | Direction::Prefetch => (state.l2, Cause::L2),
        };
        // When its last queue lets it through; what comes after that is latency.
        let mut reached = last.max(sent);
        if let (Direction::Load | Direction::Prefetch, Some(at)) = (direction, at) {
            let cold = self.work.coldness(&at);
            // L2 tells how much of it others have read before.
            let request = MemoryRequest {
                rows: f64::from(rows),
                scattered: rows > 1,
                ..MemoryRequest::of(&at, tensor, self.ctas[cta].turn, cold, m.bulk_latency)
            };
            if let Some(&there) = state.seen.get(&request.place) {
                done = done.max(there);
            } else if cold > 0.0 {
                done = state.bring((engine, done), &request, m, self.work);
                if state.memory > state.l2.max(sent) {
                    (reached, queue) = (state.memory, Cause::Memory);
                }
            }
        }
        let reached = reached.clamp(now, done);
        match (direction, barrier) {
            (Direction::Prefetch, _) => {}
            (Direction::Store, _) | (_, None) => {
                let warp = &mut self.warps[index];
                if direction == Direction::Store {
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
