//! Every error in a user's input, with file, line and remedy, and exit code 2.

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

/// `check` that compiles, after one edit of a kernel that is right.
fn check_kernel(from: &str, to: &str) -> String {
    let workspace = Workspace::new();
    let sound = workspace.run(&["check", "round.toml"]);
    assert!(sound.ends_with("[exit 0]"), "{sound}");
    workspace.edit("variants/one.cu", from, to);
    let text = workspace.run(&["check", "round.toml"]);
    assert!(text.ends_with("[exit 2]"), "{text}");
    text
}

#[test]
fn what_no_device_launches_is_refused() {
    let cases = [
        (
            "STAGES * BK",
            "STAGES * BK * 256",
            "of shared memory a block",
        ),
        ("sum(tiles)", "sum(tiles) - 2", "has a grid of 0×1×1"),
        ("block  = 128", "block  = 2048", "has a block of 2048×1×1"),
        (
            "block  = 128",
            "block  = 128\ncluster = 3",
            "clusters of 3×1×1 do not divide",
        ),
        (
            "bytes[1440]",
            "bytes[1448]",
            "takes parameters of 1448 bytes",
        ),
        (
            "Args args)",
            "Args args, int more)",
            "takes parameters of 1440 + 4 bytes",
        ),
        ("kernel = \"go\"", "kernel = \"gone\"", "no kernel `gone`"),
        (
            "void go",
            "void __launch_bounds__(64) go",
            "compiled for 64",
        ),
        ("sm_90a", "sm_103", "it is compiled for sm_103 and later"),
        ("sm_90a", "sm_100a", "it is compiled for sm_100a"),
    ];
    for (from, to, expected) in cases {
        let text = check_kernel(from, to);
        assert!(text.contains(expected), "no {expected}: {text}");
    }
}

/// What `check` says when it plans for a target that is written like this.
fn target_with(from: &str, to: &str) -> String {
    let workspace = Workspace::new();
    let h200 = include_str!("../../configs/targets/h200.toml");
    workspace.write("mine.toml", &h200.replacen(from, to, 1));
    workspace.run(&[
        "check",
        "--no-compile",
        "--target",
        "mine.toml",
        "round.toml",
    ])
}

#[test]
fn a_target_with_a_number_that_cannot_be() {
    assert_snapshot!(target_with("value = 132,", "value = -132,"));
}

#[test]
fn a_target_with_a_number_from_nowhere() {
    assert_snapshot!(target_with("value = 132, from = \"driver\"", "value = 132"));
}

#[test]
fn a_target_that_nobody_knows() {
    let workspace = Workspace::new();
    assert_snapshot!(workspace.run(&["check", "--target", "h300", "round.toml"]));
}

#[test]
fn a_target_that_runs_nobody() {
    let workspace = Workspace::new();
    assert_snapshot!(workspace.run(&["check", "--target", "b200", "round.toml"]));
}

#[test]
fn a_gate_on_somebody_who_does_not_compete() {
    assert_snapshot!(round_with("[gate]\n", "[gate]\ncontenders = [\"two\"]\n"));
}

#[test]
fn names_are_separated_by_commas_and_results_are_a_folder() {
    let workspace = Workspace::new();
    let dry = ["sweep", "round.toml", "--dry-run"];
    let text = workspace.run(&[&dry[..], &["--only", "one two"]].concat());
    assert!(text.contains("names are separated by commas"), "{text}");
    let text = workspace.run(&[&dry[..], &["--results", "round.toml"]].concat());
    assert!(text.contains("cannot write in round.toml"), "{text}");
    assert!(text.ends_with("[exit 4]"), "{text}");
}

#[test]
fn the_winner_of_a_round_that_is_not_there() {
    let text = round_with(
        "baseline   = \"one[STAGES=1]\"",
        "baseline = { winner_of = \"none\" }",
    );
    assert!(text.contains("there is no round `none`"), "{text}");
    assert!(text.contains("its file would be none.toml"), "{text}");
}

#[test]
fn expression_of_thirty_thousand_terms() {
    let long = format!("STAGES{}", " + 1".repeat(30_000));
    let text = variant_with("STAGES * BK", &long);
    assert!(text.contains("60001 words, 1000 at most"), "{text}");
    assert!(text.len() < 4_000, "{text}");
}

#[test]
fn expression_of_twenty_sums() {
    let nested = format!("{}1{}", "sum(".repeat(20), ")".repeat(20));
    let workspace = Workspace::new();
    workspace.edit("variants/one.cu", "STAGES * BK", &nested);
    workspace.edit("round.toml", "m = 256", "m = [1, 2, 3, 4]\nname = \"four\"");
    let text = workspace.run(&["check", "round.toml"]);
    assert!(text.ends_with("[exit 2]"), "{text}");
    assert!(text.contains("evaluating takes more steps than"), "{text}");
}

