//! Barriers, fences and mbarriers.

use super::row::bare;
use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly, immediate_u32};
use crate::lower::modifiers::{Modifiers, Ordered, Scoped};
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
                ("cta", Scope::Cta),
                ("gl", Scope::Gpu),
                ("sys", Scope::Sys),
                ("cluster", Scope::Cluster),
                ("gpu", Scope::Gpu),
            ];
            let scope = form.words.need(levels, "a level")?;
            // `membar` is the old name of `fence.sc`.
            let fence = Fence {
                order: FenceOrder::Sc,
                scope: Some(scope),
                between: Proxies::Generic,
                over: FencedBytes::All,
            };
            emit_fence(emitter, form, fence)
        }
        _ if form.words.take_first("cluster") => cluster(emitter, form),
        "bar" if form.words.take_first("warp") => {
            form.words.end(&["sync"])?;
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
    let order = match arrive {
        true => form.words.pick(&[
            ("release", Order::Release(Scope::Cluster)),
            ("relaxed", Order::Relaxed(Scope::Cluster)),
        ]),
        false => form
            .words
            .pick(&[("acquire", Order::Acquire(Scope::Cluster))]),
    };
    let order = order.unwrap_or(Order::Release(Scope::Cluster));
    match arrive {
        true => bare(emitter, &form, Op::ClusterArrive { order }),
        false => bare(emitter, &form, Op::ClusterWait),
    }
}

fn emit_fence(emitter: &mut Emitter<'_, '_>, form: Form<'_, '_>, fence: Fence) -> Lowered<()> {
    bare(emitter, &form, Op::Fence { fence, map: None })
}

/// The bytes that a one-directional fence is restricted to.
const RESTRICTIONS: &[(&str, FencedBytes)] = &[
    ("sync_restrict::shared::cta", FencedBytes::SharedCta),
    ("sync_restrict::shared::cluster", FencedBytes::SharedCluster),
];

const ONE_WAY: &[(&str, FenceOrder)] = &[
    ("acquire", FenceOrder::Acquire),
    ("release", FenceOrder::Release),
];

fn fence<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take_first("proxy") {
        return fence_proxy(emitter, form);
    }
    if form.words.take_first("mbarrier_init") {
        form.words.exactly("release")?;
        form.words.exactly("cluster")?;
        let fence = Fence {
            order: FenceOrder::Release,
            scope: Some(Scope::Cluster),
            between: Proxies::Generic,
            over: FencedBytes::InitialisedBarriers,
        };
        return emit_fence(emitter, form, fence);
    }
    let two_way = &[("sc", FenceOrder::Sc), ("acq_rel", FenceOrder::AcqRel)];
    let order = form.words.pick(two_way);
    let order = order.or_else(|| form.words.pick(ONE_WAY));
    let over = form.words.pick(RESTRICTIONS).unwrap_or(FencedBytes::All);
    let Some(scope) = form.words.scope() else {
        return Err(Problem::MissingModifier("a scope"));
    };
    let fence = Fence {
        order: order.unwrap_or(FenceOrder::AcqRel),
        scope: Some(scope),
        between: Proxies::Generic,
        over,
    };
    emit_fence(emitter, form, fence)
}

fn fence_proxy<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take("tensormap::generic") {
        return fence_tensormap(emitter, form);
    }
    let two_way = |between, over| Fence {
        order: FenceOrder::AcqRel,
        scope: None,
        between,
        over,
    };
    let fence = match form.words.next() {
        Some("alias") => two_way(Proxies::Alias, FencedBytes::All),
        Some("async") => {
            let spaces = &[
                ("global", FencedBytes::Global),
                ("shared::cta", FencedBytes::SharedCta),
                ("shared::cluster", FencedBytes::SharedCluster),
            ];
            let over = form.words.pick(spaces).unwrap_or(FencedBytes::All);
            two_way(Proxies::GenericAsync, over)
        }
        Some("async::generic") => Fence {
            order: form.words.pick(ONE_WAY).unwrap_or(FenceOrder::AcqRel),
            over: form.words.pick(RESTRICTIONS).unwrap_or(FencedBytes::All),
            scope: form.words.scope(),
            between: Proxies::GenericAsync,
        },
        Some(other) => return Err(Problem::UnknownModifier(other.to_owned())),
        None => return Err(Problem::MissingModifier("a proxy")),
    };
    emit_fence(emitter, form, fence)
}

