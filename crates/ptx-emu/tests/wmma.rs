//! `wmma` from memory to memory, in every shape, type and layout, against plain sums.

use ptx_emu::{Launch, Memory, Module, Params};

/// One combination of types, as PTX names them, with how elements are written and read.
#[derive(Clone, Copy)]
struct Types {
    a: &'static str,
    sum: &'static str,
    /// Bytes of an operand and of a sum.
    bytes: (usize, usize),
    k: usize,
    write: fn(i32) -> u64,
    write_sum: fn(i32) -> u64,
}

fn half(x: i32) -> u64 {
    half::f16::from_f32(x as f32).to_bits().into()
}

fn bfloat(x: i32) -> u64 {
    half::bf16::from_f32(x as f32).to_bits().into()
}

fn single(x: i32) -> u64 {
    (x as f32).to_bits().into()
}

fn double(x: i32) -> u64 {
    f64::from(x).to_bits()
}

fn integer(x: i32) -> u64 {
    u64::from(x as u32)
}

fn types(a: &'static str, sum: &'static str, k: usize) -> Types {
    let (bytes_a, write): (usize, fn(i32) -> u64) = match a {
        "f16" => (2, half),
        "bf16" => (2, bfloat),
        "tf32" => (4, single),
        "f64" => (8, double),
        _ => (1, integer),
    };
    let (bytes_sum, write_sum): (usize, fn(i32) -> u64) = match sum {
        "f16" => (2, half),
        "f32" => (4, single),
        "f64" => (8, double),
        _ => (4, integer),
    };
    Types {
        a,
        sum,
        bytes: (bytes_a, bytes_sum),
        k,
        write,
        write_sum,
    }
}

fn registers(name: &str, count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Rows × columns in memory, `stride` elements apart.
struct Matrix {
    rows: usize,
    columns: usize,
    by_column: bool,
    stride: usize,
}

impl Matrix {
    fn new(rows: usize, columns: usize, by_column: bool) -> Self {
        let dense = if by_column { rows } else { columns };
        Self {
            rows,
            columns,
            by_column,
            stride: dense + 8,
        }
    }

    fn at(&self, row: usize, column: usize) -> usize {
        match self.by_column {
            true => column * self.stride + row,
            false => row * self.stride + column,
        }
    }

    fn bytes(&self, each: usize, value: impl Fn(usize, usize) -> u64) -> Vec<u8> {
        let lines = if self.by_column {
            self.columns
        } else {
            self.rows
        };
        let mut bytes = vec![0xee; lines * self.stride * each];
        for row in 0..self.rows {
            for column in 0..self.columns {
                let at = self.at(row, column) * each;
                let word = value(row, column).to_le_bytes();
                bytes[at..at + each].copy_from_slice(&word[..each]);
            }
        }
        bytes
    }

    fn layout(&self) -> &'static str {
        if self.by_column { "col" } else { "row" }
    }
}

fn x(row: usize, k: usize) -> i32 {
    ((row * 7 + k * 3) % 5) as i32
}

fn y(k: usize, column: usize) -> i32 {
    ((k * 5 + column * 2) % 4) as i32
}

fn z(row: usize, column: usize) -> i32 {
    (row * 3 + column) as i32
}

