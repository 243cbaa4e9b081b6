//! One product, whatever its kind, beside the sum of its codes.

use crate::products::float;
use crate::{Bench, Random, Tile};
use ptx_emu::MmaMode;

/// A type of elements: its code in an instruction descriptor, its bits and its values.
#[derive(Clone, Copy)]
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) code: u32,
    pub(super) bits: u32,
    pub(super) value: fn(u32) -> f64,
}

pub(super) const fn of(name: &'static str, code: u32, bits: u32, value: fn(u32) -> f64) -> Type {
    Type {
        name,
        code,
        bits,
        value,
    }
}

pub(super) const F16: Type = of("f16", 0, 16, |code| float(code, 5, 10, 15));
pub(super) const BF16: Type = of("bf16", 1, 16, |code| float(code, 8, 7, 127));
pub(super) const TF32: Type = of("tf32", 2, 32, |code| float(code >> 13, 8, 10, 127));
pub(super) const U8: Type = of("u8", 0, 8, f64::from);
pub(super) const S8: Type = of("s8", 1, 8, |code| f64::from(code as u8 as i8));
pub(super) const FOURS: Type = of("e2m1", 1, 4, |code| float(code, 2, 1, 1));
pub(super) const SMALL: [Type; 5] = [
    of("e4m3", 0, 8, |code| float(code, 4, 3, 7)),
    of("e5m2", 1, 8, |code| float(code, 5, 2, 15)),
    of("e2m3", 3, 6, |code| float(code, 2, 3, 1)),
    of("e3m2", 4, 6, |code| float(code, 3, 2, 3)),
    of("e2m1", 5, 4, |code| float(code, 2, 1, 1)),
];

#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) kind: &'static str,
    pub(super) a: Type,
    pub(super) b: Type,
    /// D's type in the descriptor; with scales, theirs (1 for ue8m0).
    pub(super) d: u32,
    pub(super) m: u32,
    pub(super) n: u32,
    pub(super) ctas: u32,
    pub(super) a_in_tmem: bool,
    pub(super) swizzle: u32,
    /// Bits 13 and 14 of the descriptor.
    pub(super) negate: u32,
    /// `.block…` or `.scale_vec…`, and the first byte of A's and B's scales.
    pub(super) scales: Option<(&'static str, [u32; 2])>,
    pub(super) collector: &'static str,
}

pub(super) const PLAIN: Product = Product {
    kind: "f16",
    a: F16,
    b: F16,
    d: 1,
    m: 128,
    n: 16,
    ctas: 1,
    a_in_tmem: false,
    swizzle: 0,
    negate: 0,
    scales: None,
    collector: "",
};

/// A product of each kind.
pub(super) const KINDS: [Product; 7] = [
    PLAIN,
    Product {
        kind: "tf32",
        a: TF32,
        b: TF32,
        ..PLAIN
    },
    Product {
        kind: "f8f6f4",
        a: SMALL[0],
        b: SMALL[3],
        ..PLAIN
    },
    Product {
        kind: "i8",
        a: U8,
        b: S8,
        d: 2,
        n: 32,
        ..PLAIN
    },
    Product {
        kind: "mxf8f6f4",
        a: SMALL[4],
        b: SMALL[1],
        scales: Some((".block32", [1, 2])),
        ..PLAIN
    },
    Product {
        kind: "mxf4",
        a: FOURS,
        b: FOURS,
        scales: Some((".scale_vec::2X", [2, 0])),
        ..PLAIN
    },
    NVFP4,
];

pub(super) const NVFP4: Product = Product {
    kind: "mxf4nvf4",
    a: FOURS,
    b: FOURS,
    d: 0,
    scales: Some((".block16", [0, 0])),
    ..PLAIN
};

pub(super) const B_AT: u32 = 16384;
pub(super) const SCALES_AT: u32 = 24576;
/// Bytes of a CTA's shared memory: A, B, and the atoms of A's and of B's first and last 128 rows.
pub(super) const SHARE: usize = 28672;

impl Product {
    pub(super) fn depth(&self) -> usize {
        match self.kind {
            "tf32" => 8,
            "f16" => 16,
            "mxf4" | "mxf4nvf4" => 64,
            _ => 32,
        }
    }

    pub(super) fn descriptor(&self) -> u32 {
        let common = self.b.code << 10 | self.a.code << 7 | self.negate << 13 | (self.n / 8) << 17;
        match self.scales {
            Some((_, [a, b])) => common | self.d << 23 | (self.m / 128) << 27 | a << 29 | b << 4,
            None => common | self.d << 4 | (self.m / 16) << 24,
        }
    }

    /// Codes of rows, whose values are near one or zero.
    pub(super) fn codes(&self, of: Type, rows: u32, random: &mut Random) -> Vec<Vec<u32>> {
        let mut code = || loop {
            let code =
                (u64::from(random.next()) << 1 & ((1 << of.bits) - 1)) as u32 | random.next() & 1;
            let size = (of.value)(code).abs();
            if size == 0.0 || (0.25..=4.0).contains(&size) || self.kind == "i8" {
                return code;
            }
        };
        let row = |_| (0..self.depth()).map(|_| code()).collect();
        (0..rows).map(row).collect()
    }

