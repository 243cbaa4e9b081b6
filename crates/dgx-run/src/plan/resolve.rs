//! Resolves the round's names to contenders and checks that its shapes fit the device's memory.
//! Errors point into the round file.

use crate::catalog::{Catalog, Contender, is_identifier};
use dgx_core::config::{Baseline, Round, Selection};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::bounds::{self, CELLS, CONTENDERS};
use dgx_core::domain::{Bytes, Chip, ContenderId, Distribution, Group, Pattern, Shape};
use dgx_core::operator::{Operator, default_operator};

use super::PlanTarget;
use crate::operator::Recipe;

/// Maximum number of calls, counted by group: contenders times the groups of all shapes.
const MAX_CALLS: usize = 1_000_000;

/// The contenders in the round's order, and the baseline among them. A baseline that the round does
/// not list is added at the end.
pub(super) fn contenders(
    round: &Round,
    catalog: &Catalog,
    chip: Chip,
) -> Result<(Vec<Contender>, ContenderId), InputError> {
    let mut contenders = entrants(round, catalog, chip)?;
    let baseline = baseline(round, catalog, chip)?;
    if let Some(why) = &baseline.variant.broken {
        return Err(why.clone());
    }
    let id = baseline.id.clone();
    if contenders.iter().all(|contender| contender.id != id) {
        contenders.push(baseline);
    }
    Ok((contenders, id))
}

/// The contenders in the round's order, or those that the command line selects.
pub fn entrants(
    round: &Round,
    catalog: &Catalog,
    chip: Chip,
) -> Result<Vec<Contender>, InputError> {
    match round.only.is_empty() {
        true => listed(round, catalog, chip),
        false => asked_for(round, catalog, chip),
    }
}

/// Those the round lists.
fn listed(round: &Round, catalog: &Catalog, chip: Chip) -> Result<Vec<Contender>, InputError> {
    let mut contenders: Vec<Contender> = Vec::new();
    for selection in &round.contenders {
        for contender in select(round, catalog, chip, selection)? {
            if contenders.iter().any(|other| other.id == contender.id) {
                return Err(round.file.error(
                    selection.span.clone(),
                    format!("`{}` is selected twice", contender.id),
                    "remove one of the two",
                ));
            }
            contenders.push(contender);
        }
    }
    Ok(contenders)
}

/// The contenders of the command line: those it names, and those of the round that match its
/// patterns.
fn asked_for(round: &Round, catalog: &Catalog, chip: Chip) -> Result<Vec<Contender>, InputError> {
    let mut contenders: Vec<Contender> = Vec::new();
    for word in &round.only {
        let pattern = Pattern::new(word);
        let found = match pattern.is_wild() {
            true => matching(&pattern, listed(round, catalog, chip)?)?,
            false => {
                let selection = Selection::parse(word, 0..0);
                let wrong = |why| InputError::new(why, "write NAME or NAME:PARAM=1");
                select(round, catalog, chip, &selection.map_err(wrong)?)?
            }
        };
        for contender in found {
            // Two patterns may match the same contender.
            if contenders.iter().all(|other| other.id != contender.id) {
                contenders.push(contender);
            }
        }
    }
    Ok(contenders)
}

fn matching(pattern: &Pattern, listed: Vec<Contender>) -> Result<Vec<Contender>, InputError> {
    let all: Vec<&str> = listed.iter().map(|c| c.id.as_str()).collect();
    let nobody = InputError::new(
        format!("no contender of the round matches `{pattern}`"),
        format!("it has {}", all.join(", ")),
    );
    let picked: Vec<Contender> = (listed.into_iter())
        .filter(|contender| pattern.picks(&contender.id))
        .collect();
    match picked.is_empty() {
        true => Err(nobody),
        false => Ok(picked),
    }
}

fn baseline(round: &Round, catalog: &Catalog, chip: Chip) -> Result<Contender, InputError> {
    let selection = match &round.baseline {
        Baseline::Contender(selection) => selection,
        Baseline::WinnerOf { round: other, span } => {
            let file = round.file.path.with_file_name(format!("{other}.toml"));
            let (message, remedy) = match file.is_file() {
                true => (
                    format!("no run of {other} has a winner yet"),
                    format!("sweep {other} first, or name a contender with --baseline"),
                ),
                false => (
                    format!("there is no round `{other}`"),
                    format!("its file would be {}", file.display()),
                ),
            };
            return Err(round.file.error(span.clone(), message, remedy));
        }
    };
    let mut found = select(round, catalog, chip, selection)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        count => {
            let example = &found[0].id;
            Err(round.file.error(
                selection.span.clone(),
                format!("the baseline `{}` is {count} contenders", selection.variant),
                format!("fix its parameters: `{example}`"),
            ))
        }
    }
}

/// All contenders that a selection means, at least one.
fn select(
    round: &Round,
    catalog: &Catalog,
    chip: Chip,
    selection: &Selection,
) -> Result<Vec<Contender>, InputError> {
    let error = |message: String, remedy: String| {
        Err(match selection.span.is_empty() {
            // It is on the command line, not in the file.
            true => InputError::new(message, remedy),
            false => round.file.error(selection.span.clone(), message, remedy),
        })
    };
    if let Err(missing) = catalog.knows(&selection.variant) {
        let (message, remedy) = missing.explain();
        return error(message, remedy);
    }
    let variant = catalog.entrant(&selection.variant, chip)?;
    if variant.broken.is_none() && variant.operator != round.operator {
        let (own, wanted) = (&variant.operator.name, &round.operator.name);
        return error(
            format!(
                "`{}` computes {own}, and the round is of {wanted}",
                selection.variant
            ),
            format!("name a design of {wanted}, or say operator = \"{own}\""),
        );
    }
    if variant.broken.is_some() {
        return match plain(selection) {
            Ok(()) => Ok(variant.contenders(&selection.params)),
            Err(why) => error(why, "write NAME or NAME:PARAM=1".to_owned()),
        };
    }
    if let Some((message, remedy)) = variant.refused(&selection.params) {
        return error(message, remedy);
    }
    Ok(variant.contenders(&selection.params))
}

