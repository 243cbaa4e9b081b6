use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::contenders::{TimedContender, TimedContenders};
use crate::backend::RunFailure;
use crate::validate::Passed;
use crate::worker::MeasureJob;
use dgx_core::domain::{Block, ContenderId, Micros, Sample};
use dgx_core::stats::decision::{Rule, decide};
use dgx_core::stats::{Sampled, Tally};

/// A sample at less than this share of the usual clock was throttled.
const THROTTLED: f64 = 0.75;
/// How often a throttled sample is retaken before it is kept.
const RETAKES: u32 = 3;
/// The pause for a throttled device.
const RECOVERY: Duration = Duration::from_millis(50);
/// Blocks between two checks of the decision.
const STRIDE: u32 = 5;

/// Times one call of a proof's subject.
pub(super) trait Stopwatch {
    fn sample(&mut self, passed: Passed) -> Result<Reading, RunFailure>;

    /// Times the kernels of a proof's subject, once all are timed. The result changes no time and
    /// no verdict.
    fn dissect(&mut self, _passed: Passed) {}
}

/// The result of one timed call.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    pub micros: Micros,
    /// The SM clock, if it could be read.
    pub clock_mhz: Option<f64>,
    /// The proof for the next call; `None` if this one was found wrong.
    pub proof: Option<Passed>,
}

/// One entry of a block.
#[derive(Clone, Copy, Debug)]
struct BlockEntry {
    lane: usize,
    /// 0, or 1 for the baseline's second entry.
    arm: u32,
}

/// Every lane, and once more those that are entered twice.
fn arms(lanes: &[TimedContender]) -> Vec<BlockEntry> {
    let entries = |lane: &TimedContender| if lane.twice { 2 } else { 1 };
    let lanes = lanes.iter().enumerate();
    lanes
        .flat_map(|(place, lane)| {
            (0..entries(lane)).map(move |arm| BlockEntry { lane: place, arm })
        })
        .collect()
}

/// How measuring a shape in one process ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub blocks: u32,
    /// `decided`, or what is still open.
    pub decision: String,
    /// Samples retaken because the clock had dropped.
    pub retaken: u32,
    pub seconds: f64,
}

