//! `mma.sync`, `ldmatrix`, `stmatrix` and `movmatrix`.

use super::access::{Access, Place};
use super::cluster::{Cluster, Flow};
use super::convert::pool;
use super::sync::illegal;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::numeric::Lanes;
use crate::op::{BoolOp, MatrixMove, MatrixShape, Mma, Num, R32, Slot, SlotList, Sparsity};
use crate::tensor::mma::octets::Octets;
use crate::tensor::mma::sparse::{Operands, Sparse};
use crate::tensor::mma::{Accumulator, BitProduct, Form};
use crate::tensor::{Element, matrix};

type Checked<T> = Result<T, Box<FaultKind>>;

pub(super) fn unsupported(what: &str) -> Box<FaultKind> {
    let what = what.to_owned();
    Box::new(FaultKind::Unsupported { what })
}

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
    pub(super) fn fragment(&self, w: &Warp, list: SlotList) -> Vec<Lanes> {
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
    pub(super) fn mma(&mut self, w: &mut Warp, mask: u32, op: &Mma) -> Checked<Flow> {
        self.whole_warp(w, mask, "mma.sync")?;
        if op.block_scale.is_some() {
            return Err(unsupported("block-scaled mma.sync, which needs sm_120,"));
        }
        let kind = || {
            unsupported(&format!(
                "mma.sync of {:?} by {:?} into {:?}",
                op.a_ty, op.b_ty, op.d_ty
            ))
        };
        let accumulator = match op.d_ty {
            Num::F16 => Accumulator::F16,
            Num::F32 => Accumulator::F32,
            Num::F64 => Accumulator::F64,
            Num::S32 => Accumulator::S32,
            _ => return Err(kind()),
        };
        let (Some(a), Some(b)) = (
            super::wgmma::element(op.a_ty),
            super::wgmma::element(op.b_ty),
        ) else {
            return Err(kind());
        };
        let bits = match op.b1_op {
            Some(BoolOp::Xor) => BitProduct::Xor,
            _ => BitProduct::And,
        };
        if let Some(sparsity) = op.sparse {
            return self.mma_sparse(w, mask, op, sparsity, (a, b, accumulator));
        }
        if (op.m, op.n, op.k) == (8, 8, 4) && op.a_ty == Num::F16 {
            return self.mma_octets(w, mask, op, accumulator);
        }
        let shape = (op.m.into(), op.n.into(), op.k.into());
        let form = Form::new(shape, a, b, accumulator, bits, op.satfinite)
            .map_err(|e| illegal(e.to_string()))?;
        self.counters.mma_flops += form.flops();
        let (a, b, c) = (
            self.fragment(w, op.a),
            self.fragment(w, op.b),
            self.fragment(w, op.c),
        );
        let d = form
            .run(
                &a.iter().collect::<Vec<_>>(),
                &b.iter().collect::<Vec<_>>(),
                &c.iter().collect::<Vec<_>>(),
                self.env.mma_mode,
            )
            .map_err(|e| illegal(e.to_string()))?;
        self.put_fragment(w, mask, op.d, &d);
        Ok(Flow::Next)
    }

    fn mma_sparse(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &Mma,
        sparsity: Sparsity,
        (a, b, d): (Element, Element, Accumulator),
    ) -> Checked<Flow> {
        let chosen = (sparsity.selector, sparsity.ordered);
        let form = Sparse::new(op.k.into(), (a, b), d, op.satfinite, chosen)
            .map_err(|e| illegal(e.to_string()))?;
        self.counters.mma_flops += form.flops();
        let fragments = [op.a, op.b, op.c].map(|list| self.fragment(w, list));
        let [a, b, c] = fragments
            .each_ref()
            .map(|words| words.iter().collect::<Vec<_>>());
        let operands = Operands {
            a: &a,
            b: &b,
            c: &c,
            metadata: w.get(sparsity.metadata),
        };
        let d = form
            .run(&operands, self.env.mma_mode)
            .map_err(|e| illegal(e.to_string()))?;
        self.put_fragment(w, mask, op.d, &d);
        Ok(Flow::Next)
    }

    fn mma_octets(&mut self, w: &mut Warp, mask: u32, op: &Mma, d: Accumulator) -> Checked<Flow> {
        let octets = Octets {
            a_by_column: op.a_col,
            b_by_row: op.b_row,
            c: match op.c_ty {
                Num::F16 => Accumulator::F16,
                _ => Accumulator::F32,
            },
            d,
        };
        self.counters.mma_flops += Octets::FLOPS;
        let fragments = [op.a, op.b, op.c].map(|list| self.fragment(w, list));
        let [a, b, c] = fragments
            .each_ref()
            .map(|words| words.iter().collect::<Vec<_>>());
        let d = octets
            .run(&a, &b, &c, self.env.mma_mode)
            .ok_or_else(|| illegal("mma.sync.m8n8k4 has another number of registers"))?;
        self.put_fragment(w, mask, op.d, &d);
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
    pub(super) fn matrix_move(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &MatrixMove,
    ) -> Checked<Flow> {
        let name = if op.store { "stmatrix" } else { "ldmatrix" };
        self.whole_warp(w, mask, name)?;
        if op.shape != MatrixShape::M8n8B16 {
            return Err(unsupported(&format!(
                "{name} of shape {:?}, which needs sm_100,",
                op.shape
            )));
        }
        let rows = u32::MAX >> (32 - 8 * u32::from(op.count));
        let mut addresses = self.addresses(w, op.addr);
        for a in &mut addresses {
            // A generic address into shared memory carries the shared address in its low half.
            *a &= 0xffff_ffff;
        }
        let access = Access {
            bytes: 16,
            write: op.store,
        };
        let at = self
            .resolve_in(w, rows, Place::Shared, &addresses, access)?
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
            matrix::stmatrix(&refs, op.trans, &lanes, |lane, _, bytes| {
                // SAFETY: `resolve_in` checked 16 bytes for every row lane.
                unsafe { (at[lane] as *mut [u8; 16]).write(bytes) };
                Ok::<(), Box<FaultKind>>(())
            })?;
            return Ok(Flow::Next);
        }
        let loaded = matrix::ldmatrix(op.count.into(), op.trans, &lanes, |lane, _| {
            // SAFETY: as above.
            Ok::<_, Box<FaultKind>>(unsafe { (at[lane] as *const [u8; 16]).read() })
        })?;
        for (&r, v) in slots.iter().zip(loaded) {
            w.put(mask, r, v);
        }
        Ok(Flow::Next)
    }

    /// `movmatrix`
    pub(super) fn movmatrix(&mut self, w: &mut Warp, mask: u32, d: R32, a: R32) -> Checked<Flow> {
        self.whole_warp(w, mask, "movmatrix")?;
        let v = matrix::movmatrix(w.get(a));
        w.put(mask, d, v);
        Ok(Flow::Next)
    }
}
