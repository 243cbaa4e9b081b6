//! The layout of buffers in an allocation, with canaries before, between and after them. Only
//! arithmetic: each backend owns its memory.

use super::GUARD;

/// Buffers start on this boundary.
const ALIGN: u64 = 256;

/// A buffer inside an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    pub name: String,
    pub offset: u64,
    pub bytes: u64,
}

/// Buffers in the order in which they were reserved, which may differ from that of their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Zones {
    zones: Vec<Zone>,
    end: u64,
}

impl Zones {
    /// Reserves a buffer and returns its index.
    pub(super) fn add(&mut self, name: impl Into<String>, bytes: u64) -> usize {
        let offset = (self.end + GUARD).next_multiple_of(ALIGN);
        self.end = offset + bytes;
        self.zones.push(Zone {
            name: name.into(),
            offset,
            bytes,
        });
        self.zones.len() - 1
    }

    /// The same buffers, the last of them first.
    pub(super) fn mirrored(&self) -> Self {
        let mut mirrored = self.clone();
        mirrored.end = 0;
        for zone in mirrored.zones.iter_mut().rev() {
            zone.offset = (mirrored.end + GUARD).next_multiple_of(ALIGN);
            mirrored.end = zone.offset + zone.bytes;
        }
        mirrored
    }

    /// Size of the allocation, including its last guard.
    pub(super) fn bytes(&self) -> u64 {
        (self.end + GUARD).next_multiple_of(ALIGN)
    }

    pub(super) fn all(&self) -> &[Zone] {
        &self.zones
    }

    pub(super) fn zone(&self, index: usize) -> &Zone {
        &self.zones[index]
    }

    /// Stretches between the buffers, which no kernel may write.
    pub(super) fn guards(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut zones: Vec<&Zone> = self.zones.iter().collect();
        zones.sort_by_key(|zone| zone.offset);
        let mut bounds = vec![0];
        for zone in zones {
            bounds.extend([zone.offset, zone.offset + zone.bytes]);
        }
        bounds.push(self.bytes());
        let pairs = (0..bounds.len() / 2).map(|pair| (bounds[2 * pair], bounds[2 * pair + 1]));
        pairs.collect::<Vec<_>>().into_iter()
    }

    /// The buffer nearest to `offset`, and the offset within it: negative before it.
    pub(super) fn nearest(&self, offset: u64) -> (String, i64) {
        let distance = |zone: &&Zone| {
            let end = zone.offset + zone.bytes;
            zone.offset
                .saturating_sub(offset)
                .max(offset.saturating_sub(end.saturating_sub(1)))
        };
        let zone = self.zones.iter().min_by_key(distance);
        let (name, start) = zone.map_or(("the allocation", 0), |z| (z.name.as_str(), z.offset));
        (name.to_owned(), offset as i64 - start as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrored_buffers_lie_the_other_way_round_and_have_the_same_guards() {
        let mut zones = Zones::default();
        for bytes in [1000, 1, 500] {
            zones.add("z", bytes);
        }
        let mirrored = zones.mirrored();
        let offsets = |zones: &Zones| zones.all().iter().map(|z| z.offset).collect::<Vec<_>>();
        assert!(offsets(&zones).is_sorted());
        assert!(offsets(&mirrored).iter().rev().is_sorted());
        for zones in [&zones, &mirrored] {
            let guards: Vec<(u64, u64)> = zones.guards().collect();
            assert_eq!(guards.len(), 4);
            assert!(guards.iter().all(|(begin, end)| end - begin >= GUARD));
            let outside = |zone: &Zone| {
                let (begin, end) = (zone.offset, zone.offset + zone.bytes);
                guards
                    .iter()
                    .all(|guard| guard.1 <= begin || guard.0 >= end)
            };
            assert!(zones.all().iter().all(outside));
        }
    }

    #[test]
    fn the_nearest_buffer_is_named() {
        let mut zones = Zones::default();
        let a = zones.add("a", 1000);
        let c = zones.add("c", 500);
        let at = |zone: usize, offset: i64| {
            let start = zones.zone(zone).offset as i64;
            zones.nearest((start + offset) as u64)
        };
        assert_eq!(at(c, 503), ("c".to_owned(), 503));
        assert_eq!(at(c, -1), ("c".to_owned(), -1));
        assert_eq!(at(a, 1000), ("a".to_owned(), 1000));
        assert_eq!(at(a, 999), ("a".to_owned(), 999));
    }
}
