use super::grid::total;
use super::{Align, Column, Grid, Style, micros_title};
use crate::domain::{ContenderId, Shape, Status};
use crate::rank::{Cell, Ranking};
use crate::record::Run;

/// Times by shape and contender, the least of each shape marked `*`. Rows are
/// shapes where the contenders fit beside each other, contenders otherwise.
pub(crate) fn matrix(run: &Run, ranking: &Ranking, style: &Style) -> String {
    if entrants(ranking).next().is_none() {
        return String::new();
    }
    let by_shape = shapes_down(run, ranking, style);
    if by_shape.full_width() <= style.width {
        return format!("{}\n{}", caption(run), by_shape.render(style));
    }
    let panels = contenders_down(run, ranking, style);
    format!("{}\n{}", caption(run), panels.join("\n\n"))
}

fn caption(run: &Run) -> String {
    format!("{}, * fastest on its shape", micros_title(run))
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
        row.extend(entrants(ranking).map(|c| text(ranking.cell(c, &shape.name), style)));
        grid.push(row);
    }
    grid
}

/// As few panels as it takes for the shapes to fit beside each other.
fn contenders_down(run: &Run, ranking: &Ranking, style: &Style) -> Vec<String> {
    let shapes = &run.header.shapes;
    let widths = panel(shapes, ranking, style).widths();
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
        .map(|some| panel(some, ranking, style).render(style))
        .collect()
}

fn panel(shapes: &[Shape], ranking: &Ranking, style: &Style) -> Grid {
    let mut columns = vec![Column::new("contender", Align::Left, 9)];
    let title = |s: &Shape| Column::new(folded_shape(&s.name), Align::Right, 9);
    columns.extend(shapes.iter().map(title));
    let mut grid = Grid::new(columns);
    for contender in entrants(ranking) {
        let mut row = vec![contender.to_string()];
        let cell = |s: &Shape| text(ranking.cell(contender, &s.name), style);
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

fn text(cell: Option<&Cell>, style: &Style) -> String {
    let Some(cell) = cell else {
        return String::new();
    };
    match (&cell.time, cell.status) {
        (Some(time), _) if time.best => style.bold(format!("{}*", time.estimate())),
        (Some(time), _) => format!("{} ", time.estimate()),
        (None, Some(Status::Ok | Status::NotValidated)) => "not timed ".to_owned(),
        (None, Some(Status::Unsupported)) => style.dim("n/a") + " ",
        (None, Some(status)) => style.bad(status) + " ",
        (None, None) => "– ".to_owned(),
    }
}
