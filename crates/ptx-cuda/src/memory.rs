//! Memory of all kinds, and copies between them.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use ptx_emu::{DevicePtr, MemoryError};

use crate::context::current;
use crate::error::{Error, Result};
use crate::registration::registered;
use crate::state::Device;

/// The kind of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cudaMalloc`
    Device,
    /// `cudaMallocManaged`
    Managed,
    /// `cudaMallocHost`: the library's own host memory.
    Pinned,
    /// `cudaHostRegister`: the program's host memory.
    Registered,
}

/// An allocation of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    /// Flags it was made with.
    pub(crate) flags: u32,
    /// The memory pool it came from.
    pub(crate) pool: Option<usize>,
    /// The context it was made in.
    pub(crate) context: usize,
}

/// Flags of managed memory.
const ATTACH_GLOBAL: u32 = 1;
const ATTACH_HOST: u32 = 2;

/// The distance of rows is a multiple of this.
pub(crate) const PITCH: usize = 512;

/// Flags of pinned memory: for all contexts, mapped, write-combined.
const PINNED_FLAGS: u32 = 7;

/// Alignment of pinned memory: a page.
const PAGE: usize = 4096;

fn pinned_layout(bytes: u64) -> Result<Layout> {
    let size = usize::try_from(bytes).map_err(|_| Error::OUT_OF_MEMORY)?;
    Layout::from_size_align(size, PAGE).map_err(|_| Error::OUT_OF_MEMORY)
}

fn refused(error: MemoryError) -> Error {
    match error {
        MemoryError::Empty | MemoryError::OutOfBounds { .. } => Error::INVALID_VALUE,
        MemoryError::TooLarge { .. } => Error::OUT_OF_MEMORY,
        MemoryError::Overlaps { .. } => Error::ALREADY_REGISTERED,
        _ => Error::INVALID_VALUE,
    }
}

/// Rows and slices of bytes: their start and distances.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rows {
    pub(crate) start: u64,
    pub(crate) pitch: u64,
    /// Bytes from one slice of rows to the next.
    pub(crate) slice: u64,
}

impl Rows {
    pub(crate) fn at(start: u64) -> Self {
        Self::planar(start, 0)
    }

    /// Rows with a pitch.
    pub(crate) fn planar(start: u64, pitch: u64) -> Self {
        Self {
            start,
            pitch,
            slice: 0,
        }
    }

    /// From a byte, row and slice on, where a slice has `height` rows.
    pub(crate) fn from(start: u64, at: [u64; 3], pitch: u64, height: u64) -> Result<Self> {
        let [x, y, z] = at;
        let place = || {
            let slice = pitch.checked_mul(height)?;
            let rows = y.checked_mul(pitch)?.checked_add(z.checked_mul(slice)?)?;
            let start = start.checked_add(x)?.checked_add(rows)?;
            Some(Self {
                start,
                pitch,
                slice,
            })
        };
        place().ok_or(Error::INVALID_VALUE)
    }

    /// Checks that all bytes have addresses, and that rows do not overlap.
    fn check(&self, extent: Extent) -> Result {
        let [bytes, rows, slices] = extent;
        let end = || {
            let rows = (rows - 1).checked_mul(self.pitch)?;
            let slices = (slices - 1).checked_mul(self.slice)?;
            let before = self.start.checked_add(rows)?.checked_add(slices)?;
            before.checked_add(bytes)
        };
        match (rows == 1 || self.pitch >= bytes) && end().is_some() {
            true => Ok(()),
            false => Err(Error::INVALID_VALUE),
        }
    }
}

/// Bytes in a row, rows and slices.
pub(crate) type Extent = [u64; 3];

impl Device {
    /// Allocates device or managed memory.
    pub(crate) fn allocate(&mut self, kind: Kind, bytes: u64, flags: u32) -> Result<u64> {
        self.check_unseen()?;
        self.allocate_in_order(kind, bytes, flags)
    }

