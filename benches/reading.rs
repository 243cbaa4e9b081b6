//! How long a run file takes to be read and judged, and in how much memory,
//! by the built binary: `cargo bench --bench reading`.
//!
//! The blocks of the committed final, over and over under new numbers, make
//! runs of 10⁴, 10⁵ and 10⁶ blocks; a field of 500 contenders on 50 shapes
//! makes tables that are large themselves. Each of the former is also merged
//! from a shard for every shape, and a round of 10⁴ cells is dealt out to 64
//! cards. Give sizes to run only those:
//! `cargo bench --bench reading -- 10000 field deal`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const FINAL: &str = "results/baselines/final-20261115-1823.jsonl";

fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let asked = |name: &str| chosen.is_empty() || chosen.iter().any(|c| c == name);
    let folder = tempfile::tempdir().expect("a folder for the runs");
    println!("run            command     wall s   cpu s   peak MiB");
    for blocks in [10_000, 100_000, 1_000_000] {
        if asked(&blocks.to_string()) {
            let path = folder.path().join(format!("{blocks}.jsonl"));
            repeated(&path, blocks);
            all_commands(&format!("{blocks} blocks"), &path);
            merging(&format!("{blocks} blocks"), &path);
            std::fs::remove_file(path).expect("the run goes again");
        }
    }
    if asked("field") {
        let path = folder.path().join("field.jsonl");
        field(&path, 500, 50);
        all_commands("500 × 50", &path);
    }
    if asked("deal") {
        dealing();
    }
}

/// The run in a shard for every shape, put together again.
fn merging(name: &str, run: &Path) {
    let folder = tempfile::tempdir_in(run.parent().expect("a folder")).expect("a folder");
    let reader = BufReader::new(File::open(run).expect("a run"));
    let (mut shards, mut names) = (Vec::new(), Vec::new());
    for line in reader.lines().map(|line| line.expect("text")) {
        if line.starts_with("{\"type\":\"header\"") {
            let header: Value = serde_json::from_str(&line).expect("a header");
            let shapes = header["shapes"].as_array().expect("shapes").clone();
            for (index, shape) in shapes.iter().enumerate() {
                let mut part = header.clone();
                part["shapes"] = json!([shape]);
                part["shard"] = json!({"number": index + 1, "of": shapes.len(), "shapes": shapes});
                let path = folder.path().join(format!("shard-{index}.jsonl"));
                let mut file = BufWriter::new(File::create(path).expect("a shard"));
                writeln!(file, "{part}").expect("space for the run");
                shards.push(file);
                names.push(shape["name"].as_str().expect("a name").to_owned());
            }
            continue;
        }
        if line.starts_with("{\"type\":\"build\"") {
            continue;
        }
        let of = |name: &String| line.contains(&format!("\"shape\":\"{name}\""));
        match names.iter().position(of) {
            Some(index) => writeln!(shards[index], "{line}").expect("space for the run"),
            None => shards
                .iter_mut()
                .for_each(|shard| writeln!(shard, "{line}").expect("space for the run")),
        }
    }
    drop(shards);
    let (parts, whole) = (folder.path().to_owned(), run.with_extension("merged"));
    let [parts, output] = [&parts, &whole].map(|path| path.to_str().expect("a plain path"));
    told(name, "merge", timed(&["merge", parts, "-o", output]));
    std::fs::remove_file(&whole).expect("the merged run goes again");
}