/// `fence.proxy.tensormap::generic.release.gpu` and `….acquire.gpu [map], 128`
fn fence_tensormap<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let order = form.words.need(ONE_WAY, "acquire or release")?;
    let fence = Fence {
        order,
        scope: form.words.scope(),
        between: Proxies::GenericTensormap,
        over: FencedBytes::All,
    };
    if order == FenceOrder::Release {
        return emit_fence(emitter, form, fence);
    }
    form.words.finish()?;
    let [address, size] = exactly(form.operands)?;
    if immediate_u32(size)? != 128 {
        return illegal("a tensor map has 128 bytes");
    }
    let map = Some(emitter.addr(address, Space::Generic)?);
    emitter.emit(Op::Fence { fence, map });
    Ok(())
}

/// Ordering, scope and space words that most mbarrier forms share.
fn mbarrier_words(words: &mut Modifiers<'_>, otherwise: Scoped) -> (Order, Space) {
    let orders: &[Ordered] = &[
        ("release", Order::Release),
        ("acquire", Order::Acquire),
        ("relaxed", Order::Relaxed),
    ];
    let order = words.order(orders, otherwise, Scope::Cta);
    let spaces = &[
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
        ("shared::cluster", Space::SharedCluster),
    ];
    (order, words.pick(spaces).unwrap_or(Space::Generic))
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
        form.words.end(&["b64"])?;
        let [d, state] = exactly(form.operands)?;
        let state = emitter.s64(state, Num::B64)?;
        let d = emitter.d32(d, 32)?;
        let addr = Addr {
            base: Base::Abs,
            offset: 0,
        };
        let op = MbarOp::PendingCount { d, state };
        emit(emitter, op, addr, (Order::Weak, Space::Shared));
        return Ok(());
    }
    let otherwise: Scoped = match action {
        "init" | "inval" => |_| Order::Weak,
        _ => Order::Relaxed,
    };
    let (order, space) = mbarrier_words(&mut form.words, otherwise);
    if matches!(action, "init" | "inval") {
        form.words.exactly("b64")?;
    } else {
        // expect_tx and complete_tx may omit the type.
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
    emit(emitter, op, addr, (order, space));
    Ok(())
}

fn emit(emitter: &mut Emitter<'_, '_>, op: MbarOp, addr: Addr, (order, space): (Order, Space)) {
    let mbar = Mbar {
        op,
        addr,
        space,
        order,
    };
    emitter.emit(Op::Mbar(Box::new(mbar)));
}

fn arrive<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>, drop: bool) -> Lowered<()> {
    let expects = form.words.take("expect_tx");
    let no_complete = form.words.take("noComplete");
    let (order, space) = mbarrier_words(&mut form.words, Order::Release);
    form.words.end(&["b64"])?;
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
    emit(emitter, op, addr, (order, space));
    Ok(())
}

