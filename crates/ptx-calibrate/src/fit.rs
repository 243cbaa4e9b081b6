//! Finds the numbers with which the model answers as a card did: one number at
//! a time, each on the cases that ask for it, and all of them again until
//! little changes.

use ptx_time::Machine;
use rayon::prelude::*;

use super::parameters::{Parameter, parameters, unasked};
use super::traced::{ModelAnswer, Traced};
use dgx_core::domain::Peaks;
use dgx_run::sweep::{Bar, Progress};

/// How often it is begun again without those that the answers do not tell.
const ATTEMPTS: usize = 3;
/// With more than this typical error on its cases, the model does not explain
/// them, and a number that makes the best of it is no measurement.
const UNEXPLAINED: f64 = 0.15;
/// With no more than this, a number may well be as low or high as it can be.
const EXPLAINED: f64 = 0.02;
/// So near to a bound is at it.
const EDGE: f64 = 0.01;
/// How often all numbers are gone through: at first everywhere within their
/// bounds, because those that come later in the order still move much, and then
/// near what was found.
const PASSES: usize = 3;
const WIDE_PASSES: usize = 2;
/// A pass that moves none by more than this share is the last.
const STILL: f64 = 0.002;
/// Values tried across the bounds at first, and closer by afterwards.
const FIRST_LOOK: usize = 9;
const NEXT_LOOK: usize = 2;
/// How far a later pass looks, either way.
const REACH: f64 = 1.3;
/// Steps of the search between two of those.
const STEPS: usize = 8;
/// Less than this is no better: the number stays what it was.
const GAIN: f64 = 1e-7;

/// A case with what a card answered to it.
pub(super) struct Question {
    pub(super) traced: Traced,
    /// The middle one of its answers.
    pub(super) time: f64,
    pub(super) mhz: Option<f64>,
}

/// What came of it.
#[derive(Debug)]
pub struct Fit {
    /// Every number of the machine.
    pub fitted: Vec<Fitted>,
    /// All but those that are asked for their clock alone, in the order of the
    /// cases.
    pub cases: Vec<CaseFit>,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub name: &'static str,
    pub before: f64,
    pub after: f64,
    /// Cases it was fitted on.
    pub cases: usize,
    pub standing: Standing,
    /// Typical error on them before and after, as a share.
    pub errors: Option<(f64, f64)>,
}

/// What the answers say of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Fitted,
    /// No case asks for it.
    Unasked,
    /// Cases ask for it, and whatever it is, they are answered alike.
    Unmoved,
    /// Whatever it is, the model is far from the answers.
    Unexplained,
    /// The answers ask for more or less than it can be.
    Unbounded,
}

/// One case before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseFit {
    pub name: &'static str,
    pub answer: f64,
    /// None where the replay did not end.
    pub before: Option<f64>,
    pub after: Option<f64>,
}

impl CaseFit {
    /// The model's answer over the card's, less one.
    pub fn error(&self) -> Option<f64> {
        Some(self.after? / self.answer - 1.0)
    }
}

/// Fits `machine` to what was answered. A number that the answers do not tell
/// keeps its value, and all others are fitted again beside it.
pub(super) fn fit(
    machine: &Machine,
    peaks: &Peaks,
    questions: &[Question],
    progress: &Progress,
) -> Fit {
    let mut tries: Vec<Try<'_>> = parameters()
        .iter()
        .map(|parameter| Try::new(parameter, questions, parameter.bounds(machine, peaks)))
        .collect();
    let bar = progress.stage("fit", ATTEMPTS * PASSES * tries.len());
    let mut fitted = machine.clone();
    let mut known = tries
        .iter()
        .filter(|t| t.standing != Standing::Fitted)
        .count();
    for _ in 0..ATTEMPTS {
        go_through(&mut tries, &mut fitted, &bar);
        for tried in &mut tries {
            tried.check_fit(&fitted);
        }
        let kept = tries
            .iter()
            .filter(|tried| tried.standing != Standing::Fitted);
        let kept: Vec<&str> = kept.map(|tried| &*tried.parameter.name).collect();
        for name in &kept {
            set(&mut fitted, name, machine.number(name).unwrap_or_default());
        }
        if kept.len() == known {
            break;
        }
        known = kept.len();
    }
    bar.done("");
    for tried in tries.iter().filter(|t| t.standing == Standing::Fitted) {
        let value = fitted.number(&tried.parameter.name).unwrap_or_default();
        set(&mut fitted, &tried.parameter.name, written(value));
    }
    told(machine, &fitted, &tries, questions)
}