fn run(types: Types, (m, n): (usize, usize), columns: [bool; 3]) {
    let k = types.k;
    let a = Matrix::new(m, k, columns[0]);
    let b = Matrix::new(k, n, columns[1]);
    let c = Matrix::new(m, n, columns[2]);
    let file = if types.sum == "f64" { "d" } else { "r" };
    let mut first = 0;
    let mut take = |count: usize| {
        first += count;
        let all = (first - count..first).map(|i| format!("%{file}{i}"));
        format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
    };
    // f16 operands have eight registers in every shape, all others what they fill.
    let operand = |elements: usize| match types.a {
        "f16" => 8,
        "f64" => 1,
        _ => elements * types.bytes.0 / 128,
    };
    let (ra, rb) = (take(operand(m * k)), take(operand(k * n)));
    let sums = match types.sum {
        "f64" => 2,
        _ => m * n * types.bytes.1 / 128,
    };
    let (rc, rd) = (take(sums), take(sums));
    let shape = format!("m{m}n{n}k{k}");
    let (la, lb, lc) = (a.layout(), b.layout(), c.layout());
    let kinds = match types.a {
        "f16" => format!("{0}.{0}", types.sum),
        operand => format!("{0}.{operand}.{operand}.{0}", types.sum),
    };
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{\n\
         .reg .b64 %p<4>; .reg .b32 %r<64>; .reg .f64 %d<16>;\n\
         ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c];\n\
         ld.param.u64 %p3, [d];\n\
         wmma.load.a.sync.aligned.{la}.{shape}.{ta} {ra}, [%p0], {sa};\n\
         wmma.load.b.sync.aligned.{lb}.{shape}.global.{ta} {rb}, [%p1], {sb};\n\
         wmma.load.c.sync.aligned.{lc}.{shape}.global.{ts} {rc}, [%p2], {sc};\n\
         wmma.mma.sync.aligned.{la}.{lb}.{shape}.{kinds} {rd}, {ra}, {rb}, {rc};\n\
         wmma.store.d.sync.aligned.{lc}.{shape}.global.{ts} [%p3], {rd}, {sc};\n\
         ret;\n}}\n",
        ta = types.a,
        ts = types.sum,
        sa = a.stride,
        sb = b.stride,
        sc = c.stride,
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = Memory::new();
    let empty = c.bytes(types.bytes.1, |_, _| 0);
    let inputs = [
        a.bytes(types.bytes.0, |r, k| (types.write)(x(r, k))),
        b.bytes(types.bytes.0, |k, c| (types.write)(y(k, c))),
        c.bytes(types.bytes.1, |r, c| (types.write_sum)(z(r, c))),
        empty.clone(),
    ];
    let mut params = Params::new();
    let mut out = None;
    for bytes in &inputs {
        let at = memory.alloc(bytes.len() as u64).expect("memory");
        memory.write(at, bytes).expect("a write");
        params = params.pointer(at);
        out = Some(at);
    }
    let launch = Launch::new("k").block([32, 1, 1]).params(params);
    let report = launch.run(&module, &mut memory).expect("a run");
    assert_eq!(report.counters.mma_flops, (2 * m * n * k) as u64);
    let got = memory
        .read_vec(out.expect("an output"), empty.len() as u64)
        .expect("a read");
    let want = c.bytes(types.bytes.1, |row, column| {
        let dot: i32 = (0..k).map(|k| x(row, k) * y(k, column)).sum();
        (types.write_sum)(dot + z(row, column))
    });
    assert!(got == want, "{shape} {kinds} {la} {lb} {lc}");
}

#[test]
fn every_shape_type_and_layout_multiplies() {
    let three = [(16, 16), (32, 8), (8, 32)];
    let wide = [
        types("f16", "f32", 16),
        types("f16", "f16", 16),
        types("bf16", "f32", 16),
        types("s8", "s32", 16),
        types("u8", "s32", 16),
    ];
    let mut cases: Vec<(Types, (usize, usize))> = wide
        .into_iter()
        .flat_map(|types| three.map(|shape| (types, shape)))
        .collect();
    cases.push((types("tf32", "f32", 8), (16, 16)));
    cases.push((types("f64", "f64", 4), (8, 8)));
    for (types, shape) in cases {
        for layouts in 0..8 {
            run(types, shape, [0, 1, 2].map(|bit| layouts >> bit & 1 == 1));
        }
    }
}

