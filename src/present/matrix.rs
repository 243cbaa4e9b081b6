use super::grid::total;
use super::{Align, Column, Grid, Style, micros_title};
use dgx_core::domain::{ContenderId, Shape, Status};
use dgx_core::rank::Ranking;
use dgx_core::record::Run;

/// Times by shape and contender. The least of each shape is marked, and the
/// mark says whether the yardstick is faster still. Rows are shapes where the
/// contenders fit beside each other, contenders otherwise.
pub(crate) fn matrix(run: &Run, ranking: &Ranking, style: &Style) -> String {
    if entrants(ranking).next().is_none() {
        return String::new();
    }
    let by_shape = shapes_down(run, ranking, style);
    let caption = style.fold(&caption(run, ranking), 2);
    if by_shape.full_width() <= style.width {
        return format!("{caption}\n{}", by_shape.render(style));
    }
    let panels = contenders_down(run, ranking, style);
    format!("{caption}\n{}", panels.join("\n\n"))
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

/// Who has a time at all; the others are told with the failures.
fn entrants(ranking: &Ranking) -> impl Iterator<Item = &ContenderId> {
    let timed = ranking.rows.iter().filter(|r| r.valid_shapes > 0);
    timed.map(|r| &r.contender)
}

fn shapes_down(run: &Run, ranking: &Ranking, style: &Style) -> Grid {
    let mut columns = vec![Column::new("shape", Align::Left, 9)];
    columns.extend(entrants(ranking).map(|c| Column::new(folded_name(c), Align::Right, 9)));
    let mut grid = Grid::new(columns);
    for shape in &run.header.shapes {
        let mut row = vec![shape.name.clone()];
        row.extend(entrants(ranking).map(|c| text(run, ranking, c, shape, style)));
        grid.push(row);
    }
    grid
}

/// As few panels as it takes for the shapes to fit beside each other; their
/// names are folded only where one does not hold them whole.
fn contenders_down(run: &Run, ranking: &Ranking, style: &Style) -> Vec<String> {
    let shapes = &run.header.shapes;
    let whole = panel(run, shapes, ranking, str::to_owned, style);
    if whole.full_width() <= style.width {
        return vec![whole.render(style)];
    }
    let widths = panel(run, shapes, ranking, folded_shape, style).widths();
    let Some((names, columns)) = widths.split_first() else {
        return Vec::new();
    };
    let fits = |size: &usize| {
        let panels = columns.chunks(*size);
        let widths = |some: &[usize]| total(&[&[*names], some].concat());
        panels.map(widths).all(|width| width <= style.width)
    };
    let size = (1..=shapes.len()).rev().find(fits).unwrap_or(1);
    let panels = shapes.chunks(size);
    panels
        .map(|some| panel(run, some, ranking, folded_shape, style).render(style))
        .collect()
}

fn panel(
    run: &Run,
    shapes: &[Shape],
    ranking: &Ranking,
    title: fn(&str) -> String,
    style: &Style,
) -> Grid {
    let mut columns = vec![Column::new("contender", Align::Left, 9)];
    let title = |s: &Shape| Column::new(title(&s.name), Align::Right, 9);
    columns.extend(shapes.iter().map(title));
    let mut grid = Grid::new(columns);
    for contender in entrants(ranking) {
        let mut row = vec![contender.to_string()];
        let cell = |s: &Shape| text(run, ranking, contender, s, style);
        row.extend(shapes.iter().map(cell));
        grid.push(row);
    }
    grid
}

/// `pipelined[STAGES=3]` over two lines, the parameters below.
fn folded_name(contender: &ContenderId) -> String {
    contender.as_str().replacen('[', "\n[", 1)
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

fn text(
    run: &Run,
    ranking: &Ranking,
    contender: &ContenderId,
    shape: &Shape,
    style: &Style,
) -> String {
    let Some(cell) = ranking.cell(contender, &shape.name) else {
        return String::new();
    };
    let mark = || match beaten(run, ranking, &shape.name) {
        true => '+',
        false => '*',
    };
    match (&cell.time, cell.status) {
        (Some(time), _) if time.best => style.bold(format!("{}{}", time.estimate(), mark())),
        (Some(time), _) => format!("{} ", time.estimate()),
        (None, Some(Status::Ok | Status::NotValidated)) => "not timed ".to_owned(),
        (None, Some(Status::Unsupported)) => style.dim("n/a") + " ",
        (None, Some(status)) => style.bad(status) + " ",
        (None, None) => "– ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Entry, Synthetic};

    #[test]
    fn shapes_are_folded_only_where_they_do_not_fit() {
        let mut field = Synthetic::round4();
        let more = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|c| c.repeat(16));
        let more: Vec<&'static str> = more.into_iter().map(|name| &*name.leak()).collect();
        field
            .entries
            .extend(more.iter().map(|name| Entry::ok(name, 0.9)));
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
