//! Kernels from PTX text to results and faults.

use std::time::Duration;

use ptx_emu::{Config, DevicePtr, FaultKind, Launch, LaunchError, Memory, Module, Params};

const HEADER: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

fn module(body: &str) -> Module {
    Module::load(&format!("{HEADER}{body}")).unwrap_or_else(|e| panic!("{e}"))
}

fn words(memory: &Memory, ptr: DevicePtr, count: u64) -> Vec<u32> {
    let bytes = memory.read_vec(ptr, count * 4).unwrap();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b))
        .collect()
}

/// A kernel that gets the address of an output buffer in `%rd1`, its thread in `%r1`.
fn kernel(body: &str) -> Module {
    module(&format!(
        ".visible .entry k(.param .u64 out) {{
            .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
            .shared .align 8 .b64 bar; .shared .align 16 .b8 tile[1024];
            ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1; mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
            {body}
            ret; }}"
    ))
}

fn run(module: &Module, launch: Launch) -> Result<(Memory, DevicePtr), LaunchError> {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 4096).unwrap();
    launch
        .params(Params::new().pointer(out))
        .run(module, &mut memory)?;
    Ok((memory, out))
}

fn fault(module: &Module, launch: Launch) -> ptx_emu::Fault {
    match run(module, launch) {
        Err(LaunchError::Fault(fault)) => *fault,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no fault"),
    }
}

fn warp() -> Launch {
    Launch::new("k").block([32, 1, 1])
}

#[test]
fn diverged_lanes_meet_again() {
    let module = kernel(
        "mov.u32 %r2, %r1; mov.u32 %r3, 0;
         LOOP: setp.le.u32 %p1, %r2, 1; @%p1 bra DONE;
         and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
         mad.lo.u32 %r2, %r2, 3, 1; bra NEXT;
         EVEN: shr.u32 %r2, %r2, 1;
         NEXT: add.u32 %r3, %r3, 1; bra LOOP;
         DONE: activemask.b32 %r5; popc.b32 %r6, %r5; shl.b32 %r6, %r6, 16; or.b32 %r3, %r3, %r6;
         st.global.u32 [%rd3], %r3;",
    );
    let (memory, out) = run(&module, warp()).unwrap();
    let collatz = |n: u32| {
        let (mut n, mut steps) = (n, 0);
        while n > 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    };
    let expected: Vec<u32> = (0..32).map(|i| collatz(i) | 32 << 16).collect();
    assert_eq!(words(&memory, out, 32), expected);
}

/// Host threads keep the storage of CTAs for the next ones, which must not find anything in it.
#[test]
fn a_cta_finds_nothing_of_those_before_it() {
    let place = "shl.b32 %r6, %r1, 2; mov.u32 %r7, tile; add.u32 %r6, %r6, %r7;
         mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd4, %r8, 1024; add.s64 %rd3, %rd3, %rd4;";
    let tidy = kernel(&format!(
        "{place} ld.shared.u32 %r2, [%r6]; xor.b32 %r2, %r2, %r9; selp.u32 %r3, 1, 0, %p5;
         add.u32 %r2, %r2, %r3; and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0;
         @%p1 st.global.u32 [%rd3], %r2;"
    ));
    let untidy = kernel(&format!(
        "{place} mov.u32 %r2, 77; mov.u32 %r9, 77; setp.eq.u32 %p1, %r1, %r1; mov.u32 %r3, %r9;
         setp.ne.u32 %p5, %r1, %r2; selp.u32 %r4, %r2, %r3, %p5; st.shared.u32 [%r6], %r4;
         @%p1 st.global.u32 [%rd3], %r9;"
    ));
    let config = Config {
        threads: 1,
        ..Config::default()
    };
    let launch = || Launch::new("k").grid([4, 1, 1]).block([256, 1, 1]);
    let result = |module: &Module| {
        let (memory, out) = run(module, launch().config(config)).unwrap();
        words(&memory, out, 1024)
    };
    let before = result(&tidy);
    assert!(before.iter().skip(1).step_by(2).all(|&word| word == 0));
    assert_eq!(result(&untidy), [77; 1024]);
    assert_eq!(result(&tidy), before);
}

