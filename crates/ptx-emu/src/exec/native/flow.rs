//! From a program to code: runs of instructions, their counts, and the ways in and out.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use iced_x86::BlockEncoderOptions;
use iced_x86::code_asm::*;

use super::exchange::constants;
use super::grouped::groups;
use super::kept::Kept;
use super::lanes::{Kind, Lanes, Writer, active, predicate, warp};
use super::moves::Parameters;
use super::rows::rows;
use super::{Arguments, Helpers, Subnormals};
use crate::code::{Code, Entries};
use crate::counters::CLASSES;
use crate::exec::warp::Warp;
use crate::op::{Inst, NO_RECONVERGENCE, Op, Pc, Program, Unit};

/// How an instruction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handling {
    /// It only computes.
    Computed,
    /// An access, an exchange or a barrier: by a function, after which the code may stop.
    Called,
    Branch,
    /// By the interpreter.
    Left,
}

fn handling(program: &Program, op: &Op) -> Handling {
    match op {
        Op::Bra { .. } => Handling::Branch,
        Op::Activemask { .. } => Handling::Computed,
        Op::Ld { .. } if Parameters::of(program, op).is_some() => Handling::Computed,
        Op::Bar { .. } | Op::Mbar(_) | Op::Mma(_) | Op::MatrixMove(_) => Handling::Called,
        Op::Exit | Op::Ret => Handling::Called,
        _ => match op.unit() {
            unit if unit.computes() => Handling::Computed,
            Unit::Memory | Unit::Exchange => Handling::Called,
            _ => Handling::Left,
        },
    }
}

/// Where lanes that parted may meet again.
fn joins(program: &Program) -> BTreeSet<Pc> {
    let met = |inst: &Inst| match inst.op {
        Op::Bra { reconverge, .. }
        | Op::Brx { reconverge, .. }
        | Op::CallIndirect { reconverge, .. } => Some(reconverge),
        _ => None,
    };
    let all = program.insts.iter().filter_map(met);
    all.filter(|&pc| pc != NO_RECONVERGENCE).collect()
}

/// Where a warp may come to from elsewhere than the instruction before.
fn merges(program: &Program, joins: &BTreeSet<Pc>) -> BTreeSet<Pc> {
    let mut merges = joins.clone();
    merges.insert(0);
    for inst in &program.insts {
        match &inst.op {
            Op::Bra { target, .. } | Op::Call { target } => {
                merges.insert(*target);
            }
            Op::Brx { targets, .. } => merges.extend(targets.iter()),
            Op::CallIndirect { targets, .. } => {
                merges.extend(targets.iter().map(|&(_, pc)| pc));
            }
            _ => {}
        }
    }
    merges
}

/// First instructions of runs: a warp may come to them from elsewhere, or stop before them.
fn firsts(program: &Program, joins: &BTreeSet<Pc>) -> BTreeSet<Pc> {
    let mut firsts = merges(program, joins);
    for (pc, inst) in (0..).zip(&program.insts) {
        if handling(program, &inst.op) != Handling::Computed {
            firsts.extend([pc, pc + 1]);
        }
    }
    firsts
}

/// What the processor should be set to between instructions: what most of them want.
fn default_subnormals(program: &Program) -> Subnormals {
    let ftz = |inst: &Inst| match inst.op {
        Op::F32Bin { m, .. } | Op::F32Fma { m, .. } | Op::F32Un { m, .. } => Some(m.ftz),
        Op::SetpF32 { ftz, .. } => Some(ftz),
        Op::F64Bin { .. } | Op::F64Fma { .. } | Op::F64Un { .. } => Some(false),
        _ => None,
    };
    let wishes = program.insts.iter().filter_map(ftz);
    let balance: i64 = wishes.map(|ftz| if ftz { 1 } else { -1 }).sum();
    match balance > 0 {
        true => Subnormals::Flushed,
        false => Subnormals::Kept,
    }
}

