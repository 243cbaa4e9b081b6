//! Loads, stores and atomics of lanes, and matrices that a warp moves.

use crate::exec::cluster::Cluster;
use crate::exec::lanes::lanes;
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use crate::memory::SECTOR;
use crate::op::{CLUSTER_RANK_SHIFT, MatrixMove, Num, Op, Space, WmmaMove, rank_of};
use crate::trace::{Deed, GlobalBytes};

/// How lanes reach memory.
#[derive(Clone, Copy)]
struct Touch {
    /// Bytes of each lane.
    each: u32,
    writes: bool,
    atomic: bool,
}

/// Bytes of a line of an SM's cache, and of the largest block that L2 gets at once.
const LINE: u64 = 128;
const BLOCK: u64 = 256;

impl Cluster<'_> {
    pub(super) fn access_deeds(&self, w: &Warp, mask: u32, op: &Op, out: &mut Vec<Deed>) {
        let (space, addr, each) = match op {
            Op::Ld {
                space,
                width,
                d: list,
                addr,
                ..
            }
            | Op::St {
                space,
                width,
                s: list,
                addr,
                ..
            } => (*space, *addr, u32::from(*width) * u32::from(list.len)),
            Op::Atom(atom) => {
                let vector = match atom.ty {
                    Num::B128 => 1,
                    _ => u32::from(atom.b.len).max(1),
                };
                (atom.space, atom.addr, atom.ty.bytes() as u32 * vector)
            }
            _ => return,
        };
        let touch = Touch {
            each,
            writes: !matches!(op, Op::Ld { .. }),
            atomic: matches!(op, Op::Atom(_)),
        };
        let at = self.addresses(w, addr);
        match self.leads_to(space, at[mask.trailing_zeros() as usize]) {
            Some(Window::Global) => {
                if touch.atomic {
                    self.update_deeds(mask, &at, each, out);
                }
                out.extend(self.global_deed(mask, &at, touch));
            }
            Some(Window::Shared) => {
                let at = std::array::from_fn(|i| at[i] as u32 & masked(mask, i));
                match at.iter().fold(0, |bits: u32, a| bits | a) >> CLUSTER_RANK_SHIFT {
                    0 => out.push(own_deed(mask, &at, touch)),
                    _ => shared_deeds(w, mask, &at, touch, out),
                }
            }
            _ => {}
        }
    }

    /// Where an address of a space lies, unless nobody asks for time there.
    pub(super) fn leads_to(&self, space: Space, address: u64) -> Option<Window> {
        match space {
            Space::Global => Some(Window::Global),
            Space::Shared | Space::SharedCluster => Some(Window::Shared),
            Space::Generic => Some(window_of(address)),
            Space::Local | Space::Const | Space::Param => None,
        }
    }

    fn global_deed(&self, mask: u32, at: &[u64; 32], touch: Touch) -> Option<Deed> {
        let Touch {
            each,
            writes,
            atomic,
        } = touch;
        // One behind the other, or all in one place, as most are.
        let step = at[1].wrapping_sub(at[0]);
        let mut differs = 0;
        for (i, a) in at.iter().enumerate() {
            differs |= a.wrapping_sub(at[0]) ^ step.wrapping_mul(i as u64);
        }
        if differs == 0 && mask == u32::MAX && (step == 0 || step == each.into()) {
            let mut bytes = self.global_piece(at[0], 31 * step + u64::from(each))?;
            bytes.bytes = 32 * each;
            return Some(Deed::Global {
                at: bytes,
                writes,
                atomic,
            });
        }
        let mut sorted = [0; 32];
        let mut count = 0;
        for lane in lanes(mask) {
            sorted[count] = at[lane];
            count += 1;
        }
        let (first, sorted) = (sorted[0], &mut sorted[..count]);
        Some(Deed::Global {
            at: self.global_bytes(first, sorted, each.into())?,
            writes,
            atomic,
        })
    }

    /// The sectors that lanes update.
    fn update_deeds(&self, mask: u32, at: &[u64; 32], each: u32, out: &mut Vec<Deed>) {
        let mut sorted: Vec<u64> = lanes(mask).map(|lane| at[lane]).collect();
        sorted.sort_unstable();
        for sector in sorted.chunk_by(|a, b| a / SECTOR == b / SECTOR) {
            let words = sector.chunk_by(|a, b| a == b);
            let turns = words.map(<[u64]>::len).max().unwrap_or(0) as u32;
            let piece = self.global_piece(sector[0], each.into());
            out.extend(piece.map(|at| Deed::Update { at, turns }));
        }
    }

    /// Pieces of `each` bytes, in any order, of which one is in the allocation of `first`.
    pub(super) fn global_bytes(
        &self,
        first: u64,
        at: &mut [u64],
        each: u64,
    ) -> Option<GlobalBytes> {
        if !at.is_sorted() {
            at.sort_unstable();
        }
        let mut bytes = self.global_piece(first, 0)?;
        let base = self.env.memory.regions()[bytes.region as usize].base;
        bytes.first = at.iter().find(|&&a| a >= base).map_or(0, |a| a - base);
        let mut next = 0;
        for &a in &*at {
            count_sectors(&mut bytes, &mut next, a, each);
        }
        Some(bytes)
    }

    /// One piece.
    pub(super) fn global_piece(&self, address: u64, len: u64) -> Option<GlobalBytes> {
        let memory = self.env.memory;
        let region = memory.find(address)?;
        let mut bytes = GlobalBytes {
            region: region as u32,
            first: address - memory.regions()[region].base,
            bytes: 0,
            sectors: 0,
            lines: 0,
            blocks: 0,
        };
        count_sectors(&mut bytes, &mut 0, address, len);
        Some(bytes)
    }

    /// `ldmatrix` and `stmatrix`
    pub(super) fn matrix_deed(&self, w: &Warp, op: &MatrixMove) -> Deed {
        let count = op.tile.rows() as u32 * u32::from(op.count);
        let rows = u32::MAX >> (32 - count);
        let at = self.addresses(w, op.addr).map(|a| a as u32);
        Deed::Shared {
            wavefronts: passes(rows, &at, 16),
            bytes: 16 * count,
            writes: op.store,
            atomic: false,
        }
    }

    /// `wmma.load` and `wmma.store`
    pub(super) fn wmma_deeds(&self, w: &Warp, op: &WmmaMove, out: &mut Vec<Deed>) {
        let fragment = op.fragment;
        let stride = op.stride.map(|r| w.get(r)[0]);
        let base = self.addresses(w, op.addr);
        let each = u64::from(fragment.bits).div_ceil(8);
        let mut at = Vec::new();
        for register in 0..fragment.registers() {
            for e in 0..fragment.per_register() {
                at.extend((0..32).map(|lane| {
                    let place = fragment.element(register, lane, e);
                    let elements = fragment.offset(place, op.by_column, stride);
                    base[lane as usize].wrapping_add(elements * u64::from(fragment.bits) / 8)
                }));
            }
        }
        // Lanes that hold the same element, and elements of one byte, move it once.
        at.sort_unstable();
        at.dedup();
        let bytes = at.len() as u32 * each as u32;
        let writes = op.store;
        let atomic = false;
        match self.leads_to(op.space, base[0]) {
            Some(Window::Global) => {
                let deed = |at| Deed::Global { at, writes, atomic };
                out.extend(self.global_bytes(base[0], &mut at, each).map(deed));
            }
            Some(Window::Shared) => out.push(Deed::Shared {
                wavefronts: bytes.div_ceil(128),
                bytes,
                writes,
                atomic,
            }),
            _ => {}
        }
    }
}

