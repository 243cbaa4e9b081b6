use maud::{Markup, html};

use super::RankedRun;
use super::plot::{Scale, across, clip, data, range, short, ticks};
use crate::table::csv_field as field;
use dgx_core::domain::{ContenderId, Joined};
use dgx_core::stats::KeptSample;

const ROW: f64 = 34.0;
/// Dots drawn per contender for its samples in order.
const DOTS: usize = 160;
/// Points of the curve of a distribution.
const STEPS: usize = 60;
/// This share of a cell's samples, at either end, may lie outside the picture.
const BEYOND: f64 = 0.01;

/// Every cell's samples twice: their distribution, and in the order they were taken, with the
/// clock. All plots have one range of times.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    if ranked.run.tally.is_empty() {
        return html! {};
    }
    let shapes = ranked.run.header.shapes.iter();
    let panels: Vec<(&str, Vec<Strip>)> = shapes
        .map(|shape| (shape.name.as_str(), strips(ranked, &shape.name)))
        .filter(|(_, strips)| !strips.is_empty())
        .collect();
    let strips = || panels.iter().flat_map(|(_, strips)| strips);
    let Some((low, high)) = range(strips().flat_map(Strip::most)) else {
        return html! {};
    };
    let times = (low.min(0.995), high.max(1.005));
    let clocks = range(strips().flat_map(|s| s.clocks()));
    html! {
        div.grid { @for (shape, strips) in &panels { (plot(shape, strips, times, clocks)) } }
        p.note {
            "Left the share of a contender’s samples that are no slower than so much beside its own median \
             (the upright line); the circle is the estimate. Right the same samples in the order they were taken, \
             slower ones higher, thin lines between processes"
            @if let Some((low, high)) = clocks {
                (format!(", and in orange the SM clock, {low:.0} to {high:.0} MHz from bottom to top"))
            }
            ". All have the same range of times; the slowest and fastest hundredth of a cell may lie at its edge. n counts samples."
        }
    }
}

struct Strip<'a> {
    contender: &'a ContenderId,
    /// Process by process, in the order they were taken.
    taken: Vec<KeptSample>,
    /// Times over the strip's median, ascending.
    sorted: Vec<f64>,
    median: f64,
    estimate: f64,
    samples: usize,
    outliers: usize,
}

impl Strip<'_> {
    fn label(&self) -> String {
        let (all, drawn, far) = (self.samples, self.sorted.len(), self.outliers);
        let name = self.contender;
        match all == drawn {
            true => format!("{name}: {all} samples, {far} outliers"),
            false => format!("{name}: {all} samples, {drawn} of them drawn, about {far} outliers"),
        }
    }

    fn quantile(&self, share: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[(share * last as f64).round() as usize]
    }

    /// The range that the picture must show.
    fn most(&self) -> [f64; 2] {
        [self.quantile(BEYOND), self.quantile(1.0 - BEYOND)]
    }

    fn clocks(&self) -> impl Iterator<Item = f64> {
        self.taken.iter().filter_map(|s| s.clock_mhz).map(f64::from)
    }

    fn over_median(&self, sample: &KeptSample) -> f64 {
        (f64::from(sample.log) - self.median).exp()
    }
}

fn strips<'a>(ranked: &'a RankedRun, shape: &str) -> Vec<Strip<'a>> {
    let rows = ranked.ranking.rows.iter();
    rows.filter_map(|r| strip(ranked, &r.contender, shape))
        .collect()
}

fn strip<'a>(ranked: &'a RankedRun, contender: &'a ContenderId, shape: &str) -> Option<Strip<'a>> {
    let time = ranked.ranking.cell(contender, shape)?.time.as_ref()?;
    let taken = ranked.run.samples(contender, shape)?.in_order();
    let mut logs: Vec<f64> = taken.iter().map(|s| f64::from(s.log)).collect();
    logs.sort_by(f64::total_cmp);
    let median = *logs.get(logs.len() / 2)?;
    Some(Strip {
        contender,
        taken,
        sorted: logs.iter().map(|l| (l - median).exp()).collect(),
        median,
        estimate: (time.log.mean - median).exp(),
        samples: time.samples,
        outliers: time.outliers,
    })
}

