//! Chooses the contender that a variant of `[[pick]]`s uses on a shape.

use std::collections::BTreeMap;

use super::PlanTarget;
use super::evaluate::{self, Known, Values};
use crate::catalog::{Contender, Pick, Variant};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::Shape;
use dgx_core::expr::Steps;

/// A pick that can run a shape, and the terms of its cost there.
pub struct Offer<'a> {
    pub pick: &'a Pick,
    /// Values of the terms, in their order.
    pub terms: Vec<i64>,
    /// The values of its contender's names, if they were needed for the terms.
    values: Option<Values>,
}

impl Offer<'_> {
    /// The cost by the coefficients of the front matter, nanoseconds.
    pub fn nanos(&self) -> f64 {
        let coefficients = self.pick.cost.iter().map(|term| term.nanos);
        coefficients
            .zip(&self.terms)
            .map(|(nanos, value)| nanos * *value as f64)
            .sum()
    }

    /// Whether it would be compiled with these constants, as far as both name them.
    pub fn agrees(&self, constants: &BTreeMap<String, i64>) -> bool {
        let own = self.values.iter().flat_map(|values| &values.constants);
        own.into_iter()
            .all(|(name, value)| constants.get(name).is_none_or(|other| other == value))
    }
}

/// The picks of `variant` that apply to `shape` and can run it on the device, or why the first that
/// applies cannot.
pub fn offers<'a>(
    variant: &'a Variant,
    shape: &Shape,
    target: &PlanTarget,
    known: &Known,
    steps: &Steps,
) -> Result<Result<Vec<Offer<'a>>, String>, InputError> {
    let mut refused = None;
    let mut offers = Vec::new();
    for pick in &variant.picks {
        if !evaluate::applies(pick, variant, shape, target, steps)? {
            continue;
        }
        let terms = match target.refusal(&pick.contender.variant.arch) {
            Some(why) => Err(why),
            // Without costs the first that applies is used, even if it fails.
            None if pick.cost.is_empty() => Ok((Vec::new(), None)),
            None => evaluate::terms(pick, shape, target, known, steps)?
                .map(|(terms, values)| (terms, Some(values))),
        };
        match terms {
            Ok((terms, values)) => offers.push(Offer {
                pick,
                terms,
                values,
            }),
            Err(why) => {
                refused.get_or_insert_with(|| format!("it picks {}: {why}", pick.contender.id));
            }
        }
    }
    Ok(match (offers.is_empty(), refused) {
        (false, _) => Ok(offers),
        (true, Some(why)) => Err(why),
        (true, None) => Err("none of its picks applies".to_owned()),
    })
}

/// The contender that runs in place of `contender`: itself, or the cheapest of its picks, or the
/// first if they have no cost; else the reason why none does. With the values of its names, if they
/// were already computed.
pub(super) fn picked<'a>(
    contender: &'a Contender,
    shape: &Shape,
    target: &PlanTarget,
    known: &Known,
    steps: &Steps,
) -> Result<Result<(&'a Contender, Option<Values>), String>, InputError> {
    if contender.variant.picks.is_empty() {
        return Ok(Ok((contender, None)));
    }
    let offers = match offers(&contender.variant, shape, target, known, steps)? {
        Ok(offers) => offers,
        Err(why) => return Ok(Err(why)),
    };
    let cheapest = offers
        .into_iter()
        .min_by(|a, b| a.nanos().total_cmp(&b.nanos()));
    Ok(cheapest
        .map(|offer| (&offer.pick.contender, offer.values))
        .ok_or_else(|| "none of its picks applies".to_owned()))
}
