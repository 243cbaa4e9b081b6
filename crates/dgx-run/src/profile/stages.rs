//! The stages of a launch on the SM that ends last.

use ptx_time::{CtaTimes, Epilogue, LaunchTimes};
use serde::{Deserialize, Serialize};

use dgx_core::domain::Micros;

/// The stage of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Outside all kernels.
    Launch,
    /// Between a CTA's place becoming free and its first instruction.
    Start,
    /// From a CTA's first instruction to its first product.
    Fill,
    /// In the main loop, while the tensor cores work.
    Computing,
    /// In the main loop, the rest of the time.
    Waiting,
    /// All multiplying warps are between the last product and the last store of a tile.
    Epilogue,
    /// In a kernel without products.
    Other,
}

impl Stage {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Launch,
        Self::Start,
        Self::Fill,
        Self::Computing,
        Self::Waiting,
        Self::Epilogue,
        Self::Other,
    ];

    /// Its name, and what it is.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Launch => ("launch", "outside of the kernels"),
            Self::Start => ("start", "before a CTA's first instruction"),
            Self::Fill => ("fill", "to a CTA's first product"),
            Self::Computing => ("computing", "main loop, tensor cores at work"),
            Self::Waiting => ("waiting", "main loop, tensor cores idle"),
            Self::Epilogue => ("epilogue", "after the last product of a tile"),
            Self::Other => ("other work", "kernels without products"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    pub stage: Stage,
    pub micros: Micros,
}

/// A part of a launch, in cycles; the main loop is not divided yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    pub stage: Stage,
    pub from: f64,
    pub to: f64,
}

/// A launch from its first CTA's place to its last CTA's end. If CTAs share the SM, products of one
/// hide the stages of the others.
pub(super) fn phases(times: &LaunchTimes) -> Vec<Phase> {
    let between_tiles: Vec<Vec<(f64, f64)>> = (0..times.ctas.len())
        .map(|cta| between_tiles(times.epilogues.iter().filter(|e| e.cta == cta)))
        .collect();
    let mut cuts = vec![0.0, times.cycles];
    for (cta, between_tiles) in times.ctas.iter().zip(&between_tiles) {
        cuts.extend([cta.start, cta.end]);
        cuts.extend(cta.first_mma.into_iter().chain(cta.last_mma));
        cuts.extend(between_tiles.iter().flat_map(|h| [h.0, h.1]));
    }
    cuts.retain(|cut| (0.0..=times.cycles).contains(cut));
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();
    let mut phases: Vec<Phase> = Vec::new();
    for pair in cuts.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let middle = (from + to) / 2.0;
        let stages = times.ctas.iter().zip(&between_tiles);
        let stages = stages.map(|(cta, between_tiles)| stage_of(cta, between_tiles, middle));
        let stage = stages.max_by_key(|s| rank(*s)).unwrap_or(Stage::Start);
        match phases.last_mut().filter(|last| last.stage == stage) {
            Some(last) => last.to = to,
            None => phases.push(Phase { stage, from, to }),
        }
    }
    phases
}

/// If the CTAs of an SM are at different stages, the highest counts.
fn rank(stage: Stage) -> u8 {
    match stage {
        Stage::Launch | Stage::Start => 0,
        Stage::Fill => 1,
        Stage::Other => 2,
        Stage::Epilogue => 3,
        Stage::Computing | Stage::Waiting => 4,
    }
}

fn stage_of(cta: &CtaTimes, between_tiles: &[(f64, f64)], at: f64) -> Stage {
    if !(cta.start..cta.end).contains(&at) {
        return Stage::Start;
    }
    let (Some(first), Some(last)) = (cta.first_mma, cta.last_mma) else {
        return Stage::Other;
    };
    match at {
        at if at < first => Stage::Fill,
        at if at >= last || between_tiles.iter().any(|h| (h.0..h.1).contains(&at)) => {
            Stage::Epilogue
        }
        _ => Stage::Waiting,
    }
}