fn wait<'a>(
    emitter: &mut Emitter<'_, 'a>,
    mut form: Form<'_, 'a>,
    may_suspend: bool,
) -> Lowered<()> {
    let parity = form.words.take("parity");
    let (order, space) = mbarrier_words(&mut form.words, Order::Acquire);
    form.words.end(&["b64"])?;
    if space == Space::SharedCluster {
        return illegal("a wait is on the executing CTA's own barrier");
    }
    let ([d, address, phase], rest) = at_least(form.operands, usize::from(may_suspend))?;
    let addr = emitter.addr(address, space)?;
    let phase = match parity {
        true => Phase::Parity(emitter.s32(phase, Num::U32)?),
        false => Phase::State(emitter.s64(phase, Num::B64)?),
    };
    // The time limit of the suspension is a hint.
    optional32(emitter, rest)?;
    let d = emitter.dp(d)?;
    let op = match may_suspend {
        true => MbarOp::TryWait { d, phase },
        false => MbarOp::TestWait { d, phase },
    };
    emit(emitter, op, addr, (order, space));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowered form of one instruction.
    fn lowered(line: &str) -> Op {
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n\
             .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>; .shared .align 8 .b64 bar;\n\
             {line}\nret; }}"
        );
        let module = crate::Module::load(&text).expect("it parses");
        let program = module.kernels.get("k");
        let program = program.unwrap_or_else(|| panic!("{line}: {}", module.refused["k"]));
        program.insts[0].op.clone()
    }

    #[test]
    fn a_fence_is_kept_as_it_was_written() {
        use FenceOrder::{AcqRel, Acquire, Release, Sc};
        use FencedBytes::{All, Global, InitialisedBarriers, SharedCluster, SharedCta};
        use Proxies::{Alias, Generic, GenericAsync, GenericTensormap};
        use Scope::{Cluster, Cta, Gpu, Sys};
        let restricted = "sync_restrict::shared";
        for (line, order, scope, between, over) in [
            ("fence.acq_rel.gpu;", AcqRel, Some(Gpu), Generic, All),
            ("fence.sc.sys;", Sc, Some(Sys), Generic, All),
            ("fence.cta;", AcqRel, Some(Cta), Generic, All),
            (
                "fence.acquire.cluster;",
                Acquire,
                Some(Cluster),
                Generic,
                All,
            ),
            ("membar.gl;", Sc, Some(Gpu), Generic, All),
            ("membar.cta;", Sc, Some(Cta), Generic, All),
            (
                &format!("fence.release.{restricted}::cta.cluster;"),
                Release,
                Some(Cluster),
                Generic,
                SharedCta,
            ),
            (
                "fence.mbarrier_init.release.cluster;",
                Release,
                Some(Cluster),
                Generic,
                InitialisedBarriers,
            ),
            ("fence.proxy.alias;", AcqRel, None, Alias, All),
            ("fence.proxy.async;", AcqRel, None, GenericAsync, All),
            (
                "fence.proxy.async.global;",
                AcqRel,
                None,
                GenericAsync,
                Global,
            ),
            (
                "fence.proxy.async.shared::cta;",
                AcqRel,
                None,
                GenericAsync,
                SharedCta,
            ),
            (
                &format!("fence.proxy.async::generic.acquire.{restricted}::cluster.cluster;"),
                Acquire,
                Some(Cluster),
                GenericAsync,
                SharedCluster,
            ),
            (
                "fence.proxy.tensormap::generic.release.gpu;",
                Release,
                Some(Gpu),
                GenericTensormap,
                All,
            ),
        ] {
            let fence = Fence {
                order,
                scope,
                between,
                over,
            };
            assert_eq!(lowered(line), Op::Fence { fence, map: None }, "{line}");
        }
        let acquire = lowered("fence.proxy.tensormap::generic.acquire.sys [%rd1], 128;");
        assert!(
            matches!(&acquire, Op::Fence { fence, map: Some(_) }
                if fence.order == Acquire && fence.scope == Some(Sys)),
            "{acquire:?}"
        );
    }

    #[test]
    fn accesses_and_barriers_keep_their_order_and_scope() {
        let order_of = |line: &str| match lowered(line) {
            Op::Ld { order, .. } | Op::St { order, .. } | Op::ClusterArrive { order } => order,
            Op::Atom(atom) => atom.order,
            Op::Mbar(mbar) => mbar.order,
            other => panic!("{line}: {other:?}"),
        };
        for (line, order) in [
            ("ld.global.b32 %r1, [%rd1];", Order::Weak),
            ("ld.volatile.global.b32 %r1, [%rd1];", Order::Volatile),
            (
                "ld.acquire.gpu.b32 %r1, [%rd1];",
                Order::Acquire(Scope::Gpu),
            ),
            (
                "st.release.sys.b32 [%rd1], %r1;",
                Order::Release(Scope::Sys),
            ),
            (
                "st.mmio.relaxed.sys.global.b32 [%rd1], %r1;",
                Order::Mmio(Scope::Sys),
            ),
            ("atom.add.u32 %r1, [%rd1], %r2;", Order::Relaxed(Scope::Gpu)),
            (
                "red.release.cta.shared.add.u32 [%r1], %r2;",
                Order::Release(Scope::Cta),
            ),
            (
                "atom.acq_rel.sys.add.u32 %r1, [%rd1], %r2;",
                Order::AcqRel(Scope::Sys),
            ),
            ("barrier.cluster.arrive;", Order::Release(Scope::Cluster)),
            (
                "barrier.cluster.arrive.relaxed;",
                Order::Relaxed(Scope::Cluster),
            ),
            (
                "mbarrier.arrive.shared.b64 %rd1, [bar];",
                Order::Release(Scope::Cta),
            ),
            (
                "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];",
                Order::Release(Scope::Cluster),
            ),
            (
                "mbarrier.try_wait.parity.shared.b64 %p, [bar], %r1;",
                Order::Acquire(Scope::Cta),
            ),
            (
                "mbarrier.try_wait.parity.relaxed.cluster.shared.b64 %p, [bar], %r1;",
                Order::Relaxed(Scope::Cluster),
            ),
            (
                "mbarrier.expect_tx.shared.b64 [bar], %r1;",
                Order::Relaxed(Scope::Cta),
            ),
        ] {
            assert_eq!(order_of(line), order, "{line}");
        }
    }
}
