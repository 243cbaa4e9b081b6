use maud::{Markup, html};

use super::Subject;
use super::plot::{Scale, range, short, ticks};
use super::roofline::clip;
use crate::domain::ContenderId;

const ROW: f64 = 20.0;

/// Every sample as a tick (of very many, a fair choice), by contender, one
/// plot a shape.
pub(super) fn section(subject: &Subject) -> Markup {
    if subject.run.tally.is_empty() {
        return html! {};
    }
    html! {
        div.grid { @for shape in &subject.run.header.shapes { (plot(subject, &shape.name)) } }
        p.note {
            "One tick a sample, each contender beside its own median (log scale); the circle is \
             the estimate. Ticks far out are counted, not dropped."
        }
    }
}

struct Strip<'a> {
    contender: &'a ContenderId,
    /// Times over the strip's median.
    relative: Vec<f64>,
    estimate: f64,
    samples: usize,
    outliers: usize,
}

impl Strip<'_> {
    fn told(&self) -> String {
        let (all, drawn, far) = (self.samples, self.relative.len(), self.outliers);
        match all == drawn {
            true => format!("{all} samples, {far} far out"),
            false => format!("{all} samples, {drawn} of them drawn, about {far} far out"),
        }
    }
}

fn strip<'a>(subject: &'a Subject, contender: &'a ContenderId, shape: &str) -> Option<Strip<'a>> {
    let time = subject.ranking.cell(contender, shape)?.time.as_ref()?;
    let samples = subject.run.samples(contender, shape)?;
    let logs: Vec<f64> = samples.logs().collect();
    let mut sorted = logs.clone();
    sorted.sort_by(f64::total_cmp);
    let median = *sorted.get(sorted.len() / 2)?;
    Some(Strip {
        contender,
        relative: logs.iter().map(|l| (l - median).exp()).collect(),
        estimate: (time.log.mean - median).exp(),
        samples: time.samples,
        outliers: time.outliers,
    })
}

fn plot(subject: &Subject, shape: &str) -> Markup {
    let rows = subject.ranking.rows.iter();
    let strips: Vec<Strip> = rows
        .filter_map(|r| strip(subject, &r.contender, shape))
        .collect();
    let Some((low, high)) = range(strips.iter().flat_map(|s| s.relative.iter().copied())) else {
        return html! {};
    };
    let (low, high) = (low.min(0.995), high.max(1.005));
    let x = Scale::log((low, high), (126.0, 385.0));
    let height = ROW * strips.len() as f64 + 22.0;
    html! {
        figure {
            figcaption { (shape) }
            svg viewBox={ "0 0 400 " (height) } role="img" aria-label={ "Samples on " (shape) } {
                line.ref x1=(x.at(1.0)) x2=(x.at(1.0)) y1="0" y2=(height - 20.0) {}
                @for (i, strip) in strips.iter().enumerate() {
                    @let top = ROW * i as f64 + 4.0;
                    text x="120" y=(top + 10.0) text-anchor="end" { (clip(strip.contender.as_str())) title { (strip.contender) } }
                    path.tick d=(ticks_path(&strip.relative, &x, top)) {
                        title { (strip.told()) }
                    }
                    circle.mark cx=(x.at(strip.estimate)) cy=(top + 6.0) r="2.6" {}
                }
                @for tick in ticks((low - 1.0) * 100.0, (high - 1.0) * 100.0, 5) {
                    text.label x=(x.at(1.0 + tick / 100.0)) y=(height - 6.0) text-anchor="middle" {
                        @if tick > 0.0 { "+" } (short(tick)) " %"
                    }
                }
            }
        }
    }
}

/// All of a strip's ticks as one path, which keeps pages small.
fn ticks_path(values: &[f64], x: &Scale, top: f64) -> String {
    let tick = |v: &f64| format!("M{} {top}v12", x.at(*v));
    values.iter().map(tick).collect()
}
