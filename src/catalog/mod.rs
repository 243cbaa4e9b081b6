//! The variants that exist: found by globbing, read on demand, their front
//! matter checked. A broken file hurts only those who name it.

mod variant;

pub use variant::{Contender, Variant};
