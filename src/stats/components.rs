//! What scatters: blocks within a process, and processes. The bootstrap
//! resamples effects and residuals that are scaled here, so that it reproduces
//! an unbiased variance; resampling the raw values would count block noise
//! twice and see too little of what lies between few processes.

use super::Contrast;

/// From this many on, each process counts as one observation, and Student's t
/// over processes needs no assumption about what they do. With fewer, t would
/// be too wide to be of use (12.7 standard errors for two), and the ratio of
/// the two variances is pooled over the shapes instead.
pub(super) const PROCESSES: usize = 4;

/// Few processes can agree by luck. Their variance is not taken to be less
/// than this share of what the scatter of their blocks alone explains.
const FLOOR: f64 = 0.2;

/// Factors on process effects and on residuals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub effects: f64,
    pub residuals: f64,
}

/// One shape's contrast, taken apart for resampling.
pub(super) struct Parts {
    pub mean: f64,
    pub blocks: usize,
    /// What each process differs from the mean by.
    pub effects: Vec<f64>,
    /// Residual samples of each block of each process.
    pub residuals: Vec<Vec<Vec<f64>>>,
    pub scale: Scale,
    /// Of the mean, in closed form; `None` where one block is all there is.
    pub variance: Option<f64>,
    pub df: f64,
}

/// All shapes of one comparison, and their mean.
pub(super) struct Components {
    pub shapes: Vec<Parts>,
    /// Processes count alike, however many blocks they have.
    pub by_process: bool,
    /// Applied to the mean over the shapes.
    pub scale: Scale,
    pub variance: Option<f64>,
    pub df: f64,
}

impl Components {
    /// `None` when there are no shapes, or a shape has no values.
    pub fn of(contrasts: &[Contrast]) -> Option<Self> {
        let layouts: Vec<Layout> = contrasts.iter().map(Layout::of).collect::<Option<_>>()?;
        let fewest = layouts.iter().map(|l| l.means.len()).min()?;
        Some(if fewest >= PROCESSES {
            by_process(contrasts, &layouts, fewest)
        } else {
            by_block(contrasts, &layouts)
        })
    }
}

/// A one-way layout with processes as classes.
struct Layout {
    /// Block counts and means of the processes.
    counts: Vec<f64>,
    means: Vec<f64>,
    /// Sums of squares about each process's mean.
    squares: Vec<f64>,
    blocks: f64,
}

impl Layout {
    fn of(contrast: &Contrast) -> Option<Self> {
        let block_means: Vec<Vec<f64>> = contrast
            .processes
            .iter()
            .map(|p| p.blocks.iter().map(|b| mean(b)).collect())
            .collect();
        let counts: Vec<f64> = block_means.iter().map(|b| b.len() as f64).collect();
        let means: Vec<f64> = block_means.iter().map(|b| mean(b)).collect();
        let about = |(blocks, m): (&Vec<f64>, &f64)| blocks.iter().map(|x| (x - m).powi(2)).sum();
        let squares = block_means.iter().zip(&means).map(about).collect();
        let blocks: f64 = counts.iter().sum();
        (blocks >= 1.0).then_some(Self {
            counts,
            means,
            squares,
            blocks,
        })
    }

    fn between_df(&self) -> f64 {
        self.means.len() as f64 - 1.0
    }

    fn within_df(&self) -> f64 {
        self.blocks - self.means.len() as f64
    }

    /// Mean square within processes; 0 where every process has one block.
    fn within(&self) -> f64 {
        match self.within_df() {
            df if df > 0.0 => self.squares.iter().sum::<f64>() / df,
            _ => 0.0,
        }
    }

    /// The mean over all blocks.
    fn grand(&self) -> f64 {
        let pairs = self.means.iter().zip(&self.counts);
        pairs.map(|(m, n)| m * n).sum::<f64>() / self.blocks
    }

    /// Mean square between processes over that within.
    fn f(&self) -> f64 {
        let (df, within, grand) = (self.between_df(), self.within(), self.grand());
        let pairs = self.means.iter().zip(&self.counts);
        let between: f64 = pairs.map(|(m, n)| n * (m - grand).powi(2)).sum();
        if df > 0.0 && within > 0.0 {
            between / df / within
        } else {
            1.0
        }
    }

    /// Effective blocks per process.
    fn n0(&self) -> f64 {
        let squares: f64 = self.counts.iter().map(|n| n * n).sum();
        match self.between_df() {
            df if df > 0.0 => (self.blocks - squares / self.blocks) / df,
            _ => self.blocks,
        }
    }

    /// Variance of the mean of process means that block noise alone explains.
    fn noise(&self) -> f64 {
        let each = self.squares.iter().zip(&self.counts);
        let noise = each.map(|(ss, n)| if *n > 1.0 { ss / (n - 1.0) / n } else { 0.0 });
        noise.sum::<f64>() / (self.means.len() as f64).powi(2)
    }
}

