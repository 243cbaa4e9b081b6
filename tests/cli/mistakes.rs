//! Users' mistakes in front matter and on the command line: each is refused with its place and a
//! remedy that fits.

use crate::workspace::{ROUND, VARIANT, Workspace};

/// Runs dgx, which is to refuse with this code and these words.
fn refused(workspace: &Workspace, words: &[&str], code: u8, expected: &[&str]) -> String {
    let text = workspace.run(words);
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in expected {
        assert!(plain.contains(word), "no {word:?}: {text}");
    }
    assert!(text.ends_with(&format!("[exit {code}]")), "{text}");
    text
}

/// The variant with one edit, in a round of its own.
fn edited(from: &str, to: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.edit("variants/one.cu", from, to);
    workspace
}

#[test]
fn launches_that_a_device_refuses_are_shown_in_the_front_matter() {
    let taking =
        |parameters: &str| VARIANT.replace("const __grid_constant__ Args args", parameters);
    let cases = [
        (
            "block  = 128",
            "block  = 2048",
            "one.cu:15:10",
            "block of 2048×1×1 threads; the device allows",
        ),
        (
            "block  = 128",
            "block  = [64, 32]",
            "one.cu:15:11",
            "help: use fewer threads",
        ),
        (
            "\"sum(tiles)\"",
            "\"0\"",
            "one.cu:14:10",
            "nothing would run",
        ),
        (
            "\"STAGES * BK\"",
            "300000",
            "one.cu:16:10",
            "of shared memory a block",
        ),
        (
            "kernel = \"go\"",
            "kernel = \"og\"",
            "one.cu:13:10",
            "there is no kernel `og`",
        ),
        (
            "block  = 128",
            "block  = 128\ncluster = 5",
            "one.cu:16:11",
            "do not divide",
        ),
        (
            "block  = 128",
            "block  = 128\nargs   = [\"a\", \"m\"]",
            "one.cu:16:10",
            "takes 1 parameter, and `args` gives 2",
        ),
    ];
    for (from, to, place, reason) in cases {
        let text = refused(
            &edited(from, to),
            &["check", "round.toml"],
            2,
            &[place, reason],
        );
        assert!(text.contains("help: "), "{text}");
    }
    let workspace = Workspace::new();
    workspace.write("variants/one.cu", &taking("float* x"));
    let expected = ["one.cu:13:10", "takes parameters of 8 bytes"];
    refused(&workspace, &["check", "round.toml"], 2, &expected);
}

#[test]
fn a_word_that_is_no_compile_target_is_refused_where_it_stands() {
    for word in ["sm90", "sm_99"] {
        let workspace = edited("\"sm_90a\"", &format!("\"{word}\""));
        let told = format!("`{word}` is not a compile target");
        let expected = ["one.cu:3:12", &told, "sm_89, sm_90, sm_100, sm_103"];
        let check = ["check", "--no-compile", "round.toml"];
        refused(&workspace, &check, 2, &expected);
    }
}

#[test]
fn code_without_front_matter_is_named() {
    for file in ["variants/p.cu", "variants/p.ptx", "variants/p.py"] {
        let workspace = Workspace::new();
        workspace.write(file, "int x;\n");
        workspace.edit("round.toml", "[\"one\"]", "[\"p\"]");
        let told = [
            "does not open with front matter",
            "or write p.toml beside it",
        ];
        let text = refused(
            &workspace,
            &["check", "--no-compile", "round.toml"],
            2,
            &told,
        );
        assert!(text.contains(file), "{text}");
    }
}

#[test]
fn without_nvrtc_the_remedy_is_one_that_an_installed_dgx_has() {
    let workspace = Workspace::new();
    let text = workspace.run_with(&["check", "round.toml"], &[("DGX_NVRTC", "/nope")]);
    assert!(text.contains("correct or unset DGX_NVRTC"), "{text}");
    assert!(!text.contains("scripts/dgx"), "{text}");
    assert!(text.contains("--no-compile checks without it"), "{text}");
    assert!(text.ends_with("[exit 4]"), "{text}");
}

