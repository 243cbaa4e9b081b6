use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How often a waiting stage looks again without news: an interrupt brings none.
const GLANCE: Duration = Duration::from_millis(200);

/// The state of work in the background, and those that wait for it.
pub(super) struct SharedProgress<T> {
    state: Mutex<(T, bool)>,
    news: Condvar,
}

/// Announces that the work has ended, however it did.
pub(super) struct AnnouncesEnd<'a, T>(&'a SharedProgress<T>);

impl<T> Drop for AnnouncesEnd<'_, T> {
    fn drop(&mut self) {
        self.0.state().1 = true;
        self.0.news.notify_all();
    }
}

impl<T> SharedProgress<T> {
    pub(super) fn new(state: T) -> Self {
        Self {
            state: Mutex::new((state, false)),
            news: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, (T, bool)> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn tell(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.state().0);
        self.news.notify_all();
    }

    pub(super) fn read<R>(&self, of: impl FnOnce(&T) -> R) -> R {
        of(&self.state().0)
    }

    /// The work ends when this is dropped.
    pub(super) fn ends(&self) -> AnnouncesEnd<'_, T> {
        AnnouncesEnd(self)
    }

    /// Waits until there is something to find in the state; `found` is told whether the work has
    /// ended.
    pub(super) fn wait<R>(&self, found: impl Fn(&T, bool) -> Option<R>) -> R {
        let mut state = self.state();
        loop {
            if let Some(found) = found(&state.0, state.1) {
                return found;
            }
            state = match self.news.wait_timeout(state, GLANCE) {
                Ok((next, _)) => next,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