/// Each process gives one number per shape, and their mean one for the
/// geometric mean: independent draws, whatever a process does to its blocks
/// or to all shapes at once, and however long it went on sampling.
fn by_process(contrasts: &[Contrast], layouts: &[Layout], fewest: usize) -> Components {
    let shapes: Vec<Parts> = contrasts
        .iter()
        .zip(layouts)
        .map(|(contrast, layout)| {
            let centre = mean(&layout.means);
            let effects: Vec<f64> = layout.means.iter().map(|m| m - centre).collect();
            let (variance, scale) = matched(&effects, layout.noise());
            let unbiased = |p: usize| match layout.counts[p] {
                n if n > 1.0 => (n / (n - 1.0)).sqrt(),
                _ => 0.0,
            };
            Parts {
                mean: centre,
                blocks: contrast.block_count(),
                residuals: residuals(contrast, layout, unbiased),
                scale,
                variance: Some(variance),
                df: effects.len() as f64 - 1.0,
                effects,
            }
        })
        .collect();
    let count = shapes.len() as f64;
    let common = |p| shapes.iter().map(|s| s.effects[p]).sum::<f64>() / count;
    let effects: Vec<f64> = (0..fewest).map(common).collect();
    let noise = layouts.iter().map(Layout::noise).sum::<f64>() / count.powi(2);
    let (variance, scale) = matched(&effects, noise);
    Components {
        shapes,
        by_process: true,
        scale,
        variance: Some(variance),
        df: fewest as f64 - 1.0,
    }
}

/// The variance of a mean of these process effects, and the scale at which
/// resampling effects and residuals reproduces it.
fn matched(effects: &[f64], noise: f64) -> (f64, Scale) {
    let count = effects.len() as f64;
    let centre = mean(effects);
    let squares: f64 = effects.iter().map(|e| (e - centre).powi(2)).sum();
    let variance = (squares / (count - 1.0) / count).max(FLOOR * noise);
    let drawn = squares / count.powi(2);
    let scale = if variance > noise {
        Scale {
            effects: ((variance - noise) / drawn).sqrt(),
            residuals: 1.0,
        }
    } else {
        let residuals = if noise > 0.0 {
            (variance / noise).sqrt()
        } else {
            0.0
        };
        Scale {
            effects: 0.0,
            residuals,
        }
    };
    (variance, scale)
}

/// Blocks are the observations; how much more the process means scatter than
/// block noise explains is pooled over the shapes.
fn by_block(contrasts: &[Contrast], layouts: &[Layout]) -> Components {
    let (f, f_df) = pooled_f(layouts);
    let share = (f - 1.0) / f;
    let shapes: Vec<Parts> = contrasts
        .iter()
        .zip(layouts)
        .map(|(contrast, layout)| {
            let (grand, within) = (layout.grand(), layout.within());
            let target = (f - 1.0) * within / layout.n0();
            let pairs = layout.means.iter().zip(&layout.counts);
            let spread = pairs.map(|(m, n)| n * (m - grand).powi(2)).sum::<f64>() / layout.blocks;
            let scale = if spread > 0.0 {
                (target / spread).sqrt()
            } else {
                0.0
            };
            let unbiased = match layout.within_df() {
                df if df > 0.0 => (layout.blocks / df).sqrt(),
                _ => 1.0,
            };
            Parts {
                mean: grand,
                blocks: contrast.block_count(),
                effects: layout.means.iter().map(|m| m - grand).collect(),
                residuals: residuals(contrast, layout, |_| unbiased),
                scale: Scale {
                    effects: scale,
                    residuals: 1.0,
                },
                variance: (layout.within_df() > 0.0).then_some(within / layout.blocks * f),
                df: degrees(share, f_df, layout.within_df()),
            }
        })
        .collect();
    let variances: Option<Vec<f64>> = shapes.iter().map(|s| s.variance).collect();
    // The mean's share between processes has only the processes themselves as
    // degrees: what they do may be common to all shapes.
    let between_df = layouts.iter().map(Layout::between_df).fold(0.0, f64::max);
    let within_df = layouts.iter().map(Layout::within_df).sum();
    Components {
        by_process: false,
        scale: Scale {
            effects: 1.0,
            residuals: 1.0,
        },
        variance: variances.map(|v| v.iter().sum::<f64>() / (v.len() as f64).powi(2)),
        df: degrees(share, between_df, within_df),
        shapes,
    }
}

fn residuals(
    contrast: &Contrast,
    layout: &Layout,
    factor: impl Fn(usize) -> f64,
) -> Vec<Vec<Vec<f64>>> {
    let processes = contrast.processes.iter().zip(&layout.means).enumerate();
    processes
        .map(|(index, (process, m))| {
            let factor = factor(index);
            let scaled = |b: &Vec<f64>| b.iter().map(|x| (x - m) * factor).collect();
            process.blocks.iter().map(scaled).collect()
        })
        .collect()
}

/// How much more the process means scatter than block noise explains, pooled
/// over the shapes, and its degrees: 1 where processes make no difference.
fn pooled_f(layouts: &[Layout]) -> (f64, f64) {
    let usable = layouts.iter().filter(|l| l.within() > 0.0);
    let (sum, df) = usable.fold((0.0, 0.0), |(sum, df), l| {
        (sum + l.f() * l.between_df(), df + l.between_df())
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

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
