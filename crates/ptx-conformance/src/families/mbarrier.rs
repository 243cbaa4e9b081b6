//! mbarrier phase traces: after each operation, what a waiter of either parity would see.
//!
//! States are opaque, so a trace stores only what the ISA says about them: the outcome of
//! tests and the pending count.

use std::fmt::Write;

use crate::case::{Case, Launch};
use crate::kernel::Kernel;
use crate::values::Ty::*;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [arrivals(), transactions(), waits(), groups(), clusters()].concat()
}

/// A single thread's history of one barrier.
struct Trace {
    body: String,
    records: usize,
}

impl Trace {
    fn new(count: &str) -> Self {
        Self {
            body: format!("mov.u32 %r0, bar;\nmbarrier.init.shared::cta.b64 [%r0], {count};\n"),
            records: 0,
        }
        .probe()
    }

    fn op(mut self, instruction: &str) -> Self {
        let _ = writeln!(self.body, "{instruction}");
        self
    }

    /// An operation followed by a probe.
    fn step(self, instruction: &str) -> Self {
        self.op(instruction).probe()
    }

    fn record(mut self, register: &str) -> Self {
        let _ = writeln!(
            self.body,
            "st.global.b32 [%out0+{}], {register};",
            4 * self.records
        );
        self.records += 1;
        self
    }

    /// Tests both parities and records which of them have completed.
    fn probe(self) -> Self {
        self.op(
            "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0;\nmbarrier.test_wait.parity.shared::cta.b64 %p1, [%r0], 1;\n\
             selp.u32 %r1, 1, 0, %p0;\nselp.u32 %r2, 2, 0, %p1;\nor.b32 %r1, %r1, %r2;",
        )
        .record("%r1")
    }

    /// Records the pending count of a state and whether its phase has completed.
    fn state(self, register: &str) -> Self {
        self.op(&format!("mbarrier.pending_count.b64 %r3, {register};"))
            .record("%r3")
            .op(&format!("mbarrier.test_wait.shared::cta.b64 %p0, [%r0], {register};\nselp.u32 %r1, 1, 0, %p0;"))
            .record("%r1")
    }

    fn case(self, name: &str, forms: &[&str]) -> Case {
        let always = [
            "mbarrier.init.shared::cta.b64",
            "mbarrier.test_wait.parity.shared::cta.b64",
        ];
        Kernel::new(name, Launch::single(1))
            .forms(always.iter().chain(forms).copied())
            .declare(".shared .align 8 .b64 bar;")
            .output(4 * self.records)
            .body(&self.body)
            .case()
    }
}

const ARRIVE: &str = "mbarrier.arrive.shared::cta.b64 %l0, [%r0];";

