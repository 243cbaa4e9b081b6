//! An operator of one's own, and the kernel that is written for it.

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

/// The kernel that is written is right at once.
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
            "name one: dgx new mine --operator softmax",
        ),
        (
            &["new", "mine", "--operator", "rms-nrm"],
            "did you mean `rms-norm`?",
        ),
        (
            &["new", "mine", "--operator", "quite-other"],
            "dgx new --operator quite-other writes a file to begin from",
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
    assert!(text.contains("there is configs/mine.toml"), "{text}");
}
