//! Tensor maps: what a bulk tensor copy knows about a tensor in global memory.
//!
//! The driver's 128-byte format is opaque and there is no driver here, so the emulator has its
//! own; it is what `tensormap.replace` edits and what copies decode. Construction checks the
//! rules of the driver's encoder, decoding checks them again because kernels may edit maps.

mod copy;
mod encoding;
mod im2col;

use thiserror::Error;

use super::Swizzle;

pub(crate) use copy::Rows;
pub(crate) use encoding::Field;
pub use im2col::Im2col;

/// Bytes of an encoded map.
pub(crate) const MAP_BYTES: usize = 128;
/// Alignment of an encoded map.
pub(crate) const MAP_ALIGN: u64 = 64;

/// Element type of a tensor in global memory.
#[allow(missing_docs, reason = "named as CUDA names them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapElement {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F32Ftz,
    F64,
    Bf16,
    Tf32,
    Tf32Ftz,
    /// `16U4_ALIGN8B`: packed 4-bit elements, two to a byte in both memories.
    U4,
    /// `16U4_ALIGN16B`: packed in global memory; in shared memory sixteen have 16 bytes, of which
    /// the first 8 are theirs.
    U4Align16,
    /// `16U6_ALIGN16B`: packed 6-bit elements in global memory; in shared memory sixteen have 16
    /// bytes, of which the first 12 are theirs.
    U6Align16,
}

impl MapElement {
    /// Bytes of sixteen elements in global memory, where shared memory gives them 16.
    pub(crate) const fn packed_chunk(self) -> Option<usize> {
        match self {
            Self::U4Align16 => Some(8),
            Self::U6Align16 => Some(12),
            _ => None,
        }
    }

    /// Bits of one element in global memory.
    pub(crate) const fn bits(self) -> u64 {
        match self {
            Self::U4 | Self::U4Align16 => 4,
            Self::U6Align16 => 6,
            Self::U8 => 8,
            Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::U32 | Self::S32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 32,
            Self::U64 | Self::S64 | Self::F64 => 64,
        }
    }

    const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16
                | Self::Bf16
                | Self::F32
                | Self::F32Ftz
                | Self::Tf32
                | Self::Tf32Ftz
                | Self::F64
        )
    }

    /// Whether loads round the element on its way.
    const fn is_rounded(self) -> bool {
        matches!(self, Self::Tf32 | Self::Tf32Ftz)
    }
}

/// The half-words out-of-bounds elements of every type read as under NaN fill.
pub(crate) const OUT_OF_BOUNDS: u16 = 0x7ff7;

/// What out-of-bounds elements read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fill {
    /// 0
    #[default]
    Zero,
    /// NaN; floats only.
    Nan,
}

/// How the box of a copy is cut out of the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// A box of these extents in elements, dimension 0 first.
    Tiled { extents: [u32; 5] },
    /// Convolution windows.
    Im2col(Im2col),
}

/// A tensor in global memory and the box copies take from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorMap {
    element: MapElement,
    rank: usize,
    address: u64,
    /// Extents in elements, dimension 0 (contiguous) first; 1 beyond the rank.
    dims: [u64; 5],
    /// Byte strides of dimensions 1 to 4.
    strides: [u64; 4],
    /// Traversal strides; that of dimension 0 is ignored, as by the hardware.
    element_strides: [u32; 5],
    mode: Mode,
    swizzle: Swizzle,
    fill: Fill,
}

/// The arguments of [`TensorMap::tiled`], slices in order of dimension, contiguous one first.
#[derive(Debug, Clone, Copy)]
pub struct Tiled<'a> {
    /// Element type.
    pub element: MapElement,
    /// Where the tensor starts.
    pub address: u64,
    /// Extents in elements.
    pub dims: &'a [u64],
    /// Byte strides of dimensions 1 and up: one fewer than `dims`.
    pub strides: &'a [u64],
    /// Extents of the box in elements.
    pub box_dims: &'a [u32],
    /// Ones unless the box skips elements.
    pub element_strides: &'a [u32],
    /// How rows of the box lie in shared memory.
    pub swizzle: Swizzle,
    /// What is read outside of the tensor.
    pub fill: Fill,
}

