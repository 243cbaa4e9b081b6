//! `ldmatrix`, `stmatrix` and `movmatrix`.
//!
//! A matrix of 8×8 16-bit elements is eight rows of 16 bytes in shared memory and one register of a
//! warp: lane l holds elements 2·(l%4) and 2·(l%4)+1 of row l/4, or of column l/4 with `.trans`.
//! Blackwell also moves bytes; lane l then has, with g = l/4 and t = l%4, in byte e of a register
//!
//! - m16n16, transposed, two registers: row 4t+e, column g (g + 8 in the second register);
//! - m8n16, of packed 4- or 6-bit elements that it spreads to bytes: row g, element 4t+e;
//! - m16n8, stored transposed: row 2t+e%2 of memory, byte g + 8·⌊e/2⌋.

use crate::numeric::Lanes;

/// What `ldmatrix` and `stmatrix` move at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tile {
    /// m8n8 of 16-bit elements.
    Halves { trans: bool },
    /// m16n16, loaded as bytes and transposed; of elements of so many bits as below, or bytes.
    Square { bits: u32 },
    /// m8n16 of elements of so many bits, packed in the first bytes of each 16 and loaded as bytes.
    Packed { bits: u32 },
    /// m16n8 of bytes, stored transposed.
    TallBytes,
}

impl Tile {
    /// Rows of 16 bytes in shared memory, each of which a lane gives the address of.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::Square { .. } => 16,
            Self::Halves { .. } | Self::Packed { .. } | Self::TallBytes => 8,
        }
    }

    /// Registers of a matrix.
    pub(crate) fn registers(self) -> usize {
        self.rows() / 8
    }

    /// A register of a matrix of bytes that is loaded.
    fn bytes_of(self, rows: &[[u8; 16]], register: usize) -> Lanes {
        std::array::from_fn(|lane| {
            let (g, t) = (lane / 4, lane % 4);
            let element = |row: usize, index: usize, bits: u32| {
                let row = u128::from_le_bytes(rows[row]) >> (index as u32 * bits);
                row as u8 & (0xff >> (8 - bits))
            };
            u32::from_le_bytes(std::array::from_fn(|e| match self {
                Self::Packed { bits } => element(g, 4 * t + e, bits),
                Self::Square { bits } => element(4 * t + e, g + 8 * register, bits),
                _ => rows[4 * t + e][g + 8 * register],
            }))
        })
    }
}

/// One 8×8 matrix, row by row.
type Rows = [[u16; 8]; 8];

fn to_register(rows: &Rows, trans: bool) -> Lanes {
    std::array::from_fn(|lane| {
        let (major, pair) = (lane / 4, lane % 4 * 2);
        let element = |e: usize| match trans {
            false => u32::from(rows[major][pair + e]),
            true => u32::from(rows[pair + e][major]),
        };
        element(1) << 16 | element(0)
    })
}

fn to_rows(register: &Lanes, trans: bool) -> Rows {
    let mut rows = [[0; 8]; 8];
    for (lane, word) in register.iter().enumerate() {
        let (major, pair) = (lane / 4, lane % 4 * 2);
        for e in 0..2 {
            let element = (word >> (16 * e)) as u16;
            match trans {
                false => rows[major][pair + e] = element,
                true => rows[pair + e][major] = element,
            }
        }
    }
    rows
}

/// `ldmatrix.xN{.trans}`: lane 8i + r gives the address of row r of matrix i. `read` fetches the
/// 16 bytes at a lane's address. The first `count` registers of the result are the matrices.
pub(crate) fn ldmatrix<E>(
    count: usize,
    tile: Tile,
    addresses: &Lanes,
    mut read: impl FnMut(usize, u32) -> Result<[u8; 16], E>,
) -> Result<[Lanes; 4], E> {
    let mut registers = [[0; 32]; 4];
    let matrices = registers.chunks_mut(tile.registers()).take(count);
    for (matrix, registers) in matrices.enumerate() {
        let mut rows = [[0; 16]; 16];
        for (r, row) in rows.iter_mut().enumerate().take(tile.rows()) {
            let lane = tile.rows() * matrix + r;
            *row = read(lane, addresses[lane])?;
        }
        for (index, register) in registers.iter_mut().enumerate() {
            *register = match tile {
                Tile::Halves { trans } => to_register(&halves(&rows), trans),
                bytes => bytes.bytes_of(&rows, index),
            };
        }
    }
    Ok(registers)
}