#[test]
fn tickets_are_the_same_on_any_number_of_threads() {
    let module = kernel(
        "mov.u32 %r2, %ctaid.x; atom.global.add.u32 %r3, [%rd1], 1;
         mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5+64], %r2;",
    );
    let grid = |threads, seed| {
        let config = Config {
            threads,
            seed,
            ..Config::default()
        };
        let (memory, out) =
            run(&module, Launch::new("k").grid([300, 1, 1]).config(config)).unwrap();
        words(&memory, out, 400)
    };
    let one = grid(1, 0);
    assert_eq!(one[0], 300);
    assert_eq!(one, grid(2, 0));
    assert_eq!(grid(1, 7), grid(2, 7));
}

#[test]
fn ctas_can_wait_for_each_other() {
    let module = kernel(
        "mov.u32 %r2, %ctaid.x; mov.u32 %r4, %nctaid.x;
         setp.ne.u32 %p1, %r2, 0; @%p1 bra ARRIVE;
         WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; add.u32 %r5, %r3, 1; setp.ne.u32 %p2, %r5, %r4; @%p2 bra WAIT;
         st.global.u32 [%rd1+4], 77; bra END;
         ARRIVE: red.release.gpu.global.add.u32 [%rd1], 1;
         END:",
    );
    let (memory, out) = run(&module, Launch::new("k").grid([100, 1, 1])).unwrap();
    assert_eq!(words(&memory, out, 2), [99, 77]);
}

#[test]
fn an_access_past_the_end_names_its_allocation() {
    let module = kernel("st.global.u32 [%rd3+4096], %r1;");
    let fault = fault(&module, warp());
    assert!(
        matches!(fault.kind, FaultKind::OutOfBounds { write: true, .. }),
        "{fault}"
    );
    assert!(fault.to_string().contains("past the end of out"), "{fault}");
    assert!(fault.place.ptx_line > 3);
}

#[test]
fn a_misaligned_access_is_a_fault() {
    let fault = fault(
        &kernel("ld.global.u64 %rd5, [%rd1+4]; st.global.u64 [%rd1], %rd5;"),
        warp(),
    );
    assert!(
        matches!(fault.kind, FaultKind::Misaligned { align: 8, .. }),
        "{fault}"
    );
}

#[test]
fn a_deadlock_lists_every_waiting_warp() {
    let module = kernel(
        "mov.u32 %r2, bar; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r2], 3; bar.sync 0;
         @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;",
    );
    let fault = fault(&module, Launch::new("k").block([64, 1, 1]));
    let FaultKind::Deadlock { waits } = &fault.kind else {
        panic!("{fault}");
    };
    assert_eq!(waits.len(), 2);
    assert!(waits[1].on.contains("(bar+0)"), "{fault}");
    assert!(
        fault
            .to_string()
            .contains("deadlock: 2 warps wait at PTX line "),
        "{fault}"
    );
    assert!(
        waits[1]
            .on
            .contains("2 of 3 arrivals and 128 bytes missing"),
        "{fault}"
    );
}

#[test]
fn an_endless_loop_meets_the_step_limit() {
    let config = Config {
        step_limit: 10_000,
        ..Config::default()
    };
    let fault = fault(
        &kernel("L: add.u32 %r1, %r1, 1; bra L;"),
        warp().config(config),
    );
    assert_eq!(fault.kind, FaultKind::StepLimit { limit: 10_000 });
    assert!(fault.kind.is_hang());
}

#[test]
fn the_time_limit_ends_what_the_step_limit_has_not_reached() {
    let limit = Duration::from_millis(20);
    let config = Config {
        step_limit: u64::MAX,
        time_limit: Some(limit),
        ..Config::default()
    };
    let fault = fault(
        &kernel("L: add.u32 %r1, %r1, 1; bra L;"),
        warp().config(config),
    );
    assert_eq!(fault.kind, FaultKind::TimeLimit { limit });
    assert!(fault.kind.is_hang());
    assert!(
        fault.to_string().contains("after 20.0ms of wall-clock"),
        "{fault}"
    );
}

const COPY: &str = "mov.u32 %r2, bar; mov.u32 %r3, tile; setp.eq.u32 %p1, %r1, 0;
     @%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
     @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128;
     @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 128, [%r2];
     WAIT
     shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4; ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd3+1024], %r5;";

#[test]
fn bytes_of_a_bulk_copy_are_there_after_the_wait_and_poison_before() {
    let wait = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra W;";
    let (memory, out) = run(&kernel(&COPY.replace("WAIT", wait)), warp()).unwrap();
    assert_eq!(words(&memory, out.offset(1024), 32), [0; 32]);
    let mut memory = Memory::new();
    let out = memory.alloc(4096).unwrap();
    let launch = warp().params(Params::new().pointer(out));
    let report = launch
        .run(&kernel(&COPY.replace("WAIT", "")), &mut memory)
        .unwrap();
    assert_eq!(words(&memory, out.offset(1024), 32), [u32::MAX; 32]);
    let cause = report.early_read.expect("a cause").to_string();
    assert!(
        cause.contains("before the copy issued at PTX line"),
        "{cause}"
    );
}

