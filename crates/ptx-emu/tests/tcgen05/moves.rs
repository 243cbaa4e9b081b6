//! `tcgen05.ld`, `st`, `cp` and `shift`: every shape, word by word.

use super::{Bench, Random, Tile};
use ptx_emu::MmaMode;

/// Fills columns of each lane with `lane << 16 | column`, and lets `text` store registers.
fn filled(columns: u32, stored: u32, text: String) -> Bench {
    let before = format!(
        "mov.u32 %r18, %r8; shl.b32 %r19, %r1, 16; add.u32 %r30, %r19, {columns};\n\
         FILL: {}tcgen05.st.sync.aligned.32x32b.x8.b32 [%r18], \
         {{%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}};\n\
         add.u32 %r18, %r18, 8; add.u32 %r19, %r19, 8; setp.lt.u32 %p5, %r19, %r30;\n\
         @%p5 bra FILL; tcgen05.wait::st.sync.aligned;\n",
        (0..8)
            .map(|i| format!("add.u32 %r{}, %r19, {i};\n", 20 + i))
            .collect::<String>()
    );
    Bench {
        before,
        columns: stored.next_multiple_of(8),
        after: Some(text),
        ..Bench::default()
    }
}

fn list(count: u32) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%r{}", 40 + i)).collect();
    format!("{{{}}}", names.join(","))
}

fn stored(count: u32) -> String {
    (0..count)
        .map(|i| format!("st.global.b32 [%rd4+{}], %r{};\n", 4 * i, 40 + i))
        .collect()
}

/// Lane and column of register j in thread t.
type Place = fn(u32, u32) -> (u32, u32);

/// A shape: registers and columns for each time, the most times, and where a register lies; the
/// second half of the last begins as many columns on as its first has.
const SHAPES: [(&str, u32, u32, u32, Place); 5] = [
    ("32x32b", 1, 1, 128, |t, j| (t, j)),
    ("16x64b", 1, 2, 128, |t, j| {
        (t / 4 + 8 * (t % 2), t / 2 % 2 + 2 * j)
    }),
    ("16x128b", 2, 4, 64, |t, j| {
        (t / 4 + 8 * (j % 2), t % 4 + 4 * (j / 2))
    }),
    ("16x256b", 4, 8, 32, |t, j| {
        (t / 4 + 8 * (j / 2 % 2), 2 * (t % 4) + j % 2 + 8 * (j / 4))
    }),
    ("16x32bx2", 1, 1, 128, |t, j| (t % 16, j)),
];

/// One form of a move.
struct Move {
    name: String,
    registers: u32,
    /// Columns it reaches.
    reach: u32,
    /// Of 16-bit halves: two columns for each that it would have.
    halves: bool,
    split: u32,
    place: Place,
}

impl Move {
    /// Every shape, number of times and packing that fits into what a test fills.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (shape, each, wide, most, place) in SHAPES {
            for times in (0..8).map(|power| 1 << power).filter(|n| *n <= most) {
                for halves in [false, true] {
                    let columns = wide * times * if halves { 2 } else { 1 };
                    let split = if shape == "16x32bx2" { columns } else { 0 };
                    all.push(Self {
                        name: format!("{shape}.x{times}"),
                        registers: each * times,
                        reach: columns + split,
                        halves,
                        split,
                        place,
                    });
                }
            }
        }
        all.retain(|form| form.reach <= 256);
        all
    }

    /// Lanes and columns of the words that register j of a thread has parts of.
    fn words(&self, thread: u32, j: u32) -> Vec<(u32, u32)> {
        let t = thread % 32;
        let (lane, column) = (self.place)(t, j);
        let (lane, base) = (thread / 32 * 32 + lane, t / 16 * self.split);
        match self.halves {
            false => vec![(lane, base + column)],
            true => vec![(lane, base + 2 * column), (lane, base + 2 * column + 1)],
        }
    }

    fn operand(&self) -> String {
        match self.split {
            0 => String::new(),
            columns => format!(", {columns}"),
        }
    }
}

#[test]
fn loads_find_the_words_of_their_shape() {
    for form in Move::all() {
        let uppers: &[u32] = if form.name.starts_with("32") {
            &[0]
        } else {
            &[0, 16]
        };
        for upper in uppers {
            let pack = if form.halves { ".pack::16b" } else { "" };
            let text = format!(
                "add.u32 %r8, %r8, {:#x};\ntcgen05.ld.sync.aligned.{}{pack}.b32 {}, [%r8]{};\n\
                 tcgen05.wait::ld.sync.aligned;\n{}",
                upper << 16,
                form.name,
                list(form.registers),
                form.operand(),
                stored(form.registers)
            );
            let bench = filled(form.reach.next_multiple_of(8), form.registers, text);
            let found = bench.words(MmaMode::Fast);
            for thread in 0..128 {
                for j in 0..form.registers {
                    let words = form.words(thread, j);
                    let word = |(lane, column): (u32, u32)| (lane + upper) << 16 | column;
                    let expected = match words[..] {
                        [one] => word(one),
                        [low, high] => word(low) & 0xffff | word(high) << 16,
                        _ => unreachable!("one word, or halves of two"),
                    };
                    let found = found[(thread * bench.columns + j) as usize];
                    let Move { name, halves, .. } = &form;
                    assert_eq!(
                        found, expected,
                        "{name} {halves} thread {thread} register {j}"
                    );
                }
            }
        }
    }
}

