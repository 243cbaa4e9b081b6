use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::domain::{ContenderId, Exit, Shape, Status};
use crate::record::schema::{ExaminedCell, Shard, VoidedTimes};
use crate::record::synthetic::Synthetic;

/// Parts of a synthetic round, each a file.
struct Parts {
    folder: tempfile::TempDir,
    whole: Vec<Line>,
}

fn about(line: &Line, names: &[String]) -> bool {
    let named = |shape: &String| names.contains(shape);
    match line {
        Line::Header(_) => false,
        Line::Build(build) => build.shapes.iter().any(named),
        Line::Verdict(verdict) => named(&verdict.shape),
        Line::Tuning(tuning) => named(&tuning.shape),
        Line::Block(block) => named(&block.shape),
        Line::Void(void) => named(&void.shape),
        Line::Estimate(estimate) => named(&estimate.shape),
        Line::Kernels(kernels) => named(&kernels.shape),
        Line::Examined(examined) => named(&examined.shape),
        Line::End(_) => true,
    }
}

fn text(lines: &[Line]) -> String {
    let lines = lines.iter();
    lines
        .map(|l| serde_json::to_string(l).unwrap() + "\n")
        .collect()
}

impl Parts {
    fn of(synthetic: &Synthetic) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            whole: synthetic.lines(),
        }
    }

    fn header(&self) -> &Header {
        let Line::Header(header) = &self.whole[0] else {
            panic!("a run begins with its header");
        };
        header
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Every `of`-th shape of the round, from the `number`-th on.
    fn lines(&self, number: u32, of: u32, change: impl Fn(&mut Header)) -> Vec<Line> {
        let mut header = self.header().clone();
        let all = header.shapes.clone();
        let own = all.iter().enumerate();
        let own = own.filter(|(i, _)| *i as u32 % of == number - 1);
        header.shapes = own.map(|(_, shape)| shape.clone()).collect();
        header.shard = Some(Shard {
            number,
            of,
            shapes: all,
        });
        header.argv = ["dgx", "sweep", "configs/round4.toml", "--shard"]
            .map(str::to_owned)
            .to_vec();
        header.argv.push(format!("{number}/{of}"));
        header.device.uuid = Some(format!("GPU-{number}"));
        change(&mut header);
        let (uuid, shapes) = (header.device.uuid.clone(), header.shapes.iter());
        let names: Vec<String> = shapes.map(|s| s.name.clone()).collect();
        let mut lines = vec![Line::Header(Box::new(header))];
        for line in self.whole.iter().filter(|line| about(line, &names)) {
            let mut line = line.clone();
            match &mut line {
                Line::Build(build) => build.shapes.retain(|s| names.contains(s)),
                Line::Block(block) => block.card = uuid.clone(),
                _ => {}
            }
            lines.push(line);
        }
        lines
    }

    fn shard(&self, number: u32, of: u32) -> PathBuf {
        let path = self.path(&format!("shard-{number}.jsonl"));
        std::fs::write(&path, text(&self.lines(number, of, |_| ()))).unwrap();
        path
    }

    fn merge(&self, files: &[PathBuf]) -> Result<Merged, CommandError> {
        let slot = Slot::at(&self.path("whole.jsonl")).unwrap();
        merge(files, slot, HeaderChanges::default())
    }

    /// The run as swept by a single machine.
    fn single(&self) -> Run {
        crate::record::read_text(Path::new("x.jsonl"), text(&self.whole).as_bytes()).unwrap()
    }
}

/// Cell for cell and block for block.
fn same(one: &Run, other: &Run) {
    assert_eq!(one.header.shapes, other.header.shapes);
    assert_eq!(one.tally, other.tally);
    for id in one.entrants() {
        for shape in &one.header.shapes {
            let name = &shape.name;
            assert_eq!(one.verdict(id, name), other.verdict(id, name));
            assert_eq!(one.estimate(id, name), other.estimate(id, name));
        }
    }
}

