//! One contender on one shape: chooses constants, checks requirements, and evaluates every
//! expression of the front matter.

mod choice;

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::PlanTarget;
use super::call::{
    LaunchGeometry, MapGeometry, MapLayout, OperatorCall, ScratchLayout, ScratchSize, TileLists,
};
use super::deal::{TileAssignment, deal};
use crate::catalog::{
    Arguments, Contender, Definition, Language, Launch, MINIMUM, Pick, Scratch, TensorMap, Variant,
    combinations,
};
use dgx_core::diagnostic::InputError;
use dgx_core::document::Formula;
use dgx_core::domain::{ContenderId, Shape};
use dgx_core::expr::{ExprError, Node, Scope, Steps};

use choice::ChoiceCost;

/// Maximum tiles that are dealt one by one, and entries of their table.
const MAX_DEALT: usize = 1 << 20;
const MAX_TABLE: usize = 1 << 24;
/// Examining this many exchanges takes about as long as one evaluation step.
const EXCHANGES_A_STEP: usize = 32;

type Constants = BTreeMap<String, i64>;

/// The values of a variant's names on one shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    /// Parameters, tuned choices and constants.
    pub(super) constants: Constants,
    /// Of each group, in the shape's order.
    lets: BTreeMap<String, Vec<i64>>,
    /// The value of `minimise` for the choice, if something is tuned.
    minimum: Option<i64>,
}

/// Values by contender and shape, each computed once: a variant of picks asks again for those of
/// contenders that the round also names.
#[derive(Debug, Default)]
pub struct Known(RefCell<BTreeMap<(ContenderId, String), Values>>);

impl Known {
    /// The values of `contender`'s names on `shape`.
    pub(super) fn values(
        &self,
        contender: &Contender,
        shape: &Shape,
        target: &PlanTarget,
        steps: &Steps,
    ) -> Result<Values, InputError> {
        let key = (contender.id.clone(), shape.name.clone());
        if let Some(values) = self.0.borrow().get(&key) {
            return Ok(values.clone());
        }
        let values = values(contender, shape, target, steps)?;
        self.0.borrow_mut().insert(key, values.clone());
        Ok(values)
    }
}

/// Whether `pick`, of `variant`, applies to `shape`.
pub(super) fn applies(
    pick: &Pick,
    variant: &Variant,
    shape: &Shape,
    target: &PlanTarget,
    steps: &Steps,
) -> Result<bool, InputError> {
    let none = Values::default();
    match &pick.when {
        Some(when) => {
            Ok(Evaluator::new(variant, shape, target, &none, steps).call_value(when)? != 0)
        }
        None => Ok(true),
    }
}

/// The values of the terms of a pick's cost and of its contender's names, or why it rules the shape
/// out.
pub(super) fn terms(
    pick: &Pick,
    shape: &Shape,
    target: &PlanTarget,
    known: &Known,
    steps: &Steps,
) -> Result<Result<(Vec<i64>, Values), String>, InputError> {
    let values = known.values(&pick.contender, shape, target, steps)?;
    let mut names = values.clone();
    if let Some(minimum) = values.minimum {
        names.constants.insert(MINIMUM.to_owned(), minimum);
    }
    let variant = &pick.contender.variant;
    let mut evaluator = Evaluator::new(variant, shape, target, &names, steps);
    if let Some(reason) = evaluator.unmet_requirement()? {
        return Ok(Err(reason));
    }
    evaluator.count_tiles()?;
    let terms = pick.cost.iter().map(|term| evaluator.call_value(&term.of));
    let terms = terms.collect::<Result<_, _>>()?;
    Ok(Ok((terms, values)))
}

fn values(
    contender: &Contender,
    shape: &Shape,
    target: &PlanTarget,
    steps: &Steps,
) -> Result<Values, InputError> {
    let variant = &contender.variant;
    let with_choice = |choice: Constants| -> Result<Values, InputError> {
        let mut known = Values {
            constants: contender.params.clone(),
            ..Values::default()
        };
        known.constants.extend(choice);
        for Definition {
            name,
            formula,
            per_group,
        } in &variant.definitions
        {
            let evaluator = Evaluator::new(variant, shape, target, &known, steps);
            if *per_group {
                let values = evaluator.of_groups(formula)?;
                known.lets.insert(name.clone(), values);
            } else {
                let value = evaluator.call_value(formula)?;
                known.constants.insert(name.clone(), value);
            }
        }
        Ok(known)
    };
    let Some(tune) = &variant.tune else {
        return with_choice(Constants::new());
    };
    let definitions = variant.definitions.iter();
    let definitions = definitions.map(|d| (d.name.as_str(), d)).collect();
    let mut best: Option<(i64, Constants)> = None;
    for choice in combinations(&tune.choose) {
        let mut known = Values {
            constants: contender.params.clone(),
            ..Values::default()
        };
        known.constants.extend(choice.clone());
        let mut tuning = ChoiceCost {
            variant,
            definitions: &definitions,
            shape,
            target,
            steps,
            known,
            tiles: None,
        };
        let cost = tuning.value(&tune.minimise, tune.minimise.expr.root())?;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, choice));
        }
    }
    // `choose` always has values, so there is always a best.
    let (least, choice) = best.unwrap_or_default();
    Ok(Values {
        minimum: Some(least),
        ..with_choice(choice)?
    })
}

