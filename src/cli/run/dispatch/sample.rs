//! The times of a run, each with the values of the terms of its pick's cost.

use crate::cost_fit::{Call, Costs, Sample};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::{ContenderId, Device};
use dgx_core::expr::Steps;
use dgx_core::rank::Ranking;
use dgx_core::record::Run;
use dgx_core::record::schema::Build;
use dgx_run::catalog::{Pick, Variant};
use dgx_run::plan::{Known, Offer, PlanTarget, offers};

/// The costs in the front matter.
pub(super) fn written(variant: &Variant) -> Costs {
    let of = |pick: &Pick| pick.cost.iter().map(|term| term.nanos).collect();
    variant.picks.iter().map(of).collect()
}

/// The shapes of `run` on which some pick of `variant` has a time, with the tiling it has today.
pub(super) fn samples(
    variant: &Variant,
    run: &Run,
    device: &Device,
) -> Result<Vec<Sample>, InputError> {
    let ranking = Ranking::of(run);
    let machine = PlanTarget::of(device);
    let known = Known::default();
    let mut samples = Vec::new();
    for shape in &run.header.shapes {
        let Ok(offers) = offers(variant, shape, &machine, &known, &Steps::default())? else {
            continue;
        };
        let micros = |id: &ContenderId| {
            let time = ranking.cell(id, &shape.name)?.time.as_ref()?;
            Some(time.estimate().0)
        };
        let stale = |offer: &Offer<'_>| {
            let built = |build: &&Build| {
                build.contender == offer.pick.contender.id && build.shapes.contains(&shape.name)
            };
            let build = run.builds.iter().find(built);
            build.is_some_and(|build| !offer.agrees(&build.constants))
        };
        let call = |offer: Offer<'_>| {
            if stale(&offer) {
                return None;
            }
            Some(Call {
                pick: variant
                    .picks
                    .iter()
                    .position(|p| std::ptr::eq(p, offer.pick))?,
                micros: micros(&offer.pick.contender.id)?,
                terms: offer.terms,
            })
        };
        let calls: Vec<Call> = offers.into_iter().filter_map(call).collect();
        if !calls.is_empty() {
            samples.push(Sample {
                shape: shape.name.clone(),
                calls,
            });
        }
    }
    Ok(samples)
}
