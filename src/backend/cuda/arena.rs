use super::driver::{DeviceMemory, Result, Stream};
use crate::backend::{CANARY, GUARD, Trespass, TrespassKind};

/// Buffers start on this boundary.
const ALIGN: u64 = 256;

/// A buffer inside an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub name: String,
    pub offset: u64,
    pub bytes: u64,
}

/// Where buffers will lie, with a guard before, between and after them.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    zones: Vec<Zone>,
    end: u64,
}

impl Layout {
    /// Reserves a buffer and says which it is.
    pub fn add(&mut self, name: impl Into<String>, bytes: u64) -> usize {
        let offset = (self.end + GUARD).next_multiple_of(ALIGN);
        self.end = offset + bytes;
        self.zones.push(Zone {
            name: name.into(),
            offset,
            bytes,
        });
        self.zones.len() - 1
    }

    fn bytes(&self) -> u64 {
        (self.end + GUARD).next_multiple_of(ALIGN)
    }
}

/// One allocation holding many guarded buffers.
#[derive(Debug)]
pub struct Arena {
    memory: DeviceMemory,
    zones: Vec<Zone>,
}

impl Arena {
    /// Allocates the layout, canaries everywhere.
    pub fn new(layout: Layout, stream: &Stream) -> Result<Self> {
        let memory = DeviceMemory::new(layout.bytes())?;
        stream.fill(memory.address, CANARY, memory.bytes)?;
        Ok(Self {
            memory,
            zones: layout.zones,
        })
    }

    pub fn base(&self) -> u64 {
        self.memory.address
    }

    pub fn bytes(&self) -> u64 {
        self.memory.bytes
    }

    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    pub fn zone(&self, index: usize) -> &Zone {
        &self.zones[index]
    }

    pub fn address(&self, index: usize) -> u64 {
        self.memory.address + self.zones[index].offset
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
        for (begin, end) in self.guards() {
            let mut guard = vec![0; (end - begin) as usize];
            stream.download(&mut guard, self.memory.address + begin)?;
            found.extend(self.trespass_in(begin, &guard));
        }
        Ok(found)
    }

    /// The same, in a copy of the whole arena.
    pub fn trespasses_in(&self, copy: &[u8]) -> Vec<Trespass> {
        self.guards()
            .filter_map(|(begin, end)| self.trespass_in(begin, &copy[begin as usize..end as usize]))
            .collect()
    }

    /// What a changed byte at `offset` of the arena means.
    pub fn explain(&self, offset: u64) -> Trespass {
        let inside = self
            .zones
            .iter()
            .find(|z| (z.offset..z.offset + z.bytes).contains(&offset));
        let nearest = |zone: &&Zone| {
            let end = zone.offset + zone.bytes;
            zone.offset
                .saturating_sub(offset)
                .max(offset.saturating_sub(end))
        };
        let zone = inside.or_else(|| self.zones.iter().min_by_key(nearest));
        let (name, start) = zone.map_or(("the arena", 0), |z| (z.name.as_str(), z.offset));
        Trespass {
            buffer: name.to_owned(),
            kind: match inside {
                Some(_) => TrespassKind::InputChanged,
                None => TrespassKind::OutOfBounds,
            },
            offset: offset as i64 - start as i64,
        }
    }

    fn trespass_in(&self, begin: u64, guard: &[u8]) -> Option<Trespass> {
        let at = guard.iter().position(|&b| b != CANARY)?;
        Some(self.explain(begin + at as u64))
    }

    /// Stretches between the buffers: everything no kernel may write.
    fn guards(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = std::iter::once(0).chain(self.zones.iter().map(|z| z.offset + z.bytes));
        let ends = self
            .zones
            .iter()
            .map(|z| z.offset)
            .chain(std::iter::once(self.memory.bytes));
        starts.zip(ends)
    }
}
