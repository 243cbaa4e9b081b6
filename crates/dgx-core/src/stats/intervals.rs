//! The uncertainty of a mean of log ratios, in closed form: Student's t over the means of
//! processes, or, where these are too few, over blocks with the variance components of both. Every
//! printed interval, and every decision to go on sampling, comes from here.

use super::{LogEstimate, Moments};

/// From this many on, each process counts as one observation, and Student's t over processes needs
/// no assumption about their effects. With fewer, t would be too wide to be useful (12.7 standard
/// errors for two), and the ratio of the two variances is pooled over the shapes instead.
pub(crate) const PROCESSES: usize = 4;

/// Few processes can agree by chance. Their variance is assumed to be at least this share of what
/// the scatter of their blocks alone explains.
const FLOOR: f64 = 0.2;

/// Values of one shape by process, in the order of the processes' ids: a
/// one-way layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contrast {
    /// Each process with the moments of its blocks; none is empty.
    pub processes: Vec<(u32, Moments)>,
}

/// Estimates per shape and for the mean over the shapes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimates {
    pub shapes: Vec<LogEstimate>,
    /// The mean of logs over shapes: the log of the geometric mean.
    pub geomean: LogEstimate,
}

impl Estimates {
    /// `None` when there are no shapes, or a shape has no values.
    pub(crate) fn of(contrasts: &[Contrast]) -> Option<Self> {
        let fewest = contrasts.iter().map(|c| c.processes.len()).min()?;
        match fewest {
            0 => None,
            n if n >= PROCESSES => Some(by_process(contrasts, fewest)),
            _ => Some(by_block(contrasts)),
        }
    }

    /// Of a single shape.
    pub(crate) fn single(contrast: &Contrast) -> Option<LogEstimate> {
        Some(Self::of(std::slice::from_ref(contrast))?.geomean)
    }
}

impl Contrast {
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    fn each(&self) -> impl Iterator<Item = &Moments> + Clone {
        self.processes.iter().map(|(_, moments)| moments)
    }

    fn blocks(&self) -> f64 {
        self.each().map(|m| m.count as f64).sum()
    }

    fn block_count(&self) -> usize {
        self.each().map(|m| m.count as usize).sum()
    }

    /// The mean of the processes' means.
    fn centre(&self) -> f64 {
        self.each().map(|m| m.mean).sum::<f64>() / self.processes.len() as f64
    }

    /// The mean over all blocks.
    fn grand_mean(&self) -> f64 {
        self.each().map(|m| m.mean * m.count as f64).sum::<f64>() / self.blocks()
    }

    fn between_df(&self) -> f64 {
        self.processes.len() as f64 - 1.0
    }

    fn within_df(&self) -> f64 {
        self.blocks() - self.processes.len() as f64
    }

    /// Mean square within processes; 0 if every process has one block.
    fn within(&self) -> f64 {
        match self.within_df() {
            df if df > 0.0 => self.each().map(|m| m.squares).sum::<f64>() / df,
            _ => 0.0,
        }
    }

    /// Mean square between processes over that within.
    fn f(&self) -> f64 {
        let (df, within, grand_mean) = (self.between_df(), self.within(), self.grand_mean());
        let between = |m: &Moments| m.count as f64 * (m.mean - grand_mean).powi(2);
        if df > 0.0 && within > 0.0 {
            self.each().map(between).sum::<f64>() / df / within
        } else {
            1.0
        }
    }

    /// Variance of the mean of process means if their mean square is `f` times that of blocks.
    /// Sampling goes on longer in one process than in another, so each process counts once:
    /// weighted by blocks, a process's effect on all contenders would look like a difference
    /// between them.
    fn variance(&self, f: f64) -> f64 {
        let (count, blocks) = (self.processes.len() as f64, self.blocks());
        let inverse: f64 = self.each().map(|m| 1.0 / m.count as f64).sum();
        let squares: f64 = self.each().map(|m| (m.count as f64).powi(2)).sum();
        // Blocks of a process, as the analysis of variance of an uneven layout counts them.
        let each = match self.between_df() {
            df if df > 0.0 => (blocks - squares / blocks) / df,
            _ => blocks,
        };
        self.within() / count * (inverse / count + (f - 1.0) / each)
    }

    /// The processes, those first that timed every shape: a process's effect on all shapes must be
    /// in one sum. (A lost process is replaced by one of another number.)
    fn led_by(&self, common: &[u32]) -> impl Iterator<Item = &Moments> {
        let all = common.len() == self.processes.len();
        let everywhere = move |id: &u32| all || common.binary_search(id).is_ok();
        let first = self.processes.iter().filter(move |(id, _)| everywhere(id));
        let then = self.processes.iter().filter(move |(id, _)| !everywhere(id));
        first.chain(then).map(|(_, moments)| moments)
    }

    /// Variance of the mean of process means that block noise alone explains.
    fn noise(&self) -> f64 {
        let noise: f64 = self.each().map(Moments::mean_variance).sum();
        noise / (self.processes.len() as f64).powi(2)
    }
}

