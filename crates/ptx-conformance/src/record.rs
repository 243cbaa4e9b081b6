//! Recording: every family runs in a worker process, so that a kernel that crashes the
//! context or never ends costs one case and not the recording.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::families::{self, FAMILIES, Family};
use crate::golden::{Answer, Golden, GoldenError, Goldens};
use crate::gpu::{Gpu, GpuError};

/// How long one case may take, compilation and a fresh context included.
const CASE_LIMIT: Duration = Duration::from_secs(10);

/// Workers at a time: compiling PTX is most of the work and runs on the CPU.
const WORKERS: usize = 6;

/// A recording that could not be made at all.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is nothing to record on.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// The goldens could not be written.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// A worker could not be started or spoken to.
    #[error("worker for family `{family}`: {source}")]
    Worker {
        /// What it was to run.
        family: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No family has this name.
    #[error("no family is called `{0}`; `ptx-conformance list` shows them")]
    UnknownFamily(String),
    /// A group for another card.
    #[error("group `{group}` is recorded on a card of compute capability {needs}, not {found}")]
    OtherCard {
        /// Its name.
        group: String,
        /// The major capability it needs.
        needs: i32,
        /// That of the card that is here.
        found: i32,
    },
    /// No group has this name.
    #[error("no group is called `{0}`; a group is the stem of a golden file")]
    UnknownGroup(String),
    /// The output folder cannot be made.
    #[error("{path}: {source}", path = path.display())]
    Folder {
        /// Where goldens were to go.
        path: PathBuf,
        /// The file system's reason.
        source: std::io::Error,
    },
}

/// How many cases a recording ran and which of them failed, with the driver's words.
#[derive(Debug, Default)]
pub struct Summary {
    /// Cases with outputs.
    pub recorded: usize,
    /// `(name, message)` of the others.
    pub failed: Vec<(String, String)>,
}

/// What a worker says about one case, followed by its outputs' bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Message {
    index: usize,
    failed: Option<String>,
    /// Whether the worker goes on to the next case.
    usable: bool,
    lengths: Vec<usize>,
}

/// Runs what of the suite is for this card, or one group of it, and writes one golden file per group into `folder`.
pub fn record(folder: &Path, only: Option<&str>) -> Result<Summary, RecordError> {
    std::fs::create_dir_all(folder).map_err(|source| RecordError::Folder {
        path: folder.to_owned(),
        source,
    })?;
    let groups: Vec<&str> = families::groups()
        .into_iter()
        .filter(|group| only.is_none_or(|only| only == *group))
        .collect();
    if let (Some(only), true) = (only, groups.is_empty()) {
        return Err(RecordError::UnknownGroup(only.to_owned()));
    }
    let gpu = Gpu::open()?;
    let (provenance, found) = (gpu.provenance()?, gpu.capability()?);
    let fits = |group: &&str| families::card(group).capability() == found;
    if let (Some(group), Some(_)) = (groups.iter().find(|g| !fits(g)), only) {
        return Err(RecordError::OtherCard {
            group: (*group).to_owned(),
            needs: families::card(group).capability(),
            found,
        });
    }
    let groups: Vec<&str> = groups.into_iter().filter(fits).collect();
    let mut summary = Summary::default();
    for (group, cases) in record_groups(&groups)? {
        for golden in &cases {
            match &golden.answer {
                Answer::Outputs(_) => summary.recorded += 1,
                Answer::Failed(message) => {
                    summary.failed.push((golden.name.clone(), message.clone()))
                }
            }
        }
        let goldens = Goldens {
            provenance: provenance.clone(),
            cases,
        };
        goldens.write(&folder.join(group).with_extension("golden"))?;
    }
    Ok(summary)
}

/// The goldens of each of `groups`, their families recorded several at a time.
fn record_groups<'g>(groups: &[&'g str]) -> Result<Vec<(&'g str, Vec<Golden>)>, RecordError> {
    let families: Vec<&Family> = FAMILIES
        .iter()
        .filter(|f| groups.contains(&f.group))
        .collect();
    let queue = Mutex::new(families.iter().enumerate());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((index, family)) = next else { break };
                    let goldens = record_family(family);
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, goldens));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    let mut recorded: Vec<_> = groups.iter().map(|group| (*group, Vec::new())).collect();
    for (index, goldens) in results {
        let group = families[index].group;
        if let Some((_, cases)) = recorded.iter_mut().find(|(name, _)| *name == group) {
            cases.extend(goldens?);
        }
    }
    Ok(recorded)
}

