//! What tensor cores do with their queue, in order, when its turn has come.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::Cluster;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::{Signal, Step};
use crate::exec::listen::visit::{Act, Bytes, Room, Visit};
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::mbarrier::{Arrival, token_phase};
use crate::exec::storage::tmem::POISON;
use crate::exec::storage::tmem::reach::Reach;
use crate::exec::storage::tmem::work::{Issued, Multiply, OperandA, Work};
use crate::fault::{EarlyRead, Fault, FaultKind, Place};
use crate::numeric::NAN_F32;
use crate::op::{Collector, Order, Scope};
use crate::tensor::descriptor::Matrix;
use crate::tensor::tcgen05::{CopyShape, Kind, LANES, Operands, Source, Unpacked};

impl Cluster<'_> {
    /// Performs what was queued up to a number.
    pub(crate) fn drain(&mut self, pipe: usize, through: u64) -> Result<(), Box<Fault>> {
        let due = |issued: &Issued| issued.from.work <= through;
        while self.ctas[pipe].tmem.queue.front().is_some_and(due)
            && let Some(issued) = self.ctas[pipe].tmem.queue.pop_front()
        {
            self.progress += 1;
            let from = issued.from;
            self.perform(issued).map_err(|kind| {
                self.fault(*kind, from.cta as usize, from.warp as usize, from.pc, 0)
            })?;
        }
        Ok(())
    }

    fn perform(&mut self, issued: Issued) -> Checked<()> {
        let Issued {
            from,
            ctas,
            work,
            writes,
        } = issued;
        if let Work::Commit(targets) = &work {
            for &at in targets {
                self.arrive_for(from, at)?;
            }
            return Ok(());
        }
        for cta in ctas.clone() {
            if self.ctas[cta].running == 0 {
                return Err(illegal(match ctas.len() {
                    1 => "the CTA ended before its tensor core was done: wait for tcgen05.commit",
                    _ => {
                        "a CTA of the pair ended before the tensor cores were done: both must stay \
                         until then (barrier.cluster at the end)"
                    }
                }));
            }
        }
        match work {
            Work::Mma(multiply) => self.perform_mma(from, ctas, &multiply, &writes),
            Work::Copy {
                shape,
                unpacked,
                matrix,
                early,
            } => {
                for cta in ctas {
                    self.perform_copy(from, cta, (shape, unpacked), &matrix, (&writes, early))?;
                }
                Ok(())
            }
            Work::Shift => {
                for cta in ctas {
                    self.perform_shift(from, cta, &writes);
                }
                Ok(())
            }
            Work::Commit(_) => Ok(()),
        }
    }

    /// The arrival of a `tcgen05.commit`.
    pub(super) fn arrive_for(&mut self, from: Origin, at: SharedAt) -> Checked<()> {
        let by = self.helper(from);
        let cta = &mut self.ctas[at.cta as usize];
        // Nobody waits there any more.
        if cta.running == 0 {
            return Ok(());
        }
        let one = Arrival {
            count: 1,
            expect_tx: 0,
            drop: false,
            no_complete: false,
        };
        let token = cta.mbarriers.arrive(&mut cta.shared, at.offset, one, by)?;
        let step = Step::Arrive {
            count: 1,
            order: Order::Release(Scope::Cluster),
        };
        let over = token_phase(token);
        self.signal(from, Signal::Mbarrier { at, over, step });
        Ok(())
    }

    fn perform_mma(
        &mut self,
        from: Origin,
        ctas: std::ops::Range<usize>,
        multiply: &Multiply,
        writes: &Reach,
    ) -> Checked<()> {
        let product = &multiply.product;
        let form = &product.form;
        let uncollected = self.collector_lacks(from, ctas.start, multiply);
        for cta in ctas.clone() {
            if let OperandA::Shared(matrix) = &multiply.a {
                self.pass_operand(from, cta, matrix, form.rows());
            }
            self.pass_operand(from, cta, &multiply.b, form.n / form.ctas);
            if let Some(next) = form.next_b(&multiply.b) {
                self.pass_operand(from, cta, &next, form.n / form.ctas);
            }
            self.check_layout(from, cta, multiply);
            self.check_inputs(from, cta, multiply, writes);
            self.pass_product(from, cta, multiply, writes);
        }
        let sources: Vec<(Source<'_>, Matrix, &[u8])> = ctas
            .clone()
            .map(|cta| {
                let cta = &self.ctas[cta];
                let a = match multiply.a {
                    OperandA::Shared(matrix) => Source::Shared(matrix, &cta.shared),
                    OperandA::Tmem {
                        column,
                        half,
                        shifted,
                    } => Source::Tmem {
                        words: &cta.tmem.words,
                        column,
                        half,
                        shifted,
                    },
                };
                (a, multiply.b, &cta.shared[..])
            })
            .collect();
        let operands = Operands::read(form, &sources).map_err(|outside| {
            Box::new(FaultKind::OutOfBounds {
                space: "tcgen05.mma operand",
                address: outside.address.into(),
                bytes: 16,
                write: false,
                nearest: format!("the CTA has {} bytes", self.ctas[ctas.start].shared.len()),
            })
        })?;
        for (number, cta) in ctas.enumerate() {
            let tmem = &mut self.ctas[cta].tmem;
            let disabled = multiply.disabled[number];
            let kept = kept_lanes(&tmem.words, writes, disabled);
            let same = product.run(&operands, number, &mut tmem.words, multiply.at);
            if multiply.early || uncollected {
                // The tile may be there by now; what the tensor core took was not.
                fill(&mut tmem.words, writes, NAN_F32);
            }
            restore_lanes(&mut tmem.words, writes, disabled, &kept);
            let enabled = Reach {
                lanes: writes.lanes & !disabled,
                ..writes.clone()
            };
            tmem.mark(&enabled, true);
            if !same {
                let what = "B's scales differ between the four quarters of the lanes: each reads \
                            its own copy (tcgen05.cp with .warpx4 writes all)";
                self.remark(from, what.to_owned());
            }
        }
        Ok(())
    }

    /// Accounts for the tensor memory of a product.
    fn pass_product(&mut self, from: Origin, cta: usize, multiply: &Multiply, writes: &Reach) {
        if self.ear.is_none() {
            return;
        }
        let who = (Agent::TensorCore, from);
        for (_, reach) in reads_of(multiply, writes) {
            self.pass_tensor(who, cta, &reach, Act::Read);
        }
        let act = match multiply.product.accumulate {
            true => Act::Update,
            false => Act::Write,
        };
        let enabled = Reach {
            lanes: writes.lanes & !multiply.disabled[cta & 1],
            ..writes.clone()
        };
        self.pass_tensor(who, cta, &enabled, act);
    }

    /// Accounts for tensor memory.
    pub(super) fn pass_tensor(
        &mut self,
        (agent, from): (Agent, Origin),
        cta: usize,
        reach: &Reach,
        act: Act,
    ) {
        let columns = &reach.columns;
        self.pass(&Visit {
            agent,
            from,
            act,
            order: Order::Weak,
            room: Room::Tensor { cta: cta as u32 },
            bytes: Bytes::Columns {
                first: columns.start,
                count: columns.end - columns.start,
                lanes: reach.lanes,
            },
        });
    }

    /// Remarks on a tile that a copy has laid out with another swizzle than the product reads it.
    fn check_layout(&mut self, from: Origin, cta: usize, multiply: &Multiply) {
        let a = match &multiply.a {
            OperandA::Shared(matrix) => Some(("A", *matrix)),
            OperandA::Tmem { .. } => None,
        };
        for (name, matrix) in a.into_iter().chain([("B", multiply.b)]) {
            let laid = self.ctas[cta].tmem.layouts.at(matrix.start);
            if let Some(laid) = laid.filter(|laid| laid.swizzle != matrix.swizzle) {
                let line = Place::of(self.env.program, laid.pc, [0; 3], 0, 0).line();
                let what = format!(
                    "tcgen05.mma reads {name} with {} (its descriptor, bits 61 to 63), and the copy \
                     issued at {line} has laid it out with {} (its tensor map)",
                    matrix.swizzle.described(),
                    laid.swizzle.described()
                );
                self.remark(from, what);
            }
        }
    }

    /// What the collector keeps with a product; whether this one takes an operand from it that is
    /// not there.
    fn collector_lacks(&mut self, from: Origin, pipe: usize, multiply: &Multiply) -> bool {
        let Collector { buffer, usage } = multiply.collector;
        let operand = multiply.collected();
        let held = &mut self.ctas[pipe].tmem.collected[usize::from(buffer)];
        let before = std::mem::replace(held, usage.keeps().then_some(operand));
        if !usage.takes() || before == Some(operand) {
            return false;
        }
        let holds = match before {
            None => "nothing",
            Some(_) => "another operand",
        };
        let which = match multiply.product.form.stationary {
            true => format!("b{buffer}"),
            false => "a".to_owned(),
        };
        let what = format!(
            "tcgen05.mma takes its operand from the collector's buffer (collector::{which}::use or \
             ::lastuse), which holds {holds}: a product with ::fill of the same operand must come \
             before it, and none with ::lastuse, ::discard or no hint between"
        );
        self.remark(from, what);
        true
    }

    /// Remarks on what a product reads that nobody has written.
    fn check_inputs(&mut self, from: Origin, cta: usize, multiply: &Multiply, writes: &Reach) {
        let tmem = &self.ctas[cta].tmem;
        if multiply.product.accumulate
            && let Some(column) = tmem.unwritten(writes)
        {
            let what = format!(
                "tcgen05.mma adds to column {column} of tensor memory, which was never written: \
                 enable-input-d must be false the first time"
            );
            self.remark(from, what);
            return;
        }
        let missing =
            |(name, reach): &(&str, Reach)| Some((name.to_string(), tmem.unwritten(reach)?));
        if let Some((name, column)) = reads_of(multiply, writes).iter().find_map(missing) {
            let what = format!(
                "tcgen05.mma reads {name} from column {column} of tensor memory, which was not \
                 written in all lanes"
            );
            self.remark(from, what);
        }
    }

    /// Keeps something that explains a wrong result.
    pub(super) fn remark(&mut self, from: Origin, what: String) {
        let program = self.env.program;
        let cta = self.ctas[from.cta as usize].id;
        self.keep_early(|| EarlyRead {
            place: Place::of(program, from.pc, cta, from.warp, from.lanes),
            what,
        });
    }

    /// Accounts for an operand tile.
    fn pass_operand(&mut self, from: Origin, cta: usize, matrix: &Matrix, rows: u32) {
        self.pass(&Visit {
            agent: Agent::TensorCore,
            from,
            act: Act::Read,
            order: Order::Weak,
            room: Room::Shared { cta: cta as u32 },
            bytes: Bytes::Tile { matrix, rows },
        });
    }

    fn perform_copy(
        &mut self,
        from: Origin,
        cta: usize,
        (shape, unpacked): (CopyShape, Option<Unpacked>),
        matrix: &Matrix,
        (writes, early): (&Reach, bool),
    ) -> Checked<()> {
        let rows = 0..shape.rows();
        let mut chunks: Vec<u32> = rows
            .flat_map(|row| (0..shape.chunks()).map(move |u| matrix.row_chunk(row, u)))
            .collect();
        let own = &mut self.ctas[cta];
        let end = own.shared.len();
        let outside = chunks.iter().find(|&&at| at as usize + 16 > end);
        if let Some(&address) = outside {
            return Err(Box::new(FaultKind::OutOfBounds {
                space: "tcgen05.cp source",
                address: address.into(),
                bytes: 16,
                write: false,
                nearest: format!("the CTA has {end} bytes"),
            }));
        }
        let at_lane = match shape {
            CopyShape::S4x256 => writes.lanes.trailing_zeros(),
            _ => 0,
        };
        let places = (0..shape.rows()).flat_map(|row| (0..shape.chunks()).map(move |u| (row, u)));
        for ((row, u), &address) in places.zip(&chunks) {
            let mut chunk = [0; 16];
            chunk.copy_from_slice(&own.shared[address as usize..][..16]);
            if let Some(unpacked) = unpacked {
                chunk = unpacked.widen(chunk);
            }
            for (i, word) in chunk.as_chunks::<4>().0.iter().enumerate() {
                let column = (writes.columns.start + 4 * u) as usize + i;
                for lane in shape.lanes(row) {
                    let place = column * LANES + (lane + at_lane) as usize;
                    own.tmem.words[place] = match early {
                        true => POISON,
                        false => u32::from_le_bytes(*word),
                    };
                }
            }
        }
        own.tmem.mark(writes, true);
        self.pass_tensor((Agent::TensorCore, from), cta, writes, Act::Write);
        chunks.sort_unstable();
        let mut rest = &chunks[..];
        while let [first, ..] = *rest {
            let follows = |i: &usize| rest[*i] == first + 16 * *i as u32;
            let run = (0..rest.len()).take_while(follows).count();
            let at = SharedAt {
                cta: cta as u32,
                offset: first,
            };
            self.pass_shared_piece((Agent::TensorCore, from), at, 16 * run as u64, Act::Read);
            rest = &rest[run..];
        }
        Ok(())
    }

    fn perform_shift(&mut self, from: Origin, cta: usize, writes: &Reach) {
        self.pass_tensor((Agent::TensorCore, from), cta, writes, Act::Update);
        let first = writes.lanes.trailing_zeros() as usize;
        let tmem = &mut self.ctas[cta].tmem;
        for column in writes.columns.clone() {
            let lanes = &mut tmem.words[column as usize * LANES + first..][..32];
            lanes.copy_within(1.., 0);
        }
    }
}

