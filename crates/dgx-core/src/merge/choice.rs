//! Chooses the file from which each shape is taken. Timestamps are not used: the clocks of two
//! nodes may differ.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::diagnostic::CommandError;
use crate::domain::{ContenderId, Status};
use crate::record::schema::Header;
use crate::record::{Run, read};

/// A run file, and its progress on each of its shapes.
#[derive(Debug)]
pub(super) struct MergeSource {
    pub path: PathBuf,
    pub header: Header,
    shapes: BTreeMap<String, ShapeProgress>,
}

/// The data of a file on a shape.
#[derive(Debug)]
struct ShapeProgress {
    finished: bool,
    blocks: u64,
    verdicts: usize,
    racy: usize,
    examined: usize,
    card: Option<String>,
    cells: BTreeMap<ContenderId, CellProgress>,
}

/// The data of a file on a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellProgress {
    pub status: Option<Status>,
    /// The emulator watched it for hazards.
    pub examined: bool,
    /// ln(µs), if it was timed.
    pub log_micros: Option<f64>,
}

/// Hazards come first: a file whose sweep did not look for them cannot disprove them. Then the
/// progress of a file.
type Weight = (usize, (bool, u64, usize, usize));

impl ShapeProgress {
    /// The file with the greater weight is taken.
    fn weight(&self) -> Weight {
        let done = (self.finished, self.blocks, self.verdicts, self.examined);
        (self.racy, done)
    }

    /// Of equal files the slower times count, so that no choice of file makes a run faster.
    fn slowness(&self) -> i64 {
        let times = self.cells.values().filter_map(|cell| cell.log_micros);
        (1e9 * times.sum::<f64>()) as i64
    }
}

impl MergeSource {
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let run = read(path).map_err(CommandError::from)?;
        let names = run.header.shapes.iter().map(|s| &s.name);
        let begun = names.filter(|name| run.begun_on(name) || run.finished(name));
        Ok(Self {
            path: path.to_owned(),
            shapes: begun
                .map(|name| (name.clone(), standing(&run, name)))
                .collect(),
            header: run.header,
        })
    }

    pub(super) fn finished(&self, shape: &str) -> bool {
        self.shapes.get(shape).is_some_and(|s| s.finished)
    }

    pub(super) fn cells(&self, shape: &str) -> impl Iterator<Item = (&ContenderId, CellProgress)> {
        let cells = self.shapes.get(shape).into_iter().flat_map(|s| &s.cells);
        cells.map(|(id, known)| (id, *known))
    }

    /// Whether this is a merged run that took a shape from the other, which may have continued
    /// since: a timed shape can still turn out racy.
    pub(super) fn is_before(&self, other: &Self, shape: &str) -> bool {
        let file = other.path.file_name().unwrap_or_default().to_string_lossy();
        let secret = other.header.settings.secret;
        let mut parts = self.header.parts.iter();
        parts.any(|part| {
            let same = part.file == file && (part.secret.is_none() || part.secret == secret);
            let mut names = part.shapes.iter().chain(&part.unfinished);
            same && names.any(|name| name == shape)
        })
    }

    /// Whether this one is preferred to the other, whatever their names.
    pub(super) fn outweighs(&self, other: &Self, shape: &str) -> bool {
        let weight = |source: &Self| source.shapes.get(shape).map(ShapeProgress::weight);
        weight(self) > weight(other)
    }

    /// Whether a run has at least as much of a shape as this one had; a sweep may have continued in
    /// the meantime.
    pub(super) fn is_in(&self, run: &Run, shape: &str) -> bool {
        self.shapes.get(shape).is_none_or(|s| {
            run.blocks_of(shape) >= s.blocks && run.verdicts_of(shape) >= s.verdicts
        })
    }
}

fn standing(run: &Run, shape: &str) -> ShapeProgress {
    let count =
        |wanted: &dyn Fn(&ContenderId) -> bool| run.entrants().filter(|id| wanted(id)).count();
    ShapeProgress {
        finished: run.finished(shape),
        blocks: run.blocks_of(shape),
        verdicts: run.verdicts_of(shape),
        racy: count(&|id| run.status(id, shape) == Some(Status::Racy)),
        examined: count(&|id| run.was_examined(id, shape)),
        card: run.card(shape).map(str::to_owned),
        cells: run
            .entrants()
            .map(|id| (id.clone(), known(run, id, shape)))
            .collect(),
    }
}

fn known(run: &Run, id: &ContenderId, shape: &str) -> CellProgress {
    let modelled = run.estimate(id, shape).map(|e| e.micros.0.ln());
    let times = run.times(id, shape).processes;
    let means = times.iter().map(|(_, moments)| moments.mean);
    let measured = (!times.is_empty()).then(|| means.sum::<f64>() / times.len() as f64);
    CellProgress {
        status: run.status(id, shape),
        examined: run.was_examined(id, shape),
        log_micros: modelled.or(measured),
    }
}

/// In an order that does not depend on the command line.
pub(super) fn sort(sources: &mut [MergeSource]) {
    let number = |source: &MergeSource| source.header.shard.as_ref().map(|s| (s.of, s.number));
    sources.sort_by_cached_key(|source| {
        let name = source.path.file_name().map(ToOwned::to_owned);
        (number(source), name, source.path.clone())
    });
}

/// The file that each shape is taken from.
#[derive(Debug)]
pub(super) struct Choice {
    /// Shapes by the index of their file, in the round's order.
    taken: Vec<Vec<String>>,
}

impl Choice {
    /// The one with more racy cells, then one that finished the shape before one that did not, then
    /// the one with more blocks, more verdicts, more examined cells; then one that the other was
    /// merged from, then the one with slower times; then the first in order.
    pub(super) fn among(sources: &[MergeSource]) -> Self {
        let mut taken = vec![Vec::new(); sources.len()];
        for shape in sources[0].header.round_shapes() {
            let has = |source: &MergeSource| {
                let standing = source.shapes.get(&shape.name)?;
                let later = sources.iter().any(|s| s.is_before(source, &shape.name));
                Some((standing.weight(), later, standing.slowness()))
            };
            let standings = sources.iter().enumerate();
            let best = standings
                .filter_map(|(index, source)| Some((has(source)?, Reverse(index))))
                .max();
            if let Some((_, Reverse(index))) = best {
                taken[index].push(shape.name.clone());
            }
        }
        Self { taken }
    }

    pub(super) fn shapes_from(&self, source: usize) -> &[String] {
        &self.taken[source]
    }

    /// Shapes that no file has any data on.
    pub(super) fn absent<'a>(&self, header: &'a Header) -> Vec<&'a String> {
        let taken = |name: &String| self.taken.iter().any(|names| names.contains(name));
        let names = header.shapes.iter().map(|s| &s.name);
        names.filter(|name| !taken(name)).collect()
    }

    /// The card of every timed shape that is taken.
    pub(super) fn cards<'a>(
        &'a self,
        sources: &'a [MergeSource],
    ) -> impl Iterator<Item = Option<&'a str>> {
        let pairs = self.taken.iter().zip(sources);
        pairs.flat_map(|(names, source)| {
            let standings = names.iter().filter_map(|name| source.shapes.get(name));
            let cards = standings
                .filter(|s| s.blocks > 0)
                .map(|s| s.card.as_deref());
            // If nothing is timed, the card that it ran on.
            let ran = source.header.device.uuid.as_deref();
            let silent = names.iter().filter(|n| source.shapes[*n].blocks == 0);
            cards.chain(silent.map(move |_| ran))
        })
    }
}
