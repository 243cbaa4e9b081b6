//! Tensor-core tiles, matrix descriptors and tensor maps.
