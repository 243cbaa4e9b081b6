//! Vector clocks: how far each strand is known to have come.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// A number for each strand of a cluster: a warp's steps, the groups of its copies, the phases of a
/// barrier. Knowing a number means knowing everything that strand did up to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u32>);

impl Clock {
    pub(super) fn at(&self, strand: u32) -> u32 {
        self.0.get(strand as usize).copied().unwrap_or(0)
    }

    pub(super) fn raise(&mut self, strand: u32, to: u32) {
        let strand = strand as usize;
        if strand >= self.0.len() {
            self.0.resize(strand + 1, 0);
        }
        self.0[strand] = self.0[strand].max(to);
    }

    /// Whether another clock has nothing new.
    fn covers(&self, other: &Self) -> bool {
        let (both, more) = other.0.split_at(self.0.len().min(other.0.len()));
        let mut pairs = self.0.iter().zip(both);
        pairs.all(|(mine, theirs)| mine >= theirs) && more.iter().all(|&theirs| theirs == 0)
    }

    pub(super) fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}

/// The knowledge about one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Progress that ordinary accesses may rely on.
    pub(super) generic: Clock,
    /// Progress that copies and tensor cores may rely on for data that ordinary accesses wrote: the
    /// part that a proxy fence has covered, of shared and of global memory; and the progress that
    /// `tcgen05` may rely on in strict mode: the part that `tcgen05.fence::after_thread_sync` has
    /// covered.
    pub(super) proxied: [Clock; 3],
    /// The part that any warp's sequentially consistent fence has covered: later accesses by any
    /// thread may pass it on. By the reach of the fence, see [`Reach`].
    sealed: [Clock; 2],
    /// Progress sealed before an access that was observed: the next sequentially consistent fence
    /// makes it known, since it can only come after the fence that sealed it.
    seen: [Clock; 2],
    /// Progress that reads of tensor maps may rely on.
    pub(super) maps: Maps,
    /// Executed steps of warps, whether or not their writes are visible: a CTA that has come to a
    /// barrier has begun, whatever the barrier orders.
    pub(super) ran: Clock,
}

/// Progress that copies may rely on when they read tensor maps in global memory: a fence of the
/// writer releases it, and one of the reader acquires it, map by map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Maps {
    pub(super) released: Clock,
    /// By the map's address.
    acquired: BTreeMap<u64, Clock>,
}

impl Maps {
    fn covers(&self, other: &Self) -> bool {
        let mine = |map: &u64| self.acquired.get(map);
        let mut acquired = other.acquired.iter();
        self.released.covers(&other.released)
            && acquired.all(|(map, theirs)| mine(map).is_some_and(|mine| mine.covers(theirs)))
    }

    fn join(&mut self, other: &Self) {
        self.released.join(&other.released);
        for (map, clock) in &other.acquired {
            self.acquired.entry(*map).or_default().join(clock);
        }
    }

    /// How far a strand is known to a reader of this map.
    pub(super) fn at(&self, map: u64, strand: u32) -> u32 {
        self.acquired.get(&map).map_or(0, |clock| clock.at(strand))
    }
}

/// The reach of a sequentially consistent fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Within the cluster, at most.
    Near,
    Everywhere,
}

/// Knowledge about clusters, by their numbers. Most of it is shared between warps.
pub(super) type Views = BTreeMap<u64, Arc<View>>;

/// Adds knowledge about a cluster; returns whether it is new.
fn add(views: &mut Views, cluster: u64, view: &Arc<View>) -> bool {
    match views.entry(cluster) {
        Entry::Vacant(place) => {
            place.insert(Arc::clone(view));
        }
        Entry::Occupied(mut place) => {
            let mine = place.get_mut();
            if Arc::ptr_eq(mine, view) || mine.covers(view) {
                return false;
            }
            match view.covers(mine) {
                true => *mine = Arc::clone(view),
                false => Arc::make_mut(mine).join(view),
            }
        }
    }
    true
}

impl View {
    fn covers(&self, other: &Self) -> bool {
        let all = |mine: &[Clock], theirs: &[Clock]| {
            let mut pairs = mine.iter().zip(theirs);
            pairs.all(|(mine, theirs)| mine.covers(theirs))
        };
        self.generic.covers(&other.generic)
            && self.ran.covers(&other.ran)
            && all(&self.proxied, &other.proxied)
            && all(&self.sealed, &other.sealed)
            && all(&self.seen, &other.seen)
            && self.maps.covers(&other.maps)
    }

