//! The supervisor's side of a compiling process.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::serve::{Delivery, Order};
use crate::domain::Bytes;

/// Loading the compiler may take this long on a busy machine; no unit's time.
const START: Duration = Duration::from_secs(120);
/// Between two looks at whether to go on waiting.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a process that closed its output may take to end.
const REAP: Duration = Duration::from_secs(5);
/// Bytes of its last words that are kept.
const LAST_WORDS: usize = 2000;

/// What compiling one unit may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub time: Duration,
    pub memory: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(120),
            memory: Bytes(4 << 30),
        }
    }
}

/// Why nothing came back.
pub(super) enum Lost {
    /// Ended by itself: how, and its last words.
    Died(String),
    /// Killed from outside: the unit may be innocent.
    Killed(String),
    TimedOut,
    /// The user asked to stop.
    Stopped,
}

/// A process that compiles. Killed when dropped.
pub(super) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    deliveries: Receiver<(Delivery, Vec<u8>)>,
    last_words: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts one and waits until the compiler is loaded.
    pub fn start(
        program: &Path,
        limits: &Limits,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, Lost> {
        let mut command = Command::new(program);
        command
            .arg("compile-worker")
            .args(["--memory", &limits.memory.0.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C goes to the whole foreground group; when to end is the
        // supervisor's to decide.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|e| Lost::Died(format!("cannot be started: {e}")))?;
        let mut process = Self {
            stdin: child.stdin.take(),
            deliveries: listen(&mut child),
            last_words: overhear(&mut child),
            child,
        };
        match process.receive(START, stop)? {
            (Delivery::Ready, _) => Ok(process),
            _ => Err(Lost::Died("spoke out of turn".to_owned())),
        }
    }

    /// Hands over one unit and waits for what becomes of it.
    pub fn make(
        &mut self,
        order: &Order,
        time: Duration,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Delivery, Vec<u8>), Lost> {
        let mut line = serde_json::to_vec(order).unwrap_or_default();
        line.push(b'\n');
        let sent = self.stdin.as_mut().map(|stdin| stdin.write_all(&line));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.obituary());
        }
        self.receive(time, stop)
    }

    fn receive(
        &mut self,
        time: Duration,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Delivery, Vec<u8>), Lost> {
        let began = Instant::now();
        loop {
            match self.deliveries.recv_timeout(GLANCE) {
                Ok(delivery) => return Ok(delivery),
                Err(RecvTimeoutError::Disconnected) => return Err(self.obituary()),
                Err(RecvTimeoutError::Timeout) if stop() => return Err(Lost::Stopped),
                Err(RecvTimeoutError::Timeout) if began.elapsed() > time => {
                    return Err(Lost::TimedOut);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn obituary(&mut self) -> Lost {
        let began = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if began.elapsed() < REAP => thread::sleep(Duration::from_millis(5)),
                _ => break None,
            }
        };
        let words = self
            .last_words
            .lock()
            .map(|w| w.clone())
            .unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let last = words.lines().map(str::trim).rfind(|l| !l.is_empty());
        let (how, from_outside) = match status {
            Some(status) => describe(status),
            None => ("did not end".to_owned(), false),
        };
        let told = match last {
            Some(words) => format!("{how}, saying: {words}"),
            None => how,
        };
        match from_outside {
            true => Lost::Killed(told),
            false => Lost::Died(told),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How it ended, and whether somebody else ended it.
fn describe(status: ExitStatus) -> (String, bool) {
    const KILL: i32 = 9;
    const TERM: i32 = 15;
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let from_outside = [KILL, TERM].contains(&signal);
        return (format!("was ended by signal {signal}"), from_outside);
    }
    let code = status.code().unwrap_or(-1);
    (format!("ended with code {code}"), false)
}

fn listen(child: &mut Child) -> Receiver<(Delivery, Vec<u8>)> {
    let (sender, deliveries) = channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = Vec::new();
            while matches!(stdout.read_until(b'\n', &mut line), Ok(1..)) {
                // What is no delivery ends the conversation: nothing after it
                // could be trusted.
                let Ok(delivery) = serde_json::from_slice(&line) else {
                    return;
                };
                let len = match &delivery {
                    Delivery::Compiled { cubin, .. } => *cubin as u64,
                    _ => 0,
                };
                let mut cubin = Vec::new();
                let read = stdout.by_ref().take(len).read_to_end(&mut cubin);
                if read.is_err() || cubin.len() as u64 != len {
                    return;
                }
                if sender.send((delivery, cubin)).is_err() {
                    return;
                }
                line.clear();
            }
        });
    }
    deliveries
}

fn overhear(child: &mut Child) -> Arc<Mutex<Vec<u8>>> {
    let words = Arc::new(Mutex::new(Vec::new()));
    if let Some(mut stderr) = child.stderr.take() {
        let words = Arc::clone(&words);
        thread::spawn(move || {
            let mut chunk = [0; 512];
            while let Ok(len @ 1..) = stderr.read(&mut chunk) {
                if let Ok(mut words) = words.lock() {
                    words.extend_from_slice(&chunk[..len]);
                    let excess = words.len().saturating_sub(LAST_WORDS);
                    words.drain(..excess);
                }
            }
        });
    }
    words
}
