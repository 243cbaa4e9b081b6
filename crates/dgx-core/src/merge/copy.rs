use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::Deserialize;

use crate::files;
use crate::record::schema::Line;

/// Copies every line about these shapes unchanged, except builds that also serve others; returns
/// the recorded seconds by stage.
pub(super) fn lines(
    path: &Path,
    shapes: &BTreeSet<&str>,
    out: &mut impl Write,
) -> io::Result<BTreeMap<String, f64>> {
    let mut file = BufReader::with_capacity(1 << 20, files::open(path)?);
    let mut seconds = BTreeMap::new();
    let mut line = Vec::new();
    // The merged run has its own header.
    file.read_until(b'\n', &mut line)?;
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            return Ok(seconds);
        }
        if let Some(shape) = plain_block(&line) {
            if shapes.contains(shape) {
                copy(&line, out)?;
            }
            continue;
        }
        // Only the last line can be half written, and the reader skipped it too.
        let Ok(about) = serde_json::from_slice::<AboutShape>(&line) else {
            continue;
        };
        match about.shape {
            Some(shape) if !shapes.contains(shape.as_str()) => {}
            Some(_) => copy(&line, out)?,
            None => match serde_json::from_slice(&line) {
                Ok(Line::Build(mut build)) => {
                    build.shapes.retain(|s| shapes.contains(s.as_str()));
                    if !build.shapes.is_empty() {
                        let mut text = serde_json::to_vec(&Line::Build(build))?;
                        text.push(b'\n');
                        out.write_all(&text)?;
                    }
                }
                Ok(Line::End(end)) => {
                    for (stage, time) in end.seconds {
                        *seconds.entry(stage).or_insert(0.0) += time;
                    }
                }
                _ => {}
            },
        }
    }
}

fn copy(line: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(line)?;
    match line.ends_with(b"\n") {
        true => Ok(()),
        false => out.write_all(b"\n"),
    }
}

/// The shape of a block in the usual form, whole and without escapes: nearly all of a file, and
/// most of the time.
fn plain_block(line: &[u8]) -> Option<&str> {
    const BLOCK: &[u8] = b"{\"type\":\"block\",\"shape\":\"";
    let rest = line.strip_prefix(BLOCK)?;
    let end = rest.iter().position(|b| *b == b'"')?;
    let name = str::from_utf8(&rest[..end]).ok()?;
    (line.ends_with(b"}\n") && !name.contains('\\')).then_some(name)
}

/// The part of a line that decides whether it is copied: all but builds and the end are about one
/// shape.
#[derive(Deserialize)]
struct AboutShape {
    shape: Option<String>,
}
