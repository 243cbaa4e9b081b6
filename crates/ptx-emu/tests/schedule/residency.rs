//! What a device does not launch, and what cannot be there at once.

use ptx_emu::{FaultKind, Launch, LaunchError, Memory, Module, Params};

use crate::{HEADER, kernel, run, words};

/// All CTAs count themselves and wait for each other.
const GRID_BARRIER: &str = "bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra MET;
    mov.u32 %r4, %nctaid.x; red.release.gpu.global.add.u32 [%rd1], 1;
    WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, %r4; @%p2 bra WAIT;
    MET: bar.sync 0;";

#[test]
fn a_grid_barrier_of_more_ctas_than_registers_hold_hangs_and_says_why() {
    let module = kernel(GRID_BARRIER);
    // 256 threads of 128 registers: two CTAs on each of 132 multiprocessors.
    let launch = |ctas| {
        Launch::new("k")
            .grid([ctas, 1, 1])
            .block([256, 1, 1])
            .registers(128)
    };
    assert!(run(&module, launch(264)).is_ok());
    let Err(LaunchError::Fault(fault)) = run(&module, launch(265)) else {
        panic!("265 CTAs cannot be resident");
    };
    assert!(fault.kind.is_hang());
    let told = fault.to_string();
    assert!(told.contains("264 of 265 are resident"), "{told}");
    assert!(told.contains("2 on each multiprocessor"), "{told}");
    assert!(told.contains("limited by registers"), "{told}");
}

#[test]
fn polling_by_atomics_that_change_nothing_is_seen_as_polling() {
    let module =
        kernel("WAIT: atom.global.add.u32 %r3, [%rd1], 0; setp.ne.u32 %p2, %r3, 7; @%p2 bra WAIT;");
    let launch = Launch::new("k").grid([4, 1, 1]).block([32, 1, 1]);
    let Err(LaunchError::Fault(fault)) = run(&module, launch) else {
        panic!("nobody writes");
    };
    assert_eq!(fault.kind, FaultKind::Polling);
    assert!(fault.kind.is_hang());
}

/// Wherever the loop is, and whatever else the kernel has done before: the line is the poll's.
#[test]
fn a_poll_is_found_where_it_is() {
    for poll in [
        "ld.volatile.global.u16 %r3, [%rd1]",
        "ld.relaxed.gpu.global.u32 %r3, [%rd1]",
        "atom.global.or.b32 %r3, [%rd1], 0",
    ] {
        // What a thread does first stands eight lines above the body.
        let before = "mov.u32 %r3, 1;\n".repeat(20);
        let module = kernel(&format!(
            "{before}WAIT: {poll};\nsetp.ne.u32 %p2, %r3, 77;\n@%p2 bra WAIT;\n{before}"
        ));
        let launch = Launch::new("k").grid([4, 1, 1]).block([64, 1, 1]);
        let Err(LaunchError::Fault(fault)) = run(&module, launch) else {
            panic!("nobody writes");
        };
        assert_eq!(fault.kind, FaultKind::Polling);
        let first = HEADER.lines().count() as u32 + 8;
        assert_eq!(fault.place.ptx_line, first + 20, "{fault}");
    }
}

