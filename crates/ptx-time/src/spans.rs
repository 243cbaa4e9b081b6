//! What warps' time went to, piece by piece, in as much memory as it may take.

use ptx_emu::mixed::MixedMap;

use crate::times::Span;

/// Spans that are kept. Where there are more, short ones join their neighbours, as far as they have
/// any.
const MOST: usize = 1 << 20;

/// Spans as they are told, warp by warp in the order of time.
#[derive(Debug)]
pub(crate) struct Spans {
    kept: Vec<Span>,
    /// The latest of each warp.
    latest: MixedMap<(usize, usize), usize>,
    most: usize,
    /// Cycles that a span lasts at least, if it has a neighbour to join.
    grain: f64,
}

impl Default for Spans {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            latest: MixedMap::default(),
            most: MOST,
            grain: 0.0,
        }
    }
}

impl Spans {
    pub(crate) fn tell(&mut self, span: Span) {
        let warp = (span.cta, span.warp);
        if let Some(&at) = self.latest.get(&warp)
            && join(&mut self.kept[at], &span, self.grain)
        {
            return;
        }
        self.latest.insert(warp, self.kept.len());
        self.kept.push(span);
        while self.kept.len() >= self.most {
            // What lies apart cannot be joined: there must be room for it.
            if !self.coarsen() {
                self.most *= 2;
            }
        }
    }

    pub(crate) fn end(self) -> Vec<Span> {
        self.kept
    }

    /// Doubles the grain. False once all that go on where others end are one.
    fn coarsen(&mut self) -> bool {
        let lengths = self.kept.iter().map(|span| span.to - span.from);
        let longest = lengths.fold(0.0, f64::max);
        self.grain = (2.0 * self.grain).max(1.0);
        let mut all = std::mem::take(&mut self.kept);
        all.sort_by_key(|span| (span.cta, span.warp));
        for span in all {
            let same = |last: &Span| (last.cta, last.warp) == (span.cta, span.warp);
            let last = self.kept.last_mut().filter(|last| same(last));
            if !last.is_some_and(|last| join(last, &span, self.grain)) {
                self.kept.push(span);
            }
        }
        self.latest = (self.kept.iter().enumerate())
            .map(|(at, span)| ((span.cta, span.warp), at))
            .collect();
        self.grain <= longest
    }
}

/// Whether a span goes on where the last of its warp ends, with the same or for no time worth a
/// span of its own; then they are one, told by what most of it went to.
fn join(last: &mut Span, span: &Span, grain: f64) -> bool {
    let same = (last.activity, last.line) == (span.activity, span.line);
    let (before, after) = (last.to - last.from, span.to - span.from);
    if last.to != span.from || !(same || before < grain || after < grain) {
        return false;
    }
    if after > before {
        (last.activity, last.line) = (span.activity, span.line);
    }
    last.to = span.to;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::Activity;

    fn span(warp: usize, from: usize, activity: Activity) -> Span {
        Span {
            cta: 0,
            warp,
            from: from as f64,
            to: from as f64 + 1.0,
            activity,
            line: 1,
        }
    }

    #[test]
    fn what_goes_on_is_one_span() {
        let mut spans = Spans::default();
        for at in 0..10 {
            spans.tell(span(0, at, Activity::Issuing));
            spans.tell(span(1, 2 * at, Activity::Issuing));
        }
        let told = spans.end();
        assert_eq!(told.iter().filter(|s| s.warp == 0).count(), 1);
        assert_eq!(told.iter().filter(|s| s.warp == 1).count(), 10);
    }

    #[test]
    fn spans_stay_within_their_bounds_and_lose_no_time() {
        let mut spans = Spans {
            most: 100,
            ..Spans::default()
        };
        for at in 0..10_000 {
            let activity = [Activity::Issuing, Activity::Memory][at % 2];
            spans.tell(span(0, at, activity));
            spans.tell(span(1, at, activity));
        }
        let told = spans.end();
        assert!(told.len() < 100, "{}", told.len());
        for warp in 0..2 {
            let own: Vec<&Span> = told.iter().filter(|s| s.warp == warp).collect();
            assert_eq!((own[0].from, own[own.len() - 1].to), (0.0, 10_000.0));
            assert!(own.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }

    #[test]
    fn spans_that_lie_apart_are_all_kept() {
        let mut spans = Spans {
            most: 100,
            ..Spans::default()
        };
        for at in 0..1000 {
            spans.tell(span(0, 2 * at, Activity::Issuing));
        }
        assert_eq!(spans.end().len(), 1000);
    }
}