/// Each process gives one number per shape, and their mean one for the geometric mean: independent
/// draws, whatever the effect of a process on its blocks or on all shapes, and however long it
/// sampled.
fn by_process(contrasts: &[Contrast], fewest: usize) -> Estimates {
    let student = |mean: f64, numbers: Moments, noise: f64, blocks: usize| LogEstimate {
        mean,
        se: Some(numbers.mean_variance().max(FLOOR * noise).sqrt()),
        df: numbers.count as f64 - 1.0,
        blocks,
        processes: numbers.count as usize,
    };
    let one = |contrast: &Contrast| {
        let means: Moments = contrast.each().map(|m| m.mean).collect();
        let blocks = contrast.block_count();
        student(contrast.centre(), means, contrast.noise(), blocks)
    };
    let shapes: Vec<LogEstimate> = contrasts.iter().map(one).collect();
    let count = shapes.len() as f64;
    let mean = shapes.iter().map(|s| s.mean).sum::<f64>() / count;
    let common = common(contrasts);
    let mut sums = vec![0.0; fewest];
    for (contrast, shape) in contrasts.iter().zip(&shapes) {
        let effects = contrast.led_by(&common).map(|m| m.mean - shape.mean);
        sums.iter_mut()
            .zip(effects)
            .for_each(|(sum, effect)| *sum += effect / count);
    }
    let noise = contrasts.iter().map(Contrast::noise).sum::<f64>() / count.powi(2);
    let blocks = shapes.iter().map(|s| s.blocks).sum();
    Estimates {
        geomean: student(mean, sums.into_iter().collect(), noise, blocks),
        shapes,
    }
}

/// Processes that timed every shape, by id.
fn common(contrasts: &[Contrast]) -> Vec<u32> {
    let Some((first, others)) = contrasts.split_first() else {
        return Vec::new();
    };
    let mut common: Vec<u32> = first.processes.iter().map(|(id, _)| *id).collect();
    for other in others {
        if other.processes.iter().map(|(id, _)| id).eq(&common) {
            continue;
        }
        common.retain(|id| {
            other
                .processes
                .binary_search_by_key(id, |(id, _)| *id)
                .is_ok()
        });
    }
    common
}

/// Blocks are the observations; the excess scatter of the process means over block noise is pooled
/// over the shapes.
fn by_block(contrasts: &[Contrast]) -> Estimates {
    let (f, f_df) = pooled_f(contrasts);
    let share = (f - 1.0) / f;
    let one = |contrast: &Contrast| {
        let within_df = contrast.within_df();
        LogEstimate {
            mean: contrast.centre(),
            se: (within_df > 0.0).then_some(contrast.variance(f).sqrt()),
            df: degrees(share, f_df, within_df),
            blocks: contrast.block_count(),
            processes: contrast.processes.len(),
        }
    };
    let shapes: Vec<LogEstimate> = contrasts.iter().map(one).collect();
    let count = shapes.len() as f64;
    let variances: Option<f64> = shapes.iter().map(|s| Some(s.se?.powi(2))).sum();
    // The variance between processes has only the processes themselves as degrees of freedom: their
    // effect may be common to all shapes.
    let between_df = contrasts
        .iter()
        .map(Contrast::between_df)
        .fold(0.0, f64::max);
    let within_df = contrasts.iter().map(Contrast::within_df).sum();
    Estimates {
        geomean: LogEstimate {
            mean: shapes.iter().map(|s| s.mean).sum::<f64>() / count,
            se: variances.map(|sum| sum.sqrt() / count),
            df: degrees(share, between_df, within_df),
            blocks: shapes.iter().map(|s| s.blocks).sum(),
            processes: shapes.iter().map(|s| s.processes).min().unwrap_or(0),
        },
        shapes,
    }
}

/// The scatter of the process means over that explained by block noise, pooled over the shapes, and
/// its degrees: 1 if processes make no difference.
fn pooled_f(contrasts: &[Contrast]) -> (f64, f64) {
    let usable = contrasts.iter().filter(|c| c.within() > 0.0);
    let (sum, df) = usable.fold((0.0, 0.0), |(sum, df), c| {
        (sum + c.f() * c.between_df(), df + c.between_df())
    });
    if df > 0.0 {
        ((sum / df).max(1.0), df)
    } else {
        (1.0, 0.0)
    }
}

