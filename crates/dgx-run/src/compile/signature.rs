//! Compares the arguments of a call with the parameters that the kernel declares.

use half::{bf16, f16};

use super::{KernelReport, Param, ParamKind};
use crate::catalog::{Argument, Arguments, Number, NumberType};
use crate::operator::abi;
use dgx_core::domain::counted;

/// Bytes of a tensor map.
const MAP: u32 = abi::TENSOR_MAP as u32;
/// Bytes of an address.
const ADDRESS: u32 = 8;

/// The bytes of each parameter of `kernel`; `memory` gives those of an argument in memory: its
/// address, or a tensor map itself.
pub(crate) fn parameters(
    kernel: &KernelReport,
    args: &Arguments,
    mut memory: impl FnMut(&Argument) -> Vec<u8>,
) -> Result<Vec<Vec<u8>>, String> {
    let name = &kernel.name;
    let hidden = kernel.hidden_params as usize;
    let own = kernel.params.len().checked_sub(hidden);
    if own != Some(args.list.len()) {
        let (declared, given) = (own.unwrap_or(0), args.list.len());
        let texts = args.texts.join(", ");
        return Err(format!(
            "{name} takes {}, and `args` gives {given} ({texts})",
            counted(declared, "parameter")
        ));
    }
    let given = args.list.iter().zip(&args.texts).zip(&kernel.params);
    let given = given.enumerate().map(|(place, ((arg, text), param))| {
        encode(arg, param, &mut memory).map_err(|why| {
            let declared = described(param);
            format!(
                "parameter {} of {name} is {declared}, and `args` gives it `{text}`, {why}",
                place + 1
            )
        })
    });
    let mut all = given.collect::<Result<Vec<_>, _>>()?;
    let rest = &kernel.params[args.list.len()..];
    all.extend(rest.iter().map(|param| vec![0; param.bytes as usize]));
    Ok(all)
}

/// Why the arguments do not match.
pub(super) fn mismatch(kernel: &KernelReport, args: &Arguments) -> Option<String> {
    let blank = |arg: &Argument| match (arg, args.arrays) {
        (Argument::Map(_), false) => vec![0; MAP as usize],
        _ => vec![0; ADDRESS as usize],
    };
    parameters(kernel, args, blank).err()
}

fn described(param: &Param) -> String {
    let bytes = param.bytes;
    match param.kind {
        ParamKind::Pointer => "a pointer".to_owned(),
        ParamKind::Integer => format!("an integer of {bytes} bytes"),
        ParamKind::Either => "an integer or a pointer".to_owned(),
        ParamKind::Float => format!("a float of {bytes} bytes"),
        ParamKind::Block => format!("a struct of {bytes} bytes, aligned to {}", param.align),
    }
}

/// The bytes of one parameter, or why the argument does not fit.
fn encode(
    arg: &Argument,
    param: &Param,
    memory: &mut impl FnMut(&Argument) -> Vec<u8>,
) -> Result<Vec<u8>, String> {
    let Param { bytes, align, kind } = *param;
    let len = |value: &Vec<u8>| value.len() as u32;
    match arg {
        Argument::Operand(_) | Argument::CallScratch(_) | Argument::PerGroup(_) => {
            let fits = bytes == ADDRESS && !matches!(kind, ParamKind::Integer | ParamKind::Float);
            fits.then(|| memory(arg)).ok_or("a pointer".to_owned())
        }
        Argument::Map(_) => {
            let map = memory(arg);
            let is_map = len(&map) == bytes && kind != ParamKind::Integer;
            is_map.then_some(map).ok_or("a tensor map".to_owned())
        }
        Argument::Number(number) => plain(*number, param),
        Argument::Typed(of, number) => {
            let value = typed(*of, *number)?;
            let same = match kind {
                ParamKind::Float => of.is_float(),
                ParamKind::Integer | ParamKind::Either => !of.is_float() || of.bytes() == 2,
                ParamKind::Block => true,
                ParamKind::Pointer => false,
            };
            let fits = same && len(&value) == bytes;
            fits.then_some(value)
                .ok_or(format!("a number of type {}", of.name()))
        }
        Argument::At(_) => Err("a place in a struct".to_owned()),
        Argument::Struct(members) => {
            let (value, own) = laid(members, align as usize, memory)?;
            let fits = kind == ParamKind::Block && len(&value) == bytes && own as u32 == align;
            let found = format!("a struct of {} bytes, aligned to {own}", value.len());
            fits.then_some(value).ok_or(found)
        }
    }
}

