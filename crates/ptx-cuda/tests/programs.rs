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

/// Compiles a program.
fn compile(name: &str, folder: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = folder.join(name);
    let out = Command::new(nvcc())
        .args(["-arch=compute_90", "-lineinfo", "-std=c++17"])
        .arg(source.join(name).with_extension("cu"))
        .arg("-o")
        .arg(&program)
        .args(flags)
        .output()
        .expect("nvcc starts");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    program
}

/// A folder with the libraries.
fn libraries() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let here = std::env::current_exe().expect("a test has a path");
    let library = std::fs::read(here.with_file_name("libptx_cuda.so")).expect("the library");
    ptx_cuda::library::prepare(folder.path(), &library).expect("the libraries");
    folder
}

/// Runs a program that uses the shared runtime, which it finds by name alone: whether the toolkit
/// has its file does not matter.
fn run(name: &str) -> Output {
    let folder = libraries();
    std::os::unix::fs::symlink("libcuda.so.1", folder.path().join("libcudart.so")).expect("a link");
    let path = folder.path().to_str().expect("a plain path");
    let program = compile(
        name,
        folder.path(),
        &["-cudart", "none", "-L", path, "-lcudart"],
    );
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

#[test]
#[ignore = "needs nvcc: scripts/test-programs"]
fn a_runtime_inside_the_program_is_replaced_unless_it_is_stripped() {
    let folder = libraries();
    let compiler = nvcc();
    let toolkit = compiler.parent().and_then(Path::parent);
    let archives = toolkit.expect("nvcc lies in bin").join("lib");
    let program = compile(
        "vector",
        folder.path(),
        &["-L", archives.to_str().expect("a plain path")],
    );
    let start = || {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", folder.path());
        command.env(ptx_cuda::TARGET, "no device");
        command.env("LD_PRELOAD", folder.path().join(ptx_cuda::library::DRIVER));
        let out = command.output().expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (out.status.success(), text(out.stdout) + &text(out.stderr))
    };
    let (success, said) = start();
    assert!(success && said.contains("right"), "{said}");
    assert!(
        said.contains("describes no device"),
        "the environment: {said}"
    );
    let stripped = Command::new("strip").arg(&program).status();
    assert!(stripped.expect("strip runs").success());
    let (success, said) = start();
    assert!(
        !success && said.contains("do not strip the program"),
        "{said}"
    );
}
