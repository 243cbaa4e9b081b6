//! An image is recompiled exactly when one of its inputs changes, nothing else can become an input,
//! and a source that breaks the compiler fails only itself.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::workspace::Workspace;

/// A kernel that takes SIZE words of shared memory, which `check` shows.
fn kernel(front: &str, body: &str) -> String {
    format!(
        "/*dgx
summary = \"It is what it includes\"
arch    = \"sm_90a\"
{front}
[[launch]]
kernel = \"go\"
grid   = 1
block  = 32
*/
{body}
struct Args {{ unsigned char bytes[1440]; }};
extern \"C\" __global__ void go(const __grid_constant__ Args args) {{
  __shared__ volatile int s[SIZE];
  s[threadIdx.x % SIZE] = args.bytes[0];
}}
"
    )
}

/// A round of all these variants, and a cache of its own.
fn round_of(variants: &[(&str, String)]) -> Workspace {
    let workspace = Workspace::new();
    for (name, text) in variants {
        workspace.write(&format!("variants/{name}.cu"), text);
    }
    let names: Vec<String> = variants.iter().map(|(n, _)| format!("{n:?}")).collect();
    workspace.write(
        "round.toml",
        &format!(
            "question   = \"Which?\"\ncontenders = [{}]\nbaseline   = {}\n\
             shapes     = [{{ m = 64, n = 128, k = 256 }}]\n[validate]\nseed = 1\n",
            names.join(", "),
            names[0]
        ),
    );
    workspace
}

/// Bytes of shared memory of each contender, as `check` prints them.
fn shared_memory(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let go = words.iter().position(|w| *w == "go")?;
            Some((words[0].to_owned(), words.get(go + 4)?.to_string()))
        })
        .collect()
}

#[test]
fn every_file_that_takes_part_is_in_the_key() {
    let forms = [
        ("beside", "#include \"beside.h\""),
        ("below", "#include <deep/below.h>"),
        ("computed", "#define NAME \"computed.h\"\n#include NAME"),
        (
            "pasted",
            "#define S(x) #x\n#define T(x) S(x)\n#include T(pasted.h)",
        ),
        ("digraph", "%:include \"digraph.h\""),
        ("comment", "#/*\n*/include /* it */ \"comment.h\" // here"),
        ("spliced", "#incl\\\nude \"spl\\\niced.h\""),
        (
            "asked",
            "#if __has_include(\"asked.h\")\n#include \"asked.h\"\n#else\n#define SIZE 16\n#endif",
        ),
        ("relative", "#include <deep/relative.h>"),
        ("pragma", "#include \"pragma.h\"\n#include \"pragma.h\""),
    ];
    let workspace = round_of(&forms.map(|(name, form)| (name, kernel("", form))));
    let write = |size: u32| {
        for name in [
            "beside", "computed", "pasted", "digraph", "comment", "spliced",
        ] {
            workspace.write(
                &format!("variants/{name}.h"),
                &format!("#define SIZE {size}\n"),
            );
        }
        let text = format!("#pragma once\nconstexpr int SIZE = {size};\n");
        workspace.write("variants/pragma.h", &text);
        let text = format!("#define SIZE {size}\n");
        workspace.write("variants/include/deep/below.h", &text);
        workspace.write("variants/include/deep/other.h", &text);
        workspace.write("variants/include/deep/relative.h", "#include \"other.h\"\n");
    };
    write(16);
    let first = workspace.run(&["check", "round.toml"]);
    assert!(first.ends_with("[exit 0]"), "{first}");
    let all = shared_memory(&first);
    assert_eq!(all.len(), forms.len(), "{first}");
    for (name, smem) in all {
        assert_eq!(smem, "64", "{name}: {first}");
    }
    write(32);
    workspace.write("variants/asked.h", "#define SIZE 32\n");
    let second = workspace.run(&["check", "round.toml"]);
    let all = shared_memory(&second);
    assert_eq!(all.len(), forms.len(), "{second}");
    for (name, smem) in all {
        assert_eq!(smem, "128", "{name}: {second}");
    }
}

