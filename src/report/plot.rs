//! What the drawings share: scales, axes, number formats, colours, and the
//! data behind a drawing.

use maud::{Markup, html};

/// A linear or logarithmic map from values to pixels.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl Scale {
    pub(super) fn linear(values: (f64, f64), pixels: (f64, f64)) -> Self {
        Self::new(values, pixels, false)
    }

    /// Values must be positive.
    pub(super) fn log(values: (f64, f64), pixels: (f64, f64)) -> Self {
        Self::new((values.0.ln(), values.1.ln()), pixels, true)
    }

    fn new((low, high): (f64, f64), (start, end): (f64, f64), log: bool) -> Self {
        // A single value still needs a range around it.
        let pad = if high > low { 0.0 } else { 0.5 };
        Self {
            low: low - pad,
            high: high + pad,
            start,
            end,
            log,
        }
    }

    /// Pixels, rounded so that pages stay small; values outside are clamped.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.ln() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        ((self.start + share * (self.end - self.start)) * 10.0).round() / 10.0
    }
}

/// Round numbers across a range, about `count` of them.
pub(super) fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return vec![low];
    }
    let rough = span / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= rough)
        .unwrap_or(power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A number in its shortest form.
pub(super) fn short(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A horizontal axis: its line, a mark and a number at each tick.
pub(super) fn across(y: f64, x: &Scale, ticks: &[f64], label: impl Fn(f64) -> String) -> Markup {
    let marks: String = ticks
        .iter()
        .map(|t| format!("M{} {y}v4", x.at(*t)))
        .collect();
    html! {
        path.axis d=(format!("M{} {y}H{}{marks}", x.start, x.end)) {}
        @for tick in ticks {
            text.label x=(x.at(*tick)) y=(y + 14.0) text-anchor="middle" { (label(*tick)) }
        }
    }
}

/// A vertical axis.
pub(super) fn up(x: f64, y: &Scale, ticks: &[f64], label: impl Fn(f64) -> String) -> Markup {
    let marks: String = ticks
        .iter()
        .map(|t| format!("M{x} {}h-4", y.at(*t)))
        .collect();
    html! {
        path.axis d=(format!("M{x} {}V{}{marks}", y.start, y.end)) {}
        @for tick in ticks {
            text.label x=(x - 6.0) y=(y.at(*tick) + 4.0) text-anchor="end" { (label(*tick)) }
        }
    }
}

/// 1, 2, 5, 10, … within a range.
pub(super) fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    powers
        .flat_map(|power| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(power)))
        .filter(|tick| (low..=high).contains(tick))
        .collect()
}

/// The numbers behind a drawing, to be saved as a file. The page's script makes the button work.
pub(super) fn data(file: &str, rows: &str) -> Markup {
    html! {
        button.data type="button" data-file={ (file_name(file)) ".csv" } { "CSV" }
        template { (rows) }
    }
}

/// Letters, digits, dots and dashes of a name.
fn file_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || ".-_".contains(c) {
            c
        } else {
            '-'
        }
    };
    name.chars().map(plain).collect()
}

/// The class of the line of this number: eight colours, then the same dashed.
pub(super) fn hue(index: usize) -> String {
    match index / 8 {
        0 => format!("h{}", index % 8),
        _ => format!("h{} dashed", index % 8),
    }
}

/// Names longer than the margin lose their middle.
pub(super) fn clip(name: &str) -> String {
    const ROOM: usize = 19;
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= ROOM {
        return name.to_owned();
    }
    let head: String = chars[..ROOM - 9].iter().collect();
    let tail: String = chars[chars.len() - 8..].iter().collect();
    format!("{head}…{tail}")
}

/// The minimum and maximum of some finite values.
pub(super) fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|v| v.is_finite())
        .fold(None, |range, v| {
            let (low, high) = range.unwrap_or((v, v));
            Some((f64::min(low, v), f64::max(high, v)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(3.0, 3.0, 5), [3.0]);
        assert_eq!(short(1.5), "1.5");
        assert_eq!(short(120.0), "120");
        assert_eq!(decades(0.9, 21.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
    }

    #[test]
    fn names_are_safe_in_files() {
        assert_eq!(file_name("a/b \"c\".d"), "a-b--c-.d");
        assert_eq!((hue(7), hue(8)), ("h7".to_owned(), "h0 dashed".to_owned()));
    }

    #[test]
    fn scales_clamp_and_survive_single_values() {
        let scale = Scale::linear((1.0, 2.0), (0.0, 100.0));
        assert_eq!((scale.at(1.5), scale.at(9.0)), (50.0, 100.0));
        assert_eq!(Scale::log((4.0, 4.0), (0.0, 100.0)).at(4.0), 50.0);
    }
}