/// When all multiplying warps of a CTA are between tiles, or have ended.
fn between_tiles<'a>(epilogues: impl Iterator<Item = &'a Epilogue>) -> Vec<(f64, f64)> {
    let epilogues: Vec<&Epilogue> = epilogues.collect();
    let mut last: Vec<(usize, f64)> = Vec::new();
    for epilogue in &epilogues {
        match last.iter_mut().find(|(warp, _)| *warp == epilogue.warp) {
            Some((_, to)) => *to = to.max(epilogue.to),
            None => last.push((epilogue.warp, epilogue.to)),
        }
    }
    // A warp's last epilogue has no end: it multiplies nothing more.
    let open = |e: &Epilogue| last.contains(&(e.warp, e.to));
    let mut events: Vec<(f64, i64)> = Vec::new();
    for epilogue in &epilogues {
        events.push((epilogue.from, 1));
        events.push((
            if open(epilogue) {
                f64::MAX
            } else {
                epilogue.to
            },
            -1,
        ));
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut inside, mut since, mut found) = (0, None, Vec::new());
    for (at, step) in events {
        inside += step;
        if inside == last.len() as i64 {
            since = Some(at);
        } else if let Some(from) = since.take() {
            found.push((from, at));
        }
    }
    found
}

/// The time of each stage in a launch, from a given cycle on.
pub(super) fn sum(phases: &[Phase], times: &LaunchTimes, from: f64, clock: f64) -> Vec<StageTime> {
    let length = |p: &Phase, from: f64| (p.to - p.from.max(from)).max(0.0);
    let main = |from: f64| {
        let parts = phases.iter().filter(|p| p.stage == Stage::Waiting);
        parts.map(|p| length(p, from)).sum::<f64>()
    };
    let whole = main(f64::NEG_INFINITY);
    let busy = match whole > 0.0 {
        true => (times.tensor_cycles / whole).min(1.0),
        false => 0.0,
    };
    let mut sums = Vec::new();
    for phase in phases {
        let cycles = length(phase, from);
        if phase.stage == Stage::Waiting {
            add(&mut sums, Stage::Computing, busy * cycles / clock);
            add(&mut sums, Stage::Waiting, (1.0 - busy) * cycles / clock);
        } else {
            add(&mut sums, phase.stage, cycles / clock);
        }
    }
    sums
}

pub(super) fn add(sums: &mut Vec<StageTime>, stage: Stage, micros: f64) {
    match sums.iter_mut().find(|part| part.stage == stage) {
        Some(part) => part.micros.0 += micros,
        None => sums.push(StageTime {
            stage,
            micros: Micros(micros),
        }),
    }
    let place = |part: &StageTime| Stage::ALL.iter().position(|s| *s == part.stage);
    sums.sort_by_key(place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epilogue_that_another_warp_hides_does_not_count() {
        let epilogue = |warp, from, to| Epilogue {
            cta: 0,
            warp,
            from,
            to,
        };
        // Warp 1 multiplies while warp 0 stores, and vice versa.
        let in_turn = [
            epilogue(0, 100.0, 200.0),
            epilogue(1, 200.0, 300.0),
            epilogue(0, 400.0, 500.0),
            epilogue(1, 600.0, 700.0),
        ];
        assert_eq!(between_tiles(in_turn.iter()), [(600.0, f64::MAX)]);
        let together = [
            epilogue(0, 100.0, 200.0),
            epilogue(1, 150.0, 250.0),
            epilogue(0, 400.0, 500.0),
            epilogue(1, 400.0, 510.0),
        ];
        assert_eq!(
            between_tiles(together.iter()),
            [(150.0, 200.0), (400.0, f64::MAX)]
        );
        assert!(between_tiles([].iter()).is_empty());
    }

    #[test]
    fn products_of_one_cta_hide_the_start_of_another() {
        let cta = |start: f64| CtaTimes {
            cta: 0,
            start,
            first_mma: Some(start + 100.0),
            last_mma: Some(start + 300.0),
            end: start + 350.0,
        };
        let times = LaunchTimes {
            cycles: 650.0,
            ctas: vec![cta(0.0), cta(150.0), cta(300.0)],
            ..LaunchTimes::default()
        };
        let stages: Vec<(Stage, f64)> = phases(&times).iter().map(|p| (p.stage, p.to)).collect();
        assert_eq!(
            stages,
            [
                (Stage::Fill, 100.0),
                (Stage::Waiting, 600.0),
                (Stage::Epilogue, 650.0)
            ]
        );
    }
}
