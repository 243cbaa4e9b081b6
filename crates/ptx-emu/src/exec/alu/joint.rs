//! Lanes of one warp that exchange values at several instructions: compilers copy code into branches,
//! and a card lets the copies meet.

use super::exchange;
use crate::exec::warp::Warp;
use crate::op::{Op, P, R32};

/// The registers of an exchange.
struct Ports {
    reads: Vec<R32>,
    /// And whether it is taken the other way round.
    condition: Option<(P, bool)>,
    result: Option<R32>,
    verdict: Option<P>,
}

impl Ports {
    /// None of an exchange that is not made here.
    fn of(op: &Op) -> Option<Self> {
        let ports = |reads: &[R32], condition, result, verdict| Self {
            reads: reads.to_vec(),
            condition,
            result,
            verdict,
        };
        Some(match *op {
            Op::Shfl {
                d,
                p,
                a,
                b,
                c,
                mask,
                ..
            } => ports(&[a, b, c, mask], None, Some(d), p),
            Op::VotePred {
                d, p, negate, mask, ..
            } => ports(&[mask], Some((p, negate)), None, Some(d)),
            Op::Ballot {
                d, p, negate, mask, ..
            } => ports(&[mask], Some((p, negate)), Some(d), None),
            Op::Redux { d, a, mask, .. } => ports(&[a, mask], None, Some(d), None),
            _ => return None,
        })
    }

    fn condition(&self, w: &Warp) -> u32 {
        self.condition.map_or(0, |(p, negate)| match negate {
            true => !w.pred(p),
            false => w.pred(p),
        })
    }
}

/// Whether two exchanges do the same, whatever their registers.
fn alike(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Shfl { mode: a, p: pa, .. }, Op::Shfl { mode: b, p: pb, .. }) => {
            a == b && pa.is_some() == pb.is_some()
        }
        (Op::VotePred { vote: a, .. }, Op::VotePred { vote: b, .. }) => a == b,
        (Op::Ballot { .. }, Op::Ballot { .. }) => true,
        (Op::Redux { op: a, .. }, Op::Redux { op: b, .. }) => a == b,
        _ => false,
    }
}

/// The lanes of `mask` exchange values at `op`, and those of `others` at theirs: all of them with all.
/// False if they do not do the same, and then nothing is done.
pub(crate) fn exchange_all(w: &mut Warp, mask: u32, op: &Op, others: &[(u32, &Op)]) -> bool {
    let Some(own) = Ports::of(op) else {
        return false;
    };
    let mut theirs = Vec::new();
    for &(lanes, other) in others {
        match Ports::of(other) {
            Some(ports) if alike(op, other) => theirs.push((lanes, ports)),
            _ => return false,
        }
    }
    let there = others.iter().fold(0, |all, (lanes, _)| all | lanes);
    let registers = own.reads.iter().chain(&own.result);
    let kept: Vec<(R32, [u32; 32])> = registers.map(|&r| (r, *w.get(r))).collect();
    let conditions = own.condition.iter().map(|(p, _)| p).chain(&own.verdict);
    let kept_conditions: Vec<(P, u32)> = conditions.map(|&p| (p, w.pred(p))).collect();
    // What the others give, in the places where this instruction looks for it.
    for (lanes, ports) in &theirs {
        let values: Vec<[u32; 32]> = ports.reads.iter().map(|&r| *w.get(r)).collect();
        let condition = ports.condition(w);
        for (&r, &value) in own.reads.iter().zip(&values) {
            w.put(*lanes, r, value);
        }
        if let Some((p, negate)) = own.condition {
            let condition = if negate { !condition } else { condition };
            w.put_pred(*lanes, p, condition);
        }
        // One register in two places holds both only if they are the same.
        let placed = (own.reads.iter().zip(&values))
            .all(|(&r, value)| (0..32).all(|i| lanes >> i & 1 == 0 || w.get(r)[i] == value[i]));
        if !placed {
            restore(w, there, &kept, &kept_conditions);
            return false;
        }
    }
    exchange::exchange(w, mask | there, op);
    let result = own.result.map(|d| *w.get(d));
    let verdict = own.verdict.map(|p| w.pred(p));
    restore(w, there, &kept, &kept_conditions);
    for (lanes, ports) in &theirs {
        if let (Some(d), Some(result)) = (ports.result, result) {
            w.put(*lanes, d, result);
        }
        if let (Some(p), Some(verdict)) = (ports.verdict, verdict) {
            w.put_pred(*lanes, p, verdict);
        }
    }
    true
}

fn restore(w: &mut Warp, lanes: u32, registers: &[(R32, [u32; 32])], conditions: &[(P, u32)]) {
    for &(r, value) in registers {
        w.put(lanes, r, value);
    }
    for &(p, value) in conditions {
        w.put_pred(lanes, p, value);
    }
}
