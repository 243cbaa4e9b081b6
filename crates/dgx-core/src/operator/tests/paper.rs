//! Operators that users may bring, one file each.

use super::*;

fn file(
    sizes: &str,
    tensors: &[(&str, &str, &str)],
    outputs: &[(&str, &str, &str, &str)],
) -> String {
    let mut text = format!("summary = \"s\"\n{sizes}\n");
    for (name, element, size) in tensors {
        let range = match *element {
            "i32" => "range = [0, 7]\n",
            _ => "",
        };
        text += &format!("[in.{name}]\ntype = \"{element}\"\nsize = [{size}]\n{range}");
    }
    for (name, element, size, rest) in outputs {
        text += &format!("[out.{name}]\ntype = \"{element}\"\nsize = [{size}]\n{rest}\n");
    }
    text
}

/// All of them, by name.
pub(super) fn files() -> Vec<(&'static str, String)> {
    let mn = "sizes = [\"m\", \"n\"]\nconst = { eps = 1e-5 }";
    let mn_only = "sizes = [\"m\", \"n\"]";
    let (m_n, n) = ("\"m\", \"n\"", "\"n\"");
    let bgcs = "\"b\", \"g\", \"c\", \"s\"";
    let channel = "\"g\", \"c\", 1";
    let rope = "\"b\", \"s\", \"h\", 2, \"e\"";
    let heads = "\"b\", \"g\", 1, \"s\", \"d\"";
    let fp8 = "sizes = [\"m\", \"n\", \"k\"]\nrequires = [\"n % 128 == 0\", \"k % 128 == 0\"]";
    let q = "\"b\", \"g\", \"r\", \"s\", \"d\"";
    vec![
        (
            "layer norm",
            file(
                mn,
                &[("x", "bf16", m_n), ("w", "bf16", n), ("b", "bf16", n)],
                &[(
                    "y",
                    "bf16",
                    m_n,
                    "let = { d = \"x - mean(x, -1)\" }\nvalue = \"d * rsqrt(mean(d * d, -1) + eps) * w + b\"",
                )],
            ),
        ),
        (
            "group norm",
            file(
                "sizes = [\"b\", \"g\", \"c\", \"s\"]\nconst = { eps = 1e-5 }",
                &[
                    ("x", "f16", bgcs),
                    ("w", "f16", channel),
                    ("bias", "f16", channel),
                ],
                &[(
                    "y",
                    "f16",
                    bgcs,
                    "value = \"d * rsqrt(mean(mean(d * d, -1), -2) + eps) * w + bias\"\n\
               let = { d = \"x - mean(mean(x, -1), -2)\" }",
                )],
            ),
        ),
        (
            "grouped heads",
            file(
                "sizes = [\"b\", \"g\", \"r\", \"s\", \"d\"]\nsmall = [{ b = 1, g = 2, r = 2, s = 32, d = 16 }]",
                &[("q", "bf16", q), ("k", "bf16", heads), ("v", "bf16", heads)],
                &[(
                    "o",
                    "bf16",
                    q,
                    "value = \"softmax(where(i(-1) <= i(-2), (q @ k.T) * rsqrt(d), -inf), -1) @ v\"",
                )],
            ),
        ),
        (
            "RoPE",
            file(
                "sizes = [\"b\", \"s\", \"h\", \"e\"]",
                &[("x", "f16", rope), ("t", "f32", "\"s\", 1, 1, \"e\"")],
                &[(
                    "y",
                    "f16",
                    rope,
                    "value = \"x * cos(t) + where(i(-2) == 0, -1, 1) * take(x, 1 - i(-2), -2) * sin(t)\"",
                )],
            ),
        ),
        (
            "top-k",
            file(
                "sizes = [\"m\", \"n\", \"t\"]\nrequires = [\"t <= n\"]\nsmall = [{ m = 8, n = 64, t = 4 }]",
                &[("x", "f32", m_n)],
                &[
                    (
                        "idx",
                        "i32",
                        "\"m\", \"t\"",
                        "value = \"argsort(-x, -1)[..., :t]\"",
                    ),
                    (
                        "p",
                        "f32",
                        "\"m\", \"t\"",
                        "value = \"take(softmax(x, -1), idx, -1)\"",
                    ),
                ],
            ),
        ),
        (
            "cross-entropy",
            file(
                mn_only,
                &[("x", "f32", m_n), ("y", "i32", "\"m\", 1")],
                &[(
                    "loss",
                    "f32",
                    "\"m\", 1",
                    "value = \"log(sum(exp(x - max(x, -1)), -1)) + max(x, -1) - take(x, y, -1)\"",
                )],
            ),
        ),
        (
            "int8 GEMM",
            file(
                "sizes = [\"m\", \"n\", \"k\"]",
                &[
                    ("a", "i8", "\"m\", \"k\""),
                    ("b", "i8", "\"n\", \"k\""),
                    ("sa", "f32", "\"m\", 1"),
                    ("sb", "f32", "\"n\", 1"),
                ],
                &[("c", "f16", m_n, "value = \"(a @ b.T) * sa * sb.T\"")],
            ),
        ),
        (
            "fp8 block GEMM",
            file(
                fp8,
                &[
                    ("a", "e4m3", "\"m\", \"k\""),
                    ("b", "e4m3", "\"n\", \"k\""),
                    ("sa", "f32", "\"m\", \"k // 128\""),
                    ("sb", "f32", "\"n // 128\", \"k // 128\""),
                ],
                &[(
                    "c",
                    "bf16",
                    m_n,
                    "value = \"(a * take(sa, i(-1) // 128, -1)) @ (b * take(take(sb, i(-2) // 128, -2), i(-1) // 128, -1)).T\"",
                )],
            ),
        ),
        (
            "quantise to nvfp4",
            file(
                "sizes = [\"m\", \"n\"]",
                &[("x", "bf16", "\"m\", \"n\", 16")],
                &[
                    (
                        "s",
                        "e4m3",
                        "\"m\", \"n\", 1",
                        "value = \"e4m3(max(abs(x), -1) / 6)\"",
                    ),
                    (
                        "q",
                        "e2m1",
                        "\"m\", \"n\", 16",
                        "value = \"e2m1(where(s == 0, 0, x / s))\"",
                    ),
                ],
            ),
        ),
        (
            "embedding",
            file(
                "sizes = [\"t\", \"v\", \"d\"]",
                &[("w", "f16", "\"v\", \"d\""), ("id", "i32", "\"t\", 1")],
                &[("y", "f16", "\"t\", \"d\"", "value = \"take(w, id, -2)\"")],
            ),
        ),
        (
            "scan",
            file(
                mn_only,
                &[("x", "f32", m_n)],
                &[("y", "f32", m_n, "value = \"cumsum(x, -1)\"")],
            ),
        ),
        (
            "histogram",
            file(
                "sizes = [\"bins\", \"n\"]",
                &[("x", "u8", n)],
                &[(
                    "y",
                    "i32",
                    "\"bins\", 1",
                    "value = \"sum(where(x == i(-2), 1, 0), -1)\"",
                )],
            ),
        ),
        (
            "mxfp8 product, permuted",
            file(
                "sizes = [\"m\", \"n\", \"k\"]\nrequires = [\"k % 32 == 0\"]",
                &[
                    ("a", "mxfp8", "\"m\", \"k\""),
                    ("b", "mxfp4", "\"n\", \"k\""),
                ],
                &[(
                    "c",
                    "f32",
                    "\"n\", \"m\"",
                    "value = \"permute(a @ b.T, -1, 0)\"",
                )],
            ),
        ),
    ]
}

