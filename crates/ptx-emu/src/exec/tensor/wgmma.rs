//! `wgmma`: issued by the four warps of a warpgroup, computed when waited for.
//!
//! An instruction only joins its warp's queue, with its descriptors and A fragments. The first
//! `wait_group` that needs it computes it for all four warps, reading shared memory at that
//! moment: a tile overwritten too early gives a wrong product, as on a GPU. Consecutive
//! instructions on one accumulator are computed as one chain.
//!
//! Until then the accumulator registers are in flight. A plain `mov` of one (compilers insert
//! them where values cross loops; ptxas coalesces them away) is queued behind the instruction that
//! produces it. Any other use finds the canonical NaN.

use crate::exec::checked::illegal;
use crate::exec::cluster::cta::InFlight;
use crate::exec::cluster::env::Env;
use crate::exec::cluster::sources::sources;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::V32;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Signal;
use crate::exec::listen::visit::{Act, Bytes, Room, Visit};
use crate::exec::origin::Origin;
use crate::exec::storage::tmem::rectangle::Loaded;
use crate::exec::warp::queue::{Issued, Pending};
use crate::exec::warp::{Wait, Warp};
use crate::fault::{Fault, FaultKind, Place};
use crate::numeric::{Lanes, NAN_F32};
use crate::op::{Inst, Op, Order, Program, Slot, Wgmma, WgmmaA, pool};
use crate::tensor::descriptor::{Major, Matrix};
use crate::tensor::wgmma::{OperandA, SparseStep, Step};

fn major(transposed: bool) -> Major {
    if transposed { Major::Mn } else { Major::K }
}