    /// Allocates managed memory, for all streams or those it is attached to.
    pub(crate) fn allocate_managed(&mut self, bytes: u64, flags: u32) -> Result<u64> {
        match flags {
            ATTACH_GLOBAL | ATTACH_HOST => self.allocate(Kind::Managed, bytes, flags),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// Allocates in stream order, which a capture can record.
    pub(crate) fn allocate_in_order(&mut self, kind: Kind, bytes: u64, flags: u32) -> Result<u64> {
        let name = match kind {
            Kind::Managed => "managed memory",
            _ => "device memory",
        };
        if bytes > self.free_bytes().0 {
            return Err(Error::OUT_OF_MEMORY);
        }
        let ptr = self.memory.alloc_named(name, bytes).map_err(refused)?.0;
        self.note(ptr, kind, bytes, flags);
        Ok(ptr)
    }

    fn note(&mut self, ptr: u64, kind: Kind, bytes: u64, flags: u32) {
        let block = Block {
            kind,
            bytes,
            flags,
            pool: None,
            context: current(),
        };
        self.blocks.insert(ptr, block);
    }

    /// Allocates host memory that kernels can reach.
    pub(crate) fn allocate_pinned(&mut self, bytes: u64, flags: u32) -> Result<u64> {
        if bytes == 0 || flags & !PINNED_FLAGS != 0 {
            return Err(Error::INVALID_VALUE);
        }
        self.check_unseen()?;
        let layout = pinned_layout(bytes)?;
        // SAFETY: the layout has a size above zero.
        let ptr = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Error::OUT_OF_MEMORY)?;
        // SAFETY: valid until `release`, which ends the loan first. What the program does there
        // while a kernel runs is its own race, as on a device: see `Memory::lend`.
        let lent = unsafe { self.memory.lend("pinned host memory", ptr, bytes) };
        let start = lent.map_err(|error| {
            // SAFETY: allocated above with this layout, and not lent.
            unsafe { dealloc(ptr.as_ptr(), layout) };
            refused(error)
        })?;
        let start = start.0;
        self.note(start, Kind::Pinned, bytes, flags);
        Ok(start)
    }

    /// Lets kernels reach memory of the program.
    ///
    /// # Safety
    /// It must be the program's memory until it is unregistered.
    pub(crate) unsafe fn register(&mut self, ptr: *mut u8, bytes: u64, flags: u32) -> Result {
        let ptr = NonNull::new(ptr).ok_or(Error::INVALID_VALUE)?;
        let end = (ptr.addr().get() as u64).checked_add(bytes);
        end.ok_or(Error::INVALID_VALUE)?;
        // SAFETY: by this function's contract.
        let lent = unsafe { self.memory.lend("registered host memory", ptr, bytes) };
        let start = lent.map_err(refused)?.0;
        self.note(start, Kind::Registered, bytes, flags);
        Ok(())
    }

    /// Frees an allocation if it is of one of these kinds.
    pub(crate) fn free(&mut self, ptr: u64, kinds: &[Kind]) -> Result {
        self.check_unseen()?;
        self.give_back(ptr, kinds)
    }

    /// Returns an allocation of one of these kinds to its graph, or to the device and the pool that
    /// counts it.
    pub(crate) fn give_back(&mut self, ptr: u64, kinds: &[Kind]) -> Result {
        let block = *self.blocks.get(&ptr).ok_or(Error::INVALID_VALUE)?;
        if !kinds.contains(&block.kind) {
            return Err(Error::INVALID_VALUE);
        }
        if self.disown(ptr)? {
            return Ok(());
        }
        self.release(ptr)?;
        if let Some(pool) = block.pool.and_then(|pool| self.pools.get_mut(pool).ok()) {
            pool.used -= block.bytes;
        }
        Ok(())
    }

    /// Frees an allocation of any kind.
    pub(crate) fn release(&mut self, ptr: u64) -> Result {
        let block = self.blocks.remove(&ptr).ok_or(Error::INVALID_VALUE)?;
        self.freed_last.retain(|(last, _)| *last != ptr);
        self.graph_memory.remove(&ptr);
        self.memory.free(DevicePtr(ptr)).map_err(refused)?;
        if block.kind == Kind::Pinned {
            let layout = pinned_layout(block.bytes)?;
            // SAFETY: allocated with this layout in `allocate_pinned`; the loan has ended.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(ptr as usize), layout) };
        }
        Ok(())
    }

    /// Free bytes, and all bytes.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        let limit = self.memory.limit();
        let used = self.memory.used() + self.virtual_memory.bytes();
        (limit.saturating_sub(used), limit)
    }

