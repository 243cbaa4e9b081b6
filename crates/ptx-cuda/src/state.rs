//! Everything a process has on its device, behind one lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ptx_emu::Memory;

use crate::array::Arrays;
use crate::call::{check_process, say};
use crate::context::Contexts;
use crate::device::settings;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::graph::{Executable, Graph};
use crate::handles::Handles;
use crate::link::Link;
use crate::memory::Block;
use crate::module::{Function, Functions, Loaded};
use crate::pool::Pool;
use crate::registration::Registry;
use crate::stream::Streams;
use crate::virtual_memory::Virtual;

/// The device and what programs made on it.
pub(crate) struct Device {
    pub(crate) memory: Memory,
    /// Allocations of the program, by address.
    pub(crate) blocks: BTreeMap<u64, Block>,
    pub(crate) contexts: Contexts,
    pub(crate) modules: Handles<std::sync::Arc<Loaded>>,
    pub(crate) functions: Handles<Function>,
    pub(crate) function_names: Functions,
    pub(crate) registry: Registry,
    pub(crate) streams: Streams,
    pub(crate) events: Handles<Event>,
    pub(crate) graphs: Handles<Graph>,
    /// Which node of a graph became which of its clone.
    pub(crate) clones: HashMap<usize, HashMap<usize, usize>>,
    pub(crate) executables: Handles<Executable>,
    pub(crate) pools: Handles<Pool>,
    pub(crate) current_pool: Option<usize>,
    pub(crate) arrays: Arrays,
    pub(crate) limits: BTreeMap<u32, usize>,
    pub(crate) virtual_memory: Virtual,
    pub(crate) links: Handles<Link>,
    /// Launches so far, which seed the next.
    pub(crate) launches: u64,
    /// What a kernel did to the context: every later call fails like this.
    pub(crate) sticky: Option<Error>,
}

static DEVICE: OnceLock<Mutex<Option<Device>>> = OnceLock::new();

/// Unlocks when dropped.
pub(crate) struct Locked(MutexGuard<'static, Option<Device>>);

impl std::ops::Deref for Locked {
    type Target = Device;

    fn deref(&self) -> &Device {
        self.0.as_ref().expect("made by lock")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Device {
        self.0.as_mut().expect("made by lock")
    }
}

/// The device, whatever happened to its context.
pub(crate) fn lock() -> Result<Locked> {
    check_process()?;
    let cell = DEVICE.get_or_init(|| Mutex::new(None));
    // A panic while it was locked was reported; the next call may find less than it should.
    let mut guard = cell.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_none() {
        *guard = Some(Device::new()?);
    }
    Ok(Locked(guard))
}

/// The device, unless its context is lost.
pub(crate) fn device() -> Result<Locked> {
    let device = lock()?;
    match device.sticky {
        Some(error) => Err(error),
        None => Ok(device),
    }
}

impl Device {
    fn new() -> Result<Self> {
        let memory = Memory::on_host(settings().properties.memory).map_err(|error| {
            say(&format!(
                "no address space for the device's memory: {error}"
            ));
            Error::OUT_OF_MEMORY
        })?;
        Ok(Self {
            memory,
            blocks: BTreeMap::new(),
            contexts: Contexts::default(),
            modules: Handles::default(),
            functions: Handles::default(),
            function_names: Functions::default(),
            registry: Registry::default(),
            streams: Streams::default(),
            events: Handles::default(),
            graphs: Handles::default(),
            clones: HashMap::new(),
            executables: Handles::default(),
            pools: Handles::default(),
            current_pool: None,
            arrays: Arrays::default(),
            limits: BTreeMap::new(),
            virtual_memory: Virtual::default(),
            links: Handles::default(),
            launches: 0,
            sticky: None,
        })
    }

    /// Frees everything, as the end of the primary context does. Registered kernels stay.
    pub(crate) fn reset(&mut self) -> Result {
        let addresses: Vec<u64> = self.blocks.keys().copied().collect();
        for address in addresses {
            self.release(address)?;
        }
        for module in self.modules.values() {
            self.memory
                .unbind(&module.emu)
                .map_err(|_| Error::UNKNOWN)?;
        }
        self.registry.unbind(&mut self.memory)?;
        self.forget_virtual();
        self.links = Handles::default();
        self.modules = Handles::default();
        self.functions = Handles::default();
        self.function_names = Functions::default();
        self.streams = Streams::default();
        self.events = Handles::default();
        self.graphs = Handles::default();
        self.clones.clear();
        self.executables = Handles::default();
        self.pools = Handles::default();
        self.current_pool = None;
        self.arrays = Arrays::default();
        self.limits.clear();
        self.sticky = None;
        Ok(())
    }
}