/// Takes blocks of all lanes until the minimum is reached, then of the contested ones, until every
/// pair is decided or time is up. A contender that is found wrong is not timed again. `emit` gets
/// each block as it is finished.
pub(super) fn run(
    stopwatch: &mut dyn Stopwatch,
    TimedContenders { shape, lanes }: TimedContenders,
    job: &MeasureJob,
    mut emit: impl FnMut(&Block),
) -> Result<Outcome, (ContenderId, RunFailure)> {
    let began = Instant::now();
    let settings = &job.settings;
    // By number, as in the statistics.
    let all = arms(&lanes);
    let mut taking = Sampler {
        stopwatch,
        lanes,
        clocks: Vec::new(),
        retaken: 0,
    };
    for _ in 0..job.warmup {
        for &arm in all.iter().filter(|arm| arm.arm == 0) {
            taking.sample(arm)?;
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(settings.data_seed() ^ u64::from(job.process) << 32);
    let mut tally = Tally::new(1);
    let mut active: Vec<usize> = (0..all.len()).collect();
    let decision = loop {
        active.shuffle(&mut rng);
        let (timed, samples) = taking.block(&all, &active)?;
        if samples.is_empty() {
            break "no contender is left to time".to_owned();
        }
        let block = Block {
            shape: shape.clone(),
            process: job.process,
            block: tally.blocks() as u32,
            // The supervisor fills in the card.
            card: None,
            samples,
        };
        emit(&block);
        tally.add(0, job.process, &sampled(&timed, &block.samples));
        let count = tally.blocks() as u32;
        let seconds = began.elapsed().as_secs_f64();
        let over = seconds >= settings.seconds();
        let enough = count >= settings.share() || (over && count >= 2);
        if !enough || !(over || count.is_multiple_of(STRIDE)) {
            continue;
        }
        let decision = decide(&tally, &taking.standing(&all), &Rule::default());
        if decision.decided() || over {
            break decision.summary(seconds / f64::from(count));
        }
        // Both arms of a contender, so that the control continues.
        let contested = decision.contested();
        let same = |a: usize, b: usize| all[a].lane == all[b].lane;
        active = (0..all.len())
            .filter(|&arm| contested.iter().any(|&c| same(arm, c)))
            .collect();
    };
    for lane in &mut taking.lanes {
        if let Some(passed) = lane.proof.take() {
            taking.stopwatch.dissect(passed);
        }
    }
    Ok(Outcome {
        blocks: tally.blocks() as u32,
        decision,
        retaken: taking.retaken,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// A block for the statistics, with its arms by number.
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
struct Sampler<'a> {
    stopwatch: &'a mut dyn Stopwatch,
    lanes: Vec<TimedContender>,
    /// Every clock read so far, sorted.
    clocks: Vec<f64>,
    retaken: u32,
}

impl Sampler<'_> {
    /// One block over these arms: those that were timed, and their samples.
    fn block(
        &mut self,
        all: &[BlockEntry],
        active: &[usize],
    ) -> Result<(Vec<usize>, Vec<Sample>), (ContenderId, RunFailure)> {
        let (mut timed, mut samples) = (Vec::new(), Vec::new());
        for &arm in active {
            if let Some(sample) = self.sample(all[arm])? {
                timed.push(arm);
                samples.push(sample);
            }
        }
        Ok((timed, samples))
    }

    /// The first arms of contenders that are still right.
    fn standing(&self, all: &[BlockEntry]) -> Vec<usize> {
        let right = |arm: &BlockEntry| self.lanes[arm.lane].proof.is_some();
        let first = |arm: &usize| all[*arm].arm == 0 && right(&all[*arm]);
        (0..all.len()).filter(first).collect()
    }

    /// `None` if the lane was found wrong before.
    fn sample(
        &mut self,
        BlockEntry { lane, arm }: BlockEntry,
    ) -> Result<Option<Sample>, (ContenderId, RunFailure)> {
        let mut taken = None;
        for tries in 0..=RETAKES {
            let lane = &mut self.lanes[lane];
            let Some(passed) = lane.proof.take() else {
                break;
            };
            let reading = self
                .stopwatch
                .sample(passed)
                .map_err(|failure| (lane.contender.clone(), failure))?;
            lane.proof = reading.proof;
            taken = Some(Sample {
                contender: lane.contender.clone(),
                arm,
                micros: reading.micros,
                clock_mhz: reading.clock_mhz,
            });
            if !self.throttled(reading.clock_mhz) || tries == RETAKES {
                break;
            }
            self.retaken += 1;
            std::thread::sleep(RECOVERY);
        }
        Ok(taken)
    }

    /// Whether the clock had dropped, compared with all earlier readings.
    fn throttled(&mut self, clock_mhz: Option<f64>) -> bool {
        let Some(clock) = clock_mhz else {
            return false;
        };
        let usual = self.clocks.get(self.clocks.len() / 2).copied();
        let at = self.clocks.partition_point(|&c| c < clock);
        self.clocks.insert(at, clock);
        usual.is_some_and(|usual| clock < THROTTLED * usual)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::RngExt;

    use super::super::contenders::tests::timed;
    use super::*;

    /// One call: its time, its clock, whether its output was right.
    type Call = (f64, f64, bool);

    /// Answers by contender and number of earlier calls.
    struct Script<F> {
        calls: u32,
        announced: Vec<String>,
        answer: F,
    }

    impl<F: FnMut(&str, u32) -> Result<Call, RunFailure>> Stopwatch for Script<F> {
        fn sample(&mut self, passed: Passed) -> Result<Reading, RunFailure> {
            let name = passed.subject().contender.as_str().to_owned();
            let (micros, clock, right) = (self.answer)(&name, self.calls)?;
            self.calls += 1;
            self.announced.push(name);
            Ok(Reading {
                micros: Micros(micros),
                clock_mhz: Some(clock),
                proof: passed.spend(!right).renewed().ok(),
            })
        }
    }

    /// The result of a run: how it ended, its blocks, and the order of calls.
    struct BlockRun {
        ended: Result<Outcome, (ContenderId, RunFailure)>,
        blocks: Vec<Block>,
        announced: Vec<String>,
    }

    fn ran(
        job: &MeasureJob,
        answer: impl FnMut(&str, u32) -> Result<Call, RunFailure>,
    ) -> BlockRun {
        let mut script = Script {
            calls: 0,
            announced: Vec::new(),
            answer,
        };
        let mut blocks = Vec::new();
        let timed = timed(&["a", "b", "c"]);
        let ended = run(&mut script, timed, job, |b| blocks.push(b.clone()));
        BlockRun {
            ended,
            blocks,
            announced: script.announced,
        }
    }

    /// Contenders a, b and c take 100, 90 and 80 µs with a little noise.
    fn plain(name: &str, call: u32) -> Call {
        let base = match name {
            "a" => 100.0,
            "b" => 90.0,
            _ => 80.0,
        };
        (base * noise(call), 1700.0, true)
    }

    fn noise(call: u32) -> f64 {
        1.0 + 1e-3 * f64::from((call + 1) * 7919 % 11 % 5)
    }

    fn order(block: &Block) -> Vec<(String, u32)> {
        let arm = |s: &Sample| (s.contender.to_string(), s.arm);
        block.samples.iter().map(arm).collect()
    }

    fn names(block: &Block) -> BTreeSet<&str> {
        block.samples.iter().map(|s| s.contender.as_str()).collect()
    }

    #[test]
    fn complete_blocks_in_random_order_until_decided() {
        let BlockRun {
            ended,
            blocks,
            announced,
        } = ran(&MeasureJob::sample(), |name, call| Ok(plain(name, call)));
        let outcome = ended.unwrap();
        assert_eq!(outcome.decision, "decided");
        assert_eq!((outcome.blocks, blocks.len()), (20, 20));
        let arms = |of: [(&str, u32); 4]| BTreeSet::from(of.map(|(n, a)| (n.to_owned(), a)));
        let whole = arms([("a", 0), ("a", 1), ("b", 0), ("c", 0)]);
        for (place, block) in blocks.iter().enumerate() {
            assert_eq!(block.block as usize, place);
            assert_eq!(order(block).into_iter().collect::<BTreeSet<_>>(), whole);
        }
        // Warm-ups come first, once for each contender; then in the order of the blocks.
        let samples = blocks.iter().flat_map(|b| &b.samples);
        let sampled = samples.map(|s| s.contender.to_string());
        assert_eq!(announced[..3], ["a", "b", "c"]);
        assert_eq!(announced[3..], sampled.collect::<Vec<_>>());
        // Every contender occurs in every place.
        for place in 0..4 {
            let there: BTreeSet<_> = blocks.iter().map(|b| order(b)[place].clone()).collect();
            assert_eq!(there, whole, "place {place}");
        }
    }

    #[test]
    fn the_order_is_the_seeds_and_the_processes() {
        let orders = |process, seed| -> Vec<_> {
            let mut job = MeasureJob {
                process,
                ..MeasureJob::sample()
            };
            job.settings.seed = seed;
            let ran = ran(&job, |name, call| Ok(plain(name, call)));
            ran.blocks.iter().map(order).collect()
        };
        assert_eq!(orders(0, 1), orders(0, 1));
        assert_ne!(orders(0, 1), orders(1, 1));
        assert_ne!(orders(0, 1), orders(0, 2));
    }

    /// b and c are nearly equal and scatter, a is clearly different.
    fn close(name: &str, call: u32) -> Call {
        let draw: f64 = ChaCha8Rng::seed_from_u64(u64::from(call)).random();
        let scatter = 1.0 + 0.06 * (draw - 0.5);
        match name {
            "a" => (200.0 * scatter, 1700.0, true),
            "b" => (100.0 * scatter, 1700.0, true),
            _ => (100.6 * scatter, 1700.0, true),
        }
    }

    #[test]
    fn after_the_minimum_only_contested_pairs_are_timed() {
        let BlockRun { ended, blocks, .. } =
            ran(&MeasureJob::sample(), |name, call| Ok(close(name, call)));
        assert_eq!(ended.unwrap().decision, "decided");
        let (before, after) = blocks.split_at(20);
        assert!(before.iter().all(|b| b.samples.len() == 4));
        assert!(!after.is_empty());
        let pair = BTreeSet::from(["b", "c"]);
        assert!(after.iter().all(|b| names(b) == pair), "{after:?}");
    }

    #[test]
    fn a_contested_baseline_goes_on_with_both_its_arms() {
        let swapped = |name: &str, call| match name {
            "a" => close("b", call),
            "b" => close("a", call),
            _ => close("c", call),
        };
        let BlockRun { blocks, .. } =
            ran(&MeasureJob::sample(), |name, call| Ok(swapped(name, call)));
        assert!(blocks.len() > 20);
        for block in &blocks[20..] {
            let arms: BTreeSet<_> = order(block).into_iter().collect();
            let wanted = [("a", 0), ("a", 1), ("c", 0)].map(|(n, a)| (n.to_owned(), a));
            assert_eq!(arms, BTreeSet::from(wanted));
        }
    }

    #[test]
    fn time_that_is_up_ends_it_with_what_is_open() {
        let mut short = MeasureJob::sample();
        (short.settings.max_seconds, short.settings.min_blocks) = (0.15, 1000);
        let slow = |name: &str, call| {
            std::thread::sleep(Duration::from_millis(4));
            Ok(close(name, call))
        };
        let BlockRun { ended, blocks, .. } = ran(&short, slow);
        let outcome = ended.unwrap();
        assert!((2..=12).contains(&blocks.len()), "{}", blocks.len());
        assert!(outcome.decision.starts_with("unresolved: "), "{outcome:?}");
        // There are at least two blocks, however little time.
        short.settings.max_seconds = 0.0;
        let ran = ran(&short, |name, call| Ok(plain(name, call)));
        assert_eq!(ran.blocks.len(), 2);
    }

    #[test]
    fn a_throttled_sample_is_taken_again() {
        let BlockRun { ended, blocks, .. } = ran(&MeasureJob::sample(), |name, call| {
            let (micros, _, right) = plain(name, call);
            Ok(match call {
                30 => (3.0 * micros, 800.0, right),
                _ => (micros, 1700.0, right),
            })
        });
        assert_eq!(ended.unwrap().retaken, 1);
        let samples: Vec<&Sample> = blocks.iter().flat_map(|b| &b.samples).collect();
        assert!(samples.iter().all(|s| s.clock_mhz == Some(1700.0)));
        assert!(samples.iter().all(|s| s.micros.0 < 110.0));
    }

    #[test]
    fn a_clock_that_stays_low_is_taken_as_it_is() {
        // Three retakes for the first, and the others are as low.
        let BlockRun { ended, blocks, .. } = ran(&MeasureJob::sample(), |name, call| {
            let (micros, _, right) = plain(name, call);
            let clock = if (40..44).contains(&call) {
                1200.0
            } else {
                1700.0
            };
            Ok((micros, clock, right))
        });
        let outcome = ended.unwrap();
        assert_eq!((outcome.retaken, outcome.blocks), (3, 20));
        let low = |s: &&Sample| s.clock_mhz == Some(1200.0);
        let kept = blocks.iter().flat_map(|b| &b.samples).filter(low);
        assert_eq!(kept.count(), 1);
        // Less than a quarter below the usual is not throttling.
        let BlockRun { ended, .. } = ran(&MeasureJob::sample(), |name, call| {
            let clock = if call == 30 { 1300.0 } else { 1700.0 };
            Ok((plain(name, call).0, clock, true))
        });
        assert_eq!(ended.unwrap().retaken, 0);
    }

    #[test]
    fn who_is_found_wrong_is_not_timed_again() {
        let wrong = |who: &'static str| {
            let mut calls = 0;
            move |name: &str, call| {
                let (micros, clock, _) = plain(name, call);
                calls += u32::from(name == who);
                Ok((micros, clock, name != who || calls < 8))
            }
        };
        let BlockRun {
            ended,
            blocks,
            announced,
        } = ran(&MeasureJob::sample(), wrong("b"));
        assert_eq!(ended.unwrap().decision, "decided");
        assert_eq!(announced.iter().filter(|name| *name == "b").count(), 8);
        assert_eq!(blocks.len(), 20);
        assert_eq!(names(&blocks[19]), BTreeSet::from(["a", "c"]));
        // The baseline's other arm is removed too.
        let BlockRun {
            announced, blocks, ..
        } = ran(&MeasureJob::sample(), wrong("a"));
        assert_eq!(announced.iter().filter(|name| *name == "a").count(), 8);
        assert_eq!(names(&blocks[19]), BTreeSet::from(["b", "c"]));
        let nobody = ran(&MeasureJob::sample(), |name, call| {
            let (micros, clock, _) = plain(name, call);
            Ok((micros, clock, false))
        });
        assert_eq!(
            nobody.ended.unwrap().decision,
            "no contender is left to time"
        );
        assert_eq!((nobody.blocks.len(), nobody.announced.len()), (0, 3));
    }

    #[test]
    fn a_failure_says_whose_it_is_and_blocks_before_it_are_kept() {
        let BlockRun { ended, blocks, .. } =
            ran(&MeasureJob::sample(), |name, call| match (name, call) {
                ("c", 30..) => Err(RunFailure::crashed("illegal address")),
                _ => Ok(plain(name, call)),
            });
        let (who, failure) = ended.unwrap_err();
        assert_eq!((who.as_str(), failure.fatal), ("c", true));
        assert!((6..=8).contains(&blocks.len()), "{}", blocks.len());
    }
}