#[test]
fn shards_in_any_order_make_the_whole() {
    for synthetic in [Synthetic::round4(), Synthetic::round4().modelled()] {
        let parts = Parts::of(&synthetic);
        let [one, two, three] = [1, 2, 3].map(|number| parts.shard(number, 3));
        let files = [three.clone(), one.clone(), two.clone()];
        let merged = parts.merge(&files).unwrap();
        assert_eq!(merged.missing, []);
        same(&merged.run, &parts.single());
        assert!(merged.run.end.as_ref().unwrap().complete);
        let sampled = merged.run.timing().sampled();
        assert_eq!(merged.run.cards().len(), if sampled { 3 } else { 0 });
        assert_eq!(merged.run.header.device.uuid, None);
        let bytes = std::fs::read(&merged.run.path).unwrap();
        std::fs::remove_file(&merged.run.path).unwrap();
        let again = parts.merge(&[one, two, three]).unwrap();
        assert_eq!(std::fs::read(&again.run.path).unwrap(), bytes);
    }
}

#[test]
fn what_is_missing_is_named_and_can_be_added() {
    let parts = Parts::of(&Synthetic::round4());
    let partly = parts.merge(&[parts.shard(1, 3), parts.shard(3, 3)]);
    let partly = partly.unwrap();
    let end = partly.run.end.clone().unwrap();
    assert!(!end.complete);
    let reason = end.reason.unwrap();
    assert!(reason.contains("missing shard 2/3"), "{reason}");
    let lacking = parts.path("whole-shard-2-of-3.jsonl");
    let (file, whole) = (lacking.display(), partly.run.path.display());
    let command = format!("dgx sweep configs/round4.toml --shard 2/3 --into {file}");
    assert_eq!(partly.missing[0].commands, [command]);
    let merged = format!("dgx merge {file} --force -o {whole}");
    assert_eq!(then(&partly.missing, &partly.run.path), Some(merged));
    // A list of more shards than shapes is not printed.
    let many = parts.path("many.jsonl");
    let deal = |h: &mut Header| h.shard.as_mut().unwrap().of = u32::MAX;
    std::fs::write(&many, text(&parts.lines(1, 3, deal))).unwrap();
    let slot = Slot::at(&parts.path("other.jsonl")).unwrap();
    let many = merge(&[many], slot, HeaderChanges::default()).unwrap();
    let resume = format!("dgx sweep --resume {}", many.run.path.display());
    assert_eq!(many.missing[0].commands, [resume]);
    assert_eq!(then(&many.missing, &many.run.path), None);
    // The existing run is merged too.
    let whole = parts.merge(&[parts.shard(2, 3)]).unwrap();
    assert_eq!(whole.missing, []);
    same(&whole.run, &parts.single());
    let from = whole.run.header.parts.iter();
    let mut files: Vec<&str> = from.map(|p| p.file.as_str()).collect();
    files.sort_unstable();
    assert_eq!(files, ["shard-1.jsonl", "shard-2.jsonl", "shard-3.jsonl"]);
}

#[test]
fn of_two_files_with_a_shape_the_one_that_came_further_counts() {
    let parts = Parts::of(&Synthetic::round4());
    let (one, two) = (parts.shard(1, 2), parts.shard(2, 2));
    // Cut off in the middle of a block, on another card, under a name that sorts first.
    let elsewhere = |header: &mut Header| header.device.uuid = Some("GPU-9".to_owned());
    let cut = text(&parts.lines(2, 2, elsewhere));
    let torn = parts.path("a.jsonl");
    std::fs::write(&torn, &cut[..cut.len() / 2]).unwrap();
    let partly = parts.merge(&[one.clone(), torn.clone()]).unwrap();
    let what = &partly.missing[0].what;
    assert!(what.contains("not finished (shard 2/2"), "{what}");
    let resume = format!("dgx sweep --resume {}", torn.display());
    assert_eq!(partly.missing[0].commands, [resume]);
    std::fs::remove_file(&partly.run.path).unwrap();
    let whole = parts.merge(&[torn, one, two.clone(), two]).unwrap();
    assert_eq!(whole.missing, []);
    same(&whole.run, &parts.single());
    assert!(!whole.run.cards().contains("GPU-9"));
}

