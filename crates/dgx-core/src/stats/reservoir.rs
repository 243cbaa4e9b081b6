use super::outliers;
use super::tally::Sampled;

/// Maximum number of samples of a cell that are kept for medians, outliers and plots.
const KEPT: usize = 2048;

/// A cell's samples, or, if there are many, a uniform selection of them. The same file always keeps
/// the same ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reservoir {
    seen: u64,
    kept: Vec<KeptSample>,
}

/// One of the kept samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptSample {
    /// ln(µs).
    pub log: f32,
    pub clock_mhz: Option<f32>,
    /// Which process took it.
    pub process: u32,
    /// Its number among all samples of the cell, in the order of the file.
    pub number: u32,
}

impl Reservoir {
    pub(super) fn add(&mut self, process: u32, sample: &Sampled) {
        self.seen += 1;
        let entry = KeptSample {
            log: sample.log as f32,
            clock_mhz: sample.clock_mhz.map(|c| c as f32),
            process,
            number: u32::try_from(self.seen).unwrap_or(u32::MAX),
        };
        if self.kept.len() < KEPT {
            self.kept.push(entry);
        } else if let Some(place) = self.kept.get_mut(draw(self.seen) as usize) {
            *place = entry;
        }
    }

    /// How many there were in all.
    pub fn seen(&self) -> usize {
        self.seen as usize
    }

    /// Whether some were dropped.
    pub fn chosen(&self) -> bool {
        self.seen > KEPT as u64
    }

    /// ln(µs) of the kept ones.
    pub fn logs(&self) -> impl Iterator<Item = f64> + '_ {
        self.kept.iter().map(|kept| f64::from(kept.log))
    }

    /// The kept ones, process by process in the order they were taken.
    pub fn in_order(&self) -> Vec<KeptSample> {
        let mut kept = self.kept.clone();
        kept.sort_by_key(|kept| (kept.process, kept.number));
        kept
    }

    /// Far outliers: all of them counted, or scaled up from the kept ones.
    pub fn outliers(&self) -> usize {
        let logs: Vec<f64> = self.logs().collect();
        let share = outliers(&logs) as f64 / logs.len().max(1) as f64;
        (share * self.seen as f64).round() as usize
    }

    /// Median SM clock, if it was read.
    pub fn clock_mhz(&self) -> Option<f64> {
        let mut clocks: Vec<f32> = self.kept.iter().filter_map(|kept| kept.clock_mhz).collect();
        clocks.sort_by(f32::total_cmp);
        clocks.get(clocks.len() / 2).copied().map(f64::from)
    }
}

/// A number in 0..n that depends on n alone (SplitMix64, multiply and shift).
fn draw(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservoir(logs: impl Iterator<Item = f64>) -> Reservoir {
        let mut reservoir = Reservoir::default();
        for (number, log) in logs.enumerate() {
            let (arm, clock_mhz) = (0, Some(1000.0 + log));
            let sample = Sampled {
                arm,
                log,
                clock_mhz,
            };
            reservoir.add(number as u32 % 2, &sample);
        }
        reservoir
    }

    #[test]
    fn few_samples_are_all_kept() {
        let few = reservoir((0..100).map(f64::from));
        assert!(!few.chosen() && few.seen() == 100);
        assert!(few.logs().eq((0..100).map(f64::from)));
        let ordered: Vec<f32> = few.in_order().iter().map(|kept| kept.log).collect();
        assert_eq!((ordered[1], ordered[49], ordered[50]), (2.0, 98.0, 1.0));
        assert_eq!(few.clock_mhz(), Some(1050.0));
        assert_eq!(few.outliers(), 0);
    }

    #[test]
    fn a_choice_of_many_is_fair() {
        // One in a hundred stalls.
        let stalls = |i: u32| {
            if i % 100 == 99 {
                5.0
            } else {
                f64::from(i % 7) / 100.0
            }
        };
        let many = reservoir((0..200_000).map(stalls));
        assert!(many.chosen() && many.logs().count() == KEPT);
        assert!(
            (1400..2600).contains(&many.outliers()),
            "{}",
            many.outliers()
        );
        let place = reservoir((0..200_000).map(f64::from));
        let mean = place.logs().sum::<f64>() / KEPT as f64;
        assert!((mean - 100_000.0).abs() < 5_000.0, "{mean}");
    }
}
