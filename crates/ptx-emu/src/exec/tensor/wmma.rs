//! `wmma.load`, `wmma.store` and `wmma.mma`.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::memory::access::Access;
use crate::exec::memory::atomic::{read_word, write_word};
use crate::exec::warp::Warp;
use crate::op::{Slot, Wmma, WmmaMove, pool};

impl Cluster<'_> {
    /// `wmma.load` and `wmma.store`
    pub(crate) fn wmma_move(&mut self, w: &mut Warp, mask: u32, op: &WmmaMove) -> Checked<Flow> {
        let name = if op.store { "wmma.store" } else { "wmma.load" };
        self.whole_warp(w, mask, name)?;
        let slots = pool(self.env.program, op.regs);
        let stride = op.stride.map(|r| w.get(r)[0]);
        let base = self.addresses(w, op.addr);
        let fragment = op.fragment;
        // What is smaller than a byte lies along the layout and moves by whole words.
        let (step, bytes) = match fragment.bits {
            bits if bits < 8 => (fragment.per_register(), 4),
            bits => (1, u64::from(bits) / 8),
        };
        let access = Access::weak(bytes, op.store);
        for (index, &slot) in slots.iter().enumerate() {
            // A fragment with more registers than the tile fills repeats itself.
            let register = index as u32 % fragment.registers();
            let mut value = match (op.store, slot) {
                (true, Slot::W32(r)) => w.get(r).map(u64::from),
                (true, Slot::W64(r)) => *w.get64(r),
                _ => [0; 32],
            };
            for e in (0..fragment.per_register()).step_by(step as usize) {
                let at = std::array::from_fn(|lane| {
                    let place = fragment.element(register, lane as u32, e);
                    let elements = fragment.offset(place, op.by_column, stride);
                    base[lane].wrapping_add(elements * u64::from(fragment.bits) / 8)
                });
                let pointers = self.resolve(w, mask, op.space, at, access)?.0;
                let shift = e * fragment.bits;
                for (lane, place) in pointers.into_iter().enumerate() {
                    // SAFETY: `resolve` checked `bytes` at every lane's address.
                    unsafe {
                        match op.store {
                            true => write_word(place, bytes, value[lane] >> shift),
                            false => value[lane] |= read_word(place, bytes) << shift,
                        }
                    }
                }
            }
            match (op.store, slot) {
                (false, Slot::W32(r)) => w.put(mask, r, value.map(|v| v as u32)),
                (false, Slot::W64(r)) => w.put64(mask, r, value),
                _ => {}
            }
        }
        if op.store {
            self.progress += 1;
        }
        Ok(Flow::Next)
    }

    /// `wmma.mma`
    pub(crate) fn wmma(&mut self, w: &mut Warp, mask: u32, op: &Wmma) -> Checked<Flow> {
        self.whole_warp(w, mask, "wmma.mma")?;
        self.sum_set(w, mask, op.c);
        self.counters.mma_flops += op.form.flops();
        let [a, b, c] = [op.a, op.b, op.c].map(|list| self.fragment(w, list));
        let d = op
            .form
            .run(&a, &b, &c, self.env.mma_mode)
            .map_err(|e| illegal(e.to_string()))?;
        self.put_fragment(w, mask, op.d, &d);
        Ok(Flow::Next)
    }
}