/// Satterthwaite's degrees for a variance of which `share` lies between processes.
fn degrees(share: f64, between_df: f64, within_df: f64) -> f64 {
    let between = if share > 0.0 {
        share.powi(2) / between_df.max(1.0)
    } else {
        0.0
    };
    let within = (1.0 - share).powi(2) / within_df.max(1.0);
    1.0 / (between + within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contrast(processes: &[(u32, &[f64])]) -> Contrast {
        let moments = |(id, values): &(u32, &[f64])| (*id, values.iter().copied().collect());
        Contrast {
            processes: processes.iter().map(moments).collect(),
        }
    }

    #[test]
    fn one_block_has_an_estimate_and_no_interval() {
        let one = Estimates::single(&contrast(&[(0, &[0.5])])).unwrap();
        assert_eq!(one.mean, 0.5);
        assert_eq!(one.ratio(0.95).lower, None);
        assert_eq!(one.p_value(), None);
    }

    #[test]
    fn no_values_no_answer() {
        assert!(Estimates::of(&[Contrast::default()]).is_none());
        assert!(Estimates::of(&[]).is_none());
    }

    #[test]
    fn five_processes_are_student_s_t_over_their_means() {
        let means = [1.0, 2.0, 3.0, 4.0, 5.0];
        let blocks: Vec<[f64; 2]> = means.iter().map(|m| [m - 0.5, m + 0.5]).collect();
        let processes: Vec<(u32, &[f64])> = (0..).zip(blocks.iter().map(|b| &b[..])).collect();
        let found = Estimates::single(&contrast(&processes)).unwrap();
        assert_eq!((found.mean, found.df, found.blocks), (3.0, 4.0, 10));
        assert!(
            (found.se.unwrap() - 0.5f64.sqrt()).abs() < 1e-12,
            "{found:?}"
        );
        // t₀.₉₇₅ with four degrees of freedom, from any table.
        let half = found.half_width(0.95).unwrap();
        assert!((half - 2.776_445 * 0.5f64.sqrt()).abs() < 1e-5, "{half}");
    }

    #[test]
    fn processes_that_disagree_widen_the_interval() {
        let calm: &[f64] = &[0.010, 0.012, 0.011, 0.009, 0.010, 0.012];
        let shifted: Vec<f64> = calm.iter().map(|v| v + 0.05).collect();
        let width = |middle: &[f64]| {
            let all = contrast(&[(0, calm), (1, middle), (2, calm)]);
            Estimates::single(&all).unwrap().half_width(0.95).unwrap()
        };
        assert!(width(&shifted) > 10.0 * width(calm));
    }

    /// Two contenders that differ by 1 % in both processes, one of which is slow: how long each was
    /// sampled there makes no difference.
    #[test]
    fn a_slow_process_slows_every_contender_alike() {
        let time = |process: &[(f64, usize)]| {
            let blocks: Vec<Vec<f64>> = process
                .iter()
                .map(|(mean, count)| (0..*count).map(|b| mean + (b % 2) as f64 * 1e-3).collect())
                .collect();
            let processes: Vec<(u32, &[f64])> = (0..).zip(blocks.iter().map(|b| &b[..])).collect();
            Estimates::single(&contrast(&processes)).unwrap()
        };
        let (one, other) = (
            time(&[(2.13, 500), (2.0, 30)]),
            time(&[(2.14, 10), (2.01, 200)]),
        );
        assert!((other.mean - one.mean - 0.01).abs() < 1e-12);
        // An even layout has the variance of its blocks, times the contribution of processes.
        let even = contrast(&[(0, &[1.0, 2.0]), (1, &[5.0, 6.0])]);
        let by_blocks = even.f() * even.within() / even.blocks();
        assert!((even.variance(even.f()) - by_blocks).abs() < 1e-12);
    }

    /// A process that is slow on every shape must count once, even if another shape lost a process
    /// and has a later one in its place.
    #[test]
    fn a_process_meets_itself_on_every_shape() {
        let slow = |id: u32| if id == 3 { [0.1, 0.1] } else { [0.0, 0.0] };
        let shape = |ids: [u32; 5]| {
            let blocks = ids.map(slow);
            let processes: Vec<(u32, &[f64])> =
                ids.into_iter().zip(blocks.iter().map(|b| &b[..])).collect();
            contrast(&processes)
        };
        let se = |all: &[Contrast]| Estimates::of(all).unwrap().geomean.se.unwrap();
        let whole = se(&[shape([0, 1, 2, 3, 4]), shape([0, 1, 2, 3, 4])]);
        let replaced = se(&[shape([0, 1, 2, 3, 4]), shape([0, 2, 3, 4, 9])]);
        assert!((whole - replaced).abs() < 1e-12, "{whole} {replaced}");
    }

    proptest! {
        #[test]
        fn shifting_every_value_shifts_the_interval(
            values in prop::collection::vec(-0.1..0.1f64, 12..40),
            shift in -1.0..1.0f64,
            parts in 1..6usize,
        ) {
            let moved: Vec<f64> = values.iter().map(|v| v + shift).collect();
            let estimate = |values: &[f64]| {
                let size = values.len().div_ceil(parts);
                let processes: Vec<(u32, &[f64])> = (0..).zip(values.chunks(size)).collect();
                Estimates::single(&contrast(&processes)).unwrap()
            };
            let (before, after) = (estimate(&values), estimate(&moved));
            prop_assert!((after.mean - before.mean - shift).abs() < 1e-9);
            prop_assert!((after.se.unwrap() - before.se.unwrap()).abs() < 1e-9);
        }
    }
}
