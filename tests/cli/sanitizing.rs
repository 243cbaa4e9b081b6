//! `dgx sanitize`: every mistake planted in tests/fixtures/hazards is found with both its lines,
//! and nothing is found in the correct kernels.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::running::Running;
use crate::sweep::{Sweep, send};
use crate::workspace::wait_for;

const FOLDER: &str = "tests/fixtures/hazards";
const VARIANTS: &str = "tests/fixtures/hazards/variants";

fn sanitize(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("sanitize")
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("dgx")
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8(both).expect("text")
}

/// Lines of the fixtures that a comment ends in `NAME here` or `NAME there`, by
/// the two words.
fn marked() -> BTreeMap<(String, String), Vec<String>> {
    let mut marked: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(VARIANTS);
    for entry in fs::read_dir(&folder).expect("fixtures") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a name").to_owned();
        let text = fs::read_to_string(folder.join(&name)).expect("text");
        for (line, text) in (1..).zip(text.lines()) {
            let Some((_, notes)) = text.rsplit_once("// ") else {
                continue;
            };
            for note in notes.split(", ") {
                if let Some((slip, side @ ("here" | "there"))) = note.split_once(' ') {
                    let key = (slip.to_owned(), side.to_owned());
                    marked
                        .entry(key)
                        .or_default()
                        .push(format!("{name}:{line}"));
                }
            }
        }
    }
    marked
}

/// Whether one of an access's lines is one of those marked.
fn lies(access: &Value, wanted: Option<&Vec<String>>) -> bool {
    let Some(wanted) = wanted else {
        return true;
    };
    let lines = access["lines"].as_array().expect("lines");
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
    let hit = |w: &String| lines.iter().any(|line| line.ends_with(&format!("/{w}")));
    wanted.iter().any(hit)
}

/// Every slip of a round is found with its lines, and nothing in the others; what was said.
fn all_found(round: &str, args: &[&str], least: usize) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let [json, junit] = ["found.json", "found.xml"].map(|name| folder.path().join(name));
    let round = format!("{FOLDER}/{round}.toml");
    let asked = [
        round.as_str(),
        "--round-shapes",
        // In which no barrier is used before it is there: that would be a fault.
        "--schedule",
        "9",
        "--variants",
        "variants",
        "--variants",
        VARIANTS,
        "--export-json",
        json.to_str().expect("a path"),
        "--export-junit",
        junit.to_str().expect("a path"),
    ];
    let output = sanitize(&[&asked, args].concat());
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("Every contender has the status it declares."),
        "{text}"
    );
    let found: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).expect("JSON");
    let (marked, kinds) = (marked(), kinds());
    let mut slips = 0;
    for cell in found["cells"].as_array().expect("cells") {
        let name = cell["contender"].as_str().expect("a name");
        let hazards = cell["hazards"].as_array().expect("hazards");
        let side = |side: &str| marked.get(&(name.to_owned(), side.to_owned()));
        if cell["expect"] == "ok" {
            assert_eq!(
                (cell["status"].as_str(), hazards.len()),
                (Some("ok"), 0),
                "{cell:#}"
            );
            continue;
        }
        slips += 1;
        let here = side("here").unwrap_or_else(|| panic!("{name}: no line is marked"));
        if cell["expect"] == "crashed" {
            // It never gets as far as being lucky; the fault itself says where.
            let reason = cell["reason"].as_str().expect("a reason");
            assert!(here.iter().any(|line| reason.contains(line)), "{reason}");
            continue;
        }
        let kinds = &kinds[name];
        let of_its_kind = |hazard: &&Value| kinds.iter().any(|kind| hazard["kind"] == **kind);
        // Which of the two came first is the schedule's.
        let met = hazards
            .iter()
            .filter(of_its_kind)
            .any(|hazard| match side("there") {
                None => lies(&hazard["here"], side("here")),
                Some(_) if hazard["there"].is_null() => false,
                there => [("here", "there"), ("there", "here")]
                    .iter()
                    .any(|(one, other)| {
                        lies(&hazard[one], side("here")) && lies(&hazard[other], there)
                    }),
            });
        assert!(met, "{name}, {kinds:?}: {hazards:#?}");
    }
    assert!(slips >= least, "{slips}");
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("failures=\"0\""), "{xml}");
    text
}