/// One number while it is looked for.
struct Try<'q> {
    parameter: &'static Parameter,
    group: Vec<&'q Question>,
    bounds: (f64, f64),
    standing: Standing,
}

impl<'q> Try<'q> {
    fn new(parameter: &'static Parameter, questions: &'q [Question], bounds: (f64, f64)) -> Self {
        let group = group(parameter, questions);
        Self {
            standing: match group.is_empty() {
                true => Standing::Unasked,
                false => Standing::Fitted,
            },
            parameter,
            group,
            bounds,
        }
    }

    fn error(&self, machine: &Machine) -> f64 {
        error(mean_loss(machine, self.parameter, &self.group))
    }

    /// Notes where what was found is no answer after all.
    fn check_fit(&mut self, fitted: &Machine) {
        if self.standing != Standing::Fitted {
            return;
        }
        let error = self.error(fitted);
        let value = fitted.number(&self.parameter.name).unwrap_or_default();
        let at = |bound: f64| (value - bound).abs() <= EDGE * bound.abs();
        if error > UNEXPLAINED {
            self.standing = Standing::Unexplained;
        } else if error > EXPLAINED && (at(self.bounds.0) || at(self.bounds.1)) {
            self.standing = Standing::Unbounded;
        }
    }
}

/// Fits those numbers that stand, until little changes.
fn go_through(tries: &mut [Try<'_>], fitted: &mut Machine, bar: &Bar<'_>) {
    for pass in 0..PASSES {
        let mut most: f64 = 0.0;
        for tried in tries.iter_mut() {
            let name = tried.parameter.name.as_str();
            bar.at(name);
            bar.step(1.0);
            if tried.standing != Standing::Fitted {
                continue;
            }
            let before = fitted.number(name).unwrap_or_default();
            let loss = |value: f64| loss(fitted, tried.parameter, value, &tried.group);
            match search(before, tried.bounds, pass < WIDE_PASSES, loss) {
                Some(value) => {
                    most = most.max((value / before - 1.0).abs());
                    set(fitted, name, value);
                }
                None if pass == 0 => tried.standing = Standing::Unmoved,
                None => {}
            }
        }
        if most < STILL {
            return;
        }
    }
}

fn told(machine: &Machine, fitted: &Machine, tries: &[Try<'_>], questions: &[Question]) -> Fit {
    let numbers = |name: &str| [machine, fitted].map(|m| m.number(name).unwrap_or_default());
    let asked = tries.iter().map(|tried| {
        let name = tried.parameter.name.as_str();
        let [before, after] = numbers(name);
        let errors = || (tried.error(machine), tried.error(fitted));
        Fitted {
            name,
            before,
            after,
            cases: tried.group.len(),
            standing: tried.standing,
            errors: (!tried.group.is_empty()).then(errors),
        }
    });
    let given = |name: &&str| machine.number(name).is_some();
    let rest = unasked().filter(given).map(|name| {
        let [before, after] = numbers(name);
        Fitted {
            name,
            before,
            after,
            cases: 0,
            standing: Standing::Unasked,
            errors: None,
        }
    });
    let timed: Vec<&Question> = questions.iter().filter(|q| !q.traced.case.long).collect();
    let cases = timed.par_iter().map(|question| {
        let put_to = |machine| {
            question
                .traced
                .put_to(machine)
                .ok()
                .map(|answer| answer.time)
        };
        CaseFit {
            name: &question.traced.case.name,
            answer: question.time,
            before: put_to(machine),
            after: put_to(fitted),
        }
    });
    Fit {
        fitted: asked.chain(rest).collect(),
        cases: cases.collect(),
    }
}

/// The cases a number is fitted on.
fn group<'q>(parameter: &Parameter, questions: &'q [Question]) -> Vec<&'q Question> {
    let about = |question: &&Question| {
        let read = match parameter.by_clock {
            true => question.mhz.is_some(),
            false => !question.traced.case.long,
        };
        read && parameter.is_about(&question.traced.case.name)
    };
    questions.iter().filter(about).collect()
}

