//! Frames of functions that call themselves, saved per lane because lanes recurse to different
//! depths.

use crate::exec::lanes::lanes;
use crate::exec::storage::bytes::{AlignedBytes, POISON};
use crate::exec::warp::Warp;
use crate::fault::FaultKind;
use crate::op::FrameSlots;

/// Words a lane may save: the 512 KiB of local memory a thread can have.
const MAX_WORDS: usize = (512 << 10) / 8;

/// Pushes a frame on the stacks of the lanes of `mask`.
pub(crate) fn save(
    w: &mut Warp,
    mask: u32,
    frame: &FrameSlots,
    local_bytes: u32,
) -> Result<(), Box<FaultKind>> {
    if w.saved.is_empty() {
        w.saved = vec![Vec::new(); 32];
    }
    for lane in lanes(mask) {
        let mut stack = std::mem::take(&mut w.saved[lane]);
        stack.extend(
            frame
                .r32
                .clone()
                .map(|slot| u64::from(w.r32[slot as usize].0[lane])),
        );
        stack.extend(frame.r64.clone().map(|slot| w.r64[slot as usize].0[lane]));
        stack.extend(
            frame
                .preds
                .clone()
                .map(|slot| u64::from(w.p[slot as usize] >> lane & 1)),
        );
        let local = local(w, lane, local_bytes);
        for &(at, size) in &frame.local {
            stack.extend(
                local[at as usize..][..size as usize]
                    .iter()
                    .map(|&byte| u64::from(byte)),
            );
        }
        let deep = stack.len() > MAX_WORDS;
        w.saved[lane] = stack;
        if deep {
            return Err(Box::new(FaultKind::OutOfBounds {
                space: "local",
                address: (MAX_WORDS * 8) as u64,
                bytes: 8,
                write: true,
                nearest: "a thread's stack has 512 KiB; the recursion is too deep".into(),
            }));
        }
    }
    Ok(())
}

/// Pops a frame from the stacks of the lanes of `mask`.
pub(crate) fn restore(w: &mut Warp, mask: u32, frame: &FrameSlots, local_bytes: u32) {
    for lane in lanes(mask) {
        let mut stack = std::mem::take(&mut w.saved[lane]);
        for &(at, size) in frame.local.iter().rev() {
            let start = stack.len() - size as usize;
            let target = &mut local(w, lane, local_bytes)[at as usize..][..size as usize];
            for (byte, word) in target.iter_mut().zip(stack.drain(start..)) {
                *byte = word as u8;
            }
        }
        for slot in frame.preds.clone().rev() {
            let bit = stack.pop().unwrap_or_default() as u32 & 1;
            let pred = &mut w.p[slot as usize];
            *pred = *pred & !(1 << lane) | bit << lane;
        }
        for slot in frame.r64.clone().rev() {
            w.r64[slot as usize].0[lane] = stack.pop().unwrap_or_default();
        }
        for slot in frame.r32.clone().rev() {
            w.r32[slot as usize].0[lane] = stack.pop().unwrap_or_default() as u32;
        }
        w.saved[lane] = stack;
    }
}

/// A lane's local memory.
pub(crate) fn local(w: &mut Warp, lane: usize, local_bytes: u32) -> &mut [u8] {
    let per_lane = (local_bytes as usize).next_multiple_of(16);
    if w.local.is_empty() {
        w.local = AlignedBytes::filled(per_lane * 32, POISON);
    }
    &mut w.local[lane * per_lane..][..per_lane]
}
