use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::lineup::{Lane, Lineup};
use crate::backend::RunFailure;
use crate::domain::{Block, ContenderId, Micros, Sample};
use crate::stats::decision::{Rule, decide};
use crate::stats::{Sampled, Tally};

/// A sample at less than this share of the usual clock was throttled.
const THROTTLED: f64 = 0.75;
/// How often a throttled sample is taken again before it is kept as it is.
const RETAKES: u32 = 3;
/// Blocks between two looks at what is decided.
const STRIDE: u32 = 5;

/// How much to measure in this process.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub process: u32,
    pub seed: u64,
    pub warmup: u32,
    pub min_blocks: u32,
    pub max_seconds: f64,
}

/// Times one lane once.
pub trait Stopwatch<E> {
    /// The time, and the SM clock where it could be read.
    fn sample(&mut self, lane: &Lane<E>) -> Result<(Micros, Option<f64>), RunFailure>;
}

/// One entry of a block.
struct Arm<'a, E> {
    lane: &'a Lane<E>,
    /// 0, or 1 for the baseline's second entry.
    arm: u32,
}

impl<E> Clone for Arm<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Arm<'_, E> {}

/// Every lane, and once more those that are entered twice.
fn arms<E>(lanes: &[Lane<E>]) -> Vec<Arm<'_, E>> {
    let arm = |lane, arm| Arm { lane, arm };
    let of_lane = |lane: &'_ Lane<E>| if lane.twice() { 2 } else { 1 };
    lanes
        .iter()
        .flat_map(|lane| (0..of_lane(lane)).map(move |place| arm(lane, place)))
        .collect()
}

/// How measuring a shape in one process ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub blocks: u32,
    /// `decided`, or what is still open.
    pub decision: String,
    /// Samples taken again because the clock had dropped.
    pub retaken: u32,
    pub seconds: f64,
}

