//! The oracle-dispatch gap: the gain of calling the best contender of each shape over calling the
//! one best contender everywhere.

use dgx_core::domain::{ContenderId, Joined, Micros, Shape, Timing, distinct};
use dgx_core::operator;
use dgx_core::rank::Ranking;
use dgx_core::record::Run;
use dgx_core::stats::{CONFIDENCE, LogEstimate};

/// Which contender to call on which shape.
#[derive(Clone, Debug)]
pub(crate) struct DispatchTable {
    /// The best single contender.
    pub single: ContenderId,
    pub choices: Vec<Choice>,
    /// Geometric-mean speedup of dispatching over the single contender.
    pub gap: f64,
    pub source: String,
    pub timing: Timing,
}

#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub shape: Shape,
    pub contender: ContenderId,
    pub micros: Micros,
    /// Over the single best on this shape; `None` if that one is chosen.
    pub over_single: Option<LogEstimate>,
}

/// The table, or `None` if no contender is ranked. A contender replaces the single best only if it
/// is certainly faster: taking the lowest estimate of each shape would count luck as gain.
pub(crate) fn dispatch_table(run: &Run, ranking: &Ranking) -> Option<DispatchTable> {
    dispatch_table_among(run, ranking, |_| true)
}

/// The table over some of the contenders.
pub(crate) fn dispatch_table_among(
    run: &Run,
    ranking: &Ranking,
    enters: impl Fn(&ContenderId) -> bool,
) -> Option<DispatchTable> {
    let single = ranking
        .rows
        .iter()
        .find(|r| r.place.is_some() && enters(&r.contender))?
        .contender
        .clone();
    let rivals: Vec<&ContenderId> = run
        .header
        .contenders
        .iter()
        .map(|c| &c.id)
        .filter(|id| **id != single && enters(id))
        .collect();
    let comparisons: Vec<_> = rivals
        .iter()
        .filter_map(|id| Some((*id, ranking.compare(run, &single, id)?)))
        .collect();
    let mut gain = 0.0;
    let mut choices = Vec::new();
    for shape in &run.header.shapes {
        let better = comparisons
            .iter()
            .filter_map(|(id, c)| Some((*id, *c.shape(&shape.name)?)))
            .filter(|(_, e)| surely_faster(e, ranking.tie_margin))
            .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
        let chosen = better.map_or(&single, |(id, _)| id);
        gain += better.map_or(0.0, |(_, e)| e.mean);
        choices.push(Choice {
            shape: shape.clone(),
            contender: chosen.clone(),
            micros: ranking.cell(chosen, &shape.name)?.time.as_ref()?.estimate(),
            over_single: better.map(|(_, e)| e),
        });
    }
    Some(DispatchTable {
        gap: (gain / choices.len() as f64).exp(),
        single,
        choices,
        source: run.path.display().to_string(),
        timing: run.timing(),
    })
}

/// Times without an interval must differ by more than their `tie_margin`.
fn surely_faster(estimate: &LogEstimate, tie_margin: f64) -> bool {
    match estimate.ratio(CONFIDENCE).lower {
        Some(lower) => lower > 1.0,
        None => estimate.mean > tie_margin,
    }
}

impl DispatchTable {
    /// The table as a variant: it picks the fastest contender of each shape of the run, in any
    /// order of the groups, and the single best elsewhere.
    pub(crate) fn picks(&self, arch: &str, operator: &str) -> String {
        let operator = match operator == operator::default_operator().name {
            true => String::new(),
            false => format!("operator = {}\n", quoted(operator)),
        };
        let mut text = format!(
            "/*dgx\n\
             summary = \"The fastest contender of each shape by {} times\"\n\
             arch    = {}\n{operator}\n\
             # Made by `dgx dispatch` from {}:\n\
             # {:.4} times as fast as {} alone, in geometric mean.\n",
            self.timing.as_str(),
            quoted(arch),
            self.source.replace(['\n', '*'], " "),
            self.gap,
            self.single,
        );
        let winners = self.choices.iter().map(|choice| &choice.contender);
        for winner in distinct(winners.filter(|id| **id != self.single)) {
            let won = self.choices.iter().filter(|c| c.contender == *winner);
            let conditions = won.map(|c| condition(&c.shape)).joined(" ||\n  ");
            text.push_str(&format!(
                "\n[[pick]]\ncontender = {}\nwhen      = \"\"\"\n  {}\n\"\"\"\n",
                quoted(winner.as_str()),
                conditions
            ));
        }
        text.push_str(&format!(
            "\n[[pick]]\ncontender = {}\n*/\n",
            quoted(self.single.as_str())
        ));
        text
    }
}

