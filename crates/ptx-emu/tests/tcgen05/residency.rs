//! CTAs that share a multiprocessor share its 512 columns: one that asks for what another has
//! waits, and all that wait for each other are told with their numbers.

use ptx_emu::{Config, DeviceLimits, Launch, LaunchError, Memory, Module, Params};

/// A kernel of one warp a CTA: `body`, with `%r1` the CTA's number, and what it keeps in `%r2`
/// stored for it.
fn module(body: &str) -> Module {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n\
         .shared .align 4 .b32 slot; .shared .align 4 .b32 other;\n\
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0;\n\
         mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1;\n{body}\n\
         st.global.u32 [%rd2], %r2;\nret;\n}}\n"
    );
    Module::load(&text).unwrap_or_else(|e| panic!("{e}"))
}

fn alloc(slot: &str, columns: u32) -> String {
    format!("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{slot}], {columns};\n")
}

fn free(slot: &str, columns: u32) -> String {
    format!(
        "ld.shared.u32 %r3, [{slot}];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, {columns};\n"
    )
}

/// What the CTAs of a device of some multiprocessors leave, or the fault in words.
fn run(body: &str, ctas: u32, sms: u32, seed: u64) -> Result<Vec<u32>, String> {
    let limits = DeviceLimits {
        sms,
        ..DeviceLimits::B200
    };
    launch(body, Launch::new("k").grid([ctas, 1, 1]), limits, seed)
}

fn launch(body: &str, launch: Launch, limits: DeviceLimits, seed: u64) -> Result<Vec<u32>, String> {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 4096).expect("memory");
    memory.write(out, &[0; 4096]).expect("memory");
    let params = Params::new().pointer(out);
    let launch = launch.block([32, 1, 1]).params(params).config(Config {
        limits,
        seed,
        ..Config::default()
    });
    match launch.run(&module(body), &mut memory) {
        Err(LaunchError::Fault(fault)) => Err(fault.to_string()),
        Err(other) => panic!("{other}"),
        Ok(_) => {
            let mut bytes = [0; 4096];
            memory.read(out, &mut bytes).expect("memory");
            let words = bytes.as_chunks::<4>().0.iter();
            Ok(words.map(|word| u32::from_le_bytes(*word)).collect())
        }
    }
}

#[test]
fn a_cta_waits_for_the_columns_of_another() {
    let body = format!(
        "{}ld.shared.u32 %r2, [slot]; add.u32 %r2, %r2, 1;\n{}",
        alloc("slot", 512),
        free("slot", 512)
    );
    for seed in 0..8 {
        let left = run(&body, 9, 1, seed).expect("one after the other");
        assert_eq!(left[..9], [1; 9], "seed {seed}");
    }
}

#[test]
fn ctas_side_by_side_have_columns_of_their_own() {
    // All hold theirs until all have some: a counter tells.
    let body = format!(
        "{}ld.shared.u32 %r2, [slot];\n\
         elect.sync _|%p1, -1; @%p1 red.release.gpu.global.add.u32 [%rd1+64], 1;\n\
         WAIT: ld.acquire.gpu.global.u32 %r4, [%rd1+64]; setp.lt.u32 %p2, %r4, 4; @%p2 bra WAIT;\n{}",
        alloc("slot", 128),
        free("slot", 128)
    );
    for seed in 0..8 {
        let mut left = run(&body, 4, 1, seed).expect("they fit");
        left[..4].sort_unstable();
        assert_eq!(left[..4], [0, 128, 256, 384], "seed {seed}");
    }
}

/// Each CTA takes half, and then wants the other half.
fn twice() -> String {
    [
        alloc("slot", 256),
        alloc("other", 256),
        free("slot", 256),
        free("other", 256),
    ]
    .concat()
}

#[test]
fn two_that_hold_and_want_are_told_with_their_numbers() {
    let told = |seed| run(&twice(), 2, 1, seed).expect_err("they wait for each other");
    for seed in 0..8 {
        let told = told(seed);
        assert!(told.contains("deadlock"), "{told}");
        assert!(
            told.contains("256 columns wanted, 0 of 512 are free on multiprocessor 0"),
            "{told}"
        );
        assert!(
            told.contains("CTA (0,0,0) has 256") && told.contains("CTA (1,0,0) has 256"),
            "{told}"
        );
    }
}

#[test]
fn the_same_alone_on_its_multiprocessor_is_right() {
    for seed in 0..8 {
        assert!(run(&twice(), 2, 2, seed).is_ok(), "spread over two");
        // Shared memory for one CTA only.
        let alone = Launch::new("k").grid([5, 1, 1]).shared_bytes(120_000);
        let limits = DeviceLimits {
            sms: 1,
            ..DeviceLimits::B200
        };
        assert!(launch(&twice(), alone, limits, seed).is_ok());
    }
}

#[test]
fn a_flag_of_one_that_gets_no_columns_never_comes() {
    // CTA 0 keeps its columns until CTA 1 has had some.
    let body = format!(
        "{}setp.ne.u32 %p1, %r1, 0; @%p1 bra RAISE;\n\
         WAIT: ld.acquire.gpu.global.u32 %r4, [%rd1+64]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT;\n\
         bra DONE;\n\
         RAISE: mov.u32 %r5, 1; st.release.gpu.global.u32 [%rd1+64], %r5;\n\
         DONE: {}",
        alloc("slot", 512),
        free("slot", 512)
    );
    let outcomes: Vec<_> = (0..8).map(|seed| run(&body, 2, 1, seed)).collect();
    // Whoever asks first: half of the time it is the one that raises the flag.
    let told = outcomes.iter().find_map(|o| o.as_ref().err());
    let told = told.expect("some schedule starves CTA 1");
    assert!(
        told.contains(
            "512 columns wanted, 0 of 512 are free on multiprocessor 0: CTA (0,0,0) has 512"
        ),
        "{told}"
    );
    for seed in 0..8 {
        assert!(run(&body, 2, 2, seed).is_ok(), "a multiprocessor each");
    }
}

#[test]
fn pairs_wait_for_pairs() {
    let body = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512;\n\
         ld.shared.u32 %r3, [slot]; add.u32 %r2, %r3, 7;\n\
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n\
         tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 512;\n\
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
    let limits = DeviceLimits {
        sms: 2,
        ..DeviceLimits::B200
    };
    for seed in 0..8 {
        let pairs = Launch::new("k").grid([10, 1, 1]).cluster([2, 1, 1]);
        let left = launch(body, pairs, limits, seed).unwrap_or_else(|told| panic!("{told}"));
        assert_eq!(left[..10], [7; 10], "seed {seed}");
    }
}
