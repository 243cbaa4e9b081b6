use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::campaign::{Held, Submission};
use super::could_not;
use super::question::{self, Wish};
use super::slurm::{self, State, States, Trouble};
use crate::diagnostic::CommandError;
use crate::domain::Exit;
use crate::interrupt;
use crate::merge::{self, Title};
use crate::record::{Run, Slot, ended, read};

/// Between two looks at the queue: often while things happen, then seldom.
const SOON: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(15);
/// How long the file of a task that ended may take to be seen here: what a
/// network file system remembers of it can be that old.
const GRACE: Duration = Duration::from_secs(5);
/// After a refusal for want of room.
const ROOM: Duration = Duration::from_secs(60);
/// A task that Slurm remembers nothing of.
const FORGOTTEN: &str = "gone from the queue";
/// Merging may take this share of the time.
const MERGING: u32 = 10;

/// What became of a campaign.
#[derive(Debug)]
pub(crate) struct Followed {
    /// What is merged so far, if anything is.
    pub run: Option<Run>,
    /// Whether every shard is done.
    pub complete: bool,
}

/// A shard as its follower sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shard {
    done: bool,
    /// Submissions by this follower, the first excluded.
    again: u32,
    /// When its task was first seen to be over.
    over: Option<Instant>,
    /// Why it is not submitted again.
    given_up: Option<String>,
    /// Whether it was said that its latest task failed.
    told: bool,
}

pub(super) struct Follower {
    held: Held,
    argv: Vec<String>,
    shards: BTreeMap<u32, Shard>,
    bar: ProgressBar,
    /// Shards in the run file already.
    merged: usize,
    /// When merging may be thought of again.
    merge_due: Instant,
    /// When there may be room for those that wait to be submitted.
    room: Option<Instant>,
    /// Whether it was said that Slurm does not answer.
    silent: bool,
}