/// An expression that is true for this shape: sums over its groups, so that their order does not
/// matter. Other groups do not have the same sums by chance.
fn condition(shape: &Shape) -> String {
    let groups = &shape.groups;
    if let [group] = groups.as_slice() {
        let sizes = group
            .iter()
            .map(|(name, size)| format!("most({name}) == {size}"));
        return std::iter::once("groups == 1".to_owned())
            .chain(sizes)
            .joined(" && ");
    }
    let sum = |of: &dyn Fn(&[i64]) -> i64| -> i64 {
        let sizes = groups
            .iter()
            .map(|g| g.sizes().map(i64::from).collect::<Vec<_>>());
        sizes.map(|sizes| of(&sizes)).fold(0, i64::saturating_add)
    };
    let names: Vec<&str> = groups[0].iter().map(|(name, _)| name).collect();
    let mut parts = vec![format!("groups == {}", groups.len())];
    for (place, name) in names.iter().enumerate() {
        parts.push(format!("sum({name}) == {}", sum(&|sizes| sizes[place])));
        if place == 0 {
            parts.push(format!("sum({name} * {name}) == {}", sum(&|s| s[0] * s[0])));
        }
    }
    // Binds the sizes of one group to each other.
    if let [first, others @ ..] = &names[..]
        && !others.is_empty()
    {
        let tied = sum(&|sizes| sizes[0] * sizes[1..].iter().sum::<i64>());
        parts.push(format!("sum({first} * ({})) == {tied}", others.join(" + ")));
    }
    parts.join(" && ")
}

/// A string that TOML reads back unchanged.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Synthetic, dense};

    /// Two designs, each best on one of two shapes.
    pub(crate) fn crossing() -> (Run, Ranking) {
        let mut text = String::new();
        let field = Synthetic {
            shapes: vec![dense(256, 3072, 4096), dense(512, 4096, 7168)],
            ..Synthetic::round4().modelled()
        };
        for line in field.text().lines() {
            let slower = line.contains("estimate")
                && line.contains("interleaved")
                && line.contains("256x3072");
            match slower {
                true => text.push_str(&line.replace("\"micros\":", "\"micros\":9")),
                false => text.push_str(line),
            }
            text.push('\n');
        }
        let run = dgx_core::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let ranking = Ranking::of(&run);
        (run, ranking)
    }

    #[test]
    fn picks_the_best_on_each_shape_and_sizes_the_gap() {
        let (run, ranking) = crossing();
        let table = dispatch_table(&run, &ranking).unwrap();
        assert_eq!(table.single.as_str(), "sequential");
        let chosen: Vec<&str> = table.choices.iter().map(|c| c.contender.as_str()).collect();
        assert_eq!(chosen, ["sequential", "interleaved"]);
        assert!(
            (table.gap - (0.76f64 / 0.52).sqrt()).abs() < 1e-9,
            "{}",
            table.gap
        );
    }

    #[test]
    fn who_may_not_enter_is_not_chosen() {
        let (run, ranking) = crossing();
        let table = dispatch_table_among(&run, &ranking, |id| id.as_str() != "sequential").unwrap();
        let chosen = |c: &Choice| c.contender.as_str() != "sequential";
        assert!(table.single.as_str() != "sequential" && table.choices.iter().all(chosen));
    }
}
