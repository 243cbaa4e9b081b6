use maud::{Markup, html};

use super::RankedRun;
use crate::present::percent;
use crate::table::{Column, Table, row};
use dgx_core::domain::{Joined, Tuning};
use dgx_core::record::Run;
use dgx_core::record::schema::ContenderRecord;

/// Machine, tools and settings of every run, and the meaning of the numbers.
pub(super) fn section(runs: &[RankedRun]) -> Markup {
    html! {
        @for ranked in runs.iter().rev() { (one(ranked, runs.len() > 1)) }
        (method(runs))
    }
}

fn one(ranked: &RankedRun, several: bool) -> Markup {
    let header = &ranked.run.header;
    let device = &header.device;
    let settings = &header.settings;
    html! {
        @if several { h3 { (ranked.file()) } }
        dl {
            dt { "run file" } dd { code { (ranked.run.path.display()) } }
            dt { "SHA-256" } dd { code { (ranked.hash) } }
            dt { "started" } dd { (header.started) }
            dt { "command" } dd { code { (header.argv.join(" ")) } }
            dt { "config" } dd { (header.config.path) }
            @if let Some(git) = &header.git {
                dt { "commit" } dd { code { (git.commit) } @if git.dirty { " with uncommitted changes" } }
            }
            dt { "dgx" } dd { (header.dgx) }
            @if let Some(compiler) = &header.compiler { dt { "compiler" } dd { (compiler) } }
            dt { "device" } dd { (device.name) " (" (device.backend) "), " (device.sms) " SMs, " (device.clock_mhz) " MHz at most, " (device.l2) " L2" }
            @if let Some(uuid) = &device.uuid { dt { "card" } dd { code { (uuid) } } }
            @if ranked.run.cards().len() > 1 {
                dt { "cards" } dd {
                    @for card in ranked.run.cards() { code { (card) } " " }
                    "(each shape on one of them)"
                }
            }
            @if let Some(driver) = &device.driver { dt { "driver" } dd { (driver) } }
            dt { "host" } dd { (header.host.cpu) ", " (header.host.cores) " cores, " (header.host.os) " " (header.host.arch) }
            dt { "tolerance" } dd { "rtol " (settings.rtol) ", atol " (settings.atol) " on " (settings.distributions.iter().map(|d| d.as_str()).joined(", ")) ", seed " (settings.seed) }
            @if ranked.run.timing().sampled() {
                dt { "measuring" } dd {
                    "at least " (settings.min_blocks) " blocks a shape, at most " (settings.max_seconds) " s, "
                    (settings.processes) " processes, " @if settings.cold_l2 { "cold" } @else { "warm" } " L2"
                }
                dt { "detects differences from" } dd {
                    (ranked.ranking.detectable.as_ref().map_or("unknown: no A/A arm".to_owned(), |d| format!(
                        "{} in the mean; the baseline over itself came out {:.4}×", percent(d.effect), d.control.mean.exp()
                    )))
                }
            }
            @if let Some(end) = &ranked.run.end {
                dt { "took" } dd { (end.seconds.iter().map(|(stage, s)| format!("{stage} {s:.1} s")).joined(" · ")) }
                @if let Some(decision) = &end.decision { dt { "decision" } dd { (decision) } }
            }
        }
        details { summary { "Contenders and the hashes of their sources" }
            (contenders(&header.contenders).html())
        }
        (yardstick(&ranked.run))
        @if !header.config.text.is_empty() {
            details { summary { "The config as it was" } pre { (header.config.text) } }
        }
    }
}

/// The algorithm the yardstick used for each GEMM, if it was recorded.
fn yardstick(run: &Run) -> Markup {
    let shapes = run.header.shapes.iter();
    let tunings: Vec<&Tuning> = shapes.filter_map(|s| run.tuning(&s.name)).collect();
    html! {
        @if let Some(first) = tunings.first() {
            details { summary { "What the yardstick calls, of all that " (first.library) " offers" }
                (calls(&tunings).html())
            }
        }
    }
}

fn contenders(records: &[ContenderRecord]) -> Table {
    let summary = Column::left("summary").wraps();
    let hash = Column::left("SHA-256");
    let columns = vec![Column::key("contender"), Column::left("for"), summary, hash];
    let row = |c: &ContenderRecord| row![&c.id, &c.arch, &c.summary, &c.hash];
    Table::new(columns).with(records.iter().map(row))
}

fn calls(tunings: &[&Tuning]) -> Table {
    let mut table = Table::new(vec![
        Column::key("shape"),
        Column::right("group"),
        Column::left("algorithm").wraps(),
        Column::right("of"),
        Column::right("GEMM alone, µs"),
    ]);
    for tuning in tunings {
        for (group, gemm) in tuning.gemms.iter().enumerate() {
            let micros = format!("{:.1}", gemm.micros.0);
            table.push(row![
                &tuning.shape,
                group,
                &gemm.text,
                gemm.candidates,
                micros
            ]);
        }
    }
    table
}

fn method(runs: &[RankedRun]) -> Markup {
    let measured = runs.iter().any(|s| s.run.timing().sampled());
    html! {
        h3 { "What the numbers mean" }
        @if measured {
            p { "Every block times each valid contender once, in random order, with the baseline entered twice. \
                 A speedup is the mean of the log ratio of two contenders in the same block, over blocks and \
                 processes; the geometric mean averages those over shapes. Intervals are 95 %, by Student’s t over \
                 the means of processes; ranks are tie groups of Holm-corrected comparisons; the second \
                 entry of the baseline says what difference the machine can see at all. All of it is about \
                 the card that was timed: another of its kind can differ by more than the intervals." }
        } @else {
            p { "Times here have no samples, so there are no intervals. Modelled ones are a replay of what an emulator’s warps did, \
                 on the numbers of the target: no GPU ran, the same sources give the same times, and how far they are from a card’s is said \
                 above. Recorded ones were taken down elsewhere." }
        }
        p.note { "Formulas: docs/methodology.md. Every number on this page is computed from the run files named above." }
    }
}
