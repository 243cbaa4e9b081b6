//! `atom` and `red`, and the reductions of bulk copies.

use super::access::Access;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::visit::Act;
use crate::exec::storage::pointers::HostPtr;
use crate::exec::storage::span::Span;
use crate::exec::warp::{Wait, Warp};
use crate::fault::FaultKind;
use crate::numeric::arith::{self, Extremum};
use crate::numeric::halves::{Half, HalfMode, both};
use crate::numeric::{FloatMode, Rounding};
use crate::op::{Atom, AtomOp, Num, R32, Slot, Space, pool};

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
pub(crate) unsafe fn read_word(at: HostPtr, bytes: u64) -> u64 {
    let mut word = [0; 8];
    // SAFETY: by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(at.cast(), word.as_mut_ptr(), bytes as usize) };
    u64::from_le_bytes(word)
}

/// Writes the low `bytes` of a value.
///
/// # Safety
/// As for [`read_word`].
pub(crate) unsafe fn write_word(at: HostPtr, bytes: u64, value: u64) {
    let word = value.to_le_bytes();
    // SAFETY: by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), at.cast(), bytes as usize) };
}

/// Elements of the longest vector that one atomic operation changes.
const MOST_ELEMENTS: usize = 8;

impl Cluster<'_> {
    /// Lanes act one after another, lowest first; CTAs in order, at communication points. The usual
    /// operations on 32-bit integers do not ask what they are for every lane.
    #[inline(always)]
    pub(crate) fn atom<const QUICK: bool>(
        &mut self,
        w: &mut Warp,
        mask: u32,
        atom: &Atom,
    ) -> Result<Flow, Box<FaultKind>> {
        let alone = w.granted || !self.env.shared_grid || atom.space == Space::Shared;
        let program = self.env.program;
        let slots = (pool(program, atom.d), pool(program, atom.b));
        if let Some(word) = Word::of(atom, slots)
            && alone
        {
            let access = Access {
                bytes: 4,
                act: Act::Update,
                order: atom.order,
            };
            let mut at = [0; 32];
            if let Some(span) = self.span::<QUICK>(w, mask, atom.space, atom.addr, access, &mut at)
            {
                self.counters.atomics += u64::from(mask.count_ones());
                // SAFETY: `span` checked the word of every lane.
                let changed = unsafe { word.update(w, mask, atom.op, (span, &at)) };
                self.progress += u64::from(changed);
                return Ok(Flow::Next);
            }
        }
        self.atom_any(w, mask, atom)
    }

    #[inline(never)]
    fn atom_any(&mut self, w: &mut Warp, mask: u32, atom: &Atom) -> Result<Flow, Box<FaultKind>> {
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
        let mut at = [0; 32];
        let span = match usual {
            true => self.span::<false>(w, mask, atom.space, atom.addr, access, &mut at),
            false => None,
        };
        let pointers = match span {
            Some(span) => span.pointers(&at),
            None => self.resolve(w, mask, atom.space, addresses, access)?,
        };
        // The L2 cache adds f32 with subnormals flushed; shared memory keeps them.
        let in_memory = self.is_global(mask, atom.space, &addresses);
        let mut changed = false;
        self.counters.atomics += u64::from(mask.count_ones()) * vector as u64;
        for lane in lanes(mask) {
            let at = pointers.0[lane];
            if atom.ty == Num::B128 {
                changed = true;
                wide(w, atom, (d, b, c), lane, at);
                continue;
            }
            // Written last: a result may be the register of a later operand.
            let mut before = [0; MOST_ELEMENTS];
            for (i, before) in before.iter_mut().enumerate().take(vector) {
                let at = at.offset(i * each as usize);
                // SAFETY: `span` or `resolve` checked all `vector` elements of this lane.
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
                *before = old;
            }
            for (&slot, old) in d.iter().zip(before) {
                w.set_lane(slot, lane, old);
            }
        }
        // An attempt that changes nothing is no progress: spinning on a lock must be noticed.
        self.progress += u64::from(changed);
        Ok(Flow::Next)
    }
}

/// An operation on one 32-bit integer per lane.
pub(super) struct Word {
    signed: bool,
    d: Option<R32>,
    b: R32,
}