fn plot(
    shape: &str,
    strips: &[Strip],
    (low, high): (f64, f64),
    clocks: Option<(f64, f64)>,
) -> Markup {
    let x = Scale::log((low, high), (126.0, 252.0));
    let height = ROW * strips.len() as f64 + 22.0;
    let percents = ticks((low - 1.0) * 100.0, (high - 1.0) * 100.0, 3);
    let marks: Vec<f64> = percents.iter().map(|p| 1.0 + p / 100.0).collect();
    let signed = |v: f64| {
        let percent = ((v - 1.0) * 1e4).round() / 100.0;
        let plus = if percent > 0.0 { "+" } else { "" };
        format!("{plus}{} %", short(percent))
    };
    html! {
        figure data-s=(shape) {
            figcaption { (shape) (data(&format!("samples-{shape}"), &csv(shape, strips))) }
            svg viewBox={ "0 0 400 " (height) } role="img" aria-label={ "Samples on " (shape) } {
                line.ref x1=(x.at(1.0)) x2=(x.at(1.0)) y1="0" y2=(height - 20.0) {}
                @for (i, strip) in strips.iter().enumerate() {
                    @let top = ROW * i as f64 + 2.0;
                    @let rise = Scale::linear((0.0, 1.0), (top + ROW - 6.0, top));
                    @let slow = Scale::log((low, high), (top + ROW - 6.0, top));
                    g data-c=(strip.contender) {
                        title { (strip.label()) }
                        text x="120" y=(top + 12.0) text-anchor="end" { (clip(strip.contender.as_str())) }
                        text.label x="120" y=(top + 24.0) text-anchor="end" { "n = " (strip.samples) }
                        path.line d=(ecdf(strip, &x, &rise)) {}
                        circle.mark cx=(x.at(strip.estimate)) cy=(rise.at(0.5)) r="2.6" {}
                        (ordered(strip, &slow, clocks, top))
                    }
                }
                (across(height - 20.0, &x, &marks, signed))
                path.axis d=(format!("M266 {}H390", height - 20.0)) {}
                text.label x="328" y=(height - 6.0) text-anchor="middle" { "in time →" }
            }
        }
    }
}

/// The share of samples that are no slower, at some shares.
fn ecdf(strip: &Strip, x: &Scale, rise: &Scale) -> String {
    let steps = STEPS.min(strip.sorted.len());
    let mut path = format!("M{} {}", x.at(strip.sorted[0]), rise.at(0.0));
    for step in 1..=steps {
        let share = step as f64 / steps as f64;
        path += &format!("H{}V{}", x.at(strip.quantile(share)), rise.at(share));
    }
    path
}

/// Samples in the order they were taken, with the clock behind them.
fn ordered(strip: &Strip, slow: &Scale, clocks: Option<(f64, f64)>, top: f64) -> Markup {
    let every = strip.taken.len().div_ceil(DOTS);
    let last = strip.taken.len().max(2) - 1;
    let along = Scale::linear((0.0, last as f64), (268.0, 388.0));
    let chosen = || strip.taken.iter().enumerate().step_by(every);
    let dots: String = chosen()
        .map(|(i, s)| {
            format!(
                "M{} {}h1.5",
                along.at(i as f64),
                slow.at(strip.over_median(s))
            )
        })
        .collect();
    let borders: String = strip
        .taken
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0].process != pair[1].process)
        .map(|(i, _)| format!("M{} {top}v{}", along.at(i as f64 + 0.5), ROW - 6.0))
        .collect();
    let clock = clocks.map(|range| {
        let level = Scale::linear(range, (top + ROW - 6.0, top));
        let points = chosen().filter_map(|(i, s)| Some((i, f64::from(s.clock_mhz?))));
        points
            .map(|(i, clock)| format!("{} {}", along.at(i as f64), level.at(clock)))
            .joined("L")
    });
    html! {
        path.axis d=(borders) {}
        @if let Some(points) = clock.filter(|p| !p.is_empty()) { path.clock d={ "M" (points) } {} }
        path.tick d=(dots) {}
    }
}

fn csv(shape: &str, strips: &[Strip]) -> String {
    let mut rows = "shape,contender,process,number,µs,MHz\n".to_owned();
    for strip in strips {
        let (shape, contender) = (field(shape), field(strip.contender.as_str()));
        for sample in &strip.taken {
            let clock = sample.clock_mhz.map_or(String::new(), |c| c.to_string());
            let micros = f64::from(sample.log).exp();
            let (process, number) = (sample.process, sample.number);
            rows += &format!("{shape},{contender},{process},{number},{micros:.3},{clock}\n");
        }
    }
    rows
}
