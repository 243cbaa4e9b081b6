//! One wgmma with its operands, as a kernel.

use std::fmt::Write;

use super::super::mma::tolerance;
use crate::case::{Case, Compare, Launch, Swizzle};
use crate::kernel::Kernel;
use crate::numbers::{Number, Number::*, pack_bits};
use crate::operand::{Layout, Major};
use crate::values::SplitMix;

/// What the matrices hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// Small integers: every partial sum is exact.
    Small,
    /// Row m of A picks row m mod K of B, whose elements are all different.
    OneHot,
    /// Ordinary values: the order of the sum shows.
    Random,
}

impl Data {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Small => "exact",
            Self::OneHot => "one-hot",
            Self::Random => "random",
        }
    }
}

/// One wgmma instruction and its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Multiply {
    pub(super) n: usize,
    pub(super) acc: Number,
    pub(super) a: Number,
    pub(super) b: Number,
    /// Layout of A, or `None` for registers.
    pub(super) a_layout: Option<(Major, Swizzle)>,
    pub(super) b_layout: (Major, Swizzle),
    pub(super) advance: usize,
    pub(super) accumulate: bool,
    pub(super) scales: [i32; 2],
    pub(super) saturate: bool,
    pub(super) data: Data,
}

const K128: (Major, Swizzle) = (Major::K, Swizzle::B128);

impl Multiply {
    pub(super) fn new(n: usize, acc: Number, a: Number, b: Number) -> Self {
        Self {
            n,
            acc,
            a,
            b,
            a_layout: Some(K128),
            b_layout: K128,
            advance: 0,
            accumulate: true,
            scales: [1, 1],
            saturate: false,
            data: Data::Small,
        }
    }

    pub(super) fn k(&self) -> usize {
        256 / self.a.bits()
    }

    pub(super) fn form(&self) -> String {
        format!(
            "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}{}{}",
            self.n,
            self.k(),
            self.acc.name(),
            self.a.name(),
            self.b.name(),
            if self.a == B1 { ".and.popc" } else { "" },
            if self.saturate { ".satfinite" } else { "" },
        )
    }

    pub(super) fn label(&self) -> String {
        let side = |(major, swizzle): (Major, Swizzle)| {
            format!(
                "{}-{}",
                if major == Major::K { "k" } else { "mn" },
                swizzle.label()
            )
        };
        let mut label = match self.a_layout {
            Some(layout) => format!("ss-{}-{}", side(layout), side(self.b_layout)),
            None => format!("rs-{}", side(self.b_layout)),
        };
        if self.advance > 0 {
            let _ = write!(label, "-advance-{}", self.advance);
        }
        if !self.accumulate {
            label.push_str("-fresh");
        }
        if self.scales != [1, 1] {
            let _ = write!(label, "-scales{:+}{:+}", self.scales[0], self.scales[1]);
        }
        label
    }

    pub(super) fn layout(&self, mn: usize, (major, swizzle): (Major, Swizzle)) -> Layout {
        // Elements of less than a byte are laid out by the byte.
        let bytes = (self.a.bits() / 8).max(1);
        Layout {
            mn,
            k: 32 / bytes,
            bytes,
            major,
            swizzle,
            advance: self.advance,
        }
    }

    /// Accumulator registers of a thread.
    pub(super) fn registers(&self) -> usize {
        self.n / 2 * self.acc.bits() / 32
    }

