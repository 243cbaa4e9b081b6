//! Tells whoever listens what orders accesses, at the moment it takes effect: between the accesses
//! that come before it and those after it. Nothing here changes what a launch does.

use crate::exec::checked::Checked;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::{Signal, Step};
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::mbarrier::Mbarrier;
use crate::exec::warp::{Wait, Warp};
use crate::op::{Op, Order, Scope};

impl Wait {
    /// That it is over. An mbarrier's wait is told where it is asked for, since only the
    /// instruction knows whether it went through.
    pub(crate) fn passed(&self) -> Option<Signal> {
        let groups = |agent, below, read| Signal::Groups { agent, below, read };
        let acquired = |scope| Step::Pass {
            order: Order::Acquire(scope),
            parity: false,
        };
        Some(match *self {
            Wait::Bar { id, generation, .. } => Signal::Bar {
                id,
                over: generation + 1,
                step: acquired(Scope::Cta),
            },
            Wait::Cluster { generation } => Signal::Cluster {
                over: generation,
                step: acquired(Scope::Cluster),
            },
            Wait::Copies { below } => groups(Agent::LaneCopy, below, false),
            Wait::Bulk { below, read } => groups(Agent::BulkCopy, below, read),
            Wait::Wgmma { below } => groups(Agent::TensorCore, below, false),
            Wait::Mbar { .. }
            | Wait::Columns { .. }
            | Wait::PeerColumns { .. }
            | Wait::Sleep { .. }
            | Wait::Communication
            | Wait::Registers { .. } => return None,
        })
    }
}

