//! `dgx dispatch --fit`: the costs of a variant's picks, from recorded runs.

use std::path::PathBuf;
use std::sync::Arc;

use super::write::with_costs;
use super::{Args, sample};
use crate::cli::{Globals, runs};
use crate::cost_fit::{self, Costs, Regret, Sample, percentile};
use crate::present::{Column, Table, percent};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Chip, Exit, Joined};
use dgx_core::record::Run;
use dgx_run::catalog::{Catalog, Variant};

/// The number of shapes with the highest loss that are named.
const NAMED: usize = 3;

pub(super) fn run(args: &Args, globals: &Globals) -> Result<Exit, CommandError> {
    let fitted = load(&args.fit, None)?;
    let held_out = load(&args.holdout, fitted.first())?;
    let catalog = Catalog::open(&globals.variants)?.of(&fitted[0].operator);
    let chip = runs::device_of(&fitted[0])?.chip;
    let variant = costly(&catalog, args.variant.as_deref(), chip)?;
    let (samples, others) = (sampled(&variant, &fitted)?, sampled(&variant, &held_out)?);
    let written = sample::written(&variant);
    let costs = cost_fit::fit(&samples, &written);
    let style = runs::style(globals);
    say!("{}", errors(&variant, &samples, &costs).render(&style));
    let mut lost = vec![
        ("as written", &samples, &written),
        ("fitted", &samples, &costs),
    ];
    if !others.is_empty() {
        lost.push(("held out, as written", &others, &written));
        lost.push(("held out", &others, &costs));
    }
    say!("{}", regrets(&variant, &lost).render(&style));
    if args.write {
        let file = with_costs(&variant.file, &costs)?;
        let path = Some(file.path.clone());
        runs::write_all([(&path, &|| file.text.to_string())])?;
        say!("wrote {}", file.path.display());
    }
    Ok(Exit::Done)
}

/// Loads the runs; their times must be of one kind and one chip.
fn load(paths: &[PathBuf], first: Option<&Run>) -> Result<Vec<Run>, CommandError> {
    let mut all: Vec<Run> = Vec::new();
    for path in paths {
        let run = runs::load(Some(path))?;
        let kind =
            |run: &Run| -> Result<_, InputError> { Ok((run.timing(), runs::device_of(run)?.chip)) };
        if let Some(other) = first.or(all.first())
            && kind(other)? != kind(&run)?
        {
            let (one, other) = (run.path.display(), other.path.display());
            return Err(CommandError::inconclusive(
                format!("the times of {one} and {other} are of two kinds or two chips"),
                "give runs that are all measured, or all modelled, on one chip",
            ));
        }
        all.push(run);
    }
    Ok(all)
}

/// The variant of that name, or the only one that picks by cost.
fn costly(catalog: &Catalog, name: Option<&str>, chip: Chip) -> Result<Arc<Variant>, CommandError> {
    let has_costs = |variant: &Variant| variant.picks.iter().any(|pick| !pick.cost.is_empty());
    if let Some(name) = name {
        catalog.knows(name).map_err(|missing| {
            let (message, remedy) = missing.explain();
            InputError::new(message, remedy)
        })?;
        let variant = catalog.variant_on(name, chip)?;
        return match has_costs(&variant) {
            true => Ok(variant),
            false => Err(InputError::new(
                format!("`{name}` has no picks with a `cost`"),
                "docs/variants.md, \"Picking\", shows how to write them",
            ))?,
        };
    }
    let mut found: Vec<Arc<Variant>> = Vec::new();
    for name in catalog.names() {
        // A variant that cannot be read has no costs to fit.
        found.extend(catalog.variant_on(name, chip).ok().filter(|v| has_costs(v)));
    }
    match (found.pop(), found.is_empty()) {
        (Some(variant), true) => Ok(variant),
        (None, _) => Err(InputError::new(
            "no variant has picks with a `cost`",
            "docs/variants.md, \"Picking\", shows how to write them",
        ))?,
        (Some(last), false) => Err(InputError::new(
            format!("{} variants have picks with a `cost`", found.len() + 1),
            format!("name one: --variant {}", last.name),
        ))?,
    }
}

fn sampled(variant: &Variant, runs: &[Run]) -> Result<Vec<Sample>, CommandError> {
    let mut samples = Vec::new();
    for run in runs {
        let device = runs::device_of(run)?;
        let found = sample::samples(variant, run, &device)?;
        if found.is_empty() {
            let message = format!(
                "{} timed none of the contenders that `{}` picks from",
                run.path.display(),
                variant.name
            );
            let remedy = format!("sweep the contenders that {} picks", variant.name);
            return Err(CommandError::inconclusive(message, remedy));
        }
        samples.extend(found);
    }
    Ok(samples)
}

fn errors(variant: &Variant, samples: &[Sample], costs: &Costs) -> Table {
    let mut grid = Table::new(vec![
        Column::key("contender"),
        Column::right("shapes").weight(4),
        Column::right("median").weight(4),
        Column::right("90 %").weight(4),
        Column::right("worst").weight(4),
        Column::left("cost, ns").weight(4).wraps(),
    ]);
    for found in cost_fit::errors(samples, costs) {
        let pick = &variant.picks[found.pick];
        let terms = pick.cost.iter().zip(&costs[found.pick]);
        let terms = terms.map(|(term, nanos)| format!("{nanos:.4} · ({})", term.of.text.trim()));
        grid.push(vec![
            pick.contender.id.to_string(),
            found.shares.len().to_string(),
            percent(percentile(&found.shares, 0.5)),
            percent(percentile(&found.shares, 0.9)),
            percent(percentile(&found.shares, 1.0)),
            terms.joined(" + "),
        ]);
    }
    grid
}

fn regrets(variant: &Variant, lost: &[(&str, &Vec<Sample>, &Costs)]) -> Table {
    let mut grid = Table::new(vec![
        Column::key("regret"),
        Column::right("shapes").weight(4),
        Column::right("mean").weight(4),
        Column::right("95 %").weight(4),
        Column::right("worst").weight(4),
        Column::left("most is lost on").weight(4).wraps(),
    ]);
    for (what, samples, costs) in lost {
        let found = cost_fit::regrets(samples, costs);
        let shares: Vec<f64> = found.iter().map(|regret| regret.share).collect();
        let name = |regret: &Regret| {
            let id = |pick: usize| &variant.picks[pick].contender.id;
            let (chosen, best) = (id(regret.chosen), id(regret.best));
            let share = percent(regret.share);
            format!("{} {share} ({chosen}, not {best})", regret.shape)
        };
        let worst = found.iter().rev().filter(|regret| regret.share > 0.0);
        let worst = worst.take(NAMED).map(name).joined("; ");
        grid.push(vec![
            (*what).to_owned(),
            shares.len().to_string(),
            percent(shares.iter().sum::<f64>() / shares.len().max(1) as f64),
            percent(percentile(&shares, 0.95)),
            percent(percentile(&shares, 1.0)),
            worst,
        ]);
    }
    grid
}
