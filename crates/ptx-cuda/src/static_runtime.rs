//! Programs that contain the CUDA runtime, as nvcc links them unless it is given `-cudart shared`.
//!
//! Such a runtime talks to the driver through private tables and checks which driver it is. It is
//! not needed: this library has the same functions, and a program that is not stripped lists their
//! addresses. Before the program's own constructors run, a jump to this library is written at the
//! beginning of each.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::entry;
use crate::say::say;

/// The function that the host code of every CUDA program calls first.
const FIRST: &str = "__cudaRegisterFatBinary";

/// A function that the runtime of CUDA 12 has, and that of 13 lacks.
const TWELVE: &str = "cudaGetDeviceProperties_v2";

static IS_TWELVE: AtomicBool = AtomicBool::new(false);

/// Whether a runtime of CUDA 12 was replaced.
pub(crate) fn is_twelve() -> bool {
    IS_TWELVE.load(Relaxed)
}

/// Runs when the loader has loaded this library, before any other constructor, even those of the C
/// library: see `build.rs`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = begin;

/// # Safety
/// The environment must be a list of texts that ends with null.
unsafe extern "C" fn begin(
    _count: c_int,
    _args: *const *const c_char,
    environment: *const *const c_char,
) {
    // Nothing may unwind into the loader.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: by this function's contract. The C library does not know it yet.
        if unsafe { is_preloaded(environment) } {
            replace_all();
        }
    });
}

/// Replaces the runtimes of all objects that have one.
fn replace_all() {
    let own_path = entry::own_path().map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
    let (own, others): (Vec<Object>, Vec<Object>) = objects()
        .into_iter()
        .partition(|object| Some(&*object.path) == own_path);
    let mut ours = None;
    for object in others {
        let theirs = object.functions(SYMBOLS);
        if !theirs.iter().any(|(name, _)| name == FIRST) {
            continue;
        }
        // The loader's own search would initialise the C library before it has its environment.
        let ours = ours.get_or_insert_with(|| {
            let own = own.iter().flat_map(|own| own.functions(EXPORTED));
            own.collect::<HashMap<String, usize>>()
        });
        if let Err(error) = replace(&theirs, ours) {
            let path = object.path.display();
            say(&format!(
                "the CUDA runtime inside {path} cannot be replaced ({error}): \
                 link it with -cudart shared"
            ));
        }
    }
}

/// Makes functions of a runtime jump to ours.
fn replace(theirs: &[(String, usize)], ours: &HashMap<String, usize>) -> io::Result<()> {
    if theirs.iter().any(|(name, _)| name == TWELVE) {
        IS_TWELVE.store(true, Relaxed);
    }
    let both = |(name, place): &(String, usize)| Some((*place, *ours.get(name)?));
    let jumps: Vec<(usize, usize)> = theirs.iter().filter_map(both).collect();
    // A runtime is replaced completely, or not at all.
    jumps
        .iter()
        .try_for_each(|(place, _)| check_place(*place))?;
    for (place, ours) in jumps {
        let place = std::ptr::with_exposed_provenance_mut(place);
        // SAFETY: the beginning of a function, by the object's own list; no code of the program
        // has run.
        unsafe { jump(place, ours) }?;
    }
    Ok(())
}

/// Whether the loader was told to load this library before the program. Otherwise the program's
/// kernels are already registered.
///
/// # Safety
/// As for `begin`.
unsafe fn is_preloaded(environment: *const *const c_char) -> bool {
    let own = entry::own_path().map(CStr::to_bytes);
    // SAFETY: by this function's contract.
    let variables = (0..).map_while(|index| unsafe {
        let variable = *environment.add(index);
        (!variable.is_null()).then(|| CStr::from_ptr(variable).to_bytes())
    });
    let named = variables.filter_map(|variable| variable.strip_prefix(b"LD_PRELOAD="));
    named
        .flat_map(|names| names.split(|byte| b": ".contains(byte)))
        .any(|name| Some(name) == own)
}

/// A program or a library in this process.
struct Object {
    path: PathBuf,
    /// The base of its addresses.
    base: usize,
}

/// The objects of this process.
fn objects() -> Vec<Object> {
    unsafe extern "C" fn add(
        found: *mut libc::dl_phdr_info,
        _size: usize,
        all: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives a valid description, and `objects` a vector.
        let (found, all) = unsafe { (&*found, &mut *all.cast::<Vec<Object>>()) };
        let name = match found.dlpi_name.is_null() {
            true => c"",
            // SAFETY: the loader's text, which ends in a zero.
            false => unsafe { CStr::from_ptr(found.dlpi_name) },
        };
        let path = match name.to_bytes() {
            b"" => Path::new("/proc/self/exe"),
            name => Path::new(OsStr::from_bytes(name)),
        };
        all.push(Object {
            path: path.to_owned(),
            base: found.dlpi_addr as usize,
        });
        0
    }
    let mut all: Vec<Object> = Vec::new();
    // SAFETY: the function and what it is given fit together.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut all).cast()) };
    all
}