/// A round of 1000 shapes and 10 contenders, dealt out to 64 cards.
fn dealing() {
    let folder = tempfile::tempdir().expect("a folder");
    let round = folder.path().join("wide.toml");
    let text = "question = \"Who gets what?\"\n\
        contenders = [\"two-pass\", \"sequential\", \"interleaved\", \"pipelined\", \"tma-store\", \
        \"ping-pong\", \"swap-ab\"]\n\
        baseline = \"two-pass\"\n\
        [[grid]]\n\
        m = [1, 7, 32, 64, 96, 128, 256, 512, 1024, 4096]\n\
        n = [128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 7168]\n\
        k = [256, 512, 768, 1024, 1536, 2048, 3072, 4096, 7168, 8192]\n";
    std::fs::write(&round, text).expect("a round");
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .arg("sweep")
        .arg(&round)
        .args(["--shard", "1/64", "--dry-run"])
        .output()
        .expect("dgx runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = said.lines().next().unwrap_or_default();
    println!(
        "10 × 1000      deal       {:>7.2}                    {first}",
        began.elapsed().as_secs_f64()
    );
}

fn all_commands(name: &str, run: &Path) {
    let file = run.to_str().expect("a plain path");
    let page = run.with_extension("html");
    let commands: [(&str, Vec<&str>); 4] = [
        ("show", vec!["show", file]),
        ("compare", vec!["compare", file, file]),
        ("gate", vec!["gate", file, "--min-geomean", "1.01"]),
        (
            "report",
            vec!["report", file, "-o", page.to_str().expect("a plain path")],
        ),
    ];
    for (command, args) in commands {
        told(name, command, timed(&args));
    }
}

fn told(name: &str, command: &str, (wall, cpu, peak): (Duration, Duration, u64)) {
    println!(
        "{name:<14} {command:<10} {:>7.2} {:>7.2} {peak:>10}",
        wall.as_secs_f64(),
        cpu.as_secs_f64()
    );
}

/// Wall time, processor time and peak memory in MiB, as the system counts them.
fn timed(args: &[&str]) -> (Duration, Duration, u64) {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("dgx runs");
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    let (mut cpu, mut peak) = (Duration::ZERO, 0);
    while child.try_wait().expect("its state").is_none() {
        cpu = processor_time(&folder).unwrap_or(cpu);
        peak = peak_memory(&folder).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    (began.elapsed(), cpu, peak)
}

/// User and system ticks, of which Linux counts a hundred a second.
fn processor_time(folder: &Path) -> Option<Duration> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    let after_name = stat.rsplit(')').next()?;
    let fields: Vec<u64> = after_name
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    // The state is a letter; ppid is the first number, utime the eleventh.
    Some(Duration::from_millis(
        10 * (fields.get(10)? + fields.get(11)?),
    ))
}

fn peak_memory(folder: &Path) -> Option<u64> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// The committed final with its blocks repeated until there are `count`.
fn repeated(path: &Path, count: usize) {
    let text = std::fs::read_to_string(FINAL).expect("the committed final");
    let is_block = |line: &&str| line.starts_with("{\"type\":\"block\"");
    let blocks: Vec<&str> = text.lines().filter(is_block).collect();
    let others = text.lines().filter(|line| !is_block(line));
    let (end, before): (Vec<&str>, Vec<&str>) =
        others.partition(|l| l.starts_with("{\"type\":\"end\""));
    let mut file = BufWriter::new(File::create(path).expect("a run file"));
    for line in before {
        writeln!(file, "{line}").expect("space for the run");
    }
    for index in 0..count {
        let (round, line) = (index / blocks.len(), blocks[index % blocks.len()]);
        let (head, rest) = line
            .split_once(",\"block\":")
            .expect("a block has a number");
        let (number, samples) = rest.split_once(',').expect("samples follow");
        let number: usize = number.parse().expect("a block has a number");
        writeln!(
            file,
            "{head},\"block\":{},{samples}",
            number + 10_000 * round
        )
        .expect("space for the run");
    }
    for line in end {
        writeln!(file, "{line}").expect("space for the run");
    }
    file.flush().expect("space for the run");
}

/// Many contenders on many shapes, all right, 30 blocks a shape over five processes.
fn field(path: &Path, contenders: usize, shapes: usize) {
    let text = std::fs::read_to_string(FINAL).expect("the committed final");
    let first = text.lines().next().expect("a header");
    let mut header: Value = serde_json::from_str(first).expect("a header");
    let model = header["contenders"][0].clone();
    let named = |i: usize| format!("design-{i:03}");
    let shape_name = |i: usize| format!("shape-{i:02}");
    let record = |i: usize| {
        let mut record = model.clone();
        (record["id"], record["variant"]) = (json!(named(i)), json!(named(i)));
        (record["claim"], record["parent"]) = (Value::Null, Value::Null);
        record
    };
    header["contenders"] = (0..contenders).map(record).collect();
    header["baseline"] = json!(named(0));
    header["shapes"] = (0..shapes)
        .map(|i| json!({"name": shape_name(i), "groups": [{"m": 128, "n": 4096, "k": 4096 + 256 * i}]}))
        .collect();
    header["config"]["text"] = json!("");
    let mut file = BufWriter::new(File::create(path).expect("a run file"));
    writeln!(file, "{header}").expect("space for the run");
    for contender in 0..contenders {
        for shape in 0..shapes {
            let verdict = json!({
                "type": "verdict", "contender": named(contender), "shape": shape_name(shape),
                "status": "ok", "reason": null, "detail": null, "worst": 0.5, "millis": 1.0,
            });
            writeln!(file, "{verdict}").expect("space for the run");
        }
    }
    let mut noise = 1u64;
    for process in 0..5 {
        for shape in 0..shapes {
            for block in 0..6 {
                let mut line = format!(
                    "{{\"type\":\"block\",\"shape\":\"{}\",\"process\":{process},\"block\":{block},\"samples\":[",
                    shape_name(shape)
                );
                for lane in 0..=contenders {
                    let (contender, arm) = (lane % contenders, lane / contenders);
                    noise = noise
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let noise = (noise >> 40) as f64 / (1u64 << 24) as f64;
                    let micros = (50.0 + contender as f64 / 10.0) * (1.0 + 0.01 * noise);
                    let comma = if lane == 0 { "" } else { "," };
                    write!(
                        line,
                        "{comma}{{\"contender\":\"{}\",\"arm\":{arm},\"micros\":{micros},\"clock_mhz\":1755.0}}",
                        named(contender)
                    )
                    .expect("text grows");
                }
                writeln!(file, "{line}]}}").expect("space for the run");
            }
        }
    }
    writeln!(file, "{}", json!({"type": "end", "complete": true, "reason": null, "seconds": {}, "decision": "decided"}))
        .expect("space for the run");
    file.flush().expect("space for the run");
}
