//! Conformance
