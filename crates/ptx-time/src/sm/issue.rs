//! Who issues what, when: scoreboards, schedulers and pipes.

use ptx_emu::trace::{Deed, Event};

use super::deeds::Turn;
use super::way::cause;
use super::{Item, LINE, Parked, Sim, Ticks, ticks};
use crate::sass::{Kind, Sass};
use crate::times::{Activity, Cause};
use ptx_machine::Machine;

/// Cycles that no probe asks for, of the order of what was published for chips of this kind (Jia
/// and others, "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking"): the result
/// of an instruction of variable latency that is nothing else here, that of double precision
/// beyond its interval, and until an instruction that is not at memory has read its operands.
const OTHER_LATENCY: f64 = 12.0;
const DOUBLE_LATENCY: f64 = 16.0;
const OPERANDS_LATENCY: f64 = 20.0;

/// Instructions of a line of 128 bytes.
const CODE_LINE: usize = 8;

/// Lines that come together where code is far: a kilobyte.
const FAR_LINES: usize = 8;

/// Cycles that an instruction issues ahead of its turn at a bank of registers: it reads them after
/// that.
const BANK_AHEAD: f64 = 1.0;

/// The same behind a product by a warp, which takes many turns.
const PRODUCT_AHEAD: f64 = 4.0;

const ALU: usize = 0;
const FMA: usize = 1;
const LITE: usize = 2;
const MUFU: usize = 3;
const DOUBLE: usize = 4;
const UNIFORM: usize = 5;
/// Units that read the registers products pass through.
pub(super) const OF_REGISTERS: std::ops::Range<usize> = ALU..UNIFORM;

/// The units of a partition that a kind takes, each for its interval. Single precision takes both
/// halves of the multipliers at once, integer products and half precision one of them.
fn pipes(kind: Kind) -> &'static [usize] {
    match kind {
        Kind::Alu | Kind::Pack => &[ALU],
        Kind::Imad | Kind::ImadHigh | Kind::Half => &[FMA],
        Kind::HalfLite => &[LITE],
        Kind::Fma | Kind::FmaPair => &[FMA, LITE],
        Kind::Mufu | Kind::Convert => &[MUFU],
        Kind::Double => &[DOUBLE],
        Kind::Uniform | Kind::ToUniform | Kind::Constant => &[UNIFORM],
        _ => &[],
    }
}

/// Registers that a product by a warp reads of each bank: its operands lie in runs of registers, half of
/// them in each. One that the product before has kept takes as long (`mma/dequantised`).
fn product_reads([rows, columns, depth]: [u32; 3], bits: u32) -> f64 {
    let bits = (rows + columns) * depth * bits + rows * columns * SUM_BITS;
    f64::from(bits) / REGISTER_BITS / 2.0
}

/// Bits of an element of a sum, and of a register of all lanes.
const SUM_BITS: u32 = 32;
const REGISTER_BITS: f64 = 32.0 * 32.0;

/// What is in the way of those who wait for an instruction's result, unless its deed says more.
fn cause_of(kind: Kind) -> Cause {
    match kind {
        Kind::Shared => Cause::Shared,
        Kind::Global | Kind::Local | Kind::Fence => Cause::Latency,
        Kind::Arrive | Kind::Phase => Cause::Barriers,
        Kind::Mma | Kind::TmemMma | Kind::TmemCopy | Kind::TmemCommit | Kind::TmemMove => {
            Cause::Tensor
        }
        _ => Cause::Arithmetic,
    }
}

/// Cycles until an instruction's result is there, and what waiting for it is. Where a deed says
/// more it says so itself; without one no lane took part.
fn latency_of(m: &Machine, kind: Kind) -> (f64, Activity) {
    match kind {
        Kind::Mufu => (m.mufu_latency, Activity::Result),
        Kind::Convert => (m.convert_latency, Activity::Result),
        Kind::Shuffle => (m.shuffle_latency, Activity::Result),
        Kind::ToUniform => (m.to_uniform_latency, Activity::Result),
        Kind::Constant => (m.constant_latency, Activity::Result),
        Kind::Special | Kind::Clock => (m.special_latency, Activity::Result),
        Kind::Shared => (1.0, Activity::Result),
        Kind::Global => (1.0, Activity::Memory),
        Kind::Local => (m.l1_latency, Activity::Memory),
        Kind::Arrive => (m.arrive_latency, Activity::Result),
        Kind::Phase => (m.phase_latency, Activity::Phase),
        Kind::Double => (m.double_interval + DOUBLE_LATENCY, Activity::Result),
        Kind::Mma | Kind::TmemMove => (1.0, Activity::Wgmma),
        Kind::Fence => (m.fence_latency, Activity::Memory),
        _ => (OTHER_LATENCY, Activity::Result),
    }
}

