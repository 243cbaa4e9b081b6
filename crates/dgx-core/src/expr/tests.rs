use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::domain::Group;

fn groups() -> [Group; 2] {
    [(80, 512), (176, 256)].map(|(m, k)| Group::new([("m", m), ("n", 4096), ("k", k)]))
}

fn eval_in(text: &str, group: Option<usize>) -> Result<i64, ExprError> {
    let constants = BTreeMap::from([("BM".to_owned(), 128), ("ZERO".to_owned(), 0)]);
    let lets = BTreeMap::from([
        ("rows".to_owned(), vec![80, 176]),
        ("same".to_owned(), vec![7, 7]),
    ]);
    let scope = Scope {
        constants: &constants,
        lets: &lets,
        groups: &groups(),
        tiles: Some(&[1, 2]),
        group,
        sms: 132,
        steps: &Steps::new(100_000),
    };
    Expr::parse(text)?.eval(&scope)
}

fn eval(text: &str) -> i64 {
    eval_in(text, None).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fails(text: &str) -> ExprError {
    eval_in(text, None).expect_err(text)
}

#[test]
fn a_let_is_a_value_of_its_group() {
    assert_eq!(eval_in("rows + BM", Some(1)), Ok(304));
    assert_eq!(eval("sum(rows) - most(rows)"), 80);
    assert_eq!(eval("same"), 7);
    assert!(fails("rows").message.contains("`rows` is ambiguous"));
}

#[test]
fn operators_bind_as_in_c() {
    assert_eq!(eval("1 + 2 * 3 - 4"), 3);
    assert_eq!(eval("2 - 3 - 4"), -5);
    assert_eq!(eval("7 / 2 * 2 + 7 % 2"), 7);
    assert_eq!(eval("1 + 1 == 2 && 3 > 2 || 0"), 1);
    assert_eq!(eval("!0 + !5"), 1);
    assert_eq!(eval("-(2 + 3) * -1"), 5);
    assert_eq!(eval("1 ? 2 : 0 ? 3 : 4"), 2);
    assert_eq!(eval("0x10 + 1_000"), 1016);
}

#[test]
fn functions_and_groups() {
    assert_eq!(eval("cdiv(129, BM)"), 2);
    assert_eq!(eval("align(129, BM)"), 256);
    assert_eq!(eval("min(3, 2, 9) + max(1, 4)"), 6);
    assert_eq!(eval("sum(m) + most(k) + least(tiles)"), 256 + 512 + 1);
    assert_eq!(eval("bits(tiles)"), 0b110);
    assert!(eval_in("bits(m)", None).is_err(), "80 is no bit of an i64");
    assert_eq!(eval("min(sms, sum(tiles)) + groups"), 5);
    assert_eq!(eval("n"), 4096, "all groups agree on n");
    assert_eq!(eval_in("m + tiles", Some(1)), Ok(178));
}

/// Groups of 80 and 176 rows, or ten octets and twenty-two.
#[test]
fn levels_are_few_and_raise_the_least_weight() {
    let set = |values: &[i64]| values.iter().map(|v| 1_i64 << v).sum::<i64>();
    assert_eq!(eval("levels(m / 8, 1, 2)"), set(&[10, 22]));
    assert_eq!(eval("levels(m / 8, 1, 1)"), set(&[22]));
    assert_eq!(eval("next(levels(m / 8, 1, 2), 10)"), 10);
    assert_eq!(eval("next(levels(m / 8, 1, 2), 11)"), 22);
    assert_eq!(eval("next(bits(tiles), 0 - 5)"), 1);
    assert!(fails("next(bits(tiles), 3)").message.contains("no member"));
    assert!(
        fails("levels(tiles, 0 - 1, 2)")
            .message
            .contains("negative")
    );
    assert!(fails("levels(tiles, 1, 0)").message.contains("0 levels"));
    assert!(fails("levels(m, 1, 2)").message.contains("from 0 to 62"));
}

proptest! {
    /// No other set of as many values raises less weight.
    #[test]
    fn levels_are_the_best_choice(
        weights in proptest::collection::vec(0_u64..9, 9),
        most in 1..5_usize,
    ) {
        let mut all = [0; levels::SET];
        all[..9].copy_from_slice(&weights);
        let raised = |set: i64| -> Option<u64> {
            let of = |v: usize| {
                let level = (v..63).find(|l| set >> l & 1 == 1);
                match weights[v] {
                    0 => Some(0),
                    weight => Some(weight * (level? - v) as u64),
                }
            };
            (0..9).map(of).sum()
        };
        let chosen = levels::levels(&all, most);
        let others = (0..512_i64).filter(|set| set.count_ones() as usize <= most);
        prop_assert!(chosen.count_ones() as usize <= most);
        prop_assert_eq!(raised(chosen), others.filter_map(raised).min());
    }
}

#[test]
fn a_guard_keeps_the_other_side_from_being_evaluated() {
    assert_eq!(eval("ZERO != 0 && 1 / ZERO"), 0);
    assert_eq!(eval("ZERO == 0 || 1 / ZERO"), 1);
    assert_eq!(eval("ZERO ? 1 / ZERO : 7"), 7);
}

#[test]
fn mistakes_name_their_place_and_a_remedy() {
    let error = fails("BM / ZERO");
    assert_eq!(error.span, 5..9);
    assert_eq!(error.message, "division by zero");
    assert!(fails("m + 1").message.contains("ambiguous"));
    assert_eq!(fails("BN * 2").remedy, "did you mean `BM`?");
    assert_eq!(fails("mst(m)").remedy, "did you mean `most`?");
    assert!(
        fails("9223372036854775807 + 1")
            .message
            .contains("overflows")
    );
    assert!(
        fails("-9223372036854775807 - 2")
            .message
            .contains("overflows")
    );
    assert!(fails("1 < 2 < 3").message.contains("chain"));
    for text in [
        "",
        "1 +",
        "(1",
        "1 2",
        "cdiv(1)",
        "99999999999999999999",
        "a $ b",
        "1 ? 2",
    ] {
        fails(text);
    }
    fails(&"(".repeat(100_000));
    fails(&"-".repeat(100_000));
}

proptest! {
    #[test]
    fn any_text_parses_or_errs_inside_itself(text in "\\PC{0,40}") {
        if let Err(error) = Expr::parse(&text) {
            prop_assert!(error.span.start <= error.span.end && error.span.end <= text.len());
        }
    }

    #[test]
    fn expression_shaped_text_never_panics(text in "[mnk0-9+*/%()?:<>=!&|, -]{0,40}") {
        let _ = eval_in(&text, Some(0));
    }

    #[test]
    fn arithmetic_agrees_with_rust(a in any::<i32>(), b in any::<i32>(), c in 1..i32::MAX) {
        let (x, y, z) = (i64::from(a), i64::from(b), i64::from(c));
        let text = format!("({x} - {y}) / {z} + {x} % {z} * 3");
        prop_assert_eq!(eval(&text), (x - y) / z + x % z * 3);
    }

    #[test]
    fn align_is_the_least_multiple_not_below(a in 0..1_000_000i64, b in 1..5_000i64) {
        let aligned = eval(&format!("align({a}, {b})"));
        prop_assert!(aligned % b == 0 && aligned >= a && aligned - a < b);
        prop_assert_eq!(eval(&format!("cdiv({a}, {b}) * {b}")), aligned);
    }
}

#[test]
fn long_and_endless_expressions_are_refused() {
    let long = vec!["1"; 30_000].join(" + ");
    assert!(fails(&long).message.contains("59999 words"));
    let fits = vec!["1"; 500].join(" + ");
    assert_eq!(eval(&fits), 500);
    let nested = format!("{}m{}", "sum(".repeat(20), ")".repeat(20));
    assert!(fails(&nested).message.contains("steps"));
    let deep = format!("{}1{}", "(".repeat(30_000), ")".repeat(30_000));
    assert!(fails(&deep).message.contains("words"));
    let choices = format!("{}1", "1 ? 1 : ".repeat(30_000));
    assert!(fails(&choices).message.contains("words"));
}
