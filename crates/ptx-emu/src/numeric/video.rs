//! What video instructions compute, one lane at a time.

use crate::op::{Cmp, Part, Video, VideoKind, VideoThen};

/// The result of one lane.
pub(crate) fn video(op: &Video, a: u32, b: u32, c: u32) -> u32 {
    match (op.kind, op.parts) {
        (VideoKind::Mad { .. }, _) => mad(op, a, b, c),
        (_, 1) => scalar(op, a, b, c),
        _ => packed(op, a, b, c),
    }
}

fn extract(value: u32, part: Part, signed: bool) -> i64 {
    let spare = 64 - u32::from(part.bits);
    let bits = u64::from(value >> part.shift) << spare;
    match signed {
        true => bits as i64 >> spare,
        false => (bits >> spare) as i64,
    }
}

fn clamp(value: i64, bits: u8, signed: bool) -> i64 {
    match signed {
        true => value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => value.clamp(0, (1 << bits) - 1),
    }
}

fn compute(kind: VideoKind, x: i64, y: i64) -> i64 {
    let amount = |clamp: bool| if clamp { y.min(32) } else { y & 31 };
    match kind {
        VideoKind::Add => x + y,
        VideoKind::Sub => x - y,
        VideoKind::AbsDiff => (x - y).abs(),
        VideoKind::Min => x.min(y),
        VideoKind::Max => x.max(y),
        VideoKind::Average => (x + y + i64::from(x + y >= 0)) >> 1,
        VideoKind::Shl { clamp } => x << amount(clamp),
        VideoKind::Shr { clamp } => x >> amount(clamp),
        VideoKind::Set(cmp) => i64::from(match cmp {
            Cmp::Eq => x == y,
            Cmp::Ne => x != y,
            Cmp::Lt => x < y,
            Cmp::Le => x <= y,
            Cmp::Gt => x > y,
            _ => x >= y,
        }),
        VideoKind::Mad { .. } => 0,
    }
}

fn insert(part: Part, value: u32, into: u32) -> u32 {
    let ones = (u64::from(u32::MAX) >> (32 - part.bits)) as u32;
    into & !(ones << part.shift) | (value & ones) << part.shift
}

fn scalar(op: &Video, a: u32, b: u32, c: u32) -> u32 {
    let [signed, a_signed, b_signed] = op.signed;
    let x = extract(a, op.a_part, a_signed);
    let y = extract(b, op.b_part, b_signed);
    let mut value = compute(op.kind, x, y);
    if op.sat {
        value = clamp(value, op.part.bits, signed);
    }
    let value = value as u32;
    let less = match signed {
        true => (value as i32) < c as i32,
        false => value < c,
    };
    match op.then {
        VideoThen::Nothing => value,
        VideoThen::Add => value.wrapping_add(c),
        VideoThen::Min => {
            if less {
                value
            } else {
                c
            }
        }
        VideoThen::Max => {
            if less {
                c
            } else {
                value
            }
        }
        VideoThen::Merge => insert(op.part, value, c),
    }
}

fn packed(op: &Video, a: u32, b: u32, c: u32) -> u32 {
    let [signed, a_signed, b_signed] = op.signed;
    let bits = 32 / op.parts;
    let place = |index: u8| Part {
        shift: index % op.parts * bits,
        bits,
    };
    // The selectors count A's parts first, then B's.
    let pick = |index: u8, signed: bool| {
        let value = if index < op.parts { a } else { b };
        extract(value, place(index), signed)
    };
    let mut merged = c;
    let mut sum = c;
    for part in (0..op.parts).filter(|part| op.mask >> part & 1 == 1) {
        let x = pick(op.a_select[usize::from(part)], a_signed);
        let y = pick(op.b_select[usize::from(part)], b_signed);
        let mut value = compute(op.kind, x, y);
        if op.sat {
            value = clamp(value, bits, signed);
        }
        merged = insert(place(part), value as u32, merged);
        sum = sum.wrapping_add(value as u32);
    }
    match op.then {
        VideoThen::Add => sum,
        _ => merged,
    }
}

fn mad(op: &Video, a: u32, b: u32, c: u32) -> u32 {
    let VideoKind::Mad {
        negate_product,
        negate_c,
        plus_one,
        shift,
    } = op.kind
    else {
        return 0;
    };
    let [_, a_signed, b_signed] = op.signed;
    let signed = a_signed || b_signed || negate_product || negate_c;
    let product =
        i128::from(extract(a, op.a_part, a_signed)) * i128::from(extract(b, op.b_part, b_signed));
    let c = i128::from(extract(c, Part::ALL, signed));
    let product = if negate_product { -product } else { product };
    let c = if negate_c { -c } else { c };
    let value = (product + c + i128::from(plus_one)) >> shift;
    let value = match (op.sat, signed) {
        (false, _) => value,
        (true, true) => value.clamp(i32::MIN.into(), i32::MAX.into()),
        (true, false) => value.clamp(0, u32::MAX.into()),
    };
    value as u32
}
