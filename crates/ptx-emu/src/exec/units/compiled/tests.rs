//! What runs as machine code does the same as what is interpreted.

use super::*;
use crate::{Config, Launch, Memory, Module};

#[path = "../../../../tests/engines/skipped.rs"]
mod skipped;

use skipped::is_skipped;

/// The kernel was compiled, and not interpreted, if that was asked for.
fn assert_compiled(module: &Module, engine: Engine) {
    let compiled = module.kernels["k"].compiled.is_made();
    assert_eq!(compiled, engine == Engine::Compiled);
}

const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n\
    .reg .b32 %r<3>;\n.reg .pred %p;\nmov.u32 %r1, 0;\nLOOP: add.u32 %r1, %r1, 1;\n\
    setp.lt.u32 %p, %r1, 10000;\n@%p bra LOOP;\nret;\n}\n";

#[test]
fn kernels_are_compiled_when_asked_and_when_it_pays() {
    if is_skipped() {
        return;
    }
    for (engine, runs, compiled) in [
        (Engine::Interpreted, 3, false),
        (Engine::Compiled, 1, true),
        (Engine::Mixed, 1, true),
    ] {
        let module = Module::load(PTX).expect("it compiles");
        let config = Config {
            engine,
            ..Config::default()
        };
        let launch = Launch::new("k").config(config);
        let mut counted = Vec::new();
        for _ in 0..runs {
            let report = launch.run(&module, &mut Memory::new()).expect("it ends");
            counted.push(report.counters.total_instructions());
        }
        assert!(counted.iter().all(|&n| n == 30_002), "{counted:?}");
        assert_eq!(
            module.kernels["k"].compiled.is_made(),
            compiled,
            "{engine:?}"
        );
    }
}

