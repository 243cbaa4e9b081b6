use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::printed::KernelOutput;
use super::protocol::{Reply, ReplyLine, Request, RequestLine};
use super::trace::trace;
use crate::backend::Opening;
use crate::child::{self, Child, NothingReceived};
use dgx_core::clean;
use dgx_core::domain::Device;

/// Time limit for opening a backend (context, module loading).
const START: Duration = Duration::from_secs(60);
/// How long the kernels' output may take to arrive.
const HEARING: Duration = Duration::from_secs(10);
/// How long a healthy worker may take to end when asked to.
const FAREWELL: Duration = Duration::from_millis(500);

/// Why a worker did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// Ended by itself: how, and its last output.
    Died(String),
    /// Did not answer in time, and was killed.
    TimedOut,
    /// The user asked to stop, and it was killed.
    Stopped,
    /// Sent something other than an answer to its request, and was killed.
    Garbled(String),
}

/// A line from a worker, or the error in its place.
type WorkerLine = Result<ReplyLine, String>;

/// A worker process and the socket to it. Killed when dropped.
pub(crate) struct Worker {
    child: Child,
    line: UnixStream,
    replies: Receiver<WorkerLine>,
    /// The current request.
    number: u64,
    output: KernelOutput,
    device: Device,
    yardstick: Result<String, String>,
}

impl Worker {
    /// Starts `dgx worker` on a backend and waits until it is ready. With a core, it is bound to
    /// that one and has the lowest priority.
    pub(crate) fn start(
        opening: &Opening,
        cache: &Path,
        core: Option<usize>,
    ) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|e| format!("cannot find dgx itself: {e}"))?;
        let mut command = Command::new(program);
        command.arg("worker").args(opening.words());
        command.arg("--cache").arg(cache);
        if let Some(core) = core {
            command.arg("--core").arg(core.to_string());
            command.env("RAYON_NUM_THREADS", "1");
        }
        // Requests and replies share a socket, which is the worker's stdin: kernels cannot print to
        // it.
        let (line, theirs) =
            UnixStream::pair().map_err(|e| format!("cannot talk to a worker: {e}"))?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped());
        let mut child = Child::start(&mut command, |line| trace(|| line.to_owned()))
            .map_err(|e| format!("cannot start a worker: {e}"))?;
        // Only the worker may hold its end, so that its death closes the socket.
        drop(command);
        let output = KernelOutput::default();
        listen_to_kernels(&mut child, &output);
        let replies = listen(&line).map_err(|e| format!("cannot talk to a worker: {e}"))?;
        let (device, yardstick) = first_message(&mut child, &replies)?;
        trace(|| format!("worker ready on {}", device.name));
        Ok(Self {
            child,
            line,
            replies,
            number: 0,
            output,
            device,
            yardstick,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// cuBLASLt's version, or the reason why there is no yardstick.
    pub(crate) fn yardstick(&self) -> &Result<String, String> {
        &self.yardstick
    }

    /// Sends one request.
    pub(crate) fn send(&mut self, request: Request) -> Result<(), NoReply> {
        self.number += 1;
        let mark = format!("{:032x}", rand::random::<u128>());
        self.output.expect(&mark);
        let asked = RequestLine {
            number: self.number,
            mark,
            request,
        };
        let mut text = serde_json::to_string(&asked).unwrap_or_default();
        text.push('\n');
        let sent = self.line.write_all(text.as_bytes());
        sent.map_err(|_| NoReply::Died(self.exit_report()))
    }

    /// The next reply to the current request, waited for until `patience` is over or `stop` returns
    /// true; then the worker is killed.
    pub(crate) fn receive(
        &mut self,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, NoReply> {
        match child::receive(&self.replies, patience, stop) {
            Ok(Ok(answer)) if answer.to == self.number => Ok(answer.reply),
            Ok(Ok(answer)) => {
                let what = format!("request {} was answered", answer.to);
                Err(self.garbled(&format!("asked request {}, {what}", self.number)))
            }
            Ok(Err(line)) => Err(self.garbled(&format!("it said {line}"))),
            Err(NothingReceived::Closed) => Err(NoReply::Died(self.exit_report())),
            Err(NothingReceived::Stopped) => {
                self.child.kill();
                Err(NoReply::Stopped)
            }
            Err(NothingReceived::TimedOut) => {
                self.child.kill();
                Err(NoReply::TimedOut)
            }
        }
    }

    /// Ends a worker whose answers cannot be trusted.
    pub(crate) fn garbled(&mut self, what: &str) -> NoReply {
        self.child.kill();
        NoReply::Garbled(format!("a worker's reply does not fit: {what}"))
    }

    /// The kernels' output during the last answered request, or during which the worker was lost.
    pub(crate) fn printed(&self) -> Option<String> {
        self.output.take(HEARING)
    }

    /// How the worker ended, and its last output.
    fn exit_report(&mut self) -> String {
        format!("the worker {}", self.child.exit_report().whole())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A closed socket tells a healthy worker to end; one that runs a kernel is killed with its
        // child.
        let _ = self.line.shutdown(Shutdown::Write);
        self.child.ends_within(FAREWELL);
    }
}

/// A worker's first message: whether it can work, and on which device.
fn first_message(
    child: &mut Child,
    replies: &Receiver<WorkerLine>,
) -> Result<(Device, Result<String, String>), String> {
    match child::receive(replies, START, &|| false) {
        Ok(Ok(answer)) => match answer.reply {
            Reply::Ready { device, yardstick } => Ok((*device, yardstick)),
            Reply::Failed { message } => Err(message),
            other => Err(format!("a worker spoke out of turn: {other:?}")),
        },
        Ok(Err(line)) => Err(format!("a worker spoke out of turn: {line}")),
        Err(NothingReceived::Closed) => Err(format!("the worker {}", child.exit_report().whole())),
        Err(NothingReceived::TimedOut | NothingReceived::Stopped) => Err(format!(
            "a worker was not ready within {} s",
            START.as_secs()
        )),
    }
}

/// Reads replies on a separate thread.
fn listen(line: &UnixStream) -> std::io::Result<Receiver<WorkerLine>> {
    let line = line.try_clone()?;
    let (sender, replies) = channel();
    thread::spawn(move || {
        for text in BufReader::new(line).split(b'\n').map_while(Result::ok) {
            let heard = clean::parse(&text).map_err(|e| {
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

/// Keeps reading the kernels' output, however much it is.
fn listen_to_kernels(child: &mut Child, output: &KernelOutput) {
    if let Some(mut stdout) = child.stdout() {
        let output = output.clone();
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                output.add(&buffer[..count]);
            }
            output.close();
        });
    }
}
