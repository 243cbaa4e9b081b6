use super::*;

/// Two picks: one costs 2 µs and 3 ns a row, the other 10 µs and 1 ns a row.
fn field(rows: &[i64]) -> Vec<Sample> {
    let call = |pick: usize, fixed: f64, nanos: f64, m: i64| Call {
        pick,
        terms: vec![1000, m, m * m],
        micros: fixed + nanos * m as f64 / 1e3,
    };
    let sample = |m: &i64| Sample {
        shape: format!("{m}"),
        calls: vec![call(0, 2.0, 3.0, *m), call(1, 10.0, 1.0, *m)],
    };
    rows.iter().map(sample).collect()
}

#[test]
fn a_fit_finds_the_costs_and_the_border_between_them() {
    let samples = field(&[1, 10, 100, 1000, 3000, 5000, 20_000]);
    let start = vec![vec![0.0; 3], vec![1.0, 0.0, 0.0]];
    let costs = fit(&samples, &start);
    for (found, expected) in costs.iter().zip([[2.0, 3.0, 0.0], [10.0, 1.0, 0.0]]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{costs:?}");
        }
    }
    for found in errors(&samples, &costs) {
        assert!(found.shares.iter().all(|share| *share < 1e-6));
    }
    // At 4000 rows both take 14 µs; the first costs ignore the rows.
    let others = field(&[3900, 4100, 30_000]);
    assert!(regrets(&others, &costs).iter().all(|r| r.share == 0.0));
    let worst = regrets(&others, &start).pop().unwrap();
    assert_eq!((worst.chosen, worst.best), (0, 1));
    assert!((worst.share - (92.0 / 40.0 - 1.0)).abs() < 1e-9);
}

#[test]
fn a_pick_with_fewer_times_than_terms_keeps_its_cost() {
    let samples = field(&[5, 7]);
    let start = vec![vec![4.0; 3], vec![5.0; 3]];
    assert_eq!(fit(&samples, &start), start);
}

/// One cost for two times: it is closer to the time that has a close rival.
#[test]
fn a_time_that_no_other_comes_near_matters_little() {
    let sample = |micros: f64, rival: f64| Sample {
        shape: String::new(),
        calls: [micros, rival]
            .iter()
            .enumerate()
            .map(|(pick, micros)| Call {
                pick,
                terms: vec![1000],
                micros: *micros,
            })
            .collect(),
    };
    let cost = |rival: f64| {
        let samples = [sample(10.0, 11.0), sample(20.0, rival)];
        fit(&samples, &vec![vec![0.0]; 2])[0][0]
    };
    assert!(
        cost(200.0) < 10.5 && cost(21.0) > 12.0,
        "{} {}",
        cost(200.0),
        cost(21.0)
    );
}

#[test]
fn coefficients_are_never_negative() {
    // By these two rows alone the second would be −1.
    let rows = vec![(vec![1.0, 0.0], 1.0), (vec![1.0, 1.0], 0.0)];
    let found = solve::least_squares(&rows, 2).unwrap();
    assert_eq!(found, [0.5, 0.0]);
}

#[test]
fn a_percentile_is_a_value_that_occurs() {
    assert_eq!(percentile(&[], 0.95), 0.0);
    assert_eq!(percentile(&[1.0, 2.0, 3.0, 4.0], 0.5), 2.0);
    assert_eq!(percentile(&[1.0, 2.0, 3.0, 4.0], 0.95), 4.0);
}

/// One coefficient cannot fit these times, but some choose better than others: above 100 rows the
/// second pick is faster.
#[test]
fn costs_are_moved_to_where_the_choice_loses_least() {
    let sample = |rows: i64, micros: f64| Sample {
        shape: format!("{rows}"),
        calls: vec![
            Call {
                pick: 0,
                terms: vec![rows],
                micros,
            },
            Call {
                pick: 1,
                terms: vec![1000],
                micros: 10.0,
            },
        ],
    };
    let samples = [(70, 6.2), (95, 9.3), (97, 9.4), (104, 12.0)].map(|(m, t)| sample(m, t));
    let lost = |costs: &Costs| -> f64 {
        let regrets = regrets(&samples, costs);
        regrets.iter().map(|regret| regret.share).sum()
    };
    let start = vec![vec![95.0], vec![10.0]];
    assert!(lost(&start) > 0.19, "{}", lost(&start));
    let costs = descent::least_loss(&samples, start, &[true, true]);
    assert_eq!(lost(&costs), 0.0, "{costs:?}");
}
