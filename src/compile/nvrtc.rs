use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::nvrtc::{result, sys};

use super::Error;
use super::locate::{self, Found, Origin};

const STEM: &str = "libnvrtc";

/// The compiler of this process. Loaded once; safe to use from many threads.
#[derive(Debug)]
pub struct Nvrtc {
    pub version: (i32, i32),
    pub found: Found,
}

/// What one compilation gave. Without a cubin it failed, and the log says why.
pub struct Output {
    pub cubin: Option<Vec<u8>>,
    pub ptx: String,
    pub log: String,
}

impl Nvrtc {
    /// Finds and loads NVRTC: `$DGX_NVRTC`, the loader's path, a CUDA toolkit,
    /// the checkout's `.dgx/nvrtc`, in this order.
    pub fn find() -> Result<&'static Self, Error> {
        static NVRTC: OnceLock<Nvrtc> = OnceLock::new();
        if let Some(found) = NVRTC.get() {
            return Ok(found);
        }
        let nvrtc = Self::load(locate()?)?;
        Ok(NVRTC.get_or_init(|| nvrtc))
    }

    /// e.g. `NVRTC 13.0`.
    pub fn version_text(&self) -> String {
        format!("NVRTC {}.{}", self.version.0, self.version.1)
    }

    fn load(found: Found) -> Result<Self, Error> {
        let path = found.path.clone();
        if found.origin != Origin::Loader {
            // NVRTC opens its builtins by bare name as well.
            if let Some(builtins) = path
                .parent()
                .and_then(|folder| locate::newest(folder, "libnvrtc-builtins"))
            {
                locate::preload(&builtins).map_err(|reason| Error::Unloadable {
                    path: builtins.clone(),
                    reason,
                })?;
            }
            locate::preload(&path).map_err(|reason| Error::Unloadable {
                path: path.clone(),
                reason,
            })?;
        }
        // SAFETY: only looks for the library, by the names cudarc will use.
        if !unsafe { sys::is_culib_present() } {
            let reason = "its soname is not one this dgx knows".to_owned();
            return Err(Error::Unloadable { path, reason });
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        let status = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
        status.result().map_err(|e| Error::Unloadable {
            path: path.clone(),
            reason: format!("nvrtcVersion: {e}"),
        })?;
        if major < 12 {
            let found = format!("{major}.{minor}");
            return Err(Error::TooOld { found, path });
        }
        let in_use = locate::loaded_path(STEM);
        let found = match (found.origin, in_use) {
            (Origin::Variable, Some(used)) if !same_file(&used, &path) => {
                return Err(Error::Shadowed { wanted: path });
            }
            (origin, Some(path)) => Found { path, origin },
            (_, None) => found,
        };
        Ok(Self {
            version: (major, minor),
            found,
        })
    }

    /// Compiles `source`, which messages call `name`.
    pub fn compile(&self, name: &str, source: &str, flags: &[String]) -> Result<Output, Error> {
        let broken = |reason: String| Error::Broken {
            unit: name.to_owned(),
            reason,
        };
        let text = |s: &str| CString::new(s).map_err(|_| broken("a NUL byte in the source".into()));
        let (source, unit_name) = (text(source)?, text(name)?);
        let flags = flags
            .iter()
            .map(|f| text(f))
            .collect::<Result<Vec<_>, _>>()?;
        let program = Program::new(&source, &unit_name).map_err(broken)?;
        let compiled = program.compile(&flags).map_err(broken)?;
        let ptx = program.ptx().unwrap_or_default();
        let log = program.log().map_err(broken)?;
        let cubin = match compiled {
            true => Some(program.cubin().map_err(broken)?),
            false => None,
        };
        Ok(Output { cubin, ptx, log })
    }
}

fn same_file(a: &std::path::Path, b: &std::path::Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn locate() -> Result<Found, Error> {
    let mut looked = vec!["DGX_NVRTC".to_owned()];
    if let Some(place) = std::env::var_os("DGX_NVRTC").filter(|v| !v.is_empty()) {
        let place = PathBuf::from(place);
        return locate::below(&place)
            .iter()
            .find_map(|p| locate::file_or_folder(p, STEM))
            .map(|path| Found {
                path,
                origin: Origin::Variable,
            })
            .ok_or_else(|| Error::Unloadable {
                path: place,
                reason: "DGX_NVRTC names no libnvrtc.so".to_owned(),
            });
    }
    looked.push("the library path".to_owned());
    // SAFETY: only looks for the library.
    if unsafe { sys::is_culib_present() } {
        return Ok(Found {
            path: PathBuf::from("libnvrtc.so"),
            origin: Origin::Loader,
        });
    }
    let toolkit = locate::system_library_folders();
    looked.extend(toolkit.iter().map(|f| f.display().to_string()));
    if let Some(path) = locate::search(&toolkit, STEM) {
        return Ok(Found {
            path,
            origin: Origin::Toolkit,
        });
    }
    looked.push(".dgx/nvrtc".to_owned());
    let local = locate::checkout_folder("nvrtc").map(|folder| locate::below(&folder));
    if let Some(path) = local.and_then(|folders| locate::search(&folders, STEM)) {
        return Ok(Found {
            path,
            origin: Origin::Checkout,
        });
    }
    Err(Error::Missing {
        looked: looked.join(", "),
    })
}

/// An NVRTC program, destroyed on drop.
struct Program(sys::nvrtcProgram);

impl Program {
    fn new(source: &CStr, name: &CStr) -> Result<Self, String> {
        result::create_program(source, Some(name))
            .map(Self)
            .map_err(|e| format!("nvrtcCreateProgram: {e}"))
    }

    /// Whether it compiled; an error that is not the source's fault is an `Err`.
    fn compile(&self, flags: &[CString]) -> Result<bool, String> {
        let pointers: Vec<*const c_char> = flags.iter().map(|f| f.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|e| e.to_string())?;
        // SAFETY: the program lives, and `flags` outlive the call.
        let status = unsafe { sys::nvrtcCompileProgram(self.0, count, pointers.as_ptr()) };
        match status {
            sys::nvrtcResult::NVRTC_SUCCESS => Ok(true),
            sys::nvrtcResult::NVRTC_ERROR_COMPILATION => Ok(false),
            other => Err(format!(
                "nvrtcCompileProgram: {other:?}: {}",
                self.log().unwrap_or_default().trim()
            )),
        }
    }

    fn log(&self) -> Result<String, String> {
        // SAFETY: the program lives.
        let bytes = unsafe { result::get_program_log(self.0) };
        bytes
            .map(|b| text(&b))
            .map_err(|e| format!("nvrtcGetProgramLog: {e}"))
    }

    fn ptx(&self) -> Result<String, String> {
        // SAFETY: the program lives.
        let bytes = unsafe { result::get_ptx(self.0) };
        bytes
            .map(|b| text(&b))
            .map_err(|e| format!("nvrtcGetPTX: {e}"))
    }

    fn cubin(&self) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: the program lives; the buffer has the size it asked for.
        unsafe {
            sys::nvrtcGetCUBINSize(self.0, &mut size)
                .result()
                .map_err(|e| format!("nvrtcGetCUBINSize: {e}"))?;
            let mut bytes = vec![0u8; size];
            sys::nvrtcGetCUBIN(self.0, bytes.as_mut_ptr().cast())
                .result()
                .map_err(|e| format!("nvrtcGetCUBIN: {e}"))?;
            Ok(bytes)
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by nvrtcCreateProgram, destroyed once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// C text up to its NUL.
fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|&b| b as u8)
        .take_while(|&b| b != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
