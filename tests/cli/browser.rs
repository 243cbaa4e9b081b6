//! The report in a real browser, light and dark: nothing is fetched, nothing fails, nothing
//! overflows on a phone, every table can be sorted, filtered and saved, and a touch shows the same
//! details as a pointer.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;

const HARNESS: &str = include_str!("browser.html");
const ROUND4: &str = include_str!("../fixtures/runs/round4.jsonl");
const EMULATED: &str = include_str!("../../results/baselines/smoke-emu.jsonl");
const FAILURES: &str = include_str!("../../results/baselines/fixtures-20261115-1824.jsonl");

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browser() -> Option<&'static str> {
    let answers = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    BROWSERS.into_iter().find(answers)
}

/// How long a page may take. Wall clock, not the browser's virtual time: that
/// runs out while a busy machine is still loading the page.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the harness found, as JSON. It says so on the console, which the
/// browser copies to its standard error.
fn inspect(browser: &str, folder: &Path, dark: bool) -> serde_json::Value {
    let profile = tempfile::tempdir().expect("a profile");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync"])
        .args(["--allow-file-access-from-files", "--enable-logging=stderr"])
        .arg("--window-size=1300,1000")
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            if dark { 0 } else { 1 }
        ))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", folder.join("browser.html").display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the browser runs");
    let stderr = child.stderr.take().expect("a pipe");
    let (send, said) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Nobody listens any more once the result is in.
            let _ = send.send(line);
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let mut seen = String::new();
    let result = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(line) = said.recv_timeout(left) else {
            break None;
        };
        if let Some((_, rest)) = line.split_once("\"RESULT ") {
            // `"RESULT {...}", source: file:///...`
            break rest
                .rsplit_once("\", source:")
                .map(|(json, _)| json.to_owned());
        }
        seen.extend([&line, "\n"]);
    };
    child.kill().expect("the browser ends");
    child.wait().expect("the browser ended");
    let json = result.unwrap_or_else(|| panic!("the page did not finish: {seen}"));
    serde_json::from_str(&json).expect("what the harness wrote")
}

#[test]
fn the_report_holds_up_in_a_browser() {
    let Some(browser) = browser() else {
        // Past the capture of the test harness: a skip nobody sees is a lie.
        let tried = BROWSERS.join(", ");
        let text = format!("\nSKIPPED the report in a browser: there is no {tried} here\n");
        std::io::stderr()
            .write_all(text.as_bytes())
            .expect("a word");
        return;
    };
    let workspace = Workspace::new();
    workspace.write("browser.html", HARNESS);
    workspace.write("round4.jsonl", ROUND4);
    workspace.write("again.jsonl", ROUND4);
    workspace.write("emulated.jsonl", EMULATED);
    workspace.write("failures.jsonl", FAILURES);
    for (files, section) in [
        (vec!["round4.jsonl"], "samples"),
        (vec!["again.jsonl", "round4.jsonl"], "history"),
        (vec!["emulated.jsonl"], "counters"),
        (vec!["failures.jsonl"], "failures"),
    ] {
        let args = [&["report", "-o", "report.html"], &files[..]].concat();
        let said = workspace.run(&args);
        assert!(said.contains("[exit 0]"), "{said}");
        let dark = section == "history";
        let report = inspect(browser, workspace.path(), dark);
        assert_eq!(report["found"], serde_json::json!([]), "{files:?}");
        let ids = report["ids"].as_array().expect("sections");
        for wanted in ["ranking", "shapes", "environment", section] {
            assert!(ids.iter().any(|id| id == wanted), "{files:?}: {wanted}");
        }
        for counted in ["clicked", "touched", "saved"] {
            assert!(report[counted].as_u64() > Some(3), "{counted}: {report}");
        }
        let paper = if dark {
            "rgb(20, 23, 26)"
        } else {
            "rgb(253, 253, 251)"
        };
        assert_eq!(report["paper"], paper);
    }
}
