//! Operands as rows of 32 bytes, the k of one instruction, wherever they come from.

use super::super::Element;
use super::super::descriptor::{Major, Matrix};
use super::{Form, LANES};

/// A row of A or a column of B.
pub(super) type Row = [u8; 32];

/// Where the A of one CTA is.
#[derive(Clone, Copy)]
pub(crate) enum Source<'s> {
    Shared(Matrix, &'s [u8]),
    /// Words of tensor memory from a column on; `half` is 16 for the upper half of the lanes, and
    /// a shifted A is that of the lane above.
    Tmem {
        words: &'s [u32],
        column: u32,
        half: u32,
        shifted: bool,
    },
}

/// How codes lie in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// One behind the other.
    Dense,
    /// Sixteen small codes at the beginning of each chunk.
    Padded,
    /// Small codes in bytes, as `tcgen05.cp` leaves them.
    Bytes,
}

impl Source<'_> {
    fn packing(&self, form: &Form, element: Element) -> Packing {
        match self {
            _ if form.kind.fours() || element.bits() >= 8 => Packing::Dense,
            Source::Shared(..) => Packing::Padded,
            Source::Tmem { .. } => Packing::Bytes,
        }
    }
}

/// The operands of an instruction, read.
pub(crate) struct Operands {
    /// Rows of A in each CTA.
    pub(super) a: [Vec<Row>; 2],
    /// Columns of B, of all CTAs.
    pub(super) b: Vec<Row>,
    /// The second 32 bytes of each, if A is sparse.
    pub(super) b_next: Vec<Row>,
    pub(super) packing: [Packing; 2],
}

/// A chunk outside the CTA's shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outside {
    pub address: u32,
}

impl Operands {
    /// Reads A and B, each CTA's part from its own memory.
    pub(crate) fn read(form: &Form, ctas: &[(Source<'_>, Matrix, &[u8])]) -> Result<Self, Outside> {
        let mut operands = Self {
            a: [Vec::new(), Vec::new()],
            b: Vec::with_capacity(form.n as usize),
            b_next: Vec::new(),
            packing: [Packing::Dense; 2],
        };
        for (rows, (a, b, shared)) in operands.a.iter_mut().zip(ctas) {
            rows.reserve(form.rows() as usize);
            match a {
                Source::Shared(matrix, shared) => {
                    read_shared(form, matrix, shared, form.rows(), rows)?;
                }
                Source::Tmem { .. } => read_tmem(form, a, rows),
            }
            let share = form.n / form.ctas;
            read_shared(form, b, shared, share, &mut operands.b)?;
            if let Some(next) = form.next_b(b) {
                read_shared(form, &next, shared, share, &mut operands.b_next)?;
            }
            let b = Source::Shared(*b, shared);
            operands.packing = [a.packing(form, form.a), b.packing(form, form.b)];
        }
        Ok(operands)
    }
}

fn chunk(shared: &[u8], address: u32) -> Result<&[u8; 16], Outside> {
    shared
        .get(address as usize..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(Outside { address })
}

fn read_shared(
    form: &Form,
    matrix: &Matrix,
    shared: &[u8],
    rows: u32,
    out: &mut Vec<Row>,
) -> Result<(), Outside> {
    if matrix.major == Major::Mn {
        return read_transposed(form, matrix, shared, rows, out);
    }
    // Rows come in eights, of which N may have an odd number but no part.
    for group in 0..rows / 8 {
        for [low, high] in matrix.group_chunks(group) {
            let mut bytes = [0; 32];
            bytes[..16].copy_from_slice(chunk(shared, low)?);
            bytes[16..].copy_from_slice(chunk(shared, high)?);
            out.push(bytes);
        }
    }
    Ok(())
}

/// Turns chunks of rows at one k into rows.
fn read_transposed(
    form: &Form,
    matrix: &Matrix,
    shared: &[u8],
    rows: u32,
    out: &mut Vec<Row>,
) -> Result<(), Outside> {
    let unit = matrix.unit as usize;
    let each = 16 / unit;
    let first = out.len();
    out.resize(first + rows as usize, [0; 32]);
    for group in 0..rows.div_ceil(matrix.unit) {
        for k in 0..form.kind.depth() {
            let bytes = chunk(shared, matrix.column_chunk(group, k))?;
            let of_group = out[first..].iter_mut().skip(group as usize * unit);
            for (row, code) in of_group.zip(bytes.chunks_exact(each)) {
                row[k as usize * each..][..each].copy_from_slice(code);
            }
        }
    }
    Ok(())
}

fn read_tmem(form: &Form, source: &Source<'_>, out: &mut Vec<Row>) {
    let Source::Tmem {
        words,
        column,
        half,
        shifted,
    } = *source
    else {
        return;
    };
    for row in 0..form.rows() {
        // Where D's row is, so is A's.
        let lane = match form.half_lanes() {
            true => row % 16 + 32 * (row / 16) + half,
            false => row,
        };
        let lane = (lane + u32::from(shifted)).min(LANES as u32 - 1) as usize;
        let mut bytes = [0; 32];
        for (i, word) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *word = words[(column as usize + i) * LANES + lane].to_le_bytes();
        }
        out.push(bytes);
    }
}

/// The codes of a row of elements, in order of k.
pub(super) fn codes(row: &Row, element: Element, packing: Packing, mut each: impl FnMut(u32)) {
    match (packing, element.bits()) {
        (Packing::Dense, 32) => row
            .as_chunks::<4>()
            .0
            .iter()
            .for_each(|w| each(u32::from_le_bytes(*w))),
        (Packing::Dense, 16) => row
            .as_chunks::<2>()
            .0
            .iter()
            .for_each(|h| each(u16::from_le_bytes(*h).into())),
        (Packing::Dense, 4) => row.iter().for_each(|&byte| {
            each((byte & 15).into());
            each((byte >> 4).into());
        }),
        (Packing::Padded, bits) => {
            for chunk in row.as_chunks::<16>().0 {
                let packed = u128::from_le_bytes(*chunk);
                (0..16).for_each(|i| each((packed >> (bits * i)) as u32 & ((1 << bits) - 1)));
            }
        }
        (Packing::Bytes, 4) => row.iter().for_each(|&byte| each((byte >> 2 & 15).into())),
        _ => row.iter().for_each(|&byte| each(byte.into())),
    }
}
