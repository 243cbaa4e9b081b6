//! The program while it runs. Signals that would end dgx go to the program instead: it gets a
//! moment to end by itself, then it is killed with all its children. dgx itself goes on, since it
//! has to print the report and remove the folder.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The time between a signal and the kill of a program that ignores it, for example in a long
/// launch.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where Linux lists the processes that a thread has started or inherited.
const CHILDREN: &str = "/proc/thread-self/children";

/// A running program; signals are held back for it.
pub(super) struct Process {
    child: Pid,
    blocked: SigSet,
    /// The signal mask from before.
    before: SigSet,
}

impl Process {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut blocked = caught();
        blocked.add(Signal::SIGCHLD);
        // If it were ignored, the program's exit status would be lost. SAFETY: the disposition runs
        // no code of ours.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
        let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        // Makes dgx inherit orphaned children of the program, so that it can end them.
        let _ = set_child_subreaper(true);
        let begin = move || {
            // Ends the program if dgx is killed, since dgx can then end nothing.
            set_pdeathsig(Signal::SIGKILL)?;
            Ok(before.thread_set_mask()?)
        };
        // SAFETY: between fork and exec it makes two system calls, and allocates nothing.
        unsafe { command.pre_exec(begin) };
        let child = command.spawn()?.id();
        Ok(Self {
            child: Pid::from_raw(child as i32),
            blocked,
            before,
        })
    }

    /// Waits for its end; the exit code as a shell gives it.
    pub(super) fn wait(self) -> io::Result<i32> {
        let ended = watch(self.child, &self.blocked);
        self.before.thread_set_mask()?;
        ended
    }
}

/// Signals that end dgx. Those that `nohup` or a shell has set to be ignored stay ignored.
fn caught() -> SigSet {
    let all = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ];
    all.into_iter()
        .filter(|&signal| !is_ignored(signal))
        .collect()
}

fn is_ignored(which: Signal) -> bool {
    // SAFETY: neither disposition runs code of ours.
    let before = unsafe { signal(which, SigHandler::SigDfl) };
    let ignored = matches!(before, Ok(SigHandler::SigIgn));
    if ignored {
        // SAFETY: as above.
        let _ = unsafe { signal(which, SigHandler::SigIgn) };
    }
    ignored
}

fn watch(child: Pid, blocked: &SigSet) -> io::Result<i32> {
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let signals = SignalFd::with_flags(blocked, flags)?;
    let mut code = None;
    // The first signal, and when the time to react ends.
    let mut asked: Option<(Signal, Instant)> = None;
    loop {
        let are_left = collect(child, &mut code);
        match (code, asked) {
            (Some(code), None) => return Ok(code),
            (Some(code), Some(_)) if !are_left => return Ok(code),
            (_, Some((signal, end))) if end <= Instant::now() => {
                end_all(child, code.is_none());
                return Ok(code.unwrap_or(128 + signal as i32));
            }
            (None, _) if !are_left => return Err(Errno::ECHILD.into()),
            _ => {}
        }
        wait_for(&signals, asked.map(|(_, end)| end))?;
        while let Some((signal, is_known)) = next(&signals)? {
            if !is_known && code.is_none() {
                // The child has not been reaped, so the process id is still its own.
                let _ = kill(child, signal);
            }
            asked.get_or_insert((signal, Instant::now() + PATIENCE));
        }
    }
}

/// Reaps processes that have ended: the exit code of the program, as a shell gives it, and whether
/// any are left.
fn collect(child: Pid, code: &mut Option<i32>) -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(ended, own)) if ended == child => *code = Some(own),
            Ok(WaitStatus::Signaled(ended, signal, _)) if ended == child => {
                *code = Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) => return true,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

/// Waits for a signal, at most until `end`.
fn wait_for(signals: &SignalFd, end: Option<Instant>) -> io::Result<()> {
    let timeout = match end {
        None => PollTimeout::NONE,
        Some(end) => {
            let left = end.saturating_duration_since(Instant::now());
            // Rounded up, or the wait would be repeated at once.
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        }
    };
    match poll(
        &mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)],
        timeout,
    ) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A signal to end, and whether the program got it too: a terminal signals both.
fn next(signals: &SignalFd) -> io::Result<Option<(Signal, bool)>> {
    while let Some(info) = signals.read_signal()? {
        let signal = Signal::try_from(info.ssi_signo as i32)?;
        if signal != Signal::SIGCHLD {
            return Ok(Some((signal, info.ssi_code == nix::libc::SI_KERNEL)));
        }
    }
    Ok(None)
}

/// Kills the program, if it runs, and its children. The children of a killed process become dgx's,
/// so they are found once it is gone.
fn end_all(child: Pid, runs: bool) {
    let end = |process| {
        let _ = kill(process, Signal::SIGKILL);
        let _ = waitpid(process, None);
    };
    if runs {
        end(child);
    }
    while let Ok(list) = std::fs::read_to_string(CHILDREN)
        && !list.trim().is_empty()
    {
        let numbers = list.split_whitespace().filter_map(|word| word.parse().ok());
        numbers.map(Pid::from_raw).for_each(end);
    }
}
