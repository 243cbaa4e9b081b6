//! The whole state of a process's device, behind one lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use ptx_emu::Memory;

use crate::array::Arrays;
use crate::call::check_process;
use crate::context::Contexts;
use crate::device::settings;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::graph::{Executable, Graph};
use crate::graph_memory::Owned;
use crate::handles::Handles;
use crate::link::Link;
use crate::memory::Block;
use crate::module::{Function, Functions, Loaded};
use crate::pool::Pool;
use crate::registration::Registry;
use crate::say::say;
use crate::stream::Streams;
use crate::virtual_memory::Virtual;

/// The context of objects that were made without one.
pub(crate) const NONE: usize = 0;

/// The device and the objects that programs made on it.
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
    /// The node of a clone for each node of its graph.
    pub(crate) clones: HashMap<usize, HashMap<usize, usize>>,
    pub(crate) executables: Handles<Executable>,
    pub(crate) pools: Handles<Pool>,
    /// The device's own pool, and the current one.
    pub(crate) own_pool: Option<usize>,
    pub(crate) current_pool: Option<usize>,
    /// Allocations that graphs free, with the graphs that keep them.
    pub(crate) freed_last: Vec<(u64, Weak<u64>)>,
    /// Allocations of graphs, and the maximum of their bytes: owned, and kept.
    pub(crate) graph_memory: BTreeMap<u64, Owned>,
    pub(crate) graph_memory_most: [u64; 2],
    pub(crate) arrays: Arrays,
    pub(crate) limits: BTreeMap<u32, usize>,
    pub(crate) virtual_memory: Virtual,
    pub(crate) links: Handles<Link>,
    /// Launches so far; the number seeds the next.
    pub(crate) launches: u64,
    /// The error of a kernel or a panic that ended the context: every later call fails with it.
    pub(crate) sticky: Option<Error>,
}

static DEVICE: Mutex<Option<Device>> = Mutex::new(None);

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

/// The device, whatever the state of its context.
pub(crate) fn lock() -> Result<Locked> {
    check_process()?;
    lock_in(&DEVICE)
}

fn lock_in(cell: &'static Mutex<Option<Device>>) -> Result<Locked> {
    let mut guard = cell.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_none() {
        *guard = Some(Device::new()?);
    }
    let mut locked = Locked(guard);
    // A panic while it was locked left it half changed: the context is lost, as after a fault.
    if cell.is_poisoned() {
        locked.sticky.get_or_insert(Error::UNKNOWN);
    }
    locked.drop_unregistered()?;
    Ok(locked)
}

/// The device, unless its context is lost.
pub(crate) fn device() -> Result<Locked> {
    lock()?.unless_lost()
}

impl Locked {
    /// Fails if a kernel has ended the context.
    pub(crate) fn unless_lost(self) -> Result<Self> {
        match self.sticky {
            Some(error) => Err(error),
            None => Ok(self),
        }
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
            own_pool: None,
            current_pool: None,
            freed_last: Vec::new(),
            graph_memory: BTreeMap::new(),
            graph_memory_most: [0; 2],
            arrays: Arrays::default(),
            limits: BTreeMap::new(),
            virtual_memory: Virtual::default(),
            links: Handles::default(),
            launches: 0,
            sticky: None,
        })
    }

    /// Releases the objects that were made in a context.
    pub(crate) fn release_of(&mut self, context: usize) -> Result {
        let made_in = |(_, block): &(&u64, &Block)| block.context == context;
        let blocks: Vec<u64> = self
            .blocks
            .iter()
            .filter(made_in)
            .map(|(&at, _)| at)
            .collect();
        for address in blocks {
            self.release(address)?;
        }
        for module in self.modules.of(context) {
            self.unload(module)?;
        }
        self.arrays.all.remove_of(context);
        let blocks = &self.blocks;
        self.arrays
            .objects
            .retain(|object| blocks.contains_key(object));
        self.streams.remove_of(context);
        self.events.remove_of(context);
        self.links.remove_of(context);
        Ok(())
    }

    /// Ends the primary context. Registered kernels and the objects of other contexts stay.
    pub(crate) fn reset(&mut self) -> Result {
        let primary = self.contexts.primary();
        for context in [primary, NONE] {
            self.release_of(context)?;
        }
        self.contexts.in_runtime = false;
        self.registry.unbind(&mut self.memory)?;
        self.forget_virtual();
        self.graphs = Handles::default();
        self.clones.clear();
        self.executables = Handles::default();
        self.pools = Handles::default();
        self.own_pool = None;
        self.current_pool = None;
        self.limits.clear();
        // A kernel's damage to the context stays: the process must end.
        self.sticky.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_a_panic_left_half_changed_is_lost() {
        static OTHER: Mutex<Option<Device>> = Mutex::new(None);
        let panics = std::thread::spawn(|| {
            let _locked = lock_in(&OTHER);
            panic!("in the middle of a call");
        });
        assert!(panics.join().is_err());
        for _ in 0..2 {
            let lost = lock_in(&OTHER).and_then(Locked::unless_lost);
            assert_eq!(lost.err(), Some(Error::UNKNOWN));
        }
        assert_eq!(lock_in(&OTHER).unwrap().reset(), Err(Error::UNKNOWN));
    }
}