/// Four warps that compute, exchange, part, meet and read the clock.
const MIXED: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out)\n{\n\
    .reg .b32 %r<9>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n\
    ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmad.lo.u32 %r2, %r1, 3, 7;\n\
    xor.b32 %r3, %r2, %r1;\nadd.u32 %r3, %r3, %r2;\nmul.wide.u32 %rd2, %r1, 4;\n\
    add.u64 %rd1, %rd1, %rd2;\nshfl.sync.bfly.b32 %r4, %r3, 5, 31, -1;\n\
    add.u32 %r4, %r4, %r3;\nsetp.lt.u32 %p1, %r1, 50;\n@%p1 bra L;\n\
    add.u32 %r4, %r4, 9;\nxor.b32 %r4, %r4, 5;\nL: shl.b32 %r4, %r4, 1;\n\
    add.u32 %r4, %r4, %r2;\nbar.sync 0;\nadd.u32 %r4, %r4, 1;\nmov.u32 %r5, %clock;\n\
    add.u32 %r4, %r4, %r5;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";

#[test]
fn turns_end_alike_in_both_engines_whatever_the_limit() {
    if is_skipped() {
        return;
    }
    let ran = |engine, seed, step_limit| {
        let module = Module::load(MIXED).expect("it compiles");
        let mut memory = Memory::new();
        let out = memory.alloc(512).expect("memory");
        let config = Config {
            engine,
            seed,
            step_limit,
            ..Config::default()
        };
        let params = crate::Params::new().pointer(out);
        let launch = Launch::new("k").block([128, 1, 1]).params(params);
        let ran = launch.config(config).run(&module, &mut memory);
        assert_compiled(&module, engine);
        let counters = ran.map(|report| report.counters);
        format!("{counters:?} {:?}", memory.read_vec(out, 512))
    };
    for (seed, limit) in (0..4).flat_map(|seed| (1..100).map(move |limit| (seed, limit))) {
        let compiled = ran(Engine::Compiled, seed, limit);
        let interpreted = ran(Engine::Interpreted, seed, limit);
        assert_eq!(compiled, interpreted, "seed {seed}, limit {limit}");
    }
}

/// Two warps that load words of shared memory by a few registers with constants added, by turns:
/// words of lanes that lie `step` bytes apart in each half of a warp, and the halves `far`
/// apart; then what is `beyond` that.
const GROUPS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .entry k(.param .u64 out, .param .u32 step, .param .u32 far, .param .u32 beyond)\n{\n\
    .reg .b32 %r<40>;\n.reg .b64 %rd<9>;\n.reg .pred %p;\n\
    .shared .align 16 .b8 tile[8192];\n\
    ld.param.u64 %rd1, [out];\nld.param.u32 %r20, [step];\nld.param.u32 %r21, [far];\n\
    ld.param.u32 %r22, [beyond];\nmov.u32 %r1, %tid.x;\nmov.u32 %r30, tile;\n\
    shl.b32 %r2, %r1, 2;\nFILL: add.u32 %r3, %r30, %r2;\nmul.lo.u32 %r4, %r2, 2654435761;\n\
    st.shared.u32 [%r3], %r4;\nadd.u32 %r2, %r2, 256;\nsetp.lt.u32 %p, %r2, 8192;\n\
    @%p bra FILL;\nbar.sync 0;\n\
    and.b32 %r5, %r1, 15;\nshr.u32 %r6, %r1, 4;\nmul.lo.u32 %r5, %r5, %r20;\n\
    mad.lo.u32 %r5, %r6, %r21, %r5;\nadd.u32 %r5, %r5, %r30;\n\
    cvt.u64.u32 %rd2, %r5;\nmov.u32 %r19, 0;\nmov.u32 %r18, 3;\n\
    LOOP: ld.shared.u32 %r7, [%r5];\nld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%rd2+32];\n\
    mad.lo.u32 %r19, %r19, 31, %r7;\nmad.lo.u32 %r19, %r19, 31, %r8;\n\
    ld.shared.u32 %r7, [%r5+20];\nmad.lo.u32 %r19, %r19, 31, %r9;\n\
    ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%rd2+16];\nmad.lo.u32 %r19, %r19, 31, %r7;\n\
    mad.lo.u32 %r19, %r19, 31, %r10;\nmad.lo.u32 %r19, %r19, 31, %r11;\n\
    mad.lo.u32 %r19, %r19, 31, %r12;\nmad.lo.u32 %r19, %r19, 31, %r13;\n\
    ld.shared.u64 %rd3, [%r5+8];\nld.shared.u64 %rd4, [%r5+16];\nadd.u64 %rd3, %rd3, %rd4;\n\
    cvt.u32.u64 %r16, %rd3;\nmad.lo.u32 %r19, %r19, 31, %r16;\n\
    mad.lo.u32 %r19, %r19, 31, %r14;\nmad.lo.u32 %r19, %r19, 31, %r15;\n\
    add.u32 %r5, %r5, %r22;\nld.shared.u32 %r7, [%r5+4];\nadd.u32 %r19, %r19, %r7;\n\
    ld.shared.u32 %r7, [%r5+24];\nmad.lo.u32 %r19, %r19, 31, %r7;\n\
    sub.u32 %r5, %r5, %r22;\nsub.u32 %r18, %r18, 1;\nsetp.ne.u32 %p, %r18, 0;\n\
    @%p bra LOOP;\nmul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd1, %rd1, %rd5;\n\
    st.global.u32 [%rd1], %r19;\nret;\n}\n";

