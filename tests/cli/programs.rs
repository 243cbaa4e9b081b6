//! `dgx run`: a program's exit code is dgx's, and Python's ctypes is a program that needs no nvcc.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.env("NO_COLOR", "1").arg("run").args(args);
    command.output().expect("dgx runs")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_programs_exit_code_is_passed_on() {
    let ended = run(&["sh", "-c", "exit 7"]);
    assert_eq!(ended.status.code(), Some(7));
    assert_eq!(errors(&ended), "no kernel was launched\n");
    let killed = run(&["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(137));
    let absent = run(&["./none"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(errors(&absent).contains("./none cannot be started"));
}

#[test]
fn nvrtc_gives_ptx_in_place_of_machine_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("nvrtc.c");
    let text = "int nvrtcGetPTXSize(void *p, long *n) { *n = 425; return 0; }\n\
                int nvrtcGetCUBINSize(void *p, long *n) { *n = 3440; return 0; }\n";
    std::fs::write(&source, text).expect("a source");
    let library = folder.path().join("libnvrtc.so.13");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-Wl,-soname,libnvrtc.so.13", "-o"]);
    let made = compile.arg(&library).arg(&source).status().expect("cc");
    assert!(made.success());
    let program = "import ctypes; c = ctypes.CDLL('libnvrtc.so.13'); n = ctypes.c_long(); \
                   print(c.nvrtcGetCUBINSize(None, ctypes.byref(n)), n.value)";
    let output = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .args(["run", "python3", "-c", program])
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("dgx runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 425\n");
}

#[test]
fn what_is_not_supported_is_named_once() {
    let program = "import ctypes; c = ctypes.CDLL('libcudart.so.13'); \
                   n = ctypes.c_int(); assert c.cudaGetDeviceCount(ctypes.byref(n)) == 0; \
                   print(n.value, c.cudaMallocMipmappedArray(), c.cudaMallocMipmappedArray())";
    let output = run(&["python3", "-c", program]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 801 801\n");
    let errors = errors(&output);
    let said = "dgx: cudaMallocMipmappedArray is not supported\n";
    assert_eq!(errors.matches(said).count(), 1, "{errors}");
    assert!(
        errors.ends_with("not supported: cudaMallocMipmappedArray\n"),
        "{errors}"
    );
}