    pub(super) fn elements(&self) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
        let mut rng = SplitMix(0x77 + self.n as u64 * 31 + self.a.bits() as u64);
        let k = self.k();
        let mut value = |number: Number| match self.data {
            Data::Random => number.ordinary(&mut rng),
            _ => number.small(&mut rng),
        };
        let mut a: Vec<u64> = (0..64 * k).map(|_| value(self.a)).collect();
        let mut b: Vec<u64> = (0..self.n * k).map(|_| value(self.b)).collect();
        let c: Vec<u64> = (0..64 * self.n).map(|_| value(self.acc)).collect();
        if self.data == Data::OneHot {
            a = (0..64 * k)
                .map(|i| self.a.encode(f64::from(u8::from(i % k == i / k % k))))
                .collect();
            b = (0..self.n * k).map(|i| distinct(self.b, i)).collect();
        }
        (a, b, c)
    }

    pub(super) fn matrix_operands(&self) -> (String, String) {
        let modifiers = match (self.acc, self.a) {
            (S32, _) => String::new(),
            (_, F16 | Bf16) => {
                let flag = |layout: (Major, Swizzle)| u8::from(layout.0 == Major::Mn);
                let a = self
                    .a_layout
                    .map_or(String::new(), |layout| format!(", {}", flag(layout)));
                format!(
                    ", {}, {}{a}, {}",
                    self.scales[0],
                    self.scales[1],
                    flag(self.b_layout)
                )
            }
            _ => format!(", {}, {}", self.scales[0], self.scales[1]),
        };
        let a = if self.a_layout.is_some() {
            "%desc0"
        } else {
            "{%a0, %a1, %a2, %a3}"
        };
        (a.to_owned(), modifiers)
    }

    pub(super) fn case(self) -> Case {
        let (a, b, c) = self.elements();
        let registers = self.registers();
        let b_layout = self.layout(self.n, self.b_layout);
        let b_bytes = b_layout.image(|n, k| byte_element(&b, self.b, self.k(), n, k));
        let a_layout = self.a_layout.map(|layout| self.layout(64, layout));
        let a_bytes = match a_layout {
            Some(layout) => layout.image(|m, k| byte_element(&a, self.a, self.k(), m, k)),
            None => fragments(&a, self.a, self.k()),
        };
        let (a_operand, modifiers) = self.matrix_operands();
        let list = (0..registers)
            .map(|i| format!("%d{i}"))
            .collect::<Vec<_>>()
            .join(", ");
        let form = self.form();
        let multiply = format!(
            "setp.ne.u32 %p2, 0, {};\nwgmma.fence.sync.aligned;\n{form} {{{list}}}, {a_operand}, %desc1, %p2{modifiers};\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
            i32::from(self.accumulate)
        );
        let (a_stage, a_setup) = match a_layout {
            Some(layout) => (stage("a_tile", "%in0", a_bytes.len()), descriptor(0, "a_tile", &layout)),
            None => (
                String::new(),
                "mad.wide.u32 %l0, %thread, 16, %in0;\nld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%l0];\n".to_owned(),
            ),
        };
        let body = format!(
            "{a_stage}{}fence.proxy.async.shared::cta;\nbar.sync 0;\n{a_setup}{}{}{multiply}{}",
            stage("b_tile", "%in1", b_bytes.len()),
            descriptor(1, "b_tile", &b_layout),
            move_accumulators("ld", "%in2", registers),
            move_accumulators("st", "%out0", registers),
        );
        let compare = match self.data {
            Data::Random if self.acc.is_float() => tolerance(self.acc, self.a),
            _ => Compare::Exact,
        };
        let a_declaration = if a_layout.is_some() {
            format!(".shared .align 1024 .b8 a_tile[{}];\n", a_bytes.len())
        } else {
            String::new()
        };
        Kernel::new(format!("{form}/{}/{}", self.label(), self.data.label()), Launch::single(128))
            .forms([
                form,
                "wgmma.fence.sync.aligned".to_owned(),
                "wgmma.commit_group.sync.aligned".to_owned(),
                "wgmma.wait_group.sync.aligned".to_owned(),
            ])
            .declare(&format!(
                "{a_declaration}.shared .align 1024 .b8 b_tile[{}];\n.reg .b32 %d<{registers}>;\n.reg .b32 %a<4>;\n.reg .b64 %desc<2>;",
                b_bytes.len()
            ))
            .input(a_bytes)
            .input(b_bytes)
            .input(pack_bits(&c, self.acc.bits()))
            .output(registers * 512)
            .compare(compare)
            .body(&body)
            .case()
    }
}

