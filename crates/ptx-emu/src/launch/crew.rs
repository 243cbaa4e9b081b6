//! Host threads of launches that ask for a number of them.

use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::LaunchError;

/// Pools no launch uses now. Making one takes as long as a small launch, and its threads keep what
/// CTAs leave behind.
static IDLE: Mutex<Vec<ThreadPool>> = Mutex::new(Vec::new());

/// Idle pools kept, at most.
const MOST: usize = 4;

/// Runs `work` in so many threads of its own.
pub(super) fn with<T: Send>(
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> Result<T, LaunchError> {
    let pool = match idle(threads) {
        Some(pool) => pool,
        None => ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| LaunchError::Threads {
                threads,
                reason: e.to_string(),
            })?,
    };
    let done = pool.install(work);
    let mut pools = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if pools.len() < MOST {
        pools.push(pool);
    }
    Ok(done)
}

/// Takes a pool of that size, if there is one.
fn idle(threads: usize) -> Option<ThreadPool> {
    let mut pools = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |pool: &ThreadPool| pool.current_num_threads() == threads;
    let at = pools.iter().rposition(fits)?;
    Some(pools.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_gets_as_many_threads_as_it_asks_for_and_nobody_elses() {
        let count = || rayon::current_num_threads();
        for threads in [3, 2, 3, 3] {
            assert_eq!(with(threads, count).expect("threads"), threads);
        }
        let inner = with(2, || with(2, count).expect("threads")).expect("threads");
        assert_eq!(inner, 2);
    }
}
