//! What people expect of a command-line tool: tables that fit, a choice of verbosity, help,
//! completions, manual pages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::workspace::{VARIANT, Workspace, program, wait_for};

const MEASURED: &str = include_str!("../fixtures/runs/round4.jsonl");
const MODELLED: &str = include_str!("../../results/baselines/smoke-emu.jsonl");
const ROUND4: &str = include_str!("../../configs/round4.toml");

/// dgx in a folder, as a terminal of so many columns has it.
fn dgx(workspace: &Workspace, words: &str, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.current_dir(workspace.path()).env_remove("NO_COLOR");
    command.env("DGX_CACHE", workspace.path().join("cache"));
    command.envs(settings.iter().copied());
    let output = command.args(words.split_whitespace()).output();
    output.expect("dgx runs")
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("results/measured.jsonl", MEASURED);
    workspace.write("results/modelled.jsonl", MODELLED);
    workspace.write(
        "results/baselines/of-a-round-with-a-long-name-2.jsonl",
        MEASURED,
    );
    workspace.write("configs/round4.toml", ROUND4);
    let names = [
        "two-pass",
        "sequential",
        "interleaved",
        "single-gemm",
        "pipelined",
        "tile-tuned",
    ];
    for name in names {
        workspace.write(&format!("variants/{name}.cu"), VARIANT);
    }
    let told = "A design of which very much is to be said, more than any line of a terminal holds";
    workspace.write(
        "variants/eloquent-and-persistent.cu",
        &VARIANT.replace("One of its kind", told).replace(
            "requires",
            "parent = \"interleaved\"\nround = 4\nclaim = { geomean = 1.5, over = \"pipelined:STAGES=1\" }\nrequires",
        ),
    );
    workspace.write(
        "configs/wide.toml",
        "question = \"Is a question that is longer than a line of the terminal folded like all other text is?\"
contenders = [\"eloquent-and-persistent\", \"one\"]
baseline = \"one:STAGES=1\"
shapes = [{ m = 256, n = 128, k = 512 }, { name = \"a-name-of-many-groups\", m = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32], n = 128, k = 512 }]
",
    );
    workspace
}

/// Every command that prints a table, and words that must be in it at any width.
const TABLES: [(&str, &[&str]); 21] = [
    ("list", &["variant", "summary"]),
    ("list -v", &["variant", "parent", "claim", "summary"]),
    ("list wide", &["contender", "baseline", "GFLOP"]),
    (
        "check --no-compile wide",
        &["contenders × 2 shapes", "next: dgx sweep"],
    ),
    ("check wide", &["contender", "regs", "occupancy", "shapes"]),
    ("sweep wide --dry-run", &["go ", "CTAs of 128 threads"]),
    (
        "show measured",
        &["rank", "verdict", "claim", "roofline", "over two-pass"],
    ),
    (
        "show modelled --counters",
        &["modelled µs", "claim", "roofline", "conflicts"],
    ),
    (
        "compare two-pass interleaved measured",
        &["finding", "interleaved over"],
    ),
    (
        "compare measured of-a-round-with-a-long-name-2",
        &["B over A", "differs", "rank in B"],
    ),
    ("compare modelled modelled", &["All times are modelled"]),
    (
        "gate measured --min-geomean 1.2 --min-shape 0.5",
        &["wanted", "found", "ruling"],
    ),
    (
        "gate modelled --counter bank-conflicts=1.02",
        &["wanted", "found", "ruling"],
    ),
    ("jury round4 measured", &["candidate", "votes", "verdict"]),
    ("rounds", &["round4"]),
    ("report measured -o page.html", &["page.html"]),
    ("explain one wide", &["kernel", "occupancy"]),
    (
        "explain eloquent-and-persistent wide",
        &["kernel", "occupancy"],
    ),
    ("doctor", &["compiler", "backend"]),
    ("cache", &["images", "oracles"]),
    ("calibrate --list", &["wgmma"]),
];

#[test]
fn every_table_fits_eighty_columns_and_loses_no_column_unannounced() {
    let workspace = workspace();
    let mut wrong = Vec::new();
    for (words, due) in TABLES {
        let output = dgx(&workspace, words, &[("COLUMNS", "80")]);
        let text = String::from_utf8(output.stdout).expect("text");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = String::from_utf8_lossy(&output.stderr);
        let lacks = due.iter().filter(|word| !flat.contains(**word));
        wrong.extend(lacks.map(|word| format!("{words} lacks {word}:\n{text}{said}")));
        // A long path has no place to be folded at.
        let wide = |line: &&str| {
            let longest = line
                .split_whitespace()
                .map(|word| word.chars().count())
                .max();
            line.chars().count() > 80 && longest < Some(74)
        };
        let wide = text.lines().filter(wide);
        wrong.extend(wide.map(|line| format!("{words}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn colour_is_as_asked_for() {
    let workspace = workspace();
    let coloured = |words: &str, settings: &[(&str, &str)]| {
        let output = dgx(&workspace, words, settings);
        String::from_utf8_lossy(&output.stdout).contains('\u{1b}')
    };
    assert!(!coloured("show measured", &[]));
    assert!(coloured("show measured --color always", &[]));
    assert!(coloured(
        "--color=always show measured",
        &[("TERM", "dumb")]
    ));
    assert!(!coloured("show measured --color never", &[]));
    // A terminal that is drawn on, unless it is dumb or told not to be.
    let on_terminal = |settings: &str| {
        let line = format!("{settings} {} show measured", env!("CARGO_BIN_EXE_dgx"));
        let output = Command::new("script")
            .current_dir(workspace.path())
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .args(["-qec", &line, "/dev/null"])
            .output();
        let Ok(output) = output else {
            panic!("script(1) runs");
        };
        String::from_utf8_lossy(&output.stdout).contains("\u{1b}[1m")
    };
    assert!(on_terminal(""));
    assert!(!on_terminal("NO_COLOR=1"));
    assert!(!on_terminal("TERM=dumb"));
}

#[test]
fn as_much_is_said_as_is_asked_for() {
    let workspace = Workspace::new();
    let told = |words: &str, settings: &[(&str, &str)]| {
        let words = ["sweep round.toml --backend emu ", words].concat();
        let output = dgx(&workspace, &words, settings);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        (out, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (out, usual) = told("", &[]);
    let wide = usual.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{usual}");
    for stage in [
        "compile 2/2",
        "validate 2/2: 256x128x512",
        "one: ",
        "round: ",
    ] {
        assert!(
            usual.contains(stage) || stage == "one: ",
            "{stage}: {usual}"
        );
    }
    assert!(!usual.contains("one[STAGES=2] on"), "{usual}");
    assert!(out.contains("next: ") && !out.contains("bank-"), "{out}");
    let (out, quiet) = told("-q", &[]);
    assert_eq!(quiet, "", "{quiet}");
    assert!(
        out.contains("contender") && !out.contains("next: dgx compare"),
        "{out}"
    );
    assert_eq!(told("", &[("DGX_LOG", "quiet")]).1, "");
    let (_, verbose) = told("-v", &[]);
    assert!(
        verbose.contains("validate one[STAGES=2] on 256x128x512"),
        "{verbose}"
    );
    assert!(told("--quiet", &[("DGX_LOG", "trace")]).1.is_empty());
    let (out, _) = told("--counters", &[]);
    assert!(out.contains("launches"), "{out}");
    let (_, mistaken) = told("", &[("DGX_LOG", "loud")]);
    assert!(
        mistaken.contains("quiet, usual, verbose, trace"),
        "{mistaken}"
    );
}

/// What is not done has no bar.
#[test]
fn nothing_is_measured_on_an_emulator() {
    let workspace = Workspace::new();
    let line = format!(
        "{} sweep round.toml --backend emu",
        env!("CARGO_BIN_EXE_dgx")
    );
    let output = Command::new("script")
        .current_dir(workspace.path())
        .env("TERM", "xterm")
        .env("DGX_CACHE", workspace.path().join("cache"))
        .args(["-qec", &line, "/dev/null"])
        .output();
    let output = output.expect("script(1) runs");
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(seen.contains("validate"), "{seen}");
    assert!(!seen.contains("measure "), "{seen}");
}

#[test]
fn words_that_are_mistaken_are_answered_by_what_they_are() {
    let workspace = workspace();
    workspace.write("variants/one.cu", VARIANT);
    for (words, due, never) in [
        ("sweep wide --seed -1", "--seed cannot be `-1`", "tip:"),
        (
            "debug one wide --schedule -3",
            "write a whole number from 0 to 18446744073709551615",
            "tip:",
        ),
        ("sweep configs", "that is a folder", "no such file"),
        ("sweep wide --shard 3/2", "help: write I/N", "cannot"),
        (
            "gate --max-smem x",
            "help: write a whole number from 0",
            "digit",
        ),
        ("check variants", "give a file in it", "no round"),
        ("show results/baselines/none", "cannot read", "folder"),
        ("show configs/wide.toml", "a round, not a run", "header"),
        ("show variants/one.cu", "a variant, not a run", "header"),
        (
            "sweep results/measured.jsonl",
            "a run file, not a round",
            "TOML",
        ),
        (
            "merge x.jsonl x.jsonl",
            "x.jsonl is named twice",
            "cannot read",
        ),
        (
            "sweep wide --min-blocks many",
            "write a whole number from 1 to 1000000",
            "digit",
        ),
        (
            "sweep wide --timeout 5m",
            "write seconds, e.g. 300",
            "number",
        ),
        (
            "sweep wide --array 4",
            "--array works with --engine slurm only",
            "this engine",
        ),
        ("explain nosuch", "there is no variant `nosuch`", "named"),
        ("sanitize nosuch", "there is no variant `nosuch`", "shapes"),
        (
            "sweep wide --only one:STAGES=[12]",
            "use `*` and `?`",
            "`12`",
        ),
    ] {
        let output = dgx(&workspace, words, &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(due), "{words}: {said}");
        assert!(!said.contains(never), "{words}: {said}");
    }
}

/// A cache that anybody may fill is nobody's.
#[test]
fn without_a_home_the_cache_is_not_in_a_shared_folder() {
    let workspace = Workspace::empty();
    let output = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(workspace.path())
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("DGX_CACHE")
        .arg("cache")
        .output();
    let said = String::from_utf8_lossy(&output.expect("dgx runs").stdout).into_owned();
    let shared = std::env::temp_dir().join("dgx").display().to_string();
    assert!(said.contains("/dgx") && !said.contains(&shared), "{said}");
}

#[test]
fn help_completions_and_manual_are_of_every_command() {
    let workspace = Workspace::new();
    let said = |words: &str| {
        let output = dgx(&workspace, words, &[]);
        assert!(output.status.success(), "{words}");
        String::from_utf8(output.stdout).expect("text")
    };
    let help = said("help");
    assert_eq!(help, said("--help"));
    assert_eq!(said("help sweep"), said("sweep --help"));
    let (_, list) = help.split_once("Commands:\n").expect("its commands");
    let names = list.lines().take_while(|line| !line.is_empty());
    let names: Vec<&str> = names.filter_map(|l| l.split_whitespace().next()).collect();
    assert!(
        names.contains(&"completions") && names.contains(&"gate"),
        "{help}"
    );
    for (command, options) in [("--help", "Options:"), ("sweep --help", "Options:")] {
        let help = said(command);
        let (own, shared) = help.split_once("\nGlobal options:\n").expect("a section");
        assert!(
            own.contains(options) && !own.contains("--variants"),
            "{help}"
        );
        assert!(
            shared.contains("--variants") && shared.contains("--quiet"),
            "{help}"
        );
    }
    let page = said("man");
    assert!(page.contains(".TH dgx 1"), "{page}");
    said("man pages");
    for name in names.iter().filter(|name| **name != "help") {
        let path = workspace.path().join(format!("pages/dgx-{name}.1"));
        let page = fs::read_to_string(path).expect("a page");
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let page = fs::read_to_string(workspace.path().join("pages/dgx.1")).expect("a page");
    assert!(page.contains("Exit codes"), "{page}");
}

#[test]
fn the_cache_is_weighed_and_emptied() {
    let workspace = Workspace::new();
    workspace.run(&["check", "round.toml"]);
    let said = workspace.run(&["cache"]);
    assert!(said.contains("images       2"), "{said}");
    assert!(said.contains("4.0 GiB at most"), "{said}");
    workspace.write("cache/other/kept", "");
    let said = workspace.run(&["cache", "clean"]);
    assert!(said.contains("removed"), "{said}");
    assert!(workspace.run(&["cache"]).contains("images       0"));
    assert!(workspace.path().join("cache/other/kept").exists());
}

/// The page is handed to whatever opens pages here, and is there even if nothing
/// does.
#[test]
fn a_report_is_opened_in_the_browser() {
    let workspace = workspace();
    program(
        &workspace.path().join("bin/xdg-open"),
        "#!/bin/sh\nprintf %s \"$1\" > part && mv part opened\n",
    );
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}/bin:{path}", workspace.path().display());
    let words = "report measured --open -o page.html";
    let told = dgx(&workspace, words, &[("PATH", &path), ("DISPLAY", ":0")]);
    assert_eq!(told.status.code(), Some(0), "{told:?}");
    // Nobody waits for a browser, so neither does dgx.
    let opened = workspace.path().join("opened");
    wait_for("the browser's call", || opened.exists());
    let opened = fs::read_to_string(opened).expect("what it was called with");
    assert!(Path::new(&opened).ends_with("page.html"), "{opened}");
    fs::remove_file(workspace.path().join("page.html")).expect("a page");

    let dark = [("DISPLAY", ""), ("WAYLAND_DISPLAY", ""), ("BROWSER", "")];
    let blind = [&dark[..], &[("PATH", path.as_str())]].concat();
    for settings in [&[("PATH", "/nonexistent"), ("DISPLAY", ":0")][..], &blind] {
        let none = dgx(&workspace, words, settings);
        let said = String::from_utf8_lossy(&none.stderr).into_owned();
        assert_eq!(none.status.code(), Some(4), "{said}");
        assert!(said.contains("no browser could be started"), "{said}");
        assert!(said.contains("open the page by hand"), "{said}");
        fs::remove_file(workspace.path().join("page.html")).expect("a page");
    }
}

#[test]
fn exports_are_what_is_shown() {
    let workspace = workspace();
    let all = "--export-json x.json --export-csv x.csv --export-markdown x.md";
    let read = |name: &str| fs::read_to_string(workspace.path().join(name)).expect("a file");
    let output = dgx(&workspace, &format!("show modelled {all}"), &[]);
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_str(&read("x.json")).expect("JSON");
    let cell = &json["cells"][0];
    for key in ["bound_by", "counters", "micros"] {
        assert!(!cell[key].is_null(), "{key} of {cell}");
    }
    assert!(json["runs"][0]["model_error"].is_string(), "{json}");
    assert!(cell["counters"]["bank-conflicts"].is_number(), "{cell}");
    for (file, due) in [
        ("x.csv", ["bank-conflicts", ",modelled,", "bound_by"]),
        (
            "x.md",
            [
                "| bank-conflicts |",
                "modelled for NVIDIA H200, ±",
                "bound by",
            ],
        ),
    ] {
        for word in due {
            assert!(
                read(file).contains(word),
                "{file} lacks {word}\n{}",
                read(file)
            );
        }
    }
    let output = dgx(&workspace, &format!("compare measured measured {all}"), &[]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&read("x.json")).expect("JSON");
    assert_eq!(json["runs"][1]["label"], "B");
    assert!(json["cells"][0]["clock_mhz"].is_number() || !MEASURED.contains("clock"));
    for name in ["two-pass", "interleaved", "sequential", "cublas"] {
        let of = |c: &&serde_json::Value| c["contender"] == name;
        let changes = json["changes"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(of)
            .count();
        assert_eq!(
            changes > 0,
            shown.contains(&format!(" {name} ")),
            "{name}: {shown}"
        );
        assert!(read("x.csv").contains(&format!("\n{name},")), "{name}");
        assert!(read("x.md").contains(&format!("| {name} |")), "{name}");
    }
}
