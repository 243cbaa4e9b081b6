//! The measuring path of a worker, from the job to its replies, with a script.

use std::cell::RefCell;
use std::collections::BTreeSet;

use tempfile::TempDir;

use super::*;
use crate::backend::emu::EmuBackend;
use crate::backend::fake::{CallStage, FakeBackend, JournalEntry, Script, notes};
use crate::compile::{Cache, Image};
use crate::operator::ProblemKey;
use crate::plan::{LaunchGeometry, OperatorCall};
use dgx_core::domain::Distribution;
use dgx_core::domain::{Block, Shape, Status, Tuning, Verdict};
use dgx_core::operator::default_operator;
use dgx_core::record::synthetic::group;

const WARMUP: u32 = 2;
const BLOCKS: u32 = 10;

fn job(folder: &TempDir) -> MeasureJob {
    let shape = Shape {
        name: "s".to_owned(),
        groups: vec![group(4, 128, 256)],
    };
    let problem = |seed| ProblemKey {
        operator: default_operator().clone(),
        shape: shape.clone(),
        distribution: Distribution::Benchmark,
        seed,
    };
    let mut job = MeasureJob {
        problems: (1..=3).map(problem).collect(),
        cells: ["a", "b", "c"].map(|name| code(folder, name)).to_vec(),
        baseline: ContenderId::from_text("a"),
        yardstick: None,
        process: 1,
        warmup: WARMUP,
        kernels: true,
        shape,
        ..MeasureJob::sample()
    };
    (job.settings.rtol, job.settings.atol) = (1e-2, 1e-2);
    job.settings.min_blocks = BLOCKS;
    job
}

fn code(folder: &TempDir, name: &str) -> CellCode {
    let image = Image {
        key: format!("image-of-{name}"),
        cubin: Vec::new(),
        ptx: String::new(),
        kernels: Vec::new(),
        remarks: Vec::new(),
    };
    let cache = Cache::open(folder.path()).unwrap();
    let key = image.key.clone();
    cache.publish(&key, &Ok(image)).unwrap();
    CellCode {
        contender: ContenderId::from_text(name),
        image: cache.folder(&key),
        call: OperatorCall::default(),
    }
}

/// A worker's replies, its calls, and whether it is still usable.
struct WorkerRecord {
    replies: Vec<Reply>,
    notes: Vec<JournalEntry>,
    usable: bool,
}

impl WorkerRecord {
    fn blocks(&self) -> Vec<&Block> {
        let block = |reply: &'_ Reply| matches!(reply, Reply::Block { .. });
        let blocks = self.replies.iter().filter(|r| block(r));
        blocks
            .filter_map(|reply| match reply {
                Reply::Block { block } => Some(block),
                _ => None,
            })
            .collect()
    }

    fn rejected(&self) -> Vec<&Verdict> {
        let replies = self.replies.iter();
        replies
            .filter_map(|reply| match reply {
                Reply::Rejected { verdict } => Some(verdict),
                _ => None,
            })
            .collect()
    }

    /// The calls of a contender, in order.
    fn calls(&self, contender: &str, acts: &[CallStage]) -> Vec<&JournalEntry> {
        let notes = self.notes.iter().filter(|note| !note.observed);
        notes
            .filter(|note| note.contender == contender && acts.contains(&note.act))
            .collect()
    }

    fn timed(&self, contender: &str) -> usize {
        self.calls(contender, &[CallStage::Timing]).len()
    }

    fn decision(&self) -> &str {
        match self.replies.last() {
            Some(Reply::Measured { decision, .. }) => decision,
            other => panic!("{other:?}"),
        }
    }
}

fn measured_as(script: &str, change: impl FnOnce(&mut MeasureJob)) -> WorkerRecord {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let text =
        format!("noise = 0.002\ntimes = {{ a = 100, b = 90, c = 80, cublas = 70 }}\n{script}");
    let mut script = Script::parse(&text).unwrap();
    script.journal = Some(journal.clone());
    let mut backend = FakeBackend::play(script, 0).unwrap();
    let mut job = job(&folder);
    change(&mut job);
    let mut problems = Problems::new(folder.path());
    let mut replies = Vec::new();
    let usable = measure(&mut backend, &mut problems, &job, &mut |reply| {
        replies.push(reply.clone());
    });
    WorkerRecord {
        replies,
        notes: notes(&journal),
        usable,
    }
}