/// Of two equally advanced files names decide: not the uuid, which users do not see, and not the
/// clock, which may be wrong.
#[test]
fn of_equals_the_first_by_shard_and_name_counts() {
    let parts = Parts::of(&Synthetic::round4());
    for (name, card, year) in [("a.jsonl", "GPU-9", 1970), ("b.jsonl", "GPU-0", 2099)] {
        let elsewhere = |header: &mut Header| {
            header.device.uuid = Some(card.to_owned());
            header.started = format!("{year}-01-01T00:00:00Z");
        };
        let path = parts.path(name);
        std::fs::write(&path, text(&parts.lines(2, 2, elsewhere))).unwrap();
        let written = UNIX_EPOCH + Duration::from_secs((year - 1970) * 365 * 86_400);
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(written).unwrap();
    }
    let files = ["b.jsonl", "a.jsonl"].map(|name| parts.path(name));
    let merged = parts.merge(&[files.to_vec(), vec![parts.shard(1, 2)]].concat());
    let run = merged.unwrap().run;
    let cards: Vec<&str> = run.cards().into_iter().collect();
    assert_eq!(cards, ["GPU-1", "GPU-9"]);
}

#[test]
fn a_shard_cut_off_at_any_byte_is_merged_as_far_as_it_came() {
    for synthetic in [Synthetic::round4(), Synthetic::round4().modelled()] {
        let mut parts = Parts::of(&synthetic);
        // In a sweep's order: the verdict on a cell comes when it is finished.
        parts.whole.sort_by_key(|line| match line {
            Line::Header(_) | Line::Build(_) => 0,
            Line::Estimate(_) => 1,
            Line::Verdict(_) => 2,
            Line::Tuning(_) | Line::Block(_) | Line::Void(_) | Line::Kernels(_) => 3,
            Line::Examined(_) => 3,
            Line::End(_) => 4,
        });
        let (one, two) = (parts.shard(1, 2), parts.shard(2, 2));
        let whole = std::fs::read(&two).unwrap();
        let mut cuts = BTreeSet::new();
        let (mut at, mut last, mut kinds) = (0, 0, BTreeSet::new());
        for line in whole.split_inclusive(|b| *b == b'\n') {
            let kind = line.iter().take(24).copied().collect::<Vec<u8>>();
            let wide = line.iter().position(|b| !b.is_ascii()).map(|i| i + 1);
            // After the header: without one it is not a run file.
            if kinds.insert(kind) && at > 0 {
                let within = [0, 1, line.len() / 2, line.len() - 2, line.len() - 1];
                cuts.extend(within.into_iter().chain(wide).map(|i| at + i));
            }
            at += line.len();
            if !line.starts_with(b"{\"type\":\"end\"") {
                last = at - 2;
            }
        }
        assert!(cuts.len() > 12, "{cuts:?}");
        for cut in cuts {
            std::fs::write(&two, &whole[..cut]).unwrap();
            let partly = parts.merge(&[one.clone(), two.clone()]).unwrap();
            assert_eq!(partly.missing.is_empty(), cut > last, "cut at {cut}");
            std::fs::write(&two, &whole).unwrap();
            let full = parts.merge(std::slice::from_ref(&two)).unwrap();
            assert_eq!(full.missing, [], "cut at {cut}");
            same(&full.run, &parts.single());
            std::fs::remove_file(&full.run.path).unwrap();
        }
    }
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let parts = Parts::of(&Synthetic::round4());
    let one = parts.shard(1, 2);
    let other = parts.path("other.jsonl");
    type Change = fn(&mut Header);
    let changes: [(&str, Change); 13] = [
        ("different rounds: round4 and round5", |h| {
            h.name = "round5".to_owned();
        }),
        ("was changed between them", |h| h.config.text.push('#')),
        ("different shapes", |h| {
            h.shard.as_mut().unwrap().shapes.reverse();
        }),
        ("with --quick", |h| h.departures.push("--quick".to_owned())),
        ("(variant hashes)", |h| h.contenders[1].hash.push('0')),
        ("contenders differ", |h| drop(h.contenders.pop())),
        ("declared differently", |h| {
            h.contenders[1].summary.push('!');
        }),
        ("seeds differ", |h| h.settings.seed += 1),
        ("blocks differ", |h| h.settings.min_blocks += 1),
        ("settings differ", |h| h.settings.rtol *= 2.0),
        ("GPU models differ: NVIDIA H200 and NVIDIA B200", |h| {
            h.device.name = "NVIDIA B200".to_owned();
        }),
        ("compilers differ", |h| h.compiler = None),
        ("versions of dgx differ", |h| h.dgx = "9.9".to_owned()),
    ];
    for (why, change) in changes {
        let lines = parts.lines(2, 2, change);
        std::fs::write(&other, text(&lines[..1])).unwrap();
        let error = parts.merge(&[one.clone(), other.clone()]).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
        assert_eq!(error.exit(), Exit::Usage);
        assert!(!parts.path("whole.jsonl").exists(), "nothing is left of it");
    }
    let lines = text(&parts.lines(2, 2, |_| ()));
    std::fs::write(&other, lines.replacen("\"schema\":1", "\"schema\":2", 1)).unwrap();
    let error = parts.merge(&[one, other]).unwrap_err();
    assert!(error.to_string().contains("schema 2"), "{error}");
}

