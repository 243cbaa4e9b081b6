//! The size of the pages that a cluster writes to.

/// Bytes of a page: small, because the rows of a tile lie far apart.
pub(crate) const PAGE: usize = 1024;

/// Bits of one word of a page's mask.
pub(crate) const WORD: usize = u64::BITS as usize;
