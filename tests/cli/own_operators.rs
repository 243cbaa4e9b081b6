//! A user's own operator, and the kernel that dgx generates for it.

use crate::workspace::Workspace;

const GROUP_NORM: &str = "summary = \"group norm\"
sizes = [\"b\", \"g\", \"c\", \"s\"]
small = [{ b = 2, g = 3, c = 4, s = 50 }]
const = { eps = 1e-5 }
[in.x]
type = \"f16\"
size = [\"b\", \"g\", \"c\", \"s\"]
[in.w]
type = \"f16\"
size = [\"g\", \"c\", 1]
[out.y]
type  = \"f16\"
size  = [\"b\", \"g\", \"c\", \"s\"]
value = \"d * rsqrt(mean(mean(d * d, -1), -2) + eps) * w\"
let   = { d = \"x - mean(mean(x, -1), -2)\" }
[mistake]
\"no weight\" = \"d * rsqrt(mean(mean(d * d, -1), -2) + eps)\"
";

const I8_GEMM: &str = "summary = \"int8 GEMM with scales of rows and columns\"
sizes = [\"m\", \"n\", \"k\"]
small = [{ m = 16, n = 24, k = 512 }]
[in.a]
type = \"i8\"
size = [\"m\", \"k\"]
[in.b]
type = \"i8\"
size = [\"n\", \"k\"]
[in.sa]
type  = \"f32\"
size  = [\"m\", 1]
range = [0.001, 0.01]
[in.sb]
type  = \"f32\"
size  = [\"n\", 1]
range = [0.001, 0.01]
[out.c]
type  = \"f16\"
size  = [\"m\", \"n\"]
value = \"(a @ b.T) * sa * sb.T\"
[mistake]
\"columns not scaled\" = \"(a @ b.T) * sa\"
";

/// Steps that the others do not have: gathers, sorts, running sums, casts,
/// packed outputs, an output that reads another.
const ODD: &str = "summary = \"odd steps\"
sizes = [\"m\", \"n\", \"t\"]
requires = [\"t <= n\", \"n % 2 == 0\"]
small = [{ m = 5, n = 32, t = 4 }]
[in.x]
type  = \"f32\"
size  = [\"m\", \"n\"]
range = [-4, 4]
[in.id]
type  = \"i32\"
size  = [\"t\", 1]
range = [0, \"m - 1\"]
[out.top]
type  = \"i32\"
size  = [\"m\", \"t\"]
value = \"argsort(-x, -1)[..., :t]\"
[out.best]
type  = \"f32\"
size  = [\"m\", \"t\"]
value = \"take(x, top, -1)\"
[out.rows]
type  = \"f32\"
size  = [\"t\", \"n\"]
value = \"take(cumsum(x, -1), id, -2)\"
[out.q]
type  = \"e2m1\"
size  = [\"m\", \"n\"]
value = \"e2m1(where(i(-1) % 3 == 0, maximum(x, 0), gelu(x) // 0.5 * 0.5))\"
[out.big]
type  = \"bool\"
size  = [\"n\", \"m\"]
value = \"abs(x.T) > 1\"
";

fn swept(workspace: &Workspace, operator: &str) -> String {
    let text = workspace.run(&["new", &format!("my-{operator}"), "--operator", operator]);
    assert!(text.ends_with("[exit 0]"), "{text}");
    let round = format!("configs/my-{operator}.toml");
    workspace.run(&["sweep", &round, "--backend", "emu"])
}

/// The kernel that is written passes validation as it is.
#[test]
fn every_operator_has_a_kernel_to_begin_from() {
    let workspace = Workspace::empty();
    workspace.write("operators/group-norm.toml", GROUP_NORM);
    workspace.write("operators/i8-gemm.toml", I8_GEMM);
    workspace.write("operators/odd.toml", ODD);
    for operator in [
        "softmax",
        "rms-norm",
        "f16-gemm",
        "attention",
        "nvfp4-gemv",
        "nvfp4-gemm",
        "nvfp4-dual-gemm",
        "group-norm",
        "i8-gemm",
        "odd",
    ] {
        let text = swept(&workspace, operator);
        assert!(text.ends_with("[exit 0]"), "{operator}: {text}");
        assert!(text.contains(" ok"), "{operator}: {text}");
    }
}

#[test]
fn an_operator_is_begun_with_its_kernel() {
    let workspace = Workspace::empty();
    let text = workspace.run(&["new", "--operator", "my-norm"]);
    for file in [
        "operators/my-norm.toml",
        "variants/my-norm/naive.cu",
        "configs/my-norm.toml",
    ] {
        assert!(text.contains(&format!("wrote {file}")), "{text}");
    }
    let text = workspace.run(&["check", "operators/my-norm.toml"]);
    assert!(text.ends_with("[exit 0]"), "{text}");
    let text = workspace.run(&["sweep", "my-norm", "--backend", "emu"]);
    assert!(text.contains("validate 2/2 ok"), "{text}");
    assert!(text.ends_with("[exit 0]"), "{text}");
}

#[test]
fn what_cannot_be_begun_is_refused() {
    let workspace = Workspace::empty();
    for (words, why) in [
        (
            &["new", "--operator", "softmax"][..],
            "give the new variant a name",
        ),
        (
            &["new", "mine", "--operator", "rms-nrm"],
            "did you mean `rms-norm`?",
        ),
        (
            &["new", "mine", "--operator", "quite-other"],
            "`dgx new --operator quite-other` writes a file to begin from",
        ),
        (&["new", "--operator", "no/path"], "a name is not a path"),
        (&["new"], "required arguments"),
    ] {
        let text = workspace.run(words);
        assert!(text.contains(why), "{words:?}: {text}");
        assert!(text.ends_with("[exit 2]"), "{words:?}: {text}");
    }
    assert!(!workspace.path().join("configs").exists());
    workspace.run(&["new", "mine", "--operator", "softmax"]);
    let text = workspace.run(&["new", "mine", "--operator", "softmax"]);
    assert!(text.contains("there is a variant of that name"), "{text}");
    // One file that exists keeps all of them from being written.
    workspace.write("variants/my-norm/naive.cu", "mine");
    let text = workspace.run(&["new", "--operator", "my-norm"]);
    assert!(
        text.contains("there is variants/my-norm/naive.cu"),
        "{text}"
    );
    assert!(text.ends_with("[exit 2]"), "{text}");
    for file in ["operators/my-norm.toml", "configs/my-norm.toml"] {
        assert!(!workspace.path().join(file).exists(), "{file}");
    }
}

/// A file that cannot tell right from wrong is refused before anything runs.
#[test]
fn an_operator_that_accepts_what_is_wrong_is_refused() {
    let workspace = Workspace::empty();
    workspace.run(&["new", "--operator", "my-norm"]);
    let file = "operators/my-norm.toml";
    let right = workspace.read(file);
    for (from, to, told, place) in [
        (
            "value = \"(x - mean(x, -1)) * w\"",
            "value = \"(x - mean(x, -1)) * w\"\natol  = 1e6",
            "all zeros pass for `y` on its own data",
            "atol",
        ),
        (
            "\"no mean\"   = \"x * w\"",
            "\"no mean\"   = \"(x - mean(x, -1)) * w * 1.0001\"",
            "the mistake \"no mean\" passes on the operator's own data",
            "1.0001",
        ),
        (
            "value = \"(x - mean(x, -1)) * w\"",
            "value = \"log(-1 - abs(x)) * w\"",
            "`y` is NaN or infinite everywhere on its own data",
            "log(-1 - abs(x))",
        ),
    ] {
        workspace.write(file, &right.replace(from, to));
        for words in [
            &["check", file][..],
            &["sweep", "my-norm", "--backend", "emu"],
        ] {
            let text = workspace.run(words);
            assert!(text.contains(told), "{words:?}: {text}");
            assert!(text.contains("help: "), "{text}");
            assert!(
                text.contains(place) && text.contains("operators/my-norm.toml:"),
                "{text}"
            );
            assert!(text.ends_with("[exit 2]"), "{text}");
        }
    }
    assert!(!workspace.path().join("results").exists());
}

/// Commands that are given a design alone find it, whatever it computes.
#[test]
fn designs_of_every_operator_are_found() {
    let workspace = Workspace::empty();
    workspace.run(&["new", "mine", "--operator", "softmax"]);
    workspace.run(&["new", "other", "--operator", "rms-norm"]);
    let listed = workspace.run(&["list"]);
    assert!(
        listed.contains("softmax") && listed.contains("mine"),
        "{listed}"
    );
    assert!(
        listed.contains("rms-norm") && listed.contains("other"),
        "{listed}"
    );
    let source = "variants/rms-norm/other.cu";
    let summary = "summary  = \"One thread for each element\"\n";
    let told = format!(
        "{summary}parent   = \"first\"\nclaim    = {{ geomean = 1.1, over = \"first\" }}\n"
    );
    workspace.edit(source, summary, &told);
    let text = workspace.run(&["check", "other", "--no-compile"]);
    assert!(
        text.contains("`parent` names `first`, which is not there"),
        "{text}"
    );
    workspace.run(&["new", "first", "--operator", "rms-norm"]);
    let text = workspace.run(&["check", "other", "--no-compile"]);
    assert!(!text.contains("which is not there"), "{text}");
    let text = workspace.run(&["sanitize", "mine", "--schedules", "1"]);
    assert!(text.ends_with("[exit 0]"), "{text}");
    let text = workspace.run(&["debug", "mine", "--backend", "emu"]);
    assert!(text.ends_with("[exit 0]"), "{text}");
}

/// Of several outputs the one that is wrong is named.
#[test]
fn a_wrong_output_is_called_by_its_name() {
    let workspace = Workspace::empty();
    workspace.write("operators/odd.toml", ODD);
    workspace.run(&["new", "mine", "--operator", "odd"]);
    workspace.edit(
        "variants/odd/mine.cu",
        "group.best[at] = ",
        "group.best[at] = 1 + ",
    );
    let text = workspace.run(&["sweep", "mine", "--backend", "emu"]);
    assert!(text.contains("every element of output best"), "{text}");
    assert!(text.contains("first: output best, row 0"), "{text}");
    assert!(!text.contains("group 1"), "{text}");
}

/// Times of one operator say nothing of another.
#[test]
fn runs_of_different_operators_are_not_compared() {
    let workspace = Workspace::empty();
    for (name, operator) in [("one", "softmax"), ("two", "rms-norm")] {
        workspace.run(&["new", name, "--operator", operator]);
        let text = workspace.run(&["sweep", name, "--backend", "emu"]);
        assert!(text.ends_with("[exit 0]"), "{text}");
    }
    for words in [
        &["compare", "one", "two"][..],
        &["compare", "one", "two", "--across-devices"],
    ] {
        let words: Vec<String> = words
            .iter()
            .map(|word| match *word {
                "one" | "two" => run_of(&workspace, word),
                other => other.to_owned(),
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = workspace.run(&words);
        assert!(
            text.contains("are of different operators: softmax ("),
            "{text}"
        );
        assert!(text.contains("compare runs of one operator"), "{text}");
        assert!(text.ends_with("[exit 2]"), "{text}");
    }
}

fn run_of(workspace: &Workspace, round: &str) -> String {
    let files = std::fs::read_dir(workspace.path().join("results")).expect("results");
    let names = files.map(|file| file.expect("an entry").file_name());
    let mut names = names.map(|name| name.to_string_lossy().into_owned());
    let found =
        names.find(|name| name.starts_with(&format!("{round}-")) && name.ends_with(".jsonl"));
    format!("results/{}", found.expect("a run"))
}
