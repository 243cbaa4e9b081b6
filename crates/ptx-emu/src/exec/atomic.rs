//! `atom` and `red`, and the reductions of bulk copies.

use super::access::{Access, HostPtr, Pointers, lanes};
use super::cluster::{Cluster, Flow};
use super::convert::pool;
use super::door::Act;
use super::warp::{Wait, Warp};
use crate::fault::FaultKind;
use crate::numeric::arith::{self, Extremum};
use crate::numeric::halves::{Half, HalfMode, both};
use crate::numeric::{FloatMode, Rounding};
use crate::op::{Atom, AtomOp, Num, R32, Slot};

const HALF: HalfMode = HalfMode {
    ftz: false,
    sat: false,
    relu: false,
};

fn half_op(kind: Half, op: AtomOp, a: u16, b: u16) -> u16 {
    match op {
        AtomOp::Add => kind.add(a, b, HALF),
        AtomOp::Min | AtomOp::Max => kind.extremum(
            a,
            b,
            Extremum {
                max: op == AtomOp::Max,
                ..Extremum::default()
            },
        ),
        other => unreachable!("there is no {other:?} on halves"),
    }
}

/// The new value of an element: `old op operand`.
pub(super) fn combine(op: AtomOp, ty: Num, old: u64, operand: u64) -> u64 {
    let keep = match ty.bytes() {
        8 | 16 => u64::MAX,
        w => (1 << (8 * w)) - 1,
    };
    let extend = |x: u64| {
        let shift = 64 - 8 * ty.bytes().min(8) as u32;
        ((x << shift) as i64) >> shift
    };
    let new = match (ty, op) {
        (_, AtomOp::Exch) => operand,
        (_, AtomOp::And) => old & operand,
        (_, AtomOp::Or) => old | operand,
        (_, AtomOp::Xor) => old ^ operand,
        (Num::F16, _) => half_op(Half::F16, op, old as u16, operand as u16).into(),
        (Num::Bf16, _) => half_op(Half::Bf16, op, old as u16, operand as u16).into(),
        (Num::F16x2, _) => both([old as u32, operand as u32], |[a, b]| {
            half_op(Half::F16, op, a, b)
        })
        .into(),
        (Num::Bf16x2, _) => both([old as u32, operand as u32], |[a, b]| {
            half_op(Half::Bf16, op, a, b)
        })
        .into(),
        (Num::F32, AtomOp::Add) => {
            arith::add_f32(old as u32, operand as u32, FloatMode::default()).into()
        }
        // The second operand's NaN wins, and that is the one in memory.
        (Num::F64, AtomOp::Add) => arith::add_f64(operand, old, Rounding::NearestEven),
        (Num::F32, _) => extremum(op).f32(old as u32, operand as u32).into(),
        (Num::F64, _) => extremum(op).f64(old, operand),
        (_, AtomOp::Add) => old.wrapping_add(operand),
        (_, AtomOp::Inc) => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        (_, AtomOp::Dec) => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
        (_, AtomOp::Min) if ty.is_signed() => extend(old).min(extend(operand)) as u64,
        (_, AtomOp::Max) if ty.is_signed() => extend(old).max(extend(operand)) as u64,
        (_, AtomOp::Min) => old.min(operand),
        (_, AtomOp::Max) => old.max(operand),
        // Compare-and-swap needs its third operand and is done by the caller.
        (_, AtomOp::Cas) => old,
    };
    new & keep
}

fn extremum(op: AtomOp) -> Extremum {
    Extremum {
        max: op == AtomOp::Max,
        ..Extremum::default()
    }
}

/// Reads `bytes` (1, 2, 4 or 8) of a lane.
///
/// # Safety
/// So many bytes must be valid there.
pub(super) unsafe fn read_word(at: HostPtr, bytes: u64) -> u64 {
    let mut word = [0; 8];
    // SAFETY: by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(at.cast(), word.as_mut_ptr(), bytes as usize) };
    u64::from_le_bytes(word)
}

/// Writes the low `bytes` of a value.
///
/// # Safety
/// As for [`read_word`].
pub(super) unsafe fn write_word(at: HostPtr, bytes: u64, value: u64) {
    let word = value.to_le_bytes();
    // SAFETY: by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), at.cast(), bytes as usize) };
}

