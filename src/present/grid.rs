//! Tables that fit: the least important columns go first when the screen is
//! narrow.

use tabled::builder::Builder;
use tabled::grid::util::string::get_text_width;
use tabled::settings::object::Columns;
use tabled::settings::style::Style as Border;
use tabled::settings::{Alignment, Margin, Padding};

use super::Style;

/// Blanks between columns.
const GAP: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub title: String,
    pub align: Align,
    /// Columns of the highest weight stay longest; weight 9 is never dropped.
    pub weight: u8,
}

impl Column {
    pub(crate) fn new(title: impl Into<String>, align: Align, weight: u8) -> Self {
        Self {
            title: title.into(),
            align,
            weight,
        }
    }
}

/// A table before it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Removes columns no row has anything in.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        for index in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|r| r[index].is_empty()) {
                self.remove(index);
            }
        }
        self
    }

    fn remove(&mut self, index: usize) {
        self.columns.remove(index);
        for row in &mut self.rows {
            row.remove(index);
        }
    }

    /// Draws it within the style's width as far as dropping columns can.
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut grid = self.clone();
        let mut widths = self.widths();
        while total(&widths) > style.width {
            let droppable = grid
                .columns
                .iter()
                .enumerate()
                .filter(|(_, c)| c.weight < 9);
            let least = droppable.min_by_key(|(i, c)| (c.weight, usize::MAX - i));
            let Some((index, _)) = least else { break };
            grid.remove(index);
            widths.remove(index);
        }
        grid.draw(style)
    }

    /// Its width when nothing is dropped.
    pub(crate) fn full_width(&self) -> usize {
        total(&self.widths())
    }

    /// What each column needs, without drawing anything: a table is tried in
    /// many layouts before one fits.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let column = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| get_text_width(&row[index]));
            cells.fold(get_text_width(&column.title), usize::max)
        };
        self.columns.iter().enumerate().map(column).collect()
    }

    fn draw(&self, style: &Style) -> String {
        let mut builder = Builder::default();
        let titled = |c: &Column| {
            let lines: Vec<String> = c.title.split('\n').map(|l| style.dim(l)).collect();
            lines.join("\n")
        };
        builder.push_record(self.columns.iter().map(titled));
        for row in &self.rows {
            builder.push_record(row.iter().cloned());
        }
        let mut table = builder.build();
        table
            .with(Border::empty())
            .with(Padding::new(0, GAP, 0, 0))
            .with(Margin::new(1, 0, 0, 0));
        for (index, column) in self.columns.iter().enumerate() {
            let alignment = match column.align {
                Align::Left => Alignment::left(),
                Align::Right => Alignment::right(),
            };
            table.modify(Columns::one(index), alignment);
        }
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

/// Of a table of these columns, with its margin; what stands between the last
/// column and the edge is not drawn.
pub(super) fn total(widths: &[usize]) -> usize {
    let columns: usize = widths.iter().map(|w| w + GAP).sum();
    (columns + 1).saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_drawing() {
        let mut grid = Grid::new(vec![
            Column::new("shape", Align::Left, 9),
            Column::new("a long\ntitle", Align::Right, 3),
            Column::new("µs", Align::Right, 9),
        ]);
        let bold = Style {
            colour: true,
            ..Style::PLAIN
        };
        grid.push(vec!["x".to_owned(), "1".to_owned(), bold.bold("12.5 µs*")]);
        grid.push(vec!["256x4096".to_owned(), "1".to_owned(), "7".to_owned()]);
        let drawn = grid.render(&Style::PLAIN);
        let widest = drawn.lines().map(get_text_width).max().unwrap();
        assert_eq!(grid.full_width(), widest, "{drawn}");
        let narrow = Style {
            width: widest - 1,
            ..Style::PLAIN
        };
        assert!(!grid.render(&narrow).contains("title"));
    }
}