/// The rule a tensor map breaks.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TensorMapError {
    #[error("these 128 bytes are not a tensor map: make one on the host and pass its address")]
    NotAMap,
    #[error("tensor rank {0} is not between 1 and 5")]
    Rank(usize),
    #[error("tensor map of rank {rank} needs {expected} {what}, not {got}")]
    Count {
        rank: usize,
        what: &'static str,
        expected: usize,
        got: usize,
    },
    #[error("tensor address {0:#x} is not a multiple of 16 bytes")]
    Address(u64),
    #[error("extent {extent} of dimension {dimension} is not between 1 and 2^32")]
    Extent { dimension: usize, extent: u64 },
    #[error("stride {stride} of dimension {dimension} is not a multiple of 16 bytes below 2^40")]
    Stride { dimension: usize, stride: u64 },
    #[error("box extent {extent} of dimension {dimension} is not between 1 and 256")]
    Box { dimension: usize, extent: u32 },
    #[error("element stride {stride} of dimension {dimension} is not between 1 and 8")]
    ElementStride { dimension: usize, stride: u32 },
    #[error("the box's inner extent of {bytes} bytes is not a multiple of 16")]
    InnerBytes { bytes: u64 },
    #[error(
        "the box's inner extent of {bytes} bytes exceeds the {span} bytes of its {swizzle:?} swizzle: use a narrower box or a wider swizzle"
    )]
    SwizzleSpan {
        bytes: u64,
        span: u32,
        swizzle: Swizzle,
    },
    #[error("out-of-bounds elements of type {0:?} cannot be NaN: fill with zero")]
    Fill(MapElement),
    #[error("16U4_ALIGN16B and 16U6_ALIGN16B {0}")]
    Padded(&'static str),
    #[error("4-bit elements come in pairs: the innermost extent {0} is odd")]
    OddNibbles(u64),
    #[error("tile::gather4 and scatter4 need a two-dimensional map of boxes with one row")]
    Rows4,
    #[error("tensor map field {field} cannot hold {value:#x}")]
    Code { field: &'static str, value: u64 },
    #[error("interleaved tensor layouts are not supported: use interleave none")]
    Interleave,
    #[error("{0}")]
    Im2col(&'static str),
    #[error(
        "the innermost coordinate {coordinate} begins {bits} bits into a row, which is not a multiple of 16 bytes"
    )]
    Unaligned { coordinate: i32, bits: i64 },
    #[error(
        "a box is stored at {coordinate} in dimension {dimension}: stores take no negative coordinates"
    )]
    NegativeStore { dimension: usize, coordinate: i32 },
    #[error("a {rank}-dimensional tensor needs {rank} coordinates, not {got}")]
    Coordinates { rank: usize, got: usize },
    #[error("the instruction copies in {wanted} mode but the tensor map is for {actual}")]
    Mode {
        wanted: &'static str,
        actual: &'static str,
    },
}

