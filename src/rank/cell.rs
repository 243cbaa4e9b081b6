use crate::domain::{ContenderId, Interval, Micros, Status};
use crate::record::Run;
use crate::record::schema::Timing;
use crate::stats::{
    Arm, CONFIDENCE, Contrast, LogEstimate, RESAMPLES, SEED, bootstrap, log_times, outliers,
};

/// One contender on one shape.
#[derive(Clone, Debug)]
pub struct Cell {
    pub contender: ContenderId,
    pub shape: String,
    /// `None`: not known yet, or (for recorded numbers) never checked.
    pub status: Option<Status>,
    pub reason: Option<String>,
    /// Present only where the cell is valid.
    pub time: Option<Timed>,
}

/// A valid cell's time.
#[derive(Clone, Debug)]
pub struct Timed {
    /// ln(µs).
    pub log: LogEstimate,
    pub samples: usize,
    pub outliers: usize,
    /// Median SM clock of its samples.
    pub clock_mhz: Option<f64>,
    /// Least possible time over this time, at the clock of the samples.
    pub roofline: Option<f64>,
    /// What bounds a modelled time.
    pub bound: Option<String>,
    /// The least on its shape among contenders.
    pub best: bool,
}

impl Timed {
    pub fn micros(&self) -> Interval {
        self.log.ratio(CONFIDENCE)
    }

    pub fn estimate(&self) -> Micros {
        Micros(self.log.mean.exp())
    }
}

/// Every cell of a run, contenders first, shapes in the header's order.
pub fn cells(run: &Run) -> Vec<Cell> {
    let mut cells: Vec<Cell> = run
        .entrants()
        .flat_map(|c| run.header.shapes.iter().map(move |s| cell(run, c, &s.name)))
        .collect();
    mark_best(run, &mut cells);
    cells
}

fn cell(run: &Run, contender: &ContenderId, shape: &str) -> Cell {
    let status = run.status(contender, shape);
    // The yardstick is checked like any contender where it has a verdict; and
    // numbers taken down elsewhere are all there is to go by.
    let unchecked =
        status.is_none() && (run.is_yardstick(contender) || run.timing() == Timing::Recorded);
    let valid = status == Some(Status::Ok) || unchecked;
    Cell {
        contender: contender.clone(),
        shape: shape.to_owned(),
        status,
        reason: run.reason(contender, shape).map(str::to_owned),
        time: if valid {
            timed(run, contender, shape)
        } else {
            None
        },
    }
}

fn timed(run: &Run, contender: &ContenderId, shape: &str) -> Option<Timed> {
    let contrast = log_times(&run.blocks, shape, &Arm::first(contender));
    if contrast.is_empty() {
        let estimate = run.estimate(contender, shape)?;
        return Some(Timed {
            log: LogEstimate::point(estimate.micros.0.ln()),
            samples: 0,
            outliers: 0,
            clock_mhz: None,
            roofline: super::roofline::share(run, shape, estimate.micros, None),
            bound: estimate.bound.clone(),
            best: false,
        });
    }
    let log = time_estimate(&contrast)?;
    let values: Vec<f64> = contrast.values().collect();
    let clock_mhz = median_clock(run, contender, shape);
    Some(Timed {
        log,
        samples: values.len(),
        outliers: outliers(&values),
        clock_mhz,
        roofline: super::roofline::share(run, shape, Micros(log.mean.exp()), clock_mhz),
        bound: None,
        best: false,
    })
}

fn time_estimate(contrast: &Contrast) -> Option<LogEstimate> {
    let estimates = bootstrap(std::slice::from_ref(contrast), RESAMPLES / 4, SEED)?;
    Some(estimates.geomean)
}

fn median_clock(run: &Run, contender: &ContenderId, shape: &str) -> Option<f64> {
    let blocks = run.blocks.iter().filter(|b| b.shape == shape);
    let samples = blocks.flat_map(|b| &b.samples);
    let mut clocks: Vec<f64> = samples
        .filter(|s| s.contender == *contender)
        .filter_map(|s| s.clock_mhz)
        .collect();
    clocks.sort_by(f64::total_cmp);
    clocks.get(clocks.len() / 2).copied()
}

/// Marks the least time of each shape; modelled times can be exactly equal,
/// and then each of them is the least.
fn mark_best(run: &Run, cells: &mut [Cell]) {
    for shape in &run.header.shapes {
        let mut times: Vec<&mut Timed> = cells
            .iter_mut()
            .filter(|c| c.shape == shape.name && !run.is_yardstick(&c.contender))
            .filter_map(|c| c.time.as_mut())
            .collect();
        let least = times
            .iter()
            .map(|t| t.log.mean)
            .fold(f64::INFINITY, f64::min);
        for time in &mut times {
            time.best = time.log.mean == least;
        }
    }
}
