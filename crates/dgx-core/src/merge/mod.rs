//! Joins the run files of one round, swept in parts. A shape is taken whole from one file, so that
//! all times that are compared come from one card. Files of another round and files that contradict
//! each other are named and refused.

mod choice;
mod command;
mod conflict;
mod copy;
mod fit;

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::diagnostic::CommandError;
use crate::domain::{Joined, first_few, typed};
use crate::record::schema::{Header, Line, MergedPart, RunEnd};
use crate::record::{Run, Slot, read};
use choice::{Choice, MergeSource};
pub use command::then;

/// The result of a merge.
#[derive(Debug)]
pub struct Merged {
    pub run: Run,
    /// The missing parts, and the commands that complete them; empty if nothing is missing.
    pub missing: Vec<Missing>,
}

/// Shapes that no file has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub what: String,
    pub commands: Vec<String>,
    /// The files the commands write, unless they continue the merged run itself.
    pub files: Vec<PathBuf>,
}

/// The header fields of the merged run that differ from those of the parts.
#[derive(Clone, Debug, Default)]
pub struct HeaderChanges {
    pub argv: Vec<String>,
    /// The path of the round, if it differs from that of the parts.
    pub config: Option<String>,
}

/// Merges `files` into `slot`, with the run already there.
pub fn merge(files: &[PathBuf], slot: Slot, title: HeaderChanges) -> Result<Merged, CommandError> {
    let mut sources = Vec::new();
    let before = slot.has_a_run().then(|| slot.path().to_owned());
    for path in files.iter().chain(&before) {
        sources.push(MergeSource::read(path)?);
    }
    choice::sort(&mut sources);
    let first = &sources[0].header;
    for source in &sources[1..] {
        if let Some(why) = fit::unlike(first, &source.header) {
            return Err(refused(&sources[0].path, &source.path, &why));
        }
    }
    conflict::refuse(&sources)?;
    let choice = Choice::among(&sources);
    let header = header(&sources, &choice, title);
    let missing = missing(&header, &sources, &choice, slot.path());
    let run = write(&header, &sources, &choice, &missing, slot)?;
    Ok(Merged { run, missing })
}

fn refused(one: &Path, other: &Path, why: &str) -> CommandError {
    CommandError::usage(
        format!(
            "{} and {} cannot be merged: {why}",
            one.display(),
            other.display()
        ),
        "merge parts of one round that were swept alike; leave out the one that does not belong",
    )
}

/// The header of the merged run.
fn header(sources: &[MergeSource], choice: &Choice, title: HeaderChanges) -> Header {
    let mut header = sources[0].header.clone();
    header.shapes = header.round_shapes().to_vec();
    header.shard = None;
    // None of its parts is newer than the merged run.
    let starts = sources.iter().map(|source| &source.header.started);
    header.started = starts.max().cloned().unwrap_or_default();
    header.argv = title.argv;
    // Commands on the merged run need the variants of its parts.
    if header.named_folders().next().is_none() {
        let folders = sources[0].header.named_folders();
        let words = folders.flat_map(|folder| ["--variants".to_owned(), folder.to_owned()]);
        header.argv.extend(words);
    }
    header.parts = parts(sources, choice);
    if let Some(path) = title.config {
        header.config.path = path;
    }
    let cards: BTreeSet<Option<&str>> = choice.cards(sources).collect();
    header.device.uuid = match cards.into_iter().collect::<Vec<_>>().as_slice() {
        [only] => only.map(str::to_owned),
        _ => None,
    };
    header
}

fn parts(sources: &[MergeSource], choice: &Choice) -> Vec<MergedPart> {
    let mut parts = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let taken = choice.shapes_from(index);
        let (shapes, unfinished): (Vec<&String>, Vec<&String>) =
            taken.iter().partition(|name| source.finished(name));
        let file = source.path.file_name().unwrap_or_default();
        // A merged run lists its own parts.
        let earlier = &source.header.parts;
        for part in earlier {
            let kept = |names: &[String], of: &[&String]| -> Vec<String> {
                let names = names.iter().filter(|name| of.contains(name));
                names.cloned().collect()
            };
            let both = [part.shapes.as_slice(), &part.unfinished].concat();
            parts.push(MergedPart {
                shapes: kept(&both, &shapes),
                unfinished: kept(&both, &unfinished),
                ..part.clone()
            });
        }
        let known = |name: &&String| {
            let mut earlier = earlier.iter();
            !earlier.any(|p| p.shapes.contains(name) || p.unfinished.contains(name))
        };
        let shard = source.header.shard.as_ref();
        parts.push(MergedPart {
            file: file.to_string_lossy().into_owned(),
            shard: shard.map(|s| format!("{}/{}", s.number, s.of)),
            shapes: shapes.into_iter().filter(known).cloned().collect(),
            unfinished: unfinished.into_iter().filter(known).cloned().collect(),
            secret: source.header.settings.secret,
        });
    }
    parts.retain(|part| !part.shapes.is_empty() || !part.unfinished.is_empty());
    parts
}

