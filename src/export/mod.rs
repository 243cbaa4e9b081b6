//! A run's findings for other programs: JSON, CSV and Markdown. The data state their units, and a
//! field that does not apply is null, not absent.

mod csv;
mod file;
pub(crate) mod gate;
pub(crate) mod hazards;
mod junit;
mod markdown;
mod run;
#[cfg(test)]
mod tests;

use schemars::{Schema, SchemaGenerator};

pub(crate) use csv::{csv, csv_summary};
pub(crate) use file::{is_standard_output, pretty, probe, replaces, write};
pub(crate) use markdown::markdown;
pub(crate) use run::{Quantity, RunExport};

/// The schema of an export.
pub(crate) fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<RunExport>()
}
