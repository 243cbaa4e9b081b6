//! Tensor memory, and the tensor core of an SM that works on it.
//!
//! Products and copies are handed to one queue, which performs them in the order they come; a pair
//! of CTAs has the queues of both its SMs at once. A product takes as long as its columns, or as
//! its operands from shared memory. Copies go beside the product before them.

use ptx_emu::trace::{BarrierAt, TmemA};

use super::{PARTITIONS, Parked, Sim, Ticks, ticks};
use crate::times::{Activity, Cause};
use ptx_machine::TensorMemory;

/// Columns of tensor memory.
const COLUMNS: u32 = 512;

/// Bytes of K that one product reads of a row: the same for elements of all kinds.
const DEPTH: f64 = 32.0;

/// Bytes of a line of shared memory.
const LINE: f64 = 128.0;

/// Lanes of 256 bits go to banks that others are at.
const WIDE: u32 = 256;

#[derive(Debug)]
pub(super) struct TensorCore {
    /// When the last product begins and ends.
    begun: Ticks,
    products: Ticks,
    /// When the last copy ends.
    copies: Ticks,
    /// When each partition's way to registers is free.
    moves: [Ticks; PARTITIONS],
    /// Columns nobody has.
    pub(super) free: u32,
}

impl Default for TensorCore {
    fn default() -> Self {
        Self {
            begun: 0,
            products: 0,
            copies: 0,
            moves: [0; PARTITIONS],
            free: COLUMNS,
        }
    }
}

/// A warp that asks for columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) warp: usize,
    pub(super) sm: usize,
    cluster: usize,
    pub(super) columns: u32,
    ctas: u32,
}

