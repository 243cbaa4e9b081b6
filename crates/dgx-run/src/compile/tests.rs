//! Compiling processes that are reused, simulated by a script.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::*;

/// Answers every order: one with `waits` late and without computing, one with `spins` never. A
/// process that has served before has no memory left for a source with `large` and dies of one with
/// `fatal`; no process has enough for one with `bomb`.
const SCRIPT: &str = r#"#!/bin/sh
echo started >> "$0.log"
echo '"ready"'
served=no
while read -r order; do
  case "$served $order" in
    "yes "*fatal*) exit 1 ;;
    "yes "*large* | *bomb*) echo '{"refused":{"ptx":"","log":"catastrophic error: out of memory"}}' ;;
    "yes "*picky*) echo '{"failed":{"reason":"NVRTC_ERROR_OUT_OF_MEMORY"}}' ;;
    *waits*) sleep 1; echo '{"compiled":{"cubin":0,"ptx":"","log":""}}' ;;
    *spins*) while :; do :; done ;;
    *wrong*) echo '{"refused":{"ptx":"","log":"a.cu(1): error: no"}}' ;;
    *) echo '{"compiled":{"cubin":0,"ptx":"","log":""}}' ;;
  esac
  served=yes
done
"#;

fn compiler(folder: &Path) -> Compiler {
    let program = folder.join("compiler");
    // Written by another process: a child forked here in the meantime would hold the file open for
    // writing, and it could not be run.
    let mut writing = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(&program)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = writing.stdin.take().unwrap();
    stdin.write_all(SCRIPT.as_bytes()).unwrap();
    drop(stdin);
    assert!(writing.wait().unwrap().success());
    Compiler {
        nvrtc: Nvrtc::find().unwrap(),
        cache: Cache::open(&folder.join("cache")).unwrap(),
        program,
        limits: CompileLimits::default(),
        idle: Mutex::default(),
        python: std::sync::OnceLock::new(),
    }
}

fn outcome(compiler: &Compiler, source: &str) -> Result<(), String> {
    let unit = TranslationUnit {
        name: "a.cu".to_owned(),
        source: source.into(),
        arch: "sm_90a".to_owned(),
        flags: Vec::new(),
        defines: Vec::new(),
        headers: Arc::default(),
        compiler: CompilerKind::Nvrtc,
        kernels: Vec::new(),
    };
    compiler.compile(&unit).unwrap().outcome.map(|_| ())
}

/// A busy machine is not the source's fault: the CPU time of the compiler counts.
#[test]
fn the_time_limit_counts_computing_and_says_how_to_raise_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut compiler = compiler(folder.path());
    compiler.limits.time = Duration::from_millis(300);
    assert_eq!(outcome(&compiler, "waits"), Ok(()));
    let told = "a.cu: error: the compiler was stopped after 0.3 s of computing; \
                --compile-timeout SECONDS allows more";
    assert_eq!(outcome(&compiler, "spins"), Err(told.to_owned()));
}

/// How many processes these sources need one after the other, and the result of the last.
fn after_others(sources: &[&str]) -> (usize, Result<(), String>) {
    let folder = tempfile::tempdir().unwrap();
    let compiler = compiler(folder.path());
    let mut last = Ok(());
    for source in sources {
        last = outcome(&compiler, source);
    }
    let log = fs::read_to_string(folder.path().join("compiler.log")).unwrap();
    (log.lines().count(), last)
}

#[test]
fn a_unit_does_not_pay_for_its_predecessors() {
    assert_eq!(after_others(&["one", "two"]), (1, Ok(())));
    for needy in ["large", "fatal", "picky"] {
        assert_eq!(after_others(&["one", needy]), (2, Ok(())), "{needy}");
    }
    // A fresh process has no earlier heap: its answer counts.
    let (processes, bomb) = after_others(&["bomb"]);
    assert!(bomb.unwrap_err().contains("out of memory"));
    assert_eq!(processes, 1);
    let (processes, bomb) = after_others(&["one", "bomb"]);
    assert!(bomb.unwrap_err().contains("out of memory"));
    assert_eq!(processes, 2);
    // An error is an error in any process.
    let (processes, wrong) = after_others(&["one", "wrong"]);
    assert!(wrong.is_err());
    assert_eq!(processes, 1);
}
