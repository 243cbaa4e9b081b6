//! Calls. Frames are static: each function's parameters have fixed places in local memory (or
//! fixed registers), and lanes keep their own copies. Around a call that may lead back into its
//! caller, the caller's frame is saved.
//!
//! A function whose address is taken can also be entered through a common area: the caller of
//! an unknown function writes the arguments there, the function moves them to its own places.

use super::body;
use super::emit::Emitter;
use super::error::{Lowered, Problem, illegal};
use super::flow::Flow;
use super::names::{Binding, Place, Register};
use super::operands::{describe, wrong};
use super::unit::layout;
use super::words::Words;
use crate::front::ast::{Instruction, Operand, Storage, Variable};
use crate::op::*;

/// Bytes of arguments, and again of results, an indirect call can pass.
const AREA_BYTES: u32 = 1024;

/// Where a formal parameter lives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Formal {
    Memory { at: u32, size: u32 },
    Register(Register),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CallFrame {
    pub returns: Vec<Formal>,
    pub params: Vec<Formal>,
}

/// The frame of a function, laid out when it is first needed.
pub(crate) fn frame(emitter: &mut Emitter<'_, '_>, function: usize) -> Lowered<CallFrame> {
    if let Some(frame) = emitter.frames.get(&function) {
        return Ok(frame.clone());
    }
    let ast = emitter.unit.ast;
    let function_ast = &ast.functions[function];
    let frame = CallFrame {
        returns: formals(emitter, &function_ast.returns, function)?,
        params: formals(emitter, &function_ast.params, function)?,
    };
    emitter.frames.insert(function, frame.clone());
    Ok(frame)
}