/// The call, or why the variant rules this shape out.
pub(super) fn call(
    variant: &Variant,
    shape: &Shape,
    target: &PlanTarget,
    values: &Values,
    steps: &Steps,
) -> Result<Result<OperatorCall, String>, InputError> {
    let mut evaluator = Evaluator::new(variant, shape, target, values, steps);
    let unmet = evaluator.unmet_requirement()?;
    if let Some(reason) = unmet.or_else(|| evaluator.single_problem()) {
        return Ok(Err(reason));
    }
    evaluator.count_tiles()?;
    Ok(Ok(evaluator.call()?))
}

struct Evaluator<'a> {
    variant: &'a Variant,
    shape: &'a Shape,
    sms: u32,
    values: &'a Values,
    steps: &'a Steps,
    /// Of each group in the shape's order, once counted.
    tiles: Option<Vec<i64>>,
}

impl<'a> Evaluator<'a> {
    fn new(
        variant: &'a Variant,
        shape: &'a Shape,
        target: &PlanTarget,
        values: &'a Values,
        steps: &'a Steps,
    ) -> Self {
        Self {
            variant,
            shape,
            sms: target.device.limits.sms,
            values,
            steps,
            tiles: None,
        }
    }

    fn value(&self, formula: &Formula, group: Option<usize>) -> Result<i64, InputError> {
        self.part(formula, formula.expr.root(), group)
    }

    /// The value for each group, in the shape's order.
    fn of_groups(&self, formula: &Formula) -> Result<Vec<i64>, InputError> {
        let groups = 0..self.shape.groups.len();
        groups
            .map(|group| self.value(formula, Some(group)))
            .collect()
    }

    /// The value of a part of `formula`.
    fn part(
        &self,
        formula: &Formula,
        node: &Node,
        group: Option<usize>,
    ) -> Result<i64, InputError> {
        let scope = Scope {
            constants: &self.values.constants,
            lets: &self.values.lets,
            groups: &self.shape.groups,
            tiles: self.tiles.as_deref(),
            group,
            sms: self.sms,
            steps: self.steps,
        };
        scope.eval(node).map_err(|error| self.at(formula, error))
    }

    /// For an expression without a group.
    fn call_value(&self, formula: &Formula) -> Result<i64, InputError> {
        self.value(formula, None)
    }

    fn at(&self, formula: &Formula, mut error: ExprError) -> InputError {
        error.message = format!("{} (on shape {})", error.message, self.shape.name);
        formula.error(&error)
    }

    /// The value as an unsigned number of the required width.
    fn fit<T: TryFrom<i64>>(
        &self,
        formula: &Formula,
        group: Option<usize>,
        what: &str,
    ) -> Result<T, InputError> {
        let value = self.value(formula, group)?;
        T::try_from(value).map_err(|_| {
            let span = 0..formula.text.len();
            let message = format!("{what} of {value} is out of range");
            let remedy = "see that it is neither negative nor huge for every shape of the round";
            self.at(formula, ExprError::new(span, message, remedy))
        })
    }

    fn unmet_requirement(&self) -> Result<Option<String>, InputError> {
        for formula in &self.variant.requires {
            for group in 0..self.shape.groups.len() {
                if self.value(formula, Some(group))? == 0 {
                    return Ok(Some(self.explain_unmet(formula, group)));
                }
            }
        }
        Ok(None)
    }

    /// Why it does not support shapes of several groups.
    fn single_problem(&self) -> Option<String> {
        let of_one = |launch: &&Launch| launch.args.as_ref().is_some_and(|args| !args.arrays);
        let launch = self.variant.launches.iter().find(of_one)?;
        let groups = self.shape.groups.len();
        (groups > 1).then(|| {
            let kernel = &launch.kernel;
            format!("{kernel} takes one problem, and the shape has {groups}: with `groups` in its args it takes arrays")
        })
    }

