//! Device memory: allocations in one 64-bit address space.
//!
//! Every allocation lies alone between guard gaps, so that an access a little past its end meets
//! no neighbour: it is a fault that names the allocation it missed. The host owns [`Memory`]; a
//! launch borrows it mutably, so host and device never touch it at the same time.

mod arena;
mod footprint;
mod host_bytes;
mod nearest;
mod region;
mod values;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr::NonNull;

use crate::module::Module;

use arena::Arena;
#[cfg(target_arch = "x86_64")]
pub(crate) use footprint::STRIDE;
pub(crate) use footprint::{Footprint, SECTOR, words_of};
pub(crate) use host_bytes::HostBytes;
use region::Backing;
pub(crate) use region::Region;
pub use values::Value;

/// Alignment of every allocation, as `cudaMalloc` gives.
const ALIGN: u64 = 256;
/// Unmapped bytes at least between two allocations.
const GAP: u64 = 1 << 16;
/// First device address handed out.
const FIRST: u64 = 0x2_0000_0000;

/// First address of module constants, apart from everything else so that `isspacep.const` can
/// tell them.
const FIRST_CONSTANT: u64 = 0x7c00_0000_0000;

/// Takes the address an allocation gets.
fn bump(next: &mut u64, bytes: u64) -> u64 {
    let base = *next;
    *next = (base + bytes + GAP).next_multiple_of(GAP);
    base
}

/// Whether an address is in the window of module constants.
pub(crate) fn is_constant(address: u64) -> bool {
    address.wrapping_sub(FIRST_CONSTANT) < 1 << 32
}

/// A device address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` further on.
    pub fn offset(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// What the host can do wrong with device memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// An allocation of no bytes.
    #[error("cannot allocate 0 bytes of device memory")]
    Empty,
    /// More than the address space or the host can hold.
    #[error("cannot allocate {bytes} bytes of device memory: the limit is {limit} bytes in all")]
    TooLarge {
        /// Asked for.
        bytes: u64,
        /// [`Memory::limit`]
        limit: u64,
    },
    /// Host access outside any one allocation.
    #[error(
        "host access of {bytes} bytes at {address:#x} is not inside one allocation ({nearest})"
    )]
    OutOfBounds {
        /// First byte.
        address: u64,
        /// Length.
        bytes: u64,
        /// The closest allocation, in words.
        nearest: String,
    },
    /// The host lends bytes that are device memory already.
    #[error("{bytes} bytes at {address:#x} are device memory already: {other}")]
    Overlaps {
        /// First byte.
        address: u64,
        /// Length.
        bytes: u64,
        /// The allocation there.
        other: String,
    },
    /// `free` of something that is not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation: free takes what alloc returned")]
    NotAllocated {
        /// Freed address.
        address: u64,
    },
}

/// One allocation, as the host may look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation<'m> {
    /// Its first byte.
    pub start: DevicePtr,
    /// Its length.
    pub bytes: u64,
    /// Its name in faults.
    pub name: &'m str,
}

/// The device's memory.
pub struct Memory {
    regions: Vec<Region>,
    next: u64,
    next_constant: u64,
    used: u64,
    limit: u64,
    bound: HashMap<u64, Vec<u64>>,
    /// What the device's timer shows between launches, once there was one.
    timer: Option<u64>,
    /// Where allocations lie whose addresses are the host's. After `regions`, which end first.
    arena: Option<Arena>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// Empty memory with H200's 141 GB as its limit (host pages are taken as they are touched).
    pub fn new() -> Self {
        Self::with_limit(141_000_000_000)
    }

    /// Empty memory that holds at most `limit` bytes.
    pub fn with_limit(limit: u64) -> Self {
        Self {
            regions: Vec::new(),
            next: FIRST,
            next_constant: FIRST_CONSTANT,
            used: 0,
            limit,
            bound: HashMap::new(),
            timer: None,
            arena: None,
        }
    }

    /// Empty memory in which the host finds every allocation at its device address. Constants alone
    /// have addresses of their own.
    pub fn on_host(limit: u64) -> std::io::Result<Self> {
        let arena = Arena::of(limit)?;
        Ok(Self {
            next: arena.first(),
            arena: Some(arena),
            ..Self::with_limit(limit)
        })
    }

    /// Another device with the same in its memory.
    pub(crate) fn copied(&self) -> Self {
        Self {
            regions: self.regions.iter().map(Region::copied).collect(),
            arena: None,
            bound: self.bound.clone(),
            ..*self
        }
    }

