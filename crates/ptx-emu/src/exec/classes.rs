//! Which programs make their CTAs talk to each other.

use crate::op::{BulkDir, Op, Order, Program, Space};

/// Whether CTAs of the program may talk to each other through global memory.
pub(crate) fn communicates(program: &Program) -> bool {
    let seen = |space: Space| matches!(space, Space::Global | Space::Generic);
    program.insts.iter().any(|inst| match &inst.op {
        Op::Ld { space, order, .. } | Op::St { space, order, .. } => {
            *order != Order::Weak && seen(*space)
        }
        Op::Atom(atom) => seen(atom.space),
        Op::Bulk(bulk) => bulk.dir == BulkDir::SharedToGlobal && bulk.reduce.is_some(),
        Op::Tensor(tensor) => tensor.reduce.is_some(),
        _ => false,
    })
}
