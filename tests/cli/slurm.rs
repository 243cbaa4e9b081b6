//! A simulated cluster: `sbatch`, `squeue` and `scancel` are scripts that run tasks at once,
//! remember them in a folder, and fail on demand. `scripts/test-slurm` does the same with the real
//! Slurm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::merging::pasted;
use crate::running::Running;
use crate::stage::{CONTENDERS, SCRIPT, SHAPES, Stage};
use crate::sweep::{ended, send, under};
use crate::workspace::{program, wait_for};

/// Runs each task of an array to its end before it answers, unless a file says
/// how it is to refuse, or how a task is to end.
const SBATCH: &str = r#"#!/bin/sh
state=$(dirname "$0")/state
[ "$1" = --version ] && { echo "slurm 0"; exit 0; }
echo "$*" >> "$state/submissions"
[ -f "$state/refuse" ] && { cat "$state/refuse" >&2; exit 1; }
[ -f "$state/refuse-again" ] && [ -f "$state/job" ] && { cat "$state/refuse-again" >&2; exit 1; }
for word; do
  case $word in
    --array=*) list=${word#--array=} ;;
    --output=*) log=${word#--output=} ;;
    --job-name=*) name=${word#--job-name=} ;;
  esac
  script=$word
done
job=$(($(cat "$state/job" 2> /dev/null || echo 0) + 1))
echo $job > "$state/job"
tasks=
for part in $(echo "${list%\%*}" | tr , ' '); do tasks="$tasks $(seq ${part%-*} ${part#*-})"; done
for task in $tasks; do
  out=$(echo "$log" | sed "s/%a\\.log/$task.log/; s/%%/%/g")
  if [ -f "$state/ends-$task" ]; then
    how=$(cat "$state/ends-$task")
    rm "$state/ends-$task"
  elif SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task sh "$script" >> "$out" 2>&1; then
    how=COMPLETED
  else
    how=FAILED
  fi
  echo "$name|$job|$task|$how|None" >> "$state/queue"
done
# Nothing can be put in its place then.
[ -f "$state/spoil" ] && cd "$(dirname "$script")" && mv campaign.json kept.json && mkdir -p campaign.json/x
echo $job
"#;

const SQUEUE: &str = r#"#!/bin/sh
state=$(dirname "$0")/state
[ "$1" = --version ] && { echo "slurm 0"; exit 0; }
if [ -f "$state/silent" ]; then
  rm "$state/silent"
  echo "slurm_load_jobs error: Unable to contact slurm controller" >&2
  exit 1
fi
env | grep '^SQUEUE_' >&2 && exit 1
for word; do case $word in --name=*) name=${word#--name=} ;; esac; done
grep "^$name|" "$state/queue" 2> /dev/null | cut -d'|' -f2-
true
"#;

/// A stage with a cluster beside it.
struct Cluster {
    stage: Stage,
}

impl Cluster {
    fn new() -> Self {
        let cluster = Self {
            stage: Stage::with(crate::stage::ROUND, SCRIPT),
        };
        fs::create_dir_all(cluster.state("")).expect("a folder");
        for (name, text) in [
            ("sbatch", SBATCH),
            ("squeue", SQUEUE),
            ("sacct", "#!/bin/sh\nexit 1\n"),
            (
                "scancel",
                "#!/bin/sh\necho \"$*\" >> \"$(dirname \"$0\")/state/cancelled\"\n",
            ),
        ] {
            cluster.has(name, text);
        }
        cluster
    }

    /// A program of Slurm's.
    fn has(&self, name: &str, text: &str) {
        program(&self.stage.path("bin").join(name), text);
    }

    fn state(&self, name: &str) -> PathBuf {
        self.stage.path("bin/state").join(name)
    }

    fn tell(&self, name: &str, text: &str) {
        fs::write(self.state(name), text).expect("a file");
    }

    fn path_variable(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.stage.path("bin").display())
    }

    fn sweep(&self, more: &[&str]) -> Command {
        let round = self.stage.path("round.toml").display().to_string();
        let first = [&[round.as_str(), "--engine", "slurm"], more].concat();
        let mut command = self.stage.command(&first);
        command.env("PATH", self.path_variable());
        command.env("SQUEUE_PARTITION", "another");
        command.env("DGX_CONFIG", self.user_config());
        command
    }

    fn user_config(&self) -> PathBuf {
        let path = self.stage.path("user.toml");
        if !path.exists() {
            fs::write(&path, "[slurm]\nsbatch_args = [\"--account=us\"]\n").expect("a file");
        }
        path
    }

    fn attach(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command
            .env("NO_COLOR", "1")
            .env("PATH", self.path_variable());
        command.arg("attach").arg(self.run()).args(more);
        command
    }

    fn folder(&self) -> PathBuf {
        let entries = fs::read_dir(self.stage.path("results")).expect("results");
        let mut paths = entries.map(|e| e.expect("an entry").path());
        let is_folder = |path: &PathBuf| path.extension().is_some_and(|e| e == "slurm");
        paths.find(is_folder).expect("a campaign")
    }

    fn run(&self) -> PathBuf {
        self.folder().with_extension("jsonl")
    }

    fn submissions(&self) -> Vec<String> {
        let text = fs::read_to_string(self.state("submissions")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Whether the merged run has all that one machine would have.
    fn is_whole(&self) {
        let text = fs::read_to_string(self.run()).expect("a run");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line"))
            .collect();
        let count = |kind: &str| lines.iter().filter(|l| l["type"] == kind).count();
        assert_eq!(count("verdict"), CONTENDERS.len() * SHAPES.len());
        assert_eq!(count("block"), 2 * crate::stage::SHARE * SHAPES.len());
        let last = lines.last().expect("a line");
        assert_eq!(
            (&last["type"], &last["complete"]),
            (&"end".into(), &true.into())
        );
        let config = lines[0]["config"]["path"].as_str().expect("a path");
        assert!(config.ends_with("round.toml"), "{config}");
    }
}

#[test]
fn an_array_is_submitted_followed_and_merged() {
    let cluster = Cluster::new();
    let said = ended(
        &mut cluster.sweep(&[
            "--array",
            "2%1",
            "--partition",
            "p",
            "--time",
            "5",
            "--sbatch-arg=--mem=1G",
        ]),
        0,
    );
    cluster.is_whole();
    assert!(said.contains("2 shapes in 2 shards"), "{said}");
    let submissions = cluster.submissions();
    assert_eq!(submissions.len(), 1);
    for word in [
        "--array=1-2%1",
        "--partition=p",
        "--time=5",
        "--account=us --mem=1G",
    ] {
        assert!(submissions[0].contains(word), "{word}: {submissions:?}");
    }
    // Attaching to what is done submits nothing.
    ended(&mut cluster.attach(&[]), 0);
    assert_eq!(cluster.submissions().len(), 1);
}

#[test]
fn tasks_that_fail_are_submitted_again_up_to_a_limit() {
    let cluster = Cluster::new();
    cluster.tell("ends-1", "TIMEOUT");
    cluster.tell("ends-2", "OUT_OF_MEMORY");
    cluster.tell("silent", "");
    let said = ended(&mut cluster.sweep(&["--array", "2"]), 0);
    for word in [
        "shard 1/2 failed: TIMEOUT",
        "--time gives it more",
        "shard 2/2 failed: OUT_OF_MEMORY",
        "--mem=",
        "submitted again as job 2",
        "Slurm does not answer",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    cluster.is_whole();
    let none = Cluster::new();
    none.tell("ends-2", "NODE_FAIL");
    let said = ended(&mut none.sweep(&["--array", "2", "--retries", "0"]), 4);
    assert!(
        said.contains("shard 2/2 is abandoned: NODE_FAIL, tried once"),
        "{said}"
    );
    assert!(said.contains("dgx attach"), "{said}");
    assert!(said.contains("missing shard 2/2"), "{said}");
    // Nothing of the other is lost, and it can be completed.
    ended(&mut none.attach(&["--time", "9"]), 0);
    none.is_whole();
    let again = &none.submissions()[1];
    assert!(
        again.contains("--array=2 ") && again.contains("--time=9"),
        "{again}"
    );
}

#[test]
fn a_task_whose_mistake_stays_one_is_not_tried_again() {
    let cluster = Cluster::new();
    let mut command = cluster.sweep(&["--array", "1"]);
    // The script is gone before the task reads it.
    cluster.tell("ends-1", "CANCELLED");
    let said = ended(&mut command, 4);
    assert!(said.contains("somebody cancelled it"), "{said}");
    fs::remove_file(cluster.stage.path("script.toml")).expect("a script");
    let said = ended(&mut cluster.attach(&[]), 4);
    assert!(said.contains("trying again would not help"), "{said}");
    assert!(said.contains("script.toml"), "the task's own words: {said}");
    assert_eq!(cluster.submissions().len(), 2);
}

#[test]
fn what_slurm_refuses_is_explained_and_can_be_tried_again() {
    for (words, remedy) in [
        (
            "sbatch: error: invalid partition specified: x",
            "sinfo -o %P",
        ),
        (
            "sbatch: error: QOSMaxSubmitJobPerUserLimit",
            "the queue is full",
        ),
    ] {
        let cluster = Cluster::new();
        cluster.tell("refuse", words);
        let said = ended(&mut cluster.sweep(&["--array", "2"]), 4);
        assert!(said.contains(words) && said.contains(remedy), "{said}");
        assert!(said.contains("then: dgx attach"), "{said}");
        fs::remove_file(cluster.state("refuse")).expect("a file");
        ended(&mut cluster.attach(&[]), 0);
        cluster.is_whole();
    }
    // Half of one.
    let cluster = Cluster::new();
    fs::remove_file(cluster.stage.path("bin/squeue")).expect("a script");
    let mut command = cluster.sweep(&["--array", "2"]);
    let said = ended(command.env("PATH", cluster.stage.path("bin")), 4);
    assert!(said.contains("`squeue` is not on PATH"), "{said}");
    // No Slurm at all.
    let cluster = Cluster::new();
    let mut command = cluster.sweep(&["--array", "2"]);
    let said = ended(command.env("PATH", "/nowhere"), 4);
    assert!(said.contains("there is no Slurm here"), "{said}");
    assert!(!cluster.stage.path("results").exists(), "nothing was begun");
    let strange = cluster.stage.path("results/none.jsonl");
    let mut attach = Command::new(env!("CARGO_BIN_EXE_dgx"));
    attach
        .env("PATH", cluster.path_variable())
        .arg("attach")
        .arg(&strange);
    let said = ended(&mut attach, 2);
    assert!(said.contains("nothing is known of jobs"), "{said}");
}

#[test]
fn what_slurm_may_have_taken_is_not_submitted_twice() {
    let cluster = Cluster::new();
    cluster.tell("refuse", "sbatch: error: Socket timed out on send/recv");
    cluster.tell("silent", "");
    let said = ended(&mut cluster.sweep(&["--array", "2"]), 4);
    assert!(said.contains("does not answer: try again"), "{said}");
    fs::remove_file(cluster.state("refuse")).expect("a file");
    cluster.tell("silent", "");
    let said = ended(&mut cluster.attach(&[]), 4);
    assert!(
        said.contains("whether it accepted the earlier jobs"),
        "{said}"
    );
    assert_eq!(cluster.submissions().len(), 1);
    // It answers: there is no such job.
    ended(&mut cluster.attach(&[]), 0);
    assert_eq!(cluster.submissions().len(), 2);
    cluster.is_whole();
}

#[test]
fn shards_are_done_though_slurm_does_not_answer_any_more() {
    let cluster = Cluster::new();
    cluster.has("squeue", "#!/bin/sh\nexit 1\n");
    ended(&mut cluster.sweep(&["--array", "2"]), 0);
    cluster.is_whole();
}

#[test]
fn what_would_be_refused_forever_is_not_tried_forever() {
    let cluster = Cluster::new();
    cluster.tell("ends-1", "FAILED");
    let policy = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy \
                  (job submit limit, user's size and/or time limits)";
    cluster.tell("refuse-again", policy);
    let said = ended(&mut cluster.sweep(&["--array", "2"]), 4);
    assert!(said.contains("account and QOS allow"), "{said}");
    assert!(said.contains("dgx attach"), "{said}");
    fs::remove_file(cluster.state("refuse-again")).expect("a file");
    ended(&mut cluster.attach(&[]), 0);
    cluster.is_whole();
}

#[test]
fn a_full_disk_is_told_as_one_and_leaves_nothing_half_begun() {
    let cluster = Cluster::new();
    let command = cluster.sweep(&["--array", "2"]);
    let line = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let said = ended(&mut under(&["sh", "-c", line], &command), 4);
    assert!(said.contains("File too large"), "{said}");
    assert!(!said.contains("Slurm"), "{said}");
    let left = fs::read_dir(cluster.stage.path("results")).expect("results");
    assert_eq!(left.count(), 0, "nothing to attach to");
    assert!(cluster.submissions().is_empty());
    // The disk is full when Slurm has taken the jobs.
    cluster.tell("spoil", "");
    let said = ended(&mut cluster.sweep(&["--array", "2"]), 0);
    assert!(said.contains("found again by their name"), "{said}");
    cluster.is_whole();
    let (state, folder) = (cluster.folder().join("campaign.json"), cluster.folder());
    fs::remove_dir_all(&state).expect("a folder");
    fs::rename(folder.join("kept.json"), &state).expect("a file");
    ended(&mut cluster.attach(&[]), 0);
    let text = fs::read_to_string(&state).expect("its text");
    assert!(text.contains("\"job\": \"1\""), "{text}");
    assert_eq!(cluster.submissions().len(), 1);
}

#[test]
fn an_odd_folder_is_no_hindrance_and_what_is_printed_can_be_pasted() {
    let cluster = Cluster::new();
    let odd = cluster.stage.path("it's \"the\" 100%a folder");
    fs::create_dir(&odd).expect("a folder");
    std::os::unix::fs::symlink(&odd, cluster.stage.path("results")).expect("a link");
    cluster.tell("ends-2", "FAILED");
    let said = ended(&mut cluster.sweep(&["--array", "2", "--retries", "0"]), 4);
    assert!(cluster.folder().join("task-1.log").exists());
    let mut commands = said.lines().filter(|line| line.contains("dgx attach"));
    let command = commands.next_back().expect("how to go on").trim();
    let path = format!("PATH={}/bin:$PATH; ", cluster.stage.path("").display());
    pasted(&format!("{path}{command}"), 0);
    cluster.is_whole();
}

#[test]
fn flags_of_one_engine_are_not_for_the_other() {
    let cluster = Cluster::new();
    for (words, odd) in [
        (&["--shard", "1/2"][..], "--shard"),
        (&["--into", "x.jsonl"], "--into"),
        (&["--array", "0"], "write N or N%M"),
    ] {
        let said = ended(&mut cluster.sweep(words), 2);
        assert!(said.contains(odd), "{said}");
    }
    let round = cluster.stage.path("round.toml").display().to_string();
    let said = ended(&mut cluster.stage.command(&[&round, "--partition", "p"]), 2);
    assert!(said.contains("--engine slurm"), "{said}");
}

/// Tasks that wait for a file, so that their follower can be met while it waits.
fn held(cluster: &Cluster) -> Running {
    let sbatch = fs::read_to_string(cluster.stage.path("bin/sbatch")).expect("a script");
    let (before, after) = sbatch
        .split_once("for task in $tasks; do")
        .expect("its loop");
    let text = format!(
        "{before}if [ ! -f \"$state/go\" ]; then\n\
         for task in $tasks; do echo \"$name|$job|$task|PENDING|Resources\" >> \"$state/queue\"; done\n\
         echo $job; exit 0\nfi\nfor task in $tasks; do{after}"
    );
    cluster.has("sbatch", &text);
    let mut command = cluster.sweep(&["--array", "2"]);
    let log = fs::File::create(cluster.stage.path("log")).expect("a file");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let child = Running::start(&mut command);
    wait_for("jobs in the queue", || cluster.state("queue").exists());
    wait_for("it follows", || {
        logged(cluster.stage.path("log")).contains("following job 1")
    });
    child
}

fn logged(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_follower_that_dies_or_leaves_is_followed_by_another() {
    let cluster = Cluster::new();
    let first = held(&cluster);
    // One at a time.
    let said = ended(&mut cluster.attach(&[]), 4);
    assert!(said.contains("is followed by process"), "{said}");
    first.kill();
    // Meanwhile Slurm has forgotten them.
    fs::remove_file(cluster.state("queue")).expect("a queue");
    cluster.tell("go", "");
    let said = ended(&mut cluster.attach(&[]), 0);
    assert!(said.contains("gone from the queue"), "{said}");
    cluster.is_whole();

    let cluster = Cluster::new();
    let mut first = held(&cluster);
    send(Signal::SIGINT, first.id());
    assert_eq!(first.wait().expect("it ends").code(), Some(4));
    let said = logged(cluster.stage.path("log"));
    assert!(
        said.contains("the jobs continue") && said.contains("scancel 1"),
        "{said}"
    );
    assert!(
        !cluster.state("cancelled").exists(),
        "nobody asked for that"
    );
}
