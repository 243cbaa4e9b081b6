//! One kernel and every function it reaches, in two passes.

use super::emit::Emitter;
use super::error::{LowerError, Problem};
use super::flow::Blocks;
use super::survey::Plan;
use super::unit::{self, Unit};
use super::{allocate, body, registers};
use crate::op::{FrameSlots, P, Program, SHARED_BASE, SHARED_SCRATCH, SharedVar};

/// Maximum shared memory of a block, static and dynamic (opt-in maximum of sm_90, generously).
const MAX_SHARED: u32 = 1 << 20;

/// Lowers the kernel that is function `index` of the module.
pub(crate) fn lower(unit: &Unit<'_>, index: usize) -> Result<Program, LowerError> {
    let mut survey = Emitter::new(unit, None);
    body::all(&mut survey, index)?;
    let plan = plan(&survey).map_err(|problem| at_kernel(unit, index, problem))?;
    let mut emitter = Emitter::new(unit, Some(&plan));
    body::all(&mut emitter, index)?;
    finish(emitter, &plan, index).map_err(|problem| at_kernel(unit, index, problem))
}

fn at_kernel(unit: &Unit<'_>, index: usize, problem: Problem) -> LowerError {
    LowerError {
        problem,
        instruction: String::new(),
        ptx_line: unit.ast.functions[index].position.line,
        source_line: None,
    }
}

fn plan(emitter: &Emitter<'_, '_>) -> Result<Plan, Problem> {
    let survey = &emitter.survey;
    let mut plan = Plan {
        labels: survey.labels.clone(),
        entries: survey.entries.clone(),
        ..Plan::default()
    };
    let blocks: Vec<Blocks> = survey
        .bodies
        .iter()
        .map(|&(_, first, end)| Blocks::new(&survey.groups, &survey.labels, first, end))
        .collect();
    for blocks in &blocks {
        blocks.reconvergence(&survey.groups, &mut plan.reconverge);
    }
    let counts = emitter.names.counts();
    if counts[2] > u32::from(u16::MAX) {
        return Err(Problem::TooLarge("the number of predicates".into()));
    }
    allocate::allocate(survey, &emitter.program, &blocks, counts, &mut plan);
    let (program, names) = (&emitter.program, &emitter.names);
    plan.register_hazards = registers::hazards(survey, program, &blocks, names);
    plan.shared = shared_addresses(emitter)?;
    Ok(plan)
}

/// Static variables first, then the dynamic ones, which all begin at one address.
fn shared_addresses(emitter: &Emitter<'_, '_>) -> Result<Vec<u32>, Problem> {
    let mut end = SHARED_BASE;
    let mut addresses = vec![0; emitter.shared.len()];
    for (variable, address) in emitter.shared.iter().zip(&mut addresses) {
        if !variable.dynamic {
            *address = end.next_multiple_of(variable.align.max(1));
            end = *address + variable.size;
            if end > MAX_SHARED {
                return Err(Problem::TooLarge("static shared memory".into()));
            }
        }
    }
    let start = dynamic_start(emitter, end);
    for (variable, address) in emitter.shared.iter().zip(&mut addresses) {
        if variable.dynamic {
            *address = start;
        }
    }
    Ok(addresses)
}

fn dynamic_start(emitter: &Emitter<'_, '_>, static_end: u32) -> u32 {
    let dynamic = emitter.shared.iter().filter(|variable| variable.dynamic);
    let align = dynamic.map(|variable| variable.align).max().unwrap_or(1);
    static_end.next_multiple_of(align.clamp(16, 1 << 16))
}

fn finish(emitter: Emitter<'_, '_>, plan: &Plan, index: usize) -> Result<Program, Problem> {
    let function = &emitter.unit.ast.functions[index];
    let static_end = emitter
        .shared
        .iter()
        .zip(&plan.shared)
        .filter(|(variable, _)| !variable.dynamic)
        .map(|(variable, address)| address + variable.size)
        .max()
        .unwrap_or(SHARED_BASE);
    let dynamic = dynamic_start(&emitter, static_end);
    let [n32, n64] = emitter.slot_counts();
    let shared = emitter
        .shared
        .iter()
        .zip(&plan.shared)
        .map(|(variable, &address)| SharedVar {
            name: variable.name.clone(),
            address,
            size: if variable.dynamic { 0 } else { variable.size },
        })
        .collect();
    let (params, param_bytes) = unit::kernel_params(emitter.unit, index)?;
    let limits = function.limits;
    let frames = frames(&emitter, plan);
    let shared_start = match emitter.reserved_shared {
        true => SHARED_SCRATCH,
        false => SHARED_BASE,
    };
    let mut program = emitter.program;
    program.shared_start = shared_start;
    program.frames = frames;
    program.register_hazards.clone_from(&plan.register_hazards);
    program.name = function.name.to_owned();
    program.n32 = n32;
    program.n64 = n64;
    program.npred = plan.used[2] as u16;
    program.params = params;
    program.param_bytes = param_bytes;
    program.shared = shared;
    program.shared_static_end = static_end;
    program.shared_dynamic_start = dynamic;
    program.max_block = limits.max_threads;
    program.required_block = limits.required_threads;
    program.cluster = limits.required_cluster;
    program.explicit_cluster = limits.explicit_cluster;
    program.max_cluster_rank = limits.max_cluster_rank;
    program.min_ctas_per_sm = limits.min_ctas_per_sm;
    program.max_registers = limits.max_registers;
    debug_assert!(
        program
            .insts
            .iter()
            .all(|inst| inst.guard.pred.is_none_or(|P(at)| at < program.npred))
    );
    Ok(program)
}

/// The registers and memory that calls which may re-enter their caller save.
fn frames(emitter: &Emitter<'_, '_>, plan: &Plan) -> Vec<FrameSlots> {
    let frame = |function: &usize| {
        let bodies = emitter.survey.bodies.iter();
        let body = bodies
            .zip(&plan.body_slots)
            .find(|((index, ..), _)| index == function);
        let [r32, r64, preds] = body.map(|(_, slots)| slots.clone()).unwrap_or_default();
        let local = emitter
            .owned_locals
            .get(function)
            .cloned()
            .unwrap_or_default();
        FrameSlots {
            r32,
            r64,
            preds,
            local,
        }
    };
    emitter.saved_frames.iter().map(frame).collect()
}