fn measured(script: &str) -> WorkerRecord {
    measured_as(script, |_| {})
}

#[test]
fn a_shape_is_rehearsed_announced_timed_and_decided() {
    let told = measured("");
    assert!(told.usable && told.rejected().is_empty());
    assert_eq!(told.decision(), "decided");
    let kinds: Vec<&str> = (told.replies.iter())
        .map(|reply| match reply {
            Reply::Calling { .. } => "calling",
            Reply::Running => "running",
            Reply::Block { .. } => "block",
            Reply::Measured { .. } => "measured",
            other => panic!("{other:?}"),
        })
        .collect();
    let mut due = vec!["calling"; 3];
    due.push("running");
    due.extend(vec!["block"; BLOCKS as usize]);
    due.push("measured");
    assert_eq!(kinds, due);
    // The samples are the calls, in order, after the warm-ups.
    let timed = (told.notes.iter()).filter(|n| n.act == CallStage::Timing && !n.observed);
    let timed: Vec<&str> = timed.map(|n| n.contender.as_str()).collect();
    let blocks = told.blocks();
    let samples = blocks.iter().flat_map(|block| &block.samples);
    let samples: Vec<&str> = samples.map(|s| s.contender.as_str()).collect();
    assert_eq!(timed[3 * WARMUP as usize..], samples);
    assert_eq!(told.timed("a"), (WARMUP + 2 * BLOCKS) as usize);
    assert_eq!(told.timed("b"), (WARMUP + BLOCKS) as usize);
}

#[test]
fn every_call_gets_other_data() {
    let told = measured("");
    for name in ["a", "b", "c"] {
        let calls = told.calls(name, &[CallStage::Rehearsal, CallStage::Timing]);
        let sets: Vec<usize> = calls.iter().filter_map(|note| note.set).collect();
        assert_eq!(sets.len(), calls.len());
        assert!(sets.windows(2).all(|w| w[0] != w[1]), "{name}: {sets:?}");
        let all: BTreeSet<usize> = sets.into_iter().collect();
        assert_eq!(all, BTreeSet::from([0, 1, 2]), "{name}");
    }
    let calls = || told.notes.iter().filter(|note| !note.observed);
    let call_seeds: BTreeSet<u64> = calls().map(|note| note.call_seed).collect();
    assert_eq!(call_seeds.len(), calls().count());
    // They cannot be predicted.
    let again = measured("");
    let dealt = |told: &WorkerRecord| -> Vec<_> {
        told.notes.iter().map(|n| (n.set, n.call_seed)).collect()
    };
    assert_ne!(dealt(&told), dealt(&again));
}

#[test]
fn a_device_without_room_for_all_data_says_so() {
    let told = measured("sets = 2\n");
    let noted = told.replies.iter().any(|reply| match reply {
        Reply::Note { text } => text == "s: only 2 of 3 data sets fit the device",
        _ => false,
    });
    assert!(noted, "{:?}", told.replies);
    let sets: BTreeSet<_> = told.notes.iter().filter_map(|note| note.set).collect();
    assert_eq!(sets, BTreeSet::from([0, 1]));
}

#[test]
fn nobody_is_timed_before_a_rehearsal_the_host_has_judged() {
    for (process, rehearsals) in [(0, 16), (1, 2), (7, 2)] {
        let told = measured_as("", |job| job.process = process);
        for name in ["a", "b", "c"] {
            let rehearsed = told.calls(name, &[CallStage::Rehearsal]).len();
            assert_eq!(rehearsed, rehearsals, "{name} in process {process}");
            let of_name = |n: &&JournalEntry| n.contender == name;
            let mut notes = told.notes.iter().filter(of_name).skip(rehearsals);
            assert!(notes.next().is_some_and(|note| note.observed), "{name}");
        }
        let first = told
            .notes
            .iter()
            .position(|n| n.act == CallStage::Timing && !n.observed);
        let last = told
            .notes
            .iter()
            .rposition(|n| n.act == CallStage::Rehearsal);
        assert!(first > last, "all are ready before the clock is read");
    }
}

