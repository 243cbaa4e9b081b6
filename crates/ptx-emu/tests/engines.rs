//! Random kernels compute, count and fault the same whether they are interpreted or compiled. A
//! longer hunt: `ENGINES_SECONDS=3600 cargo test --release -p ptx-emu --test engines`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use ptx_emu::{Config, Counters, Engine, Launch, Memory, Module, Params};

/// Instructions: R is a 32-bit register, D a 64-bit one, F and E are f32 and f64, P a predicate, H
/// a 16-bit one, I a small number.
const INSTRUCTIONS: &[&str] = &[
    "add.s32 R, R, R",
    "sub.s32 R, R, I",
    "mul.lo.s32 R, R, R",
    "mul.hi.s32 R, R, R",
    "mul.hi.u32 R, R, R",
    "mul24.lo.s32 R, R, R",
    "mad.lo.s32 R, R, R, R",
    "mad.hi.u32 R, R, R, R",
    "mul.wide.s32 D, R, R",
    "mul.wide.u32 D, R, I",
    "mad.wide.s32 D, R, R, D",
    "mad.wide.u32 D, R, R, D",
    "div.s32 R, R, R",
    "div.u32 R, R, R",
    "rem.s32 R, R, R",
    "rem.u32 R, R, R",
    "min.s32 R, R, R",
    "max.s32 R, R, R",
    "min.u32 R, R, R",
    "max.u32 R, R, R",
    "and.b32 R, R, R",
    "or.b32 R, R, R",
    "xor.b32 R, R, R",
    "not.b32 R, R",
    "neg.s32 R, R",
    "abs.s32 R, R",
    "shl.b32 R, R, R",
    "shr.u32 R, R, R",
    "shr.s32 R, R, R",
    "shl.b32 R, R, I",
    "lop3.b32 R, R, R, R, 0x96",
    "lop3.b32 R, R, R, R, 0xca",
    "prmt.b32 R, R, R, R",
    "popc.b32 R, R",
    "clz.b32 R, R",
    "bfe.u32 R, R, I, I",
    "bfi.b32 R, R, R, I, I",
    "shf.l.wrap.b32 R, R, R, R",
    "add.s64 D, D, D",
    "sub.s64 D, D, D",
    "mul.lo.s64 D, D, D",
    "and.b64 D, D, D",
    "or.b64 D, D, D",
    "xor.b64 D, D, D",
    "min.s64 D, D, D",
    "max.u64 D, D, D",
    "shl.b64 D, D, R",
    "shr.u64 D, D, R",
    "shr.s64 D, D, R",
    "shr.s64 D, D, I",
    "div.s64 D, D, D",
    "add.f32 F, F, F",
    "add.ftz.f32 F, F, F",
    "add.rz.f32 F, F, F",
    "sub.f32 F, F, F",
    "sub.ftz.f32 F, F, F",
    "mul.f32 F, F, F",
    "mul.ftz.f32 F, F, F",
    "mul.sat.f32 F, F, F",
    "fma.rn.f32 F, F, F, F",
    "fma.rn.ftz.f32 F, F, F, F",
    "fma.rp.f32 F, F, F, F",
    "div.rn.f32 F, F, F",
    "div.rn.ftz.f32 F, F, F",
    "div.approx.ftz.f32 F, F, F",
    "min.f32 F, F, F",
    "max.f32 F, F, F",
    "min.ftz.f32 F, F, F",
    "max.ftz.f32 F, F, F",
    "min.NaN.f32 F, F, F",
    "neg.f32 F, F",
    "neg.ftz.f32 F, F",
    "abs.f32 F, F",
    "abs.ftz.f32 F, F",
    "sqrt.approx.ftz.f32 F, F",
    "rcp.approx.ftz.f32 F, F",
    "rsqrt.approx.f32 F, F",
    "rsqrt.approx.ftz.f32 F, F",
    "ex2.approx.f32 F, F",
    "ex2.approx.ftz.f32 F, F",
    "add.f64 E, E, E",
    "sub.f64 E, E, E",
    "mul.f64 E, E, E",
    "div.rn.f64 E, E, E",
    "fma.rn.f64 E, E, E, E",
    "neg.f64 E, E",
    "min.f64 E, E, E",
    "setp.lt.s32 P, R, R",
    "setp.ge.u32 P, R, R",
    "setp.eq.s32 P, R, I",
    "setp.ne.u32 P, R, R",
    "setp.lt.s64 P, D, D",
    "setp.gt.u64 P, D, D",
    "setp.eq.s64 P, D, D",
    "setp.lt.f32 P, F, F",
    "setp.ltu.f32 P, F, F",
    "setp.ge.ftz.f32 P, F, F",
    "setp.geu.ftz.f32 P, F, F",
    "setp.ne.f32 P, F, F",
    "setp.neu.f32 P, F, F",
    "setp.num.f32 P, F, F",
    "setp.nan.f32 P, F, F",
    "setp.gt.f64 P, E, E",
    "setp.leu.f64 P, E, E",
    "and.pred P, P, P",
    "or.pred P, P, P",
    "xor.pred P, P, P",
    "not.pred P, P",
    "selp.b32 R, R, R, P",
    "selp.b64 D, D, D, P",
    "selp.f32 F, F, F, P",
    "mov.u32 R, R",
    "mov.u64 D, D",
    "mov.b32 F, R",
    "mov.b32 R, F",
    "mov.b64 D, {R, R}",
    "mov.b64 {R, R}, D",
    "mov.b64 E, D",
    "mov.b32 R, {H, H}",
    "mov.b32 {H, H}, R",
    "cvt.u64.u32 D, R",
    "cvt.s64.s32 D, R",
    "cvt.u32.u64 R, D",
    "cvt.u16.u32 H, R",
    "cvt.u32.u16 R, H",
    "cvt.s32.s16 R, H",
    "cvt.u32.u8 R, R",
    "cvt.rn.f32.s32 F, R",
    "cvt.rn.f32.u32 F, R",
    "cvt.rzi.s32.f32 R, F",
    "cvt.rni.u32.f32 R, F",
    "cvt.f32.f16 F, H",
    "cvt.rn.f16.f32 H, F",
    "cvt.f64.f32 E, F",
    "cvt.rn.f32.f64 F, E",
    "cvt.rn.f64.s32 E, R",
    "cvt.rmi.s32.f32 R, F",
    "cvt.rpi.ftz.s32.f32 R, F",
    "cvt.rzi.ftz.u32.f32 R, F",
    "cvt.rni.f32.f32 F, F",
    "cvt.rmi.ftz.f32.f32 F, F",
    "cvt.sat.f32.f32 F, F",
    "cvt.ftz.sat.f32.f32 F, F",
    "cvt.rz.f32.f64 F, E",
    "cvt.rni.s32.f64 R, E",
    "cvt.rzi.s32.f64 R, E",
    "cvt.rzi.u32.f64 R, E",
    "cvt.rn.f64.u32 E, R",
    "add.rm.ftz.f32 F, F, F",
    "fma.rz.ftz.f32 F, F, F, F",
    "fma.rm.sat.f32 F, F, F, F",
    "fma.rn.ftz.sat.f32 F, F, F, F",
    "div.rz.f32 F, F, F",
    "sqrt.rn.f32 F, F",
    "sqrt.rn.ftz.f32 F, F",
    "rcp.rn.f32 F, F",
    "rcp.approx.f32 F, F",
    "sqrt.rn.f64 E, E",
    "rcp.rn.f64 E, E",
    "abs.f64 E, E",
    "add.rp.f64 E, E, E",
    "fma.rz.f64 E, E, E, E",
    "add.f16 H, H, H",
    "fma.rn.f16 H, H, H, H",
    "add.f16x2 R, R, R",
    "sub.f16x2 R, R, R",
    "mul.f16x2 R, R, R",
    "add.s16 H, H, H",
    "shfl.sync.bfly.b32 R, R, 5, 31, -1",
    "shfl.sync.down.b32 R, R, I, 31, -1",
    "shfl.sync.up.b32 R|P, R, I, 0, -1",
    "shfl.sync.idx.b32 R|P, R, I, 31, -1",
    "shfl.sync.idx.b32 R, R, R, 31, -1",
    "shfl.sync.bfly.b32 R|P, R, I, 7199, -1",
    "activemask.b32 R",
    "vote.sync.ballot.b32 R, P, -1",
    "vote.sync.any.pred P, P, -1",
    "match.any.sync.b32 R, R, -1",
    "redux.sync.add.s32 R, R, -1",
    "bar.warp.sync -1",
];

