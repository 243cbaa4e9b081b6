//! Who touched given bytes of global memory: watchpoints, as a debugger has them.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::exec::copy::Origin;
use crate::exec::door::{Bytes, Ear, Listener, Room, Visit};
use crate::exec::env::cta_id;
use crate::exec::signal::Signal;
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

/// A watchpoint in an allocation: its place in the list, the allocation, and offsets from its start.
struct Post {
    place: usize,
    region: usize,
    bytes: Range<u64>,
    reads: bool,
}

/// What was seen of one watchpoint, with the cluster it was seen in.
#[derive(Default)]
struct Seen {
    first: Vec<(u64, Side)>,
    times: u64,
}

impl Seen {
    fn add(&mut self, cluster: u64, side: Side) {
        self.times += 1;
        if self.first.len() < KEPT {
            self.first.push((cluster, side));
        }
    }

    /// Adds what another saw. Clusters run beside each other; each keeps its own order.
    fn append(&mut self, mut other: Self) {
        self.times += other.times;
        self.first.append(&mut other.first);
        self.first.sort_by_key(|(cluster, _)| *cluster);
        self.first.truncate(KEPT);
    }
}

/// Listens to a launch on behalf of watchpoints.
pub(crate) struct Lookout<'l> {
    program: &'l Program,
    grid: [u32; 3],
    cluster: [u32; 3],
    posts: Vec<Post>,
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
            posts,
            seen: watchpoints.iter().map(|_| Mutex::default()).collect(),
        }
    }

    /// For each watchpoint, who came.
    pub(crate) fn touches(self) -> Vec<Touches> {
        let told = |seen: &Mutex<Seen>| {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let touch = |(cluster, side): &(u64, Side)| Touch {
                deed: side.deed(),
                place: self.place(*cluster, side.from),
            };
            Touches {
                first: seen.first.iter().map(touch).collect(),
                times: seen.times,
            }
        };
        self.seen.iter().map(told).collect()
    }

    fn place(&self, cluster: u64, from: Origin) -> Place {
        let cta = cta_id(self.grid, self.cluster, cluster, from.cta);
        Place::of(self.program, from.pc, cta, from.warp, from.lanes)
    }
}

impl Listener for Lookout<'_> {
    fn attend(&self, cluster: u64) -> Option<Box<dyn Ear + '_>> {
        let seen = self.posts.iter().map(|_| Seen::default()).collect();
        (!self.posts.is_empty()).then(|| {
            Box::new(Guard {
                lookout: self,
                cluster,
                seen,
            }) as Box<dyn Ear + '_>
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

impl Ear for Guard<'_> {
    fn hear(&mut self, visit: &Visit<'_>) {
        let Room::Global { region } = visit.room else {
            return;
        };
        for (post, seen) in self.lookout.posts.iter().zip(&mut self.seen) {
            if post.region != region || !(visit.act.writes() || post.reads) {
                continue;
            }
            if let Some(lanes) = reached(visit, &post.bytes) {
                let from = Origin {
                    lanes,
                    ..visit.from
                };
                seen.add(self.cluster, Side::new(visit.agent, visit.act, from));
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

/// The lanes that reach one of these bytes; none if nobody does.
fn reached(visit: &Visit<'_>, bytes: &Range<u64>) -> Option<u32> {
    let meets = |first: u64, len: u64| first < bytes.end && first + len > bytes.start;
    match visit.bytes {
        Bytes::Piece { first, len } => meets(first, len).then_some(visit.from.lanes),
        Bytes::Lanes {
            at, each, low, end, ..
        } => {
            if !meets(low.into(), u64::from(end - low)) {
                return None;
            }
            let lanes = (0..32).filter(|lane| visit.from.lanes >> lane & 1 == 1);
            let met = lanes.filter(|&lane| meets(at[lane].into(), each.into()));
            let mask = met.fold(0, |mask, lane| mask | 1 << lane);
            (mask != 0).then_some(mask)
        }
        // Operand tiles lie in shared memory.
        Bytes::Tile { .. } => None,
    }
}
