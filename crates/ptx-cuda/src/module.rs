//! Modules: prepares the PTX that a program passes, in any form, for execution.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ptx_emu::Problem::{Duplicate, Syntax, UnknownName};
use ptx_emu::{CompileError, Kernel, Module};

use crate::device::{SHARED_PLAIN, settings};
use crate::error::{Error, Result};
use crate::fatbin::{self, Problem};
use crate::report;
use crate::say::say;
use crate::state::Device;
use crate::time::Timer;

/// Why an image cannot be loaded.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Error,
    /// For the user, if the code is not sufficient.
    pub(crate) text: String,
}

impl From<Error> for Refusal {
    fn from(code: Error) -> Self {
        let text = String::new();
        Self { code, text }
    }
}

impl From<Refusal> for Error {
    /// Reports it to the user.
    fn from(refusal: Refusal) -> Self {
        if !refusal.text.is_empty() {
            say(&refusal.text);
        }
        refusal.code
    }
}

/// A loaded image, or why it is refused.
type Image = std::result::Result<Arc<Loaded>, Refusal>;

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) emu: Module,
    /// The architecture it was compiled for: 90 for `sm_90a`. The API calls it the PTX version, and
    /// CUB chooses its kernels by it.
    pub(crate) ptx_version: i32,
    /// Models the time of its kernels.
    pub(crate) timer: Option<Timer>,
    /// Kernels that were launched.
    launched: Mutex<BTreeSet<Arc<str>>>,
}

impl Loaded {
    /// Prepares PTX for execution.
    pub(crate) fn of_ptx(text: &str) -> Image {
        let emu = Module::load(text).map_err(|error| Refusal {
            text: format!("the PTX cannot be loaded: {error}"),
            code: match error {
                CompileError::Parse(_) => Error::INVALID_PTX,
                _ => Error::INVALID_IMAGE,
            },
        })?;
        refused_by_ptxas(&emu)?;
        if !settings().config.limits.runs(emu.target()) {
            let (name, target) = (&settings().properties.name, emu.target());
            let text = format!("the PTX is for {target}, which an {name} does not run");
            let code = Error::NO_BINARY;
            return Err(Refusal { code, text });
        }
        let digits = emu.target().chars().filter(char::is_ascii_digit);
        let ptx_version = digits.collect::<String>().parse().unwrap_or(0);
        Ok(Arc::new(Self {
            emu,
            ptx_version,
            timer: Timer::new(text),
            launched: Mutex::default(),
        }))
    }

    /// Prepares the PTX of a fat binary's container.
    pub(crate) fn of_container(container: &[u8]) -> Image {
        let limits = &settings().config.limits;
        match fatbin::ptx(container, |target| limits.runs(target)) {
            Ok(text) => Self::of_ptx(&text),
            Err(problem) => Err(explain(&problem)),
        }
    }

    /// Prepares a container, given itself or its wrapper.
    ///
    /// # Safety
    /// `image` must begin like one of these.
    pub(crate) unsafe fn of_fat_binary(image: *const c_void) -> Image {
        // SAFETY: by this function's contract.
        match unsafe { container(image) } {
            Some(bytes) => Self::of_container(bytes),
            None => Err(explain(&Problem::Damaged("its header cannot be read"))),
        }
    }

    /// Reads the argument of `cuModuleLoadData`: PTX text, a container, or the wrapper of one.
    ///
    /// # Safety
    /// `image` must be one of these, whole.
    pub(crate) unsafe fn of_image(image: *const c_void) -> Image {
        if image.is_null() {
            return Err(Error::INVALID_VALUE.into());
        }
        // SAFETY: every image has four bytes: text of PTX begins with a directive.
        let magic = unsafe { image.cast::<[u8; 4]>().read_unaligned() };
        match u32::from_le_bytes(magic) {
            fatbin::WRAPPER | fatbin::CONTAINER => {
                // SAFETY: by this function's contract.
                unsafe { Self::of_fat_binary(image) }
            }
            _ if magic == *b"\x7fELF" => Err(explain(&Problem::NoPtx(Vec::new()))),
            _ => {
                // SAFETY: text ends with a zero.
                let text = unsafe { CStr::from_ptr(image.cast::<c_char>()) };
                let text = text.to_str().map_err(|_| Error::INVALID_IMAGE)?;
                Self::of_ptx(text)
            }
        }
    }

