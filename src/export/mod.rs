//! A run's findings for other programs: JSON, CSV and Markdown. Units stand in
//! the data, and a field that does not apply is null rather than absent.

mod csv;
mod document;
mod file;
pub mod gate;
mod markdown;
#[cfg(test)]
mod tests;

pub use csv::csv;
pub use document::{Document, Quantity};
pub use file::{probe, write};
pub use markdown::{escape as escape_markdown, markdown};