impl Sim<'_> {
    /// Issues the warp's next instruction, or says when to try again.
    pub(super) fn go_on(&mut self, index: usize, now: Ticks) {
        let warp = &mut self.warps[index];
        let (part, step) = loop {
            let Some(&part) = warp.parts.get(warp.part) else {
                return self.leave(index, now);
            };
            let steps = &self.scribe.stretch(part).steps;
            if let Some(&step) = steps.get(warp.step) {
                break (part, step);
            }
            warp.part += 1;
            warp.step = 0;
        };
        let deed = step
            .deed
            .map(|at| match warp.events[part.base + at as usize] {
                Event::Did { deed, .. } => deed,
                Event::Run { .. } => unreachable!("only deeds are told"),
            });
        let Some(op) = step.op else {
            // Nobody issues it: it happens here.
            if let Some(deed) = deed
                && !self.act(Turn::unissued(index, now), &deed)
            {
                return;
            }
            self.warps[index].step += 1;
            let next = self.warps[index].next.max(now);
            return self.push(next, Item::Warp(index));
        };
        self.issue(index, now, op, deed);
    }

    /// Whether the warp goes on elsewhere than at the instruction after this one.
    fn jumps(&self, index: usize, op: u32) -> bool {
        let warp = &self.warps[index];
        let steps = |part: usize| warp.parts.get(part).map(|&p| &self.scribe.stretch(p).steps);
        let rest = steps(warp.part).and_then(|steps| steps.get(warp.step + 1..));
        let after = steps(warp.part + 1).map_or(&[][..], |steps| steps);
        let next = rest
            .unwrap_or_default()
            .iter()
            .chain(after)
            .find_map(|s| s.op);
        next.is_some_and(|next| next != op + 1)
    }

    /// When an instruction is there. Code that the SM has not run before comes piece by piece, each
    /// asked for behind the one before, or by a warp that jumps to it.
    fn fetch_code(&mut self, index: usize, now: Ticks, op: u32) -> Ticks {
        if self.work.fetched {
            return now;
        }
        let (piece, after_piece, after_jump) = self.piece_of_code(op as usize / CODE_LINE);
        let pieces = &mut self.sms[self.warps[index].sm].fetched;
        if pieces.len() <= piece {
            pieces.resize(piece + 1, None);
        }
        if let Some(there) = pieces[piece] {
            return there;
        }
        let there = match piece.checked_sub(1) {
            // The first was asked for before the CTA began.
            None => now,
            Some(before) => match pieces[before] {
                Some(before) => before + ticks(after_piece),
                None => now + ticks(after_jump),
            },
        };
        pieces[piece] = Some(there);
        there
    }

    /// Among the pieces in which code comes, the one with this line; and the cycles in which it comes
    /// behind the one before, and after a jump. What a launch brings near the SMs comes line by line.
    fn piece_of_code(&self, line: usize) -> (usize, f64, f64) {
        let m = self.machine;
        let near = m.near_code_bytes as usize / LINE as usize;
        match line.checked_sub(near) {
            None => (line, m.fetch_interval, m.fetch_latency),
            Some(beyond) => {
                let latency = match self.work.flushed {
                    true => m.far_fetch_cold_latency,
                    false => m.far_fetch_latency,
                };
                (near + beyond / FAR_LINES, latency, latency)
            }
        }
    }

    /// When a line of constants is there, which the first to use it on an SM has to wait for. The very
    /// first was asked for before the CTA began: every kernel's stack is told there.
    fn fetch_constants(&mut self, index: usize, now: Ticks, line: u32) -> Ticks {
        if line == 0 {
            return now;
        }
        let latency = match self.work.flushed {
            true => self.machine.constant_cold_latency,
            false => self.machine.constant_line_latency,
        };
        let lines = &mut self.sms[self.warps[index].sm].constants;
        *lines.entry(line).or_insert(now + ticks(latency))
    }

    fn issue(&mut self, index: usize, now: Ticks, op: u32, deed: Option<Deed>) {
        let sass = self.work.code.instructions[op as usize];
        let line = self.work.code.lines[op as usize];
        let taken = sass.kind == Kind::Branch && self.jumps(index, op);
        // The assembler's own instructions stand for the line before them.
        if line != 0 {
            self.warps[index].line = line;
        }
        let there = self.fetch_code(index, now, op);
        if there > now {
            self.spend(index, Activity::Issuing, now, there);
            return self.push(there, Item::Warp(index));
        }
        if !self.boards_released(index, now, sass.waits) {
            return;
        }
        if let Some((_, activity, since)) = self.warps[index].parked.take() {
            self.spend(index, activity, since, now);
        }
        // A load with a scoreboard goes on without what it asks for, all others stand still.
        let constants = sass
            .constants
            .map(|line| self.fetch_constants(index, now, line));
        if let Some(there) = constants.filter(|there| *there > now && sass.result.is_none()) {
            self.spend_on(index, Activity::Memory, Cause::Latency, now, there);
            return self.push(there, Item::Warp(index));
        }
        let reads = match (pipes(sass.kind), deed) {
            (_, Some(Deed::Mma { shape, bits })) => {
                [product_reads(shape, bits) * self.machine.mma_read_interval; 2]
            }
            ([] | [UNIFORM], _) => [0.0; 2],
            _ => sass.reads.map(f64::from),
        };
        let loads = matches!(deed, Some(Deed::Global { writes: false, .. }));
        let (free, cause) = self.units_free(index, now, sass.kind, reads);
        if free > now {
            self.spend_on(index, Activity::Contending, cause, now, free);
            // Of loads that find their way full, one of each warp is let through by turns.
            if loads {
                return self.push_load(free, index);
            }
            return self.push(free, Item::Warp(index));
        }
        self.warps[index].loads += usize::from(loads);
        self.issued += 1;
        let product = matches!(deed, Some(Deed::Mma { .. }));
        self.take_units(index, now, sass.kind, reads, product);
        self.take_boards(index, now, &sass, constants);
        let mut stall = f64::from(sass.stall.max(1));
        if taken {
            stall += self.machine.branch_cycles;
        }
        self.warps[index].next = now + ticks(stall);
        self.spend(index, Activity::Issuing, now, now + ticks(stall));
        let turn = Turn {
            index,
            now,
            issued: Some(op),
            board: sass.result,
            operands: sass.operands,
        };
        if let Some(deed) = deed
            && !self.act(turn, &deed)
        {
            return;
        }
        let warp = &mut self.warps[index];
        warp.step += 1;
        let next = warp.next.max(now);
        self.push(next, Item::Warp(index));
    }

    /// Whether all scoreboards that an instruction waits for are released; otherwise the warp
    /// tries again when they are.
    fn boards_released(&mut self, index: usize, now: Ticks, waits: u8) -> bool {
        let warp = &mut self.warps[index];
        let (mut ready, mut board) = (now, None);
        for at in 0..6 {
            if waits >> at & 1 == 0 {
                continue;
            }
            if warp.phases[at] > 0 {
                let (_, _, since) =
                    *warp
                        .parked
                        .get_or_insert((Parked::Gate, Activity::Phase, now));
                warp.parked = Some((Parked::Board(at), Activity::Phase, since));
                return false;
            }
            if warp.boards[at] > ready {
                ready = warp.boards[at];
                board = Some(at);
            }
        }
        let Some(at) = board else {
            return true;
        };
        let (activity, cause) = (warp.board_activity[at], warp.board_cause[at]);
        self.spend_on(index, activity, cause, now, ready);
        self.push(ready, Item::Warp(index));
        false
    }

    /// When all units that an instruction takes are free, and which is free last.
    fn units_free(&self, index: usize, now: Ticks, kind: Kind, reads: [f64; 2]) -> (Ticks, Cause) {
        let partition = self.warps[index].partition;
        let state = &self.sms[self.warps[index].sm];
        let (mut free, mut cause) = (state.issue[partition], Cause::Issue);
        let mut wait = |until: Ticks, on: Cause| {
            if until > free {
                (free, cause) = (until, on);
            }
        };
        for &unit in pipes(kind) {
            let until = state.pipes[partition][unit];
            let on = match until <= state.stolen[partition] {
                true => Cause::Tensor,
                false => Cause::Arithmetic,
            };
            wait(until, on);
        }
        let ahead = match now < state.product_reads[partition] {
            true => ticks(PRODUCT_AHEAD),
            false => ticks(BANK_AHEAD),
        };
        for (&until, reads) in state.banks[partition].iter().zip(reads) {
            if reads > 0.0 {
                wait(until.saturating_sub(ahead), Cause::Arithmetic);
            }
        }
        // Memory takes so much ahead, and no more.
        let ahead = ticks(self.machine.queue_cycles);
        match kind {
            Kind::Shuffle => wait(state.shuffle, Cause::Arithmetic),
            Kind::Shared => wait(state.shared.saturating_sub(ahead), Cause::Shared),
            Kind::Global => {
                let far = ticks(self.machine.l2_queue_cycles);
                wait(state.lsu.saturating_sub(ahead), Cause::L2);
                wait(state.l2.saturating_sub(far), Cause::L2);
                wait(state.stores.saturating_sub(far), Cause::L2);
            }
            Kind::Arrive | Kind::Phase => wait(state.syncs, Cause::Barriers),
            Kind::Barrier => wait(state.barrier, Cause::Barriers),
            Kind::Mma => wait(state.tensor[partition], Cause::Tensor),
            _ => {}
        }
        (free, cause)
    }

    /// Keeps the units that an instruction takes, each for its interval.
    fn take_units(&mut self, index: usize, now: Ticks, kind: Kind, reads: [f64; 2], product: bool) {
        let (m, partition) = (self.machine, self.warps[index].partition);
        let state = &mut self.sms[self.warps[index].sm];
        state.issue[partition] = now + ticks(1.0);
        let interval = match kind {
            Kind::Alu => m.alu_interval,
            Kind::Imad => m.imad_interval,
            Kind::ImadHigh => m.imad_high_interval,
            Kind::Fma => m.fma_interval,
            Kind::FmaPair => 2.0 * m.fma_interval,
            Kind::Half | Kind::HalfLite => m.half_interval,
            Kind::Double => m.double_interval,
            Kind::Mufu => m.mufu_interval,
            Kind::Pack => m.pack_interval,
            Kind::Convert => m.convert_interval,
            _ => 1.0,
        };
        for &unit in pipes(kind) {
            state.pipes[partition][unit] = now + ticks(interval);
        }
        for (until, reads) in state.banks[partition].iter_mut().zip(reads) {
            *until = now.max(*until) + ticks(reads);
        }
        if product {
            state.product_reads[partition] = state.banks[partition][0];
        }
        match kind {
            Kind::Shuffle => state.shuffle = now + ticks(m.shuffle_interval),
            Kind::Arrive | Kind::Phase => state.syncs = now + ticks(m.syncs_interval),
            Kind::Barrier => state.barrier = now + ticks(m.barrier_interval),
            _ => {}
        }
    }

    /// Keeps the scoreboards of an instruction until its result is there and its operands are
    /// read.
    fn take_boards(&mut self, index: usize, now: Ticks, sass: &Sass, constants: Option<Ticks>) {
        let (latency, activity) = latency_of(self.machine, sass.kind);
        let warp = &mut self.warps[index];
        let result = now.max(constants.unwrap_or(now)) + ticks(latency);
        let read = now + ticks(latency.min(OPERANDS_LATENCY));
        for board in [sass.result, sass.operands].into_iter().flatten() {
            let at = usize::from(board);
            if warp.boards[at] <= now {
                warp.board_activity[at] = activity;
                warp.board_cause[at] = cause_of(sass.kind);
            }
        }
        for (board, until) in [(sass.result, result), (sass.operands, read)] {
            if let Some(board) = board {
                let at = usize::from(board);
                warp.boards[at] = warp.boards[at].max(until);
            }
        }
    }

    /// Holds the warp until then.
    pub(super) fn hold(&mut self, index: usize, from: Ticks, until: Ticks, activity: Activity) {
        self.hold_on(index, from, until, activity, cause(activity));
    }

    /// The same where it is known what is in the way.
    pub(super) fn hold_on(
        &mut self,
        index: usize,
        from: Ticks,
        until: Ticks,
        activity: Activity,
        cause: Cause,
    ) {
        let from = from.max(self.warps[index].next);
        self.spend_on(index, activity, cause, from, until);
        let warp = &mut self.warps[index];
        warp.next = warp.next.max(until);
    }

    /// Sets the scoreboard of an instruction that is not done before `until`.
    pub(super) fn occupy(
        &mut self,
        index: usize,
        board: Option<u8>,
        until: Ticks,
        activity: Activity,
        cause: Cause,
    ) {
        if let Some(board) = board {
            let warp = &mut self.warps[index];
            let at = usize::from(board);
            if until > warp.boards[at] {
                warp.boards[at] = until;
                warp.board_activity[at] = activity;
                warp.board_cause[at] = cause;
            }
        }
    }
}