impl Cluster<'_> {
    /// Tells whoever listens.
    #[inline(always)]
    pub(crate) fn signal(&mut self, from: Origin, signal: Signal) {
        if let Some(ear) = &mut self.ear {
            ear.order(from, signal);
        }
    }

    /// Instructions that change nothing but what may be relied on.
    pub(crate) fn hint(&mut self, w: &Warp, mask: u32, op: &Op) {
        let signal = match *op {
            Op::TmemFence { after } => Signal::TmemFence { after },
            Op::GridDep { wait: true } => Signal::LaunchBefore,
            _ => return,
        };
        self.signal(w.origin(mask), signal);
    }

    /// A wait that went through at once, or the one to go into.
    pub(crate) fn pass_or_wait(&mut self, from: Origin, over: bool, wait: Wait) -> Flow {
        if !over {
            self.counters.barrier_waits += 1;
            return Flow::After(wait);
        }
        self.pass_wait(from, wait);
        Flow::Next
    }

    /// What an agent was given since its last group is one.
    pub(crate) fn commit(&mut self, w: &Warp, mask: u32, agent: Agent, group: u64) {
        self.signal(w.origin(mask), Signal::Commit { agent, group });
    }

    pub(crate) fn pass_wait(&mut self, from: Origin, wait: Wait) {
        if let Some(signal) = wait.passed() {
            self.signal(from, signal);
        }
    }

    /// Does something to an mbarrier and tells of it.
    pub(crate) fn at_mbarrier(
        &mut self,
        from: Origin,
        at: SharedAt,
        step: Step,
        change: impl FnOnce(&mut Mbarrier),
    ) -> Checked<()> {
        let by = self.helper(from);
        let cta = &mut self.ctas[at.cta as usize];
        let over = cta.mbarriers.update(&mut cta.shared, at.offset, |b| {
            change(b);
            b.helpers |= by;
            Ok(())
        })?;
        self.signal(from, Signal::Mbarrier { at, over, step });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::exec::listen::visit::{ClusterListener, Listener, Visit};
    use crate::{Launch, Memory, Module, Params};

    /// What warp 0 and its copies do, a line each.
    #[derive(Default)]
    struct Diary(Mutex<Vec<String>>);

    impl Diary {
        fn note(&self, from: Origin, line: String) {
            let who = match (from.work, from.lanes) {
                (0, u32::MAX) => "all".to_owned(),
                (0, lanes) => format!("{lanes:x}"),
                (work, _) => format!("#{work}"),
            };
            if from.warp == 0 {
                self.0
                    .lock()
                    .expect("no panic")
                    .push(format!("{who}: {line}"));
            }
        }
    }

    impl Listener for Diary {
        fn attend(&self, _: u64) -> Option<Box<dyn ClusterListener + '_>> {
            Some(Box::new(self))
        }
    }

    impl ClusterListener for &Diary {
        fn hear(&mut self, visit: &Visit<'_>) {
            let line = format!("{:?} {:?}", visit.agent, visit.act);
            self.note(visit.from, line);
        }

        fn order(&mut self, from: Origin, signal: Signal) {
            self.note(from, format!("{signal:?}"));
        }
    }

    const TEXT: &str = ".version 8.8\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .u64 data) {
        .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;
        .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;
        ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
        setp.ne.u32 %p, %r1, 0; @%p bra READY;
        mbarrier.init.shared.b64 [bar], 1;
        fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [bar];
        READY: bar.sync 1, 128;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;
        bar.warp.sync -1;
        setp.eq.u32 %p, %r1, 1; @%p cp.async.ca.shared.global [%r2+2048], [%rd1], 4;
        cp.async.commit_group; cp.async.wait_group 0;
        cvt.u64.u32 %rd4, %r2; shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x4000004000010000;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd4, %rd4, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        fence.proxy.async.shared::cta;
        barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
        setp.ne.u32 %p, %r1, 0; @%p bra DONE;
        atom.release.gpu.global.add.u32 %r6, [%rd1+8192], 1;
        fence.acq_rel.gpu;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1+4096], [%r2], 1024;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
        mbarrier.inval.shared.b64 [bar];
        DONE: ret; }";

    #[test]
    fn a_listener_hears_all_that_orders_accesses_and_when() {
        let module = Module::load(TEXT).expect("it lowers");
        let mut memory = Memory::new();
        let data = memory.alloc(1 << 14).expect("room");
        let launch = Launch::new("k")
            .block([128, 1, 1])
            .params(Params::new().pointer(data));
        let diary = Diary::default();
        let heard = launch.run_heard(&module, &mut memory, Some(&diary));
        heard.expect("a correct kernel");
        let lines = diary.0.into_inner().expect("no panic").join("\n");
        let lines = lines.replace("SharedAt { cta: 0, offset: 17408 }", "bar");
        assert_eq!(lines, HEARD.join("\n"));
    }

    /// As the schedule of seed 0 has it: other warps' work is numbered between.
    const HEARD: [&str; 36] = [
        "1: Mbarrier { at: bar, over: 0, step: Init { count: 1 } }",
        "1: Fence(Fence { order: Release, scope: Some(Cluster), between: Generic, over: InitialisedBarriers })",
        "1: Mbarrier { at: bar, over: 0, step: Expect { bytes: 2048 } }",
        "1: Mbarrier { at: bar, over: 0, step: Arrive { count: 1, order: Release(Cta) } }",
        "1: Issue { work: 1, by: BulkCopy, signals: Some(bar) }",
        "all: Bar { id: 1, over: 0, step: Arrive { count: 32, order: Release(Cta) } }",
        "all: Bar { id: 1, over: 1, step: Pass { order: Acquire(Cta), parity: false } }",
        "#1: BulkCopy Write",
        "#1: BulkCopy Read",
        "#1: Mbarrier { at: bar, over: 0, step: Complete { bytes: 2048 } }",
        "all: Mbarrier { at: bar, over: 1, step: Pass { order: Acquire(Cta), parity: true } }",
        "all: Warp { named: 4294967295 }",
        "2: Issue { work: 4, by: LaneCopy, signals: None }",
        "all: Commit { agent: LaneCopy, group: 0 }",
        "#4: LaneCopy Write",
        "#4: LaneCopy Read",
        "all: Groups { agent: LaneCopy, below: 1, read: false }",
        "all: WgmmaFence",
        "all: Issue { work: 6, by: TensorCore, signals: None }",
        "all: Commit { agent: TensorCore, group: 0 }",
        "#6: TensorCore Read",
        "#6: TensorCore Read",
        "all: Groups { agent: TensorCore, below: 1, read: false }",
        "all: Fence(Fence { order: AcqRel, scope: None, between: GenericAsync, over: SharedCta })",
        "all: Cluster { over: 0, step: Arrive { count: 32, order: Release(Cluster) } }",
        "all: Cluster { over: 1, step: Pass { order: Acquire(Cluster), parity: false } }",
        "1: Thread Update",
        "1: Fence(Fence { order: AcqRel, scope: Some(Gpu), between: Generic, over: All })",
        "1: Issue { work: 7, by: BulkCopy, signals: None }",
        "1: Commit { agent: BulkCopy, group: 0 }",
        "#7: BulkCopy Read",
        "1: Groups { agent: BulkCopy, below: 1, read: true }",
        "#7: BulkCopy Write",
        "1: Groups { agent: BulkCopy, below: 1, read: false }",
        "1: Mbarrier { at: bar, over: 1, step: Inval }",
        "all: Exit { over: 1 }",
    ];
}