fn formals(
    emitter: &mut Emitter<'_, '_>,
    variables: &[Variable<'_>],
    owner: usize,
) -> Lowered<Vec<Formal>> {
    let mut formals = Vec::new();
    for variable in variables {
        let layout = layout(variable)?;
        formals.push(match variable.storage {
            Storage::Register if emitter.unit.recursive(owner) => {
                let name = emitter.unit.ast.functions[owner].name;
                return Err(Problem::Recursion(name.to_owned()));
            }
            Storage::Register => {
                let bits = match variable.scalar {
                    crate::front::ast::ScalarType::Pred => 1,
                    other => other.bytes() * 8,
                };
                let register = emitter.names.temporary(bits);
                emitter.pin(register);
                Formal::Register(register)
            }
            Storage::Memory(_) => {
                // At least 8, so that copies go in whole words.
                let at = emitter.reserve_local(layout.size, layout.align.max(8), Some(owner))?;
                let size = layout.size as u32;
                Formal::Memory { at, size }
            }
        });
    }
    Ok(formals)
}

/// The common area: arguments first, then results.
fn area(emitter: &mut Emitter<'_, '_>) -> Lowered<u32> {
    if let Some(at) = emitter.call_area {
        return Ok(at);
    }
    let at = emitter.reserve_local(u64::from(2 * AREA_BYTES), 16, None)?;
    emitter.call_area = Some(at);
    Ok(at)
}

/// Places of formals in the common area, `start` bytes into it.
fn area_places(emitter: &mut Emitter<'_, '_>, sizes: &[u32], start: u32) -> Lowered<Vec<u32>> {
    let area = area(emitter)? + start;
    let mut end = 0;
    let mut places = Vec::new();
    for &size in sizes {
        places.push(area + end);
        end = (end + size).next_multiple_of(16);
    }
    match end > AREA_BYTES {
        true => Err(Problem::TooLarge(
            "the argument list of an indirect call".into(),
        )),
        false => Ok(places),
    }
}

fn memory_sizes(formals: &[Formal]) -> Lowered<Vec<u32>> {
    let size = |formal: &Formal| match formal {
        Formal::Memory { size, .. } => Ok(*size),
        Formal::Register(_) => {
            illegal("a function called through its address has no .reg parameters")
        }
    };
    formals.iter().map(size).collect()
}

/// Entry through the address: arguments move from the common area to the function's own places.
pub(crate) fn receive(emitter: &mut Emitter<'_, '_>, function: usize) -> Lowered<()> {
    let frame = frame(emitter, function)?;
    let sizes = memory_sizes(&frame.params)?;
    let places = area_places(emitter, &sizes, 0)?;
    for (formal, place) in frame.params.iter().zip(places) {
        if let Formal::Memory { at, size } = *formal {
            copy(emitter, at, place, size)?;
        }
    }
    Ok(())
}

/// `ret`, also handing results to an unknown caller.
pub(crate) fn ret(emitter: &mut Emitter<'_, '_>) -> Lowered<()> {
    let function = emitter.function;
    if !emitter.in_kernel && emitter.unit.address_taken.contains(&function) {
        let frame = frame(emitter, function)?;
        let sizes = memory_sizes(&frame.returns)?;
        let places = area_places(emitter, &sizes, AREA_BYTES)?;
        for (formal, place) in frame.returns.iter().zip(places) {
            if let Formal::Memory { at, size } = *formal {
                copy(emitter, place, at, size)?;
            }
        }
    }
    body::leave(emitter, Op::Ret, Flow::Return);
    Ok(())
}

fn local(at: u32) -> Addr {
    Addr {
        base: Base::Abs,
        offset: i64::from(at),
    }
}

fn load(emitter: &mut Emitter<'_, '_>, slot: Slot, at: u32, width: u8) -> Lowered<()> {
    let d = emitter.list(&[slot])?;
    emitter.emit(Op::Ld {
        space: Space::Local,
        order: Order::Weak,
        width,
        ext: Extend::Zero,
        d,
        addr: local(at),
    });
    Ok(())
}

fn store(emitter: &mut Emitter<'_, '_>, at: u32, slot: Slot, width: u8) -> Lowered<()> {
    let s = emitter.list(&[slot])?;
    emitter.emit(Op::St {
        space: Space::Local,
        order: Order::Weak,
        width,
        s,
        addr: local(at),
    });
    Ok(())
}

/// Copies local memory, in the widest words both places allow.
fn copy(emitter: &mut Emitter<'_, '_>, to: u32, from: u32, size: u32) -> Lowered<()> {
    let mut done = 0;
    while done < size {
        let place = (to + done) | (from + done) | 8;
        let width = (1 << place.trailing_zeros()).min(prev_power_of_two(size - done));
        let slot = match width {
            8 => Slot::W64(emitter.temp64()),
            _ => Slot::W32(emitter.temp32()),
        };
        load(emitter, slot, from + done, width as u8)?;
        store(emitter, to + done, slot, width as u8)?;
        done += width;
    }
    Ok(())
}

fn prev_power_of_two(value: u32) -> u32 {
    1 << (31 - value.leading_zeros())
}

/// The parts of a call's operand list.
struct CallParts<'x, 'a> {
    results: &'x [Operand<'a>],
    callee: &'x Operand<'a>,
    arguments: &'x [Operand<'a>],
    /// Prototype or table of targets.
    table: Option<&'x str>,
}

