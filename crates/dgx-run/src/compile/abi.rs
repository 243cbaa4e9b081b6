//! The host's side of `variants/include/dgx/abi.cuh`.

use bytemuck::{Pod, Zeroable};

/// `dgx::Group`. Addresses are the device's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Group {
    pub a: u64,
    pub b1: u64,
    pub b2: u64,
    pub sfa: u64,
    pub sfb1: u64,
    pub sfb2: u64,
    pub sfa_atoms: u64,
    pub sfb1_atoms: u64,
    pub sfb2_atoms: u64,
    pub c: u64,
    pub scratch: [u64; SCRATCH_SLOTS],
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub tile_begin: u32,
    pub index: u32,
    pub reserved: u32,
}

/// `dgx::Args`, the one parameter of every kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Args {
    pub groups: u64,
    pub maps: u64,
    pub deal: u64,
    pub scratch: [u64; SCRATCH_SLOTS],
    pub group_count: u32,
    pub tile_count: u32,
    /// The first groups again: parameters cost the kernel no load.
    pub near: [Group; NEAR_GROUPS],
}

pub(crate) const SCRATCH_SLOTS: usize = 8;
/// Groups that [`Args`] holds itself.
pub(crate) const NEAR_GROUPS: usize = 8;
/// Bytes of a tensor map in device memory.
pub(crate) const TENSOR_MAP: usize = 128;

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn layout_is_that_of_the_header() {
        assert_eq!(size_of::<Group>(), 168);
        assert_eq!(offset_of!(Group, c), 72);
        assert_eq!(offset_of!(Group, scratch), 80);
        assert_eq!(offset_of!(Group, m), 144);
        assert_eq!(offset_of!(Group, index), 160);
        assert_eq!(size_of::<Args>(), 1440);
        assert_eq!(offset_of!(Args, scratch), 24);
        assert_eq!(offset_of!(Args, group_count), 88);
        assert_eq!(offset_of!(Args, near), 96);
    }
}
