//! A run's findings for other programs: JSON, CSV and Markdown. Units stand in
//! the data, and a field that does not apply is null rather than absent.

mod csv;
mod document;
mod markdown;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::Path;

pub use csv::csv;
pub use document::{Document, Quantity};
pub use markdown::{escape as escape_markdown, markdown};

use crate::diagnostic::InputError;

/// Writes `text` to `path` whole or not at all.
pub fn write(path: &Path, text: &str) -> Result<(), InputError> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let failed = |error: std::io::Error| {
        InputError::new(
            format!("cannot write {}: {error}", path.display()),
            "choose a folder that exists and can be written to",
        )
    };
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    readable_by_all(&file).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// A temporary file is its owner's alone; a result is for everyone.
#[cfg(unix)]
fn readable_by_all(file: &tempfile::NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(permissions)
}

#[cfg(not(unix))]
fn readable_by_all(_file: &tempfile::NamedTempFile) -> std::io::Result<()> {
    Ok(())
}
