//! A profile as one page: shares, warps by role, and the timeline.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ptx_time::Activity;

use super::{LaunchProfile, ProfiledCell, Sources, Stage, activity_word};
use dgx_core::domain::counted;

const STYLE: &str = include_str!("page.css");
/// The width of a timeline, and of its names.
const WIDTH: f64 = 1200.0;
const NAMES: f64 = 200.0;
const ROW: f64 = 14.0;
/// Pieces of a row; shorter spans are merged, by the cause of most of the time.
const PIECES: usize = 600;
/// Maximum CTAs of one SM that are drawn; further ones look the same.
const CTAS: usize = 4;

/// The whole page, for one profile or for several of the same cell. `lines` are the sentences on a
/// terminal.
pub fn page(profiles: &[&ProfiledCell], sources: &Sources, lines: &[String]) -> String {
    let title = match profiles.first() {
        Some(first) => format!("{} on {}", first.contender, first.shape),
        None => String::new(),
    };
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "dgx " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                @for line in lines { p { (line) } }
                @for profile in profiles {
                    h2 { (profile.micros) " µs, " (profile.timing.as_str()) ": " (profile.target) }
                    p.faint { (profile.accuracy) }
                    (stages(profile))
                }
                @for profile in profiles {
                    @for launch in &profile.launches {
                        (section(launch, profile.timing.as_str(), sources))
                    }
                }
            }
        }
    };
    markup.into_string()
}

fn stage_class(stage: Stage) -> String {
    let word = stage.words().0;
    format!("s-{}", word.split(' ').next().unwrap_or(word))
}

/// On the timeline the main loop is one stage.
fn timeline_class(stage: Stage) -> String {
    match stage {
        Stage::Waiting => "s-main".to_owned(),
        other => stage_class(other),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn stages(profile: &ProfiledCell) -> Markup {
    let share = |micros: f64| micros / profile.micros.0;
    let shown = profile.stages.iter().filter(|part| part.micros.0 > 0.0);
    html! {
        div.bar role="img" aria-label="shares of the time by stage" {
            @for part in shown.clone() {
                div.fill.(stage_class(part.stage)) style={ "width:" (100.0 * share(part.micros.0)) "%" }
                    title={ (part.stage.words().0) " " (percent(share(part.micros.0))) } {}
            }
        }
        div.scroll { table {
            tr { th { "stage" } th.n { "µs" } th.n { "share" } th { "" } }
            @for part in shown {
                @let (name, what) = part.stage.words();
                tr {
                    td { span.key { span { i.fill.(stage_class(part.stage)) {} (name) } } }
                    td.n { (part.micros) }
                    td.n { (percent(share(part.micros.0))) }
                    td.faint { (what) }
                }
            }
        } }
    }
}

fn section(launch: &LaunchProfile, timing: &str, sources: &Sources) -> Markup {
    let activities: Vec<Activity> = Activity::ALL
        .into_iter()
        .filter(|s| launch.roles.iter().any(|r| r.spent[*s as usize] > 0.0))
        .collect();
    html! {
        h2 { (launch.kernel) ": " (launch.micros) " µs, " (timing) }
        p.faint {
            (counted(launch.ctas as usize, "CTA")) " on " (launch.active_sms) " of " (launch.sms) " SMs, "
            (launch.rounds) " on the SM that ends last; SMs without a CTA are "
            (percent(launch.idle)) " of their time; tensor cores work "
            (percent(launch.tensor)) " of that SM's."
        }
        div.scroll { table {
            tr {
                th { "warps" }
                @for s in &activities { th.n { (activity_word(*s)) } }
                th.n { "ended" }
            }
            @for role in &launch.roles {
                tr {
                    td { (role.warps) " × " (role.role.word()) }
                    @for s in &activities { td.n { (percent(role.spent[*s as usize])) } }
                    td.n { (percent(role.ended)) }
                }
            }
        } }
        div.key { @for s in &activities {
            span { i.fill.{ "w-" (activity_word(*s)) } {} (activity_word(*s)) }
        } }
        div.scroll { (timeline(launch, sources)) }
        @if launch.timeline.ctas.len() > CTAS {
            p.faint {
                "The first " (CTAS) " of " (launch.timeline.ctas.len())
                " CTAs of that SM; --trace has all."
            }
        }
    }
}

fn timeline(launch: &LaunchProfile, sources: &Sources) -> Markup {
    let line = &launch.timeline;
    let drawn = line.ctas.len().min(CTAS);
    let from = launch.start.0;
    let to = match drawn < line.ctas.len() {
        true => (line.ctas[..drawn].iter()).fold(from, |end, cta| end.max(cta.2.0)),
        false => from + launch.micros.0,
    };
    let x = |micros: f64| NAMES + (micros - from) / (to - from).max(1e-9) * (WIDTH - NAMES);
    let mut rows: Vec<(String, usize, usize)> = Vec::new();
    for (cta, warps) in line.warps[..drawn].iter().enumerate() {
        for (warp, name) in warps.iter().enumerate() {
            rows.push((name.clone(), cta, warp));
        }
    }
    let height = ROW * (rows.len() + 3) as f64;
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label="timeline" {
            text x="0" y="11" { "stages" }
            @for (stage, begin, end) in line.stages.iter().filter(|s| s.1.0 < to) {
                rect.fill.(timeline_class(*stage)) x=(x(begin.0)) y="1"
                    width=(x(end.0.min(to)) - x(begin.0)) height=(ROW - 2.0) {
                    title { (stage_title(*stage)) " " (format!("{:.2} µs", end.0 - begin.0)) }
                }
            }
            @for (index, (name, cta, warp)) in rows.iter().enumerate() {
                @let y = ROW * (index + 1) as f64;
                text.faint x="0" y=(y + 11.0) { (line.ctas[*cta].0) ": " (name) }
                @for piece in line.coarse((*cta, *warp), (from, to), PIECES) {
                    rect.fill.{ "w-" (activity_word(piece.activity)) } x=(x(piece.from)) y=(y + 1.0)
                        width=(x(piece.to) - x(piece.from)) height=(ROW - 2.0) {
                        title { (activity_word(piece.activity)) " "
                            (sources.place(piece.line).unwrap_or_default()) " "
                            (format!("{:.2} µs", piece.to - piece.from)) }
                    }
                }
            }
            @for tick in 0..=4 {
                @let at = from + (to - from) * f64::from(tick) / 4.0;
                line x1=(x(at)) x2=(x(at)) y1="0" y2=(height - 2.0 * ROW) {}
                text.faint x=(x(at)) y=(height - ROW)
                    text-anchor=(if tick == 4 { "end" } else { "middle" }) {
                    (format!("{at:.1} µs"))
                }
            }
        }
    }
}

fn stage_title(stage: Stage) -> &'static str {
    match stage {
        Stage::Waiting => "main loop",
        other => other.words().0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::profile;

    #[test]
    fn the_page_says_that_it_is_modelled_and_asks_nobody_for_anything() {
        let lines = ["One <line>.".to_owned()];
        let text = page(&[&profile(), &profile()], &Sources::default(), &lines);
        assert!(text.contains("modelled") && text.contains("One &lt;line&gt;."));
        assert!(text.contains("7: warp 0, producer"));
        assert!(
            !text.contains("http") && !text.contains("<script"),
            "{text}"
        );
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
