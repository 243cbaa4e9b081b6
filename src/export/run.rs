use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::pretty;
use crate::present::{
    Repetition, accuracy, all_counters, bound_text, comparison_table, failures, first_wrong,
    matrix_table, mean_clock, mean_micros, model_error, notes, ranking_table,
};
use crate::table::Table;
use dgx_core::claims;
use dgx_core::domain::{Calibration, ContenderId, Counter, Interval, Timing};
use dgx_core::rank::{
    ComparedSide, Comparison, EntrantKind, Judgement, Ranking, Repeat, Repeated, Row,
};
use dgx_core::record::Run;
use dgx_core::record::counters::Counts;
use dgx_core::stats::{CONFIDENCE, LogEstimate, RankPosition};

/// The format's version, raised when a field changes its meaning.
const VERSION: u32 = 2;

/// The JSON that `--export-json` of sweep, show and compare writes; the other formats are made from
/// it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "dgx export")]
pub(crate) struct RunExport {
    pub version: u32,
    pub runs: Vec<RunOrigin>,
    /// The contender that speedups are over.
    pub over: Option<String>,
    /// Level of every interval.
    pub confidence: f64,
    /// The smallest difference the run can detect.
    pub detectable: Option<Quantity>,
    pub ranking: Vec<Standing>,
    pub cells: Vec<CellExport>,
    /// If two are compared: the second over the first, in the mean (no shape) and on each shape
    /// they share. For two runs, contender by contender.
    pub changes: Vec<Change>,
    /// For two runs: whether their rankings agree.
    pub agreement: Option<Agreement>,
    /// The notes on the comparison, as on the screen.
    pub notes: Vec<String>,
    /// The comparison as tables.
    #[serde(skip)]
    pub tables: Vec<Table>,
}

/// A contender over another of its run, or over itself in an earlier run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Change {
    pub contender: String,
    /// The other contender; for two runs, the contender itself.
    pub over: String,
    pub shape: Option<String>,
    pub speedup: Quantity,
    /// The change of its time, as a share; less than 0 if it is shorter.
    pub time: f64,
    /// Whether it differs by more than both runs can detect; null if that is not known.
    pub differs: Option<bool>,
    /// The result: `faster`, `slower`, `cannot tell`, …
    pub finding: &'static str,
}

/// Two runs of one round, each ranked by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Agreement {
    /// The contender that speedups are over, in both runs.
    pub over: String,
    pub contenders: Vec<AgreedOn>,
    /// Pairs of contenders whose order was compared.
    pub pairs: usize,
    /// Pairs that the two runs order or tie differently.
    pub disputes: Vec<[String; 2]>,
}

/// A contender that both runs rank.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AgreedOn {
    pub contender: String,
    /// Over the reference, in each run.
    pub speedups: [Quantity; 2],
    /// The second over the first, minus one.
    pub change: f64,
    /// As on the screen: `4=` is one of several in fourth place.
    pub ranks: [String; 2],
    /// Whether the change is within its interval; null without one.
    pub agrees: Option<bool>,
    /// Whether its source differs between the runs.
    pub edited: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunOrigin {
    /// `A` or `B`, as the screen calls one of two runs.
    pub label: Option<&'static str>,
    pub file: String,
    pub name: String,
    pub question: String,
    pub started: String,
    pub commit: Option<String>,
    pub device: String,
    /// The card, if it was recorded.
    pub uuid: Option<String>,
    pub backend: String,
    pub timing: Timing,
    /// The error of modelled times, if it is known, and for which device.
    pub calibration: Option<Calibration>,
    /// Whether that is the device and the operator of this run; null for other times.
    pub calibrated: Option<bool>,
    /// The error of modelled times in words; null for others.
    pub model_error: Option<String>,
    /// How far the times can be trusted.
    #[serde(rename = "belief")]
    pub accuracy: Option<String>,
    /// False if only times were asked for.
    pub validated: bool,
    pub baseline: String,
    pub yardstick: Option<String>,
    /// The contender that this run's speedups are over.
    pub over: Option<String>,
    /// The smallest difference this run can detect.
    pub detectable: Option<Quantity>,
    pub complete: bool,
    /// The failures with their shapes and reasons, as on the screen.
    pub failures: Vec<String>,
    /// The notes below the tables on the screen.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub tables: Vec<Table>,
}

/// A number with its interval and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Quantity {
    pub estimate: f64,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub unit: &'static str,
}

impl Quantity {
    fn new(interval: Interval, unit: &'static str) -> Self {
        Self {
            estimate: interval.estimate,
            lower: interval.lower,
            upper: interval.upper,
            unit,
        }
    }

