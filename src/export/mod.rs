//! A run's findings for other programs: JSON, CSV and Markdown. Units stand in
//! the data, and a field that does not apply is null rather than absent.

mod csv;
mod document;
mod file;
pub(crate) mod gate;
pub(crate) mod hazards;
mod markdown;
#[cfg(test)]
mod tests;

use schemars::{Schema, SchemaGenerator};

pub(crate) use csv::{csv, csv_summary};
pub(crate) use document::{Document, Quantity};
pub(crate) use file::{is_standard_output, probe, replaces, write};
pub(crate) use markdown::markdown;

/// What an export says, for those who read it.
pub(crate) fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<Document>()
}
