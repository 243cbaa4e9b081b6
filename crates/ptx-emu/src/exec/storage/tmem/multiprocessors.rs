//! Tensor memory of multiprocessors on which several CTAs are resident: who has which columns.
//!
//! A CTA that asks for columns another one has waits until they are free, as on a device. Columns
//! are handed out between epochs, in the common order of what CTAs see of each other, so that it
//! depends on the seed alone; what was freed meanwhile counts from then on.

use std::sync::{Mutex, PoisonError};

use crate::exec::storage::tmem::{Piece, first_run};
use crate::tensor::tcgen05::COLUMNS;

/// Columns of every multiprocessor.
pub(crate) struct Multiprocessors {
    /// Never asked for while clusters run beside each other, so never contended.
    held: Mutex<Vec<Vec<Held>>>,
}

/// Columns a CTA has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    cta: [u32; 3],
    piece: Piece,
}

impl Multiprocessors {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            held: Mutex::new(vec![Vec::new(); count as usize]),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Vec<Held>>) -> T) -> T {
        f(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The first run of columns that is free on each of some multiprocessors.
    pub(crate) fn find(&self, sms: &[u32], columns: u32) -> Option<u32> {
        self.with(|held| {
            let held = sms.iter().flat_map(|&sm| &held[sm as usize]);
            let pieces: Vec<Piece> = held.map(|held| held.piece).collect();
            first_run(&pieces, columns)
        })
    }

    pub(crate) fn take(&self, sm: u32, cta: [u32; 3], piece: Piece) {
        self.with(|held| held[sm as usize].push(Held { cta, piece }));
    }

    pub(crate) fn free(&self, sm: u32, piece: &Piece) {
        self.with(|held| held[sm as usize].retain(|held| held.piece.first != piece.first));
    }

    /// What is free there, and who has the rest, in words.
    pub(crate) fn tell(&self, sm: u32) -> String {
        self.with(|held| {
            let held = &held[sm as usize];
            let taken: u32 = held.iter().map(|held| held.piece.columns).sum();
            let each = held.iter().map(
                |Held {
                     cta: [x, y, z],
                     piece,
                 }| { format!("CTA ({x},{y},{z}) has {}", piece.columns) },
            );
            let each = each.collect::<Vec<_>>().join(", ");
            let free = COLUMNS as u32 - taken;
            format!("{free} of {COLUMNS} are free on multiprocessor {sm}: {each}")
        })
    }
}