/// Element (`row`, `k`) of a row-major matrix; for 1-bit elements, the `k`-th byte of the row.
pub(super) fn byte_element(
    values: &[u64],
    number: Number,
    columns: usize,
    row: usize,
    k: usize,
) -> u64 {
    if number.bits() >= 8 {
        return values[row * columns + k];
    }
    let per_byte = 8 / number.bits();
    let first = row * columns + k * per_byte;
    u64::from(pack_bits(&values[first..first + per_byte], number.bits())[0])
}

/// Values that tell columns and rows of B apart and that the format holds.
pub(super) fn distinct(number: Number, index: usize) -> u64 {
    match number {
        F16 => number.encode((index % 2048) as f64),
        Bf16 => number.encode((index % 256) as f64),
        Tf32 => number.encode((index % 2048) as f64),
        B1 => (index * index / 3 % 2) as u64,
        // Every finite pattern of the byte.
        E4m3 => (index * 5 % 0x7f) as u64,
        E5m2 => (index * 5 % 0x7c) as u64,
        _ => (index * 5 % 256) as u64,
    }
}

/// A as register fragments: 16 bytes a thread, by the layout of the ISA.
pub(super) fn fragments(values: &[u64], number: Number, columns: usize) -> Vec<u8> {
    let per_register = 32 / number.bits();
    let mut bytes = Vec::new();
    for thread in 0..128 {
        let (warp, lane) = (thread / 32, thread % 32);
        for register in 0..4 {
            let row = 16 * warp + lane / 4 + 8 * (register % 2);
            let first = (lane % 4) * per_register + register / 2 * 4 * per_register;
            let group = &values[row * columns + first..row * columns + first + per_register];
            bytes.extend(pack_bits(group, number.bits()));
        }
    }
    bytes
}

/// Copies a tile's image into shared memory, 16 bytes a thread and turn.
pub(super) fn stage(tile: &str, source: &str, bytes: usize) -> String {
    format!(
        "mov.u32 %r1, {tile};\nmul.lo.u32 %r2, %thread, 16;\nSTAGE_{tile}:\nsetp.ge.u32 %p0, %r2, {bytes};\n@%p0 bra STAGED_{tile};\n\
         cvt.u64.u32 %l0, %r2;\nadd.u64 %l0, %l0, {source};\nld.global.v2.b64 {{%l1, %l2}}, [%l0];\nadd.u32 %r3, %r1, %r2;\nst.shared.v2.b64 [%r3], {{%l1, %l2}};\n\
         add.u32 %r2, %r2, 2048;\nbra STAGE_{tile};\nSTAGED_{tile}:\n"
    )
}

/// Completes a descriptor with the tile's address.
pub(super) fn descriptor(index: usize, tile: &str, layout: &Layout) -> String {
    format!(
        "mov.u32 %r1, {tile};\nadd.u32 %r1, %r1, {};\nshr.u32 %r1, %r1, 4;\nand.b32 %r1, %r1, 0x3fff;\ncvt.u64.u32 %desc{index}, %r1;\nor.b64 %desc{index}, %desc{index}, 0x{:016x};\n",
        if layout.major == Major::K {
            layout.advance
        } else {
            0
        },
        layout.descriptor()
    )
}

/// Loads or stores all accumulator registers, register-major so that a warp's words are together.
pub(super) fn move_accumulators(direction: &str, buffer: &str, registers: usize) -> String {
    let mut text = format!("mad.wide.u32 %l0, %thread, 4, {buffer};\n");
    for i in 0..registers {
        let _ = match direction {
            "ld" => writeln!(text, "ld.global.b32 %d{i}, [%l0+{}];", 512 * i),
            _ => writeln!(text, "st.global.b32 [%l0+{}], %d{i};", 512 * i),
        };
    }
    text
}