impl Word {
    /// None if it is another.
    #[inline(always)]
    pub(super) fn of(atom: &Atom, slots: (&[Slot], &[Slot])) -> Option<Self> {
        let signed = match atom.ty {
            Num::S32 => true,
            Num::U32 | Num::B32 => false,
            _ => return None,
        };
        if let AtomOp::Cas | AtomOp::Inc | AtomOp::Dec = atom.op {
            return None;
        }
        let (d, b) = match slots {
            ([] | [Slot::Sink], &[Slot::W32(b)]) => (None, b),
            (&[Slot::W32(d)], &[Slot::W32(b)]) => (Some(d), b),
            _ => return None,
        };
        Some(Self { signed, d, b })
    }

    /// Whether it changed anything.
    ///
    /// # Safety
    /// The word of every lane must be valid.
    #[inline(always)]
    pub(super) unsafe fn update(
        &self,
        w: &mut Warp,
        mask: u32,
        op: AtomOp,
        lanes: (Span, &[u32; 32]),
    ) -> bool {
        // SAFETY: by this function's contract. The commonest is inlined.
        unsafe {
            match (op, mask) {
                (AtomOp::Add, u32::MAX) => self.add_all(w, lanes),
                (AtomOp::Add, _) => self.each(w, mask, lanes, u32::wrapping_add),
                _ => self.any(w, mask, op, lanes),
            }
        }
    }

    /// Adds for all lanes, and keeps what was there only if there is a register for it.
    ///
    /// # Safety
    /// As for [`Word::update`].
    #[inline(always)]
    unsafe fn add_all(&self, w: &mut Warp, (span, at): (Span, &[u32; 32])) -> bool {
        let operands = *w.get(self.b);
        let place = |lane: usize| span.host.offset(at[lane] as usize).cast::<u32>();
        // SAFETY: by this function's contract.
        unsafe {
            match self.d {
                Some(d) => {
                    let before = &mut w.r32[d.0 as usize].0;
                    for (lane, (before, operand)) in before.iter_mut().zip(operands).enumerate() {
                        *before = place(lane).read();
                        place(lane).write(before.wrapping_add(operand));
                    }
                }
                None => {
                    for (lane, operand) in operands.into_iter().enumerate() {
                        let old = place(lane).read();
                        place(lane).write(old.wrapping_add(operand));
                    }
                }
            }
        }
        operands.iter().fold(0, |any, operand| any | operand) != 0
    }

    /// # Safety
    /// As for [`Word::update`].
    #[inline(never)]
    unsafe fn any(&self, w: &mut Warp, mask: u32, op: AtomOp, lanes: (Span, &[u32; 32])) -> bool {
        let f: fn(u32, u32) -> u32 = match (op, self.signed) {
            (AtomOp::And, _) => |old, x| old & x,
            (AtomOp::Or, _) => |old, x| old | x,
            (AtomOp::Xor, _) => |old, x| old ^ x,
            (AtomOp::Min, true) => |old, x| (old as i32).min(x as i32) as u32,
            (AtomOp::Max, true) => |old, x| (old as i32).max(x as i32) as u32,
            (AtomOp::Min, false) => u32::min,
            (AtomOp::Max, false) => u32::max,
            // What is left of those that `of` lets through.
            _ => |_, x| x,
        };
        // SAFETY: by this function's contract.
        unsafe { self.each(w, mask, lanes, f) }
    }

    /// # Safety
    /// As for [`Word::update`].
    #[inline(always)]
    unsafe fn each(
        &self,
        w: &mut Warp,
        mask: u32,
        (span, at): (Span, &[u32; 32]),
        op: impl Fn(u32, u32) -> u32,
    ) -> bool {
        let operands = *w.get(self.b);
        let mut before = match self.d {
            Some(d) => *w.get(d),
            None => [0; 32],
        };
        let mut changed = 0;
        let mut one = |lane: usize| {
            let at = span.host.offset(at[lane] as usize).cast::<u32>();
            // SAFETY: by this function's contract.
            unsafe {
                let old = at.read_unaligned();
                let new = op(old, operands[lane]);
                at.write_unaligned(new);
                before[lane] = old;
                changed |= old ^ new;
            }
        };
        match mask {
            u32::MAX => (0..32).for_each(&mut one),
            _ => lanes(mask).for_each(&mut one),
        }
        if let Some(d) = self.d {
            w.r32[d.0 as usize].0 = before;
        }
        changed != 0
    }
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