impl Object {
    /// Functions of the runtime in one of its lists, by address. The kernel's own object has no
    /// file.
    fn functions(&self, list: u64) -> Vec<(String, usize)> {
        let file = File::open(&self.path).ok();
        let found = file.and_then(|file| functions(&file, list));
        let here = |(name, offset): (String, u64)| (name, self.base + offset as usize);
        found.into_iter().flatten().map(here).collect()
    }
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(&bytes[at..at + BYTES]);
    u64::from_le_bytes(wide)
}

fn read(file: &File, at: u64, bytes: u64) -> Option<Vec<u8>> {
    if bytes > file.metadata().ok()?.len() {
        return None;
    }
    let mut all = vec![0; bytes as usize];
    file.read_exact_at(&mut all, at).ok()?;
    Some(all)
}

/// Kinds of sections: all symbols, which a stripped object lacks, and the exported ones.
const SYMBOLS: u64 = 2;
const EXPORTED: u64 = 11;

/// Functions of the runtime that an ELF file lists, with their addresses.
fn functions(file: &File, list: u64) -> Option<Vec<(String, u64)>> {
    const SECTION: usize = 64;
    const SYMBOL: usize = 24;
    const FUNCTION: u8 = 2;
    let header = read(file, 0, 64)?;
    if header[..5] != *b"\x7fELF\x02" {
        return None;
    }
    let count = number::<2>(&header, 60);
    let sections = read(file, number::<8>(&header, 40), count * SECTION as u64)?;
    let sections: Vec<&[u8]> = sections.chunks_exact(SECTION).collect();
    let content = |section: &[u8]| read(file, number::<8>(section, 24), number::<8>(section, 32));
    let symbols = sections.iter().find(|s| number::<4>(s, 4) == list)?;
    let names = content(sections.get(number::<4>(symbols, 40) as usize)?)?;
    let symbols = content(symbols)?;
    let found = symbols.chunks_exact(SYMBOL).filter_map(|symbol| {
        let name = names.get(number::<4>(symbol, 0) as usize..)?;
        let name = CStr::from_bytes_until_nul(name).ok()?.to_str().ok()?;
        let is_defined = number::<2>(symbol, 6) != 0 && symbol[4] & 0xf == FUNCTION;
        let is_runtime = name.starts_with("cuda") || name.starts_with("__cuda");
        (is_defined && is_runtime).then(|| (name.to_owned(), number::<8>(symbol, 8)))
    });
    Some(found.collect())
}

/// Whether a jump can be written here. Functions of the runtime are aligned to 16 bytes, so it
/// overwrites no other.
fn check_place(place: usize) -> io::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::Error::other("not on this processor"));
    }
    match place.is_multiple_of(16) {
        true => Ok(()),
        false => Err(io::Error::other("a function is not aligned")),
    }
}

/// Writes a jump over the beginning of a function.
///
/// # Safety
/// The function must not be running, and `check_place` must accept its address.
unsafe fn jump(place: *mut u8, to: usize) -> io::Result<()> {
    // jmp [rip], then the target.
    let mut code = vec![0xff, 0x25, 0, 0, 0, 0];
    code.extend(to.to_le_bytes());
    // SAFETY: no memory is touched.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let begin = place.map_addr(|address| address & !(page - 1));
    let bytes = place.addr() + code.len() - begin.addr();
    let allow = |what: c_int| {
        // SAFETY: pages of the program's code, which stay readable.
        match unsafe { libc::mprotect(begin.cast(), bytes, what) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    allow(libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: by this function's contract; the pages can be written.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
    allow(libc::PROT_READ | libc::PROT_EXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_lists_functions_and_a_text_none() {
        let own = File::open("/proc/self/exe").expect("it runs");
        assert!(functions(&own, SYMBOLS).is_some());
        let text = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
        assert_eq!(functions(&text.expect("it is there"), SYMBOLS), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_jump_leads_to_the_other_function() {
        extern "C" fn other() -> u32 {
            2
        }
        // SAFETY: a page of our own, with `mov eax, 1; ret`.
        let answer = unsafe {
            let (write, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let none = std::ptr::null_mut();
            let page = libc::mmap(none, 4096, write, kind | libc::MAP_ANONYMOUS, -1, 0);
            let code = [0xb8u8, 1, 0, 0, 0, 0xc3];
            std::ptr::copy_nonoverlapping(code.as_ptr(), page.cast(), code.len());
            jump(page.cast(), other as *const () as usize).expect("it can be written");
            assert!(check_place(page.addr()).is_ok() && check_place(page.addr() + 8).is_err());
            let function: extern "C" fn() -> u32 = std::mem::transmute(page);
            function()
        };
        assert_eq!(answer, 2);
    }
}