fn parts<'x, 'a>(operands: &'x [Operand<'a>]) -> Lowered<CallParts<'x, 'a>> {
    let (results, rest): (&[Operand<'a>], _) = match operands {
        [Operand::List(results), rest @ ..] => (results, rest),
        rest => (&[], rest),
    };
    let Some((callee, rest)) = rest.split_first() else {
        return illegal("a call needs a function");
    };
    let (arguments, rest): (&[Operand<'a>], _) = match rest {
        [Operand::List(arguments), rest @ ..] => (arguments, rest),
        rest => (&[], rest),
    };
    let table = match rest {
        [] => None,
        [Operand::Name(name)] => Some(*name),
        [other, ..] => return wrong("a prototype or a table of targets", other),
    };
    Ok(CallParts {
        results,
        callee,
        arguments,
        table,
    })
}

/// `call`
pub(crate) fn call<'a>(
    emitter: &mut Emitter<'_, 'a>,
    instruction: &Instruction<'a>,
) -> Lowered<()> {
    let mut words = Words::new(&instruction.modifiers);
    words.take("uni");
    words.finish()?;
    let parts = parts(&instruction.operands)?;
    if emitter.register(parts.callee)?.is_some() {
        return indirect(emitter, &parts);
    }
    let Operand::Name(name) = parts.callee else {
        return wrong("a function", parts.callee);
    };
    let Some(&function) = emitter.unit.functions.get(name) else {
        return Err(Problem::UnknownName((*name).to_owned()));
    };
    let ast = emitter.unit.ast;
    let callee = &ast.functions[function];
    if callee.body.is_none() {
        return builtin(emitter, callee.name, &parts);
    }
    let frame = frame(emitter, function)?;
    count(&parts, frame.returns.len(), frame.params.len())?;
    let saved = emitter.unit.reenters(emitter.function, function);
    if saved {
        save(emitter);
    }
    for (formal, argument) in frame.params.iter().zip(parts.arguments) {
        pass(emitter, *formal, argument)?;
    }
    emitter.callees.insert(function);
    let entry = emitter.plan.and_then(|plan| plan.entries.get(&function));
    let target = entry.map_or(0, |&(direct, _)| direct);
    emitter.emit(Op::Call { target });
    let returns = match saved {
        true => stage(emitter, &frame.returns)?,
        false => frame.returns,
    };
    for (formal, result) in returns.iter().zip(parts.results) {
        take(emitter, *formal, result)?;
    }
    if callee.noreturn {
        emitter.set_flow(Flow::Abort);
    }
    Ok(())
}

/// Number of the current function's saved frame.
fn saved_frame(emitter: &mut Emitter<'_, '_>) -> u32 {
    let function = emitter.function;
    let known = emitter
        .saved_frames
        .iter()
        .position(|&saved| saved == function);
    let frame = known.unwrap_or_else(|| {
        emitter.saved_frames.push(function);
        emitter.saved_frames.len() - 1
    });
    frame as u32
}

fn save(emitter: &mut Emitter<'_, '_>) {
    let frame = saved_frame(emitter);
    emitter.emit(Op::SaveFrame { frame });
}

fn restore(emitter: &mut Emitter<'_, '_>) {
    let frame = saved_frame(emitter);
    emitter.emit(Op::RestoreFrame { frame });
}

/// Brings results to the common area, where they survive the restoring of the caller's frame.
fn stage(emitter: &mut Emitter<'_, '_>, returns: &[Formal]) -> Lowered<Vec<Formal>> {
    let sizes = memory_sizes(returns)?;
    let places = area_places(emitter, &sizes, AREA_BYTES)?;
    let mut staged = Vec::new();
    for (formal, place) in returns.iter().zip(places) {
        if let Formal::Memory { at, size } = *formal {
            copy(emitter, place, at, size)?;
            staged.push(Formal::Memory { at: place, size });
        }
    }
    restore(emitter);
    Ok(staged)
}

fn count(parts: &CallParts<'_, '_>, results: usize, arguments: usize) -> Lowered<()> {
    // Results may be ignored altogether.
    let results_fit = parts.results.is_empty() || parts.results.len() == results;
    if results_fit && parts.arguments.len() == arguments {
        return Ok(());
    }
    illegal(format!(
        "call passes {} arguments and takes {} results where the function has {arguments} and {results}",
        parts.arguments.len(),
        parts.results.len()
    ))
}

/// Local place of an argument that is a `.param` variable.
fn param_place(emitter: &mut Emitter<'_, '_>, operand: &Operand<'_>) -> Option<u32> {
    let Operand::Name(name) = operand else {
        return None;
    };
    match emitter.names.lookup(name) {
        Some(Binding::Variable(Place::Local(at))) => Some(at),
        _ => None,
    }
}

fn integer_type(bits: u32) -> Lowered<Num> {
    Ok(match bits {
        8 => Num::B8,
        16 => Num::B16,
        32 => Num::B32,
        64 => Num::B64,
        _ => return illegal("only values of 8 to 64 bits are passed in registers"),
    })
}

/// Moves an argument to a formal parameter.
fn pass<'a>(emitter: &mut Emitter<'_, 'a>, formal: Formal, argument: &Operand<'a>) -> Lowered<()> {
    match formal {
        Formal::Memory { at, size } => match param_place(emitter, argument) {
            Some(from) => copy(emitter, at, from, size),
            None => {
                let ty = integer_type(size * 8)?;
                let (value, _) = emitter.wide_source(argument, ty)?;
                store(emitter, at, value, size as u8)
            }
        },
        Formal::Register(register) => assign(emitter, register, argument),
    }
}

