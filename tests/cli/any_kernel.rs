//! Kernels of any operator: what their results may not depend on, and the commands that work with
//! them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::running::Running;
use crate::workspace::{Workspace, wait_for};

const SCALE: &str = "summary = \"y = alpha x\"
sizes = [\"n\"]
small = [{ n = 256 }, { n = 1000 }]
const = { alpha = 1.75 }
[in.x]
type = \"f32\"
size = [\"n\"]
[out.y]
type = \"f32\"
size = [\"n\"]
value = \"x * alpha\"
";

/// A kernel that computes `v` and stores `stored`.
fn scaling(stored: &str, more: &str) -> String {
    format!(
        "/*dgx\nsummary = \"scales\"\narch = \"sm_90a\"\n{more}\n\
         [[scratch]]\nname = \"s\"\nper = \"call\"\nbytes = \"4 * sum(n)\"\n\
         [[launch]]\nkernel = \"scale\"\ngrid = \"cdiv(n, 128)\"\nblock = 128\n\
         args = [\"x\", \"y\", \"s\", \"n\", \"alpha\"]\n*/\n\
         __global__ void scale(const float* x, float* y, unsigned* s, int n, float alpha) {{\n  \
         int i = blockIdx.x * 128 + threadIdx.x;\n  if (i >= n) return;\n  \
         float v = x[i] * alpha;\n  {stored}\n}}\n"
    )
}

fn round(operator: &str, contenders: &[&str]) -> String {
    let (list, first) = (format!("{contenders:?}"), contenders[0]);
    let sizes = match operator {
        "scale" => "{ n = 256 }, { n = 1000 }",
        _ => "{ m = 16, n = 256 }, { m = 3, n = 1000 }, { m = 1, n = 64 }",
    };
    format!(
        "operator = \"{operator}\"\nquestion = \"Is it right?\"\ncontenders = {list}\n\
         baseline = \"{first}\"\nshapes = [{sizes}]\n[validate]\nseed = 1\n"
    )
}

/// A folder with the operator `scale` and one design of it.
fn scale() -> Workspace {
    let workspace = Workspace::empty();
    workspace.write("operators/scale.toml", SCALE);
    workspace.write("variants/scale/good.cu", &scaling("y[i] = v;", ""));
    workspace.write("round.toml", &round("scale", &["good"]));
    workspace
}

fn ends(workspace: &Workspace, words: &[&str], code: u8) -> String {
    let text = workspace.run(words);
    assert!(text.ends_with(&format!("[exit {code}]")), "{text}");
    text
}

#[test]
fn what_nobody_wrote_and_where_buffers_lie_decides_nothing() {
    let workspace = scale();
    let wrong = [
        ("larger", "y[i] = fmaxf(y[i], v);"),
        ("smaller", "y[i] = fminf(y[i], v);"),
        ("not-zero", "y[i] = y[i] == 0.0f ? 0.0f : v;"),
        ("marked", "y[i] = s[i] ? v : 0.0f;"),
        ("least", "y[i] = atomicMin(&s[i], 7u) < 7u ? 0.0f : v;"),
        ("inputs-first", "y[i] = x < y ? v : 0.0f;"),
        ("outputs-first", "y[i] = x > y ? v : 0.0f;"),
    ];
    for (name, stored) in wrong {
        let text = scaling(stored, "expect = \"wrong\"");
        workspace.write(&format!("variants/scale/{name}.cu"), &text);
    }
    let names: Vec<&str> = ["good"].into_iter().chain(wrong.map(|(n, _)| n)).collect();
    workspace.write("round.toml", &round("scale", &names));
    // 0 only if each has the status that it declares.
    ends(&workspace, &["sweep", "round.toml", "--backend", "emu"], 0);
}

#[test]
fn another_epsilon_than_the_operators_is_wrong() {
    let workspace = Workspace::empty();
    let norm = |eps: &str, more: &str| {
        format!(
            "/*dgx\nsummary = \"a thread for each row\"\narch = \"sm_90a\"\n{more}\n\
             [[launch]]\nkernel = \"norm\"\ngrid = \"m\"\nblock = 1\n\
             args = [\"x\", \"w\", \"y\", \"n\", {eps}]\n*/\n#include <cuda_bf16.h>\n\
             using bf16 = __nv_bfloat16;\n\
             __global__ void norm(const bf16* x, const bf16* w, bf16* y, int n, float eps) {{\n  \
             x += blockIdx.x * n, y += blockIdx.x * n;\n  float sum = 0;\n  \
             for (int i = 0; i < n; ++i) sum += float(x[i]) * float(x[i]);\n  \
             float r = rsqrtf(sum / n + eps);\n  \
             for (int i = 0; i < n; ++i) y[i] = bf16(float(x[i]) * r * float(w[i]));\n}}\n"
        )
    };
    workspace.write("variants/rms-norm/right.cu", &norm("\"eps\"", ""));
    for (name, eps) in [("two", "2e-5"), ("large", "1e-3"), ("none", "1e-30")] {
        let text = norm(eps, "expect = \"wrong\"");
        workspace.write(&format!("variants/rms-norm/{name}.cu"), &text);
    }
    let names = ["right", "two", "large", "none"];
    workspace.write("round.toml", &round("rms-norm", &names));
    ends(&workspace, &["sweep", "round.toml", "--backend", "emu"], 0);
}

#[test]
fn a_design_of_any_operator_is_begun_from_and_dispatched() {
    let workspace = scale();
    let text = ends(&workspace, &["new", "mine", "--from", "good"], 0);
    assert!(text.contains("wrote variants/scale/mine.cu"), "{text}");
    let text = ends(&workspace, &["sweep", "mine", "--backend", "emu"], 0);
    assert!(text.contains("validate 4/4 ok"), "{text}");
    let run = fs::read_dir(workspace.path().join("results")).expect("results");
    let mut runs = run.map(|file| file.expect("a file").path());
    let run = runs.find(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let run = run.expect("a run");
    let text = ends(&workspace, &["dispatch", run.to_str().expect("a path")], 0);
    assert!(text.contains("nothing was written"), "{text}");
    // A front matter beside the source, which lies in another folder.
    let design = scaling("y[i] = v;", "");
    let (matter, code) = design.split_once("*/\n").expect("both");
    let code = format!("#include <cuda_fp16.h>\n#include \"near.h\"\n{code}");
    workspace.write("variants/scale/theirs/k.cu", &code);
    workspace.write("variants/scale/theirs/near.h", "#define NEAR 1\n");
    let matter = matter.trim_start_matches("/*dgx\n");
    let matter = format!("source = \"theirs/k.cu\"\n{matter}");
    workspace.write("variants/scale/beside.toml", &matter);
    let text = ends(
        &workspace,
        &["new", "own", "--from", "beside", "--operator", "scale"],
        0,
    );
    assert!(text.contains("wrote variants/scale/own.toml"), "{text}");
    assert!(!workspace.read("variants/scale/own.toml").contains("source"));
    // Of the headers, those that are the design's.
    assert_eq!(
        workspace.read("variants/scale/own-near.h"),
        "#define NEAR 1\n"
    );
    assert_eq!(text.matches("wrote ").count(), 4, "{text}");
    let text = ends(&workspace, &["sweep", "own", "--backend", "emu"], 0);
    assert!(text.contains("validate 4/4 ok"), "{text}");
    let text = ends(
        &workspace,
        &["new", "next", "--from", "god", "--operator", "scale"],
        2,
    );
    assert!(text.contains("did you mean `good`?"), "{text}");
}

#[test]
fn kernels_of_namespaces_are_found_by_their_names() {
    let workspace = scale();
    let code = scaling("y[i] = v;", "");
    let inside = |space: &str, kernel: &str| {
        let code = code.replace("__global__", &format!("namespace {space} {{\n__global__"));
        format!("{}}}\n", code.replace("\"scale\"", &format!("{kernel:?}")))
    };
    workspace.write("variants/scale/unnamed.cu", &inside("", "scale"));
    workspace.write("variants/scale/short.cu", &inside("a::b", "scale"));
    workspace.write("variants/scale/long.cu", &inside("a::b", "a::b::scale"));
    workspace.write("round.toml", &round("scale", &["unnamed", "short", "long"]));
    let text = ends(&workspace, &["sweep", "round.toml", "--backend", "emu"], 0);
    assert!(text.contains("validate 6/6 ok"), "{text}");
}

/// A design with a header from elsewhere.
fn including(workspace: &Workspace) {
    let code = scaling("y[i] = SIGN * v;", "include = [\"../../elsewhere\"]");
    let code = code.replace("__global__", "#include <sign.h>\n__global__");
    workspace.write("variants/scale/good.cu", &code);
    workspace.write("elsewhere/sign.h", "#define SIGN 1\n");
}

#[test]
fn folders_of_headers_are_inherited_and_other_variants_are_no_headers() {
    let workspace = scale();
    including(&workspace);
    let heir = "/*dgx\nsummary = \"the same\"\nextend = \"good\"\n*/\n#include <sign.h>\n\
        __global__ void scale(const float* x, float* y, unsigned* s, int n, float alpha) {\n  \
        int i = blockIdx.x * 128 + threadIdx.x;\n  if (i < n) y[i] = SIGN * x[i] * alpha;\n}\n";
    workspace.write("variants/scale/heir.cu", heir);
    workspace.write("round.toml", &round("scale", &["good", "heir"]));
    let text = ends(&workspace, &["sweep", "round.toml", "--backend", "emu"], 0);
    assert!(text.contains("validate 4/4 ok"), "{text}");
    let own = heir.replace("extend", "include = [\".\"]\nextend");
    let own = own.replace("<sign.h>", "<good.cu>");
    workspace.write("variants/scale/heir.cu", &own);
    let text = ends(&workspace, &["sweep", "round.toml", "--backend", "emu"], 3);
    assert!(text.contains("good.cu"), "{text}");
}

#[test]
fn watch_sees_headers_that_lie_elsewhere() {
    let workspace = scale();
    including(&workspace);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .current_dir(workspace.path())
        .env("NO_COLOR", "1")
        .env("DGX_CACHE", workspace.path().join("cache"))
        .args([
            "watch",
            "round.toml",
            "--runs",
            "2",
            "--",
            "--backend",
            "emu",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut lines = BufReader::new(child.stderr.take().expect("its words")).lines();
    let mut until = |word: &str| {
        let mut lines = lines.by_ref().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(word)), "never said {word:?}");
    };
    until("exit 0; waiting for a change in");
    workspace.write("elsewhere/sign.h", "#define SIGN -1\n");
    until("changed: good");
    wait_for("its end", || child.try_wait().expect("a child").is_some());
}

#[test]
fn a_cache_that_cannot_be_written_stops_nothing() {
    let workspace = scale();
    workspace.write("file", "");
    let below = workspace.path().join("file/cache");
    let variables = [("DGX_CACHE", below.to_str().expect("a path"))];
    let text = workspace.run_with(&["sweep", "round.toml", "--backend", "emu"], &variables);
    assert!(text.ends_with("[exit 0]"), "{text}");
    assert_eq!(text.matches("cannot be written").count(), 1, "{text}");
    assert!(text.contains("DGX_CACHE names another folder"), "{text}");
}
