//! The language of `value`: numpy's conventions, parsed and checked.

mod call;
mod check;
mod graph;
mod parse;
mod product;
mod slice;
mod token;
mod whole;

pub(super) use call::functions;
pub(super) use check::{Checker, Meaning};
pub(super) use graph::Graph;
pub(super) use parse::parse;
pub(super) use whole::whole;
