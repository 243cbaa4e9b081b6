//! The one place where accesses to shared and global memory are accounted for.
//!
//! Whoever reads or writes passes here and says who it is, on behalf of which instruction, in which
//! order, and which bytes it means. Counters, footprints and early reads hear of every access this
//! way; so does a `Listener`, if a launch has one. Nobody pays for a listener that is not there but
//! one comparison with null for a whole warp's access.
//! Machine code does the simplest accesses by itself, where nobody listens, and counts and marks
//! them as is done here (`native::access`).
//!
//! The bytes themselves are moved by the caller, before or after: what is heard never changes what
//! is read.

use crate::exec::cluster::Cluster;
use crate::exec::cluster::cta::InFlight;
use crate::exec::lanes::lanes;
#[cfg(target_arch = "x86_64")]
use crate::exec::lanes::{Halves, store};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Bytes, ClusterListener, Room, Visit};
#[cfg(target_arch = "x86_64")]
use crate::exec::storage::vectors::Sectors;

impl Cluster<'_> {
    /// Lets an access through.
    #[inline(always)]
    pub(crate) fn pass(&mut self, visit: &Visit<'_>) {
        match visit.room {
            Room::Global { region } => self.pass_global(visit, region),
            Room::Shared { cta } => self.pass_shared(visit, cta),
            Room::Tensor { .. } => {}
        }
        if let Some(ear) = &mut self.ear {
            // A copy, so that a visit nobody is told of need not lie in memory.
            tell(ear.as_mut(), &{ *visit });
        }
    }

    #[inline(always)]
    fn pass_global(&mut self, visit: &Visit<'_>, region: usize) {
        let total = visit.total();
        let counters = &mut self.counters;
        match (visit.agent, visit.act.writes()) {
            (Agent::Thread, false) => counters.global_read += total,
            (Agent::Thread, true) => counters.global_written += total,
            (Agent::LaneCopy | Agent::BulkCopy, false) => counters.async_read += total,
            (Agent::LaneCopy | Agent::BulkCopy, true) => counters.async_written += total,
            (Agent::TensorCore | Agent::MapFetch | Agent::MapEdit | Agent::Host, _) => {}
        }
        if !self.env.detailed_counters {
            return;
        }
        let footprint = match visit.act.writes() {
            true => &self.env.written,
            false => &self.env.read,
        };
        match visit.bytes {
            Bytes::Piece { first, len } => footprint.mark(region, first, len),
            Bytes::Lanes {
                low,
                end,
                dense: true,
                ..
            } => footprint.mark(region, low.into(), (end - low).into()),
            Bytes::Lanes { at, low, end, .. } => footprint.mark_lanes(region, at, (low, end)),
            Bytes::Tile { .. } | Bytes::Columns { .. } => {}
        }
    }

    #[inline(always)]
    fn pass_shared(&mut self, visit: &Visit<'_>, cta: u32) {
        let total = visit.total();
        let counters = &mut self.counters;
        match (visit.agent, visit.act.writes()) {
            (Agent::Thread, false) => counters.shared_read += total,
            (Agent::Thread, true) => counters.shared_written += total,
            (Agent::LaneCopy | Agent::BulkCopy, false) => counters.shared_async_read += total,
            (Agent::LaneCopy | Agent::BulkCopy, true) => counters.shared_async_written += total,
            (Agent::TensorCore, _) => counters.shared_tensor_read += total,
            (Agent::MapFetch | Agent::MapEdit | Agent::Host, _) => return,
        }
        let own = &mut self.ctas[cta as usize];
        let write = visit.act.writes();
        match visit.bytes {
            _ if !self.env.detailed_counters => {}
            Bytes::Piece { first, len } => own.touched.mark(first, len, write),
            Bytes::Lanes {
                low,
                end,
                dense: true,
                ..
            } => own.touched.mark(low.into(), (end - low).into(), write),
            Bytes::Lanes { at, low, end, .. } => {
                own.touched.mark_lanes(at, (low.into(), end.into()), write);
            }
            Bytes::Tile { matrix, rows } => own.touched.mark_tile(matrix, rows),
            Bytes::Columns { .. } => {}
        }
        // What comes from another CTA is looked at where its addresses are taken apart.
        let here = visit.agent == Agent::Thread && cta == visit.from.cta;
        if here && !write && !own.in_flight.is_empty() {
            self.overtakes(&{ *visit }, cta);
        }
    }

    /// As [`Cluster::pass`] for aligned lanes from `low` to `high` of an allocation, which move
    /// `total` bytes, where nobody listens.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn pass_lanes(
        &mut self,
        region: usize,
        write: bool,
        total: u64,
        at: Halves,
        (low, high): (u32, u32),
    ) {
        let footprint = match write {
            true => {
                self.counters.global_written += total;
                &self.env.written
            }
            false => {
                self.counters.global_read += total;
                &self.env.read
            }
        };
        if !self.env.detailed_counters || footprint.holds(region, (low, high + 1)) {
            return;
        }
        if let Some(sectors) = Sectors::of(at, (low, high)) {
            return footprint.mark_bits(region, sectors.first, sectors.bits);
        }
        let mut lanes = [0; 32];
        store(&mut lanes, at);
        footprint.mark_lanes(region, &lanes, (low, high + 1));
    }

    /// As [`Cluster::pass`] for words one behind the other of global memory, which a warp writes,
    /// where nobody listens or looks at sectors.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn pass_run(&mut self, bytes: u64) {
        self.counters.global_written += bytes;
    }

    /// As [`Cluster::pass`] for a word of shared memory that each of some lanes writes, where nobody
    /// listens or looks at sectors.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn pass_words(&mut self, mask: u32) {
        self.counters.shared_written += 4 * u64::from(mask.count_ones());
    }

    /// Notes a load of bytes that are still on their way.
    #[inline(never)]
    fn overtakes(&mut self, visit: &Visit<'_>, cta: u32) {
        let hit = match visit.bytes {
            Bytes::Piece { first, len } => self.copy_over(cta, first as u32, len as u32),
            Bytes::Lanes {
                at, each, low, end, ..
            } => {
                let near = |c: &InFlight| low < c.end && end > c.start;
                let any = self.ctas[cta as usize].in_flight.iter().any(near);
                let mut lanes = lanes(visit.from.lanes).filter(|_| any);
                lanes.find_map(|lane| self.copy_over(cta, at[lane], each))
            }
            Bytes::Tile { .. } | Bytes::Columns { .. } => return,
        };
        if let Some(copy) = hit {
            self.note_overtaken(visit.from, copy);
        }
    }
}

