use maud::{Markup, html};

use super::RankedRun;
use super::plot::{Scale, across, clip, data, hue, range, short, ticks, up};
use crate::present::{Repetition, interval};
use crate::table::{Column, Table, Tone, Value, maybe, row};
use dgx_core::domain::{ContenderId, Interval, distinct};
use dgx_core::rank::{ComparedSide, Comparison, compare_runs};
use dgx_core::stats::CONFIDENCE;

/// Several runs: every contender in each, over the first run that has it.
pub(super) fn section(runs: &[RankedRun]) -> Markup {
    if runs.len() < 2 {
        return html! {};
    }
    let contenders = contenders(runs);
    html! {
        (repeated(runs))
        h3 { "Speed over the first run" }
        (chart(runs, &contenders))
        (table(runs, &contenders).html())
        p.note {
            "Geometric-mean speedup over the first run that timed the contender, on the shapes both \
             share. No block pairs different runs, so drift between them is in these ratios."
        }
    }
}

/// Whether the last run agrees with the one before it.
fn repeated(runs: &[RankedRun]) -> Markup {
    let [.., first, second] = runs else {
        return html! {};
    };
    let sides = [first, second].map(|s| (&s.run, &s.ranking));
    let agreed = Repetition::of(sides, &[], false);
    let Some(table) = &agreed.table else {
        return html! {};
    };
    html! {
        h3 { "Do the last two runs agree?" }
        @for sentence in &agreed.words { p { (sentence) } }
        (table.html())
        p.note { "A is " (first.file()) ", B is " (second.file()) "." }
    }
}

/// A run by its minute, and by its commit where it has one.
fn label(ranked: &RankedRun) -> String {
    let header = &ranked.run.header;
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

fn contenders(runs: &[RankedRun]) -> Vec<ContenderId> {
    let all = runs.iter().rev().flat_map(|s| s.run.entrants());
    distinct(all.cloned())
}

fn first_with(runs: &[RankedRun], contender: &ContenderId) -> Option<usize> {
    let timed = |s: &RankedRun| s.ranking.row(contender).is_some_and(|r| r.valid_shapes > 0);
    runs.iter().position(timed)
}

fn over_first(runs: &[RankedRun], index: usize, contender: &ContenderId) -> Option<Comparison> {
    let first = first_with(runs, contender).filter(|f| *f < index)?;
    let side = |i: usize| ComparedSide::new(&runs[i].run, &runs[i].ranking, contender);
    compare_runs(side(first), side(index))
}

fn table(runs: &[RankedRun], contenders: &[ContenderId]) -> Table {
    let run = |s: &RankedRun| Column::right(label(s)).hint(s.run.path.display());
    let mut table = Table::keyed("contender", runs.iter().map(run));
    for contender in contenders {
        let values = (0..runs.len()).map(|run| value(runs, run, contender));
        table.push_named(contender, values);
    }
    table
}

fn value(runs: &[RankedRun], index: usize, contender: &ContenderId) -> Value {
    let Some(row) = runs[index].ranking.row(contender) else {
        return "–".into();
    };
    if first_with(runs, contender) == Some(index) {
        return Value::from("1.00×").number(1.0);
    }
    match over_first(runs, index, contender) {
        Some(comparison) => {
            let ratio = comparison.geomean.ratio(CONFIDENCE);
            Value::from(interval(&ratio)).number(ratio.estimate)
        }
        None => match row.status.filter(|s| !s.may_be_timed()) {
            Some(status) => Value::from(status).tone(Tone::Bad),
            None => Value::from("no shape in common").tone(Tone::Faint),
        },
    }
}

/// A contender's speed in one run, with its interval.
struct Step {
    run: usize,
    speed: Interval,
}

/// A contender, and its speed in each run that has it.
struct Line<'a> {
    contender: &'a ContenderId,
    steps: Vec<Step>,
}

impl<'a> Line<'a> {
    fn of(runs: &[RankedRun], contender: &'a ContenderId) -> Option<Self> {
        let run = first_with(runs, contender)?;
        let first = Step {
            run,
            speed: Interval::point(1.0),
        };
        let later = (run + 1..runs.len()).filter_map(|run| {
            let over = over_first(runs, run, contender)?;
            let speed = over.geomean.ratio(CONFIDENCE);
            Some(Step { run, speed })
        });
        let steps: Vec<Step> = std::iter::once(first).chain(later).collect();
        (steps.len() > 1).then_some(Self { contender, steps })
    }

    fn ends(&self) -> impl Iterator<Item = f64> {
        let ends = |s: &Step| [Some(s.speed.estimate), s.speed.lower, s.speed.upper];
        self.steps.iter().flat_map(ends).flatten()
    }
}

