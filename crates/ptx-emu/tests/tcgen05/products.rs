//! Products of NVFP4 as kernels make them, and what further operands and layouts do.

use super::{Bench, Random, Tile};
use ptx_emu::MmaMode;

/// The value of a small float: exponent and fraction bits, and its bias.
pub(crate) fn float(code: u32, exponent: u32, fraction: u32, bias: i32) -> f64 {
    let sign = if code >> (exponent + fraction) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let biased = (code >> fraction & ((1 << exponent) - 1)) as i32;
    let digits = f64::from(code & ((1 << fraction) - 1)) / f64::from(1 << fraction);
    sign * match biased {
        0 => digits * 2f64.powi(1 - bias),
        _ => (1.0 + digits) * 2f64.powi(biased - bias),
    }
}

fn e2m1(code: u32) -> f64 {
    float(code, 2, 1, 1)
}

fn e4m3(code: u32) -> f64 {
    float(code, 4, 3, 7)
}

/// The codes of K64 in 32 bytes.
fn nibbles(row: &[u8; 32]) -> Vec<f64> {
    let both = |byte: &u8| [e2m1((byte & 15).into()), e2m1((byte >> 4).into())];
    row.iter().flat_map(both).collect()
}

/// NVFP4, two instructions.
struct Nvfp4 {
    n: u32,
    a: [Vec<[u8; 32]>; 2],
    b: [Vec<[u8; 32]>; 2],
    sa: [Vec<[u8; 4]>; 2],
    sb: [Vec<[u8; 4]>; 2],
}

const A_AT: u32 = 0;
const B_AT: u32 = 16384;
const SA_AT: u32 = 40960;
const SB_AT: u32 = 41984;

impl Nvfp4 {
    fn new(n: u32) -> Self {
        let mut random = Random(7);
        let mut rows = |count: u32| [0, 1].map(|_| (0..count).map(|_| random.row()).collect());
        let (a, b) = (rows(128), rows(n));
        let mut random = Random(9);
        let mut scales = |count: u32| {
            [0, 1].map(|_| {
                let one = |_| std::array::from_fn(|_| (random.next() % 0x48) as u8 + 0x08);
                (0..count).map(one).collect()
            })
        };
        Self {
            n,
            a,
            b,
            sa: scales(128),
            sb: scales(n),
        }
    }

    fn bench(&self) -> Bench {
        let mut input = vec![0; 45056];
        let mut issue = String::new();
        for k in 0..2 {
            let (a, b) = (Tile::swizzled(A_AT + 32 * k), Tile::swizzled(B_AT + 32 * k));
            for (row, bytes) in (0..).zip(&self.a[k as usize]) {
                a.put(&mut input, row, bytes);
            }
            for (row, bytes) in (0..).zip(&self.b[k as usize]) {
                b.put(&mut input, row, bytes);
            }
            let atoms = [(SA_AT, &self.sa), (SB_AT, &self.sb)];
            for (at, scales) in atoms {
                for (row, four) in scales[k as usize].iter().enumerate() {
                    let atom = at as usize + 1024 * (row / 128) + 512 * k as usize;
                    let within = row % 32 * 16 + row / 32 % 4 * 4;
                    input[atom + within..][..4].copy_from_slice(four);
                }
            }
            let atom = |start| Tile {
                start,
                leading: 0,
                stride: 128,
                swizzle: 0,
            };
            issue += &format!(
                "{} {} {}\n\
                 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r6+256], %rd9;\n{}\n\
                 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r6+264], %rd9;\n",
                a.descriptor("%rd10"),
                b.descriptor("%rd11"),
                atom(SA_AT + 512 * k).descriptor("%rd9"),
                atom(SB_AT + 512 * k).descriptor("%rd9"),
            );
            if self.n > 128 {
                issue += &format!(
                    "{}\ntcgen05.cp.cta_group::1.32x128b.warpx4 [%r6+268], %rd9;\n",
                    atom(SB_AT + 1024 + 512 * k).descriptor("%rd9")
                );
            }
            issue += &format!(
                "mov.b32 %r18, {:#x};\n\
                 tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::fill \
                 [%r6], %rd10, %rd11, %r18, [%r6+256], [%r6+264], %p0;\n\
                 setp.eq.b32 %p0, 0, 0;\n",
                0x0800_0480 | (self.n / 8) << 17
            );
        }
        Bench {
            input,
            issue,
            columns: self.n,
            ..Bench::default()
        }
    }

    fn expected(&self, row: usize, column: usize) -> (f64, f64) {
        let (mut sum, mut size) = (0.0, 0.0);
        for k in 0..2 {
            let (x, y) = (nibbles(&self.a[k][row]), nibbles(&self.b[k][column]));
            for (i, (x, y)) in x.iter().zip(&y).enumerate() {
                let [s, t] = [&self.sa[k][row], &self.sb[k][column]]
                    .map(|scales| e4m3(scales[i / 16].into()));
                sum += x * y * s * t;
                size += (x * y * s * t).abs();
            }
        }
        (sum, size)
    }
}