#[test]
fn a_fault_names_what_was_read_too_early_before_it() {
    let trapped = |wait| kernel(&(COPY.replace("WAIT", wait) + "trap;"));
    let fault_of = |module| fault(&module, warp());
    let early = fault_of(trapped(""));
    assert_eq!(early.kind, FaultKind::Trap);
    let told = "cause: PTX line";
    assert!(early.to_string().contains(told), "{early}");
    assert!(early.early.is_some());
    let wait = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra W;";
    assert_eq!(fault_of(trapped(wait)).early, None);
}

#[test]
fn a_cluster_address_of_bytes_on_their_way_is_read_too_early_too() {
    let load = "ld.shared.u32 %r5, [%r4];";
    assert!(COPY.contains(load));
    let mapped = "mapa.shared::cluster.u32 %r4, %r4, 0; ld.shared::cluster.u32 %r5, [%r4];";
    let mut memory = Memory::new();
    let out = memory.alloc(4096).unwrap();
    let launch = warp().params(Params::new().pointer(out));
    let module = kernel(&COPY.replace("WAIT", "").replace(load, mapped));
    let report = launch.run(&module, &mut memory).unwrap();
    let cause = report.early_read.expect("a cause").to_string();
    assert!(cause.contains("before the copy issued at"), "{cause}");
}

/// A product of ones, stored before or after its wait, with something done before it is issued.
fn wgmma(before: &str, wait: &str) -> Module {
    let d: Vec<String> = (0..4).map(|i| format!("%f{i}")).collect();
    let d = d.join(",");
    kernel(&format!(
        ".reg .f32 %f<4>; .shared .align 1024 .b8 ab[8192];
         mov.u32 %r2, ab; mov.u32 %r3, 0x3c003c00; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; mov.u32 %r5, 0;
         FILL: st.shared.u32 [%r4], %r3; add.u32 %r4, %r4, 512; add.u32 %r5, %r5, 1;
         setp.lt.u32 %p1, %r5, 16; @%p1 bra FILL; fence.proxy.async; bar.sync 0;
         cvt.u64.u32 %rd4, %r2; shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x4000004000010000;
         {before} wgmma.fence.sync.aligned;
         wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{d}}}, %rd4, %rd4, 0, 1, 1, 0, 0;
         wgmma.commit_group.sync.aligned; {wait} st.global.f32 [%rd3], %f0;"
    ))
}

#[test]
fn an_accumulator_is_nan_until_its_wait() {
    let block = || Launch::new("k").block([128, 1, 1]);
    let (memory, out) = run(&wgmma("", WAIT), block()).unwrap();
    assert_eq!(words(&memory, out, 128), [16f32.to_bits(); 128]);
    let (memory, out) = run(&wgmma("", ""), block()).unwrap();
    assert_eq!(words(&memory, out, 128), [0x7fff_ffff; 128]);
}

const WAIT: &str = "wgmma.wait_group.sync.aligned 0;";

/// A copy of zeros over one row somewhere in A, then time for it to arrive before the product is
/// waited for: what counts is when the product was issued.
#[test]
fn a_tile_with_a_row_on_its_way_gives_nan() {
    let sleep = "nanosleep.u32 100000; nanosleep.u32 100000;";
    for offset in [0, 128, 4096 + 3 * 128, 63 * 128] {
        let copy = format!(
            "mov.u32 %r6, bar; setp.eq.u32 %p3, %r1, 0; add.u32 %r7, %r2, {offset};
             @%p3 mbarrier.init.shared.b64 [%r6], 1; bar.sync 0;
             @%p3 mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r6], 128;
             @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd1], 128, [%r6];
             bar.sync 0;"
        );
        let mut memory = Memory::new();
        let out = memory.alloc(4096).unwrap();
        let launch = Launch::new("k").block([128, 1, 1]);
        let launch = launch.params(Params::new().pointer(out));
        let module = wgmma(&copy, &format!("{sleep} {WAIT}"));
        let report = launch.run(&module, &mut memory).unwrap();
        assert_eq!(words(&memory, out, 128), [0x7fff_ffff; 128], "at {offset}");
        let cause = report.early_read.expect("a cause").to_string();
        assert!(cause.contains("wgmma issued before the copy"), "{cause}");
    }
}

