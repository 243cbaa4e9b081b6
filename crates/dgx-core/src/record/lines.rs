//! A run file in pieces of whole lines, so that a file of any length is read
//! in the same memory and its lines can be parsed side by side.

use std::io::{self, Read};

use super::edge;

/// Read at a time, bytes.
const PIECE: u64 = 4 << 20;

/// Why reading stopped before the end.
pub(super) enum Stopped<E> {
    Io(io::Error),
    /// This line is longer than any that dgx writes.
    TooLong(usize),
    /// The callback refused a line.
    Refused(E),
}

/// Passes on the lines of `source` piece by piece, each with the number of its first line. Only the
/// last line may lack its newline.
pub(super) fn pieces<E>(
    mut source: impl Read,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), E>,
) -> Result<(), Stopped<E>> {
    let mut buffer = Vec::new();
    let mut line = 1;
    loop {
        let rest = buffer.len();
        let limited = &mut (&mut source).take(PIECE);
        let fresh = limited.read_to_end(&mut buffer).map_err(Stopped::Io)? as u64;
        let newline = buffer[rest..].iter().rposition(|b| *b == b'\n');
        let whole = match newline {
            _ if fresh < PIECE => buffer.len(),
            Some(at) => rest + at + 1,
            None if buffer.len() > edge::LINE => return Err(Stopped::TooLong(line)),
            None => continue,
        };
        let text = &buffer[..whole];
        take(line, text).map_err(Stopped::Refused)?;
        if fresh < PIECE {
            return Ok(());
        }
        line += text.iter().filter(|b| **b == b'\n').count();
        buffer.drain(..whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_whole_and_numbered() {
        let text: Vec<u8> = (0..1_000_000)
            .flat_map(|i| format!("{i}\n").into_bytes())
            .collect();
        let mut seen = 0;
        let taken = pieces(&text[..text.len() - 1], |first, piece| {
            for (i, line) in piece
                .split(|b| *b == b'\n')
                .filter(|l| !l.is_empty())
                .enumerate()
            {
                assert_eq!(line, (first + i - 1).to_string().as_bytes());
                seen += 1;
            }
            Ok::<(), ()>(())
        });
        assert!(taken.is_ok() && seen == 1_000_000, "{seen}");
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let endless = b"{}\n".chain(io::repeat(b'x'));
        let stopped = pieces(endless, |_, _| Ok::<(), ()>(()));
        assert!(matches!(stopped, Err(Stopped::TooLong(2))));
    }
}
