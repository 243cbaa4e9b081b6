//! Function bodies: scopes, labels and the walk over statements.

use super::emit::{Emitter, Formal};
use super::error::{LowerError, Lowered, Problem};
use super::names::{Binding, Location, Register};
use super::{frame, ops, unit};
use crate::front::ast::{self, Instruction, Space, Statement, Storage};
use crate::op::{Op, Pc};

/// Emits a kernel and every function it reaches.
pub(crate) fn all(emitter: &mut Emitter<'_, '_>, kernel: usize) -> Result<(), LowerError> {
    let mut queue = vec![kernel];
    let mut at = 0;
    while let Some(&function) = queue.get(at) {
        at += 1;
        emitter.in_kernel = function == kernel;
        emitter.function = function;
        emitter.callees.clear();
        one(emitter, function)?;
        let callees = std::mem::take(&mut emitter.callees);
        for callee in callees {
            if !queue.contains(&callee) {
                queue.push(callee);
            }
        }
    }
    Ok(())
}

fn one(emitter: &mut Emitter<'_, '_>, index: usize) -> Result<(), LowerError> {
    let ast = emitter.unit.ast;
    let function = &ast.functions[index];
    let at_header = |problem: Problem| LowerError {
        problem,
        instruction: String::new(),
        ptx_line: function.position.line,
        source_line: None,
    };
    if let Some(error) = &function.broken {
        let problem = Problem::Syntax {
            expected: error.expected.clone(),
            found: error.found.clone(),
        };
        return Err(at_line(problem, error.position.line));
    }
    let first = emitter.survey.groups.len() as u32;
    emitter.names.fresh_function();
    emitter.location = emitter.locate(function.position.line, None);
    bind_parameters(emitter, index).map_err(at_header)?;
    let indirect = emitter.pc();
    if emitter.unit.address_taken.contains(&index) && !emitter.in_kernel {
        emitter.begin_group(None);
        frame::receive(emitter, index).map_err(at_header)?;
    }
    let direct = emitter.pc();
    emitter.survey.entries.insert(index, (direct, indirect));
    let Some(statements) = &function.body else {
        return Err(at_header(Problem::NoBody(function.name.to_owned())));
    };
    block(emitter, statements)?;
    // Falling off the end returns; a label may also stand there.
    emitter.begin_group(None);
    frame::ret(emitter).map_err(at_header)?;
    let end = emitter.survey.groups.len() as u32;
    emitter.survey.bodies.push((index, first, end));
    Ok(())
}

fn bind_parameters(emitter: &mut Emitter<'_, '_>, index: usize) -> Lowered<()> {
    let ast = emitter.unit.ast;
    let function = &ast.functions[index];
    if emitter.in_kernel {
        let (params, _) = unit::kernel_params(emitter.unit, index)?;
        for (param, layout) in function.params.iter().zip(params) {
            let place = Location::Param(layout.offset);
            emitter
                .names
                .bind_variable(param, Binding::Variable(place))?;
        }
        return Ok(());
    }
    let places = frame::frame(emitter, index)?;
    let mut places = places.returns.iter().chain(&places.params);
    for variable in function.returns.iter().chain(&function.params) {
        let Some(formal) = places.next() else { break };
        let binding = match *formal {
            Formal::Memory { at, .. } => Binding::Variable(Location::Local(at)),
            Formal::Register(first) if variable.vector > 1 => {
                let rest = places.by_ref().take(variable.vector as usize - 1);
                Binding::Vector(first, 1 + rest.count() as u32)
            }
            Formal::Register(register) => Binding::Register(register),
        };
        if variable.name != "_" {
            emitter.names.bind_variable(variable, binding)?;
        }
    }
    Ok(())
}

fn block<'a>(
    emitter: &mut Emitter<'_, 'a>,
    statements: &'a [Statement<'a>],
) -> Result<(), LowerError> {
    emitter.names.enter();
    declare_labels(emitter, statements)?;
    for statement in statements {
        match statement {
            Statement::Instruction(instruction) => {
                lower_instruction(emitter, instruction)
                    .map_err(|problem| locate(emitter, instruction, problem))?;
            }
            Statement::Label { name, .. } => {
                if let Some(Binding::Label(label)) = emitter.names.lookup(name) {
                    let pc: Pc = emitter.pc();
                    emitter.survey.labels[label as usize] = pc;
                }
            }
            Statement::Block(inner) => block(emitter, inner)?,
            Statement::Registers(declared) => {
                for register in declared {
                    emitter
                        .names
                        .declare(register)
                        .map_err(|problem| at_line(problem, register.position.line))?;
                }
            }
            Statement::Variable(variable) => declare_variable(emitter, variable)
                .map_err(|problem| at_line(problem, variable.position.line))?,
            Statement::Targets { .. } | Statement::Prototype(_) | Statement::Pragma(_) => {}
        }
    }
    emitter.names.leave();
    Ok(())
}

