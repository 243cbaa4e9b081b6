//! One table, four writers. A table is built once and written for a terminal, as Markdown, as CSV
//! or as HTML; each writer leaves out what its format cannot show.

mod csv;
mod html;
mod markdown;
mod style;
mod terminal;

use maud::Markup;

pub(crate) use csv::field as csv_field;
pub(crate) use markdown::{escape as escape_markdown, list as markdown_list};
pub(crate) use style::{Style, indented};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Align {
    #[default]
    Left,
    Right,
}

/// What a value means; colours repeat it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Doubtful,
    Faint,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    pub title: String,
    align: Align,
    /// On a narrow terminal columns of low weight are dropped first; from 4 on none is dropped, and
    /// columns of weight 0 are never shown on a terminal.
    weight: u8,
    /// Identifies rows: repeated if a table is continued.
    key: bool,
    /// Prose, which may be wrapped.
    wraps: bool,
    /// The unit of its numbers, for a table that is read away from its page.
    unit: Option<String>,
    hint: Option<String>,
    /// The contender or the shape that the whole column is about.
    contender: Option<String>,
    shape: Option<String>,
    /// The axis of a column of drawings.
    axis: Option<Markup>,
}

impl Column {
    pub(crate) fn left(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            weight: 9,
            ..Self::default()
        }
    }

    pub(crate) fn right(title: impl Into<String>) -> Self {
        Self {
            align: Align::Right,
            ..Self::left(title)
        }
    }

    pub(crate) fn key(title: impl Into<String>) -> Self {
        Self {
            key: true,
            ..Self::left(title)
        }
    }

    /// Numbers of one contender.
    pub(crate) fn of_contender(name: impl ToString) -> Self {
        Self {
            contender: Some(name.to_string()),
            ..Self::right(name.to_string())
        }
    }

    /// Numbers on one shape.
    pub(crate) fn of_shape(name: &str) -> Self {
        Self {
            shape: Some(name.to_owned()),
            ..Self::right(name)
        }
    }

    /// Drawings above this axis.
    pub(crate) fn drawn(title: impl Into<String>, axis: Markup) -> Self {
        Self {
            axis: Some(axis),
            ..Self::left(title).weight(0)
        }
    }

    pub(crate) fn weight(self, weight: u8) -> Self {
        Self { weight, ..self }
    }

    pub(crate) fn wraps(mut self) -> Self {
        self.wraps = true;
        self
    }

    pub(crate) fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl ToString) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// The title on one line.
    fn heading(&self) -> String {
        self.title.replace("-\n", "-").replace('\n', " ")
    }
}

/// One cell of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    pub text: String,
    /// A highlighted word after the text: a verdict.
    badge: String,
    /// Of the badge, if there is one, else of the text.
    tone: Tone,
    strong: bool,
    /// Directly after the text; the column's other texts leave room for it.
    mark: Option<char>,
    /// The sort key.
    number: Option<f64>,
    hint: Option<String>,
    below: Option<String>,
    /// From 0 to 1.
    heat: Option<f64>,
    drawing: Option<Markup>,
}

impl<T: ToString> From<T> for Value {
    fn from(text: T) -> Self {
        Self {
            text: text.to_string(),
            ..Self::default()
        }
    }
}

/// The value, or an empty one.
pub(crate) fn maybe(value: Option<impl ToString>) -> Value {
    value.map_or_else(Value::default, Value::from)
}

impl Value {
    pub(crate) fn badge(tone: Tone, word: impl ToString) -> Self {
        Self::default().with_badge(tone, word)
    }

