use std::path::Path;

use super::environment::contender_record;
use super::write_error;
use crate::plan::Plan;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Timing;
use dgx_core::record::schema::{DeviceRecord, Header};
use dgx_core::record::{Run, WriteError, Writer, newest_first};

/// A run to continue, locked against other sweeps.
#[derive(Debug)]
pub struct Resumed {
    writer: Writer,
    run: Run,
}

impl Resumed {
    /// Opens the named run file.
    pub fn file(path: &Path) -> Result<Self, CommandError> {
        let (writer, run) = Writer::reopen(path).map_err(|e| write_error(&e))?;
        match unfinished(&run) {
            true => Ok(Self { writer, run }),
            false => Err(refused(path, "it is complete")),
        }
    }

    /// Opens the named run file, or returns its run if that is complete.
    pub fn unless_complete(path: &Path) -> Result<Result<Self, Box<Run>>, CommandError> {
        let (writer, run) = Writer::reopen(path).map_err(|e| write_error(&e))?;
        Ok(match unfinished(&run) {
            true => Ok(Self { writer, run }),
            false => Err(Box::new(run)),
        })
    }

    /// Opens the newest unfinished run of a folder that no other sweep is writing. Unreadable files
    /// are skipped, with a message.
    pub fn newest(results: &Path) -> Result<Self, CommandError> {
        let mut taken = None;
        for path in newest_first(&[results]) {
            match Writer::reopen(&path) {
                Ok((writer, run)) if unfinished(&run) => return Ok(Self { writer, run }),
                Ok(_) => {}
                Err(error @ WriteError::Taken { .. }) => {
                    taken.get_or_insert(error);
                }
                Err(error) => remark!("warning: passed over: {error}"),
            }
        }
        Err(match taken {
            Some(error) => write_error(&error),
            None => CommandError::usage(
                format!("no run in {} is unfinished", results.display()),
                "start one with `dgx sweep ROUND.toml`, or name a run file",
            ),
        })
    }

    pub fn path(&self) -> &Path {
        self.writer.path()
    }

    pub fn header(&self) -> &Header {
        &self.run.header
    }

    /// Continues the run. Its config, variants and device must be unchanged: otherwise its halves
    /// would not belong together.
    pub(crate) fn go_on(
        mut self,
        now: &Header,
        cards: &[Option<String>],
    ) -> Result<(Writer, Run), CommandError> {
        if let Some(why) = changed(&self.run.header, now, cards) {
            return Err(refused(self.writer.path(), &why));
        }
        if !self.writer.is_locked() {
            remark!(
                "warning: cannot lock {}: make sure that no other sweep writes it",
                self.writer.path().display()
            );
        }
        self.writer
            .end_last_line(self.run.torn)
            .map_err(|e| write_error(&e))?;
        Ok((self.writer, self.run))
    }
}

/// Refuses a complete run that a sweep of the same files would not make now.
pub fn as_begun(run: &Run, plan: &Plan, device: &DeviceRecord) -> Result<(), CommandError> {
    let mut now = Header {
        baseline: plan.baseline.clone(),
        contenders: plan.contenders.iter().map(contender_record).collect(),
        shapes: plan.shapes.clone(),
        device: device.clone(),
        ..run.header.clone()
    };
    now.config.text = plan.round.file.text.to_string();
    // Nothing more will be timed, so any card of the kind is suitable.
    let cards = [run.header.device.uuid.clone()];
    let Some(why) = changed(&run.header, &now, &cards) else {
        return Ok(());
    };
    Err(CommandError::usage(
        format!("{} is complete, but out of date: {why}", run.path.display()),
        "remove it, or name another file with --into",
    ))
}

fn refused(path: &Path, why: &str) -> CommandError {
    CommandError::usage(
        format!("{} cannot be resumed: {why}", path.display()),
        "start a new sweep",
    )
}

fn unfinished(run: &Run) -> bool {
    let ended = run.end.as_ref().is_some_and(|end| end.complete);
    !ended && run.timing() != Timing::Recorded
}

/// What has changed since the run began.
fn changed(then: &Header, now: &Header, cards: &[Option<String>]) -> Option<String> {
    if then.config.text != now.config.text {
        return Some(format!("{} has changed since", now.config.path));
    }
    if then.contenders != now.contenders || then.baseline != now.baseline {
        return Some("its contenders, or their sources, have changed since".to_owned());
    }
    if then.shapes != now.shapes {
        return Some("its shapes have changed since".to_owned());
    }
    let (then, now) = (&then.device, &now.device);
    if then.backend != now.backend || then.name != now.name {
        return Some(format!(
            "it ran on {} ({}), and this is {} ({})",
            then.name, then.backend, now.name, now.backend
        ));
    }
    if then.model != now.model {
        return Some(format!(
            "the numbers of the target {} have changed since",
            now.name
        ));
    }
    // A run on several cards may continue on any of their model.
    let uuid = then.uuid.as_ref()?;
    let here = cards.iter().flatten().cloned().collect::<Vec<_>>();
    (!here.contains(uuid)).then(|| {
        let here = here.join(", ");
        format!("it ran on card {uuid}, and here is {here}")
    })
}

