//! A sweep on several cards. Each card has a thread, its own workers and its own shapes: the
//! contenders of a shape are compared, and cards differ. Shared state is here; the shapes of a lost
//! card go to the others.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use super::build::Images;
use super::oracles::Oracles;
use super::progress::{Bar, Progress};
use super::resume::measured;
use super::runner::Runner;
use super::{CardSession, StageClock, append, could_not_run, measure, reread, validate};
use crate::plan::{Plan, cost};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Shape, Status, Timing};
use dgx_core::interrupt;
use dgx_core::record::schema::{Line, Settings, VoidedTimes};
use dgx_core::record::{Run, Writer};

/// The state that the cards of a sweep share.
pub(super) struct Sweep<'a> {
    pub plan: &'a Plan,
    pub settings: &'a Settings,
    pub cache: &'a Path,
    pub images: &'a Images,
    pub writer: &'a Mutex<Writer>,
    pub progress: &'a Progress,
    pub bars: &'a Bars<'a>,
    /// An error on one card ends the sweep, and the others begin nothing more.
    pub failed: AtomicBool,
}

/// The progress bars for all cards.
pub(super) struct Bars<'a> {
    pub validate: Bar<'a>,
    pub measure: Bar<'a>,
    pub blocks: AtomicU32,
    pub retaken: AtomicU32,
    progress: &'a Progress,
}

impl<'a> Bars<'a> {
    pub(super) fn new(
        progress: &'a Progress,
        plan: &Plan,
        settings: &Settings,
        timing: Timing,
    ) -> Self {
        let cells = &plan.cells;
        let weight = cells.iter().map(|cell| validate::weight(plan, cell)).sum();
        let stage = match settings.time_only {
            true => "model",
            false => "validate",
        };
        let shares = plan.shapes.len() * settings.processes as usize;
        let validate = progress.weighted_stage(stage, cells.len(), weight);
        let measure = match timing.sampled() {
            true => progress.stage("measure", shares),
            false => progress.none("measure"),
        };
        Self {
            validate,
            measure,
            blocks: AtomicU32::new(0),
            retaken: AtomicU32::new(0),
            progress,
        }
    }

    /// Removes the bars and keeps their results.
    pub(super) fn end(&self, run: &Run) {
        let shapes = &run.header.shapes;
        let (wanted, word): (fn(Status) -> bool, _) = match run.header.settings.time_only {
            true => (|status| status == Status::NotValidated, "not validated"),
            false => (|status| status == Status::Ok, "ok"),
        };
        let right =
            |id| (shapes.iter()).filter(move |s| run.status(id, &s.name).is_some_and(wanted));
        let contenders = || run.header.contenders.iter();
        let ok: usize = contenders().map(|c| right(&c.id).count()).sum();
        let cells = contenders().count() * shapes.len();
        self.validate.done(&format!("{ok}/{cells} {word}"));
        if run.timing().sampled() {
            let blocks = self.blocks.load(Ordering::Relaxed);
            self.measure
                .done(&format!("{} shapes, {blocks} blocks", shapes.len()));
        }
        let retaken = self.retaken.load(Ordering::Relaxed);
        if retaken > 0 {
            self.progress.warn(&format!(
                "{retaken} samples were taken again: the clock had dropped"
            ));
        }
    }
}

/// Seconds of the card that took longest.
#[derive(Clone, Debug, Default)]
pub(super) struct CardSeconds {
    validate: f64,
    measure: f64,
    /// Seconds waited in each stage, for expected results and for the compiler.
    answers: BTreeMap<&'static str, f64>,
    compiler: f64,
}

impl CardSeconds {
    fn total(&self) -> f64 {
        self.validate + self.measure
    }

    fn add(&mut self, other: &Self) {
        self.validate += other.validate;
        self.measure += other.measure;
        self.compiler += other.compiler;
        for (stage, seconds) in &other.answers {
            *self.answers.entry(stage).or_default() += seconds;
        }
    }

    pub(super) fn measuring(&self) -> f64 {
        self.measure
    }

    pub(super) fn add_to(&self, clock: &mut StageClock) {
        clock.add("validate", self.validate);
        clock.add("measure", self.measure);
        clock.move_waiting("compile", &BTreeMap::from([("validate", self.compiler)]));
        clock.move_waiting("oracle", &self.answers);
    }
}

