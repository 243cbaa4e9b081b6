//! A line on the terminal while a launch takes long.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A launch that takes longer gets a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two lines.
const PAUSE: Duration = Duration::from_millis(500);

/// A launch that runs.
struct Running {
    kernel: String,
    ctas: u64,
    /// CTAs that had already ended in this process.
    before: u64,
    began: Instant,
}

impl Running {
    fn line(&self, ended: u64) -> String {
        let done = ended.saturating_sub(self.before).min(self.ctas);
        let seconds = self.began.elapsed().as_secs();
        format!(
            "dgx: {}: {done} of {} CTAs, {seconds} s",
            self.kernel, self.ctas
        )
    }
}

#[derive(Default)]
struct Shown {
    running: Option<Running>,
    /// Whether there is a line on the terminal.
    line: bool,
}

static SHOWN: LazyLock<Mutex<Shown>> = LazyLock::new(Mutex::default);
static BEGUN: Condvar = Condvar::new();

fn shown() -> MutexGuard<'static, Shown> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the progress of a launch until it is dropped.
pub(crate) struct Progress(());

impl Progress {
    /// For a launch that begins; `None` if there is no terminal.
    pub(crate) fn of(kernel: &str, ctas: u64) -> Option<Self> {
        static WATCHED: LazyLock<bool> = LazyLock::new(|| {
            let thread = std::thread::Builder::new().name("dgx progress".to_owned());
            stderr().is_terminal() && without_signals(|| thread.spawn(watch).is_ok())
        });
        if !*WATCHED {
            return None;
        }
        shown().running = Some(Running {
            kernel: kernel.to_owned(),
            ctas,
            before: ptx_emu::ended_ctas(),
            began: Instant::now(),
        });
        BEGUN.notify_one();
        Some(Self(()))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let mut shown = shown();
        shown.running = None;
        if std::mem::take(&mut shown.line) {
            // A closed terminal loses the line, but does not stop the program.
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// Starts a thread without signals, which are for the program's threads.
fn without_signals(start: impl FnOnce() -> bool) -> bool {
    let mut all = std::mem::MaybeUninit::uninit();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: both sets are filled before they are read; a thread begins with the mask of its maker.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        started
    }
}

fn watch() {
    let mut shown = shown();
    loop {
        let Some(running) = &shown.running else {
            shown = BEGUN.wait(shown).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        if running.began.elapsed() >= PATIENCE {
            let line = running.line(ptx_emu::ended_ctas());
            let _ = write!(stderr(), "\r{line}\x1b[K");
            shown.line = true;
        }
        drop(shown);
        std::thread::sleep(PAUSE);
        shown = self::shown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_the_ctas_of_its_own_launch() {
        let running = Running {
            kernel: "k".to_owned(),
            ctas: 10,
            before: 100,
            began: Instant::now(),
        };
        assert_eq!(running.line(103), "dgx: k: 3 of 10 CTAs, 0 s");
        assert_eq!(running.line(99), "dgx: k: 0 of 10 CTAs, 0 s");
        assert_eq!(running.line(200), "dgx: k: 10 of 10 CTAs, 0 s");
    }
}