/// Eight 4-bit ones in every word of A; B selects a word of its column.
#[test]
fn elements_smaller_than_a_byte_multiply_too() {
    let cases = [
        ("s4", "m8n8k32", "s32.s4.s4.s32", "", 8 * 32 / 2, 32),
        (
            "b1",
            "m8n8k128",
            "s32.b1.b1.s32",
            ".and.popc",
            8 * 128 / 8,
            128,
        ),
    ];
    for (ty, shape, kinds, op, bytes, k) in cases {
        let text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 d) {{\n\
             .reg .b64 %p<4>; .reg .b32 %r<8>;\n\
             ld.param.u64 %p0, [a]; ld.param.u64 %p1, [d];\n\
             wmma.load.a.sync.aligned.row.{shape}.{ty} {{%r0}}, [%p0];\n\
             wmma.load.b.sync.aligned.col.{shape}.{ty} {{%r1}}, [%p0], {k};\n\
             mov.b32 %r2, 5; mov.b32 %r3, 5;\n\
             wmma.mma{op}.sync.aligned.row.col.{shape}.{kinds} {r}, {{%r0}}, {{%r1}}, {r};\n\
             wmma.store.d.sync.aligned.row.{shape}.s32 [%p1], {r};\nret;\n}}\n",
            r = "{%r2, %r3}",
        );
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut memory = Memory::new();
        let a = memory.alloc(bytes).expect("memory");
        let d = memory.alloc(256).expect("memory");
        // Row r of A (and column r of B) is ones in its first r + 1 bytes.
        let row = bytes / 8;
        for r in 0..8 {
            let ones = if ty == "s4" { 0x11 } else { 0xff };
            memory.fill(a.offset(r * row), 0, row).expect("a fill");
            memory.fill(a.offset(r * row), ones, r + 1).expect("a fill");
        }
        let params = Params::new().pointer(a).pointer(d);
        let launch = Launch::new("k").block([32, 1, 1]).params(params);
        launch.run(&module, &mut memory).expect("a run");
        let got = memory.read_vec(d, 256).expect("a read");
        for r in 0..8 {
            for c in 0..8 {
                let at = 4 * (8 * r + c);
                let sum = i32::from_le_bytes(got[at..at + 4].try_into().expect("four bytes"));
                let per_byte = if ty == "s4" { 2 } else { 8 };
                assert_eq!(sum, 5 + per_byte * (r.min(c) as i32 + 1), "{ty} {r} {c}");
            }
        }
    }
}

#[test]
fn fragments_go_through_shared_memory_and_mixed_sums() {
    // D in f16 from C in f32, and back: the value must survive.
    let eight = registers("r", 8);
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 out) {{\n\
         .reg .b64 %p<2>; .reg .b32 %r<8>; .reg .b32 %f<8>; .reg .b32 %h<4>; .reg .b32 %s<2>;\n\
         .shared .align 16 .b8 tile[512];\n\
         ld.param.u64 %p0, [out]; mov.u32 %s0, tile;\n\
         {zero}\n\
         mov.b32 %h0, 0x40003c00; mov.b32 %h1, %h0; mov.b32 %h2, %h0; mov.b32 %h3, %h0;\n\
         wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 {f}, {eight}, {eight}, {h};\n\
         wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 {h}, {eight}, {eight}, {f};\n\
         wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%s0], {h};\n\
         bar.sync 0;\n\
         wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {h}, [%s0], 16;\n\
         wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%p0], {h}, 16;\nret;\n}}\n",
        zero = (0..8)
            .map(|i| format!("mov.b32 %r{i}, 0;"))
            .collect::<String>(),
        f = registers("f", 8),
        h = registers("h", 4),
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = Memory::new();
    let out = memory.alloc(512).expect("memory");
    let launch = Launch::new("k").block([32, 1, 1]);
    let launch = launch.params(Params::new().pointer(out));
    launch.run(&module, &mut memory).expect("a run");
    let got = memory.read_vec(out, 512).expect("a read");
    for pair in got.chunks(4) {
        assert_eq!(pair, [0x00, 0x3c, 0x00, 0x40]);
    }
}
