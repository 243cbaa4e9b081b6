//! Fits tables into the terminal. If a table is still too wide after its titles and prose are
//! wrapped, the least important columns are dropped first and listed below it; columns that still
//! do not fit continue in tables below.

use tabled::builder::Builder;
use tabled::grid::util::string::get_text_width as text_width;
use tabled::settings::object::Columns;
use tabled::settings::style::Style as Border;
use tabled::settings::{Alignment, Margin, Padding};

use super::{Align, Column, Style, Table, Value};
use dgx_core::domain::Joined;

/// Spaces between columns.
const GAP: usize = 2;
/// Columns of less weight are dropped instead of being continued below.
const ESSENTIAL: u8 = 4;
/// Prose is not wrapped narrower if it can be avoided.
const PROSE: usize = 24;
/// Names are wrapped only if nothing else helps.
const NAME: usize = 20;

impl Table {
    /// Draws it within the style's width, below its title.
    pub(crate) fn render(&self, style: &Style) -> String {
        let drawn = self.on_screen().fitted(style);
        match self.title.is_empty() {
            true => drawn,
            false => format!("{}\n{drawn}", style.fold(&self.title, 2)),
        }
    }

    /// Its width without wrapping or dropping anything.
    pub(crate) fn full_width(&self) -> usize {
        total(&self.on_screen().widths())
    }

    /// The columns that a terminal shows, with the whole visible value as text.
    fn on_screen(&self) -> Self {
        let mut table = self.only_if(|place| self.columns[place].weight > 0);
        let mut values = table.rows.iter().flatten();
        let aside = match values.any(|value| value.mark.is_some()) {
            true => " ",
            false => "",
        };
        for row in &mut table.rows {
            for (column, value) in table.columns.iter().zip(row) {
                value.text = value.plain();
                if value.mark.take().is_none() && column.align == Align::Right {
                    value.text.push_str(aside);
                }
            }
        }
        table
    }

    fn fitted(mut self, style: &Style) -> String {
        if total(&self.widths()) <= style.width {
            return self.draw(style);
        }
        self.fold_titles(style.width);
        // Wrapped prose leaves room for other columns; then it gets what they leave.
        let mut narrow = self.clone();
        narrow.fold_prose(style.width, PROSE);
        let (panels, left_out) = narrow.panels(style.width);
        let mut panels: Vec<Self> = panels.iter().map(|places| self.only(places)).collect();
        for panel in panels.iter_mut().skip(1) {
            panel.drop_empty_rows();
        }
        for panel in &mut panels {
            panel.fold_prose(style.width, PROSE);
            panel.fold_prose(style.width, 1);
            panel.fold_names(style.width);
        }
        let drawn: Vec<String> = panels.iter().map(|panel| panel.draw(style)).collect();
        let drawn = drawn.join("\n\n");
        if left_out.is_empty() {
            return drawn;
        }
        let titles = left_out
            .iter()
            .map(|place| self.columns[*place].title.replace('\n', " "));
        let titles = titles.joined(", ");
        let text = format!("in {} columns without: {titles}", style.width);
        format!("{drawn}\n {}", style.dim(style.fold(&text, 3)))
    }

    /// Removes rows that have a name and nothing else.
    fn drop_empty_rows(&mut self) {
        let columns = &self.columns;
        let filled = |row: &Vec<Value>| {
            let mut values = columns.iter().zip(row);
            values.any(|(column, value)| !column.key && !value.text.is_empty())
        };
        self.rows.retain(filled);
    }

    /// The columns of each table needed to show the essential columns, and the dropped columns: the
    /// least important first, as few as possible. So a narrower screen never shows more.
    fn panels(&self, width: usize) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out: Vec<usize> = Vec::new();
        let fits = |places: &[usize]| total(&self.only(places).widths()) <= width;
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
            return (vec![kept], left_out);
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
        (panels, left_out)
    }

    /// Wraps titles that are wider than the values below them, the one that saves most first, until
    /// everything fits.
    fn fold_titles(&mut self, width: usize) {
        let mut left: Vec<usize> = (0..self.columns.len()).collect();
        while total(&self.widths()) > width {
            let cells = |i: usize| {
                let cells = self.rows.iter().map(|row| text_width(&row[i].text));
                cells.max().unwrap_or(0)
            };
            let saves = |i: &usize| text_width(&self.columns[*i].title).saturating_sub(cells(*i));
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

    /// Wraps prose, the widest first, until everything fits or no column is wider than `least`.
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
            let over = total(&self.widths()).saturating_sub(width);
            let widths = self.widths();
            let candidates = (0..widths.len()).filter(|i| may(&self.columns[*i]));
            let widest = candidates.max_by_key(|i| widths[*i]);
            let Some(index) = widest.filter(|i| over > 0 && widths[*i] > least) else {
                return;
            };
            let target = widths[index].saturating_sub(over).max(least);
            for row in &mut self.rows {
                row[index].text = folded(&row[index].text, target, words);
            }
            self.columns[index].title = folded(&self.columns[index].title, target, words);
            // A longer word stays whole.
            if self.widths()[index] >= widths[index] {
                return;
            }
        }
    }

    /// The width of each column, without drawing anything: many layouts are tried before one fits.
    fn widths(&self) -> Vec<usize> {
        let column = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| text_width(&row[index].text));
            cells.fold(text_width(&column.title), usize::max)
        };
        self.columns.iter().enumerate().map(column).collect()
    }

    fn draw(&self, style: &Style) -> String {
        let mut builder = Builder::default();
        let titles = self.columns.iter().map(|c| Value::from(&c.title));
        builder.push_record(titles.map(|t| drawn(&t.tone(super::Tone::Faint), style)));
        for row in &self.rows {
            builder.push_record(row.iter().map(|value| drawn(value, style)));
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
        text.lines().map(str::trim_end).joined("\n")
    }
}

