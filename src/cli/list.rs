use std::path::PathBuf;

use tabled::Table;
use tabled::builder::Builder;
use tabled::settings::{Padding, Style};

use super::{Globals, runs};
use crate::catalog::Catalog;
use crate::config::target::usual;
use crate::diagnostic::CommandError;
use crate::domain::{Exit, Status, printable_line};
use crate::plan::{Machine, Plan};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A round file: list its contenders and shapes instead
    #[arg(value_name = "ROUND.toml")]
    round: Option<PathBuf>,
}

/// Prints the variants there are, or what a round would run.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    match args.round {
        None => list_variants(&catalog),
        Some(path) => {
            let plan = Plan::new(runs::round(&path)?, &catalog, &Machine::of(usual()))?;
            list_round(&plan);
            Ok(super::check::tell_mistakes(&plan))
        }
    }
}

/// A broken variant is a row like any other, so that one mistake does not hide
/// the rest; the exit code still tells.
fn list_variants(catalog: &Catalog) -> Result<Exit, CommandError> {
    let mut rows = Builder::default();
    rows.push_record([
        "variant",
        "for",
        "round",
        "parent",
        "claim",
        "expect",
        "what it is",
    ]);
    let mut broken = None;
    for name in catalog.names() {
        // What the sources say of the design, they say alike: the first speaks.
        let sources: Result<Vec<_>, _> = catalog.sources(name).into_iter().collect();
        let sources = sources.map(|sources| {
            let archs: Vec<&str> = sources.iter().map(|source| &*source.arch).collect();
            (archs.join(" "), sources[0].clone())
        });
        match sources {
            Ok((archs, variant)) => {
                let claim = variant.claim.as_ref();
                let params: Vec<String> = variant
                    .params
                    .iter()
                    .map(|(key, values)| format!("{key}={}", span_of(values)))
                    .collect();
                let shown = match params.is_empty() {
                    true => name.to_owned(),
                    false => format!("{name}[{}]", params.join(",")),
                };
                rows.push_record([
                    shown,
                    archs,
                    variant.round.map(|r| r.to_string()).unwrap_or_default(),
                    variant.parent.clone().unwrap_or_default(),
                    claim
                        .map(|c| format!("{:.2}× {}", c.geomean, c.over))
                        .unwrap_or_default(),
                    match variant.expect {
                        Status::Ok => String::new(),
                        status => status.to_string(),
                    },
                    variant.summary.clone(),
                ]);
            }
            Err(error) => {
                let (name, why) = (printable_line(name), printable_line(error.message()));
                rows.push_record([&name, "", "", "", "", "broken", &why]);
                broken.get_or_insert(error);
            }
        }
    }
    say!("{}", plain(rows));
    match broken {
        None => Ok(Exit::Done),
        Some(error) => Err(error.into()),
    }
}

/// `1..4` for consecutive values, else all of them.
fn span_of(values: &[i64]) -> String {
    let consecutive = values.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match values {
        [first, .., last] if consecutive => format!("{first}..{last}"),
        _ => {
            let list: Vec<String> = values.iter().map(i64::to_string).collect();
            list.join("|")
        }
    }
}

fn list_round(plan: &Plan) {
    say!("{}  {}\n", plan.round.name, plan.round.question);
    let mut rows = Builder::default();
    rows.push_record(["contender", "", "what it is"]);
    for contender in &plan.contenders {
        let variant = &contender.variant;
        let role = match &variant.broken {
            Some(_) => "broken",
            None if contender.id == plan.baseline => "baseline",
            None => "",
        };
        rows.push_record([contender.id.as_str(), role, &variant.summary]);
    }
    say!("{}\n", plain(rows));
    let mut rows = Builder::default();
    rows.push_record(["shape", "groups", "m", "n", "k", "GFLOP"]);
    for shape in &plan.shapes {
        let extents = |of: fn(&crate::domain::Group) -> u32| {
            let mut list: Vec<String> = shape.groups.iter().map(|g| of(g).to_string()).collect();
            list.dedup();
            list.join(" ")
        };
        rows.push_record([
            shape.name.clone(),
            shape.groups.len().to_string(),
            extents(|g| g.m),
            extents(|g| g.n),
            extents(|g| g.k),
            format!("{:.1}", shape.flops() / 1e9),
        ]);
    }
    say!("{}", plain(rows));
}

/// Columns held apart by space alone.
pub(super) fn plain(rows: Builder) -> Table {
    let mut table = rows.build();
    table.with(Style::blank()).with(Padding::new(0, 1, 0, 0));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_values_in_short() {
        assert_eq!(span_of(&[1, 2, 3, 4]), "1..4");
        assert_eq!(span_of(&[64, 128]), "64|128");
        assert_eq!(span_of(&[2]), "2");
    }
}
