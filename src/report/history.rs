use maud::{Markup, html};

use super::Subject;
use super::plot::{Scale, range, short, ticks};
use crate::domain::ContenderId;
use crate::present::interval;
use crate::rank::{Comparison, Side, compare_runs};
use crate::stats::CONFIDENCE;

/// Several runs: every contender in each, over the first run that has it.
pub fn section(subjects: &[Subject]) -> Markup {
    if subjects.len() < 2 {
        return html! {};
    }
    let contenders = contenders(subjects);
    html! {
        (chart(subjects, &contenders))
        div.scroll { table {
            thead { tr {
                th data-sort { "contender" }
                @for subject in subjects { th.n data-sort title=(subject.run.path.display()) { (label(subject)) } }
            } }
            tbody { @for contender in &contenders { tr {
                td { (contender) }
                @for (i, _) in subjects.iter().enumerate() { (cell(subjects, i, contender)) }
            } } }
        } }
        p.note {
            "Geometric-mean speedup over the first run that timed the contender, on the shapes both \
             share. No block pairs different runs, so drift between them is in these ratios."
        }
    }
}

/// A run by its commit where it has one, else by its date.
fn label(subject: &Subject) -> String {
    let header = &subject.run.header;
    let day = header.started.get(..10).unwrap_or(&header.started);
    match &header.git {
        Some(git) => {
            let short = git.commit.get(..7).unwrap_or(&git.commit);
            format!("{day} {short}{}", if git.dirty { "+" } else { "" })
        }
        None => day.to_owned(),
    }
}

fn contenders(subjects: &[Subject]) -> Vec<ContenderId> {
    let mut all: Vec<ContenderId> = Vec::new();
    for id in subjects.iter().rev().flat_map(|s| s.run.entrants()) {
        if !all.contains(id) {
            all.push(id.clone());
        }
    }
    all
}

fn first_with(subjects: &[Subject], contender: &ContenderId) -> Option<usize> {
    let timed = |s: &Subject| s.ranking.row(contender).is_some_and(|r| r.valid_shapes > 0);
    subjects.iter().position(timed)
}

fn over_first(subjects: &[Subject], index: usize, contender: &ContenderId) -> Option<Comparison> {
    let first = first_with(subjects, contender).filter(|f| *f < index)?;
    let side = |i: usize| Side {
        run: &subjects[i].run,
        ranking: &subjects[i].ranking,
        contender,
    };
    compare_runs(side(first), side(index))
}

fn cell(subjects: &[Subject], index: usize, contender: &ContenderId) -> Markup {
    let Some(row) = subjects[index].ranking.row(contender) else {
        return html! { td.n { "–" } };
    };
    if first_with(subjects, contender) == Some(index) {
        return html! { td.n data-v="1" { "1.00×" } };
    }
    match over_first(subjects, index, contender) {
        Some(comparison) => {
            let ratio = comparison.geomean.ratio(CONFIDENCE);
            html! { td.n data-v=(ratio.estimate) { (interval(&ratio)) } }
        }
        None => html! { td.n.bad { (row.status.map_or("–", |s| s.as_str())) } },
    }
}

/// Speed of each contender over the runs.
fn chart(subjects: &[Subject], contenders: &[ContenderId]) -> Markup {
    let lines: Vec<(&ContenderId, Vec<(usize, f64)>)> = contenders
        .iter()
        .filter_map(|c| {
            let first = first_with(subjects, c)?;
            let later = (first + 1..subjects.len())
                .filter_map(|i| Some((i, over_first(subjects, i, c)?.geomean.mean.exp())));
            let points: Vec<(usize, f64)> = std::iter::once((first, 1.0)).chain(later).collect();
            (points.len() > 1).then_some((c, points))
        })
        .collect();
    let Some((low, high)) = range(lines.iter().flat_map(|(_, p)| p.iter().map(|q| q.1))) else {
        return html! {};
    };
    let (low, high) = (low.min(0.98), high.max(1.02));
    let x = Scale::linear((0.0, (subjects.len() - 1) as f64), (50.0, 750.0));
    let y = Scale::log((low * 0.99, high * 1.01), (180.0, 12.0));
    html! {
        figure.wide {
            figcaption { "Speed over the first run" }
            svg viewBox="0 0 900 215" role="img" aria-label="Speed over the runs" {
                line.ref x1="50" x2="750" y1=(y.at(1.0)) y2=(y.at(1.0)) {}
                @for tick in ticks(low, high, 4) {
                    text.label x="44" y=(y.at(tick) + 4.0) text-anchor="end" { (short(tick)) "×" }
                }
                @for (contender, points) in &lines {
                    @let path: Vec<String> = points.iter().map(|(i, v)| format!("{} {}", x.at(*i as f64), y.at(*v))).collect();
                    path.mark style="fill:none" d={ "M" (path.join(" L")) } {}
                    @for (i, v) in points { circle.mark cx=(x.at(*i as f64)) cy=(y.at(*v)) r="3" { title { (contender) ": " (short(*v)) "×" } } }
                    @if let Some((i, v)) = points.last() {
                        text x=(x.at(*i as f64) + 7.0) y=(y.at(*v) + 4.0) { (super::roofline::clip(contender.as_str())) }
                    }
                }
                @for (i, subject) in subjects.iter().enumerate() {
                    text.label x=(x.at(i as f64)) y="205" text-anchor="middle" { (label(subject)) }
                }
            }
        }
    }
}
