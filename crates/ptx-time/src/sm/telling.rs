//! Tells what the warps' time went to.

use super::way::cause;
use super::{CYCLE, Sim, Ticks};
use crate::times::{Cause, Epilogue, Span, Spent};

impl Sim<'_> {
    /// Tells what a piece of a warp's time went to; what was told of it before stands.
    pub(super) fn spend(&mut self, index: usize, spent: Spent, from: Ticks, to: Ticks) {
        self.spend_on(index, spent, cause(spent), from, to);
    }

    /// The same where it is known what was in the way.
    pub(super) fn spend_on(
        &mut self,
        index: usize,
        spent: Spent,
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
        warp.spent[spent as usize] += to - from;
        if self.keep_spans {
            self.spans.tell(Span {
                cta: warp.cta,
                warp: warp.number,
                from,
                to,
                spent,
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
