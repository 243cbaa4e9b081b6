//! What the benches that run dgx itself have in common.

use std::process::Command;
use std::time::Duration;

/// CPU time of this process, or of the children it has waited for.
pub(crate) fn cpu_time(who: libc::c_int) -> Duration {
    // SAFETY: all-zero is a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(who, &mut usage), 0, "a known `who`");
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// CPU time of a command that succeeds, and what it wrote to standard error.
pub(crate) fn observed(command: &mut Command) -> (Duration, String) {
    let before = cpu_time(libc::RUSAGE_CHILDREN);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}\n{said}", output.status);
    (cpu_time(libc::RUSAGE_CHILDREN) - before, said)
}
