//! Tells what the warps' time went to.

use super::way::cause;
use super::{CYCLE, Sim, Ticks};
use crate::times::{Activity, Cause, Epilogue, Span};

impl Sim<'_> {
    /// Tells what a piece of a warp's time went to; what was told of it before stands.
    pub(super) fn spend(&mut self, index: usize, activity: Activity, from: Ticks, to: Ticks) {
        self.spend_on(index, activity, cause(activity), from, to);
    }

    /// The same where it is known what was in the way.
    pub(super) fn spend_on(
        &mut self,
        index: usize,
        activity: Activity,
        cause: Cause,
        from: Ticks,
        to: Ticks,
    ) {
        let warp = &mut self.warps[index];
        let from = from.max(warp.told);
        if to <= from {
            return;
        }
        warp.way.go(Cause::Issue, from - warp.told);
        warp.way.go(cause, to - from);
        warp.told = to;
        let (from, to) = (from as f64 / CYCLE, to as f64 / CYCLE);
        warp.spent[activity as usize] += to - from;
        if self.keep_spans {
            self.spans.tell(Span {
                cta: warp.cta,
                warp: warp.number,
                from,
                to,
                activity,
                line: warp.line,
            });
        }
    }

    /// A product of a warp ends then; if it has stored since the last, a tile was done.
    pub(super) fn multiply(&mut self, index: usize, start: Ticks, done: Ticks) {
        let warp = &mut self.warps[index];
        let times = &mut self.ctas[warp.cta].times;
        times.first_mma.get_or_insert(start as f64 / CYCLE);
        let done_cycles = done as f64 / CYCLE;
        times.last_mma = Some(
            times
                .last_mma
                .map_or(done_cycles, |last| last.max(done_cycles)),
        );
        let stored = warp.stored.take();
        let before = warp.product.replace(done);
        if let (Some(from), Some(to)) = (before, stored) {
            self.end_tile(index, from, to);
        }
    }

    /// The tensor core works for a warp's CTA, or its pair.
    pub(super) fn note_products(&mut self, index: usize, ctas: u32, start: Ticks, end: Ticks) {
        let cta = self.warps[index].cta;
        let (cluster, rank) = (self.ctas[cta].cluster, self.ctas[cta].rank);
        let (start, end) = (start as f64 / CYCLE, end as f64 / CYCLE);
        for state in &mut self.ctas {
            let peer = ctas == 2 && state.rank == rank ^ 1;
            if state.cluster == cluster && (state.rank == rank || peer) {
                state.times.first_mma.get_or_insert(start);
                let last = state.times.last_mma.unwrap_or(end);
                state.times.last_mma = Some(last.max(end));
            }
        }
    }

    /// A warp reads products out of tensor memory: those of another tile, if it has waited for
    /// something before.
    pub(super) fn read_products(&mut self, index: usize, now: Ticks) {
        let warp = &mut self.warps[index];
        if !std::mem::take(&mut warp.awaited) {
            return;
        }
        let stored = warp.stored.take();
        let before = warp.product.replace(now);
        if let (Some(from), Some(to)) = (before, stored) {
            self.end_tile(index, from, to);
        }
    }

    pub(super) fn end_tile(&mut self, index: usize, from: Ticks, to: Ticks) {
        let warp = &self.warps[index];
        self.epilogues.push(Epilogue {
            cta: warp.cta,
            warp: warp.number,
            from: from as f64 / CYCLE,
            to: to.max(from) as f64 / CYCLE,
        });
    }
}
