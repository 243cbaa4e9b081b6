//! The reasons for which `sbatch` refuses a job, with a remedy for each.

/// The remedy for a refused submission.
pub(super) fn remedy(words: &str) -> &'static str {
    let lower = words.to_lowercase();
    let says = |hints: &[&str]| hints.iter().any(|hint| lower.contains(hint));
    if full(words) {
        "the queue is full: wait until there is room, or start again with fewer shards (--array N)"
    } else if says(&["violates accounting"]) {
        "ask for what your account and QOS allow, with --time, --gres or --sbatch-arg, or name \
         others with --sbatch-arg=--account=… or --sbatch-arg=--qos=…"
    } else if says(&["partition"]) {
        "`sinfo -o %P` lists the partitions; name one with --partition"
    } else if says(&["gres", "generic resource"]) {
        "`sinfo -o '%P %G'` lists what there is; ask for it with --gres, or with --gres '' for none"
    } else if says(&["time limit", "timelimit", "time specification"]) {
        "`sinfo -o '%P %l'` lists the time limits; ask for less with --time"
    } else if says(&["job array"]) {
        "`scontrol show config` prints the largest array (MaxArraySize); start again with \
         fewer shards (--array N)"
    } else if says(&["account", "qos"]) {
        "name an account or QOS you have with --sbatch-arg=--account=… or --sbatch-arg=--qos=…"
    } else if silent(words) {
        "the controller does not answer: try again when `sinfo` does"
    } else {
        "fix what sbatch reports, e.g. with --sbatch-arg"
    }
}

/// Whether the controller did not answer, or not in time.
pub(super) fn silent(words: &str) -> bool {
    let lower = words.to_lowercase();
    let hints = [
        "contact",
        "connection",
        "controller",
        "timed out",
        "zero bytes were transmitted",
    ];
    hints.iter().any(|hint| lower.contains(hint))
}

/// Whether there is no room for more tasks now.
pub(super) fn full(words: &str) -> bool {
    let hints = [
        // `QOSMaxSubmitJobPerUserLimit`, `AssocGrpSubmitJobsLimit`, …
        "submitjob",
        "limit on number of jobs",
        "job count limit",
        "temporarily unable to accept",
        "resource temporarily unavailable",
    ];
    let lower = words.to_lowercase();
    // A violated policy may be permanent; which one it is stands in a separate line.
    let mut lines = lower.lines().filter(|l| !l.contains("violates accounting"));
    lines.any(|line| hints.iter().any(|hint| line.contains(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_comes_with_what_to_do() {
        for (said, remedied) in [
            (
                "sbatch: error: invalid partition specified: x",
                "--partition",
            ),
            (
                "error: Invalid generic resource (gres) specification",
                "--gres",
            ),
            (
                "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission \
                 failed: Job violates accounting/QOS policy (job submit limit, user's size and/or \
                 time limits)",
                "queue is full",
            ),
            (
                "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy \
                 (job submit limit, user's size and/or time limits)",
                "account and QOS allow",
            ),
            (
                "Batch job submission failed: Invalid job array specification",
                "MaxArraySize",
            ),
            (
                "Requested time limit is invalid (missing or exceeds some limit)",
                "--time",
            ),
            (
                "Invalid account or account/partition combination specified",
                "--partition",
            ),
            (
                "Unable to contact slurm controller (connect failure)",
                "does not answer",
            ),
            (
                "Batch job submission failed: Socket timed out on send/recv operation",
                "does not answer",
            ),
            ("something else", "--sbatch-arg"),
        ] {
            assert!(remedy(said).contains(remedied), "{said}: {}", remedy(said));
        }
    }
}
