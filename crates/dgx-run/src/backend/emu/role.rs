//! The role of each warp of a launch, inferred from its instructions.

use std::collections::BTreeMap;

use ptx_emu::trace::{Deed, Direction, Event, Trace};
use serde::Serialize;

/// The layout of a launch.
#[derive(Clone, Debug)]
pub struct LaunchLayout {
    pub kernel: String,
    /// Of the grid.
    pub ctas: u64,
    /// Share of the SMs' time without a CTA, if it was measured.
    pub idle: Option<f64>,
    /// The roles of the warps of the watched CTAs, by the CTAs' numbers in the grid.
    pub roles: BTreeMap<u64, Vec<WarpRole>>,
}

/// The role of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarpRole {
    /// Loads operands, and multiplies nothing.
    Producer,
    /// Writes operands that others multiply.
    Converter,
    /// Multiplies operands that others load.
    Consumer,
    /// Loads operands and multiplies them.
    Both,
    /// Reads the sums of others from tensor memory.
    Epilogue,
    Other,
}

impl WarpRole {
    pub fn word(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Converter => "converter",
            Self::Consumer => "consumer",
            Self::Both => "copies and multiplies",
            Self::Epilogue => "epilogue",
            Self::Other => "other",
        }
    }

    fn of(events: &[Event]) -> Self {
        let (mut copies, mut multiplies, mut writes) = (false, false, false);
        let mut reads = false;
        for event in events {
            match event {
                Event::Did { deed, .. } => match deed {
                    Deed::Wgmma { .. } | Deed::Mma { .. } | Deed::TmemMma { .. } => {
                        multiplies = true;
                    }
                    Deed::TmemMove { writes: false, .. } => reads = true,
                    Deed::Bulk { direction, .. } => copies |= *direction != Direction::Store,
                    Deed::LaneCopy { .. } => copies = true,
                    Deed::Shared { writes: true, .. } => writes = true,
                    _ => {}
                },
                Event::Run { .. } => {}
            }
        }
        match (copies, multiplies) {
            (true, true) => Self::Both,
            (true, false) => Self::Producer,
            (false, true) => Self::Consumer,
            (false, false) if reads => Self::Epilogue,
            (false, false) if writes => Self::Converter,
            (false, false) => Self::Other,
        }
    }
}

/// The role of each warp of each watched CTA.
pub(super) fn roles(trace: &Trace) -> BTreeMap<u64, Vec<WarpRole>> {
    let warps = |warps: &[Vec<Event>]| warps.iter().map(|events| WarpRole::of(events)).collect();
    let ctas = trace.ctas.iter();
    ctas.map(|cta| (cta.cta, warps(&cta.warps))).collect()
}

#[cfg(test)]
mod tests {
    use ptx_emu::trace::{CtaTrace, TmemA};

    use super::*;

    #[test]
    fn a_warp_is_what_it_does() {
        let bulk = |direction| Deed::Bulk {
            direction,
            at: None,
            rows: 1,
            bytes: 64,
            to: 0,
            barrier: None,
            pair: false,
            map: None,
        };
        let product = Deed::Mma {
            shape: [16, 8, 16],
            bits: 16,
        };
        let write = Deed::Shared {
            wavefronts: 1,
            bytes: 128,
            writes: true,
            atomic: false,
        };
        let summed = Deed::TmemMma {
            shape: [128, 64, 64],
            ctas: 1,
            columns: 64,
            a: TmemA::Shared,
        };
        let read = Deed::TmemMove {
            columns: 16,
            lanes: 32,
            bits: 32,
            writes: false,
        };
        let warp = |deeds: &[Deed]| -> Vec<Event> {
            let did = deeds.iter().map(|&deed| Event::Did { at: 0, deed });
            did.collect()
        };
        let trace = Trace {
            ctas: vec![CtaTrace {
                cta: 5,
                warps: vec![
                    warp(&[bulk(Direction::Load)]),
                    warp(&[product, write, bulk(Direction::Store)]),
                    warp(&[bulk(Direction::Load), product]),
                    warp(&[write]),
                    warp(&[Deed::WgmmaFence]),
                    warp(&[read, write]),
                    warp(&[summed]),
                ],
                ..CtaTrace::default()
            }],
            ..Trace::default()
        };
        assert_eq!(
            roles(&trace)[&5],
            [
                WarpRole::Producer,
                WarpRole::Consumer,
                WarpRole::Both,
                WarpRole::Converter,
                WarpRole::Other,
                WarpRole::Epilogue,
                WarpRole::Consumer,
            ]
        );
    }
}
