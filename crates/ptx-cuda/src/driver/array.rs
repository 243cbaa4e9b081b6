//! Arrays, texture and surface objects.

use std::ffi::{c_int, c_uint, c_void};

use ptx_emu::Channel;

use crate::array::{Array, Reading, Resource, Texel};
use crate::c::put;
use crate::call::{driver, refuse_part};
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::memory::Rows;
use crate::stream::submit;
use crate::work::{Copy, Work};

/// `CUDA_ARRAY_DESCRIPTOR`
#[repr(C)]
struct ArrayDesc {
    width: usize,
    height: usize,
    format: c_uint,
    channels: c_uint,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[repr(C)]
struct ArrayDesc3D {
    extent: [usize; 3],
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

/// `CUDA_RESOURCE_DESC`, whose union begins with an address in every form.
#[repr(C)]
struct ResourceDesc {
    kind: c_uint,
    first: u64,
    format: c_uint,
    channels: c_uint,
    /// Bytes, or width, height and pitch.
    sizes: [usize; 3],
}

/// `CUDA_TEXTURE_DESC`
#[repr(C)]
struct TextureDesc {
    edges: [c_int; 3],
    filter: c_int,
    flags: c_uint,
    anisotropy: c_uint,
    mipmap_filter: c_int,
    mipmap_levels: [f32; 3],
    border: [f32; 4],
}

const NORMALIZED: c_uint = 2;
const SRGB: c_uint = 0x10;

fn texel(format: c_uint, channels: c_uint) -> Result<Texel> {
    let (channel, bits) = match format {
        1 => (Channel::Unsigned, 8),
        2 => (Channel::Unsigned, 16),
        3 => (Channel::Unsigned, 32),
        8 => (Channel::Signed, 8),
        9 => (Channel::Signed, 16),
        10 => (Channel::Signed, 32),
        16 => (Channel::Float, 16),
        32 => (Channel::Float, 32),
        _ => return Err(refuse_part("an array", &format!("format {format}"))),
    };
    crate::array::checked((channel, bits, channels))
}

fn format((channel, bits, _): Texel) -> c_uint {
    let size = bits.trailing_zeros() - 3;
    match channel {
        Channel::Unsigned => 1 + size,
        Channel::Signed => 8 + size,
        Channel::Float => bits,
    }
}

impl ResourceDesc {
    fn resource(&self) -> Result<Resource> {
        let [size, height, pitch] = self.sizes;
        let texel = || texel(self.format, self.channels);
        match self.kind {
            0 => Ok(Resource::Array(self.first as usize)),
            2 => Ok(Resource::Linear(self.first, texel()?, size as u64)),
            3 => Ok(Resource::Planar(
                self.first,
                texel()?,
                [size as u32, height as u32],
                pitch as u64,
            )),
            _ => Err(refuse_part("cuTexObjectCreate", "a mipmapped array")),
        }
    }
}

pub(super) fn array(handle: usize) -> Result<Array> {
    in_context()?.arrays.all.get(handle).copied()
}

/// A copy between some of an array's first row and other memory.
fn row(handle: usize, x: usize, other: u64, bytes: usize, into: bool) -> Result {
    let extent = [bytes as u64, 1, 1];
    let row = array(handle)?.rows([x as u64, 0, 0], extent)?;
    let (to, from) = match into {
        true => (row, Rows::at(other)),
        false => (Rows::at(other), row),
    };
    submit(in_context()?, 0, Work::Copy(Copy { to, from, extent }))
}

driver! {
    fn cuArrayCreate_v2(to: *mut usize, desc: *const ArrayDesc) {
        let desc = desc.as_ref().ok_or(Error::INVALID_VALUE)?;
        let texel = texel(desc.format, desc.channels)?;
        let asked = [desc.width, desc.height, 0];
        put(to, in_context()?.make_array(texel, asked, 0)?)
    }

    fn cuArray3DCreate_v2(to: *mut usize, desc: *const ArrayDesc3D) {
        let desc = desc.as_ref().ok_or(Error::INVALID_VALUE)?;
        let texel = texel(desc.format, desc.channels)?;
        put(to, in_context()?.make_array(texel, desc.extent, desc.flags)?)
    }

    fn cuArrayGetDescriptor_v2(desc: *mut ArrayDesc, handle: usize) {
        let array = array(handle)?;
        put(desc, ArrayDesc {
            width: array.asked[0],
            height: array.asked[1],
            format: format(array.texel),
            channels: array.texel.2,
        })
    }

    fn cuArray3DGetDescriptor_v2(desc: *mut ArrayDesc3D, handle: usize) {
        let array = array(handle)?;
        put(desc, ArrayDesc3D {
            extent: array.asked,
            format: format(array.texel),
            channels: array.texel.2,
            flags: array.flags,
        })
    }

    fn cuArrayDestroy(array: usize) {
        in_context()?.free_array(array)
    }

    fn cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds(to: usize, x: usize, from: u64, bytes: usize) {
        row(to, x, from, bytes, true)
    }

    fn cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds(to: usize, x: usize, from: u64, bytes: usize) {
        row(to, x, from, bytes, true)
    }

    fn cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds(to: u64, from: usize, x: usize, bytes: usize) {
        row(from, x, to, bytes, false)
    }

    fn cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds(to: u64, from: usize, x: usize, bytes: usize) {
        row(from, x, to, bytes, false)
    }

    fn cuTexObjectCreate(
        object: *mut u64,
        resource: *const ResourceDesc,
        texture: *const TextureDesc,
        view: *const c_void,
    ) {
        let resource = resource.as_ref().ok_or(Error::INVALID_VALUE)?.resource()?;
        let desc = texture.as_ref().ok_or(Error::INVALID_VALUE)?;
        if !view.is_null() {
            return Err(refuse_part("cuTexObjectCreate", "a resource view"));
        }
        if desc.flags & SRGB != 0 {
            return Err(refuse_part("cuTexObjectCreate", "sRGB"));
        }
        let reading = Reading {
            edges: desc.edges,
            filter: desc.filter,
            normalized: desc.flags & NORMALIZED != 0,
            border: desc.border,
        };
        put(object, in_context()?.make_object(resource, reading)?)
    }

    fn cuTexObjectDestroy(object: u64) {
        in_context()?.free_object(object)
    }

    fn cuSurfObjectCreate(object: *mut u64, resource: *const ResourceDesc) {
        let resource = resource.as_ref().ok_or(Error::INVALID_VALUE)?.resource()?;
        put(object, in_context()?.make_object(resource, Reading::PLAIN)?)
    }

    fn cuSurfObjectDestroy(object: u64) {
        in_context()?.free_object(object)
    }
}
