//! Tests of machine code where none can be made; those of the library share this file.

use std::io::Write;

use super::Level;

/// Whether no machine code can be made here, which is then said, whatever becomes of the test's
/// output.
pub(super) fn is_skipped() -> bool {
    let skipped = Level::best() < Level::Avx512;
    if skipped {
        let test = std::thread::current();
        let test = test.name().unwrap_or("a test");
        _ = writeln!(
            std::io::stderr(),
            "{test} is skipped: machine code needs AVX-512"
        );
    }
    skipped
}
