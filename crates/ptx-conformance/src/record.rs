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
        family: &'static str,
        source: std::io::Error,
    },
    /// No family has this name.
    #[error("no family is called `{0}`; `ptx-conformance list` shows them")]
    UnknownFamily(String),
    /// The output folder cannot be made.
    #[error("{path}: {source}", path = path.display())]
    Folder {
        path: PathBuf,
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
    lengths: Vec<usize>,
}

/// Runs the whole suite and writes one golden file per group into `folder`.
pub fn record(folder: &Path) -> Result<Summary, RecordError> {
    std::fs::create_dir_all(folder).map_err(|source| RecordError::Folder {
        path: folder.to_owned(),
        source,
    })?;
    let provenance = Gpu::open()?.provenance()?;
    let answers = record_families()?;
    let mut summary = Summary::default();
    for group in families::groups() {
        let mut cases = Vec::new();
        for (family, goldens) in FAMILIES.iter().zip(&answers) {
            if family.group == group {
                cases.extend(goldens.iter().cloned());
            }
        }
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

/// The goldens of each family, in the order of [`FAMILIES`].
fn record_families() -> Result<Vec<Vec<Golden>>, RecordError> {
    let queue = Mutex::new(FAMILIES.iter().enumerate());
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
    results.into_iter().map(|(_, goldens)| goldens).collect()
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

/// A worker process and the answers it sends.
struct Worker {
    child: Child,
    answers: mpsc::Receiver<(usize, Answer)>,
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
            Ok((answered, answer)) if answered == index => (answer, true),
            Ok((answered, _)) => (
                Answer::Failed(format!(
                    "worker answered case {answered} instead of {index}"
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

fn read_answer(reader: &mut impl BufRead) -> std::io::Result<Option<(usize, Answer)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let message: Message = serde_json::from_str(&line)?;
    if let Some(failed) = message.failed {
        return Ok(Some((message.index, Answer::Failed(failed))));
    }
    let mut outputs = Vec::new();
    for length in message.lengths {
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        outputs.push(bytes);
    }
    Ok(Some((message.index, Answer::Outputs(outputs))))
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
        let (message, outputs, usable) = run_case(&gpu, index, case);
        let mut bytes = serde_json::to_vec(&message).map_err(|e| failure(e.into()))?;
        bytes.push(b'\n');
        bytes.extend(outputs.concat());
        stdout
            .write_all(&bytes)
            .and_then(|()| stdout.flush())
            .map_err(failure)?;
        if !usable {
            break;
        }
    }
    Ok(())
}

fn run_case(gpu: &Gpu, index: usize, case: &Case) -> (Message, Vec<Vec<u8>>, bool) {
    match gpu.run(case) {
        Ok(outputs) => {
            let lengths = outputs.iter().map(Vec::len).collect();
            (
                Message {
                    index,
                    failed: None,
                    lengths,
                },
                outputs,
                true,
            )
        }
        Err(error) => {
            let failed = Some(error.to_string());
            (
                Message {
                    index,
                    failed,
                    lengths: Vec::new(),
                },
                Vec::new(),
                !error.is_sticky(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_the_pipe() {
        let mut bytes = Vec::new();
        for message in [
            Message {
                index: 3,
                failed: None,
                lengths: vec![2, 0, 3],
            },
            Message {
                index: 4,
                failed: Some("broken\nline".into()),
                lengths: vec![],
            },
        ] {
            bytes.extend(serde_json::to_vec(&message).expect("json"));
            bytes.push(b'\n');
            bytes.extend(vec![b'\n'; message.lengths.iter().sum()]);
        }
        let mut reader = &bytes[..];
        let first = read_answer(&mut reader).expect("read");
        let newlines = |n| vec![b'\n'; n];
        assert_eq!(
            first,
            Some((
                3,
                Answer::Outputs(vec![newlines(2), newlines(0), newlines(3)])
            ))
        );
        let second = read_answer(&mut reader).expect("read");
        assert_eq!(second, Some((4, Answer::Failed("broken\nline".into()))));
        assert_eq!(read_answer(&mut reader).expect("read"), None);
    }
}
