//! A sweep on the fake backend, for the tests of measuring.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::running::Running;
use crate::sweep::{Verdicts, ended, verdicts_of};
use crate::workspace::wait_for;

/// Nothing of it runs: it is there to be compiled.
const VARIANT: &str = "/*dgx
summary = \"Never called\"
arch    = \"sm_90a\"
[[launch]]
kernel = \"go\"
grid   = 1
block  = 32
*/
struct Args { char bytes[1440]; };
extern \"C\" __global__ void go(const __grid_constant__ Args args) {}
";

pub(crate) const CONTENDERS: [&str; 3] = ["plain", "quick", "odd"];
pub(crate) const SHAPES: [&str; 2] = ["small", "large"];

/// Blocks each of the two processes takes of each shape.
pub(crate) const SHARE: usize = 10;

pub(crate) const ROUND: &str = "question = \"Does it measure as it should?\"
contenders = [\"plain\", \"quick\", \"odd\"]
baseline = \"plain\"
yardstick = false
shapes = [{ name = \"small\", m = 4, n = 128, k = 256 }, { name = \"large\", m = 8, n = 128, k = 256 }]
[validate]
seed = 1
timeout = 600
[measure]
min_blocks = 20
processes = 2
warmup = 1
max_seconds = 60
[gate]
min_geomean = 1.01
";

/// Three contenders that are told apart with ease.
pub(crate) const SCRIPT: &str = "journal = \"calls.jsonl\"
noise = 0.002
times = { plain = 100, quick = 80, odd = 120 }
";

/// A folder with a round, a script and what comes of them.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(crate) fn new(events: &str) -> Self {
        Self::with(ROUND, &format!("{SCRIPT}{events}"))
    }

    pub(crate) fn with(round: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stage = Self { folder };
        fs::create_dir(stage.path("variants")).expect("a folder");
        for name in CONTENDERS {
            let path = stage.path(&format!("variants/{name}.cu"));
            fs::write(path, VARIANT).expect("a file");
        }
        fs::write(stage.path("round.toml"), round).expect("a file");
        fs::write(stage.path("script.toml"), script).expect("a file");
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, first: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        // In the repository, where images are kept from test to test.
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command.env("NO_COLOR", "1").arg("sweep").args(first);
        command.args(["--backend", "fake", "--script"]);
        command.arg(self.path("script.toml"));
        command.arg("--variants").arg(self.path("variants"));
        command.arg("--results").arg(self.path("results"));
        command
    }

    pub(crate) fn sweep(&self, code: i32) -> String {
        let round = self.path("round.toml").display().to_string();
        ended(&mut self.command(&[&round]), code)
    }

    /// A sweep that stays in a call which waits once; it is there when this
    /// returns, and as much as `recorded` says.
    pub(crate) fn begun(&self, recorded: impl Fn() -> bool) -> Running {
        let round = self.path("round.toml").display().to_string();
        let mut command = self.command(&[&round]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = Running::start(&mut command);
        self.wait_for_the_call(recorded);
        child
    }

    pub(crate) fn wait_for_the_call(&self, recorded: impl Fn() -> bool) {
        wait_for("a call that waits", || {
            self.waiting_worker().is_some() && recorded()
        });
    }

    /// The process that makes the call which waits.
    pub(crate) fn waiting_worker(&self) -> Option<u32> {
        let calls = self.journal();
        let waits = calls.iter().find(|call| call["once"].is_array())?;
        u32::try_from(waits["worker"].as_u64()?).ok()
    }

    pub(crate) fn resume(&self, code: i32) -> String {
        ended(&mut self.command(&["--resume"]), code)
    }

    /// Another command about the run.
    pub(crate) fn tell(&self, args: &[&str], code: i32) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command.current_dir(self.folder.path());
        command.env("NO_COLOR", "1").env("COLUMNS", "120");
        command.env("DGX_CACHE", self.path("cache"));
        ended(command.args(args).arg(self.run_file()), code)
    }

    pub(crate) fn run_file(&self) -> PathBuf {
        self.run_files().into_iter().next().expect("a run")
    }

    pub(crate) fn run_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("results")).expect("results");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let run = |path: &PathBuf| path.extension().is_some_and(|e| e == "jsonl");
        paths.filter(run).collect()
    }

    pub(crate) fn lines(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.run_file()).expect("its text");
        // The last one may be half written.
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines = lines.map_while(Result::ok);
        lines.filter(|line| line["type"] == kind).collect()
    }

    /// How often each cell was judged, and how the last time.
    pub(crate) fn verdicts(&self) -> Verdicts {
        verdicts_of(&self.run_file())
    }

    /// What the workers were asked to do.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("calls.jsonl")).unwrap_or_default();
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Timed calls of a contender on any shape in any process.
    pub(crate) fn timed(&self, contender: &str) -> usize {
        let calls = self.journal();
        let of = |call: &&Value| call["contender"] == contender;
        calls.iter().filter(|c| is_timed(c)).filter(of).count()
    }

    /// The numbers of each process's blocks, by shape.
    pub(crate) fn blocks(&self) -> BTreeMap<(String, u64), Vec<u64>> {
        let mut blocks: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for block in self.lines("block") {
            let number = |key: &str| block[key].as_u64().expect("a number");
            let shape = block["shape"].as_str().expect("a name").to_owned();
            let of = blocks.entry((shape, number("process"))).or_default();
            of.push(number("block"));
        }
        blocks
    }

    /// Each process begins with its first block and leaves none out.
    pub(crate) fn blocks_are_sound(&self) {
        for (of, numbers) in self.blocks() {
            let due: Vec<u64> = (0..numbers.len() as u64).collect();
            assert_eq!(numbers, due, "{of:?}");
        }
    }

    /// The last verdict on a cell, and how many there are.
    pub(crate) fn verdict(&self, contender: &str, shape: &str) -> (String, String, usize) {
        let of = |v: &Value| v["contender"] == contender && v["shape"] == shape;
        let verdicts: Vec<Value> = self.lines("verdict").into_iter().filter(of).collect();
        let last = verdicts.last().expect("a verdict");
        let word = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
        (word("status"), word("reason"), verdicts.len())
    }
}

pub(crate) fn is_timed(call: &Value) -> bool {
    call["act"] == "timing" && call["observed"] == false
}

/// Who was timed in a block, in order.
pub(crate) fn order(block: &Value) -> Vec<(String, u64)> {
    let samples = block["samples"].as_array().expect("samples");
    let name = |s: &Value| s["contender"].as_str().expect("a name").to_owned();
    let arm = |s: &Value| s["arm"].as_u64().expect("a number");
    samples.iter().map(|s| (name(s), arm(s))).collect()
}

pub(crate) fn share_of(all: &BTreeMap<(String, u64), Vec<u64>>, shape: &str) -> Vec<(u64, usize)> {
    let of = all.iter().filter(|((s, _), _)| s == shape);
    of.map(|((_, process), blocks)| (*process, blocks.len()))
        .collect()
}
