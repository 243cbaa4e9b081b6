//! Machine code for x86-64 with AVX-512, from a predecoded program.
//!
//! Code runs a warp from one instruction to another one that it leaves to the interpreter, and
//! changes registers, counters and paths exactly as the interpreter does. The way of an
//! instruction: [`flow`] cuts the program into runs that are entered at their first instruction
//! only, and takes all its instructions from what the turn has left before the first of them;
//! it writes each run for warps of every [`lanes::Kind`]; [`lanes`] finds the lanes an instruction is for and writes
//! them; [`integer`], [`float`], [`approximate`], [`compare`] and [`moves`] have a template for each
//! usual instruction, [`access`], [`apart`], [`grouped`] and [`rows`] for the usual loads and
//! stores of words, [`exchange`] for shuffles; the others call the interpreter's own function.
//! Where lanes part or meet, a function says which path comes first, and code goes on there. Where
//! the warp does not just go on after an instruction, the code stops.
//!
//! While code runs, these registers keep their meaning:
//!
//! | register | what |
//! |---|---|
//! | rbx | the warp |
//! | r12, r13, r14 | its 32-bit registers, 64-bit registers and predicates |
//! | r15d | instructions it may still execute |
//! | rbp | [`constants::CONSTANTS`] |
//! | `[rsp]` | the [`Arguments`] |
//! | zmm0, zmm1 | [`constants::CONSTANTS`] for NaNs |
//! | zmm2 to zmm15 | halves of registers, as [`kept`] has it |
//!
//! A template may change rax, rcx, rdx, rsi, rdi, r8 to r11, zmm16 to zmm31, k3, k4 and k7. k1, k5,
//! k2 and k6 have the lanes of a guard, which the next instruction may share (`Writer::held`); only
//! what is called, and then forgets them, may change these.

mod access;
mod apart;
mod approximate;
mod compare;
mod constants;
mod exchange;
mod float;
mod flow;
mod grouped;
mod integer;
mod kept;
mod lanes;
mod moves;
mod rows;

pub(crate) use access::WordAccess;
pub(crate) use constants::CONSTANTS;
pub(crate) use flow::compile;

use std::mem::MaybeUninit;

use crate::counters::Counters;
use crate::exec::lanes::{V32, V64};
use crate::exec::storage::region::Site;
use crate::exec::warp::Warp;
use crate::op::{Op, Program};

/// Groups of loads that code knows of at a time.
pub(crate) const FOUND: usize = 4;

/// Rows of words that code keeps at a time.
pub(crate) const ROWS: usize = 4;

/// What code is called with.
#[repr(C)]
pub(crate) struct Arguments {
    pub(crate) warp: *mut Warp,
    pub(crate) r32: *mut V32,
    pub(crate) r64: *mut V64,
    pub(crate) predicates: *mut u32,
    pub(crate) cluster: *mut (),
    pub(crate) constants: *const constants::Constants,
    /// Instructions that may be executed.
    pub(crate) left: u64,
    pub(crate) counters: *mut Counters,
    pub(crate) progress: *mut u64,
    /// The CTA's shared memory, how far code may read and write it, and which sectors it has; null
    /// if nobody wants to know of them.
    pub(crate) shared: *mut u8,
    pub(crate) read_end: u64,
    pub(crate) written_end: u64,
    pub(crate) touched_read: *mut u64,
    pub(crate) touched_written: *mut u64,
    /// Where global loads were, and the number of the drafts they hold for.
    pub(crate) sites: *mut Site,
    pub(crate) generation: *const u64,
    /// The kernel's parameters.
    pub(crate) params: *const u8,
    /// In each place the group of shared loads whose lanes were looked at last, and how they lie;
    /// behind these, in each place of `rows`, one more than the load that filled it. 0 where nothing
    /// is known.
    pub(crate) found: [u32; FOUND + ROWS],
    /// Where each half of the lanes of a group begins.
    pub(crate) firsts: [[u64; 2]; FOUND],
    /// Words of rows, which the other loads of a row take from here.
    pub(crate) rows: MaybeUninit<[[V32; 4]; ROWS]>,
    /// Where code puts the places of lanes that it takes one by one.
    pub(crate) places: MaybeUninit<V64>,
}

/// Functions that code calls, by address.
pub(crate) struct Helpers {
    /// `fn(warp, instruction, lanes, program)`: computes.
    pub(crate) compute: usize,
    /// Of an access or an exchange, `fn(cluster, warp, instruction, lanes) -> u32`: does it; 0 if
    /// the warp does not just go on.
    pub(crate) called: fn(&Program, &Op) -> usize,
    /// `fn(cluster, warp, branch, lanes) -> *const u8`: parts the lanes that take a branch from the
    /// others; where the code of the path goes on that comes first, or null.
    pub(crate) part: usize,
    /// `fn(cluster, warp) -> *const u8`: the same where a path has come to its join.
    pub(crate) join: usize,
}

/// How subnormal numbers count, which is a mode of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subnormals {
    Kept,
    /// As zeros, in operands and results: `.ftz`.
    Flushed,
}
