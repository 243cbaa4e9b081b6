//! Refuses lines that contradict themselves or their header: no sweep writes such lines.

use toml_edit::{DocumentMut, Item};

use super::schema::{Estimate, Header, RunEnd, Settings};
use crate::domain::{Distribution, Joined, Status, Timing, Verdict};

/// A modelled time may end before its last kernel by this share, because of rounding.
const ROUNDING: f64 = 1e-6;

type Refusal = Result<(), String>;

/// Compares settings that no flag changes with the recorded round.
pub(super) fn header(header: &Header) -> Refusal {
    let settings = &header.settings;
    if header.device.timing == Timing::Recorded {
        return Ok(());
    }
    // Whether it is a valid round is checked where its rules are needed.
    let Ok(round) = header.config.text.parse::<DocumentMut>() else {
        return Ok(());
    };
    let key = |table: &str, key: &str| -> Option<&Item> { round.get(table)?.get(key) };
    let number = |item: &Item| item.as_float().or(item.as_integer().map(|n| n as f64));
    for (name, has) in [("rtol", settings.rtol), ("atol", settings.atol)] {
        if let Some(says) = key("validate", name).and_then(number) {
            agree(name, says, has)?;
        }
    }
    if let Some(says) = key("measure", "cold_l2").and_then(Item::as_bool) {
        agree("cold_l2", says, settings.cold_l2)?;
    }
    if let Some(says) = key("validate", "distributions").and_then(Item::as_array) {
        let says: Vec<&str> = says.iter().filter_map(|word| word.as_str()).collect();
        let has = settings.distributions.iter().map(|d| match d {
            Distribution::CornerUnsigned if !says.contains(&d.as_str()) => "corner",
            other => other.as_str(),
        });
        let has = has.joined(", ");
        agree("distributions", says.join(", "), has)?;
    }
    Ok(())
}

fn agree<T: PartialEq + std::fmt::Display>(key: &str, says: T, has: T) -> Refusal {
    match says == has {
        true => Ok(()),
        false => Err(format!(
            "the settings say {key} = {has}, and the round on the same line {key} = {says}"
        )),
    }
}

/// Refuses `ok` beyond the tolerance, or without a check.
pub(super) fn verdict(verdict: &Verdict, settings: &Settings) -> Refusal {
    if verdict.status != Status::Ok {
        return Ok(());
    }
    let why = match verdict {
        _ if settings.time_only => "nothing was validated (--time-only)".to_owned(),
        Verdict {
            worst: Some(worst), ..
        } if !(0.0..=1.0).contains(worst) => {
            format!("its largest error is {worst:?} times what is allowed")
        }
        Verdict {
            detail: Some(_), ..
        } => "its detail describes a failure".to_owned(),
        verdict if !verdict.hazards.is_empty() => "it has hazards".to_owned(),
        _ => return Ok(()),
    };
    let (contender, shape) = (&verdict.contender, &verdict.shape);
    Err(format!("`{contender}` is ok on `{shape}`, but {why}"))
}

/// A call lasts at least until its last kernel ends.
pub(super) fn estimate(estimate: &Estimate) -> Refusal {
    let ends = estimate.kernels.iter().map(|k| k.start.0 + k.micros.0);
    let end = ends.fold(0.0, f64::max);
    let time = estimate.micros.0;
    match time < end * (1.0 - ROUNDING) {
        false => Ok(()),
        true => Err(format!(
            "`{}` takes {time} µs on `{}`, but its kernels end after {end} µs",
            estimate.contender, estimate.shape
        )),
    }
}

pub(super) fn end(end: &RunEnd) -> Refusal {
    match &end.reason {
        Some(why) if end.complete => Err(format!("the run is complete, and stopped early: {why}")),
        _ => Ok(()),
    }
}
