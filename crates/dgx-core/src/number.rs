//! One way to write each kind of number.

use crate::domain::Interval;

/// `1.92×`; below 1.1 with a third decimal, where two would round a loss away.
pub fn speedup(ratio: f64) -> String {
    match ratio {
        r if r < 1.1 => format!("{r:.3}×"),
        r if r < 10.0 => format!("{r:.2}×"),
        r => format!("{r:.1}×"),
    }
}

/// A threshold as the user wrote it: `1.40×`, `1.0001×`.
pub fn threshold(ratio: f64) -> String {
    let short = format!("{ratio:.2}");
    match short.parse::<f64>() {
        Ok(value) if value == ratio => format!("{short}×"),
        _ => format!("{ratio}×"),
    }
}

/// `1.92× [1.90 1.94]`, or only the estimate if there is no interval: all three with the same
/// number of decimals, as many as the smallest number needs, or as show that the interval has a
/// width.
pub fn interval(interval: &Interval) -> String {
    let (Some(lower), Some(upper)) = (interval.lower, interval.upper) else {
        return speedup(interval.estimate);
    };
    let decimals = match (upper - lower, lower) {
        (width, _) if width < 0.02 => 3,
        (_, lower) if lower < 1.1 => 3,
        (_, lower) if lower < 10.0 => 2,
        _ => 1,
    };
    let number = |x: f64| format!("{x:.decimals$}");
    format!(
        "{}× [{} {}]",
        number(interval.estimate),
        number(lower),
        number(upper)
    )
}

/// `16777216`: exact, because counters repeat exactly.
pub fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// `61 %`, with more decimals for small shares.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        v if v >= 10.0 => format!("{value:.0} %"),
        v if v >= 0.1 => format!("{value:.1} %"),
        _ => format!("{value:.2} %"),
    }
}

/// `+3.1 %` or `−0.4 %`.
pub fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_cell_have_as_many_decimals() {
        let shown = |estimate: f64, lower: f64, upper: f64| {
            let (lower, upper) = (Some(lower), Some(upper));
            interval(&Interval {
                estimate,
                lower,
                upper,
            })
        };
        assert_eq!(shown(1.12, 1.08, 1.16), "1.120× [1.080 1.160]");
        assert_eq!(shown(1.92, 1.90, 1.94), "1.92× [1.90 1.94]");
        assert_eq!(shown(1.921, 1.92, 1.922), "1.921× [1.920 1.922]");
        assert_eq!(shown(9.9, 9.5, 10.4), "9.90× [9.50 10.40]");
        assert_eq!(shown(12.0, 11.0, 13.0), "12.0× [11.0 13.0]");
    }
}
