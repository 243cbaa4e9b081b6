//! Where the wrong elements are, in words: groups, rows, columns, and whether
//! they repeat with a tile.

use crate::operator::Oracle;

/// Periods at which kernels go wrong: tiles, warp groups, warps, fragments.
const PERIODS: [usize; 6] = [8, 16, 32, 64, 128, 256];
/// More groups than this are counted, not listed.
const LISTED: usize = 6;

/// `wrong` flags each element of each answer, `names` says whose those are.
pub(super) fn describe(wrong: &[Vec<bool>], oracle: &Oracle, names: &[String]) -> String {
    let groups: Vec<Extent> = wrong
        .iter()
        .zip(&oracle.groups)
        .map(|(flags, answer)| Extent::of(flags, answer.columns))
        .collect();
    let hit: Vec<usize> = (0..groups.len()).filter(|g| groups[*g].count > 0).collect();
    let whose = whose(&hit, names);
    let total: usize = hit.iter().map(|g| groups[*g].elements()).sum();
    let count: usize = hit.iter().map(|g| groups[*g].count).sum();
    if count == total {
        return match whose.is_empty() {
            true => "every element".to_owned(),
            false => format!("every element{whose}"),
        };
    }
    if count == 1 {
        let group = &groups[hit[0]];
        let (row, column) = (first(&group.rows), first(&group.columns));
        return format!("one element (row {row}, column {column}){whose}");
    }
    let rows = agreed(hit.iter().map(|g| set(&groups[*g].rows, "row")));
    let columns = agreed(hit.iter().map(|g| set(&groups[*g].columns, "column")));
    let region = match (rows, columns) {
        (Set::All, Set::All) => String::new(),
        (Set::Some(rows), Set::All) => rows,
        (Set::All, Set::Some(columns)) => columns,
        (Set::Some(rows), Set::Some(columns)) => format!("{rows}, {columns}"),
    };
    let share = share(count, total);
    match region.is_empty() {
        true => format!("{share}{whose}"),
        false => format!("{region}{whose} ({share})"),
    }
}

/// Which rows and columns of a group have a wrong element.
struct Extent {
    count: usize,
    rows: Vec<bool>,
    columns: Vec<bool>,
}

impl Extent {
    fn of(flags: &[bool], n: usize) -> Self {
        let mut extent = Self {
            count: 0,
            rows: vec![false; flags.len() / n],
            columns: vec![false; n],
        };
        for (row, flags) in flags.chunks_exact(n).enumerate() {
            for (column, wrong) in flags.iter().enumerate() {
                if *wrong {
                    extent.count += 1;
                    extent.rows[row] = true;
                    extent.columns[column] = true;
                }
            }
        }
        extent
    }

    fn elements(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

#[derive(Clone, PartialEq)]
enum Set {
    All,
    Some(String),
}

/// The one description all groups share, or how loosely they agree.
fn agreed(mut sets: impl Iterator<Item = Set>) -> Set {
    let Some(one) = sets.next() else {
        return Set::All;
    };
    match sets.all(|other| other == one) {
        true => one,
        false => Set::All,
    }
}

fn set(flags: &[bool], noun: &str) -> Set {
    let count = flags.iter().filter(|f| **f).count();
    if count == flags.len() {
        return Set::All;
    }
    let (first, last) = (first(flags), flags.iter().rposition(|f| *f).unwrap_or(0));
    let len = flags.len();
    let text = if let Some(text) = periodic(flags, noun) {
        text
    } else if count == 1 && first + 1 == len {
        format!("the last {noun}")
    } else if count == 1 {
        format!("{noun} {first}")
    } else if count == last + 1 - first {
        match (first, last + 1 == len) {
            (0, _) => format!("{noun}s < {}", last + 1),
            (_, true) => format!("{noun}s ≥ {first}"),
            _ => format!("{noun}s {first} to {last}"),
        }
    } else {
        format!("{count} of {len} {noun}s")
    };
    Set::Some(text)
}

/// "rows ≥ 64 of each 128": the same stretch of every period, seen twice at least.
fn periodic(flags: &[bool], noun: &str) -> Option<String> {
    for period in PERIODS.into_iter().filter(|p| 2 * p <= flags.len()) {
        let one = &flags[..period];
        let repeats = flags.iter().enumerate().all(|(i, f)| *f == one[i % period]);
        let hit = one.iter().filter(|f| **f).count();
        if !repeats || hit == 0 {
            continue;
        }
        let (first, last) = (first(one), one.iter().rposition(|f| *f).unwrap_or(0));
        if hit != last + 1 - first {
            return Some(format!("{hit} {noun}s of each {period}"));
        }
        return Some(match (first, last + 1 == period) {
            (0, _) => format!("{noun}s < {} of each {period}", last + 1),
            (_, true) => format!("{noun}s ≥ {first} of each {period}"),
            _ => format!("{noun}s {first} to {last} of each {period}"),
        });
    }
    None
}

fn first(flags: &[bool]) -> usize {
    flags.iter().position(|f| *f).unwrap_or(0)
}

/// " of group 3", " of groups 1, 4", " of output y"; nothing where all are meant.
fn whose(hit: &[usize], names: &[String]) -> String {
    if hit.len() == names.len() {
        return String::new();
    }
    let list: Vec<&str> = hit.iter().map(|place| names[*place].as_str()).collect();
    let numbers: Option<Vec<&str>> = list.iter().map(|n| n.strip_prefix("group ")).collect();
    match (hit, numbers) {
        ([one], _) => format!(" of {}", names[*one]),
        (few, Some(numbers)) if few.len() <= LISTED => format!(" of groups {}", numbers.join(", ")),
        (few, None) if few.len() <= LISTED => format!(" of {}", list.join(", ")),
        (many, Some(_)) => format!(" of {} of {} groups", many.len(), names.len()),
        (many, None) => format!(" of {} of {} outputs", many.len(), names.len()),
    }
}

fn share(count: usize, total: usize) -> String {
    match 100.0 * count as f64 / total as f64 {
        percent if percent < 0.1 => format!("{count} elements"),
        percent if percent < 10.0 => format!("{percent:.1} % of elements"),
        percent => format!("{:.0} % of elements", percent.floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(set: Set) -> String {
        match set {
            Set::All => "all".to_owned(),
            Set::Some(text) => text,
        }
    }

    fn rows(len: usize, wrong: impl Fn(usize) -> bool) -> String {
        let flags: Vec<bool> = (0..len).map(wrong).collect();
        text(set(&flags, "row"))
    }

    #[test]
    fn sets_in_words() {
        assert_eq!(rows(256, |_| true), "all");
        assert_eq!(rows(256, |r| r % 128 >= 64), "rows ≥ 64 of each 128");
        assert_eq!(rows(256, |r| r % 128 < 16), "rows < 16 of each 128");
        assert_eq!(rows(200, |r| r >= 64), "rows ≥ 64");
        assert_eq!(rows(200, |r| r == 199), "the last row");
        assert_eq!(rows(200, |r| (10..20).contains(&r)), "rows 10 to 19");
        assert_eq!(rows(200, |r| r % 2 == 1), "4 rows of each 8");
        assert_eq!(rows(100, |r| r == 3 || r == 77), "2 of 100 rows");
    }
}
