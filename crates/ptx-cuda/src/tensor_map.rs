//! `cuTensorMapEncode…`: tensor maps in the emulator's own format.

use ptx_emu::{Fill, Im2col, MapElement, Swizzle, TensorMap, Tiled};

use crate::call::refuse_part;
use crate::error::{Error, Result};
use crate::say::say;

/// The common arguments of both encoders.
pub(crate) struct Tensor<'a> {
    pub(crate) element: i32,
    pub(crate) address: u64,
    pub(crate) dims: &'a [u64],
    pub(crate) strides: &'a [u64],
    pub(crate) element_strides: &'a [u32],
    pub(crate) interleave: i32,
    pub(crate) swizzle: i32,
    pub(crate) fill: i32,
}

const ELEMENTS: [MapElement; 16] = [
    MapElement::U8,
    MapElement::U16,
    MapElement::U32,
    MapElement::S32,
    MapElement::U64,
    MapElement::S64,
    MapElement::F16,
    MapElement::F32,
    MapElement::F64,
    MapElement::Bf16,
    MapElement::F32Ftz,
    MapElement::Tf32,
    MapElement::Tf32Ftz,
    MapElement::U4,
    MapElement::U4Align16,
    MapElement::U6Align16,
];

const SWIZZLES: [Swizzle; 7] = [
    Swizzle::None,
    Swizzle::B32,
    Swizzle::B64,
    Swizzle::B128,
    Swizzle::B128Atom32,
    Swizzle::B128Atom32Flip8,
    Swizzle::B128Atom64,
];

fn pick<T: Copy>(all: &[T], index: i32) -> Result<T> {
    let found = usize::try_from(index).ok().and_then(|index| all.get(index));
    found.copied().ok_or(Error::INVALID_VALUE)
}

impl Tensor<'_> {
    /// The map, tiled by `box_dims` or by convolution windows.
    pub(crate) fn encode(&self, box_dims: &[u32], window: Option<Im2col>) -> Result<[u8; 128]> {
        if self.interleave != 0 {
            return Err(refuse_part("cuTensorMapEncode", "an interleaved layout"));
        }
        let tiled = Tiled {
            element: pick(&ELEMENTS, self.element)?,
            address: self.address,
            dims: self.dims,
            strides: self.strides,
            box_dims,
            element_strides: self.element_strides,
            swizzle: pick(&SWIZZLES, self.swizzle)?,
            fill: match self.fill {
                0 => Fill::Zero,
                1 => Fill::Nan,
                _ => return Err(Error::INVALID_VALUE),
            },
        };
        let map = match window {
            None => TensorMap::tiled(tiled),
            Some(window) => TensorMap::im2col(tiled, window),
        };
        match map {
            Ok(map) => Ok(map.encode()),
            Err(error) => {
                say(&format!("cuTensorMapEncode: {error}"));
                Err(Error::INVALID_VALUE)
            }
        }
    }
}
