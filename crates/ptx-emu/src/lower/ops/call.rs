//! `call`: of functions in the module, through registers, and of functions the device provides.

use crate::front::ast::{FunctionKind, Operand, Variable};
use crate::lower::emit::{Emitter, Formal};
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::frame::{
    AREA_BYTES, area_places, copy, frame, load, restore, save, stage, store,
};
use crate::lower::lookup::{describe, wrong};
use crate::lower::names::{Binding, Location, Register};
use crate::lower::survey::Flow;
use crate::lower::unit::layout;
use crate::op::*;

/// The parts of a call's operand list.
struct CallParts<'x, 'a> {
    results: Vec<Operand<'a>>,
    callee: &'x Operand<'a>,
    arguments: Vec<Operand<'a>>,
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
        results: scalars(results),
        callee,
        arguments: scalars(arguments),
        table,
    })
}

/// A list with vectors replaced by their elements, as the parameters of a function are counted.
fn scalars<'a>(operands: &[Operand<'a>]) -> Vec<Operand<'a>> {
    let mut scalars = Vec::new();
    for operand in operands {
        match operand {
            Operand::Vector(elements) => scalars.extend_from_slice(elements),
            other => scalars.push(other.clone()),
        }
    }
    scalars
}

/// `call`
pub(crate) fn call<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.take("uni");
    form.words.finish()?;
    let parts = parts(form.operands)?;
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
    for (formal, argument) in frame.params.iter().zip(&parts.arguments) {
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
    for (formal, result) in returns.iter().zip(&parts.results) {
        take(emitter, *formal, result)?;
    }
    if callee.noreturn {
        emitter.set_flow(Flow::Abort);
    }
    Ok(())
}

fn count(parts: &CallParts<'_, '_>, results: usize, arguments: usize) -> Lowered<()> {
    // All results may be ignored.
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
        Some(Binding::Variable(Location::Local(at))) => Some(at),
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

/// Moves a result to the caller's destination.
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
    let argument_sizes = variable_sizes(emitter, &parts.arguments)?;
    let result_sizes = variable_sizes(emitter, &parts.results)?;
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
    let functions = candidates(emitter, parts.table, &argument_sizes, &result_sizes)?;
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
        .filter_map(|function| {
            let &(_, indirect) = entries?.get(function)?;
            Some((emitter.unit.code_address(*function), indirect))
        })
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

/// Functions that an indirect call can reach: those of its table, or all whose address is taken and
/// whose parameters have these sizes. All results may be ignored.
fn candidates(
    emitter: &mut Emitter<'_, '_>,
    table: Option<&str>,
    arguments: &[u32],
    results: &[u32],
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
                let fits = |formals: &[Variable<'_>], sizes: &[u32]| {
                    let sized = formals.iter().map(|v| layout(v).map(|layout| layout.size));
                    sized.eq(sizes.iter().map(|&size| Ok(u64::from(size))))
                };
                function.kind == FunctionKind::Func
                    && function.body.is_some()
                    && fits(&function.params, arguments)
                    && (results.is_empty() || fits(&function.returns, results))
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
