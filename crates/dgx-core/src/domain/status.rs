use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a cell (one contender on one shape).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Ran, and every check passed.
    Ok,
    /// Ran to the end, and a check failed.
    Wrong,
    /// Ran to the end with the right result, by luck: nothing orders two of its accesses, or it
    /// used memory that was never written.
    Racy,
    /// NVRTC or ptxas refused it.
    CompileError,
    /// The device refused the launch.
    LaunchError,
    /// The kernel or its worker died.
    Crashed,
    /// Did not return within its time or step limit.
    Hung,
    /// The variant's own `requires` rule this shape out, or it needs something that the device or
    /// dgx lacks.
    Unsupported,
    /// The result was not checked: only the time was asked for.
    NotValidated,
}

words!(Status {
    Ok = "ok",
    Wrong = "wrong",
    Racy = "racy",
    CompileError = "compile-error",
    LaunchError = "launch-error",
    Crashed = "crashed",
    Hung = "hung",
    Unsupported = "unsupported",
    NotValidated = "not-validated",
});

impl Status {
    /// Whether it may have a time: no mistake was found.
    pub fn may_be_timed(self) -> bool {
        matches!(self, Self::Ok | Self::NotValidated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_name_is_the_printed_name() {
        for status in Status::ALL {
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("\"{status}\""));
        }
    }
}