fn arrivals() -> Vec<Case> {
    vec![
        Trace::new("3")
            .step(ARRIVE)
            .state("%l0")
            .step("mbarrier.arrive.shared::cta.b64 %l1, [%r0];")
            .state("%l1")
            .step("mbarrier.arrive.shared::cta.b64 %l2, [%r0];")
            .state("%l0")
            .state("%l2")
            .step("mbarrier.arrive.shared::cta.b64 %l3, [%r0];")
            .state("%l3")
            .step(ARRIVE)
            .step(ARRIVE)
            .state("%l3")
            .case(
                "mbarrier.arrive.shared::cta.b64/two-phases",
                &["mbarrier.arrive.shared::cta.b64", "mbarrier.pending_count.b64", "mbarrier.test_wait.shared::cta.b64"],
            ),
        Trace::new("10")
            .step("mbarrier.arrive.shared::cta.b64 %l0, [%r0], 4;")
            .state("%l0")
            .step("mbarrier.arrive.release.cta.shared::cta.b64 %l0, [%r0], 5;")
            .state("%l0")
            .step("mbarrier.arrive.shared::cta.b64 _, [%r0], 1;")
            .step("mbarrier.arrive.shared::cta.b64 _, [%r0], 10;")
            .case("mbarrier.arrive.shared::cta.b64/counts", &["mbarrier.arrive.release.cta.shared::cta.b64"]),
        Trace::new("1048575")
            .step("mbarrier.arrive.shared::cta.b64 %l0, [%r0], 1048574;")
            .state("%l0")
            .step(ARRIVE)
            .state("%l0")
            .step(ARRIVE)
            .state("%l0")
            .case("mbarrier.arrive.shared::cta.b64/greatest-count", &[]),
        Trace::new("4")
            .step("mbarrier.arrive.noComplete.shared::cta.b64 %l0, [%r0], 2;")
            .state("%l0")
            .step(ARRIVE)
            .step(ARRIVE)
            .state("%l0")
            .case("mbarrier.arrive.noComplete.shared::cta.b64/then-plain", &["mbarrier.arrive.noComplete.shared::cta.b64"]),
        Trace::new("3")
            .step("mbarrier.arrive_drop.shared::cta.b64 %l0, [%r0];")
            .state("%l0")
            .step(ARRIVE)
            .step(ARRIVE)
            .step(ARRIVE)
            .state("%l0")
            .step("mbarrier.arrive_drop.shared::cta.b64 %l0, [%r0], 1;")
            .step(ARRIVE)
            .step(ARRIVE)
            .case("mbarrier.arrive_drop.shared::cta.b64/shrinking", &["mbarrier.arrive_drop.shared::cta.b64"]),
        Trace::new("5")
            .step("mbarrier.arrive_drop.noComplete.shared::cta.b64 %l0, [%r0], 2;")
            .state("%l0")
            .step("mbarrier.arrive.shared::cta.b64 %l1, [%r0], 3;")
            .step("mbarrier.arrive.shared::cta.b64 %l1, [%r0], 3;")
            .state("%l1")
            .case("mbarrier.arrive_drop.noComplete.shared::cta.b64/trace", &["mbarrier.arrive_drop.noComplete.shared::cta.b64"]),
        Trace::new("2")
            .step(ARRIVE)
            .op("mbarrier.inval.shared::cta.b64 [%r0];\nmbarrier.init.shared::cta.b64 [%r0], 1;")
            .probe()
            .step(ARRIVE)
            .step(ARRIVE)
            .case("mbarrier.inval.shared::cta.b64/reuse", &["mbarrier.inval.shared::cta.b64"]),
        Trace::new("1")
            .op("mov.u64 %l5, bar;\ncvta.shared.u64 %l5, %l5;\nmbarrier.inval.b64 [%l5];\nmbarrier.init.b64 [%l5], 2;")
            .probe()
            .step("mbarrier.arrive.b64 %l0, [%l5];")
            .step("mbarrier.arrive.b64 %l0, [%l5];")
            .op("mbarrier.test_wait.b64 %p0, [%l5], %l0;\nselp.u32 %r1, 1, 0, %p0;")
            .record("%r1")
            .case(
                "mbarrier.arrive.b64/generic",
                &["mbarrier.init.b64", "mbarrier.inval.b64", "mbarrier.arrive.b64", "mbarrier.test_wait.b64"],
            ),
    ]
}

fn transactions() -> Vec<Case> {
    let complete =
        |bytes: u32| format!("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], {bytes};");
    let expect =
        |bytes: u32| format!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], {bytes};");
    let both = [
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64",
    ];
    vec![
        Trace::new("1")
            .step(&expect(64))
            .step(ARRIVE)
            .state("%l0")
            .step(&complete(32))
            .step(&complete(32))
            .state("%l0")
            .step(&expect(16))
            .step(&complete(16))
            .step(ARRIVE)
            .case(
                "mbarrier.expect_tx.relaxed.cta.shared::cta.b64/before-and-after-arrival",
                &both,
            ),
        Trace::new("2")
            .step("mbarrier.arrive.expect_tx.shared::cta.b64 %l0, [%r0], 128;")
            .state("%l0")
            .step("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %l1, [%r0], 256;")
            .state("%l1")
            .step(&complete(128))
            .step(&complete(255))
            .step(&complete(1))
            .state("%l1")
            .case(
                "mbarrier.arrive.expect_tx.shared::cta.b64/two-arrivals",
                &[
                    "mbarrier.arrive.expect_tx.shared::cta.b64",
                    "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64",
                ],
            ),
        Trace::new("1")
            .step(&expect(96))
            .step(&complete(96))
            .step(&complete(48))
            .step(&expect(48))
            .step(ARRIVE)
            .step("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 8;")
            .step(&complete(8))
            .case(
                "mbarrier.complete_tx.relaxed.cta.shared::cta.b64/ahead-of-expectation",
                &both,
            ),
        Trace::new("2")
            .step("mbarrier.arrive_drop.expect_tx.shared::cta.b64 %l0, [%r0], 32;")
            .step(ARRIVE)
            .step(&complete(32))
            .step(ARRIVE)
            .case(
                "mbarrier.arrive_drop.expect_tx.shared::cta.b64/trace",
                &["mbarrier.arrive_drop.expect_tx.shared::cta.b64"],
            ),
    ]
}