const ROW: f64 = 13.0;

/// The position of each line's name: beside its end, moved apart from others.
fn names(lines: &[Line], y: &Scale, bottom: f64) -> Vec<(usize, f64)> {
    let end = |(i, line): (usize, &Line)| Some((i, y.at(line.steps.last()?.speed.estimate)));
    let mut names: Vec<(usize, f64)> = lines.iter().enumerate().filter_map(end).collect();
    names.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut least = f64::NEG_INFINITY;
    for (_, at) in &mut names {
        *at = at.max(least + ROW);
        least = *at;
    }
    let mut most = bottom;
    for (_, at) in names.iter_mut().rev() {
        *at = at.min(most);
        most = *at - ROW;
    }
    names
}

/// Speed of each contender over the runs.
fn chart(runs: &[RankedRun], contenders: &[ContenderId]) -> Markup {
    let lines: Vec<Line> = contenders
        .iter()
        .filter_map(|c| Line::of(runs, c))
        .collect();
    let Some((low, high)) = range(lines.iter().flat_map(Line::ends)) else {
        return html! {};
    };
    let (low, high) = (low.min(0.98) * 0.995, high.max(1.02) * 1.005);
    // Every name needs a row of its own.
    let bottom = (ROW * lines.len() as f64 + 20.0).max(200.0);
    let last = (runs.len() - 1) as f64;
    let x = Scale::linear((0.0, last), (84.0, 700.0));
    let y = Scale::log((low, high), (bottom, 12.0));
    let positions: Vec<f64> = (0..runs.len()).map(|i| i as f64).collect();
    // Lines that would overlap are moved a little apart.
    let aside = |line: usize| (line as f64 - (lines.len() - 1) as f64 / 2.0) * 2.5;
    html! {
        figure.wide {
            figcaption { "Bars are 95 % intervals." (data("history", &csv(runs, &lines))) }
            svg viewBox={ "0 0 900 " (bottom + 24.0) } role="img" aria-label="Speed over the runs" {
                (up(50.0, &y, &ticks(low, high, 5), |v| format!("{}×", short(v))))
                (across(bottom + 4.0, &x, &positions, |v| runs.get(v as usize).map_or(String::new(), |s| edge(s, v, last))))
                line.ref x1="50" x2="745" y1=(y.at(1.0)) y2=(y.at(1.0)) {}
                @for (i, line) in lines.iter().enumerate() {
                    @let at = |step: &Step| x.at(step.run as f64) + aside(i);
                    @let path: Vec<String> = line.steps.iter().map(|s| format!("{} {}", at(s), y.at(s.speed.estimate))).collect();
                    g class=(hue(i)) data-c=(line.contender) {
                        path.line d={ "M" (path.join(" L")) } {}
                        @for step in &line.steps {
                            @if let (Some(low), Some(high)) = (step.speed.lower, step.speed.upper) {
                                path.line d=(format!("M{} {}V{}", at(step), y.at(low), y.at(high))) stroke-width="2.5" {}
                            }
                            circle.dot cx=(at(step)) cy=(y.at(step.speed.estimate)) r="3" { title { (line.contender) ": " (interval(&step.speed)) } }
                        }
                    }
                }
                @for (i, at) in names(&lines, &y, bottom) {
                    @let line = &lines[i];
                    @let end = line.steps.last().map_or(0.0, |s| y.at(s.speed.estimate));
                    @let from = line.steps.last().map_or(0.0, |s| x.at(s.run as f64) + aside(i));
                    g class=(hue(i)) data-c=(line.contender) {
                        path.leader d=(format!("M{from} {end}L752 {at}H758")) {}
                        text x="762" y=(at + 4.0) { (clip(line.contender.as_str())) title { (line.contender) } }
                    }
                }
            }
        }
    }
}

/// A run at the axis: its day and minute if there is room beside others.
fn edge(ranked: &RankedRun, place: f64, last: f64) -> String {
    let label = label(ranked);
    match last < 5.0 || place == 0.0 || place == last {
        true => label,
        false => format!("{}", place as usize + 1),
    }
}

fn csv(runs: &[RankedRun], lines: &[Line]) -> String {
    let mut table = Table::named(["contender", "run", "speedup", "lower", "upper"]);
    for line in lines {
        for Step { run, speed } in &line.steps {
            let ends = [Some(speed.estimate), speed.lower, speed.upper];
            let [estimate, lower, upper] = ends.map(|v| maybe(v.map(|v| format!("{v:.5}"))));
            let file = runs[*run].file();
            table.push(row![line.contender, file, estimate, lower, upper]);
        }
    }
    table.csv()
}