    /// The program's allocation at an address, and its start.
    pub(crate) fn block(&self, ptr: u64) -> Option<(u64, Block)> {
        let (&start, &block) = self.blocks.range(..=ptr).next_back()?;
        (ptr - start < block.bytes).then_some((start, block))
    }

    /// The kind of memory at an address that kernels can use, if any: an allocation or a variable.
    pub(crate) fn kind(&self, ptr: u64) -> Option<Kind> {
        match self.block(ptr) {
            Some((_, block)) => Some(block.kind),
            None if !self.knows(ptr) => None,
            None if registered().is_managed(ptr) => Some(Kind::Managed),
            None => Some(Kind::Device),
        }
    }

    /// Whether kernels can use an address.
    pub(crate) fn knows(&self, ptr: u64) -> bool {
        self.memory.allocation(DevicePtr(ptr)).is_some()
    }

    /// The host's pointer to bytes that a program names: in one allocation, or its own memory.
    fn reach(&self, ptr: u64, bytes: u64) -> Result<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::dangling_mut());
        }
        if self.knows(ptr) {
            let found = self.memory.host_ptr(DevicePtr(ptr), bytes);
            return found.map(NonNull::as_ptr).map_err(refused);
        }
        if ptr == 0 || self.memory.set_aside().contains(&ptr) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(std::ptr::with_exposed_provenance_mut(ptr as usize))
    }

    /// Copies rows of bytes.
    ///
    /// # Safety
    /// Addresses outside allocations must be valid memory of the program.
    pub(crate) unsafe fn copy(&self, to: Rows, from: Rows, extent: Extent) -> Result {
        if extent.contains(&0) {
            return Ok(());
        }
        to.check(extent)?;
        from.check(extent)?;
        let [bytes, rows, slices] = extent;
        for slice in 0..slices {
            for row in 0..rows {
                let at = |side: Rows| side.start + slice * side.slice + row * side.pitch;
                let to = self.reach(at(to), bytes)?;
                let from = self.reach(at(from), bytes)?;
                // SAFETY: inside allocations, or by this function's contract; no launch runs.
                unsafe { std::ptr::copy(from.cast_const(), to, bytes as usize) };
            }
        }
        Ok(())
    }

    /// Fills rows with a pattern of one, two or four bytes.
    ///
    /// # Safety
    /// As for `copy`.
    pub(crate) unsafe fn fill(&self, to: Rows, pattern: &[u8], extent: Extent) -> Result {
        if extent.contains(&0) {
            return Ok(());
        }
        to.check(extent)?;
        if !to.start.is_multiple_of(pattern.len() as u64) {
            return Err(Error::INVALID_VALUE);
        }
        let [bytes, rows, slices] = extent;
        for slice in 0..slices {
            for row in 0..rows {
                let ptr = to.start + slice * to.slice + row * to.pitch;
                if !self.knows(ptr) {
                    return Err(Error::INVALID_VALUE);
                }
                let place = self.reach(ptr, bytes)?;
                // SAFETY: as in `copy`.
                let place = unsafe { std::slice::from_raw_parts_mut(place, bytes as usize) };
                match pattern {
                    [byte] => place.fill(*byte),
                    _ => {
                        for chunk in place.chunks_mut(pattern.len()) {
                            chunk.copy_from_slice(&pattern[..chunk.len()]);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the declared direction of a runtime copy.
    pub(crate) fn check_direction(&self, kind: i32, to: u64, from: u64) -> Result {
        let fits = match kind {
            0 | 4 => true,
            1 => self.knows(to),
            2 => self.knows(from),
            3 => self.knows(to) && self.knows(from),
            _ => return Err(Error::INVALID_DIRECTION),
        };
        match fits {
            true => Ok(()),
            false => Err(Error::INVALID_VALUE),
        }
    }
}