    /// Changes every byte of a part of an allocation.
    pub(crate) fn invert(&mut self, region: usize, first: u64, bytes: u64) {
        let region = &self.regions[region];
        let end = region.len.min(first + bytes);
        // SAFETY: `&mut self` excludes any running launch.
        let bytes = unsafe { region.bytes().part(first as usize..end as usize).write() };
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }

    /// What the device's timer shows when a launch begins; `first` if none has yet.
    pub(crate) fn timer(&mut self, first: u64) -> u64 {
        *self.timer.get_or_insert(first)
    }

    /// A launch has taken so long.
    pub(crate) fn pass(&mut self, nanos: u64) {
        self.timer = self.timer.map(|timer| timer + nanos);
    }

    /// Most bytes that can be allocated together.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Allocates zeroed bytes, aligned to 256.
    pub fn alloc(&mut self, bytes: u64) -> Result<DevicePtr, MemoryError> {
        let name = format!("allocation {}", self.regions.len());
        self.alloc_named(&name, bytes)
    }

    /// Allocates zeroed bytes under a name that faults will use.
    pub fn alloc_named(&mut self, name: &str, bytes: u64) -> Result<DevicePtr, MemoryError> {
        self.place(name, bytes, None)
    }

    /// `variable`: of a module's variable, whether it is constant.
    fn place(
        &mut self,
        name: &str,
        bytes: u64,
        variable: Option<bool>,
    ) -> Result<DevicePtr, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::Empty);
        }
        if bytes > self.limit - self.used {
            return Err(MemoryError::TooLarge {
                bytes,
                limit: self.limit,
            });
        }
        let (base, ptr, backing) = match (variable, &self.arena) {
            (Some(true), _) => {
                let base = bump(&mut self.next_constant, bytes);
                let (ptr, backing) = Region::zeroed(bytes);
                (base, ptr, backing)
            }
            (_, Some(arena)) => {
                let limit = self.limit;
                let base = self
                    .vacancy(arena, bytes)
                    .ok_or(MemoryError::TooLarge { bytes, limit })?;
                let ptr = arena.at(base);
                self.next = (base + bytes + GAP).next_multiple_of(GAP);
                (base, ptr, Backing::Arena)
            }
            (_, None) => {
                let base = bump(&mut self.next, bytes);
                let (ptr, backing) = Region::zeroed(bytes);
                (base, ptr, backing)
            }
        };
        self.used += bytes;
        self.insert(Region {
            base,
            len: bytes,
            name: name.to_owned(),
            variable: variable.is_some(),
            ptr,
            backing,
        });
        Ok(DevicePtr(base))
    }

    fn insert(&mut self, region: Region) {
        let index = self.regions.partition_point(|r| r.base < region.base);
        self.regions.insert(index, region);
    }

    /// The next free address of the arena, from its start again where it has come to its end.
    fn vacancy(&self, arena: &Arena, bytes: u64) -> Option<u64> {
        let fits = |base: u64, end: u64| end.checked_sub(base).is_some_and(|room| room >= bytes);
        if fits(self.next, arena.end()) {
            return Some(self.next);
        }
        let mut base = arena.first();
        for region in &self.regions {
            if region.backing != Backing::Arena {
                continue;
            }
            if fits(base, region.base.saturating_sub(GAP)) {
                return Some(base);
            }
            base = (region.base + region.len + GAP).next_multiple_of(GAP);
        }
        fits(base, arena.end()).then_some(base)
    }

    /// Lets kernels use bytes of the host at their own address, until they are freed.
    ///
    /// # Safety
    /// The bytes must be valid for reads and writes until then, and the host should write them only
    /// while no launch runs. A program on a device with concurrent managed access may do
    /// otherwise: a kernel then sees old bytes or new ones. Rust calls that race undefined; here it
    /// comes to no more, since launches copy such bytes and no check or address in the emulator
    /// depends on their staying as they are.
    pub unsafe fn lend(
        &mut self,
        name: &str,
        ptr: NonNull<u8>,
        bytes: u64,
    ) -> Result<DevicePtr, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::Empty);
        }
        let base = ptr.as_ptr().addr() as u64;
        let after = self.regions.partition_point(|r| r.base < base + bytes);
        if let Some(before) = after.checked_sub(1)
            && self.regions[before].base + self.regions[before].len > base
        {
            return Err(MemoryError::Overlaps {
                address: base,
                bytes,
                other: self.regions[before].describe(),
            });
        }
        self.insert(Region {
            base,
            len: bytes,
            name: name.to_owned(),
            variable: false,
            ptr,
            backing: Backing::Lent,
        });
        Ok(DevicePtr(base))
    }

    /// Frees what `alloc` returned, or ends a loan; later device accesses to it fault.
    pub fn free(&mut self, ptr: DevicePtr) -> Result<(), MemoryError> {
        let Ok(index) = self.regions.binary_search_by_key(&ptr.0, |r| r.base) else {
            return Err(MemoryError::NotAllocated { address: ptr.0 });
        };
        let region = self.regions.remove(index);
        if region.backing != Backing::Lent {
            self.used -= region.len;
        }
        if let (Backing::Arena, Some(arena)) = (region.backing, &self.arena) {
            arena.release(region.base, region.len);
        }
        Ok(())
    }

    /// Bytes that are allocated now; those the host lent are not among them.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Where the host reaches `bytes` bytes of one allocation.
    pub fn host_ptr(&self, ptr: DevicePtr, bytes: u64) -> Result<NonNull<u8>, MemoryError> {
        let first = self.host_range(ptr, bytes)?.first();
        Ok(NonNull::new(first).expect("an allocation is not at null"))
    }

    /// The addresses that [`Memory::on_host`] has set aside for allocations.
    pub fn set_aside(&self) -> std::ops::Range<u64> {
        self.arena
            .as_ref()
            .map_or(0..0, |arena| arena.first()..arena.end())
    }

    /// The allocation that holds an address.
    pub fn allocation(&self, ptr: DevicePtr) -> Option<Allocation<'_>> {
        let region = &self.regions[self.find(ptr.0)?];
        Some(Allocation {
            start: DevicePtr(region.base),
            bytes: region.len,
            name: &region.name,
        })
    }

    /// Copies host bytes to the device.
    pub fn write(&mut self, ptr: DevicePtr, bytes: &[u8]) -> Result<(), MemoryError> {
        let to = self.host_range(ptr, bytes.len() as u64)?;
        // SAFETY: `&mut self` excludes any running launch.
        unsafe { to.write() }.copy_from_slice(bytes);
        Ok(())
    }

    /// Copies device bytes to the host.
    pub fn read(&self, ptr: DevicePtr, bytes: &mut [u8]) -> Result<(), MemoryError> {
        bytes.copy_from_slice(self.view(ptr, bytes.len() as u64)?);
        Ok(())
    }

    /// Device bytes as a host vector.
    pub fn read_vec(&self, ptr: DevicePtr, bytes: u64) -> Result<Vec<u8>, MemoryError> {
        self.host_range(ptr, bytes)?;
        let mut out = vec![0; bytes as usize];
        self.read(ptr, &mut out)?;
        Ok(out)
    }

    /// Device bytes where they lie.
    pub fn view(&self, ptr: DevicePtr, bytes: u64) -> Result<&[u8], MemoryError> {
        let from = self.host_range(ptr, bytes)?;
        // SAFETY: kernels write only under `&mut Memory`.
        Ok(unsafe { from.read() })
    }

    /// Sets device bytes.
    pub fn fill(&mut self, ptr: DevicePtr, byte: u8, bytes: u64) -> Result<(), MemoryError> {
        let to = self.host_range(ptr, bytes)?;
        // SAFETY: as in `write`.
        unsafe { to.write() }.fill(byte);
        Ok(())
    }

    /// Address of a module variable, if the module has been bound by a launch or [`Memory::bind`].
    pub fn symbol(&mut self, module: &Module, name: &str) -> Option<DevicePtr> {
        let index = module.globals.iter().position(|g| g.name == name)?;
        let addresses = self.bind(module).ok()?;
        addresses.get(index).map(|&a| DevicePtr(a))
    }

    /// Allocates and initialises a module's variables, once per module: later launches find them
    /// as earlier ones left them, as on a GPU, until [`Memory::reset`].
    pub fn bind(&mut self, module: &Module) -> Result<Vec<u64>, MemoryError> {
        if let Some(addresses) = self.bound.get(&module.id) {
            return Ok(addresses.clone());
        }
        let mut addresses = Vec::with_capacity(module.globals.len());
        for var in &module.globals {
            let bytes = (var.init.len() as u64).max(1);
            addresses.push(self.place(&var.name, bytes, Some(var.constant))?.0);
        }
        self.bound.insert(module.id, addresses.clone());
        self.reset(module)?;
        Ok(addresses)
    }

    /// Frees a module's variables, as unloading it would. Launching it binds it anew.
    pub fn unbind(&mut self, module: &Module) -> Result<(), MemoryError> {
        for address in self.bound.remove(&module.id).unwrap_or_default() {
            self.free(DevicePtr(address))?;
        }
        Ok(())
    }

    /// Gives a module's variables their initial values again, as loading it anew would.
    pub fn reset(&mut self, module: &Module) -> Result<(), MemoryError> {
        let addresses = self.bind(module)?;
        for (var, &address) in module.globals.iter().zip(&addresses) {
            let mut init = Cow::Borrowed(&var.init);
            for reloc in &var.relocs {
                let to = addresses.get(reloc.global).copied().unwrap_or(0);
                reloc.write(to, init.to_mut());
            }
            self.write(DevicePtr(address), &init)?;
        }
        Ok(())
    }

    fn host_range(&self, ptr: DevicePtr, bytes: u64) -> Result<HostBytes<'_>, MemoryError> {
        self.find(ptr.0)
            .map(|index| &self.regions[index])
            .filter(|r| bytes <= r.len - (ptr.0 - r.base))
            .map(|r| {
                let first = (ptr.0 - r.base) as usize;
                r.bytes().part(first..first + bytes as usize)
            })
            .ok_or_else(|| MemoryError::OutOfBounds {
                address: ptr.0,
                bytes,
                nearest: self.nearest(ptr.0),
            })
    }

    /// Index of the region that holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<usize> {
        let after = self.regions.partition_point(|r| r.base <= address);
        let index = after.checked_sub(1)?;
        (address - self.regions[index].base < self.regions[index].len).then_some(index)
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_outside_name_the_nearest_allocation() {
        let mut memory = Memory::new();
        let a = memory.alloc_named("weights", 100).unwrap();
        memory.alloc_named("tokens", 64).unwrap();
        let error = memory.write(a.offset(96), &[0; 8]).unwrap_err();
        assert!(error.to_string().contains("in weights"), "{error}");
        assert!(
            memory
                .nearest(a.0 + 104)
                .contains("4 bytes past the end of weights")
        );
        for wild in [0, a.0 + (1 << 40), u64::MAX] {
            assert!(memory.nearest(wild).contains("no allocation is within"));
        }
        let near = memory.place("_ZN4cuda3std5beginE", 1, Some(false)).unwrap();
        let far = memory.nearest(near.0 + 16);
        assert!(far.contains("past the end of tokens"), "{far}");
        let just = memory.nearest(near.0 + 1);
        assert!(just.contains("past the end of begin"), "{just}");
        memory.free(a).unwrap();
        assert!(memory.read_vec(a, 4).is_err());
        assert_eq!(
            memory.free(a),
            Err(MemoryError::NotAllocated { address: a.0 })
        );
    }

    #[test]
    fn on_the_host_an_address_is_one_for_both() {
        let mut memory = Memory::on_host(1 << 20).unwrap();
        let a = memory.alloc(100).unwrap();
        memory.write(a, &[7; 100]).unwrap();
        let seen = std::ptr::with_exposed_provenance::<u8>(a.0 as usize + 99);
        // SAFETY: inside the allocation.
        assert_eq!(unsafe { *seen }, 7);
        assert!(memory.allocation(a.offset(100)).is_none());
        assert_eq!(memory.allocation(a.offset(99)).unwrap().bytes, 100);
        memory.free(a).unwrap();
        assert!(memory.free(a).is_err() && memory.used() == 0);
        let mut last = a;
        for _ in 0..200_000 {
            last = memory.alloc(1 << 20).unwrap();
            memory.free(last).unwrap();
        }
        assert!(last != a, "addresses return late");
        assert_eq!(memory.read_vec(last, 1).ok(), None);
        assert!(memory.alloc((1 << 20) + 1).is_err());
    }

    #[test]
    fn bytes_of_the_host_are_lent_and_taken_back() {
        let mut memory = Memory::on_host(1 << 20).unwrap();
        let mut bytes = vec![1u8; 64];
        let ptr = NonNull::new(bytes.as_mut_ptr()).unwrap();
        // SAFETY: `bytes` lives on, and is touched between calls alone.
        let at = unsafe { memory.lend("lent", ptr, 64) }.unwrap();
        memory.fill(at.offset(60), 9, 4).unwrap();
        // SAFETY: as above.
        let again = unsafe { memory.lend("again", ptr, 8) };
        assert!(again.unwrap_err().to_string().contains("lent"));
        assert_eq!((bytes[59], bytes[60], memory.used()), (1, 9, 0));
        memory.free(at).unwrap();
        assert!(memory.read_vec(at, 1).is_err());
    }
}
