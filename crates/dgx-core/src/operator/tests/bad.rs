//! Errors in a file are reported at their place, with a remedy.

use super::*;
use crate::diagnostic::render;

const GOOD: &str = r#"summary = "s"
sizes = ["m", "n", "k"]
requires = ["k % 16 == 0"]
small = [{ m = 64, n = 128, k = 256 }]
const = { eps = 1e-5 }
[in.a]
type = "nvfp4"
size = ["m", "k"]
[in.b1]
type = "f16"
size = ["n", "k"]
[out.c]
type = "f16"
size = ["m", "n"]
value = "(a @ b1.T) + eps"
atol = 1e-3
rtol = 1e-3
[mistake]
"no eps" = "a @ b1.T"
"#;

/// The error for `GOOD` with one change.
fn said(from: &str, to: &str) -> (String, String, String) {
    assert!(GOOD.contains(from), "{from}");
    let error = operator(&GOOD.replacen(from, to, 1)).expect_err(to);
    assert!(
        render(&error, false).contains("operators/x.toml"),
        "{error}"
    );
    let location = error.location().unwrap();
    let place = location.trim_start_matches("operators/x.toml:").to_owned();
    (place, error.message().to_owned(), error.remedy().to_owned())
}

fn value(text: &str) -> (String, String, String) {
    said("(a @ b1.T) + eps", text)
}

#[test]
fn the_good_one_is_good() {
    sound(GOOD);
}

#[test]
fn a_product_that_does_not_meet_has_a_hint() {
    let (place, message, remedy) = value("(a @ b1) + eps");
    assert_eq!(place, "15:11");
    assert_eq!(
        message,
        "in `(a @ b1) + eps`: `a @ b1`: 256 columns meet 128 rows (m = 64, n = 128, k = 256)"
    );
    assert_eq!(remedy, "did you mean `b1.T`?");
    let (_, _, remedy) = value("a @ (b1 + 1)");
    assert_eq!(remedy, "did you mean `(b1 + 1).T`?");
    let (_, _, remedy) = value("a.T @ b1.T");
    assert_eq!(remedy, "did you mean `a`?");
}

#[test]
fn values_that_do_not_parse() {
    for (text, place, message) in [
        ("(a @ b1.T", "15:19", "`)` is missing here"),
        ("a @", "15:12", "a value is missing here"),
        ("a b1", "15:12", "`b1` is left over"),
        ("a ** 2", "15:12", "`**` does not belong"),
        ("a & a", "15:12", "`&` does not belong"),
        ("a ? a : a", "15:12", "`?` does not belong"),
        ("a.t", "15:12", "only `.T` may follow"),
        ("1 < 2 < 3", "15:12", "do not chain"),
        ("sum(a, axis=-1)", "15:21", "arguments have no names"),
        ("a[::2]", "15:14", "no step"),
        ("a[]", "15:12", "a slice is missing"),
        ("1e999", "15:10", "is not a number"),
        ("12abc", "15:10", "is not a number"),
        ("", "15:9", "a value is missing"),
        ("a µ", "15:12", "`µ` does not belong"),
    ] {
        let said = value(text);
        assert!(said.1.contains(message), "{text}: {said:?}");
        assert!(said.0.starts_with("15:"), "{text}: {said:?}");
        let column = |place: &str| place[3..].parse::<i32>().unwrap();
        assert!(
            (column(&said.0) - column(place)).abs() <= 1,
            "{text}: {said:?}"
        );
        assert!(!said.2.is_empty());
    }
}

