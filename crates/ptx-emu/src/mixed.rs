//! Hash maps and sets whose keys are a few numbers that nobody chooses to collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with such keys.
pub type MixedMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// A set of such keys.
pub type MixedSet<K> = HashSet<K, BuildHasherDefault<Mixed>>;

/// A quick hash for keys of a few numbers that nobody chooses to collide.
#[derive(Debug, Clone, Default)]
pub struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// A table looks at the lowest bits, which are the least mixed.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_tiles_are_hashed_apart() {
        let hash = |tile: (u64, u32, u32)| {
            let mut mixed = Mixed::default();
            std::hash::Hash::hash(&tile, &mut mixed);
            mixed.finish() % 256
        };
        let both = |i: u64| [(i, 64, 0), (i, 128, 0)];
        let places: std::collections::BTreeSet<u64> = (0..64).flat_map(both).map(hash).collect();
        // 128 at random would fill 101 of the 256 places.
        assert!(places.len() > 80, "{}", places.len());
    }
}