/// A number in the declared form.
fn plain(number: Number, param: &Param) -> Result<Vec<u8>, String> {
    let Param { bytes, kind, .. } = *param;
    let of = match (kind, bytes, number) {
        (ParamKind::Pointer, _, Number::Integer(0)) => NumberType::I64,
        (ParamKind::Float, 4, _) => NumberType::F32,
        (ParamKind::Float, 8, _) => NumberType::F64,
        (ParamKind::Integer | ParamKind::Either, 1, Number::Integer(_)) => NumberType::I8,
        (ParamKind::Integer | ParamKind::Either, 2, Number::Integer(_)) => NumberType::I16,
        (ParamKind::Integer | ParamKind::Either, 4, Number::Integer(_)) => NumberType::I32,
        (ParamKind::Integer | ParamKind::Either, 8, Number::Integer(_)) => NumberType::I64,
        (ParamKind::Block, 2, _) => {
            return Err("a number: say { f16 = … } or { bf16 = … }".to_owned());
        }
        (ParamKind::Block, 4 | 8, _) => {
            return Err("a number: say of which type, as in { f32 = … } or { i64 = … }".to_owned());
        }
        (.., Number::Integer(value)) => return Err(format!("the integer {value}")),
        (.., Number::Real(value)) => return Err(format!("the real number {value}")),
    };
    typed(of, number)
}

fn typed(of: NumberType, number: Number) -> Result<Vec<u8>, String> {
    let real = match number {
        Number::Integer(value) => value as f64,
        Number::Real(value) => value,
    };
    let rounded = match of {
        NumberType::F16 => f16::from_f64(real).to_f64(),
        NumberType::Bf16 => bf16::from_f64(real).to_f64(),
        NumberType::F32 => f64::from(real as f32),
        _ => real,
    };
    if rounded.is_infinite() && real.is_finite() {
        return Err(format!("{real}, which is too large for {}", of.name()));
    }
    // Signed or unsigned, the bits are the same.
    let fits = |bits: u32, value: i64| {
        -(1_i128 << (bits - 1)) <= value.into() && i128::from(value) < 1_i128 << bits
    };
    let integer = |bits: u32| match number {
        Number::Integer(value) if fits(bits, value) => Ok(value),
        Number::Integer(value) => Err(format!("{value}, which {bits} bits do not hold")),
        Number::Real(value) => Err(format!("the real number {value}")),
    };
    Ok(match of {
        NumberType::I8 => (integer(8)? as u8).to_le_bytes().to_vec(),
        NumberType::I16 => (integer(16)? as u16).to_le_bytes().to_vec(),
        NumberType::I32 => (integer(32)? as u32).to_le_bytes().to_vec(),
        NumberType::I64 => integer(64)?.to_le_bytes().to_vec(),
        NumberType::F16 => f16::from_f64(real).to_le_bytes().to_vec(),
        NumberType::Bf16 => bf16::from_f64(real).to_le_bytes().to_vec(),
        NumberType::F32 => (real as f32).to_le_bytes().to_vec(),
        NumberType::F64 => real.to_le_bytes().to_vec(),
    })
}

/// Members one after the other as in C++, or at given offsets, and the alignment of the whole. A
/// tensor map is aligned like its struct: to 64 or to 128, by the header.
fn laid(
    members: &[Argument],
    whole: usize,
    memory: &mut impl FnMut(&Argument) -> Vec<u8>,
) -> Result<(Vec<u8>, usize), String> {
    let mut bytes = Vec::new();
    let mut largest = 1;
    let mut placed = false;
    for member in members {
        let end = bytes.len();
        if let Argument::At(byte) = member {
            bytes.resize(*byte as usize, 0);
            if bytes.len() < end {
                let why = format!("whose members before `{{ at = {byte} }}` end at byte {end}");
                return Err(why);
            }
            placed = true;
            continue;
        }
        let (value, align) = laid_member(member, whole, memory)?;
        if placed && !end.is_multiple_of(align) {
            return Err(format!("whose member at byte {end} is aligned to {align}"));
        }
        placed = false;
        bytes.resize(end.next_multiple_of(align), 0);
        bytes.extend(value);
        largest = largest.max(align);
    }
    bytes.resize(bytes.len().next_multiple_of(largest), 0);
    Ok((bytes, largest))
}

