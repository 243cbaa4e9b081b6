use insta::assert_snapshot;

use crate::workspace::{ROUND, VARIANT, Workspace};

#[test]
fn variants_are_listed_with_their_pitch() {
    let workspace = Workspace::new();
    workspace.write(
        "variants/two.cu",
        "/*dgx
summary = \"A child\"
parent  = \"one\"
round   = 2
expect  = \"wrong\"
claim   = { geomean = 1.5, over = \"one[STAGES=1]\" }
arch    = \"sm_90a\"
[[launch]]
kernel = \"go\"
grid   = 1
block  = 1
*/
",
    );
    assert_snapshot!(workspace.run(&["list"]));
}

#[test]
fn a_broken_variant_does_not_hide_the_others() {
    let workspace = Workspace::new();
    workspace.write("variants/broken.cu", "int x;\n");
    assert_snapshot!(workspace.run(&["list"]));
}

/// A name has a source for each kind of chip; who has none for the device is
/// left out, and says why, and the others are checked.
#[test]
fn a_round_is_for_whatever_machine() {
    let workspace = Workspace::new();
    let source = VARIANT.replacen("arch     = \"sm_90a\"\n", "", 1);
    workspace.write(
        "variants/sm_100a/one.cu",
        &source.replacen("One", "Another", 1),
    );
    workspace.write("variants/sm_100a/pair.cu", &source);
    let both = ROUND.replacen("[\"one\"]", "[\"one\", \"pair\"]", 1);
    workspace.write("round.toml", &both);
    let said = ["list", "list round.toml", "check --no-compile round.toml"]
        .map(|words| workspace.run(&words.split(' ').collect::<Vec<_>>()));
    assert_snapshot!(said.join("\n"));
    let said = workspace.run(&["check", "--no-compile", "--target", "b200", "round.toml"]);
    assert!(said.contains("4 contenders × 1 shape, 4 images"), "{said}");
    assert!(!said.contains("left out"), "{said}");
    // Sources that `arch` and their folder say different things of.
    workspace.write("variants/sm_100a/pair.cu", VARIANT);
    assert_snapshot!(workspace.run(&["check", "--no-compile", "--target", "b200", "round.toml"]));
}

/// Odd files are rows with their reasons, no text of theirs acts on the
/// terminal, and a round that names none of them does not care.
#[test]
fn odd_files_are_rows() {
    let workspace = Workspace::new();
    let variants = workspace.path().join("variants");
    let write = |name: &std::ffi::OsStr, text: &[u8]| {
        std::fs::write(variants.join(name), text).expect("a file");
    };
    let text = crate::workspace::VARIANT;
    write("a b\n.cu".as_ref(), text.as_bytes());
    write("cublas.cu".as_ref(), text.as_bytes());
    write("latin.cu".as_ref(), b"/*dgx\nsummary = \"\xf6\"\n*/");
    let shouting = text.replace("One of its kind", "\\u001b[31mred\\u202e");
    write("shouting.cu".as_ref(), shouting.as_bytes());
    let raw: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"raw\xff.cu");
    write(raw, text.as_bytes());
    std::fs::create_dir(variants.join("folder.cu")).expect("a folder");
    std::os::unix::fs::symlink("nowhere", variants.join("dangling.cu")).expect("a link");
    let fifo = variants.join("fifo.cu");
    let made = std::process::Command::new("mkfifo").arg(fifo).status();
    assert!(made.expect("mkfifo runs").success());
    assert_snapshot!(workspace.run(&["list"]));
    let sound = workspace.run(&["check", "--no-compile", "round.toml"]);
    assert!(sound.ends_with("[exit 0]"), "{sound}");
}

/// What lies among the variants and is none of them is named, with its remedy.
#[test]
fn what_is_left_out_is_named() {
    let workspace = Workspace::new();
    workspace.write("variants/loud.CU", VARIANT);
    workspace.write("variants/other.cpp", VARIANT);
    workspace.write("variants/tests/deep.cu", VARIANT);
    workspace.write("variants/sm_100a/wrong.txt", VARIANT);
    workspace.write("variants/broken.cu", "int x;\n");
    workspace.write("variants/worse.cu", "/*dgx\nsummary = 3\n*/\n");
    workspace.write("variants/notes.md", "All is well.\n");
    workspace.write("variants/include/own.cuh", "#pragma once\n");
    assert_snapshot!(workspace.run(&["list"]));
}

#[test]
fn a_round_is_listed_with_its_shapes() {
    let workspace = Workspace::new();
    workspace.edit(
        "round.toml",
        "[gate]",
        "[[shapes]]\nname = \"ragged\"\nm = [40, 76]\nn = 128\nk = 512\n\n[gate]",
    );
    assert_snapshot!(workspace.run(&["list", "round.toml"]));
}

/// The rounds of the repository, against its own variants.
#[test]
fn every_committed_round_is_sound() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let configs = std::fs::read_dir(root.join("configs")).expect("configs/");
    let mut rounds: Vec<String> = configs
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .filter(|path| path.ends_with(".toml"))
        .collect();
    rounds.sort();
    assert!(!rounds.is_empty());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(root)
        .args(["check", "--no-compile"])
        .args(&rounds)
        .output()
        .expect("dgx runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
