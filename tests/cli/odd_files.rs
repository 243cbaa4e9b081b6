//! Paths that are not regular files: no command waits for one, and each reports it.

use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::workspace::Workspace;

const MEASURED: &str = include_str!("../fixtures/runs/round4.jsonl");

/// Exit code and words of dgx, which is given two minutes.
fn ends(workspace: &Workspace, words: &str) -> (Option<i32>, String) {
    let mut dgx = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(workspace.path())
        .env("NO_COLOR", "1")
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dgx runs");
    let began = Instant::now();
    while dgx.try_wait().expect("a child").is_none() {
        if began.elapsed() > Duration::from_secs(120) {
            dgx.kill().expect("a child");
            panic!("{words} waits");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = dgx.wait_with_output().expect("its words");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), words)
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let workspace = Workspace::new();
    workspace.write("run.jsonl", MEASURED);
    let path = |name: &str| workspace.path().join(name);
    for name in ["fifo.toml", "fifo.jsonl"] {
        mkfifoat(CWD, path(name), Mode::RUSR | Mode::WUSR).expect("a FIFO");
    }
    std::fs::create_dir(path("folder.toml")).expect("a folder");
    std::fs::create_dir(path("folder.jsonl")).expect("a folder");
    let _socket = UnixListener::bind(path("socket.jsonl")).expect("a socket");
    std::os::unix::fs::symlink("/dev/zero", path("zero.jsonl")).expect("a link");
    for (words, why) in [
        ("check fifo.toml", "it is not a regular file"),
        ("list fifo.toml", "it is not a regular file"),
        ("sweep fifo.toml", "it is not a regular file"),
        (
            "check folder.toml",
            "that is a folder\n  help: give a file in it",
        ),
        ("check /dev/zero", "it is not a regular file"),
        ("jury fifo.toml run.jsonl", "it is not a regular file"),
        ("explain one fifo.toml", "it is not a regular file"),
        ("show fifo.jsonl", "it is not a regular file"),
        ("show folder.jsonl", "it is a folder"),
        ("show socket.jsonl", "cannot read"),
        ("show zero.jsonl", "it is not a regular file"),
        ("gate fifo.jsonl", "it is not a regular file"),
        (
            "gate run.jsonl --baseline fifo.jsonl",
            "it is not a regular file",
        ),
        ("compare run.jsonl fifo.jsonl", "it is not a regular file"),
        ("report fifo.jsonl -o page.html", "it is not a regular file"),
        ("sweep --resume fifo.jsonl", "it is not a regular file"),
        ("sweep --resume folder.jsonl", "it is a folder"),
        ("report run.jsonl -o fifo.jsonl", "it is a FIFO"),
        ("gate run.jsonl --export-junit fifo.jsonl", "it is a FIFO"),
        (
            "gate run.jsonl --export-junit socket.jsonl",
            "it is a socket",
        ),
        (
            "gate run.jsonl --export-junit folder.jsonl",
            "it is a folder",
        ),
    ] {
        let (code, said) = ends(&workspace, words);
        assert_eq!(code, Some(2), "{words}: {said}");
        assert!(said.contains(why), "{words}: {said}");
    }
    let (code, said) = ends(&workspace, "gate run.jsonl --export-junit /dev/stdout");
    assert_eq!(code, Some(0), "{said}");
}

/// A pipe behind `/dev/stdout` has somebody at its other end.
#[test]
fn standard_output_takes_an_export() {
    let workspace = Workspace::new();
    workspace.write("run.jsonl", MEASURED);
    let said = workspace.run(&["gate", "run.jsonl", "--export-junit", "/dev/stdout"]);
    assert!(said.contains("<testsuites"), "{said}");
    assert!(said.ends_with("[exit 0]"), "{said}");
}
