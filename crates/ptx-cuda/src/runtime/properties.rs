//! `cudaDeviceProp`, as CUDA 12 and CUDA 13 lay it out.

use std::ffi::{c_int, c_void};

use crate::call::{refuse, runtime};
use crate::device::{Properties, SHARED_PLAIN, UUID, check, settings};
use crate::error::Error;
use crate::loaded::is_twelve;

/// A C struct that is written field by field.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn ints(&mut self, values: &[i32]) -> &mut Self {
        values.iter().fold(self, |fields, value| fields.int(*value))
    }

    fn size(&mut self, value: u64) -> &mut Self {
        let aligned = self.0.len().next_multiple_of(8);
        self.0.resize(aligned, 0);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn zeros(&mut self, ints: usize) -> &mut Self {
        self.0.resize(self.0.len() + 4 * ints, 0);
        self
    }
}

/// One of the two layouts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Twelve,
    Thirteen,
}

/// Attributes that limit textures: 1-D, 2-D, linear, gathered, 3-D, cubes, layers; mipmaps are 0.
/// Between the second and the third, CUDA 12 has the one of 1-D linear memory.
const TEXTURES: [i32; 25] = [
    21, 77, 22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53,
    54,
];
const LINEAR: i32 = 69;
/// Attributes that limit surfaces: 1-D, 2-D, 3-D, layers, cubes.
const SURFACES: [i32; 14] = [55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68];

fn fields(of: &Properties, layout: Layout) -> Vec<u8> {
    let old = layout == Layout::Twelve;
    let attribute = |number: i32| of.attribute(number).unwrap_or(0);
    let attributes = |numbers: &[i32]| numbers.iter().map(|&n| attribute(n)).collect::<Vec<_>>();
    let mut fields = Fields::default();
    fields.0.extend(of.name.as_bytes());
    fields.0.resize(256, 0);
    fields.0.extend(UUID);
    fields.zeros(2).int(1);
    fields.size(of.memory).size(SHARED_PLAIN.into());
    fields.int(attribute(12)).int(32).size(i32::MAX as u64);
    fields.ints(&[1024, 1024, 1024, 64, i32::MAX, 65_535, 65_535]);
    if old {
        fields.int(attribute(13));
    }
    fields.size(65_536).int(of.major()).int(of.minor());
    fields.size(512).size(32);
    if old {
        // Copies overlap, multiprocessors, no timeout, not integrated, host memory, default mode.
        fields.ints(&[1, attribute(16), 0, 0, 1, 0]);
        fields
            .ints(&attributes(&TEXTURES[..2]))
            .int(attribute(LINEAR));
    } else {
        fields.ints(&[attribute(16), 0, 1]);
        fields.ints(&attributes(&TEXTURES[..2]));
    }
    fields.ints(&attributes(&TEXTURES[2..]));
    fields.ints(&attributes(&SURFACES));
    fields.size(512);
    // Concurrent kernels, ECC, the bus, no TCC, engines, one address space.
    fields.ints(&[1, 1, 0, 0, 0, 0, attribute(40), 1]);
    if old {
        fields.int(attribute(36));
    }
    fields.ints(&attributes(&[37, 38, 108, 39]));
    fields.ints(&[1, 1, 1]);
    fields.size(of.shared_per_sm.into()).int(attribute(82));
    // Managed memory, no board of several, no native atomics of the host.
    fields.ints(&[1, 0, 0, 0]);
    if old {
        fields.int(attribute(87));
    }
    // Pageable memory, concurrent access, preemption, host pointers, cooperation.
    fields.ints(&[0, 1, 1, 1, 1]);
    if old {
        fields.int(0);
    }
    fields.size(of.shared_per_block.into());
    fields.ints(&[0, 0, attribute(106), attribute(109)]);
    fields.size(1024);
    // Registration, then pools, then clusters and function pointers.
    fields.ints(&[
        1,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        attribute(120),
        attribute(129),
    ]);
    match layout {
        Layout::Twelve => fields.zeros(63),
        Layout::Thirteen => fields.ints(&[0, -1, 0, -1]).zeros(59),
    };
    let whole = fields.0.len().next_multiple_of(8);
    fields.0.resize(whole, 0);
    fields.0
}

/// # Safety
/// `to` must have room for the struct.
unsafe fn give(to: *mut c_void, device: c_int, layout: Layout) -> crate::error::Result {
    check(device)?;
    if to.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let bytes = fields(&settings().properties, layout);
    // SAFETY: by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
    Ok(())
}

runtime! {
    fn cudaGetDeviceProperties(to: *mut c_void, device: c_int) {
        // The runtime of CUDA 12 has the struct of CUDA 11, which is shorter, under this name.
        match is_twelve() {
            true => Err(refuse("cudaGetDeviceProperties of CUDA 11")),
            false => give(to, device, Layout::Thirteen),
        }
    }

    fn cudaGetDeviceProperties_v2(to: *mut c_void, device: c_int) {
        give(to, device, Layout::Twelve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_as_long_as_the_headers_say() {
        let h200 = Properties::h200();
        assert_eq!(fields(&h200, Layout::Thirteen).len(), 1008);
        assert_eq!(fields(&h200, Layout::Twelve).len(), 1032);
    }

    #[test]
    fn fields_of_cuda_13_lie_where_its_header_says() {
        let bytes = fields(&Properties::h200(), Layout::Thirteen);
        let int = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let places = [
            (384, 132),
            (596, 62_914_560),
            (600, 39_321_600),
            (624, 233_472),
            (668, 1),
            (692, 134_213_632),
            (748, 1),
            (760, -1),
        ];
        for (at, value) in places {
            assert_eq!(int(at), value, "at {at}");
        }
    }
}
