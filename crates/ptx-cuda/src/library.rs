//! The folder in which programs find the libraries.
//!
//! This library exports both APIs and lies there as `libcuda.so.1`. Programs linked by nvcc want
//! symbols with the version `libcudart.so.13` from a file of that name. That file has no code: it
//! defines the version and depends on `libcuda.so.1`, where the loader finds the unversioned
//! symbols. A file for NVRTC does the same and depends on NVRTC itself too; the loader takes
//! `nvrtcGetCUBIN` from this library.

use std::io;
use std::path::{Path, PathBuf};

/// Runtimes that this library can replace.
const RUNTIMES: [&str; 2] = ["libcudart.so.12", "libcudart.so.13"];
/// Compilers whose machine code is replaced by PTX.
pub(crate) const COMPILERS: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];
/// The library itself; programs with a static runtime need its path in `LD_PRELOAD`.
pub const DRIVER: &str = "libcuda.so.1";

/// Fills a folder for `LD_LIBRARY_PATH`, given the bytes of this library.
pub fn prepare(folder: &Path, library: &[u8]) -> io::Result<()> {
    std::fs::write(folder.join(DRIVER), library)?;
    for name in RUNTIMES {
        std::fs::write(folder.join(name), stub(name, &[DRIVER]))?;
    }
    std::os::unix::fs::symlink(DRIVER, folder.join("libcuda.so"))
}

/// Adds NVRTC, if it lies in one of these folders.
pub fn prepare_compiler(folder: &Path, places: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let places: Vec<_> = places.collect();
    for name in COMPILERS {
        let mut files = places.iter().map(|place| place.join(name));
        let real = files.find_map(|file| file.canonicalize().ok());
        if let Some(real) = real.as_deref().and_then(Path::to_str) {
            std::fs::write(folder.join(name), stub(name, &[DRIVER, real]))?;
        }
    }
    Ok(())
}

/// Strings of the dynamic section, one after the other.
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, text: &str) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend(text.as_bytes());
        self.0.push(0);
        at
    }
}

/// Little-endian numbers, one after the other.
#[derive(Default)]
struct Numbers(Vec<u8>);

impl Numbers {
    fn u16(&mut self, values: &[u16]) -> &mut Self {
        values.iter().for_each(|v| self.0.extend(v.to_le_bytes()));
        self
    }

    fn u32(&mut self, values: &[u32]) -> &mut Self {
        values.iter().for_each(|v| self.0.extend(v.to_le_bytes()));
        self
    }

    fn u64(&mut self, values: &[u64]) -> &mut Self {
        values.iter().for_each(|v| self.0.extend(v.to_le_bytes()));
        self
    }
}

/// The hash of a version's name in ELF files.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let top = hash & 0xf000_0000;
        (hash ^ (top >> 24)) & !top
    })
}

const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
/// Where the parts of the file begin.
const HASH: u64 = HEADER + 3 * PROGRAM_HEADER;
const SYMBOLS: u64 = HASH + 24;
const VERSIONS: u64 = SYMBOLS + 24;
const DEFINITIONS: u64 = VERSIONS + 8;
const DYNAMIC: u64 = DEFINITIONS + 2 * 28;
/// Entries of the dynamic section besides those of needed files.
const ENTRIES: u64 = 10;

const LOAD: u32 = 1;
const DYNAMIC_SEGMENT: u32 = 2;
const STACK: u32 = 0x6474_e551;
const READ: u32 = 4;
const WRITE: u32 = 2;

/// Where the strings begin.
fn strings_at(needed: usize) -> u64 {
    DYNAMIC + (ENTRIES + needed as u64) * 16
}

/// A file without code that needs others.
fn stub(name: &str, needed: &[&str]) -> Vec<u8> {
    let mut strings = Strings(vec![0]);
    let own = strings.add(name);
    let dynamic_bytes = (ENTRIES + needed.len() as u64) * 16;
    let needed: Vec<_> = needed.iter().map(|file| (1, strings.add(file))).collect();
    let strings_start = strings_at(needed.len());
    let end = strings_start + strings.0.len() as u64;
    let machine = match cfg!(target_arch = "aarch64") {
        true => 183,
        false => 62,
    };
    let mut file = Numbers(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec());
    file.u16(&[3, machine])
        .u32(&[1])
        .u64(&[0, HEADER, 0])
        .u32(&[0]);
    file.u16(&[HEADER as u16, PROGRAM_HEADER as u16, 3, 64, 0, 0]);
    let mut segment = |kind: u32, flags: u32, at: u64, bytes: u64, align: u64| {
        file.u32(&[kind, flags])
            .u64(&[at, at, at, bytes, bytes, align]);
    };
    segment(LOAD, READ | WRITE, 0, end, 0x1_0000);
    segment(DYNAMIC_SEGMENT, READ | WRITE, DYNAMIC, dynamic_bytes, 8);
    segment(STACK, READ | WRITE, 0, 0, 16);
    // One bucket with no symbol, then the null symbol and its version.
    file.u32(&[1, 1, 0, 0, 0, 0])
        .u64(&[0, 0, 0])
        .u16(&[0, 0, 0, 0]);
    // The file's own name, then the version: revision, flags, index, count, hash, the offsets of
    // its name and of the next definition; then the name.
    for (flags, index, next) in [(1, 1, 28), (0, 2, 0)] {
        file.u16(&[1, flags, index, 1]).u32(&[hash(name), 20, next]);
        file.u32(&[own as u32, 0]);
    }
    let strings_bytes = strings.0.len() as u64;
    let own_entries = [
        (14, own),
        (4, HASH),
        (5, strings_start),
        (6, SYMBOLS),
        (10, strings_bytes),
        (11, 24),
        (0x6fff_fff0, VERSIONS),
        (0x6fff_fffc, DEFINITIONS),
        (0x6fff_fffd, 2),
        (0, 0),
    ];
    for (tag, value) in needed.into_iter().chain(own_entries) {
        file.u64(&[tag, value]);
    }
    file.0.extend(strings.0);
    file.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_runtime_lie_where_its_header_says() {
        let file = stub("libcudart.so.13", &[DRIVER]);
        let at = |offset: u64, bytes: usize| &file[offset as usize..][..bytes];
        assert_eq!(at(strings_at(1), 17), b"\0libcudart.so.13\0");
        assert_eq!(
            at(DEFINITIONS + 8, 4),
            hash("libcudart.so.13").to_le_bytes()
        );
        assert_eq!(hash("libcudart.so.13"), 0x0ff3_db23);
        assert_eq!(at(DYNAMIC, 8), 1u64.to_le_bytes());
    }
}
