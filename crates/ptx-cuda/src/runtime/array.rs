//! Arrays, texture and surface objects.

use std::ffi::{c_int, c_uint};

use ptx_emu::Channel;

use super::memory::Extent;
use super::transfer::{pitched, transfer};
use crate::array::{Array, Reading, Resource, Texel};
use crate::c::{offer, put};
use crate::call::{refuse_part, runtime};
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::memory::Rows;
use crate::work::Copy;

/// `cudaChannelFormatDesc`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelDesc {
    bits: [c_int; 4],
    kind: c_int,
}

impl ChannelDesc {
    fn texel(&self) -> Result<Texel> {
        let channel = match self.kind {
            0 => Channel::Signed,
            1 => Channel::Unsigned,
            2 => Channel::Float,
            _ => return Err(Error::INVALID_CHANNEL),
        };
        let channels = self.bits.iter().take_while(|&&bits| bits != 0).count();
        let even = self.bits[..channels]
            .iter()
            .all(|&bits| bits == self.bits[0]);
        match even {
            true => crate::array::checked((channel, self.bits[0] as u32, channels as u32)),
            false => Err(Error::INVALID_CHANNEL),
        }
    }

    fn of((channel, each, channels): Texel) -> Self {
        let mut bits = [0; 4];
        bits[..channels as usize].fill(each as c_int);
        let kind = match channel {
            Channel::Signed => 0,
            Channel::Unsigned => 1,
            Channel::Float => 2,
        };
        Self { bits, kind }
    }
}

/// `cudaResourceDesc`, whose union begins with an address in every form.
#[repr(C)]
struct ResourceDesc {
    kind: c_int,
    first: u64,
    channels: ChannelDesc,
    /// Bytes, or width, height and pitch.
    sizes: [usize; 3],
}

impl ResourceDesc {
    fn resource(&self) -> Result<Resource> {
        let [size, height, pitch] = self.sizes;
        match self.kind {
            0 => Ok(Resource::Array(self.first as usize)),
            2 => Ok(Resource::Linear(
                self.first,
                self.channels.texel()?,
                size as u64,
            )),
            3 => Ok(Resource::Planar(
                self.first,
                self.channels.texel()?,
                [size as u32, height as u32],
                pitch as u64,
            )),
            _ => Err(refuse_part("cudaCreateTextureObject", "a mipmapped array")),
        }
    }
}

/// `cudaTextureDesc`
#[repr(C)]
struct TextureDesc {
    edges: [c_int; 3],
    filter: c_int,
    read_mode: c_int,
    srgb: c_int,
    border: [f32; 4],
    normalized: c_int,
}

fn array(handle: usize) -> Result<Array> {
    in_runtime()?.arrays.all.get(handle).copied()
}

fn into(to: usize, x: usize, y: usize, from: Rows, extent: [usize; 2]) -> Result<Copy> {
    let [width, height] = extent.map(|n| n as u64);
    let extent = [width, height, 1];
    let to = array(to)?.rows([x as u64, y as u64, 0], extent)?;
    Ok(Copy { to, from, extent })
}

fn out_of(from: usize, x: usize, y: usize, to: Rows, extent: [usize; 2]) -> Result<Copy> {
    let copy = into(from, x, y, to, extent)?;
    Ok(Copy {
        to,
        from: copy.to,
        ..copy
    })
}

