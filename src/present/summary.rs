use super::{
    Met, Style, belief, belief_again, counters_of_run, failures, matrix, percent, ranking_table,
    rendered,
};
use dgx_core::domain::{Status, Timing, counted, typed};
use dgx_core::gate;
use dgx_core::rank::{Kind, Ranking};
use dgx_core::record::{Run, printable};
use dgx_core::speech::{self, Level};

/// What a summary is asked for, and who asks.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// What the emulator counted, too.
    pub counters: bool,
    /// The run has just been made: nobody has read its tables before.
    pub new: bool,
    /// Commands that are told of no run take this one.
    pub usual: bool,
    /// Where it, its round and its variants are.
    pub met: &'a Met<'a>,
    /// Whether there is a variant of that name there.
    pub is_here: &'a dyn Fn(&str) -> bool,
}

/// Everything a sweep says at its end, made from the run file alone.
pub(crate) fn sweep_summary(run: &Run, asked: &Asked<'_>, style: &Style) -> String {
    let ranking = &Ranking::of(run);
    let mut parts = vec![headline(run, asked.new, style)];
    parts.push(ranking_table(run, ranking).render(style));
    parts.push(matrix(run, ranking, style));
    // Sums over other shapes for every contender compare nothing.
    if asked.counters && run.end.as_ref().is_some_and(|end| end.complete) {
        parts.push(rendered(&counters_of_run(run, ranking), style));
    }
    let failed = failures(run, ranking, asked.met, style);
    if !failed.is_empty() {
        parts.push(failed);
    }
    let told = remarks(run, ranking);
    let told: Vec<String> = told.iter().map(|note| style.fold(note, 2)).collect();
    parts.push(told.join("\n"));
    parts.push(ending(run, ranking, asked, style));
    parts.retain(|p| !p.is_empty());
    parts.join("\n\n")
}

/// The round, its question, and what ran where; of a new run, all there is to
/// know of its times.
pub(crate) fn headline(run: &Run, new: bool, style: &Style) -> String {
    let header = &run.header;
    let folded = style.titled(&header.name, &header.question);
    let contenders = counted(header.contenders.len(), "contender");
    let shapes = counted(header.shapes.len(), "shape");
    let what = format!("{contenders} × {shapes} {}", place(run));
    let mut text = format!("{folded}\n{}", style.fold(&what, 2));
    let belief = match new || speech::level() >= Level::Verbose {
        true => belief(run),
        false => belief_again(&header.device),
    };
    let sentences = belief.into_iter().chain(unvalidated(run));
    for sentence in sentences.chain(foreseeable(run)) {
        text.push_str(&format!("\n{}", style.fold(&sentence, 2)));
    }
    text
}

fn unvalidated(run: &Run) -> Option<String> {
    let settings = &run.header.settings;
    settings.time_only.then(|| {
        "Nothing was validated (--time-only), and operands were zero: a contender that is wrong, or \
         skips zeros, is in this table too."
            .to_owned()
    })
}

fn foreseeable(run: &Run) -> Option<String> {
    let settings = &run.header.settings;
    settings.secret_given.then(|| {
        "The data were predictable (--data-seed): a kernel may contain the results.".to_owned()
    })
}

fn place(run: &Run) -> String {
    let device = &run.header.device;
    match device.timing {
        Timing::Measured => format!("on {} ({}, measured)", device.name, device.backend),
        Timing::Modelled => {
            let cores = run.header.host.cores;
            let noun = if cores == 1 { "core" } else { "cores" };
            format!("on {cores} CPU {noun}, PTX emulated for {}", device.name)
        }
        Timing::Recorded => format!("on {} (recorded, not measured here)", device.name),
        Timing::Scripted => format!(
            "on {} ({}: times and outputs are scripted, nothing ran)",
            device.name, device.backend
        ),
    }
}

/// Why nobody has a rank, where nobody has.
pub(crate) fn unranked(ranking: &Ranking) -> Option<String> {
    if ranking.rows.iter().any(|row| row.place.is_some()) {
        return None;
    }
    let rows = ranking.rows.iter().filter(|r| r.kind != Kind::Yardstick);
    let statuses: Vec<Option<Status>> = rows.map(|row| row.status).collect();
    let count = |status| statuses.iter().filter(|s| **s == Some(status)).count();
    let why = match (count(Status::Ok), count(Status::NotValidated)) {
        (0, 0) => "no contender is right on every shape".to_owned(),
        (0, _) => "no contender has a time on every shape".to_owned(),
        (right, _) => {
            let all = statuses.len();
            format!("{right} of {all} contenders are right, but none has a time on every shape")
        }
    };
    Some(format!("Nothing is ranked: {why}."))
}

