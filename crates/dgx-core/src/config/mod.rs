//! A round: its question, contenders, shapes and rules. Read from TOML and checked once; a
//! [`Round`] is consistent in itself.

mod jury;
mod limits;
mod read;
mod round;
mod shapes;
mod slurm;
pub mod target;
mod wire;

use schemars::{Schema, SchemaGenerator};

pub use limits::{FACTOR, counter_remedy};
pub use round::{
    Baseline, Gate, Juror, Jury, Measurement, Pitch, Round, Selection, Validation, Yardstick,
};
pub use slurm::{Array, Slurm};

/// The schema of a round file, for editors and other programs.
pub fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<wire::RoundFile>()
}

/// Where the keys of a round are explained.
const GUIDE: &str = "`dgx schema round` lists the keys";

/// The default of settings that are on unless a file turns them off.
fn yes() -> bool {
    true
}

/// Whether a name is suitable for tables and file names.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.contains("..")
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests;