#[test]
fn every_operator_on_paper_loads() {
    for (name, text) in files() {
        let operator = operator(&text);
        let operator = operator.unwrap_or_else(|e| panic!("{name}: {e}\n{}\n{text}", e.remedy()));
        check_extents(&operator);
        for output in &operator.outputs {
            for node in &output.value.nodes {
                assert!(
                    node.extents(&operator.small[0]).is_some(),
                    "{name}: {node:?}"
                );
            }
        }
    }
}

/// An axis that no tensor names gets its extent from the tensor it is combined with.
#[test]
fn gathered_axes_meet_what_surrounds_them() {
    let files: std::collections::BTreeMap<_, _> = files().into_iter().collect();
    let fp8 = sound(&files["fp8 block GEMM"]);
    let lines = steps(&fp8, &fp8.outputs[0].value);
    let takes: Vec<&String> = lines.iter().filter(|line| line.contains("Take")).collect();
    assert_eq!(takes.len(), 3, "{lines:#?}");
    assert!(takes[0].ends_with("[m, k]"), "{lines:#?}");
    assert!(takes[1].ends_with("[n, k // 128]"), "{lines:#?}");
    assert!(takes[2].ends_with("[n, k]"), "{lines:#?}");
    let histogram = sound(&files["histogram"]);
    let lines = steps(&histogram, &histogram.outputs[0].value);
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with("Index(1) [] [bins, 1]")),
        "{lines:#?}"
    );
    let permuted = sound(&files["mxfp8 product, permuted"]);
    let value = &permuted.outputs[0].value;
    assert_eq!(value.node(value.root).op, Op::Permute(vec![1, 0]));
}
