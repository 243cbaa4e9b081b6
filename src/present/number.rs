//! One way to write each kind of number.

use crate::domain::Interval;

/// `1.92×`; below 1.1 with a third decimal, where two would round a loss away.
pub(crate) fn speedup(ratio: f64) -> String {
    match ratio {
        r if r < 1.1 => format!("{r:.3}×"),
        r if r < 10.0 => format!("{r:.2}×"),
        r => format!("{r:.1}×"),
    }
}

/// A threshold as it was asked for: `1.40×`, `1.0001×`.
pub(crate) fn threshold(ratio: f64) -> String {
    let short = format!("{ratio:.2}");
    match short.parse::<f64>() {
        Ok(value) if value == ratio => format!("{short}×"),
        _ => format!("{ratio}×"),
    }
}

/// `1.92× [1.90 1.94]`, or only the estimate where there is no interval. A
/// narrow interval gets the decimals it takes to show that it has a width.
pub(crate) fn interval(interval: &Interval) -> String {
    let (Some(lower), Some(upper)) = (interval.lower, interval.upper) else {
        return speedup(interval.estimate);
    };
    let number = |x: f64| match upper - lower {
        width if width < 0.02 => format!("{x:.3}"),
        _ => speedup(x).trim_end_matches('×').to_owned(),
    };
    format!(
        "{}× [{} {}]",
        number(interval.estimate),
        number(lower),
        number(upper)
    )
}

/// `16777216`: exact, because counters repeat exactly.
pub(crate) fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// `61 %`, with decimals as it gets small.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        v if v >= 10.0 => format!("{value:.0} %"),
        v if v >= 0.1 => format!("{value:.1} %"),
        _ => format!("{value:.2} %"),
    }
}

/// `+3.1 %` or `−0.4 %`.
pub(crate) fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}