/// Accesses: A is a shared address of this thread or of another, aligned, B the same in 64 bits; G
/// one of the input.
const ACCESSES: &[&str] = &[
    "ld.shared.u32 R, [A]",
    "ld.shared.v2.u32 {R, R}, [A]",
    "ld.shared.v4.u32 {R, R, R, R}, [A]",
    "ld.shared.u32 R, [B]",
    "ld.shared.v4.u32 {R, R, R, R}, [B]",
    "st.shared.u32 [B], R",
    "st.shared.u32 [A], R",
    "st.shared.v2.u32 [A], {R, R}",
    "st.shared.v4.u32 [A], {R, R, R, R}",
    "ld.shared.u8 H, [A]",
    "ld.shared.u64 D, [A]",
    "ld.global.u32 R, [G]",
    "ld.global.f32 F, [G]",
    "ld.global.v2.u32 {R, R}, [G]",
    "ld.global.v4.u32 {R, R, R, R}, [G]",
    "ld.global.u64 D, [G]",
    "ld.u32 R, [G]",
    "ld.u64 D, [G]",
    "st.global.u64 [G], D",
    "st.shared.u64 [A], D",
    "st.global.u32 [G], R",
    "st.global.v4.u32 [G], {R, R, R, R}",
    "ld.local.u32 R, [stack+16]",
    "st.local.u32 [stack+16], R",
    "atom.shared.add.u32 R, [A], R",
    "atom.shared.add.f32 F, [A], F",
    "red.shared.max.s32 [A], R",
    "atom.shared.cas.b32 R, [A], R, R",
];