impl Sim<'_> {
    /// The numbers of tensor memory: a launch that needs them is not replayed without.
    fn tmem(&self) -> TensorMemory {
        self.machine.tmem.unwrap_or(TensorMemory::FREE)
    }

    /// The SMs of a warp's CTA, or of its pair.
    fn group(&self, index: usize, ctas: u32) -> std::ops::Range<usize> {
        let sm = self.warps[index].sm;
        match ctas {
            2 => sm & !1..(sm | 1).min(self.sms.len() - 1) + 1,
            _ => sm..sm + 1,
        }
    }

    pub(super) fn multiply_in_tmem(
        &mut self,
        index: usize,
        now: Ticks,
        ([rows, width, _], columns): ([u32; 3], u32),
        ctas: u32,
        a: TmemA,
    ) {
        let m = self.tmem();
        let each = |count: u32| f64::from(count) / f64::from(ctas) * DEPTH / LINE;
        let lines = match a {
            TmemA::Shared => each(rows) + each(width),
            TmemA::Kept | TmemA::Tmem => each(width),
        };
        let pair = if ctas == 2 { m.tmem_pair_operands } else { 0.0 };
        let operands = lines * m.tmem_operand_line + pair;
        let cycles = (f64::from(columns) * m.tmem_product_column).max(operands);
        let group = self.group(index, ctas);
        let queued = |sm: usize| self.sms[sm].tmem.products.max(self.sms[sm].tmem.copies);
        let start = group.clone().map(queued).fold(now, Ticks::max);
        let end = start + ticks(cycles);
        for sm in group {
            self.sms[sm].tmem.begun = start;
            self.sms[sm].tmem.products = end;
            self.tensor_busy += ticks(cycles) * PARTITIONS as Ticks;
        }
        let latency = match (ctas, a) {
            (2, _) => m.tmem_pair_latency,
            (_, TmemA::Tmem) => m.tmem_a_latency,
            _ => m.tmem_product_latency,
        };
        self.hand_over(index, end, latency);
        self.note_products(index, ctas, start, end);
    }

    pub(super) fn copy_to_tmem(&mut self, index: usize, now: Ticks, bytes: u32, ctas: u32) {
        let m = self.tmem();
        let cycles = f64::from(bytes) / LINE * m.tmem_copy_line;
        let group = self.group(index, ctas);
        let queued = |sm: usize| self.sms[sm].tmem.copies.max(self.sms[sm].tmem.begun);
        let start = group.clone().map(queued).fold(now, Ticks::max);
        let end = start + ticks(cycles);
        for sm in group {
            self.sms[sm].tmem.copies = end;
        }
        self.hand_over(index, end, m.tmem_copy_latency);
    }

    pub(super) fn shift_tmem(&mut self, index: usize, now: Ticks, ctas: u32) {
        let m = self.tmem();
        let group = self.group(index, ctas);
        let queued = |sm: usize| self.sms[sm].tmem.products.max(self.sms[sm].tmem.copies);
        let start = group.clone().map(queued).fold(now, Ticks::max);
        let end = start + ticks(m.tmem_shift_cycles);
        for sm in group {
            self.sms[sm].tmem.products = end;
        }
        self.hand_over(index, end, m.tmem_copy_latency);
    }

    /// What a warp has handed to the tensor core ends then, and is heard of so much later by whoever
    /// waits for its commit; what waking takes is part of that.
    fn hand_over(&mut self, index: usize, end: Ticks, latency: f64) {
        let heard = end + ticks(latency - self.machine.wake_latency);
        let done = &mut self.warps[index].tmem_done;
        *done = (*done).max(heard);
    }

    pub(super) fn commit_tmem(&mut self, index: usize, now: Ticks, barrier: BarrierAt, to: u32) {
        let cta = self.warps[index].cta;
        let least = now + ticks(self.machine.arrive_latency);
        let done = self.warps[index].tmem_done.max(least);
        let mut way = self.way(index, now);
        way.go(Cause::Tensor, done - now);
        for rank in (0..u32::BITS).filter(|rank| to >> rank & 1 == 1) {
            let barrier = BarrierAt { rank, ..barrier };
            self.send(done, cta, barrier, (1, 0), way);
        }
    }

    pub(super) fn move_tmem(
        &mut self,
        index: usize,
        now: Ticks,
        (columns, bits): (u32, u32),
        writes: bool,
        (board, operands): (Option<u8>, Option<u8>),
    ) {
        let m = self.tmem();
        let column = match bits {
            WIDE => m.tmem_wide_column,
            _ => m.tmem_move_column,
        };
        let (sm, partition) = (self.warps[index].sm, self.warps[index].partition);
        let port = &mut self.sms[sm].tmem.moves[partition];
        *port = (*port).max(now) + ticks(f64::from(columns) * column);
        let through = *port;
        if writes {
            let read = through + ticks(self.machine.operands_latency);
            self.occupy(index, operands, read, Activity::Wgmma, Cause::Tensor);
        } else {
            self.read_products(index, now);
        }
        let there = through + ticks(m.tmem_load_latency);
        self.occupy(index, board, there, Activity::Wgmma, Cause::Tensor);
        if board.is_none() {
            let moved = &mut self.warps[index].tmem_moved;
            *moved = (*moved).max(there);
        }
    }

    /// A warp asks for columns, and stands still until it has them.
    pub(super) fn ask_columns(
        &mut self,
        index: usize,
        now: Ticks,
        columns: u32,
        ctas: u32,
    ) -> bool {
        let warp = &mut self.warps[index];
        warp.parked = Some((Parked::Gate, Activity::Barrier, now));
        warp.step += 1;
        let (sm, cta) = (warp.sm, warp.cta);
        let cluster = self.ctas[cta].cluster;
        self.asks.push(Ask {
            warp: index,
            sm,
            cluster,
            columns,
            ctas,
        });
        self.give_columns(index, now);
        false
    }

    pub(super) fn free_columns(&mut self, index: usize, now: Ticks, columns: u32) {
        let free = &mut self.sms[self.warps[index].sm].tmem.free;
        *free = (*free + columns).min(COLUMNS);
        self.give_columns(index, now);
    }

    /// Gives columns to those who can have them; the CTAs of a pair get theirs together. What this
    /// warp has done made that possible.
    fn give_columns(&mut self, by: usize, now: Ticks) {
        let mut at = 0;
        while let Some(&ask) = self.asks.get(at) {
            let fits = |ask: &Ask| ask.columns <= self.sms[ask.sm].tmem.free;
            let other = self.asks.iter().position(|other| {
                ask.ctas == 2 && (other.cluster, other.sm) == (ask.cluster, ask.sm ^ 1)
            });
            let both = ask.ctas < 2 || other.is_some_and(|other| fits(&self.asks[other]));
            if !(fits(&ask) && both) {
                at += 1;
                continue;
            }
            let mut given = vec![at];
            given.extend(other);
            given.sort_unstable();
            let latency = ticks(self.tmem().tmem_alloc_latency);
            let mut way = self.way(by, now);
            way.go(Cause::Barriers, latency);
            for place in given.into_iter().rev() {
                let ask = self.asks.remove(place);
                self.sms[ask.sm].tmem.free -= ask.columns;
                self.wake(ask.warp, now + latency, way);
            }
            at = 0;
        }
    }
}
