use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output};

/// A process that a test has started, and that does not outlive it. One that is
/// told to wait would go on waiting for an hour if the test failed meanwhile;
/// its workers see that it is gone, and end.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("it starts")))
    }

    /// Waits for its end: how it was, and what it said where that is piped.
    pub(crate) fn output(mut self) -> Output {
        let child = self.0.take().expect("it was started");
        child.wait_with_output().expect("it ends")
    }

    /// Ends it at once, and waits until it has.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it was started")
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it was started")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // One that has ended is content with that.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
