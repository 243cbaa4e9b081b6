//! Textures and surfaces, by objects alone.

use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{exactly, wrong};
use crate::op::*;
use crate::texture::{Sampling, Shape};

const SHAPES: &[(&str, Shape)] = &[
    ("1d", Shape::D1),
    ("2d", Shape::D2),
    ("3d", Shape::D3),
    ("a1d", Shape::Layers1),
    ("a2d", Shape::Layers2),
    ("cube", Shape::Cube),
    ("acube", Shape::Cubes),
];
const CHANNELS: &[(&str, u8)] = &[("r", 0), ("g", 1), ("b", 2), ("a", 3)];
const OUTSIDE: &[(&str, Outside)] = &[
    ("trap", Outside::Trap),
    ("clamp", Outside::Clamp),
    ("zero", Outside::Zero),
];
const VECTORS: &[(&str, usize)] = &[("v2", 2), ("v4", 4)];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "suld" | "sust" => surface(emitter, form),
        _ => texture(emitter, form),
    }
}

/// `[object, {x, y}]`
fn place<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    shape: Shape,
    ty: Num,
) -> Lowered<(Addr, SlotList)> {
    let Operand::TensorAddress(object, coordinates) = operand else {
        return wrong("an object with coordinates", operand);
    };
    let wanted = shape.coordinates();
    // A vector has two or four elements; a fourth is padding.
    if coordinates.len() < wanted {
        return illegal(format!("{wanted} coordinates are needed"));
    }
    if let Some(name) = object.base
        && emitter.register(&Operand::Name(name))?.is_none()
    {
        return illegal(format!(
            "`{name}` is a reference: textures and surfaces are supported as objects"
        ));
    }
    let (handle, _) = emitter.resolve_address(*object, Space::Generic)?;
    let layers = matches!(shape, Shape::Layers1 | Shape::Layers2 | Shape::Cubes);
    let mut slots = Vec::new();
    for (at, coordinate) in coordinates[..wanted].iter().enumerate() {
        let ty = if at == 0 && layers { Num::B32 } else { ty };
        slots.push(emitter.source(coordinate, ty)?);
    }
    Ok((handle, emitter.list(&slots)?))
}

fn texture<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let gather = match form.opcode {
        "tld4" => Some(form.words.need(CHANNELS, "r, g, b or a")?),
        _ => None,
    };
    // Objects here have one mipmap level.
    let level = form.words.take("level");
    let shape = form.words.need(SHAPES, "a geometry")?;
    form.words.exactly("v4")?;
    let (result, given) = (form.words.ty()?, form.words.ty()?);
    form.words.finish()?;
    if !matches!(result, Num::F32 | Num::S32 | Num::U32) || !matches!(given, Num::F32 | Num::S32) {
        return illegal("texels are .f32, .s32 or .u32, coordinates .f32 or .s32");
    }
    let (d, at) = match (level, form.operands) {
        (true, [d, at, level]) => {
            emitter.s32(level, given)?;
            (d, at)
        }
        (_, operands) => {
            let [d, at] = exactly(operands)?;
            (d, at)
        }
    };
    let Operand::Vector(channels) = d else {
        return wrong("a vector of 4", d);
    };
    let (handle, coordinates) = place(emitter, at, shape, given)?;
    let mut slots = Vec::new();
    for channel in channels {
        slots.push(emitter.dslot(channel, 32)?);
    }
    let d = emitter.list(&slots)?;
    emitter.emit(Op::Texture(Box::new(TextureRead {
        sampling: Sampling {
            shape,
            integer: given == Num::S32,
            float: result == Num::F32,
            gather,
        },
        handle,
        coordinates,
        d,
    })));
    Ok(())
}

fn surface<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let store = form.opcode == "sust";
    form.words.exactly("b")?;
    let shape = form.words.need(SHAPES, "a geometry")?;
    let vector = form.words.pick(VECTORS).unwrap_or(1);
    let ty = form.words.ty()?;
    let outside = form.words.pick(OUTSIDE).unwrap_or(Outside::Trap);
    form.words.finish()?;
    let [at, values] = match (store, exactly(form.operands)?) {
        (true, [at, values]) => [at, values],
        (false, [values, at]) => [at, values],
    };
    let (handle, coordinates) = place(emitter, at, shape, Num::B32)?;
    let elements = match values {
        Operand::Vector(elements) if elements.len() == vector => elements.as_slice(),
        other if vector == 1 => std::slice::from_ref(other),
        other => return wrong(format!("a vector of {vector}"), other),
    };
    let mut slots = Vec::new();
    for element in elements {
        slots.push(match store {
            true => emitter.wide_source(element, ty)?.0,
            false => emitter.wide_target(element, ty.bits())?.0,
        });
    }
    let regs = emitter.list(&slots)?;
    emitter.emit(Op::Surface(Box::new(SurfaceMove {
        store,
        shape,
        outside,
        width: (ty.bits() / 8) as u8,
        handle,
        coordinates,
        regs,
    })));
    Ok(())
}
