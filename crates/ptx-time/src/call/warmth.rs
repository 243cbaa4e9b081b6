//! What a call reads, finds in L2, and leaves there.

use ptx_emu::mixed::{MixedMap, MixedSet};
use ptx_emu::trace::{Deed, Direction, Event, GlobalBytes, Trace};

use super::Launched;
use crate::cubin::Code;
use crate::sass::Kind;
use crate::sm::{SECTOR, brought, first_sector};
use ptx_machine::Machine;

/// Bits of an address within a page, which is asked whether it was used before.
pub(super) const PAGE: u32 = 16;

/// What launches have used so far; they go by their number in the call.
#[derive(Debug, Default)]
pub(super) struct Warmth<'c> {
    /// Everything is there.
    pub(super) all: bool,
    /// Pages of regions, each with the last launch that used it.
    pub(super) pages: MixedMap<(u32, u64), usize>,
    /// Regions that were written, each with the last launch that used it.
    written: MixedMap<u32, usize>,
    /// Bytes that each launch has used.
    used: Vec<f64>,
    /// Code that was run.
    pub(super) code: Vec<&'c Code>,
}

impl<'c> Warmth<'c> {
    /// Of a call that finds everything.
    pub(super) fn complete() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    pub(super) fn keep(&mut self, launch: &Launched<'c>) {
        self.code.push(launch.code);
        let number = self.used.len();
        let regions = &launch.trace.regions;
        let mut used = vec![0.0; regions.len()];
        let mut last = None;
        each_access(launch.trace, |(region, first, bytes), writes| {
            // Mostly it is where the one before was.
            let page = (region, first >> PAGE);
            if last.replace((page, writes)) != Some((page, writes)) {
                self.pages.insert(page, number);
                if writes || self.written.contains_key(&region) {
                    self.written.insert(region, number);
                }
            }
            add(&mut used, region, bytes as f64);
        });
        // Many CTAs may use the same bytes, but no more than there are.
        let times = launch.ctas as f64 / launch.trace.ctas.len().max(1) as f64;
        let at_most = |(bytes, &size): (f64, &u64)| (bytes * times).min(size as f64);
        self.used
            .push(used.into_iter().zip(regions).map(at_most).sum());
    }

    /// The part of what each launch has used that is still there: L2 keeps what was used last.
    pub(super) fn kept(&self, machine: &Machine) -> Vec<f64> {
        let mut room = machine.l2_bytes;
        let part = |used: &f64| {
            let part = (room / used.max(1.0)).clamp(0.0, 1.0);
            room -= used;
            if self.all { 1.0 } else { part }
        };
        let mut kept: Vec<f64> = self.used.iter().rev().map(part).collect();
        kept.reverse();
        kept
    }

    /// The part of a region that is there without this launch having asked for it.
    fn left_of(&self, region: u32, kept: &[f64]) -> f64 {
        match self.written.get(&region) {
            _ if self.all => 1.0,
            Some(&user) => kept[user],
            None => 0.0,
        }
    }
}

/// What a launch reads, region by region, told from the part that was traced.
#[derive(Debug)]
pub(super) struct Reads {
    /// Bytes that a CTA reads, in the mean.
    pub(super) of_cta: f64,
    /// The part of what is read that no other SM reads.
    pub(super) alone: Vec<f64>,
    /// The part of what is read first that comes from memory.
    pub(super) cold: Vec<f64>,
}