/// Bytes that continue from row to row of an array.
fn whole_rows(handle: usize, x: usize, bytes: usize) -> Result<[usize; 2]> {
    let array = array(handle)?;
    let row = array.asked[0] * array.texel_bytes() as usize;
    match (x, bytes <= row) {
        (_, true) => Ok([bytes, 1]),
        (0, false) if bytes.is_multiple_of(row) => Ok([row, bytes / row]),
        _ => Err(Error::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_int,
) -> ChannelDesc {
    ChannelDesc {
        bits: [x, y, z, w],
        kind,
    }
}

runtime! {
    fn cudaMallocArray(
        to: *mut usize,
        desc: *const ChannelDesc,
        width: usize,
        height: usize,
        flags: c_uint,
    ) {
        let texel = desc.as_ref().ok_or(Error::INVALID_VALUE)?.texel()?;
        put(to, in_runtime()?.make_array(texel, [width, height, 0], flags)?)
    }

    fn cudaMalloc3DArray(
        to: *mut usize,
        desc: *const ChannelDesc,
        extent: Extent,
        flags: c_uint,
    ) {
        let texel = desc.as_ref().ok_or(Error::INVALID_VALUE)?.texel()?;
        let asked = [extent.width, extent.height, extent.depth];
        put(to, in_runtime()?.make_array(texel, asked, flags)?)
    }

    fn cudaFreeArray(array: usize) {
        match array {
            0 => Ok(()),
            _ => in_runtime()?.free_array(array),
        }
    }

    fn cudaArrayGetInfo(
        desc: *mut ChannelDesc,
        extent: *mut Extent,
        flags: *mut c_uint,
        handle: usize,
    ) {
        let array = array(handle)?;
        let [width, height, depth] = array.asked;
        offer(desc, ChannelDesc::of(array.texel));
        offer(extent, Extent { width, height, depth });
        offer(flags, array.flags);
        Ok(())
    }

    fn cudaGetChannelDesc(desc: *mut ChannelDesc, handle: usize) {
        put(desc, ChannelDesc::of(array(handle)?.texel))
    }

    fn cudaMemcpy2DToArray | cudaMemcpy2DToArray_ptds(
        to: usize,
        x: usize,
        y: usize,
        from: u64,
        pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        transfer(into(to, x, y, pitched(from, pitch), [width, height])?, kind, 0)
    }

    fn cudaMemcpy2DToArrayAsync | cudaMemcpy2DToArrayAsync_ptsz(
        to: usize,
        x: usize,
        y: usize,
        from: u64,
        pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: usize,
    ) {
        transfer(into(to, x, y, pitched(from, pitch), [width, height])?, kind, stream)
    }

    fn cudaMemcpy2DFromArray | cudaMemcpy2DFromArray_ptds(
        to: u64,
        pitch: usize,
        from: usize,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        transfer(out_of(from, x, y, pitched(to, pitch), [width, height])?, kind, 0)
    }

    fn cudaMemcpy2DFromArrayAsync | cudaMemcpy2DFromArrayAsync_ptsz(
        to: u64,
        pitch: usize,
        from: usize,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: usize,
    ) {
        transfer(out_of(from, x, y, pitched(to, pitch), [width, height])?, kind, stream)
    }

    fn cudaMemcpyToArray | cudaMemcpyToArray_ptds(
        to: usize,
        x: usize,
        y: usize,
        from: u64,
        bytes: usize,
        kind: c_int,
    ) {
        let extent = whole_rows(to, x, bytes)?;
        transfer(into(to, x, y, pitched(from, extent[0]), extent)?, kind, 0)
    }

    fn cudaMemcpyFromArray | cudaMemcpyFromArray_ptds(
        to: u64,
        from: usize,
        x: usize,
        y: usize,
        bytes: usize,
        kind: c_int,
    ) {
        let extent = whole_rows(from, x, bytes)?;
        transfer(out_of(from, x, y, pitched(to, extent[0]), extent)?, kind, 0)
    }

    fn cudaCreateTextureObject(
        object: *mut u64,
        resource: *const ResourceDesc,
        texture: *const TextureDesc,
        view: *const u8,
    ) {
        let resource = resource.as_ref().ok_or(Error::INVALID_VALUE)?.resource()?;
        let desc = texture.as_ref().ok_or(Error::INVALID_VALUE)?;
        if !view.is_null() {
            return Err(refuse_part("cudaCreateTextureObject", "a resource view"));
        }
        if desc.srgb != 0 {
            return Err(refuse_part("cudaCreateTextureObject", "sRGB"));
        }
        let reading = Reading {
            edges: desc.edges,
            filter: desc.filter,
            normalized: desc.normalized != 0,
            border: desc.border,
        };
        put(object, in_runtime()?.make_object(resource, reading)?)
    }

    fn cudaDestroyTextureObject(object: u64) {
        in_runtime()?.free_object(object)
    }

    fn cudaCreateSurfaceObject(object: *mut u64, resource: *const ResourceDesc) {
        let resource = resource.as_ref().ok_or(Error::INVALID_VALUE)?.resource()?;
        put(object, in_runtime()?.make_object(resource, Reading::PLAIN)?)
    }

    fn cudaDestroySurfaceObject(object: u64) {
        in_runtime()?.free_object(object)
    }
}