#[cold]
#[inline(never)]
fn tell(ear: &mut dyn ClusterListener, visit: &Visit<'_>) {
    ear.hear(visit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::listen::agent::Proxy;
    use crate::exec::listen::signal::Signal;
    use crate::exec::listen::visit::{Act, Listener};
    use crate::exec::origin::Origin;
    use crate::op::{Order, Scope};
    use crate::{Launch, Memory, Module, Params};
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    type Heard = (Agent, Proxy, Act, Order, bool);

    /// Remembers who came, and how many bytes went through to which room.
    #[derive(Default)]
    struct Book {
        guests: Mutex<Vec<Heard>>,
        bytes: Mutex<[u64; 2]>,
    }

    impl Listener for Book {
        fn attend(&self, _: u64) -> Option<Box<dyn ClusterListener + '_>> {
            Some(Box::new(self))
        }
    }

    impl ClusterListener for &Book {
        fn hear(&mut self, visit: &Visit<'_>) {
            let shared = matches!(visit.room, Room::Shared { .. });
            let guest = (
                visit.agent,
                visit.agent.proxy(),
                visit.act,
                visit.order,
                shared,
            );
            self.guests.lock().expect("no panic").push(guest);
            self.bytes.lock().expect("no panic")[usize::from(shared)] += visit.total();
        }

        fn order(&mut self, _: Origin, _: Signal) {}
    }

    const TEXT: &str = ".version 8.8\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .u64 data) {
        .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;
        .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;
        ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
        setp.ne.u32 %p, %r1, 0; @%p bra READY;
        mbarrier.init.shared.b64 [bar], 1;
        fence.proxy.async.shared::cta;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [bar];
        READY: bar.sync 0;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;
        shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; cvt.u64.u32 %rd2, %r3;
        add.u64 %rd3, %rd1, %rd2;
        ld.shared.b32 %r5, [%r4];
        st.global.b32 [%rd3+4096], %r5;
        atom.release.gpu.global.add.u32 %r6, [%rd1+8192], 1;
        cp.async.ca.shared.global [%r4+2048], [%rd3], 4; cp.async.wait_all;
        cvt.u64.u32 %rd4, %r2; shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x4000004000010000;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd4, %rd4, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        ret; }";

    #[test]
    fn everybody_passes_and_says_who_it_is() {
        let module = Module::load(TEXT).expect("it lowers");
        let mut memory = Memory::new();
        let data = memory.alloc(1 << 14).expect("room");
        let launch = Launch::new("k")
            .block([128, 1, 1])
            .params(Params::new().pointer(data));
        let book = Book::default();
        let heard = launch.run_heard(&module, &mut memory, Some(&book));
        let counters = heard.expect("a correct kernel").counters;
        let guests = book.guests.into_inner().expect("no panic");
        let mut kinds: Vec<Heard> = Vec::new();
        for guest in guests {
            if !kinds.contains(&guest) {
                kinds.push(guest);
            }
        }
        use Act::{Read, Update, Write};
        let weak = Order::Weak;
        let generic = Proxy::Generic;
        let release = Order::Release(Scope::Gpu);
        for expected in [
            (Agent::BulkCopy, Proxy::Async, Read, weak, false),
            (Agent::BulkCopy, Proxy::Async, Write, weak, true),
            (Agent::Thread, generic, Read, weak, true),
            (Agent::Thread, generic, Write, weak, false),
            (Agent::Thread, generic, Update, release, false),
            (Agent::LaneCopy, generic, Read, weak, false),
            (Agent::LaneCopy, generic, Write, weak, true),
            (Agent::TensorCore, Proxy::Async, Read, weak, true),
        ] {
            assert!(kinds.contains(&expected), "{expected:?} not in {kinds:#?}");
            kinds.retain(|kind| *kind != expected);
        }
        assert_eq!(kinds, [], "nobody else");
        // The counters heard the same.
        let c = &counters;
        let global = c.global_read + c.global_written + c.async_read + c.async_written;
        let copies = c.shared_async_read + c.shared_async_written;
        let shared = c.shared_read + c.shared_written + copies + c.shared_tensor_read;
        assert_eq!(book.bytes.into_inner().expect("no panic"), [global, shared]);
        // And without a listener.
        let alone = launch.run(&module, &mut memory).expect("a correct kernel");
        assert_eq!(alone.counters, counters);
    }

    /// Nobody else counts or marks memory.
    #[test]
    fn there_is_no_other_accounting() {
        let exec = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/exec");
        let (mut folders, mut elsewhere) = (vec![exec.clone()], BTreeSet::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the sources are there") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else if accounts_by_itself(&std::fs::read_to_string(&path).expect("a source")) {
                    let name = path.strip_prefix(&exec).expect("it lies there");
                    elsewhere.insert(name.to_owned());
                }
            }
        }
        // Its own tests mark, and this is the place.
        for own in ["storage/touched.rs", "memory/accounting.rs"] {
            assert!(elsewhere.remove(std::path::Path::new(own)), "{own}");
        }
        assert_eq!(elsewhere, BTreeSet::new());
    }

    fn accounts_by_itself(text: &str) -> bool {
        let counts = ["global_", "shared_", "async_"].iter().any(|kind| {
            let whats = [
                "read",
                "written",
                "async_read",
                "async_written",
                "tensor_read",
            ];
            whats
                .iter()
                .any(|what| text.contains(&format!("counters.{kind}{what} +=")))
        });
        let marks = ["env.read.mark", "env.written.mark", "touched.mark"];
        counts || marks.iter().any(|mark| text.contains(mark))
    }
}
