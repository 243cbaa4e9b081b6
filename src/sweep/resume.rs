use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::write_error;
use crate::diagnostic::CommandError;
use crate::domain::{ContenderId, Exit};
use crate::record::schema::{Build, Header, Settings, Verdict};
use crate::record::{Run, Writer};

/// Which run to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// The newest run file of the results folder.
    Newest,
    File(PathBuf),
}

impl ResumeFrom {
    /// The run file meant, in this results folder.
    pub fn path(&self, results: &Path) -> Result<PathBuf, CommandError> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Newest => crate::record::newest(results)
                .map_err(|e| CommandError::new(Exit::Usage, e.to_string(), e.remedy())),
        }
    }
}

/// What an earlier try has done already.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    pub settings: Option<Settings>,
    builds: Vec<(ContenderId, Vec<String>)>,
    verdicts: BTreeMap<(ContenderId, String), Verdict>,
    /// Blocks on record by shape and process.
    blocks: BTreeMap<(String, u32), u32>,
}

impl Finished {
    pub fn has_build(&self, build: &Build) -> bool {
        self.builds
            .iter()
            .any(|(c, s)| *c == build.contender && *s == build.shapes)
    }

    pub fn verdict(&self, contender: &ContenderId, shape: &str) -> Option<&Verdict> {
        self.verdicts.get(&(contender.clone(), shape.to_owned()))
    }

    /// Processes whose share of a shape's blocks is on record.
    pub fn measured(&self, shape: &str, enough: u32) -> BTreeSet<u32> {
        let whole = |count: &u32| *count >= enough;
        self.of_shape(shape)
            .filter(|(_, count)| whole(count))
            .map(|(process, _)| process)
            .collect()
    }

    /// A process number no block of the shape has: half a process's blocks are
    /// kept as they are, and never continued by another process.
    pub fn next_process(&self, shape: &str) -> u32 {
        self.of_shape(shape)
            .map(|(process, _)| process + 1)
            .max()
            .unwrap_or(0)
    }

    fn of_shape(&self, shape: &str) -> impl Iterator<Item = (u32, u32)> {
        self.blocks
            .iter()
            .filter(move |((s, _), _)| s == shape)
            .map(|((_, process), count)| (*process, *count))
    }

    fn of(run: &Run) -> Self {
        let mut finished = Self {
            settings: Some(run.header.settings.clone()),
            builds: run
                .builds
                .iter()
                .map(|b| (b.contender.clone(), b.shapes.clone()))
                .collect(),
            ..Self::default()
        };
        for contender in &run.header.contenders {
            for shape in &run.header.shapes {
                if let Some(verdict) = run.verdict(&contender.id, &shape.name) {
                    let key = (contender.id.clone(), shape.name.clone());
                    finished.verdicts.insert(key, verdict.clone());
                }
            }
        }
        for block in &run.blocks {
            let key = (block.shape.clone(), block.process);
            *finished.blocks.entry(key).or_default() += 1;
        }
        finished
    }
}

/// Opens an earlier run to go on with it. Its config, variants and device must
/// be what they were: otherwise its halves would not belong together.
pub fn reopen(
    from: &ResumeFrom,
    results: &Path,
    now: &Header,
) -> Result<(Writer, Finished), CommandError> {
    let path = from.path(results)?;
    let (writer, run) = Writer::resume(&path).map_err(|e| write_error(&e))?;
    let refuse = |what: &str| {
        CommandError::new(
            Exit::Usage,
            format!("{} cannot be resumed: {what}", path.display()),
            "start a new sweep",
        )
    };
    if run.end.as_ref().is_some_and(|end| end.complete) {
        return Err(refuse("it is complete"));
    }
    let then = &run.header;
    if then.config.text != now.config.text {
        return Err(refuse(&format!("{} has changed since", now.config.path)));
    }
    if then.contenders != now.contenders || then.baseline != now.baseline {
        return Err(refuse(
            "its contenders, or their sources, have changed since",
        ));
    }
    if then.shapes != now.shapes {
        return Err(refuse("its shapes have changed since"));
    }
    if then.device.backend != now.device.backend || then.device.uuid != now.device.uuid {
        return Err(refuse(&format!(
            "it ran on {} ({}), and this is {} ({})",
            then.device.name, then.device.backend, now.device.name, now.device.backend
        )));
    }
    let finished = Finished::of(&run);
    Ok((writer, finished))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::schema::Line;
    use crate::record::synthetic::Synthetic;

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
        let from = ResumeFrom::File(path);
        let (_, finished) = reopen(&from, folder.path(), &header).unwrap();
        for contender in &header.contenders {
            for shape in &header.shapes {
                assert!(finished.verdict(&contender.id, &shape.name).is_some());
            }
        }
        assert_eq!(finished.settings.as_ref(), Some(&header.settings));
        let blocks: u32 = finished.blocks.values().sum();
        assert_eq!(blocks, 15);
        let whole = |shape: &str| finished.measured(shape, 10).len();
        let done: usize = header.shapes.iter().map(|s| whole(&s.name)).sum();
        assert_eq!(done, 1);
        for (shape, process) in finished.blocks.keys() {
            assert!(finished.next_process(shape) > *process);
        }
    }

    #[test]
    fn another_variant_or_a_complete_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let all = Synthetic::round4().lines().len();
        let (path, mut header) = killed(folder.path(), all - 1);
        header.contenders[1].hash = "changed".to_owned();
        let refused = reopen(&ResumeFrom::File(path), folder.path(), &header);
        assert!(refused.unwrap_err().to_string().contains("sources"));
        let (path, header) = killed(folder.path(), all);
        let refused = reopen(&ResumeFrom::File(path), folder.path(), &header);
        assert!(refused.unwrap_err().to_string().contains("complete"));
    }
}
