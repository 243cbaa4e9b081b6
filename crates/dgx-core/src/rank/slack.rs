//! Classifies a ratio of two times: faster, slower, or not distinguishable. Comparisons, ranks and
//! gates all use it, so they cannot disagree.

use std::fmt;

use super::{Ranking, same_card};
use crate::domain::Timing;
use crate::record::Run;
use crate::stats::{CONFIDENCE, Detectable, LogEstimate};

/// A difference nobody would call noise: cards of one kind differ by less, and
/// so do processes.
pub const GRAVE: f64 = 0.05;

/// Modelled times repeat but for rounding.
const ROUNDING: f64 = 1e-9;

/// What other data alone may do to a modelled time: a kernel may branch on them.
const DATA: f64 = 0.01;

/// How far a ratio can be off, besides its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Measured; or one design by one model, which errs alike on both sides.
    No,
    /// Modelled: so much of it in the median of those compared with a card.
    Model(f64),
    /// Modelled for what nobody compared.
    Uncalibrated,
    /// Modelled twice, each time on data of its own.
    Data,
    /// Timed by another tool in one process: what differs from process to
    /// process is in no interval, and no second entry of a baseline says how
    /// much that is.
    OneProcess,
}

impl Doubt {
    /// Of two contenders of a run.
    pub fn within(run: &Run) -> Self {
        match run.timing() {
            Timing::Modelled => {
                let error = run.header.device.model_error();
                error.map_or(Self::Uncalibrated, Self::Model)
            }
            _ => Self::between(run, run),
        }
    }

    /// Of one contender in two runs.
    pub fn between(base: &Run, candidate: &Run) -> Self {
        let lone = |run: &Run| run.tool.is_some() && run.tally.process_count() < 2;
        let modelled = |run: &Run| run.timing() == Timing::Modelled;
        let runs = [base, candidate];
        match runs.into_iter().any(lone) {
            true => Self::OneProcess,
            false if runs.into_iter().all(modelled) && !same_data(base, candidate) => Self::Data,
            false => Self::No,
        }
    }

    /// What is nearer than this share cannot be told apart. What nobody
    /// compared has none: there nothing can be told, however far.
    pub fn share(self) -> f64 {
        match self {
            Self::No | Self::Uncalibrated => 0.0,
            Self::Model(error) => error,
            Self::Data => DATA,
            Self::OneProcess => GRAVE,
        }
    }
}

/// Whether both runs drew the same data for every shape they share.
fn same_data(base: &Run, candidate: &Run) -> bool {
    let seed = |run: &Run, shape: &str| run.header.data_seed(shape);
    let mut shapes = candidate.header.shapes.iter().map(|shape| &shape.name);
    shapes.all(|name| base.shape(name).is_none() || seed(base, name) == seed(candidate, name))
}

/// What a ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Faster,
    Slower,
    Equal,
    /// Its interval holds equal.
    Open,
    /// Its interval does not, but it is nearer to equal than can be told.
    Doubtful,
    /// Beyond both, on another card, and by no more than cards differ.
    OtherCard,
    /// Measured, but once: whatever it shows may be chance.
    OneBlock,
    /// Measured in one process: what differs between them is not in it.
    OneProcess,
    /// Modelled for what nobody compared.
    Uncalibrated,
}

impl Judgement {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equal => "equal",
            Self::Open | Self::Doubtful => "cannot tell",
            Self::OtherCard => "other card",
            Self::OneBlock => "one block",
            Self::OneProcess => "one process",
            Self::Uncalibrated => "uncalibrated",
        }
    }

    /// Whether times differ; `None` where that cannot be told.
    pub fn differs(self) -> Option<bool> {
        match self {
            Self::Faster | Self::Slower | Self::OtherCard => Some(true),
            Self::Equal | Self::Open => Some(false),
            Self::Doubtful | Self::OneBlock | Self::OneProcess | Self::Uncalibrated => None,
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How near to equal is as good as equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slack {
    /// What can be told apart, as a share.
    pub share: f64,
    pub doubt: Doubt,
    pub other_card: bool,
    timing: Timing,
    /// All of an interval has to be farther than that, not its middle alone.
    whole: bool,
}

impl Slack {
    /// Two contenders of a run, timed side by side: the noise its baseline
    /// shows beside itself, as for ranks.
    pub(super) fn within(run: &Run, ranking: &Ranking, shape: Option<&str>) -> Self {
        let doubt = Doubt::within(run);
        let noise = limit(run, ranking, shape).map_or(0.0, |found| found.noise);
        Self {
            share: noise.max(doubt.share()),
            doubt,
            other_card: false,
            timing: run.timing(),
            whole: false,
        }
    }

    /// A contender in two runs: each sees so much, and what lies within both
    /// is nothing.
    pub fn between(
        base: (&Run, &Ranking),
        candidate: (&Run, &Ranking),
        shape: Option<&str>,
    ) -> Self {
        let limits = [base, candidate].map(|(run, ranking)| limit(run, ranking, shape));
        Self {
            other_card: same_card(base.0, candidate.0) == Some(false),
            ..Self::of(
                limits,
                Doubt::between(base.0, candidate.0),
                candidate.0.timing(),
            )
        }
    }

    /// By what such runs can tell apart.
    pub fn of(limits: [Option<&Detectable>; 2], doubt: Doubt, timing: Timing) -> Self {
        let seen = limits.iter().flatten().map(|limit| limit.effect.ln_1p());
        Self {
            share: (seen.sum::<f64>() + doubt.share().ln_1p()).exp_m1(),
            doubt,
            other_card: false,
            timing,
            whole: true,
        }
    }

    /// Whether a difference lies within its interval and the slack; `None`
    /// without an interval.
    pub fn holds(&self, difference: &LogEstimate) -> Option<bool> {
        let half = difference.half_width(CONFIDENCE)?;
        Some(difference.mean.abs() <= half + self.share.ln_1p())
    }

    pub fn judge(&self, estimate: &LogEstimate) -> Judgement {
        let (far, slack) = (estimate.mean.abs(), self.share.ln_1p());
        let side = match estimate.mean > 0.0 {
            true => Judgement::Faster,
            false => Judgement::Slower,
        };
        let Some(half) = estimate.half_width(CONFIDENCE) else {
            return match self.timing.sampled() {
                true => Judgement::OneBlock,
                false if far == 0.0 => Judgement::Equal,
                false if self.doubt == Doubt::Uncalibrated => Judgement::Uncalibrated,
                false if far <= slack + ROUNDING => Judgement::Doubtful,
                false => side,
            };
        };
        let sure = far - half;
        match if self.whole { sure } else { far } {
            _ if self.timing.sampled() && estimate.is_of_one_process() => Judgement::OneProcess,
            _ if sure <= 0.0 => Judgement::Open,
            near if near <= slack => Judgement::Doubtful,
            _ if self.other_card && sure <= GRAVE.ln_1p() => Judgement::OtherCard,
            _ => side,
        }
    }
}

/// What the A/A arm says of a shape, or of the mean.
pub fn limit<'a>(run: &Run, ranking: &'a Ranking, shape: Option<&str>) -> Option<&'a Detectable> {
    let Some(shape) = shape else {
        return ranking.detectable.as_ref();
    };
    let index = run.header.shapes.iter().position(|s| s.name == shape)?;
    ranking.shape_detectable.get(index)?.as_ref()
}
