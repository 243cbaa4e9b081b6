use rayon::prelude::*;

use crate::domain::{ContenderId, Interval, Micros, Status, Timing};
use crate::record::Run;
use crate::stats::{CONFIDENCE, Estimates, LogEstimate};

/// One contender on one shape.
#[derive(Clone, Debug)]
pub struct Cell {
    pub contender: ContenderId,
    pub shape: String,
    /// `None`: not known yet, or (for recorded numbers) never checked.
    pub status: Option<Status>,
    pub reason: Option<String>,
    /// Present only if the cell is valid.
    pub time: Option<Timed>,
}

/// A valid cell's time.
#[derive(Clone, Debug)]
pub struct Timed {
    /// ln(µs).
    pub log: LogEstimate,
    pub samples: usize,
    /// The number of far outliers.
    pub outliers: usize,
    /// There were too many samples to keep; outliers are counted in a random selection and scaled
    /// up.
    pub outliers_scaled: bool,
    /// Median SM clock of its samples.
    pub clock_mhz: Option<f64>,
    /// Minimum possible time over this time, at the clock of the samples.
    pub roofline: Option<f64>,
    /// What limits a modelled time.
    pub bound: Option<String>,
    /// The lowest on its shape among contenders.
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
pub(super) fn cells(run: &Run) -> Vec<Cell> {
    let entrants: Vec<&ContenderId> = run.entrants().collect();
    let row = |c: &&ContenderId| -> Vec<Cell> {
        let shapes = run.header.shapes.iter();
        shapes.map(|s| cell(run, c, &s.name)).collect()
    };
    let mut cells: Vec<Cell> = entrants.par_iter().flat_map_iter(row).collect();
    mark_best(run, &mut cells);
    cells
}

fn cell(run: &Run, contender: &ContenderId, shape: &str) -> Cell {
    let status = run.status(contender, shape);
    // A yardstick with a verdict counts as checked like any contender; and recorded numbers are all
    // that is available.
    let unchecked =
        status.is_none() && (run.is_yardstick(contender) || run.timing() == Timing::Recorded);
    let valid = status.is_some_and(Status::may_be_timed) || unchecked;
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
    let Some(log) = Estimates::single(&run.times(contender, shape)) else {
        let estimate = run.estimate(contender, shape)?;
        return Some(Timed {
            log: LogEstimate::point(estimate.micros.0.ln()),
            samples: 0,
            outliers: 0,
            outliers_scaled: false,
            clock_mhz: None,
            roofline: share(run, (contender, shape), estimate.micros, None),
            bound: estimate.bound.clone(),
            best: false,
        });
    };
    let samples = run.samples(contender, shape)?;
    let clock_mhz = samples.clock_mhz();
    Some(Timed {
        log,
        samples: samples.seen(),
        outliers: samples.outliers(),
        outliers_scaled: samples.chosen(),
        clock_mhz,
        roofline: share(run, (contender, shape), Micros(log.mean.exp()), clock_mhz),
        bound: None,
        best: false,
    })
}

/// Marks the lowest time of each shape; modelled times can be exactly equal, and then each of them
/// is marked.
fn mark_best(run: &Run, cells: &mut [Cell]) {
    let shapes = run.header.shapes.len();
    let ranked = shapes * run.header.contenders.len();
    for shape in 0..shapes {
        let mut times: Vec<&mut Timed> = cells[..ranked]
            .iter_mut()
            .skip(shape)
            .step_by(shapes)
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

/// The minimum time of the shape over the time taken: 1 is the best possible.
fn share(
    run: &Run,
    (contender, shape): (&ContenderId, &str),
    time: Micros,
    clock_mhz: Option<f64>,
) -> Option<f64> {
    let ceiling = run.header.device.ceiling()?.at(clock_mhz);
    let (floor, _) = ceiling.floor(&run.least_work(contender, shape)?);
    Some(floor.0 / time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::Ranking;
    use crate::record::synthetic::Synthetic;

    /// The rest of a run equals a round of only those shapes.
    #[test]
    fn shapes_that_are_left_out_leave_nothing_behind() {
        let all = Synthetic::round4().run();
        let mut part = all.clone();
        let names = [5, 2].map(|place: usize| all.header.shapes[place].name.clone());
        part.keep_shapes(|name| names.iter().any(|kept| kept == name));
        assert_eq!((part.header.shapes.len(), part.tally.shapes()), (2, 2));
        let (whole, kept) = (Ranking::of(&all), Ranking::of(&part));
        for row in &kept.rows {
            for name in &names {
                let time = |r: &Ranking| Some(r.cell(&row.contender, name)?.time.as_ref()?.log);
                assert_eq!(time(&kept), time(&whole), "{} on {name}", row.contender);
                let status = |run: &Run| run.status(&row.contender, name);
                assert_eq!(status(&part), status(&all));
            }
        }
        let (blocks, shapes) = (all.tally.blocks(), all.header.shapes.len());
        assert_eq!(part.tally.blocks() * shapes, blocks * 2);
    }
}
