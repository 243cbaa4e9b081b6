//! `ptx-conformance`: list the cases, print one's PTX, or record goldens on a GPU.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ptx_conformance::replay::{self, Verdict};
use ptx_conformance::{Case, families, forms, record};
use ptx_emu::MmaMode;

const USAGE: &str = "\
usage: ptx-conformance list                 the cases, one a line, with their forms
       ptx-conformance forms                the forms of instructions that goldens speak for
       ptx-conformance emit --out DIR       each case's PTX as a file
       ptx-conformance record --out DIR     run all cases on the GPU and store goldens
                              [--only GROUP]       … of one golden file
       ptx-conformance check [PART]         replay the goldens in the emulator (names with PART)
       ptx-conformance check --goldens DIR  … those that `record` has left there
       ptx-conformance explain NAME         a case's PTX and its first differing elements";

/// Why a command ends before its end.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// Whoever reads has enough, as `head` has.
    Enough,
    Failed(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

type Outcome = Result<ExitCode, Stop>;

/// Writes a line.
fn say(out: &mut impl Write, line: impl Display) -> Result<(), Stop> {
    writeln!(out, "{line}").map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Stop::Enough,
        _ => Stop::Failed(format!("standard output: {error}")),
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["list"] => list(),
        ["forms"] => list_forms(),
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
        _ => Err(Stop::Failed(USAGE.to_owned())),
    };
    match outcome {
        Ok(code) => code,
        Err(Stop::Enough) => ExitCode::SUCCESS,
        Err(Stop::Failed(message)) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn list() -> Outcome {
    let mut forms = std::collections::BTreeSet::new();
    for family in families::FAMILIES {
        for case in (family.cases)() {
            let forms_of = case.forms.join(" ");
            say(
                &mut stdout(),
                format_args!("{}\t{}\t{forms_of}", family.name, case.name),
            )?;
            forms.extend(case.forms);
        }
    }
    eprintln!("{} forms", forms.len());
    Ok(ExitCode::SUCCESS)
}

fn list_forms() -> Outcome {
    let goldens = replay::read_goldens(&goldens_folder()).map_err(|e| e.to_string())?;
    let forms = forms::recorded(&families::all(), &goldens);
    say(&mut stdout(), forms.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn emit(folder: &Path) -> Outcome {
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

fn check(part: &str) -> Outcome {
    let goldens = replay::read_goldens(&goldens_folder()).map_err(|e| e.to_string())?;
    Ok(tell(
        &mut stdout(),
        &replay::replay(&goldens, part, MmaMode::Exact),
    ))
}

fn check_recorded(folder: &Path) -> Outcome {
    let goldens = replay::read_recorded(folder).map_err(|e| e.to_string())?;
    if goldens.is_empty() {
        let folder = folder.display();
        return Err(Stop::Failed(format!(
            "{folder}: no goldens; `record --out {folder}` writes them"
        )));
    }
    Ok(tell(
        &mut stdout(),
        &replay::replay_recorded(&goldens, "", MmaMode::Exact),
    ))
}

/// What disagrees, and how many do and do not: the verdict is the same whoever hears of it.
fn tell(out: &mut impl Write, verdicts: &[(Case, Verdict)]) -> ExitCode {
    let mut bad = 0;
    let mut exact = 0;
    let mut unanswered = 0;
    let mut said = Ok(());
    for (case, verdict) in verdicts {
        exact += usize::from(matches!(verdict, Verdict::Agrees { exact: true }));
        unanswered += usize::from(matches!(verdict, Verdict::Unanswered));
        if verdict.fails() {
            bad += 1;
            said = said.and(say(out, format_args!("{}: {verdict}", case.name)));
        }
    }
    if let Err(Stop::Failed(why)) = said {
        eprintln!("{why}");
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

fn explain(name: &str) -> Outcome {
    let case = families::all()
        .into_iter()
        .find(|case| case.name == name)
        .ok_or_else(|| format!("no case is called `{name}`; `ptx-conformance list` shows them"))?;
    let goldens = replay::read_goldens(&goldens_folder()).map_err(|e| e.to_string())?;
    say(&mut stdout(), &case.ptx)?;
    for line in replay::explain(&case, goldens.get(name)) {
        say(&mut stdout(), line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn goldens_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens")
}

fn record_goldens(folder: &Path, only: Option<&str>) -> Outcome {
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

fn work(family: &str, first: &str) -> Outcome {
    let first = first
        .parse()
        .map_err(|_| format!("`{first}` is not a case index"))?;
    record::work(family, first).map_err(|e| e.to_string())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_may_have_enough_and_a_disk_may_not() {
        let told = |kind| say(&mut Broken(kind), "a line");
        assert_eq!(told(ErrorKind::BrokenPipe), Err(Stop::Enough));
        let full = told(ErrorKind::StorageFull);
        assert!(matches!(&full, Err(Stop::Failed(why)) if why.starts_with("standard output: ")));
    }

    #[test]
    fn what_disagrees_does_so_whoever_hears_of_it() {
        let family = families::find("narrow_mma").expect("a family");
        let cases = (family.cases)().into_iter();
        let verdicts: Vec<(Case, Verdict)> = cases.map(|case| (case, Verdict::Missing)).collect();
        for kind in [ErrorKind::BrokenPipe, ErrorKind::StorageFull] {
            let code = tell(&mut Broken(kind), &verdicts);
            assert_eq!(code, ExitCode::from(1), "{kind}");
        }
        let mut heard = Vec::new();
        assert_eq!(tell(&mut heard, &verdicts), ExitCode::from(1));
        assert!(String::from_utf8_lossy(&heard).contains("has no golden: record it"));
    }
}