    fn explain_unmet(&self, formula: &Formula, group: usize) -> String {
        let mut used: Vec<String> = Vec::new();
        for (name, _) in formula.expr.names() {
            let value = match name {
                "groups" => Some(self.shape.groups.len() as i64),
                "sms" => Some(i64::from(self.sms)),
                _ => match self.values.lets.get(name) {
                    Some(values) => values.get(group).copied(),
                    None => {
                        let size = self.shape.groups[group].get(name).map(i64::from);
                        size.or_else(|| self.values.constants.get(name).copied())
                    }
                },
            };
            let entry = value.map(|value| format!("{name} = {value}"));
            used.extend(entry.filter(|entry| !used.contains(entry)));
        }
        let place = match self.shape.groups.len() {
            1 => String::new(),
            _ => format!(" in group {group}"),
        };
        format!("requires {}, but {}{place}", formula.text, used.join(", "))
    }

    fn count_tiles(&mut self) -> Result<(), InputError> {
        if let Some(formula) = &self.variant.tiles {
            let count = |group| self.fit::<u32>(formula, Some(group), "a tile count");
            let tiles: Result<Vec<i64>, InputError> = (0..self.shape.groups.len())
                .map(|group| count(group).map(i64::from))
                .collect();
            self.tiles = Some(tiles?);
        }
        Ok(())
    }

    fn call(&self) -> Result<OperatorCall, InputError> {
        let order = self.group_order()?;
        let (tile_begin, tile_count) = self.tile_ranges(&order)?;
        let scratch = self.variant.scratch.iter();
        let maps = self.variant.maps.iter();
        let launches = self.variant.launches.iter();
        Ok(OperatorCall {
            tile_begin,
            tile_count,
            deal: self
                .assigned_tiles(&order)?
                .map(|assignment| TileLists::new(&assignment, tile_count)),
            scratch: scratch
                .map(|s| self.scratch(s, &order))
                .collect::<Result<_, _>>()?,
            maps: maps
                .map(|m| self.map(m, &order))
                .collect::<Result<_, _>>()?,
            launches: launches
                .map(|l| self.launch(l, &order))
                .collect::<Result<_, _>>()?,
            group_order: order,
        })
    }

    fn group_order(&self) -> Result<Vec<usize>, InputError> {
        let mut order: Vec<usize> = (0..self.shape.groups.len()).collect();
        if let Some(formula) = &self.variant.order {
            let keys: Result<Vec<i64>, InputError> = order
                .iter()
                .map(|group| self.value(formula, Some(*group)))
                .collect();
            let keys = keys?;
            order.sort_by_key(|group| keys[*group]);
        }
        Ok(order)
    }

    fn tile_ranges(&self, order: &[usize]) -> Result<(Vec<u32>, u32), InputError> {
        let mut begin = Vec::with_capacity(order.len());
        let mut total = 0_u32;
        for group in order {
            begin.push(total);
            let tiles = self.tiles.as_ref().map_or(0, |tiles| tiles[*group]);
            total = match u32::try_from(i64::from(total) + tiles) {
                Ok(total) => total,
                Err(_) => {
                    let formula = self.variant.tiles.as_ref();
                    let (file, place) =
                        formula.map_or((&self.variant.file, 0..0), |f| (&f.file, f.place.clone()));
                    return Err(file.error(
                        place,
                        format!("more than 2^32 tiles on shape {}", self.shape.name),
                        "use larger tiles",
                    ));
                }
            };
        }
        Ok((begin, total))
    }

    fn assigned_tiles(&self, order: &[usize]) -> Result<Option<TileAssignment>, InputError> {
        let (Some(formulas), Some(tiles)) = (&self.variant.deal, &self.tiles) else {
            return Ok(None);
        };
        let workers: u32 = self.fit(&formulas.workers, None, "a number of workers")?;
        let refuse = |formula: &Formula, message: String, remedy: &str| {
            let span = 0..formula.text.len();
            Err(self.at(formula, ExprError::new(span, message, remedy)))
        };
        if workers == 0 {
            let message = "`deal.workers` is 0".to_owned();
            let remedy = "give the number of CTAs that take tiles";
            return refuse(&formulas.workers, message, remedy);
        }
        let count = tiles.iter().fold(0, |sum: i64, t| sum.saturating_add(*t));
        if count > MAX_DEALT as i64 {
            let message = format!("{count} tiles are assigned, {MAX_DEALT} at most");
            return refuse(&formulas.workers, message, "use larger tiles, or no deal");
        }
        let mut costs: Vec<u64> = Vec::new();
        for group in order {
            let cost: u64 = self.fit(&formulas.cost, Some(*group), "a tile's cost")?;
            costs.extend(std::iter::repeat_n(cost, tiles[*group] as usize));
        }
        let assignment = deal(&costs, workers as usize);
        let work = costs.len() + assignment.looked_at / EXCHANGES_A_STEP;
        let span = 0..formulas.workers.text.len();
        let taken = self.steps.take_many(work as u64, span);
        taken.map_err(|error| self.at(&formulas.workers, error))?;
        let most = assignment.tiles.iter().map(Vec::len).max().unwrap_or(0);
        if most.saturating_mul(assignment.tiles.len()) > MAX_TABLE {
            let message = format!("one of {workers} workers gets {most} tiles");
            return refuse(&formulas.cost, message, "give tiles a cost above 0");
        }
        Ok(Some(assignment))
    }

