//! Global memory: tensors and launches.

use super::*;

#[test]
fn a_tensor_is_left_within_its_allocation() {
    let whole = Planted::new(
        Hazard::OutsideTensor,
        "add.s64 %rd4, %rd8, %rd2;
         ld.global.u32 %r7, [%rd4+<<128||256>>]; //here
         st.global.u32 [%rd3], %r7;",
    );
    let base = Memory::new().alloc(1 << 16).expect("room").0;
    // Memory is laid out the same way in every run.
    let region = |name: &str, at: u64, len: u64| Region {
        name: name.to_owned(),
        start: DevicePtr(at),
        len,
    };
    let sanitize = |input: u64| Sanitize {
        regions: vec![region("b1", input, 640), region("b2", input + 1024, 1024)],
        ..Sanitize::default()
    };
    let input = {
        let mut memory = Memory::new();
        assert_eq!(memory.alloc(1 << 16).expect("room").0, base);
        memory.alloc(1 << 16).expect("room").0
    };
    let found = Planted {
        sanitize: sanitize(input),
        ..whole
    }
    .check();
    // Also where nobody's accesses are remembered but the first CTA's.
    let only_last = Planted {
        sanitize: Sanitize {
            clusters: Some(1),
            ..sanitize(input)
        },
        ..Planted::new(
            Hazard::OutsideTensor,
            "mov.u32 %r6, %ctaid.x; mul.lo.u32 %r7, %r6, <<64||128>>; cvt.u64.u32 %rd4, %r7;
             add.s64 %rd4, %rd4, %rd8; add.s64 %rd4, %rd4, %rd2;
             ld.global.u32 %r7, [%rd4]; //here
             mad.lo.u32 %r8, %r6, 128, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd4, %rd1;
             st.global.u32 [%rd4], %r7;",
        )
    };
    let last = only_last
        .on(Launch::new("k").grid([3, 1, 1]).block([128, 1, 1]))
        .check();
    assert_eq!(last.here.place.cta, [2, 0, 0]);
    assert_eq!(found.at.name, "b1");
    assert_eq!(found.at.offset, 640);
    assert_eq!(found.at.address, Some(input + 640));
    assert_eq!(found.at.detail, "0 bytes past its end");
    assert_eq!(
        (found.here.place.warp, found.here.place.lanes),
        (3, u32::MAX)
    );
}

/// A launch that writes, and one that may begin before that is over.
fn dependent(wait: &str) -> Findings {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64
.visible .entry first(.param .u64 out) {{
.reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 64, %r1; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
griddepcontrol.launch_dependents;
st.global.u32 [%rd1], %r1;
ret; }}
.visible .entry second(.param .u64 out) {{
.reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
{wait}
ld.global.u32 %r2, [%rd1+512];
st.global.u32 [%rd1+4096], %r2;
ret; }}"
    );
    let module = Module::load(&text).expect("it lowers");
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 1 << 16).expect("room");
    let launch = |name: &str, ctas: u32| {
        let params = Params::new().pointer(out);
        let launch = Launch::new(name).grid([ctas, 1, 1]).block([64, 1, 1]);
        launch.params(params)
    };
    let (ran, first) = launch("first", 3).run_sanitized(&module, &mut memory, &Sanitize::default());
    ran.expect("a correct kernel");
    assert!(first.all.is_empty(), "{:#?}", first.all);
    let after = Sanitize {
        after: Some(first.wake),
        ..Sanitize::default()
    };
    let (ran, found) = launch("second", 1).run_sanitized(&module, &mut memory, &after);
    ran.expect("a correct kernel");
    found
}

#[test]
fn a_dependent_launch_reads_before_it_waits() {
    for wait in [
        "griddepcontrol.wait;",
        // One warp waits, a barrier tells the other.
        "setp_warp",
    ] {
        let wait = wait.replace(
            "setp_warp",
            ".reg .pred %p; setp.ge.u32 %p, %r1, 32; @%p bra MET; griddepcontrol.wait; MET: bar.sync 0;",
        );
        let found = dependent(&wait);
        assert!(found.all.is_empty(), "{:#?}", found.all);
    }
    let found = dependent("").all;
    let [finding] = &found[..] else {
        panic!("{found:#?}")
    };
    assert_eq!(finding.hazard, Hazard::DependentLaunch);
    assert_eq!(
        (
            finding.here.place.kernel.as_str(),
            finding.here.place.ptx_line
        ),
        ("second", 14)
    );
    let there = finding.there.as_ref().expect("the launch before");
    assert_eq!(
        (there.place.kernel.as_str(), there.place.ptx_line),
        ("first", 8)
    );
    assert_eq!((there.place.cta, there.place.warp), ([2, 0, 0], 1));
}

