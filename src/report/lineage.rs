use maud::{Markup, html};

use super::RankedRun;
use crate::contest::dispatch_table::{DispatchTable, dispatch_table};
use crate::contest::lineage::{Node, lineage};
use crate::present::{interval, speedup};
use crate::table::{Column, Table, Tone, Value, maybe, row};
use dgx_core::domain::Timing;
use dgx_core::stats::{CONFIDENCE, LogEstimate};

/// Each design over its parent, per shape; and the best choice per shape.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let nodes = lineage(&ranked.run, &ranked.ranking);
    let has_tree = nodes.iter().any(|n| n.depth > 0);
    html! {
        @if has_tree {
            (tree(&nodes, 0)) (table(ranked, &nodes).html())
            p.note { (legend(ranked.run.timing())) }
        }
        (choice(ranked))
    }
}

fn legend(timing: Timing) -> &'static str {
    match timing {
        Timing::Measured | Timing::Scripted => {
            "Each design over the one it changes: green is significantly faster, red significantly slower; 95 % intervals below."
        }
        Timing::Modelled => {
            "Each design over the one it changes: green is faster and red slower by more than the error of the model."
        }
        Timing::Recorded => "Each design over the one it changes: green is faster, red slower.",
    }
}

/// Nested lists, by depth.
fn tree(nodes: &[Node], depth: usize) -> Markup {
    let mut starts: Vec<usize> = (0..nodes.len())
        .filter(|&i| nodes[i].depth == depth)
        .collect();
    starts.push(nodes.len());
    html! {
        ul.tree {
            @for pair in starts.windows(2) {
                @let node = &nodes[pair[0]];
                @let below = &nodes[pair[0] + 1..pair[1]];
                li {
                    strong { (node.contender) } " "
                    @if let (Some(over), Some(parent)) = (&node.over_parent, &node.parent) {
                        span.mono { (interval(&over.geomean.ratio(CONFIDENCE))) }
                        span.faint { " over " (parent) }
                    } @else if let Some(parent) = &node.parent {
                        span.faint { "cannot be compared with " (parent) }
                    } @else if let Some(absent) = &node.absent_parent {
                        span.faint { "a change to " (absent) ", which is not in this run" }
                    }
                    @if !below.is_empty() { (tree(below, depth + 1)) }
                }
            }
        }
    }
}

fn table(ranked: &RankedRun, nodes: &[Node]) -> Table {
    let shapes = &ranked.run.header.shapes;
    let noise = ranked.ranking.noise();
    let mut columns = vec![
        Column::key("contender"),
        Column::left("over"),
        Column::right("mean"),
    ];
    columns.extend(shapes.iter().map(|shape| Column::of_shape(&shape.name)));
    let mut table = Table::new(columns);
    for node in nodes {
        let (Some(over), Some(parent)) = (&node.over_parent, &node.parent) else {
            continue;
        };
        let mean = ratio(Some(&over.geomean), noise);
        let each = shapes
            .iter()
            .map(|shape| ratio(over.shape(&shape.name), noise));
        let row = row![&node.contender, parent, mean];
        table.push(row.into_iter().chain(each).collect());
    }
    table
}

/// A difference within the noise counts as none.
fn ratio(estimate: Option<&LogEstimate>, noise: f64) -> Value {
    let Some(estimate) = estimate else {
        return "–".into();
    };
    let found = estimate.ratio(CONFIDENCE);
    let (lower, upper) = (
        found.lower.unwrap_or(found.estimate),
        found.upper.unwrap_or(found.estimate),
    );
    let tone = match () {
        () if lower > 1.0 + noise => Tone::Good,
        () if upper * (1.0 + noise) < 1.0 => Tone::Bad,
        () => Tone::Faint,
    };
    let bounds = found.lower.zip(found.upper);
    Value::from(speedup(found.estimate))
        .tone(tone)
        .number(found.estimate)
        .below(bounds.map(|(lower, upper)| format!("{lower:.3} {upper:.3}")))
        .hint(interval(&found))
}

fn choice(ranked: &RankedRun) -> Markup {
    let Some(table) = dispatch_table(&ranked.run, &ranked.ranking) else {
        return html! {};
    };
    let switches = table.choices.iter().any(|c| c.contender != table.single);
    html! {
        h3 { "Choosing per shape" }
        @if !switches {
            p { "No contender is significantly faster than " (table.single) " on any shape: choosing per shape would gain nothing detectable." }
        } @else {
            p { "Calling the best contender of each shape would be " strong { (speedup(table.gap)) } " over " (table.single) " everywhere." }
            (choices(&table).html())
        }
    }
}

fn choices(dispatch: &DispatchTable) -> Table {
    let over = Column::right(format!("over {}", dispatch.single));
    let columns = vec![
        Column::key("shape"),
        Column::left("contender"),
        Column::right("µs"),
        over,
    ];
    Table::new(columns).with(dispatch.choices.iter().map(|c| {
        let over = c.over_single.map(|e| interval(&e.ratio(CONFIDENCE)));
        row![&c.shape.name, &c.contender, c.micros, maybe(over)]
    }))
}