/// A member and its alignment.
fn laid_member(
    member: &Argument,
    whole: usize,
    memory: &mut impl FnMut(&Argument) -> Vec<u8>,
) -> Result<(Vec<u8>, usize), String> {
    Ok(match member {
        Argument::Struct(inner) => laid(inner, whole, memory)?,
        Argument::Map(_) => {
            let map = memory(member);
            let align = match map.len() as u32 {
                MAP => whole,
                address => address as usize,
            };
            (map, align)
        }
        Argument::Typed(of, number) => (typed(*of, *number)?, of.bytes()),
        Argument::Number(number) => {
            let of = match number {
                Number::Integer(_) => NumberType::I32,
                Number::Real(_) => NumberType::F32,
            };
            (typed(of, *number)?, of.bytes())
        }
        Argument::Operand(_) | Argument::CallScratch(_) | Argument::PerGroup(_) => {
            (memory(member), ADDRESS as usize)
        }
        Argument::At(_) => (Vec::new(), 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::OperandRef;

    const X: Argument = Argument::Operand(OperandRef::Field(0));

    fn integer(value: i64) -> Argument {
        Argument::Number(Number::Integer(value))
    }

    fn encoded(arg: &Argument, bytes: u32, kind: ParamKind) -> Result<Vec<u8>, String> {
        let mut memory = |_: &Argument| vec![9; 8];
        let align = 8;
        encode(arg, &Param { bytes, align, kind }, &mut memory)
    }

    #[test]
    fn numbers_take_the_form_that_is_declared() {
        let minus = integer(-1);
        assert_eq!(encoded(&minus, 1, ParamKind::Integer), Ok(vec![255]));
        assert_eq!(encoded(&integer(255), 1, ParamKind::Integer), Ok(vec![255]));
        assert!(encoded(&integer(256), 1, ParamKind::Integer).is_err());
        assert!(encoded(&integer(-129), 1, ParamKind::Integer).is_err());
        let float = Ok((-1f32).to_le_bytes().to_vec());
        assert_eq!(encoded(&minus, 4, ParamKind::Float), float);
        let half = Argument::Typed(NumberType::F16, Number::Real(1.0));
        assert_eq!(encoded(&half, 2, ParamKind::Block), Ok(vec![0, 0x3c]));
        assert!(encoded(&integer(1), 2, ParamKind::Block).is_err());
        let large = Argument::Typed(NumberType::F16, Number::Real(1e6));
        assert!(encoded(&large, 2, ParamKind::Block).is_err());
        let float = Argument::Typed(NumberType::F32, Number::Integer(1));
        assert!(encoded(&float, 4, ParamKind::Integer).is_err());
        let int = Argument::Typed(NumberType::I32, Number::Integer(1));
        assert!(encoded(&int, 4, ParamKind::Float).is_err());
        assert!(encoded(&integer(1), 8, ParamKind::Pointer).is_err());
        assert_eq!(encoded(&integer(0), 8, ParamKind::Pointer), Ok(vec![0; 8]));
    }

    #[test]
    fn a_pointer_is_no_number() {
        for kind in [ParamKind::Pointer, ParamKind::Either, ParamKind::Block] {
            assert_eq!(encoded(&X, 8, kind), Ok(vec![9; 8]));
        }
        for (bytes, kind) in [
            (8, ParamKind::Integer),
            (8, ParamKind::Float),
            (4, ParamKind::Block),
        ] {
            assert!(encoded(&X, bytes, kind).is_err(), "{bytes} {kind:?}");
        }
    }

    /// As C++ lays `struct { char a; struct { short b; int c; } d; float* e; char f; }`.
    #[test]
    fn members_lie_as_in_cpp() {
        let byte = || Argument::Typed(NumberType::I8, Number::Integer(1));
        let short = Argument::Typed(NumberType::I16, Number::Integer(2));
        let inner = Argument::Struct(vec![short, integer(3)]);
        let whole = Argument::Struct(vec![byte(), inner, X, byte()]);
        let bytes = encoded(&whole, 32, ParamKind::Block).unwrap();
        assert_eq!(bytes[..12], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(
            bytes[12..],
            [0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0]
        );
        assert!(encoded(&whole, 24, ParamKind::Block).is_err());
        assert!(encoded(&Argument::Struct(vec![X]), 8, ParamKind::Pointer).is_err());
        // Offsets leave zeros between members, and may not go back.
        let at = Argument::At;
        let whole = Argument::Struct(vec![at(4), byte(), at(16), X, at(40)]);
        let bytes = encoded(&whole, 40, ParamKind::Block).unwrap();
        assert_eq!(bytes[..8], [0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(
            bytes[8..24],
            [0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]
        );
        assert_eq!(bytes[24..], [0; 16]);
        let back = Argument::Struct(vec![X, at(4), byte()]);
        let why = encoded(&back, 16, ParamKind::Block).unwrap_err();
        assert_eq!(why, "whose members before `{ at = 4 }` end at byte 8");
        // A number after an unsuitable offset would be placed elsewhere.
        let askew = Argument::Struct(vec![at(4), X]);
        let why = encoded(&askew, 16, ParamKind::Block).unwrap_err();
        assert_eq!(why, "whose member at byte 4 is aligned to 8");
        // Its size fits, its alignment does not.
        let four = || integer(1);
        let ints = Argument::Struct(vec![four(), four()]);
        assert!(encoded(&ints, 8, ParamKind::Block).is_err());
    }
}