/// Blocks over all lanes until the minimum is reached, then over the contested
/// ones, until every pair is decided or time is up. `emit` gets each block as
/// it is finished.
pub fn run<E>(
    stopwatch: &mut dyn Stopwatch<E>,
    lineup: &Lineup<E>,
    schedule: &Schedule,
    mut emit: impl FnMut(&Block),
) -> Result<Outcome, (ContenderId, RunFailure)> {
    let began = Instant::now();
    let mut taking = Taking {
        stopwatch,
        clocks: Vec::new(),
        retaken: 0,
    };
    let lanes = lineup.lanes();
    for _ in 0..schedule.warmup {
        for lane in lanes {
            taking.sample(Arm { lane, arm: 0 })?;
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(schedule.seed ^ u64::from(schedule.process) << 32);
    // By their numbers, which are what the statistics know them by.
    let all = arms(lanes);
    let first: Vec<usize> = (0..all.len()).filter(|i| all[*i].arm == 0).collect();
    let mut tally = Tally::new(1, all.len());
    let mut active: Vec<usize> = (0..all.len()).collect();
    let decision = loop {
        active.shuffle(&mut rng);
        let samples = active
            .iter()
            .map(|arm| taking.sample(all[*arm]))
            .collect::<Result<Vec<Sample>, _>>()?;
        let block = Block {
            shape: lineup.shape().to_owned(),
            process: schedule.process,
            block: tally.blocks() as u32,
            samples,
        };
        emit(&block);
        tally.add(0, schedule.process, &sampled(&active, &block.samples));
        let count = tally.blocks() as u32;
        let seconds = began.elapsed().as_secs_f64();
        let over = seconds >= schedule.max_seconds;
        if count < schedule.min_blocks && !(over && count >= 2) {
            continue;
        }
        if !over && !count.is_multiple_of(STRIDE) {
            continue;
        }
        let decision = decide(&tally, &first, &Rule::default());
        if decision.decided() || over {
            break decision.summary(seconds / f64::from(count));
        }
        // Both arms of a contender, so that the control goes on with it.
        let contested = decision.contested();
        let same = |a: usize, b: usize| all[a].lane.contender() == all[b].lane.contender();
        active = (0..all.len())
            .filter(|&arm| contested.iter().any(|&c| same(arm, c)))
            .collect();
    };
    Ok(Outcome {
        blocks: tally.blocks() as u32,
        decision,
        retaken: taking.retaken,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// A block as the statistics take it, its arms by their numbers.
fn sampled(arms: &[usize], samples: &[Sample]) -> Vec<Sampled> {
    let each = arms.iter().zip(samples);
    each.map(|(&arm, sample)| Sampled {
        arm,
        log: sample.micros.0.ln(),
        clock_mhz: sample.clock_mhz,
    })
    .collect()
}

/// Takes samples and watches the clock.
struct Taking<'a, E> {
    stopwatch: &'a mut dyn Stopwatch<E>,
    /// Every clock read so far, sorted.
    clocks: Vec<f64>,
    retaken: u32,
}

impl<E> Taking<'_, E> {
    fn sample(
        &mut self,
        Arm { lane, arm }: Arm<'_, E>,
    ) -> Result<Sample, (ContenderId, RunFailure)> {
        let mut tries = 0;
        loop {
            let (micros, clock_mhz) = self
                .stopwatch
                .sample(lane)
                .map_err(|failure| (lane.contender().clone(), failure))?;
            let sample = Sample {
                contender: lane.contender().clone(),
                arm,
                micros,
                clock_mhz,
            };
            let Some(clock) = clock_mhz else {
                return Ok(sample);
            };
            let usual = self.clocks.get(self.clocks.len() / 2).copied();
            let at = self.clocks.partition_point(|&c| c < clock);
            self.clocks.insert(at, clock);
            let throttled = usual.is_some_and(|usual| clock < THROTTLED * usual);
            if !throttled || tries == RETAKES {
                return Ok(sample);
            }
            tries += 1;
            self.retaken += 1;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::lineup::tests::{Named, lineup};

    /// Contenders a, b and c take 100, 90 and 80 µs with a little noise.
    struct Fake {
        calls: u32,
        slow_call: Option<u32>,
    }

    impl Stopwatch<Named> for Fake {
        fn sample(&mut self, lane: &Lane<Named>) -> Result<(Micros, Option<f64>), RunFailure> {
            let base = match lane.entry().name() {
                "a" => 100.0,
                "b" => 90.0,
                _ => 80.0,
            };
            self.calls += 1;
            let noise = 1.0 + 1e-3 * f64::from(self.calls * 7919 % 11 % 5);
            let clock = if Some(self.calls) == self.slow_call {
                800.0
            } else {
                1700.0
            };
            Ok((Micros(base * noise), Some(clock)))
        }
    }

    fn schedule() -> Schedule {
        Schedule {
            process: 0,
            seed: 1,
            warmup: 1,
            min_blocks: 20,
            max_seconds: 5.0,
        }
    }

    #[test]
    fn complete_blocks_in_changing_order_until_decided() {
        let mut fake = Fake {
            calls: 0,
            slow_call: None,
        };
        let mut blocks = Vec::new();
        let outcome = run(&mut fake, &lineup(&["a", "b", "c"]), &schedule(), |b| {
            blocks.push(b.clone())
        })
        .unwrap();
        assert_eq!(outcome.decision, "decided");
        assert_eq!(outcome.blocks as usize, blocks.len());
        assert!(blocks.len() >= 20);
        assert!(blocks.iter().all(|b| b.samples.len() == 4));
        let order = |b: &Block| -> Vec<(String, u32)> {
            let name = |s: &Sample| (s.contender.to_string(), s.arm);
            b.samples.iter().map(name).collect()
        };
        assert!(blocks.iter().any(|b| order(b) != order(&blocks[0])));
    }

    #[test]
    fn a_throttled_sample_is_taken_again() {
        let mut fake = Fake {
            calls: 0,
            slow_call: Some(30),
        };
        let mut clocks = Vec::new();
        let outcome = run(&mut fake, &lineup(&["a", "b", "c"]), &schedule(), |b| {
            clocks.extend(b.samples.iter().filter_map(|s| s.clock_mhz));
        })
        .unwrap();
        assert_eq!(outcome.retaken, 1);
        assert!(clocks.iter().all(|&c| c == 1700.0));
    }
}
