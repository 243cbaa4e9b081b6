//! Child processes for work that may crash, hang or never end: compiling and running. Each has its
//! own process group, its last output is kept, and it ends with its parent.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::process::{self, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use rustix::process::nice;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use dgx_core::printable::printable;

/// Time between two checks whether to go on waiting.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a process that closed its output may take to end.
const REAP: Duration = Duration::from_secs(10);
/// How long the last output of an ended process may take to arrive. It comes at once, unless the
/// machine is busy, or a grandchild keeps the pipe open.
const HEARING: Duration = Duration::from_secs(10);
/// The scheduler's lowest priority.
const LEAST: i32 = 19;
/// Lines of its last output that are kept, and bytes of each.
const LINES: usize = 12;
const LINE: u64 = 2000;

/// A child process, which is killed when dropped.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    last_words: Arc<Mutex<VecDeque<String>>>,
    /// Closed when there is no more output.
    hearing: Receiver<()>,
}

impl Child {
    /// Starts it and reads its stderr; `heard` gets each line.
    pub fn start(command: &mut Command, heard: fn(&str)) -> io::Result<Self> {
        // Ctrl-C goes to the whole foreground group; the supervisor decides when a child ends.
        command.process_group(0).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let last_words = Arc::default();
        let (open, hearing) = channel();
        if let Some(stderr) = process.stderr.take() {
            forward_output(stderr, open, &last_words, heard);
        }
        Ok(Self {
            process,
            last_words,
            hearing,
        })
    }

