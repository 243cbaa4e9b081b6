use super::{between, interval, signed_percent};
use crate::table::{Column, Table, Tone, Value, maybe, row};
use dgx_core::domain::{ContenderId, Interval, Micros};
use dgx_core::rank::{ComparedSide, Comparison, Judgement, Ranking};
use dgx_core::record::Run;
use dgx_core::stats::{CONFIDENCE, LogEstimate};

/// The second side over the first, pair by pair: a line for each shape and one for the geometric
/// mean.
pub(crate) fn comparison_table(compared: &[([ComparedSide<'_>; 2], &Comparison)]) -> Table {
    let Some(([base, candidate], _)) = compared.first() else {
        return Table::default();
    };
    let [a, b] = match base.contender == candidate.contender {
        true => ["A", "B"].map(str::to_owned),
        false => [base, candidate].map(|side| side.contender.to_string()),
    };
    let unit = between(base.run, candidate.run);
    let mut table = Table::new(vec![
        Column::left("contender").weight(0),
        Column::key("shape"),
        Column::right(format!("{a} µs")).weight(6),
        Column::right(format!("{b} µs")).weight(6),
        Column::left(format!("{b} over {a}")).unit(unit),
        Column::right("time").weight(4),
        Column::left("finding").weight(8),
        Column::left("differs").weight(0),
    ]);
    for (sides, comparison) in compared {
        for (shape, estimate, judgement) in comparison.judged() {
            let times = sides.each_ref().map(|side| time(side, shape));
            table.push(values(
                sides[1].contender,
                shape,
                times,
                estimate,
                judgement,
            ));
        }
        let mean = (&comparison.geomean, comparison.judgement());
        let none = [Value::default(), Value::default()];
        let row = values(sides[1].contender, "geometric mean", none, mean.0, mean.1);
        table.push(row.into_iter().map(|value| value.strong_if(true)).collect());
    }
    table
}

/// Benchmarks of another tool, before and after: a line for each, with its arguments, since no two
/// of them need compute the same.
pub(crate) fn benchmark_table(compared: &[([ComparedSide<'_>; 2], &Comparison)]) -> Table {
    let mut table = Table::new(vec![
        Column::key("benchmark"),
        Column::key("arguments"),
        Column::right("A µs").weight(6),
        Column::right("B µs").weight(6),
        Column::left("B over A"),
        Column::right("time").weight(4),
        Column::left("finding").weight(8),
    ]);
    for (sides, comparison) in compared {
        for (shape, estimate, judgement) in comparison.judged() {
            let times = sides.each_ref().map(|side| time(side, shape));
            let mut row = values(sides[1].contender, shape, times, estimate, judgement);
            row.truncate(7);
            table.push(row);
        }
    }
    table.without_empty_columns()
}

/// Another tool's recorded times: a line for each benchmark with its arguments.
pub(crate) fn recorded_table(run: &Run, ranking: &Ranking) -> Table {
    let mut table = Table::new(vec![
        Column::key("benchmark"),
        Column::key("arguments"),
        Column::right("recorded µs").weight(6),
        Column::left("95 %").weight(6),
    ]);
    for contender in run.header.contenders.iter().map(|c| &c.id) {
        for shape in run.header.shapes.iter().map(|s| &s.name) {
            let cell = ranking.cell(contender, shape);
            if let Some(time) = cell.and_then(|cell| cell.time.as_ref()) {
                let Interval { lower, upper, .. } = time.micros();
                let ends = lower.zip(upper);
                let ends = ends.map(|(low, high)| format!("[{} {}]", Micros(low), Micros(high)));
                table.push(row![
                    contender,
                    shape,
                    time.estimate(),
                    ends.unwrap_or_default()
                ]);
            }
        }
    }
    table.without_empty_columns()
}

fn time(side: &ComparedSide<'_>, shape: &str) -> Value {
    let cell = side.ranking.cell(side.contender, shape);
    maybe(cell.and_then(|cell| Some(cell.time.as_ref()?.estimate())))
}

fn values(
    contender: &ContenderId,
    shape: &str,
    [base, candidate]: [Value; 2],
    estimate: &LogEstimate,
    judgement: Judgement,
) -> Vec<Value> {
    let tone = match judgement {
        Judgement::Faster => Tone::Good,
        Judgement::Slower => Tone::Bad,
        _ => Tone::Plain,
    };
    row![
        contender,
        shape,
        base,
        candidate,
        interval(&estimate.ratio(CONFIDENCE)),
        signed_percent((-estimate.mean).exp_m1()),
        Value::from(judgement).tone(tone),
        match judgement.differs() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        },
    ]
}
