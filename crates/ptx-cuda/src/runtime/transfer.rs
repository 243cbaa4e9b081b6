//! Copies and fills.

use std::ffi::c_int;

use super::memory::{Extent, PitchedPtr};
use crate::array::Array;
use crate::call::runtime;
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::memory::Rows;
use crate::stream::submit;
use crate::work::{Copy, Fill, Work};

/// `cudaPos`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Position {
    x: usize,
    y: usize,
    z: usize,
}

/// `cudaMemcpy3DParms`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy3D {
    from_array: usize,
    from_position: Position,
    from: PitchedPtr,
    to_array: usize,
    to_position: Position,
    to: PitchedPtr,
    extent: Extent,
    pub(super) kind: c_int,
}

impl Copy3D {
    pub(super) fn copy(&self) -> Result<Copy> {
        let array = |handle: usize| match handle {
            0 => Ok(None),
            _ => in_runtime()?.arrays.all.get(handle).copied().map(Some),
        };
        let (to, from) = (array(self.to_array)?, array(self.from_array)?);
        let texel = |array: &Option<Array>| array.map_or(1, |array| array.texel_bytes());
        // If an array takes part, a width is in texels.
        let width = (self.extent.width as u64).checked_mul(texel(&to).max(texel(&from)));
        let extent = [
            width.ok_or(Error::INVALID_VALUE)?,
            self.extent.height as u64,
            self.extent.depth as u64,
        ];
        Ok(Copy {
            to: side(to, &self.to, &self.to_position, extent)?,
            from: side(from, &self.from, &self.from_position, extent)?,
            extent,
        })
    }
}

/// One side of a copy: of an array, or of memory.
fn side(
    array: Option<Array>,
    memory: &PitchedPtr,
    at: &Position,
    extent: [u64; 3],
) -> Result<Rows> {
    let [x, y, z] = [at.x, at.y, at.z].map(|n| n as u64);
    match array {
        Some(array) => {
            let x = x.checked_mul(array.texel_bytes());
            array.rows([x.ok_or(Error::INVALID_VALUE)?, y, z], extent)
        }
        None => Rows::from(
            memory.ptr,
            [x, y, z],
            memory.pitch as u64,
            memory.height as u64,
        ),
    }
}

/// Copies in a stream, in the declared direction.
pub(super) fn transfer(copy: Copy, kind: c_int, stream: usize) -> Result {
    let device = in_runtime()?;
    if copy.extent.contains(&0) {
        return device.streams.get(stream).map(drop);
    }
    device.check_direction(kind, copy.to.start, copy.from.start)?;
    submit(device, stream, Work::Copy(copy))
}

/// Rows with a pitch.
pub(super) fn pitched(start: u64, pitch: usize) -> Rows {
    Rows::planar(start, pitch as u64)
}

fn planar(to: (u64, usize), from: (u64, usize), width: usize, height: usize) -> Result<Copy> {
    if width > to.1 || width > from.1 {
        return Err(Error::INVALID_PITCH);
    }
    Ok(Copy {
        to: pitched(to.0, to.1),
        from: pitched(from.0, from.1),
        extent: [width as u64, height as u64, 1],
    })
}

pub(super) fn fill(ptr: u64, value: c_int, bytes: usize) -> Fill {
    Fill {
        to: Rows::at(ptr),
        value: value as u32,
        width: 1,
        extent: [bytes as u64, 1, 1],
    }
}

fn fill_planar(ptr: u64, pitch: usize, value: c_int, width: usize, height: usize) -> Fill {
    Fill {
        to: pitched(ptr, pitch),
        extent: [width as u64, height as u64, 1],
        ..fill(ptr, value, 0)
    }
}

fn fill_cube(to: PitchedPtr, value: c_int, extent: Extent) -> Result<Fill> {
    Ok(Fill {
        to: Rows::from(to.ptr, [0; 3], to.pitch as u64, to.height as u64)?,
        extent: [extent.width, extent.height, extent.depth].map(|n| n as u64),
        ..fill(to.ptr, value, 0)
    })
}

