use serde::{Deserialize, Serialize};

/// A pitch: the speedup its author promised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub geomean: f64,
    pub over: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
