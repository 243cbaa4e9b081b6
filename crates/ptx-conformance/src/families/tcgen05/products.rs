//! `tcgen05.mma` over kinds, types, shapes, operand sources, scales and CTAs.

use super::stage::{Stage, Tile};
use crate::case::Case;

/// A product on top of what tensor memory held, or alone.
#[derive(Debug, Clone, Copy)]
struct Multiply {
    kind: &'static str,
    /// Type codes of A and B, and of D (0, 1, 2); of block-scaled kinds the scale's.
    types: (u32, u32, u32),
    m: u32,
    n: u32,
    ctas: u32,
    a_in_tmem: bool,
    swizzle: u32,
    /// `.block16` and its like, and the ids of A's and B's scales.
    scales: Option<(&'static str, [u32; 2])>,
    accumulate: bool,
    /// Further bits of the instruction descriptor.
    bits: u32,
    /// Further modifiers, and operands behind the last.
    words: &'static str,
    tail: &'static str,
    /// `.ws`
    stationary: bool,
    /// A and B are MN-major.
    transposed: bool,
    /// Some lanes of D are left alone.
    masked: bool,
    label: &'static str,
}

const F16: Multiply = Multiply {
    kind: "f16",
    types: (0, 0, 1),
    m: 128,
    n: 16,
    ctas: 1,
    a_in_tmem: false,
    swizzle: 6,
    scales: None,
    accumulate: true,
    bits: 0,
    words: "",
    tail: "",
    stationary: false,
    transposed: false,
    masked: false,
    label: "",
};

const NVFP4: Multiply = Multiply {
    kind: "mxf4nvf4",
    types: (1, 1, 0),
    scales: Some((".block16", [0, 0])),
    ..F16
};

const TF32: Multiply = Multiply {
    kind: "tf32",
    types: (2, 2, 1),
    ..F16
};

const EIGHT: Multiply = Multiply {
    kind: "f8f6f4",
    ..F16
};

const INT: Multiply = Multiply {
    kind: "i8",
    types: (1, 1, 2),
    ..F16
};

const SCALED: Multiply = Multiply {
    kind: "mxf8f6f4",
    types: (0, 0, 1),
    scales: Some((".block32", [0, 0])),
    ..F16
};

const MXF4: Multiply = Multiply {
    kind: "mxf4",
    types: (1, 1, 1),
    scales: Some((".block32", [0, 0])),
    ..NVFP4
};

/// Small floats by their codes.
const SMALL: [u32; 5] = [0, 1, 3, 4, 5];

pub(super) fn cases() -> Vec<Case> {
    let parts = [shapes(), types(), modifiers(), pairs(), collectors()];
    parts.iter().flatten().map(Multiply::case).collect()
}

/// Widths, heights and swizzles.
fn shapes() -> Vec<Multiply> {
    let mut all = Vec::new();
    for n in [8, 16, 24, 64, 136, 256] {
        for m in [64, 128] {
            all.push(Multiply { m, n, ..F16 });
        }
        all.push(Multiply { n, ..NVFP4 });
    }
    for swizzle in [0, 2, 4] {
        all.push(Multiply { swizzle, ..F16 });
        all.push(Multiply { swizzle, ..NVFP4 });
    }
    for types in [(0, 0, 0), (1, 1, 1)] {
        all.push(Multiply { types, ..F16 });
    }
    all
}

/// Types of the operands, and where A lies.
fn types() -> Vec<Multiply> {
    let mut all = Vec::new();
    for a in SMALL {
        for b in SMALL {
            all.push(Multiply {
                types: (a, b, 1),
                ..EIGHT
            });
            all.push(Multiply {
                types: (a, b, 1),
                ..SCALED
            });
        }
        all.push(Multiply {
            types: (a, a, 0),
            ..EIGHT
        });
    }
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        all.push(Multiply {
            types: (a, b, 2),
            ..INT
        });
        all.push(Multiply {
            types: (a, b, 2),
            bits: 1 << 3,
            label: "/satfinite",
            ..INT
        });
    }
    for base in [F16, TF32, EIGHT, INT, SCALED, NVFP4] {
        all.push(Multiply {
            a_in_tmem: true,
            ..base
        });
        all.push(Multiply {
            accumulate: false,
            ..base
        });
    }
    all.push(TF32);
    all
}

