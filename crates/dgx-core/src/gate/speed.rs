//! Rules about speed: a threshold against an interval.

use super::ruling::Ruling;
use crate::domain::{Interval, Timing};
use crate::number::{self, percent, speedup};
use crate::rank::{GRAVE, Judgement, Margin, SystematicError};
use crate::stats::{CONFIDENCE, Detectable, LogEstimate};

pub(super) struct SpeedRuling {
    pub ruling: Ruling,
    pub ratio: Interval,
    pub reason: Option<String>,
}

const ONE_PROCESS: &str = "from one process: differences between processes are not in the interval";
const ONE_BLOCK: &str = "one block has no interval: measure longer";
const UNCALIBRATED: &str =
    "modelled times for this device were never compared with a GPU: measure it";

/// Why samples of one process decide nothing.
pub(super) fn one_process_reason(estimate: &LogEstimate, timing: Timing) -> Option<String> {
    let one_process_reason = timing.sampled() && estimate.is_of_one_process();
    one_process_reason.then(|| ONE_PROCESS.to_owned())
}

/// Why a ratio at this distance (a logarithm) from a threshold decides nothing.
fn systematic_reason(systematic: SystematicError, distance: f64) -> Option<String> {
    let reason = match systematic {
        SystematicError::None => return None,
        SystematicError::Model(error) => format!(
            "nearer than the {} by which modelled times are off: measure it on a GPU",
            percent(error)
        ),
        SystematicError::Uncalibrated => return Some(UNCALIBRATED.to_owned()),
        SystematicError::Data if distance >= 0.0 => return None,
        SystematicError::Data => format!(
            "short by less than the {} that other data may cost: give both sweeps one --data-seed",
            percent(systematic.share())
        ),
        SystematicError::OneProcess => ONE_PROCESS.to_owned(),
    };
    (distance.abs() < systematic.share().ln_1p()).then_some(reason)
}

/// Refuses a ratio near 1 with a threshold near 1, in a run whose baseline was not timed against
/// itself: the smallest detectable difference is unknown.
pub(super) fn uncontrolled(estimate: &LogEstimate, threshold: f64) -> Option<SpeedRuling> {
    let near = |log: f64| log.abs() < GRAVE.ln_1p();
    let sampled = estimate.se.is_some() && !estimate.is_of_one_process();
    let fine = near(threshold.ln()) && near(estimate.mean - threshold.ln());
    (sampled && fine).then(|| SpeedRuling {
        ruling: Ruling::Refused,
        ratio: estimate.ratio(CONFIDENCE),
        reason: Some(format!(
            "without an A/A arm (the baseline timed twice) the run shows no difference below {}",
            percent(GRAVE)
        )),
    })
}

/// Compares an estimated speedup with a threshold.
pub(super) fn judge(
    estimate: &LogEstimate,
    threshold: f64,
    detectable: Option<&Detectable>,
    timing: Timing,
    systematic: SystematicError,
) -> SpeedRuling {
    let ratio = estimate.ratio(CONFIDENCE);
    let judged = |ruling, reason: Option<String>| SpeedRuling {
        ruling,
        ratio,
        reason,
    };
    if let Some(why) = one_process_reason(estimate, timing) {
        return judged(Ruling::Undecided, Some(why));
    }
    if let Some(why) = systematic_reason(systematic, estimate.mean - threshold.ln()) {
        return judged(Ruling::Undecided, Some(why));
    }
    // A threshold of exactly 1 only asks for the sign of a difference, which needs no minimum
    // resolution. A threshold finer than the run can detect matters only to designs close to it.
    let asked = threshold.ln().abs();
    if let Some(limit) = detectable
        && estimate.se.is_some()
        && threshold != 1.0
        && asked < limit.effect.ln_1p()
        && (estimate.mean - threshold.ln()).abs() < limit.effect.ln_1p()
    {
        let reason = format!(
            "{} is {} from equal, and this run detects differences of {} or more",
            number::threshold(threshold),
            percent(asked.exp_m1()),
            percent(limit.effect)
        );
        return judged(Ruling::Refused, Some(reason));
    }
    let short = || format!("{} short", speedup(threshold - ratio.estimate));
    let holds = || {
        let threshold = number::threshold(threshold);
        format!("the interval contains {threshold}: measure longer")
    };
    match (ratio.lower, ratio.upper) {
        (Some(lower), _) if lower >= threshold => judged(Ruling::Passed, None),
        (_, Some(upper)) if upper < threshold => judged(Ruling::Failed, Some(short())),
        (Some(_), Some(_)) => judged(Ruling::Undecided, Some(holds())),
        _ if timing.sampled() => judged(Ruling::Undecided, Some(ONE_BLOCK.to_owned())),
        _ if ratio.estimate >= threshold => judged(Ruling::Passed, None),
        _ => judged(Ruling::Failed, Some(short())),
    }
}

