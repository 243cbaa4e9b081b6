//! Arrays, and the texture and surface objects through which kernels read them.
//!
//! An array is rows of texels in device memory. An object is the address of a description there, in
//! the emulator's format.

use std::collections::HashSet;

use ptx_emu::{Channel, DevicePtr, Edge, Texture};

use crate::error::{Error, Result};
use crate::handles::Handles;
use crate::memory::{Extent, Kind, Rows};
use crate::state::Device;

/// The distance of rows of an array is a multiple of this.
const PITCH: u64 = 512;

/// Type, bits and number of channels.
pub(crate) type Texel = (Channel, u32, u32);

fn texel_bytes((_, bits, channels): Texel) -> u64 {
    u64::from(bits / 8 * channels)
}

/// A type that textures can have.
pub(crate) fn checked(texel: Texel) -> Result<Texel> {
    let (channel, bits, channels) = texel;
    let known = match channel {
        Channel::Float => matches!(bits, 16 | 32),
        _ => matches!(bits, 8 | 16 | 32),
    };
    match known && matches!(channels, 1 | 2 | 4) {
        true => Ok(texel),
        false => Err(Error::INVALID_CHANNEL),
    }
}

/// `cudaArray_t`, `CUarray`
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    data: u64,
    pitch: u64,
    /// Texels, rows and slices as requested: zero for a missing dimension.
    pub(crate) asked: [usize; 3],
    pub(crate) texel: Texel,
    pub(crate) flags: u32,
}

impl Array {
    fn extent(&self) -> [u32; 3] {
        self.asked.map(|n| n.max(1) as u32)
    }

    /// Some of its bytes, from this position on.
    pub(crate) fn rows(&self, at: [u64; 3], extent: Extent) -> Result<Rows> {
        let [width, height, depth] = self.extent().map(u64::from);
        let whole = [width * self.texel_bytes(), height, depth];
        let ends = |i: usize| at[i].checked_add(extent[i]);
        if (0..3).any(|i| ends(i).is_none_or(|end| end > whole[i])) {
            return Err(Error::INVALID_VALUE);
        }
        Rows::from(self.data, at, self.pitch, height)
    }

    pub(crate) fn texel_bytes(&self) -> u64 {
        texel_bytes(self.texel)
    }
}

/// The memory that an object reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resource {
    Array(usize),
    /// Address, texel and bytes.
    Linear(u64, Texel, u64),
    /// Address, texel, width and height in texels, bytes from row to row.
    Planar(u64, Texel, [u32; 2], u64),
}

/// How it reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) edges: [i32; 3],
    pub(crate) filter: i32,
    pub(crate) normalized: bool,
    pub(crate) border: [f32; 4],
}

impl Reading {
    /// For surfaces, which have no edge modes.
    pub(crate) const PLAIN: Self = Self {
        edges: [1; 3],
        filter: 0,
        normalized: false,
        border: [0.0; 4],
    };

    fn edges(&self) -> Result<[Edge; 3]> {
        let edge = |code| match code {
            0 => Ok(Edge::Wrap),
            1 => Ok(Edge::Clamp),
            2 => Ok(Edge::Mirror),
            3 => Ok(Edge::Border),
            _ => Err(Error::INVALID_VALUE),
        };
        let [x, y, z] = self.edges;
        Ok([edge(x)?, edge(y)?, edge(z)?])
    }
}

/// The arrays and objects of a program.
#[derive(Default)]
pub(crate) struct Arrays {
    pub(crate) all: Handles<Array>,
    /// Addresses of the objects' descriptions.
    pub(crate) objects: HashSet<u64>,
}

impl Device {
    pub(crate) fn make_array(
        &mut self,
        texel: Texel,
        asked: [usize; 3],
        flags: u32,
    ) -> Result<usize> {
        let texel = checked(texel)?;
        let [width, height, depth] = asked.map(|n| n.max(1) as u64);
        if asked[0] == 0 || asked.iter().any(|&n| u32::try_from(n).is_err()) {
            return Err(Error::INVALID_VALUE);
        }
        let pitch = (width * texel_bytes(texel)).next_multiple_of(PITCH);
        let bytes = pitch
            .checked_mul(height)
            .and_then(|bytes| bytes.checked_mul(depth));
        let data = self.allocate(Kind::Device, bytes.ok_or(Error::OUT_OF_MEMORY)?, 0)?;
        Ok(self.arrays.all.add(Array {
            data,
            pitch,
            asked,
            texel,
            flags,
        }))
    }

    pub(crate) fn free_array(&mut self, array: usize) -> Result {
        let array = self.arrays.all.remove(array)?;
        self.release(array.data)
    }

    /// A texture or surface object.
    pub(crate) fn make_object(&mut self, resource: Resource, reading: Reading) -> Result<u64> {
        let plain = Texture {
            data: DevicePtr(0),
            extent: [1; 3],
            pitch: 0,
            texel: (Channel::Float, 32, 1),
            edges: reading.edges()?,
            filtered: reading.filter == 1,
            normalized: reading.normalized,
            border: reading.border,
        };
        let texture = match resource {
            Resource::Array(array) => {
                let array = self.arrays.all.get(array)?;
                Texture {
                    data: DevicePtr(array.data),
                    extent: array.extent(),
                    pitch: array.pitch,
                    texel: array.texel,
                    ..plain
                }
            }
            Resource::Linear(data, texel, bytes) => Texture {
                data: DevicePtr(data),
                extent: [(bytes / texel_bytes(checked(texel)?)) as u32, 1, 1],
                texel,
                // Beyond its end, linear memory reads as zero.
                edges: [Edge::Border; 3],
                border: [0.0; 4],
                ..plain
            },
            Resource::Planar(data, texel, [width, height], pitch) => Texture {
                data: DevicePtr(data),
                extent: [width, height, 1],
                pitch,
                texel: checked(texel)?,
                ..plain
            },
        };
        if !self.knows(texture.data.0) {
            return Err(Error::INVALID_VALUE);
        }
        let object = self.allocate(Kind::Device, Texture::BYTES as u64, 0)?;
        let written = self.memory.write(DevicePtr(object), &texture.to_bytes());
        written.map_err(|_| Error::UNKNOWN)?;
        self.arrays.objects.insert(object);
        Ok(object)
    }

    pub(crate) fn free_object(&mut self, object: u64) -> Result {
        match self.arrays.objects.remove(&object) {
            true => self.release(object),
            false if object == 0 => Ok(()),
            false => Err(Error::INVALID_VALUE),
        }
    }
}