/// Recorded processes of a shape, each with its number of blocks.
fn processes<'a>(run: &'a Run, shape: &str) -> impl Iterator<Item = (u32, u32)> + 'a {
    let mut shapes = run.header.shapes.iter();
    let place = shapes.position(|s| s.name == shape);
    place.into_iter().flat_map(|s| run.tally.processes(s))
}

/// The number of processes that have taken their share of a shape's blocks.
pub(super) fn measured(run: &Run, shape: &str) -> u32 {
    let share = run.header.settings.share();
    processes(run, shape)
        .filter(|(_, count)| *count >= share)
        .count() as u32
}

/// An unused process number for the shape: an incomplete process's blocks are kept, and never
/// continued by another process.
pub(super) fn next_process(run: &Run, shape: &str) -> u32 {
    let next = processes(run, shape).map(|(process, _)| process + 1);
    next.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::*;
    use dgx_core::domain::Exit;
    use dgx_core::record::schema::Line;
    use dgx_core::record::synthetic::Synthetic;

    /// A run that was killed after `keep` lines.
    fn killed(folder: &Path, keep: usize) -> (PathBuf, Header) {
        let lines = Synthetic::round4().lines();
        let Line::Header(header) = &lines[0] else {
            panic!("a run begins with its header");
        };
        let text: String = lines[..keep]
            .iter()
            .map(|l| serde_json::to_string(l).unwrap() + "\n")
            .collect();
        let path = folder.join("round4.jsonl");
        std::fs::write(&path, text + "{\"type\":\"blo").unwrap();
        (path, (**header).clone())
    }

    #[test]
    fn what_is_on_record_is_not_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let lines = Synthetic::round4().lines();
        let is_block = |l: &Line| matches!(l, Line::Block(_));
        let first_block = lines.iter().position(is_block).unwrap();
        // One whole process of the first shape, and half of the next.
        let (path, header) = killed(folder.path(), first_block + 15);
        let (_, mut run) = Resumed::file(&path)
            .unwrap()
            .go_on(&header, &[None])
            .unwrap();
        run.header.settings.min_blocks = 10 * run.header.settings.processes;
        for contender in &header.contenders {
            for shape in &header.shapes {
                assert!(run.verdict(&contender.id, &shape.name).is_some());
            }
        }
        let blocks = |shape: &str| {
            processes(&run, shape)
                .map(|(_, blocks)| blocks)
                .sum::<u32>()
        };
        let shapes = || header.shapes.iter().map(|s| s.name.as_str());
        assert_eq!(shapes().map(blocks).sum::<u32>(), 15);
        assert_eq!(shapes().map(|shape| measured(&run, shape)).sum::<u32>(), 1);
        for shape in shapes() {
            let next = next_process(&run, shape);
            assert!(processes(&run, shape).all(|(process, _)| process < next));
        }
    }

    #[test]
    fn another_variant_or_a_complete_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let all = Synthetic::round4().lines().len();
        let (path, mut header) = killed(folder.path(), all - 1);
        header.contenders[1].hash = "changed".to_owned();
        let before = std::fs::read(&path).unwrap();
        let refused = Resumed::file(&path).unwrap().go_on(&header, &[None]);
        assert!(refused.unwrap_err().to_string().contains("sources"));
        assert_eq!(std::fs::read(&path).unwrap(), before, "left as it was");
        let (path, _) = killed(folder.path(), all);
        let refused = Resumed::file(&path);
        assert!(refused.unwrap_err().to_string().contains("complete"));
    }

    #[test]
    fn the_newest_run_that_nobody_writes_is_the_one_to_go_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let all = Synthetic::round4().lines().len();
        let named = |name: &str, keep, minutes: u64| {
            let path = folder.path().join(name);
            std::fs::rename(killed(folder.path(), keep).0, &path).unwrap();
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(60 * minutes);
            let file = std::fs::File::options().append(true).open(&path);
            file.unwrap().set_modified(at).unwrap();
            path
        };
        let old = named("old.jsonl", 5, 1);
        let killed = named("killed.jsonl", 5, 2);
        let live = named("live.jsonl", 5, 3);
        named("complete.jsonl", all, 4);
        std::fs::write(folder.path().join("foreign.jsonl"), "no run\n").unwrap();
        let _sweeping = Writer::reopen(&live).unwrap();
        let found = Resumed::newest(folder.path()).unwrap();
        assert_eq!(found.run.path, killed);
        assert_eq!(Resumed::newest(folder.path()).unwrap().run.path, old);
        let _other = Writer::reopen(&old).unwrap();
        let error = Resumed::newest(folder.path()).unwrap_err();
        assert!(
            error.to_string().contains("live.jsonl is being written"),
            "{error}"
        );
        assert_eq!(error.exit(), Exit::CouldNotRun);
    }
}