/// What is seldom taken, and written behind the rest of the code.
struct Aside {
    from: CodeLabel,
    pc: Pc,
    what: Rare,
}

#[derive(Clone, Copy)]
enum Rare {
    /// The code stops before the instruction.
    Leave,
    /// The path may have come to its join.
    Join,
    /// Some of the lanes take a branch: those of eax.
    Part,
}

struct Compiler<'a> {
    writer: Writer<'a>,
    joins: BTreeSet<Pc>,
    /// The labels of runs of each kind of warp.
    labels: [Vec<Option<CodeLabel>>; 3],
    /// Instructions of the run that begins at each, if one does.
    lengths: Vec<i32>,
    asides: Vec<Aside>,
    /// Where code goes on at the address in rax, or stops.
    onward: CodeLabel,
    exit: CodeLabel,
}

/// Registers of a warp that code can address by a displacement of 32 bits.
const MOST_REGISTERS: usize = 1 << 22;

/// The code of a program; none where executable memory is forbidden, or for too many registers.
pub(crate) fn compile(program: &Program, helpers: &Helpers) -> Option<Code> {
    if program.n32.max(program.n64) as usize > MOST_REGISTERS {
        return None;
    }
    assemble(program, helpers).unwrap_or_else(|mistake| {
        debug_assert!(false, "a template cannot be assembled: {mistake}");
        None
    })
}

fn assemble(program: &Program, helpers: &Helpers) -> Result<Option<Code>, IcedError> {
    let mut asm = CodeAssembler::new(64)?;
    // Registers above 15 need the newer encoding.
    asm.set_prefer_vex(false);
    let (onward, exit) = (asm.create_label(), asm.create_label());
    let joins = joins(program);
    let firsts = firsts(program, &joins);
    let merges = merges(program, &joins);
    let is_left = |pc: Pc| match program.insts.get(pc as usize) {
        Some(inst) => handling(program, &inst.op) == Handling::Left,
        None => true,
    };
    let end = program.insts.len() as Pc;
    let all: BTreeSet<Pc> = (0..end).collect();
    let runs = |kind: Kind| if kind == Kind::Stepped { &all } else { &firsts };
    let labels = Kind::ALL.map(|kind| {
        let mut label = |pc: Pc| {
            let written = runs(kind).contains(&pc) && !is_left(pc);
            written.then(|| asm.create_label())
        };
        (0..end).map(&mut label).collect()
    });
    let mut compiler = Compiler {
        writer: Writer {
            asm,
            program,
            helpers,
            kind: Kind::Stepped,
            lanes: Lanes::All,
            held: None,
            subnormals: default_subnormals(program),
            constants: constants(program, &merges),
            groups: groups(program, &merges),
            rows: rows(program, &merges),
            finders: BTreeMap::new(),
            tables: Vec::new(),
            kept: Kept::new(program),
        },
        joins,
        labels,
        lengths: vec![0; program.insts.len()],
        asides: Vec::new(),
        onward,
        exit,
    };
    compiler.entry_and_exit()?;
    for kind in Kind::ALL {
        compiler.writer.kind = kind;
        let mut firsts = runs(kind).iter().copied().peekable();
        while let Some(first) = firsts.next() {
            if !is_left(first) {
                compiler.run(first, firsts.peek().copied().unwrap_or(end))?;
            }
        }
    }
    compiler.write_asides()?;
    compiler.writer.write_finders()?;
    compiler.writer.write_tables()?;
    compiler.finish()
}

