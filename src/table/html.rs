use maud::{Markup, html};

use super::{Align, Column, Table, Tone, Value};

impl Table {
    /// A table that the page's script can sort, filter and save. Names of contenders stand upright
    /// if they head its columns.
    pub(crate) fn html(&self) -> Markup {
        let fold = self.columns.iter().any(|column| column.contender.is_some());
        // If there are several keys, the last stays visible.
        let keys = self.columns.iter().take_while(|column| column.key).count();
        let class = |place: usize| match place + 1 == keys {
            true => "key",
            false => self.columns[place].class(),
        };
        html! {
            div.scroll { table.fold[fold] {
                thead { tr { @for (place, column) in self.columns.iter().enumerate() { (heading(column, class(place))) } } }
                tbody { @for row in &self.rows {
                    tr data-c=[self.key_of("contender", row)] data-s=[self.key_of("shape", row)] {
                        @for (place, value) in row.iter().enumerate() { (written(&self.columns[place], class(place), value)) }
                    }
                } }
            } }
        }
    }

    /// The value of a row in the key column of this title.
    fn key_of<'r>(&self, title: &str, row: &'r [Value]) -> Option<&'r str> {
        let key = |column: &Column| column.key && column.title == title;
        let place = self.columns.iter().position(key)?;
        Some(row[place].text.as_str())
    }
}

impl Column {
    fn class(&self) -> &'static str {
        match (self.align, self.wraps) {
            (Align::Right, _) => "n",
            (_, true) => "wrap",
            _ => "",
        }
    }
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Doubtful => "doubt",
            Self::Faint => "faint",
        }
    }
}

fn classes<'a>(all: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let all: Vec<&str> = all.into_iter().filter(|class| !class.is_empty()).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn heading(column: &Column, class: &str) -> Markup {
    html! {
        th class=[classes([class])] data-sort[column.axis.is_none()] title=[&column.hint]
            data-c=[&column.contender] data-s=[&column.shape] {
            (column.heading()) @if let Some(axis) = &column.axis { (axis) }
        }
    }
}

fn written(column: &Column, class: &str, value: &Value) -> Markup {
    let tone = match value.badge.is_empty() {
        true => value.tone.class(),
        false => "",
    };
    let heat = value.heat.map(|heat| format!("--h:{:.0}%", heat * 100.0));
    let class = [class, tone, heat.as_ref().map_or("", |_| "heat")];
    html! {
        td class=[classes(class)] style=[heat] data-v=[value.number] title=[&value.hint]
            data-c=[&column.contender] data-s=[&column.shape] {
            @if value.strong { strong { (value.text) @if let Some(mark) = value.mark { (mark) } } }
            @else { (value.text) }
            @if !value.badge.is_empty() { @if !value.text.is_empty() { " " } span class={ "badge " (value.tone.class()) } { (value.badge) } }
            @if let Some(below) = &value.below { small { (below) } }
            @if let Some(drawing) = &value.drawing { (drawing) }
        }
    }
}
