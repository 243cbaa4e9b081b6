//! The timeline of the SM that ends last: what each warp did when.

use ptx_time::{Activity, Span};

use super::Stage;
use dgx_core::domain::Micros;

/// In µs after the start of the call's first CTA.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// By number in the grid, with start and end.
    pub ctas: Vec<(u64, Micros, Micros)>,
    /// Names of the warps of each of them.
    pub warps: Vec<Vec<String>>,
    pub stages: Vec<(Stage, Micros, Micros)>,
    /// Warp by warp.
    spans: Vec<Span>,
    clock_mhz: f64,
    start: f64,
}

/// A stretch of a warp's time, with the cause of all or most of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeSlice {
    pub from: f64,
    pub to: f64,
    pub activity: Activity,
    pub line: u32,
}

impl Timeline {
    /// An empty timeline of a launch that starts this many cycles after the call's first CTA.
    pub(super) fn at_clock(clock_mhz: f64, start: f64) -> Self {
        Self {
            clock_mhz,
            start,
            ..Self::default()
        }
    }

    /// Adds the spans that a replay kept, in which warps alternate.
    pub(super) fn keep(&mut self, mut spans: Vec<Span>) {
        spans.sort_by_key(|span| (span.cta, span.warp));
        self.spans = spans;
    }

    /// The spans of one warp.
    fn own(&self, warp: (usize, usize)) -> &[Span] {
        let place = |span: &Span| (span.cta, span.warp);
        let begin = self.spans.partition_point(|span| place(span) < warp);
        let end = self.spans.partition_point(|span| place(span) <= warp);
        &self.spans[begin..end]
    }

    fn at(&self, cycles: f64) -> f64 {
        (self.start + cycles) / self.clock_mhz
    }

    /// A warp's spans, merged where `same` is true.
    pub(super) fn row(
        &self,
        warp: (usize, usize),
        same: impl Fn(&Span, &Span) -> bool,
    ) -> Vec<TimeSlice> {
        let mut pieces: Vec<TimeSlice> = Vec::new();
        let mut last: Option<&Span> = None;
        for span in self.own(warp) {
            let (from, to) = (self.at(span.from), self.at(span.to));
            match pieces.last_mut().zip(last) {
                Some((piece, last)) if last.to == span.from && same(last, span) => piece.to = to,
                _ => pieces.push(TimeSlice {
                    from,
                    to,
                    activity: span.activity,
                    line: span.line,
                }),
            }
            last = Some(span);
        }
        pieces
    }

    /// A warp's row in at most `count` pieces, each named after the cause of most of its time.
    pub(super) fn coarse(
        &self,
        warp: (usize, usize),
        (from, to): (f64, f64),
        count: usize,
    ) -> Vec<TimeSlice> {
        let width = (to - from) / count as f64;
        let mut most = vec![[(0.0, 0); Activity::ALL.len()]; count];
        for span in self.own(warp) {
            let (begin, end) = (self.at(span.from), self.at(span.to).min(to));
            let mut at = ((begin - from) / width).max(0.0) as usize;
            while at < count {
                let (left, right) = (from + at as f64 * width, from + (at + 1) as f64 * width);
                let part = right.min(end) - left.max(begin);
                if part <= 0.0 && left > begin {
                    break;
                }
                let place: &mut (f64, u32) = &mut most[at][span.activity as usize];
                place.0 += part.max(0.0);
                place.1 = span.line;
                at += 1;
            }
        }
        let mut pieces: Vec<TimeSlice> = Vec::new();
        for (index, parts) in most.iter().enumerate() {
            let covered: f64 = parts.iter().map(|p| p.0).sum();
            let best = (0..parts.len()).max_by(|a, b| parts[*a].0.total_cmp(&parts[*b].0));
            let Some(best) = best.filter(|_| covered > width / 2.0) else {
                continue;
            };
            let (left, right) = (
                from + index as f64 * width,
                from + (index + 1) as f64 * width,
            );
            let (activity, line) = (Activity::ALL[best], parts[best].1);
            match pieces.last_mut() {
                Some(last) if last.activity == activity && (last.to - left).abs() < width / 2.0 => {
                    last.to = right;
                }
                _ => pieces.push(TimeSlice {
                    from: left,
                    to: right,
                    activity,
                    line,
                }),
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::profile;

    #[test]
    fn a_row_is_told_by_what_most_of_each_piece_went_to() {
        let profile = profile();
        let line = &profile.launches[0].timeline;
        let row = line.coarse((0, 1), (0.0, 1.0), 600);
        let activities: Vec<Activity> = row.iter().map(|p| p.activity).collect();
        assert_eq!(
            activities,
            [Activity::Phase, Activity::Wgmma, Activity::Issuing]
        );
        assert!((row[1].from - 0.3).abs() < 0.01 && (row[1].to - 0.9).abs() < 0.01);
    }

    #[test]
    fn what_follows_on_and_is_the_same_is_one_piece() {
        let profile = profile();
        let line = &profile.launches[0].timeline;
        assert_eq!(line.row((0, 1), |_, _| true).len(), 1);
        assert_eq!(line.row((0, 1), |a, b| a.activity == b.activity).len(), 3);
    }
}
