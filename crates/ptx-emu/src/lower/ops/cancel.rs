//! `clusterlaunchcontrol`: a running cluster takes over one that has not been launched.

use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{exactly, wrong};
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take_first("try_cancel") {
        return try_cancel(emitter, form);
    }
    if form.words.take_first("query_cancel") {
        return query(emitter, form);
    }
    Err(Problem::MissingModifier("try_cancel or query_cancel"))
}

/// `….try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128
/// [answer], [mbarrier]`
fn try_cancel<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("async")?;
    let space = match form.words.take("shared::cta") {
        true => Space::Shared,
        false => Space::Generic,
    };
    form.words.exactly("mbarrier::complete_tx::bytes")?;
    let multicast = form.words.take("multicast::cluster::all");
    form.words.end(&["b128"])?;
    let [answer, barrier] = exactly(form.operands)?;
    let dst = emitter.addr(answer, space)?;
    let mbar = emitter.addr(barrier, space)?;
    emitter.emit(Op::TryCancel {
        multicast,
        dst,
        mbar,
    });
    Ok(())
}

/// `….query_cancel.is_canceled.pred.b128 p, answer` and `….get_first_ctaid….b32.b128 d, answer`
fn query<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let canceled = form.words.take_first("is_canceled");
    let part = match canceled {
        true => None,
        false => Some(form.words.need(
            &[
                ("get_first_ctaid", None),
                ("get_first_ctaid::x", Some(0)),
                ("get_first_ctaid::y", Some(1)),
                ("get_first_ctaid::z", Some(2)),
            ],
            "is_canceled or get_first_ctaid",
        )?),
    };
    if canceled {
        form.words.exactly("pred")?;
    } else {
        if part == Some(None) {
            form.words.exactly("v4")?;
        }
        form.words.exactly("b32")?;
    }
    form.words.end(&["b128"])?;
    let [d, answer] = exactly(form.operands)?;
    let [low, high] = emitter.source128(answer)?;
    match part {
        None => {
            let word = emitter.temp32();
            emitter.emit(Op::Unpack64 {
                lo: Slot::Sink,
                hi: Slot::W32(word),
                a: high,
            });
            let yes = emitter.const32(CANCELED);
            let d = emitter.dp(d)?;
            emitter.emit(Op::SetpI32 {
                w: W::B32,
                cmp: Cmp::Eq,
                signed: false,
                d,
                a: word,
                b: yes,
            });
        }
        Some(Some(axis)) => {
            let d = Slot::W32(emitter.d32(d, 32)?);
            let (lo, hi, a) = match axis {
                0 => (d, Slot::Sink, low),
                1 => (Slot::Sink, d, low),
                _ => (d, Slot::Sink, high),
            };
            emitter.emit(Op::Unpack64 { lo, hi, a });
        }
        Some(None) => {
            let Operand::Vector(items) = d else {
                return wrong("a vector of 4", d);
            };
            let [x, y, z, unused] = &items[..] else {
                return illegal("the index has three parts, in a vector of 4");
            };
            let lo = emitter.dslot(x, 32)?;
            let hi = emitter.dslot(y, 32)?;
            emitter.emit(Op::Unpack64 { lo, hi, a: low });
            let lo = emitter.dslot(z, 32)?;
            // The fourth is undefined.
            let hi = emitter.dslot(unused, 32)?;
            emitter.emit(Op::Unpack64 { lo, hi, a: high });
        }
    }
    Ok(())
}
