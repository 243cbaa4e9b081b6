use std::path::PathBuf;
use std::sync::Arc;

use super::check::print_all;
use super::machine;
use crate::cli::select::Shapes;
use crate::cli::{Globals, named, runs};
use crate::present::{Column, Style, Table};
use crate::table::{Value, maybe, row};
use dgx_core::config::target::default_device;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{ContenderId, Device, Exit, Joined, Status, printable_line};
use dgx_core::operator::{self, Tensor};
use dgx_core::speech::{self, Level};
use dgx_run::catalog::{Catalog, Variant};
use dgx_run::plan::{Plan, PlanTarget, PlannedCell};
use dgx_run::sweep::BackendChoice;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A round: list its contenders and shapes instead
    #[arg(value_name = "ROUND", value_parser = named::round())]
    round: Option<PathBuf>,
    #[command(flatten)]
    shapes: Shapes,
    /// List operators instead: what a round can be of
    #[arg(long, conflicts_with_all = ["round", "shape"])]
    operators: bool,
}

/// Prints all variants, or the contents of a round.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let style = runs::style(globals);
    if args.operators {
        return Ok(list_operators(&style));
    }
    let catalog = Catalog::open(&globals.variants)?;
    match args.round {
        None => {
            let (here, _) = machine::device(None, BackendChoice::Auto)?;
            list_all(&catalog, &here, &style)
        }
        Some(path) => {
            let mut round = runs::round(&path)?;
            args.shapes.keep_in_round(&mut round)?;
            let plan = Plan::new(round, &catalog, &PlanTarget::of(default_device()))?;
            list_round(&plan, &style);
            for (contender, reason) in idle(&plan) {
                say!(
                    "{}",
                    style.fold(&format!("{contender} runs on no shape: {reason}"), 2)
                );
            }
            Ok(super::check::print_mistakes(&plan))
        }
    }
}

/// Operators with their sizes and types; a broken file is a row as well.
fn list_operators(style: &Style) -> Exit {
    let mut grid = Table::new(vec![
        Column::key("operator"),
        Column::left("sizes").weight(5),
        Column::left("in").weight(8).wraps(),
        Column::left("out").weight(8).wraps(),
        Column::left("summary").weight(8).wraps(),
    ]);
    let typed = |tensor: &Tensor| format!("{} {}", tensor.name, tensor.element.name());
    let mut mistakes = Vec::new();
    for name in operator::known() {
        match operator::named(Some(&name)) {
            Ok(operator) => {
                let outputs = operator.outputs.iter().map(|output| typed(&output.tensor));
                grid.push(row![
                    name,
                    operator.sizes.join(" "),
                    operator.inputs.iter().map(typed).joined(", "),
                    outputs.joined(", "),
                    printable_line(&operator.summary),
                ]);
            }
            Err(error) => {
                let broken = format!("broken: {}", printable_line(error.message()));
                grid.push(row![printable_line(&name), "", "", "", broken]);
                mistakes.push(error);
            }
        }
    }
    say!("{}", grid.render(style));
    print_all(&mistakes)
}

/// The designs of the usual operator, then those of each that has a folder.
fn list_all(catalog: &Catalog, here: &Device, style: &Style) -> Result<Exit, CommandError> {
    let mut exit = list_variants(catalog, here, style, true)?;
    for operator in catalog.operators() {
        say!("\n{operator}");
        let own = catalog.folder_of(operator);
        if list_variants(&own, here, style, false)? != Exit::Done {
            exit = Exit::Usage;
        }
    }
    Ok(exit)
}

/// A broken variant is a row like any other, so that one mistake does not hide the rest; each is
/// then reported with its remedy, and the exit code shows it too. The hint on -v is printed only
/// below the `first` table.
fn list_variants(
    catalog: &Catalog,
    here: &Device,
    style: &Style,
    first: bool,
) -> Result<Exit, CommandError> {
    let mut grid = Table::new(vec![
        Column::key("variant"),
        Column::left("for").weight(5).wraps(),
        Column::right("round").weight(5),
        Column::left("parent").weight(5),
        Column::left("claim").weight(6).wraps(),
        Column::left("expect").weight(8),
        Column::left("summary").weight(8).wraps(),
    ]);
    let mut mistakes = Vec::new();
    let verbose = speech::level() >= Level::Verbose;
    for name in catalog.names() {
        let sources: Result<Vec<_>, _> = catalog.sources(name).into_iter().collect();
        match sources {
            Ok(sources) => grid.push(listed(name, sources, here)),
            Err(error) => {
                let (name, why) = (printable_line(name), printable_line(error.message()));
                grid.push(row![name, "", "", "", "", "broken", why]);
                mistakes.push(error);
            }
        }
    }
    let grid = match verbose {
        true => grid,
        false => grid.without(&["for", "round", "parent", "claim"]),
    };
    say!("{}", grid.without_empty_columns().render(style));
    if !verbose && first {
        inform!(
            "\nfor {}; -v also shows sources for other chips, rounds, parents and claims",
            here.name
        );
    }
    for left_out in catalog.passed_over() {
        let (message, remedy) = (left_out.message(), left_out.remedy());
        remark!(
            "{}",
            style.fold(&format!("warning: {message}; {remedy}"), 2)
        );
    }
    Ok(print_all(&mistakes))
}

