"""How scripts/peers, cutlass-tests and rodinia run a program, and what a run without launches says about it."""
import os
import re
import resource
import signal
import subprocess
import time

OUT_OF_TIME = (-9, -24, 137, 152)  # exit codes of a program, and of `dgx run`
REFUSED = re.compile(r"^dgx: (.*(?:not supported|cannot |not emulated).*)$", re.M)


def run(command, folder, environment, limit):
    """Exit code, output and seconds; the code is None if it did not end in time. The time of the processor counts,
    since other programs may run beside; one that sleeps gets ten times as long."""
    began = time.monotonic()
    processor = lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    child = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=processor)
    try:
        output, _ = child.communicate(timeout=10 * limit)
        code = child.returncode if child.returncode not in OUT_OF_TIME else None
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        code = None
    return code, output.decode(errors="replace")[-200_000:], time.monotonic() - began


def refusals(output):
    """What dgx refused. Names of kernels are left out, since templates make them long."""
    return [re.sub(r"kernel \S+ cannot", "a kernel cannot", line) for line in REFUSED.findall(output)]


def runs_all(output):
    """Whether every kernel ran: a program may pass by leaving out what was refused."""
    return not any("cannot run in the emulator" in line for line in refusals(output))


def without_launches(code, passes, complains):
    """Verdict and reason on a program that passed, by its run without launches. It must complain then, by an exit code or in
    words. A crash is no complaint, but comes of data that were never computed; a program that does not end says nothing."""
    if passes:
        return "checks nothing", "passes with its launches left out"
    if code is None:
        return "undecided", "does not end with its launches left out"
    crashes = code < 0 or 128 < code <= 128 + signal.NSIG
    return "verified", "crashes without launches" if crashes and not complains else ""
