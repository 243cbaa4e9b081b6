//! Elements between registers and checked host addresses.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::exec::lanes::{each, lanes};
use crate::exec::storage::pointers::Pointers;
use crate::exec::warp::Warp;
use crate::op::{Extend, R32, Slot};

#[inline(always)]
fn extend(value: u32, width: u8, ext: Extend) -> u32 {
    let signed = match width {
        1 => i32::from(value as i8),
        2 => i32::from(value as i16),
        _ => value as i32,
    };
    match ext {
        Extend::Zero => value,
        Extend::Sign16 => signed as u32 & 0xffff,
        Extend::Sign32 | Extend::Sign64 => signed as u32,
    }
}

/// Reads one element per lane into a slot.
///
/// # Safety
/// Every pointer plus `offset` must be valid for `width` bytes and aligned to it.
#[inline(always)]
pub(crate) unsafe fn gather(
    w: &mut Warp,
    mask: u32,
    slot: Slot,
    ptr: &Pointers,
    offset: usize,
    width: u8,
    ext: Extend,
) {
    let at = |i: usize| ptr.0[i].offset(offset);
    // SAFETY: by this function's contract.
    unsafe {
        let read32 = |i: usize| match width {
            1 => u32::from(AtomicU8::from_ptr(at(i).cast()).load(Relaxed)),
            2 => u32::from(AtomicU16::from_ptr(at(i).cast()).load(Relaxed)),
            _ => AtomicU32::from_ptr(at(i).cast()).load(Relaxed),
        };
        match slot {
            Slot::W32(d) if width == 4 => {
                let v = each(
                    #[inline(always)]
                    |i| AtomicU32::from_ptr(at(i).cast()).load(Relaxed),
                );
                w.put(mask, d, v);
            }
            Slot::W32(d) => {
                let v = each(
                    #[inline(always)]
                    |i| extend(read32(i), width, ext),
                );
                w.put(mask, d, v);
            }
            Slot::W64(d) if width == 8 => {
                let v = each(
                    #[inline(always)]
                    |i| AtomicU64::from_ptr(at(i).cast()).load(Relaxed),
                );
                w.put64(mask, d, v);
            }
            Slot::W64(d) => {
                let v = each(
                    #[inline(always)]
                    |i| {
                        let x = extend(
                            read32(i),
                            width,
                            if ext == Extend::Zero {
                                ext
                            } else {
                                Extend::Sign32
                            },
                        );
                        if ext == Extend::Zero {
                            u64::from(x)
                        } else {
                            i64::from(x as i32) as u64
                        }
                    },
                );
                w.put64(mask, d, v);
            }
            Slot::Sink => {}
        }
    }
}

/// Writes one element per lane of the mask, lowest lane first.
///
/// # Safety
/// As for [`gather`].
#[inline(always)]
pub(super) unsafe fn scatter(
    w: &Warp,
    mask: u32,
    slot: Slot,
    ptr: &Pointers,
    offset: usize,
    width: u8,
) {
    let write = |i: usize, value: u64| {
        let at = ptr.0[i].offset(offset);
        // SAFETY: by this function's contract.
        unsafe {
            match width {
                1 => AtomicU8::from_ptr(at.cast()).store(value as u8, Relaxed),
                2 => AtomicU16::from_ptr(at.cast()).store(value as u16, Relaxed),
                4 => AtomicU32::from_ptr(at.cast()).store(value as u32, Relaxed),
                _ => AtomicU64::from_ptr(at.cast()).store(value, Relaxed),
            }
        }
    };
    match slot {
        Slot::W32(R32(s)) => {
            let s = &w.r32[s as usize].0;
            if mask == u32::MAX && width == 4 {
                for (&at, &value) in ptr.0.iter().zip(s) {
                    // SAFETY: as above.
                    unsafe { AtomicU32::from_ptr(at.offset(offset).cast()).store(value, Relaxed) };
                }
            } else {
                lanes(mask).for_each(|i| write(i, u64::from(s[i])));
            }
        }
        Slot::W64(s) => {
            let s = w.get64(s);
            lanes(mask).for_each(|i| write(i, s[i]));
        }
        Slot::Sink => {}
    }
}