    /// A row as the tensor core takes it from shared memory: sixteen small floats have 16 bytes
    /// there, whatever their size, unless all are packed.
    pub(super) fn shared(&self, of: Type, codes: &[u32]) -> [u8; 32] {
        let mut row = [0xa5; 32];
        let each = codes.len() / 2;
        for (codes, chunk) in codes.chunks(each).zip(row.chunks_mut(16)) {
            let packed = codes.iter().zip(0u32..).fold(0u128, |packed, (code, i)| {
                packed | u128::from(*code) << (of.bits * i)
            });
            let bytes = each * of.bits as usize / 8;
            chunk[..bytes].copy_from_slice(&packed.to_le_bytes()[..bytes]);
        }
        row
    }

    /// And from tensor memory: small floats in bytes of their own, four bits of them not the lowest.
    pub(super) fn tensor(&self, of: Type, codes: &[u32]) -> [u8; 32] {
        let containers = self.kind.ends_with("f8f6f4");
        match of.bits {
            4 if containers => std::array::from_fn(|k| (codes[k] << 2) as u8),
            6 if containers => std::array::from_fn(|k| codes[k] as u8),
            _ => self.shared(of, codes),
        }
    }

    /// Which of four scales of a row belongs to an element.
    pub(super) fn scale_of(&self, k: usize, first: u32) -> usize {
        match self.scales {
            Some((".block16", _)) => k / 16,
            Some((_, _)) => first as usize + k / 32,
            None => 0,
        }
    }

    pub(super) fn scale(&self, code: u8) -> f64 {
        match (self.scales, self.d) {
            (None, _) => 1.0,
            (Some(_), 0) => float(code.into(), 4, 3, 7),
            _ => 2f64.powi(i32::from(code) - 127),
        }
    }

    #[track_caller]
    pub(super) fn check(&self) {
        let mut random = Random(self.n.into());
        let (a, b) = (
            self.codes(self.a, self.m, &mut random),
            self.codes(self.b, self.n, &mut random),
        );
        let mut scales = |rows: u32| -> Vec<[u8; 4]> {
            let (low, some) = if self.d == 0 { (0x30, 16) } else { (125, 5) };
            let four = |_| std::array::from_fn(|_| low + (random.next() % some) as u8);
            (0..rows).map(four).collect()
        };
        let (sa, sb) = (scales(self.m), scales(self.n));
        let bench = self.bench((&a, &b), (&sa, &sb));
        let sign = if self.negate.count_ones() == 1 {
            -1.0
        } else {
            1.0
        };
        for mode in [MmaMode::Fast, MmaMode::Exact] {
            let words = bench.words(mode);
            for (r, x) in a.iter().enumerate() {
                for (c, y) in b.iter().enumerate() {
                    let (mut sum, mut size) = (0.0, 0.0);
                    let ids = self.scales.map_or([0, 0], |(_, ids)| ids);
                    for k in 0..self.depth() {
                        let scale = self.scale(sa[r][self.scale_of(k, ids[0])])
                            * self.scale(sb[c][self.scale_of(k, ids[1])]);
                        let term = (self.a.value)(x[k]) * (self.b.value)(y[k]) * scale;
                        // Issued twice, the second on top of the first.
                        sum += 2.0 * sign * term;
                        size += 2.0 * term.abs();
                    }
                    let found = self.read(words[self.place(r, c)]);
                    let last = if self.scales.is_none() && self.d == 0 {
                        1e-3
                    } else {
                        1e-6
                    };
                    assert!(
                        (found - sum).abs() <= size * last,
                        "{} {mode:?} ({r}, {c}): {found} is not {sum}",
                        self.name()
                    );
                }
            }
        }
    }

    pub(super) fn name(&self) -> String {
        format!(
            "{} {} × {}, {} × {} of {}, A in tmem {}, swizzle {}, negated {}",
            self.kind,
            self.a.name,
            self.b.name,
            self.m,
            self.n,
            self.ctas,
            self.a_in_tmem,
            self.swizzle,
            self.negate
        )
    }

    pub(super) fn read(&self, word: u32) -> f64 {
        match (self.kind, self.scales, self.d) {
            ("i8", ..) => f64::from(word as i32),
            (_, None, 0) => float(word & 0xffff, 5, 10, 15),
            _ => f64::from(f32::from_bits(word)),
        }
    }

    /// Columns of D in tensor memory.
    pub(super) fn columns(&self) -> u32 {
        match (self.ctas, self.m) {
            (2, 128) => self.n / 2,
            _ => self.n,
        }
    }

