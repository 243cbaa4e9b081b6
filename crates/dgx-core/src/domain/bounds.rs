//! Limits of configs, variants and run files. Writers and readers of run files share them, so that
//! no run file is written that cannot be read.

use std::ops::RangeInclusive;

/// Longest name of a round, a contender or a shape, characters.
pub const NAME: usize = 200;
/// Microseconds that a call can take: from less than a clock cycle to a quarter of an hour.
pub const MICROS: RangeInclusive<f64> = 1e-3..=1e9;
/// Plausible claimed speedups.
pub const CLAIM: RangeInclusive<f64> = 1e-3..=1e3;
pub const CONTENDERS: usize = 2000;
/// Contenders times shapes.
pub const CELLS: usize = 250_000;
/// Terms of a cost: fitting tries every subset of non-zero ones.
pub const TERMS: usize = 10;
pub const GROUPS: usize = 4096;
/// Far beyond any memory, small enough that sizes in bytes fit 64 bits.
pub(crate) const EXTENT: u32 = 1 << 30;

/// Refuses a name that a `what` may not have.
pub fn name(what: &str, name: &str) -> Result<(), String> {
    let one_line = !name.trim().is_empty() && !name.contains(['\n', '\t']);
    if one_line && name.chars().count() <= NAME {
        return Ok(());
    }
    let start: String = name.chars().take(20).collect();
    let more = match start.len() < name.len() {
        true => " …",
        false => "",
    };
    Err(format!(
        "{start:?}{more} is not a name for a {what}: use one line of 1 to {NAME} characters"
    ))
}