/// Slower only if the whole interval lies below the undetectable range around 1; an interval that
/// includes a grave loss is too wide to pass.
pub(super) fn not_slower(estimate: &LogEstimate, margin: &Margin) -> SpeedRuling {
    let ratio = estimate.ratio(CONFIDENCE);
    let slower = || format!("{} slower", percent(1.0 / ratio.estimate - 1.0));
    let judgement = margin.judge(estimate);
    let grave = ratio.lower.is_some_and(|lower| lower < 1.0 / (1.0 + GRAVE));
    let (ruling, reason) = match judgement {
        Judgement::OneProcess => (Ruling::Undecided, ONE_PROCESS.to_owned()),
        Judgement::OneBlock => (Ruling::Undecided, ONE_BLOCK.to_owned()),
        Judgement::Uncalibrated => (Ruling::Undecided, UNCALIBRATED.to_owned()),
        Judgement::OtherCard if estimate.mean < 0.0 => {
            (Ruling::Undecided, slower() + ", on another card")
        }
        Judgement::Slower => (Ruling::Failed, slower()),
        _ if grave => {
            let loss = percent(GRAVE);
            let why = format!("a loss of {loss} cannot be ruled out: measure longer");
            (Ruling::Undecided, why)
        }
        _ => (Ruling::Passed, String::new()),
    };
    SpeedRuling {
        ruling,
        ratio,
        reason: Some(reason).filter(|reason| !reason.is_empty()),
    }
}

