//! Describes where the wrong elements are: groups, rows, columns, and whether they repeat with a
//! tile.

use super::naming::OutputName;

/// Periods at which kernels go wrong: tiles, warp groups, warps, fragments.
const PERIODS: [usize; 6] = [8, 16, 32, 64, 128, 256];
/// More groups than this are counted, not listed.
const LISTED: usize = 6;

/// `wrong` flags each element of each of the `answers`.
pub(super) fn describe(wrong: &[Vec<bool>], answers: &[OutputName]) -> String {
    let count = |flags: &[bool]| flags.iter().filter(|wrong| **wrong).count();
    let hit: Vec<usize> = (0..wrong.len())
        .filter(|place| wrong[*place].contains(&true))
        .collect();
    let whose = whose(&hit, answers);
    let total: usize = hit.iter().map(|place| wrong[*place].len()).sum();
    let counted: usize = hit.iter().map(|place| count(&wrong[*place])).sum();
    if counted == total {
        return format!("every element{whose}");
    }
    if counted == 1 {
        let (answer, flags) = (&answers[hit[0]], &wrong[hit[0]]);
        let columns = answer.extents.last().copied().unwrap_or(1);
        let (row, column) = (first(flags) / columns, first(flags) % columns);
        return match answer.is_matrix() {
            true => format!("one element (row {row}, column {column}){whose}"),
            false => format!("one element ({})", answer.element(row, column)),
        };
    }
    let regions = hit
        .iter()
        .map(|place| region(&wrong[*place], &answers[*place]));
    let region = agreed(&regions.collect::<Vec<_>>());
    let share = share(counted, total);
    match region.is_empty() {
        true => format!("{share}{whose}"),
        false => format!("{region}{whose} ({share})"),
    }
}

/// The part of each axis that has a wrong element, in words that join to one description: rows and
/// columns of a matrix, slices of another tensor.
fn region(flags: &[bool], answer: &OutputName) -> Vec<String> {
    let axes = (0..answer.extents.len()).map(|axis| marked_on(flags, &answer.extents, axis));
    let sets: Vec<Option<MarkedIndices>> = axes.map(|marks| MarkedIndices::of(&marks)).collect();
    if let [rows, columns] = &sets[..] {
        let words = |set: &Option<MarkedIndices>, noun| set.as_ref().map(|set| set.words(noun));
        let words = [words(rows, "row"), words(columns, "column")];
        return words.map(Option::unwrap_or_default).to_vec();
    }
    if sets.iter().all(Option::is_none) {
        return vec![String::new()];
    }
    let slice =
        |set: &Option<MarkedIndices>| set.as_ref().map_or(":".to_owned(), MarkedIndices::slice);
    let slices: Vec<String> = sets.iter().map(slice).collect();
    vec![format!("{}[{}]", answer.tensor, slices.join(","))]
}

/// The indices of an axis that have a wrong element.
fn marked_on(flags: &[bool], extents: &[usize], axis: usize) -> Vec<bool> {
    let inner: usize = extents[axis + 1..].iter().product();
    let mut marks = vec![false; extents[axis]];
    for (index, _) in flags.iter().enumerate().filter(|(_, wrong)| **wrong) {
        marks[index / inner % extents[axis]] = true;
    }
    marks
}

/// The common description of all answers, part by part.
fn agreed(regions: &[Vec<String>]) -> String {
    let Some((one, others)) = regions.split_first() else {
        return String::new();
    };
    let shared = one.iter().enumerate().filter(|(part, words)| {
        let same = |other: &Vec<String>| other.get(*part) == Some(words);
        !words.is_empty() && others.iter().all(same)
    });
    let shared: Vec<&str> = shared.map(|(_, words)| words.as_str()).collect();
    shared.join(", ")
}

/// Some of the indices of an axis; within a period, if they repeat.
struct MarkedIndices {
    first: usize,
    last: usize,
    count: usize,
    len: usize,
    repeats: bool,
}

