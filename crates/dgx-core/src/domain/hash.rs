use sha2::{Digest, Sha256};

/// SHA-256 of the parts, each with its length so that no two lists collide.
pub fn content_hash<S: AsRef<[u8]>>(parts: impl IntoIterator<Item = S>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// A bijection of 64-bit words without visible patterns (the finaliser of SplitMix64).
pub fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_tells_apart_what_concatenation_would_not() {
        assert_ne!(content_hash(["ab", "c"]), content_hash(["a", "bc"]));
    }
}