    fn scratch(&self, scratch: &Scratch, order: &[usize]) -> Result<ScratchLayout, InputError> {
        let bytes = |group| self.fit::<u64>(&scratch.bytes, group, "a scratch size");
        let size = match scratch.per_group {
            true => ScratchSize::PerGroup(
                order
                    .iter()
                    .map(|group| bytes(Some(*group)))
                    .collect::<Result<_, _>>()?,
            ),
            false => ScratchSize::PerCall(bytes(None)?),
        };
        Ok(ScratchLayout {
            name: scratch.name.clone(),
            slot: scratch.slot,
            size,
            zero: scratch.zero,
        })
    }

    fn map(&self, map: &TensorMap, order: &[usize]) -> Result<MapLayout, InputError> {
        let groups = order
            .iter()
            .map(|group| self.map_geometry(map, *group))
            .collect::<Result<_, _>>()?;
        Ok(MapLayout {
            name: map.name.clone(),
            groups,
        })
    }

    fn map_geometry(&self, map: &TensorMap, group: usize) -> Result<MapGeometry, InputError> {
        let all = |formulas: &[Formula], what| -> Result<Vec<u64>, InputError> {
            formulas
                .iter()
                .map(|formula| self.fit(formula, Some(group), what))
                .collect()
        };
        let dims = all(&map.dims, "a tensor's extent")?;
        let strides = match map.strides.is_empty() {
            false => all(&map.strides, "a stride")?,
            true => dense_strides(&dims, map.dtype.bits()),
        };
        let box_dims = map
            .box_dims
            .iter()
            .map(|formula| self.fit(formula, Some(group), "a box extent"))
            .collect::<Result<_, _>>()?;
        Ok(MapGeometry {
            operand: map.operand,
            dtype: map.dtype,
            dims,
            strides,
            box_dims,
            swizzle: map.swizzle,
            fill: map.fill,
        })
    }

    fn launch(&self, launch: &Launch, order: &[usize]) -> Result<LaunchGeometry, InputError> {
        let extent = |formulas: &[Formula], what| -> Result<[u32; 3], InputError> {
            let mut extent = [1; 3];
            for (slot, formula) in extent.iter_mut().zip(formulas) {
                *slot = self.fit(formula, None, what)?;
            }
            Ok(extent)
        };
        let smem = launch.smem.as_ref();
        Ok(LaunchGeometry {
            kernel: launch.kernel.clone(),
            grid: extent(&launch.grid, "a grid extent")?,
            block: extent(&launch.block, "a block extent")?,
            cluster: extent(&launch.cluster, "a cluster extent")?,
            smem: smem.map_or(Ok(0), |smem| self.fit(smem, None, "shared memory"))?,
            pdl: launch.pdl,
            args: self.arguments(launch, order)?,
            options: self.options(launch)?,
        })
    }

    fn arguments(&self, launch: &Launch, order: &[usize]) -> Result<Option<Arguments>, InputError> {
        let Some(args) = &launch.args else {
            return Ok(None);
        };
        let integer = |formula: &Formula| self.call_value(formula);
        let per_group = |formula: &Formula| {
            let values = order.iter();
            let values = values.map(|group| self.fit(formula, Some(*group), "an argument"));
            values.collect::<Result<_, _>>()
        };
        let list = args.list.iter();
        let list = list.map(|arg| arg.evaluated(&integer, &per_group));
        Ok(Some(Arguments {
            arrays: args.arrays,
            texts: args.texts.clone(),
            list: list.collect::<Result<_, _>>()?,
        }))
    }

    fn options(&self, launch: &Launch) -> Result<Option<BTreeMap<String, i64>>, InputError> {
        if self.variant.language != Language::Triton {
            return Ok(None);
        }
        let options = launch.options.iter();
        let options = options.map(|(name, value)| Ok((name.clone(), self.call_value(value)?)));
        options.collect::<Result<_, _>>().map(Some)
    }
}

fn dense_strides(dims: &[u64], bits: u64) -> Vec<u64> {
    let outer = dims.len().saturating_sub(1);
    dims[..outer]
        .iter()
        .scan(bits, |stride, extent| {
            *stride = stride.saturating_mul(*extent);
            Some(*stride / 8)
        })
        .collect()
}
