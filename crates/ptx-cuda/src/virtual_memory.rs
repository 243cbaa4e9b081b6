//! Virtual memory management: reserves addresses, creates memory, and maps one to the other.
//!
//! Addresses are the host's. Memory is an anonymous file of the operating system, so that it can be
//! mapped in several places; kernels reach only ranges whose access was set.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

use ptx_emu::DevicePtr;

use crate::error::{Error, Result};
use crate::handles::Handles;
use crate::state::Device;

/// Addresses and sizes are multiples of this.
pub(crate) const GRANULARITY: u64 = 2 << 20;

/// Device memory without an address.
struct Created {
    file: File,
    bytes: u64,
    /// Handles that the program has not released.
    handles: u32,
    /// Places where it is mapped.
    places: u32,
}

/// A mapped piece of a reservation.
#[derive(Debug, Clone, Copy)]
struct Mapped {
    bytes: u64,
    memory: usize,
    accessible: bool,
}

/// A reserved range of addresses.
struct Reserved {
    bytes: u64,
    mapped: BTreeMap<u64, Mapped>,
    /// Starts of the runs of accessible pieces.
    lent: Vec<u64>,
}

/// All of it.
#[derive(Default)]
pub(crate) struct Virtual {
    created: Handles<Created>,
    reserved: BTreeMap<u64, Reserved>,
}

fn check_size(bytes: u64) -> Result {
    match bytes > 0 && bytes.is_multiple_of(GRANULARITY) {
        true => Ok(()),
        false => Err(Error::INVALID_VALUE),
    }
}

/// Unmaps pages of the host, or reserves new ones.
fn set_aside(at: u64, bytes: u64) -> Result<u64> {
    let place = std::ptr::with_exposed_provenance_mut(at as usize);
    let fixed = if at == 0 { 0 } else { libc::MAP_FIXED };
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: fresh pages, or those of a reservation.
    let found = unsafe { libc::mmap(place, bytes as usize, libc::PROT_NONE, kind, -1, 0) };
    match found == libc::MAP_FAILED {
        true => Err(Error::OUT_OF_MEMORY),
        false => Ok(found.expose_provenance() as u64),
    }
}

fn give_back(at: u64, bytes: u64) {
    // SAFETY: pages that `set_aside` gave, and nothing uses any more.
    unsafe {
        libc::munmap(
            std::ptr::with_exposed_provenance_mut(at as usize),
            bytes as usize,
        )
    };
}

impl Virtual {
    /// Bytes of memory that was created.
    pub(crate) fn bytes(&self) -> u64 {
        self.created.values().map(|memory| memory.bytes).sum()
    }

