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