#[test]
fn every_slip_is_found_with_both_lines_and_no_twin_is_flagged() {
    let text = all_found("round", &[], 34);
    let past = "b2 of group 0, K 768 of its last row, which ends at 768";
    assert!(text.contains(past), "{text}");
}

/// Of a `__syncthreads()` that is missing, no wait is said to be missing that is there.
#[test]
fn a_missing_barrier_is_told_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("found.json");
    let round = format!("{FOLDER}/round.toml");
    let output = sanitize(&[
        round.as_str(),
        "--round-shapes",
        "--schedule",
        "3",
        "--only",
        "no-tile-sync,no-release-sync",
        "--variants",
        "variants",
        "--variants",
        VARIANTS,
        "--export-json",
        json.to_str().expect("a path"),
    ]);
    let found: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).expect("JSON");
    let cells = found["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2, "{}", said(&output));
    for cell in cells {
        let first = &cell["hazards"][0];
        let remedy = first["remedy"].as_str().expect("what is usually done");
        let barrier = ["__syncthreads()", "a barrier"].map(|way| remedy.starts_with(way));
        assert!(barrier.contains(&true), "{first:#}");
    }
}

#[test]
fn strictly_what_hardware_forgives_is_found_too() {
    all_found("strict", &["--strict"], 4);
}

#[test]
fn slips_with_tensor_memory_are_found() {
    let text = all_found("blackwell", &["--strict", "--target", "b200"], 7);
    assert!(text.contains("which are not all allocated"), "{text}");
}

/// Each kind of hazard, with the fixtures that docs/races.md says show it, and
/// those that do not.
fn table() -> Vec<(ptx_emu::Hazard, [Vec<String>; 2])> {
    let races = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/races.md");
    let races = fs::read_to_string(races).expect("docs/races.md");
    let of_kind = |kind: &ptx_emu::Hazard| {
        let row = |line: &&str| line.starts_with(&format!("| `{kind}` |"));
        let mut rows = races.lines().filter(row);
        let row = rows.next().unwrap_or_else(|| panic!("{kind} has no row"));
        let cells: Vec<&str> = row.split('|').collect();
        let names = |cell: &str| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        (*kind, [names(cells[3]), names(cells[4])])
    };
    ptx_emu::Hazard::ALL.iter().map(of_kind).collect()
}

/// The kinds that each fixture shows.
fn kinds() -> BTreeMap<String, Vec<String>> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (kind, [slips, _]) in table() {
        for slip in slips {
            kinds.entry(slip).or_default().push(kind.to_string());
        }
    }
    kinds
}

/// The kinds of hazard that a document names all have a fixture that shows them.
#[test]
fn every_kind_has_a_row_beside_its_fixture() {
    let variants = Path::new(env!("CARGO_MANIFEST_DIR")).join(VARIANTS);
    for (kind, [slips, twins]) in table() {
        for (names, slip) in [(slips, true), (twins, false)] {
            assert!(!names.is_empty(), "{kind}");
            for name in names {
                let text = fs::read_to_string(variants.join(&name).with_extension("cu"));
                let text = text.unwrap_or_else(|e| panic!("{kind}, {name}: {e}"));
                assert_eq!(text.contains("\nexpect "), slip, "{kind}: {name}");
            }
        }
    }
}

/// The lines that the document tells of a slip are those marked in its source.
#[test]
fn the_lines_of_every_slip_are_as_the_document_has_them() {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/log/compute-sanitizer.md");
    let log = fs::read_to_string(log).expect("docs/log/compute-sanitizer.md");
    let marked = marked();
    let lines = |slip: &str, side: &str| {
        let lines = marked.get(&(slip.to_owned(), side.to_owned()));
        lines.map(|lines| lines.join(" or "))
    };
    for (slip, _) in marked.keys().filter(|(_, side)| side == "here") {
        let here = lines(slip, "here").expect("it is marked");
        let told = match lines(slip, "there") {
            Some(there) => format!("| {here} × {there} |"),
            None => format!("| {here} |"),
        };
        let mut rows = (log.lines()).filter(|row| row.starts_with(&format!("| `{slip}` |")));
        assert!(rows.any(|row| row.contains(&told)), "{slip}: {told}");
    }
}