#[test]
fn registers_beyond_a_multiprocessor_are_refused() {
    let module = kernel("");
    let launch = |threads, each| {
        let launch = Launch::new("k").block([threads, 1, 1]).registers(each);
        run(&module, launch).map(drop)
    };
    assert!(launch(1024, 64).is_ok());
    assert!(launch(384, 168).is_ok());
    let refused = launch(1024, 65).unwrap_err();
    assert!(
        matches!(refused, LaunchError::Registers { each: 65, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("73728 registers"), "{refused}");
}

#[test]
fn a_cooperative_grid_must_fit() {
    let module = kernel(GRID_BARRIER);
    let launch = |ctas| {
        Launch::new("k")
            .grid([ctas, 1, 1])
            .block([1024, 1, 1])
            .cooperative(true)
    };
    assert!(run(&module, launch(264)).is_ok());
    let refused = run(&module, launch(265)).unwrap_err().to_string();
    assert!(refused.contains("only 264 can be resident"), "{refused}");
    assert!(refused.contains("limited by threads"), "{refused}");
}

#[test]
fn grid_wide_synchronisation_finds_its_workspace() {
    // As cooperative groups do it: the first CTA adds what flips the top bit when all have come.
    let sync = |n: u32| {
        format!(
            "bar.sync 0; @%p1 bra MET{n}; membar.gl; mov.u32 %r2, 1; setp.ne.u32 %p2, %r5, 0;
             @%p2 bra ADD{n}; mov.u32 %r4, %nctaid.x; sub.u32 %r4, %r4, 1; mov.u32 %r2, 0x80000000;
             sub.u32 %r2, %r2, %r4;
             ADD{n}: atom.global.add.u32 %r6, [%rd4+4], %r2;
             WAIT{n}: ld.volatile.global.u32 %r7, [%rd4+4]; xor.b32 %r7, %r7, %r6;
             setp.ge.s32 %p3, %r7, 0; @%p3 bra WAIT{n}; membar.gl;
             MET{n}: bar.sync 0;"
        )
    };
    let body = format!(
        "mov.b64 %rd4, {{%envreg2, %envreg1}}; mov.u32 %r5, %ctaid.x; setp.ne.u32 %p1, %r1, 0;
         mul.wide.u32 %rd5, %r5, 4; add.s64 %rd5, %rd5, %rd1; @!%p1 st.global.u32 [%rd5], %r5;
         {} mov.u32 %r8, %nctaid.x; sub.u32 %r8, %r8, 1; sub.u32 %r8, %r8, %r5;
         mul.wide.u32 %rd6, %r8, 4; add.s64 %rd6, %rd6, %rd1; ld.global.u32 %r9, [%rd6];
         {} @!%p1 st.global.u32 [%rd5], %r9;",
        sync(0),
        sync(1)
    );
    let module = kernel(&body);
    for seed in 0..4 {
        let launch = Launch::new("k")
            .grid([100, 1, 1])
            .block([64, 1, 1])
            .cooperative(true)
            .config(crate::seeded(seed));
        let (out, _) = run(&module, launch).unwrap_or_else(|e| panic!("{e}"));
        assert!((0..100).all(|i| out[i] == 99 - i as u32), "seed {seed}");
    }
}

#[test]
fn a_module_for_another_chip_is_refused() {
    let target = |name: &str| {
        let text = HEADER.replace("sm_90a", name) + ".visible .entry k() { ret; }";
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}"));
        Launch::new("k").run(&module, &mut Memory::new()).map(drop)
    };
    for name in ["sm_52", "sm_80", "sm_90", "sm_90a"] {
        assert!(target(name).is_ok(), "{name}");
    }
    for name in ["sm_100", "sm_100a", "sm_100f", "sm_120a"] {
        let refused = target(name).unwrap_err();
        assert!(matches!(refused, LaunchError::Target { .. }), "{refused}");
        assert!(refused.to_string().contains(name), "{refused}");
        assert!(refused.to_string().contains("9.0"), "{refused}");
    }
}

#[test]
fn variables_keep_their_values_between_launches_until_reset() {
    let text = format!(
        "{HEADER}.global .align 4 .u32 calls = 5;
         .visible .entry k(.param .u64 out) {{ .reg .b32 %r<4>; .reg .b64 %rd<4>;
         ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [calls]; add.u32 %r1, %r1, 1;
         st.global.u32 [calls], %r1; st.global.u32 [%rd1], %r1; ret; }}"
    );
    let module = Module::load(&text).unwrap();
    let mut memory = Memory::new();
    let out = memory.alloc(4).unwrap();
    let call = |memory: &mut Memory| {
        let launch = Launch::new("k").params(Params::new().pointer(out));
        launch.run(&module, memory).unwrap();
        words(memory, out, 1)[0]
    };
    assert_eq!([call(&mut memory), call(&mut memory)], [6, 7]);
    memory.reset(&module).unwrap();
    assert_eq!(call(&mut memory), 6);
}

#[test]
fn registers_hold_poison_until_they_are_written() {
    let module = kernel("add.u32 %r9, %r9, 0; st.global.u32 [%rd3], %r9;");
    let first = |seed| {
        let launch = Launch::new("k")
            .block([32, 1, 1])
            .config(crate::seeded(seed));
        run(&module, launch).unwrap().0[0]
    };
    assert_ne!(first(0), 0);
    assert_eq!(first(0), first(0));
    assert_ne!(first(0), first(1));
    assert!(f32::from_bits(first(0)).is_nan());
}
