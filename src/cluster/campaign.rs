use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::JobRequest;
use dgx_core::config::Slurm;
use dgx_core::decode::plain_in_line;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::typed;
use dgx_core::files;
use dgx_core::record::{LockOutcome, try_lock};

const VERSION: u32 = 1;
const STATE: &str = "campaign.json";
/// How often a failed task is submitted again by default.
const RETRIES: u32 = 3;

/// What was submitted, and how: everything a follower needs. It lies in its own folder beside the
/// run file, `NAME-TIME.slurm`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Campaign {
    version: u32,
    /// Shared by all its jobs, and by no others.
    pub(super) job_name: String,
    /// Where the round lies, as run files write it.
    pub(super) config: String,
    pub(super) shards: u32,
    pub(super) at_once: Option<u32>,
    pub(super) retries: u32,
    pub(super) partition: Option<String>,
    pub(super) gres: Option<String>,
    pub(super) time: Option<String>,
    pub(super) sbatch_args: Vec<String>,
    /// The latest last.
    pub(super) submissions: Vec<Submission>,
}

/// One array of tasks, each a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Submission {
    /// `None` until `sbatch` has answered: a follower that died before may have left a job all the
    /// same.
    pub job: Option<String>,
    pub shards: Vec<u32>,
}

/// A campaign, locked by the process that follows it.
#[derive(Debug)]
pub(super) struct LockedCampaign {
    pub folder: PathBuf,
    pub campaign: Campaign,
    lock: File,
}

impl Drop for LockedCampaign {
    fn drop(&mut self) {
        // Closing alone does not: a process that another thread starts has the file until it
        // begins its program.
        let _ = self.lock.unlock();
    }
}

impl Campaign {
    /// Writes all that the jobs need; submits nothing yet.
    pub(super) fn begin(order: JobRequest) -> Result<LockedCampaign, CommandError> {
        let folder = fresh_folder(&order)?;
        Self::write(order, &folder).inspect_err(|_| {
            // A follower could not attach to half of it.
            let _ = fs::remove_dir_all(&folder);
        })
    }

    fn write(order: JobRequest, folder: &Path) -> Result<LockedCampaign, CommandError> {
        let Slurm {
            array,
            partition,
            gres,
            time,
            retries,
            sbatch_args,
        } = order.slurm;
        let campaign = Self {
            version: VERSION,
            job_name: format!("dgx-{}-{:08x}", order.name, rand::random::<u32>()),
            config: order.config,
            shards: order.shards,
            at_once: array.and_then(|array| array.at_once),
            retries: retries.unwrap_or(RETRIES),
            partition,
            gres: gres.filter(|gres| !gres.is_empty()),
            time,
            sbatch_args,
            submissions: Vec::new(),
        };
        let round = folder.join(format!("{}.toml", order.name));
        write(&round, order.text.as_bytes())?;
        let script = task_script(folder, &round, order.shards, &order.words)?;
        write(&folder.join("task.sh"), script.as_bytes())?;
        let held = LockedCampaign {
            lock: lock(folder)?,
            folder: folder.to_owned(),
            campaign,
        };
        held.save()?;
        Ok(held)
    }
}

impl LockedCampaign {
    /// The campaign of a run file, by its name or by that of the folder.
    pub(super) fn open(run: &Path) -> Result<Self, CommandError> {
        let folder = match run.join(STATE).is_file() {
            true => run.to_owned(),
            false => run.with_extension("slurm"),
        };
        // Jobs may run in another folder, given by --chdir.
        let folder = folder.canonicalize().unwrap_or(folder);
        let state = folder.join(STATE);
        let unknown = |why: String| {
            CommandError::usage(
                format!("nothing is known of jobs for {}: {why}", run.display()),
                "name a run that `dgx sweep --engine slurm` began, e.g. results/NAME-TIME.jsonl",
            )
        };
        let lock = lock(&folder).map_err(|error| match state.exists() {
            true => error,
            false => unknown(format!("there is no {}", state.display())),
        })?;
        let text = files::read_text(&state, files::LARGEST).map_err(&unknown)?;
        let campaign: Campaign = serde_json::from_str(&text).map_err(|e| {
            unknown(format!(
                "{}:{}: {}",
                state.display(),
                e.line(),
                plain_in_line(&e)
            ))
        })?;
        if campaign.version != VERSION {
            return Err(unknown(format!("it is of version {}", campaign.version)));
        }
        Ok(Self {
            folder,
            campaign,
            lock,
        })
    }

