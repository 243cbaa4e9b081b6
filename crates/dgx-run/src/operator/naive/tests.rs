use std::path::Path;

use dgx_core::diagnostic::SourceFile;
use dgx_core::operator::{Operator, built_in, names};

use super::naive;

fn of(text: &str) -> Operator {
    let file = SourceFile {
        path: Path::new("operators/test.toml").to_owned(),
        text: text.into(),
    };
    Operator::from_source(file).expect("a sound operator")
}

/// A loop that every element of a row reads gets its own kernel; one that only one element reads
/// does not.
#[test]
fn sums_that_are_shared_are_computed_once() {
    let kernels = |name: &str| -> Vec<String> {
        let text = naive(built_in(name).unwrap(), "sm_90a").unwrap();
        let lines = text.lines();
        let names = lines.filter_map(|line| line.strip_prefix("kernel = "));
        names
            .map(|name| name.trim_matches('"').to_owned())
            .collect()
    };
    assert_eq!(kernels("f16-gemm"), ["compute_c"]);
    assert_eq!(kernels("nvfp4-dual-gemm"), ["compute_c"]);
    assert_eq!(kernels("rms-norm"), ["compute_mean_1", "compute_y"]);
    assert_eq!(
        kernels("softmax"),
        ["compute_top_1", "compute_total_1", "compute_y"]
    );
    assert_eq!(
        kernels("attention"),
        [
            "compute_product_1",
            "compute_top_1",
            "compute_total_1",
            "compute_o"
        ]
    );
}

#[test]
fn a_product_reads_as_one_would_write_it() {
    let text = naive(built_in("f16-gemm").unwrap(), "sm_90a").unwrap();
    let (_, body) = text.split_once("// c = ").expect("its comment");
    insta::assert_snapshot!(body);
}

/// A step that is read often is written once.
#[test]
fn shared_steps_do_not_multiply() {
    let lets: Vec<String> = (1..40)
        .map(|i| format!("d{i} = \"d{0} * d{0}\"", i - 1))
        .collect();
    let operator = of(&format!(
        "summary = \"test\"\nsizes = [\"m\"]\n[in.x]\ntype = \"f32\"\nsize = [\"m\"]\n\
         [out.y]\ntype = \"f32\"\nsize = [\"m\"]\nvalue = \"d39\"\n[out.y.let]\nd0 = \"x * 0.5\"\n{}\n",
        lets.join("\n")
    ));
    let text = naive(&operator, "sm_90a").unwrap();
    assert!(text.len() < 10_000, "{}", text.len());
}

#[test]
fn more_sums_than_scratch_has_slots_are_refused() {
    let sums: Vec<String> = (0..9).map(|i| format!("x * sum(x + {i}, -1)")).collect();
    let operator = of(&format!(
        "summary = \"test\"\nsizes = [\"m\"]\n[in.x]\ntype = \"f32\"\nsize = [\"m\"]\n\
         [out.y]\ntype = \"f32\"\nsize = [\"m\"]\nvalue = \"{}\"\n",
        sums.join(" + ")
    ));
    let why = naive(&operator, "sm_90a").unwrap_err();
    assert!(why.contains("9 sums that many elements read"), "{why}");
}

#[test]
fn every_operator_that_dgx_brings_has_one() {
    for name in names() {
        let text = naive(built_in(name).unwrap(), "sm_90a").unwrap();
        assert!(text.starts_with("/*dgx\noperator = "), "{text}");
    }
}
