//! The 128 bytes of a map, and `tensormap.replace`.

use super::{Fill, Im2col, MAP_BYTES, MapElement, Mode, TensorMap, TensorMapError};
use crate::tensor::Swizzle;

const MAGIC: [u8; 4] = *b"TMap";

/// Where each field lies. Numbers are little-endian.
mod at {
    pub(super) const ELEMENT: usize = 4;
    /// Zero-based, as `tensormap.replace` counts.
    pub(super) const RANK: usize = 5;
    pub(super) const SWIZZLE: usize = 6;
    pub(super) const ATOMICITY: usize = 7;
    pub(super) const FILL: usize = 8;
    pub(super) const INTERLEAVE: usize = 9;
    pub(super) const MODE: usize = 10;
    /// Five bytes.
    pub(super) const ELEMENT_STRIDES: usize = 11;
    /// Eight bytes.
    pub(super) const ADDRESS: usize = 16;
    /// Five words, each one less than the extent.
    pub(super) const DIMS: usize = 24;
    /// Four double words.
    pub(super) const STRIDES: usize = 48;
    /// Five half words.
    pub(super) const BOX: usize = 80;
    /// Six signed half words, then channels and pixels.
    pub(super) const IM2COL: usize = 90;
}

/// A field of `tensormap.replace.tile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    GlobalAddress,
    /// The value is one less than the rank.
    Rank,
    BoxDim(u8),
    GlobalDim(u8),
    GlobalStride(u8),
    ElementStride(u8),
    ElementType,
    InterleaveLayout,
    SwizzleMode,
    SwizzleAtomicity,
    FillMode,
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
    MapElement::F32Ftz,
    MapElement::F64,
    MapElement::Bf16,
    MapElement::Tf32,
    MapElement::Tf32Ftz,
    MapElement::U4,
    MapElement::U4Align16,
    MapElement::U6Align16,
];

/// (mode, atomicity) codes of PTX.
const SWIZZLES: [(Swizzle, u8, u8); 7] = [
    (Swizzle::None, 0, 0),
    (Swizzle::B32, 1, 0),
    (Swizzle::B64, 2, 0),
    (Swizzle::B128, 3, 0),
    (Swizzle::B128Atom32, 3, 1),
    (Swizzle::B128Atom32Flip8, 3, 2),
    (Swizzle::B128Atom64, 3, 3),
];

