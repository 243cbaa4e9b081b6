//! Which words of global memory many SMs update atomically.

use ptx_emu::mixed::{MixedMap, MixedSet};
use ptx_emu::trace::{Deed, Event, Trace};

use crate::sm::first_sector;

/// How many of so many groups of SMs update each sector, told from the clusters that were traced. One
/// that only one cluster updates is left out, unless no other was traced: then nobody knows, and all
/// are taken to.
pub(super) fn updaters(trace: &Trace, groups: u64) -> MixedMap<(u32, u64), f64> {
    let mut by_sector: MixedMap<(u32, u64), MixedSet<u64>> = MixedMap::default();
    let mut clusters = MixedSet::default();
    for cta in &trace.ctas {
        clusters.insert(cta.cluster);
        for event in cta.warps.iter().flatten() {
            if let Event::Did {
                deed: Deed::Update { at, .. },
                ..
            } = event
            {
                let sector = by_sector.entry(first_sector(at)).or_default();
                sector.insert(cta.cluster);
            }
        }
    }
    let all = clusters.len();
    by_sector
        .into_iter()
        .filter(|(_, of)| of.len() > 1 || all == 1)
        .map(|(sector, of)| {
            let part = of.len() as f64 / all as f64;
            (sector, (groups as f64 * part).max(1.0))
        })
        .collect()
}