#[test]
fn nvfp4_products_with_their_scales() {
    for n in [64, 128, 192] {
        let product = Nvfp4::new(n);
        for mode in [MmaMode::Fast, MmaMode::Exact] {
            let words = product.bench().words(mode);
            for row in 0..128 {
                for column in 0..n as usize {
                    let found = f32::from_bits(words[row * n as usize + column]);
                    let (sum, size) = product.expected(row, column);
                    let error = (f64::from(found) - sum).abs();
                    assert!(
                        error <= size * 1e-6,
                        "({row}, {column}): {found} is not {sum}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_vector_level_computes_the_same() {
    let bench = Nvfp4::new(64).bench();
    let words = |level| {
        let config = ptx_emu::Config {
            level,
            limits: ptx_emu::DeviceLimits::B200,
            ..ptx_emu::Config::default()
        };
        bench.launch(config).expect("it runs").0
    };
    let portable = words(ptx_emu::Level::Portable);
    for level in ptx_emu::Level::available() {
        assert!(words(level) == portable, "{level:?}");
    }
}

#[test]
fn lanes_can_be_left_alone_and_d_be_halved() {
    let mut random = Random(3);
    let mut input = vec![0; 16384];
    let (a, b) = (Tile::plain(0), Tile::plain(8192));
    let one = [0, 0x3c].repeat(16);
    for row in 0..128 {
        a.put(&mut input, row, one[..].try_into().expect("32 bytes"));
        b.put(&mut input, row, one[..].try_into().expect("32 bytes"));
    }
    let disabled: [u32; 4] = std::array::from_fn(|_| random.next());
    let words: String = (0..4)
        .map(|i| format!("mov.b32 %r{}, {:#x};\n", 40 + i, disabled[i]))
        .collect();
    let issue = format!(
        "{} {} mov.b32 %r18, {:#x};\n{words}\
         tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd10, %r18, %p0;\n\
         setp.eq.b32 %p0, 0, 0;\n\
         tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd10, %r18, {{%r40,%r41,%r42,%r43}}, %p0, 2;\n",
        a.descriptor("%rd9"),
        b.descriptor("%rd10"),
        8 << 24 | 1 << 17 | 1 << 4
    );
    let bench = Bench {
        input,
        issue,
        ..Bench::default()
    };
    let found = bench.words(MmaMode::Fast);
    for lane in 0..128 {
        let off = disabled[lane / 32] >> (lane % 32) & 1 == 1;
        let expected: f32 = if off { 16.0 } else { 16.0 / 4.0 + 16.0 };
        assert_eq!(f32::from_bits(found[8 * lane]), expected, "lane {lane}");
    }
}

/// `.ws`: D of fewer rows lies beside itself in other lanes.
#[test]
fn weight_stationary_products() {
    for m in [32u32, 64, 128] {
        let n = 64;
        let mut input = vec![0; 16384];
        let (a, b) = (Tile::plain(0), Tile::plain(8192));
        let row = |value: u32| {
            let mut row = [0; 32];
            let bits = half::f16::from_f32(value as f32).to_le_bytes();
            row[..2].copy_from_slice(&bits);
            row
        };
        (0..m).for_each(|r| a.put(&mut input, r, &row(r + 1)));
        (0..n).for_each(|c| b.put(&mut input, c, &row(c + 3)));
        let parts = 128 / m;
        let bench = Bench {
            input,
            issue: format!(
                "{} {} mov.b32 %r18, {:#x};\n\
                 tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [%r6], %rd9, %rd10, %r18, %p0;",
                a.descriptor("%rd9"),
                b.descriptor("%rd10"),
                (m / 16) << 24 | (n / 8) << 17 | 1 << 4
            ),
            columns: n / parts,
            ..Bench::default()
        };
        let words = bench.words(MmaMode::Exact);
        for r in 0..m {
            for c in 0..n {
                let width = n / parts;
                let (lane, column) = (r + m * (c / width), c % width);
                let found = f32::from_bits(words[(lane * width + column) as usize]);
                assert_eq!(found, ((r + 1) * (c + 3)) as f32, "{m} ({r}, {c})");
            }
        }
    }
}

/// Scales of mxf8f6f4 and mxf4, by their byte and their power of two.
#[test]
fn powers_of_two_scale_blocks() {
    let ones = |byte: u8| [byte; 32];
    for (kind, types, code, ids) in [
        (
            "mxf8f6f4.block_scale.block32",
            (0u32, 0u32),
            0x38,
            [3u32, 1u32],
        ),
        ("mxf4.block_scale.block32", (1, 1), 0x22, [2, 0]),
        ("mxf4nvf4.block_scale.scale_vec::2X", (1, 1), 0x22, [0, 2]),
    ] {
        let mut input = vec![0; 16384];
        let (a, b) = (Tile::plain(0), Tile::plain(8192));
        (0..128).for_each(|r| a.put(&mut input, r, &ones(code)));
        (0..16).for_each(|c| b.put(&mut input, c, &ones(code)));
        // Row r of A has scales 2^(r % 4 + byte), those of B are twice the byte.
        let scale = |row: u32, byte: u32| 124 + row % 4 + byte;
        for row in 0..32u32 {
            for four in 0..4u32 {
                for byte in 0..4u32 {
                    let at = (row * 16 + four * 4 + byte) as usize;
                    input[12288 + at] = scale(row, byte) as u8;
                    input[12800 + at] = (127 + 2 * byte) as u8;
                }
            }
        }
        let atom = |start| Tile {
            start,
            leading: 0,
            stride: 128,
            swizzle: 0,
        };
        let (x, y) = types;
        let shape = 1 << 27 | 2 << 17 | 1 << 23 | ids[0] << 29 | ids[1] << 4 | y << 10 | x << 7;
        let bench = Bench {
            input,
            issue: format!(
                "{} {} {}\ntcgen05.cp.cta_group::1.32x128b.warpx4 [%r6+64], %rd11;\n{}\n\
                 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r6+68], %rd11;\nmov.b32 %r18, {shape:#x};\n\
                 tcgen05.mma.cta_group::1.kind::{kind} [%r6], %rd9, %rd10, %r18, [%r6+64], [%r6+68], %p0;",
                a.descriptor("%rd9"),
                b.descriptor("%rd10"),
                atom(12288).descriptor("%rd11"),
                atom(12800).descriptor("%rd11"),
            ),
            columns: 16,
            ..Bench::default()
        };
        let blocks = if kind.starts_with("mxf8") { 1 } else { 2 };
        for mode in [MmaMode::Fast, MmaMode::Exact] {
            let words = bench.words(mode);
            for row in 0..128u32 {
                let expected: f32 = (0..blocks)
                    .map(|j| {
                        let power = scale(row, ids[0] + j) as i32 - 127 + 2 * (ids[1] + j) as i32;
                        32.0 * 2f32.powi(power)
                    })
                    .sum();
                let found = f32::from_bits(words[(row * 16) as usize]);
                assert_eq!(found, expected, "{kind} {mode:?} row {row}");
            }
        }
    }
}

/// MN-major tiles: bytes of an element, K, and the swizzle's code.
#[test]
fn transposed_operands() {
    for (kind, each, depth, swizzle) in [
        ("f16", 2u32, 16u32, 0u32),
        ("f16", 2, 16, 2),
        ("tf32", 4, 8, 0),
        ("tf32", 4, 8, 1),
        ("i8", 1, 32, 0),
        ("i8", 1, 32, 2),
    ] {
        let (m, n) = (128, 64);
        let outer = depth / 8;
        let (leading, stride) = match swizzle {
            0 => (128, 128 * outer),
            _ => (1024 * outer, 1024),
        };
        let tile = |start| Tile {
            start,
            leading,
            stride,
            swizzle,
        };
        // Where element (mn, k) lies.
        let place = |start: u32, mn: u32, k: u32| {
            let byte = mn * each;
            let linear = match swizzle {
                0 => start + byte / 16 * stride + k / 8 * leading + k % 8 * 16 + byte % 16,
                _ => start + byte / 128 * leading + k / 8 * stride + k % 8 * 128 + byte % 128,
            };
            let mask = match swizzle {
                0 => 0,
                1 => (linear >> 7 & 3) << 5,
                _ => (linear >> 7 & 7) << 4,
            };
            (linear ^ mask) as usize
        };
        let value = |mn: u32, k: u32| (mn * 7 + k * 5) % 11;
        let mut input = vec![0; 16384];
        for (start, rows) in [(0, m), (8192, n)] {
            for mn in 0..rows {
                for k in 0..depth {
                    let bits = match kind {
                        "f16" => half::f16::from_f32(value(mn, k) as f32).to_bits().into(),
                        "tf32" => (value(mn, k) as f32).to_bits(),
                        _ => value(mn, k),
                    };
                    let at = place(start, mn, k);
                    input[at..at + each as usize]
                        .copy_from_slice(&bits.to_le_bytes()[..each as usize]);
                }
            }
        }
        let types = match kind {
            "f16" => 1 << 4,
            "tf32" => 2 << 10 | 2 << 7 | 1 << 4,
            _ => 2 << 4,
        };
        let shape = types | 3 << 15 | (m / 16) << 24 | (n / 8) << 17;
        let bench = Bench {
            input,
            issue: format!(
                "{} {} mov.b32 %r18, {shape:#x};\n\
                 tcgen05.mma.cta_group::1.kind::{kind} [%r6], %rd9, %rd10, %r18, %p0;",
                tile(0).descriptor("%rd9"),
                tile(8192).descriptor("%rd10"),
            ),
            columns: n,
            ..Bench::default()
        };
        let words = bench.words(MmaMode::Exact);
        for r in 0..m {
            for c in 0..n {
                let sum: u32 = (0..depth).map(|k| value(r, k) * value(c, k)).sum();
                let word = words[(r * n + c) as usize];
                let found = match kind {
                    "i8" => word as f32,
                    _ => f32::from_bits(word),
                };
                assert_eq!(found, sum as f32, "{kind} swizzle {swizzle} ({r}, {c})");
            }
        }
    }
}
