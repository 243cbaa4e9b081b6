//! Sparse products and the oldest dense one, against sums over elements placed by the tables of
//! the PTX ISA. No card's answers are recorded for them.

use half::{bf16, f16};
use ptx_emu::{Config, Launch, Memory, MmaMode, Params};

use crate::module;

pub(crate) struct Random(pub u32);

impl Random {
    pub(crate) fn next(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 12) % below
    }
}

/// An element type: its bits, and the code of a small integer.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub name: &'static str,
    pub bits: usize,
    pub code: fn(i32) -> u32,
    pub signed: bool,
}

const KINDS: [Kind; 9] = [
    Kind {
        name: "f16",
        bits: 16,
        code: |x| f16::from_f32(x as f32).to_bits().into(),
        signed: true,
    },
    Kind {
        name: "bf16",
        bits: 16,
        code: |x| bf16::from_f32(x as f32).to_bits().into(),
        signed: true,
    },
    Kind {
        name: "tf32",
        bits: 32,
        code: |x| (x as f32).to_bits(),
        signed: true,
    },
    Kind {
        name: "s8",
        bits: 8,
        code: |x| x as u8 as u32,
        signed: true,
    },
    Kind {
        name: "u8",
        bits: 8,
        code: |x| x as u8 as u32,
        signed: false,
    },
    Kind {
        name: "s4",
        bits: 4,
        code: |x| x as u32 & 15,
        signed: true,
    },
    Kind {
        name: "u4",
        bits: 4,
        code: |x| x as u32 & 15,
        signed: false,
    },
    Kind {
        name: "e4m3",
        bits: 8,
        code: |x| e4m3(x),
        signed: true,
    },
    Kind {
        name: "e5m2",
        bits: 8,
        code: |x| f16::from_f32(x as f32).to_bits() as u32 >> 8,
        signed: true,
    },
];

pub(crate) fn kind(name: &str) -> Kind {
    *KINDS.iter().find(|kind| kind.name == name).expect("a type")
}

fn e4m3(x: i32) -> u32 {
    let sign = if x < 0 { 0x80 } else { 0 };
    match x.unsigned_abs() {
        0 => 0,
        x => {
            let exponent = x.ilog2();
            sign | (exponent + 7) << 3 | (x << 3 >> exponent & 7)
        }
    }
}

/// A dense A with structured zeros, what of it is stored, and the metadata of 16 rows a warp.
pub(crate) struct SparseA {
    pub dense: Vec<Vec<i32>>,
    pub stored: Vec<Vec<i32>>,
    /// Four bits of each chunk of each row.
    pub chunks: Vec<Vec<u32>>,
}

pub(crate) fn sparse_a(random: &mut Random, kind: Kind, rows: usize, k: usize) -> SparseA {
    let mut a = SparseA {
        dense: vec![vec![0; k]; rows],
        stored: vec![Vec::new(); rows],
        chunks: vec![Vec::new(); rows],
    };
    let number = |random: &mut Random| {
        let x = random.next(3) as i32 + 1;
        if kind.signed && random.next(2) == 1 {
            -x
        } else {
            x
        }
    };
    for row in 0..rows {
        let chunk = match kind.bits {
            32 => 2,
            4 => 8,
            _ => 4,
        };
        for start in (0..k).step_by(chunk) {
            if chunk == 2 {
                let at = random.next(2) as usize;
                let x = number(random);
                a.dense[row][start + at] = x;
                a.stored[row].push(x);
                a.chunks[row].push([0b0100, 0b1110][at]);
                continue;
            }
            let first = random.next(3);
            let second = first + 1 + random.next(3 - first);
            a.chunks[row].push(second << 2 | first);
            for index in [first, second] {
                for e in 0..chunk / 4 {
                    let x = number(random);
                    a.dense[row][start + index as usize * (chunk / 4) + e] = x;
                    a.stored[row].push(x);
                }
            }
        }
    }
    a
}

/// Metadata words of a warp's 32 lanes: (row, chunks of it) by lane as the ISA's figures have it.
pub(crate) fn metadata(chunks: &[Vec<u32>], bits: usize, selector: usize) -> [u32; 32] {
    let mut words = [0; 32];
    let per_row = chunks[0].len();
    for (row, chunks) in chunks.iter().enumerate() {
        for (i, &code) in chunks.iter().enumerate() {
            let (lane, shift) = match (bits, per_row) {
                // One lane of four, both rows in it.
                (16 | 32, 4) => (selector, 16 * (row / 8) + 4 * i),
                // Two lanes: the lower and the upper k.
                (16 | 32, 8) => (2 * selector + i / 4, 16 * (row / 8) + 4 * (i % 4)),
                // Two lanes: row g and row g + 8.
                (4 | 8, 8) => (2 * selector + row / 8, 4 * i),
                // All four: rows, then k.
                _ => (row / 8 + 2 * (i / 8), 4 * (i % 8)),
            };
            words[4 * (row % 8) + lane] |= code << shift;
        }
    }
    words
}

