use std::collections::HashSet;

use maud::{Markup, html};

use super::RankedRun;
use super::plot::{Scale, across, clip, data, decades, range, short, ticks, up};
use crate::table::{Table, row};
use dgx_core::domain::roofline::Ceiling;
use dgx_core::domain::{ContenderId, Shape};
use dgx_core::rank::EntrantKind;
use dgx_core::record::Run;

const ROW: f64 = 18.0;

/// One small plot per shape, with each contender's speed against the device's ceiling there, and
/// one over all shapes.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let shapes = &ranked.run.header.shapes;
    let Some(ceiling) = ranked.run.header.device.ceiling() else {
        return html! { p.note { "The record does not say what the device can do." } };
    };
    if ranked.ranking.cells.iter().all(|c| c.time.is_none()) {
        return html! {};
    }
    html! {
        div.grid {
            (overall(ranked, &ceiling))
            @for shape in shapes { (plot(ranked, &ceiling, shape)) }
        }
        p.note {
            "The red line is the most the device could do on the shape: tensor cores at the clock "
            @match ranked.run.timing().sampled() { true => "the samples ran at", false => "of the target" }
            ", or memory at its full bandwidth with every byte moved once, whichever is less. "
            "Green is the fastest contender of a shape"
            @if let Some(yardstick) = &ranked.run.header.yardstick { ", orange " (yardstick) }
            "."
        }
    }
}

/// Operations over the minimum bytes to move.
fn intensity(run: &Run, shape: &Shape) -> f64 {
    let bytes = run.operator.least_work(shape).memory_bytes;
    run.operator.operations(shape) / bytes
}

fn tera(run: &Run, shape: &Shape, micros: f64) -> f64 {
    run.operator.operations(shape) / micros / 1e6
}

/// One timed cell in the picture of all shapes.
struct Point<'a> {
    shape: &'a str,
    contender: &'a ContenderId,
    /// Operations per byte.
    intensity: f64,
    /// TFLOP/s.
    speed: f64,
    class: &'static str,
}

/// The classic picture: every shape by its intensity, with its best contender and its baseline
/// under the roof.
fn overall(ranked: &RankedRun, ceiling: &Ceiling) -> Markup {
    let run = &ranked.run;
    let Some(first) = run.header.shapes.first() else {
        return html! {};
    };
    let work = run.operator.least_work(first);
    let peak = ceiling.tensor_rate(&work) * ceiling.clock_mhz / 1e6;
    let slope = ceiling.bandwidth / 1e12;
    let ridge = peak / slope;
    let xs = run.header.shapes.iter().map(|shape| intensity(run, shape));
    let Some((low, high)) = range(xs.chain([ridge])) else {
        return html! {};
    };
    let (low, high) = (low * 0.6, high * 1.6);
    let points = points(ranked);
    let Some((least, _)) = range(points.iter().map(|p| p.speed)) else {
        return html! {};
    };
    let least = least.min(slope * low) * 0.8;
    let x = Scale::log((low, high), (46.0, 890.0));
    let y = Scale::log((least, peak * 1.25), (290.0, 12.0));
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
                (data("roofline", &csv(&points)))
            }
            svg viewBox="0 0 900 325" role="img" aria-label="Roofline over all shapes" {
                path.roof d=(roof) stroke-width="1.5" {}
                text.label x=(x.at(ridge) + 6.0) y=(y.at(peak) - 5.0) { (short(peak)) " TFLOP/s at " (short(ceiling.clock_mhz)) " MHz" }
                (across(295.0, &x, &decades(low, high), short))
                (up(46.0, &y, &decades(least, peak * 1.25), short))
                text.label x="890" y="322" text-anchor="end" { "operations per byte" }
                @for (point, [left, top], [px, py]) in names(&points, &x, &y) {
                    path.leader data-s=(point.shape) d=(format!("M{px} {py}L{left} {top}")) {}
                    text.label data-s=(point.shape) x=(left) y=(top) { (clip(point.shape)) }
                }
                @for point in &points {
                    circle class=(point.class) data-s=(point.shape) cx=(x.at(point.intensity)) cy=(y.at(point.speed)) r="4" fill-opacity="0.75" {
                        title { (point.contender) " on " (point.shape) ": " (short(point.speed)) " TFLOP/s" }
                    }
                }
            }
        }
    }
}

fn csv(points: &[Point]) -> String {
    let mut table = Table::named(["shape", "contender", "operations per byte", "TFLOP/s"]);
    for p in points {
        let [x, y] = [p.intensity, p.speed].map(|v| format!("{v:.4}"));
        table.push(row![p.shape, p.contender, x, y]);
    }
    table.csv()
}