    fn join(&mut self, other: &Self) {
        self.generic.join(&other.generic);
        self.maps.join(&other.maps);
        self.ran.join(&other.ran);
        let mine = [&mut self.sealed, &mut self.seen].into_iter().flatten();
        let theirs = [&other.sealed, &other.seen].into_iter().flatten();
        for (mine, theirs) in mine.zip(theirs) {
            mine.join(theirs);
        }
        for (mine, theirs) in self.proxied.iter_mut().zip(&other.proxied) {
            mine.join(theirs);
        }
    }
}

/// A warp's knowledge about its own cluster and others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Knowledge {
    pub(super) own: View,
    pub(super) others: Views,
    /// It has synchronised through global memory, possibly with a cluster whose knowledge is not
    /// fully recorded.
    pub(super) hearsay: bool,
}

impl Knowledge {
    /// Adds the knowledge of a thread of the same cluster.
    pub(super) fn join(&mut self, other: &Self) {
        self.own.join(&other.own);
        self.hearsay |= other.hearsay;
        for (cluster, view) in &other.others {
            add(&mut self.others, *cluster, view);
        }
    }

    /// Adds the knowledge published at a location in global memory, by any cluster.
    pub(super) fn learn(&mut self, own: u64, left: &Views) {
        for (cluster, view) in left {
            match *cluster == own {
                true => self.own.join(view),
                false => {
                    add(&mut self.others, *cluster, view);
                }
            }
        }
    }

    /// Whether sealed progress published at a location is new.
    pub(super) fn misses_seen(&self, own: u64, left: &Views) -> bool {
        left.iter().any(|(cluster, view)| {
            let sealed = view.seen.iter().any(|clock| *clock != Clock::default());
            let known = || self.of(own, *cluster).map(|known| &known.seen);
            let covered = |known: &[Clock; 2]| {
                let mut pairs = known.iter().zip(&view.seen);
                pairs.all(|(known, seen)| known.covers(seen))
            };
            sealed && !known().is_some_and(covered)
        })
    }

    /// Publishes it there; returns whether any of it is new there.
    pub(super) fn leave(&self, own: u64, left: &mut Views) -> bool {
        let mine = left.entry(own).or_default();
        let mut news = !mine.covers(&self.own);
        if news {
            Arc::make_mut(mine).join(&self.own);
        }
        for (cluster, view) in &self.others {
            news |= add(left, *cluster, view);
        }
        news
    }

    /// Whether any access of another cluster is over, if that is the same for all of them.
    pub(super) fn of_strangers(&self) -> Option<bool> {
        (self.hearsay || self.others.is_empty()).then_some(self.hearsay)
    }

    /// The knowledge about a cluster.
    pub(super) fn of(&self, own: u64, cluster: u64) -> Option<&View> {
        match cluster == own {
            true => Some(&self.own),
            false => self.others.get(&cluster).map(|view| &**view),
        }
    }

    /// A proxy fence: from here on copies and tensor cores may rely on the same as ordinary
    /// accesses.
    pub(super) fn pass_proxy_fence(&mut self, shared: bool, global: bool) {
        let fenced = [shared, global, false];
        let passed = |view: &View| {
            let mut clocks = view.proxied.iter().zip(fenced);
            clocks.all(|(clock, fenced)| !fenced || clock.covers(&view.generic))
        };
        self.each_view(
            passed,
            |View {
                 generic, proxied, ..
             }| {
                for (clock, fenced) in proxied.iter_mut().zip(fenced) {
                    if fenced {
                        clock.join(generic);
                    }
                }
            },
        );
    }

    /// Changes every view that is not settled: most are, and are shared by many warps.
    fn each_view(&mut self, settled: impl Fn(&View) -> bool, change: impl Fn(&mut View)) {
        for view in self.others.values_mut().filter(|view| !settled(view)) {
            change(Arc::make_mut(view));
        }
        change(&mut self.own);
    }
}

impl Knowledge {
    /// `fence.proxy.tensormap::generic.release`
    pub(super) fn release_maps(&mut self) {
        self.each_view(
            |view| view.maps.released.covers(&view.generic),
            |view| view.maps.released.join(&view.generic),
        );
    }

    /// `fence.proxy.tensormap::generic.acquire` of one map.
    pub(super) fn acquire_map(&mut self, map: u64) {
        let acquired = |maps: &Maps| {
            let known = maps.acquired.get(&map);
            known.is_some_and(|known| known.covers(&maps.released))
        };
        self.each_view(
            |view| acquired(&view.maps),
            |view| {
                let Maps { released, acquired } = &mut view.maps;
                acquired.entry(map).or_default().join(released);
            },
        );
    }

    /// `tcgen05.fence::after_thread_sync`
    pub(super) fn pass_tensor_fence(&mut self) {
        let View {
            generic, proxied, ..
        } = &mut self.own;
        proxied[2].join(generic);
    }

