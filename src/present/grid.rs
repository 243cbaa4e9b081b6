//! Tables that fit. Where one is too wide though titles and prose are folded,
//! columns of little weight are left out, the least first, and named below it,
//! until the rest fits; and what does not fit without them either is continued
//! in tables below.

use tabled::builder::Builder;
use tabled::grid::util::string::get_text_width;
use tabled::settings::object::Columns;
use tabled::settings::style::Style as Border;
use tabled::settings::{Alignment, Margin, Padding};

use super::Style;

/// Blanks between columns.
const GAP: usize = 2;
/// Columns of less weight are left out rather than continued below.
const ESSENTIAL: u8 = 4;
/// Prose is not folded into less, if there is a way.
const PROSE: usize = 24;
/// Names are folded only where nothing else helps.
const NAME: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub title: String,
    pub align: Align,
    /// Those of the highest weight stay longest; from 4 on, none is left out.
    pub weight: u8,
    /// Repeated where a table is continued: what tells rows apart.
    key: bool,
    /// Prose, which may be folded.
    wraps: bool,
}

impl Column {
    pub(crate) fn new(title: impl Into<String>, align: Align, weight: u8) -> Self {
        Self {
            title: title.into(),
            align,
            weight,
            key: false,
            wraps: false,
        }
    }

    pub(crate) fn key(title: impl Into<String>) -> Self {
        Self {
            key: true,
            ..Self::new(title, Align::Left, 9)
        }
    }

