//! Modelled against measured times: a self-contained drawing, and the section of a page.

use maud::{Markup, PreEscaped, html};

use super::plot::{Scale, data, decades, range, short};
use crate::agreement::{Agreement, ModelledCell};
use crate::table::{Table, row};

const SIZE: f64 = 760.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 34.0;
const RIGHT: f64 = 16.0;
/// Half the width of the band around the diagonal.
const BAND: f64 = 0.10;
/// The number of cells, those with the largest errors, that are labelled.
const NAMED: usize = 12;

/// The drawing, and the model's error on each run.
pub(super) fn section(found: Option<&Agreement>) -> Markup {
    let Some(found) = found else {
        return html! {};
    };
    html! {
        (found.table().html())
        figure { (PreEscaped(svg(found))) (data("modelled", &csv(found))) }
        p.note {
            "A point a cell: filled if it was looked at while the model was made. On the line the \
             model is right; between the dashed ones it is off by no more than a tenth."
        }
    }
}

fn csv(found: &Agreement) -> String {
    let titles = [
        "round",
        "contender",
        "shape",
        "modelled µs",
        "measured µs",
        "seen",
    ];
    let mut table = Table::named(titles);
    for run in &found.runs {
        for c in &run.cells {
            let (times, seen) = ([c.modelled, c.measured], c.seen);
            table.push(row![
                &run.round,
                &c.contender,
                &c.shape,
                times[0],
                times[1],
                seen
            ]);
        }
    }
    table.csv()
}

/// A point for each cell on logarithmic axes, labelled with its round; unseen cells are hollow.
pub(crate) fn svg(found: &Agreement) -> String {
    let title = format!("{}, modelled against measured", found.target);
    let cells = found.runs.iter().flat_map(|run| {
        let round = run.round.as_str();
        run.cells.iter().map(move |cell| (round, cell))
    });
    drawn(&title, &cells.collect::<Vec<_>>())
}

fn drawn(title: &str, cells: &[(&str, &ModelledCell)]) -> String {
    let times = cells.iter().flat_map(|(_, c)| [c.measured, c.modelled]);
    let (low, high) = range(times).unwrap_or((1.0, 10.0));
    let (low, high) = (low * 0.8, high * 1.25);
    let across = Scale::log((low, high), (LEFT, SIZE - RIGHT));
    let up = Scale::log((low, high), (SIZE - BOTTOM, TOP));
    let mut farthest: Vec<&(&str, &ModelledCell)> = cells.iter().collect();
    farthest.sort_by(|a, b| off(b.1).total_cmp(&off(a.1)));
    farthest.truncate(NAMED);
    let line = |ratio: f64| {
        let (from, to) = (low.max(low / ratio), high.min(high / ratio));
        let point = |measured: f64| format!("{} {}", across.at(measured), up.at(measured * ratio));
        format!("M{} L{}", point(from), point(to))
    };
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {SIZE} {SIZE}"))
            font-family="system-ui, sans-serif" font-size="11" role="img" {
            title { (title) }
            rect width="100%" height="100%" fill="#fff" {}
            text x=(LEFT) y="20" font-size="14" fill="#222" { (title) }
            @for tick in decades(low, high) { (grid(tick, &across, &up)) }
            text x=(SIZE - RIGHT) y=(SIZE - 8.0) text-anchor="end" fill="#222" { "measured, µs" }
            text transform=(format!("translate(14 {TOP}) rotate(-90)")) text-anchor="end" fill="#222" { "modelled, µs" }
            path d=(line(1.0)) stroke="#222" fill="none" {}
            @for ratio in [1.0 - BAND, 1.0 / (1.0 - BAND)] {
                path d=(line(ratio)) stroke="#999" stroke-dasharray="4 4" fill="none" {}
            }
            @for (round, cell) in cells {
                circle cx=(across.at(cell.measured)) cy=(up.at(cell.modelled)) r="3.5"
                    stroke="#1663b8" fill=(if cell.seen { "#1663b8" } else { "none" }) fill-opacity="0.55" {
                    title { (label(cell)) " (" (round) "): " (short(cell.modelled)) " modelled, "
                        (short(cell.measured)) " measured, " (format!("{:+.1} %", 100.0 * cell.error())) }
                }
            }
            @for (_, cell) in farthest {
                text x=(across.at(cell.measured) + 6.0) y=(up.at(cell.modelled) + 3.0) fill="#555" font-size="9" { (label(cell)) }
            }
        }
    };
    drawing.into_string() + "\n"
}

fn off(cell: &ModelledCell) -> f64 {
    cell.error().ln_1p().abs()
}

fn label(cell: &ModelledCell) -> String {
    format!("{} on {}", cell.contender, cell.shape)
}

fn grid(tick: f64, across: &Scale, up: &Scale) -> Markup {
    let (x, y) = (across.at(tick), up.at(tick));
    html! {
        path d=(format!("M{x} {TOP} V{} M{LEFT} {y} H{}", SIZE - BOTTOM, SIZE - RIGHT)) stroke="#e4e4e4" {}
        text x=(x) y=(SIZE - BOTTOM + 16.0) text-anchor="middle" fill="#555" { (short(tick)) }
        text x=(LEFT - 6.0) y=(y + 4.0) text-anchor="end" fill="#555" { (short(tick)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::ContenderId;

    #[test]
    fn a_point_a_cell_and_names_are_escaped() {
        let cell = |name: &str, modelled: f64| ModelledCell {
            contender: ContenderId::from_text(name),
            shape: "s".to_owned(),
            measured: 10.0,
            modelled,
            bound: String::new(),
            seen: name == "a",
            remark: None,
        };
        let cells = [cell("a", 11.0), cell("<b>", 20.0)];
        let cells: Vec<(&str, &ModelledCell)> = cells.iter().map(|cell| ("round1", cell)).collect();
        let drawn = drawn("x & y", &cells);
        assert_eq!(drawn.matches("<circle").count(), 2);
        assert!(drawn.contains("&lt;b&gt; on s (round1): 20 modelled, 10 measured, +100.0 %"));
        assert!(drawn.contains("x &amp; y") && !drawn.contains("<b>"));
    }
}