#[test]
fn lanes_of_one_warp_hand_a_lock_around() {
    let module = kernel(
        "mov.u32 %r2, tile; st.shared.u32 [%r2], 0; bar.sync 0;
         SPIN: atom.shared.cas.b32 %r3, [%r2], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra SPIN;
         ld.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, 1; st.global.u32 [%rd1], %r4;
         atom.shared.exch.b32 %r5, [%r2], 0;",
    );
    let (memory, out) = run(&module, warp()).unwrap();
    assert_eq!(words(&memory, out, 1), [32]);
}

#[test]
fn registers_are_taken_from_what_other_warps_gave_back() {
    let roles = |producer: u32, consumer: u32| {
        kernel(&format!(
            "setp.lt.u32 %p1, %r1, 128; @%p1 bra PRODUCE;
             setmaxnreg.inc.sync.aligned.u32 {consumer}; bra END;
             PRODUCE: setmaxnreg.dec.sync.aligned.u32 {producer};
             END:"
        ))
    };
    let block = || Launch::new("k").block([256, 1, 1]);
    // 256 threads start with 255 registers each: 40 given back leave 208 to be had.
    assert!(run(&roles(40, 256), block()).is_ok());
    let stuck = fault(&roles(248, 256), Launch::new("k").block([384, 1, 1]));
    assert!(stuck.to_string().contains("setmaxnreg"), "{stuck}");
}

#[test]
fn a_barrier_used_before_init_is_named() {
    let fault = fault(
        &kernel("mov.u32 %r2, bar; mbarrier.arrive.shared.b64 %rd4, [%r2];"),
        warp(),
    );
    assert!(matches!(fault.kind, FaultKind::Mbarrier { .. }), "{fault}");
    assert!(
        fault.to_string().contains("before mbarrier.init"),
        "{fault}"
    );
}

#[test]
fn cluster_ctas_reach_each_other() {
    let module = kernel(
        "mov.u32 %r2, tile; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1;
         mapa.shared::cluster.u32 %r5, %r2, %r4; add.u32 %r6, %r3, 100;
         st.shared::cluster.u32 [%r5], %r6;
         barrier.cluster.arrive; barrier.cluster.wait;
         ld.shared.u32 %r7, [%r2]; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r7;",
    );
    let launch = Launch::new("k").grid([2, 1, 1]).cluster([2, 1, 1]);
    let (memory, out) = run(&module, launch).unwrap();
    assert_eq!(words(&memory, out, 2), [101, 100]);
}

#[test]
fn a_flipped_bit_of_an_own_address_names_the_neighbour() {
    let module = kernel(
        "mov.u32 %r2, tile; mov.u32 %r3, %cluster_ctarank; xor.b32 %r5, %r2, 0x1000000;
         add.u32 %r6, %r3, 100;
         st.shared::cluster.u32 [%r5], %r6;
         barrier.cluster.arrive; barrier.cluster.wait;
         ld.shared.u32 %r7, [%r2]; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r7;",
    );
    let launch = Launch::new("k").grid([2, 1, 1]).cluster([2, 1, 1]);
    let (memory, out) = run(&module, launch).unwrap();
    assert_eq!(words(&memory, out, 2), [101, 100]);
}

#[test]
fn a_cleared_bit_of_an_own_address_names_the_even_cta() {
    let module = kernel(
        "mov.u32 %r2, tile; mov.u32 %r3, %cluster_ctarank; and.b32 %r5, %r2, -16777232;
         mul.lo.u32 %r8, %r3, 4; add.u32 %r5, %r5, %r8; add.u32 %r6, %r3, 100;
         st.shared::cluster.u32 [%r5], %r6;
         barrier.cluster.arrive; barrier.cluster.wait;
         setp.ne.u32 %p1, %r3, 0; @%p1 bra END;
         ld.shared.v2.u32 {%r7, %r9}, [%r2]; st.global.v2.u32 [%rd1], {%r7, %r9};
         END:",
    );
    let launch = Launch::new("k").grid([2, 1, 1]).cluster([2, 1, 1]);
    let (memory, out) = run(&module, launch).unwrap();
    assert_eq!(words(&memory, out, 2), [100, 101]);
}