    /// Changes the Slurm options of later submissions.
    pub(super) fn change(&mut self, slurm: Slurm) -> Result<(), CommandError> {
        let campaign = &mut self.campaign;
        campaign.partition = slurm.partition.or(campaign.partition.take());
        campaign.gres = slurm
            .gres
            .or(campaign.gres.take())
            .filter(|g| !g.is_empty());
        campaign.time = slurm.time.or(campaign.time.take());
        campaign.retries = slurm.retries.unwrap_or(campaign.retries);
        campaign.sbatch_args.extend(slurm.sbatch_args);
        self.save()
    }

    /// The run file the shards are merged into.
    pub(super) fn run(&self) -> PathBuf {
        self.folder.with_extension("jsonl")
    }

    /// The command that attaches to it again.
    pub(super) fn attach(&self) -> String {
        format!("dgx attach {}", typed(self.run()))
    }

    pub(super) fn shard(&self, number: u32) -> PathBuf {
        self.folder.join(format!("shard-{number}.jsonl"))
    }

    pub(super) fn log(&self, number: u32) -> PathBuf {
        self.folder.join(format!("task-{number}.log"))
    }

    /// The exit code of a shard's last task, if it was recorded.
    pub(super) fn code(&self, number: u32, job: &str) -> Option<i32> {
        let text = fs::read_to_string(self.folder.join(format!("task-{number}.code"))).ok()?;
        let (of, code) = text.trim().split_once(' ')?;
        code.parse().ok().filter(|_| of == job)
    }

    /// Written to a temporary name and renamed: an attaching process reads all of it.
    pub(super) fn save(&self) -> Result<(), CommandError> {
        let path = self.folder.join(STATE);
        let text = serde_json::to_vec_pretty(&self.campaign).unwrap_or_default();
        let beside = tempfile::NamedTempFile::new_in(&self.folder);
        let saved = beside.and_then(|mut file| {
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&path).map(drop).map_err(|e| e.error)
        });
        saved.map_err(|e| unwritable(&path, &e))
    }

    pub(super) fn jobs(&self) -> Vec<String> {
        let submissions = self.campaign.submissions.iter();
        submissions.filter_map(|s| s.job.clone()).collect()
    }

    /// The job a shard was last submitted with.
    pub(super) fn job_of(&self, shard: u32) -> Option<&str> {
        let mut latest = self.campaign.submissions.iter().rev();
        latest.find(|s| s.shards.contains(&shard))?.job.as_deref()
    }
}

fn fresh_folder(order: &JobRequest) -> Result<PathBuf, CommandError> {
    let results = &order.results;
    let misplaced = |path: &Path, why: &dyn std::fmt::Display| {
        CommandError::usage(
            format!("cannot write in {}: {why}", path.display()),
            "name a folder that can be written, and that all nodes see, with --results",
        )
    };
    fs::create_dir_all(results).map_err(|e| misplaced(results, &e))?;
    let results = results.canonicalize().map_err(|e| misplaced(results, &e))?;
    let unwritable = |c: char| c == '\\' || c.is_control();
    if results
        .to_str()
        .is_none_or(|path| path.contains(unwritable))
    {
        let why = "Slurm would take its name for another (backslash, control or no UTF-8)";
        return Err(misplaced(&results, &why));
    }
    let stem = format!("{}-{}", order.name, order.stamp);
    for number in 1..1000 {
        let name = match number {
            1 => stem.clone(),
            n => format!("{stem}-{n}"),
        };
        let folder = results.join(format!("{name}.slurm"));
        if results.join(format!("{name}.jsonl")).exists() {
            continue;
        }
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(misplaced(&folder, &e)),
        }
    }
    Err(CommandError::could_not_run(
        format!("{} is full of runs of this minute", results.display()),
        "wait a minute",
    ))
}

/// Only one process may follow, or tasks would be submitted twice.
fn lock(folder: &Path) -> Result<File, CommandError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).open(&path);
    let file = file.map_err(|e| unwritable(&path, &e))?;
    match try_lock(&file) {
        LockOutcome::Ours | LockOutcome::Unknown => Ok(file),
        LockOutcome::Taken(holder) => Err(CommandError::could_not_run(
            match holder {
                Some(pid) => format!("{} is followed by process {pid}", folder.display()),
                None => format!("{} is followed by another process", folder.display()),
            },
            "`dgx show` prints its progress; stop the other process to follow it here",
        )),
    }
}

fn write(path: &Path, text: &[u8]) -> Result<(), CommandError> {
    fs::write(path, text).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::could_not_run(
        format!("cannot write {}: {error}", path.display()),
        "make room, or check permissions",
    )
}