/// Each CTA adds to what the one before has left, when its flag is up.
const CHAIN: &str = "setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r6, %ctaid.x;
         FLAG: ld.acquire.gpu.global.u32 %r7, [%rd1+128]; setp.lt.u32 %p2, %r7, %r6; @%p2 bra FLAG;
         ld.global.u32 %r8, [%rd1+64]; add.u32 %r8, %r8, 1; //here
         st.global.u32 [%rd1+64], %r8; //there
         add.u32 %r6, %r6, 1; st.<<release||relaxed>>.gpu.global.u32 [%rd1+128], %r6; END:";

#[test]
fn a_chain_of_ctas_is_followed() {
    let launch = Launch::new("k").grid([3, 1, 1]).block([32, 1, 1]);
    Planted::new(Hazard::Race, CHAIN).on(launch).check();
}

#[test]
fn a_sample_does_not_take_the_chain_for_broken() {
    // The first and the last are listened to, and not the one between.
    let mut planted = Planted::new(Hazard::Race, CHAIN);
    planted.launch = Launch::new("k").grid([3, 1, 1]).block([32, 1, 1]);
    planted.sanitize.clusters = Some(2);
    for seed in 0..4 {
        let (found, _) = planted.run(true, seed);
        assert_eq!(found.clusters, 2);
        assert!(found.all.is_empty(), "{:#?}", found.all);
    }
}

/// Everybody writes and fences, one thread counts the CTA in; the last CTA reads what all wrote.
fn last_cta(fences: [&str; 2], scope: &str) -> Planted {
    let body = format!(
        "mov.u32 %r6, %ctaid.x; shl.b32 %r8, %r6, 8; cvt.u64.u32 %rd4, %r8; add.s64 %rd4, %rd4, %rd3;
         st.global.u32 [%rd4+4096], %r1; //there
         {}; bar.sync 0;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra TOLD;
         atom.relaxed.{scope}.global.add.u32 %r7, [%rd1], 1; st.shared.u32 [%r4], %r7;
         TOLD: bar.sync 0; ld.shared.u32 %r7, [%r4];
         setp.ne.u32 %p2, %r7, 1; @%p2 bra END;
         {}; xor.b32 %r8, %r8, 256; cvt.u64.u32 %rd4, %r8; add.s64 %rd4, %rd4, %rd3;
         ld.global.u32 %r9, [%rd4+4096]; //here
         END:",
        fences[0], fences[1]
    );
    let launch = Launch::new("k").grid([2, 1, 1]).block([64, 1, 1]);
    Planted::new(Hazard::Race, body).on(launch)
}

#[test]
fn a_consistent_fence_of_all_and_a_count_of_one() {
    // The fence before the barrier is everybody's own: only sequential consistency joins them.
    let before = "<<fence.sc.gpu||fence.acq_rel.gpu>>";
    last_cta([before, "fence.sc.gpu"], "gpu").check();
    last_cta(["membar.gl", "<<fence.sc.gpu||fence.acq_rel.gpu>>"], "gpu").check();
    last_cta(["<<membar.gl||membar.cta>>", "membar.gl"], "gpu").check();
}

#[test]
fn a_consistent_fence_reaches_as_far_as_its_scope() {
    let of_cluster = "<<fence.sc.cluster||fence.acq_rel.cluster>>";
    let mut within = last_cta([of_cluster, "fence.sc.cluster"], "cluster");
    within.launch = within.launch.cluster([2, 1, 1]);
    within.check();
    let mut wider = last_cta([of_cluster, "fence.sc.gpu"], "gpu");
    wider.launch = wider.launch.cluster([2, 1, 1]);
    wider.check();
    // Not to another cluster.
    for seed in 0..4 {
        let apart = last_cta(["fence.sc.cluster", "fence.sc.gpu"], "gpu");
        let (found, _) = apart.run(true, seed);
        assert!(!found.all.is_empty());
    }
}

#[test]
fn a_flag_is_taken_back_by_the_one_who_saw_it() {
    let launch = Launch::new("k").grid([2, 1, 1]).block([32, 1, 1]);
    Planted::new(
        Hazard::Race,
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r6, %ctaid.x; mov.u32 %r8, 1;
         setp.ne.u32 %p2, %r6, 0; @%p2 bra WAIT;
         st.relaxed.gpu.global.u32 [%rd1], %r8; //there
         bra END;
         WAIT: <<ld.relaxed.gpu.global.u32 %r7, [%rd1]; setp.eq.u32 %p3, %r7, 0; @%p3 bra WAIT;>>
         st.global.u32 [%rd1], 0; //here
         END:",
    )
    .on(launch)
    .check();
}