fn waits() -> Vec<Case> {
    let forms = [
        "mbarrier.try_wait.parity.shared::cta.b64",
        "mbarrier.try_wait.shared::cta.b64",
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64",
        "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64",
        "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64",
        "mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64",
        "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64",
        "mbarrier.test_wait.acquire.cta.shared::cta.b64",
    ];
    let mut trace = Trace::new("1").step(ARRIVE);
    for form in forms {
        let operand = if form.contains("parity") { "0" } else { "%l0" };
        trace = trace
            .op(&format!(
                "{form} %p0, [%r0], {operand};\nselp.u32 %r1, 1, 0, %p0;"
            ))
            .record("%r1");
    }
    // The current phase is incomplete and nothing will complete it, so a timed wait must give up.
    trace = trace
        .op("mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 1, 1000;\nselp.u32 %r1, 1, 0, %p0;")
        .record("%r1")
        .op("mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0, 1000;\nselp.u32 %r1, 1, 0, %p0;")
        .record("%r1");
    vec![trace.case("mbarrier.try_wait.parity.shared::cta.b64/spellings", &forms)]
}

/// A wait loop on the barrier in `%r{bar}` for `parity`.
fn wait(label: &str, form: &str, bar: &str, parity: &str) -> String {
    format!("{label}:\n{form} %p0, [{bar}], {parity};\n@!%p0 bra {label};\n")
}

/// Whole CTAs exchanging data over several phases.
fn groups() -> Vec<Case> {
    let body = format!(
        "mov.u32 %r0, bar;\nmov.u32 %r1, slots;\nsetp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], 128;\nbar.sync 0;\n\
         mov.b32 %r2, 0;\nPHASE:\nand.b32 %r3, %r2, 1;\nshl.b32 %r9, %r3, 9;\nadd.u32 %r9, %r9, %r1;\nmad.lo.u32 %r4, %thread, 4, %r9;\nmad.lo.u32 %r5, %r2, 777, %thread;\n\
         st.shared.b32 [%r4], %r5;\nmbarrier.arrive.shared::cta.b64 %l0, [%r0];\n{}\
         xor.b32 %r6, %thread, 101;\nmad.lo.u32 %r4, %r6, 4, %r9;\nld.shared.b32 %r7, [%r4];\nmad.lo.u32 %r8, %r2, 128, %thread;\n\
         mad.wide.u32 %l1, %r8, 4, %out0;\nst.global.b32 [%l1], %r7;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 5;\n@%p2 bra PHASE;",
        wait(
            "WAIT",
            "mbarrier.try_wait.parity.shared::cta.b64",
            "%r0",
            "%r3"
        )
    );
    let exchange = Kernel::new(
        "mbarrier.try_wait.parity.shared::cta.b64/five-phases",
        Launch::single(128),
    )
    .declare(".shared .align 8 .b64 bar;\n.shared .align 4 .b8 slots[1024];")
    .output(5 * 512)
    .body(&body)
    .case();
    let by_state = format!(
        "mov.u32 %r0, bar;\nsetp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared.b64 [%r0], 64;\nbar.sync 0;\n\
         mov.u32 %r1, slots;\nmad.lo.u32 %r2, %thread, 4, %r1;\nst.shared.b32 [%r2], %thread;\nmbarrier.arrive.shared.b64 %l0, [%r0];\n{}\
         xor.b32 %r3, %thread, 37;\nmad.lo.u32 %r2, %r3, 4, %r1;\nld.shared.b32 %r4, [%r2];\nmad.wide.u32 %l1, %thread, 4, %out0;\nst.global.b32 [%l1], %r4;",
        wait("WAIT", "mbarrier.test_wait.shared.b64", "%r0", "%l0")
    );
    let state = Kernel::new("mbarrier.test_wait.shared.b64/by-state", Launch::single(64))
        .forms([
            "mbarrier.init.shared.b64",
            "mbarrier.arrive.shared.b64",
            "mbarrier.test_wait.shared.b64",
        ])
        .declare(".shared .align 8 .b64 bar;\n.shared .align 4 .b8 slots[256];")
        .output(256)
        .body(&by_state)
        .case();
    vec![exchange, state, async_copies(""), async_copies(".noinc")]
}