/// The name of each shape beside its fastest contender, if there is room: the first of some places
/// around the point that covers no name yet.
fn names<'p, 'a>(
    points: &'p [Point<'a>],
    x: &Scale,
    y: &Scale,
) -> Vec<(&'p Point<'a>, [f64; 2], [f64; 2])> {
    const HIGH: f64 = 13.0;
    /// The width of a letter: names are digits and small letters, none of them wider.
    const WIDE: f64 = 7.4;
    let mut taken: Vec<[f64; 4]> = points
        .iter()
        .map(|p| {
            let (px, py) = (x.at(p.intensity), y.at(p.speed));
            [px - 6.0, py - 6.0, px + 6.0, py + 6.0]
        })
        .collect();
    let mut placed = Vec::new();
    // A shape may have several fastest contenders, but its name is drawn once.
    let mut named = HashSet::new();
    for point in points.iter().filter(|p| p.class == "barbest") {
        if !named.insert(point.shape) {
            continue;
        }
        let (px, py) = (x.at(point.intensity), y.at(point.speed));
        let wide = WIDE * clip(point.shape).chars().count() as f64;
        let around = (0..6).flat_map(|ring| {
            let far = 14.0 * f64::from(ring);
            [
                (6.0 + far / 2.0, 16.0 + far),
                (-6.0 - wide - far / 2.0, 16.0 + far),
                (7.0, 4.0 + far),
                (-7.0 - wide, -6.0 - far),
            ]
        });
        let fits = |(dx, dy): &(f64, f64)| {
            let [left, bottom] = [px + dx, py + dy];
            let own = [left, bottom - HIGH, left + wide, bottom + 2.0];
            let inside = own[0] > 50.0 && own[2] < 895.0 && own[1] > 4.0 && own[3] < 292.0;
            let apart =
                |t: &[f64; 4]| own[2] < t[0] || own[0] > t[2] || own[3] < t[1] || own[1] > t[3];
            inside && taken.iter().all(apart)
        };
        let mut around = around;
        if let Some((dx, dy)) = around.find(fits) {
            let at = [px + dx, py + dy];
            taken.push([at[0], at[1] - HIGH, at[0] + wide, at[1] + 2.0]);
            placed.push((point, at, [px, py]));
        }
    }
    placed
}

/// The colour of an entrant, in every drawing here.
fn class(kind: EntrantKind, best: bool) -> &'static str {
    match kind {
        EntrantKind::Yardstick => "yard",
        _ if best => "barbest",
        EntrantKind::Baseline | EntrantKind::Contender => "bar",
    }
}

/// Best contender, baseline and yardstick of each shape.
fn points(ranked: &RankedRun) -> Vec<Point<'_>> {
    let mut points = Vec::new();
    for shape in &ranked.run.header.shapes {
        for row in &ranked.ranking.rows {
            let cell = ranked.ranking.cell(&row.contender, &shape.name);
            let Some(time) = cell.and_then(|c| c.time.as_ref()) else {
                continue;
            };
            if row.kind == EntrantKind::Contender && !time.best {
                continue;
            }
            points.push(Point {
                shape: &shape.name,
                contender: &row.contender,
                intensity: intensity(&ranked.run, shape),
                speed: tera(&ranked.run, shape, time.estimate().0),
                class: class(row.kind, time.best),
            });
        }
    }
    points
}

fn plot(ranked: &RankedRun, ceiling: &Ceiling, shape: &Shape) -> Markup {
    let timed: Vec<(&ContenderId, f64, &str, Option<f64>)> = ranked
        .ranking
        .rows
        .iter()
        .filter_map(|r| {
            let time = ranked
                .ranking
                .cell(&r.contender, &shape.name)?
                .time
                .as_ref()?;
            let class = class(r.kind, time.best);
            Some((&r.contender, time.estimate().0, class, time.clock_mhz))
        })
        .collect();
    let clock = timed.iter().find_map(|t| t.3);
    if timed.is_empty() {
        return html! {};
    }
    let (floor, _) = ceiling
        .at(clock)
        .floor(&ranked.run.operator.least_work(shape));
    let ceiling = tera(&ranked.run, shape, floor.0);
    let x = Scale::linear((0.0, ceiling * 1.08), (126.0, 380.0));
    let height = ROW * timed.len() as f64 + 24.0;
    html! {
        figure data-s=(shape.name) {
            figcaption { (shape.name) ": floor " (floor) " µs" }
            svg viewBox={ "0 0 400 " (height) } role="img" aria-label={ "Roofline of " (shape.name) } {
                @for (i, (contender, micros, class, _)) in timed.iter().enumerate() {
                    @let top = ROW * i as f64 + 3.0;
                    @let value = tera(&ranked.run, shape, *micros);
                    g data-c=(contender) {
                        title { (contender) ": " (short(*micros)) " µs, " (short(value)) " TFLOP/s" }
                        text x="120" y=(top + 10.0) text-anchor="end" { (clip(contender.as_str())) }
                        rect class=(class) x="126" y=(top) height="12" width=(x.at(value) - 126.0) {}
                        text.label x=(x.at(value) + 4.0) y=(top + 10.0) { (short(value)) }
                    }
                }
                line.roof x1=(x.at(ceiling)) x2=(x.at(ceiling)) y1="0" y2=(height - 20.0) stroke-width="1.5" {}
                (across(height - 20.0, &x, &ticks(0.0, ceiling, 4), short))
                text.label x="120" y=(height - 6.0) text-anchor="end" { "TFLOP/s" }
            }
        }
    }
}