#[test]
fn a_slip_that_nobody_declares_is_exit_3_and_a_schedule_can_be_had_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join(VARIANTS);
    let read = |name: &str| fs::read_to_string(fixtures.join(name)).expect("a fixture");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("staged.cu", &read("staged.cu"));
    write("staged.cuh", &read("staged.cuh"));
    let undeclared = read("no-sync.cu").replace("expect  = \"racy\"\n", "");
    write("no-sync.cu", &undeclared);
    let there = folder.path().to_str().expect("a path");
    let run = |args: &[&str]| {
        let output = sanitize(args);
        (output.status.code(), said(&output))
    };
    let small = |name: &'static str| {
        let shape = ["--shape", "2x128x256", "--schedules", "8"];
        [&[name][..], &shape, &["--variants", there]].concat()
    };
    let (code, text) = run(&small("no-sync"));
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("no-sync does not have the status it declares: "),
        "{text}"
    );
    assert!(text.contains("no barrier between the two warps"), "{text}");
    // It is wrong with some schedule, and the printed command shows it again.
    let (_, again) = text
        .split_once("again: dgx sanitize ")
        .expect("a schedule that shows it");
    let again: Vec<&str> = again.lines().next().expect("a line").split(' ').collect();
    let told = |text: &str| {
        let odd = text.lines().find(|line| line.contains(", schedule "));
        odd.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let first = told(&text);
    let (code, text) = run(&again);
    assert_eq!(code, Some(3), "{text}");
    assert_eq!(told(&text), first);
    let (code, text) = run(&small("staged"));
    assert_eq!(code, Some(0), "{text}");
    // By the names of a round, and on a page.
    let round = "question = \"Luck?\"\ncontenders = [\"no-sync\"]\nbaseline = \"no-sync\"\n\
                 shapes = [{ name = \"tiny\", m = 2, n = 128, k = 256 }, { m = 3, n = 128, k = 256 }]\n";
    write("round.toml", round);
    let page = folder.path().join("page.html");
    let [file, page_name] = [folder.path().join("round.toml"), page.clone()]
        .map(|path| path.to_str().expect("a path").to_owned());
    let named = |shape| [file.as_str(), "--variants", there, "--shape", shape];
    let (code, text) = run(&[&named("t*")[..], &["--export-html", &page_name]].concat());
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("in 1 cell, each in 4 schedules"), "{text}");
    let page = fs::read_to_string(&page).expect("a page");
    for told in [
        "no-sync",
        "tiny",
        "race",
        "staged.cuh:25",
        "staged.cuh:39",
        "__syncthreads()",
    ] {
        assert!(page.contains(told), "{told}");
    }
    // It may be read elsewhere; what the screen says is for here.
    assert!(!page.contains(there), "{page}");
    let name = folder.path().file_name().expect("a name").display();
    for told in [
        "round.toml",
        &format!("{name}/staged.cuh:25"),
        &format!("{name}</code>"),
    ] {
        assert!(page.contains(&format!("…/{told}")), "{told}: {page}");
    }
    assert!(text.contains(&format!("{there}/staged.cuh:25")), "{text}");
    let (code, text) = run(&named("tinny"));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("did you mean `tiny`?"), "{text}");
}