/// The script of a task. dgx reacts to signals to the whole job; the shell waits for it and records
/// its exit code.
fn task_script(
    folder: &Path,
    round: &Path,
    shards: u32,
    words: &[String],
) -> Result<String, CommandError> {
    let here = std::env::current_dir().map_err(|e| unwritable(Path::new("."), &e))?;
    let dgx = std::env::current_exe().map_err(|e| unwritable(Path::new("dgx"), &e))?;
    let words: Vec<String> = words.iter().map(typed).collect();
    Ok(format!(
        "#!/bin/sh\n\
         # One task is one shard. Written by dgx; started again, it goes on.\n\
         trap : TERM INT HUP\n\
         cd {here} || exit 4\n\
         folder={folder}\n\
         task=$SLURM_ARRAY_TASK_ID\n\
         rm -f \"$folder/task-$task.code\"\n\
         {dgx} sweep {round} --shard \"$task/{shards}\" --into \"$folder/shard-$task.jsonl\" {words}\n\
         code=$?\n\
         echo \"$SLURM_ARRAY_JOB_ID $code\" > \"$folder/task-$task.code\"\n\
         exit $code\n",
        here = typed(&here),
        folder = typed(folder),
        dgx = typed(&dgx),
        round = typed(round),
        words = words.join(" "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(results: &Path) -> JobRequest {
        JobRequest {
            name: "round".to_owned(),
            text: "question".to_owned(),
            config: "configs/round.toml".to_owned(),
            results: results.to_owned(),
            argv: Vec::new(),
            stamp: "now".to_owned(),
            shards: 4,
            slurm: Slurm::default(),
            words: vec!["--only".to_owned(), "it's[X=1]; rm -rf /".to_owned()],
        }
    }

    #[test]
    fn one_follower_at_a_time_finds_all_that_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = Campaign::begin(order(folder.path())).unwrap();
        held.campaign.submissions.push(Submission {
            job: Some("7".to_owned()),
            shards: vec![1, 2, 3, 4],
        });
        held.save().unwrap();
        let (run, campaign) = (held.run(), held.campaign.clone());
        let error = LockedCampaign::open(&run).unwrap_err();
        assert!(
            error.to_string().contains("is followed by process"),
            "{error}"
        );
        drop(held);
        for way in [&run, &run.with_extension("slurm")] {
            let again = LockedCampaign::open(way).unwrap();
            assert_eq!(again.campaign, campaign);
            assert_eq!(again.job_of(3), Some("7"));
        }
        let second = Campaign::begin(order(folder.path())).unwrap();
        assert_ne!(second.run(), run);
        let error = LockedCampaign::open(&folder.path().join("other.jsonl")).unwrap_err();
        assert!(
            error.to_string().contains("nothing is known of jobs"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_that_slurm_would_misread_is_refused_and_any_other_taken() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("it's a %a \"folder\"");
        let held = Campaign::begin(order(&odd)).unwrap();
        assert!(held.attach().ends_with(".jsonl'"), "{}", held.attach());
        let error = Campaign::begin(order(&folder.path().join("a\\b"))).unwrap_err();
        assert!(error.to_string().contains("backslash"), "{error}");
        assert_eq!(error.exit(), dgx_core::domain::Exit::Usage);
    }

    #[test]
    fn the_last_words_of_a_task_may_be_anything() {
        let folder = tempfile::tempdir().unwrap();
        let held = Campaign::begin(order(folder.path())).unwrap();
        assert_eq!(held.last_words(1), "");
        let mut log = vec![b'x'; 1 << 20];
        log.extend(b"\nsix\nfive\nfour\n\nthree\ntw\xf6\nlast \x1b[2J\n");
        fs::write(held.log(1), log).unwrap();
        let words = held.last_words(1);
        assert!(
            words.ends_with(
                "ends:\n    five\n    four\n    three\n    tw\u{fffd}\n    last \\u{1b}[2J"
            ),
            "{words}"
        );
    }

    #[test]
    fn a_task_goes_on_with_its_shard_and_no_word_is_taken_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let held = Campaign::begin(order(folder.path())).unwrap();
        let script = fs::read_to_string(held.folder.join("task.sh")).unwrap();
        assert!(script.contains("--shard \"$task/4\""), "{script}");
        assert!(
            script.contains(r"--only 'it'\''s[X=1]; rm -rf /'"),
            "{script}"
        );
        assert_eq!(held.code(2, "7"), None);
        fs::write(held.folder.join("task-2.code"), "7 4\n").unwrap();
        assert_eq!(held.code(2, "7"), Some(4));
        assert_eq!(held.code(2, "8"), None, "that was another try");
    }
}
