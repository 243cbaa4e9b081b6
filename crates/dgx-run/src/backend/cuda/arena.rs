use super::driver::{DeviceMemory, Result, Stream};
use crate::backend::zones::Zones;

/// One allocation with many guarded buffers. Their contents are written before each call.
#[derive(Debug)]
pub(super) struct Arena {
    memory: DeviceMemory,
    zones: Zones,
}

impl Arena {
    pub(super) fn new(zones: Zones) -> Result<Self> {
        let memory = DeviceMemory::new(zones.bytes())?;
        Ok(Self { memory, zones })
    }

    pub(super) fn base(&self) -> u64 {
        self.memory.address
    }

    pub(super) fn zones(&self) -> &Zones {
        &self.zones
    }

    pub(super) fn address(&self, index: usize) -> u64 {
        self.memory.address + self.zones.zone(index).offset
    }

    /// Copies the whole arena back, including the guards.
    pub(super) fn download(&self, stream: &Stream) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.memory.bytes as usize];
        stream.download(&mut bytes, self.memory.address)?;
        Ok(bytes)
    }
}