const WORDS: usize = 4096;
const SHARED: u32 = 4096;

/// Words that look random; one in four is a float that is hard to get right.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn word(&mut self) -> u32 {
        const HARD: [u32; 12] = [
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x8080_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0001,
            0x7f80_0001,
            0x3f80_0000,
        ];
        let drawn = self.next();
        match drawn & 7 {
            0 => HARD[self.below(HARD.len())],
            1 => 0x0080_0000 + (drawn >> 40) as u32,
            2 => 0x3f00_0000 + (drawn >> 40) as u32,
            3 => (drawn >> 60) as u32,
            _ => (drawn >> 32) as u32,
        }
    }
}

/// The text of an instruction with its registers chosen.
fn filled(draws: &mut Draws, form: &str) -> String {
    let mut text = String::new();
    for c in form.chars() {
        let n = draws.below(6);
        match c {
            'R' => write!(text, "%r{n}"),
            'D' => write!(text, "%rd{n}"),
            'F' => write!(text, "%f{n}"),
            'E' => write!(text, "%fd{n}"),
            'P' => write!(text, "%p{n}"),
            'H' => write!(text, "%h{n}"),
            'I' => write!(text, "{}", draws.below(34)),
            'A' => write!(text, "%a"),
            'B' => write!(text, "%b"),
            'G' => write!(text, "%g"),
            other => write!(text, "{other}"),
        }
        .expect("a string takes all");
    }
    text
}