/// Words of a fragment of 16-row (or 8-column) tiles in the layout all shapes share.
pub(crate) fn fragment(tile: &[Vec<i32>], kind: Kind, halves: usize) -> Vec<[u32; 32]> {
    let per_word = 32 / kind.bits;
    let words = halves * tile[0].len() / (4 * per_word);
    (0..words)
        .map(|index| {
            std::array::from_fn(|lane| {
                let row = 8 * (index % halves) + lane / 4;
                let first = (4 * (index / halves) + lane % 4) * per_word;
                (0..per_word).fold(0, |word, e| {
                    word | (kind.code)(tile[row][first + e]) << (e * kind.bits)
                })
            })
        })
        .collect()
}

/// Runs `k(in, out)`: `inputs` are per-lane words, loaded to `%r0…`; `outputs` words come back.
fn run(body: &str, inputs: &[[u32; 32]], outputs: usize, mode: MmaMode) -> Vec<[u32; 32]> {
    let loads: String = (0..inputs.len())
        .map(|i| format!("ld.global.u32 %r{i}, [%rd3+{}];\n", 128 * i))
        .collect();
    let stores: String = (0..outputs)
        .map(|i| format!("st.global.u32 [%rd4+{}], %o{i};\n", 128 * i))
        .collect();
    let text = format!(
        ".visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %r<64>; .reg .b32 %o<16>; .reg .b32 %l; .reg .b64 %rd<8>;\n\
         mov.u32 %l, %laneid; ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n\
         mad.wide.u32 %rd3, %l, 4, %rd1; mad.wide.u32 %rd4, %l, 4, %rd2;\n\
         {loads}{body}\n{stores}ret; }}"
    );
    let module = module(&text);
    assert!(module.refused().is_empty(), "{}", module.refused()["k"]);
    let bytes: Vec<u8> = inputs
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let mut memory = Memory::new();
    let input = memory.alloc(bytes.len() as u64).expect("memory");
    memory.write(input, &bytes).expect("in bounds");
    let out = memory.alloc(128 * outputs as u64).expect("memory");
    let config = Config {
        mma_mode: mode,
        ..Config::default()
    };
    Launch::new("k")
        .block([32, 1, 1])
        .config(config)
        .params(Params::new().pointer(input).pointer(out))
        .run(&module, &mut memory)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let bytes = memory
        .read_vec(out, 128 * outputs as u64)
        .expect("in bounds");
    let words: Vec<u32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|w| u32::from_le_bytes(*w))
        .collect();
    words.as_chunks::<32>().0.to_vec()
}

