use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::{Answer, Asked, Reply, Request};
use super::trace::trace;
use super::words::Words;
use crate::backend::Opening;
use crate::domain::Device;

/// Opening a backend (context, module loading) may take this long.
const START: Duration = Duration::from_secs(60);
/// Between two looks at whether to go on waiting.
const GLANCE: Duration = Duration::from_millis(100);
/// How long what a kernel printed may be on its way.
const HEARING: Duration = Duration::from_secs(2);
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
    /// Said something that is no answer to what it was asked, and was killed.
    Garbled(String),
}

/// A line from a worker, or what came instead of one.
type Heard = Result<Answer, String>;

/// A worker process and the line to it. Killed when dropped.
pub struct Worker {
    child: Child,
    line: UnixStream,
    replies: Receiver<Heard>,
    /// The request it is at.
    number: u64,
    words: Words,
    last_words: Arc<Mutex<VecDeque<String>>>,
    device: Device,
    yardstick: Result<String, String>,
}

impl Worker {
    /// Starts `dgx worker` on a backend and waits until it is ready.
    pub fn start(opening: &Opening, cache: &Path) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|e| format!("cannot find dgx itself: {e}"))?;
        let mut command = Command::new(program);
        command.arg("worker").args(opening.words());
        command.arg("--cache").arg(cache);
        // Requests and replies share a socket, which is the worker's stdin:
        // nothing a kernel can print to.
        let (line, theirs) =
            UnixStream::pair().map_err(|e| format!("cannot talk to a worker: {e}"))?;
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        own_process_group(&mut command);
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot start a worker: {e}"))?;
        // The worker's end must be its alone, for its death to end the line.
        drop(command);
        let words = Words::default();
        listen_to_kernels(&mut child, &words);
        let last_words = overhear(&mut child);
        let replies = listen(&line).map_err(|e| format!("cannot talk to a worker: {e}"))?;
        let mut starting = Starting {
            child: Some(child),
            replies,
            last_words,
        };
        let (device, yardstick) = starting.greet()?;
        trace(|| format!("worker ready on {}", device.name));
        starting.ready(line, words, device, yardstick)
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// cuBLASLt's version, or why there is no yardstick.
    pub fn yardstick(&self) -> &Result<String, String> {
        &self.yardstick
    }

    /// Its process, by which anybody can end it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Hands over one request.
    pub fn send(&mut self, request: Request) -> Result<(), Lost> {
        self.number += 1;
        let mark = format!("{:032x}", rand::random::<u128>());
        self.words.expect(&mark);
        let asked = Asked {
            number: self.number,
            mark,
            request,
        };
        let mut text = serde_json::to_string(&asked).unwrap_or_default();
        text.push('\n');
        let sent = self.line.write_all(text.as_bytes());
        sent.map_err(|_| Lost::Died(self.obituary()))
    }

    /// The next reply to the request at hand, waited for until `patience` is
    /// over or `stop` says so; then the worker is killed.
    pub fn receive(&mut self, patience: Duration, stop: &dyn Fn() -> bool) -> Result<Reply, Lost> {
        let began = Instant::now();
        loop {
            match self.replies.recv_timeout(GLANCE) {
                Ok(Ok(answer)) if answer.to == self.number => return Ok(answer.reply),
                Ok(Ok(answer)) => {
                    let what = format!("request {} was answered", answer.to);
                    return Err(self.garbled(&format!("asked request {}, {what}", self.number)));
                }
                Ok(Err(line)) => return Err(self.garbled(&format!("it said {line}"))),
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

    /// Ends a worker that cannot be believed.
    pub fn garbled(&mut self, what: &str) -> Lost {
        self.kill();
        Lost::Garbled(format!("a worker's reply does not fit: {what}"))
    }

    /// What kernels printed during the request that was just answered, or
    /// during which the worker was lost.
    pub fn printed(&self) -> Option<String> {
        self.words.take(HEARING)
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
        // A closed line tells a healthy worker to end; one in a kernel needs more.
        let _ = self.line.shutdown(Shutdown::Write);
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
    replies: Receiver<Heard>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl Starting {
    fn greet(&mut self) -> Result<(Device, Result<String, String>), String> {
        let heard = self.replies.recv_timeout(START);
        match heard.map(|heard| heard.map(|answer| answer.reply)) {
            Ok(Ok(Reply::Ready { device, yardstick })) => Ok((*device, yardstick)),
            Ok(Ok(Reply::Failed { message })) => Err(message),
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
        line: UnixStream,
        words: Words,
        device: Device,
        yardstick: Result<String, String>,
    ) -> Result<Worker, String> {
        let child = self.child.take().ok_or("a worker was lost at its start")?;
        let (_, none) = channel();
        Ok(Worker {
            child,
            line,
            number: 0,
            words,
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

/// Reads replies on a thread of their own.
fn listen(line: &UnixStream) -> std::io::Result<Receiver<Heard>> {
    let line = line.try_clone()?;
    let (sender, replies) = channel();
    thread::spawn(move || {
        for text in BufReader::new(line).split(b'\n').map_while(Result::ok) {
            let heard = serde_json::from_slice(&text).map_err(|e| {
                let start: String = String::from_utf8_lossy(&text).chars().take(200).collect();
                format!("{start:?}, which is no reply: {e}")
            });
            if sender.send(heard).is_err() {
                return;
            }
        }
    });
    Ok(replies)
}

/// Keeps reading what kernels print, however much it is.
fn listen_to_kernels(child: &mut Child, words: &Words) {
    if let Some(mut stdout) = child.stdout.take() {
        let words = words.clone();
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                words.hear(&buffer[..count]);
            }
            words.close();
        });
    }
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
