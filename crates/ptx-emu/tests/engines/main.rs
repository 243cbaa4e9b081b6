//! Random kernels compute, count and fault the same whether they are interpreted or compiled. A
//! longer hunt: `ENGINES_SECONDS=3600 cargo test --release -p ptx-emu --test engines`.

mod forms;
mod kernels;
mod skipped;

use std::time::{Duration, Instant};

use ptx_emu::{Config, Counters, Engine, Launch, Level, Memory, Module, Params};

use kernels::{Draws, WORDS, kernel};
use skipped::is_skipped;

/// The kernel was compiled if that was asked for.
fn assert_compiled(module: &Module, engine: Engine) {
    let compiled = module.kernel("k").is_some_and(|kernel| kernel.compiled);
    assert!(compiled || engine != Engine::Compiled, "no code was made");
}

/// What a kernel computes and counts, or its fault.
fn outcome(
    module: &Module,
    (engine, detailed_counters): (Engine, bool),
    seed: u64,
    threads: u32,
) -> (Vec<u8>, Result<Counters, String>) {
    let mut memory = Memory::new();
    let mut draws = Draws(seed);
    let input: Vec<u8> = (0..WORDS)
        .flat_map(|_| draws.word().to_le_bytes())
        .collect();
    let (input_at, output_at) = (
        memory.alloc(input.len() as u64).expect("memory"),
        memory.alloc(256 * 2 * u64::from(threads)).expect("memory"),
    );
    memory.write(input_at, &input).expect("in bounds");
    memory
        .write(output_at, &vec![0; 512 * threads as usize])
        .expect("in bounds");
    let config = Config {
        engine,
        detailed_counters,
        seed,
        threads: 1,
        step_limit: 200_000,
        ..Config::default()
    };
    let launch = Launch::new("k")
        .grid([2, 1, 1])
        .block([threads, 1, 1])
        .params(Params::new().pointer(input_at).pointer(output_at))
        .config(config);
    let ran = launch.run(module, &mut memory);
    assert_compiled(module, engine);
    let mut bytes = memory
        .view(output_at, 512 * u64::from(threads))
        .expect("bytes")
        .to_vec();
    bytes.extend_from_slice(memory.view(input_at, input.len() as u64).expect("bytes"));
    (
        bytes,
        ran.map(|report| report.counters)
            .map_err(|error| error.to_string()),
    )
}

/// Without detailed counters.
const EITHER: [(Engine, bool); 2] = [(Engine::Compiled, false), (Engine::Interpreted, false)];

fn without_details(counters: Counters) -> Counters {
    Counters {
        bank_conflicts: 0,
        global_unique_read: 0,
        global_unique_written: 0,
        shared_unique_read: 0,
        shared_unique_written: 0,
        ..counters
    }
}

