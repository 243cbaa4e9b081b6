//! Who touched given bytes of global memory: watchpoints, as a debugger has them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::exec::cluster::env::cta_id;
use crate::exec::listen::signal::Signal;
use crate::exec::listen::visit::{Bytes, ClusterListener, Listener, Room, Visit};
use crate::exec::origin::Origin;
use crate::fault::Place;
use crate::hazard::Side;
use crate::memory::Memory;
use crate::op::Program;

/// Touches of one watchpoint that are kept, the first ones.
const KEPT: usize = 4;

/// Bytes to keep an eye on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watchpoint {
    /// Device addresses.
    pub bytes: Range<u64>,
    /// Whether reads are told of too, and not only writes.
    pub reads: bool,
}

/// Somebody who touched them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// Who did what: `a thread writes`, `a bulk copy reads`, …
    pub deed: String,
    /// By which instruction; of its lanes, those that reached the bytes.
    pub place: Place,
    /// The first of the bytes it reached.
    pub address: u64,
    /// Whether it changed them.
    pub write: bool,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.deed, self.place)
    }
}

/// Everybody who touched the bytes of one watchpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touches {
    /// The first few, cluster by cluster and in each as they came.
    pub first: Vec<Touch>,
    /// All of them, counted once for a whole warp.
    pub times: u64,
}

/// A watchpoint in an allocation: its place in the list, the allocation with its first address, and
/// offsets from there.
struct Post {
    place: usize,
    region: usize,
    base: u64,
    bytes: Range<u64>,
    reads: bool,
}

/// Something seen, in which cluster, and the offset it was seen at.
#[derive(Clone, Copy)]
struct Sight {
    cluster: u64,
    side: Side,
    address: u64,
}

/// What was seen of one watchpoint, with the cluster it was seen in.
#[derive(Default)]
struct Seen {
    first: Vec<Sight>,
    times: u64,
}

impl Seen {
    fn add(&mut self, sight: Sight) {
        self.times += 1;
        if self.first.len() < KEPT {
            self.first.push(sight);
        }
    }

    /// Adds what another saw. Clusters run beside each other; each keeps its own order.
    fn append(&mut self, mut other: Self) {
        self.times += other.times;
        self.first.append(&mut other.first);
        self.first.sort_by_key(|sight| sight.cluster);
        self.first.truncate(KEPT);
    }
}

/// Listens to a launch on behalf of watchpoints.
pub(crate) struct Lookout<'l> {
    program: &'l Program,
    grid: [u32; 3],
    cluster: [u32; 3],
    posts: Vec<Post>,
    /// By allocation, the bytes that somebody watches: disjoint and in order, for a quick no.
    watched: BTreeMap<usize, Vec<Range<u64>>>,
    seen: Vec<Mutex<Seen>>,
}

impl<'l> Lookout<'l> {
    pub(crate) fn new(
        program: &'l Program,
        memory: &Memory,
        (grid, cluster): ([u32; 3], [u32; 3]),
        watchpoints: &[Watchpoint],
    ) -> Self {
        let mut posts = Vec::new();
        for (place, Watchpoint { bytes, reads }) in watchpoints.iter().enumerate() {
            for (region, allocation) in memory.regions().iter().enumerate() {
                let (base, end) = (allocation.base, allocation.base + allocation.len);
                let (first, last) = (bytes.start.max(base), bytes.end.min(end));
                if first < last {
                    posts.push(Post {
                        place,
                        region,
                        base,
                        bytes: first - base..last - base,
                        reads: *reads,
                    });
                }
            }
        }
        Self {
            program,
            grid,
            cluster,
            watched: merged(&posts),
            posts,
            seen: watchpoints.iter().map(|_| Mutex::default()).collect(),
        }
    }

    /// For each watchpoint, who came.
    pub(crate) fn touches(self) -> Vec<Touches> {
        let told = |seen: &Mutex<Seen>| {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let touch = |sight: &Sight| Touch {
                deed: sight.side.deed(),
                place: self.place(sight.cluster, sight.side.from),
                address: sight.address,
                write: sight.side.act.writes(),
            };
            Touches {
                first: seen.first.iter().map(touch).collect(),
                times: seen.times,
            }
        };
        self.seen.iter().map(told).collect()
    }