#[test]
fn who_is_wrong_when_rehearsed_is_never_timed() {
    for happens in [
        "call = 2\noutput = \"wrong\"",
        "call = 1\noutput = \"wrong\"",
        // Only the host's check of the last one finds it.
        "call = 2\noutput = \"wrong\"\nunnoticed = true",
        // Cheats: returns its first result.
        "from = 2\noutput = \"stale\"",
        "call = 2\noutput = \"trespass\"",
    ] {
        let event = format!("[[on]]\nin = \"rehearsal\"\ncontender = \"b\"\n{happens}\n");
        let told = measured(&event);
        let verdicts = told.rejected();
        assert_eq!(verdicts.len(), 1, "{happens}: {verdicts:?}");
        assert_eq!(verdicts[0].contender.as_str(), "b");
        assert_eq!(verdicts[0].status, Status::Wrong);
        assert_eq!(told.timed("b"), 0, "{happens}");
        assert_eq!(told.decision(), "decided", "{happens}");
        assert_eq!(told.blocks().len(), BLOCKS as usize);
    }
}

#[test]
fn a_wrong_timed_output_is_told_at_once_and_ends_its_timing() {
    // Warm-ups count: they are checked too.
    for call in [1, WARMUP as usize + 1, 8] {
        for output in ["wrong", "trespass"] {
            let told = measured(&format!(
                "[[on]]\ncontender = \"c\"\ncall = {call}\noutput = \"{output}\"\n"
            ));
            let at = |kind: fn(&Reply) -> bool| told.replies.iter().position(kind);
            let rejected = at(|r| matches!(r, Reply::Rejected { .. })).expect("a verdict");
            let before = told.replies[..rejected].iter();
            let blocks = before.filter(|r| matches!(r, Reply::Block { .. })).count();
            assert_eq!(
                blocks,
                call.saturating_sub(WARMUP as usize + 1),
                "call {call}"
            );
            let verdict = told.rejected()[0];
            assert_eq!(
                (verdict.contender.as_str(), verdict.status),
                ("c", Status::Wrong)
            );
            let reason = verdict.reason.as_deref().unwrap();
            assert!(reason.starts_with("when called again: "), "{reason}");
            assert_eq!(told.timed("c"), call);
            assert_eq!(told.decision(), "decided");
        }
    }
}

#[test]
fn what_the_device_overlooks_the_host_finds() {
    for from in [1, WARMUP + 1] {
        let event = "contender = \"b\"\noutput = \"wrong\"\nunnoticed = true";
        let told = measured(&format!("[[on]]\nfrom = {from}\n{event}\n"));
        let verdicts = told.rejected();
        assert_eq!(verdicts.len(), 1, "from call {from}");
        assert_eq!(verdicts[0].contender.as_str(), "b");
        assert!(told.timed("b") <= (WARMUP + BLOCKS) as usize);
    }
}

/// However it is kept: no output of an earlier call is right in a later one.
#[test]
fn an_output_handed_out_again_is_wrong() {
    let told = measured("[[on]]\ncontender = \"b\"\nfrom = 2\noutput = \"stale\"\n");
    assert_eq!(told.rejected().len(), 1);
    assert_eq!(told.timed("b"), 2, "found in its first stale call");
    // Nor with only one data set: signs are drawn anew.
    let told = measured("sets = 1\n[[on]]\ncontender = \"b\"\nfrom = 2\noutput = \"stale\"\n");
    assert_eq!(told.timed("b"), 2);
}

#[test]
fn the_host_looks_at_some_calls_of_everybody() {
    let told = measured("");
    for name in ["a", "b", "c"] {
        let looks = told
            .notes
            .iter()
            .filter(|n| n.observed && n.contender == name);
        // The rehearsal, one warm-up, at least two timed calls.
        assert!(looks.count() >= 4, "{name}");
    }
}

