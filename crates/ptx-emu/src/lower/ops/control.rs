//! Branches, ends of threads, and control of a warp or a grid.

use super::call::label;
use super::row::bare;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::frame::ret;
use crate::lower::lookup::{exactly, immediate_u32, wrong};
use crate::lower::names::{Binding, Label};
use crate::lower::survey::Flow;
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "bra" => branch(emitter, form),
        "brx" => branch_table(emitter, form),
        "ret" => {
            form.words.take("uni");
            form.words.finish()?;
            let [] = exactly(form.operands)?;
            ret(emitter)
        }
        "exit" | "trap" | "brkpt" => end(emitter, form),
        "pmevent" => {
            form.words.take("mask");
            form.words.finish()?;
            let [event] = exactly(form.operands)?;
            immediate_u32(event)?;
            emitter.emit(Op::Nop);
            Ok(())
        }
        "nanosleep" => {
            form.words.end(&["u32"])?;
            let [nanos] = exactly(form.operands)?;
            let nanos = emitter.s32(nanos, Num::U32)?;
            emitter.emit(Op::Nanosleep { nanos });
            Ok(())
        }
        "setmaxnreg" => setmaxnreg(emitter, form),
        _ => {
            let kinds = &[("wait", true), ("launch_dependents", false)];
            let wait = form.words.need(kinds, "wait or launch_dependents")?;
            bare(emitter, &form, Op::GridDep { wait })
        }
    }
}

fn end<'a>(emitter: &mut Emitter<'_, 'a>, form: Form<'_, 'a>) -> Lowered<()> {
    form.words.finish()?;
    let [] = exactly(form.operands)?;
    match form.opcode {
        "exit" => emitter.leave(Op::Exit, Flow::Abort),
        "trap" => emitter.leave(Op::Trap, Flow::Abort),
        _ => emitter.emit(Op::Brkpt),
    }
    Ok(())
}

/// First instruction at a label; known in the second pass only.
fn target(emitter: &Emitter<'_, '_>, label: Label) -> Pc {
    let labels = emitter.plan.map(|plan| &plan.labels);
    labels.map_or(0, |labels| labels[label as usize])
}

fn reconvergence(emitter: &Emitter<'_, '_>) -> Pc {
    let start = emitter.survey.groups.last().map(|group| group.start);
    let points = emitter.plan.map(|plan| &plan.reconverge);
    points
        .zip(start)
        .and_then(|(points, start)| points.get(&start).copied())
        .unwrap_or(NO_RECONVERGENCE)
}

fn branch<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let uniform = form.words.take("uni");
    form.words.finish()?;
    let [destination] = exactly(form.operands)?;
    let label = label(emitter, destination)?;
    let op = Op::Bra {
        target: target(emitter, label),
        reconverge: reconvergence(emitter),
        uniform,
    };
    emitter.leave(op, Flow::Branch(vec![label]));
    Ok(())
}

fn branch_table<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("idx")?;
    form.words.take("uni");
    form.words.finish()?;
    let [index, table] = exactly(form.operands)?;
    let Operand::Name(name) = table else {
        return wrong("a table of branch targets", table);
    };
    let names = match emitter.names.lookup(name) {
        Some(Binding::Table(table)) => emitter.targets[table as usize].clone(),
        Some(_) => return wrong("a table of branch targets", table),
        None => return Err(Problem::UnknownName((*name).to_owned())),
    };
    if names.is_empty() {
        return illegal("the table of branch targets is empty");
    }
    let mut labels = Vec::new();
    for name in names {
        labels.push(label(emitter, &Operand::Name(name))?);
    }
    let index = emitter.s32(index, Num::U32)?;
    let targets = labels.iter().map(|&label| target(emitter, label)).collect();
    let op = Op::Brx {
        index,
        targets,
        reconverge: reconvergence(emitter),
    };
    emitter.leave(op, Flow::Branch(labels));
    Ok(())
}

fn setmaxnreg<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let inc = form
        .words
        .need(&[("inc", true), ("dec", false)], "inc or dec")?;
    form.words.end(&["sync", "aligned", "u32"])?;
    let [count] = exactly(form.operands)?;
    let count = immediate_u32(count)?;
    if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
        return illegal("the register count is a multiple of 8 from 24 to 256");
    }
    emitter.emit(Op::Setmaxnreg { inc, count });
    Ok(())
}