impl Cluster<'_> {
    /// `wgmma.mma_async`
    pub(crate) fn wgmma(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &Wgmma,
    ) -> Result<Flow, Box<FaultKind>> {
        if mask != w.live || mask != u32::MAX {
            return Err(illegal(
                "wgmma needs all 32 lanes of the warp: it was executed by a diverged warp",
            ));
        }
        // Of a sparse product, half of the elements are multiplied.
        let depth = op.k / if op.sparse.is_some() { 2 } else { 1 };
        self.counters.mma_flops += 2 * 64 * u64::from(op.n) * u64::from(depth) / 4;
        let program = self.env.program;
        let fragments = match op.a {
            WgmmaA::Desc(_) => None,
            WgmmaA::Regs(list) => {
                let slots = pool(program, list);
                Some(Box::new(std::array::from_fn(|i| match slots.get(i) {
                    Some(&Slot::W32(r)) => V32(*w.get(r)),
                    _ => V32([0; 32]),
                })))
            }
        };
        let a_desc = match op.a {
            WgmmaA::Desc(r) => w.get64(r)[0],
            WgmmaA::Regs(_) => 0,
        };
        let accumulate = match op.scale_d {
            _ if op.zero_d => false,
            None => true,
            Some(p) => w.pred(p) & 1 == 1,
        };
        let b_desc = w.get64(op.b_desc)[0];
        self.event_seq += 1;
        let work = self.event_seq;
        self.signal(
            w.origin(mask),
            Signal::Issue {
                work,
                by: Agent::TensorCore,
                signals: None,
            },
        );
        let issued = Issued {
            pc: w.pc,
            work,
            a_desc,
            b_desc,
            fragments,
            metadata: op
                .sparse
                .map(|sparse| Box::new(V32(*w.get(sparse.metadata)))),
            accumulate,
            early: self.tiles_in_flight(w, op, [a_desc, b_desc]),
        };
        let group = w.wgmma.current;
        w.wgmma.entries.push_back((group, Pending::Mma(issued)));
        for &(word, slots) in self.env.accumulators(w.pc) {
            w.wgmma.lock_word(word, slots);
        }
        Ok(Flow::Next)
    }

    /// Whether some of an instruction's tiles has yet to arrive. Descriptor 0 is no tile, and one
    /// that does not decode faults when it is executed.
    fn tiles_in_flight(&mut self, w: &Warp, op: &Wgmma, descriptors: [u64; 2]) -> bool {
        if self.ctas[w.cta as usize].in_flight.is_empty() {
            return false;
        }
        let majors = [(op.trans_a, 64), (op.trans_b, u32::from(op.n))];
        let tiles = descriptors
            .into_iter()
            .zip(majors)
            .filter(|(bits, _)| *bits != 0)
            .filter_map(|(bits, (trans, rows))| {
                Some((Matrix::decode(bits, major(trans)).ok()?, rows))
            });
        // B of a sparse instruction is two tiles.
        let more = op.sparse.and_then(|_| {
            let b = Matrix::decode(descriptors[1], major(op.trans_b)).ok()?;
            Some((b.next_k()?, u32::from(op.n)))
        });
        let tiles = tiles.chain(more);
        let mut hit = None;
        for (tile, rows) in tiles {
            let cta = &mut self.ctas[w.cta as usize];
            let bytes = cta.touched.span_of(&tile, rows);
            // Most copies under way are for other tiles.
            let near = |c: &InFlight| c.start < bytes.end && bytes.start < c.end;
            if cta.in_flight.iter().any(near) {
                let mut chunks = tile.chunks(rows);
                hit = hit.or_else(|| chunks.find_map(|chunk| self.copy_over(w.cta, chunk, 16)));
            }
        }
        if let Some(copy) = hit {
            let line = Place::of(self.env.program, copy.pc, [0; 3], 0, 0).line();
            self.note_early(
                w,
                format!("wgmma issued before the copy issued at {line} has arrived"),
            );
        }
        hit.is_some()
    }

    pub(crate) fn wgmma_commit(&mut self, w: &mut Warp, mask: u32) {
        self.commit(w, mask, Agent::TensorCore, w.wgmma.current);
        w.wgmma.current += 1;
        self.progress += 1;
    }

    pub(crate) fn wgmma_wait(&mut self, w: &mut Warp, n: u32) -> Flow {
        let below = w.wgmma.below(n);
        let over = !w.wgmma.pending_below(below);
        self.pass_or_wait(w.origin(w.active), over, Wait::Wgmma { below })
    }

    /// Gives an instruction that reads in-flight accumulators NaN instead. Whole-warp moves are
    /// exempt: they are queued.
    #[inline(never)]
    pub(crate) fn guard_accumulators(&mut self, w: &mut Warp, mask: u32, inst: &Inst) {
        if matches!(inst.op, Op::Mov32 { .. }) && mask == w.live {
            return;
        }
        for slot in sources(self.env.program, &inst.op) {
            let already = w.wgmma.poisoned.iter().any(|(s, _)| *s == slot.0);
            if w.wgmma.is_locked(slot) && !already {
                let register = &mut w.r32[slot.0 as usize];
                let value = std::mem::replace(register, V32([NAN_F32; 32]));
                w.wgmma.poisoned.push((slot.0, value));
                let loads = w
                    .wgmma
                    .entries
                    .iter()
                    .any(|e| matches!(e.1, Pending::Load(_)));
                let what = match loads {
                    true => "register of a tcgen05.ld read before tcgen05.wait::ld",
                    false => "accumulator read before wgmma.wait_group has retired it",
                };
                self.note_early(w, what.to_owned());
            }
        }
    }

    /// Computes the groups below `below` if all four warps have issued them.
    pub(crate) fn retire_wgmma(
        &mut self,
        cta: usize,
        warp: usize,
        below: u64,
    ) -> Result<bool, Box<Fault>> {
        let first = warp / 4 * 4;
        let warps = &self.ctas[cta].warps;
        if !warps[warp].wgmma.pending_below(below) {
            return Ok(true);
        }
        let Some(four) = warps.get(first..first + 4) else {
            let kind =
                FaultKind::illegal("wgmma needs a warpgroup of four warps; the block ends before");
            return Err(self.fault(kind, cta, warp, self.ctas[cta].warps[warp].pc, u32::MAX));
        };
        if four.iter().any(|w| w.wgmma.current < below) {
            return Ok(false);
        }
        match self.retire_group(cta, first, below) {
            Ok(()) => {
                self.progress += 1;
                Ok(true)
            }
            Err((kind, pc)) => Err(self.fault(*kind, cta, warp, pc, u32::MAX)),
        }
    }

    /// Computes what a CTA that has ended did not wait for: those products read their operands
    /// all the same.
    pub(crate) fn retire_rest(&mut self, cta: usize) -> Result<(), Box<Fault>> {
        for first in (0..self.ctas[cta].warps.len()).step_by(4) {
            let below = self.ctas[cta].warps[first].wgmma.current;
            self.retire_wgmma(cta, first, below)?;
        }
        Ok(())
    }

    fn retire_group(
        &mut self,
        cta: usize,
        first: usize,
        below: u64,
    ) -> Result<(), (Box<FaultKind>, u32)> {
        for w in &mut self.ctas[cta].warps[first..first + 4] {
            for (slot, value) in std::mem::take(&mut w.wgmma.poisoned) {
                w.r32[slot as usize] = value;
            }
        }
        loop {
            let chain = self.next_chain(cta, first, below)?;
            if chain.is_empty() {
                break;
            }
            self.run_chain(cta, first, &chain)?;
        }
        for w in &mut self.ctas[cta].warps[first..first + 4] {
            self.env.relock(w);
        }
        Ok(())
    }

    /// Takes the longest run of instructions on one accumulator off the four queues, after
    /// performing the copies in front of it.
    fn next_chain(
        &mut self,
        cta: usize,
        first: usize,
        below: u64,
    ) -> Result<Vec<[Issued; 4]>, (Box<FaultKind>, u32)> {
        let insts = &self.env.program.insts;
        let mut chain: Vec<[Issued; 4]> = Vec::new();
        let warps = &mut self.ctas[cta].warps[first..first + 4];
        loop {
            for w in warps.iter_mut() {
                while let Some((group, Pending::Copy { from, to })) = w.wgmma.entries.front() {
                    if *group >= below || !chain.is_empty() {
                        break;
                    }
                    w.r32[to.0 as usize] = w.r32[from.0 as usize];
                    w.wgmma.entries.pop_front();
                }
            }
            let mut fronts = warps.iter().map(|w| match w.wgmma.entries.front() {
                Some((group, Pending::Mma(issued))) if *group < below => Some(issued.pc),
                _ => None,
            });
            let Some(pc) = fronts.next().flatten() else {
                return Ok(chain);
            };
            if fronts.any(|p| p != Some(pc)) {
                let reason = "the warps of the warpgroup executed different wgmma instructions";
                return Err((illegal(reason), pc));
            }
            let same = chain.last().is_none_or(|last| {
                chainable(
                    &insts[last[0].pc as usize].op,
                    &insts[pc as usize].op,
                    self.env,
                )
            });
            if !same {
                return Ok(chain);
            }
            let mut issued = warps
                .iter_mut()
                .filter_map(|w| match w.wgmma.entries.pop_front() {
                    Some((_, Pending::Mma(issued))) => Some(issued),
                    _ => None,
                });
            let mut next = || issued.next();
            match [next(), next(), next(), next()] {
                [Some(a), Some(b), Some(c), Some(d)] => chain.push([a, b, c, d]),
                _ => return Ok(chain),
            }
        }
    }

    fn run_chain(
        &mut self,
        cta: usize,
        first: usize,
        chain: &[[Issued; 4]],
    ) -> Result<(), (Box<FaultKind>, u32)> {
        let program = self.env.program;
        let pc = chain[0][0].pc;
        let Op::Wgmma(op) = &program.insts[pc as usize].op else {
            return Ok(());
        };
        let form = &op.form;
        let mut steps = Vec::with_capacity(chain.len());
        for four in chain {
            let Op::Wgmma(op) = &program.insts[four[0].pc as usize].op else {
                continue;
            };
            steps.push(step(op, four).map_err(|e| (e, four[0].pc))?);
        }
        for (step, four) in steps.iter().zip(chain) {
            let from = Origin {
                cta: cta as u32,
                warp: first as u32,
                lanes: u32::MAX,
                pc: four[0].pc,
                work: four[0].work,
                ..Origin::default()
            };
            if let OperandA::Shared(matrix) = &step.a {
                self.pass_tile(from, matrix, 64);
            }
            let next = step.b.next_k().filter(|_| op.sparse.is_some());
            for tile in std::iter::once(step.b).chain(next) {
                self.pass_tile(from, &tile, op.n.into());
            }
        }
        if chain[0][0].accumulate {
            self.sums_set(cta, first, pc, op.d);
        }
        let cta = &mut self.ctas[cta];
        let slots = pool(program, op.d);
        let mut d: Vec<&mut Lanes> = Vec::with_capacity(4 * slots.len());
        for w in &mut cta.warps[first..first + 4] {
            let distinct = self.env.accumulators(pc);
            accumulators(w, slots, distinct, &mut d).map_err(|e| (e, pc))?;
        }
        let mode = self.env.mma_mode;
        match op.sparse {
            None => form.run_at(self.env.level, &steps, &cta.shared, &mut d, mode),
            Some(_) => {
                let steps = sparse_steps(program, chain, &steps);
                form.run_sparse(&steps, &cta.shared, &mut d, mode)
            }
        }
        .map_err(|e| (illegal(e.to_string()), pc))?;
        // The tile may have come meanwhile; what the tensor core read was not there.
        if chain.iter().flatten().any(|issued| issued.early) {
            d.iter_mut().for_each(|lanes| **lanes = [NAN_F32; 32]);
        }
        Ok(())
    }
}