fn halves(rows: &[[u8; 16]; 16]) -> Rows {
    std::array::from_fn(|r| {
        let row = rows[r].as_chunks::<2>().0;
        std::array::from_fn(|e| u16::from_le_bytes(row[e]))
    })
}

/// `stmatrix.xN{.trans}`: the inverse of [`ldmatrix`], one matrix per register.
pub(crate) fn stmatrix<E>(
    registers: &[&Lanes],
    tile: Tile,
    addresses: &Lanes,
    mut write: impl FnMut(usize, u32, [u8; 16]) -> Result<(), E>,
) -> Result<(), E> {
    for (matrix, register) in registers.iter().enumerate().take(4) {
        let rows = match tile {
            Tile::Halves { trans } => row_bytes(&to_rows(register, trans)),
            _ => tall_rows(register),
        };
        for (r, bytes) in rows.into_iter().enumerate() {
            let lane = 8 * matrix + r;
            write(lane, addresses[lane], bytes)?;
        }
    }
    Ok(())
}

fn row_bytes(rows: &Rows) -> [[u8; 16]; 8] {
    let mut bytes = [[0; 16]; 8];
    for (bytes, row) in bytes.iter_mut().zip(rows) {
        for (bytes, element) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(row) {
            *bytes = element.to_le_bytes();
        }
    }
    bytes
}

/// A 16×8 matrix of bytes as the rows of its transpose.
fn tall_rows(register: &Lanes) -> [[u8; 16]; 8] {
    let mut rows = [[0; 16]; 8];
    for (lane, word) in register.iter().enumerate() {
        for (e, byte) in word.to_le_bytes().into_iter().enumerate() {
            rows[lane % 4 * 2 + e % 2][lane / 4 + 8 * (e / 2)] = byte;
        }
    }
    rows
}

/// `movmatrix.m8n8.trans.b16`: transposes within the warp.
pub(crate) fn movmatrix(register: &Lanes) -> Lanes {
    to_register(&to_rows(register, false), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element (matrix, row, column) as a number that tells which it is.
    fn bytes(address: u32) -> [u8; 16] {
        std::array::from_fn(|i| match i % 2 {
            0 => (i / 2) as u8,
            _ => (address / 16) as u8,
        })
    }

    #[test]
    fn each_lane_gets_the_documented_elements() {
        let addresses: Lanes = std::array::from_fn(|lane| lane as u32 * 16);
        for trans in [false, true] {
            let read = |_, address| Ok::<_, ()>(bytes(address));
            let registers =
                ldmatrix(4, Tile::Halves { trans }, &addresses, read).expect("no faults");
            for (matrix, register) in registers.iter().enumerate() {
                for (lane, word) in register.iter().enumerate() {
                    for e in 0..2 {
                        let (major, minor) = (lane / 4, lane % 4 * 2 + e);
                        let (row, column) = if trans {
                            (minor, major)
                        } else {
                            (major, minor)
                        };
                        let want = ((8 * matrix + row) << 8 | column) as u16;
                        assert_eq!((word >> (16 * e)) as u16, want, "lane {lane} trans {trans}");
                    }
                }
            }
        }
    }

    #[test]
    fn storing_undoes_loading() {
        let addresses: Lanes = std::array::from_fn(|lane| (lane as u32 ^ 5) * 16);
        for trans in [false, true] {
            let registers = ldmatrix(4, Tile::Halves { trans }, &addresses, |_, a| {
                Ok::<_, ()>(bytes(a))
            })
            .expect("no faults");
            let refs: Vec<&Lanes> = registers.iter().collect();
            let mut count = 0;
            stmatrix(
                &refs,
                Tile::Halves { trans },
                &addresses,
                |lane, address, row| {
                    assert_eq!((address, row), (addresses[lane], bytes(address)));
                    count += 1;
                    Ok::<_, ()>(())
                },
            )
            .expect("no faults");
            assert_eq!(count, 32);
        }
    }

    #[test]
    fn moving_transposes() {
        let addresses: Lanes = std::array::from_fn(|lane| lane as u32 * 16);
        let load = |trans| {
            ldmatrix(1, Tile::Halves { trans }, &addresses, |_, a| {
                Ok::<_, ()>(bytes(a))
            })
            .expect("no faults")[0]
        };
        assert_eq!(movmatrix(&load(false)), load(true));
        assert_eq!(movmatrix(&load(true)), load(false));
    }
}