/// Runs one family, starting a new worker behind each case that ended the last one.
fn record_family(family: &Family) -> Result<Vec<Golden>, RecordError> {
    let failure = |source| RecordError::Worker {
        family: family.name,
        source,
    };
    let cases = (family.cases)();
    let mut goldens: Vec<Golden> = Vec::with_capacity(cases.len());
    while goldens.len() < cases.len() {
        let mut worker = Worker::start(family.name, goldens.len()).map_err(failure)?;
        while goldens.len() < cases.len() {
            let case = &cases[goldens.len()];
            let (answer, usable) = worker.answer(goldens.len());
            goldens.push(Golden {
                name: case.name.clone(),
                fingerprint: case.fingerprint(),
                answer,
            });
            if !usable {
                break;
            }
        }
        worker.stop();
    }
    Ok(goldens)
}

/// A worker's answer to one case.
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    index: usize,
    answer: Answer,
    usable: bool,
}

/// A worker process and the answers it sends.
struct Worker {
    child: Child,
    answers: mpsc::Receiver<Reply>,
}

impl Worker {
    fn start(family: &str, first: usize) -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["worker", family, &first.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| std::io::Error::other("worker has no stdout"))?;
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            while let Ok(Some(answer)) = read_answer(&mut reader) {
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, answers })
    }

    /// The answer to case `index`, and whether the worker can go on.
    fn answer(&mut self, index: usize) -> (Answer, bool) {
        match self.answers.recv_timeout(CASE_LIMIT) {
            Ok(reply) if reply.index == index => (reply.answer, reply.usable),
            Ok(reply) => (
                Answer::Failed(format!(
                    "worker answered case {} instead of {index}",
                    reply.index
                )),
                false,
            ),
            Err(RecvTimeoutError::Timeout) => (
                Answer::Failed(format!("no answer within {} s", CASE_LIMIT.as_secs())),
                false,
            ),
            Err(RecvTimeoutError::Disconnected) => (
                Answer::Failed("worker ended without an answer".to_owned()),
                false,
            ),
        }
    }

    fn stop(mut self) {
        // A worker that has ended cannot be killed, and one that hangs must be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_answer(reader: &mut impl BufRead) -> std::io::Result<Option<Reply>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let message: Message = serde_json::from_str(&line)?;
    let answer = match message.failed {
        Some(failed) => Answer::Failed(failed),
        None => {
            let mut outputs = Vec::new();
            for length in message.lengths {
                let mut bytes = vec![0; length];
                reader.read_exact(&mut bytes)?;
                outputs.push(bytes);
            }
            Answer::Outputs(outputs)
        }
    };
    Ok(Some(Reply {
        index: message.index,
        answer,
        usable: message.usable,
    }))
}

/// The worker's side: runs the cases of `family` from `first` on and answers on stdout.
/// It ends by itself after a case that leaves the context unusable.
pub fn work(family: &str, first: usize) -> Result<(), RecordError> {
    let family =
        families::find(family).ok_or_else(|| RecordError::UnknownFamily(family.to_owned()))?;
    let failure = |source| RecordError::Worker {
        family: family.name,
        source,
    };
    let gpu = Gpu::open()?;
    let mut stdout = std::io::stdout().lock();
    for (index, case) in (family.cases)().iter().enumerate().skip(first) {
        let (message, outputs) = run_case(&gpu, index, case);
        let mut bytes = serde_json::to_vec(&message).map_err(|e| failure(e.into()))?;
        bytes.push(b'\n');
        bytes.extend(outputs.concat());
        stdout
            .write_all(&bytes)
            .and_then(|()| stdout.flush())
            .map_err(failure)?;
        if !message.usable {
            break;
        }
    }
    Ok(())
}

fn run_case(gpu: &Gpu, index: usize, case: &Case) -> (Message, Vec<Vec<u8>>) {
    let (failed, usable, outputs) = match gpu.run(case) {
        Ok(outputs) => (None, true, outputs),
        Err(error) => (Some(error.to_string()), !error.is_sticky(), Vec::new()),
    };
    let lengths = outputs.iter().map(Vec::len).collect();
    let message = Message {
        index,
        failed,
        usable,
        lengths,
    };
    (message, outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_the_pipe() {
        let message = |index, failed: Option<&str>, usable, lengths| Message {
            index,
            failed: failed.map(str::to_owned),
            usable,
            lengths,
        };
        let mut bytes = Vec::new();
        for message in [
            message(3, None, true, vec![2, 0, 3]),
            message(4, Some("broken\nline"), false, vec![]),
        ] {
            bytes.extend(serde_json::to_vec(&message).expect("json"));
            bytes.push(b'\n');
            bytes.extend(vec![b'\n'; message.lengths.iter().sum()]);
        }
        let mut reader = &bytes[..];
        let mut next = || read_answer(&mut reader).expect("read");
        let newlines = |n| vec![b'\n'; n];
        let outputs = vec![newlines(2), newlines(0), newlines(3)];
        let first = Reply {
            index: 3,
            answer: Answer::Outputs(outputs),
            usable: true,
        };
        assert_eq!(next(), Some(first));
        let second = Reply {
            index: 4,
            answer: Answer::Failed("broken\nline".into()),
            usable: false,
        };
        assert_eq!(next(), Some(second));
        assert_eq!(next(), None);
    }
}
