//! Tensor maps.

use std::ffi::{c_int, c_uint};

use ptx_emu::Im2col;

use crate::c::{array, put};
use crate::call::driver;
use crate::error::{Error, Result};
use crate::tensor_map::Tensor;

/// The common arguments of both encoders, from C.
///
/// # Safety
/// The arrays must have as many elements as the rank.
#[allow(clippy::too_many_arguments)]
unsafe fn tensor<'a>(
    element: c_int,
    rank: c_uint,
    address: u64,
    dims: *const u64,
    strides: *const u64,
    element_strides: *const u32,
    (interleave, swizzle, fill): (c_int, c_int, c_int),
) -> Result<Tensor<'a>> {
    let rank = usize::try_from(rank).map_err(|_| Error::INVALID_VALUE)?;
    if !(1..=5).contains(&rank) {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: by this function's contract.
    unsafe {
        Ok(Tensor {
            element,
            address,
            dims: array(dims, rank)?,
            strides: array(strides, rank - 1)?,
            element_strides: array(element_strides, rank)?,
            interleave,
            swizzle,
            fill,
        })
    }
}

/// The corner of a window, from C.
///
/// # Safety
/// `corner` must have an int for each dimension of space.
unsafe fn corner(corner: *const c_int, rank: c_uint) -> Result<[i16; 3]> {
    let space = (rank as usize).saturating_sub(2).min(3);
    let mut numbers = [0; 3];
    // SAFETY: by this function's contract.
    for (to, from) in numbers.iter_mut().zip(unsafe { array(corner, space) }?) {
        *to = i16::try_from(*from).map_err(|_| Error::INVALID_VALUE)?;
    }
    Ok(numbers)
}

driver! {
    fn cuTensorMapEncodeTiled(
        map: *mut [u8; 128],
        element: c_int,
        rank: c_uint,
        address: u64,
        dims: *const u64,
        strides: *const u64,
        box_dims: *const u32,
        element_strides: *const u32,
        interleave: c_int,
        swizzle: c_int,
        _promotion: c_int,
        fill: c_int,
    ) {
        let modes = (interleave, swizzle, fill);
        let tensor = tensor(element, rank, address, dims, strides, element_strides, modes)?;
        put(map, tensor.encode(array(box_dims, rank as usize)?, None)?)
    }

    fn cuTensorMapEncodeIm2col(
        map: *mut [u8; 128],
        element: c_int,
        rank: c_uint,
        address: u64,
        dims: *const u64,
        strides: *const u64,
        lower: *const c_int,
        upper: *const c_int,
        channels: c_uint,
        pixels: c_uint,
        element_strides: *const u32,
        interleave: c_int,
        swizzle: c_int,
        _promotion: c_int,
        fill: c_int,
    ) {
        let modes = (interleave, swizzle, fill);
        let tensor = tensor(element, rank, address, dims, strides, element_strides, modes)?;
        let window = Im2col {
            lower: corner(lower, rank)?,
            upper: corner(upper, rank)?,
            channels,
            pixels,
        };
        put(map, tensor.encode(&[], Some(window))?)
    }
}