#[test]
fn a_time_no_device_can_reach_is_wrong() {
    let slow = "[device]\nbandwidth = 1e9\n";
    let told = measured(slow);
    assert!(told.rejected().is_empty(), "all are above the roofline");
    let told = measured(&format!(
        "{slow}[[on]]\ncontender = \"c\"\ncall = 5\nmicros = 2.0\n"
    ));
    let reason = told.rejected()[0].reason.clone().unwrap();
    assert!(reason.starts_with("impossible time: 2.00 µs"), "{reason}");
    assert_eq!(told.timed("c"), 5);
}

#[test]
fn a_failure_is_its_contenders_and_says_whether_to_go_on() {
    for (status, usable) in [("launch-error", true), ("crashed", false), ("hung", false)] {
        for act in ["timing", "rehearsal"] {
            let told = measured(&format!(
                "[[on]]\nin = \"{act}\"\ncontender = \"b\"\ncall = 2\nfails = \"{status}\"\n"
            ));
            let Some(Reply::Fault { contender, failure }) = told.replies.last() else {
                panic!("{:?}", told.replies.last());
            };
            assert_eq!(contender.as_str(), "b");
            assert_eq!(failure.status.as_str(), status);
            assert_eq!(told.usable, usable);
        }
    }
}

#[test]
fn a_watched_worker_says_whose_every_call_is() {
    let told = measured_as("", |job| job.watched = true);
    let running = told
        .replies
        .iter()
        .position(|r| matches!(r, Reply::Running));
    let timing = &told.replies[running.unwrap()..];
    let said: Vec<&str> = (timing.iter())
        .filter_map(|reply| match reply {
            Reply::Calling { contender } => Some(contender.as_str()),
            _ => None,
        })
        .collect();
    let calls = (told.notes.iter()).filter(|n| n.act == CallStage::Timing && !n.observed);
    let calls: Vec<&str> = calls.map(|n| n.contender.as_str()).collect();
    assert_eq!(said, calls);
}

#[test]
fn the_yardstick_is_tuned_once_and_timed_on_the_same_terms() {
    let yardstick = |job: &mut MeasureJob| job.yardstick = Some(ContenderId::from_text("cublas"));
    let script = "yardstick = \"scripted 1.0\"\n";
    let told = measured_as(script, yardstick);
    let tuned: Vec<&Tuning> = (told.replies.iter())
        .filter_map(|reply| match reply {
            Reply::Tuned { tuning } => Some(tuning),
            _ => None,
        })
        .collect();
    assert_eq!(tuned.len(), 1);
    let kept = tuned[0].clone();
    assert_eq!(
        (kept.shape.as_str(), kept.library.as_str()),
        ("s", "scripted 1.0")
    );
    assert_eq!(told.calls("cublas", &[CallStage::Rehearsal]).len(), 2);
    assert_eq!(told.timed("cublas"), (WARMUP + BLOCKS) as usize);
    let again = measured_as(script, |job| {
        yardstick(job);
        job.tuning = Some(kept);
    });
    let tuned = again
        .replies
        .iter()
        .any(|r| matches!(r, Reply::Tuned { .. }));
    assert!(!tuned, "it was tuned before");
    let wrong = "[[on]]\ncontender = \"cublas\"\ncall = 4\noutput = \"wrong\"\n";
    let told = measured_as(&format!("{script}{wrong}"), yardstick);
    assert_eq!(told.rejected()[0].contender.as_str(), "cublas");
    let none = measured_as("", yardstick);
    let noted = |reply: &Reply| match reply {
        Reply::Note { text } => text == "no cublas on s: the script has none",
        _ => false,
    };
    assert!(none.replies.iter().any(noted), "{:?}", none.replies);
    assert_eq!(none.decision(), "decided");
}

