//! Clusters begin where there is room, and end with their last warp.

use std::collections::VecDeque;

use ptx_emu::mixed::MixedMap;

use super::way::Way;
use super::{CYCLE, ClusterState, Cta, Item, PARTITIONS, Sim, Ticks, Warp, ticks};
use crate::times::{Activity, Cause, CtaTimes};

impl Sim<'_> {
    /// Starts the next cluster, if there is one, in the place that is free then.
    pub(super) fn start_cluster(&mut self, at: Ticks, mut way: Way) {
        let Some(members) = self.work.clusters.get(self.next_cluster) else {
            return;
        };
        self.next_cluster += 1;
        let cluster = self.clusters.len();
        let mut state = ClusterState {
            ctas_left: members.len(),
            ..ClusterState::default()
        };
        let start = at + ticks(self.machine.start_cycles);
        way.go(Cause::Launch, start - at);
        for (rank, &index) in members.iter().enumerate() {
            let trace = &self.work.trace.ctas[index];
            if !self.scripts.contains_key(&index) {
                let told = self.scribe.tell(self.work.trace, trace);
                self.scripts.insert(index, told);
            }
            let scripts = self.scripts[&index].clone();
            let turns = self.turns.entry(index).or_default();
            let turn = *turns;
            *turns += 1;
            let cta = self.ctas.len();
            state.warps += trace.warps.len() as u32;
            // Warps go to the partitions by turns, over all CTAs of an SM.
            let first = self.sms[rank].started;
            self.sms[rank].started += trace.warps.len();
            for (number, (events, parts)) in trace.warps.iter().zip(scripts).enumerate() {
                let warp = self.warps.len();
                self.warps.push(Warp {
                    sm: rank,
                    partition: (first + number) % PARTITIONS,
                    cta,
                    events,
                    parts,
                    part: 0,
                    step: 0,
                    next: start,
                    boards: [0; 6],
                    board_activity: [Activity::Result; 6],
                    board_cause: [Cause::Arithmetic; 6],
                    parked: None,
                    phases: [0; 6],
                    cluster_phase: 0,
                    wgmma_open: 0,
                    wgmma_groups: VecDeque::new(),
                    lane_done: 0,
                    lane_open: 0,
                    lane_groups: VecDeque::new(),
                    copies_cause: Cause::Latency,
                    bulk_open: 0,
                    bulk_groups: VecDeque::new(),
                    stamps: Vec::new(),
                    number,
                    line: 0,
                    told: start,
                    way,
                    spent: Default::default(),
                    unfenced: false,
                    loads: 0,
                    product: None,
                    stored: None,
                    updates: Vec::new(),
                    awaited: true,
                    tmem_done: 0,
                    tmem_moved: 0,
                });
                self.push(start, Item::Warp(warp));
            }
            self.ctas.push(Cta {
                cluster,
                rank: rank as u32,
                turn,
                warps: trace.warps.len(),
                warps_left: trace.warps.len(),
                allowed: None,
                times: CtaTimes {
                    cta: trace.cta,
                    start: start as f64 / CYCLE,
                    ..CtaTimes::default()
                },
                barriers: MixedMap::default(),
            });
            self.running += 1;
        }
        self.clusters.push(state);
    }

    /// The warp has done all it did.
    pub(super) fn leave(&mut self, index: usize, now: Ticks) {
        if let Some(from) = self.warps[index].product {
            self.end_tile(index, from, now);
        }
        let (cta, sm) = (self.warps[index].cta, self.warps[index].sm);
        let mut way = self.way(index, now);
        // A launch has not ended before what it stored has left.
        let left = now.max(self.sms[sm].stores);
        if left >= self.end {
            self.last = way;
            self.last.go(Cause::L2, left - now);
            self.end = left;
        }
        // Nobody waits at the cluster's barrier for a warp that has gone.
        let cluster = self.ctas[cta].cluster;
        self.clusters[cluster].warps -= 1;
        self.open_cluster(cluster, now, way);
        self.ctas[cta].warps_left -= 1;
        if self.ctas[cta].warps_left > 0 {
            return self.open_gates(cta, now, way);
        }
        let state = &mut self.ctas[cta];
        state.times.end = now as f64 / CYCLE;
        self.allowed = self.allowed.max(state.allowed.unwrap_or(now));
        self.running -= 1;
        let left = &mut self.clusters[cluster].ctas_left;
        *left -= 1;
        if *left == 0 {
            let turnover = ticks(self.machine.turnover_cycles);
            way.go(Cause::Launch, turnover);
            self.start_cluster(now + turnover, way);
        }
    }
}
