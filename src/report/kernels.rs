use maud::{Markup, html};

use super::RankedRun;
use super::plot::{Scale, across, clip, data, hue, range, short, ticks};
use crate::table::{Table, row};
use dgx_core::domain::{ContenderId, KernelTime, Timing};

const ROW: f64 = 18.0;

/// The time of each kernel of a call, if recorded: its start and its duration, one plot a shape.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let shapes = ranked.run.header.shapes.iter();
    let panels: Vec<(&str, Vec<Bar>)> = shapes
        .map(|shape| (shape.name.as_str(), bars(ranked, &shape.name)))
        // If every call has one kernel, there is nothing to distinguish.
        .filter(|(_, bars)| bars.iter().any(|bar| bar.kernels.len() > 1))
        .collect();
    if panels.is_empty() {
        return html! {};
    }
    html! {
        div.grid { @for (shape, bars) in &panels { (plot(shape, bars)) } }
        @for (contender, kernels) in several(&panels) {
            p.legend data-c=(contender) {
                (contender) ":"
                @for (place, kernel) in kernels.iter().enumerate() {
                    span { span class={ "swatch " (hue(place % 8)) } { "■" } " " (kernel.name) }
                }
            }
        }
        p.note { (how(ranked.run.timing())) }
    }
}

fn how(timing: Timing) -> &'static str {
    match timing {
        Timing::Modelled | Timing::Recorded => {
            "Modelled: from the start of the call’s first CTA, each kernel from its first CTA’s start to its last one’s end; \
             kernels that overlap stand one below the other. What launching costs before the first CTA is not drawn."
        }
        Timing::Measured | Timing::Scripted => {
            "From a few calls of their own, after all samples: each kernel waits for the one before it, with an event between \
             them, so none overlaps another, and together they take longer than a timed call. Nothing is ranked by this."
        }
    }
}

/// Contenders whose calls have several kernels, each with the kernels of its first shape.
fn several<'a>(panels: &[(&str, Vec<Bar<'a>>)]) -> Vec<(&'a ContenderId, &'a [KernelTime])> {
    let mut found: Vec<(&ContenderId, &[KernelTime])> = Vec::new();
    for bar in panels.iter().flat_map(|(_, bars)| bars) {
        let known = found
            .iter()
            .any(|(contender, _)| *contender == bar.contender);
        if bar.kernels.len() > 1 && !known {
            found.push((bar.contender, bar.kernels));
        }
    }
    found
}

struct Bar<'a> {
    contender: &'a ContenderId,
    kernels: &'a [KernelTime],
}

fn bars<'a>(ranked: &'a RankedRun, shape: &str) -> Vec<Bar<'a>> {
    let rows = ranked.ranking.rows.iter();
    rows.filter_map(|row| {
        let kernels = ranked.run.kernels(&row.contender, shape);
        (!kernels.is_empty()).then_some(Bar {
            contender: &row.contender,
            kernels,
        })
    })
    .collect()
}

fn end(kernel: &KernelTime) -> f64 {
    kernel.start.0 + kernel.micros.0
}

fn plot(shape: &str, bars: &[Bar]) -> Markup {
    let ends = bars.iter().flat_map(|b| b.kernels).map(end);
    let Some((_, most)) = range(ends) else {
        return html! {};
    };
    let x = Scale::linear((0.0, most), (126.0, 390.0));
    let height = ROW * bars.len() as f64 + 24.0;
    html! {
        figure data-s=(shape) {
            figcaption { (shape) (data(&format!("kernels-{shape}"), &csv(shape, bars))) }
            svg viewBox={ "0 0 400 " (height) } role="img" aria-label={ "Kernels of a call on " (shape) } {
                @for (i, bar) in bars.iter().enumerate() {
                    @let top = ROW * i as f64 + 2.0;
                    @let high = (ROW - 4.0) / bar.kernels.len() as f64;
                    g data-c=(bar.contender) {
                        text x="120" y=(top + 11.0) text-anchor="end" { (clip(bar.contender.as_str())) title { (bar.contender) } }
                        @for (place, kernel) in bar.kernels.iter().enumerate() {
                            @let (from, to) = (x.at(kernel.start.0), x.at(end(kernel)));
                            rect class={ "kernel " (hue(place % 8)) } x=(from) width=((to - from).max(0.5)) y=(top + high * place as f64) height=(high) {
                                title { (kernel.name) ": " (short(kernel.micros.0)) " µs from " (short(kernel.start.0)) " µs on" }
                            }
                        }
                    }
                }
                (across(height - 20.0, &x, &ticks(0.0, most, 4), short))
                text.label x="120" y=(height - 6.0) text-anchor="end" { "µs" }
            }
        }
    }
}

fn csv(shape: &str, bars: &[Bar]) -> String {
    let mut table = Table::named(["shape", "contender", "kernel", "start µs", "µs"]);
    for bar in bars {
        for kernel in bar.kernels {
            let [start, micros] = [kernel.start.0, kernel.micros.0].map(|t| format!("{t:.3}"));
            table.push(row![shape, bar.contender, &kernel.name, start, micros]);
        }
    }
    table.csv()
}