impl Follower {
    pub(super) fn new(held: Held, argv: Vec<String>) -> Self {
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
            argv,
            bar,
            merged: 0,
            merge_due: Instant::now(),
            room: None,
            silent: false,
        }
    }

    /// Submits what was not, waits until nothing is left to wait for, and
    /// merges what there is.
    pub(super) fn follow(mut self) -> Result<Followed, CommandError> {
        self.recover_first()?;
        self.look();
        let fresh = self.lacking();
        if !fresh.is_empty() {
            self.submit(&fresh).map_err(|words| self.refused(&words))?;
        }
        remark!(
            "following {}; if dgx ends, the jobs go on: dgx attach {}",
            self.jobs(),
            self.held.run().display()
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
                    self.recover(&states);
                    self.judge(&states)?;
                }
                Err(trouble) => {
                    self.tell_silence(&trouble);
                    // The files tell what is done without Slurm.
                    self.look();
                }
            }
            self.merge_if_due();
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

    /// Whether a submission has a job at all must be known before another is
    /// made, or its shards would have two tasks.
    fn recover_first(&mut self) -> Result<(), CommandError> {
        let submissions = &self.held.campaign.submissions;
        if submissions.iter().all(|s| s.job.is_some()) {
            return Ok(());
        }
        match slurm::states(&self.held.campaign.job_name, &[]) {
            Ok(states) => {
                self.recover(&states);
                Ok(())
            }
            Err(trouble) => Err(could_not(
                format!(
                    "Slurm does not answer whether it took the jobs of before: {}",
                    trouble.words("squeue")
                ),
                format!(
                    "when `squeue` answers: dgx attach {}",
                    self.held.run().display()
                ),
            )),
        }
    }

    /// A follower that died while it submitted may have left a job behind
    /// without knowing its number.
    fn recover(&mut self, states: &States) {
        let known: BTreeSet<String> = self.held.jobs().into_iter().collect();
        let jobs: BTreeSet<String> = states.keys().map(|(job, _)| job.clone()).collect();
        let mut found = jobs.difference(&known).cloned();
        let submissions = &mut self.held.campaign.submissions;
        for submission in submissions.iter_mut().filter(|s| s.job.is_none()) {
            submission.job = found.next();
        }
        submissions.retain(|s| s.job.is_some());
    }

    /// Shards that nobody is at: never submitted, or over before this follower
    /// came. That is no retry of its.
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
            // Where Slurm does not answer, they may be at it.
            let Ok(states) = &states else {
                continue;
            };
            let how = match states.get(&(job.to_owned(), number)) {
                Some(State::Waiting(_) | State::Running) => continue,
                Some(State::Ended(how)) => how,
                None => FORGOTTEN,
            };
            let how = self.told(number, Some(job), how);
            remark!("{} failed: {how}{}", self.name(number), hint(&how));
            lacking.push(number);
        }
        lacking
    }

    /// Which shards are done, by their files alone.
    fn look(&mut self) {
        for (number, shard) in &mut self.shards {
            shard.done = shard.done || ended(&self.held.shard(*number));
        }
        let done = self.shards.values().filter(|s| s.done).count();
        self.bar.set_position(done as u64);
    }

    /// Submits an array of these shards, writing down beforehand that it will.
    fn submit(&mut self, shards: &[u32]) -> Result<(), String> {
        let submission = Submission {
            job: None,
            shards: shards.to_vec(),
        };
        self.held.campaign.submissions.push(submission);
        self.save()?;
        let words = slurm::words(&self.held.campaign, &self.held.folder, shards);
        let job = slurm::submit(&words);
        let submissions = &mut self.held.campaign.submissions;
        match job {
            Ok(job) => {
                if let Some(last) = submissions.last_mut() {
                    last.job = Some(job);
                }
                self.save()
            }
            Err(trouble) => {
                // What timed out may have been taken all the same; as long as
                // Slurm does not say, it stays written down.
                let before = submissions.len();
                let states = slurm::states(&self.held.campaign.job_name, &[]);
                if let Ok(states) = &states {
                    self.recover(states);
                }
                self.save()?;
                let taken = self.held.campaign.submissions.len() == before;
                match states.is_ok() && taken {
                    true => Ok(()),
                    false => Err(trouble.words("sbatch")),
                }
            }
        }
    }

    fn save(&self) -> Result<(), String> {
        self.held.save().map_err(|error| error.to_string())
    }

    fn refused(&self, words: &str) -> CommandError {
        let attach = format!("dgx attach {}", self.held.run().display());
        could_not(
            format!("Slurm refused the jobs: {words}"),
            format!("{}; then: {attach}", slurm::remedy(words)),
        )
    }

    /// Holds what Slurm says against the files of the shards.
    fn judge(&mut self, states: &States) -> Result<(), CommandError> {
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
                    self.shard(number).over = None;
                    continue;
                }
            };
            let over = *self.shard(number).over.get_or_insert_with(Instant::now);
            if over.elapsed() >= GRACE && self.failed(number, job.as_deref(), &how) {
                again.push(number);
            }
        }
        let words = counts.iter().map(|(word, count)| format!("{count} {word}"));
        self.bar.set_message(words.collect::<Vec<_>>().join(", "));
        self.resubmit(&again)
    }

    fn shard(&mut self, number: u32) -> &mut Shard {
        self.shards.entry(number).or_default()
    }

    /// What becomes of a shard whose task is over and that is not done:
    /// whether it is to be submitted again.
    fn failed(&mut self, number: u32, job: Option<&str>, how: &str) -> bool {
        let code = job.and_then(|job| self.held.code(number, job));
        let (retries, name) = (self.held.campaign.retries, self.name(number));
        let how = self.told(number, job, how);
        let hint = hint(&how);
        let shard = self.shard(number);
        let hopeless = match code {
            // A mistake that stays one.
            Some(2 | 126 | 127) => Some("trying again would not help".to_owned()),
            _ if how.starts_with("CANCELLED") => Some("somebody cancelled it".to_owned()),
            _ if shard.again >= retries => Some(format!("tried {} times", shard.again + 1)),
            _ => None,
        };
        match hopeless {
            None => {
                // Once, however long there is no room for it.
                if !std::mem::replace(&mut shard.told, true) {
                    remark!("{name} failed: {how}{hint}");
                }
                true
            }
            Some(why) => {
                shard.given_up = Some(format!("{how}; {why}"));
                let words = self.last_words(number);
                remark!("{name} is given up: {how}, {why}{hint}{words}");
                false
            }
        }
    }

    /// How a task ended, with its exit code where it got to say so.
    fn told(&self, number: u32, job: Option<&str>, how: &str) -> String {
        match job.and_then(|job| self.held.code(number, job)) {
            Some(code) => format!("{how}, exit code {code}"),
            None => how.to_owned(),
        }
    }

    fn resubmit(&mut self, shards: &[u32]) -> Result<(), CommandError> {
        let wait = self.room.is_some_and(|room| Instant::now() < room);
        if shards.is_empty() || wait {
            return Ok(());
        }
        match self.submit(shards) {
            Ok(()) => {
                self.room = None;
                for number in shards {
                    let shard = self.shard(*number);
                    shard.again += 1;
                    (shard.over, shard.told) = (None, false);
                }
                let names: Vec<String> = shards.iter().map(|n| self.name(*n)).collect();
                let job = self.held.jobs().pop().unwrap_or_default();
                remark!("submitted again as job {job}: {}", names.join(", "));
            }
            Err(words) if slurm::full(&words) || slurm::silent(&words) => {
                if self.room.is_none() {
                    remark!("Slurm cannot take them now, and is asked every minute: {words}");
                }
                self.room = Some(Instant::now() + ROOM);
            }
            Err(words) => {
                remark!("Slurm refused them: {words}\n  {}", slurm::remedy(&words));
                for number in shards {
                    self.shard(*number).given_up = Some(words.clone());
                }
            }
        }
        Ok(())
    }

    fn name(&self, number: u32) -> String {
        format!("shard {number}/{}", self.held.campaign.shards)
    }

    fn last_words(&self, number: u32) -> String {
        let log = self.held.log(number);
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let tail = lines[lines.len().saturating_sub(5)..].join("\n    ");
        match tail.is_empty() {
            true => String::new(),
            false => format!("\n  {} ends:\n    {tail}", log.display()),
        }
    }

    fn tell_silence(&mut self, trouble: &Trouble) {
        if !std::mem::replace(&mut self.silent, true) && !interrupt::requested() {
            let words = trouble.words("squeue");
            remark!("Slurm does not answer; asking again: {words}");
        }
    }

    /// As often as it takes no more than a share of the time.
    fn merge_if_due(&mut self) {
        let done = self.shards.values().filter(|s| s.done).count();
        if done <= self.merged || Instant::now() < self.merge_due {
            return;
        }
        let began = Instant::now();
        match self.merge() {
            Ok(_) => self.merged = done,
            // It is tried again at the end.
            Err(error) => remark!("not merged yet: {error}"),
        }
        self.merge_due = Instant::now() + began.elapsed() * MERGING;
    }

    fn merge(&self) -> Result<Option<Run>, CommandError> {
        let begun = |number: &u32| self.held.shard(*number);
        let files = self.shards.keys().map(begun);
        let whole = |path: &PathBuf| crate::record::header(path).is_ok();
        let files: Vec<PathBuf> = files.filter(whole).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let slot = Slot::at(&self.held.run()).map_err(|e| CommandError::from(&e))?;
        let title = Title {
            argv: self.argv.clone(),
            config: Some(self.held.campaign.config.clone()),
        };
        merge::merge(&files, slot, title).map(|merged| Some(merged.run))
    }

    /// Whether to stop following; with the jobs as the user wants them.
    fn asked(&mut self) -> bool {
        self.bar.suspend(|| ());
        let open = self.open().count();
        let about = format!(
            "{} go on without dgx: {open} shards are not done.",
            self.jobs()
        );
        match question::ask(&about) {
            Wish::Follow => {
                interrupt::forget();
                false
            }
            Wish::Leave => {
                let (run, jobs) = (self.held.run(), self.held.jobs().join(" "));
                remark!(
                    "the jobs go on\n  follow them: dgx attach {}\n  cancel them: scancel {jobs}",
                    run.display()
                );
                true
            }
            Wish::Cancel => {
                match slurm::cancel(&self.held.jobs()) {
                    Ok(()) => remark!("the jobs are cancelled"),
                    Err(trouble) => remark!("scancel did not do it: {trouble:?}"),
                }
                remark!(
                    "what is finished is kept; the rest: dgx attach {}",
                    self.held.run().display()
                );
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
        let complete = self.shards.values().all(|s| s.done);
        let run = match self.merge()? {
            Some(run) => Some(run),
            None => read(&self.held.run()).ok(),
        };
        let lost: Vec<String> = (self.shards.iter())
            .filter_map(|(n, s)| Some(format!("{}: {}", self.name(*n), s.given_up.as_ref()?)))
            .collect();
        if !lost.is_empty() {
            remark!(
                "not done: {}\nwhat is finished is kept; dgx attach {} submits the rest again \
                 (--time, --partition, --gres and --sbatch-arg may be others)",
                lost.join("\n  "),
                self.held.run().display()
            );
        }
        Ok(Followed { run, complete })
    }
}

/// What helps against an end that Slurm brought about.
fn hint(how: &str) -> &'static str {
    match how.split([',', ' ']).next() {
        Some("TIMEOUT" | "DEADLINE") => " (it goes on where it was; --time gives it more)",
        Some("OUT_OF_MEMORY") => " (--sbatch-arg=--mem=… gives it more memory)",
        Some("PREEMPTED") => " (it goes on where it was)",
        Some("NODE_FAIL" | "BOOT_FAIL") => " (its node was lost)",
        _ => "",
    }
}

impl Followed {
    /// What the command ends with, given what a whole run would.
    pub(crate) fn exit(&self, whole: impl Fn(&Run) -> Exit) -> Exit {
        match (&self.run, self.complete) {
            (Some(run), true) => whole(run),
            _ => Exit::CouldNotRun,
        }
    }
}
