//! Whatever happens to standard output and standard error, no command panics and no exit code is
//! wrong.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::workspace::{VARIANT, Workspace};

const RECORDED: &str = include_str!("../../results/baselines/round1-b200.jsonl");
const MEASURED: &str = include_str!("../fixtures/runs/round4.jsonl");
const JURY: &str = include_str!("../../configs/round4.toml");

/// Every command, at least once, and how it ends where it can speak.
const COMMANDS: [(&str, i32); 36] = [
    ("sweep round.toml --backend emu", 3),
    ("sweep round.toml --dry-run", 0),
    ("show round4.jsonl", 0),
    ("compare two-pass interleaved round4.jsonl", 0),
    ("compare round4.jsonl round4.jsonl", 0),
    ("gate round4.jsonl --min-geomean 1.2", 0),
    ("gate round4.jsonl --min-geomean 1.5", 1),
    (
        "gate round4.jsonl --min-geomean 1.0001 --counter atomics=1",
        5,
    ),
    ("report round4.jsonl -o page.html", 0),
    ("dispatch --help", 0),
    ("merge round4.jsonl --force -o merged.jsonl", 0),
    ("attach --help", 0),
    ("sanitize --help", 0),
    ("debug --help", 0),
    ("new --help", 0),
    ("run --help", 0),
    ("watch --help", 0),
    ("calibrate --list", 0),
    ("explain one round.toml", 0),
    ("profile one[STAGES=1] round.toml", 0),
    ("jury round4.toml round4.jsonl", 0),
    ("rounds --configs .", 0),
    ("results", 0),
    ("results prune", 0),
    ("list", 0),
    ("list round.toml", 0),
    ("check round.toml", 0),
    ("doctor", 0),
    ("cache", 0),
    ("schema round", 0),
    ("completions bash", 0),
    ("man pages", 0),
    ("help", 0),
    ("--help", 0),
    ("gate --help", 0),
    ("--version", 0),
];

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("results/baselines/round1-b200.jsonl", RECORDED);
    workspace.write("round4.jsonl", MEASURED);
    workspace.write("round4.toml", JURY);
    for name in ["two-pass", "sequential", "interleaved", "single-gemm"] {
        workspace.write(&format!("variants/{name}.cu"), VARIANT);
    }
    workspace
}

/// A stream with nobody at its other end.
fn reader_gone() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// A disk without room.
fn full() -> Stdio {
    let file = OpenOptions::new().write(true).open("/dev/full");
    file.expect("/dev/full").into()
}

/// How dgx ends with these streams; what it said of a panic goes to a file.
fn code(workspace: &Workspace, words: &str, stdout: Stdio, stderr: Option<Stdio>) -> i32 {
    let told = workspace.path().join("stderr");
    let stderr = stderr.unwrap_or_else(|| File::create(&told).expect("a file").into());
    let status = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(workspace.path())
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .status()
        .expect("dgx runs");
    let told = fs::read_to_string(&told).unwrap_or_default();
    assert!(!told.contains("panicked"), "{words}: {told}");
    status.code().unwrap_or_else(|| panic!("{words}: {status}"))
}

#[test]
fn no_exit_code_lies_and_nobody_panics() {
    let workspace = workspace();
    for (words, plain) in COMMANDS {
        let ends = |stdout: Stdio, stderr| code(&workspace, words, stdout, stderr);
        assert_eq!(ends(Stdio::null(), None), plain, "{words}");
        assert_eq!(ends(full(), None), 4, "{words} > /dev/full");
        // A gate is asked for its findings; the others' readers saw enough.
        let gone = match words.starts_with("gate round") {
            true => 4,
            false => plain,
        };
        assert_eq!(ends(reader_gone(), None), gone, "{words} | true");
        assert_eq!(ends(Stdio::null(), Some(full())), plain, "{words} 2> full");
        let deaf = ends(Stdio::null(), Some(reader_gone()));
        assert_eq!(deaf, plain, "{words} 2>| true");
        assert_eq!(ends(full(), Some(full())), 4, "{words} &> /dev/full");
    }
}

#[test]
fn closed_streams_are_no_reason_to_panic() {
    let workspace = workspace();
    for (words, plain) in COMMANDS {
        for closed in [">&-", "2>&-", "<&- >&- 2>&-"] {
            let line = format!("exec \"$0\" {words} {closed}");
            let output = Command::new("sh")
                .current_dir(workspace.path())
                .args(["-c", &line, env!("CARGO_BIN_EXE_dgx")])
                .output();
            let code = output.expect("sh runs").status.code();
            assert_eq!(code, Some(plain), "{words} {closed}");
        }
    }
}

