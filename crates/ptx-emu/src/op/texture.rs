//! Reads of textures, and moves between registers and surfaces.

use super::{Addr, SlotList};
use crate::texture::{Sampling, Shape};

/// `tex`, `tld4`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextureRead {
    pub sampling: Sampling,
    /// The texture object.
    pub handle: Addr,
    /// 32-bit slots.
    pub coordinates: SlotList,
    /// Four channels.
    pub d: SlotList,
}

/// What an access outside a surface does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Ends the kernel.
    Trap,
    /// Goes to the nearest texel.
    Clamp,
    /// Reads zeros, writes nothing.
    Zero,
}

/// `suld.b`, `sust.b`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SurfaceMove {
    pub store: bool,
    pub shape: Shape,
    pub outside: Outside,
    /// Bytes of each register.
    pub width: u8,
    /// The surface object.
    pub handle: Addr,
    /// 32-bit slots; the first of a row is in bytes.
    pub coordinates: SlotList,
    pub regs: SlotList,
}
