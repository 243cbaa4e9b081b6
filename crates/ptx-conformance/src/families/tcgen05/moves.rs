//! `tcgen05.ld`, `st`, `cp` and `shift` in every shape.

use super::stage::{Stage, Tile, registers, store};
use crate::case::Case;

/// A shape of loads and stores: registers and columns for each time, and the most times.
const SHAPES: [(&str, u32, u32, u32); 5] = [
    ("32x32b", 1, 1, 128),
    ("16x64b", 1, 2, 128),
    ("16x128b", 2, 4, 64),
    ("16x256b", 4, 8, 32),
    ("16x32bx2", 1, 1, 128),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (shape, registers, columns, most) in SHAPES {
        let mut times = 1;
        while times <= most {
            for packed in [false, true] {
                // Twice the columns must fit as well.
                if columns * times * if packed { 2 } else { 1 } <= 256 {
                    cases.push(load(shape, times, (registers, columns), packed));
                    cases.push(put(shape, times, (registers, columns), packed));
                }
            }
            times *= 2;
        }
    }
    for shape in [
        "128x256b",
        "128x128b",
        "4x256b",
        "64x128b.warpx2::02_13",
        "64x128b.warpx2::01_23",
        "32x128b.warpx4",
    ] {
        for unpack in ["", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32"] {
            for swizzle in [0, 2] {
                cases.push(copy(shape, unpack, swizzle, 1));
            }
            cases.push(copy(shape, unpack, 0, 2));
        }
    }
    cases.extend([shift(1), shift(2)]);
    cases
}

/// The further operand of a shape in two halves, and the columns it reaches.
fn split(shape: &str, columns: u32) -> (String, u32) {
    match shape {
        "16x32bx2" => (format!(", {columns}"), 2 * columns),
        _ => (String::new(), columns),
    }
}

fn load(shape: &str, times: u32, (each, wide): (u32, u32), packed: bool) -> Case {
    let pack = if packed { ".pack::16b" } else { "" };
    let form = format!("tcgen05.ld.sync.aligned.{shape}.x{times}{pack}.b32");
    let (offset, reach) = split(shape, wide * times * if packed { 2 } else { 1 });
    let count = each * times;
    Stage {
        filled: reach.next_multiple_of(8),
        after: Some((
            format!(
                "{form} {}, [%own]{offset};\ntcgen05.wait::ld.sync.aligned;\n{}",
                registers(count),
                store(count)
            ),
            count,
        )),
        ..Stage::new(form.clone(), &form)
    }
    .case()
}

fn put(shape: &str, times: u32, (each, wide): (u32, u32), packed: bool) -> Case {
    let pack = if packed { ".unpack::16b" } else { "" };
    let form = format!("tcgen05.st.sync.aligned.{shape}.x{times}{pack}.b32");
    let (offset, reach) = split(shape, wide * times * if packed { 2 } else { 1 });
    let count = each * times;
    let columns = reach.next_multiple_of(8);
    let values: String = (0..count)
        .map(|j| {
            format!(
                "mad.lo.u32 %v{j}, %thread, 0x00030001, {:#x};\n",
                j * 0x1_0007
            )
        })
        .collect();
    Stage {
        filled: columns,
        before: format!(
            "{values}{form} [%own]{offset}, {};\ntcgen05.wait::st.sync.aligned;\n",
            registers(count)
        ),
        columns,
        ..Stage::new(form.clone(), &form)
    }
    .case()
}

/// Each CTA of a pair copies from its own shared memory to its own tensor memory.
fn copy(shape: &str, unpack: &str, swizzle: u32, ctas: u32) -> Case {
    let form = format!("tcgen05.cp.cta_group::{ctas}.{shape}{unpack}");
    let tile = Tile::new(0, swizzle);
    Stage {
        tile: (0..16384 * ctas).map(|i| ((i * 37) >> 3) as u8).collect(),
        ctas,
        filled: 16,
        columns: 16,
        issue: format!("{}{form} [%base+8], %l8;\n", tile.descriptor("%l8")),
        ..Stage::new(format!("{form}/swizzle-{swizzle}"), &form)
    }
    .case()
}

fn shift(ctas: u32) -> Case {
    let form = &*format!("tcgen05.shift.cta_group::{ctas}.down");
    Stage {
        tile: vec![0; 16 * ctas as usize],
        filled: 16,
        columns: 16,
        ctas,
        issue: format!("add.u32 %r20, %base, 0x200004;\n{form} [%r20];\n"),
        ..Stage::new(form.to_owned(), form)
    }
    .case()
}
