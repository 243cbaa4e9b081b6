use super::{
    Commands, Style, accuracy, accuracy_in_short, counters_of_run, failure_lines, matrix, percent,
    ranking_table, recorded_table, rendered,
};
use dgx_core::domain::{Joined, Status, Timing, counted, first_few, typed};
use dgx_core::gate;
use dgx_core::rank::{EntrantKind, Ranking, Timed};
use dgx_core::record::{Run, printable};
use dgx_core::speech::{self, Level};

/// What a summary contains besides the tables.
#[derive(Clone, Copy)]
pub(crate) struct SummaryOptions<'a> {
    /// Also the emulator's counters.
    pub counters: bool,
    /// The run has just been made, and its tables are new to the reader.
    pub new: bool,
    /// Commands that name no run would use this one.
    pub usual: bool,
    /// The paths of the run, its round and its variants.
    pub commands: &'a Commands<'a>,
    /// Whether a variant of that name exists there.
    pub is_here: &'a dyn Fn(&str) -> bool,
}

/// Everything that a sweep prints at its end, made from the run file alone.
pub(crate) fn sweep_summary(run: &Run, options: &SummaryOptions<'_>, style: &Style) -> String {
    let ranking = &Ranking::of(run);
    let mut parts = vec![headline(run, options.new, style)];
    // Benchmarks of another tool need not compute the same, so they are not ranked.
    if run.tool.is_some() {
        parts.push(recorded_table(run, ranking).render(style));
    } else {
        parts.push(ranking_table(run, ranking).render(style));
        parts.push(matrix(run, ranking, style));
    }
    // Sums over different shapes cannot be compared.
    if options.counters && run.end.as_ref().is_some_and(|end| end.complete) {
        parts.push(rendered(&counters_of_run(run, ranking), style));
    }
    if run.tool.is_none() {
        parts.push(failure_lines(run, ranking, options.commands, style));
    }
    let notes = remarks(run, ranking);
    let notes = notes.iter().map(|note| style.fold(note, 2)).joined("\n");
    parts.push(notes);
    parts.push(ending(run, ranking, options, style));
    parts.retain(|p| !p.is_empty());
    parts.join("\n\n")
}

/// The round, its question, and the device; for a new run, also everything about its times.
pub(crate) fn headline(run: &Run, new: bool, style: &Style) -> String {
    let header = &run.header;
    let folded = style.titled(&header.name, &header.question);
    let noun = match run.tool {
        Some(_) => "benchmark",
        None => "contender",
    };
    let contenders = counted(header.contenders.len(), noun);
    let shapes = counted(header.shapes.len(), "shape");
    let what = format!("{contenders} × {shapes} {}", place(run));
    let mut text = format!("{folded}\n{}", style.fold(&what, 2));
    let accuracy = match new || speech::level() >= Level::Verbose {
        true => accuracy(run),
        false => accuracy_in_short(&header.device, &run.operator.name),
    };
    let sentences = accuracy.into_iter().chain(unvalidated(run));
    for sentence in sentences.chain(foreseeable(run)) {
        text.push_str(&format!("\n{}", style.fold(&sentence, 2)));
    }
    text
}