    pub(crate) fn wraps(self) -> Self {
        Self {
            wraps: true,
            ..self
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

    /// Leaves these columns to another time.
    pub(crate) fn without(mut self, titles: &[&str]) -> Self {
        for index in (0..self.columns.len()).rev() {
            if titles.contains(&self.columns[index].title.as_str()) {
                self.remove(index);
            }
        }
        self
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

    /// These columns alone.
    fn only(&self, places: &[usize]) -> Self {
        let of = |row: &Vec<String>| places.iter().map(|i| row[*i].clone()).collect();
        Self {
            columns: places.iter().map(|i| self.columns[*i].clone()).collect(),
            rows: self.rows.iter().map(of).collect(),
        }
    }

    /// Draws it within the style's width.
    pub(crate) fn render(&self, style: &Style) -> String {
        if self.full_width() <= style.width {
            return self.draw(style);
        }
        let mut grid = self.clone();
        grid.fold_titles(style.width);
        grid.fold_prose(style.width, PROSE);
        let (mut panels, left_out) = grid.panels(style.width);
        for panel in panels.iter_mut().skip(1) {
            panel.drop_empty_rows();
        }
        for panel in &mut panels {
            panel.fold_prose(style.width, 1);
            panel.fold_names(style.width);
        }
        let mut drawn: Vec<String> = panels.iter().map(|panel| panel.draw(style)).collect();
        if !left_out.is_empty() {
            let titles: Vec<String> = left_out
                .iter()
                .map(|place| grid.columns[*place].title.replace('\n', " "))
                .collect();
            let text = format!("in {} columns without: {}", style.width, titles.join(", "));
            let last = drawn.pop().unwrap_or_default();
            drawn.push(format!("{last}\n {}", style.dim(style.fold(&text, 3))));
        }
        drawn.join("\n\n")
    }

    /// Removes rows that have a name and nothing else.
    fn drop_empty_rows(&mut self) {
        let columns = &self.columns;
        let told = |row: &Vec<String>| {
            let mut cells = columns.iter().zip(row);
            cells.any(|(column, cell)| !column.key && !cell.is_empty())
        };
        self.rows.retain(told);
    }

    /// The tables it takes for all that has weight, and who is left out: the
    /// least first, as few as do. So a narrower screen never shows more.
    fn panels(&self, width: usize) -> (Vec<Self>, Vec<usize>) {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out: Vec<usize> = Vec::new();
        let fits = |places: &[usize]| self.only(places).full_width() <= width;
        while !fits(&kept) {
            let light = |place: &&usize| self.columns[**place].weight < ESSENTIAL;
            let least = kept.iter().filter(light);
            let Some(least) = least.min_by_key(|i| (self.columns[**i].weight, usize::MAX - **i))
            else {
                break;
            };
            let least = *least;
            kept.retain(|place| *place != least);
            left_out.push(least);
        }
        left_out.sort_unstable();
        if fits(&kept) {
            return (vec![self.only(&kept)], left_out);
        }
        let mut keys: Vec<usize> = (kept.iter().copied())
            .filter(|place| self.columns[*place].key)
            .collect();
        if keys.is_empty() {
            keys.push(0);
        }
        let mut panels: Vec<Vec<usize>> = vec![keys.clone()];
        for place in kept.into_iter().filter(|place| !keys.contains(place)) {
            let last = panels.last_mut().expect("the first is there");
            let wider: Vec<usize> = last.iter().copied().chain([place]).collect();
            match fits(&wider) || *last == keys {
                true => *last = wider,
                false => panels.push([keys.clone(), vec![place]].concat()),
            }
        }
        (
            panels.iter().map(|places| self.only(places)).collect(),
            left_out,
        )
    }

    /// Folds titles that are wider than what stands below them, the one that
    /// saves most first, until all fits.
    fn fold_titles(&mut self, width: usize) {
        let mut left: Vec<usize> = (0..self.columns.len()).collect();
        while self.full_width() > width {
            let cells = |i: usize| {
                let cells = self.rows.iter().map(|row| get_text_width(&row[i]));
                cells.max().unwrap_or(0)
            };
            let saves =
                |i: &usize| get_text_width(&self.columns[*i].title).saturating_sub(cells(*i));
            let Some(most) = left
                .iter()
                .copied()
                .max_by_key(saves)
                .filter(|i| saves(i) > 0)
            else {
                return;
            };
            let narrow = folded(&self.columns[most].title, cells(most), false);
            self.columns[most].title = narrow;
            left.retain(|place| *place != most);
        }
    }

    /// Folds prose, the widest first, until all fits or nobody has more than
    /// `least` to spare.
    fn fold_prose(&mut self, width: usize, least: usize) {
        let prose = |column: &Column| column.wraps;
        self.fold_columns(width, prose, least, false);
    }

    fn fold_names(&mut self, width: usize) {
        let left = |column: &Column| column.align == Align::Left;
        self.fold_columns(width, left, NAME, true);
    }

    fn fold_columns(
        &mut self,
        width: usize,
        may: impl Fn(&Column) -> bool,
        least: usize,
        words: bool,
    ) {
        loop {
            let over = self.full_width().saturating_sub(width);
            let widths = self.widths();
            let candidates = (0..widths.len()).filter(|i| may(&self.columns[*i]));
            let widest = candidates.max_by_key(|i| widths[*i]);
            let Some(index) = widest.filter(|i| over > 0 && widths[*i] > least) else {
                return;
            };
            let target = widths[index].saturating_sub(over).max(least);
            for row in &mut self.rows {
                row[index] = folded(&row[index], target, words);
            }
            self.columns[index].title = folded(&self.columns[index].title, target, words);
            // A word that is longer than that stays whole.
            if self.widths()[index] >= widths[index] {
                return;
            }
        }
    }

    /// Its width when nothing is folded or left out.
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

/// `text` in lines of so many characters, parted at blanks; with `words`,
/// words that are longer are parted too. Colours stay on every line.
fn folded(text: &str, width: usize, words: bool) -> String {
    if get_text_width(text) <= width {
        return text.to_owned();
    }
    if let Some((code, inner)) = text
        .strip_prefix('\u{1b}')
        .and_then(|rest| rest.strip_suffix("\u{1b}[0m"))
        .and_then(|rest| rest.split_once('m'))
        .filter(|(_, inner)| !inner.contains('\u{1b}'))
    {
        let lines = folded(inner, width, words);
        let lines = lines.lines().map(|l| format!("\u{1b}{code}m{l}\u{1b}[0m"));
        return lines.collect::<Vec<_>>().join("\n");
    }
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    // A number and its unit stay together.
    let text = text.replace(" %", "\u{a0}%");
    for line in text.lines() {
        lines.push(String::new());
        for word in line.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            let last = lines.last_mut().expect("one was pushed");
            let length = last.chars().count();
            if length > 0 && length + 1 + word.len() <= width {
                last.push(' ');
                last.extend(&word);
                continue;
            }
            if length > 0 {
                lines.push(String::new());
            }
            while words && word.len() > width {
                let rest = word.split_off(width);
                lines.last_mut().expect("one was pushed").extend(&word);
                lines.push(String::new());
                word = rest;
            }
            lines.last_mut().expect("one was pushed").extend(&word);
        }
    }
    lines.join("\n").replace('\u{a0}', " ")
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
    }

    fn wide() -> Grid {
        let mut grid = Grid::new(vec![
            Column::new("rank", Align::Left, 9),
            Column::key("contender"),
            Column::new("over the baseline", Align::Right, 8),
            Column::new("said of it", Align::Left, 6).wraps(),
            Column::new("regs", Align::Right, 2),
            Column::new("bound by", Align::Left, 3),
        ]);
        let row = [
            "1",
            "pipelined[STAGES=3]",
            "1.22×",
            "it is faster than it was",
            "168",
            "memory",
        ];
        grid.push(row.map(str::to_owned).to_vec());
        grid
    }

    #[test]
    fn what_has_weight_is_shown_at_any_width_and_what_is_left_out_is_named() {
        let grid = wide();
        for width in 40..=grid.full_width() {
            let style = Style {
                width,
                ..Style::PLAIN
            };
            let drawn = grid.render(&style);
            for line in drawn.lines() {
                assert!(get_text_width(line) <= width, "{width}: {line}\n{drawn}");
            }
            let named = drawn.contains("columns without:");
            for (column, cell) in grid.columns.iter().zip(&grid.rows[0]) {
                // Folded, a text is there word by word.
                let there = |text: &str| text.split(' ').all(|word| drawn.contains(word));
                assert!(
                    there(&column.title),
                    "{width}: no {}\n{drawn}",
                    column.title
                );
                let light = named && column.weight < ESSENTIAL;
                assert!(there(cell) || light, "{width}: no {cell}\n{drawn}");
            }
        }
        let style = Style {
            width: 60,
            ..Style::PLAIN
        };
        insta::assert_snapshot!(grid.render(&style));
    }

    /// The columns that are left out at a width.
    fn left_out(grid: &Grid, width: usize) -> Vec<usize> {
        let mut grid = grid.clone();
        grid.fold_titles(width);
        grid.fold_prose(width, PROSE);
        grid.panels(width).1
    }

    #[test]
    fn a_narrower_screen_never_shows_more() {
        let grid = wide();
        for width in 40..grid.full_width() {
            let (narrow, wider) = (left_out(&grid, width), left_out(&grid, width + 1));
            let kept = wider.iter().all(|place| narrow.contains(place));
            assert!(kept, "{width}: {narrow:?}, and then {wider:?}");
        }
    }

    #[test]
    fn folding_keeps_words_and_colours() {
        assert_eq!(folded("one two three", 7, false), "one two\nthree");
        assert_eq!(
            folded("pipelined[STAGES=3] x", 9, true),
            "pipelined\n[STAGES=3\n] x"
        );
        assert_eq!(folded("longer", 3, false), "longer");
        assert_eq!(
            folded("\u{1b}[1mone two\u{1b}[0m", 3, false),
            "\u{1b}[1mone\u{1b}[0m\n\u{1b}[1mtwo\u{1b}[0m"
        );
    }
}