/// `cp.async` copies that arrive on a barrier when they land. Without `.noinc` the arrival
/// adds to the pending count it later takes away.
fn async_copies(noinc: &str) -> Case {
    let form = format!("cp.async.mbarrier.arrive{noinc}.shared::cta.b64");
    let count = if noinc.is_empty() { 32 } else { 64 };
    let plain = if noinc.is_empty() {
        "setp.lt.u32 %p2, %thread, 32;\n@%p2 mbarrier.arrive.shared::cta.b64 _, [%r0];\n"
    } else {
        ""
    };
    Kernel::new(format!("{form}/two-warps"), Launch::single(64))
        .declare(".shared .align 8 .b64 bar;\n.shared .align 16 .b8 slots[1024];")
        .input(U64.pack(&U64.random(81, 128)))
        .output(1024)
        .body(&format!(
            "mov.u32 %r0, bar;\nmov.u32 %r1, slots;\nsetp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], {count};\nbar.sync 0;\n\
             mad.lo.u32 %r2, %thread, 16, %r1;\nmad.wide.u32 %l0, %thread, 16, %in0;\ncp.async.cg.shared.global [%r2], [%l0], 16;\n{form} [%r0];\n\
             bar.sync 0;\n{plain}{}xor.b32 %r3, %thread, 43;\nmad.lo.u32 %r2, %r3, 16, %r1;\nld.shared.v2.b64 {{%l2, %l3}}, [%r2];\n\
             mad.wide.u32 %l1, %thread, 16, %out0;\nst.global.v2.b64 [%l1], {{%l2, %l3}};",
            wait("WAIT", "mbarrier.try_wait.parity.shared::cta.b64", "%r0", "0")
        ))
        .case()
}

/// Barriers of another CTA of the cluster.
fn clusters() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in [
        "mbarrier.arrive.release.cluster.shared::cluster.b64",
        "mbarrier.arrive.shared::cluster.b64",
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64",
    ] {
        let transaction = form.contains("expect_tx");
        let operands = if transaction {
            "_, [%r5], 16"
        } else {
            "_, [%r5]"
        };
        // The owner supplies the bytes, so that the phase needs both sides.
        let supply = if transaction {
            "@%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], 512;\n"
        } else {
            ""
        };
        let own = wait(
            "WAIT",
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
            "%r0",
            "0",
        );
        cases.push(
            Kernel::new(format!("{form}/next-rank"), Launch::one_cluster(4, 32))
                .forms([form, "fence.mbarrier_init.release.cluster"])
                .declare(".shared .align 8 .b64 bar;\n.shared .align 4 .b8 slots[128];")
                .output(4 * 128)
                .body(&format!(
                    "mov.u32 %r0, bar;\nmov.u32 %r1, slots;\nsetp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], 32;\n\
                     fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
                     mov.u32 %r2, %cluster_ctarank;\nadd.u32 %r3, %r2, 1;\nand.b32 %r3, %r3, 3;\nmad.lo.u32 %r4, %thread, 4, %r1;\n\
                     mapa.shared::cluster.u32 %r4, %r4, %r3;\nmad.lo.u32 %r6, %r2, 100, %thread;\nst.shared::cluster.b32 [%r4], %r6;\n\
                     mapa.shared::cluster.u32 %r5, %r0, %r3;\nfence.acq_rel.cluster;\n{form} {operands};\n{supply}{own}\
                     mad.lo.u32 %r7, %thread, 4, %r1;\nld.shared.b32 %r8, [%r7];\nmad.lo.u32 %r9, %r2, 32, %thread;\nmad.wide.u32 %l0, %r9, 4, %out0;\n\
                     st.global.b32 [%l0], %r8;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
                ))
                .case(),
        );
    }
    cases
}