/// Signs, scales and their places.
fn modifiers() -> Vec<Multiply> {
    let mut all = Vec::new();
    for bits in [1, 2, 3] {
        all.push(Multiply {
            bits: bits << 13,
            label: "/negated",
            ..F16
        });
        all.push(Multiply {
            bits: bits << 13,
            label: "/negated",
            ..NVFP4
        });
    }
    for id in [1, 2, 3] {
        let scales = Some((".block32", [id, 3 - id]));
        all.push(Multiply {
            scales,
            label: "/ids",
            ..SCALED
        });
    }
    for (kind, scale) in [("mxf4", 1), ("mxf4nvf4", 1)] {
        for ids in [[0, 0], [2, 0], [0, 2]] {
            let scales = Some((".block32", ids));
            all.push(Multiply {
                kind,
                types: (1, 1, scale),
                scales,
                ..NVFP4
            });
        }
    }
    all.push(Multiply {
        types: (1, 1, 1),
        ..NVFP4
    });
    all.push(Multiply {
        tail: ", 3",
        label: "/scaled-d",
        ..F16
    });
    all
}

/// Two CTAs, a stationary A, masks and transposed operands.
fn pairs() -> Vec<Multiply> {
    let mut all = Vec::new();
    for base in [F16, TF32, EIGHT, INT] {
        for (m, n, a_in_tmem) in [(128, 64, false), (256, 64, false), (256, 32, true)] {
            all.push(Multiply {
                m,
                n,
                a_in_tmem,
                ctas: 2,
                ..base
            });
        }
        for m in [32, 64, 128] {
            all.push(Multiply {
                m,
                n: 64,
                stationary: true,
                ..base
            });
        }
        for ctas in [1, 2] {
            all.push(Multiply {
                m: 128 * ctas,
                n: 32,
                ctas,
                masked: true,
                ..base
            });
        }
        all.push(Multiply {
            a_in_tmem: true,
            words: ".ashift",
            ..base
        });
        for swizzle in [0, if base.kind == "tf32" { 1 } else { 2 }] {
            all.push(Multiply {
                swizzle,
                transposed: true,
                bits: 3 << 15,
                n: 64,
                ..base
            });
        }
    }
    for base in [SCALED, MXF4, NVFP4] {
        for (n, a_in_tmem) in [(64, false), (32, true)] {
            all.push(Multiply {
                m: 256,
                n,
                a_in_tmem,
                ctas: 2,
                ..base
            });
        }
    }
    for n in [128, 256] {
        all.push(Multiply {
            m: 256,
            ctas: 2,
            n,
            ..NVFP4
        });
    }
    all
}

/// Uses of the collector, and older names.
fn collectors() -> Vec<Multiply> {
    let mut all = Vec::new();
    for base in [F16, TF32, EIGHT, INT, SCALED, MXF4, NVFP4] {
        for words in [
            ".collector::a::fill",
            ".collector::a::use",
            ".collector::a::lastuse",
            ".collector::a::discard",
        ] {
            all.push(Multiply { words, ..base });
        }
    }
    // The same by their older names.
    for (base, vector) in [
        (SCALED, ".scale_vec::1X"),
        (MXF4, ".scale_vec::2X"),
        (NVFP4, ".scale_vec::4X"),
    ] {
        let scales = Some((vector, [0, 0]));
        all.push(Multiply { scales, ..base });
    }
    all
}

/// Where B lies in shared memory, behind an A of any swizzle.
const B_AT: u32 = 16384;

/// And the scales: A's 512 bytes, then twice as many of B.
const SCALES_AT: u32 = 24576;

impl Multiply {
    fn form(&self) -> String {
        let block = match self.scales {
            Some((block, _)) => format!(".block_scale{block}"),
            None => String::new(),
        };
        format!(
            "tcgen05.mma{}.cta_group::{}.kind::{}{block}{}",
            if self.stationary { ".ws" } else { "" },
            self.ctas,
            self.kind,
            self.words
        )
    }