#[test]
fn loads_by_one_register_are_alike_in_both_engines_however_lanes_lie() {
    if is_skipped() {
        return;
    }
    let ran = |engine, seed, [step, far, beyond]: [u32; 3]| {
        let module = Module::load(GROUPS).expect("it compiles");
        let mut memory = Memory::new();
        let out = memory.alloc(256).expect("memory");
        let config = Config {
            engine,
            seed,
            ..Config::default()
        };
        let params = crate::Params::new().pointer(out);
        let params = params.u32(step).u32(far).u32(beyond);
        let launch = Launch::new("k").block([64, 1, 1]).params(params);
        let ran = launch.config(config).run(&module, &mut memory);
        assert_compiled(&module, engine);
        let counters = ran.map(|report| report.counters);
        (
            counters.is_ok(),
            format!("{counters:?} {:?}", memory.read_vec(out, 256)),
        )
    };
    let lies = [
        [0, 0],
        [0, 64],
        [16, 0],
        [16, 256],
        [8, 128],
        [4, 64],
        [48, 16],
        [32, 1008],
    ];
    for ([step, far], seed) in lies
        .into_iter()
        .flat_map(|lie| (0..8).map(move |s| (lie, s)))
    {
        for (beyond, is_good) in [(0, true), (64, true), (8192, false), (2, false)] {
            let words = [step, far, beyond];
            let compiled = ran(Engine::Compiled, seed, words);
            assert_eq!(
                compiled,
                ran(Engine::Interpreted, seed, words),
                "{words:?}, {seed}"
            );
            let aligned = step % 16 == 0 && far % 16 == 0;
            assert_eq!(
                compiled.0,
                is_good && aligned,
                "{words:?}, {seed}: {}",
                compiled.1
            );
        }
    }
}

/// Runs a kernel that reads a buffer of so many bytes and writes another of 64 words, and gets
/// `also` behind them: whether it ended well, and all that can be seen of it.
fn ran(
    ptx: &str,
    (engine, seed): (Engine, u64),
    launch: Launch,
    bytes: u64,
    also: impl Fn(crate::Params) -> crate::Params,
) -> (bool, String) {
    let module = Module::load(ptx).expect("it compiles");
    let mut memory = Memory::new();
    let input = memory.alloc(bytes).expect("memory");
    let out = memory.alloc(256).expect("memory");
    let words: Vec<u8> = (0..bytes).map(|at| ((at * 37) >> 2) as u8).collect();
    memory.write(input, &words).expect("it fits");
    let config = Config {
        engine,
        seed,
        // Where sectors are counted, rows are not used.
        detailed_counters: false,
        ..Config::default()
    };
    let params = also(crate::Params::new().pointer(input).pointer(out));
    let ran = launch
        .params(params)
        .config(config)
        .run(&module, &mut memory);
    assert_compiled(&module, engine);
    let counters = ran.map(|report| report.counters);
    let left = [memory.read_vec(input, bytes), memory.read_vec(out, 256)];
    (counters.is_ok(), format!("{counters:?} {left:?}"))
}

/// Threads that sum words of rows of their own, fewer the more lanes have ended, and write one
/// of them in between; the first row of each begins `first` bytes behind the buffer.
const ROWS_OF_THREADS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .entry k(.param .u64 in, .param .u64 out, .param .u64 first, .param .u32 step)\n{\n\
    .reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\n\
    ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nld.param.u64 %rd3, [first];\n\
    ld.param.u32 %r1, [step];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd4, %r2, %r1;\n\
    add.u64 %rd5, %rd1, %rd3;\nadd.u64 %rd5, %rd5, %rd4;\nmul.wide.u32 %rd6, %r2, 4;\n\
    add.u64 %rd2, %rd2, %rd6;\nand.b32 %r3, %r2, 7;\nmov.u32 %r4, 0;\n\
    LOOP: ld.global.u32 %r5, [%rd5+-8];\nmad.lo.u32 %r4, %r4, 31, %r5;\n\
    ld.global.u32 %r6, [%rd5+-4];\nmad.lo.u32 %r4, %r4, 31, %r6;\n\
    ld.global.u32 %r7, [%rd5];\nld.global.u32 %r8, [%rd5+4];\n\
    mad.lo.u32 %r4, %r4, 31, %r7;\nmad.lo.u32 %r4, %r4, 31, %r8;\n\
    ld.global.u32 %r9, [%rd5+8];\nmad.lo.u32 %r4, %r4, 31, %r9;\n\
    st.global.u32 [%rd2], %r4;\nst.global.u32 [%rd5+-4], %r4;\n\
    ld.global.u32 %r6, [%rd5+-4];\nmad.lo.u32 %r4, %r4, 31, %r6;\n\
    add.u64 %rd5, %rd5, 16;\nsub.u32 %r3, %r3, 1;\nsetp.ge.s32 %p1, %r3, 0;\n\
    @%p1 bra LOOP;\nst.global.u32 [%rd2], %r4;\nret;\n}\n";

