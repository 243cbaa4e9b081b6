//! `ptx-conformance`: list the cases, print one's PTX, or record goldens on a GPU.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ptx_conformance::replay::{self, Verdict};
use ptx_conformance::{Case, families, record};
use ptx_emu::MmaMode;

const USAGE: &str = "\
usage: ptx-conformance list                 the cases, one a line, with their forms
       ptx-conformance emit --out DIR       each case's PTX as a file
       ptx-conformance record --out DIR     run all cases on the GPU and store goldens
                              [--only GROUP]       … of one golden file
       ptx-conformance check [PART]         replay the goldens in the emulator (names with PART)
       ptx-conformance check --goldens DIR  … those that `record` has left there
       ptx-conformance explain NAME         a case's PTX and its first differing elements";

/// Writes a line; whoever reads may have enough of them, as `head` has.
macro_rules! say {
    ($($line:tt)*) => {
        if writeln!(std::io::stdout(), $($line)*).is_err() {
            std::process::exit(0);
        }
    };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["list"] => list(),
        ["emit", "--out", folder] => emit(Path::new(folder)),
        ["record", "--out", folder] => record_goldens(Path::new(folder), None),
        ["record", "--out", folder, "--only", group] => {
            record_goldens(Path::new(folder), Some(group))
        }
        ["check"] => check(""),
        ["check", "--goldens", folder] => check_recorded(Path::new(folder)),
        ["check", part] => check(part),
        ["explain", name] => explain(name),
        ["worker", family, first] => work(family, first),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn list() -> Result<ExitCode, String> {
    let mut forms = std::collections::BTreeSet::new();
    for family in families::FAMILIES {
        for case in (family.cases)() {
            say!("{}\t{}\t{}", family.name, case.name, case.forms.join(" "));
            forms.extend(case.forms);
        }
    }
    eprintln!("{} forms", forms.len());
    Ok(ExitCode::SUCCESS)
}

fn emit(folder: &Path) -> Result<ExitCode, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (index, case) in families::all().iter().enumerate() {
        let name: String = case
            .name
            .chars()
            .map(|c| {
                if c.is_alphanumeric() || ".-_".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        std::fs::write(folder.join(format!("{index:04}-{name}.ptx")), &case.ptx).map_err(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(part: &str) -> Result<ExitCode, String> {
    let goldens = replay::read_goldens(&goldens_folder()).map_err(|e| e.to_string())?;
    Ok(tell(&replay::replay(&goldens, part, MmaMode::Exact)))
}

fn check_recorded(folder: &Path) -> Result<ExitCode, String> {
    let goldens = replay::read_recorded(folder).map_err(|e| e.to_string())?;
    if goldens.is_empty() {
        let folder = folder.display();
        return Err(format!(
            "{folder}: no goldens; `record --out {folder}` writes them"
        ));
    }
    Ok(tell(&replay::replay_recorded(&goldens, "", MmaMode::Exact)))
}

/// What disagrees, and how many do and do not.
fn tell(verdicts: &[(Case, Verdict)]) -> ExitCode {
    let mut bad = 0;
    let mut exact = 0;
    let mut unanswered = 0;
    for (case, verdict) in verdicts {
        exact += usize::from(matches!(verdict, Verdict::Agrees { exact: true }));
        unanswered += usize::from(matches!(verdict, Verdict::Unanswered));
        if verdict.fails() {
            bad += 1;
            say!("{}: {verdict}", case.name);
        }
    }
    eprintln!(
        "{} cases: {exact} bit for bit, {} within tolerance, {bad} disagree, {unanswered} of {} \
         forms run that no card has answered",
        verdicts.len(),
        verdicts.len() - exact - bad - unanswered,
        replay::unanswered_forms(verdicts)
    );
    ExitCode::from(u8::from(bad > 0))
}

fn explain(name: &str) -> Result<ExitCode, String> {
    let case = families::all()
        .into_iter()
        .find(|case| case.name == name)
        .ok_or_else(|| format!("no case is called `{name}`; `ptx-conformance list` shows them"))?;
    let goldens = replay::read_goldens(&goldens_folder()).map_err(|e| e.to_string())?;
    say!("{}", case.ptx);
    for line in replay::explain(&case, goldens.get(name)) {
        say!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn goldens_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens")
}

fn record_goldens(folder: &Path, only: Option<&str>) -> Result<ExitCode, String> {
    let started = std::time::Instant::now();
    let summary = record::record(folder, only).map_err(|e| e.to_string())?;
    for (name, message) in &summary.failed {
        eprintln!("failed: {name}: {message}");
    }
    eprintln!(
        "{} cases recorded, {} failed, in {:.1} s",
        summary.recorded,
        summary.failed.len(),
        started.elapsed().as_secs_f64()
    );
    Ok(if summary.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn work(family: &str, first: &str) -> Result<ExitCode, String> {
    let first = first
        .parse()
        .map_err(|_| format!("`{first}` is not a case index"))?;
    record::work(family, first).map_err(|e| e.to_string())?;
    Ok(ExitCode::SUCCESS)
}