/// All that is said below the tables of a run, besides what failed.
pub(crate) fn notes(run: &Run, ranking: &Ranking) -> Vec<String> {
    let mut notes: Vec<String> = unvalidated(run).into_iter().collect();
    notes.extend(remarks(run, ranking));
    notes.push(can_tell(run, ranking));
    notes.extend(open_decision(run).map(str::to_owned));
    notes.retain(|note| !note.is_empty());
    notes
}

/// What a reader must know to read the numbers rightly.
fn remarks(run: &Run, ranking: &Ranking) -> Vec<String> {
    let mut notes = Vec::new();
    let header = &run.header;
    if !ranking.baseline_valid {
        let instead = match &ranking.reference {
            Some(reference) => format!("speedups are over {reference}"),
            None => "there are no speedups".to_owned(),
        };
        notes.push(format!(
            "The baseline {} is not valid on every shape, so {instead}.",
            header.baseline
        ));
    }
    let impossible = gate::impossible(run, ranking);
    if !impossible.is_empty() {
        notes.push(format!(
            "Warning: {}. Sweeps reject such times, so do not believe this file.",
            super::impossible(&impossible)
        ));
    }
    notes.extend(unranked(ranking));
    notes.extend(sampling_notes(run, ranking));
    notes
}

fn sampling_notes(run: &Run, ranking: &Ranking) -> Vec<String> {
    let mut notes = Vec::new();
    let timed = || ranking.cells.iter().filter_map(|c| c.time.as_ref());
    let samples: usize = timed().map(|t| t.samples).sum();
    let outliers: usize = timed().map(|t| t.outliers).sum();
    if outliers > 0 {
        let about = match timed().any(|t| t.outliers_scaled) {
            true => "About ",
            false => "",
        };
        notes.push(format!(
            "{about}{outliers} of {samples} samples are outliers; they are counted, not dropped."
        ));
    }
    let cards = run.cards().len();
    if run.timing().sampled() && cards > 1 {
        notes.push(format!(
            "Each shape was timed on one card; geometric means are over shapes from {cards} cards \
             of one model, and hold for these."
        ));
    } else if run.timing() == Timing::Measured && timed().any(|t| t.log.se.is_some()) {
        notes.push(
            "Intervals hold for this card; another of its kind can differ by more.".to_owned(),
        );
    }
    if let Some(shard) = &run.header.shard {
        notes.push(format!(
            "This is shard {} of {}: {} of the round's {} shapes; `dgx merge` joins them.",
            shard.number,
            shard.of,
            run.header.shapes.len(),
            shard.shapes.len()
        ));
    }
    if samples > 0 && timed().all(|t| t.log.se.is_none()) {
        notes.push(
            "One block per shape: there is no interval, so no difference can be detected."
                .to_owned(),
        );
    } else if samples > 0 && run.tally.process_count() == 1 {
        notes.push(
            "All blocks come from one process; differences between processes are not in the \
             intervals."
                .to_owned(),
        );
    }
    if run.torn {
        notes.push("The last line of the file was half written and is not counted.".to_owned());
    }
    let reason = match &run.end {
        None if run.timing() != Timing::Recorded => Some("it did not end"),
        Some(end) if !end.complete => Some(end.reason.as_deref().unwrap_or("it was stopped")),
        _ => None,
    };
    if let Some(reason) = reason {
        notes.push(format!(
            "The run is not complete ({reason}); `dgx sweep --resume {}` continues it.",
            printable(&typed(&run.path))
        ));
    }
    notes
}

/// What the measuring left open.
fn open_decision(run: &Run) -> Option<&str> {
    let decision = run.end.as_ref().and_then(|e| e.decision.as_deref());
    decision.filter(|d| *d != "decided")
}

/// What differences the times can tell.
fn can_tell(run: &Run, ranking: &Ranking) -> String {
    match (run.timing(), &ranking.detectable) {
        (Timing::Measured, Some(d)) => format!(
            "This run can detect differences of {} or more.",
            percent(d.effect)
        ),
        (Timing::Measured, None) => {
            "The smallest difference this run can detect is unknown: that needs the baseline twice \
             in each of two blocks or more."
                .to_owned()
        }
        (Timing::Modelled, _) => String::new(),
        (Timing::Recorded, _) => match &run.tool {
            Some(tool) => super::foreign(tool, run.tally.process_count()),
            None => "Recorded numbers come without samples, so without intervals.".to_owned(),
        },
        (Timing::Scripted, _) => {
            "Scripted times test the measuring; they say nothing about a design.".to_owned()
        }
    }
}

