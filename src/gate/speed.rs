//! Rules about speed: a threshold against an interval.

use super::ruling::Ruling;
use crate::domain::Interval;
use crate::present::{self, interval, percent, speedup};
use crate::record::schema::Timing;
use crate::stats::{CONFIDENCE, Detectable, LogEstimate};

pub struct Judged {
    pub ruling: Ruling,
    pub found: String,
    pub ratio: Interval,
    pub reason: Option<String>,
}

/// Holds an estimated speedup against a threshold.
pub fn judge(
    estimate: &LogEstimate,
    threshold: f64,
    detectable: Option<&Detectable>,
    timing: Timing,
) -> Judged {
    let ratio = estimate.ratio(CONFIDENCE);
    let found = interval(&ratio);
    let judged = |ruling, reason: Option<String>| Judged {
        ruling,
        found: found.clone(),
        ratio,
        reason,
    };
    // A threshold of exactly 1 asks which side of equal a design is on, which
    // needs no resolution of its own.
    let asked = threshold.ln().abs();
    if let Some(limit) = detectable
        && threshold != 1.0
        && asked < limit.effect.ln_1p()
    {
        let reason = format!(
            "{} is {} from equal, and this run tells differences of {} or more apart",
            present::threshold(threshold),
            percent(asked.exp_m1()),
            percent(limit.effect)
        );
        return judged(Ruling::Refused, Some(reason));
    }
    let short = |by: f64| format!("{} short", speedup(by));
    match (ratio.lower, ratio.upper) {
        (Some(lower), _) if lower >= threshold => judged(Ruling::Passed, None),
        (_, Some(upper)) if upper < threshold => {
            judged(Ruling::Failed, Some(short(threshold - ratio.estimate)))
        }
        (Some(_), Some(_)) => judged(
            Ruling::Undecided,
            Some(format!(
                "the interval holds {}: measure longer",
                present::threshold(threshold)
            )),
        ),
        _ if timing == Timing::Measured => judged(
            Ruling::Undecided,
            Some("one block has no interval: measure longer".to_owned()),
        ),
        _ if ratio.estimate >= threshold => judged(Ruling::Passed, None),
        _ => judged(Ruling::Failed, Some(short(threshold - ratio.estimate))),
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
        }
    }

    fn ruling(ratio: f64, threshold: f64) -> Ruling {
        let seen = detectable(estimate(1.0, 0.002));
        judge(
            &estimate(ratio, 0.002),
            threshold,
            seen.as_ref(),
            Timing::Measured,
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
        assert_eq!(ruling(1.5, 1.001), Ruling::Refused);
        assert_eq!(ruling(1.0, 0.98), Ruling::Passed);
    }

    #[test]
    fn points_pass_by_their_value_unless_they_were_to_be_measured() {
        let point = LogEstimate::point(1.5f64.ln());
        let at = |threshold, timing| judge(&point, threshold, None, timing).ruling;
        assert_eq!(at(1.4, Timing::Modelled), Ruling::Passed);
        assert_eq!(at(1.6, Timing::Recorded), Ruling::Failed);
        assert_eq!(at(1.4, Timing::Measured), Ruling::Undecided);
        let nan = LogEstimate::point(f64::NAN);
        assert_eq!(
            judge(&nan, 1.0, None, Timing::Recorded).ruling,
            Ruling::Failed
        );
    }
}