    fn descriptor(&self) -> u32 {
        let (a, b, d) = self.types;
        let common = self.bits | (self.n / 8) << 17 | b << 10 | a << 7;
        match self.scales {
            Some((_, [x, y])) => common | (self.m / 128) << 27 | x << 29 | d << 23 | y << 4,
            None => common | (self.m / 16) << 24 | d << 4,
        }
    }

    /// A byte of an operand: no code is NaN or infinite, and exponents stay within a few bits of
    /// each other so that sums have many digits.
    fn byte(&self, i: u32, row: u32, of_b: bool) -> u8 {
        let mixed = (i + 97 * row + 31 * u32::from(of_b) + 7).wrapping_mul(0x9e37_79b9) >> 11;
        let byte = mixed as u8;
        match self.kind {
            // The high byte holds sign and exponent.
            "f16" if i % 2 == 1 => byte & 0x8f | 0x30,
            "tf32" if i % 4 == 3 => byte & 0x81 | 0x3e,
            "f8f6f4" | "mxf8f6f4" => byte & 0xbf,
            _ => byte,
        }
    }

    /// How A and B lie in shared memory.
    fn tiles(&self) -> [Tile; 2] {
        // Of MN-major ones, eight of K are a step.
        let steps = match self.kind {
            "tf32" => 1,
            "f16" => 2,
            _ => 4,
        };
        [0, B_AT].map(|start| match (self.transposed, self.swizzle) {
            (false, _) => Tile::new(start, self.swizzle),
            (true, 0) => Tile {
                start,
                leading: 128,
                stride: 128 * steps,
                swizzle: 0,
            },
            (true, swizzle) => Tile {
                start,
                leading: 1024 * steps,
                stride: 1024,
                swizzle,
            },
        })
    }

    fn tile(&self) -> Vec<u8> {
        let share = 28672;
        let mut all = vec![0; share * self.ctas as usize];
        for (cta, part) in (0..).zip(all.chunks_exact_mut(share)) {
            let [a, b] = self.tiles();
            for (tile, rows, of_b) in [(a, self.m, false), (b, self.n, true)] {
                if self.transposed {
                    // Whichever element it is, it has all its bytes together.
                    for (i, byte) in (0..).zip(&mut part[tile.start as usize..][..8192]) {
                        *byte = self.byte(i, cta, of_b);
                    }
                    continue;
                }
                let rows = rows / self.ctas;
                for row in 0..rows {
                    let whole = cta * rows + row;
                    let values: Vec<u8> = (0..32).map(|i| self.byte(i, whole, of_b)).collect();
                    // Rows of a swizzled tile are as wide as the swizzle; k is in their first 32.
                    tile.put(part, row, &values);
                }
            }
            let codes = part[SCALES_AT as usize..][..1536].iter_mut();
            for (i, code) in codes.enumerate() {
                let mixed = (i as u32 + 5000 * cta).wrapping_mul(0x85eb_ca6b) >> 13;
                // ue4m3 around one; ue8m0 of a few powers of two.
                *code = match self.types.2 {
                    0 => 0x28 + (mixed % 32) as u8,
                    _ => 124 + (mixed % 7) as u8,
                };
            }
        }
        all
    }

