//! Instructions by family. Each family reads its modifiers from tables and leaves none unread.

mod atomic;
mod barrier;
mod bits;
mod bulk;
mod call;
mod cancel;
mod compare;
mod control;
mod convert;
mod copy;
mod float;
mod fragment;
mod integer;
mod matrix;
mod memory;
mod mma;
mod moves;
mod multimem;
mod row;
mod tcgen05;
mod texture;
mod video;
mod warp;
mod wmma;

use super::emit::Emitter;
use super::error::{Lowered, Problem};
use super::form::Form;
use super::modifiers::Modifiers;
use super::version;
use crate::evidence;
use crate::front::ast::{Instruction, Operand};
use std::borrow::Cow;

/// Emits one PTX instruction.
pub(crate) fn lower<'a>(
    emitter: &mut Emitter<'_, 'a>,
    instruction: &Instruction<'a>,
) -> Lowered<()> {
    if let Some(target) = emitter.unit.target {
        let name = emitter.unit.ast.target.first().copied();
        target.check(name.unwrap_or_default(), instruction)?;
    }
    version::check(emitter.unit.ast.version, instruction)?;
    if emitter.plan.is_some() {
        emitter.program.forms.insert(evidence::form(instruction));
    }
    let operands = spell_out(emitter, &instruction.operands);
    let form = Form {
        opcode: instruction.opcode,
        words: Modifiers::new(&instruction.modifiers),
        operands: &operands,
    };
    match instruction.opcode {
        "add" | "sub" | "mul" | "mad" | "div" | "rem" | "abs" | "neg" | "min" | "max" | "fma"
        | "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" | "dp4a" | "dp2a" => {
            integer::lower(emitter, form)
        }
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign"
        | "testp" => float::lower(emitter, form),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "lop3" | "shf" | "prmt" | "bfe"
        | "bfi" | "bfind" | "bmsk" | "szext" | "popc" | "clz" | "brev" | "fns" => {
            bits::lower(emitter, form)
        }
        "setp" | "set" | "selp" | "slct" => compare::lower(emitter, form),
        "cvt" => convert::lower(emitter, form),
        "mov" | "cvta" | "isspacep" | "mapa" | "getctarank" | "activemask" => {
            moves::lower(emitter, form)
        }
        "ld" | "ldu" | "st" | "prefetch" | "prefetchu" | "discard" | "applypriority"
        | "createpolicy" => memory::lower(emitter, form),
        "atom" | "red" => atomic::lower(emitter, form),
        "multimem" => multimem::lower(emitter, form),
        "bra" | "brx" | "ret" | "exit" | "trap" | "brkpt" | "pmevent" | "nanosleep"
        | "setmaxnreg" | "griddepcontrol" => control::lower(emitter, form),
        "call" => call::call(emitter, form),
        "shfl" | "vote" | "match" | "redux" | "elect" => warp::lower(emitter, form),
        "bar" | "barrier" | "membar" | "fence" | "mbarrier" => barrier::lower(emitter, form),
        "clusterlaunchcontrol" => cancel::lower(emitter, form),
        "cp" => copy::lower(emitter, form),
        "tex" | "tld4" | "suld" | "sust" => texture::lower(emitter, form),
        "tensormap" => bulk::tensormap(emitter, form),
        "wmma" => wmma::lower(emitter, form),
        "tcgen05" => tcgen05::lower(emitter, form),
        "wgmma" | "mma" | "ldmatrix" | "stmatrix" | "movmatrix" => matrix::lower(emitter, form),
        opcode if video::is_video(opcode) => video::lower(emitter, form),
        other => Err(Problem::UnknownInstruction(
            match instruction.modifiers.first() {
                Some(first) => format!("{other}.{first}"),
                None => other.to_owned(),
            },
        )),
    }
}

/// Operands with vector registers spelled out: `v` is `{v.x, v.y}`.
fn spell_out<'x, 'a>(
    emitter: &mut Emitter<'_, 'a>,
    operands: &'x [Operand<'a>],
) -> Cow<'x, [Operand<'a>]> {
    if !emitter.names.has_vectors() {
        return Cow::Borrowed(operands);
    }
    let spelled = operands.iter().map(|operand| spelled(emitter, operand));
    spelled.collect()
}

fn spelled<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>) -> Operand<'a> {
    match operand {
        Operand::Name(name) => match emitter.names.components(name) {
            0 => operand.clone(),
            parts => {
                let members = ["x", "y", "z", "w"][..parts].iter();
                let elements = members.map(|member| Operand::Member(name, member));
                Operand::Vector(elements.collect())
            }
        },
        Operand::List(arguments) => {
            let arguments = arguments.iter().map(|one| spelled(emitter, one));
            Operand::List(arguments.collect())
        }
        other => other.clone(),
    }
}