/// The row of a variant. The source for this device comes first, and alone unless all are wanted.
fn listed(name: &str, mut sources: Vec<Arc<Variant>>, here: &Device) -> Vec<Value> {
    let verbose = speech::level() >= Level::Verbose;
    sources.sort_by_key(|source| here.chip.refuses(&source.arch).is_some());
    let variant = &sources[0];
    let others = sources[1..].iter();
    let others = others.filter(|other| verbose && other.summary != variant.summary);
    let others = others.map(|other| format!("{}: {}", other.arch, other.summary));
    let summaries = std::iter::once(variant.summary.clone()).chain(others);
    let claim = variant.claim.as_ref();
    row![
        with_params(name, variant),
        sources.iter().map(|source| &*source.arch).joined(" "),
        maybe(variant.round),
        maybe(variant.parent.as_ref()),
        maybe(claim.map(|c| format!("{:.2}× {}", c.geomean, c.over))),
        maybe(Some(variant.expect).filter(|status| *status != Status::Ok)),
        summaries.joined(" · "),
    ]
}

/// `pipelined[STAGES=1..4]`.
fn with_params(name: &str, variant: &Variant) -> String {
    let params = variant.params.iter();
    let params: Vec<String> = params
        .map(|(key, values)| format!("{key}={}", span_of(values)))
        .collect();
    match params.is_empty() {
        true => name.to_owned(),
        false => format!("{name}[{}]", params.join(",")),
    }
}

/// `1..4` for consecutive values, else all of them.
fn span_of(values: &[i64]) -> String {
    let consecutive = values.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match values {
        [first, .., last] if consecutive => format!("{first}..{last}"),
        _ => values.iter().map(i64::to_string).joined("|"),
    }
}

/// Contenders that run on none of the shapes on this device, with the reason.
fn idle(plan: &Plan) -> Vec<(&ContenderId, &str)> {
    let mut idle = Vec::new();
    for (index, contender) in plan.contenders.iter().enumerate() {
        let cells = plan.cells.iter().filter(|cell| cell.contender == index);
        let refusals: Option<Vec<&str>> = cells.map(PlannedCell::unsupported).collect();
        let first = refusals.and_then(|all| all.first().copied());
        idle.extend(first.map(|reason| (&contender.id, reason)));
    }
    idle
}

fn list_round(plan: &Plan, style: &Style) {
    let round = &plan.round;
    say!("{}\n", style.titled(&round.name, &round.question));
    let mut grid = Table::new(vec![
        Column::key("contender"),
        Column::left(""),
        Column::left("summary").weight(8).wraps(),
    ]);
    for contender in &plan.contenders {
        let variant = &contender.variant;
        let role = match &variant.broken {
            Some(_) => "broken",
            None if contender.id == plan.baseline => "baseline",
            None => "",
        };
        let id = contender.id.to_string();
        grid.push(vec![id, role.to_owned(), variant.summary.clone()]);
    }
    say!("{}\n", grid.render(style));
    let prose = |title| Column::left(title).weight(8).wraps();
    let operator = &round.operator;
    // An operator may have a size of this name too.
    let grouped = plan.shapes.iter().any(|shape| shape.groups.len() > 1);
    let mut columns = vec![Column::key("shape")];
    columns.extend(grouped.then(|| Column::right("groups").weight(8)));
    columns.extend(operator.sizes.iter().map(prose));
    columns.push(Column::right("GFLOP").weight(8));
    let mut grid = Table::new(columns);
    for shape in &plan.shapes {
        let extents = |size: &String| {
            let sizes = shape.groups.iter().filter_map(|group| group.get(size));
            let mut list: Vec<String> = sizes.map(|size| size.to_string()).collect();
            list.dedup();
            list.join(" ")
        };
        let mut row = vec![shape.name.clone()];
        row.extend(grouped.then(|| shape.groups.len().to_string()));
        row.extend(operator.sizes.iter().map(extents));
        row.push(gflop(operator.operations(shape)));
        grid.push(row);
    }
    say!("{}", grid.render(style));
}

/// Operations in billions; never 0.0 unless there are none.
fn gflop(operations: f64) -> String {
    match operations / 1e9 {
        giga if giga >= 0.1 || giga == 0.0 => format!("{giga:.1}"),
        giga => {
            let digits = 1 - giga.log10().floor() as i32;
            format!("{giga:.*}", digits.clamp(1, 9) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_operations_are_not_none() {
        assert_eq!(gflop(7.5e9), "7.5");
        assert_eq!(gflop(0.0), "0.0");
        assert_eq!(gflop(7_208_960.0), "0.0072");
        assert_eq!(gflop(1.0), "0.000000001");
    }

    #[test]
    fn parameter_values_in_short() {
        assert_eq!(span_of(&[1, 2, 3, 4]), "1..4");
        assert_eq!(span_of(&[64, 128]), "64|128");
        assert_eq!(span_of(&[2]), "2");
    }
}