impl Cluster<'_> {
    /// Accounts for an operand tile.
    fn pass_tile(&mut self, from: Origin, matrix: &Matrix, rows: u32) {
        self.pass(&Visit {
            agent: Agent::TensorCore,
            from,
            act: Act::Read,
            order: Order::Weak,
            room: Room::Shared { cta: from.cta },
            bytes: Bytes::Tile { matrix, rows },
        });
    }
}

/// Mutable references to a warp's accumulator registers, which must be distinct.
fn accumulators<'w>(
    w: &'w mut Warp,
    slots: &[Slot],
    distinct: &[(u32, u64)],
    d: &mut Vec<&'w mut Lanes>,
) -> Result<(), Box<FaultKind>> {
    let count: u32 = distinct.iter().map(|(_, slots)| slots.count_ones()).sum();
    let in_bounds = slots.iter().all(|slot| match slot {
        Slot::W32(r) => (r.0 as usize) < w.r32.len(),
        _ => false,
    });
    if count as usize != slots.len() || !in_bounds {
        return Err(illegal("wgmma names an accumulator register twice"));
    }
    let base = w.r32.as_mut_ptr();
    for slot in slots {
        if let Slot::W32(r) = slot {
            // SAFETY: in bounds and distinct, both checked above; `w` stays borrowed for 'w.
            d.push(unsafe { &mut (*base.add(r.0 as usize)).0 });
        }
    }
    Ok(())
}

