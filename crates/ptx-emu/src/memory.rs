//! Device memory: allocations in one 64-bit address space.
//!
//! Every allocation lies alone between guard gaps, so that an access a little past its end meets
//! no neighbour: it is a fault that names the allocation it missed. The host owns [`Memory`]; a
//! launch borrows it mutably, so host and device never touch it at the same time.

mod footprint;
mod host_bytes;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ptr::NonNull;

use crate::module::Module;
use crate::name::source_name;

pub(crate) use footprint::{Footprint, SECTOR, words_of};
pub(crate) use host_bytes::HostBytes;

/// Alignment of every allocation, as `cudaMalloc` gives.
const ALIGN: u64 = 256;
/// Unmapped bytes at least between two allocations.
const GAP: u64 = 1 << 16;
/// First device address handed out.
const FIRST: u64 = 0x2_0000_0000;

/// First address of module constants, apart from everything else so that `isspacep.const` can
/// tell them.
const FIRST_CONSTANT: u64 = 0x7c00_0000_0000;

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
    /// `free` of something that is not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation: free takes what alloc returned")]
    NotAllocated {
        /// Freed address.
        address: u64,
    },
}

/// One allocation.
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) name: String,
    /// A variable of a module, and not what the host allocated.
    variable: bool,
    ptr: NonNull<u8>,
}

impl Region {
    fn layout(len: u64) -> Layout {
        Layout::from_size_align(len as usize, ALIGN as usize).expect("length checked by alloc")
    }

    /// Its bytes as clusters see them.
    pub(crate) fn bytes(&self) -> HostBytes<'_> {
        let first = self.ptr.as_ptr().cast::<UnsafeCell<u8>>();
        // SAFETY: the allocation is `len` initialised bytes and lives as long as the region.
        HostBytes(unsafe { std::slice::from_raw_parts(first, self.len as usize) })
    }

    fn describe(&self) -> String {
        let name = source_name(&self.name);
        format!("{name} at {:#x}, {} bytes", self.base, self.len)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `Memory::alloc_named` with this very layout.
        unsafe { dealloc(self.ptr.as_ptr(), Self::layout(self.len)) }
    }
}

// SAFETY: a region is plain bytes, and who may touch them when is said at [`HostBytes`].
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

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
        }
    }

    /// Another device with the same in its memory.
    pub(crate) fn copied(&self) -> Self {
        let regions = self.regions.iter().map(|region| {
            let layout = Region::layout(region.len);
            // SAFETY: the layout has a size above zero.
            let Some(ptr) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
                handle_alloc_error(layout)
            };
            let copy = Region {
                ptr,
                name: region.name.clone(),
                ..*region
            };
            // SAFETY: no launch runs on either.
            unsafe { copy.bytes().write().copy_from_slice(region.bytes().read()) };
            copy
        });
        Self {
            regions: regions.collect(),
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
        let layout = Region::layout(bytes);
        // SAFETY: the layout has a size above zero.
        let Some(ptr) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let next = match variable {
            Some(true) => &mut self.next_constant,
            Some(false) | None => &mut self.next,
        };
        let base = *next;
        *next = (base + bytes + GAP).next_multiple_of(GAP);
        self.used += bytes;
        let index = self.regions.partition_point(|r| r.base < base);
        let region = Region {
            base,
            len: bytes,
            name: name.to_owned(),
            variable: variable.is_some(),
            ptr,
        };
        self.regions.insert(index, region);
        Ok(DevicePtr(base))
    }

    /// Frees what `alloc` returned; later device accesses to it fault.
    pub fn free(&mut self, ptr: DevicePtr) -> Result<(), MemoryError> {
        match self.regions.binary_search_by_key(&ptr.0, |r| r.base) {
            Ok(index) => {
                self.used -= self.regions.remove(index).len;
                Ok(())
            }
            Err(_) => Err(MemoryError::NotAllocated { address: ptr.0 }),
        }
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

    /// Gives a module's variables their initial values again, as loading it anew would.
    pub fn reset(&mut self, module: &Module) -> Result<(), MemoryError> {
        let addresses = self.bind(module)?;
        for (var, &address) in module.globals.iter().zip(&addresses) {
            let mut init = var.init.clone();
            for reloc in &var.relocs {
                reloc.write(addresses.get(reloc.global).copied().unwrap_or(0), &mut init);
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

    /// The allocation closest to an address, in words. One that is far away has nothing to do
    /// with it; nor has a variable that lies farther away than it is long.
    pub(crate) fn nearest(&self, address: u64) -> String {
        let distance = |r: &Region| {
            let end = r.base + r.len;
            address
                .saturating_sub(end - 1)
                .max(r.base.saturating_sub(address))
        };
        let plausible = |r: &&Region| !r.variable || distance(r) <= r.len;
        match self
            .regions
            .iter()
            .filter(plausible)
            .min_by_key(|r| distance(r))
        {
            None => "no allocation is near".to_owned(),
            Some(r) if distance(r) > WILD => {
                "no allocation is within a GiB of it: the pointer itself is wrong".to_owned()
            }
            Some(r) if address >= r.base + r.len => {
                let past = address - r.base - r.len;
                format!("{past} bytes past the end of {}", r.describe())
            }
            Some(r) if address < r.base => {
                format!("{} bytes before {}", r.base - address, r.describe())
            }
            Some(r) => format!("in {}", r.describe()),
        }
    }
}

/// Bytes from the nearest allocation at which an address is not one of it gone astray.
const WILD: u64 = 1 << 30;

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
}