#[test]
fn a_shape_is_timed_on_one_card_until_that_is_void() {
    let parts = Parts::of(&Synthetic::round4());
    let mut lines = parts.whole.clone();
    let is_block = |line: &Line| matches!(line, Line::Block(_));
    let first = lines.iter().position(is_block).unwrap();
    let on = |line: &mut Line, card: &str| {
        if let Line::Block(block) = line {
            block.card = Some(card.to_owned());
        }
    };
    lines[first..].iter_mut().for_each(|line| on(line, "GPU-a"));
    on(&mut lines[first], "GPU-b");
    let read =
        |lines: &[Line]| crate::record::read_text(Path::new("x.jsonl"), text(lines).as_bytes());
    let error = read(&lines).unwrap_err().to_string();
    assert!(error.contains("a shape is timed on one card"), "{error}");
    let Line::Block(lost) = lines[first].clone() else {
        panic!("a block");
    };
    let void = VoidedTimes {
        shape: lost.shape.clone(),
        reason: "the card is gone".to_owned(),
    };
    lines.insert(first + 1, Line::Void(void));
    // The same block, timed again on the other card.
    let mut again = Line::Block(lost);
    on(&mut again, "GPU-a");
    lines.insert(first + 2, again);
    let run = read(&lines).unwrap();
    same(&run, &parts.single());
    assert_eq!(run.cards().into_iter().collect::<Vec<_>>(), ["GPU-a"]);
}

#[test]
fn the_whole_knows_the_folders_of_its_parts() {
    let parts = Parts::of(&Synthetic::round4());
    let folders = |header: &mut Header| {
        let words = ["--variants", "mine", "--variants=…/theirs"];
        header.argv.extend(words.map(str::to_owned));
    };
    let files = [1, 2].map(|number| {
        let path = parts.path(&format!("shard-{number}.jsonl"));
        std::fs::write(&path, text(&parts.lines(number, 2, folders))).unwrap();
        path
    });
    let merged = parts.merge(&files).unwrap();
    assert_eq!(merged.run.header.folders(), [Some("mine"), None]);
}