#[test]
fn random_kernels_do_the_same_interpreted_and_compiled() {
    if is_skipped() {
        return;
    }
    let wanted = std::env::var("ENGINES_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok());
    let until = wanted.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let first = if wanted.is_some() {
        u64::from(std::process::id()) << 32
    } else {
        1
    };
    let mut faults = 0;
    let mut kernels = 0;
    while match until {
        Some(until) => Instant::now() < until,
        None => kernels < 150,
    } {
        let seed = first + kernels;
        kernels += 1;
        let text = kernel(&mut Draws(seed));
        let module = Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let threads = [32, 64, 70, 128][seed as usize % 4];
        let (bytes, ran) = outcome(&module, (Engine::Interpreted, true), seed, threads);
        faults += u64::from(ran.is_err());
        for how in [(Engine::Compiled, true), EITHER[seed as usize % 2]] {
            let (other_bytes, other) = outcome(&module, how, seed, threads);
            let expected = match how.1 {
                true => ran.clone(),
                false => ran.clone().map(without_details),
            };
            assert_eq!(expected, other, "{how:?}, seed {seed}\n{text}");
            let differs = bytes.iter().zip(&other_bytes).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{how:?}, seed {seed}, first byte\n{text}");
        }
    }
    println!("{kernels} kernels, {faults} of which fault");
    assert!(
        kernels > 100 && faults * 2 < kernels,
        "{faults} faults of {kernels}"
    );
}

/// Powers, and roots of normal numbers, for many operands.
const APPROXIMATE: &str = ".version 8.3\n.target sm_90\n.address_size 64\n
.entry k(.param .u64 out)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<3>;\n.reg .f32 %f<9>;\n.reg .pred %p;
ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;
add.u64 %rd1, %rd1, %rd2;\nmul.lo.u32 %r2, %r1, 747796405;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;
L: and.b32 %r5, %r2, 0x7effffff;\nor.b32 %r5, %r5, 0x00800000;\nmov.b32 %f1, %r5;
rsqrt.approx.ftz.f32 %f2, %f1;\nrsqrt.approx.f32 %f3, %f1;
cvt.rn.f32.s32 %f4, %r2;\nmul.f32 %f4, %f4, 0f34000000;
ex2.approx.ftz.f32 %f5, %f4;\nex2.approx.f32 %f6, %f4;
mov.b32 %r5, %f2;\nmad.lo.u32 %r3, %r3, 31, %r5;\nmov.b32 %r5, %f3;\nmad.lo.u32 %r3, %r3, 31, %r5;
mov.b32 %r5, %f5;\nmad.lo.u32 %r3, %r3, 31, %r5;\nmov.b32 %r5, %f6;\nmad.lo.u32 %r3, %r3, 31, %r5;
mad.lo.u32 %r2, %r2, 1664525, 1013904223;\nadd.u32 %r4, %r4, 1;
setp.lt.u32 %p, %r4, 4000;\n@%p bra L;\nst.global.u32 [%rd1], %r3;\nret;\n}\n";

#[test]
fn approximations_have_the_same_bits_in_both_engines() {
    if is_skipped() {
        return;
    }
    let module = Module::load(APPROXIMATE).expect("it compiles");
    let ran = |engine| {
        let mut memory = Memory::new();
        let out = memory.alloc(128).expect("memory");
        let config = Config {
            engine,
            ..Config::default()
        };
        let params = Params::new().pointer(out);
        let launch = Launch::new("k").block([32, 1, 1]).params(params);
        let ran = launch.config(config).run(&module, &mut memory);
        assert_compiled(&module, engine);
        ran.expect("it ends");
        memory.read_vec(out, 128).expect("in bounds")
    };
    assert_eq!(ran(Engine::Compiled), ran(Engine::Interpreted));
}

/// Lanes store to two places, in two pages: even ones and odd ones.
const TWO_PLACES: &str = ".version 8.3\n.target sm_90\n.address_size 64\n
.entry k(.param .u64 out)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 1;
mad.wide.u32 %rd1, %r1, 480, %rd1;\nst.global.v4.u32 [%rd1+3856], {%r1, %r1, %r1, %r1};\nret;\n}\n";

#[test]
fn sectors_between_two_places_are_not_written() {
    let module = Module::load(TWO_PLACES).expect("it compiles");
    for engine in [Engine::Interpreted, Engine::Compiled] {
        if engine == Engine::Compiled && is_skipped() {
            continue;
        }
        let mut memory = Memory::new();
        let out = memory.alloc(8192).expect("memory");
        let config = Config {
            engine,
            detailed_counters: true,
            ..Config::default()
        };
        let params = Params::new().pointer(out);
        let launch = Launch::new("k").grid([2, 1, 1]).block([32, 1, 1]);
        let ran = launch
            .params(params)
            .config(config)
            .run(&module, &mut memory);
        assert_compiled(&module, engine);
        let counters = ran.expect("it ends").counters;
        assert_eq!(counters.global_unique_written, 64, "{engine:?}");
    }
}