#[test]
fn values_whose_types_or_shapes_do_not_meet() {
    for (text, message, remedy) in [
        (
            "a + b1",
            "[m, k] meets [n, k]: 64 and 128 along axis -2",
            "`.T`",
        ),
        ("a", "the value is [m, k], and `c` is [m, n]", "`size`"),
        (
            "a > 0",
            "the value is true or false, and `c` is f16",
            "f16(…)",
        ),
        (
            "(a > 0) + 1",
            "an operand of `+` is not a number",
            "where(c, 1, 0)",
        ),
        ("a and b1", "an operand of `and` is a number", "comparisons"),
        (
            "where(a, 1, 0)",
            "condition of `where` is a number",
            "where(x > 0, x, 0)",
        ),
        (
            "where(a > 0, a > 0, 0)",
            "`where` have different types",
            "both are bool",
        ),
        (
            "take(a, a, -1)",
            "index of `take` is not an integer",
            "an index is an integer",
        ),
        ("sum(a, 2)", "there is no axis 2 in [m, k]", "-2 to 1"),
        ("sum(a)", "`sum` takes 2 arguments, not 1", "sum(x, axis)"),
        ("sum(a, m)", "the axis `m` is not a number", "-1"),
        ("softmax(1, -1)", "no axis -1 in []", "a number has no axes"),
        ("i(0)", "does not count from the end", "i(-1)"),
        ("i(-9)", "does not count from the end", "i(-5)"),
        (
            "sum(i(-1), -1)",
            "the extent of i(axis) in",
            "with a tensor",
        ),
        ("i(-2)[:3]", "the extent of i(axis) in", "with a tensor"),
        ("a @ 3", "`@` needs two axes", "size = [1, \\\"k\\\"]"),
        ("eps.T", "`.T` needs two axes", "remove"),
        ("a[0] @ b1.T", "`0` alone is no slice", "begin:end"),
        (
            "a[:, :, :]",
            "3 slices of `a`, which has 2 axes",
            "`...` once",
        ),
        ("a[..., ...]", "slices of `a`", "`...` once"),
        (
            "a[:, :k + 1] @ b1.T",
            "the slice 0:257 of an axis of 256",
            "`requires`",
        ),
        ("a[:, -8:] @ b1.T", "columns meet", "the last axis"),
        (
            "a[:, :eps]",
            "`eps` is not one of the sizes",
            "the sizes are m, n, k",
        ),
        ("a[:, :k / 2]", "`/` does not make a whole number", "//"),
        ("permute(a, 0, 0)", "does not name each axis once", "2 axes"),
        ("nvfp4(a)", "shares scales", "e2m1(x)"),
        (
            "slu(a)",
            "there is no function `slu`",
            "did you mean `silu`?",
        ),
        (
            "conv2d(a, b1)",
            "there is no function",
            "a convolution cannot",
        ),
        ("a(3)", "`a` is not a function", "operator"),
        ("b2 @ a", "unknown name `b2`", "did you mean `b1`?"),
        ("exp + 1", "unknown name `exp`", "`exp` is a function"),
        ("c + 1", "`c` is not known yet", "above it"),
        (
            "m * 2",
            "`c` does not depend on any input",
            "use an input in its value",
        ),
    ] {
        let said = value(&text.replace('"', "\\\""));
        assert!(said.1.contains(message), "{text}: {said:?}");
        assert!(
            said.2.contains(&remedy.replace("\\\"", "\"")),
            "{text}: {said:?}"
        );
    }
}

#[test]
fn a_reduction_keeps_its_axis() {
    let changed = GOOD.replacen("size = [\"m\", \"n\"]", "size = [\"m\"]", 1);
    let error = operator(&changed.replace("(a @ b1.T) + eps", "sum(a, -1) + sum(b1)"));
    assert!(error.is_err());
    let error = operator(&changed.replace("(a @ b1.T) + eps", "sum(a, -1)")).unwrap_err();
    assert!(
        error.message().contains("[m, 1], and `c` is [m]"),
        "{error}"
    );
    assert!(error.remedy().contains("keeps its axis"), "{error}");
}

