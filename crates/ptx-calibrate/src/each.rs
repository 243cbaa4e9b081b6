//! Emulating many things side by side.

use std::sync::Mutex;
use std::thread;

/// What `deed` makes of each of the things, in their order. Not by rayon: the
/// emulator waits for threads of its own, and a thread of rayon's that waits
/// takes up the next thing meanwhile, and the next within that, until its stack
/// is full.
pub(super) fn each<T: Sync, R: Send>(things: &[T], deed: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(things.iter().enumerate());
    let take = || next.lock().unwrap_or_else(|e| e.into_inner()).next();
    let work = || {
        let mut done = Vec::new();
        while let Some((place, thing)) = take() {
            done.push((place, deed(thing)));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, made)| made).collect()
}
