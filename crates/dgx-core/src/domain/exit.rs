use std::process::ExitCode;

/// The result of a command. The one definition of the exit codes that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and everything was as expected.
    Done = 0,
    /// A gate rule failed.
    GateFailed = 1,
    /// The command line, a config, a variant or a run file is wrong.
    Usage = 2,
    /// A contender's verdict differs from what its variant declares.
    Unexpected = 3,
    /// The run failed (no compiler, no backend, a lost worker, a full disk), or its output could
    /// not be written.
    CouldNotRun = 4,
    /// The data cannot answer the question.
    Inconclusive = 5,
}

impl Exit {
    /// Every code with its meaning, for `--help` and the docs.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Done, "done"),
        (Self::GateFailed, "gate failed"),
        (Self::Usage, "usage, config or file error"),
        (Self::Unexpected, "a verdict differs from the expected one"),
        (
            Self::CouldNotRun,
            "the run failed (no compiler, stopped, disk full), or its output could not be written",
        ),
        (Self::Inconclusive, "inconclusive"),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