    pub(crate) fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<u64> {
        check_size(bytes)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            return Err(Error::INVALID_VALUE);
        }
        let alignment = alignment.max(GRANULARITY);
        let whole = bytes.checked_add(alignment).ok_or(Error::OUT_OF_MEMORY)?;
        let start = set_aside(0, whole)?;
        let aligned = start.next_multiple_of(alignment);
        if aligned > start {
            give_back(start, aligned - start);
        }
        if start + whole > aligned + bytes {
            give_back(aligned + bytes, start + whole - aligned - bytes);
        }
        let reserved = Reserved {
            bytes,
            mapped: BTreeMap::new(),
            lent: Vec::new(),
        };
        self.reserved.insert(aligned, reserved);
        Ok(aligned)
    }

    pub(crate) fn unreserve(&mut self, ptr: u64, bytes: u64) -> Result {
        match self.reserved.get(&ptr) {
            Some(found) if found.bytes == bytes && found.mapped.is_empty() => {
                self.reserved.remove(&ptr);
                give_back(ptr, bytes);
                Ok(())
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn create(&mut self, bytes: u64) -> Result<usize> {
        check_size(bytes)?;
        // SAFETY: the name is text; a new descriptor is ours alone.
        let file = unsafe {
            match libc::memfd_create(c"device memory".as_ptr(), libc::MFD_CLOEXEC) {
                -1 => return Err(Error::OUT_OF_MEMORY),
                descriptor => File::from_raw_fd(descriptor),
            }
        };
        file.set_len(bytes).map_err(|_| Error::OUT_OF_MEMORY)?;
        Ok(self.created.add(Created {
            file,
            bytes,
            handles: 1,
            places: 0,
        }))
    }

    pub(crate) fn release(&mut self, memory: usize) -> Result {
        let created = self.created.get_mut(memory);
        let created = created.map_err(|_| Error::INVALID_VALUE)?;
        created.handles = created.handles.checked_sub(1).ok_or(Error::INVALID_VALUE)?;
        self.drop_unused(memory)
    }

    /// Frees memory that has neither a handle nor a mapping.
    fn drop_unused(&mut self, memory: usize) -> Result {
        let Created {
            handles, places, ..
        } = self.created.get(memory)?;
        match (handles, places) {
            (0, 0) => self.created.remove(memory).map(drop),
            _ => Ok(()),
        }
    }

    /// The memory at an address, with one more handle.
    pub(crate) fn retain(&mut self, ptr: u64) -> Result<usize> {
        let (_, reserved) = self.around(ptr, 1)?;
        let (&at, piece) = reserved
            .mapped
            .range(..=ptr)
            .next_back()
            .ok_or(Error::INVALID_VALUE)?;
        let (memory, inside) = (piece.memory, ptr - at < piece.bytes);
        if !inside {
            return Err(Error::INVALID_VALUE);
        }
        self.created.get_mut(memory)?.handles += 1;
        Ok(memory)
    }

    /// The reservation that contains some bytes.
    fn around(&mut self, ptr: u64, bytes: u64) -> Result<(u64, &mut Reserved)> {
        let found = self.reserved.range_mut(..=ptr).next_back();
        let (&start, reserved) = found.ok_or(Error::INVALID_VALUE)?;
        let end = (ptr - start).checked_add(bytes);
        match end.is_some_and(|end| end <= reserved.bytes) {
            true => Ok((start, reserved)),
            false => Err(Error::INVALID_VALUE),
        }
    }

    pub(crate) fn map(&mut self, ptr: u64, bytes: u64, memory: usize) -> Result {
        check_size(bytes)?;
        let created = self.created.get_mut(memory);
        let created = created.map_err(|_| Error::INVALID_VALUE)?;
        if created.handles == 0 || bytes > created.bytes || !ptr.is_multiple_of(GRANULARITY) {
            return Err(Error::INVALID_VALUE);
        }
        let descriptor = created.file.as_raw_fd();
        let (_, reserved) = self.around(ptr, bytes)?;
        let before = reserved.mapped.range(..ptr + bytes).next_back();
        if before.is_some_and(|(at, piece)| at + piece.bytes > ptr) {
            return Err(Error::INVALID_VALUE);
        }
        let place = std::ptr::with_exposed_provenance_mut(ptr as usize);
        let (what, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
        );
        // SAFETY: pages of a reservation, which nothing uses.
        let found = unsafe { libc::mmap(place, bytes as usize, what, kind, descriptor, 0) };
        if found == libc::MAP_FAILED {
            return Err(Error::OUT_OF_MEMORY);
        }
        let piece = Mapped {
            bytes,
            memory,
            accessible: false,
        };
        reserved.mapped.insert(ptr, piece);
        self.created.get_mut(memory)?.places += 1;
        Ok(())
    }

    /// Whether kernels can reach an address.
    pub(crate) fn accessible(&mut self, ptr: u64) -> Result<bool> {
        let (_, reserved) = self.around(ptr, 1)?;
        let piece = reserved.mapped.range(..=ptr).next_back();
        Ok(piece.is_some_and(|(at, piece)| piece.accessible && ptr - at < piece.bytes))
    }
}

impl Reserved {
    /// Runs of accessible pieces: begin and bytes.
    fn runs(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (&at, piece) in self.mapped.iter().filter(|(_, piece)| piece.accessible) {
            match runs.last_mut() {
                Some((start, bytes)) if *start + *bytes == at => *bytes += piece.bytes,
                _ => runs.push((at, piece.bytes)),
            }
        }
        runs
    }
}

impl Device {
    /// Memory without an address, if the device has that much.
    pub(crate) fn create_memory(&mut self, bytes: u64) -> Result<usize> {
        match bytes <= self.free_bytes().0 {
            true => self.virtual_memory.create(bytes),
            false => Err(Error::OUT_OF_MEMORY),
        }
    }

    /// Lets kernels reach some mapped bytes, or not any more.
    pub(crate) fn set_access(&mut self, ptr: u64, bytes: u64, access: bool) -> Result {
        let (start, reserved) = self.virtual_memory.around(ptr, bytes)?;
        let end = ptr + bytes;
        let pieces = reserved.mapped.range(ptr..end);
        let whole = pieces.clone().all(|(at, piece)| at + piece.bytes <= end);
        let covered: u64 = pieces.map(|(_, piece)| piece.bytes).sum();
        if !whole || covered != bytes {
            return Err(Error::INVALID_VALUE);
        }
        for (_, piece) in reserved.mapped.range_mut(ptr..end) {
            piece.accessible = access;
        }
        self.lend_again(start)
    }

    pub(crate) fn unmap(&mut self, ptr: u64, bytes: u64) -> Result {
        self.set_access(ptr, bytes, false)?;
        let (_, reserved) = self.virtual_memory.around(ptr, bytes)?;
        let pieces = reserved.mapped.range(ptr..ptr + bytes);
        let pieces: Vec<usize> = pieces.map(|(_, piece)| piece.memory).collect();
        reserved
            .mapped
            .retain(|at, _| !(ptr..ptr + bytes).contains(at));
        for memory in pieces {
            self.virtual_memory.created.get_mut(memory)?.places -= 1;
            self.virtual_memory.drop_unused(memory)?;
        }
        set_aside(ptr, bytes).map(drop)
    }

    /// Frees everything.
    pub(crate) fn forget_virtual(&mut self) {
        let all = std::mem::take(&mut self.virtual_memory);
        for (start, reserved) in all.reserved {
            for lent in reserved.lent {
                // Lent by `lend_again`, and still valid.
                let _ = self.memory.free(DevicePtr(lent));
            }
            give_back(start, reserved.bytes);
        }
    }

    /// Passes the addresses of a reservation that kernels can reach to the emulator.
    fn lend_again(&mut self, start: u64) -> Result {
        let reserved = self.virtual_memory.reserved.get_mut(&start);
        let reserved = reserved.ok_or(Error::INVALID_VALUE)?;
        for lent in reserved.lent.drain(..) {
            let ended = self.memory.free(DevicePtr(lent));
            ended.map_err(|_| Error::UNKNOWN)?;
        }
        for (at, bytes) in reserved.runs() {
            let ptr = std::ptr::with_exposed_provenance_mut(at as usize);
            let ptr = NonNull::new(ptr).ok_or(Error::INVALID_VALUE)?;
            // SAFETY: mapped until `unmap`, which ends the loan first.
            let lent = unsafe { self.memory.lend("mapped device memory", ptr, bytes) };
            lent.map_err(|_| Error::INVALID_VALUE)?;
            reserved.lent.push(at);
        }
        Ok(())
    }
}
