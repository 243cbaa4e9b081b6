//! `mma.sync`, `ldmatrix`, `stmatrix` and `movmatrix`.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::memory::access::Access;
use crate::exec::storage::window::Window;
use crate::exec::warp::Warp;
use crate::fault::FaultKind;
use crate::numeric::Lanes;
use crate::op::{MatrixMove, Mma, Product, R32, Slot, SlotList, pool};
use crate::tensor::matrix;
use crate::tensor::mma::narrow::Selected;
use crate::tensor::mma::octets::Octets;
use crate::tensor::mma::sparse::Operands;

impl Cluster<'_> {
    /// All lanes must take part in matrix instructions.
    pub(super) fn whole_warp(&self, w: &Warp, mask: u32, name: &str) -> Checked<()> {
        match mask == w.live && mask == u32::MAX {
            true => Ok(()),
            false => Err(illegal(format!(
                "{name} executed by a diverged or partial warp"
            ))),
        }
    }

    /// The 32-bit words of a fragment; 64-bit slots give two, the lower first.
    pub(crate) fn fragment(&self, w: &Warp, list: SlotList) -> Vec<Lanes> {
        let words = pool(self.env.program, list)
            .iter()
            .flat_map(|&slot| match slot {
                Slot::W32(r) => vec![*w.get(r)],
                Slot::W64(r) => {
                    let r = w.get64(r);
                    vec![r.map(|x| x as u32), r.map(|x| (x >> 32) as u32)]
                }
                Slot::Sink => vec![[0; 32]],
            });
        words.collect()
    }

    /// `mma.sync`
    pub(crate) fn mma(&mut self, w: &mut Warp, mask: u32, op: &Mma) -> Checked<Flow> {
        self.whole_warp(w, mask, "mma.sync")?;
        self.sum_set(w, mask, op.c);
        let fragments = [op.a, op.b, op.c].map(|list| self.fragment(w, list));
        let [a, b, c] = fragments
            .each_ref()
            .map(|words| words.iter().collect::<Vec<_>>());
        let mode = self.env.mma_mode;
        let wrong = |e: &dyn std::fmt::Display| illegal(e.to_string());
        self.counters.mma_flops += match &op.product {
            Product::Dense(form) => {
                let d = form.run(&a, &b, &c, mode).map_err(|e| wrong(&e))?;
                self.put_fragment(w, mask, op.d, &d);
                form.flops()
            }
            Product::Sparse(form) => {
                let operands = Operands {
                    a: &a,
                    b: &b,
                    c: &c,
                    metadata: op.metadata.map_or(&[0; 32], |r| w.get(r)),
                };
                let d = form.run(&operands, mode).map_err(|e| wrong(&e))?;
                self.put_fragment(w, mask, op.d, &d);
                form.flops()
            }
            Product::Narrow(form) => {
                let selected = op.scales.map(|scales| {
                    scales.map(|of| Selected {
                        register: w.get(of.data),
                        // Selectors are the same in all lanes.
                        byte: w.get(of.byte)[0] & 0xffff,
                        thread: w.get(of.thread)[0] & 0xffff,
                    })
                });
                if let (Some(scales), Some([a, b])) = (form.scales, &selected)
                    && !(scales.selects(a.byte, a.thread, true)
                        && scales.selects(b.byte, b.thread, false))
                {
                    return Err(wrong(&"mma.sync picks scales that are not there"));
                }
                let d = form.run(&a, &b, &c, selected, mode);
                self.put_fragment(w, mask, op.d, &d);
                form.flops()
            }
            Product::Octets(octets) => {
                let other = || wrong(&"mma.sync.m8n8k4 has another number of registers");
                let d = octets.run(&a, &b, &c, mode).ok_or_else(other)?;
                self.put_fragment(w, mask, op.d, &d);
                Octets::FLOPS
            }
        };
        Ok(Flow::Next)
    }

    /// Puts words into a fragment's registers, as [`Cluster::fragment`] takes them out.
    pub(super) fn put_fragment(&self, w: &mut Warp, mask: u32, list: SlotList, words: &[Lanes]) {
        let mut words = words.iter();
        for &slot in pool(self.env.program, list) {
            let Some(low) = words.next() else { break };
            match slot {
                Slot::W32(r) => w.put(mask, r, *low),
                Slot::W64(r) => {
                    let high = words.next().copied().unwrap_or([0; 32]);
                    let value = |i| u64::from(high[i]) << 32 | u64::from(low[i]);
                    w.put64(mask, r, std::array::from_fn(value));
                }
                Slot::Sink => {}
            }
        }
    }

    /// `ldmatrix` and `stmatrix`
    pub(crate) fn matrix_move(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &MatrixMove,
    ) -> Checked<Flow> {
        let name = if op.store { "stmatrix" } else { "ldmatrix" };
        self.whole_warp(w, mask, name)?;
        let rows = u32::MAX >> (32 - op.tile.rows() as u32 * u32::from(op.count));
        let mut addresses = self.addresses(w, op.addr);
        for a in &mut addresses {
            // A generic address into shared memory carries the shared address in its low half.
            *a &= 0xffff_ffff;
        }
        let access = Access::weak(16, op.store);
        let at = self
            .resolve_in(w, rows, Window::Shared, &addresses, access)?
            .0;
        let lanes = addresses.map(|a| a as u32);
        let slots: Vec<R32> = pool(self.env.program, op.regs)
            .iter()
            .filter_map(|s| match s {
                Slot::W32(r) => Some(*r),
                _ => None,
            })
            .collect();
        if op.store {
            self.progress += 1;
            let registers: Vec<Lanes> = slots.iter().map(|&r| *w.get(r)).collect();
            let refs: Vec<&Lanes> = registers.iter().collect();
            let mut rows = Vec::with_capacity(32);
            matrix::stmatrix(&refs, op.tile, &lanes, |lane, _, bytes| {
                rows.push((at[lane].cast::<[u8; 16]>(), bytes));
                Ok::<(), Box<FaultKind>>(())
            })?;
            // SAFETY: `resolve_in` checked 16 bytes for every row lane.
            let same = |(row, bytes): &(*mut [u8; 16], [u8; 16])| unsafe { row.read() } == *bytes;
            if self.is_change_wanted() && rows.iter().all(same) {
                self.tell_unchanged();
            }
            for (row, bytes) in rows {
                // SAFETY: as above.
                unsafe { row.write(bytes) };
            }
            return Ok(Flow::Next);
        }
        let loaded = matrix::ldmatrix(op.count.into(), op.tile, &lanes, |lane, _| {
            // SAFETY: as above.
            Ok::<_, Box<FaultKind>>(unsafe { at[lane].cast::<[u8; 16]>().read() })
        })?;
        for (&r, v) in slots.iter().zip(loaded) {
            w.put(mask, r, v);
        }
        Ok(Flow::Next)
    }

    /// `movmatrix`
    pub(crate) fn movmatrix(&mut self, w: &mut Warp, mask: u32, d: R32, a: R32) -> Checked<Flow> {
        self.whole_warp(w, mask, "movmatrix")?;
        let v = matrix::movmatrix(w.get(a));
        w.put(mask, d, v);
        Ok(Flow::Next)
    }
}