#[test]
fn folders_that_are_not_there_are_refused() {
    let workspace = Workspace::new();
    let words = ["check", "--no-compile", "round.toml", "--include", "nope"];
    refused(
        &workspace,
        &words,
        2,
        &["there is no folder nope (--include)"],
    );
}

#[test]
fn cards_that_are_asked_for_are_not_emulated() {
    let workspace = Workspace::new();
    for cards in ["all", "0,1"] {
        let words = ["sweep", "round.toml", "--gpus", cards];
        let expected = ["--gpus asks for a GPU", "leave --gpus out to emulate"];
        let text = refused(&workspace, &words, 4, &expected);
        assert!(!text.contains("compile"), "{text}");
    }
    let words = ["sweep", "round.toml", "--backend", "cuda"];
    let expected = ["no GPU can be used", "leave out --backend to emulate"];
    let text = refused(&workspace, &words, 4, &expected);
    assert!(!text.contains("compile"), "{text}");
}

#[test]
fn a_variant_is_no_round_and_a_path_may_be_mistyped() {
    let workspace = Workspace::begun("mine");
    let expected = ["that is a variant", "did you mean configs/mine.toml?"];
    refused(&workspace, &["check", "variants/mine.cu"], 2, &expected);
    let expected = ["did you mean configs/mine.toml?"];
    refused(&workspace, &["sweep", "configs/mien.toml"], 2, &expected);
}

#[test]
fn a_source_that_is_not_there_is_named_as_such() {
    let workspace = Workspace::new();
    let matter = VARIANT.split("*/").next().expect("front matter");
    let matter = matter.replacen("/*dgx\n", "source = \"none.cu\"\n", 1);
    workspace.write("variants/two.toml", &matter);
    workspace.edit("round.toml", "[\"one\"]", "[\"two\", \"one\"]");
    let expected = [
        "two.toml:1:10",
        "`source` names none.cu, which does not exist",
        "relative to this file",
    ];
    let check = ["check", "--no-compile", "round.toml"];
    refused(&workspace, &check, 2, &expected);
    // Nor is it another variant of that name.
    workspace.write("variants/two.cu", VARIANT);
    refused(&workspace, &check, 2, &expected);
}

#[test]
fn a_kernel_that_is_brought_in_is_refused_before_a_file_is_written() {
    let workspace = Workspace::empty();
    let kernel = "__global__ void norm(const float* x, const float* w, float* y, int m, int n, float eps) {}\n";
    workspace.write("theirs.cu", kernel);
    let new = |args: &'static str| {
        let words = "new mine --operator rms-norm --kernel theirs.cu --grid m --block 128 --args";
        words.split(' ').chain([args]).collect::<Vec<_>>()
    };
    let wrong = ["`epsilon` is no tensor"];
    refused(&workspace, &new("x,w,y,m,n,epsilon"), 2, &wrong);
    let few = ["--args gives 5 arguments, and norm takes 6 parameters"];
    refused(&workspace, &new("x,w,y,m,n"), 2, &few);
    for folder in ["variants", "configs"] {
        assert!(!workspace.path().join(folder).exists(), "{folder}");
    }
    workspace.write(
        "theirs.cu",
        &kernel.replace("const float* x", "const float* in_x"),
    );
    let words = "new mine --operator rms-norm --kernel theirs.cu --grid m --block 128";
    let words: Vec<&str> = words.split(' ').collect();
    let asked = [
        "in_x`? One of x, w, y, m, n",
        "add --args ARG,ARG,ARG,ARG,ARG,ARG, one for each of in_x, w",
    ];
    refused(&workspace, &words, 2, &asked);
    workspace.write("theirs.cu", kernel);
    let text = workspace.run(&new("x,w,y,m,n,eps"));
    assert!(text.ends_with("[exit 0]"), "{text}");
}