/// Each is examined by its own code, however many are named.
#[test]
fn several_names_are_each_asked_about_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("found.json");
    let round = format!("{FOLDER}/round.toml");
    let asked = [
        round.as_str(),
        "--round-shapes",
        "--only",
        "multiplied,no-sync,copied",
        "--variants",
        "variants",
        "--variants",
        VARIANTS,
        "--export-json",
        json.to_str().expect("a path"),
    ];
    let output = sanitize(&asked);
    let text = fs::read_to_string(&json).unwrap_or_else(|_| panic!("{}", said(&output)));
    let found: Value = serde_json::from_str(&text).expect("JSON");
    for cell in found["cells"].as_array().expect("cells") {
        let contender = cell["contender"].as_str().expect("a name");
        let flagged = !cell["hazards"].as_array().expect("hazards").is_empty();
        assert_eq!(flagged, contender == "no-sync", "{cell}");
        assert_ne!(cell["status"], "crashed", "{cell}");
    }
}

/// An inquiry of many cells, of which the first is done. The later half take
/// minutes each: however late whoever is to stop it comes, it is not over.
fn begun(folder: &Path) -> Running {
    let many = (8..38).map(|m| format!("{{ m = {m}, n = 128, k = 1024 }}"));
    let many: Vec<String> = many.collect();
    let round = format!(
        "question = \"Is it over?\"\ncontenders = [\"no-sync\", \"endless-loop\"]\n\
         baseline = \"no-sync\"\nshapes = [{{ m = 1, n = 128, k = 256 }}, {}]\n",
        many.join(", ")
    );
    let path = folder.join("round.toml");
    fs::write(&path, round).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("sanitize")
        .arg(&path)
        .args("--round-shapes --schedules 8 --timeout 30".split(' '))
        .args(["--variants", "variants", "--variants", VARIANTS])
        .args(["--variants", "tests/fixtures/variants"])
        .args(
            ["--export-json", "found.json", "--export-junit", "found.xml"].map(|word| {
                match word.contains('.') {
                    true => folder.join(word).into_os_string(),
                    false => word.into(),
                }
            }),
        )
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = Running::start(&mut command);
    wait_for("a cell", || !cells(folder).is_empty());
    child
}

/// The cells that are done, as they are written.
fn cells(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("found.json")).unwrap_or_default();
    let found: Value = serde_json::from_str(&text).unwrap_or_default();
    found["cells"].as_array().cloned().unwrap_or_default()
}

#[test]
fn what_was_found_before_an_interruption_is_told_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = begun(folder.path());
    send(Signal::SIGINT, child.id());
    let output = child.output();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("press Ctrl-C again to end now"), "{text}");
    assert!(text.contains("no-sync: race at shared nibbles"), "{text}");
    let left = "37x128x1024";
    assert!(
        text.contains("Interrupted: ") && text.contains(left),
        "{text}"
    );
    let done = cells(folder.path());
    // A cell was examined, or is named as one that was not.
    let left = format!("Interrupted: {} cells not examined", 62 - done.len());
    assert!(text.contains(&left), "{text}");
    assert_eq!(done[0]["hazards"][0]["kind"], "race");
    let junit = fs::read_to_string(folder.path().join("found.xml")).expect("JUnit");
    assert!(junit.contains("skipped"), "{junit}");
}

/// What lies in a file of that name is not what `-` means.
#[test]
fn standard_output_is_told_of_all_cells_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("-"), "mine").expect("a file");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(folder.path())
        .args("sanitize no-sync --schedules 1 --shape 1x128x256,2x128x256".split(' '))
        .args(["--export-json", "-", "--variants"])
        .arg(root.join("variants"))
        .arg("--variants")
        .arg(root.join(VARIANTS))
        .output()
        .expect("dgx");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(found["cells"].as_array().map(Vec::len), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    let first = "sanitize: 2 cells of 1 contender, 1 schedule of each, on 1x128x256, 2x128x256\n";
    assert!(told.contains(first), "{told}");
    let kept = fs::read_to_string(folder.path().join("-"));
    assert_eq!(kept.expect("a file"), "mine");
}

#[test]
fn what_was_found_before_a_kill_is_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    begun(folder.path()).kill();
    let text = fs::read_to_string(folder.path().join("found.json")).expect("JSON");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["cells"][0]["hazards"][0]["kind"], "race");
    let left = found["left"].as_array().expect("a list");
    assert!(
        left.iter().any(|cell| cell["shape"] == "37x128x1024"),
        "{left:?}"
    );
}