/// Moves a value to a register of its width.
fn assign<'a>(
    emitter: &mut Emitter<'_, 'a>,
    register: Register,
    value: &Operand<'a>,
) -> Lowered<()> {
    match register.bits {
        1 => {
            let (a, negate) = emitter.sp(value)?;
            let d = emitter.pred(register);
            emitter.emit(Op::PMov { d, a, negate });
        }
        64 => {
            let a = emitter.s64(value, Num::B64)?;
            let d = emitter.r64(register);
            emitter.emit(Op::Mov64 { d, a });
        }
        bits => {
            let a = emitter.s32(value, integer_type(bits)?)?;
            let d = emitter.r32(register);
            emitter.emit(Op::Mov32 { d, a });
        }
    }
    Ok(())
}

/// Moves a result to where the caller wants it.
fn take<'a>(emitter: &mut Emitter<'_, 'a>, formal: Formal, result: &Operand<'a>) -> Lowered<()> {
    if matches!(result, Operand::Sink) {
        return Ok(());
    }
    match formal {
        Formal::Memory { at, size } => match param_place(emitter, result) {
            Some(to) => copy(emitter, to, at, size),
            None => {
                let (slot, _) = emitter.wide_target(result, size * 8)?;
                load(emitter, slot, at, size as u8)
            }
        },
        Formal::Register(register) if register.bits == 1 => {
            let d = emitter.dp(result)?;
            let a = emitter.pred(register);
            emitter.emit(Op::PMov {
                d,
                a,
                negate: false,
            });
            Ok(())
        }
        Formal::Register(register) => {
            let d = emitter.target(result, register.bits)?;
            let (d, a) = (emitter.any_slot(d), emitter.any_slot(register));
            match (d, a) {
                (Slot::W64(d), Slot::W64(a)) => emitter.emit(Op::Mov64 { d, a }),
                (Slot::W32(d), Slot::W32(a)) => emitter.emit(Op::Mov32 { d, a }),
                _ => return illegal("result of another width than its register"),
            }
            Ok(())
        }
    }
}

/// A call through a register.
fn indirect<'a>(emitter: &mut Emitter<'_, 'a>, parts: &CallParts<'_, 'a>) -> Lowered<()> {
    let target = emitter.s64(parts.callee, Num::B64)?;
    let argument_sizes = variable_sizes(emitter, parts.arguments)?;
    let result_sizes = variable_sizes(emitter, parts.results)?;
    let to = area_places(emitter, &argument_sizes, 0)?;
    let from = area_places(emitter, &result_sizes, AREA_BYTES)?;
    for ((argument, place), size) in parts.arguments.iter().zip(to).zip(&argument_sizes) {
        pass(
            emitter,
            Formal::Memory {
                at: place,
                size: *size,
            },
            argument,
        )?;
    }
    let functions = candidates(emitter, parts.table, argument_sizes.len())?;
    let caller = emitter.function;
    let saved = functions
        .iter()
        .any(|&function| emitter.unit.reenters(caller, function));
    if saved {
        save(emitter);
    }
    emitter.callees.extend(functions.iter().copied());
    let entries = emitter.plan.map(|plan| &plan.entries);
    let targets = functions
        .iter()
        .filter_map(|function| entries?.get(function).map(|&(_, indirect)| indirect))
        .collect();
    let reconverge = emitter.pc() + 1;
    emitter.emit(Op::CallIndirect {
        target,
        targets,
        reconverge,
    });
    if saved {
        restore(emitter);
    }
    for ((result, place), size) in parts.results.iter().zip(from).zip(&result_sizes) {
        take(
            emitter,
            Formal::Memory {
                at: place,
                size: *size,
            },
            result,
        )?;
    }
    Ok(())
}