    fn ratio(estimate: &LogEstimate) -> Self {
        Self::new(estimate.ratio(CONFIDENCE), "x")
    }

    const ONE: Self = Self {
        estimate: 1.0,
        lower: Some(1.0),
        upper: Some(1.0),
        unit: "x",
    };
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Standing {
    /// The index of its run in `runs`.
    pub run: usize,
    pub contender: String,
    pub rank: Option<usize>,
    pub tied: bool,
    /// A status, or `yardstick`, `unchecked`, `pending`.
    pub status: &'static str,
    /// Shapes on which it is valid and timed.
    pub valid_shapes: usize,
    /// Geometric mean over the shapes, if it has a time on each.
    pub mean_micros: Option<f64>,
    pub geomean_speedup: Option<Quantity>,
    pub over_yardstick: Option<Quantity>,
    pub claim: Option<ClaimExport>,
    pub roofline: Option<Quantity>,
    /// What limits its modelled times, on how many shapes.
    pub bound_by: Option<String>,
    /// SM clock of its samples, in the mean over shapes.
    pub clock_mhz: Option<f64>,
    pub registers: Option<u32>,
    pub spill_bytes: Option<u32>,
    pub smem: Option<Quantity>,
    pub occupancy: Option<f64>,
    /// The emulator's counters of one call on each shape, summed; null unless all shapes have them.
    pub counters: Option<BTreeMap<&'static str, f64>>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ClaimExport {
    pub geomean: f64,
    pub over: String,
    pub measured: Option<Quantity>,
    pub verdict: &'static str,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CellExport {
    /// The index of its run in `runs`.
    pub run: usize,
    pub contender: String,
    pub shape: String,
    pub status: &'static str,
    pub reason: Option<String>,
    /// The first wrong element, with its value and the expected one.
    pub first_wrong: Option<String>,
    pub micros: Option<Quantity>,
    pub speedup: Option<Quantity>,
    pub timing: Timing,
    pub samples: usize,
    pub outliers: usize,
    pub roofline: Option<f64>,
    /// What limits a modelled time.
    pub bound_by: Option<String>,
    /// Median SM clock of its samples.
    pub clock_mhz: Option<f64>,
    /// Fastest contender of its shape.
    pub best: bool,
    /// The emulator's counters of one call; null if there are none.
    pub counters: Option<BTreeMap<&'static str, f64>>,
}

impl RunExport {
    /// A whole run.
    pub(crate) fn of_run(run: &Run, ranking: &Ranking) -> Self {
        let over = ranking.reference.as_ref();
        let cells = (ranking.rows.iter())
            .flat_map(|row| cells_of(run, ranking, &row.contender, over))
            .collect();
        let standings = ranking.rows.iter().map(|row| standing(run, ranking, row));
        Self {
            version: VERSION,
            runs: vec![origin(run, ranking)],
            over: over.map(ContenderId::to_string),
            confidence: CONFIDENCE,
            detectable: detectable(ranking),
            ranking: standings.collect(),
            cells,
            changes: Vec::new(),
            agreement: None,
            notes: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Two runs, each by itself, and the second over the first for each compared contender; if
    /// `only` is given, for that one alone.
    pub(crate) fn of_runs(
        sides: [(&Run, &Ranking); 2],
        compared: &[(&ContenderId, Comparison)],
        only: Option<&ContenderId>,
        agreed: &Repetition,
    ) -> Self {
        let [mut both, mut second] = sides.map(|(run, ranking)| {
            let mut whole = Self::of_run(run, ranking);
            if let Some(only) = only {
                whole.ranking.retain(|row| row.contender == only.as_str());
                whole.cells.retain(|cell| cell.contender == only.as_str());
                whole.runs[0].tables = tables(run, &part(ranking, &[only]));
            }
            whole
        });
        second.ranking.iter_mut().for_each(|row| row.run = 1);
        second.cells.iter_mut().for_each(|cell| cell.run = 1);
        both.over = both.over.filter(|over| second.over.as_ref() == Some(over));
        both.detectable = None;
        (both.runs[0].label, second.runs[0].label) = (Some("A"), Some("B"));
        both.runs.extend(second.runs);
        both.ranking.extend(second.ranking);
        both.cells.extend(second.cells);
        for (contender, comparison) in compared {
            both.changes.extend(changes([contender; 2], comparison));
        }
        let pairs = compared.iter().map(|(contender, comparison)| {
            let side = |(run, ranking)| ComparedSide::new(run, ranking, contender);
            (sides.map(side), comparison)
        });
        both.tables
            .push(comparison_table(&pairs.collect::<Vec<_>>()));
        both.tables.extend(agreed.table.clone());
        both.agreement = agreed.repeat.as_ref().map(agreement);
        both.notes = (agreed.drift.map(str::to_owned).into_iter())
            .chain(agreed.times.clone())
            .chain(agreed.words.clone())
            .collect();
        both
    }

    /// Two contenders of one run, the second over the first.
    pub(crate) fn of_comparison(
        base: ComparedSide,
        candidate: ComparedSide,
        comparison: &Comparison,
    ) -> Self {
        let (run, whole) = (base.run, base.ranking);
        let contenders = [base.contender, candidate.contender];
        let tied = comparison.judgement().differs() != Some(true);
        let mut ranking = part(whole, &contenders);
        for row in &mut ranking.rows {
            let is_base = row.contender == *base.contender;
            let slower = is_base == (comparison.geomean.mean >= 0.0);
            let rank = if slower && !tied { 2 } else { 1 };
            row.place = Some(RankPosition { rank, tied });
            row.speedup = Some(comparison.geomean).filter(|_| !is_base);
        }
        ranking.reference = Some(base.contender.clone());
        Self {
            runs: vec![RunOrigin {
                tables: tables(run, &ranking),
                ..origin(run, whole)
            }],
            changes: changes([candidate.contender, base.contender], comparison),
            tables: vec![comparison_table(&[([base, candidate], comparison)])],
            ..Self::of_run(run, &ranking)
        }
    }

    pub(crate) fn json(&self) -> String {
        pretty(self)
    }
}

/// A ranking of only these contenders, in this order.
fn part(ranking: &Ranking, contenders: &[&ContenderId]) -> Ranking {
    let rows = contenders.iter().filter_map(|id| ranking.row(id));
    let mut part = ranking.clone();
    part.rows = rows.cloned().collect();
    part
}

/// The tables of a run.
fn tables(run: &Run, ranking: &Ranking) -> Vec<Table> {
    let counters = all_counters(run, ranking);
    let counters = Some(counters).filter(|table| !table.rows.is_empty());
    let matrix = matrix_table(run, ranking, |_, value| value);
    [ranking_table(run, ranking), matrix]
        .into_iter()
        .chain(counters)
        .collect()
}

/// One contender over another, in the mean and on each shape.
fn changes([contender, over]: [&ContenderId; 2], comparison: &Comparison) -> Vec<Change> {
    let mean = (None, &comparison.geomean, comparison.judgement());
    let shapes = comparison.judged().map(|(s, e, j)| (Some(s), e, j));
    let change = |(shape, estimate, judgement): (Option<&str>, &LogEstimate, Judgement)| Change {
        contender: contender.to_string(),
        over: over.to_string(),
        shape: shape.map(str::to_owned),
        speedup: Quantity::ratio(estimate),
        time: (-estimate.mean).exp_m1(),
        differs: judgement.differs(),
        finding: judgement.as_str(),
    };
    std::iter::once(mean).chain(shapes).map(change).collect()
}

fn agreement(repeat: &Repeat) -> Agreement {
    let entry = |entry: &Repeated| AgreedOn {
        contender: entry.contender.to_string(),
        speedups: entry.speedups.map(|speedup| Quantity::ratio(&speedup)),
        change: entry.change.mean.exp_m1(),
        ranks: entry.places.map(|place| place.to_string()),
        agrees: entry.agrees(),
        edited: entry.edited,
    };
    let disputes = repeat.disputes.iter();
    Agreement {
        over: repeat.reference.to_string(),
        contenders: repeat.entries.iter().map(entry).collect(),
        pairs: repeat.pairs(),
        disputes: disputes
            .map(|dispute| dispute.pair.each_ref().map(ContenderId::to_string))
            .collect(),
    }
}

fn detectable(ranking: &Ranking) -> Option<Quantity> {
    let found = ranking.detectable.as_ref()?;
    Some(Quantity::new(Interval::point(found.effect), "share"))
}

fn origin(run: &Run, ranking: &Ranking) -> RunOrigin {
    let header = &run.header;
    RunOrigin {
        label: None,
        file: run.path.display().to_string(),
        name: header.name.clone(),
        question: header.question.clone(),
        started: header.started.clone(),
        commit: header.git.as_ref().map(|g| g.commit.clone()),
        device: header.device.name.clone(),
        uuid: header.device.uuid.clone(),
        backend: header.device.backend.to_string(),
        timing: run.timing(),
        calibration: header.device.calibration.clone(),
        calibrated: (run.timing() == Timing::Modelled)
            .then(|| header.device.calibrated_for(&run.operator.name)),
        model_error: model_error(run),
        accuracy: accuracy(run),
        validated: run.timing() != Timing::Recorded && !header.settings.time_only,
        baseline: header.baseline.to_string(),
        yardstick: header.yardstick.as_ref().map(ContenderId::to_string),
        over: ranking.reference.as_ref().map(ContenderId::to_string),
        detectable: detectable(ranking),
        complete: run.end.as_ref().is_some_and(|e| e.complete) || run.timing() == Timing::Recorded,
        failures: (failures(run, ranking).iter())
            .map(|failure| failure.text(run))
            .collect(),
        notes: notes(run, ranking),
        tables: tables(run, ranking),
    }
}

fn status(run: &Run, kind: EntrantKind, status: Option<dgx_core::domain::Status>) -> &'static str {
    match status {
        Some(status) => status.as_str(),
        None if kind == EntrantKind::Yardstick => "yardstick",
        None if run.timing() == Timing::Recorded => "unchecked",
        None => "pending",
    }
}

fn standing(run: &Run, ranking: &Ranking, row: &Row) -> Standing {
    let reference = ranking.reference.as_ref() == Some(&row.contender);
    let speedup = row.speedup.as_ref().map(Quantity::ratio);
    Standing {
        run: 0,
        contender: row.contender.to_string(),
        rank: row.place.map(|p| p.rank),
        tied: row.place.is_some_and(|p| p.tied),
        status: status(run, row.kind, row.status),
        valid_shapes: row.valid_shapes,
        mean_micros: mean_micros(run, ranking, row).map(|mean| mean.0),
        geomean_speedup: if reference {
            Some(Quantity::ONE)
        } else {
            speedup
        },
        over_yardstick: row.over_yardstick.as_ref().map(Quantity::ratio),
        claim: claims::judge(run, ranking, &row.contender).map(|c| ClaimExport {
            geomean: c.claim.geomean,
            over: c.claim.over,
            measured: c.measured.map(|m| Quantity::new(m, "x")),
            verdict: c.verdict.as_str(),
        }),
        roofline: row
            .roofline
            .map(|r| Quantity::new(Interval::point(r), "share")),
        bound_by: Some(bound_text(ranking, row)).filter(|text| !text.is_empty()),
        clock_mhz: mean_clock(ranking, &row.contender),
        registers: row.resources.map(|r| r.registers),
        spill_bytes: row.resources.map(|r| r.spill_bytes),
        smem: row
            .resources
            .map(|r| Quantity::new(Interval::point(r.smem.0 as f64), "bytes")),
        occupancy: row.resources.map(|r| r.occupancy),
        counters: {
            let shapes = run.header.shapes.iter().map(|s| s.name.as_str());
            let summed = run.summed_counts(&row.contender, shapes);
            let whole = summed.filter(|(_, counted)| *counted == run.header.shapes.len());
            whole.map(|(counts, _)| counters(&counts))
        },
    }
}

/// By the names that tables and gates use.
fn counters(counts: &Counts) -> BTreeMap<&'static str, f64> {
    let value = |counter: Counter| Some((counter.as_str(), counter.value(counts)?));
    Counter::all().filter_map(value).collect()
}

fn cells_of(
    run: &Run,
    ranking: &Ranking,
    contender: &ContenderId,
    over: Option<&ContenderId>,
) -> Vec<CellExport> {
    let comparison = over.and_then(|base| ranking.compare(run, base, contender));
    let kind = ranking
        .row(contender)
        .map_or(EntrantKind::Contender, |r| r.kind);
    let cells = ranking.cells_of(contender).iter();
    cells
        .map(|cell| {
            let time = cell.time.as_ref();
            let speedup = comparison.as_ref().and_then(|c| c.shape(&cell.shape));
            CellExport {
                run: 0,
                contender: contender.to_string(),
                shape: cell.shape.clone(),
                status: status(run, kind, cell.status),
                reason: cell.reason.clone(),
                first_wrong: run
                    .verdict(contender, &cell.shape)
                    .and_then(|verdict| first_wrong(verdict.detail.as_deref()?))
                    .map(str::to_owned),
                micros: time.map(|t| Quantity::new(t.micros(), "us")),
                speedup: match over == Some(contender) {
                    true => time.map(|_| Quantity::ONE),
                    false => speedup.map(Quantity::ratio),
                },
                timing: run.timing(),
                samples: time.map_or(0, |t| t.samples),
                outliers: time.map_or(0, |t| t.outliers),
                roofline: time.and_then(|t| t.roofline),
                bound_by: time.and_then(|t| t.bound.clone()),
                clock_mhz: time.and_then(|t| t.clock_mhz),
                best: time.is_some_and(|t| t.best),
                counters: run.counts(contender, &cell.shape).map(counters),
            }
        })
        .collect()
}
