//! Where buffers lie in an allocation, with a guard of canaries before, between
//! and after them. Only arithmetic: whose memory it is, each backend knows.

use super::{CANARY, GUARD, Trespass, TrespassKind};

/// Buffers start on this boundary.
const ALIGN: u64 = 256;

/// A buffer inside an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub name: String,
    pub offset: u64,
    pub bytes: u64,
}

/// Buffers in the order they were reserved.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    zones: Vec<Zone>,
    end: u64,
}

impl Zones {
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

    /// Size of the allocation, its last guard included.
    pub fn bytes(&self) -> u64 {
        (self.end + GUARD).next_multiple_of(ALIGN)
    }

    pub fn all(&self) -> &[Zone] {
        &self.zones
    }

    pub fn zone(&self, index: usize) -> &Zone {
        &self.zones[index]
    }

    /// Stretches between the buffers: everything no kernel may write.
    pub fn guards(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = std::iter::once(0).chain(self.zones.iter().map(|z| z.offset + z.bytes));
        let ends = self
            .zones
            .iter()
            .map(|z| z.offset)
            .chain(std::iter::once(self.bytes()));
        starts.zip(ends)
    }

    /// Guards that were written to, in a copy of the whole allocation.
    pub fn trespasses_in(&self, copy: &[u8]) -> Vec<Trespass> {
        self.guards()
            .filter_map(|(begin, end)| self.trespass_in(begin, &copy[begin as usize..end as usize]))
            .collect()
    }

    /// The first changed byte of one guard.
    pub fn trespass_in(&self, begin: u64, guard: &[u8]) -> Option<Trespass> {
        let at = guard.iter().position(|&b| b != CANARY)?;
        Some(self.explain(begin + at as u64))
    }

    /// What a changed byte at `offset` of the allocation means.
    pub fn explain(&self, offset: u64) -> Trespass {
        let inside = self
            .zones
            .iter()
            .find(|z| (z.offset..z.offset + z.bytes).contains(&offset));
        let distance = |zone: &&Zone| {
            let end = zone.offset + zone.bytes;
            zone.offset
                .saturating_sub(offset)
                .max(offset.saturating_sub(end))
        };
        let zone = inside.or_else(|| self.zones.iter().min_by_key(distance));
        let (name, start) = zone.map_or(("the allocation", 0), |z| (z.name.as_str(), z.offset));
        Trespass {
            buffer: name.to_owned(),
            kind: match inside {
                Some(_) => TrespassKind::InputChanged,
                None => TrespassKind::OutOfBounds,
            },
            offset: offset as i64 - start as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_guard_names_the_nearest_buffer() {
        let mut zones = Zones::default();
        zones.add("a", 1000);
        let c = zones.add("c", 500);
        let mut copy = vec![CANARY; zones.bytes() as usize];
        assert!(zones.trespasses_in(&copy).is_empty());
        let past = zones.zone(c).offset + 500 + 3;
        copy[past as usize] = 0;
        let found = zones.trespasses_in(&copy);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "wrote out of bounds of c, at byte 503"
        );
    }
}
