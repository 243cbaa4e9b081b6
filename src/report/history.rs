use maud::{Markup, html};

use super::Subject;
use super::plot::{Scale, range, short, ticks};
use crate::domain::ContenderId;
use crate::present::{interval, repetition, signed_percent, spread};
use crate::rank::{Comparison, Repeat, Side, compare_runs, same_card};
use crate::stats::CONFIDENCE;

/// Several runs: every contender in each, over the first run that has it.
pub(super) fn section(subjects: &[Subject]) -> Markup {
    if subjects.len() < 2 {
        return html! {};
    }
    let contenders = contenders(subjects);
    html! {
        (repeated(subjects))
        h3 { "Speed over the first run" }
        (chart(subjects, &contenders))
        div.scroll { table {
            thead { tr {
                th.key data-sort { "contender" }
                @for subject in subjects { th.n data-sort title=(subject.run.path.display()) { (label(subject)) } }
            } }
            tbody { @for contender in &contenders { tr {
                td.key { (contender) }
                @for (i, _) in subjects.iter().enumerate() { (cell(subjects, i, contender)) }
            } } }
        } }
        p.note {
            "Geometric-mean speedup over the first run that timed the contender, on the shapes both \
             share. No block pairs different runs, so drift between them is in these ratios."
        }
    }
}

/// Whether the last run says what the one before it said.
fn repeated(subjects: &[Subject]) -> Markup {
    let [.., first, second] = subjects else {
        return html! {};
    };
    let sides = [first, second].map(|s| (&s.run, &s.ranking));
    let Some(repeat) = Repeat::of(sides[0], sides[1]) else {
        return html! {};
    };
    html! {
        h3 { "Do the last two runs agree?" }
        @for sentence in repetition(&repeat) { p { (sentence) } }
        @if let Some(found) = repeat.spread() {
            @let what = format!("Speedups over {}", repeat.reference);
            p { (spread(&what, &found, same_card(&first.run, &second.run))) }
        }
        div.scroll { table {
            thead { tr {
                th.key data-sort { "contender" }
                @for (name, subject) in [("A", first), ("B", second)] {
                    th.n data-sort { (name) ": rank" } th.n data-sort title=(subject.run.path.display()) { "over " (repeat.reference) }
                }
                th.n data-sort { "change" } th data-sort title="The change is less than its own 95 % interval" { "agree" }
            } }
            tbody { @for entry in repeat.challengers() { tr {
                td.key { (entry.contender) }
                @for i in [0, 1] {
                    @let ratio = entry.speedups[i].ratio(CONFIDENCE);
                    td.n data-v=(entry.places[i].rank) { (entry.places[i]) }
                    td.n data-v=(ratio.estimate) { (interval(&ratio)) }
                }
                td.n data-v=(entry.change.mean) { (signed_percent(entry.change.mean.exp_m1())) }
                td {
                    @match entry.agrees() {
                        Some(true) => span.good { "yes" },
                        Some(false) if entry.edited => span.doubt { "no, its source changed" },
                        Some(false) => span.bad { "no" },
                        None => "",
                    }
                }
            } } }
        } }
        p.note { "A is " (first.file()) ", B is " (second.file()) "." }
    }
}

/// A run by its minute, and by its commit where it has one.
fn label(subject: &Subject) -> String {
    let header = &subject.run.header;
    let started = header.started.get(..16).unwrap_or(&header.started);
    let minute = started.replace('T', " ");
    match &header.git {
        Some(git) => {
            let short = git.commit.get(..7).unwrap_or(&git.commit);
            format!("{minute} {short}{}", if git.dirty { "+" } else { "" })
        }
        None => minute,
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
        None => match row.status.filter(|s| !s.may_be_timed()) {
            Some(status) => html! { td.n.bad { (status) } },
            None => html! { td.n.faint { "no shape in common" } },
        },
    }
}

/// The first and the last label stay inside the picture.
fn anchor(index: usize, count: usize) -> &'static str {
    match index {
        0 => "start",
        i if i + 1 == count => "end",
        _ => "middle",
    }
}

/// A contender, and its speed in each run that has it.
type Line<'a> = (&'a ContenderId, Vec<(usize, f64)>);

/// Names beside the ends of their lines, moved apart where they would overlap.
fn names<'a>(lines: &[Line<'a>], y: &Scale) -> Vec<(&'a str, f64)> {
    const APART: f64 = 12.0;
    const BOTTOM: f64 = 180.0;
    let end = |(c, points): &Line<'a>| Some((c.as_str(), y.at(points.last()?.1)));
    let mut names: Vec<(&str, f64)> = lines.iter().filter_map(end).collect();
    names.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut least = f64::NEG_INFINITY;
    for (_, at) in &mut names {
        *at = at.max(least + APART);
        least = *at;
    }
    let mut most = BOTTOM;
    for (_, at) in names.iter_mut().rev() {
        *at = at.min(most);
        most = *at - APART;
    }
    names
}

/// Speed of each contender over the runs.
fn chart(subjects: &[Subject], contenders: &[ContenderId]) -> Markup {
    let lines: Vec<Line> = contenders
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
            svg viewBox="0 0 900 215" role="img" aria-label="Speed over the runs" {
                line.ref x1="50" x2="750" y1=(y.at(1.0)) y2=(y.at(1.0)) {}
                @for tick in ticks(low, high, 4) {
                    text.label x="44" y=(y.at(tick) + 4.0) text-anchor="end" { (short(tick)) "×" }
                }
                @for (contender, points) in &lines {
                    @let path: Vec<String> = points.iter().map(|(i, v)| format!("{} {}", x.at(*i as f64), y.at(*v))).collect();
                    path.mark style="fill:none" d={ "M" (path.join(" L")) } {}
                    @for (i, v) in points { circle.mark cx=(x.at(*i as f64)) cy=(y.at(*v)) r="3" { title { (contender) ": " (short(*v)) "×" } } }
                }
                @for (name, at) in names(&lines, &y) {
                    text x="760" y=(at + 4.0) { (super::roofline::clip(name)) }
                }
                @for (i, subject) in subjects.iter().enumerate() {
                    text.label x=(x.at(i as f64)) y="205" text-anchor=(anchor(i, subjects.len())) { (label(subject)) }
                }
            }
        }
    }
}