#[test]
fn the_table_has_every_command() {
    let help = Workspace::new().run(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").expect("its commands");
    let names = list.lines().take_while(|l| !l.is_empty());
    let mut count = 0;
    for name in names.filter_map(|l| l.split_whitespace().next()) {
        let known = |(words, _): &(&str, i32)| words.split(' ').next() == Some(name);
        assert!(COMMANDS.iter().any(known), "{name} is in no row");
        count += 1;
    }
    assert!(count > 8, "{help}");
}

#[test]
fn files_are_written_though_nobody_reads_the_words() {
    let workspace = workspace();
    let exports = "--export-json x.json --export-markdown x.md";
    let commands = [
        format!("gate round4.jsonl --min-geomean 1.5 {exports} --export-junit x.xml"),
        format!("compare two-pass interleaved round4.jsonl {exports}"),
        format!("compare round4.jsonl round4.jsonl {exports}"),
        format!("sweep round.toml --backend emu {exports}"),
        "report round4.jsonl -o x.json".to_owned(),
    ];
    for words in &commands {
        for stdout in [full(), reader_gone()] {
            code(&workspace, words, stdout, None);
            for file in words.split(' ').filter(|w| w.starts_with("x.")) {
                let path = workspace.path().join(file);
                let text = fs::read_to_string(&path).unwrap_or_default();
                assert!(!text.is_empty(), "{words} wrote no {file}");
                fs::remove_file(path).expect("a file");
            }
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_stops_the_command_before_its_work() {
    let workspace = workspace();
    for words in [
        "gate round4.jsonl --export-junit no/where.xml",
        "compare two-pass interleaved round4.jsonl --export-csv no/where.csv",
        "sweep round.toml --backend emu --export-json .",
        "report round4.jsonl -o no/where.html",
    ] {
        let said = workspace.run(&words.split(' ').collect::<Vec<_>>());
        assert!(said.contains("cannot write"), "{said}");
        assert!(said.ends_with("[exit 2]"), "{said}");
    }
    let results = fs::read_dir(workspace.path().join("results")).expect("a folder");
    assert_eq!(results.count(), 1, "a sweep went ahead");
    // Where the disk fills up in the meantime, the words are still said.
    let said = workspace.run(&["gate", "round4.jsonl", "--export-junit", "/dev/full"]);
    assert!(said.contains("gate passed"), "{said}");
    assert!(said.ends_with("[exit 4]"), "{said}");
}

/// A terminal to write to, and all that is seen there once everybody has left it.
fn terminal() -> (Stdio, JoinHandle<String>) {
    let mut name = [0; 64];
    // SAFETY: the descriptor is nobody else's, and the name fits its place.
    let mut screen = unsafe {
        let screen = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        let named = libc::ptsname_r(screen, name.as_mut_ptr(), name.len());
        assert_eq!((libc::unlockpt(screen), named), (0, 0));
        File::from_raw_fd(screen)
    };
    // SAFETY: it is in place, with its end.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    let keyboard = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(name.to_str().expect("a path"));
    let seen = move || {
        let mut seen = Vec::new();
        // It ends with an error, as terminals do that are hung up.
        let _ = screen.read_to_end(&mut seen);
        String::from_utf8_lossy(&seen).into_owned()
    };
    (keyboard.expect("a terminal").into(), thread::spawn(seen))
}

/// Where `-` has the file, the table goes to standard error, and its colours
/// are for whoever looks there.
#[test]
fn colours_are_for_the_stream_they_go_to() {
    let workspace = workspace();
    for words in [
        "gate round4.jsonl --min-geomean 1.5 --export-json -",
        "compare two-pass interleaved round4.jsonl --export-json -",
    ] {
        let run = |stdout: Stdio, stderr: Stdio| {
            let mut dgx = Command::new(env!("CARGO_BIN_EXE_dgx"));
            dgx.current_dir(workspace.path())
                .args(words.split(' '))
                .env_remove("NO_COLOR")
                .env("TERM", "xterm")
                .stdin(Stdio::null())
                .stdout(stdout)
                .stderr(stderr);
            dgx.status().expect("dgx runs");
        };
        let log = workspace.path().join("log");
        let (stdout, _) = terminal();
        run(stdout, File::create(&log).expect("a file").into());
        let told = fs::read_to_string(&log).expect("a log");
        assert!(!told.is_empty() && !told.contains('\u{1b}'), "{told}");
        let (stderr, seen) = terminal();
        run(Stdio::null(), stderr);
        let told = seen.join().expect("a screen");
        assert!(told.contains('\u{1b}'), "{words}: {told}");
    }
}