    pub(crate) fn with_badge(self, tone: Tone, word: impl ToString) -> Self {
        let badge = word.to_string();
        Self {
            badge,
            tone,
            ..self
        }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    pub(crate) fn strong_if(self, strong: bool) -> Self {
        Self { strong, ..self }
    }

    pub(crate) fn mark(mut self, mark: char) -> Self {
        self.mark = Some(mark);
        self.strong_if(true)
    }

    pub(crate) fn number(mut self, number: impl Into<Option<f64>>) -> Self {
        self.number = number.into();
        self
    }

    pub(crate) fn hint(mut self, hint: impl ToString) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    pub(crate) fn below(self, below: Option<String>) -> Self {
        Self { below, ..self }
    }

    pub(crate) fn heat(mut self, heat: f64) -> Self {
        self.heat = Some(heat);
        self
    }

    pub(crate) fn drawing(drawing: Markup) -> Self {
        Self {
            drawing: Some(drawing),
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.badge.is_empty() && self.drawing.is_none()
    }

    /// Text, badge and mark on one line.
    fn plain(&self) -> String {
        let gap = match self.text.is_empty() || self.badge.is_empty() {
            true => "",
            false => " ",
        };
        let mark = self.mark.map_or(String::new(), String::from);
        format!("{}{gap}{}{mark}", self.text, self.badge)
    }
}

/// A row of values of any kind.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::table::Value::from($value)),*] };
}
pub(crate) use row;

/// A table before it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Printed above it; in Markdown in its first heading.
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// A key column, and then these.
    pub(crate) fn keyed(key: &str, columns: impl Iterator<Item = Column>) -> Self {
        Self::new(std::iter::once(Column::key(key)).chain(columns).collect())
    }

    /// Columns with titles only.
    pub(crate) fn named<'a>(titles: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(titles.into_iter().map(Column::left).collect())
    }

    pub(crate) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    pub(crate) fn push(&mut self, row: Vec<impl Into<Value>>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// A row that begins with its name.
    pub(crate) fn push_named(&mut self, name: impl ToString, values: impl Iterator<Item = Value>) {
        self.push(std::iter::once(name.into()).chain(values).collect());
    }

    /// The same table with these rows.
    pub(crate) fn with(mut self, rows: impl IntoIterator<Item = Vec<Value>>) -> Self {
        rows.into_iter().for_each(|row| self.push(row));
        self
    }

    /// Inserts a column after the one with this title, if there is one.
    pub(crate) fn insert_behind(&mut self, title: &str, column: Column, values: Vec<Value>) {
        let Some(place) = self.columns.iter().position(|c| c.title == title) else {
            return;
        };
        self.columns.insert(place + 1, column);
        for (row, value) in self.rows.iter_mut().zip(values) {
            row.insert(place + 1, value);
        }
    }

    /// Swaps rows and columns; the first column is headed by `title`.
    pub(crate) fn transposed(&self, title: &str) -> Self {
        let columns = self.rows.iter().map(|row| Column::right(&row[0].text));
        let mut table = Self::keyed(title, columns).titled(&self.title);
        for place in 1..self.columns.len() {
            let values = self.rows.iter().map(|row| row[place].clone());
            table.push_named(self.columns[place].heading(), values);
        }
        table
    }

    /// Without the columns with these titles.
    pub(crate) fn without(self, titles: &[&str]) -> Self {
        self.only_if(|place| !titles.contains(&self.columns[place].title.as_str()))
    }

    /// Without the columns that are empty in all rows.
    pub(crate) fn without_empty_columns(self) -> Self {
        self.only_if(|place| self.rows.iter().any(|row| !row[place].is_empty()))
    }

    fn only_if(&self, keep: impl Fn(usize) -> bool) -> Self {
        let places = 0..self.columns.len();
        self.only(&places.filter(|place| keep(*place)).collect::<Vec<_>>())
    }

    /// Only these columns.
    fn only(&self, places: &[usize]) -> Self {
        let of = |row: &Vec<Value>| places.iter().map(|i| row[*i].clone()).collect();
        Self {
            title: self.title.clone(),
            columns: places.iter().map(|i| self.columns[*i].clone()).collect(),
            rows: self.rows.iter().map(of).collect(),
        }
    }
}
