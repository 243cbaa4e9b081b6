use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::nvrtc::{result, sys};

use super::Error;
use crate::toolkit::{self, LibraryFile, Origin};

const STEM: &str = "libnvrtc";

/// The compiler of this process. Loaded once; safe to use from many threads.
#[derive(Debug)]
pub struct Nvrtc {
    pub version: (i32, i32),
    pub found: LibraryFile,
}

/// The result of one compilation. Without a cubin it failed, and the log has the reason.
pub struct Output {
    pub cubin: Option<Vec<u8>>,
    pub ptx: String,
    pub log: String,
    /// The name of each instance in the PTX.
    pub lowered: Vec<(String, String)>,
}

impl Nvrtc {
    /// Finds and loads NVRTC: `$DGX_NVRTC`, the loader's path, a CUDA toolkit, the checkout's
    /// `.dgx/nvrtc`, a Python environment, in this order.
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

    fn load(found: LibraryFile) -> Result<Self, Error> {
        let path = found.path.clone();
        if found.origin != Origin::Loader {
            // NVRTC opens its builtins by bare name as well.
            if let Some(builtins) = path
                .parent()
                .and_then(|folder| toolkit::newest(folder, "libnvrtc-builtins"))
            {
                toolkit::preload(&builtins).map_err(|reason| Error::Unloadable {
                    path: builtins.clone(),
                    reason,
                })?;
            }
            toolkit::preload(&path).map_err(|reason| Error::Unloadable {
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
        if (major, minor) < (12, 1) {
            let found = format!("{major}.{minor}");
            return Err(Error::TooOld { found, path });
        }
        let in_use = toolkit::loaded_path(STEM);
        let found = match (found.origin, in_use) {
            (Origin::Variable, Some(used)) if !same_file(&used, &path) => {
                return Err(Error::Shadowed { wanted: path });
            }
            (origin, Some(path)) => LibraryFile { path, origin },
            (_, None) => found,
        };
        Ok(Self {
            version: (major, minor),
            found,
        })
    }

    /// Compiles `source`, called `name` in messages, with `headers` by name and text. An error is
    /// NVRTC's or its caller's, not the source's.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        flags: &[String],
        headers: &[(String, String)],
    ) -> Result<Output, String> {
        self.compile_instances(name, source, flags, headers, &[])
    }

    /// The same with `instances`, kernels by name expression.
    pub(super) fn compile_instances(
        &self,
        name: &str,
        source: &str,
        flags: &[String],
        headers: &[(String, String)],
        instances: &[String],
    ) -> Result<Output, String> {
        let text = |s: &str| CString::new(s).map_err(|_| "there is a NUL byte in it".to_owned());
        let list = |texts: Vec<&str>| texts.into_iter().map(text).collect::<Result<Vec<_>, _>>();
        let names = list(headers.iter().map(|(name, _)| name.as_str()).collect())?;
        let texts = list(headers.iter().map(|(_, text)| text.as_str()).collect())?;
        let flags = list(flags.iter().map(String::as_str).collect())?;
        let program = Program::new(&text(source)?, &text(name)?, &names, &texts)?;
        let expressions = list(instances.iter().map(String::as_str).collect())?;
        for expression in &expressions {
            program.instantiate(expression)?;
        }
        let compiled = program.compile(&flags)?;
        let ptx = program.ptx().unwrap_or_default();
        let log = program.log()?;
        let cubin = match compiled {
            true => Some(program.cubin()?),
            false => None,
        };
        let names = instances.iter().zip(&expressions);
        let lowered = names.filter_map(|(name, e)| Some((name.clone(), program.lowered(e)?)));
        Ok(Output {
            cubin,
            ptx,
            log,
            lowered: lowered.collect(),
        })
    }

    /// The library itself: two builds of one version are not the same compiler.
    pub(crate) fn identity(&self) -> String {
        format!(
            "{} {}",
            self.version_text(),
            toolkit::identity(&self.found.path)
        )
    }
}

fn same_file(a: &std::path::Path, b: &std::path::Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn locate() -> Result<LibraryFile, Error> {
    let mut looked = vec!["DGX_NVRTC".to_owned()];
    if let Some(place) = toolkit::variable("DGX_NVRTC") {
        return toolkit::below(&place)
            .iter()
            .find_map(|p| toolkit::file_or_folder(p, STEM))
            .map(|path| LibraryFile {
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
        return Ok(LibraryFile {
            path: PathBuf::from("libnvrtc.so"),
            origin: Origin::Loader,
        });
    }
    let toolkit = toolkit::system_library_folders();
    looked.extend(toolkit.iter().map(|f| f.display().to_string()));
    if let Some(path) = toolkit::search(&toolkit, STEM) {
        return Ok(LibraryFile {
            path,
            origin: Origin::Toolkit,
        });
    }
    looked.push(".dgx/nvrtc".to_owned());
    let local = toolkit::checkout_folder("nvrtc").map(|folder| toolkit::below(&folder));
    if let Some(path) = local.and_then(|folders| toolkit::search(&folders, STEM)) {
        return Ok(LibraryFile {
            path,
            origin: Origin::Checkout,
        });
    }
    looked.push("Python environments".to_owned());
    if let Some(path) = toolkit::search(&toolkit::python_library_folders(), STEM) {
        return Ok(LibraryFile {
            path,
            origin: Origin::Python,
        });
    }
    Err(Error::Missing {
        looked: looked.join(", "),
    })
}

/// An NVRTC program, destroyed on drop.
struct Program(sys::nvrtcProgram);

impl Program {
    fn new(
        source: &CStr,
        name: &CStr,
        header_names: &[CString],
        headers: &[CString],
    ) -> Result<Self, String> {
        let pointers = |list: &[CString]| list.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
        let (names, texts) = (pointers(header_names), pointers(headers));
        let count = c_int::try_from(texts.len()).map_err(|e| e.to_string())?;
        let mut program = std::ptr::null_mut();
        // SAFETY: all strings outlive the call, which copies them; both lists
        // have `count` entries.
        let status = unsafe {
            sys::nvrtcCreateProgram(
                &mut program,
                source.as_ptr(),
                name.as_ptr(),
                count,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        let made = status.result().map(|()| Self(program));
        made.map_err(|e| format!("nvrtcCreateProgram: {e}"))
    }

    /// Requests the instance of a template, or a kernel in a namespace.
    fn instantiate(&self, expression: &CStr) -> Result<(), String> {
        // SAFETY: the program lives, and copies the text.
        let status = unsafe { sys::nvrtcAddNameExpression(self.0, expression.as_ptr()) };
        let added = status.result();
        added.map_err(|e| format!("nvrtcAddNameExpression: {e}"))
    }

    /// Its name in the PTX, if it compiled.
    fn lowered(&self, expression: &CStr) -> Option<String> {
        let mut name = std::ptr::null();
        // SAFETY: the program lives; the name is its own, and is copied.
        unsafe {
            let status = sys::nvrtcGetLoweredName(self.0, expression.as_ptr(), &mut name);
            status.result().ok()?;
            Some(CStr::from_ptr(name).to_string_lossy().into_owned())
        }
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
            other => {
                let log = self.log().unwrap_or_default();
                Err(match log.trim() {
                    "" => format!("nvrtcCompileProgram: {other:?}"),
                    log => log.to_owned(),
                })
            }
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

#[cfg(test)]
mod tests {
    use dgx_core::domain::Chip;

    use super::*;

    #[test]
    fn the_known_chips_are_those_of_nvrtc() {
        Nvrtc::find().unwrap();
        let mut count = 0;
        // SAFETY: the library is loaded, and `count` is alive.
        let status = unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) };
        assert_eq!(status, sys::nvrtcResult::NVRTC_SUCCESS);
        let mut numbers = vec![0; count as usize];
        // SAFETY: it writes `count` numbers.
        let status = unsafe { sys::nvrtcGetSupportedArchs(numbers.as_mut_ptr()) };
        assert_eq!(status, sys::nvrtcResult::NVRTC_SUCCESS);
        let known = Chip::KNOWN.map(|chip| (10 * chip.major + chip.minor) as i32);
        assert_eq!(known.as_slice(), numbers);
    }
}
