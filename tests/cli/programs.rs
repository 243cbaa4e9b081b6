//! `dgx run` exits with the program's exit code. The programs here use Python's ctypes, which needs
//! no nvcc.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

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
    let unknown = run(&["README.md"]);
    assert_eq!(unknown.status.code(), Some(2));
    let told = errors(&unknown);
    assert!(
        told.contains("there is no program README.md in PATH"),
        "{told}"
    );
    assert!(told.contains("write ./README.md for a file here"), "{told}");
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

/// Launches a kernel through the driver API, then ends as it likes.
const LAUNCHES: &str = r#"
import ctypes, os
ptx = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry _Z5scaleILi2EEvPf(.param .u64 p)
{
    .reg .b64 %d<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %d0, [p];
    ld.global.f32 %f0, [%d0];
    add.rn.f32 %f1, %f0, %f0;
    ex2.approx.f32 %f2, %f1;
    st.global.f32 [%d0], %f2;
    ret;
}
"""
c = ctypes.CDLL("libcuda.so.1")
context, module, function = (ctypes.c_void_p() for _ in range(3))
pointer = ctypes.c_uint64()
assert c.cuInit(0) == 0
assert c.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert c.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert c.cuModuleGetFunction(ctypes.byref(function), module, b"_Z5scaleILi2EEvPf") == 0
assert c.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4)) == 0
assert c.cuMemsetD8_v2(pointer, 0, ctypes.c_size_t(4)) == 0
args = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
for _ in range(3):
    assert c.cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, None, args, None) == 0
"#;

#[test]
fn nothing_is_lost_of_a_program_that_ends_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("launched.json");
    let path = json.to_str().expect("a plain path");
    let program = format!("{LAUNCHES}os._exit(5)\n");
    let output = run(&["--json", path, "python3", "-c", &program]);
    assert_eq!(output.status.code(), Some(5), "{}", errors(&output));
    let said = errors(&output);
    assert!(said.contains("scale<2>"), "{said}");
    let exact = "5 of 6 forms of instructions are tested bit for bit against results of an H200; \
                 1 within the error that PTX allows: ex2.approx.f32\n";
    assert!(said.ends_with(exact), "{said}");
    let text = std::fs::read_to_string(&json).expect("it was written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernel = &document["kernels"][0];
    assert_eq!(kernel["name"], "scale<2>");
    assert_eq!(
        (&kernel["launches"], &kernel["ctas"]),
        (&3.into(), &6.into())
    );
    assert_eq!(kernel["near"], serde_json::json!(["ex2.approx.f32"]));
    assert_eq!(kernel["modelled_micros"], serde_json::Value::Null);
}

#[test]
fn a_search_for_hazards_says_what_it_left_out() {
    let many = LAUNCHES.replace(
        "cuLaunchKernel(function, 2,",
        "cuLaunchKernel(function, 100,",
    );
    let output = run(&["--sanitize", "python3", "-c", &many]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let said = errors(&output);
    let left_out = "every access of 192 of 300 clusters was watched for races\n";
    assert!(said.contains(left_out), "{said}");
}

#[test]
fn a_folder_that_the_loader_cannot_name_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let spaced = folder.path().join("a b");
    std::fs::create_dir(&spaced).expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .args(["run", "true"])
        .env("TMPDIR", &spaced)
        .output()
        .expect("dgx runs");
    assert_eq!(output.status.code(), Some(4));
    assert!(
        errors(&output).contains("set TMPDIR"),
        "{}",
        errors(&output)
    );
}

#[test]
fn a_time_that_cannot_be_modelled_says_why() {
    let output = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .args(["run", "--time", "python3", "-c", LAUNCHES])
        .env("NO_COLOR", "1")
        .env_remove("CUDA_HOME")
        .output()
        .expect("dgx runs");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let said = errors(&output);
    let modelled = said.contains("modelled") && said.contains("bound by");
    assert!(
        modelled || said.contains("no time: there is no ptxas here"),
        "{said}"
    );
    let both = run(&["--time", "--sanitize", "true"]);
    assert_eq!(both.status.code(), Some(2));
}

/// A kernel that runs for hours, launched from Python, which takes no signal meanwhile.
fn endless() -> String {
    let body = "    .reg .b64 %d<2>;\n    .reg .pred %p;\n    mov.u64 %d0, 0;\nagain:\n    \
                add.u64 %d0, %d0, 1;\n    setp.lt.u64 %p, %d0, 1000000000000;\n    \
                @%p bra again;\n    ret;\n";
    let (before, rest) = LAUNCHES.split_once("{\n").expect("a body");
    let (_, after) = rest.split_once("}\n").expect("its end");
    format!("{before}{{\n{body}}}\n{after}")
}

/// `dgx run` of a program in the background, with a folder for temporary files of its own.
fn started(args: &[&str], folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .arg("run")
        .args(args)
        .env("NO_COLOR", "1")
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Tests may run where signals are ignored, as under nohup, and dgx leaves it so.
    let heed = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: the disposition runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls alone.
    unsafe { command.pre_exec(heed) };
    command.spawn().expect("dgx runs")
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Waits until a condition holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(child: &Child, signal: i32) {
    // SAFETY: the process is a child that was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
fn a_launch_that_takes_long_is_stopped_and_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = started(&["python3", "-c", &endless()], folder.path());
    let launched = || {
        let runs = names(folder.path());
        let reports = runs.iter().flat_map(|run| names(&run.join("report")));
        let mut texts = reports.filter_map(|report| std::fs::read_to_string(report).ok());
        texts.any(|text| text.contains("\"line\":\"kernel\""))
    };
    wait_until("a kernel is launched", launched);
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(128 + libc::SIGINT), "{said}");
    assert!(said.contains("scale<2>"), "{said}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_a_program_has_started_ends_with_it() {
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let folder = tempfile::tempdir().expect("a folder");
        let began = folder.path().join("began");
        let program = format!("sleep 1000 & : > {}; wait", began.display());
        let child = started(&["sh", "-c", &program], folder.path());
        wait_until("the program begins", || began.exists());
        send(&child, signal);
        // The pipe of `sleep` ends with it.
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(128 + signal));
        assert_eq!(errors(&output), "no kernel was launched\n");
        assert_eq!(names(folder.path()), [began]);
    }
}

#[test]
fn a_program_may_end_by_itself_when_it_is_asked_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let began = folder.path().join("began");
    let program = format!(
        "trap 'exit 9' INT; : > {}; while :; do sleep 0.1; done",
        began.display()
    );
    let child = started(&["sh", "-c", &program], folder.path());
    wait_until("the program begins", || began.exists());
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(9));
}

#[test]
fn a_folder_that_was_left_is_removed_by_the_next_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let sleeps = ["sleep", "1000"];
    let mut killed = started(&sleeps, folder.path());
    let is_made = || {
        names(folder.path())
            .iter()
            .any(|run| run.join("report").exists())
    };
    wait_until("it has a folder", is_made);
    let left = names(folder.path());
    killed.kill().expect("it runs");
    // The pipe of `sleep` ends with it, and that with dgx.
    killed.wait_with_output().expect("it ends");
    assert_eq!(names(folder.path()), left);
    let lives = started(&sleeps, folder.path());
    wait_until("the other folder goes", || {
        let now = names(folder.path());
        now.len() == 1 && now != left
    });
    wait_until("its program begins", is_made);
    let kept = names(folder.path());
    assert!(started(&["true"], folder.path()).wait().is_ok());
    assert_eq!(names(folder.path()), kept, "its dgx lives");
    send(&lives, libc::SIGTERM);
    lives.wait_with_output().expect("it ends");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_report_that_cannot_be_written_is_no_empty_one() {
    let program = "ulimit -f 0; exec python3 -c \"$0\"";
    let output = run(&["--", "sh", "-c", program, LAUNCHES]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("dgx: what is launched cannot be written to"),
        "{said}"
    );
    assert!(
        said.contains("a part of what was launched is lost"),
        "{said}"
    );
    assert!(!said.contains("no kernel was launched"), "{said}");
}

#[test]
fn one_run_inside_another_is_listed_once() {
    let dgx = env!("CARGO_BIN_EXE_dgx");
    let output = run(&["--", dgx, "run", "python3", "-c", LAUNCHES]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("inside another dgx run"), "{said}");
    assert_eq!(said.matches("scale<2>").count(), 1, "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let began = folder.path().join("began");
    let json = folder.path().join("none").join("x.json");
    let (json, touched) = (json.to_string_lossy(), began.to_string_lossy());
    let output = run(&["--json", &json, "touch", &touched]);
    assert_eq!(output.status.code(), Some(4));
    assert!(errors(&output).contains("name another file with --json"));
    assert!(!began.exists());
}

#[test]
fn launches_that_are_refused_are_not_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("launched.json");
    let refused =
        "assert c.cuLaunchKernel(function, 7, 1, 1, 2000, 1, 1, 0, None, args, None) == 1\n";
    let program = format!("{LAUNCHES}{refused}");
    let output = run(&["--json", &json.to_string_lossy(), "python3", "-c", &program]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let text = std::fs::read_to_string(&json).expect("it was written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernel = &document["kernels"][0];
    let counted = (&kernel["launches"], &kernel["ctas"]);
    assert_eq!(counted, (&3.into(), &6.into()), "{text}");
}

#[test]
fn other_peoples_programs_count_by_what_they_say_without_launches() {
    let checks = r#"
import importlib.machinery, importlib.util, sys
from peer import refusals, runs_all, without_launches

assert without_launches(0, True, False)[0] == "checks nothing"
assert without_launches(1, False, False) == ("verified", "")
assert without_launches(None, False, False)[0] == "undecided"
assert without_launches(139, False, False) == ("verified", "crashes without launches")
assert without_launches(134, False, True) == ("verified", "")
assert without_launches(255, False, False) == ("verified", "")
output = "dgx: kernel _Z1kv cannot run in the emulator: it is odd\n[  PASSED  ] 1 test"
assert refusals(output) == ["a kernel cannot run in the emulator: it is odd"]
assert not runs_all(output) and runs_all("dgx: cuMulticastCreate is not supported")
loader = importlib.machinery.SourceFileLoader("peers", "peers")
peers = importlib.util.module_from_spec(importlib.util.spec_from_loader("peers", loader))
loader.exec_module(peers)
peers.check({"suite": {"program": ["verified", "3 s, -n 4"]}})
try:
    peers.check({"suite": {"program": ["verified", refusals(output)[0]]}})
except SystemExit as ended:
    assert "run it again" in str(ended)
else:
    sys.exit("a verdict that was changed by hand")
"#;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut command = Command::new("python3");
    command.args(["-B", "-c", checks]).current_dir(scripts);
    let output = command.output().expect("python3 runs");
    assert!(output.status.success(), "{}", errors(&output));
}
