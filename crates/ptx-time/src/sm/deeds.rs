//! What instructions do besides taking their turn.

use ptx_emu::trace::Deed;

use super::barriers::{Mbarrier, Question};
use super::issue::OF_REGISTERS;
use super::{Item, LINE, PARTITIONS, Parked, Sim, Ticks, ticks};
use crate::times::{Cause, Spent};

impl Sim<'_> {
    /// Does a deed. False if the warp stands still until somebody wakes it.
    pub(super) fn act(
        &mut self,
        index: usize,
        now: Ticks,
        deed: &Deed,
        issued: Option<u32>,
        board: Option<u8>,
        operands: Option<u8>,
    ) -> bool {
        let m = self.machine;
        let (sm, partition, cta) = {
            let warp = &self.warps[index];
            (warp.sm, warp.partition, warp.cta)
        };
        match *deed {
            Deed::Shared {
                wavefronts,
                atomic: true,
                ..
            } => self.update_shared(index, now, wavefronts, issued, (board, operands)),
            Deed::Shared {
                wavefronts, writes, ..
            } => {
                let state = &mut self.sms[sm];
                let start = state.shared.max(now);
                state.shared = start + ticks(f64::from(wavefronts) * m.shared_interval);
                let done = state.shared + ticks(m.shared_latency - m.shared_interval);
                self.warps[index].unfenced |= writes;
                // What is stored is read when it is stored, addresses at once.
                let read = if writes { state.shared } else { now };
                let read = read + ticks(m.operands_latency);
                self.occupy(index, operands, read, Spent::Result, Cause::Shared);
                self.occupy(index, board, done, Spent::Result, Cause::Shared);
            }
            Deed::Remote {
                bytes,
                barrier,
                writes,
                ..
            } => {
                let state = &mut self.sms[sm];
                let start = state.remote.max(now);
                state.remote = start + ticks(f64::from(bytes) / m.remote_port);
                let done = state.remote + ticks(m.remote_latency);
                if !writes {
                    self.occupy(index, board, done, Spent::Result, Cause::Barriers);
                }
                if let Some(barrier) = barrier {
                    let mut way = self.way(index, now);
                    way.go(Cause::Barriers, done - now);
                    self.send(done, cta, barrier, (0, bytes), way);
                }
            }
            Deed::Global { at, writes, atomic } => {
                if writes {
                    self.warps[index].stored = Some(now);
                    let left = self.store(sm, now, &at);
                    let read = self.sms[sm].lsu + ticks(m.operands_latency);
                    self.occupy(index, operands, read, Spent::Memory, Cause::L2);
                    if atomic {
                        self.update_global(index, now, left, issued, board);
                    }
                } else {
                    let read = now + ticks(m.operands_latency);
                    self.occupy(index, operands, read, Spent::Memory, Cause::Latency);
                    let load = issued.map(|op| self.work.code.instructions[op as usize]);
                    let (cached, by_blocks) =
                        load.map_or((true, false), |l| (l.cached, l.by_blocks));
                    // What comes to registers goes the way of what comes from shared memory.
                    let state = &mut self.sms[sm];
                    state.lsu = state.lsu.max(state.shared);
                    let (done, cause) = self.fetch(index, now, &at, cached, by_blocks);
                    self.sms[sm].shared = self.sms[sm].lsu;
                    self.occupy(index, board, done, Spent::Memory, cause);
                }
            }
            Deed::Update { at, turns } => self.warps[index].updates.push((at, turns)),
            Deed::LaneCopy { at } => {
                let (done, cause) = self.fetch(index, now, &at, false, false);
                let warp = &mut self.warps[index];
                warp.copies_cause = cause;
                warp.lane_open = warp.lane_open.max(done);
                warp.lane_done = warp.lane_done.max(done);
            }
            Deed::LaneCommit => {
                let warp = &mut self.warps[index];
                let open = std::mem::take(&mut warp.lane_open);
                warp.lane_groups.push_back(open);
            }
            Deed::BulkCommit => {
                let warp = &mut self.warps[index];
                let open = std::mem::take(&mut warp.bulk_open);
                warp.bulk_groups.push_back(open);
            }
            Deed::LaneWait(groups) => {
                let all = &mut self.warps[index].lane_groups;
                let ended = all.len().saturating_sub(groups as usize);
                let until = all.drain(..ended).fold(now, Ticks::max);
                let cause = self.warps[index].copies_cause;
                self.hold_on(index, now, until, Spent::Copies, cause);
            }
            // A card lets go of both waits at once.
            Deed::BulkWait { groups, read: _ } => {
                let all = &mut self.warps[index].bulk_groups;
                let ended = all.len().saturating_sub(groups as usize);
                let until = all.drain(..ended).fold(now, Ticks::max);
                let cause = self.warps[index].copies_cause;
                self.hold_on(index, now, until, Spent::Copies, cause);
            }
            Deed::LaneArrive { barrier, arrivals } => {
                let open = self.warps[index].lane_done.max(now);
                let latency = ticks(m.arrive_latency);
                let mut way = self.way(index, now);
                way.go(self.warps[index].copies_cause, open - now);
                way.go(Cause::Barriers, latency);
                self.send(open + latency, cta, barrier, (arrivals, 0), way);
            }
            Deed::Bulk {
                way,
                at,
                rows,
                bytes,
                to,
                barrier,
                pair,
                map,
            } => {
                let start = map.map_or(now, |map| now.max(self.map_read(sm, now, map, false)));
                self.bulk(
                    index,
                    (now, start),
                    way,
                    at,
                    (rows, map.is_some()),
                    bytes,
                    (to, pair),
                    barrier,
                );
            }
            Deed::MapFetch { map } => {
                self.map_read(sm, now, map, true);
            }
            Deed::Barrier { id, threads, waits } => {
                return self.meet(index, now, id, threads, waits);
            }
            Deed::Init { barrier, count } => {
                let cluster = self.ctas[cta].cluster;
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
            Deed::Arrive {
                barrier,
                arrivals,
                expects,
            } => {
                let state = &self.ctas[cta];
                let (cluster, far) = (state.cluster, barrier.rank != state.rank);
                let latency = match far {
                    true => m.remote_latency,
                    false => m.arrive_latency,
                };
                if expects > 0 {
                    let of = self.clusters[cluster].mbarriers.entry(barrier).or_default();
                    of.bytes += i64::from(expects);
                }
                let mut way = self.way(index, now);
                way.go(Cause::Barriers, ticks(latency));
                self.send(now + ticks(latency), cta, barrier, (arrivals, 0), way);
            }
            Deed::Await { barrier, parity } => {
                self.warps[index].awaited = true;
                let cluster = self.ctas[cta].cluster;
                let state = self.clusters[cluster].mbarriers.entry(barrier).or_default();
                if state.phase % 2 == parity % 2 {
                    state.waiting.push(Question {
                        warp: index,
                        board,
                        parity,
                        asked: now,
                    });
                    match board {
                        Some(board) => {
                            let warp = &mut self.warps[index];
                            warp.phases[usize::from(board)] += 1;
                            warp.board_spent[usize::from(board)] = Spent::Phase;
                            warp.board_cause[usize::from(board)] = Cause::Barriers;
                        }
                        None => {
                            self.warps[index].parked = Some((Parked::Gate, Spent::Phase, now));
                            self.warps[index].step += 1;
                            return false;
                        }
                    }
                }
            }
            Deed::ClusterArrive => {
                let cluster = self.ctas[cta].cluster;
                let state = &mut self.clusters[cluster];
                self.warps[index].cluster_phase = state.phase + 1;
                state.gate.arrived += 1;
                let way = self.way(index, now);
                self.open_cluster(cluster, now, way);
            }
            Deed::ClusterWait => {
                let cluster = self.ctas[cta].cluster;
                let state = &mut self.clusters[cluster];
                if state.phase < self.warps[index].cluster_phase {
                    state.gate.waiting.push(index);
                    self.warps[index].parked = Some((Parked::Gate, Spent::Barrier, now));
                    self.warps[index].step += 1;
                    return false;
                }
                let opened = state.opened;
                self.hold(index, now, opened, Spent::Barrier);
            }
            Deed::Wgmma {
                n,
                registers,
                sparse,
                ..
            } => {
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
            Deed::WgmmaCommit => {
                let warp = &mut self.warps[index];
                let open = std::mem::take(&mut warp.wgmma_open);
                warp.wgmma_groups.push_back(open);
            }
            Deed::WgmmaWait(groups) => {
                let warp = &mut self.warps[index];
                let mut until = now;
                while warp.wgmma_groups.len() > groups as usize {
                    until = until.max(warp.wgmma_groups.pop_front().unwrap_or(0));
                }
                let until = until + ticks(m.wgmma_wait_latency);
                let least = now + ticks(m.wgmma_settled_latency);
                self.hold(index, now, until.max(least), Spent::Wgmma);
            }
            Deed::AllowLaunch => {
                self.ctas[cta].allowed.get_or_insert(now);
            }
            Deed::WgmmaFence | Deed::Registers(_) => {}
            Deed::Mma { shape, bits } => {
                let [rows, columns, depth] = shape.map(f64::from);
                let share = rows * columns * depth * f64::from(bits) / (16.0 * 8.0 * 16.0 * 16.0);
                let state = &mut self.sms[sm];
                let start = state.tensor[partition].max(now);
                state.tensor[partition] = start + ticks(share * m.mma_interval);
                self.tensor_busy += ticks(share * m.mma_interval);
                let done = state.tensor[partition] + ticks(m.mma_latency);
                self.occupy(index, board, done, Spent::Wgmma, Cause::Tensor);
                self.multiply(index, start, done);
            }
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
            Deed::TmemWait { .. } => {
                let moved = self.warps[index].tmem_moved;
                self.hold(index, now, moved, Spent::Wgmma);
            }
            Deed::TmemAlloc { columns, ctas } => {
                return self.ask_columns(index, now, columns, ctas);
            }
            Deed::TmemFree { columns, .. } => self.free_columns(index, now, columns),
            Deed::AwaitLaunch => {
                let gate = ticks(self.work.gate);
                self.hold(index, now, gate, Spent::Launch);
            }
            // A fence the compiler has left out costs nothing.
            Deed::Fence { .. } if issued.is_none() => {}
            Deed::Fence { beyond_cta, .. } => {
                let latency = match beyond_cta {
                    true => m.far_fence_latency,
                    false => m.fence_latency,
                };
                // It waits for what was stored before it, and others wait for it.
                let mut from = now;
                if std::mem::take(&mut self.warps[index].unfenced) {
                    let state = &mut self.sms[sm];
                    state.shared = state.shared.max(now) + ticks(m.fence_interval);
                    from = state.shared;
                }
                self.hold(index, now, from + ticks(latency), Spent::Memory);
            }
            Deed::Sleep(nanos) => {
                let cycles = f64::from(nanos) * m.clock_mhz / 1000.0;
                self.hold(index, now, now + ticks(cycles), Spent::Issuing);
            }
            Deed::Stamp => self.warps[index].stamps.push(now),
        }
        true
    }
}
