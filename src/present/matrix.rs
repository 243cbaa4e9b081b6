use super::{micros_title, status_tone};
use crate::table::{Column, Style, Table, Tone, Value};
use dgx_core::domain::{ContenderId, Status};
use dgx_core::rank::{Cell, Ranking};
use dgx_core::record::Run;

/// Times by shape and contender. The lowest of each shape is marked, and the mark shows whether the
/// yardstick is faster still. `more` adds to the value of a cell.
pub(crate) fn matrix_table(
    run: &Run,
    ranking: &Ranking,
    more: impl Fn(&Cell, Value) -> Value,
) -> Table {
    let contenders = || ranking.rows.iter().map(|row| &row.contender);
    let columns = contenders().map(Column::of_contender);
    let mut table = Table::keyed("shape", columns).titled(caption(run, ranking));
    for shape in &run.header.shapes {
        let mark = match beaten(run, ranking, &shape.name) {
            true => '+',
            false => '*',
        };
        let value = |id: &ContenderId| {
            let cell = ranking.cell(id, &shape.name);
            cell.map_or_else(Value::default, |cell| more(cell, value(cell, mark)))
        };
        table.push_named(&shape.name, contenders().map(value));
    }
    table
}

fn value(cell: &Cell, mark: char) -> Value {
    match (&cell.time, cell.status) {
        (Some(time), _) if time.best => Value::from(time.estimate()).mark(mark),
        (Some(time), _) => Value::from(time.estimate()),
        (None, Some(Status::Ok | Status::NotValidated)) => "not timed".into(),
        (None, Some(Status::Unsupported)) => Value::from("n/a").tone(Tone::Faint),
        (None, Some(status)) => Value::from(status).tone(status_tone(status)),
        (None, None) => "–".into(),
    }
}

/// The table of contenders that have a time; the others are among the failures. Rows are shapes if
/// the contenders fit side by side, otherwise contenders.
pub(crate) fn matrix(run: &Run, ranking: &Ranking, style: &Style) -> String {
    let untimed = ranking.rows.iter().filter(|row| row.valid_shapes == 0);
    let untimed: Vec<&str> = untimed.map(|row| row.contender.as_str()).collect();
    let mut by_shape = matrix_table(run, ranking, |_, value| value).without(&untimed);
    if by_shape.columns.len() == 1 {
        return String::new();
    }
    let mut by_contender = by_shape.transposed("contender");
    for column in &mut by_shape.columns {
        // The parameters of `pipelined[STAGES=3]` go to a second line.
        column.title = column.title.replacen('[', "\n[", 1);
    }
    if by_shape.full_width() <= style.width {
        return by_shape.render(style);
    }
    if by_contender.full_width() > style.width {
        for column in by_contender.columns.iter_mut().skip(1) {
            column.title = folded_shape(&column.title);
        }
    }
    by_contender.render(style)
}

fn caption(run: &Run, ranking: &Ranking) -> String {
    let title = micros_title(run);
    let mut shapes = run.header.shapes.iter();
    match (
        &run.header.yardstick,
        shapes.any(|s| beaten(run, ranking, &s.name)),
    ) {
        (Some(yardstick), true) => format!(
            "{title}, * fastest on its shape, + fastest contender where {yardstick} is faster still"
        ),
        _ => format!("{title}, * fastest on its shape"),
    }
}

/// Whether the yardstick is faster than every contender of a shape.
fn beaten(run: &Run, ranking: &Ranking, shape: &str) -> bool {
    let time = |id: &ContenderId| Some(ranking.cell(id, shape)?.time.as_ref()?.log.mean);
    let yardstick = run.header.yardstick.as_ref().and_then(time);
    let contenders = run.header.contenders.iter().filter_map(|c| time(&c.id));
    let least = contenders.fold(f64::INFINITY, f64::min);
    yardstick.is_some_and(|yardstick| least.is_finite() && yardstick < least)
}

/// `256x4096x7168` over three lines, so that eight shapes fit side by side.
fn folded_shape(name: &str) -> String {
    let mut folded = String::new();
    let mut line = 0;
    for c in name.chars() {
        folded.push(c);
        line += 1;
        if line >= 4 && matches!(c, 'x' | '×' | '-' | '_') {
            folded.push('\n');
            line = 0;
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    #[test]
    fn shapes_are_folded_only_where_they_do_not_fit() {
        let mut field = Synthetic::round4();
        let more = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|c| c.repeat(16));
        let more: Vec<&'static str> = more.into_iter().map(|name| &*name.leak()).collect();
        field
            .entries
            .extend(more.iter().map(|name| SyntheticContender::ok(name, 0.9)));
        let run = field.run();
        let ranking = Ranking::of(&run);
        let drawn = |width| {
            let style = Style {
                width,
                ..Style::PLAIN
            };
            matrix(&run, &ranking, &style)
        };
        let whole = |text: &str| {
            let mut names = run.header.shapes.iter().map(|shape| shape.name.as_str());
            names.all(|name| text.contains(name))
        };
        assert!(whole(&drawn(160)), "{}", drawn(160));
        assert!(!whole(&drawn(100)), "{}", drawn(100));
    }
}