    /// Reads a file of PTX or a fat binary.
    pub(crate) fn of_file(path: &Path) -> Image {
        let mut bytes = std::fs::read(path).map_err(|_| Error::FILE_NOT_FOUND)?;
        // Room for the end of text, and for reading the first words.
        bytes.extend([0; 64]);
        if bytes.starts_with(&fatbin::CONTAINER.to_le_bytes()) {
            return Self::of_container(&bytes[..bytes.len() - 64]);
        }
        if bytes.starts_with(&fatbin::WRAPPER.to_le_bytes()) {
            // A wrapper contains an address, which means nothing in a file.
            return Err(Error::INVALID_IMAGE.into());
        }
        // SAFETY: text that ends, or an image that is refused by its first word.
        unsafe { Self::of_image(bytes.as_ptr().cast()) }
    }

    /// A kernel, or the error.
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel<'_>> {
        if let Some(kernel) = self.emu.kernel(name) {
            return Ok(kernel);
        }
        match self.emu.refused().get(name) {
            None => Err(Error::NOT_FOUND),
            Some(reason) => {
                say(&format!(
                    "kernel {name} cannot run in the emulator: {reason}"
                ));
                report::refused(&format!("kernel {name}: {reason}"));
                Err(Error::NOT_SUPPORTED)
            }
        }
    }

    /// Whether a kernel is launched for the first time.
    pub(crate) fn is_first_launch(&self, name: &Arc<str>) -> bool {
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        !launched.contains(name) && launched.insert(name.clone())
    }

    /// Bytes of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        self.emu
            .variables()
            .find(|(known, _)| *known == name)
            .map(|(_, bytes)| bytes)
    }
}

/// Refuses modules that no PTX compiler accepts. Kernels that only the emulator refuses fail when
/// they are used, so that others of their module run.
fn refused_by_ptxas(module: &Module) -> std::result::Result<(), Refusal> {
    let refuse = |text: String| {
        let code = Error::INVALID_PTX;
        let text = format!("the PTX cannot be loaded: {text}");
        Err(Refusal { code, text })
    };
    for (name, error) in module.refused() {
        if let Syntax { .. } | UnknownName(_) | Duplicate(_) = &error.problem {
            return refuse(format!("kernel {name}: {error}"));
        }
    }
    for Kernel {
        name,
        static_shared: bytes,
        ..
    } in module.kernels()
    {
        if bytes > SHARED_PLAIN {
            return refuse(format!(
                "kernel {name}: {bytes} static shared bytes, {SHARED_PLAIN} are allowed: more must \
                 be dynamic (extern __shared__)"
            ));
        }
    }
    Ok(())
}

/// The bytes of a container, given itself or its wrapper.
///
/// # Safety
/// `image` must begin with one of the two magic words.
unsafe fn container<'b>(image: *const c_void) -> Option<&'b [u8]> {
    /// The struct that nvcc's host code registers.
    #[repr(C)]
    struct Wrapper {
        magic: u32,
        version: u32,
        container: *const c_void,
        unused: *const c_void,
    }
    // SAFETY: by this function's contract.
    let first = unsafe { image.cast::<u32>().read_unaligned() };
    let start = match first {
        // SAFETY: as above.
        fatbin::WRAPPER => unsafe { image.cast::<Wrapper>().read_unaligned() }.container,
        _ => image,
    };
    if start.is_null() {
        return None;
    }
    // SAFETY: a container has sixteen bytes of header, and then as many as they say.
    unsafe {
        let bytes = fatbin::container_bytes(&*start.cast::<[u8; 16]>())?;
        if !is_mapped(start, bytes) {
            return None;
        }
        Some(std::slice::from_raw_parts(start.cast::<u8>(), bytes))
    }
}

/// Whether all of these bytes are mapped: a damaged header may claim more.
fn is_mapped(start: *const c_void, bytes: usize) -> bool {
    const PAGE: usize = 4096;
    let before = start.addr() % PAGE;
    let Some(bytes) = bytes.checked_add(before) else {
        return false;
    };
    let first = start.wrapping_byte_sub(before).cast_mut();
    // SAFETY: it asks for nothing to be done, and fails where nothing is mapped.
    unsafe { libc::msync(first, bytes, libc::MS_ASYNC) == 0 }
}