#[test]
fn a_line_of_many_columns() {
    for wide in [65_535, 65_536, 200_000] {
        let text = round_with(
            "question   = \"Which?\"",
            &format!("q = \"{}\"", "w".repeat(wide)),
        );
        assert!(text.contains("unknown key `q`"), "{text}");
        assert!(text.len() < 4_000, "{text}");
    }
}

#[test]
fn odd_numbers_on_the_command_line() {
    let workspace = Workspace::new();
    let flags = [
        "--timeout",
        "--compile-timeout",
        "--min-blocks",
        "--seed",
        "--schedule",
    ];
    for flag in flags {
        for value in ["-1", "nan", "inf", "1e20", "1e400", "0x10", ""] {
            let flag = format!("{flag}={value}");
            let text = workspace.run(&["sweep", "round.toml", "--dry-run", &flag]);
            assert!(text.ends_with("[exit 2]"), "{text}");
        }
    }
    for flag in [
        "--timeout=0",
        "--compile-timeout=0",
        "--min-blocks=4294967295",
    ] {
        let text = workspace.run(&["sweep", "round.toml", "--dry-run", flag]);
        assert!(text.ends_with("[exit 2]"), "{text}");
    }
}

#[test]
fn odd_numbers_in_a_round() {
    for key in [
        "validate.timeout",
        "validate.rtol",
        "measure.max_seconds",
        "gate.min_shape",
    ] {
        for value in ["nan", "inf", "-inf", "-1.0", "1e300"] {
            let (table, name) = key.split_once('.').expect("a table");
            let text = round_with("min_geomean = 1.4", &format!("[{table}]\n{name} = {value}"));
            let text = match table {
                "gate" => round_with("min_geomean", &format!("min_shape = {value}\nmin_geomean")),
                _ => text,
            };
            assert!(text.contains("out of range"), "{text}");
        }
    }
}

#[test]
fn a_product_nobody_meant() {
    let workspace = Workspace::new();
    let values: Vec<String> = (1..=256).map(|n| n.to_string()).collect();
    let list = format!("[{}]", values.join(", "));
    workspace.edit("variants/one.cu", "[1, 2]", &list);
    workspace.edit("variants/one.cu", "STAGES * BK", "BK");
    let ms: Vec<String> = (1..=4096).map(|m| m.to_string()).collect();
    workspace.edit(
        "round.toml",
        "m = 256",
        &format!("name = \"many\"\nm = [{}]", ms.join(", ")),
    );
    let text = workspace.run(&["check", "--no-compile", "round.toml"]);
    assert!(text.contains("1048576 calls, 1000000 at most"), "{text}");
    assert!(text.ends_with("[exit 2]"), "{text}");
}

/// What the plan alone shows needs no compiler to be found.
#[test]
fn what_no_device_launches_is_told_without_compiling() {
    let map = |edit: &str| {
        let geometry = format!("[[map]]\nname = \"A\"\ntensor = \"a\"\n{edit}\n*/");
        ("*/", geometry)
    };
    let cases = [
        (
            ("block  = 128", "block  = 1025".to_owned()),
            "a block of 1025×1×1",
        ),
        (("\"sum(tiles)\"", "0".to_owned()), "a grid of 0×1×1"),
        (
            map("box = [0, 1]\nswizzle = \"none\""),
            "map A: box extent 0",
        ),
        (
            map("box = [512, 1]\nswizzle = \"none\""),
            "map A: box extent 512",
        ),
        (
            map("box = [128, 1]\nswizzle = \"32B\""),
            "exceeds the 32 bytes",
        ),
        (
            map("box = [17, 1]\nswizzle = \"none\""),
            "not a multiple of",
        ),
    ];
    for ((from, to), expected) in cases {
        let workspace = Workspace::new();
        workspace.edit("variants/one.cu", from, &to);
        let text = workspace.run(&["check", "--no-compile", "round.toml"]);
        assert!(text.ends_with("[exit 2]"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_third_run_file_is_not_passed_over() {
    let workspace = Workspace::new();
    for name in ["a", "b", "c"] {
        workspace.write(&format!("{name}.jsonl"), "{}");
    }
    let text = workspace.run(&["compare", "a.jsonl", "b.jsonl", "c.jsonl"]);
    assert!(text.ends_with("[exit 2]"), "{text}");
    assert!(text.contains("`c.jsonl` is a third run file"), "{text}");
}
