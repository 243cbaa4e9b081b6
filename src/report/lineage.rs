use maud::{Markup, html};

use super::Subject;
use crate::contest::dispatch::dispatch;
use crate::contest::lineage::{Node, lineage};
use crate::present::{interval, speedup};
use dgx_core::domain::Timing;
use dgx_core::stats::{CONFIDENCE, LogEstimate};

/// Each change over what it changed, per shape; and the best choice per shape.
pub(super) fn section(subject: &Subject) -> Markup {
    let nodes = lineage(&subject.run, &subject.ranking);
    let has_tree = nodes.iter().any(|n| n.depth > 0);
    html! {
        @if has_tree {
            (tree(&nodes, 0)) (table(subject, &nodes))
            p.note { (legend(subject.run.timing())) }
        }
        (choice(subject))
    }
}

fn legend(timing: Timing) -> &'static str {
    match timing {
        Timing::Measured | Timing::Scripted => {
            "Each design over the one it changes: green is surely faster, red surely slower; 95 % intervals below."
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

fn table(subject: &Subject, nodes: &[Node]) -> Markup {
    let children = nodes.iter().filter(|n| n.over_parent.is_some());
    let noise = subject.ranking.noise();
    html! {
        div.scroll { table {
            thead { tr {
                th.key data-sort { "change" } th data-sort { "over" } th.n data-sort { "mean" }
                @for shape in &subject.run.header.shapes { th.n data-sort data-s=(shape.name) { (shape.name) } }
            } }
            tbody {
                @for node in children {
                    @if let (Some(over), Some(parent)) = (&node.over_parent, &node.parent) {
                        tr data-c=(node.contender) {
                            td.key { (node.contender) } td { (parent) }
                            (ratio(Some(&over.geomean), None, noise))
                            @for shape in &subject.run.header.shapes { (ratio(over.shape(&shape.name), Some(&shape.name), noise)) }
                        }
                    }
                }
            }
        } }
    }
}

/// What differs by no more than the noise differs from nothing.
fn ratio(estimate: Option<&LogEstimate>, shape: Option<&str>, noise: f64) -> Markup {
    let Some(estimate) = estimate else {
        return html! { td.n data-s=[shape] { "–" } };
    };
    let found = estimate.ratio(CONFIDENCE);
    let class = match (
        found.lower.unwrap_or(found.estimate),
        found.upper.unwrap_or(found.estimate),
    ) {
        (lower, _) if lower > 1.0 + noise => "good",
        (_, upper) if upper * (1.0 + noise) < 1.0 => "bad",
        _ => "faint",
    };
    let bounds = found.lower.zip(found.upper);
    html! {
        td class={ "n " (class) } data-s=[shape] data-v=(found.estimate) title=(interval(&found)) {
            (speedup(found.estimate))
            @if let Some((lower, upper)) = bounds { small { (format!("{lower:.3} {upper:.3}")) } }
        }
    }
}

fn choice(subject: &Subject) -> Markup {
    let Some(table) = dispatch(&subject.run, &subject.ranking) else {
        return html! {};
    };
    let switches = table.choices.iter().any(|c| c.contender != table.single);
    html! {
        h3 { "Choosing per shape" }
        @if !switches {
            p { "Nobody is surely faster than " (table.single) " on any shape: choosing per shape would gain nothing that can be told." }
        } @else {
            p { "Calling the best contender of each shape would be " strong { (speedup(table.gap)) } " over " (table.single) " everywhere." }
            div.scroll { table {
                thead { tr { th data-sort { "shape" } th data-sort { "contender" } th.n data-sort { "µs" } th.n data-sort { "over " (table.single) } } }
                tbody { @for c in &table.choices { tr data-s=(c.shape.name) {
                    td { (c.shape.name) } td { (c.contender) } td.n { (c.micros) }
                    td.n { (c.over_single.map_or(String::new(), |e| interval(&e.ratio(CONFIDENCE)))) }
                } } }
            } }
        }
    }
}