/// The remedy for a fat binary, and the driver's code.
fn explain(problem: &Problem) -> Refusal {
    let capability = settings().properties.capability;
    let remedy =
        format!("compile with -gencode arch=compute_{capability}a,code=compute_{capability}a");
    let (code, text) = match problem {
        Problem::Damaged(why) => (
            Error::INVALID_IMAGE,
            format!("the fat binary is damaged: {why}"),
        ),
        Problem::OtherTarget(targets) => {
            let (name, targets) = (&settings().properties.name, targets.join(", "));
            let text = format!(
                "the program has PTX for {targets}, which an {name} does not run: {remedy}"
            );
            (Error::NO_BINARY, text)
        }
        Problem::Empty => (
            Error::NO_BINARY,
            "the program has relocatable device code (-rdc=true), which is not linked here: compile \
             with -rdc=false; dynamic parallelism, which needs it, is not supported"
                .to_owned(),
        ),
        Problem::NoPtx(archs) => {
            let list: Vec<String> = archs.iter().map(|arch| format!(" for sm_{arch}")).collect();
            let text = format!(
                "the program has machine code{} and no PTX, which alone can be emulated: {remedy}",
                list.join(",")
            );
            (Error::NO_BINARY, text)
        }
    };
    Refusal { code, text }
}

/// A kernel of a module, and the attributes that programs set for it.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) module: Arc<Loaded>,
    pub(crate) name: Arc<str>,
    /// Dynamic shared bytes that launches may request.
    pub(crate) max_dynamic_shared: u32,
    pub(crate) carveout: i32,
    /// Clusters of more than eight blocks.
    pub(crate) large_clusters: bool,
}

impl Function {
    pub(crate) fn of(module: &Arc<Loaded>, name: &str) -> Result<Self> {
        let kernel = module.kernel(name)?;
        Ok(Self {
            max_dynamic_shared: SHARED_PLAIN.saturating_sub(kernel.static_shared),
            name: name.into(),
            module: module.clone(),
            carveout: -1,
            large_clusters: false,
        })
    }

    pub(crate) fn kernel(&self) -> Result<Kernel<'_>> {
        self.module.kernel(&self.name)
    }
}

/// Functions of modules that were requested, one handle for each.
#[derive(Default)]
pub(crate) struct Functions {
    by_name: HashMap<(*const Loaded, Arc<str>), usize>,
}

// SAFETY: the pointers are names of modules, and never followed.
unsafe impl Send for Functions {}

impl Functions {
    /// The handle of a module's function.
    pub(crate) fn find(
        &mut self,
        handles: &mut crate::handles::Handles<Function>,
        module: &Arc<Loaded>,
        name: &str,
    ) -> Result<usize> {
        let key = (Arc::as_ptr(module), Arc::from(name));
        if let Some(&handle) = self.by_name.get(&key) {
            return Ok(handle);
        }
        let handle = handles.add(Function::of(module, name)?);
        self.by_name.insert(key, handle);
        Ok(handle)
    }

    /// Forgets the functions of an unloaded module; its handles become invalid.
    pub(crate) fn forget(
        &mut self,
        handles: &mut crate::handles::Handles<Function>,
        module: &Arc<Loaded>,
    ) {
        self.by_name.retain(|(of, _), handle| {
            let stays = *of != Arc::as_ptr(module);
            if !stays {
                let _ = handles.remove(*handle);
            }
            stays
        });
    }
}

impl Device {
    /// The handle of a kernel of a module that was loaded.
    pub(crate) fn module_function(&mut self, module: usize, name: &str) -> Result<usize> {
        let loaded = self.modules.get(module)?.clone();
        self.function_names.find(&mut self.functions, &loaded, name)
    }

    /// The address of a module's variable, and its bytes.
    pub(crate) fn module_variable(&mut self, module: usize, name: &str) -> Result<(u64, u64)> {
        let loaded = self.modules.get(module)?.clone();
        let bytes = loaded.variable(name).ok_or(Error::NOT_FOUND)?;
        let ptr = self.memory.symbol(&loaded.emu, name);
        Ok((ptr.ok_or(Error::OUT_OF_MEMORY)?.0, bytes))
    }

    /// Unloads a module with its functions and variables.
    pub(crate) fn unload(&mut self, module: usize) -> Result {
        let loaded = self.modules.remove(module)?;
        self.function_names.forget(&mut self.functions, &loaded);
        self.memory.unbind(&loaded.emu).map_err(|_| Error::UNKNOWN)
    }
}

/// A function's name as C text. It lives as long as the process, as the API promises.
pub(crate) fn lasting_name(name: &str) -> *const c_char {
    use std::collections::BTreeMap;
    use std::ffi::CString;

    static NAMES: Mutex<BTreeMap<String, CString>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let text = || CString::new(name).unwrap_or_default();
    names.entry(name.to_owned()).or_insert_with(text).as_ptr()
}