impl MarkedIndices {
    /// `None` if all are marked.
    fn of(flags: &[bool]) -> Option<Self> {
        let periods = PERIODS.into_iter().filter(|p| 2 * p <= flags.len());
        let mut periodic = periods.filter(|period| {
            let one = &flags[..*period];
            let same = |(i, f): (usize, &bool)| *f == one[i % period];
            flags.iter().enumerate().all(same)
        });
        let (one, repeats) = match periodic.next() {
            Some(period) => (&flags[..period], true),
            None => (flags, false),
        };
        let count = one.iter().filter(|f| **f).count();
        (count < one.len()).then(|| Self {
            first: first(one),
            last: one.iter().rposition(|f| *f).unwrap_or(0),
            count,
            len: one.len(),
            repeats,
        })
    }

    fn is_run(&self) -> bool {
        self.count == self.last + 1 - self.first
    }

    /// "rows ≥ 64 of each 128".
    fn words(&self, noun: &str) -> String {
        let (first, last, len) = (self.first, self.last, self.len);
        let ends = last + 1 == len;
        if self.repeats {
            return match (self.is_run(), first) {
                (false, _) => format!("{} {noun}s of each {len}", self.count),
                (true, 0) => format!("{noun}s < {} of each {len}", last + 1),
                (true, _) if ends => format!("{noun}s ≥ {first} of each {len}"),
                _ => format!("{noun}s {first} to {last} of each {len}"),
            };
        }
        match (self.count, first) {
            (1, _) if ends => format!("the last {noun}"),
            (1, _) => format!("{noun} {first}"),
            _ if !self.is_run() => format!("{} of {len} {noun}s", self.count),
            (_, 0) => format!("{noun}s < {}", last + 1),
            _ if ends => format!("{noun}s ≥ {first}"),
            _ => format!("{noun}s {first} to {last}"),
        }
    }

    /// "64:128 of each 128", as an index of a tensor.
    fn slice(&self) -> String {
        let (first, end, len) = (self.first, self.last + 1, self.len);
        let of_each = match self.repeats {
            true => format!(" of each {len}"),
            false => String::new(),
        };
        match self.count {
            count if !self.is_run() && self.repeats => format!("{count}{of_each}"),
            count if !self.is_run() => format!("{count} of {len}"),
            1 => format!("{first}{of_each}"),
            _ => format!("{first}:{end}{of_each}"),
        }
    }
}

fn first(flags: &[bool]) -> usize {
    flags.iter().position(|f| *f).unwrap_or(0)
}

/// " of group 3", " of groups 1, 4", " of output y"; empty if all are meant.
fn whose(hit: &[usize], answers: &[OutputName]) -> String {
    if hit.len() == answers.len() {
        return String::new();
    }
    let names: Vec<String> = answers.iter().filter_map(OutputName::whose).collect();
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

    fn rows(len: usize, wrong: impl Fn(usize) -> bool) -> String {
        let flags: Vec<bool> = (0..len).map(wrong).collect();
        MarkedIndices::of(&flags).map_or("all".to_owned(), |set| set.words("row"))
    }

    /// A part of a tensor with four axes is described by them, not by rows that it does not have.
    #[test]
    fn slices_of_a_tensor() {
        let answer = OutputName {
            tensor: "y".to_owned(),
            extents: vec![2, 4, 10, 256],
            group: None,
            only: true,
        };
        let text = |wrong: &dyn Fn([usize; 4]) -> bool| {
            let at = |i: usize| [i / 10240, i / 2560 % 4, i / 256 % 10, i % 256];
            let flags: Vec<bool> = (0..2 * 4 * 10 * 256).map(|i| wrong(at(i))).collect();
            describe(&[flags], std::slice::from_ref(&answer))
        };
        assert_eq!(text(&|_| true), "every element");
        assert_eq!(
            text(&|[b, g, ..]| b == 1 && g != 2),
            "y[1,3 of 4,:,:] (37 % of elements)"
        );
        assert_eq!(
            text(&|[_, _, c, s]| c >= 8 && s % 128 >= 64),
            "y[:,:,8:10,64:128 of each 128] (10 % of elements)"
        );
        assert_eq!(text(&|at| at == [1, 2, 3, 4]), "one element (y[1,2,3,4])");
        let scattered = text(&|[b, g, c, s]| (b + g + c + s) % 2 == 0);
        assert_eq!(scattered, "50 % of elements");
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