impl Compiler<'_> {
    /// The way in, which is the first thing in the code, and the way out.
    fn entry_and_exit(&mut self) -> Result<(), IcedError> {
        let writer = &mut self.writer;
        let asm = &mut writer.asm;
        for register in [rbx, rbp, r12, r13, r14, r15] {
            asm.push(register)?;
        }
        let field = |offset: usize| qword_ptr(rdi + offset as i32);
        asm.push(rdi)?;
        asm.mov(rbx, field(offset_of!(Arguments, warp)))?;
        asm.mov(r12, field(offset_of!(Arguments, r32)))?;
        asm.mov(r13, field(offset_of!(Arguments, r64)))?;
        asm.mov(r14, field(offset_of!(Arguments, predicates)))?;
        asm.mov(r15, field(offset_of!(Arguments, left)))?;
        asm.mov(rbp, field(offset_of!(Arguments, constants)))?;
        let flushes = writer.subnormals == Subnormals::Flushed;
        if flushes {
            writer.set_subnormals(Subnormals::Flushed)?;
        }
        writer.load_constants()?;
        let asm = &mut writer.asm;
        let mut stop = asm.create_label();
        asm.jmp(rsi)?;
        asm.set_label(&mut self.onward)?;
        asm.test(rax, rax)?;
        asm.jz(stop)?;
        asm.jmp(rax)?;
        asm.set_label(&mut stop)?;
        asm.mov(eax, dword_ptr(warp(offset_of!(Warp, pc))))?;
        asm.set_label(&mut self.exit)?;
        if flushes {
            writer.set_subnormals(Subnormals::Kept)?;
        }
        let asm = &mut writer.asm;
        asm.vzeroupper()?;
        asm.shl(r15, 32)?;
        asm.or(rax, r15)?;
        asm.add(rsp, 8)?;
        for register in [r15, r14, r13, r12, rbp, rbx] {
            asm.pop(register)?;
        }
        asm.ret()
    }

    /// A label for what is rare at an instruction.
    fn aside(&mut self, pc: Pc, what: Rare) -> CodeLabel {
        let from = self.writer.asm.create_label();
        self.asides.push(Aside { from, pc, what });
        from
    }

    fn write_asides(&mut self) -> Result<(), IcedError> {
        for mut aside in std::mem::take(&mut self.asides) {
            let program = self.writer.program;
            let asm = &mut self.writer.asm;
            asm.set_label(&mut aside.from)?;
            let helper = match aside.what {
                Rare::Leave => {
                    asm.mov(eax, aside.pc)?;
                    asm.jmp(self.exit)?;
                    continue;
                }
                Rare::Join => self.writer.helpers.join,
                Rare::Part => {
                    asm.mov(ecx, eax)?;
                    let inst = &program.insts[aside.pc as usize];
                    asm.mov(rdx, std::ptr::from_ref(inst) as u64)?;
                    self.writer.helpers.part
                }
            };
            asm.mov(dword_ptr(warp(offset_of!(Warp, pc))), aside.pc as i32)?;
            asm.mov(rdi, qword_ptr(rsp))?;
            asm.mov(rdi, qword_ptr(rdi + offset_of!(Arguments, cluster) as i32))?;
            asm.mov(rsi, rbx)?;
            asm.mov(rax, helper as u64)?;
            self.writer.call_function()?;
            // Another path may have stopped anywhere.
            self.writer.forget_groups()?;
            self.writer.asm.jmp(self.onward)?;
        }
        Ok(())
    }

    /// The instructions from one to before another, which are executed one after the other.
    fn run(&mut self, first: Pc, end: Pc) -> Result<(), IcedError> {
        let program = self.writer.program;
        let executed = program.insts[first as usize..end as usize]
            .iter()
            .position(|inst| handling(program, &inst.op) == Handling::Left);
        let last = executed.map_or(end, |n| first + n as Pc);
        let kind = self.writer.kind as usize;
        let asm = &mut self.writer.asm;
        if let Some(label) = &mut self.labels[kind][first as usize] {
            asm.set_label(label)?;
        }
        match self.writer.kind {
            Kind::Stepped => self.leave_steps(first)?,
            _ => self.lengths[first as usize] = (last - first) as i32,
        }
        if self.joins.contains(&first) {
            let joined = self.aside(first, Rare::Join);
            let asm = &mut self.writer.asm;
            asm.cmp(dword_ptr(warp(offset_of!(Warp, rpc))), first as i32)?;
            asm.je(joined)?;
        }
        let mut counts = [0; CLASSES];
        for inst in &self.writer.program.insts[first as usize..last as usize] {
            counts[inst.op.class() as usize] += 1;
        }
        // A turn that ends within the run goes step by step.
        let stepped = self.labels[Kind::Stepped as usize][first as usize];
        let too_many = match stepped.filter(|_| self.writer.kind != Kind::Stepped) {
            Some(stepped) => stepped,
            None => self.aside(first, Rare::Leave),
        };
        let asm = &mut self.writer.asm;
        asm.cmp(r15d, (last - first) as i32)?;
        asm.jb(too_many)?;
        asm.sub(r15d, (last - first) as i32)?;
        for (class, &n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            asm.add(count(class), n)?;
        }
        self.writer.held = None;
        self.writer.kept.begin(last);
        for pc in first..last {
            self.instruction(pc)?;
        }
        let branches = matches!(
            self.writer.program.insts[last as usize - 1].op,
            Op::Bra { .. }
        );
        // The next run is written right behind.
        let follows = last == end
            && self.labels[kind]
                .get(end as usize)
                .is_some_and(Option::is_some);
        match branches || follows {
            true => Ok(()),
            false => self.go(last),
        }
    }

    /// Goes on in code for whole runs where the turn lasts for the next one.
    fn leave_steps(&mut self, first: Pc) -> Result<(), IcedError> {
        let [parted, whole, _] = &self.labels;
        let at = first as usize;
        let (Some(parted), Some(whole)) = (parted[at], whole[at]) else {
            return Ok(());
        };
        let asm = &mut self.writer.asm;
        let mut on = asm.create_label();
        asm.cmp(r15d, self.lengths[at])?;
        asm.jb(on)?;
        self.writer.forget_groups()?;
        let asm = &mut self.writer.asm;
        asm.mov(eax, active())?;
        asm.cmp(eax, dword_ptr(warp(offset_of!(Warp, live))))?;
        asm.je(whole)?;
        asm.jmp(parted)?;
        asm.set_label(&mut on)?;
        asm.zero_bytes()
    }

    /// Goes on at an instruction.
    fn go(&mut self, pc: Pc) -> Result<(), IcedError> {
        let kind = self.writer.kind as usize;
        match self.labels[kind].get(pc as usize).copied().flatten() {
            Some(label) => self.writer.asm.jmp(label),
            None => {
                self.writer.asm.mov(eax, pc)?;
                self.writer.asm.jmp(self.exit)
            }
        }
    }

    fn instruction(&mut self, pc: Pc) -> Result<(), IcedError> {
        let program = self.writer.program;
        let inst = &program.insts[pc as usize];
        let adds = inst.guard.pred.is_none() && self.writer.kind != Kind::Stepped;
        self.writer.kept.step(pc, adds);
        let mut done = self.writer.asm.create_label();
        match handling(program, &inst.op) {
            Handling::Computed => self.computed(inst, done)?,
            Handling::Called => self.called(pc, inst, done)?,
            Handling::Branch => return self.branch(pc, inst),
            Handling::Left => return Ok(()),
        }
        self.writer.asm.set_label(&mut done)?;
        self.writer.asm.zero_bytes()
    }

    fn computed(&mut self, inst: &Inst, done: CodeLabel) -> Result<(), IcedError> {
        let writer = &mut self.writer;
        writer.find_lanes(inst.guard, done)?;
        writer.let_go(&inst.op);
        let written = writer.integer(&inst.op)?
            || writer.float(&inst.op)?
            || writer.power(&inst.op)?
            || writer.comparison(inst)?
            || writer.moved(&inst.op)?
            || writer.parameters(&inst.op)?;
        if written {
            return Ok(());
        }
        let mut nan = writer.asm.create_label();
        if writer.double(&inst.op, nan)?
            || writer.between_floats(&inst.op, nan)?
            || writer.reciprocal_root(&inst.op, nan)?
        {
            writer.asm.jmp(done)?;
            writer.asm.set_label(&mut nan)?;
        }
        writer.compute(inst)?;
        Ok(())
    }

    /// Calls the function of an access or an exchange; stops if that says so, or behind the last
    /// event of the turn. Goes on at `skipped` if there are no lanes.
    fn called(&mut self, pc: Pc, inst: &Inst, skipped: CodeLabel) -> Result<(), IcedError> {
        let ended = match inst.op.is_observable() {
            true => Some(self.aside(pc + 1, Rare::Leave)),
            false => None,
        };
        let writer = &mut self.writer;
        writer.held = None;
        debug_assert!(writer.kept.is_empty(), "it is a run by itself");
        let mut done = writer.asm.create_label();
        writer.grouped(pc, inst, done)?;
        writer.access(pc, inst, (done, skipped))?;
        writer.exchange(pc, inst, done)?;
        writer.load_lanes(inst.guard, skipped)?;
        let helper = (writer.helpers.called)(writer.program, &inst.op);
        let asm = &mut writer.asm;
        match writer.kind == Kind::Whole && inst.guard.pred.is_none() {
            true => asm.mov(ecx, active())?,
            false => asm.mov(ecx, eax)?,
        }
        asm.mov(dword_ptr(warp(offset_of!(Warp, pc))), pc as i32)?;
        asm.mov(rdi, qword_ptr(rsp))?;
        asm.mov(rdi, qword_ptr(rdi + offset_of!(Arguments, cluster) as i32))?;
        asm.mov(rsi, rbx)?;
        asm.mov(rdx, std::ptr::from_ref(inst) as u64)?;
        asm.mov(rax, helper as u64)?;
        // Loads and stores move numbers, but others add and compare them.
        let subnormals = match inst.op {
            Op::Ld { .. } | Op::St { .. } => writer.subnormals,
            _ => Subnormals::Kept,
        };
        writer.with_subnormals(subnormals, |writer| {
            writer.call_function()?;
            Ok(true)
        })?;
        let asm = &mut writer.asm;
        asm.test(eax, eax)?;
        asm.jz(self.exit)?;
        asm.set_label(&mut done)?;
        match ended {
            Some(ended) => {
                asm.sub(dword_ptr(warp(offset_of!(Warp, events))), 1)?;
                asm.jz(ended)
            }
            None => asm.zero_bytes(),
        }
    }

    /// A branch: on for all lanes, if they do not part.
    fn branch(&mut self, pc: Pc, inst: &Inst) -> Result<(), IcedError> {
        let Op::Bra { target, .. } = inst.op else {
            return Ok(());
        };
        if let Some(p) = inst.guard.pred {
            let parted = self.aside(pc, Rare::Part);
            let mut on = self.writer.asm.create_label();
            let asm = &mut self.writer.asm;
            asm.mov(ecx, active())?;
            asm.mov(eax, predicate(p))?;
            if inst.guard.negate {
                asm.not(eax)?;
            }
            asm.and(eax, ecx)?;
            asm.jz(on)?;
            asm.cmp(eax, ecx)?;
            asm.jne(parted)?;
            self.go(target)?;
            self.writer.asm.set_label(&mut on)?;
            self.writer.asm.zero_bytes()?;
            return self.go(pc + 1);
        }
        self.go(target)
    }

    fn finish(mut self) -> Result<Option<Code>, IcedError> {
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let result = self.writer.asm.assemble_options(0, options)?;
        let [parted, whole, stepped] = &self.labels;
        let mut entries = Entries::default();
        for (entries, labels) in entries.iter_mut().zip([parted, whole]) {
            for (label, stepped) in labels.iter().zip(stepped) {
                entries.push(match label.or(*stepped) {
                    Some(label) => Some(result.label_ip(&label)? as u32),
                    None => None,
                });
            }
        }
        Ok(Code::new(&result.inner.code_buffer, entries))
    }
}

/// Where a warp counts the instructions of a class.
fn count(class: usize) -> AsmMemoryOperand {
    qword_ptr(warp(offset_of!(Warp, counts) + 8 * class))
}
