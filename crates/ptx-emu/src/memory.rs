//! Device memory: allocations in one 64-bit address space.
//!
//! Every allocation lies alone between guard gaps, so that an access a little past its end meets
//! no neighbour: it is a fault that names the allocation it missed. The host owns [`Memory`]; a
//! launch borrows it mutably, so host and device never touch it at the same time.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::module::Module;
use crate::name::source_name;

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

/// Bytes on the host that stand for memory of the device: a slice that says nothing yet about who
/// reads or writes it.
///
/// Nobody does both at once, whatever a kernel does. While the clusters of a wave run, memory is
/// only read: each writes to pages of its own (see `exec::draft`), and pages and shared memory
/// belong to the one host thread that runs their cluster. Memory itself is written by a cluster
/// that is alone, by the one whose turn it is between epochs, and when pages are published. So a
/// data race of a kernel never becomes one of the host.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostBytes<'m>(&'m [UnsafeCell<u8>]);

// SAFETY: by the discipline above.
unsafe impl Send for HostBytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for HostBytes<'_> {}

impl<'m> HostBytes<'m> {
    /// Of an array that is written through a shared reference.
    #[inline(always)]
    pub(crate) fn of_cell<const N: usize>(cell: &'m UnsafeCell<[u8; N]>) -> Self {
        let first = cell.get().cast::<UnsafeCell<u8>>().cast_const();
        // SAFETY: the array is N bytes, borrowed as long as this, and may change all the time.
        Self(unsafe { std::slice::from_raw_parts(first, N) })
    }

    /// Of bytes that one cluster has to itself.
    #[inline(always)]
    pub(crate) fn of_slice(bytes: &'m mut [u8]) -> Self {
        let first = bytes.as_mut_ptr().cast::<UnsafeCell<u8>>().cast_const();
        // SAFETY: as above, and nobody else has them.
        Self(unsafe { std::slice::from_raw_parts(first, bytes.len()) })
    }

    /// Of bytes that will only be read.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn to_read(bytes: &'m [u8]) -> Self {
        let first = bytes.as_ptr().cast::<UnsafeCell<u8>>();
        // SAFETY: as above, if nobody asks to write.
        Self(unsafe { std::slice::from_raw_parts(first, bytes.len()) })
    }

    /// For longer than the borrow it came from.
    ///
    /// # Safety
    /// The bytes must stay where they are for as long.
    pub(crate) unsafe fn outlive<'l>(self) -> HostBytes<'l> {
        // SAFETY: by this function's contract.
        HostBytes(unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) })
    }

    /// The bytes of a range, which must lie inside.
    #[inline(always)]
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self(&self.0[range])
    }

    /// The first byte.
    #[inline(always)]
    pub(crate) fn first(self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    /// To read.
    ///
    /// # Safety
    /// Nobody may write them meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn read(self) -> &'m [u8] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(self.first(), self.0.len()) }
    }

    /// To write.
    ///
    /// # Safety
    /// Nobody else may reach them meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(self) -> &'m mut [u8] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.0.len()) }
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

/// Which 32-byte sectors of each allocation a launch has touched.
pub(crate) struct Footprint {
    regions: Vec<Vec<AtomicU64>>,
}

/// Bytes per footprint bit: a sector of the L2 cache.
pub(crate) const SECTOR: u64 = 32;
/// Bytes over which looking at every sector is less work than looking at every lane.
const NEAR: u32 = 32 << 10;

/// The words of a set of sectors that hold those of `[first, end)`, and which of their bits.
#[inline(always)]
pub(crate) fn words_of(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (first / SECTOR, (end - 1) / SECTOR);
    let (from, to) = ((first / 64) as usize, (last / 64) as usize);
    (from..to + 1).map(move |word| {
        let head = if word == from {
            u64::MAX << (first % 64)
        } else {
            u64::MAX
        };
        let tail = if word == to {
            u64::MAX >> (63 - last % 64)
        } else {
            u64::MAX
        };
        (word, head & tail)
    })
}

impl Footprint {
    pub(crate) fn new(memory: &Memory) -> Self {
        let words = |r: &Region| r.len.div_ceil(SECTOR * 64) as usize;
        let regions = memory.regions.iter().map(words);
        Self {
            regions: regions
                .map(|n| (0..n).map(|_| AtomicU64::new(0)).collect())
                .collect(),
        }
    }

    /// Marks `[offset, offset + bytes)` of a region.
    #[inline]
    pub(crate) fn mark(&self, region: usize, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let words = &self.regions[region];
        for (word, bits) in words_of(offset, offset + bytes) {
            let cell = &words[word];
            if !cell.load(Ordering::Relaxed) & bits != 0 {
                cell.fetch_or(bits, Ordering::Relaxed);
            }
        }
    }

    /// Marks the sectors of a warp's aligned accesses (of at most a sector each), which lie in
    /// `[low, end)` of a region.
    #[inline(always)]
    pub(crate) fn mark_lanes(&self, region: usize, at: &[u32; 32], (low, end): (u32, u32)) {
        let words = &self.regions[region][..];
        // Loops come back to what is marked already.
        if end - low < NEAR {
            let mut missing = 0;
            for (word, bits) in words_of(low.into(), end.into()) {
                missing |= !words[word].load(Ordering::Relaxed) & bits;
            }
            if missing == 0 {
                return;
            }
        }
        let add = |word: usize, bits: u64| {
            if !words[word].load(Ordering::Relaxed) & bits != 0 {
                words[word].fetch_or(bits, Ordering::Relaxed);
            }
        };
        // Neighbours often share a word, and writing it is dear.
        let (mut word, mut bits) = (at[0] as usize / SECTOR as usize / 64, 0);
        for &a in at {
            let sector = a as usize / SECTOR as usize;
            if sector / 64 != word {
                add(word, bits);
                (word, bits) = (sector / 64, 0);
            }
            bits |= 1 << (sector % 64);
        }
        add(word, bits);
    }

    /// Bytes of all touched sectors.
    pub(crate) fn bytes(&self) -> u64 {
        let bits = |w: &AtomicU64| u64::from(w.load(Ordering::Relaxed).count_ones());
        self.regions.iter().flatten().map(bits).sum::<u64>() * SECTOR
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
    fn footprint_counts_each_sector_once() {
        let mut memory = Memory::new();
        memory.alloc(1 << 20).unwrap();
        let footprint = Footprint::new(&memory);
        footprint.mark(0, 0, 4096);
        footprint.mark(0, 4000, 200);
        footprint.mark(0, 4195, 1);
        assert_eq!(footprint.bytes(), 4096 + 128);
    }
}
