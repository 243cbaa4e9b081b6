//! The report in a real browser, light and dark: nothing is fetched, nothing
//! fails, nothing sticks out on a phone, every table can be sorted, filtered
//! and saved, and a finger is told what a pointer is.

use std::io::Write;
use std::path::Path;
use std::process::Command;

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

/// What the harness found, as JSON.
fn inspect(browser: &str, folder: &Path, dark: bool) -> serde_json::Value {
    let profile = tempfile::tempdir().expect("a profile");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-sync", "--allow-file-access-from-files"])
        .args([
            "--window-size=1300,1000",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            if dark { 0 } else { 1 }
        ))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", folder.join("browser.html").display()))
        .output()
        .expect("the browser runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.split("<pre id=\"found\">RESULT ").nth(1);
    let json = result.and_then(|rest| rest.split("</pre>").next());
    let json = json.unwrap_or_else(|| panic!("the page did not finish: {text}"));
    let json = json
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
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
