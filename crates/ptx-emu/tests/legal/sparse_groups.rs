//! `wgmma.mma_async.sp`, A from shared memory and from registers, against plain sums.

use half::f16;
use ptx_emu::{Config, Launch, LaunchError, Memory, MmaMode, Params};

use crate::module;
use crate::sparse::{Kind, Random, fragment, kind, metadata, sparse_a};

const N: usize = 16;
/// Bytes of the tiles in shared memory: A's 2048, then B's.
const TILE: usize = 8192;

/// How a tile lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Plain,
    Swizzled128,
}

impl Layout {
    /// Byte of (row, byte in the row) for rows of `chunks` times 16 bytes.
    fn place(self, row: usize, byte: usize, chunks: usize) -> usize {
        let (chunk, within) = (byte / 16, byte % 16);
        match self {
            // Core matrices of eight rows of 16 bytes, along k first.
            Self::Plain => row / 8 * chunks * 128 + chunk * 128 + row % 8 * 16 + within,
            Self::Swizzled128 => row * 128 + (chunk ^ (row % 8)) * 16 + within,
        }
    }

    /// Descriptor bits but for the start.
    fn descriptor(self, chunks: u64) -> u64 {
        match self {
            Self::Plain => (128 >> 4) << 16 | ((chunks * 128) >> 4) << 32,
            Self::Swizzled128 => 1 << 16 | (1024 >> 4) << 32 | 1 << 62,
        }
    }
}

fn write_tile(bytes: &mut [u8], rows: &[Vec<i32>], kind: Kind, layout: Layout, chunks: usize) {
    for (r, row) in rows.iter().enumerate() {
        for (i, &x) in row.iter().enumerate() {
            let code = (kind.code)(x).to_le_bytes();
            let width = kind.bits / 8;
            let at = layout.place(r, i * width, chunks);
            bytes[at..at + width].copy_from_slice(&code[..width]);
        }
    }
}

struct Case {
    types: (&'static str, &'static str, &'static str),
    selector: usize,
    layout: Layout,
    registers: bool,
}

/// The kernel: tiles and metadata from `in`, accumulators to `out`.
fn text(case: &Case, k: usize) -> String {
    let (d, a, b) = case.types;
    let words = if d == "f16" { N / 4 } else { N / 2 };
    let regs: Vec<String> = (0..words).map(|i| format!("%d{i}")).collect();
    let zero: String = regs.iter().map(|d| format!("mov.b32 {d}, 0;\n")).collect();
    let store: String = (0..words)
        .map(|i| format!("st.global.b32 [%rd4+{}], %d{i};\n", 512 * i))
        .collect();
    let a_operand = match case.registers {
        true => "{%r10, %r11, %r12, %r13}",
        false => "%rd10",
    };
    let flags = match (a, case.registers) {
        ("f16" | "bf16", true) => ", 1, 1, 0",
        ("f16" | "bf16", false) => ", 1, 1, 0, 0",
        ("s8" | "u8", _) => "",
        _ => ", 1, 1",
    };
    format!(
        ".visible .entry k(.param .u64 in, .param .u64 out) {{
         .shared .align 1024 .b8 tile[{TILE}];
         .reg .b32 %r<32>; .reg .b32 %d<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;
         mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
         mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 4, %rd2;
         mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r4, 0; mov.u64 %rd5, %rd3;
         LOOP: ld.global.u32 %r5, [%rd5]; st.shared.u32 [%r3], %r5; add.u64 %rd5, %rd5, 512;
         add.u32 %r3, %r3, 512; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, {}; @%p1 bra LOOP;
         ld.global.u32 %r6, [%rd5];
         ld.global.u32 %r10, [%rd5+512]; ld.global.u32 %r11, [%rd5+1024];
         ld.global.u32 %r12, [%rd5+1536]; ld.global.u32 %r13, [%rd5+2048];
         fence.proxy.async.shared::cta; bar.sync 0;
         shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd9, %r7; or.b64 %rd10, %rd9, {};
         add.u64 %rd11, %rd9, 128; or.b64 %rd11, %rd11, {};
         {zero}
         wgmma.fence.sync.aligned;
         wgmma.mma_async.sp.sync.aligned.m64n{N}k{k}.{d}.{a}.{b} {{{}}}, {a_operand}, %rd11, %r6, {}, 0{flags};
         wgmma.mma_async.sp.sync.aligned.m64n{N}k{k}.{d}.{a}.{b} {{{}}}, {a_operand}, %rd11, %r6, {}, 1{flags};
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
         {store} ret; }}",
        TILE / 512,
        Layout::Plain.descriptor(2),
        case.layout.descriptor(4),
        regs.join(", "),
        case.selector,
        regs.join(", "),
        case.selector,
    )
}