impl Cluster<'_> {
    /// Lanes act one after another, lowest first; CTAs in order, at communication points.
    pub(super) fn atom(
        &mut self,
        w: &mut Warp,
        mask: u32,
        atom: &Atom,
    ) -> Result<Flow, Box<FaultKind>> {
        let addresses = self.addresses(w, atom.addr);
        if self.communicates(w, mask, atom.space, &addresses) {
            return Ok(Flow::Again(Wait::Communication));
        }
        let program = self.env.program;
        let (d, b, c) = (
            pool(program, atom.d),
            pool(program, atom.b),
            pool(program, atom.c),
        );
        let each = atom.ty.bytes();
        let vector = if atom.ty == Num::B128 {
            1
        } else {
            b.len().max(1)
        };
        let access = Access {
            bytes: each * vector as u64,
            act: Act::Update,
            order: atom.order,
        };
        let usual = access.bytes.is_power_of_two() && access.bytes <= 16;
        let span = match usual {
            true => self.span(w, mask, atom.space, atom.addr, access),
            false => None,
        };
        let pointers = match span {
            Some(span) => span.pointers(),
            None => self.resolve(w, mask, atom.space, addresses, access)?,
        };
        // The L2 cache adds f32 with subnormals flushed; shared memory keeps them.
        let in_memory = self.is_global(mask, atom.space, &addresses);
        let mut changed = false;
        self.counters.atomics += u64::from(mask.count_ones()) * vector as u64;
        // SAFETY: `span` and `resolve` checked the word of every lane.
        if let (1, Some(done)) = (vector, unsafe { words(w, mask, atom, (d, b), &pointers) }) {
            self.progress += u64::from(done);
            return Ok(Flow::Next);
        }
        for lane in lanes(mask) {
            let at = pointers.0[lane];
            if atom.ty == Num::B128 {
                changed = true;
                wide(w, atom, (d, b, c), lane, at);
                continue;
            }
            for i in 0..vector {
                let at = at.offset(i * each as usize);
                // SAFETY: `resolve` checked all `vector` elements of this lane.
                let old = unsafe { read_word(at, each) };
                let operand = b.get(i).map_or(0, |&s| w.lane(s, lane));
                let keep = if each == 8 {
                    u64::MAX
                } else {
                    (1 << (8 * each)) - 1
                };
                let new = match atom.op {
                    AtomOp::Cas if old == operand & keep => {
                        c.get(i).map_or(0, |&s| w.lane(s, lane))
                    }
                    AtomOp::Cas => old,
                    op if in_memory => combine_in_memory(op, atom.ty, old, operand & keep),
                    op => combine(op, atom.ty, old, operand & keep),
                };
                changed |= new != old;
                // SAFETY: as above.
                unsafe { write_word(at, each, new) };
                if let Some(&slot) = d.get(i) {
                    w.set_lane(slot, lane, old);
                }
            }
        }
        // An attempt that changes nothing is no progress: spinning on a lock must be noticed.
        self.progress += u64::from(changed);
        Ok(Flow::Next)
    }
}

/// The usual operations on 32-bit integers, without asking what they are for every lane; whether
/// they changed anything. None for all others.
///
/// # Safety
/// The word of every lane of the mask must be valid.
unsafe fn words(
    w: &mut Warp,
    mask: u32,
    atom: &Atom,
    (d, b): (&[Slot], &[Slot]),
    pointers: &Pointers,
) -> Option<bool> {
    let d = match d {
        [] | [Slot::Sink] => None,
        [Slot::W32(d)] => Some(*d),
        _ => return None,
    };
    let &[Slot::W32(b)] = b else {
        return None;
    };
    // SAFETY: by this function's contract.
    let each =
        |w: &mut Warp, op: fn(u32, u32) -> u32| unsafe { each_word(w, mask, (d, b), pointers, op) };
    let signed = match atom.ty {
        Num::S32 => true,
        Num::U32 | Num::B32 => false,
        _ => return None,
    };
    Some(match atom.op {
        // SAFETY: as above. The commonest is inlined.
        AtomOp::Add => unsafe { each_word(w, mask, (d, b), pointers, u32::wrapping_add) },
        AtomOp::Exch => each(w, |_, x| x),
        AtomOp::And => each(w, |old, x| old & x),
        AtomOp::Or => each(w, |old, x| old | x),
        AtomOp::Xor => each(w, |old, x| old ^ x),
        AtomOp::Min if signed => each(w, |old, x| (old as i32).min(x as i32) as u32),
        AtomOp::Max if signed => each(w, |old, x| (old as i32).max(x as i32) as u32),
        AtomOp::Min => each(w, u32::min),
        AtomOp::Max => each(w, u32::max),
        AtomOp::Cas | AtomOp::Inc | AtomOp::Dec => return None,
    })
}