impl TensorMap {
    /// A map for copies of boxes, under the rules of `cuTensorMapEncodeTiled`.
    pub fn tiled(parts: Tiled<'_>) -> Result<Self, TensorMapError> {
        let rank = parts.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(TensorMapError::Rank(rank));
        }
        let counts = [
            ("strides", rank - 1, parts.strides.len()),
            ("box extents", rank, parts.box_dims.len()),
            ("element strides", rank, parts.element_strides.len()),
        ];
        for (what, expected, got) in counts {
            if expected != got {
                return Err(TensorMapError::Count {
                    rank,
                    what,
                    expected,
                    got,
                });
            }
        }
        let mut map = Self {
            element: parts.element,
            rank,
            address: parts.address,
            dims: [1; 5],
            strides: [0; 4],
            element_strides: [1; 5],
            mode: Mode::Tiled { extents: [1; 5] },
            swizzle: parts.swizzle,
            fill: parts.fill,
        };
        let mut extents = [1; 5];
        map.dims[..rank].copy_from_slice(parts.dims);
        map.strides[..rank - 1].copy_from_slice(parts.strides);
        map.element_strides[..rank].copy_from_slice(parts.element_strides);
        extents[..rank].copy_from_slice(parts.box_dims);
        map.mode = Mode::Tiled { extents };
        map.validate()?;
        Ok(map)
    }

    /// Every rule a map must keep, however it was made.
    fn validate(&self) -> Result<(), TensorMapError> {
        if !(1..=5).contains(&self.rank) {
            return Err(TensorMapError::Rank(self.rank));
        }
        if !self.address.is_multiple_of(16) {
            return Err(TensorMapError::Address(self.address));
        }
        for (dimension, &extent) in self.dims.iter().enumerate().take(self.rank) {
            if !(1..=1 << 32).contains(&extent) {
                return Err(TensorMapError::Extent { dimension, extent });
            }
        }
        for (i, &stride) in self.strides.iter().enumerate().take(self.rank - 1) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(TensorMapError::Stride {
                    dimension: i + 1,
                    stride,
                });
            }
        }
        for (dimension, &stride) in self.element_strides.iter().enumerate().take(self.rank) {
            if !(1..=8).contains(&stride) {
                return Err(TensorMapError::ElementStride { dimension, stride });
            }
        }
        if self.fill == Fill::Nan && !self.element.is_float() {
            return Err(TensorMapError::Fill(self.element));
        }
        match &self.mode {
            Mode::Tiled { extents } => {
                for (dimension, &extent) in extents.iter().enumerate().take(self.rank) {
                    if !(1..=256).contains(&extent) {
                        return Err(TensorMapError::Box { dimension, extent });
                    }
                }
            }
            Mode::Im2col(window) => window.validate(self)?,
        }
        self.validate_row()
    }

    /// The rules of the types whose elements shared memory spaces out.
    fn validate_padded(&self) -> Result<(), TensorMapError> {
        let strides = &self.strides[..self.rank - 1];
        let reason = match () {
            _ if !self.address.is_multiple_of(32) => "need an address that is a multiple of 32",
            _ if strides.iter().any(|s| !s.is_multiple_of(32)) => {
                "need strides that are multiples of 32 bytes"
            }
            _ if !self.dims[0].is_multiple_of(128) => "need an inner extent of whole 128 elements",
            _ if self.row_elements() != 128 => "need boxes whose inner extent is 128",
            _ if !matches!(self.swizzle, Swizzle::None | Swizzle::B128) => {
                "know no swizzle but that of 128 bytes"
            }
            _ => return Ok(()),
        };
        Err(TensorMapError::Padded(reason))
    }

    fn validate_row(&self) -> Result<(), TensorMapError> {
        if self.element.packed_chunk().is_some() {
            self.validate_padded()?;
        }
        if self.element == MapElement::U4 && !self.dims[0].is_multiple_of(2) {
            return Err(TensorMapError::OddNibbles(self.dims[0]));
        }
        let bits = match self.element.packed_chunk() {
            Some(_) => u64::from(self.row_elements()) * 8,
            None => u64::from(self.row_elements()) * self.element.bits(),
        };
        let bytes = bits.div_ceil(8);
        if !bits.is_multiple_of(128) {
            return Err(TensorMapError::InnerBytes { bytes });
        }
        let span = self.swizzle.span();
        if self.swizzle != Swizzle::None && bytes > u64::from(span) {
            return Err(TensorMapError::SwizzleSpan {
                bytes,
                span,
                swizzle: self.swizzle,
            });
        }
        Ok(())
    }

    pub(crate) fn element(&self) -> MapElement {
        self.element
    }

    pub(crate) fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// Elements in a row of the box.
    fn row_elements(&self) -> u32 {
        match &self.mode {
            Mode::Tiled { extents } => extents[0],
            Mode::Im2col(window) => window.channels,
        }
    }

    /// Bytes of a row of the box in shared memory: as many as in global memory, except where its
    /// elements are spaced out.
    pub(crate) fn row_bytes(&self) -> u32 {
        match self.element.packed_chunk() {
            Some(_) => self.row_elements(),
            None => self.packed_row(),
        }
    }

    /// Bytes of a row of the box in global memory.
    fn packed_row(&self) -> u32 {
        (u64::from(self.row_elements()) * self.element.bits() / 8) as u32
    }

    /// The map of the four rows that `tile::gather4` and `tile::scatter4` move.
    pub(crate) fn of_four_rows(&self) -> Result<Self, TensorMapError> {
        match &self.mode {
            Mode::Tiled { extents } if self.rank == 2 && extents[1] == 1 => {
                let mut four = *self;
                let mut extents = *extents;
                extents[1] = 4;
                four.mode = Mode::Tiled { extents };
                four.element_strides[1] = 1;
                Ok(four)
            }
            _ => Err(TensorMapError::Rows4),
        }
    }

    /// Rows of the box.
    pub(crate) fn row_count(&self) -> u32 {
        match &self.mode {
            Mode::Tiled { extents } => (1..self.rank)
                .map(|d| extents[d].div_ceil(self.element_strides[d]))
                .product(),
            Mode::Im2col(window) => window.pixels,
        }
    }

    /// Bytes from one row of the box to the next in shared memory: a row narrower than the
    /// swizzle is given its whole span, so that the pattern stays whole.
    pub(crate) fn row_pitch(&self) -> u32 {
        match self.swizzle {
            Swizzle::None => self.row_bytes(),
            swizzle => self.row_bytes().max(swizzle.span()),
        }
    }

    /// Shared bytes from the box's first to its last, padding included.
    pub(crate) fn shared_bytes(&self) -> u32 {
        self.row_pitch() * (self.row_count() - 1) + self.row_bytes()
    }

    /// Bytes of the box: what `complete_tx` counts, out-of-bounds included but not the gaps between
    /// elements that are spaced out.
    pub(crate) fn box_bytes(&self) -> u32 {
        self.packed_row() * self.row_count()
    }
}

#[cfg(test)]
mod tests;