    /// Its process id.
    #[cfg(test)]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// CPU time it has used, however busy the machine is.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let id = i32::try_from(self.process.id()).ok()?;
        let clock = clock_getcpuclockid(Pid::from_raw(id)).ok()?;
        Some(clock.now().ok()?.into())
    }

    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.process.stdin.take()
    }

    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Whether it ends by itself within this time.
    pub(crate) fn ends_within(&mut self, patience: Duration) -> bool {
        self.ended(patience).is_some()
    }

    fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if began.elapsed() < patience => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }

    /// How a silent process has ended. It is dead afterwards.
    pub(crate) fn exit_report(&mut self) -> ChildExit {
        let status = self.ended(REAP);
        if status.is_none() {
            self.kill();
        }
        // The end of the pipe, not a message.
        let _ = self.hearing.recv_timeout(HEARING);
        let words = self.last_words.lock().map(|words| words.clone());
        ChildExit {
            status,
            words: words.unwrap_or_default().into(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a process ended, and its last output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildExit {
    status: Option<ExitStatus>,
    words: Vec<String>,
}

impl ChildExit {
    /// `was ended by signal 9`.
    pub(crate) fn how(&self) -> String {
        let Some(status) = self.status else {
            return "did not end".to_owned();
        };
        match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was ended by signal {signal}"),
            (None, Some(code)) => format!("ended with code {code}"),
            (None, None) => "ended".to_owned(),
        }
    }

    /// Whether another process ended it.
    pub(crate) fn by_others(&self) -> bool {
        let outside = [Signal::SIGKILL, Signal::SIGTERM].map(|signal| signal as i32);
        let signal = self.status.and_then(|status| status.signal());
        signal.is_some_and(|signal| outside.contains(&signal))
    }

    /// How it ended, with all output that was kept.
    pub(crate) fn whole(&self) -> String {
        saying(self.how(), self.words.join("\n").trim())
    }

    /// How it ended, with its last line.
    pub(crate) fn short(&self) -> String {
        let mut lines = self.words.iter().map(|line| line.trim());
        saying(
            self.how(),
            lines.rfind(|line| !line.is_empty()).unwrap_or(""),
        )
    }
}

fn saying(how: String, words: &str) -> String {
    match words {
        "" => how,
        words => format!("{how}, saying: {words}"),
    }
}

fn forward_output(
    stderr: ChildStderr,
    open: Sender<()>,
    words: &Arc<Mutex<VecDeque<String>>>,
    heard: fn(&str),
) {
    let words = Arc::clone(words);
    thread::spawn(move || {
        let _open = open;
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        // However long a line is, and whether or not it ends.
        while matches!(
            stderr.by_ref().take(LINE).read_until(b'\n', &mut line),
            Ok(1..)
        ) {
            let text = String::from_utf8_lossy(&line);
            let text = printable(text.trim_end_matches('\n'));
            line.clear();
            heard(&text);
            if let Ok(mut words) = words.lock() {
                words.push_back(text);
                if words.len() > LINES {
                    words.pop_front();
                }
            }
        }
    });
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NothingReceived {
    /// The sender is gone.
    Closed,
    TimedOut,
    /// The user asked to stop.
    Stopped,
}

/// The next message, waited for until `patience` is over or `stop` returns true.
pub(crate) fn receive<T>(
    inbox: &Receiver<T>,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<T, NothingReceived> {
    let began = Instant::now();
    loop {
        match inbox.recv_timeout(GLANCE) {
            Ok(received) => return Ok(received),
            Err(RecvTimeoutError::Disconnected) => return Err(NothingReceived::Closed),
            Err(RecvTimeoutError::Timeout) if stop() => return Err(NothingReceived::Stopped),
            Err(RecvTimeoutError::Timeout) if began.elapsed() > patience => {
                return Err(NothingReceived::TimedOut);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The cores this process may run on.
pub fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let all = 0..CpuSet::MAX_CPU;
    all.filter(|core| allowed.is_set(*core)).collect()
}

/// Gives this process the lowest priority, and binds it to one core if that is allowed: some
/// containers refuse it.
pub fn run_in_background(core: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    if core < CpuSet::MAX_CPU {
        only.set(core);
    }
    let _ = sched_setaffinity(None, &only);
    nice(LEAST)?;
    Ok(())
}

/// A supervisor that is killed cannot kill its children, and a child whose work never ends does not
/// notice a closed pipe: so this thread watches.
pub(crate) fn end_with_supervisor() {
    thread::spawn(|| {
        let supervisor = parent_id();
        while parent_id() == supervisor {
            thread::sleep(Duration::from_millis(500));
        }
        // Not `exit`: a driver's own clean-up would wait for its kernel.
        process::abort();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Child {
        let mut command = Command::new("sh");
        Child::start(command.args(["-c", line]), |_| {}).unwrap()
    }

    /// However long a busy machine takes to deliver the line.
    fn exit_report(line: &str) -> ChildExit {
        let mut child = shell(line);
        assert!(child.ends_within(Duration::from_secs(300)), "{line}");
        child.exit_report()
    }

    #[test]
    fn an_exit_report_says_how_it_ended_and_what_it_said() {
        let ended = exit_report("echo one >&2; echo two >&2; echo >&2; exit 3");
        assert_eq!(ended.short(), "ended with code 3, saying: two");
        assert_eq!(ended.whole(), "ended with code 3, saying: one\ntwo");
        assert!(!ended.by_others());
        for (signal, outside) in [(9, true), (15, true), (11, false)] {
            let ended = exit_report(&format!("kill -{signal} $$"));
            assert_eq!(ended.how(), format!("was ended by signal {signal}"));
            assert_eq!(ended.by_others(), outside);
        }
    }

    #[test]
    fn a_flood_of_last_words_is_cut() {
        let flood = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2";
        let ended = exit_report(flood);
        assert_eq!(ended.short(), "ended with code 0, saying: end");
        assert!(ended.words.len() <= LINES);
        assert!(ended.words.iter().all(|line| line.len() <= LINE as usize));
    }

    #[test]
    fn one_that_is_dropped_is_dead() {
        let child = shell("sleep 600");
        let path = format!("/proc/{}", child.id());
        assert!(std::path::Path::new(&path).exists());
        drop(child);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn waiting_ends_with_a_word_with_time_or_when_told() {
        let (sender, inbox) = channel();
        let soon = Duration::from_millis(60);
        let wait = |stop: bool| receive(&inbox, soon, &|| stop);
        assert_eq!(wait(false), Err(NothingReceived::TimedOut));
        assert_eq!(wait(true), Err(NothingReceived::Stopped));
        sender.send(7).unwrap();
        assert_eq!(wait(true), Ok(7));
        drop(sender);
        assert_eq!(wait(false), Err(NothingReceived::Closed));
    }
}
