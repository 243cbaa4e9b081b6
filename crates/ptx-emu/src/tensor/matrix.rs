//! `ldmatrix`, `stmatrix` and `movmatrix`: 8×8 matrices of 16-bit elements.
//!
//! A matrix is eight rows of 16 bytes in shared memory and one register of a warp: lane l holds
//! elements 2·(l%4) and 2·(l%4)+1 of row l/4, or of column l/4 with `.trans`.

use crate::numeric::Lanes;

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
    trans: bool,
    addresses: &Lanes,
    mut read: impl FnMut(usize, u32) -> Result<[u8; 16], E>,
) -> Result<[Lanes; 4], E> {
    let mut registers = [[0; 32]; 4];
    for (matrix, register) in registers.iter_mut().enumerate().take(count) {
        let mut rows = [[0u16; 8]; 8];
        for (r, row) in rows.iter_mut().enumerate() {
            let lane = 8 * matrix + r;
            let bytes = read(lane, addresses[lane])?;
            for (element, bytes) in row.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *element = u16::from_le_bytes(*bytes);
            }
        }
        *register = to_register(&rows, trans);
    }
    Ok(registers)
}

/// `stmatrix.xN{.trans}`: the inverse of [`ldmatrix`], one matrix per register.
pub(crate) fn stmatrix<E>(
    registers: &[&Lanes],
    trans: bool,
    addresses: &Lanes,
    mut write: impl FnMut(usize, u32, [u8; 16]) -> Result<(), E>,
) -> Result<(), E> {
    for (matrix, register) in registers.iter().enumerate().take(4) {
        for (r, row) in to_rows(register, trans).iter().enumerate() {
            let mut bytes = [0; 16];
            for (bytes, element) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(row) {
                *bytes = element.to_le_bytes();
            }
            let lane = 8 * matrix + r;
            write(lane, addresses[lane], bytes)?;
        }
    }
    Ok(())
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
            let registers = ldmatrix(4, trans, &addresses, read).expect("no faults");
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
            let registers =
                ldmatrix(4, trans, &addresses, |_, a| Ok::<_, ()>(bytes(a))).expect("no faults");
            let refs: Vec<&Lanes> = registers.iter().collect();
            let mut count = 0;
            stmatrix(&refs, trans, &addresses, |lane, address, row| {
                assert_eq!((address, row), (addresses[lane], bytes(address)));
                count += 1;
                Ok::<_, ()>(())
            })
            .expect("no faults");
            assert_eq!(count, 32);
        }
    }

    #[test]
    fn moving_transposes() {
        let addresses: Lanes = std::array::from_fn(|lane| lane as u32 * 16);
        let load = |trans| {
            ldmatrix(1, trans, &addresses, |_, a| Ok::<_, ()>(bytes(a))).expect("no faults")[0]
        };
        assert_eq!(movmatrix(&load(false)), load(true));
        assert_eq!(movmatrix(&load(true)), load(false));
    }
}
