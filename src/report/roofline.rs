use maud::{Markup, html};

use super::Subject;
use super::plot::{Scale, range, short, ticks};
use crate::domain::roofline::{Ceiling, Work};
use crate::domain::{ContenderId, Shape};
use crate::rank::Kind;

const ROW: f64 = 18.0;

/// One small plot a shape: what each contender achieves against the ceiling of
/// the device there, and one over all shapes.
pub(super) fn section(subject: &Subject) -> Markup {
    let shapes = &subject.run.header.shapes;
    let Some(ceiling) = subject.run.header.device.ceiling() else {
        return html! { p.note { "The record does not say what the device can do." } };
    };
    if subject.ranking.cells.iter().all(|c| c.time.is_none()) {
        return html! {};
    }
    html! {
        div.grid {
            (overall(subject, &ceiling))
            @for shape in shapes { (plot(subject, &ceiling, shape)) }
        }
        p.note {
            "The red line is the most the device could do on the shape: tensor cores at the clock \
             the samples ran at, or memory at its full bandwidth with every byte moved once, \
             whichever is less."
        }
    }
}

/// Operations over the bytes that must move.
fn intensity(shape: &Shape) -> f64 {
    shape.flops() / shape.min_bytes().0 as f64
}

fn tera(shape: &Shape, micros: f64) -> f64 {
    shape.flops() / micros / 1e6
}

/// The classic picture: every shape by its intensity, its best contender and
/// its baseline under the roof.
fn overall(subject: &Subject, ceiling: &Ceiling) -> Markup {
    let run = &subject.run;
    let peak = ceiling.tensor_flops * ceiling.clock_mhz / 1e6;
    let slope = ceiling.bandwidth / 1e12;
    let ridge = peak / slope;
    let xs = run.header.shapes.iter().map(intensity);
    let Some((low, high)) = range(xs.chain([ridge])) else {
        return html! {};
    };
    let (low, high) = (low * 0.6, high * 1.6);
    let points: Vec<(f64, f64, &str, String)> = points(subject);
    let Some((least, _)) = range(points.iter().map(|p| p.1)) else {
        return html! {};
    };
    let x = Scale::log((low, high), (46.0, 890.0));
    let y = Scale::log((least.min(slope * low) * 0.8, peak * 1.25), (190.0, 10.0));
    let roof = format!(
        "M{} {} L{} {} L{} {}",
        x.at(low),
        y.at(slope * low),
        x.at(ridge),
        y.at(peak),
        x.at(high),
        y.at(peak)
    );
    html! {
        figure.wide {
            figcaption {
                "All shapes: TFLOP/s by operations per byte (log–log). "
                b.cbest { "●" } " the fastest contender, " b.cbase { "●" } " the baseline"
                @if let Some(yardstick) = &run.header.yardstick { ", " b.cyard { "●" } " " (yardstick) }
                ", under the most the device can do"
            }
            svg viewBox="0 0 900 225" role="img" aria-label="Roofline over all shapes" {
                path.roof d=(roof) stroke-width="1.5" {}
                text.label x=(x.at(ridge) + 6.0) y=(y.at(peak) - 5.0) { (short(peak)) " TFLOP/s at " (short(ceiling.clock_mhz)) " MHz" }
                @for (px, py, class, title) in &points {
                    circle class=(class) cx=(x.at(*px)) cy=(y.at(*py)) r="4" fill-opacity="0.75" { title { (title) } }
                }
                line.axis x1="46" x2="890" y1="195" y2="195" {}
                @for v in [30.0, 100.0, 300.0, 1000.0, 3000.0].iter().filter(|v| (low..high).contains(*v)) {
                    text.label x=(x.at(*v)) y="209" text-anchor="middle" { (short(*v)) }
                }
                text.label x="890" y="222" text-anchor="end" { "operations per byte" }
                @for v in [0.1, 1.0, 10.0, 30.0, 100.0, 300.0, 1000.0].iter().filter(|v| **v < peak * 1.2 && **v > least * 0.8) {
                    text.label x="42" y=(y.at(*v) + 4.0) text-anchor="end" { (short(*v)) }
                }
            }
        }
    }
}

/// Best contender, baseline and yardstick of each shape.
fn points(subject: &Subject) -> Vec<(f64, f64, &'static str, String)> {
    let mut points = Vec::new();
    for shape in &subject.run.header.shapes {
        for row in &subject.ranking.rows {
            let cell = subject.ranking.cell(&row.contender, &shape.name);
            let Some(time) = cell.and_then(|c| c.time.as_ref()) else {
                continue;
            };
            let class = match row.kind {
                Kind::Yardstick => "yard",
                _ if time.best => "barbest",
                Kind::Baseline => "bar",
                Kind::Contender => continue,
            };
            let tera = tera(shape, time.estimate().0);
            let title = format!(
                "{} on {}: {} TFLOP/s",
                row.contender,
                shape.name,
                short(tera)
            );
            points.push((intensity(shape), tera, class, title));
        }
    }
    points
}

fn plot(subject: &Subject, ceiling: &Ceiling, shape: &Shape) -> Markup {
    let timed: Vec<(&ContenderId, f64, bool, Option<f64>)> = subject
        .ranking
        .rows
        .iter()
        .filter_map(|r| {
            let time = subject
                .ranking
                .cell(&r.contender, &shape.name)?
                .time
                .as_ref()?;
            Some((&r.contender, time.estimate().0, time.best, time.clock_mhz))
        })
        .collect();
    let clock = timed.iter().find_map(|t| t.3);
    if timed.is_empty() {
        return html! {};
    }
    let (floor, _) = ceiling.at(clock).floor(&Work::least(shape));
    let ceiling = tera(shape, floor.0);
    let x = Scale::linear((0.0, ceiling * 1.08), (126.0, 380.0));
    let height = ROW * timed.len() as f64 + 24.0;
    html! {
        figure {
            figcaption { (shape.name) ": floor " (floor) " µs" }
            svg viewBox={ "0 0 400 " (height) } role="img" aria-label={ "Roofline of " (shape.name) } {
                @for (i, (contender, micros, best, _)) in timed.iter().enumerate() {
                    @let top = ROW * i as f64 + 3.0;
                    @let value = tera(shape, *micros);
                    text x="120" y=(top + 10.0) text-anchor="end" { (clip(contender.as_str())) title { (contender) } }
                    rect class=(if *best { "barbest" } else { "bar" }) x="126" y=(top) height="12" width=(x.at(value) - 126.0) {}
                    text.label x=(x.at(value) + 4.0) y=(top + 10.0) { (short(value)) }
                }
                line.roof x1=(x.at(ceiling)) x2=(x.at(ceiling)) y1="0" y2=(height - 20.0) stroke-width="1.5" {}
                @for tick in ticks(0.0, ceiling, 4) {
                    text.label x=(x.at(tick)) y=(height - 6.0) text-anchor="middle" { (short(tick)) }
                }
                text.label x="120" y=(height - 6.0) text-anchor="end" { "TFLOP/s" }
            }
        }
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
