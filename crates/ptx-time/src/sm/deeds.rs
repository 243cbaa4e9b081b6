//! What instructions do besides taking their turn.

use std::collections::VecDeque;

use ptx_emu::trace::{BarrierAt, Deed, GlobalBytes};

use super::barriers::{Mbarrier, Question};
use super::issue::OF_REGISTERS;
use super::{Item, LINE, PARTITIONS, Parked, Sim, Ticks, ticks};
use crate::times::{Activity, Cause};

/// The instruction a warp issues now.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// The warp.
    pub index: usize,
    pub now: Ticks,
    /// Its place in the code, where the compiler kept it.
    pub issued: Option<u32>,
    /// The scoreboard that its result releases.
    pub board: Option<u8>,
    /// The scoreboard that its operands release.
    pub operands: Option<u8>,
}

impl Turn {
    /// Of what nobody issues: it happens where the warp stands.
    pub(super) fn unissued(index: usize, now: Ticks) -> Self {
        Self {
            index,
            now,
            issued: None,
            board: None,
            operands: None,
        }
    }
}

impl Sim<'_> {
    /// Does a deed. False if the warp stands still until somebody wakes it.
    pub(super) fn act(&mut self, turn: Turn, deed: &Deed) -> bool {
        let Turn {
            index,
            now,
            issued,
            board,
            operands,
        } = turn;
        match *deed {
            Deed::Barrier { id, threads, waits } => {
                return self.meet(index, now, id, threads, waits);
            }
            Deed::Await { barrier, parity } => return self.await_phase(turn, barrier, parity),
            Deed::ClusterWait => return self.await_cluster(turn),
            Deed::TmemAlloc { columns, ctas } => {
                return self.ask_columns(index, now, columns, ctas);
            }
            Deed::Shared {
                wavefronts,
                atomic: true,
                ..
            } => self.update_shared(index, now, wavefronts, issued, (board, operands)),
            Deed::Shared {
                wavefronts, writes, ..
            } => self.access_shared(turn, wavefronts, writes),
            Deed::Remote {
                bytes,
                barrier,
                writes,
                ..
            } => self.access_remote(turn, bytes, barrier, writes),
            Deed::Global {
                at,
                writes: true,
                atomic,
            } => self.store_global(turn, &at, atomic),
            Deed::Global { at, .. } => self.load_global(turn, &at),
            Deed::Update { at, turns } => self.warps[index].updates.push((at, turns)),
            Deed::LaneCopy { at } => {
                let (done, cause) = self.fetch(index, now, &at, false, false);
                let warp = &mut self.warps[index];
                warp.copies_cause = cause;
                warp.lane_open = warp.lane_open.max(done);
                warp.lane_done = warp.lane_done.max(done);
            }
            Deed::LaneCommit | Deed::BulkCommit | Deed::WgmmaCommit => self.commit(index, deed),
            Deed::LaneWait(_)
            | Deed::BulkWait { .. }
            | Deed::WgmmaWait(_)
            | Deed::TmemWait { .. }
            | Deed::AwaitLaunch
            | Deed::Sleep(_) => self.pause(index, now, deed),
            Deed::LaneArrive { barrier, arrivals } => self.lane_arrive(turn, barrier, arrivals),
            Deed::Bulk {
                direction,
                at,
                rows,
                bytes,
                to,
                barrier,
                pair,
                map,
            } => {
                let sm = self.warps[index].sm;
                let start = map.map_or(now, |map| now.max(self.map_read(sm, now, map, false)));
                self.bulk(
                    index,
                    (now, start),
                    direction,
                    at,
                    (rows, map.is_some()),
                    bytes,
                    (to, pair),
                    barrier,
                );
            }
            Deed::MapFetch { map } => {
                let sm = self.warps[index].sm;
                self.map_read(sm, now, map, true);
            }
            Deed::Init { barrier, count } => self.init(index, barrier, count),
            Deed::Arrive {
                barrier,
                arrivals,
                expects,
            } => self.arrive(turn, barrier, arrivals, expects),
            Deed::ClusterArrive => {
                let cluster = self.ctas[self.warps[index].cta].cluster;
                let state = &mut self.clusters[cluster];
                self.warps[index].cluster_phase = state.phase + 1;
                state.gate.arrived += 1;
                let way = self.way(index, now);
                self.open_cluster(cluster, now, way);
            }
            Deed::Wgmma {
                n,
                registers,
                sparse,
                ..
            } => self.wgmma(turn, n, registers, sparse),
            Deed::AllowLaunch => {
                let cta = self.warps[index].cta;
                self.ctas[cta].allowed.get_or_insert(now);
            }
            Deed::WgmmaFence | Deed::Registers(_) => {}
            Deed::Mma { shape, bits } => self.mma(turn, shape, bits),
            Deed::TmemMma {
                shape,
                ctas,
                columns,
                a,
            } => self.multiply_in_tmem(index, now, (shape, columns), ctas, a),
            Deed::TmemCopy { bytes, ctas } => self.copy_to_tmem(index, now, bytes, ctas),
            Deed::TmemShift { ctas } => self.shift_tmem(index, now, ctas),
            Deed::TmemCommit { barrier, to } => self.commit_tmem(index, now, barrier, to),
            Deed::TmemMove {
                columns,
                bits,
                writes,
                ..
            } => self.move_tmem(index, now, (columns, bits), writes, (board, operands)),
            Deed::TmemFree { columns, .. } => self.free_columns(index, now, columns),
            // A fence the compiler has left out costs nothing.
            Deed::Fence { .. } if issued.is_none() => {}
            Deed::Fence { beyond_cta, .. } => self.fence(index, now, beyond_cta),
            Deed::Stamp => self.warps[index].stamps.push(now),
        }
        true
    }

    /// Holds a warp until what it waits for is over, which is known already.
    fn pause(&mut self, index: usize, now: Ticks, deed: &Deed) {
        let warp = &mut self.warps[index];
        let (until, activity) = match *deed {
            Deed::LaneWait(groups) => (ended(&mut warp.lane_groups, groups, now), Activity::Copies),
            // A card lets go of both waits at once.
            Deed::BulkWait { groups, read: _ } => {
                (ended(&mut warp.bulk_groups, groups, now), Activity::Copies)
            }
            Deed::WgmmaWait(groups) => {
                let until = ended(&mut warp.wgmma_groups, groups, now);
                let until = until + ticks(self.machine.wgmma_wait_latency);
                let least = now + ticks(self.machine.wgmma_settled_latency);
                (until.max(least), Activity::Wgmma)
            }
            Deed::TmemWait { .. } => (warp.tmem_moved, Activity::Wgmma),
            Deed::AwaitLaunch => (ticks(self.work.gate), Activity::Launch),
            Deed::Sleep(nanos) => {
                let cycles = f64::from(nanos) * self.machine.clock_mhz / 1000.0;
                (now + ticks(cycles), Activity::Issuing)
            }
            _ => return,
        };
        match activity {
            Activity::Copies => {
                let cause = self.warps[index].copies_cause;
                self.hold_on(index, now, until, activity, cause);
            }
            _ => self.hold(index, now, until, activity),
        }
    }

    fn access_shared(&mut self, turn: Turn, wavefronts: u32, writes: bool) {
        let (index, m) = (turn.index, self.machine);
        let state = &mut self.sms[self.warps[index].sm];
        let start = state.shared.max(turn.now);
        state.shared = start + ticks(f64::from(wavefronts) * m.shared_interval);
        let done = state.shared + ticks(m.shared_latency - m.shared_interval);
        self.warps[index].unfenced |= writes;
        // What is stored is read when it is stored, addresses at once.
        let read = if writes { state.shared } else { turn.now };
        let read = read + ticks(m.operands_latency);
        self.occupy(index, turn.operands, read, Activity::Result, Cause::Shared);
        self.occupy(index, turn.board, done, Activity::Result, Cause::Shared);
    }

    fn access_remote(&mut self, turn: Turn, bytes: u32, barrier: Option<BarrierAt>, writes: bool) {
        let (index, now, m) = (turn.index, turn.now, self.machine);
        let (sm, cta) = (self.warps[index].sm, self.warps[index].cta);
        let state = &mut self.sms[sm];
        let start = state.remote.max(now);
        state.remote = start + ticks(f64::from(bytes) / m.remote_port);
        let done = state.remote + ticks(m.remote_latency);
        if !writes {
            self.occupy(index, turn.board, done, Activity::Result, Cause::Barriers);
        }
        if let Some(barrier) = barrier {
            let mut way = self.way(index, now);
            way.go(Cause::Barriers, done - now);
            self.send(done, cta, barrier, (0, bytes), way);
        }
    }

    fn store_global(&mut self, turn: Turn, at: &GlobalBytes, atomic: bool) {
        let (index, now) = (turn.index, turn.now);
        let sm = self.warps[index].sm;
        self.warps[index].stored = Some(now);
        let left = self.store(sm, now, at);
        let read = self.sms[sm].lsu + ticks(self.machine.operands_latency);
        self.occupy(index, turn.operands, read, Activity::Memory, Cause::L2);
        if atomic {
            self.update_global(index, now, left, turn.issued, turn.board);
        }
    }

    fn load_global(&mut self, turn: Turn, at: &GlobalBytes) {
        let (index, now) = (turn.index, turn.now);
        let sm = self.warps[index].sm;
        let read = now + ticks(self.machine.operands_latency);
        self.occupy(index, turn.operands, read, Activity::Memory, Cause::Latency);
        let load = turn
            .issued
            .map(|op| self.work.code.instructions[op as usize]);
        let (cached, by_blocks) = load.map_or((true, false), |l| (l.cached, l.by_blocks));
        // What comes to registers goes the way of what comes from shared memory.
        let state = &mut self.sms[sm];
        state.lsu = state.lsu.max(state.shared);
        let (done, cause) = self.fetch(index, now, at, cached, by_blocks);
        self.sms[sm].shared = self.sms[sm].lsu;
        self.occupy(index, turn.board, done, Activity::Memory, cause);
    }

    /// Makes a group of what was begun since the last.
    fn commit(&mut self, index: usize, deed: &Deed) {
        let warp = &mut self.warps[index];
        let (open, groups) = match deed {
            Deed::LaneCommit => (&mut warp.lane_open, &mut warp.lane_groups),
            Deed::BulkCommit => (&mut warp.bulk_open, &mut warp.bulk_groups),
            _ => (&mut warp.wgmma_open, &mut warp.wgmma_groups),
        };
        groups.push_back(std::mem::take(open));
    }

    fn lane_arrive(&mut self, turn: Turn, barrier: BarrierAt, arrivals: u32) {
        let (index, now) = (turn.index, turn.now);
        let open = self.warps[index].lane_done.max(now);
        let latency = ticks(self.machine.arrive_latency);
        let mut way = self.way(index, now);
        way.go(self.warps[index].copies_cause, open - now);
        way.go(Cause::Barriers, latency);
        let cta = self.warps[index].cta;
        self.send(open + latency, cta, barrier, (arrivals, 0), way);
    }

    fn init(&mut self, index: usize, barrier: BarrierAt, count: u32) {
        let cluster = self.ctas[self.warps[index].cta].cluster;
        let count = i64::from(count);
        // Warps of other CTAs may wait for it already.
        let before = self.clusters[cluster].mbarriers.entry(barrier).or_default();
        *before = Mbarrier {
            count,
            pending: count,
            waiting: std::mem::take(&mut before.waiting),
            ..Mbarrier::default()
        };
    }

    fn arrive(&mut self, turn: Turn, barrier: BarrierAt, arrivals: u32, expects: u32) {
        let (index, now) = (turn.index, turn.now);
        let cta = self.warps[index].cta;
        let state = &self.ctas[cta];
        let (cluster, far) = (state.cluster, barrier.rank != state.rank);
        let latency = match far {
            true => self.machine.remote_latency,
            false => self.machine.arrive_latency,
        };
        if expects > 0 {
            let of = self.clusters[cluster].mbarriers.entry(barrier).or_default();
            of.bytes += i64::from(expects);
        }
        let mut way = self.way(index, now);
        way.go(Cause::Barriers, ticks(latency));
        self.send(now + ticks(latency), cta, barrier, (arrivals, 0), way);
    }

    /// Waits for a phase of an mbarrier, at once or where its result is used.
    fn await_phase(&mut self, turn: Turn, barrier: BarrierAt, parity: u32) -> bool {
        let index = turn.index;
        self.warps[index].awaited = true;
        let cluster = self.ctas[self.warps[index].cta].cluster;
        let state = self.clusters[cluster].mbarriers.entry(barrier).or_default();
        if state.phase % 2 != parity % 2 {
            return true;
        }
        state.waiting.push(Question {
            warp: index,
            board: turn.board,
            parity,
            asked: turn.now,
        });
        let Some(board) = turn.board else {
            self.park(turn, Activity::Phase);
            return false;
        };
        let warp = &mut self.warps[index];
        warp.phases[usize::from(board)] += 1;
        warp.board_activity[usize::from(board)] = Activity::Phase;
        warp.board_cause[usize::from(board)] = Cause::Barriers;
        true
    }

    fn await_cluster(&mut self, turn: Turn) -> bool {
        let index = turn.index;
        let cluster = self.ctas[self.warps[index].cta].cluster;
        let state = &mut self.clusters[cluster];
        if state.phase < self.warps[index].cluster_phase {
            state.gate.waiting.push(index);
            self.park(turn, Activity::Barrier);
            return false;
        }
        let opened = state.opened;
        self.hold(index, turn.now, opened, Activity::Barrier);
        true
    }

    fn park(&mut self, turn: Turn, activity: Activity) {
        let warp = &mut self.warps[turn.index];
        warp.parked = Some((Parked::Gate, activity, turn.now));
        warp.step += 1;
    }

    fn wgmma(&mut self, turn: Turn, n: u32, registers: bool, sparse: bool) {
        let (index, now, m) = (turn.index, turn.now, self.machine);
        let (sm, partition) = (self.warps[index].sm, self.warps[index].partition);
        // K is 256 bits of whatever element, or twice that of a sparse A at twice the rate.
        let cycles = (f64::from(n) * m.wgmma_column).max(m.wgmma_least);
        // Operands from shared memory: A for this warp, a quarter of B; the port is that
        // of all four. Products that cost nothing need none.
        let free = m.wgmma_column == 0.0;
        let rows = if registers { 0.0 } else { 512.0 };
        let column = if sparse { 16.0 } else { 8.0 };
        let port = (rows + f64::from(n) * column) / LINE as f64;
        let port = if free { 0.0 } else { port };
        let cycles = cycles.max(port * PARTITIONS as f64);
        let state = &mut self.sms[sm];
        let start = state.tensor[partition].max(now);
        let end = start + ticks(cycles);
        state.tensor[partition] = end;
        self.tensor_busy += ticks(cycles);
        match self.products.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => self.products.push((start, end)),
        }
        let steal = ticks(m.wgmma_steal + m.wgmma_steal_column * f64::from(n));
        for pipe in &mut state.pipes[partition][OF_REGISTERS] {
            *pipe = (*pipe).max(now) + steal;
            state.stolen[partition] = state.stolen[partition].max(*pipe);
        }
        let done = end + ticks(m.wgmma_latency);
        let warp = &mut self.warps[index];
        warp.wgmma_open = warp.wgmma_open.max(done);
        self.multiply(index, start, done);
        let port = ticks(port);
        self.push(start, Item::Operands { sm, port });
    }

    fn mma(&mut self, turn: Turn, shape: [u32; 3], bits: u32) {
        let (index, m) = (turn.index, self.machine);
        let (sm, partition) = (self.warps[index].sm, self.warps[index].partition);
        let [rows, columns, depth] = shape.map(f64::from);
        let share = rows * columns * depth * f64::from(bits) / (16.0 * 8.0 * 16.0 * 16.0);
        let state = &mut self.sms[sm];
        let start = state.tensor[partition].max(turn.now);
        state.tensor[partition] = start + ticks(share * m.mma_interval);
        self.tensor_busy += ticks(share * m.mma_interval);
        let done = state.tensor[partition] + ticks(m.mma_latency);
        self.occupy(index, turn.board, done, Activity::Wgmma, Cause::Tensor);
        self.multiply(index, start, done);
    }

    fn fence(&mut self, index: usize, now: Ticks, beyond_cta: bool) {
        let m = self.machine;
        let latency = match beyond_cta {
            true => m.far_fence_latency,
            false => m.fence_latency,
        };
        // It waits for what was stored before it, and others wait for it.
        let mut from = now;
        if std::mem::take(&mut self.warps[index].unfenced) {
            let state = &mut self.sms[self.warps[index].sm];
            state.shared = state.shared.max(now) + ticks(m.fence_interval);
            from = state.shared;
        }
        self.hold(index, now, from + ticks(latency), Activity::Memory);
    }
}

/// When all but the last so many groups are done.
fn ended(groups: &mut VecDeque<Ticks>, left: u32, now: Ticks) -> Ticks {
    let ended = groups.len().saturating_sub(left as usize);
    groups.drain(..ended).fold(now, Ticks::max)
}
