//! A round swept in shards and merged, as any scheduler could run it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::stage::Stage;
use crate::sweep::{ROUND, Sweep, ended};

/// With less to emulate: what is merged is the same.
fn round() -> String {
    ROUND.replace("k = 2048", "k = 512")
}

fn dgx(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("NO_COLOR", "1").args(args);
    command
}

/// Runs a command as it was printed.
pub(crate) fn pasted(command: &str, code: i32) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_dgx"))
        .parent()
        .expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.current_dir(env!("CARGO_MANIFEST_DIR"));
    shell.env("PATH", format!("{}:{path}", folder.display()));
    ended(shell.env("NO_COLOR", "1").args(["-c", command]), code)
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("its text");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("whole lines")
}

/// What is known of every cell: its verdict and its time, without how long
/// that took to find out.
fn cells(file: &Path) -> BTreeMap<(String, String, String), Value> {
    let mut cells = BTreeMap::new();
    for mut line in lines(file) {
        let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let key = (word("type"), word("contender"), word("shape"));
        if ["verdict", "estimate"].contains(&key.0.as_str()) {
            let object = line.as_object_mut().expect("an object");
            // The largest error is of data that every sweep draws anew, and a
            // slow machine sees fewer of them.
            for key in ["millis", "worst", "unseen"] {
                object.remove(key);
            }
            cells.insert(key, line);
        }
    }
    cells
}

fn shards(sweep: &Sweep, count: u32) -> Vec<PathBuf> {
    let parts = (1..=count).map(|number| {
        let file = sweep.folder.path().join(format!("shard-{number}.jsonl"));
        let (shard, into) = (format!("{number}/{count}"), file.display().to_string());
        sweep.run(&[&sweep.round(), "--shard", &shard, "--into", &into], 0);
        file
    });
    parts.collect()
}

#[test]
fn shards_make_the_run_that_one_machine_makes() {
    let sweep = Sweep::new(&round());
    sweep.run(&[&sweep.round()], 0);
    let single = cells(&sweep.run_file().expect("a run"));
    let files = shards(&sweep, 3);
    let whole = sweep.folder.path().join("whole.jsonl");
    let output = whole.display().to_string();
    let partly = ended(dgx(&["merge", "-o", &output]).args(&files[..2]), 5);
    assert!(partly.contains("missing shard 3/3"), "{partly}");
    // Where the round lay is not on record; the whole itself goes on.
    let command = format!("dgx sweep --resume {output} --backend emu");
    assert!(partly.contains(&command), "{partly}");
    let gated = ended(&mut dgx(&["gate", &output, "--min-geomean", "0.5"]), 5);
    assert!(gated.contains("missing shard 3/3"), "{gated}");
    let begun = fs::read(&whole).expect("its bytes");
    let refused = ended(dgx(&["merge", "-o", &output]).arg(&files[2]), 2);
    assert!(
        refused.contains("exists") && refused.contains("--force"),
        "{refused}"
    );
    assert_eq!(fs::read(&whole).expect("its bytes"), begun);
    ended(dgx(&["merge", "--force", "-o", &output]).arg(&files[2]), 0);
    assert_eq!(cells(&whole), single);
    fs::write(&whole, begun).expect("a file");
    pasted(&command, 0);
    assert_eq!(cells(&whole), single);
    // A job that is started again has nothing left to do.
    let (into, round) = (files[0].display().to_string(), sweep.round());
    let again = sweep.run(&[&round, "--shard", "1/3", "--into", &into], 0);
    assert!(again.contains("is complete"), "{again}");
    for shard in ["4/4", "1/4", "1/4294967295"] {
        for more in [&[][..], &["--dry-run"]] {
            let words = [&[round.as_str(), "--shard", shard], more].concat();
            let other = sweep.run(&words, 2);
            assert!(other.contains("not every shard"), "{shard}: {other}");
        }
    }
    // A disk that is full in the middle of it.
    let before = fs::read(&whole).expect("its bytes");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args([
        "-c",
        script,
        env!("CARGO_BIN_EXE_dgx"),
        "merge",
        "--force",
        "-o",
    ]);
    let said = ended(command.arg(&whole).args(&files), 4);
    assert!(said.contains("File too large"), "{said}");
    assert!(said.contains("check space"), "{said}");
    assert_eq!(fs::read(&whole).expect("its bytes"), before);
    let entries = fs::read_dir(sweep.folder.path()).expect("a folder");
    let names = entries.map(|e| e.expect("an entry").file_name());
    let names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
}