#[test]
fn a_run_beside_itself_is_undecided_also_with_one_contender() {
    let workspace = Workspace::begun("mine");
    let words = ["sweep", "mine", "--backend", "emu", "--into", "run.jsonl"];
    let text = workspace.run(&words);
    assert!(text.ends_with("[exit 0]"), "{text}");
    workspace.write("copy.jsonl", &workspace.read("run.jsonl"));
    let words = ["gate", "run.jsonl", "--baseline", "copy.jsonl"];
    refused(&workspace, &words, 5, &["name an earlier run"]);
    let words = ["compare", "mine", "mine", "run.jsonl"];
    refused(&workspace, &words, 2, &["A and B are the same contender"]);
    let words = ["sweep", "mine", "--into", "variants"];
    let into = ["variants is a folder", "--into variants/NAME.jsonl"];
    refused(&workspace, &words, 2, &into);
    let words = ["sweep", "mine", "--shard", "1/9"];
    refused(&workspace, &words, 2, &["use at most"]);
    let words = ["gate", "run.jsonl", "--contender", "zzz"];
    refused(&workspace, &words, 2, &["it has mine"]);
}

#[test]
fn remedies_fit_the_mistake() {
    let workspace = Workspace::new();
    let check = ["check", "--no-compile", "round.toml"];
    for (from, to, expected) in [
        (
            "\"Which?\"",
            "\"Which?",
            ["the string is not closed", "add `\"`"],
        ),
        (
            "m = 256",
            "m = 256\nm = 1",
            ["duplicate key", "keep one of them"],
        ),
    ] {
        workspace.write("round.toml", &ROUND.replacen(from, to, 1));
        refused(&workspace, &check, 2, &expected);
    }
    workspace.write("round.toml", ROUND);
    let words = ["check", "round.toml", "--target", "h300"];
    refused(&workspace, &words, 2, &["there is no target `h300`"]);
    std::fs::write(workspace.path().join("bin.toml"), b"name = \"\xff\"\n").expect("a file");
    refused(&workspace, &["check", "bin.toml"], 2, &["save it as UTF-8"]);
    let empty = Workspace::empty();
    refused(&empty, &["list"], 2, &["`dgx new NAME` makes one"]);
}

#[test]
fn a_missing_triton_is_the_machines_fault() {
    let workspace = Workspace::empty();
    let source = "\"\"\"dgx\nsummary = \"s\"\narch = \"sm_90a\"\n[[launch]]\nkernel = \"k\"\ngrid = 1\nargs = [\"x\", \"y\"]\n\"\"\"\n";
    workspace.write("variants/softmax/mine.py", source);
    let round = "operator = \"softmax\"\nquestion = \"?\"\ncontenders = [\"mine\"]\nbaseline = \"mine\"\nshapes = [{ m = 16, n = 256 }]\n";
    workspace.write("round.toml", round);
    let python = workspace.path().join("python");
    let script =
        "#!/bin/sh\necho '{\"python\":\"3\",\"executable\":\"p\",\"error\":\"p has no triton\"}'\n";
    crate::workspace::program(&python, script);
    let variables = [("DGX_PYTHON", python.to_str().expect("a plain path"))];
    for words in [&["check", "round.toml"][..], &["sweep", "round.toml"]] {
        let text = workspace.run_with(words, &variables);
        assert!(text.contains("mine.py: p has no triton"), "{text}");
        assert!(text.contains("install Triton for that Python"), "{text}");
        assert!(text.ends_with("[exit 4]"), "{text}");
    }
}

#[test]
fn the_help_groups_flags_and_starts_where_nothing_is_yet() {
    let workspace = Workspace::empty();
    let help = workspace.run(&["sweep", "--help"]);
    for heading in ["Selection:", "Measuring:", "Emulator:", "Slurm:", "Output:"] {
        assert!(
            help.contains(&format!("\n{heading}\n")),
            "{heading}: {help}"
        );
    }
    assert!(help.contains("--data-seed"), "{help}");
    let help = workspace.run(&["--help"]);
    let (_, steps) = help.split_once("Start here:\n").expect("where to start");
    let steps: Vec<&str> = steps.lines().take_while(|l| !l.is_empty()).collect();
    for step in steps {
        let command = step.trim().split("  ").next().unwrap_or_default();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let text = workspace.run(&words);
        assert!(text.ends_with("[exit 0]"), "{text}");
    }
}