/// Bytes that a lane accesses.
fn width(form: &str) -> usize {
    match form {
        _ if form.contains(".v4") => 16,
        _ if form.contains(".v2") || form.contains("64") => 8,
        _ => 4,
    }
}

/// An instruction with its registers chosen.
fn instruction(draws: &mut Draws, form: &str) -> String {
    let (name, operands) = form.split_once(' ').unwrap_or((form, ""));
    format!("{name} {}", filled(draws, operands))
}

/// Loads of words near the last one, which may be of one row with it, among other instructions.
fn neighbours(draws: &mut Draws, body: &mut String) {
    for _ in 0..draws.below(5) {
        if draws.below(2) == 0 {
            let form = draws.pick(INSTRUCTIONS);
            if !form.contains(".sync") {
                _ = writeln!(body, "{};", instruction(draws, form));
            }
        }
        let guard = draws.pick(&["", "", "", "", "", "", "@%p4 "]);
        let (register, offset) = (draws.below(6), *draws.of(&[-8, -4, 0, 4, 8, 12]));
        let form = *draws.of(&["ld.global.u32 %r", "ld.global.f32 %f", "ld.u32 %r"]);
        _ = writeln!(body, "{guard}{form}{register}, [%g+{offset}];");
    }
}

fn kernel(draws: &mut Draws) -> String {
    let mut body = String::new();
    let mut open: Vec<usize> = Vec::new();
    for at in 0..20 + draws.below(60) {
        match draws.below(16) {
            0 => {
                open.push(at);
                let guard = draws.pick(&["@%p0", "@!%p1", "@%p2", "@!%p3"]);
                _ = writeln!(body, "{guard} bra L{at};");
            }
            1 if !open.is_empty() => {
                let label = open.pop().unwrap_or_default();
                _ = writeln!(body, "L{label}:");
            }
            2 => {
                let times = 1 + draws.below(5);
                let inner = draws.pick(INSTRUCTIONS);
                let inner = instruction(draws, inner);
                _ = write!(
                    body,
                    "mov.u32 %n, 0;\nM{at}: {inner};\nadd.u32 %n, %n, 1;\n"
                );
                _ = write!(body, "setp.lt.u32 %q, %n, {times};\n@%q bra M{at};\n");
            }
            3..=5 => {
                let (a, g) = (
                    draws.pick(&["%r0", "%tid.x", "%tid.x"]),
                    draws.pick(&["%r2", "%tid.x", "%tid.x"]),
                );
                let form = draws.pick(ACCESSES);
                let width = width(form);
                // All lanes in one place, one behind the other, or apart; aligned, nearly always.
                let (step, other) = (*draws.of(&[0, width, 16]), *draws.of(&[0, width, 16]));
                let odd = *draws.of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
                let (first, far) = (draws.below(32) * width, draws.below(64) * width + odd);
                // Of all lanes, or of some groups of them alike.
                let lanes = draws.pick(&["127", "127", "15", "17"]);
                _ = write!(body, "mov.u32 %n, {a};\nand.b32 %n, %n, {lanes};\n");
                _ = writeln!(body, "mad.lo.u32 %n, %n, {step}, {first};");
                _ = writeln!(body, "add.u32 %a, %n, %base;\ncvt.u64.u32 %b, %a;");
                _ = write!(body, "mov.u32 %n, {g};\nand.b32 %n, %n, 255;\n");
                _ = writeln!(body, "mad.wide.u32 %g, %n, {other}, %input;");
                _ = writeln!(body, "add.u64 %g, %g, {far};");
                let guard = draws.pick(&["", "", "@%p4 ", "@!%p5 "]);
                let (name, operands) = form.split_once(' ').unwrap_or((form, ""));
                let stack = operands.contains("stack");
                let filled = if stack {
                    operands.replace('R', "%r3")
                } else {
                    filled(draws, operands)
                };
                _ = writeln!(body, "{guard}{name} {filled};");
                if width == 4 && form.starts_with("ld.global") {
                    neighbours(draws, &mut body);
                }
            }
            _ => {
                let guard = draws.pick(&["", "", "", "@%p0 ", "@!%p1 ", "@%p5 "]);
                let form = draws.pick(INSTRUCTIONS);
                let meet = form.contains(".sync") || form.starts_with("activemask");
                let guard = if meet { "" } else { guard };
                let text = instruction(draws, form);
                // Lanes that parted cannot all come to an exchange of all.
                if !meet || open.is_empty() {
                    _ = writeln!(body, "{guard}{text};");
                }
            }
        }
    }
    for label in open.into_iter().rev() {
        _ = writeln!(body, "L{label}:");
    }
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n
.entry k(.param .u64 input, .param .u64 output)\n{{
.reg .b32 %r<6>, %n, %a, %base, %tid, %s;\n.reg .b64 %rd<6>, %input, %output, %g, %b;
.reg .f32 %f<6>;\n.reg .f64 %fd<6>;\n.reg .b16 %h<6>;\n.reg .pred %p<6>, %q;
.shared .align 16 .b8 cells[{SHARED}];\n.local .align 16 .b8 stack[64];
ld.param.u64 %input, [input];\nld.param.u64 %output, [output];
cvta.to.global.u64 %input, %input;\ncvta.to.global.u64 %output, %output;
mov.u32 %base, cells;\nmov.u32 %tid, %tid.x;
mad.wide.u32 %g, %tid, 16, %input;\nmov.u32 %a, %base;
st.local.u32 [stack+16], %tid;\nshl.b32 %n, %tid, 4;\nadd.u32 %a, %base, %n;
mov.u32 %s, %ctaid.x;\nst.shared.v4.u32 [%a], {{%tid, %s, %n, %a}};\nbar.sync 0;
ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%g];\nld.global.v2.u32 {{%r4, %r5}}, [%g+4096];
ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%g+8192];\nmov.b32 %f4, %r4;\nmov.b32 %f5, %r5;
{}
{body}
{}
ret;\n}}\n",
        start(),
        finish()
    )
}

