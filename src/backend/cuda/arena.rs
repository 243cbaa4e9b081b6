use super::driver::{DeviceMemory, Result, Stream};
use crate::backend::zones::Zones;
use crate::backend::{CANARY, Trespass};

/// One allocation holding many guarded buffers.
#[derive(Debug)]
pub struct Arena {
    memory: DeviceMemory,
    zones: Zones,
}

impl Arena {
    /// Allocates the buffers, canaries everywhere.
    pub fn new(zones: Zones, stream: &Stream) -> Result<Self> {
        let memory = DeviceMemory::new(zones.bytes())?;
        stream.fill(memory.address, CANARY, memory.bytes)?;
        Ok(Self { memory, zones })
    }

    pub fn base(&self) -> u64 {
        self.memory.address
    }

    pub fn bytes(&self) -> u64 {
        self.memory.bytes
    }

    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    pub fn address(&self, index: usize) -> u64 {
        self.memory.address + self.zones.zone(index).offset
    }

    /// Copies the whole arena back, guards and all.
    pub fn download(&self, stream: &Stream) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.memory.bytes as usize];
        stream.download(&mut bytes, self.memory.address)?;
        Ok(bytes)
    }

    /// Copies back only the guards and reports those that were written to.
    pub fn trespasses(&self, stream: &Stream) -> Result<Vec<Trespass>> {
        let mut found = Vec::new();
        for (begin, end) in self.zones.guards() {
            let mut guard = vec![0; (end - begin) as usize];
            stream.download(&mut guard, self.memory.address + begin)?;
            found.extend(self.zones.trespass_in(begin, &guard));
        }
        Ok(found)
    }
}