/// What a store leaves in the columns it reaches, and beside them.
#[test]
fn stores_reach_the_words_of_their_shape() {
    for form in Move::all().into_iter().filter(|form| form.reach <= 64) {
        let unpack = if form.halves { ".unpack::16b" } else { "" };
        let values: String = (0..form.registers)
            .map(|j| format!("mad.lo.u32 %r{}, %r1, 0x10007, {};\n", 40 + j, 0x30005 * j))
            .collect();
        let mut bench = filled(72, 72, String::new());
        bench.after = None;
        bench.before += &format!(
            "{values}tcgen05.st.sync.aligned.{}{unpack}.b32 [%r8]{}, {};\n\
             tcgen05.wait::st.sync.aligned;\n",
            form.name,
            form.operand(),
            list(form.registers),
        );
        let mut expected: Vec<u32> = (0..128u32 * 72)
            .map(|i| ((i / 72) << 16) | (i % 72))
            .collect();
        for thread in 0..128 {
            for j in 0..form.registers {
                let value = (thread * 0x10007u32).wrapping_add(0x30005 * j);
                let words = form.words(thread, j);
                for (half, (lane, column)) in words.iter().enumerate() {
                    expected[(lane * 72 + column) as usize] = match form.halves {
                        false => value,
                        true => value >> (16 * half) & 0xffff,
                    };
                }
            }
        }
        assert!(
            bench.words(MmaMode::Fast) == expected,
            "{}{unpack}",
            form.name
        );
    }
}

/// A copied value may be moved before it is waited for; ptxas knows they are the same.
#[test]
fn plain_moves_of_loaded_registers_are_exempt() {
    let text = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r40}, [%r8+3];\nmov.b32 %r41, %r40;\n\
                tcgen05.wait::ld.sync.aligned;\nst.global.b32 [%rd4], %r41;\n";
    let words = filled(16, 16, text.to_owned()).words(MmaMode::Fast);
    assert_eq!(words[16 * 70], 70 << 16 | 3);
}

/// What a copy of a shape leaves in 16 columns: lane, column, row of the source and byte in it.
fn copied(shape: &str, unpack: &str, swizzle: u32) -> (Vec<u32>, Vec<[u8; 32]>) {
    let mut random = Random(5);
    let rows: Vec<[u8; 32]> = (0..128).map(|_| random.row()).collect();
    let mut input = vec![0; 16384];
    let tile = Tile::coded(0, swizzle);
    for (row, bytes) in (0..).zip(&rows) {
        tile.put(&mut input, row, bytes);
    }
    let mut bench = filled(16, 16, String::new());
    bench.after = None;
    bench.input = input;
    bench.before +=
        "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n";
    bench.issue = format!(
        "{}\ntcgen05.cp.cta_group::1.{shape}{unpack} [%r6+8], %rd9;",
        tile.descriptor("%rd9")
    );
    (bench.words(MmaMode::Fast), rows)
}

fn word(row: &[u8; 32], i: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|b| row[4 * i + b]))
}

/// The 16 bytes that 16 packed codes become: 4 bits in the middle of theirs, 6 at the bottom.
fn widened(bytes: &[u8], bits: usize) -> [u8; 16] {
    let mut chunk = [0; 16];
    chunk.copy_from_slice(bytes);
    let code = |i: usize| (u128::from_le_bytes(chunk) >> (bits * i)) as u8 & ((1 << bits) - 1);
    std::array::from_fn(|i| code(i) << if bits == 4 { 2 } else { 0 })
}

#[test]
fn copies_of_every_shape() {
    /// The row of the source that a lane gets, if it gets any.
    type Row = fn(usize) -> Option<usize>;
    let shapes: [(&str, usize, Row); 6] = [
        ("128x256b", 8, Some),
        ("128x128b", 4, Some),
        ("4x256b", 8, |lane| (lane % 32 == 0).then_some(lane / 32)),
        ("64x128b.warpx2::02_13", 4, |lane| Some(lane % 64)),
        ("64x128b.warpx2::01_23", 4, |lane| {
            Some(lane % 32 + lane / 64 * 32)
        }),
        ("32x128b.warpx4", 4, |lane| Some(lane % 32)),
    ];
    let formats = [("", 8), (".b8x16.b4x16_p64", 4), (".b8x16.b6x16_p32", 6)];
    let all = shapes
        .into_iter()
        .flat_map(|shape| formats.map(|format| (shape, format)));
    for (((shape, columns, row), (unpack, bits)), swizzle) in
        all.zip([0, 2, 4, 6].into_iter().cycle())
    {
        let (words, mut rows) = copied(shape, unpack, swizzle);
        if bits < 8 {
            for chunk in rows.iter_mut().flat_map(|row| row.chunks_exact_mut(16)) {
                let wide = widened(chunk, bits);
                chunk.copy_from_slice(&wide);
            }
        }
        for lane in 0..128 {
            for column in 0..16 {
                let before = (lane << 16 | column) as u32;
                let expected = match row(lane) {
                    Some(row) if (8..8 + columns).contains(&column) => word(&rows[row], column - 8),
                    _ => before,
                };
                assert_eq!(
                    words[16 * lane + column],
                    expected,
                    "{shape}{unpack} swizzle {swizzle}, lane {lane} column {column}"
                );
            }
        }
    }
}

#[test]
fn a_shift_moves_a_quarter_down_by_a_lane() {
    let mut bench = filled(16, 16, String::new());
    bench.after = None;
    bench.before +=
        "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n";
    bench.issue =
        "add.u32 %r18, %r6, 0x200004;\ntcgen05.shift.cta_group::1.down [%r18];".to_owned();
    let words = bench.words(MmaMode::Fast);
    for lane in 0..128 {
        for column in 0..16 {
            let moved = (32..63).contains(&lane) && (4..12).contains(&column);
            let expected = (lane + usize::from(moved)) << 16 | column;
            assert_eq!(
                words[16 * lane + column],
                expected as u32,
                "{lane} {column}"
            );
        }
    }
}
