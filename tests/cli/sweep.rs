//! A sweep in the emulator, for the tests of sweeping and resuming.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Three contenders on three small shapes.
pub(crate) const ROUND: &str = "question   = \"Is nothing done twice?\"
contenders = [\"two-pass\", \"sequential\", \"interleaved\"]
baseline   = \"two-pass\"
shapes     = [{ m = 64, n = 128, k = 256 }, { m = 40, n = 128, k = 512 }, { m = 129, n = 256, k = 2048 }]
[validate]
seed = 1
";

/// A results folder and a round, for a dgx that runs in the repository.
pub(crate) struct Sweep {
    pub folder: TempDir,
}

impl Sweep {
    pub(crate) fn new(round: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("round.toml"), round).expect("a file");
        Self { folder }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("NO_COLOR", "1")
            .arg("sweep")
            .args(args)
            .args(["--backend", "emu", "--results"])
            .arg(self.results());
        command
    }

    /// Runs to its end, which must be this exit code; what it printed.
    pub(crate) fn run(&self, args: &[&str], code: i32) -> String {
        ended(&mut self.command(args), code)
    }

    pub(crate) fn round(&self) -> String {
        self.folder.path().join("round.toml").display().to_string()
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    pub(crate) fn run_file(&self) -> Option<PathBuf> {
        self.run_files().into_iter().next()
    }

    /// Machine code lies beside them.
    pub(crate) fn run_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.results()).into_iter().flatten();
        let paths = entries.map(|e| e.expect("an entry").path());
        paths
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect()
    }

    /// Verdicts on record: how often each cell was judged, and how the last time.
    pub(crate) fn verdicts(&self) -> Verdicts {
        verdicts_of(&self.run_file().expect("a run file"))
    }
}

/// The same, started by another program that is given these words.
pub(crate) fn under(words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    outer.args(&words[1..]);
    outer.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        outer.env(name, value.expect("nothing is taken away"));
    }
    outer
}

/// At once: a `kill` of its own may start too late on a busy machine.
pub(crate) fn send(signal: Signal, pid: u32) {
    signal::kill(Pid::from_raw(pid as i32), signal).expect("it is alive");
}

/// By contender and shape.
pub(crate) type Verdicts = BTreeMap<(String, String), (usize, String)>;

pub(crate) fn verdicts_of(file: &Path) -> Verdicts {
    let text = fs::read_to_string(file).expect("its text");
    let mut verdicts = BTreeMap::new();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        if line["type"] == "verdict" {
            let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let cell = verdicts.entry((word("contender"), word("shape")));
            let (count, status) = cell.or_insert((0, String::new()));
            *count += 1;
            *status = word("status");
        }
    }
    verdicts
}

pub(crate) fn ended(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("dgx runs");
    let said = explain(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

pub(crate) fn explain(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
