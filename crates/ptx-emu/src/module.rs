//! A loaded PTX module: its kernels and its variables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lower::{self, CompileError, LowerError};
pub use crate::op::Param;
use crate::op::{GlobalVar, Program, SHARED_BASE};

/// A loaded PTX module: kernels and module-scope variables.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// Distinguishes modules that live in one [`crate::Memory`]; unique per process.
    pub(crate) id: u64,
    pub(crate) target: String,
    pub(crate) kernels: BTreeMap<String, Arc<Program>>,
    pub(crate) refused: BTreeMap<String, LowerError>,
    /// Module-scope `.global` and `.const` variables, in order of declaration.
    pub(crate) globals: Vec<GlobalVar>,
}

impl Module {
    /// Reads PTX text and prepares all its kernels. One that cannot run does not hurt the others:
    /// it is in [`Module::refused`].
    pub fn load(ptx: &str) -> Result<Self, CompileError> {
        lower::compile(ptx)
    }

    /// `.target` of the module, e.g. `sm_90a`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The kernels that can be launched, by name.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel<'_>> {
        self.kernels.values().map(|program| Kernel::of(program))
    }

    /// A kernel by its name, if it can be launched.
    pub fn kernel(&self, name: &str) -> Option<Kernel<'_>> {
        self.kernels.get(name).map(|program| Kernel::of(program))
    }

    /// The variables `.global` and `.const`, and their bytes.
    pub fn variables(&self) -> impl Iterator<Item = (&str, u64)> {
        self.globals
            .iter()
            .map(|var| (var.name.as_str(), var.init.len() as u64))
    }

    /// Kernels that cannot run here, and why: launching one gives this error.
    pub fn refused(&self) -> &BTreeMap<String, LowerError> {
        &self.refused
    }
}

/// What a kernel is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel<'m> {
    /// Name in the PTX.
    pub name: &'m str,
    /// Predecoded instructions, device functions included.
    pub instructions: usize,
    /// Forms of its instructions, device functions included: [`crate::Evidence::of`] says how sure
    /// each is.
    pub forms: &'m BTreeSet<String>,
    /// 32-bit registers of a thread that are alive at once, constants included.
    pub registers_32: u32,
    /// 64-bit registers, likewise.
    pub registers_64: u32,
    /// Predicates, likewise.
    pub predicates: u16,
    /// Its parameters, in the order of [`crate::Params`].
    pub params: &'m [Param],
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// Bytes of static shared variables.
    pub static_shared: u32,
    /// Local bytes per thread.
    pub local_bytes: u32,
    /// `.maxntid` or `.reqntid`: threads of a CTA, at most.
    pub max_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
    /// It has been compiled by now, rather than interpreted only.
    pub compiled: bool,
}

impl<'m> Kernel<'m> {
    fn of(program: &'m Program) -> Self {
        Self {
            name: &program.name,
            instructions: program.insts.len(),
            forms: &program.forms,
            registers_32: program.n32,
            registers_64: program.n64,
            predicates: program.npred,
            params: &program.params,
            param_bytes: program.param_bytes,
            static_shared: program.shared_static_end - SHARED_BASE,
            local_bytes: program.local_bytes,
            max_block: program.required_block.or(program.max_block),
            cluster: program.cluster,
            #[cfg(target_arch = "x86_64")]
            compiled: program.compiled.is_made(),
            #[cfg(not(target_arch = "x86_64"))]
            compiled: false,
        }
    }
}