    fn case(&self) -> Case {
        let form = self.form();
        let g = self.ctas;
        let [a, b] = self.tiles();
        let mut issue = format!(
            "{}{}mov.b32 %r20, {:#x};\n",
            a.descriptor("%l8"),
            b.descriptor("%l9"),
            self.descriptor()
        );
        let mut operands = String::new();
        if self.scales.is_some() {
            for (atom, column) in [(0, 256), (1, 264), (2, 268)] {
                let scales = Tile {
                    start: SCALES_AT + 512 * atom,
                    leading: 0,
                    stride: 128,
                    swizzle: 0,
                };
                issue += &format!(
                    "{}tcgen05.cp.cta_group::{g}.32x128b.warpx4 [%base+{column}], %l10;\n",
                    scales.descriptor("%l10")
                );
            }
            operands = ", [%base+256], [%base+264]".to_owned();
        }
        let source = if self.a_in_tmem { "[%base+288]" } else { "%l8" };
        let add = u32::from(self.accumulate);
        let mut mask = String::new();
        if self.masked {
            let words = (100..100 + 4 * g).map(|i| {
                issue += &format!("mov.b32 %v{i}, {:#x};\n", i.wrapping_mul(0x0f1e_2d35));
                format!("%v{i}")
            });
            mask = format!(", {{{}}}", words.collect::<Vec<_>>().join(", "));
        }
        let product = format!(
            "{form} [%base], {source}, %l9, %r20{operands}{mask}, %p5{};\n",
            self.tail
        );
        issue += &format!("setp.ne.u32 %p5, {add}, 0;\n");
        // What is taken from the collector must be there.
        for taken in ["::use", "::lastuse"] {
            if self.words.ends_with(taken) {
                issue += &product.replace(self.words, ".collector::a::fill");
            }
        }
        issue += &product;
        let columns = match (g, self.m) {
            (1, 32) => self.n / 4,
            (1, 64) if self.stationary => self.n / 2,
            (2, 128) => self.n / 2,
            _ => self.n,
        };
        let (x, y, z) = self.types;
        let name = format!(
            "{form}/m{}n{}-{x}.{y}.{z}-s{}{}{}{}{}{}{}",
            self.m,
            self.n,
            self.swizzle,
            if self.a_in_tmem { "-tmem" } else { "" },
            if self.accumulate { "" } else { "-alone" },
            if self.transposed { "-mn" } else { "" },
            if self.masked { "-masked" } else { "" },
            self.scales
                .map_or(String::new(), |(_, [x, y])| format!("-ids{x}{y}")),
            match self.label {
                "" => String::new(),
                label => format!("{label}-{:x}", self.bits),
            }
        );
        // D begins as small numbers of its type, and so does an A in tensor memory.
        let mut before = start(self.types.2, self.kind, columns);
        if self.a_in_tmem {
            before += "mul.lo.u32 %r21, %thread, 0x01000193;\n";
            for i in 0..8 {
                let fixed = match self.kind {
                    "f16" => ("0x8fff8fff", "0x30003000"),
                    "tf32" => ("0x81ffe000", "0x3e000000"),
                    "f8f6f4" | "mxf8f6f4" => ("0xbfbfbfbf", "0"),
                    _ => ("0xffffffff", "0"),
                };
                before += &format!(
                    "xor.b32 %v{i}, %r21, {:#x};\nand.b32 %v{i}, %v{i}, {};\nor.b32 %v{i}, %v{i}, {};\n",
                    i * 0x0123_4567,
                    fixed.0,
                    fixed.1
                );
            }
            before += "tcgen05.st.sync.aligned.32x32b.x8.b32 [%own+288], \
                       {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};\ntcgen05.wait::st.sync.aligned;\n";
        }
        Stage {
            tile: self.tile(),
            before,
            issue,
            columns: columns.next_multiple_of(8),
            ctas: g,
            forms: vec![form.clone(), "tcgen05.commit".to_owned()],
            ..Stage::new(name, &form)
        }
        .case()
    }
}

/// Fills D with numbers: the bits of 1 + lane / 128 and the like.
fn start(d: u32, kind: &str, columns: u32) -> String {
    let f16 = d == 0 && matches!(kind, "f16" | "f8f6f4");
    let one = match (kind, f16) {
        ("i8", _) => "0",
        (_, true) => "0x3c00",
        _ => "0x3f800000",
    };
    let step = match (kind, f16) {
        ("i8", _) => "1000003",
        (_, true) => "7",
        _ => "0x10001",
    };
    let mut text = format!("mad.lo.u32 %r22, %thread, {step}, {one};\n");
    for first in (0..columns).step_by(8) {
        for i in 0..8 {
            text += &format!("add.u32 %v{i}, %r22, {};\n", (first + i) % 8);
        }
        text += &format!(
            "tcgen05.st.sync.aligned.32x32b.x8.b32 [%own+{first}], \
             {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};\n"
        );
    }
    text + "tcgen05.wait::st.sync.aligned;\n"
}