impl Reads {
    pub(super) fn of(launch: &Launched<'_>, warmth: &Warmth<'_>, kept: &[f64]) -> Self {
        let traced = launch.trace.ctas.len().max(1) as f64;
        let regions = || (0u32..).zip(&launch.trace.regions);
        // Many CTAs may read the same bytes, but no more than there are.
        let of = |bytes: &[f64], region: u32| bytes.get(region as usize).copied().unwrap_or(0.0);
        let part = |of: f64, size: u64| {
            let all = of * launch.ctas as f64 / traced;
            (size as f64 / all.max(1.0)).min(1.0)
        };
        let mut read = vec![0.0; launch.trace.regions.len()];
        each_access(launch.trace, |(region, _, bytes), writes| {
            if !writes {
                add(&mut read, region, bytes as f64);
            }
        });
        // What comes in blocks may be more than is read.
        let asked = asked_of_memory(launch.trace, launch.code);
        Self {
            of_cta: read.iter().sum::<f64>() / traced,
            alone: regions()
                .map(|(region, &size)| part(of(&read, region), size))
                .collect(),
            cold: regions()
                .map(|(region, &size)| {
                    part(of(&asked, region), size) * (1.0 - warmth.left_of(region, kept))
                })
                .collect(),
        }
    }
}

/// Adds bytes to those of a region.
fn add(bytes: &mut Vec<f64>, region: u32, more: f64) {
    let place = region as usize;
    if bytes.len() <= place {
        bytes.resize(place + 1, 0.0);
    }
    bytes[place] += more;
}

/// Calls back with region, first byte and bytes of every access to global memory: those of its lanes,
/// or of the sectors that they share.
fn each_access(trace: &Trace, mut call: impl FnMut((u32, u64, u64), bool)) {
    let of = |at: &GlobalBytes| {
        let bytes = u64::from(at.bytes).min(u64::from(at.sectors) * SECTOR);
        (at.region, at.first, bytes)
    };
    for cta in &trace.ctas {
        for event in cta.warps.iter().flatten() {
            let Event::Did { deed, .. } = event else {
                continue;
            };
            match deed {
                Deed::Global { at, writes, .. } => call(of(at), *writes),
                Deed::LaneCopy { at } => call(of(at), false),
                Deed::Bulk {
                    at: Some(at),
                    direction,
                    ..
                } => call(of(at), *direction == Direction::Store),
                _ => {}
            }
        }
    }
}

/// Bytes of each region that the traced CTAs ask memory for: whole blocks where L2 is told to get
/// them, each once.
fn asked_of_memory(trace: &Trace, code: &Code) -> Vec<f64> {
    let lines = (code.instructions.iter().zip(&code.lines))
        .filter(|(sass, _)| sass.kind == Kind::Global && sass.by_blocks);
    let lines: MixedSet<u32> = lines.map(|(_, &line)| line).collect();
    let mut asked = vec![0.0; trace.regions.len()];
    for cta in &trace.ctas {
        let mut known: MixedSet<(u32, u64)> = MixedSet::default();
        for event in cta.warps.iter().flatten() {
            let Event::Did { at: place, deed } = event else {
                continue;
            };
            let (at, by_blocks) = match deed {
                Deed::Global {
                    at, writes: false, ..
                } => (at, lines.contains(&trace.lines[*place as usize])),
                Deed::LaneCopy { at } => (at, false),
                Deed::Bulk {
                    at: Some(at),
                    direction: Direction::Load | Direction::Prefetch,
                    map,
                    ..
                } => (at, map.is_some()),
                _ => continue,
            };
            let (first, bytes) = brought(at, by_blocks);
            if known.insert((at.region, first)) {
                add(&mut asked, at.region, bytes);
            }
        }
    }
    asked
}

/// The first sectors of accesses, by their regions, that threads of more than one traced cluster make.
pub(super) fn shared_sectors(trace: &Trace) -> MixedSet<(u32, u64)> {
    let mut readers: MixedMap<(u32, u64), u64> = MixedMap::default();
    let mut shared = MixedSet::default();
    for cta in &trace.ctas {
        for event in cta.warps.iter().flatten() {
            let Event::Did { deed, .. } = event else {
                continue;
            };
            if let Deed::Global {
                at, writes: false, ..
            } = deed
            {
                let sector = first_sector(at);
                if *readers.entry(sector).or_insert(cta.cluster) != cta.cluster {
                    shared.insert(sector);
                }
            }
        }
    }
    shared
}
