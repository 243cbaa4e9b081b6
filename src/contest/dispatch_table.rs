//! The oracle-dispatch gap: the gain of calling the best contender of each shape over calling the
//! one best contender everywhere.

use dgx_core::domain::{ContenderId, Group, Joined, Micros, Shape, Timing, distinct};
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
    /// The table as TOML.
    pub(crate) fn toml(&self) -> String {
        let mut text = format!(
            "# Which contender to call on which shape; everything else calls `default`.\n\
             # From {}; its times are {}.\n\
             default = {}\n\
             gap = {:.4}  # speedup of this table over `default` alone, geometric mean\n",
            self.source.replace('\n', " "),
            self.timing.as_str(),
            quoted(self.single.as_str()),
            self.gap
        );
        for choice in &self.choices {
            text.push_str(&format!(
                "\n[[shape]]\nname = {}\ncontender = {}\nmicros = {:.3}\ngroups = [\n",
                quoted(&choice.shape.name),
                quoted(choice.contender.as_str()),
                choice.micros.0
            ));
            for g in &choice.shape.groups {
                text.push_str(&format!("  {},\n", g.to_toml()));
            }
            text.push_str("]\n");
        }
        text
    }

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

    /// The table as a C header with a lookup by the groups of a call.
    pub(crate) fn header(&self) -> String {
        let chosen = self.choices.iter().map(|choice| &choice.contender);
        let names = distinct([&self.single].into_iter().chain(chosen));
        let mut text = String::from(
            "/* Which contender to call on which shape. Made by dgx; do not edit. */\n\
             #ifndef DGX_DISPATCH_H\n#define DGX_DISPATCH_H\n\n",
        );
        let sizes: Vec<&str> = self.sizes().collect();
        text.push_str(&format!(
            "struct dgx_group {{ unsigned {}; }};\n\n",
            sizes.join(", ")
        ));
        let list = names.iter().map(|n| quoted(n.as_str())).joined(", ");
        text.push_str(&format!(
            "static const char *const dgx_contenders[] = {{ {} }};\n\n",
            list
        ));
        for (index, choice) in self.choices.iter().enumerate() {
            let group = |g: &Group| {
                let sizes = g.sizes().map(|size| size.to_string()).joined(", ");
                format!("{{{sizes}}}")
            };
            let groups = choice.shape.groups.iter().map(group).joined(", ");
            text.push_str(&format!(
                "static const struct dgx_group dgx_shape_{index}[] = {{ {} }};\n",
                groups
            ));
        }
        text.push_str(
            "\nstatic const struct dgx_choice {\n  const struct dgx_group *groups;\n  \
             unsigned count, contender;\n} dgx_choices[] = {\n",
        );
        for (index, choice) in self.choices.iter().enumerate() {
            let contender = names.iter().position(|n| **n == choice.contender);
            text.push_str(&format!(
                "  {{ dgx_shape_{index}, {}, {} }},\n",
                choice.shape.groups.len(),
                contender.unwrap_or(0)
            ));
        }
        let same = |size: &&str| format!("c->groups[g].{size} == groups[g].{size}");
        let same = sizes.iter().map(same).joined(" && ");
        text.push_str(&LOOKUP.replace("SAME", &same));
        text
    }

    /// The names of a group's sizes.
    fn sizes(&self) -> impl Iterator<Item = &str> {
        let first = self.choices.first().and_then(|c| c.shape.groups.first());
        first
            .into_iter()
            .flat_map(Group::iter)
            .map(|(name, _)| name)
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

const LOOKUP: &str = "};

/* The contender's place in dgx_contenders; 0, the best single one, for any other shape. */
static inline unsigned dgx_dispatch(const struct dgx_group *groups, unsigned count) {
  for (unsigned i = 0; i < sizeof dgx_choices / sizeof dgx_choices[0]; ++i) {
    const struct dgx_choice *c = &dgx_choices[i];
    unsigned g = 0;
    if (c->count != count) continue;
    while (g < count && SAME)
      ++g;
    if (g == count) return c->contender;
  }
  return 0;
}

#endif
";

/// A string that both TOML and C read back unchanged.
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
    fn toml_reads_back() {
        let (run, ranking) = crossing();
        let text = dispatch_table(&run, &ranking).unwrap().toml();
        let value: toml::Table = text.parse().unwrap();
        assert_eq!(value["default"].as_str(), Some("sequential"));
        let shapes = value["shape"].as_array().unwrap();
        assert_eq!(shapes[1]["contender"].as_str(), Some("interleaved"));
    }

    #[test]
    fn who_may_not_enter_is_not_chosen() {
        let (run, ranking) = crossing();
        let table = dispatch_table_among(&run, &ranking, |id| id.as_str() != "sequential").unwrap();
        let chosen = |c: &Choice| c.contender.as_str() != "sequential";
        assert!(table.single.as_str() != "sequential" && table.choices.iter().all(chosen));
    }

    #[test]
    fn header_compiles_where_there_is_a_compiler() {
        let (run, ranking) = crossing();
        let dir = tempfile::tempdir().unwrap();
        let text = dispatch_table(&run, &ranking).unwrap().header();
        std::fs::write(dir.path().join("d.h"), text).unwrap();
        let main = "#include \"d.h\"\nint main(void) { struct dgx_group a = {512, 4096, 7168}, b = {1, 2, 3};\
                    return dgx_dispatch(&a, 1) != 1 || dgx_dispatch(&b, 1) != 0 || !dgx_contenders[1]; }\n";
        std::fs::write(dir.path().join("d.c"), main).unwrap();
        let out = dir.path().join("d");
        let built = std::process::Command::new("cc")
            .args(["-Wall", "-Werror", "-o"])
            .arg(&out)
            .arg(dir.path().join("d.c"))
            .status();
        // The linker that Rust needs is a C compiler everywhere we build.
        assert!(built.unwrap().success());
        assert!(std::process::Command::new(out).status().unwrap().success());
    }
}
