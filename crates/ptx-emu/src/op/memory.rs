//! Addresses, orderings and atomics.

use super::{Num, R32, R64, SlotList};

/// State spaces of loads and stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Space {
    Generic,
    Global,
    /// `shared` / `shared::cta`
    Shared,
    /// `shared::cluster`
    SharedCluster,
    Local,
    Const,
    /// Parameters of the running kernel.
    Param,
}

/// Base of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// No register: `offset` is the whole address.
    Abs,
    /// 32-bit register, zero-extended; the sum wraps at 32 bits.
    R32(R32),
    /// 64-bit register.
    R64(R64),
    /// Address of `Module::globals[i]`: prefer a constant slot; kept for absolute accesses.
    Global(u32),
}

/// `[base + offset]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addr {
    /// Register part.
    pub base: Base,
    /// Byte offset.
    pub offset: i64,
}

/// How far an order reaches: the threads that take part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// Ordering of a memory access; a weak one has no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub(crate) enum Order {
    #[default]
    Weak,
    /// As relaxed by the whole system.
    Volatile,
    Relaxed(Scope),
    Acquire(Scope),
    Release(Scope),
    AcqRel(Scope),
    /// `.mmio`, treated as relaxed.
    Mmio(Scope),
}

/// How a loaded element fills its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Extend {
    Zero,
    /// Sign-extend to 16 bits (a 16-bit register), 32 bits or 64 bits.
    Sign16,
    Sign32,
    Sign64,
}

/// Atomic operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum AtomOp {
    Exch,
    Cas,
    Add,
    Min,
    Max,
    /// `inc`/`dec` with wrap at the operand
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

/// `atom` and `red`, scalar or vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Atom {
    /// Global, Shared, SharedCluster or Generic.
    pub space: Space,
    /// Operation.
    pub op: AtomOp,
    /// Element type.
    pub ty: Num,
    /// `.noftz` is the rule for halves; `f32` adds never flush.
    pub order: Order,
    /// Old values; len 0 for `red`; else the vector length (B128: 2 × W64).
    pub d: SlotList,
    /// Where.
    pub addr: Addr,
    /// Operand values (same length as the vector; B128: 2 × W64).
    pub b: SlotList,
    /// `cas`: the new value (b is the compare value); len 0 otherwise.
    pub c: SlotList,
}
