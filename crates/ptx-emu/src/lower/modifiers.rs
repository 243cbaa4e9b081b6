//! Modifiers, taken one by one from an instruction until none is left.

use super::error::{Lowered, Problem};
use crate::op::{Num, Order, Scope};

/// The modifiers that are still to be read.
pub(crate) struct Modifiers<'a> {
    left: Vec<&'a str>,
}

/// Cache hints; `L2::cache_hint` announces a hint operand.
const HINTS: &[&str] = &[
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::evict_normal",
    "L2::evict_first",
    "L2::evict_last",
    "L2::64B",
    "L2::128B",
    "L2::256B",
];

impl<'a> Modifiers<'a> {
    pub(super) fn new(words: &[&'a str]) -> Self {
        Self {
            left: words.to_vec(),
        }
    }

    /// Takes the word if it is there.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let place = self.left.iter().position(|&found| found == word);
        place.map(|at| self.left.remove(at)).is_some()
    }

    /// Takes the first word that is in the table.
    pub(super) fn pick<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let (at, value) = self.left.iter().enumerate().find_map(|(at, &word)| {
            let (_, value) = table.iter().find(|&&(name, _)| name == word)?;
            Some((at, *value))
        })?;
        self.left.remove(at);
        Some(value)
    }

    /// Like [`Modifiers::pick`], but one is required.
    pub(super) fn need<T: Copy>(&mut self, table: &[(&str, T)], what: &'static str) -> Lowered<T> {
        self.pick(table).ok_or(Problem::MissingModifier(what))
    }

    /// Takes the next word, whatever it is.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        (!self.left.is_empty()).then(|| self.left.remove(0))
    }

    /// Takes the word if it is the next one.
    pub(super) fn take_first(&mut self, word: &str) -> bool {
        let first = self.left.first() == Some(&word);
        if first {
            self.left.remove(0);
        }
        first
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.left.contains(&word)
    }

    /// Takes the first type.
    pub(super) fn ty(&mut self) -> Lowered<Num> {
        self.need(TYPES, "a type")
    }

    /// Takes the first type, which must be this one.
    pub(super) fn exactly(&mut self, word: &'static str) -> Lowered<()> {
        match self.take(word) {
            true => Ok(()),
            false => Err(Problem::MissingModifier(word)),
        }
    }

    /// Takes the type, which is the last word.
    pub(super) fn last_ty(&mut self) -> Lowered<Num> {
        let ty = self.ty()?;
        self.finish()?;
        Ok(ty)
    }

    /// Takes the last words, which must be these.
    pub(super) fn end(&mut self, words: &[&'static str]) -> Lowered<()> {
        for word in words {
            self.exactly(word)?;
        }
        self.finish()
    }

    /// Takes cache hints; true if the instruction has a policy operand.
    pub(super) fn hints(&mut self) -> bool {
        self.left.retain(|word| !HINTS.contains(word));
        self.take("L2::cache_hint")
    }

    /// Takes the scope, if there is one.
    pub(super) fn scope(&mut self) -> Option<Scope> {
        self.pick(&[
            ("cta", Scope::Cta),
            ("cluster", Scope::Cluster),
            ("gpu", Scope::Gpu),
            ("sys", Scope::Sys),
        ])
    }

    /// Takes one of some orders and its scope. `otherwise` is the order if none is given, and
    /// `default` the scope.
    pub(super) fn order(&mut self, orders: &[Ordered], otherwise: Scoped, default: Scope) -> Order {
        let order = self.pick(orders).unwrap_or(otherwise);
        match order(default) {
            unscoped @ (Order::Weak | Order::Volatile) => unscoped,
            _ => order(self.scope().unwrap_or(default)),
        }
    }

    /// Fails if a modifier is left.
    pub(super) fn finish(&self) -> Lowered<()> {
        match self.left.first() {
            None => Ok(()),
            Some(word) => Err(Problem::UnknownModifier((*word).to_owned())),
        }
    }
}

/// An order that lacks its scope.
pub(crate) type Scoped = fn(Scope) -> Order;

/// The word of an order.
pub(crate) type Ordered = (&'static str, Scoped);

/// Orders of loads, stores and atomics.
pub(crate) const ORDERS: &[Ordered] = &[
    ("mmio", Order::Mmio),
    ("weak", |_| Order::Weak),
    ("volatile", |_| Order::Volatile),
    ("relaxed", Order::Relaxed),
    ("acquire", Order::Acquire),
    ("release", Order::Release),
    ("acq_rel", Order::AcqRel),
];

/// Type words and their formats.
pub(crate) const TYPES: &[(&str, Num)] = &[
    ("b8", Num::B8),
    ("b16", Num::B16),
    ("b32", Num::B32),
    ("b64", Num::B64),
    ("b128", Num::B128),
    ("u8", Num::U8),
    ("s8", Num::S8),
    ("u16", Num::U16),
    ("s16", Num::S16),
    ("u32", Num::U32),
    ("s32", Num::S32),
    ("u64", Num::U64),
    ("s64", Num::S64),
    ("f16", Num::F16),
    ("bf16", Num::Bf16),
    ("tf32", Num::Tf32),
    ("f32", Num::F32),
    ("f64", Num::F64),
    ("f16x2", Num::F16x2),
    ("bf16x2", Num::Bf16x2),
    ("e4m3", Num::E4m3),
    ("e5m2", Num::E5m2),
    ("e2m1", Num::E2m1),
    ("e2m3", Num::E2m3),
    ("e3m2", Num::E3m2),
    ("s4", Num::S4),
    ("u4", Num::U4),
    ("b1", Num::B1),
];
