//! Video instructions, against examples worked by hand from the ISA's pseudo-code.

use crate::{kernel, module, run};

/// The result of one instruction on `%r2`, `%r3`, `%r4`; its result is `%r5`.
fn video(instruction: &str, a: u32, b: u32, c: u32) -> u32 {
    let text = kernel(&format!(
        "mov.b32 %r2, {a}; mov.b32 %r3, {b}; mov.b32 %r4, {c};\n{instruction}\nst.global.u32 [%rd2], %r5;"
    ));
    run(&text, 32)[31]
}

#[test]
fn scalar_forms() {
    let minus = |x: i32| -x as u32;
    let cases = [
        ("vadd.u32.u32.u32 %r5, %r2, %r3;", [5, 7, 0], 12),
        (
            "vadd.s32.s32.s32.sat %r5, %r2, %r3;",
            [i32::MAX as u32, 1, 0],
            i32::MAX as u32,
        ),
        ("vadd.u32.s32.s32.sat %r5, %r2, %r3;", [minus(3), 1, 0], 0),
        (
            "vadd.s32.s32.u32 %r5, %r2.b1, %r3.h1;",
            [0xff00, 0x2_0000, 0],
            1,
        ),
        ("vsub.s32.u32.u32.add %r5, %r2, %r3, %r4;", [5, 9, 100], 96),
        ("vabsdiff.u32.s32.s32 %r5, %r2, %r3;", [minus(3), 4, 0], 7),
        (
            "vmin.s32.s32.s32 %r5, %r2.b0, %r3.b3;",
            [0x80, 0x7f00_0000, 0],
            minus(128),
        ),
        ("vmax.u32.u32.u32.min %r5, %r2, %r3, %r4;", [3, 9, 4], 4),
        (
            "vmax.s32.s32.s32.max %r5, %r2, %r3, %r4;",
            [minus(9), minus(3), minus(1)],
            minus(1),
        ),
        (
            "vadd.u32.u32.u32.sat %r5.b2, %r2, %r3, %r4;",
            [200, 100, 0x1122_3344],
            0x11ff_3344,
        ),
        (
            "vadd.u32.u32.u32 %r5.h1, %r2, %r3, %r4;",
            [0xffff, 2, 0x1122_3344],
            0x0001_3344,
        ),
        ("vshl.u32.u32.u32.clamp %r5, %r2, %r3;", [1, 40, 0], 0),
        ("vshl.u32.u32.u32.wrap %r5, %r2, %r3;", [1, 36, 0], 16),
        (
            "vshr.s32.s32.u32.clamp %r5, %r2, %r3;",
            [minus(8), 99, 0],
            minus(1),
        ),
        ("vset.s32.u32.lt %r5, %r2, %r3;", [minus(1), 0, 0], 1),
        ("vset.u32.u32.gt.add %r5, %r2, %r3, %r4;", [3, 2, 10], 11),
        (
            "vmad.s32.s32.s32 %r5, %r2.b0, %r3.b1, %r4;",
            [0xff, 0x0500, 2],
            minus(3),
        ),
        (
            "vmad.s32.s32.s32.sat %r5, %r2, %r3, %r4;",
            [1 << 30, 4, 0],
            i32::MAX as u32,
        ),
        (
            "vmad.u32.u32.u32.shr7 %r5, %r2, %r3, %r4;",
            [256, 4, 128],
            9,
        ),
        ("vmad.u32.u32.u32.po %r5, %r2, %r3, %r4;", [3, 4, 5], 18),
        ("vmad.s32.s32.s32 %r5, -%r2, %r3, %r4;", [3, 4, 5], minus(7)),
        ("vmad.s32.s32.s32 %r5, %r2, %r3, -%r4;", [3, 4, 5], 7),
    ];
    for (instruction, [a, b, c], expected) in cases {
        let found = video(instruction, a, b, c);
        assert_eq!(found, expected, "{instruction}: {found:#x}");
    }
}

#[test]
fn packed_forms() {
    let cases = [
        (
            "vadd2.u32.u32.u32 %r5, %r2, %r3, %r4;",
            [0x0001_ffff, 0x0002_0001, 0],
            0x0003_0000,
        ),
        (
            "vadd2.u32.u32.u32.sat %r5, %r2, %r3, %r4;",
            [0x0001_ffff, 0x0002_0001, 0],
            0x0003_ffff,
        ),
        (
            "vsub4.u32.u32.u32 %r5, %r2, %r3, %r4;",
            [0x0504_0302, 0x0101_0103, 0],
            0x0403_02ff,
        ),
        (
            "vabsdiff4.u32.u32.u32.add %r5, %r2, %r3, %r4;",
            [0x0105_0a00, 0x0401_0aff, 1000],
            1262,
        ),
        (
            "vavrg4.u32.u32.u32 %r5, %r2, %r3, %r4;",
            [0x0102_0304, 0x0202_0405, 0],
            0x0202_0405,
        ),
        (
            "vmin4.s32.s32.s32 %r5, %r2, %r3, %r4;",
            [0x80ff_7f01, 0x0101_0101, 0],
            0x80ff_0101,
        ),
        (
            "vmax2.u32.u32.u32 %r5.h0, %r2, %r3, %r4;",
            [0x0001_0005, 0x0009_0003, 0xaaaa_bbbb],
            0xaaaa_0005,
        ),
        (
            "vset4.u32.u32.eq %r5, %r2, %r3, %r4;",
            [0x0102_0304, 0x0100_0300, 0],
            0x0100_0100,
        ),
        (
            "vset2.s32.s32.ge.add %r5, %r2, %r3, %r4;",
            [0xffff_0001, 0x0000_0001, 5],
            6,
        ),
        // Halves crosswise: A's low with B's high, A's high with B's low.
        (
            "vadd2.u32.u32.u32 %r5, %r2.h01, %r3.h32, %r4;",
            [0x0001_0002, 0x0010_0020, 0],
            0x0012_0021,
        ),
        (
            "vadd4.u32.u32.u32 %r5.b20, %r2.b0000, %r3.b7777, %r4;",
            [1, 0x0200_0000, 0xffff_ffff],
            0xff03_ff03,
        ),
    ];
    for (instruction, [a, b, c], expected) in cases {
        let found = video(instruction, a, b, c);
        assert_eq!(found, expected, "{instruction}: {found:#x}");
    }
}

#[test]
fn forms_that_do_not_exist_are_refused() {
    for line in [
        "vadd.u32.u32.u32 %r5, %r2, %r3, %r4;",
        "vadd.u32.u32.u32.add %r5, %r2, %r3;",
        "vadd.u32.u32.u32 %r5, %r2.b4, %r3;",
        "vadd2.u32.u32.u32.min %r5, %r2, %r3, %r4;",
        "vadd4.u32.u32.u32 %r5, %r2.b89ab, %r3, %r4;",
        "vadd4.u32.u32.u32 %r5, %r2.b10, %r3, %r4;",
        "vshl2.u32.u32.u32.clamp %r5, %r2, %r3, %r4;",
        "vadd.u32.u32.u32 %r5, -%r2, %r3;",
        "add.u32 %r5, -%r2, %r3;",
    ] {
        assert!(module(&kernel(line)).refused().contains_key("k"), "{line}");
    }
}