fn unvalidated(run: &Run) -> Option<String> {
    let settings = &run.header.settings;
    settings.time_only.then(|| {
        "Nothing was validated (--time-only), and all operands were zero: a contender may be wrong, \
         or fast only on zeros."
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

/// Why no contender has a rank, if none has.
pub(crate) fn unranked(ranking: &Ranking) -> Option<String> {
    if ranking.rows.iter().any(|row| row.place.is_some()) {
        return None;
    }
    let rows = ranking
        .rows
        .iter()
        .filter(|r| r.kind != EntrantKind::Yardstick);
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

/// Everything below the tables of a run, except the failures.
pub(crate) fn notes(run: &Run, ranking: &Ranking) -> Vec<String> {
    let mut notes: Vec<String> = unvalidated(run).into_iter().collect();
    notes.extend(remarks(run, ranking));
    notes.push(detectable_note(run, ranking));
    notes.extend(open_decision(run).map(str::to_owned));
    notes.retain(|note| !note.is_empty());
    notes
}

/// What a reader must know to interpret the numbers.
fn remarks(run: &Run, ranking: &Ranking) -> Vec<String> {
    let mut notes = Vec::new();
    let header = &run.header;
    if !ranking.baseline_valid && run.tool.is_none() {
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
    notes.extend(gate::loose(run).map(|how| super::loose(&how)));
    notes.extend(fewer_data(run));
    notes.extend(gate::holes(run).map(|holes| format!("Warning: {}.", super::gap(&holes))));
    notes.extend(unranked(ranking).filter(|_| run.tool.is_none()));
    notes.extend(sampling_notes(run, ranking));
    notes
}

/// Cells that count as ok after fewer data than the round requires.
fn fewer_data(run: &Run) -> Option<String> {
    const NAMED: usize = 4;
    let mut cells = Vec::new();
    for contender in run.header.contenders.iter().map(|c| &c.id) {
        for shape in run.header.shapes.iter().map(|s| &s.name) {
            let verdict = run.verdict(contender, shape);
            let ok = verdict.filter(|v| v.status == Status::Ok && !v.unseen.is_empty());
            cells.extend(ok.map(|verdict| {
                let unseen = verdict.unseen.iter().map(|d| d.as_str()).joined(" or ");
                format!("{contender} on {shape} (no {unseen} data)")
            }));
        }
    }
    let count = counted(cells.len(), "cell");
    let verb = if cells.len() == 1 { "was" } else { "were" };
    (!cells.is_empty()).then(|| {
        format!(
            "{count} {verb} checked with fewer data than the round names, because a call takes \
             more than a second: {}.",
            first_few(cells, NAMED, "more")
        )
    })
}

fn sampling_notes(run: &Run, ranking: &Ranking) -> Vec<String> {
    let timed: Vec<&Timed> = (ranking.cells.iter())
        .filter_map(|cell| cell.time.as_ref())
        .collect();
    let shard = run.header.shard.as_ref().map(|shard| {
        format!(
            "This is shard {} of {}: {} of the round's {} shapes; `dgx merge` joins them.",
            shard.number,
            shard.of,
            run.header.shapes.len(),
            shard.shapes.len()
        )
    });
    let torn = "The last line of the file was half written and is not counted.";
    let notes = [
        outlier_note(&timed),
        card_note(run, &timed),
        shard,
        interval_note(run, &timed).filter(|_| run.tool.is_none()),
        run.torn.then(|| torn.to_owned()),
        incomplete_note(run),
    ];
    notes.into_iter().flatten().collect()
}

fn outlier_note(timed: &[&Timed]) -> Option<String> {
    let samples: usize = timed.iter().map(|t| t.samples).sum();
    let outliers: usize = timed.iter().map(|t| t.outliers).sum();
    let about = match timed.iter().any(|t| t.outliers_scaled) {
        true => "About ",
        false => "",
    };
    (outliers > 0).then(|| {
        format!(
            "{about}{outliers} of {samples} samples are outliers; they are counted, not dropped."
        )
    })
}

fn card_note(run: &Run, timed: &[&Timed]) -> Option<String> {
    let cards = run.cards().len();
    if run.timing().sampled() && cards > 1 {
        return Some(format!(
            "Each shape was timed on one card; geometric means are over shapes from {cards} cards \
             of one model, and hold for these."
        ));
    }
    let measured = run.timing() == Timing::Measured && timed.iter().any(|t| t.log.se.is_some());
    let note = "Intervals hold for this card; another of its kind can differ by more.";
    measured.then(|| note.to_owned())
}

fn interval_note(run: &Run, timed: &[&Timed]) -> Option<String> {
    let note = match timed.iter().all(|t| t.log.se.is_none()) {
        true => "One block per shape: there is no interval, so no difference can be detected.",
        false if run.tally.process_count() == 1 => {
            "All blocks come from one process; differences between processes are not in the \
             intervals."
        }
        false => return None,
    };
    timed.iter().any(|t| t.samples > 0).then(|| note.to_owned())
}

fn incomplete_note(run: &Run) -> Option<String> {
    let reason = match &run.end {
        None if run.timing() != Timing::Recorded => "it did not end",
        Some(end) if !end.complete => end.reason.as_deref().unwrap_or("it was stopped"),
        _ => return None,
    };
    Some(format!(
        "The run is not complete ({reason}); `dgx sweep --resume {}` continues it.",
        printable(&typed(&run.path))
    ))
}

/// What the measurement left undecided.
fn open_decision(run: &Run) -> Option<&str> {
    let decision = run.end.as_ref().and_then(|e| e.decision.as_deref());
    decision.filter(|d| *d != "decided")
}

/// Which differences the times can detect.
fn detectable_note(run: &Run, ranking: &Ranking) -> String {
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

fn ending(run: &Run, ranking: &Ranking, options: &SummaryOptions<'_>, style: &Style) -> String {
    let detectable_note = detectable_note(run, ranking);
    let path = printable(&run.path.display().to_string());
    let mut text = style.joined(&[detectable_note, path], 0);
    if let Some(open) = open_decision(run) {
        text.push_str(&format!("\n{}", style.doubtful(style.fold(open, 2))));
    }
    if speech::level() >= Level::Usual {
        let next = next(run, ranking, options, style);
        text.extend(next.map(|next| format!("\n{next}")));
    }
    text
}

/// The likely next commands, as far as they work on this run.
fn next(
    run: &Run,
    ranking: &Ranking,
    options: &SummaryOptions<'_>,
    style: &Style,
) -> Option<String> {
    // A run of another tool has only times and names.
    if run.tool.is_some() {
        return None;
    }
    let mut ranked = ranking.rows.iter().filter(|r| r.place.is_some());
    let named = match options.usual {
        true => String::new(),
        false => format!(" {}", typed(&run.path)),
    };
    let folders = options.commands.folders.flags();
    let mut steps = Vec::new();
    let (first, second) = (ranked.next(), ranked.next());
    if let (Some(first), Some(second)) = (first, second) {
        let (first, second) = (first.contender.typed(), second.contender.typed());
        steps.push(format!("dgx compare {second} {first}{named}"));
    }
    steps.push(format!("dgx report{named}"));
    let rows = ranking
        .rows
        .iter()
        .filter(|r| r.kind != EntrantKind::Yardstick);
    let explained = first.into_iter().chain(rows).next();
    let here = explained.filter(|row| (options.is_here)(row.contender.variant()));
    steps.extend(here.map(|row| {
        let contender = row.contender.typed();
        format!("dgx explain {contender}{named}{folders}")
    }));
    let text = format!("next: {}", steps.join(" · "));
    Some(style.dim(style.fold(&text, 6)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::Folders;
    use dgx_core::record::schema::Line;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    fn summary(run: &Run, counters: bool, style: &Style) -> String {
        let folders = Folders::default();
        let options = SummaryOptions {
            counters,
            new: true,
            usual: true,
            commands: &Commands::for_run(run, &folders),
            is_here: &|_| true,
        };
        sweep_summary(run, &options, style)
    }

    /// The commands after `next:`.
    fn steps(run: &Run, usual: bool, is_here: bool) -> Vec<String> {
        let folders = Folders::of(&run.header);
        let options = SummaryOptions {
            counters: false,
            new: true,
            usual,
            commands: &Commands::for_run(run, &folders),
            is_here: &|_| is_here,
        };
        let said = sweep_summary(run, &options, &Style::PLAIN);
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
        let reason = "CTAs outside the fixed sample take longer: 19.0 µs with 5 of them";
        for line in &mut lines {
            if let Line::Verdict(v) = line
                && v.contender.as_str() == "interleaved"
            {
                v.reason = Some(reason.to_owned());
            }
        }
        let json = lines.iter().map(|l| serde_json::to_string(l).unwrap());
        let text: String = json.map(|line| line + "\n").collect();
        let run = dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let said = summary(&run, false, &Style::PLAIN);
        let unfolded = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = format!("interleaved timed on every shape: {reason}");
        assert!(unfolded.contains(&wanted), "{said}");
    }

    /// Correct, but without a time: the row stays, unranked, with the reason.
    #[test]
    fn a_cell_that_cannot_be_modelled() {
        let field = Synthetic::round4().modelled();
        let mut lines = field.lines();
        let reason = "no time can be modelled: the cubin cannot be read: no ELF";
        lines.retain_mut(|line| match line {
            Line::Estimate(e) => e.contender.as_str() != "interleaved",
            Line::Verdict(v) if v.contender.as_str() == "interleaved" => {
                v.reason = Some(reason.to_owned());
                true
            }
            _ => true,
        });
        let json = lines.iter().map(|l| serde_json::to_string(l).unwrap());
        let text: String = json.map(|line| line + "\n").collect();
        let run = dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let said = summary(&run, false, &Style::PLAIN);
        let unfolded = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = format!("interleaved not timed on every shape: {reason}");
        assert!(unfolded.contains(&wanted), "{said}");
        assert!(unfolded.contains("– interleaved ok"), "{said}");
    }

    #[test]
    fn many_contenders_and_every_failure() {
        let mut field = Synthetic::round4();
        field.entries.extend([
            SyntheticContender::ok("pipelined[STAGES=1]", 0.61),
            SyntheticContender::ok("pipelined[STAGES=2]", 0.6101),
            SyntheticContender::ok("warp-specialized", 0.58).claiming(1.4, "sequential"),
            SyntheticContender::failed(
                "bad-syntax",
                Status::CompileError,
                "variants/bad-syntax.cu(3): expected a `;`",
            ),
            SyntheticContender::failed("deadlock", Status::Hung, "no progress for 10 s"),
            SyntheticContender::failed("greedy", Status::Unsupported, "requires k % 512 == 0"),
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
