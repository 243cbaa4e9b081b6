//! Whose wait is named first when nobody can go on: the cause, not its victims.

use ptx_emu::{Launch, Memory, Module, Params};

/// A producer (warp 1) and a consumer (warp 2) with a ring of one slot, and warp 0, which waits
/// until they are done.
const RING: &str = ".version 8.8\n.target sm_90a\n.address_size 64
.visible .entry k() {
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
.shared .align 8 .b64 done; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
mbarrier.init.shared.b64 [done], 1; mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [empty], 1;
READY: bar.sync 0;
and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0;
setp.eq.u32 %p2, %r2, 1; @%p2 bra PRODUCER; setp.eq.u32 %p2, %r2, 2; @%p2 bra CONSUMER;
DONE: mbarrier.try_wait.parity.shared.b64 %p3, [done], 0; @!%p3 bra DONE; ret;
PRODUCER: @%p1 bra END; mov.u32 %r4, 0;
FILL: and.b32 %r5, %r4, 1; xor.b32 %r5, %r5, 1;
EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r5; @!%p3 bra EMPTY;
mbarrier.arrive.shared.b64 %rd1, [full];
add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4; @%p3 bra FILL; bra END;
CONSUMER: @%p1 bra END; mov.u32 %r4, 0;
TAKE: and.b32 %r5, %r4, 1;
FULL: mbarrier.try_wait.parity.shared.b64 %p3, [full], %r5; @!%p3 bra FULL;
RELEASE
add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4; @%p3 bra TAKE;
mbarrier.arrive.shared.b64 %rd1, [done];
END: ret; }";

fn run(text: &str, seed: u64) -> Result<(), String> {
    let module = Module::load(text).expect("it lowers");
    let config = ptx_emu::Config {
        seed,
        ..ptx_emu::Config::default()
    };
    let launch = Launch::new("k").block([96, 1, 1]).config(config);
    let ran = launch.run(&module, &mut Memory::new());
    ran.map(drop).map_err(|error| error.to_string())
}

#[test]
fn the_barrier_that_nobody_comes_to_is_named_first() {
    let release = "mbarrier.arrive.shared.b64 %rd1, [empty];";
    for seed in 0..4 {
        assert_eq!(run(&RING.replace("RELEASE", release), seed), Ok(()));
        let fault = run(&RING.replace("RELEASE", ""), seed).expect_err("a deadlock");
        let first = fault.lines().next().expect("a warp that waits");
        assert!(first.contains("(empty+0)"), "{fault}");
        assert!(fault.contains("(done+0)"), "{fault}");
    }
}

#[test]
fn lanes_that_part_and_meet_in_every_turn_of_a_long_loop_stay_together() {
    let text = ".version 8.8\n.target sm_90a\n.address_size 64
.visible .entry k() {
.reg .pred %p<4>; .reg .b32 %r<8>;
mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;
TURN: add.u32 %r4, %r1, %r2; and.b32 %r4, %r4, 1; setp.eq.u32 %p1, %r4, 0;
@%p1 bra EVEN;
mad.lo.u32 %r3, %r3, 5, 7; mad.lo.u32 %r3, %r3, 5, 7; mad.lo.u32 %r3, %r3, 5, 7; mad.lo.u32 %r3, %r3, 5, 7;
bra MEET;
EVEN: mad.lo.u32 %r3, %r3, 3, 7; mad.lo.u32 %r3, %r3, 3, 7; mad.lo.u32 %r3, %r3, 3, 7; mad.lo.u32 %r3, %r3, 3, 7;
MEET: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 20000; @%p2 bra TURN;
ret; }";
    let module = Module::load(text).expect("it lowers");
    for seed in 0..4 {
        let config = ptx_emu::Config {
            seed,
            ..ptx_emu::Config::default()
        };
        let launch = Launch::new("k").block([32, 1, 1]).config(config);
        let report = launch.run(&module, &mut Memory::new()).expect("it runs");
        let instructions = report.counters.total_instructions();
        assert!(instructions < 20_000 * 17, "seed {seed}: {instructions}");
    }
}

/// Two CTAs that ask for a word which nobody writes, as often as `more` says.
fn polling(more: &str) -> Result<(), String> {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64
         .visible .entry k(.param .u64 flag) {{
         .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
         ld.param.u64 %rd1, [flag]; mov.u32 %r1, 0;
         POLL: ld.volatile.global.u32 %r2, [%rd1]; setp.ne.u32 %p1, %r2, 0; @%p1 bra END;
         {more} bra POLL; END: ret; }}"
    );
    let module = Module::load(&text).expect("it lowers");
    let mut memory = Memory::new();
    let flag = memory.alloc(4).expect("room");
    let launch = Launch::new("k")
        .grid([2, 1, 1])
        .block([32, 1, 1])
        .params(Params::new().pointer(flag));
    let ran = launch.run(&module, &mut memory);
    ran.map(drop).map_err(|error| error.to_string())
}

#[test]
fn who_counts_the_turns_of_a_poll_is_not_stuck() {
    let counted = "add.u32 %r1, %r1, 1; setp.ge.u32 %p2, %r1, 20000; @%p2 bra END;";
    assert_eq!(polling(counted), Ok(()));
    // Until some time has passed.
    let timed = "mov.u32 %r3, %clock; setp.eq.u32 %p2, %r1, 0; @%p2 mov.u32 %r1, %r3;
         sub.u32 %r4, %r3, %r1; setp.gt.u32 %p2, %r4, 100000; @%p2 bra END;";
    assert_eq!(polling(timed), Ok(()));
    let stuck = polling("nanosleep.u32 20;").expect_err("nobody writes it");
    assert!(stuck.contains("poll"), "{stuck}");
}