fn set(work: Fill, stream: usize) -> Result {
    let device = in_runtime()?;
    match work.extent.contains(&0) {
        true => device.streams.get(stream).map(drop),
        false => submit(device, stream, Work::Fill(work)),
    }
}

runtime! {
    fn cudaMemcpy | cudaMemcpy_ptds(to: u64, from: u64, bytes: usize, kind: c_int) {
        transfer(Copy::flat(to, from, bytes as u64), kind, 0)
    }

    fn cudaMemcpyAsync | cudaMemcpyAsync_ptsz(
        to: u64,
        from: u64,
        bytes: usize,
        kind: c_int,
        stream: usize,
    ) {
        transfer(Copy::flat(to, from, bytes as u64), kind, stream)
    }

    fn cudaMemcpyPeer | cudaMemcpyPeer_ptds(
        to: u64,
        to_device: c_int,
        from: u64,
        from_device: c_int,
        bytes: usize,
    ) {
        match (to_device, from_device) {
            (0, 0) => transfer(Copy::flat(to, from, bytes as u64), 3, 0),
            _ => Err(Error::INVALID_DEVICE),
        }
    }

    fn cudaMemcpyPeerAsync | cudaMemcpyPeerAsync_ptsz(
        to: u64,
        to_device: c_int,
        from: u64,
        from_device: c_int,
        bytes: usize,
        stream: usize,
    ) {
        match (to_device, from_device) {
            (0, 0) => transfer(Copy::flat(to, from, bytes as u64), 3, stream),
            _ => Err(Error::INVALID_DEVICE),
        }
    }

    fn cudaMemcpy2D | cudaMemcpy2D_ptds(
        to: u64,
        to_pitch: usize,
        from: u64,
        from_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        transfer(planar((to, to_pitch), (from, from_pitch), width, height)?, kind, 0)
    }

    fn cudaMemcpy2DAsync | cudaMemcpy2DAsync_ptsz(
        to: u64,
        to_pitch: usize,
        from: u64,
        from_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: usize,
    ) {
        transfer(planar((to, to_pitch), (from, from_pitch), width, height)?, kind, stream)
    }

    fn cudaMemcpy3D | cudaMemcpy3D_ptds(copy: *const Copy3D) {
        let copy = copy.as_ref().ok_or(Error::INVALID_VALUE)?;
        transfer(copy.copy()?, copy.kind, 0)
    }

    fn cudaMemcpy3DAsync | cudaMemcpy3DAsync_ptsz(copy: *const Copy3D, stream: usize) {
        let copy = copy.as_ref().ok_or(Error::INVALID_VALUE)?;
        transfer(copy.copy()?, copy.kind, stream)
    }

    fn cudaMemset | cudaMemset_ptds(ptr: u64, value: c_int, bytes: usize) {
        set(fill(ptr, value, bytes), 0)
    }

    fn cudaMemsetAsync | cudaMemsetAsync_ptsz(
        ptr: u64,
        value: c_int,
        bytes: usize,
        stream: usize,
    ) {
        set(fill(ptr, value, bytes), stream)
    }

    fn cudaMemset2D | cudaMemset2D_ptds(
        ptr: u64,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
    ) {
        set(fill_planar(ptr, pitch, value, width, height), 0)
    }

    fn cudaMemset2DAsync | cudaMemset2DAsync_ptsz(
        ptr: u64,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        set(fill_planar(ptr, pitch, value, width, height), stream)
    }

    fn cudaMemset3D | cudaMemset3D_ptds(to: PitchedPtr, value: c_int, extent: Extent) {
        set(fill_cube(to, value, extent)?, 0)
    }

    fn cudaMemset3DAsync | cudaMemset3DAsync_ptsz(
        to: PitchedPtr,
        value: c_int,
        extent: Extent,
        stream: usize,
    ) {
        set(fill_cube(to, value, extent)?, stream)
    }
}