#[test]
fn rows_of_words_are_alike_in_both_engines_wherever_they_end() {
    if is_skipped() {
        return;
    }
    let ran = |engine, seed, first: u64, step: u32, bytes: u64| {
        let also = |params: crate::Params| params.u64(first).u32(step);
        let launch = Launch::new("k").block([64, 1, 1]);
        ran(ROWS_OF_THREADS, (engine, seed), launch, bytes, also)
    };
    // Rows of a thread apart, in part of the same bytes, those of all in one place, unaligned.
    for (step, last) in [(144, 63 * 144), (20, 63 * 20), (0, 0), (6, 63 * 6)] {
        let needed = 8 + last + 7 * 16 + 12;
        let ends = [(8, needed), (8, needed - 4), (8, needed - 8), (4, needed)];
        for ((first, bytes), seed) in ends.into_iter().flat_map(|e| (0..4).map(move |s| (e, s))) {
            let compiled = ran(Engine::Compiled, seed, first, step, bytes);
            let interpreted = ran(Engine::Interpreted, seed, first, step, bytes);
            assert_eq!(compiled, interpreted, "{step}, {first}, {bytes}, {seed}");
            let is_good = (first, bytes) == (8, needed) && step % 4 == 0;
            assert_eq!(
                compiled.0, is_good,
                "{step}, {first}, {bytes}: {}",
                compiled.1
            );
        }
    }
}

/// Odd lanes stop between two loads of a row until the even ones come to a barrier of their own,
/// which have loaded the same row by then.
const STOPPED_IN_A_ROW: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .entry k(.param .u64 in, .param .u64 out)\n{\n\
    .reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n\
    ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\n\
    mul.wide.u32 %rd3, %r1, 64;\nadd.u64 %rd3, %rd1, %rd3;\nmul.wide.u32 %rd4, %r1, 4;\n\
    add.u64 %rd4, %rd2, %rd4;\nmov.u32 %r10, 0;\nmov.u32 %r20, 0;\nand.b32 %r21, %r1, 1;\n\
    setp.eq.u32 %p1, %r21, 1;\nsetp.gt.u32 %p3, %r1, 5000;\n\
    LOOP: @%p1 bra ARM;\nbar.warp.sync -1;\nadd.u32 %r10, %r10, 7;\nbra R;\n\
    ARM: @%p3 bra J;\n\
    R: ld.global.u32 %r11, [%rd3];\n@%p1 bar.warp.sync -1;\n\
    ld.global.u32 %r12, [%rd3+4];\nmad.lo.u32 %r10, %r10, 31, %r11;\n\
    mad.lo.u32 %r10, %r10, 31, %r12;\n\
    J: add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p4, %r20, 4;\n@%p4 bra LOOP;\n\
    st.global.u32 [%rd4], %r10;\nret;\n}\n";

#[test]
fn a_path_that_goes_on_within_a_row_loads_its_own_words() {
    if is_skipped() {
        return;
    }
    let ran = |engine, seed| {
        let launch = Launch::new("k").grid([2, 1, 1]).block([64, 1, 1]);
        ran(STOPPED_IN_A_ROW, (engine, seed), launch, 4096, |params| {
            params
        })
    };
    for seed in 0..16 {
        assert_eq!(
            ran(Engine::Compiled, seed),
            ran(Engine::Interpreted, seed),
            "{seed}"
        );
    }
}
