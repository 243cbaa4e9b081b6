//! Random kernels.

use std::fmt::Write;

use crate::forms::{ACCESSES, INSTRUCTIONS};

/// Words of a kernel's input.
pub(crate) const WORDS: usize = 4096;

/// Bytes of its shared memory.
const SHARED: u32 = 4096;

/// Words that look random; one in four is a float that is hard to get right.
pub(crate) struct Draws(pub(crate) u64);

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

    pub(crate) fn word(&mut self) -> u32 {
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

pub(crate) fn kernel(draws: &mut Draws) -> String {
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
