//! Classifies a ratio of two times: faster, slower, or not distinguishable. Comparisons and the
//! gate's rule *not-slower* use it, so they cannot disagree. Ranks take only
//! [`SystematicError::within`] from here: `build.rs` has their rule, for all pairs at once.

use super::{Ranking, same_card};
use crate::domain::Timing;
use crate::record::Run;
use crate::stats::{CONFIDENCE, Detectable, LogEstimate};

/// A difference that is never noise: cards of one kind differ by less, and so do processes.
pub const GRAVE: f64 = 0.05;

/// Modelled times repeat except for rounding.
const ROUNDING: f64 = 1e-9;

/// The effect that other data alone may have on a modelled time: a kernel may branch on them.
const DATA: f64 = 0.01;

/// The error of a ratio that its interval does not include.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SystematicError {
    /// Measured; or one design with one model, whose error is the same on both sides.
    None,
    /// Modelled: the median error of cells that were compared with a card.
    Model(f64),
    /// Modelled for a device or operator that was never compared.
    Uncalibrated,
    /// Modelled twice, on different data.
    Data,
    /// Timed by another tool in one process: the variation between processes is in no interval, and
    /// no second entry of a baseline shows its size.
    OneProcess,
}

impl SystematicError {
    /// For two contenders of a run.
    pub fn within(run: &Run) -> Self {
        match run.timing() {
            Timing::Modelled => {
                let error = run.header.device.model_error();
                error.map_or(Self::Uncalibrated, Self::Model)
            }
            _ => Self::between(run, run),
        }
    }

    /// For one contender in two runs.
    pub fn between(base: &Run, candidate: &Run) -> Self {
        let lone = |run: &Run| run.tool.is_some() && run.tally.process_count() < 2;
        let modelled = |run: &Run| run.timing() == Timing::Modelled;
        let runs = [base, candidate];
        match runs.into_iter().any(lone) {
            true => Self::OneProcess,
            false if runs.into_iter().all(modelled) && !same_data(base, candidate) => Self::Data,
            false => Self::None,
        }
    }

    /// Differences below this share cannot be detected. `Uncalibrated` has no such share: no
    /// difference can be detected, however large.
    pub fn share(self) -> f64 {
        match self {
            Self::None | Self::Uncalibrated => 0.0,
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

/// The judgement of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Faster,
    Slower,
    Equal,
    /// Its interval contains 1.
    Open,
    /// Its interval does not contain 1, but it is closer to 1 than can be detected.
    Doubtful,
    /// Beyond both, but on another card, and by no more than cards differ.
    OtherCard,
    /// Measured only once: the result may be chance.
    OneBlock,
    /// Measured in one process: the variation between processes is not in it.
    OneProcess,
    /// Modelled for a device or operator that was never compared.
    Uncalibrated,
}

words!(Judgement {
    Faster = "faster",
    Slower = "slower",
    Equal = "equal",
    Open = "cannot tell",
    Doubtful = "cannot tell",
    OtherCard = "other card",
    OneBlock = "one block",
    OneProcess = "one process",
    Uncalibrated = "uncalibrated",
});

impl Judgement {
    /// Whether times differ; `None` if that is not known.
    pub fn differs(self) -> Option<bool> {
        match self {
            Self::Faster | Self::Slower | Self::OtherCard => Some(true),
            Self::Equal | Self::Open => Some(false),
            Self::Doubtful | Self::OneBlock | Self::OneProcess | Self::Uncalibrated => None,
        }
    }
}

/// How close to 1 a ratio counts as 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The smallest detectable difference, as a share.
    pub share: f64,
    pub systematic: SystematicError,
    pub other_card: bool,
    timing: Timing,
    /// The whole interval must lie beyond that, not only its middle.
    whole: bool,
}

impl Margin {
    /// Two contenders of a run, timed side by side: the noise of its baseline against itself, as
    /// for ranks.
    pub(super) fn within(run: &Run, ranking: &Ranking, shape: Option<&str>) -> Self {
        let systematic = SystematicError::within(run);
        let noise = limit(run, ranking, shape).map_or(0.0, |found| found.noise);
        Self {
            share: noise.max(systematic.share()),
            systematic,
            other_card: false,
            timing: run.timing(),
            whole: false,
        }
    }

    /// A contender in two runs: a difference within the detectable minimum of both counts as none.
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
                SystematicError::between(base.0, candidate.0),
                candidate.0.timing(),
            )
        }
    }

    /// From the smallest differences that such runs can detect.
    pub fn of(
        limits: [Option<&Detectable>; 2],
        systematic: SystematicError,
        timing: Timing,
    ) -> Self {
        let seen = limits.iter().flatten().map(|limit| limit.effect.ln_1p());
        Self {
            share: (seen.sum::<f64>() + systematic.share().ln_1p()).exp_m1(),
            systematic,
            other_card: false,
            timing,
            whole: true,
        }
    }

    /// Whether a difference lies within its interval and the margin; `None` without an interval.
    pub fn holds(&self, difference: &LogEstimate) -> Option<bool> {
        let half = difference.half_width(CONFIDENCE)?;
        Some(difference.mean.abs() <= half + self.share.ln_1p())
    }

    pub fn judge(&self, estimate: &LogEstimate) -> Judgement {
        let (far, margin) = (estimate.mean.abs(), self.share.ln_1p());
        let side = match estimate.mean > 0.0 {
            true => Judgement::Faster,
            false => Judgement::Slower,
        };
        let Some(half) = estimate.half_width(CONFIDENCE) else {
            return match self.timing.sampled() {
                true => Judgement::OneBlock,
                false if far == 0.0 => Judgement::Equal,
                false if self.systematic == SystematicError::Uncalibrated => {
                    Judgement::Uncalibrated
                }
                false if far <= margin + ROUNDING => Judgement::Doubtful,
                false => side,
            };
        };
        let sure = far - half;
        match if self.whole { sure } else { far } {
            _ if self.timing.sampled() && estimate.is_of_one_process() => Judgement::OneProcess,
            _ if sure <= 0.0 => Judgement::Open,
            near if near <= margin => Judgement::Doubtful,
            _ if self.other_card && sure <= GRAVE.ln_1p() => Judgement::OtherCard,
            _ => side,
        }
    }
}

/// The result of the A/A arm for a shape, or for the mean.
pub fn limit<'a>(run: &Run, ranking: &'a Ranking, shape: Option<&str>) -> Option<&'a Detectable> {
    let Some(shape) = shape else {
        return ranking.detectable.as_ref();
    };
    let index = run.header.shapes.iter().position(|s| s.name == shape)?;
    ranking.shape_detectable.get(index)?.as_ref()
}
