//! Where arguments and results lie. Frames are static: each function's parameters have fixed places
//! in local memory (or fixed registers), and each lane has its own copy. Around a call that may
//! lead back to its caller, the caller's frame is saved.
//!
//! A function whose address is taken can also be entered through a common area: the caller of an
//! unknown function writes the arguments there, and the function moves them to its own places.

use super::emit::{CallFrame, Emitter, Formal};
use super::error::{Lowered, Problem, illegal};
use super::survey::Flow;
use super::unit::layout;
use crate::front::ast::{ScalarType, Storage, Variable};
use crate::op::*;

/// Maximum bytes of arguments, and again of results, in an indirect call.
pub(super) const AREA_BYTES: u32 = 1024;

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
        match variable.storage {
            Storage::Register if emitter.unit.recursive(owner) => {
                let name = emitter.unit.ast.functions[owner].name;
                return Err(Problem::Recursion(name.to_owned()));
            }
            Storage::Register => {
                let bits = match variable.scalar {
                    ScalarType::Pred => 1,
                    other => other.bytes() * 8,
                };
                // The elements of a vector follow one another.
                for _ in 0..variable.vector {
                    let register = emitter.names.temporary(bits);
                    emitter.pin(register);
                    formals.push(Formal::Register(register));
                }
            }
            Storage::Memory(_) => {
                // At least 8, so that copies go in whole words.
                let at = emitter.reserve_local(layout.size, layout.align.max(8), Some(owner))?;
                let size = layout.size as u32;
                formals.push(Formal::Memory { at, size });
            }
        }
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
pub(super) fn area_places(
    emitter: &mut Emitter<'_, '_>,
    sizes: &[u32],
    start: u32,
) -> Lowered<Vec<u32>> {
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

/// Entry through the address: moves arguments from the common area to the function's own places.
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

/// `ret`, which also passes results to an unknown caller.
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
    emitter.leave(Op::Ret, Flow::Return);
    Ok(())
}

fn local(at: u32) -> Addr {
    Addr {
        base: Base::Abs,
        offset: i64::from(at),
    }
}

pub(super) fn load(emitter: &mut Emitter<'_, '_>, slot: Slot, at: u32, width: u8) -> Lowered<()> {
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

pub(super) fn store(emitter: &mut Emitter<'_, '_>, at: u32, slot: Slot, width: u8) -> Lowered<()> {
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
pub(super) fn copy(emitter: &mut Emitter<'_, '_>, to: u32, from: u32, size: u32) -> Lowered<()> {
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

pub(super) fn save(emitter: &mut Emitter<'_, '_>) {
    let frame = saved_frame(emitter);
    emitter.emit(Op::SaveFrame { frame });
}

pub(super) fn restore(emitter: &mut Emitter<'_, '_>) {
    let frame = saved_frame(emitter);
    emitter.emit(Op::RestoreFrame { frame });
}

/// Copies results to the common area, where they survive the restoring of the caller's frame.
pub(super) fn stage(emitter: &mut Emitter<'_, '_>, returns: &[Formal]) -> Lowered<Vec<Formal>> {
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
