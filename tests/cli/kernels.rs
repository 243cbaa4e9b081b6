//! Kernels that were not written for dgx: their own signatures, templates, toolkit headers, PTX,
//! Python.

use std::time::{Duration, Instant};

use crate::workspace::{Workspace, program};

const NORM: &str = "#include <cuda_bf16.h>
template <typename T, int ROWS>
__global__ void norm(const T* x, const T* w, T* y, int m, int n, float eps) {
  int row = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= m) return;
  x += (size_t)row * n, y += (size_t)row * n;
  float sum = 0;
  for (int i = lane; i < n; i += 32) sum += __bfloat162float(x[i]) * __bfloat162float(x[i]);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  float scale = rsqrtf(sum / n + eps);
  for (int i = lane; i < n; i += 32)
    y[i] = __float2bfloat16(__bfloat162float(x[i]) * scale * __bfloat162float(w[i]));
}
";

const MATTER: &str = "summary = \"a warp for each row\"
arch    = \"sm_90a\"
[[launch]]
kernel = \"norm<__nv_bfloat16, 4>\"
grid   = \"cdiv(m, 4)\"
block  = 128
args   = [\"x\", \"w\", \"y\", \"m\", \"n\", \"eps\"]
";

fn round(operator: &str, contender: &str, shapes: &str) -> String {
    format!(
        "operator = \"{operator}\"\nquestion = \"Is it right?\"\ncontenders = [\"{contender}\"]\n\
         baseline = \"{contender}\"\nshapes = [{shapes}]\n[validate]\nseed = 1\n"
    )
}

/// A folder with a norm that is somebody else's.
fn theirs() -> Workspace {
    let workspace = Workspace::empty();
    workspace.write("variants/rms-norm/theirs.cu", NORM);
    workspace.write("variants/rms-norm/theirs.toml", MATTER);
    let shapes = "{ m = 5, n = 256 }, { m = 3, n = 1000 }";
    workspace.write("round.toml", &round("rms-norm", "theirs", shapes));
    workspace
}

#[test]
fn a_template_with_a_toolkit_header_and_its_front_matter_beside_it_is_right() {
    let workspace = theirs();
    let text = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(text.contains("validate 2/2 ok"), "{text}");
    assert!(text.ends_with("[exit 0]"), "{text}");
    // What stands beside it belongs to the contender.
    workspace.edit("variants/rms-norm/theirs.toml", "m, 4)", "m + 0, 4)");
    let again = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(again.contains("validate 2/2 ok"), "{again}");
    workspace.edit(
        "variants/rms-norm/theirs.cu",
        "#include",
        "/*dgx\n*/\n#include",
    );
    let both = workspace.run(&["check", "round.toml"]);
    assert!(both.contains("both have its front matter"), "{both}");
}

/// Each with what is said of it; nothing is ever launched.
#[test]
fn arguments_that_are_not_what_the_kernel_declares_are_refused() {
    let cases = [
        (
            "[\"x\", \"w\", \"y\", \"m\", \"n\"]",
            "takes 6 parameters, and `args` gives 5 (x, w, y, m, n)",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", \"n\", \"eps\", 1]",
            "and `args` gives 7",
        ),
        (
            "[\"x\", \"w\", \"m\", \"y\", \"n\", \"eps\"]",
            "is an integer of 4 bytes, and `args` gives it `y`, a pointer",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", \"eps\", \"n\"]",
            "gives it `eps`, the real number",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { f16 = 1 }, \"eps\"]",
            "a number of type f16",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { struct = [\"m\", \"n\"] }, \"eps\"]",
            "a struct of 8 bytes",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { struct = [{ at = 8 }, \"n\"] }, \"eps\"]",
            "is an integer of 4 bytes, and `args` gives it `{ struct = [{ at = 8 }, \"n\"] }`, a struct of 12 bytes, aligned to 4",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { struct = [\"m\", \"n\", { at = 4 }, \"n\"] }, \"eps\"]",
            "whose members before `{ at = 4 }` end at byte 8",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { at = 4 }, \"eps\"]",
            "`{ at = 4 }` is a place in a struct",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { struct = [{ at = 40000 }] }, \"eps\"]",
            "a kernel's parameters take 32764 bytes at most",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", { struct = [\n\"m\", \"m\", \"m\", \"m\", \"m\", \"m\", \"m\", \"m\", \"m\"] }, \"eps\"]",
            "gives it `{ struct = [ \"m\", \"m\", \"m\", \"m\", \"m\", \"m…`, a struct of 36 bytes",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", \"n * 10000000000\", \"eps\"]",
            "which 32 bits do not hold",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", \"n\", \"epz\"]",
            "did you mean `eps`?",
        ),
        (
            "[\"x\", \"w\", \"y\", \"m\", \"n + k\", \"eps\"]",
            "unknown name `k`",
        ),
        ("[[\"x\"]]", "expected a name, an expression, a number"),
    ];
    let workspace = theirs();
    for (args, told) in cases {
        let at = MATTER.find("[\"x\"").expect("args");
        let matter = format!("{}{args}\n", &MATTER[..at]);
        workspace.write("variants/rms-norm/theirs.toml", &matter);
        // A message is folded, with a bar before what follows.
        let text = workspace.run(&["check", "round.toml"]);
        let text = text.replace("\n  | ", " ");
        assert!(text.contains(told), "{args}: {text}");
    }
}

#[test]
fn a_kernel_that_is_not_there_is_refused_with_those_that_are() {
    let workspace = theirs();
    workspace.write(
        "variants/rms-norm/theirs.cu",
        "__global__ void norm(float* x) {}\n__global__ void norm(int* x) {}\n__global__ void other() {}\n",
    );
    for (kernel, told) in [
        ("norm", "2 kernels are called `norm`: name one of _Z4norm"),
        ("othr", "did you mean `other`?"),
        (
            "lost<4>",
            "`kernel` names lost<4>: identifier \"lost\" is undefined",
        ),
        ("a; b", "cannot be a kernel's name"),
    ] {
        let matter = MATTER.replace("norm<__nv_bfloat16, 4>", kernel);
        workspace.write("variants/rms-norm/theirs.toml", &matter);
        let text = workspace.run(&["check", "round.toml"]);
        assert!(text.contains(told), "{kernel}: {text}");
    }
}

/// With `groups` among them, arguments are arrays.
#[test]
fn a_kernel_of_several_problems_takes_arrays() {
    let workspace = Workspace::empty();
    workspace.write(
        "operators/twice.toml",
        "summary = \"twice x\"\nsizes = [\"m\"]\ngroups = true\nsmall = [{ m = 8 }]\n[in.x]\n\
         type = \"f32\"\nsize = [\"m\"]\n[out.y]\ntype = \"f32\"\nsize = [\"m\"]\nvalue = \"x + x\"\n",
    );
    let source = "/*dgx\nsummary = \"a block for each problem\"\narch = \"sm_90a\"\noperator = \"twice\"\n\
        [[launch]]\nkernel = \"twice\"\ngrid = \"groups\"\nblock = 32\n\
        args = [\"x\", \"y\", \"m\", \"groups\"]\n*/\n\
        __global__ void twice(const float* const* x, float* const* y, const unsigned* m, int groups) {\n\
        if (blockIdx.x < groups) for (unsigned i = threadIdx.x; i < m[blockIdx.x]; i += 32)\n\
        y[blockIdx.x][i] = 2 * x[blockIdx.x][i]; }\n";
    workspace.write("variants/mine.cu", source);
    let shapes = "{ name = \"three\", groups = [{ m = 3 }, { m = 70 }, { m = 1 }] }, { m = 8 }";
    workspace.write("round.toml", &round("twice", "mine", shapes));
    let text = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(text.contains("validate 2/2 ok"), "{text}");
    workspace.edit("variants/mine.cu", ", \"groups\"]", ", 1]");
    let single = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(
        single.contains("takes one problem, and the shape has 3"),
        "{single}"
    );
}

/// PTX that Triton made; `scripts/test-triton` makes it anew.
#[test]
fn ptx_runs_as_it_is() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/variants");
    for (operator, shape) in [
        ("softmax", "{ m = 16, n = 256 }"),
        ("rms-norm", "{ m = 16, n = 256 }"),
        ("f16-gemm", "{ m = 64, n = 128, k = 256 }"),
        ("attention", "{ b = 1, h = 2, s = 128, d = 64 }"),
    ] {
        let workspace = Workspace::empty();
        workspace.write("round.toml", &round(operator, "from-triton", shape));
        let text = workspace.run(&[
            "sweep",
            "round.toml",
            "--backend",
            "emu",
            "--variants",
            fixtures,
        ]);
        assert!(text.contains("validate 1/1 ok"), "{operator}: {text}");
        assert!(text.contains("modelled µs"), "{operator}: {text}");
    }
}

#[test]
fn ptx_that_is_wrong_or_for_another_chip_is_a_row() {
    let workspace = Workspace::empty();
    let ptx = |target: &str, body: &str| {
        format!(
            "/*dgx\nsummary = \"s\"\narch = \"sm_90a\"\n[[launch]]\nkernel = \"k\"\ngrid = 1\nblock = 1\nargs = [\"x\"]\n*/\n\
             .version 8.6\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 x)\n{{\n{body}\nret;\n}}\n"
        )
    };
    workspace.write(
        "round.toml",
        &round("softmax", "mine", "{ m = 16, n = 256 }"),
    );
    for (target, body, told) in [
        ("sm_90a", "nonsense %r1;", "mine.ptx(15): error"),
        ("sm_100a", "", "`arch` is not what the PTX is for, sm_100a"),
    ] {
        workspace.write("variants/softmax/mine.ptx", &ptx(target, body));
        let text = workspace.run(&["check", "round.toml"]);
        assert!(text.contains(told), "{target}: {text}");
    }
}

/// A Python that is missing, has no Triton, prints garbage, dies or never ends.
#[test]
fn a_python_that_does_not_answer_is_a_row_with_a_reason() {
    let workspace = Workspace::empty();
    let source = "\"\"\"dgx\nsummary = \"s\"\narch = \"sm_90a\"\n[[launch]]\nkernel = \"k\"\ngrid = 1\nargs = [\"x\", \"y\"]\n\"\"\"\n";
    workspace.write("variants/softmax/mine.py", source);
    workspace.write(
        "round.toml",
        &round("softmax", "mine", "{ m = 16, n = 256 }"),
    );
    let answers = "case \"$3\" in --version) echo '{\"python\":\"3\",\"executable\":\"p\",\"triton\":\"9\"}'; exit;; esac\n";
    let cases = [
        ("echo '{\"python\":\"3\",\"executable\":\"p\",\"error\":\"p has no triton: pip install triton\"}'".to_owned(), "pip install triton"),
        ("echo garbage".to_owned(), "is no Python 3 that works"),
        (format!("{answers}echo garbage; echo broken >&2; exit 1"), "without an answer; it said: broken"),
        (format!("{answers}sleep 600 & sleep 600"), "was stopped after"),
    ];
    let python = workspace.path().join("python");
    for (script, told) in cases {
        program(&python, &format!("#!/bin/sh\n{script}\n"));
        let began = Instant::now();
        let variables = [("DGX_PYTHON", python.to_str().expect("a plain path"))];
        let text = workspace.run_with(
            &["check", "round.toml", "--compile-timeout", "1"],
            &variables,
        );
        assert!(text.contains(told), "{script}: {text}");
        assert!(began.elapsed() < Duration::from_secs(120), "{script}");
    }
}

#[test]
fn a_signature_is_read_and_its_front_matter_written() {
    let workspace = Workspace::empty();
    workspace.write("theirs.cu", NORM);
    let new = ["new", "mine", "--operator", "rms-norm", "--kernel"];
    let run = |kernel: &str, more: &[&str]| {
        let args: Vec<&str> = new.iter().chain(&[kernel]).chain(more).copied().collect();
        workspace.run(&args)
    };
    let text = run("theirs.cu:nrm", &[]);
    assert!(text.contains("did you mean `norm`?"), "{text}");
    let text = run("theirs.cu", &[]);
    assert!(text.contains("norm is a template"), "{text}");
    assert!(
        text.contains("--kernel 'theirs.cu:norm<float, 4>'"),
        "{text}"
    );
    let text = run("theirs.cu:norm<__nv_bfloat16, 4>", &[]);
    assert!(text.contains("--grid and --block are missing"), "{text}");
    let text = run(
        "theirs.cu:norm<__nv_bfloat16, 4>",
        &["--grid", "cdiv(m, 4)", "--block", "128"],
    );
    assert!(text.ends_with("[exit 0]"), "{text}");
    assert_eq!(workspace.read("variants/rms-norm/mine.cu"), NORM);
    let matter = workspace.read("variants/rms-norm/mine.toml");
    assert!(
        matter.contains("args   = [\"x\", \"w\", \"y\", \"m\", \"n\", \"eps\"]"),
        "{matter}"
    );
    let text = workspace.run(&["sweep", "mine", "--backend", "emu"]);
    assert!(text.contains("validate 2/2 ok"), "{text}");
}

/// As people write them: host code, standard headers, what nvcc includes by itself.
const WHOLE_PROGRAM: &str = "#include <cstdio>
#include <vector>
#include <algorithm>
#include <cublas_v2.h>
#include <torch/types.h>
#include \"scale.h\"

struct Options { std::vector<int> sizes; bool verbose() const { return sizes.size() > 1; } };

DEVICE float reduce(float v) {
  for (int d = 16; d; d /= 2) v = std::max(v, __shfl_xor_sync(~0u, v, d));
  return v;
}

__global__ void softmax(const __half* x, __half* y, uint n) {
  x += (size_t)blockIdx.x * n, y += (size_t)blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (uint i = threadIdx.x; i < n; i += 32) most = fmaxf(most, __half2float(x[i]));
  most = reduce(most);
  for (uint i = threadIdx.x; i < n; i += 32) sum += expf(__half2float(x[i]) - most);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (uint i = threadIdx.x; i < n; i += 32)
    y[i] = __float2half(expf(__half2float(x[i]) - most) / sum * SCALE);
}

int main(int argc, char** argv) {
  std::vector<float> host(argc);
  softmax<<<1, 32>>>(nullptr, nullptr, argc);
  printf(\"%zu } %s\\n\", host.size(), argv[0]);
}
";

#[test]
fn a_whole_program_of_somebody_else_runs_as_it_is() {
    let workspace = Workspace::empty();
    let folder = "variants/softmax/theirs/src";
    workspace.write(&format!("{folder}/softmax_forward.cu"), WHOLE_PROGRAM);
    let header = "#pragma once\n#include <cuda_fp16.h>\n#include <string>\n\
        #define DEVICE __device__ __forceinline__\n\
        std::string greeting() { return \"hello\"; }\n";
    workspace.write(&format!("{folder}/scale.h"), header);
    let matter = "summary = \"a warp for each row\"\narch = \"sm_90a\"\n\
        source = \"theirs/src/softmax_forward.cu\"\nempty = [\"torch/types.h\"]\n\
        flags = [\"--std=c++20\", \"-DSCALE=1\"]\n[[launch]]\nkernel = \"softmax\"\n\
        grid = \"m\"\nblock = 32\nargs = [\"x\", \"y\", \"n\"]\n";
    let beside = "variants/softmax/theirs.toml";
    workspace.write(beside, matter);
    let shapes = "{ m = 5, n = 256 }, { m = 3, n = 1000 }";
    workspace.write("round.toml", &round("softmax", "theirs", shapes));
    let text = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(text.contains("validate 2/2 ok"), "{text}");
    assert!(!text.contains("left out"), "{text}");
    // A flag is part of what is compiled, and lines are those of the file.
    for (from, to, told) in [
        ("SCALE=1", "SCALE=2", "wrong"),
        (
            "SCALE=1",
            "OTHER=1",
            "theirs/src/softmax_forward.cu(23): error",
        ),
        ("--std=c++20", "-I/etc", "`-I/etc` may not be among `flags`"),
        ("theirs/src/", "../", "`source` leads out of its folder"),
        ("theirs/src/", "theirs/", "which does not exist"),
    ] {
        workspace.write(beside, &matter.replace(from, to));
        let text = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
        assert!(text.contains(told), "{to}: {text}");
    }
    let inside = format!("/*dgx\n{matter}*/\n");
    workspace.write("variants/softmax/theirs.cu", &inside);
    workspace.write(beside, "");
    let text = workspace.run(&["check", "round.toml"]);
    assert!(text.contains("both have its front matter"), "{text}");
}

/// Sums in f32 lose more than their last rounding; and what is added to must be there.
#[test]
fn a_product_is_added_to_what_the_output_begins_with() {
    let workspace = Workspace::empty();
    let operator = "summary = \"c += a b\"\nsizes = [\"m\", \"n\", \"k\"]\n\
        small = [{ m = 4, n = 32, k = 64 }]\n[in.a]\ntype = \"f32\"\nsize = [\"m\", \"k\"]\n\
        [in.b]\ntype = \"f32\"\nsize = [\"k\", \"n\"]\n[in.c0]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
        [out.c]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\nstart = \"c0\"\nrtol = 1e-5\n\
        value = \"a @ b + c0\"\n";
    workspace.write("operators/add.toml", operator);
    let source = "/*dgx\nsummary = \"a thread for each element\"\narch = \"sm_90a\"\n[[launch]]\n\
        kernel = \"add\"\ngrid = \"m\"\nblock = \"n\"\nargs = [\"a\", \"b\", \"c\", \"n\", \"k\"]\n*/\n\
        __global__ void add(const float* a, const float* b, float* c, int n, int k) {\n\
        float sum = 0;\nfor (int x = 0; x < k; ++x) sum += a[blockIdx.x * k + x] * b[x * n + threadIdx.x];\n\
        c[blockIdx.x * n + threadIdx.x] += sum; }\n";
    workspace.write("variants/add/mine.cu", source);
    let shapes = "{ m = 4, n = 32, k = 64 }, { m = 3, n = 96, k = 1000 }";
    workspace.write("round.toml", &round("add", "mine", shapes));
    let text = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(text.contains("validate 2/2 ok"), "{text}");
    workspace.write(
        "operators/add.toml",
        &operator.replace("rtol = 1e-5\n", "rtol = 1e-7\n"),
    );
    let strict = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    assert!(strict.contains("wrong"), "{strict}");
}

/// A thread for each row of `x`, with this body.
fn of_rows(workspace: &Workspace, operator: &str, output: &str, body: &str) -> String {
    let source = format!(
        "/*dgx\nsummary = \"a thread for each row\"\narch = \"sm_90a\"\n[[launch]]\n\
         kernel = \"rows\"\ngrid = 1\nblock = \"m\"\nargs = [\"x\", \"y\", \"n\"]\n*/\n\
         #include <cuda_fp16.h>\n\
         __global__ void rows(const float* x, {output}* y, int n) {{\n\
         x += threadIdx.x * n; y += threadIdx.x * n;\n{body} }}\n"
    );
    workspace.write(&format!("variants/{operator}/mine.cu"), &source);
    workspace.write("round.toml", &round(operator, "mine", "{ m = 32, n = 64 }"));
    workspace.run(&["sweep", "round.toml", "--backend", "emu"])
}

/// Integers are the nearest, and either of two that a quotient lies between.
#[test]
fn a_quantiser_may_multiply_by_the_reciprocal_and_not_be_one_off() {
    let workspace = Workspace::empty();
    let operator = "summary = \"int8 of rows\"\nsizes = [\"m\", \"n\"]\n\
        small = [{ m = 16, n = 32 }]\n[in.x]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
        [out.y]\ntype = \"i8\"\nsize = [\"m\", \"n\"]\n\
        let = { s = \"maximum(max(abs(x), -1) / 127, 1e-20)\" }\nvalue = \"i8(round(x / s))\"\n";
    workspace.write("operators/quantise.toml", operator);
    let body = "float most = 0; for (int i = 0; i < n; ++i) most = fmaxf(most, fabsf(x[i]));\n\
        const float scale = 1.0f / fmaxf(most / 127.0f, 1e-20f);\n\
        for (int i = 0; i < n; ++i) y[i] = MORE __float2int_rn(x[i] * scale);";
    let right = of_rows(
        &workspace,
        "quantise",
        "signed char",
        &body.replace("MORE", ""),
    );
    assert!(right.contains("validate 1/1 ok"), "{right}");
    let wrong = of_rows(
        &workspace,
        "quantise",
        "signed char",
        &body.replace("MORE", "(x[i] > 0) +"),
    );
    assert!(wrong.contains(" wrong "), "{wrong}");
}

/// Rows far below zero have no weight left without their maximum.
#[test]
fn a_softmax_whose_maximum_starts_at_zero_is_wrong() {
    let workspace = Workspace::empty();
    let operator = "summary = \"softmax\"\nsizes = [\"m\", \"n\"]\nsmall = [{ m = 16, n = 32 }]\n\
        [in.x]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
        [out.y]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\nvalue = \"softmax(x, -1)\"\n";
    workspace.write("operators/weights.toml", operator);
    let body = "float most = START, sum = 0; for (int i = 0; i < n; ++i) most = fmaxf(most, x[i]);\n\
        for (int i = 0; i < n; ++i) sum += expf(x[i] - most);\n\
        for (int i = 0; i < n; ++i) y[i] = __float2half(expf(x[i] - most) / sum);";
    let right = of_rows(
        &workspace,
        "weights",
        "__half",
        &body.replace("START", "-3e38f"),
    );
    assert!(right.contains("validate 1/1 ok"), "{right}");
    let wrong = of_rows(&workspace, "weights", "__half", &body.replace("START", "0"));
    assert!(wrong.contains(" wrong "), "{wrong}");
}