/// What a product reads of tensor memory but its own D.
fn reads_of(multiply: &Multiply, writes: &Reach) -> Vec<(&'static str, Reach)> {
    let form = &multiply.product.form;
    let mut reads: Vec<(&str, Reach)> = Vec::new();
    if form.scaling.is_some() {
        let counts = [form.rows().div_ceil(32), form.columns().div_ceil(32)];
        for (name, i) in [("A's scales", 0), ("B's scales", 1)] {
            let first = multiply.at.scales[i];
            let columns = first..first + counts[i];
            // The rows of a last, partial column.
            let rows = if i == 0 { form.rows() } else { form.columns() };
            let lanes = match rows % 32 {
                0 => u128::MAX,
                some => ((1u128 << some) - 1) * 0x0000_0001_0000_0001_0000_0001_0000_0001,
            };
            let partial = columns.end - 1..columns.end;
            let whole = columns.start..columns.end - 1;
            reads.push((
                name,
                Reach {
                    columns: whole,
                    lanes: u128::MAX,
                },
            ));
            reads.push((
                name,
                Reach {
                    columns: partial,
                    lanes,
                },
            ));
        }
    }
    if let Some(selector) = form.sparse {
        let first = multiply.at.metadata + selector;
        let columns = match form.kind {
            Kind::F16 | Kind::Tf32 => first..first + 1,
            _ => first..first + form.metadata_columns(),
        };
        let lanes = u128::MAX;
        reads.push(("the metadata", Reach { columns, lanes }));
    }
    if let OperandA::Tmem { column, .. } = multiply.a {
        let columns = column..column + 8;
        let lanes = writes.lanes;
        reads.push(("A", Reach { columns, lanes }));
    }
    reads
}

/// The words of lanes that are not to be written.
fn kept_lanes(words: &[u32], writes: &Reach, disabled: u128) -> Vec<u32> {
    let mut kept = Vec::new();
    if disabled & writes.lanes != 0 {
        each_word(writes, disabled, |at| kept.push(words[at]));
    }
    kept
}

fn restore_lanes(words: &mut [u32], writes: &Reach, disabled: u128, kept: &[u32]) {
    let mut kept = kept.iter();
    if disabled & writes.lanes != 0 {
        each_word(writes, disabled, |at| {
            if let Some(word) = kept.next() {
                words[at] = *word;
            }
        });
    }
}

fn fill(words: &mut [u32], writes: &Reach, value: u32) {
    each_word(writes, u128::MAX, |at| words[at] = value);
}

/// Every word of a reach in some lanes.
fn each_word(reach: &Reach, lanes: u128, mut f: impl FnMut(usize)) {
    for column in reach.columns.clone() {
        for lane in (0..LANES).filter(|lane| (reach.lanes & lanes) >> lane & 1 == 1) {
            f(column as usize * LANES + lane);
        }
    }
}
