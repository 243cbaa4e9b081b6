//! Slurm's commands, and the meaning of their output.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use thiserror::Error;

use super::campaign::Campaign;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Joined;

/// The state of a task in Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// With the reason, if Slurm gives one.
    Waiting(String),
    Running,
    /// By the name Slurm has for it, e.g. `TIMEOUT`.
    Ended(String),
}

/// Tasks by job and place in its array.
pub(super) type States = BTreeMap<(String, u32), State>;

/// Why a Slurm command failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum SlurmError {
    #[error("`{0}` is not on PATH")]
    Missing(&'static str),
    #[error("`{0}` cannot be run: {1}")]
    CouldNotRun(&'static str, String),
    /// In Slurm's own words.
    #[error("{0}")]
    Refused(String),
}

/// Whether Slurm is installed. It may be, and still not answer at the moment.
pub(super) fn present() -> Result<(), CommandError> {
    for program in ["sbatch", "squeue"] {
        if let Err(trouble @ SlurmError::Missing(_)) = ask(program, ["--version"]) {
            return Err(CommandError::could_not_run(
                format!("there is no Slurm here: {trouble}"),
                "run it on a login node of the cluster; with another scheduler, --shard I/N and \
                 `dgx merge` do the same",
            ));
        }
    }
    Ok(())
}

fn ask<S: AsRef<OsStr>>(
    program: &'static str,
    words: impl IntoIterator<Item = S>,
) -> Result<String, SlurmError> {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(std::process::Stdio::null())
        // Ctrl-C is for dgx only: an interrupted submission may leave a job.
        .process_group(0);
    for (name, _) in std::env::vars_os().filter(|(name, _)| misleads(name)) {
        command.env_remove(name);
    }
    let output = command.output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => SlurmError::Missing(program),
        _ => SlurmError::CouldNotRun(program, e.to_string()),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match (output.status.success(), text(&output.stderr)) {
        (true, _) => Ok(text(&output.stdout)),
        (false, words) if words.is_empty() => {
            let status = output.status;
            Err(SlurmError::Refused(format!(
                "`{program}` said nothing ({status})"
            )))
        }
        (false, words) => Err(SlurmError::Refused(words)),
    }
}

/// Whether an environment variable would change the answer of a command: filters and formats of
/// lists, other log files, a submission that waits for its jobs. Variables that choose where jobs
/// run are left to the user.
fn misleads(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let listing = ["SQUEUE_", "SACCT_", "SCANCEL_"];
    listing.iter().any(|prefix| name.starts_with(prefix))
        || ["SBATCH_WAIT", "SBATCH_ERROR", "SBATCH_INPUT"].contains(&&*name)
}

/// The arguments of `sbatch` for these shards.
pub(super) fn words(campaign: &Campaign, folder: &Path, shards: &[u32]) -> Vec<String> {
    let list = ranges(shards);
    let limit = campaign.at_once.map_or(String::new(), |n| format!("%{n}"));
    let named = [
        ("partition", &campaign.partition),
        ("gres", &campaign.gres),
        ("time", &campaign.time),
    ];
    let named = named.into_iter().filter_map(|(flag, value)| {
        let value = value.as_ref()?;
        Some(format!("--{flag}={value}"))
    });
    let mut words: Vec<String> = named.collect();
    words.extend(campaign.sbatch_args.iter().cloned());
    // Last, so that nothing overrides them: the jobs are found again by these.
    words.extend([
        "--parsable".to_owned(),
        format!("--array={list}{limit}"),
        format!("--job-name={}", campaign.job_name),
        // A percent sign begins a pattern there.
        format!(
            "--output={}/task-%a.log",
            folder.display().to_string().replace('%', "%%")
        ),
        "--open-mode=append".to_owned(),
    ]);
    words.push(folder.join("task.sh").display().to_string());
    words
}

/// Submits an array and returns its job number.
pub(super) fn submit(words: &[String]) -> Result<String, SlurmError> {
    let answer = ask("sbatch", words)?;
    // `NUMBER`, or `NUMBER;CLUSTER`.
    let job = answer.lines().last().unwrap_or_default();
    let job = job.split(';').next().unwrap_or_default().trim();
    match job.is_empty() || !job.bytes().all(|b| b.is_ascii_digit()) {
        true => Err(SlurmError::Refused(format!("sbatch answered {answer:?}"))),
        false => Ok(job.to_owned()),
    }
}

/// The tasks of all jobs of this name: those in Slurm's queue or memory, and those in its
/// accounting, if there is one.
pub(super) fn states(job_name: &str, jobs: &[String]) -> Result<States, SlurmError> {
    let queue = ask(
        "squeue",
        [
            "--noheader",
            "--array",
            "--states=all",
            &format!("--name={job_name}"),
            "--format=%F|%K|%T|%r",
        ],
    )?;
    let mut states = accounted(jobs);
    states.extend(queue.lines().filter_map(queued));
    Ok(states)
}

/// `7|3|PENDING|Resources`.
fn queued(line: &str) -> Option<((String, u32), State)> {
    let mut fields = line.trim().splitn(4, '|');
    let (job, task) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
    let (state, reason) = (fields.next()?, fields.next().unwrap_or_default());
    Some(((job, task), State::of(state, reason)))
}

/// The answer of accounting, if there is one.
fn accounted(jobs: &[String]) -> States {
    if jobs.is_empty() {
        return States::new();
    }
    let list = format!("--jobs={}", jobs.join(","));
    let words = ["--noheader", "--parsable2", "--format=JobID,State", &list];
    let answer = ask("sacct", words).unwrap_or_default();
    answer.lines().filter_map(recorded).collect()
}

/// `7_3|CANCELLED by 1000`; steps of a task (`7_3.batch`) are skipped.
fn recorded(line: &str) -> Option<((String, u32), State)> {
    let (id, state) = line.trim().split_once('|')?;
    let (job, task) = id.split_once('_')?;
    Some(((job.to_owned(), task.parse().ok()?), State::of(state, "")))
}

impl State {
    fn of(name: &str, reason: &str) -> Self {
        let name = name.split_whitespace().next().unwrap_or_default();
        match name {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD" => Self::Waiting(reason.to_owned()),
            "RUNNING" | "CONFIGURING" | "COMPLETING" | "RESIZING" | "SIGNALING" | "STAGE_OUT"
            | "STOPPED" | "SUSPENDED" => Self::Running,
            ended => Self::Ended(ended.to_owned()),
        }
    }
}

pub(super) fn cancel(jobs: &[String]) -> Result<(), SlurmError> {
    ask("scancel", jobs).map(drop)
}

/// `1-4,7`.
fn ranges(shards: &[u32]) -> String {
    let mut sorted = shards.to_vec();
    sorted.sort_unstable();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(text).joined(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_shards_are_short() {
        assert_eq!(ranges(&[3, 1, 2, 7]), "1-3,7");
        assert_eq!(ranges(&[5]), "5");
    }

    #[test]
    fn what_slurm_says_of_tasks() {
        let state = |line: &str| queued(line).unwrap();
        let waiting = State::Waiting("Resources".to_owned());
        assert_eq!(
            state("7|3|PENDING|Resources"),
            (("7".to_owned(), 3), waiting)
        );
        assert_eq!(state("7|1|COMPLETING|None").1, State::Running);
        assert_eq!(
            state("7|2|TIMEOUT|None").1,
            State::Ended("TIMEOUT".to_owned())
        );
        // An array of which nothing has begun is one line of ranges otherwise.
        assert_eq!(queued("7|1-4|PENDING|Priority"), None);
        let cancelled = State::Ended("CANCELLED".to_owned());
        assert_eq!(
            recorded("7_3|CANCELLED by 1000"),
            Some((("7".to_owned(), 3), cancelled))
        );
        assert_eq!(recorded("7_3.batch|FAILED"), None);
        assert_eq!(recorded("7_[4-8]|PENDING"), None);
    }

    #[test]
    fn what_the_user_set_for_listings_does_not_reach_them() {
        for name in [
            "SQUEUE_PARTITION",
            "SACCT_FORMAT",
            "SCANCEL_STATE",
            "SBATCH_WAIT",
        ] {
            assert!(misleads(OsStr::new(name)), "{name}");
        }
        for name in ["SBATCH_ACCOUNT", "SLURM_CONF", "PATH"] {
            assert!(!misleads(OsStr::new(name)), "{name}");
        }
    }
}
