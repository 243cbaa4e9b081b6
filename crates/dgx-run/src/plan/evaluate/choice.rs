//! What a choice of tuned constants costs.

use std::collections::BTreeMap;

use super::{Evaluator, PlanTarget, Values};
use crate::catalog::{Definition, MAKESPAN, Variant};
use dgx_core::diagnostic::InputError;
use dgx_core::document::Formula;
use dgx_core::domain::Shape;
use dgx_core::expr::{Binary, ExprKind, Node, Steps};

/// The cost of a choice. Names are evaluated where they are first needed: most choices are ruled
/// out by a few of them.
pub(super) struct ChoiceCost<'a> {
    pub(super) variant: &'a Variant,
    pub(super) definitions: &'a BTreeMap<&'a str, &'a Definition>,
    pub(super) shape: &'a Shape,
    pub(super) target: &'a PlanTarget<'a>,
    pub(super) steps: &'a Steps,
    pub(super) known: Values,
    pub(super) tiles: Option<Vec<i64>>,
}

impl<'a> ChoiceCost<'a> {
    /// The value of a part of `formula`.
    pub(super) fn value(&mut self, formula: &Formula, node: &Node) -> Result<i64, InputError> {
        let mut holds = |node| Ok(self.value(formula, node)? != 0);
        match &node.kind {
            ExprKind::Choice(condition, yes, no) => {
                let taken = if holds(condition)? { yes } else { no };
                self.value(formula, taken)
            }
            ExprKind::Binary(Binary::And, a, b) => Ok(i64::from(holds(a)? && holds(b)?)),
            ExprKind::Binary(Binary::Or, a, b) => Ok(i64::from(holds(a)? || holds(b)?)),
            _ => {
                for (name, _) in node.names() {
                    self.learn(name)?;
                }
                self.evaluator().part(formula, node, None)
            }
        }
    }

    fn evaluator(&self) -> Evaluator<'_> {
        let names = &self.known;
        Evaluator {
            tiles: self.tiles.clone(),
            ..Evaluator::new(self.variant, self.shape, self.target, names, self.steps)
        }
    }

    fn learn(&mut self, name: &str) -> Result<(), InputError> {
        if self.known.constants.contains_key(name) || self.known.lets.contains_key(name) {
            return Ok(());
        }
        match (name, self.definitions.get(name)) {
            (_, Some(definition)) => self.define(definition),
            ("tiles", _) => self.count_tiles(),
            (MAKESPAN, _) => self.deal(),
            // A size, or an unknown name, which its expression reports.
            _ => Ok(()),
        }
    }

    fn learn_names(
        &mut self,
        formulas: impl IntoIterator<Item = &'a Formula>,
    ) -> Result<(), InputError> {
        let mut names = formulas.into_iter().flat_map(|f| f.expr.names());
        names.try_for_each(|(name, _)| self.learn(name))
    }

    fn define(&mut self, definition: &'a Definition) -> Result<(), InputError> {
        let (name, formula) = (definition.name.clone(), &definition.formula);
        if definition.per_group {
            self.learn_names([formula])?;
            let values = self.evaluator().of_groups(formula)?;
            self.known.lets.insert(name, values);
        } else {
            let value = self.value(formula, formula.expr.root())?;
            self.known.constants.insert(name, value);
        }
        Ok(())
    }

    fn count_tiles(&mut self) -> Result<(), InputError> {
        if self.tiles.is_none() {
            self.learn_names(&self.variant.tiles)?;
            let mut evaluator = self.evaluator();
            evaluator.count_tiles()?;
            self.tiles = evaluator.tiles;
        }
        Ok(())
    }

    fn deal(&mut self) -> Result<(), InputError> {
        self.count_tiles()?;
        self.learn_names(&self.variant.order)?;
        let deal = self.variant.deal.iter();
        self.learn_names(deal.flat_map(|deal| [&deal.workers, &deal.cost]))?;
        let evaluator = self.evaluator();
        if let Some(assignment) = evaluator.assigned_tiles(&evaluator.group_order()?)? {
            let makespan = i64::try_from(assignment.makespan).unwrap_or(i64::MAX);
            self.known.constants.insert(MAKESPAN.to_owned(), makespan);
        }
        Ok(())
    }
}
