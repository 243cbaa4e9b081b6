use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::campaign::LockedCampaign;
use super::ending::hint;
use super::question::{self, UserAnswer};
use super::slurm::{self, SlurmError, State, States};
use super::whole::MergedRun;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Exit, Joined};
use dgx_core::interrupt;
use dgx_core::record::{Run, ended, read};

/// Time between two looks at the queue: short while something happens, then long.
const SOON: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(15);
/// How long the file of an ended task may take to appear here: a network file system may cache its
/// absence for that long.
const GRACE: Duration = Duration::from_secs(5);
/// The wait after a refusal because the queue is full.
const ROOM: Duration = Duration::from_secs(60);
/// The state of a task that Slurm no longer knows.
const FORGOTTEN: &str = "gone from the queue";

/// The result of following a campaign.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The shards merged so far, if any.
    pub run: Option<Run>,
    /// Whether every shard is done.
    pub complete: bool,
}

/// A shard as its follower sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shard {
    done: bool,
    /// Submissions by this follower, without the first.
    again: u32,
    /// When its task was first seen to be over.
    over: Option<Instant>,
    /// Why it is not submitted again.
    given_up: Option<String>,
    /// Whether the failure of its latest task was reported.
    reported: bool,
}

pub(super) struct Follower {
    held: LockedCampaign,
    whole: MergedRun,
    shards: BTreeMap<u32, Shard>,
    bar: ProgressBar,
    /// When to try again to submit the shards that wait for room.
    room: Option<Instant>,
    /// Whether it was reported that Slurm does not answer.
    silent: bool,
}

