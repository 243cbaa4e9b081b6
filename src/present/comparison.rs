use super::{Align, Column, Grid, Style, interval, signed_percent};
use dgx_core::domain::Micros;
use dgx_core::rank::{Comparison, Judgement};
use dgx_core::stats::{CONFIDENCE, LogEstimate};

/// What every comparison of two runs has to be read with.
pub(crate) const UNPAIRED: &str =
    "No block pairs the two runs, so drift between them is in these ratios.";

/// One line per shape and one for the geometric mean: both times, the ratio,
/// and what it means.
pub(crate) fn comparison_table(
    names: (&str, &str),
    times: impl Fn(&str) -> (Option<Micros>, Option<Micros>),
    comparison: &Comparison,
    style: &Style,
) -> Grid {
    let mut grid = Grid::new(vec![
        Column::new("shape", Align::Left, 9),
        Column::new(format!("{} µs", names.0), Align::Right, 6),
        Column::new(format!("{} µs", names.1), Align::Right, 6),
        Column::new(format!("{} over {}", names.1, names.0), Align::Left, 9),
        Column::new("time", Align::Right, 4),
        Column::new("finding", Align::Left, 8),
    ]);
    let micros = |t: Option<Micros>| t.map_or(String::new(), |t| t.to_string());
    for (shape, estimate, judgement) in comparison.judged() {
        let (base, candidate) = times(shape);
        let mut row = vec![shape.to_owned(), micros(base), micros(candidate)];
        row.extend(verdict(estimate, judgement, style));
        grid.push(row);
    }
    let mut row = vec!["geometric mean".to_owned(), String::new(), String::new()];
    row.extend(verdict(&comparison.geomean, comparison.judgement(), style));
    grid.push(row.iter().map(|c| style.bold(c)).collect());
    grid
}

fn verdict(estimate: &LogEstimate, judgement: Judgement, style: &Style) -> [String; 3] {
    let finding = judgement.as_str();
    [
        interval(&estimate.ratio(CONFIDENCE)),
        signed_percent((-estimate.mean).exp_m1()),
        match judgement {
            Judgement::Faster => style.good(finding),
            Judgement::Slower => style.bad(finding),
            _ => finding.to_owned(),
        },
    ]
}
