//! Tables that fit: the least important columns go first when the screen is
//! narrow.

use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::style::Style as Border;
use tabled::settings::{Alignment, Margin, Padding};

use super::Style;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub title: String,
    pub align: Align,
    /// Columns of the highest weight stay longest; weight 9 is never dropped.
    pub weight: u8,
}

impl Column {
    pub fn new(title: impl Into<String>, align: Align, weight: u8) -> Self {
        Self {
            title: title.into(),
            align,
            weight,
        }
    }
}

/// A table before it is drawn.
#[derive(Clone, Debug)]
pub struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Removes columns no row has anything in.
    pub fn without_empty_columns(mut self) -> Self {
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
    pub fn render(&self, style: &Style) -> String {
        let mut grid = self.clone();
        loop {
            let (text, width) = grid.draw(style);
            let droppable = grid
                .columns
                .iter()
                .enumerate()
                .filter(|(_, c)| c.weight < 9);
            let least = droppable.min_by_key(|(i, c)| (c.weight, usize::MAX - i));
            match least {
                Some((index, _)) if width > style.width => grid.remove(index),
                _ => return text,
            }
        }
    }

    /// Its width when nothing is dropped.
    pub fn full_width(&self, style: &Style) -> usize {
        self.draw(style).1
    }

    fn draw(&self, style: &Style) -> (String, usize) {
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
            .with(Padding::new(0, 2, 0, 0))
            .with(Margin::new(1, 0, 0, 0));
        for (index, column) in self.columns.iter().enumerate() {
            let alignment = match column.align {
                Align::Left => Alignment::left(),
                Align::Right => Alignment::right(),
            };
            table.modify(Columns::one(index), alignment);
        }
        // The last column's padding is not drawn.
        let width = table.total_width().saturating_sub(2);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        (lines.join("\n"), width)
    }
}