/// Parts with the same shapes that differ by what `change` does to a line.
fn contradicting(
    synthetic: &Synthetic,
    change: impl Fn(&mut Line),
) -> [Result<Merged, CommandError>; 2] {
    let parts = Parts::of(synthetic);
    let one = parts.shard(1, 2);
    let honest = parts.lines(2, 2, |_| ());
    let mut changed = honest.clone();
    changed.iter_mut().for_each(change);
    [["a", "b"], ["b", "a"]].map(|names| {
        let paths = names.map(|name| parts.path(&format!("{name}.jsonl")));
        std::fs::write(&paths[0], text(&honest)).unwrap();
        std::fs::write(&paths[1], text(&changed)).unwrap();
        let merged = parts.merge(&[one.clone(), paths[1].clone(), paths[0].clone()]);
        let _ = std::fs::remove_file(parts.path("whole.jsonl"));
        merged
    })
}

#[test]
fn parts_that_contradict_each_other_are_refused_whatever_they_are_called() {
    for synthetic in [Synthetic::round4(), Synthetic::round4().modelled()] {
        let wrong = contradicting(&synthetic, |line| {
            if let Line::Verdict(verdict) = line
                && verdict.contender.as_str() == "interleaved"
            {
                verdict.status = crate::domain::Status::Wrong;
            }
        });
        for merged in wrong {
            let error = merged.unwrap_err();
            assert_eq!(error.exit(), Exit::Unexpected);
            let said = error.to_string();
            assert!(said.contains("contradict each other"), "{said}");
            assert!(said.contains("`interleaved` on "), "{said}");
            assert!(said.contains("wrong") && said.contains("ok"), "{said}");
        }
        let faster = |factor: f64| {
            contradicting(&synthetic, move |line| match line {
                Line::Estimate(estimate) => estimate.micros.0 *= factor,
                Line::Block(block) => {
                    for sample in &mut block.samples {
                        sample.micros.0 *= factor;
                    }
                }
                _ => {}
            })
        };
        for merged in faster(0.5) {
            let error = merged.unwrap_err();
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().contains(" µs in the first"), "{error}");
        }
        // Two cards of a kind may differ a little: the slower one counts, whatever its name.
        let runs = faster(0.99).map(|merged| merged.unwrap().run);
        for run in &runs {
            same(run, &Parts::of(&synthetic).single());
        }
    }
}

#[test]
fn a_whole_gives_way_to_the_part_it_took_an_unfinished_shape_from() {
    let parts = Parts::of(&Synthetic::round4());
    let (one, two) = (parts.shard(1, 2), parts.shard(2, 2));
    let whole = std::fs::read_to_string(&two).unwrap();
    let cut: Vec<&str> = whole.lines().take(whole.lines().count() / 2).collect();
    std::fs::write(&two, cut.join("\n") + "\n").unwrap();
    let partly = parts.merge(&[one, two.clone()]).unwrap();
    assert!(!partly.missing.is_empty());
    // It turned out wrong while it was timed.
    let mut lines = parts.lines(2, 2, |_| ());
    let wrong = lines.iter().rev().find_map(|line| match line {
        Line::Verdict(verdict) if verdict.contender.as_str() == "interleaved" => {
            let mut verdict = verdict.clone();
            verdict.status = crate::domain::Status::Wrong;
            Some(Line::Verdict(verdict))
        }
        _ => None,
    });
    let end = lines.pop().unwrap();
    lines.extend([wrong.unwrap(), end]);
    std::fs::write(&two, text(&lines)).unwrap();
    let unfinished = &partly.run.header.parts;
    let unfinished: Vec<&String> = unfinished.iter().flat_map(|p| &p.unfinished).collect();
    let Line::Verdict(last) = &lines[lines.len() - 2] else {
        panic!("a verdict");
    };
    assert!(unfinished.contains(&&last.shape), "{unfinished:?}");
    let merged = parts.merge(&[two]).unwrap();
    assert_eq!(merged.missing, []);
}