fn drawn(value: &Value, style: &Style) -> String {
    let lines = value.text.lines().map(|line| coloured(value, line, style));
    lines.joined("\n")
}

/// A line of a value; if it has a badge, only that is coloured.
fn coloured(value: &Value, line: &str, style: &Style) -> String {
    if line.is_empty() {
        return String::new();
    }
    let (before, toned) = match line.strip_suffix(&value.badge) {
        Some(before) if !value.badge.is_empty() => (before, &*value.badge),
        None => (line, ""),
        Some(_) => ("", line),
    };
    let text = format!("{before}{}", style.toned(value.tone, toned));
    match value.strong {
        true => style.bold(text),
        false => text,
    }
}

/// The width of a table with these columns and its margin, without trailing space.
fn total(widths: &[usize]) -> usize {
    let columns: usize = widths.iter().map(|w| w + GAP).sum();
    (columns + 1).saturating_sub(GAP)
}

/// `text` in lines of this many characters, split at spaces; with `words`, longer words are split
/// too.
fn folded(text: &str, width: usize, words: bool) -> String {
    if text_width(text) <= width {
        return text.to_owned();
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
    use crate::table::row;

    #[test]
    fn widths_are_those_of_the_drawing() {
        let mut grid = Table::new(vec![
            Column::left("shape"),
            Column::right("a long\ntitle").weight(3),
            Column::right("µs"),
        ]);
        grid.push(row!["x", 1, Value::from("12.5 µs").mark('*')]);
        grid.push(row!["256x4096", 1, 7]);
        let drawn = grid.render(&Style::PLAIN);
        let widest = drawn.lines().map(text_width).max().unwrap();
        assert_eq!(grid.full_width(), widest, "{drawn}");
    }

    fn wide() -> Table {
        let mut grid = Table::new(vec![
            Column::left("rank"),
            Column::key("contender"),
            Column::right("over the baseline").weight(8),
            Column::left("said of it").weight(6).wraps(),
            Column::right("regs").weight(2),
            Column::left("bound by").weight(3),
        ]);
        let row = [
            "1",
            "pipelined[STAGES=3]",
            "1.22×",
            "it is faster than it was",
            "168",
            "memory",
        ];
        grid.push(row.to_vec());
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
                assert!(text_width(line) <= width, "{width}: {line}\n{drawn}");
            }
            let named = drawn.contains("columns without:");
            for (column, cell) in grid.columns.iter().zip(&grid.rows[0]) {
                // Every word of a wrapped text is there.
                let there = |text: &str| text.split(' ').all(|word| drawn.contains(word));
                assert!(
                    there(&column.title),
                    "{width}: no {}\n{drawn}",
                    column.title
                );
                let light = named && column.weight < ESSENTIAL;
                assert!(there(&cell.text) || light, "{width}: no {cell:?}\n{drawn}");
            }
        }
        let style = Style {
            width: 60,
            ..Style::PLAIN
        };
        insta::assert_snapshot!(grid.render(&style));
    }

    /// The columns that are dropped at a width.
    fn left_out(grid: &Table, width: usize) -> Vec<usize> {
        let mut grid = grid.on_screen();
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
    fn folding_keeps_words() {
        assert_eq!(folded("one two three", 7, false), "one two\nthree");
        assert_eq!(
            folded("pipelined[STAGES=3] x", 9, true),
            "pipelined\n[STAGES=3\n] x"
        );
        assert_eq!(folded("longer", 3, false), "longer");
    }

    #[test]
    fn colours_stand_on_every_line_and_on_the_badge_alone() {
        let style = Style {
            colour: true,
            ..Style::PLAIN
        };
        let of = |value: Value| {
            let mut table = Table::new(vec![Column::left("x")]);
            table.push(vec![value]);
            table.render(&style)
        };
        let folded = of(Value::from("one\ntwo").tone(crate::table::Tone::Good));
        let lines: Vec<&str> = folded.lines().skip(1).collect();
        assert_eq!(
            lines,
            [" \u{1b}[32mone\u{1b}[0m", " \u{1b}[32mtwo\u{1b}[0m"]
        );
        let badge = of(Value::from("1.2×").with_badge(crate::table::Tone::Bad, "missed"));
        assert!(
            badge.ends_with(" 1.2× \u{1b}[31mmissed\u{1b}[0m"),
            "{badge}"
        );
    }
}