impl Follower {
    pub(super) fn new(held: LockedCampaign, argv: Vec<String>) -> Self {
        let count = held.campaign.shards;
        let bar = ProgressBar::new(u64::from(count));
        bar.set_draw_target(ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("  slurm  {bar:30}  {pos}/{len}  {wide_msg}")
        {
            bar.set_style(style);
        }
        Self {
            shards: (1..=count).map(|n| (n, Shard::default())).collect(),
            held,
            whole: MergedRun::new(argv),
            bar,
            room: None,
            silent: false,
        }
    }

    /// Submits the missing shards, waits until none is left to wait for, and merges those that are
    /// done.
    pub(super) fn follow(mut self) -> Result<Followed, CommandError> {
        self.held.recover_first()?;
        self.look();
        let fresh = self.lacking();
        if !fresh.is_empty() {
            let attach = self.held.attach();
            let submitted = self.held.submit(&fresh);
            submitted.map_err(|why| {
                CommandError::could_not_run(
                    why.to_string(),
                    format!("{}; then: {attach}", why.remedy()),
                )
            })?;
        }
        remark!(
            "following {}; if dgx ends, the jobs continue: {}",
            self.jobs(),
            self.held.attach()
        );
        let mut pause = SOON;
        while self.open().next().is_some() {
            if interrupt::requested() && self.asked() {
                break;
            }
            let before = self.shards.clone();
            match slurm::states(&self.held.campaign.job_name, &self.held.jobs()) {
                Ok(states) => {
                    self.silent = false;
                    self.held.recover(&states);
                    self.judge(&states);
                }
                Err(trouble) => {
                    self.tell_silence(&trouble);
                    // The files show without Slurm what is done.
                    self.look();
                }
            }
            let done = self.done();
            (self.bar).suspend(|| self.whole.merge_if_due(&self.held, done));
            pause = match self.shards == before {
                true => SELDOM.min(pause.mul_f64(1.3)),
                false => SOON,
            };
            self.wait(pause);
        }
        self.end()
    }

    /// Shards that are neither done nor given up.
    fn open(&self) -> impl Iterator<Item = u32> {
        let open = self.shards.iter();
        open.filter(|(_, shard)| !shard.done && shard.given_up.is_none())
            .map(|(number, _)| *number)
    }

    /// Shards without a task: never submitted, or ended before this follower came. Submitting them
    /// is not a retry.
    fn lacking(&self) -> Vec<u32> {
        let jobs = self.held.jobs();
        let states = match jobs.is_empty() {
            true => Ok(States::new()),
            false => slurm::states(&self.held.campaign.job_name, &jobs),
        };
        let mut lacking = Vec::new();
        for number in self.open() {
            let Some(job) = self.held.job_of(number) else {
                lacking.push(number);
                continue;
            };
            // If Slurm does not answer, their tasks may still run.
            let Ok(states) = &states else {
                continue;
            };
            let how = match states.get(&(job.to_owned(), number)) {
                Some(State::Waiting(_) | State::Running) => continue,
                Some(State::Ended(how)) => how,
                None => FORGOTTEN,
            };
            let how = self.held.ending(number, Some(job), how);
            remark!("{} failed: {how}{}", self.held.name(number), hint(&how));
            lacking.push(number);
        }
        lacking
    }

    /// Which shards are done, by their files alone.
    fn look(&mut self) {
        for (number, shard) in &mut self.shards {
            shard.done = shard.done || ended(&self.held.shard(*number));
        }
        self.bar.set_position(self.done() as u64);
    }

    fn done(&self) -> usize {
        self.shards.values().filter(|s| s.done).count()
    }

    /// Compares Slurm's answer with the files of the shards.
    fn judge(&mut self, states: &States) {
        self.look();
        let open: Vec<u32> = self.open().collect();
        let (mut again, mut counts) = (Vec::new(), BTreeMap::new());
        for number in open {
            let job = self.held.job_of(number).map(str::to_owned);
            let state = job
                .as_ref()
                .and_then(|job| states.get(&(job.clone(), number)));
            let word = match state {
                Some(State::Waiting(reason)) if reason.is_empty() || reason == "None" => {
                    "waiting".to_owned()
                }
                Some(State::Waiting(reason)) => format!("waiting ({reason})"),
                Some(State::Running) => "running".to_owned(),
                Some(State::Ended(_)) | None => "over".to_owned(),
            };
            *counts.entry(word).or_insert(0) += 1;
            let how = match state {
                Some(State::Ended(how)) => how.clone(),
                None => FORGOTTEN.to_owned(),
                Some(State::Waiting(_) | State::Running) => {
                    let shard = self.shard(number);
                    (shard.over, shard.reported) = (None, false);
                    continue;
                }
            };
            let over = *self.shard(number).over.get_or_insert_with(Instant::now);
            if over.elapsed() >= GRACE && self.failed(number, job.as_deref(), &how) {
                again.push(number);
            }
        }
        let words = counts.iter().map(|(word, count)| format!("{count} {word}"));
        self.bar.set_message(words.joined(", "));
        self.resubmit(&again);
    }

    fn shard(&mut self, number: u32) -> &mut Shard {
        self.shards.entry(number).or_default()
    }

    /// Handles a shard whose task has ended without finishing it; returns whether to submit it
    /// again.
    fn failed(&mut self, number: u32, job: Option<&str>, how: &str) -> bool {
        let code = job.and_then(|job| self.held.code(number, job));
        let (retries, name) = (self.held.campaign.retries, self.held.name(number));
        let how = self.held.ending(number, job, how);
        let hint = hint(&how);
        let shard = self.shard(number);
        let hopeless = match code {
            // The same mistake would happen again.
            Some(2 | 126 | 127) => Some("trying again would not help".to_owned()),
            _ if how.starts_with("CANCELLED") => Some("somebody cancelled it".to_owned()),
            _ if shard.again >= retries => Some(match shard.again {
                0 => "tried once".to_owned(),
                again => format!("tried {} times", again + 1),
            }),
            _ => None,
        };
        match hopeless {
            None => {
                // Report it once, however long there is no room for it.
                if !std::mem::replace(&mut shard.reported, true) {
                    self.tell(&format!("{name} failed: {how}{hint}"));
                }
                true
            }
            Some(why) => {
                shard.given_up = Some(format!("{how}; {why}"));
                let words = self.held.last_words(number);
                self.tell(&format!("{name} is abandoned: {how}, {why}{hint}{words}"));
                false
            }
        }
    }

    fn resubmit(&mut self, shards: &[u32]) {
        let wait = self.room.is_some_and(|room| Instant::now() < room);
        if shards.is_empty() || wait {
            return;
        }
        match self.held.submit(shards) {
            Ok(()) => {
                self.room = None;
                for number in shards {
                    let shard = self.shard(*number);
                    shard.again += 1;
                    (shard.over, shard.reported) = (None, false);
                }
                let names = shards.iter().map(|n| self.held.name(*n)).joined(", ");
                let job = self.held.jobs().pop().unwrap_or_default();
                self.tell(&format!("submitted again as job {job}: {names}"));
            }
            Err(why) if why.passes() => {
                if self.room.is_none() {
                    self.tell(&format!(
                        "not submitted again yet, and tried every minute: {why}"
                    ));
                }
                self.room = Some(Instant::now() + ROOM);
            }
            Err(why) => {
                self.tell(&format!("{why}\n  {}", why.remedy()));
                for number in shards {
                    self.shard(*number).given_up = Some(why.to_string());
                }
            }
        }
    }

    /// Prints above the progress bar.
    fn tell(&self, text: &str) {
        self.bar.suspend(|| remark!("{text}"));
    }

    fn tell_silence(&mut self, trouble: &SlurmError) {
        if !std::mem::replace(&mut self.silent, true) && !interrupt::requested() {
            self.tell(&format!("Slurm does not answer; asking again: {trouble}"));
        }
    }

    /// Whether to stop following; asks the user what to do with the jobs.
    fn asked(&mut self) -> bool {
        let open = self.open().count();
        let jobs = self.jobs();
        let about = format!("{open} shards are not done; without dgx they continue as {jobs}.");
        let attach = self.held.attach();
        match self.bar.suspend(|| question::ask(&about)) {
            UserAnswer::Follow => {
                interrupt::forget();
                false
            }
            UserAnswer::Leave => {
                let jobs = self.held.jobs().join(" ");
                self.tell(&format!(
                    "the jobs continue\n  follow them: {attach}\n  cancel them: scancel {jobs}"
                ));
                true
            }
            UserAnswer::Cancel => {
                let became = match slurm::cancel(&self.held.jobs()) {
                    Ok(()) => "the jobs are cancelled".to_owned(),
                    Err(trouble) => format!("the jobs are not cancelled: {trouble}"),
                };
                self.tell(&format!(
                    "{became}\nwhat is finished is kept; the rest: {attach}"
                ));
                true
            }
        }
    }

    fn jobs(&self) -> String {
        let jobs = self.held.jobs();
        let noun = if jobs.len() == 1 { "job" } else { "jobs" };
        format!("{noun} {}", jobs.join(", "))
    }

    fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !interrupt::requested() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Merges what there is.
    fn end(mut self) -> Result<Followed, CommandError> {
        self.bar.finish_and_clear();
        self.look();
        let complete = self.done() == self.shards.len();
        let attach = self.held.attach();
        let merged = self.whole.merge(&self.held);
        let run = match merged.inspect_err(|_| remark!("the shards are kept; then: {attach}"))? {
            Some(run) => Some(run),
            None => read(&self.held.run()).ok(),
        };
        let lost: Vec<String> = (self.shards.iter())
            .filter_map(|(n, s)| Some(format!("{}: {}", self.held.name(*n), s.given_up.as_ref()?)))
            .collect();
        if !lost.is_empty() {
            remark!(
                "not done: {}\nwhat is finished is kept; this submits the rest again (--time, \
                 --partition, --gres and --sbatch-arg may be others):\n  {attach}",
                lost.join("\n  ")
            );
        }
        Ok(Followed { run, complete })
    }
}

impl Followed {
    /// The exit code of the command, given the one that a complete run would have.
    pub(crate) fn exit(&self, whole: impl Fn(&Run) -> Exit) -> Exit {
        match (&self.run, self.complete) {
            (Some(run), true) => whole(run),
            _ => Exit::CouldNotRun,
        }
    }
}
