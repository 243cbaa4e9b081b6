//! While a card measures, the emulator watches for hazards that silicon hides.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use crate::running::Running;
use crate::stage::Stage;
use crate::sweep::{Sweep, ended};

const ROUND: &str = "question = \"Are hazards found beside a card?\"
contenders = [\"staged\", \"no-sync\"]
baseline = \"staged\"
yardstick = false
shapes = [{ name = \"small\", m = 40, n = 128, k = 256 }]
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

const SCRIPT: &str = "noise = 0.002\ntimes = { staged = 100, no-sync = 80 }\n";

fn swept(stage: &Stage, args: &[&str], code: i32) -> String {
    let round = stage.path("round.toml").display().to_string();
    let mut command = stage.command(&[&round]);
    command.args(["--variants", "tests/fixtures/hazards/variants"]);
    ended(command.args(args), code)
}

#[test]
fn what_a_card_measures_is_racy_all_the_same() {
    let stage = Stage::with(ROUND, SCRIPT);
    let text = swept(&stage, &["--hazards", "all"], 0);
    let row = |name: &str| {
        let row = text
            .lines()
            .find(|line| line.contains(&format!("  {name}  ")));
        row.unwrap_or_else(|| panic!("no {name} in\n{text}"))
            .to_owned()
    };
    assert!(row("staged").contains(" ok "), "{text}");
    assert!(row("no-sync").contains(" racy "), "{text}");
    assert!(row("no-sync").contains('–'), "it has no rank: {text}");
    // Both lines.
    for words in ["a thread writes at", "staged.cuh:25", "a thread reads at"] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    assert!(text.contains("hazards 2/2 examined"), "{text}");
    let examined = stage.lines("examined");
    assert_eq!(examined.len(), 2);
    assert!(examined.iter().all(|line| line.get("left_out").is_none()));
    assert_eq!(stage.lines("header")[0]["settings"]["hazards"], "all");
    // No gate passes it.
    // Scripted times prove nothing, but what is racy is not correct.
    let gated = stage.tell(&["gate", "--contender", "no-sync"], 5);
    assert!(gated.contains("correct no-sync: FAILED, race"), "{gated}");
}

#[test]
fn nobody_looks_where_nobody_asks() {
    let stage = Stage::with(ROUND, SCRIPT);
    let text = swept(&stage, &["--hazards", "off"], 0);
    assert!(
        !text.contains("racy") && !text.contains("examined"),
        "{text}"
    );
    assert!(stage.lines("examined").is_empty());
}

/// The emulators of a card's sweep stay out of the way of what it times.
#[test]
fn a_worker_on_a_core_lets_everybody_else_go_first() {
    let allowed = fs::read_to_string("/proc/self/status").expect("a status");
    let allowed = list_of(&allowed);
    let core = allowed
        .rsplit([',', '-'])
        .next()
        .expect("a core")
        .to_owned();
    let (line, theirs) = UnixStream::pair().expect("a socket");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.args([
        "worker",
        "--backend",
        "emu",
        "--cache",
        ".",
        "--core",
        &core,
    ]);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let worker = Running::start(&mut command);
    let mut ready = String::new();
    BufReader::new(line.try_clone().expect("a socket"))
        .read_line(&mut ready)
        .expect("a line");
    assert!(ready.contains("ready"), "{ready}");
    let process = format!("/proc/{}", worker.id());
    let stat = fs::read_to_string(format!("{process}/stat")).expect("its numbers");
    let (_, numbers) = stat.rsplit_once(") ").expect("its name");
    assert_eq!(numbers.split(' ').nth(16), Some("19"), "nice: {stat}");
    let status = fs::read_to_string(format!("{process}/status")).expect("its status");
    assert_eq!(list_of(&status), core);
}

/// The cores that a process may run on.
fn list_of(status: &str) -> String {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.expect("a list").trim().to_owned()
}

/// Each CTA of the emulator has memory of its own: what these kernels look for
/// is never there, and most of them are called racy for looking.
#[test]
fn who_looks_for_what_a_call_left_gets_the_status_it_declares() {
    let sweep = Sweep::new("");
    // It has no shared memory that a driver keeps, and stops who looks there.
    let words = "tests/fixtures/gpu.toml --variants tests/fixtures/variants --shape small \
                 --only plain,note-in-shared,note-in-all-shared,note-in-local,note-in-registers,\
                 note-in-constants,remembers-by-sm";
    let words: Vec<&str> = words.split(' ').collect();
    sweep.run(&words, 0);
    let ok = |name: &str| sweep.verdicts()[&(name.to_owned(), "small".to_owned())].1 == "ok";
    assert!(ok("plain") && ok("note-in-local") && !ok("remembers-by-sm"));
}