/// Adds a piece's bytes, and its sectors, lines and blocks but for those that it shares with the
/// piece before it, which ends before `next`.
pub(super) fn count_sectors(bytes: &mut GlobalBytes, next: &mut u64, address: u64, len: u64) {
    if len == 0 {
        return;
    }
    let before = next.checked_sub(1);
    let new = |unit: u64| {
        let (first, last) = (address / unit, (address + len - 1) / unit);
        let shared = before.is_some_and(|before| before / unit == first);
        (last + 1 - first - u64::from(shared)) as u32
    };
    bytes.sectors += new(SECTOR);
    bytes.lines += new(LINE);
    bytes.blocks += new(BLOCK);
    bytes.bytes += len as u32;
    *next = address + len;
}

/// All ones for a lane of the mask.
fn masked(mask: u32, lane: usize) -> u32 {
    0u32.wrapping_sub(mask >> lane & 1)
}

/// Passes a shared access takes without conflicts: as many lanes each as fill 128 bytes. One
/// address for all is one pass.
fn passes(mask: u32, at: &[u32; 32], each: u32) -> u32 {
    if each <= 4 {
        return 1;
    }
    let first = at[mask.trailing_zeros() as usize & 31];
    let mut differs = 0;
    for (i, a) in at.iter().enumerate() {
        differs |= (a ^ first) & masked(mask, i);
    }
    if differs == 0 {
        return 1;
    }
    let per_pass = (128 / each).max(1);
    let all = u32::MAX >> (32 - per_pass);
    let starts = (0..32).step_by(per_pass as usize);
    starts.filter(|start| mask & all << start != 0).count() as u32
}

/// The most lanes that update words of one bank: unlike those who read, they take turns at a word.
fn lanes_of_a_bank(mask: u32, at: &[u32; 32], each: u32) -> u32 {
    let mut banks = [0; 32];
    for lane in lanes(mask) {
        for word in 0..each.div_ceil(4) {
            banks[(at[lane] / 4 + word) as usize % 32] += 1;
        }
    }
    banks.into_iter().max().unwrap_or(0)
}

/// Lanes that are all in the CTA's own memory.
fn own_deed(mask: u32, at: &[u32; 32], touch: Touch) -> Deed {
    let wavefronts = match touch.atomic {
        true => lanes_of_a_bank(mask, at, touch.each),
        false => passes(mask, at, touch.each),
    };
    Deed::Shared {
        wavefronts,
        bytes: touch.each * mask.count_ones(),
        writes: touch.writes,
        atomic: touch.atomic,
    }
}

/// Lanes in the CTA's own memory, and in each of the others'.
fn shared_deeds(w: &Warp, mask: u32, at: &[u32; 32], touch: Touch, out: &mut Vec<Deed>) {
    let rank = |lane: usize| rank_of(at[lane], w.cta);
    let mut rest = mask;
    while rest != 0 {
        let of = rank(rest.trailing_zeros() as usize);
        let together = lanes(rest).fold(0, |set, lane| set | u32::from(rank(lane) == of) << lane);
        rest &= !together;
        out.push(match of == w.cta {
            true => own_deed(together, at, touch),
            false => Deed::Remote {
                rank: of,
                bytes: touch.each * together.count_ones(),
                writes: touch.writes,
                barrier: None,
            },
        });
    }
}
