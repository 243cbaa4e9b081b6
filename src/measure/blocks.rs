use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::backend::RunFailure;
use crate::domain::{ContenderId, Micros};
use crate::record::schema::{Block, Sample};
use crate::stats::decision::{Rule, decide};
use crate::validate::Passed;

/// A sample at less than this share of the usual clock was throttled.
const THROTTLED: f64 = 0.75;
/// How often a throttled sample is taken again before it is kept as it is.
const RETAKES: u32 = 3;
/// Blocks between two looks at what is decided.
const STRIDE: u32 = 5;

/// One entry of a block.
#[derive(Clone, Debug)]
pub struct Lane {
    pub contender: ContenderId,
    /// 0, or 1 for the baseline's second entry.
    pub arm: u32,
    /// Which thing the stopwatch times.
    pub entry: usize,
}

impl Lane {
    /// A contender that was validated.
    pub fn contender(passed: &Passed, entry: usize) -> Self {
        Self {
            contender: passed.contender().clone(),
            arm: 0,
            entry,
        }
    }

    /// The same contender a second time: the A/A arm.
    pub fn again(&self) -> Self {
        Self {
            arm: 1,
            ..self.clone()
        }
    }

    /// The yardstick, which is the harness's own and not a contender.
    pub fn yardstick(name: ContenderId, entry: usize) -> Self {
        Self {
            contender: name,
            arm: 0,
            entry,
        }
    }
}

/// How much to measure in this process.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub shape: String,
    pub process: u32,
    pub seed: u64,
    pub warmup: u32,
    pub min_blocks: u32,
    pub max_seconds: f64,
}

/// Times one entry once.
pub trait Stopwatch {
    /// The time, and the SM clock where it could be read.
    fn sample(&mut self, entry: usize) -> Result<(Micros, Option<f64>), RunFailure>;
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
pub fn run(
    stopwatch: &mut dyn Stopwatch,
    lanes: &[Lane],
    schedule: &Schedule,
    mut emit: impl FnMut(&Block),
) -> Result<Outcome, (ContenderId, RunFailure)> {
    let began = Instant::now();
    let mut taking = Taking {
        stopwatch,
        clocks: Vec::new(),
        retaken: 0,
    };
    for _ in 0..schedule.warmup {
        for lane in lanes.iter().filter(|l| l.arm == 0) {
            taking.sample(lane)?;
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(schedule.seed ^ u64::from(schedule.process) << 32);
    let contenders: Vec<ContenderId> = lanes
        .iter()
        .filter(|l| l.arm == 0)
        .map(|l| l.contender.clone())
        .collect();
    let mut blocks: Vec<Block> = Vec::new();
    let mut active = lanes.to_vec();
    let decision = loop {
        active.shuffle(&mut rng);
        let samples = active
            .iter()
            .map(|lane| taking.sample(lane))
            .collect::<Result<_, _>>()?;
        let block = Block {
            shape: schedule.shape.clone(),
            process: schedule.process,
            block: blocks.len() as u32,
            samples,
        };
        emit(&block);
        blocks.push(block);
        let count = blocks.len() as u32;
        let seconds = began.elapsed().as_secs_f64();
        let over = seconds >= schedule.max_seconds;
        if count < schedule.min_blocks && !(over && count >= 2) {
            continue;
        }
        if !over && !count.is_multiple_of(STRIDE) {
            continue;
        }
        let decision = decide(&blocks, &contenders, &Rule::default());
        if decision.decided() || over {
            break decision.summary(seconds / f64::from(count));
        }
        let contested = decision.contested();
        active = lanes
            .iter()
            .filter(|l| contested.contains(&&l.contender))
            .cloned()
            .collect();
    };
    Ok(Outcome {
        blocks: blocks.len() as u32,
        decision,
        retaken: taking.retaken,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Takes samples and watches the clock.
struct Taking<'a> {
    stopwatch: &'a mut dyn Stopwatch,
    /// Every clock read so far, sorted.
    clocks: Vec<f64>,
    retaken: u32,
}

impl Taking<'_> {
    fn sample(&mut self, lane: &Lane) -> Result<Sample, (ContenderId, RunFailure)> {
        let mut tries = 0;
        loop {
            let (micros, clock_mhz) = self
                .stopwatch
                .sample(lane.entry)
                .map_err(|failure| (lane.contender.clone(), failure))?;
            let sample = Sample {
                contender: lane.contender.clone(),
                arm: lane.arm,
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

    /// Entry i takes `base[i]` µs with a little noise.
    struct Fake {
        base: Vec<f64>,
        calls: u32,
        slow_call: Option<u32>,
    }

    impl Stopwatch for Fake {
        fn sample(&mut self, entry: usize) -> Result<(Micros, Option<f64>), RunFailure> {
            self.calls += 1;
            let noise = 1.0 + 1e-3 * f64::from(self.calls * 7919 % 11 % 5);
            let clock = if Some(self.calls) == self.slow_call {
                800.0
            } else {
                1700.0
            };
            Ok((Micros(self.base[entry] * noise), Some(clock)))
        }
    }

    fn lanes() -> Vec<Lane> {
        let lane = |name: &str, entry| Lane::yardstick(ContenderId::from_text(name), entry);
        let first = lane("a", 0);
        vec![first.again(), first, lane("b", 1), lane("c", 2)]
    }

    fn schedule() -> Schedule {
        Schedule {
            shape: "s".to_owned(),
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
            base: vec![100.0, 90.0, 80.0],
            calls: 0,
            slow_call: None,
        };
        let mut blocks = Vec::new();
        let outcome = run(&mut fake, &lanes(), &schedule(), |b| blocks.push(b.clone())).unwrap();
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
            base: vec![100.0, 90.0, 80.0],
            calls: 0,
            slow_call: Some(30),
        };
        let mut clocks = Vec::new();
        let outcome = run(&mut fake, &lanes(), &schedule(), |b| {
            clocks.extend(b.samples.iter().filter_map(|s| s.clock_mhz));
        })
        .unwrap();
        assert_eq!(outcome.retaken, 1);
        assert!(clocks.iter().all(|&c| c == 1700.0));
    }
}
