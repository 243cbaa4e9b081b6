//! Barriers, fences and mbarriers.

use super::Form;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::operands::{at_least, exactly, immediate_u32};
use crate::lower::words::Words;
use crate::op::*;

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "mbarrier" => mbarrier(emitter, form),
        "fence" => fence(emitter, form),
        "membar" => {
            if form.words.take_first("proxy") {
                return fence_proxy(emitter, form);
            }
            let levels = &[
                ("cta", ()),
                ("gl", ()),
                ("sys", ()),
                ("cluster", ()),
                ("gpu", ()),
            ];
            form.words.need(levels, "a level")?;
            form.words.finish()?;
            let [] = exactly(form.operands)?;
            emitter.emit(Op::Fence);
            Ok(())
        }
        _ if form.words.take_first("cluster") => cluster(emitter, form),
        "bar" if form.words.take_first("warp") => {
            form.words.exactly("sync")?;
            form.words.finish()?;
            let [mask] = exactly(form.operands)?;
            let mask = emitter.s32(mask, Num::B32)?;
            emitter.emit(Op::WarpSync { mask });
            Ok(())
        }
        _ => cta(emitter, form),
    }
}

fn cta<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.take("cta");
    // `bar` is `barrier.aligned`.
    let aligned = form.words.take("aligned") || form.opcode == "bar";
    let kinds = &[("sync", 0), ("arrive", 1), ("red", 2)];
    match form.words.need(kinds, "sync, arrive or red")? {
        2 => return reduce(emitter, form, aligned),
        kind => {
            form.words.finish()?;
            let ([id], rest) = at_least(form.operands, 1)?;
            let id = emitter.s32(id, Num::U32)?;
            let threads = optional32(emitter, rest)?;
            if kind == 1 && threads.is_none() {
                return illegal("arrive needs a thread count");
            }
            let kind = if kind == 0 {
                BarKind::Sync
            } else {
                BarKind::Arrive
            };
            emitter.emit(Op::Bar {
                kind,
                id,
                threads,
                aligned,
            });
        }
    }
    Ok(())
}

fn optional32<'a>(emitter: &mut Emitter<'_, 'a>, rest: &[Operand<'a>]) -> Lowered<Option<R32>> {
    match rest {
        [] => Ok(None),
        [value, ..] => Ok(Some(emitter.s32(value, Num::U32)?)),
    }
}

/// `bar.red.popc.u32 d, a{, b}, c` and `bar.red.and.pred p, a{, b}, c`
fn reduce<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>, aligned: bool) -> Lowered<()> {
    let count = form.words.take("popc");
    let and = form.words.pick(&[("and", true), ("or", false)]);
    form.words.exactly(if count { "u32" } else { "pred" })?;
    form.words.finish()?;
    let ([d, id, ..], rest) = at_least::<3>(form.operands, 1)?;
    let (threads, p) = match rest {
        [] => (None, &form.operands[2]),
        [p, ..] => (Some(emitter.s32(&form.operands[2], Num::U32)?), p),
    };
    let id = emitter.s32(id, Num::U32)?;
    let (p, negate) = emitter.sp(p)?;
    let kind = match (count, and) {
        (true, None) => BarKind::RedPopc {
            d: emitter.d32(d, 32)?,
            p,
            negate,
        },
        (false, Some(and)) => BarKind::RedPred {
            d: emitter.dp(d)?,
            p,
            negate,
            and,
        },
        _ => return Err(Problem::MissingModifier("one of popc, and, or")),
    };
    emitter.emit(Op::Bar {
        kind,
        id,
        threads,
        aligned,
    });
    Ok(())
}

fn cluster<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.take("aligned");
    let arrive = form
        .words
        .need(&[("arrive", true), ("wait", false)], "arrive or wait")?;
    match arrive {
        true => form.words.pick(&[("release", ()), ("relaxed", ())]),
        false => form.words.pick(&[("acquire", ())]),
    };
    form.words.finish()?;
    let [] = exactly(form.operands)?;
    emitter.emit(match arrive {
        true => Op::ClusterArrive,
        false => Op::ClusterWait,
    });
    Ok(())
}

