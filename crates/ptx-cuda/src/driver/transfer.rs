//! Copies and fills.

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

use crate::call::driver;
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::memory::Rows;
use crate::stream::submit;
use crate::work::{Copy, Fill, Work};

const HOST: c_uint = 1;
const ARRAY: c_uint = 3;

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side2D {
    x: usize,
    y: usize,
    kind: c_uint,
    host: u64,
    device: u64,
    array: usize,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side3D {
    x: usize,
    y: usize,
    z: usize,
    detail: usize,
    kind: c_uint,
    host: u64,
    device: u64,
    array: usize,
    reserved: *const c_void,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
pub(super) struct Copy3D {
    from: Side3D,
    to: Side3D,
    width: usize,
    height: usize,
    depth: usize,
}

fn rows(
    (kind, array): (c_uint, usize),
    host: u64,
    device: u64,
    at: [usize; 3],
    pitch: usize,
    height: usize,
) -> Result<Rows> {
    let [x, y, z] = at.map(|n| n as u64);
    let start = match kind {
        HOST => host,
        ARRAY => return Ok(super::array::array(array)?.rows(x, y, z)),
        _ => device,
    };
    let pitch = pitch as u64;
    let slice = pitch * height as u64;
    Ok(Rows {
        start: start + x + y * pitch + z * slice,
        pitch,
        slice,
    })
}

impl Copy2D {
    fn copy(&self) -> Result<Copy> {
        let side = |side: &Side2D| {
            rows(
                (side.kind, side.array),
                side.host,
                side.device,
                [side.x, side.y, 0],
                side.pitch,
                0,
            )
        };
        Ok(Copy {
            to: side(&self.to)?,
            from: side(&self.from)?,
            extent: [self.width as u64, self.height as u64, 1],
        })
    }
}

impl Copy3D {
    pub(super) fn copy(&self) -> Result<Copy> {
        let side = |side: &Side3D| {
            let at = [side.x, side.y, side.z];
            rows(
                (side.kind, side.array),
                side.host,
                side.device,
                at,
                side.pitch,
                side.height,
            )
        };
        Ok(Copy {
            to: side(&self.to)?,
            from: side(&self.from)?,
            extent: [self.width, self.height, self.depth].map(|n| n as u64),
        })
    }
}

/// Copies between sides of which some must be the device's.
fn transfer(to: (u64, bool), from: (u64, bool), bytes: usize, stream: usize) -> Result {
    let device = in_context()?;
    let known = |(ptr, on_device): (u64, bool)| !on_device || device.knows(ptr);
    match bytes {
        0 => device.streams.get(stream).map(drop),
        _ if !known(to) || !known(from) => Err(Error::INVALID_VALUE),
        _ => submit(
            device,
            stream,
            Work::Copy(Copy::flat(to.0, from.0, bytes as u64)),
        ),
    }
}

fn fill(to: Rows, value: u32, width: u32, extent: [usize; 2], stream: usize) -> Result {
    let device = in_context()?;
    let [elements, rows] = extent.map(|n| n as u64);
    let fill = Fill {
        to,
        value,
        width,
        extent: [elements * u64::from(width), rows, 1],
    };
    match elements * rows {
        0 => device.streams.get(stream).map(drop),
        _ => submit(device, stream, Work::Fill(fill)),
    }
}

fn planar(ptr: u64, pitch: usize) -> Rows {
    Rows {
        start: ptr,
        pitch: pitch as u64,
        slice: 0,
    }
}

driver! {
    fn cuMemcpy | cuMemcpy_ptds(to: u64, from: u64, bytes: usize) {
        transfer((to, false), (from, false), bytes, 0)
    }

    fn cuMemcpyAsync | cuMemcpyAsync_ptsz(to: u64, from: u64, bytes: usize, stream: usize) {
        transfer((to, false), (from, false), bytes, stream)
    }

    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds(to: u64, from: u64, bytes: usize) {
        transfer((to, true), (from, false), bytes, 0)
    }

    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz(
        to: u64,
        from: u64,
        bytes: usize,
        stream: usize,
    ) {
        transfer((to, true), (from, false), bytes, stream)
    }

    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds(to: u64, from: u64, bytes: usize) {
        transfer((to, false), (from, true), bytes, 0)
    }

    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz(
        to: u64,
        from: u64,
        bytes: usize,
        stream: usize,
    ) {
        transfer((to, false), (from, true), bytes, stream)
    }

    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds(to: u64, from: u64, bytes: usize) {
        transfer((to, true), (from, true), bytes, 0)
    }

    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz(
        to: u64,
        from: u64,
        bytes: usize,
        stream: usize,
    ) {
        transfer((to, true), (from, true), bytes, stream)
    }

    fn cuMemcpyPeer | cuMemcpyPeer_ptds(
        to: u64,
        _to_context: usize,
        from: u64,
        _from_context: usize,
        bytes: usize,
    ) {
        transfer((to, true), (from, true), bytes, 0)
    }

    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz(
        to: u64,
        _to_context: usize,
        from: u64,
        _from_context: usize,
        bytes: usize,
        stream: usize,
    ) {
        transfer((to, true), (from, true), bytes, stream)
    }

    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds | cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds(
        copy: *const Copy2D,
    ) {
        let copy = copy.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        submit(in_context()?, 0, Work::Copy(copy))
    }

    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz(copy: *const Copy2D, stream: usize) {
        let copy = copy.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        submit(in_context()?, stream, Work::Copy(copy))
    }

    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds(copy: *const Copy3D) {
        let copy = copy.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        submit(in_context()?, 0, Work::Copy(copy))
    }

    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz(copy: *const Copy3D, stream: usize) {
        let copy = copy.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        submit(in_context()?, stream, Work::Copy(copy))
    }

    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds(ptr: u64, value: c_uchar, count: usize) {
        fill(Rows::at(ptr), value.into(), 1, [count, 1], 0)
    }

    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds(ptr: u64, value: c_ushort, count: usize) {
        fill(Rows::at(ptr), value.into(), 2, [count, 1], 0)
    }

    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds(ptr: u64, value: c_uint, count: usize) {
        fill(Rows::at(ptr), value, 4, [count, 1], 0)
    }

    fn cuMemsetD8Async | cuMemsetD8Async_ptsz(
        ptr: u64,
        value: c_uchar,
        count: usize,
        stream: usize,
    ) {
        fill(Rows::at(ptr), value.into(), 1, [count, 1], stream)
    }

    fn cuMemsetD16Async | cuMemsetD16Async_ptsz(
        ptr: u64,
        value: c_ushort,
        count: usize,
        stream: usize,
    ) {
        fill(Rows::at(ptr), value.into(), 2, [count, 1], stream)
    }

    fn cuMemsetD32Async | cuMemsetD32Async_ptsz(
        ptr: u64,
        value: c_uint,
        count: usize,
        stream: usize,
    ) {
        fill(Rows::at(ptr), value, 4, [count, 1], stream)
    }

    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds(
        ptr: u64,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
    ) {
        fill(planar(ptr, pitch), value.into(), 1, [width, height], 0)
    }

    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds(
        ptr: u64,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
    ) {
        fill(planar(ptr, pitch), value.into(), 2, [width, height], 0)
    }

    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds(
        ptr: u64,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
    ) {
        fill(planar(ptr, pitch), value, 4, [width, height], 0)
    }
}