/// Whether a selection could be a contender's name, whatever its variant contains.
fn plain(selection: &Selection) -> Result<(), String> {
    if let Some(key) = selection.params.keys().find(|key| !is_identifier(key)) {
        return Err(format!("`{key}` cannot be a parameter"));
    }
    let id = ContenderId::new(&selection.variant, &selection.params);
    bounds::name("contender", id.as_str())
}

/// Refuses shapes whose operands alone do not fit.
pub(super) fn check_memory(round: &Round, target: &PlanTarget) -> Result<(), InputError> {
    for (shape, span) in round.shapes.iter().zip(&round.shape_spans) {
        let needed = operand_bytes(&round.operator, shape);
        if needed > u128::from(target.device.limits.memory.0) {
            let needed = Bytes(u64::try_from(needed).unwrap_or(u64::MAX));
            return Err(round.file.error(
                span.clone(),
                format!(
                    "shape {} does not fit: its operands take {needed}, the device has {}",
                    shape.name, target.device.limits.memory
                ),
                "make it smaller, or split its groups over several shapes",
            ));
        }
    }
    Ok(())
}

/// Refuses a round whose size cannot be intended.
pub(super) fn check_size(round: &Round, contenders: usize) -> Result<(), InputError> {
    let groups: usize = round.shapes.iter().map(|shape| shape.groups.len()).sum();
    let calls = contenders.saturating_mul(groups);
    let shapes = round.shapes.len();
    let recordable = contenders <= CONTENDERS && contenders.saturating_mul(shapes) <= CELLS;
    if recordable && calls <= MAX_CALLS {
        return Ok(());
    }
    let span = round.contenders.first().map_or(0..0, |c| c.span.clone());
    let message = match recordable {
        true => format!(
            "{contenders} contenders on {shapes} shapes of {groups} groups are {calls} calls, \
             {MAX_CALLS} at most"
        ),
        false => format!(
            "{contenders} contenders on {shapes} shapes are more than a table can hold: \
             at most {CONTENDERS} contenders and {CELLS} cells"
        ),
    };
    let remedy = "fix parameters, as in NAME:PARAM=1, or give fewer shapes";
    Err(round.file.error(span, message, remedy))
}

/// Host memory for judging one call of `shape`: three sets of operands and expected results in the
/// worker, the current one, one being made, and the worker's outputs, which the emulator keeps in
/// host memory together with the operands again.
pub(super) fn host_bytes(operator: &Operator, shape: &Shape) -> u128 {
    let output = |group: &Group| -> u128 {
        let extents =
            (0..operator.outputs.len()).filter_map(|output| operator.output_extents(output, group));
        extents
            .map(|(rows, columns)| rows as u128 * columns as u128)
            .sum()
    };
    let outputs: u128 = shape.groups.iter().map(output).sum();
    6 * operand_bytes(operator, shape) + 40 * outputs
}

/// Device memory of the operands of `shape`, including both scale layouts.
pub(super) fn operand_bytes(operator: &Operator, shape: &Shape) -> u128 {
    let fields = operator.fields();
    let group_bytes = |group: &Group| -> u128 {
        let bytes = fields
            .iter()
            .map(|field| operator.field_bytes(field, group));
        bytes
            .map(|b| b.map_or(u128::from(u64::MAX), u128::from))
            .sum()
    };
    shape.groups.iter().map(group_bytes).sum()
}

/// Adds exact data to those of a round that names none, if its operator has them on all shapes;
/// refuses a round that requests them in vain. The usual operator gets none, since recorded runs
/// have none.
pub(super) fn exact_data(round: &mut Round) -> Result<(), InputError> {
    let named = &round.validation.distributions;
    let measured = round.measurement.distribution;
    let asked = named.contains(&Distribution::Exact) || measured == Distribution::Exact;
    if !asked && (*round.operator == **default_operator() || round.names_data()) {
        return Ok(());
    }
    match (no_exact_data(round), asked) {
        (Some(why), true) => {
            let text = &round.file.text;
            let at = text.find("\"exact\"").map_or(0..0, |at| at..at + 7);
            let remedy = "leave it out; docs/internals/evaluation.md says which values have them";
            Err(round.file.error(at, why, remedy))
        }
        (None, false) => {
            // The last data are used to look for hazards.
            round
                .validation
                .distributions
                .insert(1, Distribution::Exact);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Why a round has no exact data.
fn no_exact_data(round: &Round) -> Option<String> {
    let operator = &round.operator;
    let Some(recipe) = Recipe::of(operator) else {
        return Some(format!("{} has no exact data", operator.name));
    };
    let fits = |group: &Group| {
        let sizes = operator.sizes_in(group);
        sizes.is_some_and(|sizes| recipe.fits(operator, &sizes))
    };
    let layout_error = round
        .shapes
        .iter()
        .find(|shape| !shape.groups.iter().all(fits));
    layout_error.map(|shape| format!("there are no exact data of shape {}", shape.name))
}
