use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use tempfile::TempDir;

/// Waits until it is `so`. What never comes is told; how long it takes on a
/// busy machine is nobody's business.
pub(crate) fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(300), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program with this text. Another process writes it: one that is forked here
/// meanwhile would hold the file open for writing, and it could not be run.
pub(crate) fn program(path: &Path, text: &str) {
    let mut install = Command::new("install");
    install.args(["-D", "-m", "755", "/dev/stdin"]).arg(path);
    install.write_stdin(text).assert().success();
}

/// A variant small enough to read at a glance.
pub(crate) const VARIANT: &str = "/*dgx
summary  = \"One of its kind\"
arch     = \"sm_90a\"
params   = { STAGES = [1, 2] }
requires = [\"k % BK == 0\"]
tiles    = \"cdiv(m, BM)\"

[const]
BM = 128
BK = 512

[[launch]]
kernel = \"go\"
grid   = \"sum(tiles)\"
block  = 128
smem   = \"STAGES * BK\"
*/
struct Args { char bytes[1440]; };
extern \"C\" __global__ void go(const __grid_constant__ Args args) {}
";

/// A round that is right in every way.
pub(crate) const ROUND: &str = "question   = \"Which?\"
contenders = [\"one\"]
baseline   = \"one[STAGES=1]\"

[[shapes]]
m = 256
n = 128
k = 512

[gate]
min_geomean = 1.4
";

/// A folder with `variants/one.cu` and `round.toml`, and a dgx that runs there.
pub(crate) struct Workspace {
    folder: TempDir,
}

impl Workspace {
    /// A folder with nothing in it.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    /// One in which a variant was begun, with a kernel of its own and a round of few rows: they
    /// are quicker to emulate.
    pub(crate) fn begun(name: &str) -> Self {
        let workspace = Self::empty();
        let text = workspace.run(&["new", name]);
        assert!(text.ends_with("[exit 0]"), "{text}");
        workspace.write(
            &format!("variants/{name}.cu"),
            include_str!("../fixtures/begun.cu"),
        );
        workspace.leave_few_rows(name);
        workspace
    }

    /// Of the round that `dgx new` wrote.
    pub(crate) fn leave_few_rows(&self, name: &str) {
        let round = format!("configs/{name}.toml");
        self.edit(&round, "m = 64", "m = 8");
        self.edit(&round, "m = [64, 5]", "m = [8, 5]");
    }

    pub(crate) fn new() -> Self {
        let workspace = Self::empty();
        workspace.write("variants/one.cu", VARIANT);
        workspace.write("round.toml", ROUND);
        workspace
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("it was written")
    }

    /// Replaces `from`, which must be there, in a file.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.path().join(name);
        let text = fs::read_to_string(&path).expect("a file to edit");
        assert!(text.contains(from), "{name} has no {from:?}");
        // In one step: who watches it never sees half of it.
        let beside = self.path().join(".edited");
        fs::write(&beside, text.replacen(from, to, 1)).expect("a file");
        fs::rename(beside, path).expect("a file");
    }

    /// Runs dgx and shows its exit code, stdout and stderr as one text.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.run_with(args, &[])
    }

    /// As [`Self::run`], with more in its environment.
    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let output = Command::from_std(std::process::Command::new(env!("CARGO_BIN_EXE_dgx")))
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            .env("DGX_CACHE", self.path().join("cache"))
            // Nothing that is tested here depends on a card.
            .env("CUDA_VISIBLE_DEVICES", "")
            .envs(variables.iter().copied())
            .args(args)
            .output()
            .expect("dgx runs");
        let code = output.status.code();
        let text = format!(
            "$ dgx {}\n{}{}[exit {}]",
            args.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            code.map_or("by signal".to_owned(), |code| code.to_string())
        );
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

/// Copies a folder and all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).expect("a copy")),
        }
    }
}

/// Runs dgx in the repository: all it says, and its exit code last.
pub(crate) fn in_repository(args: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .args(args)
        .output()
        .expect("dgx runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    format!("{text}[exit {}]", output.status.code().unwrap_or(-1))
}