/// Gives the contenders of a job calls with this many kernels.
fn kernels(job: &mut MeasureJob, counts: [usize; 3]) {
    for (code, count) in job.cells.iter_mut().zip(counts) {
        let launch = |nth: usize| LaunchGeometry {
            kernel: format!("{}{nth}", code.contender),
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: [1; 3],
            smem: 0,
            pdl: true,
            ..LaunchGeometry::default()
        };
        code.call.launches = (0..count).map(launch).collect();
    }
}

/// The time of each kernel is reported after all blocks, and affects nothing.
#[test]
fn calls_are_looked_into_after_everybody_was_timed() {
    let told = measured_as("", |job| kernels(job, [3, 1, 0]));
    assert!(told.usable && told.decision() == "decided");
    let replies = told.replies.iter().rev().skip(1);
    let found: Vec<(&str, Vec<&str>, f64)> = replies
        .map_while(|reply| match reply {
            Reply::Kernels { contender, kernels } => Some((
                contender.as_str(),
                kernels.iter().map(|k| k.name.as_str()).collect(),
                kernels.iter().map(|k| k.micros.0).sum(),
            )),
            _ => None,
        })
        .collect();
    let [("b", b, _), ("a", a, micros)] = found.as_slice() else {
        panic!("{:?}", told.replies);
    };
    assert_eq!(
        (a.as_slice(), b.as_slice()),
        (&["a0", "a1", "a2"][..], &["b0"][..])
    );
    assert!((micros - 100.0).abs() < 0.3, "{micros}");
    assert_eq!(told.calls("a", &[CallStage::Dissection]).len(), DISSECTIONS);
    assert_eq!(told.timed("a"), (WARMUP + 2 * BLOCKS) as usize);
    let quiet = measured_as("", |job| {
        kernels(job, [3, 1, 0]);
        job.kernels = false;
    });
    assert!(quiet.calls("a", &[CallStage::Dissection]).is_empty());
}

#[test]
fn who_cannot_be_looked_into_was_timed_all_the_same() {
    for (status, usable) in [("launch-error", true), ("hung", false)] {
        let event = format!(
            "[[on]]\nin = \"dissection\"\ncontender = \"a\"\ncall = 2\nfails = \"{status}\"\n"
        );
        let told = measured_as(&event, |job| kernels(job, [3, 1, 1]));
        assert_eq!(
            (told.usable, told.decision()),
            (usable, "decided"),
            "{status}"
        );
        assert_eq!(told.blocks().len(), BLOCKS as usize);
        assert!(told.rejected().is_empty());
        let noted = |reply: &Reply| match reply {
            Reply::Note { text } => {
                text.starts_with("what each kernel of a takes on s is not known")
            }
            _ => false,
        };
        assert!(told.replies.iter().any(noted), "{:?}", told.replies);
        let others = (told.replies.iter()).filter(|r| matches!(r, Reply::Kernels { .. }));
        assert_eq!(others.count(), if usable { 2 } else { 0 });
    }
}

/// cuBLAS rounds its products to fp16, and gets four tolerances.
#[test]
fn the_yardstick_is_granted_more_and_contenders_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = job(&folder);
    job.yardstick = Some(ContenderId::from_text("cublas"));
    let say = |_: &Reply| {};
    let mut backend = FakeBackend::play(Script::parse("").unwrap(), 0).unwrap();
    let mut problems = Problems::new(folder.path());
    let Ok(measuring) = Measuring::new(&mut backend, &mut problems, &job, &say) else {
        panic!("there are data, and a clock");
    };
    let rtol = |name: &str| measuring.tolerance(&ContenderId::from_text(name)).rtol;
    assert_eq!(rtol("cublas"), 4.0 * rtol("a"));
    assert_eq!(rtol("a"), job.settings.rtol);
}

#[test]
fn a_backend_without_a_clock_times_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let said = RefCell::new(Vec::new());
    let mut problems = Problems::new(folder.path());
    let usable = measure(
        &mut EmuBackend::new(dgx_core::config::target::default_device().clone()),
        &mut problems,
        &job(&folder),
        &mut |reply| said.borrow_mut().push(reply.clone()),
    );
    let said = said.into_inner();
    let [Reply::Failed { message }] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert_eq!(message, "the emu backend has no clock");
    assert!(!usable);
}
