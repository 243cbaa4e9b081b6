//! Which pairs of contenders more blocks could still separate, and about how long that takes. Used
//! between blocks, with the same estimates that are printed at the end.

use super::{CONFIDENCE, Contrast, Estimates, LogEstimate, Tally, holm};
use crate::domain::Interval;

/// When a pair counts as settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    pub confidence: f64,
    /// Contenders whose ratio is certainly within this share of 1 count as equal; without it two
    /// identical kernels would be timed for ever.
    pub indifference: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            confidence: CONFIDENCE,
            indifference: 0.005,
        }
    }
}

/// A pair that is neither distinguished nor certainly equal.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenPair {
    /// The two arms.
    pub a: usize,
    pub b: usize,
    /// Time of `a` over time of `b`, so far.
    pub ratio: Interval,
    /// Blocks of every shape that would settle it if the noise stays the same.
    pub more_blocks: u32,
}

/// What is still open after these blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub open: Vec<OpenPair>,
}

impl Decision {
    pub fn decided(&self) -> bool {
        self.open.is_empty()
    }

    /// Arms of open pairs, each once: the ones worth further timing.
    pub fn contested(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.open.iter().flat_map(|p| [p.a, p.b]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Seconds until the last pair is settled, when a block takes this long.
    pub fn seconds(&self, per_block: f64) -> f64 {
        let most = self.open.iter().map(|p| p.more_blocks).max();
        f64::from(most.unwrap_or(0)) * per_block
    }

    /// `decided`, or `unresolved: about N s more`, for the run's last line.
    pub fn summary(&self, per_block: f64) -> String {
        if self.decided() {
            return "decided".to_owned();
        }
        let pairs = self.open.len();
        let noun = if pairs == 1 { "pair" } else { "pairs" };
        let seconds = self.seconds(per_block).ceil();
        format!("unresolved: {pairs} {noun} open, about {seconds} s more")
    }
}

/// Judges every pair of `arms` on the shapes that have blocks: one shape while
/// it is being measured, or all of them for the ranking. A pair with fewer
/// than two blocks in common on any shape is open.
pub fn decide(tally: &Tally, arms: &[usize], rule: &Rule) -> Decision {
    let timed = |s: &usize| tally.processes(*s).next().is_some();
    let shapes: Vec<usize> = (0..tally.shapes()).filter(timed).collect();
    let mut pairs = Vec::new();
    for (i, &a) in arms.iter().enumerate() {
        for &b in &arms[i + 1..] {
            let contrasts: Vec<Contrast> = shapes.iter().map(|s| tally.ratios(*s, a, b)).collect();
            let estimate = Estimates::of(&contrasts).map(|e| e.geomean);
            pairs.push((a, b, estimate));
        }
    }
    let p = |e: &Option<LogEstimate>| e.and_then(|e| e.p_value()).unwrap_or(1.0);
    let adjusted = holm(&pairs.iter().map(|(_, _, e)| p(e)).collect::<Vec<_>>());
    // Under Holm the hardest pair is judged at the full level, the easiest at
    // level / pairs; the strictest one gives a safe estimate of blocks.
    let strict = 1.0 - (1.0 - rule.confidence) / pairs.len().max(1) as f64;
    let open = pairs
        .into_iter()
        .zip(adjusted)
        .filter_map(|((a, b, e), p)| {
            let told_apart = p < 1.0 - rule.confidence;
            (!told_apart)
                .then(|| open_pair(a, b, e, rule, strict))
                .flatten()
        });
    Decision {
        open: open.collect(),
    }
}

fn open_pair(
    a: usize,
    b: usize,
    estimate: Option<LogEstimate>,
    rule: &Rule,
    strict: f64,
) -> Option<OpenPair> {
    const UNKNOWN: u32 = 10;
    let pair = |ratio: Interval, more_blocks: u32| OpenPair {
        a,
        b,
        ratio,
        more_blocks,
    };
    let Some((estimate, half)) = estimate.and_then(|e| Some((e, e.half_width(strict)?))) else {
        return Some(pair(Interval::point(f64::NAN), UNKNOWN));
    };
    let distance = estimate.mean.abs();
    let margin = rule.indifference.ln_1p();
    if distance + half <= margin {
        return None;
    }
    // Either result settles it: an interval that excludes zero, or one inside the margin.
    let target = distance.max(margin - distance);
    let factor = (half / target).powi(2) - 1.0;
    let more = (estimate.blocks as f64 * factor).ceil().max(1.0);
    Some(pair(estimate.ratio(rule.confidence), more.min(1e6) as u32))
}
