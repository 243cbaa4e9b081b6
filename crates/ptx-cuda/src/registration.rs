//! What nvcc's host code registers before `main`: fat binaries, kernels and variables. Nothing is
//! loaded until it is used, so a program that never touches the device costs nothing.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use ptx_emu::{DevicePtr, Memory};

use crate::error::{Error, Result};
use crate::handles::fresh;
use crate::module::{Function, Loaded};
use crate::state::Device;

/// A registered variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) binary: usize,
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// The program's pointer to a managed one.
    managed: Option<usize>,
}

/// All registrations, by the addresses of the host's shadows.
#[derive(Default)]
pub(crate) struct Registered {
    /// Images of fat binaries, by handle.
    binaries: HashMap<usize, usize>,
    kernels: HashMap<usize, (usize, String)>,
    variables: HashMap<usize, Variable>,
    /// Unregistered fat binaries, which may still be loaded.
    removed: Vec<usize>,
}

/// The process's registrations.
pub(crate) fn registered() -> MutexGuard<'static, Registered> {
    static ALL: LazyLock<Mutex<Registered>> = LazyLock::new(Mutex::default);
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registered {
    pub(crate) fn add_binary(&mut self, image: *const c_void) -> usize {
        let handle = fresh();
        self.binaries.insert(handle, image.expose_provenance());
        handle
    }

    pub(crate) fn remove_binary(&mut self, handle: usize) {
        self.binaries.remove(&handle);
        self.kernels.retain(|_, (binary, _)| *binary != handle);
        self.variables
            .retain(|_, variable| variable.binary != handle);
        self.removed.push(handle);
    }

    pub(crate) fn add_kernel(&mut self, binary: usize, shadow: usize, name: String) {
        self.kernels.insert(shadow, (binary, name));
    }

    pub(crate) fn add_variable(&mut self, binary: usize, shadow: usize, name: String, bytes: u64) {
        let variable = Variable {
            binary,
            name,
            bytes,
            managed: None,
        };
        self.variables.insert(shadow, variable);
    }

    /// A managed variable: the program reads it through the pointer at `place`.
    pub(crate) fn add_managed(&mut self, binary: usize, place: usize, name: String, bytes: u64) {
        let variable = Variable {
            binary,
            name,
            bytes,
            managed: Some(place),
        };
        self.variables.insert(place, variable);
    }

    /// Whether an address belongs to a loaded managed variable.
    pub(crate) fn is_managed(&self, ptr: u64) -> bool {
        self.variables.values().any(|variable| {
            let place = variable
                .managed
                .map(std::ptr::with_exposed_provenance::<u64>);
            // SAFETY: the program registered it as the place of the address.
            place.is_some_and(|place| ptr.wrapping_sub(unsafe { *place }) < variable.bytes)
        })
    }

    fn managed_of(&self, binary: usize) -> Vec<(usize, Variable)> {
        let of = |(_, variable): &(&usize, &Variable)| variable.binary == binary;
        let managed = self.variables.iter().filter(of);
        managed
            .filter_map(|(_, variable)| Some((variable.managed?, variable.clone())))
            .collect()
    }
}

/// Registered modules that were loaded, and kernels that were used.
#[derive(Default)]
pub(crate) struct Registry {
    loaded: HashMap<usize, Result<Arc<Loaded>>>,
    /// By fat binary and address: a library that is loaded later may have the address of an
    /// unloaded one.
    functions: HashMap<(usize, usize), Function>,
}

impl Registry {
    /// Frees the variables of registered modules; the next use allocates them again.
    pub(crate) fn unbind(&mut self, memory: &mut Memory) -> Result {
        for module in self.loaded.values().flatten() {
            memory.unbind(&module.emu).map_err(|_| Error::UNKNOWN)?;
        }
        self.loaded.clear();
        self.functions.clear();
        Ok(())
    }
}

impl Device {
    /// Frees the resources of unregistered fat binaries.
    pub(crate) fn drop_unregistered(&mut self) -> Result {
        let removed = std::mem::take(&mut registered().removed);
        for binary in removed {
            if let Some(Ok(module)) = self.registry.loaded.remove(&binary) {
                let unbound = self.memory.unbind(&module.emu);
                unbound.map_err(|_| Error::UNKNOWN)?;
            }
            self.registry.functions.retain(|(of, _), _| *of != binary);
        }
        Ok(())
    }

    /// Loads a registered fat binary, once, and writes the addresses of its managed variables.
    pub(crate) fn load_registered(&mut self, binary: usize) -> Result<Arc<Loaded>> {
        if let Some(loaded) = self.registry.loaded.get(&binary) {
            return loaded.clone();
        }
        let image = registered().binaries.get(&binary).copied();
        let image = image.ok_or(Error::INVALID_HANDLE)?;
        // SAFETY: the program registered it, and keeps it until it unregisters it.
        let loaded = unsafe { Loaded::of_fat_binary(std::ptr::with_exposed_provenance(image)) };
        let loaded = loaded.map_err(Error::from);
        self.registry.loaded.insert(binary, loaded.clone());
        let loaded = loaded?;
        for (place, variable) in registered().managed_of(binary) {
            if let Some(ptr) = self.memory.symbol(&loaded.emu, &variable.name) {
                let place = std::ptr::with_exposed_provenance_mut::<u64>(place);
                // SAFETY: the program registered it as the place of the address.
                unsafe { *place = ptr.0 };
            }
        }
        Ok(loaded)
    }

    /// The kernel of a host function, or of a handle.
    pub(crate) fn function(&mut self, shadow: usize) -> Result<&mut Function> {
        if self.functions.contains(shadow) {
            return self.functions.get_mut(shadow);
        }
        let binary = registered().kernels.get(&shadow).map(|(of, _)| *of);
        let binary = binary.ok_or(Error::INVALID_FUNCTION)?;
        if !self.registry.functions.contains_key(&(binary, shadow)) {
            let found = registered().kernels.get(&shadow).cloned();
            let (_, name) = found.ok_or(Error::INVALID_FUNCTION)?;
            let loaded = self.load_registered(binary)?;
            let function = match Function::of(&loaded, &name) {
                Err(Error::NOT_FOUND) => return Err(Error::INVALID_FUNCTION),
                other => other?,
            };
            self.registry.functions.insert((binary, shadow), function);
        }
        self.registry
            .functions
            .get_mut(&(binary, shadow))
            .ok_or(Error::INVALID_FUNCTION)
    }

    /// The address of a registered variable, and its bytes.
    pub(crate) fn symbol(&mut self, shadow: usize) -> Result<(u64, u64)> {
        let mut found = registered().variables.get(&shadow).cloned();
        if found.is_none() {
            // A managed variable may also be named by its address.
            let named = |variable: &&Variable| {
                variable.managed.is_some_and(|place| {
                    // SAFETY: the program registered it as the place of the address.
                    unsafe { *std::ptr::with_exposed_provenance::<usize>(place) == shadow }
                })
            };
            found = registered().variables.values().find(named).cloned();
        }
        let variable = found.ok_or(Error::INVALID_SYMBOL)?;
        let loaded = self.load_registered(variable.binary)?;
        let at = self.memory.symbol(&loaded.emu, &variable.name);
        let DevicePtr(ptr) = at.ok_or(Error::INVALID_SYMBOL)?;
        Ok((ptr, variable.bytes))
    }
}
