//! CUDA programs that nvcc compiled, run as a user runs them. `scripts/test-programs` gets an nvcc
//! and runs these tests; NVCC may name another.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The toolkit's compiler.
fn nvcc() -> PathBuf {
    let named = std::env::var_os("NVCC").map(PathBuf::from);
    let found = named.unwrap_or_else(|| PathBuf::from("nvcc"));
    let answers = Command::new(&found).arg("--version").output();
    let works = answers.is_ok_and(|out| out.status.success());
    assert!(
        works,
        "{} does not run: set NVCC to one that does",
        found.display()
    );
    found
}

/// Compiles a program for the shared runtime, which it then finds by name alone: whether the
/// toolkit has its file does not matter.
fn compile(nvcc: &Path, name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = folder.join(name);
    std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcudart.so")).expect("a link");
    let out = Command::new(nvcc)
        .args([
            "-arch=compute_90",
            "-cudart",
            "none",
            "-lineinfo",
            "-std=c++17",
        ])
        .arg(source.join(name).with_extension("cu"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(folder)
        .arg("-lcudart")
        .output()
        .expect("nvcc starts");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    program
}

fn run(name: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let here = std::env::current_exe().expect("a test has a path");
    let library = std::fs::read(here.with_file_name("libptx_cuda.so")).expect("the library");
    ptx_cuda::library::prepare(folder.path(), &library).expect("the libraries");
    let program = compile(&nvcc(), name, folder.path());
    Command::new(program)
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("it starts")
}

fn assert_right(name: &str) {
    let out = run(name);
    let text = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.success() && text.contains("right"),
        "{text}\n{errors}"
    );
    assert_eq!(errors, "");
}

#[test]
#[ignore = "needs nvcc: scripts/test-programs"]
fn streams_events_and_symbols() {
    assert_right("vector");
}

#[test]
#[ignore = "needs nvcc: scripts/test-programs"]
fn cooperation_clusters_and_graphs() {
    assert_right("cooperative");
}