/// Bytes of the `.param` variables (or registers) a call names.
fn variable_sizes<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &[Operand<'a>],
) -> Lowered<Vec<u32>> {
    let mut sizes = Vec::new();
    for operand in operands {
        if let Some(register) = emitter.register(operand)? {
            sizes.push(register.bits.div_ceil(8));
            continue;
        }
        let size = param_place(emitter, operand).and_then(|at| emitter.local_sizes.get(&at));
        match size {
            Some(&size) => sizes.push(size),
            None => return wrong("a .param variable or a register", operand),
        }
    }
    Ok(sizes)
}

/// Functions an indirect call can reach: those of its table, or all whose address is taken and
/// that have as many parameters.
fn candidates(
    emitter: &mut Emitter<'_, '_>,
    table: Option<&str>,
    arguments: usize,
) -> Lowered<Vec<usize>> {
    let unit = emitter.unit;
    let named = match table.map(|name| (name, emitter.names.lookup(name))) {
        Some((_, Some(Binding::Table(table)))) => Some(emitter.targets[table as usize].clone()),
        Some((_, Some(Binding::Prototype))) | None => None,
        Some((name, _)) => return Err(Problem::UnknownName(name.to_owned())),
    };
    match named {
        Some(names) => names
            .iter()
            .map(|&name| {
                let function = unit.functions.get(name).copied();
                function.ok_or_else(|| Problem::UnknownName(name.to_owned()))
            })
            .collect(),
        None => Ok(unit
            .address_taken
            .iter()
            .copied()
            .filter(|&function| {
                let function = &unit.ast.functions[function];
                function.body.is_some() && function.params.len() == arguments
            })
            .collect()),
    }
}

/// Functions the device provides.
fn builtin<'a>(
    emitter: &mut Emitter<'_, 'a>,
    name: &str,
    parts: &CallParts<'_, 'a>,
) -> Lowered<()> {
    match name {
        "vprintf" => {
            count(parts, 1, 2)?;
            let format = argument64(emitter, &parts.arguments[0])?;
            let args = argument64(emitter, &parts.arguments[1])?;
            let d = emitter.temp32();
            emitter.emit(Op::Printf { d, format, args });
            match parts
                .results
                .first()
                .map(|result| (result, param_place(emitter, result)))
            {
                Some((_, Some(at))) => store(emitter, at, Slot::W32(d), 4),
                Some((result, None)) => {
                    let to = emitter.d32(result, 32)?;
                    emitter.emit(Op::Mov32 { d: to, a: d });
                    Ok(())
                }
                None => Ok(()),
            }
        }
        "__assertfail" => {
            count(parts, 0, 5)?;
            let message = argument64(emitter, &parts.arguments[0])?;
            let file = argument64(emitter, &parts.arguments[1])?;
            let line = argument32(emitter, &parts.arguments[2])?;
            let function = argument64(emitter, &parts.arguments[3])?;
            emitter.emit(Op::AssertFail {
                message,
                file,
                line,
                function,
            });
            emitter.set_flow(Flow::Abort);
            Ok(())
        }
        other => Err(Problem::NoBody(other.to_owned())),
    }
}

fn argument64<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>) -> Lowered<R64> {
    match param_place(emitter, operand) {
        Some(at) => {
            let d = emitter.temp64();
            load(emitter, Slot::W64(d), at, 8)?;
            Ok(d)
        }
        None => emitter.s64(operand, Num::B64),
    }
}

fn argument32<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>) -> Lowered<R32> {
    match param_place(emitter, operand) {
        Some(at) => {
            let d = emitter.temp32();
            load(emitter, Slot::W32(d), at, 4)?;
            Ok(d)
        }
        None => emitter.s32(operand, Num::B32),
    }
}

/// The label an operand names.
pub(crate) fn label(emitter: &mut Emitter<'_, '_>, operand: &Operand<'_>) -> Lowered<u32> {
    let Operand::Name(name) = operand else {
        return wrong("a label", operand);
    };
    match emitter.names.lookup(name) {
        Some(Binding::Label(label)) => Ok(label),
        Some(_) => wrong("a label", operand),
        None => Err(Problem::UnknownName(describe(operand).replace('`', ""))),
    }
}
