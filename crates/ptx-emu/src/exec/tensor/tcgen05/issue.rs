//! What threads hand to the tensor cores: `tcgen05.mma`, `cp`, `shift` and `commit`.

use std::ops::Range;

use super::ctas::Ctas;
use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::adversary::Delivery;
use crate::exec::cluster::cta::InFlight;
use crate::exec::cluster::jobs::{Job, Latency};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::tmem::reach::Reach;
use crate::exec::storage::tmem::split;
use crate::exec::storage::tmem::work::{Issued, Multiply, OperandA, Work};
use crate::exec::warp::Warp;
use crate::fault::Place;
use crate::op::{Accumulate, Addr, CtaGroup, R32, Slot, TmemA, TmemCopy, TmemMma, pool};
use crate::tensor::descriptor::{Major, Matrix};
use crate::tensor::tcgen05::{COLUMNS, CopyShape, Form, Product, TensorColumns};

/// Columns of an A in tensor memory.
const A_COLUMNS: u32 = 8;

impl Cluster<'_> {
    /// Something queued that writes these columns and lanes of a CTA.
    pub(super) fn at_work(&self, cta: usize, columns: &Range<u32>, lanes: u128) -> Option<&Issued> {
        let reach = Reach {
            columns: columns.clone(),
            lanes,
        };
        let queues = [Some(cta), (cta & 1 == 1).then_some(cta & !1)];
        queues
            .into_iter()
            .flatten()
            .flat_map(|owner| &self.ctas[owner].tmem.queue)
            .find(|issued| issued.ctas.contains(&cta) && issued.writes.meets(&reach))
    }

    /// Who may issue, and where it works. Every thread that comes issues its own.
    fn issuers(&mut self, w: &Warp, mask: u32, group: CtaGroup, what: &str) -> Checked<Ctas> {
        let ctas = self.tmem_group(w, group, what)?;
        let threads = mask.count_ones();
        if group == CtaGroup::Pair && w.cta % 2 == 1 {
            return Err(illegal(format!(
                "{what} of cta_group::2 by CTA rank {}: the even CTA of the pair issues for both",
                w.cta
            )));
        }
        if threads > 1 {
            let remark = format!(
                "{what} executed by {threads} threads of a warp, each of which issues its own: \
                 elect one"
            );
            if group == CtaGroup::Pair {
                return Err(illegal(remark));
            }
            self.note_early(w, remark);
        }
        Ok(ctas)
    }

    /// Columns of each CTA, which must exist and be allocated.
    fn columns_at(&self, ctas: Ctas, first: u32, count: u32, what: &str) -> Checked<Range<u32>> {
        let columns = first..first + count;
        if columns.end > COLUMNS as u32 {
            return Err(illegal(format!(
                "{what} reaches column {} of {COLUMNS}",
                columns.end - 1
            )));
        }
        let lacks = |cta: &usize| !self.ctas[*cta].tmem.holds(&columns);
        let Some(lacking) = ctas.all().find(lacks) else {
            return Ok(columns);
        };
        // The instruction is the even CTA's; the odd one may have freed its columns already.
        let whose = match lacking == ctas.first {
            true => String::new(),
            false => format!(
                " in CTA rank {lacking} of the pair: tcgen05.dealloc must wait until both are done"
            ),
        };
        Err(illegal(format!(
            "{what} is in columns {} to {} of tensor memory, which are not all allocated{whose}",
            columns.start,
            columns.end - 1
        )))
    }

    /// Queues work of one thread.
    fn queue(&mut self, w: &Warp, lane: usize, ctas: Ctas, work: Work, writes: Reach) {
        let (pipe, targets) = match &work {
            Work::Commit(targets) => (ctas.first as u32, targets.clone()),
            _ => (ctas.first as u32, Vec::new()),
        };
        let job = Job::TensorCore { pipe, targets };
        let number = self.schedule(w, 1 << lane, Latency::TENSOR, job);
        let from = Origin {
            work: number,
            ..w.origin(1 << lane)
        };
        let queue = &mut self.ctas[ctas.first].tmem.queue;
        queue.push_back(Issued {
            from,
            ctas: ctas.all(),
            work,
            writes,
        });
    }

    pub(super) fn tmem_mma(&mut self, w: &mut Warp, mask: u32, op: &TmemMma) -> Checked<Flow> {
        let ctas = self.issuers(w, mask, op.group, "tcgen05.mma")?;
        for lane in lanes(mask) {
            let (multiply, writes) = self.multiply(w, lane, ctas, op)?;
            let form = multiply.product.form;
            let products = u64::from(form.m) * u64::from(form.n) * u64::from(form.depth());
            self.counters.mma_flops += 2 * products;
            self.queue(w, lane, ctas, Work::Mma(Box::new(multiply)), writes);
        }
        for cta in ctas.all() {
            self.ctas[cta].tmem.multiplied = Some(w.origin(mask));
        }
        Ok(Flow::Next)
    }

    /// A product as one thread issues it.
    fn multiply(
        &mut self,
        w: &Warp,
        lane: usize,
        ctas: Ctas,
        op: &TmemMma,
    ) -> Checked<(Multiply, Reach)> {
        let wrong = |what: String| illegal(format!("tcgen05.mma: {what}"));
        let vector = op.scales.map(|scales| scales.2);
        let machine = (op.group.ctas(), op.stationary, op.metadata.is_some());
        let form = Form::decode(op.kind, vector, machine, w.get(op.shape)[lane]).map_err(wrong)?;
        let (d_lane, d) = split(self.address(w, op.d, lane) as u32);
        let half_lanes = |lane: u32| lane == 0 || (lane == 16 && form.half_lanes());
        if !half_lanes(d_lane) {
            return Err(wrong(format!("D begins in lane {d_lane}, which it cannot")));
        }
        let columns = self.columns_at(ctas, d, form.columns(), "D of tcgen05.mma")?;
        let mut others: Vec<(&str, Range<u32>)> = Vec::new();
        let mut scales = [0; 2];
        if let Some((sfa, sfb, _)) = op.scales {
            let counts = [form.rows().div_ceil(32), form.columns().div_ceil(32)];
            let names = ["A's scales", "B's scales"];
            for (i, at) in [sfa, sfb].into_iter().enumerate() {
                // The scale's number may be in the address, too, as CUTLASS has it.
                let (first, column) = split(self.address(w, at, lane) as u32);
                if first % 32 != 0 {
                    return Err(wrong(format!(
                        "{} begin in lane {first}: scales lie in every quarter from its first lane on",
                        names[i]
                    )));
                }
                scales[i] = column;
                let what = format!("{} of tcgen05.mma", names[i]);
                others.push((names[i], self.columns_at(ctas, column, counts[i], &what)?));
            }
        }
        let mut metadata = 0;
        if let Some(at) = op.metadata {
            let (first, column) = split(self.address(w, at, lane) as u32);
            if first != 0 || form.rows() != 128 {
                return Err(wrong(format!(
                    "the metadata of {} rows from lane {first} on: a CTA's 128 rows from lane 0 on \
                     are emulated",
                    form.rows()
                )));
            }
            metadata = column;
            let (what, count) = ("metadata of tcgen05.mma", form.metadata_columns());
            let columns = self.columns_at(ctas, column, count, what)?;
            others.push(("the metadata", columns));
        }
        let unit = op.kind.per_chunk();
        let major = |transposed| if transposed { Major::Mn } else { Major::K };
        let decode = |bits: u64, transposed: bool| {
            Matrix::decode_sm100(bits, major(transposed), unit).map_err(|e| wrong(e.to_string()))
        };
        let a = match op.a {
            TmemA::Desc(r) => OperandA::Shared(decode(w.get64(r)[lane], form.transpose_a)?),
            TmemA::Tmem(at) => {
                let (a_lane, column) = split(self.address(w, at, lane) as u32);
                if !half_lanes(a_lane) {
                    return Err(wrong(format!("A begins in lane {a_lane}, which it cannot")));
                }
                let what = "A of tcgen05.mma";
                others.push(("A", self.columns_at(ctas, column, A_COLUMNS, what)?));
                OperandA::Tmem {
                    column,
                    half: a_lane,
                    shifted: op.shifted,
                }
            }
        };
        let b = decode(w.get64(op.b)[lane], form.transpose_b)?;
        if form.sparse.is_some() && form.next_b(&b).is_none() {
            return Err(wrong(
                "B beside a sparse A has 64 bytes a column, and a swizzle of 32 bytes".to_owned(),
            ));
        }
        for (name, other) in &others {
            if other.start < columns.end && columns.start < other.end {
                return Err(wrong(format!(
                    "D in columns {} to {} and {name} in {} to {} overlap",
                    columns.start,
                    columns.end - 1,
                    other.start,
                    other.end - 1
                )));
            }
        }
        let accumulate = match op.accumulate {
            Accumulate::Always(always) => always,
            Accumulate::If { p, negate } => (w.pred(p) >> lane & 1 == 1) != negate,
        };
        let multiply = Multiply {
            product: Product {
                form,
                accumulate,
                scale_d: op.scale_d,
                level: self.env.level,
                mode: self.env.mma_mode,
            },
            at: TensorColumns {
                d,
                half: d_lane,
                scales,
                metadata,
            },
            disabled: self.disabled(w, lane, op),
            early: self.operands_in_flight(w, ctas, &form, (&a, &b)),
            collector: op.collector,
            a,
            b,
        };
        let lanes = form
            .blocks(d_lane)
            .iter()
            .fold(0, |lanes, block| lanes | 0xffff << block.lane);
        Ok((multiply, Reach { columns, lanes }))
    }

    /// `disable-output-lane`, 128 bits for each CTA.
    fn disabled(&self, w: &Warp, lane: usize, op: &TmemMma) -> [u128; 2] {
        let mut masks = [0u128; 2];
        for (i, slot) in pool(self.env.program, op.disabled).iter().enumerate() {
            if let Slot::W32(r) = slot {
                masks[i / 4] |= u128::from(w.get(*r)[lane]) << (32 * (i % 4));
            }
        }
        masks
    }

    /// Whether a tile of shared memory has yet to arrive.
    fn operands_in_flight(
        &mut self,
        w: &Warp,
        ctas: Ctas,
        form: &Form,
        (a, b): (&OperandA, &Matrix),
    ) -> bool {
        let mut hit = None;
        for cta in ctas.all() {
            if self.ctas[cta].in_flight.is_empty() {
                continue;
            }
            let a = match a {
                OperandA::Shared(matrix) => Some((*matrix, form.rows())),
                OperandA::Tmem { .. } => None,
            };
            let share = form.n / form.ctas;
            let next = form.next_b(b).map(|next| (next, share));
            for (tile, rows) in a.into_iter().chain([(*b, share)]).chain(next) {
                let bytes = self.ctas[cta].touched.span_of(&tile, rows);
                hit = hit.or_else(|| self.copy_into(cta, bytes, tile.chunks(rows)));
            }
        }
        self.note_overtaking(w, hit, "tcgen05.mma")
    }

    /// A copy under way to one of some chunks, which lie within `bytes`.
    fn copy_into(
        &self,
        cta: usize,
        bytes: Range<u32>,
        mut chunks: impl Iterator<Item = u32>,
    ) -> Option<InFlight> {
        // Most copies under way are for other tiles.
        let near = |c: &InFlight| c.start < bytes.end && bytes.start < c.end;
        if !self.ctas[cta].in_flight.iter().any(near) {
            return None;
        }
        chunks.find_map(|chunk| self.copy_over(cta as u32, chunk, 16))
    }

    fn note_overtaking(&mut self, w: &Warp, hit: Option<InFlight>, what: &str) -> bool {
        if let Some(copy) = hit {
            let line = Place::of(self.env.program, copy.pc, [0; 3], 0, 0).line();
            let what = format!("{what} issued before the copy issued at {line} has arrived");
            self.note_early(w, what);
        }
        hit.is_some()
    }

    pub(super) fn tmem_copy(&mut self, w: &mut Warp, mask: u32, op: &TmemCopy) -> Checked<Flow> {
        let ctas = self.issuers(w, mask, op.group, "tcgen05.cp")?;
        for lane in lanes(mask) {
            let (at_lane, first) = split(self.address(w, op.to, lane) as u32);
            let begins = match op.shape {
                CopyShape::S4x256 => at_lane < 32,
                _ => at_lane == 0,
            };
            if !begins {
                return Err(illegal(format!(
                    "tcgen05.cp begins in lane {at_lane}, which it cannot"
                )));
            }
            let shape = op.shape;
            let columns = self.columns_at(ctas, first, shape.columns(), "tcgen05.cp")?;
            let matrix = Matrix::decode_sm100(w.get64(op.from)[lane], Major::K, 8)
                .map_err(|e| illegal(format!("tcgen05.cp: {e}")))?;
            let chunks = || {
                let rows = 0..shape.rows();
                rows.flat_map(move |row| (0..shape.chunks()).map(move |u| matrix.row_chunk(row, u)))
            };
            let mut hit = None;
            for cta in ctas.all() {
                if !self.ctas[cta].in_flight.is_empty() {
                    hit = hit.or_else(|| self.copy_into(cta, 0..u32::MAX, chunks()));
                }
            }
            let early = self.note_overtaking(w, hit, "tcgen05.cp");
            let lanes = (0..shape.rows())
                .flat_map(|row| shape.lanes(row))
                .fold(0, |lanes, lane| lanes | 1u128 << (lane + at_lane));
            let work = Work::Copy {
                shape,
                unpacked: op.unpacked,
                matrix,
                early,
            };
            self.queue(w, lane, ctas, work, Reach { columns, lanes });
        }
        Ok(Flow::Next)
    }

    pub(super) fn tmem_shift(
        &mut self,
        w: &mut Warp,
        mask: u32,
        group: CtaGroup,
        at: Addr,
    ) -> Checked<Flow> {
        let ctas = self.issuers(w, mask, group, "tcgen05.shift")?;
        for lane in lanes(mask) {
            let (first_lane, first) = split(self.address(w, at, lane) as u32);
            if first_lane % 32 != 0 {
                return Err(illegal(format!(
                    "tcgen05.shift of lane {first_lane}: it must be a multiple of 32"
                )));
            }
            let columns = self.columns_at(ctas, first, A_COLUMNS, "tcgen05.shift")?;
            let lanes = 0xffff_ffff << first_lane;
            self.queue(w, lane, ctas, Work::Shift, Reach { columns, lanes });
        }
        Ok(Flow::Next)
    }

    pub(super) fn tmem_commit(
        &mut self,
        w: &mut Warp,
        mask: u32,
        group: CtaGroup,
        (barrier, multicast): (Addr, Option<R32>),
    ) -> Checked<Flow> {
        let ctas = self.tmem_group(w, group, "tcgen05.commit")?;
        for lane in lanes(mask) {
            let at = self.barrier_at(w, barrier, lane)?;
            let targets: Vec<SharedAt> = match multicast {
                None => vec![at],
                Some(r) => {
                    let mask = w.get(r)[lane] & 0xffff;
                    if mask >> self.ctas.len() != 0 {
                        return Err(illegal(format!(
                            "tcgen05.commit to CTAs {mask:#x} of a cluster of {}",
                            self.ctas.len()
                        )));
                    }
                    let ranks = (0..16).filter(|rank| mask >> rank & 1 == 1);
                    ranks.map(|cta| SharedAt { cta, ..at }).collect()
                }
            };
            for at in &targets {
                let known = &mut self.ctas[at.cta as usize].tmem.committed;
                if !known.contains(&at.offset) {
                    known.push(at.offset);
                }
            }
            let thread = w.origin(1 << lane);
            let same = |from: &Origin| {
                (from.cta, from.warp, from.lanes) == (thread.cta, thread.warp, thread.lanes)
            };
            let mut queue = self.ctas[ctas.first].tmem.queue.iter();
            let pending = queue.any(|issued| same(&issued.from));
            if !pending && self.adversary.delivery == Delivery::Latest {
                // It speaks for what its own thread has issued, and all of that is done.
                for at in targets {
                    self.arrive_for(thread, at)?;
                }
                continue;
            }
            let nothing = Reach {
                columns: 0..0,
                lanes: 0,
            };
            self.queue(w, lane, ctas, Work::Commit(targets), nothing);
        }
        self.progress += 1;
        Ok(Flow::Next)
    }
}