fn fence<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take_first("proxy") {
        return fence_proxy(emitter, form);
    }
    if form.words.take_first("mbarrier_init") {
        form.words.exactly("release")?;
        form.words.exactly("cluster")?;
        form.words.finish()?;
        let [] = exactly(form.operands)?;
        emitter.emit(Op::FenceProxy {
            kind: ProxyFence::MbarrierInit,
        });
        return Ok(());
    }
    let orders = &[
        ("sc", ()),
        ("acq_rel", ()),
        ("acquire", ()),
        ("release", ()),
    ];
    form.words.pick(orders);
    let restricted = &[
        ("sync_restrict::shared::cta", ()),
        ("sync_restrict::shared::cluster", ()),
    ];
    form.words.pick(restricted);
    if !form.words.scope() {
        return Err(Problem::MissingModifier("a scope"));
    }
    form.words.finish()?;
    let [] = exactly(form.operands)?;
    emitter.emit(Op::Fence);
    Ok(())
}

fn fence_proxy<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take("tensormap::generic") {
        let kinds = &[
            ("acquire", ProxyFence::TensormapAcquire),
            ("release", ProxyFence::TensormapRelease),
        ];
        let kind = form.words.need(kinds, "acquire or release")?;
        form.words.scope();
        form.words.finish()?;
        if kind == ProxyFence::TensormapAcquire {
            let [address, size] = exactly(form.operands)?;
            if immediate_u32(size)? != 128 {
                return illegal("a tensor map has 128 bytes");
            }
            emitter.addr(address, Space::Generic)?;
        } else {
            let [] = exactly(form.operands)?;
        }
        emitter.emit(Op::FenceProxy { kind });
        return Ok(());
    }
    let kind = match form.words.next() {
        Some("alias") => ProxyFence::Alias,
        Some("async") => {
            let spaces = &[
                ("global", ProxyFence::AsyncGlobal),
                ("shared::cta", ProxyFence::AsyncShared),
                ("shared::cluster", ProxyFence::AsyncShared),
            ];
            form.words.pick(spaces).unwrap_or(ProxyFence::Async)
        }
        // The one-directional forms order no more than the full one.
        Some("async::generic") => {
            form.words.pick(&[("acquire", ()), ("release", ())]);
            let restricted = &[
                ("sync_restrict::shared::cta", ()),
                ("sync_restrict::shared::cluster", ()),
            ];
            form.words.pick(restricted);
            form.words.scope();
            ProxyFence::AsyncShared
        }
        Some(other) => return Err(Problem::UnknownModifier(other.to_owned())),
        None => return Err(Problem::MissingModifier("a proxy")),
    };
    form.words.finish()?;
    let [] = exactly(form.operands)?;
    emitter.emit(Op::FenceProxy { kind });
    Ok(())
}

/// Ordering, scope and space words that most mbarrier forms share.
fn mbarrier_space(words: &mut Words<'_>) -> Space {
    let orders = &[("release", ()), ("acquire", ()), ("relaxed", ())];
    words.pick(orders);
    words.scope();
    let spaces = &[
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
        ("shared::cluster", Space::SharedCluster),
    ];
    words.pick(spaces).unwrap_or(Space::Generic)
}