/// Gives the other registers values.
fn start() -> String {
    let mut text = String::new();
    for n in 0..6 {
        let other = (n + 1) % 6;
        _ = writeln!(text, "mov.b64 %rd{n}, {{%r{n}, %r{other}}};");
        _ = writeln!(text, "cvt.f64.f32 %fd{n}, %f{n};");
        _ = writeln!(text, "cvt.u16.u32 %h{n}, %r{n};");
        _ = writeln!(text, "setp.lt.s32 %p{n}, %r{n}, %r{other};");
    }
    text
}

/// Writes all registers down, for each thread.
fn finish() -> String {
    let mut text = String::from(
        "mov.u32 %n, %ntid.x;\nmad.lo.u32 %n, %s, %n, %tid;\nmad.wide.u32 %output, %n, 256, %output;\n",
    );
    for n in 0..6 {
        _ = writeln!(text, "st.global.u32 [%output+{}], %r{n};", 4 * n);
        _ = writeln!(text, "st.global.f32 [%output+{}], %f{n};", 32 + 4 * n);
        _ = writeln!(text, "st.global.u64 [%output+{}], %rd{n};", 64 + 8 * n);
        _ = writeln!(text, "st.global.f64 [%output+{}], %fd{n};", 112 + 8 * n);
        _ = writeln!(text, "st.global.u16 [%output+{}], %h{n};", 160 + 2 * n);
        _ = writeln!(text, "selp.b32 %a, 1, 0, %p{n};");
        _ = writeln!(text, "st.global.u32 [%output+{}], %a;", 176 + 4 * n);
    }
    text
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
        let counters = ran.expect("it ends").counters;
        assert_eq!(counters.global_unique_written, 64, "{engine:?}");
    }
}