/// The lines of a shard once `interleaved` was examined on a shape.
fn found(shard: &[Line], hazards: bool) -> Vec<Line> {
    let verdict = shard.iter().find_map(|line| match line {
        Line::Verdict(v) if v.contender.as_str() == "interleaved" => Some(v.clone()),
        _ => None,
    });
    let mut verdict = verdict.unwrap();
    let examined = Line::Examined(ExaminedCell {
        contender: verdict.contender.clone(),
        shape: verdict.shape.clone(),
        left_out: None,
        hazards: Vec::new(),
    });
    verdict.status = Status::Racy;
    let verdict = hazards.then_some(Line::Verdict(verdict));
    verdict.into_iter().chain([examined]).collect()
}

fn is_racy(run: &Run) -> bool {
    let shapes = run.header.shapes.iter();
    let status = |shape: &Shape| run.status(&ContenderId::from_text("interleaved"), &shape.name);
    shapes.filter_map(status).any(|s| s == Status::Racy)
}

#[test]
fn what_was_found_after_a_shape_was_merged_counts() {
    let parts = Parts::of(&Synthetic::round4());
    let (one, two) = (parts.shard(1, 2), parts.shard(2, 2));
    let mut lines = parts.lines(2, 2, |_| ());
    let end = lines.pop().unwrap();
    std::fs::write(&two, text(&lines)).unwrap();
    let early = parts.merge(&[one.clone(), two.clone()]).unwrap();
    assert_eq!(early.missing, [], "it was finished");
    assert!(!is_racy(&early.run));
    lines.extend(found(&lines, true));
    lines.push(end);
    std::fs::write(&two, text(&lines)).unwrap();
    let late = parts.merge(&[one, two]).unwrap();
    assert!(is_racy(&late.run));
    // And it stays so.
    assert!(is_racy(&parts.merge(&[parts.shard(1, 2)]).unwrap().run));
}

#[test]
fn who_did_not_look_does_not_contradict_who_found_hazards() {
    let parts = Parts::of(&Synthetic::round4());
    let one = parts.shard(1, 2);
    let mut plain = parts.lines(2, 2, |_| ());
    let end = plain.pop().unwrap();
    let with = |more: Vec<Line>| text(&[plain.clone(), more, vec![end.clone()]].concat());
    let racy = with(found(&plain, true));
    for (other, agrees) in [
        (with(Vec::new()), true),
        (with(found(&plain, false)), false),
    ] {
        for names in [["a", "b"], ["b", "a"]] {
            let paths = names.map(|name| parts.path(&format!("{name}.jsonl")));
            std::fs::write(&paths[0], &racy).unwrap();
            std::fs::write(&paths[1], &other).unwrap();
            let [racy, other] = paths;
            match parts.merge(&[one.clone(), racy, other]) {
                Ok(merged) => assert!(agrees && is_racy(&merged.run)),
                Err(error) => assert!(!agrees && error.exit() == Exit::Unexpected, "{error}"),
            }
            let _ = std::fs::remove_file(parts.path("whole.jsonl"));
        }
    }
}

#[test]
fn a_cell_with_hazards_is_racy_though_its_sweep_was_killed() {
    let parts = Parts::of(&Synthetic::round4());
    let mut lines = parts.lines(2, 2, |_| ());
    lines.pop();
    let examined = found(&lines, false).pop().unwrap();
    let mut value = serde_json::to_value(&examined).unwrap();
    assert!(value.get("hazards").is_none(), "as in older files: {value}");
    let access = serde_json::json!({
        "deed": "a thread writes", "lines": ["a.cu:1"], "ptx_line": 1, "kernel": "k",
        "warp": 0, "lanes": 1,
    });
    let hazard = serde_json::json!({
        "kind": "race", "at": "shared", "here": access, "missing": "a barrier",
        "remedy": "__syncthreads()", "times": 1,
    });
    value["hazards"] = serde_json::json!([hazard]);
    let two = parts.path("shard-2.jsonl");
    std::fs::write(&two, text(&lines) + &value.to_string() + "\n").unwrap();
    assert!(is_racy(&read(&two).unwrap()));
    let merged = parts.merge(&[parts.shard(1, 2), two]).unwrap();
    assert!(is_racy(&merged.run));
}
