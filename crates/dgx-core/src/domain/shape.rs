use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bytes;

/// One problem of a grouped call: C is `m` × `n`, reduced over `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub m: u32,
    pub n: u32,
    pub k: u32,
}

impl Group {
    /// Both GEMMs' multiply-adds, counted as two operations each.
    pub fn flops(&self) -> f64 {
        4.0 * f64::from(self.m) * f64::from(self.n) * f64::from(self.k)
    }

    /// The fewest bytes a call must move: operands and scales read once, C written once.
    pub fn min_bytes(&self) -> Bytes {
        let (m, n, k) = (u64::from(self.m), u64::from(self.n), u64::from(self.k));
        let rows = m + 2 * n;
        Bytes(rows * (k / 2 + k / 16) + m * n * 2)
    }
}

/// One row of the shape matrix: a list of groups under a name. A dense problem is one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub name: String,
    pub groups: Vec<Group>,
}

impl Shape {
    pub fn flops(&self) -> f64 {
        self.groups.iter().map(Group::flops).sum()
    }

    pub fn min_bytes(&self) -> Bytes {
        Bytes(self.groups.iter().map(|g| g.min_bytes().0).sum())
    }
}
