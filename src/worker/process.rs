use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::{Reply, Request};
use super::trace::trace;
use crate::record::schema::Device;

/// Opening a backend (context, module loading) may take this long.
const START: Duration = Duration::from_secs(60);
/// Between two looks at whether to go on waiting.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a worker that closed its output may take to end.
const REAP: Duration = Duration::from_secs(10);
/// Lines of a worker's stderr kept for its obituary.
const LAST_WORDS: usize = 12;

/// Why a worker gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Ended by itself: how, and its last words.
    Died(String),
    /// Did not answer in time, and was killed.
    TimedOut,
    /// The user asked to stop, and it was killed.
    Stopped,
}

/// A worker process and the pipes to it. Killed when dropped.
pub struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<Reply>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    device: Device,
    yardstick: Result<String, String>,
}

impl Worker {
    /// Starts `dgx worker` on a backend and waits until it is ready.
    /// `tools` is the folder of the harness's own kernels, compiled.
    pub fn start(backend: &str, tools: Option<&Path>, cache: &Path) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|e| format!("cannot find dgx itself: {e}"))?;
        let mut command = Command::new(program);
        command.arg("worker").args(["--backend", backend]);
        command.arg("--cache").arg(cache);
        if let Some(tools) = tools {
            command.arg("--tools").arg(tools);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        own_process_group(&mut command);
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot start a worker: {e}"))?;
        let replies = listen(&mut child);
        let last_words = overhear(&mut child);
        let mut starting = Starting {
            child: Some(child),
            replies,
            last_words,
        };
        let (device, yardstick) = starting.greet()?;
        trace(|| format!("worker ready on {}", device.name));
        starting.ready(device, yardstick)
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// cuBLASLt's version, or why there is no yardstick.
    pub fn yardstick(&self) -> &Result<String, String> {
        &self.yardstick
    }

    /// Hands over one request.
    pub fn send(&mut self, request: &Request) -> Result<(), Lost> {
        let mut line = serde_json::to_string(request).unwrap_or_default();
        line.push('\n');
        let sent = match &mut self.stdin {
            Some(stdin) => stdin
                .write_all(line.as_bytes())
                .and_then(|()| stdin.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|_| Lost::Died(self.obituary()))
    }

    /// The next reply, waited for until `patience` is over or `stop` says so;
    /// then the worker is killed.
    pub fn receive(&mut self, patience: Duration, stop: &dyn Fn() -> bool) -> Result<Reply, Lost> {
        let began = Instant::now();
        loop {
            match self.replies.recv_timeout(GLANCE) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => return Err(Lost::Died(self.obituary())),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop() {
                self.kill();
                return Err(Lost::Stopped);
            }
            if began.elapsed() > patience {
                self.kill();
                return Err(Lost::TimedOut);
            }
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How the worker ended, and what it said last.
    fn obituary(&mut self) -> String {
        let began = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if began.elapsed() < REAP => thread::sleep(Duration::from_millis(10)),
                _ => break None,
            }
        };
        if status.is_none() {
            self.kill();
        }
        describe_end(status, &self.last_words)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A closed stdin tells a healthy worker to end; one in a kernel needs more.
        self.stdin.take();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(500) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

/// A worker that has not said yet whether it can work.
struct Starting {
    child: Option<Child>,
    replies: Receiver<Reply>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl Starting {
    fn greet(&mut self) -> Result<(Device, Result<String, String>), String> {
        match self.replies.recv_timeout(START) {
            Ok(Reply::Ready { device, yardstick }) => Ok((*device, yardstick)),
            Ok(Reply::Failed { message }) => Err(message),
            Ok(other) => Err(format!("a worker spoke out of turn: {other:?}")),
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "a worker was not ready within {} s",
                START.as_secs()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.as_mut().and_then(|c| c.wait().ok());
                Err(describe_end(status, &self.last_words))
            }
        }
    }

    fn ready(
        mut self,
        device: Device,
        yardstick: Result<String, String>,
    ) -> Result<Worker, String> {
        let mut child = self.child.take().ok_or("a worker was lost at its start")?;
        let (_, none) = channel();
        Ok(Worker {
            stdin: child.stdin.take(),
            child,
            replies: std::mem::replace(&mut self.replies, none),
            last_words: Arc::clone(&self.last_words),
            device,
            yardstick,
        })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ctrl-C goes to the whole foreground group; workers stay out of it so that
/// the supervisor decides when they end.
fn own_process_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Reads replies on a thread of their own. A kernel that prints writes to the
/// same pipe: what is not a reply is passed over.
fn listen(child: &mut Child) -> Receiver<Reply> {
    let (sender, replies) = channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                match serde_json::from_slice(&line) {
                    Ok(reply) => {
                        if sender.send(reply).is_err() {
                            return;
                        }
                    }
                    Err(_) if line.is_empty() => {}
                    Err(_) => {
                        trace(|| format!("worker printed: {}", String::from_utf8_lossy(&line)));
                    }
                }
            }
        });
    }
    replies
}

fn overhear(child: &mut Child) -> Arc<Mutex<VecDeque<String>>> {
    let words = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(stderr) = child.stderr.take() {
        let words = Arc::clone(&words);
        thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                trace(|| line.clone());
                if let Ok(mut words) = words.lock() {
                    if words.len() == LAST_WORDS {
                        words.pop_front();
                    }
                    words.push_back(line);
                }
            }
        });
    }
    words
}

fn describe_end(status: Option<ExitStatus>, last_words: &Mutex<VecDeque<String>>) -> String {
    let end = match status {
        None => "did not end".to_owned(),
        Some(status) => signal(status)
            .map(|s| format!("was ended by signal {s}"))
            .or_else(|| status.code().map(|c| format!("ended with code {c}")))
            .unwrap_or_else(|| "ended".to_owned()),
    };
    let words = last_words
        .lock()
        .map(|w| w.iter().cloned().collect::<Vec<_>>().join("\n"))
        .unwrap_or_default();
    match words.trim() {
        "" => format!("the worker {end}"),
        words => format!("the worker {end}, saying: {words}"),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i32> {
    None
}
