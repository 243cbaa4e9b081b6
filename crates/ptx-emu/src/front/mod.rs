//! PTX text to syntax tree.