fn at_line(problem: Problem, ptx_line: u32) -> LowerError {
    LowerError {
        problem,
        instruction: String::new(),
        ptx_line,
        source_line: None,
    }
}

fn locate(
    emitter: &Emitter<'_, '_>,
    instruction: &Instruction<'_>,
    problem: Problem,
) -> LowerError {
    let frames = emitter.unit.frames(instruction.location);
    LowerError {
        problem,
        instruction: instruction.text.to_owned(),
        ptx_line: instruction.position.line,
        source_line: frames
            .first()
            .map(|frame| format!("{}:{}", frame.file, frame.line)),
    }
}

/// Labels and tables are visible in their whole block, even before their position.
fn declare_labels<'a>(
    emitter: &mut Emitter<'_, 'a>,
    statements: &'a [Statement<'a>],
) -> Result<(), LowerError> {
    for statement in statements {
        let (name, binding, position) = match statement {
            Statement::Label { name, position } => {
                emitter.survey.labels.push(0);
                let label = emitter.survey.labels.len() as u32 - 1;
                (*name, Binding::Label(label), position)
            }
            Statement::Targets {
                name,
                targets,
                position,
            } => {
                emitter.targets.push(targets.clone());
                let table = emitter.targets.len() as u32 - 1;
                (*name, Binding::Table(table), position)
            }
            Statement::Prototype(prototype) => {
                (prototype.name, Binding::Prototype, &prototype.position)
            }
            _ => continue,
        };
        emitter
            .names
            .bind(name, binding)
            .map_err(|problem| at_line(problem, position.line))?;
    }
    Ok(())
}

fn declare_variable<'a>(
    emitter: &mut Emitter<'_, 'a>,
    variable: &'a ast::Variable<'a>,
) -> Lowered<()> {
    let place = match variable.storage {
        Storage::Memory(Space::Shared) => Location::Shared(emitter.declare_shared(variable)?),
        Storage::Memory(Space::Local | Space::Param) => {
            let layout = unit::layout(variable)?;
            let owner = emitter.function;
            Location::Local(emitter.reserve_local(layout.size, layout.align, Some(owner))?)
        }
        _ => match emitter.unit.statics.get(&variable.position) {
            Some(&place) => place,
            None => {
                return Err(Problem::Illegal(
                    "a function declares no variable of this space".into(),
                ));
            }
        },
    };
    if variable.init.is_some() && !matches!(place, Location::Global { .. }) {
        return Err(Problem::Illegal(
            "a variable of this space has no initial value".into(),
        ));
    }
    emitter
        .names
        .bind_variable(variable, Binding::Variable(place))
}

fn lower_instruction<'a>(
    emitter: &mut Emitter<'_, 'a>,
    instruction: &Instruction<'a>,
) -> Lowered<()> {
    emitter.location = emitter.locate(instruction.position.line, instruction.location);
    let guard = match instruction.guard {
        None => None,
        Some(guard) => Some((guard_register(emitter, guard.register)?, guard.negated)),
    };
    emitter.begin_group(guard);
    ops::lower(emitter, instruction)?;
    // Every group has an instruction, so that a label always has one to point to.
    if emitter.survey.groups.last().map(|group| group.start) == Some(emitter.pc()) {
        emitter.emit(Op::Nop);
    }
    Ok(())
}

fn guard_register(emitter: &mut Emitter<'_, '_>, name: &str) -> Lowered<Register> {
    match emitter.names.lookup(name) {
        Some(Binding::Register(register)) if register.bits == 1 => Ok(register),
        Some(_) => Err(Problem::Operand {
            expected: "a predicate as guard".into(),
            found: format!("`{name}`"),
        }),
        None => Err(Problem::UnknownName(name.to_owned())),
    }
}
