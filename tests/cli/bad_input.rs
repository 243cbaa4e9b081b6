//! Every way to be told off, with file, line and remedy, and exit code 2.

use insta::assert_snapshot;

use crate::workspace::Workspace;

/// `dgx check` of the round after one edit.
fn check_after(file: &str, from: &str, to: &str) -> String {
    let workspace = Workspace::new();
    workspace.edit(file, from, to);
    let text = workspace.run(&["check", "round.toml"]);
    assert!(text.ends_with("[exit 2]"), "{text}");
    text
}

fn round_with(from: &str, to: &str) -> String {
    check_after("round.toml", from, to)
}

fn variant_with(from: &str, to: &str) -> String {
    check_after("variants/one.cu", from, to)
}

#[test]
fn the_round_itself_is_sound() {
    let workspace = Workspace::new();
    assert_snapshot!(workspace.run(&["check", "--no-compile", "round.toml"]));
}

#[test]
fn unknown_key() {
    assert_snapshot!(round_with("min_geomean", "min_gomean"));
}

#[test]
fn wrong_type() {
    assert_snapshot!(round_with("m = 256", "m = \"256\""));
}

#[test]
fn broken_toml() {
    assert_snapshot!(round_with("question   = \"Which?\"", "question = \"Which?"));
}

#[test]
fn missing_key() {
    assert_snapshot!(round_with("question   = \"Which?\"\n", ""));
}

#[test]
fn missing_file() {
    let workspace = Workspace::new();
    assert_snapshot!(workspace.run(&["check", "rounds.toml"]));
}

#[test]
fn missing_variants_folder() {
    let workspace = Workspace::new();
    assert_snapshot!(workspace.run(&["check", "round.toml", "--variants", "elsewhere"]));
}

#[test]
fn unknown_variant() {
    assert_snapshot!(round_with("[\"one\"]", "[\"ones\"]"));
}

#[test]
fn variant_that_climbs_out_of_its_folder() {
    assert_snapshot!(round_with("[\"one\"]", "[\"../one\"]"));
}

#[test]
fn variant_by_absolute_path() {
    assert_snapshot!(round_with("[\"one\"]", "[\"/etc/passwd\"]"));
}

#[test]
fn unknown_parameter() {
    assert_snapshot!(round_with("[\"one\"]", "[\"one[STAGE=1]\"]"));
}

#[test]
fn value_a_parameter_has_not() {
    assert_snapshot!(round_with("[\"one\"]", "[\"one[STAGES=7]\"]"));
}

#[test]
fn contender_twice() {
    assert_snapshot!(round_with("[\"one\"]", "[\"one\", \"one[STAGES=2]\"]"));
}

#[test]
fn ambiguous_baseline() {
    assert_snapshot!(round_with("\"one[STAGES=1]\"", "\"one\""));
}

#[test]
fn empty_round() {
    assert_snapshot!(round_with("[\"one\"]", "[]"));
}

#[test]
fn no_shapes() {
    assert_snapshot!(round_with("[[shapes]]\nm = 256\nn = 128\nk = 512\n", ""));
}

#[test]
fn zero_size() {
    assert_snapshot!(round_with("m = 256", "m = 0"));
}

#[test]
fn negative_size() {
    assert_snapshot!(round_with("n = 128", "n = -128"));
}

#[test]
fn k_outside_the_operator() {
    assert_snapshot!(round_with("k = 512", "k = 500"));
}

#[test]
fn k_a_variant_does_not_take() {
    assert_snapshot!(round_with("k = 512", "k = 768"));
}

#[test]
fn shape_beyond_memory() {
    assert_snapshot!(round_with("m = 256\nn = 128", "m = 1048576\nn = 1048576"));
}

#[test]
fn shape_name_twice() {
    assert_snapshot!(round_with(
        "[gate]",
        "[[shapes]]\nm = 256\nn = 128\nk = 512\n\n[gate]"
    ));
}

#[test]
fn tolerance_that_accepts_anything() {
    assert_snapshot!(round_with("[gate]", "[validate]\nrtol = 1.0\n\n[gate]"));
}

#[test]
fn front_matter_missing() {
    assert_snapshot!(variant_with("/*dgx", "/*"));
}

#[test]
fn front_matter_unknown_key() {
    assert_snapshot!(variant_with("kernel =", "kernle ="));
}

#[test]
fn expression_with_an_unknown_name() {
    assert_snapshot!(variant_with("STAGES * BK", "STAGES * BKK"));
}

#[test]
fn expression_that_does_not_parse() {
    assert_snapshot!(variant_with("STAGES * BK", "STAGES * (BK"));
}

#[test]
fn expression_that_divides_by_zero() {
    assert_snapshot!(variant_with("STAGES * BK", "BK / (STAGES - 1)"));
}

#[test]
fn expression_that_overflows() {
    assert_snapshot!(variant_with("STAGES * BK", "BK * 9223372036854775807"));
}

#[test]
fn constant_defined_twice() {
    assert_snapshot!(variant_with("BK = 512", "BK = 512\nSTAGES = 3"));
}

#[test]
fn two_folders_with_the_same_variant() {
    let workspace = Workspace::new();
    workspace.write("more/one.cu", crate::workspace::VARIANT);
    let folders = ["--variants", "variants", "--variants", "more"];
    let args = [&["check", "round.toml"][..], &folders[..]].concat();
    assert_snapshot!(workspace.run(&args));
}

#[test]
fn unknown_command() {
    let workspace = Workspace::new();
    assert_snapshot!(workspace.run(&["swep", "round.toml"]));
}