fn put<const N: usize>(bytes: &mut [u8; MAP_BYTES], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn get<const N: usize>(bytes: &[u8; MAP_BYTES], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

impl TensorMap {
    /// The map as kernels see it.
    pub fn encode(&self) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        put(&mut bytes, 0, MAGIC);
        let element = ELEMENTS.iter().position(|&e| e == self.element);
        bytes[at::ELEMENT] = element.unwrap_or_default() as u8;
        bytes[at::RANK] = self.rank as u8 - 1;
        for (swizzle, mode, atomicity) in SWIZZLES {
            if swizzle == self.swizzle {
                bytes[at::SWIZZLE] = mode;
                bytes[at::ATOMICITY] = atomicity;
            }
        }
        bytes[at::FILL] = u8::from(self.fill == Fill::Nan);
        for (i, &stride) in self.element_strides.iter().enumerate() {
            bytes[at::ELEMENT_STRIDES + i] = stride as u8;
        }
        put(&mut bytes, at::ADDRESS, self.address.to_le_bytes());
        for (i, &extent) in self.dims.iter().enumerate() {
            put(
                &mut bytes,
                at::DIMS + 4 * i,
                ((extent - 1) as u32).to_le_bytes(),
            );
        }
        for (i, &stride) in self.strides.iter().enumerate() {
            put(&mut bytes, at::STRIDES + 8 * i, stride.to_le_bytes());
        }
        match &self.mode {
            Mode::Tiled { extents } => {
                for (i, &extent) in extents.iter().enumerate() {
                    put(&mut bytes, at::BOX + 2 * i, (extent as u16).to_le_bytes());
                }
            }
            Mode::Im2col(window) => {
                bytes[at::MODE] = 1;
                for (i, corner) in window.lower.iter().chain(&window.upper).enumerate() {
                    put(&mut bytes, at::IM2COL + 2 * i, corner.to_le_bytes());
                }
                put(
                    &mut bytes,
                    at::IM2COL + 12,
                    (window.channels as u16).to_le_bytes(),
                );
                put(
                    &mut bytes,
                    at::IM2COL + 14,
                    (window.pixels as u16).to_le_bytes(),
                );
            }
        }
        bytes
    }

    /// Reads a map back, checking every rule: a kernel may have edited it.
    pub(crate) fn decode(bytes: &[u8; MAP_BYTES]) -> Result<Self, TensorMapError> {
        if bytes[..4] != MAGIC {
            return Err(TensorMapError::NotAMap);
        }
        let code = |field, value: u8| TensorMapError::Code {
            field,
            value: value.into(),
        };
        if bytes[at::INTERLEAVE] != 0 {
            return Err(TensorMapError::Interleave);
        }
        let element = *ELEMENTS
            .get(usize::from(bytes[at::ELEMENT]))
            .ok_or(code("elemtype", bytes[at::ELEMENT]))?;
        let (mode, atomicity) = (bytes[at::SWIZZLE], bytes[at::ATOMICITY]);
        let (swizzle, ..) = *SWIZZLES
            .iter()
            .find(|s| s.1 == mode && (s.2 == atomicity || mode != 3))
            .ok_or(code("swizzle_mode", mode))?;
        let map = Self {
            element,
            rank: usize::from(bytes[at::RANK]) + 1,
            address: u64::from_le_bytes(get(bytes, at::ADDRESS)),
            dims: std::array::from_fn(|i| {
                u64::from(u32::from_le_bytes(get(bytes, at::DIMS + 4 * i))) + 1
            }),
            strides: std::array::from_fn(|i| u64::from_le_bytes(get(bytes, at::STRIDES + 8 * i))),
            element_strides: std::array::from_fn(|i| u32::from(bytes[at::ELEMENT_STRIDES + i])),
            mode: decode_mode(bytes),
            swizzle,
            fill: if bytes[at::FILL] == 0 {
                Fill::Zero
            } else {
                Fill::Nan
            },
        };
        map.validate()?;
        Ok(map)
    }

    /// `tensormap.replace`: writes one field of an encoded map. What the map then means is
    /// checked when a copy decodes it, since kernels change several fields in turn. All zeros are
    /// a map of which nothing is known yet: compilers build maps from there.
    pub(crate) fn replace(
        bytes: &mut [u8; MAP_BYTES],
        field: Field,
        value: u64,
    ) -> Result<(), TensorMapError> {
        if *bytes == [0; MAP_BYTES] {
            put(bytes, 0, MAGIC);
        }
        if bytes[..4] != MAGIC {
            return Err(TensorMapError::NotAMap);
        }
        let refuse = |field| Err(TensorMapError::Code { field, value });
        let dimension = |d: u8, limit: u8, field| match d < limit {
            true => Ok(usize::from(d)),
            false => Err(TensorMapError::Code {
                field,
                value: d.into(),
            }),
        };
        match field {
            Field::GlobalAddress => put(bytes, at::ADDRESS, value.to_le_bytes()),
            Field::Rank if value < 5 => bytes[at::RANK] = value as u8,
            Field::Rank => return refuse("rank"),
            Field::BoxDim(d) => {
                let d = dimension(d, 5, "box_dim")?;
                let extent = u16::try_from(value).unwrap_or(u16::MAX);
                put(bytes, at::BOX + 2 * d, extent.to_le_bytes());
            }
            // Extents are 32 bits wide, so 0 is the only way to write 2^32.
            Field::GlobalDim(d) => {
                let d = dimension(d, 5, "global_dim")?;
                put(
                    bytes,
                    at::DIMS + 4 * d,
                    (value as u32).wrapping_sub(1).to_le_bytes(),
                );
            }
            Field::GlobalStride(d) => {
                let d = dimension(d, 4, "global_stride")?;
                put(bytes, at::STRIDES + 8 * d, value.to_le_bytes());
            }
            Field::ElementStride(d) => {
                let d = dimension(d, 5, "element_stride")?;
                bytes[at::ELEMENT_STRIDES + d] = u8::try_from(value).unwrap_or(u8::MAX);
            }
            Field::ElementType if value < ELEMENTS.len() as u64 => {
                bytes[at::ELEMENT] = value as u8;
            }
            Field::ElementType => return refuse("elemtype"),
            Field::InterleaveLayout if value == 0 => bytes[at::INTERLEAVE] = 0,
            Field::InterleaveLayout => return Err(TensorMapError::Interleave),
            Field::SwizzleMode if value <= 3 => bytes[at::SWIZZLE] = value as u8,
            Field::SwizzleMode => return refuse("swizzle_mode"),
            Field::SwizzleAtomicity if value <= 3 => bytes[at::ATOMICITY] = value as u8,
            Field::SwizzleAtomicity => return refuse("swizzle_atomicity"),
            Field::FillMode if value <= 1 => bytes[at::FILL] = value as u8,
            Field::FillMode => return refuse("fill_mode"),
        }
        Ok(())
    }
}

fn decode_mode(bytes: &[u8; MAP_BYTES]) -> Mode {
    let half = |at| u16::from_le_bytes(get(bytes, at));
    match bytes[at::MODE] {
        0 => Mode::Tiled {
            extents: std::array::from_fn(|i| u32::from(half(at::BOX + 2 * i))),
        },
        _ => {
            let corner = |i: usize| half(at::IM2COL + 2 * i) as i16;
            Mode::Im2col(Im2col {
                lower: std::array::from_fn(corner),
                upper: std::array::from_fn(|i| corner(3 + i)),
                channels: half(at::IM2COL + 12).into(),
                pixels: half(at::IM2COL + 14).into(),
            })
        }
    }
}