fn check(case: &Case) {
    let (d, a_name, b_name) = case.types;
    let (a_kind, b_kind) = (kind(a_name), kind(b_name));
    let k = 512 / a_kind.bits;
    let mut random = Random(k as u32 + case.selector as u32);
    let a = sparse_a(&mut random, a_kind, 64, k);
    let low = if b_kind.signed { 2 } else { 0 };
    let b: Vec<Vec<i32>> = (0..N)
        .map(|_| (0..k).map(|_| random.next(5) as i32 - low).collect())
        .collect();
    let mut bytes = vec![0; TILE];
    write_tile(&mut bytes[..2048], &a.stored, a_kind, Layout::Plain, 2);
    write_tile(&mut bytes[2048..], &b, b_kind, case.layout, 4);
    let warps = a.chunks.chunks(16);
    let metadata: Vec<u32> = warps
        .flat_map(|rows| metadata(rows, a_kind.bits, case.selector))
        .collect();
    let slabs: Vec<_> = a
        .stored
        .chunks(16)
        .map(|rows| fragment(rows, a_kind, 2))
        .collect();
    let registers = (0..4).flat_map(|r| slabs.iter().flat_map(move |slab| slab[r]));
    let words = metadata.into_iter().chain(registers);
    bytes.extend(words.flat_map(u32::to_le_bytes));

    let text = text(case, k);
    let module = module(&text);
    assert!(module.refused().is_empty(), "{}", module.refused()["k"]);
    for mma_mode in [MmaMode::Fast, MmaMode::Exact] {
        let mut memory = Memory::new();
        let input = memory.alloc(bytes.len() as u64).expect("memory");
        memory.write(input, &bytes).expect("in bounds");
        let out = memory.alloc(8192).expect("memory");
        let config = Config {
            mma_mode,
            ..Config::default()
        };
        Launch::new("k")
            .block([128, 1, 1])
            .config(config)
            .params(Params::new().pointer(input).pointer(out))
            .run(&module, &mut memory)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let found = memory.read_vec(out, 8192).expect("in bounds");
        let word = |register: usize, thread: usize| {
            let at = 4 * (register * 128 + thread);
            u32::from_le_bytes(std::array::from_fn(|i| found[at + i]))
        };
        for (thread, i) in (0..128).flat_map(|t| (0..N / 2).map(move |i| (t, i))) {
            let lane = thread % 32;
            let row = 16 * (thread / 32) + lane / 4 + 8 * (i / 2 % 2);
            let column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
            // Two instructions: the second adds to the first.
            let sum = 2
                * (0..k)
                    .map(|at| a.dense[row][at] * b[column][at])
                    .sum::<i32>();
            let got = match d {
                "s32" => word(i, thread) as i32,
                "f16" => {
                    let half = (word(i / 2, thread) >> (16 * (i % 2))) as u16;
                    f16::from_bits(half).to_f32() as i32
                }
                _ => f32::from_bits(word(i, thread)) as i32,
            };
            assert_eq!(
                got, sum,
                "{:?} row {row} column {column}\n{text}",
                case.types
            );
        }
    }
}

#[test]
fn every_type_from_shared_memory_and_from_registers() {
    for registers in [false, true] {
        for layout in [Layout::Plain, Layout::Swizzled128] {
            for (types, selectors) in [
                (("f32", "f16", "f16"), 2),
                (("f16", "f16", "f16"), 1),
                (("f32", "bf16", "bf16"), 1),
                (("f32", "tf32", "tf32"), 2),
                (("s32", "s8", "u8"), 1),
                (("f32", "e4m3", "e5m2"), 1),
                (("f16", "e5m2", "e4m3"), 1),
            ] {
                for selector in 0..selectors {
                    check(&Case {
                        types,
                        selector,
                        layout,
                        registers,
                    });
                }
            }
        }
    }
}

#[test]
fn a_selector_or_a_swizzle_that_does_not_exist_faults() {
    let case = Case {
        types: ("f32", "f16", "f16"),
        selector: 2,
        layout: Layout::Plain,
        registers: false,
    };
    let narrow = text(&case, 32).replace(", %r6, 2,", ", %r6, 0,").replace(
        "add.u64 %rd11, %rd9, 128;",
        "add.u64 %rd11, %rd9, 128; or.b64 %rd11, %rd11, 0xc000000000000000;",
    );
    for (text, message) in [
        (text(&case, 32), "has no selector 2"),
        (narrow, "a 32-byte swizzle has 32"),
    ] {
        let mut memory = Memory::new();
        let input = memory.alloc(16384).expect("memory");
        let launch = Launch::new("k")
            .block([128, 1, 1])
            .params(Params::new().pointer(input).pointer(input));
        let Err(LaunchError::Fault(fault)) = launch.run(&module(&text), &mut memory) else {
            panic!("{message}: no fault");
        };
        assert!(fault.to_string().contains(message), "{fault}");
    }
}