fn mbarrier<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let action = form
        .words
        .next()
        .ok_or(Problem::MissingModifier("an action"))?;
    match action {
        "arrive" | "arrive_drop" => return arrive(emitter, form, action == "arrive_drop"),
        "test_wait" | "try_wait" => return wait(emitter, form, action == "try_wait"),
        _ => {}
    }
    if action == "pending_count" {
        form.words.exactly("b64")?;
        form.words.finish()?;
        let [d, state] = exactly(form.operands)?;
        let state = emitter.s64(state, Num::B64)?;
        let d = emitter.d32(d, 32)?;
        let addr = Addr {
            base: Base::Abs,
            offset: 0,
        };
        let op = MbarOp::PendingCount { d, state };
        emit(emitter, op, addr, Space::Shared);
        return Ok(());
    }
    let space = mbarrier_space(&mut form.words);
    if matches!(action, "init" | "inval") {
        form.words.exactly("b64")?;
    } else {
        // expect_tx and complete_tx may do without a type.
        form.words.take("b64");
    }
    form.words.finish()?;
    let takes_value = usize::from(action != "inval");
    let ([address], rest) = at_least(form.operands, takes_value)?;
    let addr = emitter.addr(address, space)?;
    let value = optional32(emitter, rest)?;
    let op = match (action, value) {
        ("init", Some(count)) => MbarOp::Init { count },
        ("inval", None) => MbarOp::Inval,
        ("expect_tx", Some(bytes)) => MbarOp::ExpectTx { bytes },
        ("complete_tx", Some(bytes)) => MbarOp::CompleteTx { bytes },
        ("init" | "expect_tx" | "complete_tx", None) => {
            return Err(Problem::OperandCount {
                expected: "2".into(),
                found: form.operands.len(),
            });
        }
        (other, _) => return Err(Problem::UnknownModifier(other.to_owned())),
    };
    emit(emitter, op, addr, space);
    Ok(())
}

fn emit(emitter: &mut Emitter<'_, '_>, op: MbarOp, addr: Addr, space: Space) {
    emitter.emit(Op::Mbar(Box::new(Mbar { op, addr, space })));
}

fn arrive<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>, drop: bool) -> Lowered<()> {
    let expects = form.words.take("expect_tx");
    let no_complete = form.words.take("noComplete");
    let space = mbarrier_space(&mut form.words);
    form.words.exactly("b64")?;
    form.words.finish()?;
    // Without a state operand the address comes first.
    let (state, operands) = match form.operands {
        [Operand::Address(_), ..] => (None, form.operands),
        [state, rest @ ..] => (Some(state), rest),
        [] => (None, form.operands),
    };
    let ([address], rest) = at_least(operands, 1)?;
    let addr = emitter.addr(address, space)?;
    let value = optional32(emitter, rest)?;
    if expects && value.is_none() {
        return illegal("expect_tx needs a byte count");
    }
    if no_complete && value.is_none() {
        return illegal("noComplete needs an arrival count");
    }
    let (expect_tx, count) = if expects {
        (value, None)
    } else {
        (None, value)
    };
    let state = match state {
        None | Some(Operand::Sink) => None,
        Some(_) if space == Space::SharedCluster => {
            return illegal("an arrive in shared::cluster gives no state: use `_`");
        }
        Some(state) => Some(emitter.d64(state)?),
    };
    let op = MbarOp::Arrive {
        state,
        drop,
        no_complete,
        expect_tx,
        count,
    };
    emit(emitter, op, addr, space);
    Ok(())
}

fn wait<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    may_suspend: bool,
) -> Lowered<()> {
    let parity = form.words.take("parity");
    let space = mbarrier_space(&mut form.words);
    form.words.exactly("b64")?;
    form.words.finish()?;
    if space == Space::SharedCluster {
        return illegal("a wait is on the executing CTA's own barrier");
    }
    let ([d, address, phase], rest) = at_least(form.operands, usize::from(may_suspend))?;
    let addr = emitter.addr(address, space)?;
    let phase = match parity {
        true => Phase::Parity(emitter.s32(phase, Num::U32)?),
        false => Phase::State(emitter.s64(phase, Num::B64)?),
    };
    // The time limit of the suspension is advice.
    optional32(emitter, rest)?;
    let d = emitter.dp(d)?;
    let op = match may_suspend {
        true => MbarOp::TryWait { d, phase },
        false => MbarOp::TestWait { d, phase },
    };
    emit(emitter, op, addr, space);
    Ok(())
}
