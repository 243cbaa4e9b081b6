//! The supervisor's side of a compiling process.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::serve::{NvrtcReply, NvrtcRequest};
use crate::child::{self, Child, NothingReceived};
use dgx_core::domain::Bytes;

/// Time limit for loading the compiler on a busy machine; not counted for any unit.
const START: Duration = Duration::from_secs(120);
/// A compiler that computes less than a tenth of the time is stuck, or its machine is.
const STUCK: u32 = 10;

/// Limits for compiling one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// CPU time: other work on a busy machine does not count.
    pub time: Duration,
    pub memory: Bytes,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(120),
            memory: Bytes(4 << 30),
        }
    }
}

/// Why there is no image.
pub(super) enum NoImage {
    /// Ended by itself: how, and its last output.
    Died(String),
    /// Killed from outside: the unit may be innocent.
    Killed(String),
    /// Stopped because its time was up, with the time it took.
    TimedOut(String),
    /// The user asked to stop.
    Stopped,
}

/// A process that compiles. Killed when dropped.
pub(super) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    deliveries: Receiver<(NvrtcReply, Vec<u8>)>,
}

impl Process {
    /// Starts one and waits until the compiler is loaded.
    pub(super) fn start(
        program: &Path,
        limits: &CompileLimits,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, NoImage> {
        let mut command = Command::new(program);
        command
            .arg("compile-worker")
            .args(["--memory", &limits.memory.0.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = Child::start(&mut command, |_| {})
            .map_err(|e| NoImage::Died(format!("cannot be started: {e}")))?;
        let mut process = Self {
            stdin: child.stdin(),
            deliveries: listen(&mut child),
            child,
        };
        match process.receive(START, stop) {
            Ok((NvrtcReply::Ready, _)) => Ok(process),
            Ok(_) => Err(NoImage::Died("spoke out of turn".to_owned())),
            Err(NothingReceived::Closed) => Err(process.exit_report()),
            Err(NothingReceived::TimedOut) => Err(NoImage::TimedOut(spent(START, "s"))),
            Err(NothingReceived::Stopped) => Err(NoImage::Stopped),
        }
    }

    /// Sends one unit and waits for the result.
    pub(super) fn make(
        &mut self,
        order: &NvrtcRequest,
        time: Duration,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(NvrtcReply, Vec<u8>), NoImage> {
        let mut line = serde_json::to_vec(order).unwrap_or_default();
        line.push(b'\n');
        let sent = self.stdin.as_mut().map(|stdin| stdin.write_all(&line));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.exit_report());
        }
        let computed = || self.child.cpu_time().unwrap_or_default();
        let before = computed();
        let is_up = || computed().saturating_sub(before) > time;
        match self.receive(time * STUCK, &|| stop() || is_up()) {
            Ok(delivery) => Ok(delivery),
            Err(NothingReceived::Closed) => Err(self.exit_report()),
            Err(NothingReceived::Stopped) if stop() => Err(NoImage::Stopped),
            Err(NothingReceived::Stopped) => Err(NoImage::TimedOut(spent(time, "s of computing"))),
            Err(NothingReceived::TimedOut) => {
                let stuck = "s in which it hardly computed: the machine is very busy";
                Err(NoImage::TimedOut(spent(time * STUCK, stuck)))
            }
        }
    }

    fn receive(
        &self,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<(NvrtcReply, Vec<u8>), NothingReceived> {
        child::receive(&self.deliveries, patience, stop)
    }

    fn exit_report(&mut self) -> NoImage {
        let exit_report = self.child.exit_report();
        match exit_report.by_others() {
            true => NoImage::Killed(exit_report.short()),
            false => NoImage::Died(exit_report.short()),
        }
    }
}

fn spent(time: Duration, of: &str) -> String {
    format!("{} {of}", time.as_secs_f64())
}

fn listen(child: &mut Child) -> Receiver<(NvrtcReply, Vec<u8>)> {
    let (sender, deliveries) = channel();
    if let Some(stdout) = child.stdout() {
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = Vec::new();
            while matches!(stdout.read_until(b'\n', &mut line), Ok(1..)) {
                // Any other line ends the exchange: nothing after it could be trusted.
                let Ok(delivery) = serde_json::from_slice(&line) else {
                    return;
                };
                let len = match &delivery {
                    NvrtcReply::Compiled { cubin, .. } => *cubin as u64,
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