#[test]
fn a_header_changes_the_hash_of_those_who_include_it() {
    let variants = [("one", "#include \"one.h\""), ("two", "#include \"two.h\"")];
    let workspace = round_of(&variants.map(|(name, form)| (name, kernel("", form))));
    workspace.write("variants/one.h", "#define SIZE 16\n");
    workspace.write("variants/two.h", "#define SIZE 16\n");
    let before = hashes(&workspace, "before");
    workspace.write("variants/one.h", "#define SIZE 32\n");
    let after = hashes(&workspace, "after");
    assert_ne!(before[0], after[0]);
    assert_eq!(before[1], after[1]);
}

/// Each contender's hash in a new run file.
fn hashes(workspace: &Workspace, results: &str) -> Vec<serde_json::Value> {
    workspace.run(&[
        "sweep",
        "round.toml",
        "--backend",
        "emu",
        "--results",
        results,
    ]);
    let files = fs::read_dir(workspace.path().join(results)).expect("results");
    let mut paths = files.map(|entry| entry.expect("an entry").path());
    let path = paths.find(|path| path.is_file()).expect("a run file");
    let text = fs::read_to_string(path).expect("its text");
    let header: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("a line")).expect("a header");
    let contenders = header["contenders"].as_array().expect("contenders").clone();
    contenders.iter().map(|c| c["hash"].clone()).collect()
}

#[test]
fn an_extended_variant_changes_its_heirs() {
    let whole = kernel("", "");
    let (_, body) = whole.split_once("*/").expect("front matter");
    let heir = |of: &str| format!("/*dgx\nsummary = \"An heir\"\nextend = \"{of}\"\n*/{body}");
    let workspace = round_of(&[
        ("base", kernel("const = { SIZE = 16 }", "")),
        ("son", heir("base")),
        ("grandson", heir("son")),
        ("other", kernel("", "#define SIZE 16")),
    ]);
    let smem = || {
        let text = workspace.run(&["check", "round.toml"]);
        let all = shared_memory(&text);
        assert_eq!(all.len(), 4, "{text}");
        all.into_iter().map(|(_, smem)| smem).collect::<Vec<_>>()
    };
    assert_eq!(smem(), ["64", "64", "64", "64"]);
    let before = hashes(&workspace, "before");
    workspace.edit("variants/base.cu", "SIZE = 16", "SIZE = 32");
    assert_eq!(smem(), ["128", "128", "128", "64"]);
    let after = hashes(&workspace, "after");
    let same: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a == b).collect();
    assert_eq!(same, [false, false, false, true]);
}

#[test]
fn nothing_outside_can_be_included() {
    let outside = tempfile::tempdir().expect("a temporary folder");
    let secret = outside.path().join("secret.h");
    fs::write(&secret, "#define SIZE 16\n").expect("a file");
    let absolute = format!("#include \"{}\"", secret.display());
    let computed = format!("#define N \"{}\"\n#include N", secret.display());
    let fifo = outside.path().join("fifo.h");
    let made = Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    let piped = format!("#include \"{}\"", fifo.display());
    let present = format!(
        "#if __has_include(\"{}\")\n#define SIZE 16\n#endif",
        secret.display()
    );
    let forms = [
        ("absolute", absolute.as_str()),
        ("computed", &computed),
        ("climbing", "#include \"../up.h\""),
        ("neighbour", "#include \"absolute.cu\""),
        ("linked", "#include \"linked.h\""),
        ("piped", &piped),
        ("pipe", "#include \"pipe.h\""),
        ("present", &present),
        ("device", "#include \"/dev/zero\""),
        ("system", "#include <sys/socket.h>"),
    ];
    let workspace = round_of(&forms.map(|(name, form)| (name, kernel("", form))));
    workspace.write("up.h", "#define SIZE 16\n");
    let variants = workspace.path().join("variants");
    std::os::unix::fs::symlink(&secret, variants.join("linked.h")).expect("a link");
    fs::rename(&fifo, variants.join("pipe.h")).expect("moves");
    let text = workspace.run(&["check", "round.toml"]);
    assert!(text.ends_with("[exit 3]"), "{text}");
    for (name, _) in forms {
        let told = format!("{name}: variants/{name}.cu(");
        assert!(text.contains(&told), "no {told}: {text}");
    }
    assert_eq!(
        text.matches("a variant may include in \"quotes\" what lies")
            .count(),
        9,
        "{text}"
    );
    assert!(text.contains("leads out of variants"), "{text}");
    assert!(text.contains("is a variant, not a header"), "{text}");
    assert!(text.contains("it is not a regular file"), "{text}");
    assert!(!text.contains("Too many open files"), "{text}");
}