/// # Safety
/// As for [`words`].
#[inline(always)]
unsafe fn each_word(
    w: &mut Warp,
    mask: u32,
    (d, b): (Option<R32>, R32),
    pointers: &Pointers,
    op: impl Fn(u32, u32) -> u32,
) -> bool {
    let operands = *w.get(b);
    let mut before = match d {
        Some(d) => *w.get(d),
        None => [0; 32],
    };
    let mut changed = 0;
    for lane in lanes(mask) {
        let at = pointers.0[lane].cast::<u32>();
        // SAFETY: by this function's contract.
        unsafe {
            let old = at.read_unaligned();
            let new = op(old, operands[lane]);
            at.write_unaligned(new);
            before[lane] = old;
            changed |= old ^ new;
        }
    }
    if let Some(d) = d {
        w.r32[d.0 as usize].0 = before;
    }
    changed != 0
}

/// As [`combine`], but by the units beside the L2 cache, which flush f32.
fn combine_in_memory(op: AtomOp, ty: Num, old: u64, operand: u64) -> u64 {
    let flushing = FloatMode {
        ftz: true,
        ..FloatMode::default()
    };
    match (op, ty) {
        (AtomOp::Add, Num::F32) => arith::add_f32(old as u32, operand as u32, flushing).into(),
        (AtomOp::Add, Num::F64) => arith::add_f64_in_l2(old, operand),
        _ => combine(op, ty, old, operand),
    }
}

/// 128-bit exchange and compare-and-swap.
fn wide(
    w: &mut Warp,
    atom: &Atom,
    (d, b, c): (&[Slot], &[Slot], &[Slot]),
    lane: usize,
    at: HostPtr,
) {
    let pair = |w: &Warp, s: &[Slot]| [0, 1].map(|i| s.get(i).map_or(0, |&s| w.lane(s, lane)));
    // SAFETY: the caller resolved 16 bytes at `at`.
    let old = unsafe { [read_word(at, 8), read_word(at.offset(8), 8)] };
    let operand = pair(w, b);
    let new = match atom.op {
        AtomOp::Cas if old == operand => pair(w, c),
        AtomOp::Cas => old,
        _ => operand,
    };
    // SAFETY: as above.
    unsafe {
        write_word(at, 8, new[0]);
        write_word(at.offset(8), 8, new[1]);
    }
    for (&slot, value) in d.iter().zip(old) {
        w.set_lane(slot, lane, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_counters_and_signs() {
        assert_eq!(combine(AtomOp::Inc, Num::U32, 5, 5), 0);
        assert_eq!(combine(AtomOp::Inc, Num::U32, 4, 5), 5);
        assert_eq!(combine(AtomOp::Dec, Num::U32, 0, 5), 5);
        assert_eq!(combine(AtomOp::Min, Num::S32, 0xffff_ffff, 1), 0xffff_ffff);
        assert_eq!(combine(AtomOp::Min, Num::U32, 0xffff_ffff, 1), 1);
        assert_eq!(combine(AtomOp::Add, Num::U32, u64::from(u32::MAX), 1), 0);
        let one = u64::from(1f32.to_bits());
        assert_eq!(
            combine(AtomOp::Add, Num::F32, one, one),
            u64::from(2f32.to_bits())
        );
        assert_eq!(
            combine(AtomOp::Add, Num::F16x2, 0x3c00_3c00, 0x3c00_0000),
            0x4000_3c00
        );
    }
}