fn set(machine: &mut Machine, name: &str, value: f64) {
    if let Some(number) = machine.number_mut(name) {
        *number = value;
    }
}

/// To so many digits numbers are written down.
fn written(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Mean squared logarithm of the model's answer over the card's, with one
/// number changed.
fn loss(machine: &Machine, parameter: &Parameter, value: f64, group: &[&Question]) -> f64 {
    let mut changed = machine.clone();
    set(&mut changed, &parameter.name, value);
    mean_loss(&changed, parameter, group)
}

fn mean_loss(machine: &Machine, parameter: &Parameter, group: &[&Question]) -> f64 {
    let squares: Vec<f64> = group
        .par_iter()
        .map(|question| match question.traced.put_to(machine) {
            Ok(answer) => square(parameter, question, answer),
            Err(_) => f64::INFINITY,
        })
        .collect();
    // One after the other: sums of floats depend on their order.
    squares.iter().sum::<f64>() / group.len() as f64
}

fn square(parameter: &Parameter, question: &Question, answer: ModelAnswer) -> f64 {
    let ratio = match parameter.by_clock {
        true => answer.mhz / question.mhz.unwrap_or(f64::NAN),
        false => answer.time / question.time,
    };
    match ratio > 0.0 {
        true => ratio.ln().powi(2),
        false => f64::INFINITY,
    }
}

/// The typical error that a loss stands for, as a share.
fn error(loss: f64) -> f64 {
    loss.sqrt().exp_m1()
}

/// The value within `bounds` that loses least; none where no value changes
/// anything. What is no better than `current` leaves it.
fn search(
    current: f64,
    bounds: (f64, f64),
    everywhere: bool,
    loss: impl Fn(f64) -> f64,
) -> Option<f64> {
    let tried = candidates(current, bounds, everywhere);
    let losses: Vec<f64> = tried.iter().map(|value| loss(*value)).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let most = losses.iter().copied().fold(0.0, f64::max);
    if !least.is_finite() || most - least < GAIN {
        return None;
    }
    let best = losses.iter().position(|loss| *loss == least)?;
    let low = tried[best.saturating_sub(1)];
    let high = tried[(best + 1).min(tried.len() - 1)];
    let (value, found) = between(low, high, (tried[best], least), &loss);
    let stays = tried.iter().position(|value| *value == current);
    let stays = stays.map_or(f64::INFINITY, |place| losses[place]);
    Some(match stays - found < GAIN {
        true => current,
        false => value,
    })
}

/// Values to try, ascending, the current one among them.
fn candidates(current: f64, (low, high): (f64, f64), everywhere: bool) -> Vec<f64> {
    let (low, high, count) = match everywhere {
        true => (low, high, FIRST_LOOK),
        false => (
            low.max(current / REACH),
            high.min(current * REACH),
            NEXT_LOOK,
        ),
    };
    let share = |i: usize| i as f64 / (count - 1) as f64;
    let value = |i: usize| match low > 0.0 {
        true => low * (high / low).powf(share(i)),
        false => low + (high - low) * share(i),
    };
    let mut tried: Vec<f64> = (0..count).map(value).chain([current]).collect();
    tried.sort_by(f64::total_cmp);
    tried.dedup();
    tried
}

/// Golden-section search around the best value so far.
fn between(
    mut low: f64,
    mut high: f64,
    mut best: (f64, f64),
    loss: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let inner = |low: f64, high: f64| (high - golden * (high - low), low + golden * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut left_loss, mut right_loss) = (loss(left), loss(right));
    for _ in 0..STEPS {
        for tried in [(left, left_loss), (right, right_loss)] {
            if tried.1 < best.1 {
                best = tried;
            }
        }
        if left_loss <= right_loss {
            high = right;
            (right, right_loss) = (left, left_loss);
            left = inner(low, high).0;
            left_loss = loss(left);
        } else {
            low = left;
            (left, left_loss) = (right, right_loss);
            right = inner(low, high).1;
            right_loss = loss(right);
        }
    }
    best
}