fn step<'f>(op: &Wgmma, four: &'f [Issued; 4]) -> Result<Step<'f>, Box<FaultKind>> {
    let matrix = |bits: u64, transposed: bool| {
        Matrix::decode(bits, major(transposed)).map_err(|e| illegal(e.to_string()))
    };
    let a = match &four[0].fragments {
        None => OperandA::Shared(matrix(four[0].a_desc, op.trans_a)?),
        Some(_) => OperandA::Registers(std::array::from_fn(|warp| {
            std::array::from_fn(|i| match &four[warp].fragments {
                Some(f) => &f[i].0,
                None => &ZEROS,
            })
        })),
    };
    Ok(Step {
        a,
        b: matrix(four[0].b_desc, op.trans_b)?,
        accumulate: four[0].accumulate,
    })
}

/// The steps of sparse instructions, with their metadata.
fn sparse_steps<'f>(
    program: &Program,
    chain: &'f [[Issued; 4]],
    steps: &[Step<'f>],
) -> Vec<SparseStep<'f>> {
    let both = chain.iter().zip(steps);
    let sparse = both.filter_map(|(four, step)| {
        let Op::Wgmma(op) = &program.insts[four[0].pc as usize].op else {
            return None;
        };
        Some(SparseStep {
            step: *step,
            metadata: four
                .each_ref()
                .map(|issued| issued.metadata.as_ref().map_or(&ZEROS, |lanes| &lanes.0)),
            selector: op.sparse?.selector,
        })
    });
    sparse.collect()
}

static ZEROS: Lanes = [0; 32];

/// Whether two instructions continue one accumulator in one form.
fn chainable(a: &Op, b: &Op, env: &Env<'_>) -> bool {
    let (Op::Wgmma(a), Op::Wgmma(b)) = (a, b) else {
        return false;
    };
    let slots = |op: &Wgmma| pool(env.program, op.d);
    (a.form, a.k) == (b.form, b.k)
        && a.sparse.is_some() == b.sparse.is_some()
        && slots(a) == slots(b)
}

impl Env<'_> {
    fn accumulators(&self, pc: u32) -> &[(u32, u64)] {
        &self.accumulators[pc as usize]
    }

    /// The registers of a load are in flight.
    pub(super) fn lock_loaded(&self, w: &mut Warp, pc: u32) {
        for &(word, slots) in self.accumulators(pc) {
            w.wgmma.lock_word(word, slots);
        }
    }

    /// Recomputes which registers are in flight from what is left in the queue.
    fn relock(&self, w: &mut Warp) {
        w.wgmma.locked.fill(0);
        let entries = std::mem::take(&mut w.wgmma.entries);
        for (_, entry) in &entries {
            match entry {
                Pending::Copy { to, .. } => w.wgmma.lock(*to),
                Pending::Load(loaded) => {
                    for &(word, slots) in self.accumulators(loaded.pc) {
                        w.wgmma.lock_word(word, slots);
                    }
                }
                Pending::Mma(issued) => {
                    for &(word, slots) in self.accumulators(issued.pc) {
                        w.wgmma.lock_word(word, slots);
                    }
                }
            }
        }
        w.wgmma.entries = entries;
    }
}

impl Warp {
    /// `tcgen05.wait::ld`: gives registers what was loaded, one load and move after the other.
    pub(super) fn retire_loads(&mut self, mut load: impl FnMut(&Loaded, &mut [V32])) {
        for (slot, value) in std::mem::take(&mut self.wgmma.poisoned) {
            self.r32[slot as usize] = value;
        }
        for (_, entry) in std::mem::take(&mut self.wgmma.entries) {
            match entry {
                Pending::Load(loaded) => load(&loaded, &mut self.r32),
                Pending::Copy { from, to } => self.r32[to.0 as usize] = self.r32[from.0 as usize],
                // No target has both.
                Pending::Mma(_) => {}
            }
        }
        self.wgmma.locked.fill(0);
    }
}