#[test]
fn files_that_contradict_themselves() {
    for (from, to, message, remedy) in [
        ("atol = 1e-3", "atol = nan", "atol is NaN", "not negative"),
        ("atol = 1e-3", "atol = -1", "atol is -1.0", "not negative"),
        ("rtol = 1e-3", "rtol = inf", "rtol is inf", "not negative"),
        (
            "rtol = 1e-3",
            "rtol = 1.5",
            "rtol is 1.5",
            "nearly anything would pass",
        ),
        ("[in.b1]", "[in.a]", "duplicate key", "keep one of them"),
        (
            "[out.c]",
            "[out.a]",
            "`a` has a meaning already",
            "share names",
        ),
        (
            "[in.b1]",
            "[in.m]",
            "`m` has a meaning already",
            "share names",
        ),
        ("[in.b1]", "[in.exp]", "`exp` is a function", "share names"),
        ("[in.b1]", "[in.float]", "`float` is reserved", "C++"),
        (
            "[in.b1]",
            "[in.sfa]",
            "names the scales of `a`",
            "another name",
        ),
        ("[in.b1]", "[in.\"b 1\"]", "cannot be a name", "a letter"),
        (
            "eps = 1e-5",
            "k = 1e-5",
            "`k` has a meaning already",
            "share names",
        ),
        ("eps = 1e-5", "eps = nan", "eps is NaN", "finite"),
        (
            "eps = 1e-5",
            "eps = \"eps + 1\"",
            "is not a number",
            "`let` names parts",
        ),
        (
            "\"m\", \"n\", \"k\"]",
            "\"m\", \"n\", \"k\", \"z\"]",
            "the size `z` is missing",
            "z = …",
        ),
        (
            "\"m\", \"n\", \"k\"]\n",
            "\"m\", \"n\", \"k\", \"m\"]\n",
            "`m` has a meaning already",
            "share",
        ),
        (
            "k = 256 }",
            "k = 256, z = 3 }",
            "`z` is not one of the sizes",
            "m, n, k",
        ),
        (
            "k = 256 }",
            "k = 100 }",
            "`k % 16 == 0` does not hold",
            "meet `requires`",
        ),
        ("k = 256 }", "k = 0 }", "k = 0 is out of range", "between 1"),
        ("k % 16 == 0", "k % 16 = 0", "left over", "remove"),
        (
            "k % 16 == 0",
            "eps == 0",
            "`eps` is not one of the sizes",
            "the sizes are m, n, k",
        ),
        (
            "k % 16 == 0",
            "k % 24 == 0",
            "does not hold",
            "meet `requires`",
        ),
        ("size = [\"m\", \"k\"]", "size = []", "0 axes", "1 to 5"),
        (
            "size = [\"m\", \"k\"]",
            "size = [1, 1, 1, 1, \"m\", \"k\"]",
            "6 axes",
            "1 to 5",
        ),
        (
            "size = [\"m\", \"k\"]",
            "size = [\"m\", \"k - 300\"]",
            "is -44",
            "`requires`",
        ),
        (
            "size = [\"m\", \"k\"]",
            "size = [\"m\", \"k + 1\"]",
            "257 elements of nvfp4",
            "blocks of 16",
        ),
        (
            "size = [\"m\", \"k\"]",
            "size = [\"m * 4294967296\", \"k * 4294967296\"]",
            "2^63 bytes",
            "smaller",
        ),
        (
            "size = [\"m\", \"k\"]",
            "size = [\"m\", \"k // 0\"]",
            "overflows",
            "`requires`",
        ),
        (
            "size = [\"m\", \"k\"]",
            "size = [\"m\", 2.5]",
            "expected an integer",
            "dgx schema operator",
        ),
        (
            "type = \"nvfp4\"",
            "type = \"nvfp5\"",
            "unknown value `nvfp5`",
            "did you mean `nvfp4`",
        ),
        (
            "[out.c]\ntype = \"f16\"",
            "[out.c]\ntype = \"nvfp4\"",
            "an output of type nvfp4",
            "e2m1",
        ),
        (
            "value = \"(a @ b1.T) + eps\"\n",
            "",
            "the key `value` is missing",
            "add `value",
        ),
        (
            "value = \"(a @ b1.T) + eps\"",
            "value = \"a @ a.T @ sum(b1, -1)\"",
            "columns meet",
            "",
        ),
        (
            "\"a @ b1.T\"",
            "\"(a @ b1.T) + eps\"",
            "this is the value of `c` itself",
            "wrong kernel",
        ),
        ("\"no eps\"", "\"\"", "is not a name", "few words"),
        (
            "atol = 1e-3",
            "atols = 1e-3",
            "unknown key `atols`",
            "did you mean `atol`",
        ),
        (
            "atol = 1e-3",
            "let = { d = \"d + a\" }",
            "`d` is not known yet",
            "never itself",
        ),
        (
            "atol = 1e-3",
            "let = { d = \"e\", e = \"d\" }",
            "`e` is not known yet",
            "never itself",
        ),
        (
            "atol = 1e-3",
            "let = { a = \"b1\" }",
            "`a` has a meaning already",
            "share",
        ),
        (
            "k = 256 }",
            "k = 25600000 }",
            "a small problem of",
            "smaller sizes",
        ),
        (
            "[mistake]",
            "range = [1, 0]\n[mistake]",
            "unknown key `range`",
            "dgx schema operator",
        ),
        (
            "[in.b1]\n",
            "[in.b1]\nrange = [2, 1]\n",
            "the range from 2 to 1",
            "least",
        ),
        (
            "[in.b1]\n",
            "[in.b1]\nrange = [0, 1e9]\n",
            "the range from 0",
            "65504",
        ),
        (
            "[in.b1]\n",
            "[in.b1]\nrange = [nan, 1]\n",
            "the range from NaN",
            "least",
        ),
        (
            "[in.b1]\n",
            "[in.b1]\nrange = [300, \"n\"]\n",
            "the range from 300 to 128",
            "least",
        ),
        (
            "const =",
            "flops = \"m - k\"\nconst =",
            "not a positive number",
            "count",
        ),
    ] {
        let said = said(from, to);
        assert!(said.1.contains(message), "{to}: {said:?}");
        assert!(said.2.contains(remedy), "{to}: {said:?}");
    }
}

