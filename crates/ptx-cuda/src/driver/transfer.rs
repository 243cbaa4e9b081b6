//! Copies and fills.

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

use crate::call::driver;
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::memory::Rows;
use crate::stream::submit;
use crate::work::{Copy, Fill, Work};

const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

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

/// One side of a copy; if it is declared as device memory, the device must know the address.
fn rows(side: &Side3D, extent: [u64; 3]) -> Result<Rows> {
    let at = [side.x, side.y, side.z].map(|n| n as u64);
    let start = match side.kind {
        HOST => side.host,
        DEVICE | UNIFIED => side.device,
        ARRAY => return super::array::array(side.array)?.rows(at, extent),
        _ => return Err(Error::INVALID_VALUE),
    };
    let rows = Rows::from(start, at, side.pitch as u64, side.height as u64)?;
    let is_used = !extent.contains(&0);
    match side.kind == DEVICE && is_used && !in_context()?.knows(rows.start) {
        true => Err(Error::INVALID_VALUE),
        false => Ok(rows),
    }
}

fn copy(to: &Side3D, from: &Side3D, extent: [usize; 3]) -> Result<Copy> {
    let extent = extent.map(|n| n as u64);
    Ok(Copy {
        to: rows(to, extent)?,
        from: rows(from, extent)?,
        extent,
    })
}

impl Side2D {
    fn in_space(&self) -> Side3D {
        Side3D {
            x: self.x,
            y: self.y,
            z: 0,
            detail: 0,
            kind: self.kind,
            host: self.host,
            device: self.device,
            array: self.array,
            reserved: std::ptr::null(),
            pitch: self.pitch,
            height: 0,
        }
    }
}

impl Copy2D {
    fn copy(&self) -> Result<Copy> {
        let extent = [self.width, self.height, 1];
        copy(&self.to.in_space(), &self.from.in_space(), extent)
    }
}

impl Copy3D {
    pub(super) fn copy(&self) -> Result<Copy> {
        copy(&self.to, &self.from, [self.width, self.height, self.depth])
    }
}

/// Copies between two sides, each of which may have to be device memory.
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
    let fill = Fill::new(to, value, width, extent)?;
    match fill.extent.contains(&0) {
        true => device.streams.get(stream).map(drop),
        false => submit(device, stream, Work::Fill(fill)),
    }
}

fn planar(ptr: u64, pitch: usize) -> Rows {
    Rows::planar(ptr, pitch as u64)
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

    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz(
        ptr: u64,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        fill(planar(ptr, pitch), value.into(), 1, [width, height], stream)
    }

    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz(
        ptr: u64,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        fill(planar(ptr, pitch), value.into(), 2, [width, height], stream)
    }

    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz(
        ptr: u64,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        fill(planar(ptr, pitch), value, 4, [width, height], stream)
    }
}