    /// The word of D that a row and a column have.
    pub(super) fn place(&self, row: usize, column: usize) -> usize {
        let (rows, columns) = ((self.m / self.ctas) as usize, self.columns() as usize);
        let (cta, row) = (row / rows, row % rows);
        let lane = match self.m {
            64 => row % 16 + 32 * (row / 16),
            _ => row + 64 * (column / columns),
        };
        (128 * cta + lane) * columns + column % columns
    }

    pub(super) fn bench(
        &self,
        (a, b): (&[Vec<u32>], &[Vec<u32>]),
        (sa, sb): (&[[u8; 4]], &[[u8; 4]]),
    ) -> Bench {
        let g = self.ctas;
        let mut input = vec![0; SHARE * g as usize];
        let (at_a, at_b) = (
            Tile::coded(0, self.swizzle),
            Tile::coded(B_AT, self.swizzle),
        );
        for (cta, part) in input.chunks_exact_mut(SHARE).enumerate() {
            let own = |rows: usize| cta * rows / g as usize..(cta + 1) * rows / g as usize;
            for (row, codes) in (0..).zip(&a[own(a.len())]) {
                match self.a_in_tmem {
                    true => {
                        part[32 * row as usize..][..32].copy_from_slice(&self.tensor(self.a, codes))
                    }
                    false => at_a.put(part, row, &self.shared(self.a, codes)),
                }
            }
            for (row, codes) in (0..).zip(&b[own(b.len())]) {
                at_b.put(part, row, &self.shared(self.b, codes));
            }
            // Each CTA has the scales of its own rows of A, and all of B's.
            let of_a = &sa[own(sa.len())];
            for (atom, scales) in [(0, of_a), (1, sb)] {
                for (row, four) in scales.iter().enumerate() {
                    let at = SCALES_AT as usize + 512 * (atom + row / 128);
                    let within = row % 32 * 16 + row / 32 % 4 * 4;
                    part[at + within..][..4].copy_from_slice(four);
                }
            }
        }
        let mut issue = format!(
            "{}\n{}\nmov.b32 %r18, {:#x};\n",
            at_a.descriptor("%rd9"),
            at_b.descriptor("%rd10"),
            self.descriptor()
        );
        let (mut block, mut operands) = (String::new(), "");
        if let Some((vector, _)) = self.scales {
            for (atom, column) in [(0, 256), (1, 264), (2, 268)] {
                let atom = Tile {
                    start: SCALES_AT + 512 * atom,
                    leading: 0,
                    stride: 128,
                    swizzle: 0,
                };
                issue += &format!(
                    "{}\ntcgen05.cp.cta_group::{g}.32x128b.warpx4 [%r6+{column}], %rd11;\n",
                    atom.descriptor("%rd11")
                );
            }
            block = format!(".block_scale{vector}");
            operands = ", [%r6+256], [%r6+264]";
        }
        let source = if self.a_in_tmem { "[%r6+288]" } else { "%rd9" };
        let (kind, collector) = (self.kind, self.collector);
        let mma = |collector: &str| {
            format!(
                "tcgen05.mma.cta_group::{g}.kind::{kind}{block}{collector} \
                 [%r6], {source}, %rd10, %r18{operands}, %p0;\n"
            )
        };
        // What is taken from the collector must be there.
        let first = match collector {
            ".collector::a::use" | ".collector::a::lastuse" => ".collector::a::fill",
            _ => "",
        };
        issue += &format!("{}setp.eq.b32 %p0, 0, 0;\n{}", mma(first), mma(collector));
        Bench {
            input,
            before: if self.a_in_tmem {
                stored(g)
            } else {
                String::new()
            },
            issue,
            columns: self.columns(),
            ctas: g,
            // Half of the lanes are nobody's when M is 64.
            after: (self.m == 64).then(|| half_dump(self.n)),
            ..Bench::default()
        }
    }
}

/// Stores the first 16 lanes of each quarter.
pub(super) fn half_dump(n: u32) -> String {
    let registers: Vec<String> = (0..n).map(|i| format!("%r{}", 20 + i)).collect();
    let mut text = format!(
        "tcgen05.ld.sync.aligned.16x32bx2.x{n}.b32 {{{}}}, [%r8], 0;\n\
         tcgen05.wait::ld.sync.aligned;\n",
        registers.join(",")
    );
    for (i, register) in registers.iter().enumerate() {
        text += &format!("st.global.b32 [%rd4+{}], {register};\n", 4 * i);
    }
    text
}

/// Has each thread store 32 bytes of shared memory in its lane, from column 288 on.
pub(super) fn stored(ctas: u32) -> String {
    let together = match ctas {
        1 => "bar.sync 0;",
        _ => "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    };
    format!(
        "mad.lo.u32 %r18, %r1, 32, %r3;\n\
         ld.shared.v4.b32 {{%r20,%r21,%r22,%r23}}, [%r18];\n\
         ld.shared.v4.b32 {{%r24,%r25,%r26,%r27}}, [%r18+16];\n\
         tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8+288], \
         {{%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}};\n\
         tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n\
         {together}\ntcgen05.fence::after_thread_sync;\n"
    )
}