    /// Whether any of these bytes of an allocation is watched.
    fn watches(&self, region: usize, bytes: Range<u64>) -> bool {
        let Some(ranges) = self.watched.get(&region) else {
            return false;
        };
        let next = ranges.partition_point(|range| range.end <= bytes.start);
        ranges
            .get(next)
            .is_some_and(|range| range.start < bytes.end)
    }

    fn place(&self, cluster: u64, from: Origin) -> Place {
        let cta = cta_id(self.grid, self.cluster, cluster, from.cta);
        Place::of(self.program, from.pc, cta, from.warp, from.lanes)
    }
}

impl Listener for Lookout<'_> {
    fn attend(&self, cluster: u64) -> Option<Box<dyn ClusterListener + '_>> {
        let seen = self.posts.iter().map(|_| Seen::default()).collect();
        (!self.posts.is_empty()).then(|| {
            Box::new(Guard {
                lookout: self,
                cluster,
                seen,
            }) as Box<dyn ClusterListener + '_>
        })
    }
}

/// Listens to one cluster.
struct Guard<'l> {
    lookout: &'l Lookout<'l>,
    cluster: u64,
    /// By post.
    seen: Vec<Seen>,
}

impl ClusterListener for Guard<'_> {
    fn hear(&mut self, visit: &Visit<'_>) {
        let Room::Global { region } = visit.room else {
            return;
        };
        if !self.lookout.watches(region, span(visit)) {
            return;
        }
        for (post, seen) in self.lookout.posts.iter().zip(&mut self.seen) {
            if post.region != region || !(visit.act.writes() || post.reads) {
                continue;
            }
            if let Some((lanes, offset)) = reached(visit, &post.bytes) {
                let from = Origin {
                    lanes,
                    ..visit.from
                };
                seen.add(Sight {
                    cluster: self.cluster,
                    side: Side::new(visit.agent, visit.act, from),
                    address: post.base + offset,
                });
            }
        }
    }

    fn order(&mut self, _: Origin, _: Signal) {}
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        for (post, seen) in self.lookout.posts.iter().zip(self.seen.drain(..)) {
            let all = &self.lookout.seen[post.place];
            all.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .append(seen);
        }
    }
}

/// The bytes an access lies in.
fn span(visit: &Visit<'_>) -> Range<u64> {
    match visit.bytes {
        Bytes::Piece { first, len } => first..first + len,
        Bytes::Lanes { low, end, .. } => low.into()..end.into(),
        // Operand tiles and columns lie in other memories.
        Bytes::Tile { .. } | Bytes::Columns { .. } => 0..0,
    }
}

/// The lanes that reach one of these bytes, and the first byte that one of them does; none if nobody.
fn reached(visit: &Visit<'_>, bytes: &Range<u64>) -> Option<(u32, u64)> {
    let meets = |first: u64, len: u64| first < bytes.end && first + len > bytes.start;
    match visit.bytes {
        Bytes::Piece { first, len } => {
            meets(first, len).then_some((visit.from.lanes, first.max(bytes.start)))
        }
        Bytes::Lanes { at, each, .. } => {
            let lanes = (0..32).filter(|lane| visit.from.lanes >> lane & 1 == 1);
            let met = lanes.filter(|&lane| meets(at[lane].into(), each.into()));
            met.fold(None, |found, lane| {
                let (mask, lowest) = found.unwrap_or((0, u64::MAX));
                let first = u64::from(at[lane]).max(bytes.start);
                Some((mask | 1 << lane, lowest.min(first)))
            })
        }
        Bytes::Tile { .. } | Bytes::Columns { .. } => None,
    }
}

/// Everything that is watched of each allocation.
fn merged(posts: &[Post]) -> BTreeMap<usize, Vec<Range<u64>>> {
    let mut all: BTreeMap<usize, Vec<Range<u64>>> = BTreeMap::new();
    for post in posts {
        all.entry(post.region).or_default().push(post.bytes.clone());
    }
    for ranges in all.values_mut() {
        ranges.sort_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
    }
    all
}
