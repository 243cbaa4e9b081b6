//! Variables of modules, by the address of their shadow on the host.

use std::ffi::c_int;

use super::transfer::transfer;
use crate::c::put;
use crate::call::runtime;
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::work::Copy;

/// The address of a part of a variable.
pub(super) fn part(symbol: usize, bytes: usize, offset: usize) -> Result<u64> {
    let (ptr, whole) = in_runtime()?.symbol(symbol)?;
    match offset.checked_add(bytes) {
        Some(end) if end as u64 <= whole => Ok(ptr + offset as u64),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A copy to a symbol may come from host or device.
fn write(
    symbol: usize,
    from: u64,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: usize,
) -> Result {
    let to = part(symbol, bytes, offset)?;
    transfer(Copy::flat(to, from, bytes as u64), kind, stream)
}

fn read(to: u64, symbol: usize, bytes: usize, offset: usize, kind: c_int, stream: usize) -> Result {
    let from = part(symbol, bytes, offset)?;
    transfer(Copy::flat(to, from, bytes as u64), kind, stream)
}

runtime! {
    fn cudaGetSymbolAddress(ptr: *mut u64, symbol: usize) {
        put(ptr, in_runtime()?.symbol(symbol)?.0)
    }

    fn cudaGetSymbolSize(bytes: *mut usize, symbol: usize) {
        put(bytes, in_runtime()?.symbol(symbol)?.1 as usize)
    }

    fn cudaMemcpyToSymbol | cudaMemcpyToSymbol_ptds(
        symbol: usize,
        from: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        write(symbol, from, bytes, offset, kind, 0)
    }

    fn cudaMemcpyToSymbolAsync | cudaMemcpyToSymbolAsync_ptsz(
        symbol: usize,
        from: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
        stream: usize,
    ) {
        write(symbol, from, bytes, offset, kind, stream)
    }

    fn cudaMemcpyFromSymbol | cudaMemcpyFromSymbol_ptds(
        to: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        read(to, symbol, bytes, offset, kind, 0)
    }

    fn cudaMemcpyFromSymbolAsync | cudaMemcpyFromSymbolAsync_ptsz(
        to: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
        stream: usize,
    ) {
        read(to, symbol, bytes, offset, kind, stream)
    }
}