pub(super) fn wanted(margin: &Margin) -> String {
    match margin.share > 0.0 {
        true if margin.systematic == SystematicError::Data => {
            format!("within {} on other data", percent(margin.share))
        }
        true => format!("within {}", percent(margin.share)),
        false => "no slower".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::detectable;

    fn estimate(ratio: f64, se: f64) -> LogEstimate {
        LogEstimate {
            mean: ratio.ln(),
            se: Some(se),
            df: 50.0,
            blocks: 60,
            processes: 5,
        }
    }

    fn ruling(ratio: f64, threshold: f64) -> Ruling {
        let seen = detectable(estimate(1.0, 0.002));
        judge(
            &estimate(ratio, 0.002),
            threshold,
            seen.as_ref(),
            Timing::Measured,
            SystematicError::None,
        )
        .ruling
    }

    #[test]
    fn thresholds() {
        assert_eq!(ruling(1.5, 1.4), Ruling::Passed);
        assert_eq!(ruling(1.3, 1.4), Ruling::Failed);
        assert_eq!(ruling(1.4, 1.4), Ruling::Undecided);
        assert_eq!(ruling(1.0, 1.0), Ruling::Undecided);
        assert_eq!(ruling(1.02, 1.0), Ruling::Passed);
        assert_eq!(ruling(1.0, 0.98), Ruling::Passed);
    }

    /// The whole table of docs/methodology.md: every ratio with every threshold.
    #[test]
    fn a_rule_is_refused_only_where_its_fineness_matters() {
        let seen = detectable(estimate(1.0, 0.002)).unwrap();
        let fine = seen.effect.ln_1p();
        let (mut refused, mut clear) = (0, 0);
        for step in -400..=400 {
            let ratio = (f64::from(step) / 200.0).exp();
            for threshold in [
                0.5, 0.98, 0.996, 0.999, 1.0, 1.001, 1.002, 1.005, 1.02, 1.4, 4.0,
            ] {
                let found = ruling(ratio, threshold);
                let half = estimate(ratio, 0.002).half_width(CONFIDENCE).unwrap();
                let (far, asked) = (ratio.ln() - threshold.ln(), threshold.ln().abs());
                let expected = if threshold != 1.0 && asked < fine && far.abs() < fine {
                    refused += 1;
                    Ruling::Refused
                } else if far >= half {
                    Ruling::Passed
                } else if far < -half {
                    Ruling::Failed
                } else {
                    Ruling::Undecided
                };
                clear += usize::from(asked < fine && found == Ruling::Passed);
                assert_eq!(found, expected, "{ratio} against {threshold}");
            }
        }
        assert!(refused > 5 && clear > 500, "{refused} {clear}");
        // The final of the README against a rule finer than its 0.3 %.
        assert_eq!(ruling(2.727, 1.002), Ruling::Passed);
        assert_eq!(ruling(0.5, 1.002), Ruling::Failed);
        assert_eq!(ruling(1.001, 1.002), Ruling::Refused);
    }

    #[test]
    fn slower_is_what_the_whole_interval_says() {
        let seen = detectable(estimate(1.0, 0.001)).unwrap();
        let ruling = |ratio, se, other_card| {
            let mut margin = Margin::of(
                [Some(&seen), Some(&seen)],
                SystematicError::None,
                Timing::Measured,
            );
            margin.other_card = other_card;
            not_slower(&estimate(ratio, se), &margin).ruling
        };
        for (ratio, se, same, other) in [
            (1.2, 0.001, Ruling::Passed, Ruling::Passed),
            (1.0, 0.001, Ruling::Passed, Ruling::Passed),
            // Below 1 by more than its interval, but by less than both can detect.
            (0.996, 0.001, Ruling::Passed, Ruling::Passed),
            (0.98, 0.001, Ruling::Failed, Ruling::Undecided),
            (0.90, 0.001, Ruling::Failed, Ruling::Failed),
            (0.98, 0.01, Ruling::Passed, Ruling::Passed),
            (0.98, 0.03, Ruling::Undecided, Ruling::Undecided),
            (1.0, 0.1, Ruling::Undecided, Ruling::Undecided),
            (1.5, 0.1, Ruling::Passed, Ruling::Passed),
        ] {
            assert_eq!(ruling(ratio, se, false), same, "{ratio} ± {se}");
            assert_eq!(ruling(ratio, se, true), other, "{ratio} ± {se}, other card");
        }
        let exact = |ratio: f64, timing| {
            let point = LogEstimate::point(ratio.ln());
            not_slower(
                &point,
                &Margin::of([None, None], SystematicError::None, timing),
            )
            .ruling
        };
        assert_eq!(exact(1.0, Timing::Modelled), Ruling::Passed);
        assert_eq!(exact(0.9999, Timing::Modelled), Ruling::Failed);
        assert_eq!(exact(1.0, Timing::Measured), Ruling::Undecided);
        assert_eq!(exact(f64::NAN, Timing::Modelled), Ruling::Failed);
    }

    #[test]
    fn points_pass_by_their_value_unless_they_were_to_be_measured() {
        let point = LogEstimate::point(1.5f64.ln());
        let at = |threshold, timing| {
            judge(&point, threshold, None, timing, SystematicError::None).ruling
        };
        assert_eq!(at(1.4, Timing::Modelled), Ruling::Passed);
        assert_eq!(at(1.6, Timing::Recorded), Ruling::Failed);
        assert_eq!(at(1.4, Timing::Measured), Ruling::Undecided);
        let nan = LogEstimate::point(f64::NAN);
        assert_eq!(
            judge(&nan, 1.0, None, Timing::Recorded, SystematicError::None).ruling,
            Ruling::Failed
        );
    }

    #[test]
    fn one_process_of_another_tool_decides_only_what_is_grave() {
        use Ruling::{Failed, Passed, Undecided};
        let rulings = |ratio: f64| {
            let sure = estimate(ratio, 0.001);
            let margin = Margin::of([None, None], SystematicError::OneProcess, Timing::Recorded);
            [
                judge(
                    &sure,
                    1.4,
                    None,
                    Timing::Recorded,
                    SystematicError::OneProcess,
                )
                .ruling,
                not_slower(&sure, &margin).ruling,
            ]
        };
        assert_eq!(rulings(1.5), [Passed, Passed]);
        assert_eq!(rulings(1.42), [Undecided, Passed]);
        assert_eq!(rulings(1.2), [Failed, Passed]);
        assert_eq!(rulings(0.97), [Failed, Passed]);
        assert_eq!(rulings(0.9), [Failed, Failed]);
    }

    #[test]
    fn two_designs_are_told_apart_by_a_model_only_beyond_its_error() {
        let rulings = |ratio: f64, systematic: SystematicError| {
            let point = LogEstimate::point(ratio.ln());
            let margin = Margin::of([None, None], systematic, Timing::Modelled);
            [
                judge(&point, 1.4, None, Timing::Modelled, systematic).ruling,
                not_slower(&point, &margin).ruling,
            ]
        };
        use Ruling::{Failed, Passed, Undecided};
        let near = SystematicError::Model(0.05);
        assert_eq!(rulings(1.5, near), [Passed, Passed]);
        assert_eq!(rulings(1.43, near), [Undecided, Passed]);
        assert_eq!(rulings(1.37, near), [Undecided, Passed]);
        assert_eq!(rulings(0.97, near), [Failed, Passed]);
        assert_eq!(rulings(0.9, near), [Failed, Failed]);
        assert_eq!(
            rulings(1.5, SystematicError::Uncalibrated),
            [Undecided, Undecided]
        );
        assert_eq!(rulings(0.97, SystematicError::None), [Failed, Failed]);
    }
}
