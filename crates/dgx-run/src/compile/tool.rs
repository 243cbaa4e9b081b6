//! Other programs that make images: ptxas, and a Python with Triton. Each runs in a process group
//! that ends with it, including any children.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::{
    Resource, Rlimit, WaitId, WaitIdOptions, set_parent_process_death_signal, setrlimit, waitid,
};

use super::CompileLimits;
use super::process::NoImage;

/// Time between two checks whether it has ended.
const GLANCE: Duration = Duration::from_millis(10);
/// How long its last output may take to arrive.
const HEARING: Duration = Duration::from_secs(2);
/// More of a log than a user reads.
const MOST_WORDS: u64 = 256 << 10;
/// The largest file it may write, against endless logs.
const LARGEST_FILE: u64 = 64 << 20;
/// Because the machine may be busy, it may take this many times its limit.
const PATIENCE: u32 = 2;

/// The error that a program's folder, or a file in it, cannot be made.
pub(super) fn no_room(error: std::io::Error) -> NoImage {
    NoImage::Died(format!("there is no room to compile in: {error}"))
}

/// How a program ended, and its output on stdout and stderr.
pub(super) struct ToolOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program to its end, or until its time is up or `stop` returns true.
pub(super) fn run(
    command: &mut Command,
    input: Vec<u8>,
    limits: &CompileLimits,
    stop: &dyn Fn() -> bool,
) -> Result<ToolOutput, NoImage> {
    let name = command.get_program().to_string_lossy().into_owned();
    let memory = limits.memory.0;
    let within_limits = move || {
        // It ends with dgx, even if dgx is killed.
        set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        for (resource, most) in [(Resource::Data, memory), (Resource::Fsize, LARGEST_FILE)] {
            let most = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            setrlimit(resource, most)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec it only makes three system calls.
    unsafe { command.pre_exec(within_limits) };
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| NoImage::Died(format!("{name} cannot be started: {e}")))?;
    let group = Pid::from_raw(child.id() as i32);
    if let Some(mut stdin) = child.stdin.take() {
        // A program that never reads must not block this thread.
        thread::spawn(move || stdin.write_all(&input));
    }
    let heard = [
        child.stdout.take().map(read_all),
        child.stderr.take().map(read_all),
    ];
    let began = Instant::now();
    let most = limits.time * PATIENCE;
    let waiting = loop {
        match has_ended(child.id()) {
            true => break None,
            false if stop() => break Some(NoImage::Stopped),
            false if began.elapsed() > most => {
                break Some(NoImage::TimedOut(format!("{} s", most.as_secs_f64())));
            }
            false => thread::sleep(GLANCE),
        }
    };
    // Its remaining children would go on, and hold its output open. The group id stays its own
    // until it is reaped.
    let _ = killpg(group, Signal::SIGKILL);
    let status = child.wait().map_err(|e| NoImage::Died(e.to_string()))?;
    let [stdout, stderr] = heard.map(|words| words.map_or_else(String::new, received_text));
    match waiting {
        Some(why) => Err(why),
        None => Ok(ToolOutput {
            status,
            stdout,
            stderr,
        }),
    }
}

/// Whether a child has ended; it is not reaped.
fn has_ended(child: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = rustix::process::Pid::from_raw(child as i32) else {
        return true;
    };
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Reads all output, and keeps the beginning.
fn read_all(mut words: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, kept) = channel();
    thread::spawn(move || {
        let mut first = Vec::new();
        let _ = words.by_ref().take(MOST_WORDS).read_to_end(&mut first);
        let _ = sender.send(first);
        let _ = std::io::copy(&mut words, &mut std::io::sink());
    });
    kept
}

fn received_text(kept: Receiver<Vec<u8>>) -> String {
    match kept.recv_timeout(HEARING) {
        Ok(words) => String::from_utf8_lossy(&words).into_owned(),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::Bytes;

    fn shell(line: &str, seconds: f64) -> Result<ToolOutput, NoImage> {
        let limits = CompileLimits {
            time: Duration::from_secs_f64(seconds),
            memory: Bytes(1 << 30),
        };
        let mut command = Command::new("sh");
        run(command.args(["-c", line]), b"in".to_vec(), &limits, &|| {
            false
        })
    }

    #[test]
    fn what_is_written_is_heard_and_floods_are_cut() {
        let ran = shell("cat; echo no >&2; exit 3", 60.0).ok().unwrap();
        assert_eq!((&*ran.stdout, &*ran.stderr), ("in", "no\n"));
        assert_eq!(ran.status.code(), Some(3));
        let flood = shell("head -c 3000000 /dev/zero | tr '\\0' x", 60.0);
        assert_eq!(flood.ok().unwrap().stdout.len() as u64, MOST_WORDS);
    }

    #[test]
    fn a_file_that_grows_without_end_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let line = format!("head -c 100000000 /dev/zero > {}", path.display());
        assert!(!shell(&line, 60.0).ok().unwrap().status.success());
        assert_eq!(path.metadata().unwrap().len(), LARGEST_FILE);
    }

    #[test]
    fn one_that_never_ends_is_ended_with_all_it_started() {
        assert!(matches!(
            shell("sleep 600", 0.05),
            Err(NoImage::TimedOut(_))
        ));
        // A child that keeps its output open does not block us.
        let began = Instant::now();
        let ran = shell("sleep 600 & echo $!", 60.0).ok().unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        let left = format!("/proc/{}/stat", ran.stdout.trim());
        // A killed process closes its files before it is gone.
        let alive = || std::fs::read_to_string(&left).is_ok_and(|stat| !stat.contains(") Z"));
        while alive() {
            assert!(began.elapsed() < Duration::from_secs(60));
            thread::sleep(GLANCE);
        }
    }
}
