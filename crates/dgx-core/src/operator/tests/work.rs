use super::*;
use crate::domain::roofline::Rate;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

#[test]
fn the_dual_gemm_takes_what_it_always_took() {
    let dual = built_in("nvfp4-dual-gemm").unwrap();
    for (m, n, k) in [(64, 128, 256), (1, 4096, 7168), (1000, 1536, 512)] {
        let work = dual.work(&[m, n, k]);
        assert_eq!(work.flops(), (4 * m * n * k) as f64);
        assert_eq!(work.bytes, (m + 2 * n) * (k / 2 + k / 16) + 2 * m * n);
        assert_eq!(work.products.keys().collect::<Vec<_>>(), [&Rate::E2m1]);
    }
}

#[test]
fn causal_attention_counts_the_triangle_alone() {
    let attention = built_in("attention").unwrap();
    for (b, h, s, d) in [(1, 2, 128, 64), (1, 32, 8192, 128), (8, 16, 1000, 64)] {
        let work = attention.work(&[b, h, s, d]);
        let pairs = (s * (s + 1) / 2) as f64;
        let flops = 2.0 * 2.0 * pairs * (b * h * d) as f64;
        assert!(near(work.products[&Rate::F16], flops), "{work:?} {flops}");
        assert_eq!(work.bytes, 4 * b * h * s * d * 2);
    }
}

fn masked(value: &str, rest: &str) -> Operator {
    sound(&format!(
        "summary = \"s\"\nsizes = [\"s\", \"d\", \"w\"]\n{rest}\n\
         small = [{{ s = 64, d = 32, w = 16 }}]\n[in.q]\ntype = \"bf16\"\nsize = [\"s\", \"d\"]\n\
         [in.k]\ntype = \"bf16\"\nsize = [\"s\", \"d\"]\n[out.o]\ntype = \"bf16\"\n\
         size = [\"s\", \"s\"]\nvalue = \"{value} * w\"\n"
    ))
}

#[test]
fn masks_of_every_kind_are_counted() {
    let (s, d, w) = (100_u64, 32_u64, 7_u64);
    let count = |keeps: &dyn Fn(u64, u64) -> bool| {
        let rows = (0..s).map(|r| (0..s).filter(|c| keeps(r, *c)).count());
        rows.sum::<usize>() as f64
    };
    let window = count(&|r, c| c <= r && r - c < w);
    let blocks = count(&|r, c| r / w == c / w);
    let below = count(&|r, c| c > r);
    for (value, pairs) in [
        (
            "where(i(-1) <= i(-2) and i(-2) - i(-1) < w, q @ k.T, 0)",
            window,
        ),
        (
            "where(i(-1) // w == i(-2) // w, (q @ k.T) * 2, -inf)",
            blocks,
        ),
        ("where(i(-1) <= i(-2), 0, q @ k.T)", below),
        ("where(2 * i(-1) == 2 * i(-2), exp(q @ k.T), 0)", s as f64),
        ("(q @ k.T)", (s * s) as f64),
        ("where(q @ k.T > 0, q @ k.T, 0)", (s * s) as f64),
        ("where(q[:, :1] > 0, q @ k.T, 0)", (s * s) as f64),
    ] {
        let work = masked(value, "").work(&[s, d, w]);
        let flops = 2.0 * d as f64 * pairs;
        assert!(
            near(work.flops(), flops),
            "{value}: {} {flops}",
            work.flops()
        );
    }
}

#[test]
fn the_file_has_the_last_word_on_operations() {
    let operator = masked("(q @ k.T)", "flops = \"s * d\"");
    assert_eq!(operator.work(&[64, 32, 16]).flops(), 64.0 * 32.0);
}

#[test]
fn without_products_every_step_counts() {
    let norm = built_in("rms-norm").unwrap();
    let work = norm.work(&[16, 256]);
    // Square, mean, two products; root and eps once a row.
    assert_eq!(work.flops(), 4.0 * 16.0 * 256.0 + 2.0 * 16.0);
    assert_eq!(work.bytes, 2 * (2 * 16 * 256 + 256));
}

#[test]
fn rates_follow_the_operands() {
    let files: std::collections::BTreeMap<_, _> = paper::files().into_iter().collect();
    let rate = |name: &str| {
        let operator = sound(&files[name]);
        let work = operator.work(&operator.small[0]);
        work.products.into_keys().next()
    };
    assert_eq!(rate("int8 GEMM"), Some(Rate::I8));
    assert_eq!(rate("fp8 block GEMM"), Some(Rate::E4m3));
    assert_eq!(rate("mxfp8 product, permuted"), Some(Rate::E4m3));
    assert_eq!(rate("grouped heads"), Some(Rate::F16));
    assert_eq!(rate("scan"), None);
}

#[test]
fn a_gather_reads_the_rows_it_takes() {
    let files: std::collections::BTreeMap<_, _> = paper::files().into_iter().collect();
    let embedding = sound(&files["embedding"]);
    let (t, v, d) = (10, 5000, 64);
    assert_eq!(
        embedding.work(&[t, v, d]).bytes,
        t * d * 2 + t * 4 + t * d * 2
    );
}