#[test]
fn every_vector_level_gives_the_same_bits() {
    let module = kernel(
        "cvt.rn.f32.u32 %r2, %r1; mul.f32 %r3, %r2, 0f3DCCCCCD; fma.rn.f32 %r4, %r3, %r2, 0fBF800000;
         prmt.b32 %r5, %r4, %r3, 0x5140; lop3.b32 %r6, %r5, %r4, %r3, 0x6A; mad.lo.u32 %r7, %r6, %r5, %r4;
         st.global.u32 [%rd3], %r7;",
    );
    let results: Vec<Vec<u32>> = ptx_emu::Level::available()
        .map(|level| {
            let config = Config {
                level,
                ..Config::default()
            };
            let (memory, out) = run(&module, warp().config(config)).unwrap();
            words(&memory, out, 32)
        })
        .collect();
    assert!(results.windows(2).all(|w| w[0] == w[1]), "{results:x?}");
}

#[test]
fn what_cannot_be_launched_says_why() {
    let module = kernel("");
    let error = |launch: Launch| {
        run(&module, launch)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    assert!(error(Launch::new("q")).contains("no kernel `q`; it has: k"));
    assert!(error(Launch::new("k").grid([0, 1, 1])).contains("must not contain 0"));
    assert!(error(Launch::new("k").block([2048, 1, 1])).contains("1024 threads"));
    assert!(error(Launch::new("k").shared_bytes(300_000)).contains("a CTA can have 232448"));
    assert!(error(Launch::new("k").grid([3, 1, 1]).cluster([2, 1, 1])).contains("not a multiple"));
    let mut memory = Memory::new();
    let short = Launch::new("k")
        .params(Params::new().u32(1))
        .run(&module, &mut memory);
    assert!(matches!(
        short,
        Err(LaunchError::ParamSize {
            expected: 8,
            given: 4,
            ..
        })
    ));
    let none = Launch::new("k").run(&module, &mut memory);
    assert!(matches!(
        none,
        Err(LaunchError::ParamCount {
            expected: 1,
            given: 0,
            ..
        })
    ));
}

#[test]
fn watchpoints_name_who_touched_the_bytes() {
    let module = kernel(
        "mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd4, %r2, 128; add.s64 %rd3, %rd3, %rd4;
         st.global.u32 [%rd3], %r1;
         ld.global.u32 %r3, [%rd1+1024];",
    );
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 4096).unwrap();
    let watch = |first: u64, reads| ptx_emu::Watchpoint {
        bytes: out.0 + first..out.0 + first + 4,
        reads,
    };
    let launch = warp().grid([2, 1, 1]).params(Params::new().pointer(out));
    let asked = [
        watch(128 + 20, false),
        watch(1024, false),
        watch(1024, true),
        watch(2048, true),
    ];
    let (report, touches) = launch.run_watched(&module, &mut memory, &asked);
    report.unwrap();
    let writer = &touches[0].first[0];
    assert_eq!((writer.place.cta, writer.place.lanes), ([1, 0, 0], 1 << 5));
    assert_eq!(writer.deed, "a thread writes");
    assert_eq!((writer.address, writer.write), (out.0 + 128 + 20, true));
    let times: Vec<u64> = touches.iter().map(|t| t.times).collect();
    assert_eq!(times, [1, 0, 2, 0]);
    let ctas: Vec<u32> = touches[2].first.iter().map(|t| t.place.cta[0]).collect();
    assert_eq!(ctas, [0, 1]);
}

#[test]
fn a_fault_keeps_what_was_printed_before_it() {
    let text = ".visible .entry k(.param .u64 out) {
        .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>;
        .param .b64 f; .param .b64 a; .param .b32 r;
        mov.u32 %r1, %ctaid.x;
        mov.u64 %rd1, words; cvta.global.u64 %rd2, %rd1; mov.u64 %rd3, 0;
        st.param.b64 [f], %rd2; st.param.b64 [a], %rd3;
        call.uni (r), vprintf, (f, a);
        setp.ne.u32 %p, %r1, 1; @%p bra END;
        st.global.u32 [%rd3], %r1;
        END: ret; }";
    let module = module(&format!(
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
         .global .align 1 .b8 words[4] = {{104, 105, 10, 0}};\n{text}"
    ));
    let fault = fault(&module, Launch::new("k").grid([3, 1, 1]));
    assert!(matches!(
        fault.kind,
        FaultKind::OutOfBounds { write: true, .. }
    ));
    let said = fault.printed.iter().map(|p| (p.cta[0], p.text.as_str()));
    let said: Vec<(u32, &str)> = said.collect();
    assert!(said.contains(&(1, "hi\n")), "{said:?}");
}