/// The unfinished shapes: begun in some file, or in none.
fn missing(
    header: &Header,
    sources: &[MergeSource],
    choice: &Choice,
    whole: &Path,
) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let taken = choice.shapes_from(index);
        let open: Vec<&String> = taken.iter().filter(|s| !source.finished(s)).collect();
        if !open.is_empty() {
            let path = source.path.display();
            let shard = source.header.shard.as_ref();
            let part = shard.map_or(String::new(), |s| format!("shard {}/{}, ", s.number, s.of));
            missing.push(Missing {
                what: format!("{} not finished ({part}{path})", named(&open)),
                commands: vec![format!("dgx sweep --resume {}", typed(&source.path))],
                files: (source.path != whole)
                    .then(|| source.path.clone())
                    .into_iter()
                    .collect(),
            });
        }
    }
    let absent: Vec<&String> = choice.absent(header);
    if !absent.is_empty() {
        missing.push(unswept(header, sources, &absent, whole));
    }
    missing
}

/// Shapes without any data: with the shards that contain them, if all files are shards of one
/// division.
fn unswept(header: &Header, sources: &[MergeSource], absent: &[&String], whole: &Path) -> Missing {
    let shards: Vec<(u32, u32)> = sources
        .iter()
        .filter_map(|s| s.header.shard.as_ref())
        .map(|s| (s.number, s.of))
        .collect();
    let of: BTreeSet<u32> = shards.iter().map(|(_, of)| *of).collect();
    let lacking: Vec<u32> = match of.into_iter().collect::<Vec<_>>().as_slice() {
        // There are never more shards than shapes, whatever a file says.
        [of] if *of as usize <= header.shapes.len() => (1..=*of)
            .filter(|number| !shards.contains(&(*number, *of)))
            .collect(),
        _ => Vec::new(),
    };
    let part = sources.iter().find(|s| s.header.shard.is_some());
    let lacking = lacking.iter().map(|number| (*number, shards[0].1));
    let lacking: Vec<(u32, u32)> = lacking.collect();
    let swept: Option<Vec<String>> = (lacking.iter())
        .map(|shard| {
            let into = command::shard_file(whole, *shard);
            part.and_then(|part| command::like(&part.header.argv, *shard, &into))
        })
        .collect();
    let names: Vec<String> = lacking.iter().map(|(i, n)| format!("{i}/{n}")).collect();
    let absent = named(absent);
    let what = match names.as_slice() {
        [] => format!("{absent} in no file"),
        [shard] => format!("{absent} in no file: missing shard {shard}"),
        all => format!("{absent} in no file: missing shards {}", all.join(", ")),
    };
    match swept {
        Some(commands) if !commands.is_empty() => Missing {
            what,
            commands,
            files: lacking
                .iter()
                .map(|s| command::shard_file(whole, *s))
                .collect(),
        },
        _ => Missing {
            what,
            commands: vec![command::resume(whole, part.map_or(header, |p| &p.header))],
            files: Vec::new(),
        },
    }
}

/// Shapes named before the rest is counted.
const NAMED: usize = 6;

fn named(shapes: &[&String]) -> String {
    let names = shapes.iter().map(|name| (*name).clone()).collect();
    let list = first_few(names, NAMED, "more");
    let noun = if shapes.len() == 1 { "shape" } else { "shapes" };
    let verb = if shapes.len() == 1 { "is" } else { "are" };
    format!("{noun} {list} {verb}")
}

/// Writes the merged run to a draft, reads it back, and moves it into place.
fn write(
    header: &Header,
    sources: &[MergeSource],
    choice: &Choice,
    missing: &[Missing],
    slot: Slot,
) -> Result<Run, CommandError> {
    let mut draft = slot.draft().map_err(|e| CommandError::from(&e))?;
    let io = |error: std::io::Error| {
        CommandError::could_not_run(
            format!("cannot write {}: {error}", slot.path().display()),
            "check space and permissions, and merge again: the input files are unchanged",
        )
    };
    let mut seconds = std::collections::BTreeMap::new();
    {
        let mut out = BufWriter::with_capacity(1 << 20, draft.as_file_mut());
        line(&mut out, &Line::Header(Box::new(header.clone()))).map_err(io)?;
        for (index, source) in sources.iter().enumerate() {
            let taken: BTreeSet<&str> = choice
                .shapes_from(index)
                .iter()
                .map(|s| s.as_str())
                .collect();
            if taken.is_empty() {
                continue;
            }
            let spent = copy::lines(&source.path, &taken, &mut out).map_err(io)?;
            for (stage, time) in spent {
                *seconds.entry(stage).or_insert(0.0) += time;
            }
        }
        out.flush().map_err(io)?;
    }
    let mut run = read(draft.path()).map_err(CommandError::from)?;
    for (index, source) in sources.iter().enumerate() {
        let mut taken = choice.shapes_from(index).iter();
        if let Some(shape) = taken.find(|shape| !source.is_in(&run, shape)) {
            return Err(CommandError::could_not_run(
                format!(
                    "{}: lines about {shape} were not understood",
                    source.path.display()
                ),
                "the file changed while it was read: merge again",
            ));
        }
    }
    let what = missing.iter().map(|m| m.what.as_str()).joined("; ");
    let decision = run.decision(seconds.get("measure").copied().unwrap_or_default());
    let end = RunEnd {
        complete: missing.is_empty(),
        reason: (!missing.is_empty()).then_some(what),
        seconds,
        decision: Some(decision).filter(|d| !d.is_empty()),
    };
    line(draft.as_file_mut(), &Line::End(end.clone())).map_err(io)?;
    // The path under which it will be read.
    run.path = slot.fill(draft).map_err(|e| CommandError::from(&e))?;
    run.end = Some(end);
    Ok(run)
}

fn line(out: &mut impl Write, line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)
}

#[cfg(test)]
mod tests;
