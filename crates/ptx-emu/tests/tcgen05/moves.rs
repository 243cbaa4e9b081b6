//! `tcgen05.ld`, `st`, `cp` and `shift`: every shape, word by word.

use super::{Bench, Random, Tile};
use ptx_emu::MmaMode;

/// Fills eight words of each lane with `lane << 16 | column` and lets `text` store registers.
fn filled(columns: u32, text: String) -> Bench {
    let mut before = String::new();
    for first in (0..columns).step_by(8) {
        for i in 0..8 {
            before += &format!(
                "shl.b32 %r{r}, %r1, 16; or.b32 %r{r}, %r{r}, {};\n",
                first + i,
                r = 20 + i
            );
        }
        before += &format!(
            "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8+{first}], \
             {{%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}};\n"
        );
    }
    before += "tcgen05.wait::st.sync.aligned;\n";
    Bench {
        before,
        columns: 16,
        after: Some(text),
        ..Bench::default()
    }
}

fn list(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%r{}", 40 + i)).collect();
    format!("{{{}}}", names.join(","))
}

fn stored(count: usize) -> String {
    (0..count)
        .map(|i| format!("st.global.b32 [%rd4+{}], %r{};\n", 4 * i, 40 + i))
        .collect()
}

/// Lane and column of register j in thread t.
type Place = fn(u32, u32) -> (u32, u32);

const SHAPES: [(&str, usize, Place); 5] = [
    ("32x32b.x16", 16, |t, j| (t, j)),
    ("16x64b.x8", 8, |t, j| {
        (t / 4 + 8 * (t % 2), t / 2 % 2 + 2 * j)
    }),
    ("16x128b.x4", 8, |t, j| {
        (t / 4 + 8 * (j % 2), t % 4 + 4 * (j / 2))
    }),
    ("16x256b.x2", 8, |t, j| {
        (t / 4 + 8 * (j / 2 % 2), 2 * (t % 4) + j % 2 + 8 * (j / 4))
    }),
    ("16x32bx2.x4", 4, |t, j| (t % 16, j + t / 16 * 8)),
];

#[test]
fn loads_find_the_words_of_their_shape() {
    for (shape, registers, place) in SHAPES {
        for upper in [0, 16] {
            if upper == 16 && shape.starts_with("32") {
                continue;
            }
            let split = if shape.contains("bx2") { ", 8" } else { "" };
            let text = format!(
                "add.u32 %r8, %r8, {:#x};\ntcgen05.ld.sync.aligned.{shape}.b32 {}, [%r8]{split};\n\
                 tcgen05.wait::ld.sync.aligned;\n{}",
                upper << 16,
                list(registers),
                stored(registers)
            );
            let words = filled(16, text).words(MmaMode::Fast);
            for thread in 0..128u32 {
                for j in 0..registers as u32 {
                    let (lane, column) = place(thread % 32, j);
                    let expected = (thread / 32 * 32 + upper + lane) << 16 | column;
                    let found = words[(thread * 16 + j) as usize];
                    assert_eq!(found, expected, "{shape} thread {thread} register {j}");
                }
            }
        }
    }
}

#[test]
fn stores_put_words_where_loads_of_the_shape_find_them() {
    for (shape, registers, _) in SHAPES {
        let split = if shape.contains("bx2") { ", 8" } else { "" };
        let values: String = (0..registers)
            .map(|j| format!("mad.lo.u32 %r{}, %r1, 100, {j};\n", 40 + j))
            .collect();
        let text = format!(
            "{values}tcgen05.st.sync.aligned.{shape}.b32 [%r8]{split}, {};\n\
             tcgen05.wait::st.sync.aligned;\n{}\
             tcgen05.ld.sync.aligned.{shape}.b32 {}, [%r8]{split};\n\
             tcgen05.wait::ld.sync.aligned;\n{}",
            list(registers),
            (0..registers)
                .map(|j| format!("mov.b32 %r{}, 0;\n", 40 + j))
                .collect::<String>(),
            list(registers),
            stored(registers)
        );
        let words = filled(16, text).words(MmaMode::Fast);
        for thread in 0..128 {
            for j in 0..registers {
                assert_eq!(words[thread * 16 + j], (thread * 100 + j) as u32, "{shape}");
            }
        }
    }
}

#[test]
fn halves_are_packed_and_unpacked() {
    let text = format!(
        "tcgen05.ld.sync.aligned.32x32b.x8.pack::16b.b32 {}, [%r8];\n\
         tcgen05.wait::ld.sync.aligned;\n\
         tcgen05.st.sync.aligned.32x32b.x8.unpack::16b.b32 [%r8+32], {};\n\
         tcgen05.wait::st.sync.aligned;\n\
         tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}}, [%r8+32];\n\
         tcgen05.wait::ld.sync.aligned;\n{}st.global.b32 [%rd4+32], %r23;\n",
        list(8),
        list(8),
        stored(8)
    );
    let words = filled(16, text).words(MmaMode::Fast);
    for thread in 0..128 {
        for j in 0..8 {
            assert_eq!(
                words[thread * 16 + j],
                ((2 * j) | ((2 * j + 1) << 16)) as u32
            );
        }
        assert_eq!(words[thread * 16 + 8], 3);
    }
}

/// A copied value may be moved before it is waited for; ptxas knows they are the same.
#[test]
fn plain_moves_of_loaded_registers_are_exempt() {
    let text = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r40}, [%r8+3];\nmov.b32 %r41, %r40;\n\
                tcgen05.wait::ld.sync.aligned;\nst.global.b32 [%rd4], %r41;\n";
    let words = filled(16, text.to_owned()).words(MmaMode::Fast);
    assert_eq!(words[16 * 70], 70 << 16 | 3);
}

/// What a copy of a shape leaves in 16 columns: lane, column, row of the source and byte in it.
fn copied(shape: &str, unpack: &str) -> (Vec<u32>, Vec<[u8; 32]>) {
    let mut random = Random(5);
    let rows: Vec<[u8; 32]> = (0..128).map(|_| random.row()).collect();
    let mut input = vec![0; 8192];
    let tile = Tile::plain(0);
    for (row, bytes) in (0..).zip(&rows) {
        tile.put(&mut input, row, bytes);
    }
    let mut bench = filled(16, String::new());
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
    for (shape, columns, row) in shapes {
        let (words, rows) = copied(shape, "");
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
                    "{shape} {lane} {column}"
                );
            }
        }
    }
}

#[test]
fn copies_widen_small_codes() {
    let (words, rows) = copied("128x128b", ".b8x16.b4x16_p64");
    for lane in 0..128 {
        for i in 0..16 {
            let code = rows[lane][i / 2] >> (4 * (i % 2)) & 15;
            let byte = words[16 * lane + 8 + i / 4].to_le_bytes()[i % 4];
            assert_eq!(byte, code << 2);
        }
    }
    let (words, rows) = copied("128x128b", ".b8x16.b6x16_p32");
    let byte = words[8].to_le_bytes()[1];
    assert_eq!(byte, (rows[0][0] >> 6 | rows[0][1] << 2) & 0x3f);
}

#[test]
fn a_shift_moves_a_quarter_down_by_a_lane() {
    let mut bench = filled(16, String::new());
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