#[test]
fn what_nobody_uses_is_refused() {
    let error = operator(
        &GOOD
            .replace("[\"m\", \"n\", \"k\"]", "[\"m\", \"n\", \"k\", \"z\"]")
            .replace("k = 256 }", "k = 256, z = 3 }"),
    )
    .unwrap_err();
    assert_eq!(error.location().unwrap(), "operators/x.toml:2:25");
    assert!(error.message().contains("uses the size `z`"), "{error}");
    let error = operator(&GOOD.replace("(a @ b1.T) + eps", "(a @ a.T)[:, :1] + eps")).unwrap_err();
    assert!(
        error.message().contains("no value uses the input `b1`"),
        "{error}"
    );
    let none = GOOD.split("[out.c]").next().unwrap();
    assert!(operator(none).unwrap_err().message().contains("no output"));
}

#[test]
fn nothing_is_too_long_or_too_deep_for_an_error() {
    let nested = |open: &str, close: &str, count: usize| {
        format!("{}a{}", open.repeat(count), close.repeat(count))
    };
    for text in [
        nested("(", ")", 30_000),
        nested("-", "", 30_000),
        nested("-", "", 300),
        nested("exp(", ")", 300),
        nested("", ".T", 300),
        nested("", "[1:]", 150),
        vec!["a"; 400].join(" + "),
        vec!["a"; 30_000].join(" + "),
        format!("a[{}]", ":,".repeat(300)),
    ] {
        let said = value(&text);
        assert!(!said.2.is_empty(), "{said:?}");
    }
    // Parts of parts double with each line, and each is built once.
    let parts = |last: usize, of: &str| {
        let parts: Vec<String> = (1..=last)
            .map(|i| format!("p{i} = \"{}\"", of.replace('#', &format!("p{}", i - 1))))
            .collect();
        let lets = format!(
            "let = {{ p0 = \"a[:, :1]\", {} }}\natol = 1e-3",
            parts.join(", ")
        );
        let text = GOOD.replace("atol = 1e-3", &lets);
        operator(&text.replace("(a @ b1.T) + eps", &format!("(a @ b1.T) + p{last}")))
    };
    assert!(parts(60, "# + #").is_ok());
    assert!(parts(60, "where(i(-1) < 5, # + #, #)").is_ok());
    assert!(parts(60, "#[-4:-1]").is_err());
    let error = parts(3000, "exp(#) + sin(#)").unwrap_err();
    assert!(error.message().contains("too many steps"), "{error}");
}