#[test]
fn a_shard_cut_off_anywhere_goes_on_where_it_was() {
    let sweep = Sweep::new(&round());
    let files = shards(&sweep, 2);
    let whole = fs::read(&files[0]).expect("its bytes");
    let expected = cells(&files[0]);
    let into = files[0].display().to_string();
    let header = whole.iter().position(|b| *b == b'\n').expect("a line");
    for keep in [0, header / 2, header + 40, whole.len() / 2] {
        fs::write(&files[0], &whole[..keep]).expect("a file");
        sweep.run(&[&sweep.round(), "--shard", "1/2", "--into", &into], 0);
        assert_eq!(cells(&files[0]), expected, "cut at {keep}");
    }
    // Complete, but not what is asked for.
    let shard = sweep.run(&[&sweep.round(), "--shard", "2/2", "--into", &into], 2);
    assert!(shard.contains("shard 1/2, not shard 2/2"), "{shard}");
    let changed = sweep.folder.path().join("changed.toml");
    fs::write(&changed, round().replace("twice", "thrice")).expect("a file");
    let changed = changed.display().to_string();
    let other = sweep.run(&[&changed, "--shard", "1/2", "--into", &into], 2);
    assert!(other.contains("is of another round"), "{other}");
    let round = sweep.round();
    let flagged = [
        round.as_str(),
        "--shard",
        "1/2",
        "--seed",
        "9",
        "--into",
        &into,
    ];
    let other = sweep.run(&flagged, 2);
    assert!(other.contains("did not begin with --seed"), "{other}");
    fs::write(&files[0], &whole[..whole.len() / 2]).expect("a file");
    for words in [&["--shard", "2/2"][..], &[]] {
        let words = [&[round.as_str(), "--into", &into], words].concat();
        let other = sweep.run(&words, 2);
        assert!(other.contains("is of shard 1/2, not"), "{other}");
    }
    let show = ended(&mut dgx(&["show", &files[1].display().to_string()]), 0);
    assert!(show.contains("This is shard 2 of 2"), "{show}");
}

#[test]
fn measured_shards_keep_every_block_and_say_which_card() {
    let stage = Stage::new("");
    let round = stage.path("round.toml").display().to_string();
    // Else every sweep has an order of its own.
    let fixed = ["--data-seed", "1"];
    ended(
        &mut stage.command(&[&[round.as_str()], &fixed[..]].concat()),
        0,
    );
    let mut files = Vec::new();
    for (number, card) in [(1, "GPU-a"), (2, "GPU-b")] {
        let script = fs::read_to_string(stage.path("script.toml")).expect("a script");
        let bare = script.lines().filter(|l| !l.starts_with("cards"));
        let bare: Vec<&str> = bare.collect();
        let script = format!("cards = [\"{card}\"]\n{}\n", bare.join("\n"));
        fs::write(stage.path("script.toml"), script).expect("a script");
        let file = stage.path(&format!("shard-{number}.jsonl"));
        let (shard, into) = (format!("{number}/2"), file.display().to_string());
        let part = [round.as_str(), "--shard", &shard, "--into", &into];
        ended(&mut stage.command(&[&part[..], &fixed].concat()), 0);
        files.push(file);
    }
    let whole = stage.path("whole.jsonl");
    let said = ended(dgx(&["merge", "-o"]).arg(&whole).args(&files), 0);
    assert!(said.contains("shapes from 2 cards"), "{said}");
    let times = |file: &Path, card: bool| -> Vec<Value> {
        let blocks = lines(file).into_iter().filter(|l| l["type"] == "block");
        let mut blocks: Vec<Value> = blocks
            .map(|mut block| {
                let on = block.as_object_mut().expect("an object").remove("card");
                assert_eq!(on.is_some(), card);
                block
            })
            .collect();
        blocks.sort_by_cached_key(Value::to_string);
        blocks
    };
    assert_eq!(times(&whole, true), times(&stage.run_file(), false));
}
