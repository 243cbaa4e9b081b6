//! Two files that disagree about a cell. Both were swept from the same sources
//! with the same settings, so at most one is right, and no file name says which.

use super::choice::{CellProgress, MergeSource};
use crate::diagnostic::CommandError;
use crate::domain::{Exit, Micros, Status};

/// Times of one cell that differ by more than this share are not of one kernel on one kind of card.
const APART: f64 = 0.25;

/// Refuses files that contradict each other.
pub(super) fn refuse(sources: &[MergeSource]) -> Result<(), CommandError> {
    for (place, one) in sources.iter().enumerate() {
        for other in &sources[place + 1..] {
            for shape in one.header.round_shapes() {
                let earlier =
                    one.is_before(other, &shape.name) || other.is_before(one, &shape.name);
                if !earlier {
                    compare([one, other], &shape.name)?;
                }
            }
        }
    }
    Ok(())
}

fn compare(sources: [&MergeSource; 2], shape: &str) -> Result<(), CommandError> {
    let finished = sources.iter().all(|source| source.finished(shape));
    for (id, one) in sources[0].cells(shape) {
        let Some(other) = sources[1].cells(shape).find(|(b, _)| *b == id) else {
            continue;
        };
        let known = [one, other.1];
        let cell = format!("`{id}` on `{shape}`");
        if let [Some(a), Some(b)] = known.map(|cell| cell.status)
            && a != b
            && !found_since(sources, known, shape)
        {
            let words = [a, b].map(|status| status.to_string());
            return Err(contradiction(sources, &cell, words, Exit::Unexpected));
        }
        if let [Some(a), Some(b)] = known.map(|cell| cell.log_micros)
            && finished
            && (a - b).abs() > APART.ln_1p()
        {
            let words = [a, b].map(|log| format!("{} µs", Micros(log.exp())));
            return Err(contradiction(sources, &cell, words, Exit::Usage));
        }
    }
    Ok(())
}

/// Whether one file has hazards that the other did not look for, and is the preferred one.
fn found_since(sources: [&MergeSource; 2], known: [CellProgress; 2], shape: &str) -> bool {
    [(0, 1), (1, 0)].into_iter().any(|(racy, ok)| {
        known[racy].status == Some(Status::Racy)
            && known[ok].status == Some(Status::Ok)
            && !known[ok].examined
            && sources[racy].outweighs(sources[ok], shape)
    })
}

fn contradiction(
    sources: [&MergeSource; 2],
    cell: &str,
    [a, b]: [String; 2],
    exit: Exit,
) -> CommandError {
    let [one, other] = sources.map(|source| source.path.display());
    CommandError::new(
        exit,
        format!(
            "{one} and {other} contradict each other: {cell} is {a} in the first, {b} in the second"
        ),
        "sweep that shape again, and leave out the file that is wrong; nothing was merged",
    )
}