    /// `fence.sc`
    pub(super) fn pass_consistent_fence(&mut self, reach: Reach) {
        let settled = |view: &View| {
            view.generic.covers(&view.seen[1]) && view.sealed[1].covers(&view.generic)
        };
        let others = self.others.values_mut();
        for view in others.filter(|view| reach == Reach::Everywhere && !settled(view)) {
            let view = Arc::make_mut(view);
            view.generic.join(&view.seen[1]);
            view.sealed[1].join(&view.generic);
        }
        let View {
            generic,
            sealed: [near, everywhere],
            seen,
            ..
        } = &mut self.own;
        for seen in seen {
            generic.join(seen);
        }
        near.join(generic);
        if reach == Reach::Everywhere {
            everywhere.join(generic);
        }
    }

    /// The part that a reader of the current write observes, with or without a release.
    pub(super) fn shown(&self) -> Option<Self> {
        self.as_seen(|view| &view.sealed)
    }

    /// The part of published knowledge that counts as soon as it is read.
    pub(super) fn seen(&self) -> Option<Self> {
        self.as_seen(|view| &view.seen)
    }

    fn as_seen(&self, of: impl Fn(&View) -> &[Clock; 2]) -> Option<Self> {
        let any = |view: &View| of(view).iter().any(|clock| !clock.0.is_empty());
        if !any(&self.own) && !self.others.values().any(|other| any(other)) {
            return None;
        }
        let view = |view: &View| View {
            seen: of(view).clone(),
            ..View::default()
        };
        let others = self.others.iter().filter(|(_, other)| any(other));
        Some(Self {
            own: view(&self.own),
            others: others
                .map(|(cluster, other)| (*cluster, Arc::new(view(other))))
                .collect(),
            hearsay: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_keeps_the_later_of_both() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.raise(3, 5);
        b.raise(3, 2);
        b.raise(7, 1);
        a.join(&b);
        assert_eq!([a.at(3), a.at(7), a.at(100)], [5, 1, 0]);
    }

    #[test]
    fn only_a_fence_tells_the_other_proxy() {
        let mut mine = Knowledge::default();
        mine.own.generic.raise(0, 4);
        assert_eq!(mine.own.proxied[0].at(0), 0);
        mine.pass_proxy_fence(true, false);
        let reached = mine.own.proxied.each_ref().map(|clock| clock.at(0));
        assert_eq!(reached, [4, 0, 0]);
    }

    #[test]
    fn what_a_consistent_fence_has_sealed_anybody_may_tell_and_another_makes_it_known() {
        let (mut writer, mut teller) = (Knowledge::default(), Knowledge::default());
        writer.own.generic.raise(2, 9);
        assert_eq!(writer.shown(), None);
        writer.pass_consistent_fence(Reach::Everywhere);
        writer.own.generic.raise(2, 10);
        // A barrier.
        teller.join(&writer);
        let mut place = BTreeMap::new();
        teller.shown().expect("sealed").leave(1, &mut place);
        let mut reader = Knowledge::default();
        reader.learn(5, &place);
        let reached = |reader: &Knowledge| reader.of(5, 1).expect("seen").generic.at(2);
        assert_eq!(reached(&reader), 0);
        reader.pass_consistent_fence(Reach::Near);
        assert_eq!(reached(&reader), 0, "a cluster is not all");
        reader.pass_consistent_fence(Reach::Everywhere);
        assert_eq!(reached(&reader), 9);
    }

    #[test]
    fn a_consistent_fence_of_a_cluster_counts_within_it() {
        let mut writer = Knowledge::default();
        writer.own.generic.raise(2, 9);
        writer.pass_consistent_fence(Reach::Near);
        let mut place = BTreeMap::new();
        writer.shown().expect("sealed").leave(1, &mut place);
        let reached = |own: u64, reach| {
            let mut reader = Knowledge::default();
            reader.learn(own, &place);
            reader.pass_consistent_fence(reach);
            reader.of(own, 1).expect("seen").generic.at(2)
        };
        assert_eq!(reached(1, Reach::Near), 9);
        assert_eq!(reached(1, Reach::Everywhere), 9);
        assert_eq!(reached(5, Reach::Everywhere), 0);
    }

    #[test]
    fn what_is_left_in_global_memory_reaches_other_clusters() {
        let (mut writer, mut reader) = (Knowledge::default(), Knowledge::default());
        writer.own.generic.raise(2, 9);
        let mut place = BTreeMap::new();
        writer.leave(1, &mut place);
        reader.learn(5, &place);
        assert_eq!(reader.of(5, 1).expect("learnt").generic.at(2), 9);
        assert!(reader.of(5, 3).is_none());
        assert_eq!(reader.own.generic.at(2), 0);
    }
}