fn names(prefix: &str, range: std::ops::Range<usize>) -> String {
    let names: Vec<String> = range.map(|i| format!("{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

fn check_mma(a_name: &str, b_name: &str, d_name: &str, k: usize, selector: usize, ordered: bool) {
    let (a_kind, b_kind) = (kind(a_name), kind(b_name));
    let mut random = Random(k as u32 * 7 + selector as u32);
    let a = sparse_a(&mut random, a_kind, 16, k);
    let b: Vec<Vec<i32>> = (0..8)
        .map(|_| {
            let low = if b_kind.signed { 3 } else { 0 };
            (0..k)
                .map(|_| random.next(7 - (3 - low) as u32) as i32 - low)
                .collect()
        })
        .collect();
    let (a_words, b_words) = (fragment(&a.stored, a_kind, 2), fragment(&b, b_kind, 1));
    let meta = metadata(&a.chunks, a_kind.bits, selector);
    let half = d_name == "f16";
    let code = |x: i32| match d_name {
        "s32" => x as u32,
        "f16" => f16::from_f32(x as f32).to_bits().into(),
        _ => (x as f32).to_bits(),
    };
    // C counts its elements, so that a misplaced one shows.
    let c = |row: usize, column: usize| (row * 8 + column) as i32;
    let place = |register: usize, lane: usize| {
        (lane / 4 + 8 * (register / 2), 2 * (lane % 4) + register % 2)
    };
    let pack = |value: &dyn Fn(usize, usize) -> i32| -> Vec<[u32; 32]> {
        let single: Vec<[u32; 32]> = (0..4)
            .map(|register| {
                std::array::from_fn(|lane| {
                    let (row, column) = place(register, lane);
                    code(value(row, column))
                })
            })
            .collect();
        match half {
            false => single,
            true => single
                .as_chunks::<2>()
                .0
                .iter()
                .map(|[low, high]| std::array::from_fn(|lane| high[lane] << 16 | low[lane]))
                .collect(),
        }
    };
    let c_words = pack(&c);
    let (na, nb, nc) = (a_words.len(), b_words.len(), c_words.len());
    let inputs = [&a_words[..], &b_words, &c_words, &[meta]].concat();
    let sp = if ordered {
        "sp::ordered_metadata"
    } else {
        "sp"
    };
    let body = format!(
        "mma.{sp}.sync.aligned.m16n8k{k}.row.col.{d_name}.{a_name}.{b_name}.{d_name} {}, {}, {}, {}, %r{}, {selector};",
        names("%o", 0..nc),
        names("%r", 0..na),
        names("%r", na..na + nb),
        names("%r", na + nb..na + nb + nc),
        na + nb + nc,
    );
    let expected = pack(&|row, column| {
        c(row, column) + (0..k).map(|i| a.dense[row][i] * b[column][i]).sum::<i32>()
    });
    for mode in [MmaMode::Fast, MmaMode::Exact] {
        assert_eq!(run(&body, &inputs, nc, mode), expected, "{body} {mode:?}");
    }
}

#[test]
fn mma_sp_places_every_type_as_the_isa_says() {
    for (ordered, float) in [(false, "f16"), (true, "f32")] {
        for selector in 0..4 {
            check_mma("f16", "f16", float, 16, selector, ordered);
            check_mma("bf16", "bf16", "f32", 16, selector, ordered);
            check_mma("tf32", "tf32", "f32", 8, selector, ordered);
        }
        for selector in 0..2 {
            check_mma("f16", "f16", float, 32, selector, ordered);
            check_mma("bf16", "bf16", "f32", 32, selector, ordered);
            check_mma("tf32", "tf32", "f32", 16, selector, ordered);
            check_mma("s8", "u8", "s32", 32, selector, ordered);
            check_mma("u4", "s4", "s32", 64, selector, ordered);
        }
        check_mma("u8", "s8", "s32", 64, 0, ordered);
        check_mma("s4", "u4", "s32", 128, 0, ordered);
        check_mma("e4m3", "e5m2", "f32", 64, 0, ordered);
        check_mma("e5m2", "e4m3", float, 64, 0, ordered);
    }
}

/// A zero of A does not see the element of B it would meet: infinity there is not NaN.
#[test]
fn unselected_elements_of_b_do_not_count() {
    let infinite = [0x7c00_7c00u32; 32];
    let zero = [0; 32];
    // Every chunk keeps elements 0 and 1; B has infinity at 2 and 3 of each.
    let b: [u32; 32] = std::array::from_fn(|lane| {
        if lane % 2 == 1 {
            infinite[0]
        } else {
            0x3c00_3c00
        }
    });
    let ones = [0x3c00_3c00; 32];
    let meta = [0x4444_4444; 32];
    let body = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \
        {%o0, %o1, %o2, %o3}, {%r0, %r1}, {%r2, %r3}, {%r4, %r4, %r4, %r4}, %r5, 0;";
    let out = run(body, &[ones, ones, b, b, zero, meta], 4, MmaMode::Fast);
    assert_eq!(out, vec![[8f32.to_bits(); 32]; 4]);
}

/// Where a tile ends, CUTLASS has zeros for A, B and the metadata.
#[test]
fn undefined_metadata_of_zeros_adds_nothing() {
    for form in [
        "sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    ] {
        let body = format!(
            "mma.{form} {{%o0, %o1, %o2, %o3}}, {{%r0, %r0}}, {{%r1, %r1}}, {{%r1, %r1, %r1, %r1}}, %r0, 0;"
        );
        let two = 2f32.to_bits();
        let out = run(&body, &[[0; 32], [two; 32]], 4, MmaMode::Fast);
        assert_eq!(out, vec![[two; 32]; 4], "{form}");
        // Which element of B is meant would matter.
        let infinite = [f32::INFINITY.to_bits(); 32];
        let out = run(&body, &[[0; 32], infinite], 4, MmaMode::Fast);
        assert!(
            out.iter()
                .flatten()
                .all(|&bits| f32::from_bits(bits).is_nan())
        );
    }
}

/// Of rows with undefined metadata nothing is known, and the others are as ever.
#[test]
fn undefined_metadata_spoils_its_row() {
    let body = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \
        {%o0, %o1, %o2, %o3}, {%r0, %r0}, {%r0, %r0}, {%r1, %r1, %r1, %r1}, %r2, 0;";
    let ones = [0x3c00_3c00; 32];
    let mut metadata = [0x4444_4444; 32];
    // Row 2, of the lanes 8 to 11.
    metadata[8] = 0x4444_444f;
    let out = run(body, &[ones, [0; 32], metadata], 4, MmaMode::Fast);
    for (register, lanes) in out.iter().enumerate() {
        for (lane, &bits) in lanes.iter().enumerate() {
            let value = f32::from_bits(bits);
            let spoilt = register < 2 && lane / 4 == 2;
            assert!(
                value == 8.0 && !spoilt || value.is_nan() && spoilt,
                "{register} {lane}"
            );
        }
    }
}

#[test]
fn selectors_that_do_not_exist_fault() {
    let four = "{%r0, %r0, %r0, %r0}";
    let body = format!(
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {{%o0, %o1, %o2, %o3}}, {four}, {four}, {four}, %r0, 2;"
    );
    let launched = || run(&body, &[[0; 32]], 4, MmaMode::Fast);
    let error = std::panic::catch_unwind(launched).expect_err("a fault");
    let text = error.downcast_ref::<String>().expect("a message");
    assert!(text.contains("no selector 2"), "{text}");
}

/// Lane, element → (row, column) of C and D of m8n8k4, by the ISA's formulas.
fn octet_place(f32s: bool, lane: usize, i: usize) -> (usize, usize) {
    let upper = if lane < 16 { 0 } else { 4 };
    match f32s {
        true => (upper + (lane & 1) + (i & 2), (i & 4) + (lane & 2) + (i & 1)),
        false => (upper + lane % 4, i),
    }
}

#[test]
fn the_oldest_product_in_all_its_layouts() {
    let f16_code = |x: i32| u32::from(f16::from_f32(x as f32).to_bits());
    for (layouts, types) in ["row.col", "row.row", "col.col", "col.row"]
        .iter()
        .flat_map(|layouts| [("f32", "f32"), ("f16", "f16"), ("f32", "f16")].map(|t| (*layouts, t)))
    {
        let mut random = Random(99);
        let mut tile = |rows: usize, columns: usize| -> Vec<Vec<Vec<i32>>> {
            let mut row = || (0..columns).map(|_| random.next(9) as i32 - 4).collect();
            (0..4).map(|_| (0..rows).map(|_| row()).collect()).collect()
        };
        let (a, b, c) = (tile(8, 4), tile(4, 8), tile(8, 8));
        let operand = |tiles: &[Vec<Vec<i32>>], across: bool| -> Vec<[u32; 32]> {
            // Along k one lane has four elements of one row; across it, four rows of one k.
            let element = |lane: usize, i: usize| {
                let (t, upper) = (lane % 4, if lane < 16 { 0 } else { 4 });
                let (mn, k) = if across {
                    (i + upper, t)
                } else {
                    (t + upper, i)
                };
                let q = lane % 16 / 4;
                f16_code(if tiles[0].len() == 8 {
                    tiles[q][mn][k]
                } else {
                    tiles[q][k][mn]
                })
            };
            (0..2)
                .map(|r| std::array::from_fn(|l| element(l, 2 * r + 1) << 16 | element(l, 2 * r)))
                .collect()
        };
        let (d_name, c_name) = types;
        let sums = |name: &str, value: &dyn Fn(usize, usize, usize) -> i32| -> Vec<[u32; 32]> {
            let f32s = name == "f32";
            let at = |lane: usize, i: usize| {
                let (row, column) = octet_place(f32s, lane, i);
                value(lane % 16 / 4, row, column)
            };
            match f32s {
                true => (0..8)
                    .map(|i| std::array::from_fn(|lane| (at(lane, i) as f32).to_bits()))
                    .collect(),
                false => (0..4)
                    .map(|r| {
                        std::array::from_fn(|lane| {
                            f16_code(at(lane, 2 * r + 1)) << 16 | f16_code(at(lane, 2 * r))
                        })
                    })
                    .collect(),
            }
        };
        let c_words = sums(c_name, &|q, row, column| c[q][row][column]);
        let expected = sums(d_name, &|q, row, column| {
            c[q][row][column] + (0..4).map(|k| a[q][row][k] * b[q][k][column]).sum::<i32>()
        });
        let (a_col, b_row) = (layouts.starts_with("col"), layouts.ends_with("row"));
        let inputs = [operand(&a, a_col), operand(&b, b_row), c_words.clone()].concat();
        let body = format!(
            "mma.sync.aligned.m8n8k4.{layouts}.{d_name}.f16.f16.{c_name} {}, {{%r0, %r1}}, {{%r2, %r3}}, {};",
            names("%o", 0..expected.len()),
            names("%r", 4..4 + c_words.len()),
        );
        for mode in [MmaMode::Fast, MmaMode::Exact] {
            assert_eq!(
                run(&body, &inputs, expected.len(), mode),
                expected,
                "{body}"
            );
        }
    }
}
