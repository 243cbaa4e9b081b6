//! Which allocation a stray address probably meant.

use super::{Memory, Region};

/// Bytes from the nearest allocation at which an address is not one of it gone astray.
const WILD: u64 = 1 << 30;

impl Memory {
    /// The allocation closest to an address, in words. One that is far away has nothing to do
    /// with it; nor has a variable that lies farther away than it is long.
    pub(crate) fn nearest(&self, address: u64) -> String {
        let distance = |r: &Region| {
            let end = r.base + r.len;
            address
                .saturating_sub(end - 1)
                .max(r.base.saturating_sub(address))
        };
        let plausible = |r: &&Region| !r.variable || distance(r) <= r.len;
        match self
            .regions
            .iter()
            .filter(plausible)
            .min_by_key(|r| distance(r))
        {
            None => "no allocation is near".to_owned(),
            Some(r) if distance(r) > WILD => {
                "no allocation is within a GiB of it: the pointer itself is wrong".to_owned()
            }
            Some(r) if address >= r.base + r.len => {
                let past = address - r.base - r.len;
                format!("{past} bytes past the end of {}", r.describe())
            }
            Some(r) if address < r.base => {
                format!("{} bytes before {}", r.base - address, r.describe())
            }
            Some(r) => format!("in {}", r.describe()),
        }
    }
}