#[test]
fn bad_input_is_told_with_a_remedy() {
    for (args, code, words) in [
        (vec!["swapab"], 2, "did you mean `swap-ab`?"),
        (
            vec!["swap-ab", "--schedules", "0"],
            2,
            "write a whole number from 1 to 100000",
        ),
        (
            vec!["swap-ab", "--shape", "40x128"],
            2,
            "`40x128` has 2 sizes, nvfp4-dual-gemm has 3",
        ),
        (
            vec!["swap-ab", "--shape", "40x100x256"],
            2,
            "not a multiple of 128",
        ),
        (
            vec!["stream", "--shape", "40x128x256"],
            2,
            "stream does not take 40x128x256",
        ),
        (
            vec!["swap-ab", "--round-shapes"],
            2,
            "`swap-ab` is not a round",
        ),
        (
            vec!["swap-ab", "--sms", "4"],
            2,
            "--sms needs --shape or --round-shapes",
        ),
        (vec!["nowhere.toml"], 2, "nowhere.toml"),
    ] {
        let output = sanitize(&args);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
}

#[test]
fn what_is_racy_has_counters_whichever_call_comes_first() {
    for seed in ["1", "2", "3", "4"] {
        let sweep = Sweep::new(
            "question   = \"Is it counted?\"
contenders = [\"staged\", \"past-k\", \"no-fence\"]
baseline   = \"staged\"
shapes     = [{ name = \"s\", m = 3, n = 128, k = 256 }]
",
        );
        let folders = ["--variants", "variants", "--variants", VARIANTS];
        let round = sweep.round();
        let words = [&[round.as_str(), "--data-seed", seed], &folders[..]].concat();
        sweep.run(&words, 0);
        let run = sweep.run_file().expect("a run file");
        let text = fs::read_to_string(&run).expect("text");
        let verdicts = text
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
        let racy: Vec<Value> = verdicts.filter(|l| l["status"] == "racy").collect();
        assert_eq!(racy.len(), 2, "{text}");
        for verdict in racy {
            let counters = verdict["counters"].as_object();
            assert!(counters.is_some_and(|c| !c.is_empty()), "{verdict:#}");
        }
    }
}

#[test]
fn a_sweep_calls_racy_what_is_right_by_luck() {
    let sweep = Sweep::new(
        "question   = \"Is it luck?\"
contenders = [\"staged\", \"past-k\", \"no-fence\"]
baseline   = \"staged\"
shapes     = [{ name = \"s\", m = 3, n = 128, k = 256 }]
[validate]
seed = 1
",
    );
    let folders = ["--variants", "variants", "--variants", VARIANTS];
    let round = sweep.round();
    let text = sweep.run(&[&[round.as_str()], &folders[..]].concat(), 0);
    assert!(
        text.contains("past-k  racy on every shape (as declared): outside-tensor at b2 of group 0"),
        "{text}"
    );
    assert!(
        text.contains("no-fence  racy on every shape (as declared): proxy-fence at shared ring+"),
        "{text}"
    );
    let run = sweep.run_file().expect("a run file");
    let lines = fs::read_to_string(&run).expect("text");
    let racy = |line: &&str| line.contains("\"status\":\"racy\"");
    let racy: Vec<Value> = lines
        .lines()
        .filter(racy)
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    assert_eq!(racy.len(), 2);
    for verdict in racy {
        assert_eq!(
            verdict["hazards"].as_array().map(Vec::len),
            Some(1),
            "{verdict:#}"
        );
    }
    // Who looks away sees nothing, and the run says so.
    let unwatched = Sweep::new(&fs::read_to_string(sweep.round()).expect("the round"));
    let round = unwatched.round();
    let off = [&[round.as_str(), "--hazards", "off"], &folders[..]].concat();
    let text = unwatched.run(&off, 0);
    assert!(!text.contains("racy"), "{text}");
}