fn ending(run: &Run, ranking: &Ranking, asked: &Asked<'_>, style: &Style) -> String {
    let can_tell = can_tell(run, ranking);
    let path = printable(&run.path.display().to_string());
    let mut text = style.joined(&[can_tell, path], 0);
    if let Some(open) = open_decision(run) {
        text.push_str(&format!("\n{}", style.doubtful(style.fold(open, 2))));
    }
    if speech::level() >= Level::Usual {
        let next = next(run, ranking, asked, style);
        text.extend(next.map(|next| format!("\n{next}")));
    }
    text
}

/// The commands a reader most likely wants now, as far as they work on this run.
fn next(run: &Run, ranking: &Ranking, asked: &Asked<'_>, style: &Style) -> Option<String> {
    let mut ranked = ranking.rows.iter().filter(|r| r.place.is_some());
    let named = match asked.usual {
        true => String::new(),
        false => format!(" {}", typed(&run.path)),
    };
    let folders = asked.met.folders.flags();
    let mut steps = Vec::new();
    let (first, second) = (ranked.next(), ranked.next());
    if let (Some(first), Some(second)) = (first, second) {
        let (first, second) = (first.contender.typed(), second.contender.typed());
        steps.push(format!("dgx compare {second} {first}{named}"));
    }
    // What another tool timed has times and names, and no more.
    if run.tool.is_none() {
        steps.push(format!("dgx report{named}"));
        let rows = ranking.rows.iter().filter(|r| r.kind != Kind::Yardstick);
        let explained = first.into_iter().chain(rows).next();
        let here = explained.filter(|row| (asked.is_here)(row.contender.variant()));
        steps.extend(here.map(|row| {
            let contender = row.contender.typed();
            format!("dgx explain {contender}{named}{folders}")
        }));
    }
    let text = format!("next: {}", steps.join(" · "));
    (!steps.is_empty()).then(|| style.dim(style.fold(&text, 6)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::Folders;
    use dgx_core::record::schema::Line;
    use dgx_core::record::synthetic::{Entry, Synthetic};

    fn summary(run: &Run, counters: bool, style: &Style) -> String {
        let folders = Folders::default();
        let asked = Asked {
            counters,
            new: true,
            usual: true,
            met: &Met::in_run(run, &folders),
            is_here: &|_| true,
        };
        sweep_summary(run, &asked, style)
    }

    /// What stands behind `next:`, a command each.
    fn steps(run: &Run, usual: bool, is_here: bool) -> Vec<String> {
        let folders = Folders::of(&run.header);
        let asked = Asked {
            counters: false,
            new: true,
            usual,
            met: &Met::in_run(run, &folders),
            is_here: &|_| is_here,
        };
        let said = sweep_summary(run, &asked, &Style::PLAIN);
        let (_, steps) = said.split_once("\nnext: ").expect("a next step");
        let flat = steps.split_whitespace().collect::<Vec<_>>().join(" ");
        flat.split(" · ").map(str::to_owned).collect()
    }

    #[test]
    fn the_next_commands_are_about_this_run_and_work_on_it() {
        let mut run = Synthetic::round4().run();
        let of = |run: &Run, step: &String| step.contains(&format!(" {}", typed(&run.path)));
        run.path = "kept runs/of me.jsonl".into();
        assert!(steps(&run, true, true).iter().all(|step| !of(&run, step)));
        let named = steps(&run, false, true);
        assert_eq!(named.len(), 3, "{named:?}");
        assert!(named.iter().all(|step| of(&run, step)), "{named:?}");
        let elsewhere = steps(&run, false, false);
        assert_eq!(elsewhere, named[..2], "explain needs the source");
        run.header.argv = ["dgx", "sweep", "x", "--variants", "my own"]
            .map(Into::into)
            .into();
        assert!(steps(&run, false, true)[2].ends_with(" --variants 'my own'"));
        run.tool = Some("nvbench".into());
        assert_eq!(
            steps(&run, false, true),
            named[..1],
            "it has times, and no more"
        );
    }

    #[test]
    fn measured_run() {
        let run = Synthetic::round4().run();
        insta::assert_snapshot!(summary(&run, false, &Style::PLAIN));
    }

    #[test]
    fn modelled_run_on_a_narrow_screen() {
        let run = Synthetic::round4().modelled().run();
        let narrow = Style {
            width: 80,
            ..Style::PLAIN
        };
        insta::assert_snapshot!(summary(&run, true, &narrow));
    }

    #[test]
    fn times_alone() {
        let run = Synthetic::round4().time_only().run();
        insta::assert_snapshot!(summary(&run, false, &Style::PLAIN));
    }

    #[test]
    fn a_time_with_a_remark() {
        let mut lines = Synthetic::round4().modelled().lines();
        let told = "CTAs outside the fixed sample take longer: 19.0 µs with 5 of them";
        for line in &mut lines {
            if let Line::Verdict(v) = line
                && v.contender.as_str() == "interleaved"
            {
                v.reason = Some(told.to_owned());
            }
        }
        let json = lines.iter().map(|l| serde_json::to_string(l).unwrap());
        let text: String = json.map(|line| line + "\n").collect();
        let run = dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let said = summary(&run, false, &Style::PLAIN);
        let unfolded = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = format!("interleaved timed on every shape: {told}");
        assert!(unfolded.contains(&wanted), "{said}");
    }

    /// Right, and without a time: the row stays, unranked, with the reason.
    #[test]
    fn a_cell_that_cannot_be_modelled() {
        let field = Synthetic::round4().modelled();
        let mut lines = field.lines();
        let told = "no time can be modelled: the cubin cannot be read: no ELF";
        lines.retain_mut(|line| match line {
            Line::Estimate(e) => e.contender.as_str() != "interleaved",
            Line::Verdict(v) if v.contender.as_str() == "interleaved" => {
                v.reason = Some(told.to_owned());
                true
            }
            _ => true,
        });
        let json = lines.iter().map(|l| serde_json::to_string(l).unwrap());
        let text: String = json.map(|line| line + "\n").collect();
        let run = dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let said = summary(&run, false, &Style::PLAIN);
        let unfolded = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = format!("interleaved not timed on every shape: {told}");
        assert!(unfolded.contains(&wanted), "{said}");
        assert!(unfolded.contains("– interleaved ok"), "{said}");
    }

    #[test]
    fn many_contenders_and_every_failure() {
        let mut field = Synthetic::round4();
        field.entries.extend([
            Entry::ok("pipelined[STAGES=1]", 0.61),
            Entry::ok("pipelined[STAGES=2]", 0.6101),
            Entry::ok("warp-specialized", 0.58).claiming(1.4, "sequential"),
            Entry::failed(
                "bad-syntax",
                Status::CompileError,
                "variants/bad-syntax.cu(3): expected a `;`",
            ),
            Entry::failed("deadlock", Status::Hung, "no progress for 10 s"),
            Entry::failed("greedy", Status::Unsupported, "requires k % 512 == 0"),
        ]);
        let run = field.run();
        insta::assert_snapshot!(summary(&run, false, &Style::PLAIN));
        let narrow = Style {
            width: 80,
            ..Style::PLAIN
        };
        for line in summary(&run, true, &narrow).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn nothing_valid() {
        let mut field = Synthetic::round4();
        field.yardstick = None;
        for entry in &mut field.entries {
            entry.status = Status::Wrong;
            entry.reason = Some("every element is NaN");
        }
        insta::assert_snapshot!(summary(&field.run(), false, &Style::PLAIN));
    }

    #[test]
    fn one_sample_one_shape_one_contender() {
        let mut field = Synthetic::round4();
        field.entries.truncate(1);
        field.shapes.truncate(1);
        field.yardstick = None;
        (field.processes, field.blocks) = (1, 1);
        insta::assert_snapshot!(summary(&field.run(), false, &Style::PLAIN));
    }

    #[test]
    fn colour_never_carries_meaning_alone() {
        let run = Synthetic::round4().run();
        let coloured = Style {
            colour: true,
            ..Style::PLAIN
        };
        let text = summary(&run, false, &coloured);
        let plain: String = strip(&text);
        assert_eq!(plain, summary(&run, false, &Style::PLAIN));
    }

    fn strip(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.map(|p| p.split_once('m').map_or("", |(_, t)| t));
        first + &rest.collect::<String>()
    }
}