impl Sweep<'_> {
    pub(super) fn path(&self) -> PathBuf {
        let writer = self.writer.lock().unwrap_or_else(|e| e.into_inner());
        writer.path().to_owned()
    }

    /// Validates and times every shape, each on one card.
    pub(super) fn run(
        &self,
        runners: &mut Vec<Runner>,
        begun: &Run,
    ) -> Result<CardSeconds, CommandError> {
        let mut spent = CardSeconds::default();
        let mut later = None;
        loop {
            let begun = later.as_ref().unwrap_or(begun);
            let shares = self.assign(runners, begun)?;
            let ended: Vec<(CardSeconds, Result<(), CommandError>)> = thread::scope(|scope| {
                let cards = runners.iter_mut().zip(&shares);
                let running: Vec<_> = cards
                    .map(|(runner, shapes)| scope.spawn(move || self.card(runner, shapes, begun)))
                    .collect();
                let lost = || {
                    (
                        CardSeconds::default(),
                        Err(could_not_run("a card's thread died")),
                    )
                };
                running
                    .into_iter()
                    .map(|card| card.join().unwrap_or_else(|_| lost()))
                    .collect()
            });
            let longest = ended
                .iter()
                .map(|(spent, _)| spent)
                .max_by(|a, b| a.total().total_cmp(&b.total()));
            spent.add(longest.unwrap_or(&CardSeconds::default()));
            let mut gone = None;
            for (runner, (_, outcome)) in runners.iter().zip(ended) {
                match (outcome, runner.lost()) {
                    (Ok(()), _) => {}
                    (Err(error), Some(_)) => gone = gone.or(Some(error)),
                    (Err(error), None) => return Err(error),
                }
            }
            let Some(error) = gone else {
                return Ok(spent);
            };
            if interrupt::requested() || runners.iter().all(|runner| runner.lost().is_some()) {
                return Err(error);
            }
            for why in runners.iter().filter_map(Runner::lost) {
                self.progress
                    .warn(&format!("{why}; its shapes go to the other cards"));
            }
            runners.retain(|runner| runner.lost().is_none());
            later = Some(reread(&self.path())?);
        }
    }

    /// All work for the shapes of one card.
    fn card(
        &self,
        runner: &mut Runner,
        shapes: &[usize],
        begun: &Run,
    ) -> (CardSeconds, Result<(), CommandError>) {
        let oracles = Oracles::start(self.cache, self.plan, self.settings, runner, shapes);
        let mut session = CardSession {
            sweep: self,
            runner,
            shapes,
            oracles: &oracles,
            begun,
            waited: Cell::new(0.0),
        };
        let began = Instant::now();
        let validated = validate::all(&mut session);
        let validate = began.elapsed().as_secs_f64();
        let compiler = session.waited.get();
        let outcome = validated.and_then(|()| measure::all(&mut session));
        if outcome.is_err() && session.runner.lost().is_none() {
            self.failed.store(true, Ordering::Relaxed);
        }
        let spent = CardSeconds {
            validate,
            measure: began.elapsed().as_secs_f64() - validate,
            answers: oracles.waited(),
            compiler,
        };
        (spent, outcome)
    }

    /// The shapes of each card. A timed shape stays on its card; if that card is gone, its times of
    /// the shape are void.
    fn assign(&self, runners: &[Runner], begun: &Run) -> Result<Vec<Vec<usize>>, CommandError> {
        let timing = runners[0].kind().timing();
        // The number of CTAs that a time is modelled from is about the same on every shape.
        let weight = |shape: &Shape| match self.settings.time_only {
            true => 1.0,
            false => cost(&self.plan.round.operator, shape, timing),
        };
        let cards: Vec<Option<&str>> = runners.iter().map(Runner::card).collect();
        let assigned = assign(&self.plan.shapes, &cards, weight, |name| {
            match begun.blocks_of(name) {
                0 => EarlierCard::Untimed,
                _ if measured(begun, name) >= self.settings.processes => EarlierCard::Done,
                _ => EarlierCard::On(begun.card(name).map(str::to_owned)),
            }
        });
        for place in assigned.void.into_iter().filter(|_| timing.sampled()) {
            let shape = self.plan.shapes[place].name.clone();
            let reason = "the card that timed it is not here any more".to_owned();
            append(self.writer, &Line::Void(VoidedTimes { shape, reason }))?;
        }
        Ok(assigned.shares)
    }
}

/// The card that a shape was timed on before.
enum EarlierCard {
    Untimed,
    On(Option<String>),
    /// Nothing of it is left to time.
    Done,
}

struct CardShares {
    /// Shapes by card, in the plan's order.
    shares: Vec<Vec<usize>>,
    /// Shapes whose card is gone: their blocks are discarded.
    void: Vec<usize>,
}

/// Longest shape first, each to the card it was timed on, or to the one that would finish soonest.
fn assign(
    shapes: &[Shape],
    cards: &[Option<&str>],
    weight: impl Fn(&Shape) -> f64,
    before: impl Fn(&str) -> EarlierCard,
) -> CardShares {
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    let cost = |place: usize| weight(&shapes[place]);
    order.sort_by(|a, b| cost(*b).total_cmp(&cost(*a)));
    let mut loads: Vec<f64> = vec![0.0; cards.len()];
    let mut assigned = CardShares {
        shares: vec![Vec::new(); cards.len()],
        void: Vec::new(),
    };
    // Shapes bound to a card are assigned before the others.
    let bound = |place: &usize| match before(&shapes[*place].name) {
        EarlierCard::On(card) => cards.iter().position(|c| *c == card.as_deref()),
        EarlierCard::Untimed | EarlierCard::Done => None,
    };
    let (fixed, free): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|place| bound(place).is_some());
    for place in fixed.into_iter().chain(free) {
        let state = before(&shapes[place].name);
        let card = bound(&place).unwrap_or_else(|| {
            if matches!(state, EarlierCard::On(_)) {
                assigned.void.push(place);
            }
            let least = (0..loads.len()).min_by(|a, b| loads[*a].total_cmp(&loads[*b]));
            least.unwrap_or(0)
        });
        if !matches!(state, EarlierCard::Done) {
            loads[card] += cost(place);
        }
        assigned.shares[card].push(place);
    }
    assigned
        .shares
        .iter_mut()
        .for_each(|share| share.sort_unstable());
    assigned
}