/// Each bad source is a row of its own, and the good one between them runs.
#[test]
fn a_source_the_compiler_cannot_bear_is_a_row() {
    let mut bomb = "#define A0 x x x x x x x x x x\n".to_owned();
    for i in 1..12 {
        let before = format!(" A{}", i - 1).repeat(10);
        bomb.push_str(&format!("#define A{i}{before}\n"));
    }
    bomb.push_str("A11\n#define SIZE 16\n");
    let fine = kernel("", "#define SIZE 16");
    let variants = [
        ("bomb", kernel("", &bomb)),
        ("fine", fine.clone()),
        ("nul", fine.replace("volatile", "\0 volatile")),
        ("chip", fine.replace("sm_90a", "sm_10")),
        (
            "words",
            fine.replace("volatile", "\u{1b}[31m \u{202e} volatile"),
        ),
        (
            "empty",
            fine.split("*/").next().expect("front").to_owned() + "*/",
        ),
    ];
    let workspace = round_of(&variants);
    // What the compiler must work on, but for the bomb, is in the cache then:
    // the limit is none for it.
    workspace.write("variants/bomb.cu", &fine);
    workspace.run(&["check", "round.toml"]);
    workspace.write("variants/bomb.cu", &variants[0].1);
    let args = "sweep round.toml --backend emu --compile-timeout 5";
    let text = workspace.run(&args.split(' ').collect::<Vec<_>>());
    assert!(text.ends_with("[exit 3]"), "{text}");
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "3 from cache",
        "the compiler was stopped after 5 s of computing; --compile-timeout SECONDS allows more",
        "there is a NUL byte in it",
        "`sm_10` is not a compile target",
        "fine",
        "no kernel `go`",
    ] {
        assert!(plain.contains(told), "no {told}: {text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

#[test]
fn a_damaged_image_is_compiled_anew() {
    let workspace = round_of(&[("one", kernel("", "#define SIZE 16"))]);
    workspace.run(&["check", "round.toml"]);
    let images = workspace.path().join("cache/images");
    let entry = fs::read_dir(images)
        .expect("a cache")
        .next()
        .expect("an image");
    let report = entry.expect("an entry").path().join("report.json");
    let text = fs::read_to_string(&report).expect("a report");
    fs::write(
        &report,
        text.replace("\"static_smem\":64", "\"static_smem\":8"),
    )
    .expect("a file");
    let text = workspace.run(&["check", "round.toml"]);
    assert!(text.contains("was damaged: it is compiled again"), "{text}");
    assert_eq!(shared_memory(&text)[0].1, "64", "{text}");
    let text = workspace.run(&["check", "round.toml"]);
    assert!(!text.contains("damaged"), "{text}");
}

/// The compiling process on its own: a template that would take all memory
/// ends at the limit, by a message or by its death.
#[test]
fn a_compiling_process_keeps_to_its_memory() {
    let bomb = "template<int N,unsigned M> struct T { static const unsigned v = T<N-1,2*M>::v \
        + T<N-1,2*M+1>::v; }; template<unsigned M> struct T<0,M> { static const unsigned v = 0; };\n\
        __device__ unsigned q = T<26,1>::v;\n";
    let order = serde_json::json!({
        "name": "bomb.cu", "source": bomb, "flags": ["--gpu-architecture=sm_90a"], "headers": [],
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["compile-worker", "--memory", "700000000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dgx runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{order}").expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("compiled"), "{text}");
    assert!(
        text.contains("memory") || !output.status.success(),
        "{text}"
    );
}
