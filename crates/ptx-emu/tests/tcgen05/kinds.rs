//! Every kind of product with every pair of types, wherever A lies, with and without negation,
//! scales, swizzles and a second CTA: against sums in f64 of the codes themselves.

mod product;
mod sparse;

use super::*;
use product::*;

#[test]
fn every_pair_of_small_floats() {
    for (a, b) in SMALL.into_iter().flat_map(|a| SMALL.map(|b| (a, b))) {
        Product { a, b, ..KINDS[2] }.check();
        Product { a, b, ..KINDS[4] }.check();
    }
}

#[test]
fn every_kind_with_64_rows() {
    for product in KINDS.into_iter().filter(|product| product.scales.is_none()) {
        Product { m: 64, ..product }.check();
    }
}

#[test]
fn every_kind_with_a_in_tensor_memory() {
    for product in KINDS {
        Product {
            a_in_tmem: true,
            ..product
        }
        .check();
    }
    for a in SMALL {
        Product {
            a,
            a_in_tmem: true,
            ..KINDS[2]
        }
        .check();
    }
}

#[test]
fn every_kind_by_a_pair_of_ctas() {
    for product in KINDS {
        for (n, a_in_tmem) in [(64, false), (32, true)] {
            let pair = Product {
                m: 256,
                n,
                ctas: 2,
                a_in_tmem,
                ..product
            };
            pair.check();
        }
        // Two by two; how scales lie there nobody has published.
        if product.scales.is_none() {
            let pair = Product {
                n: 64,
                ctas: 2,
                ..product
            };
            pair.check();
        }
    }
}

#[test]
fn the_widest_product_of_a_pair() {
    let widest = Product {
        m: 256,
        n: 256,
        ctas: 2,
        ..NVFP4
    };
    widest.check();
}

#[test]
fn every_swizzle_and_width() {
    for swizzle in [0, 2, 4, 6] {
        for product in [PLAIN, NVFP4] {
            Product { swizzle, ..product }.check();
        }
    }
    for n in [8, 24, 136, 256] {
        Product { n, ..PLAIN }.check();
        Product { n, ..NVFP4 }.check();
    }
}

#[test]
fn every_type_of_sum_and_sign() {
    let half = Product { d: 0, ..PLAIN };
    half.check();
    Product { d: 0, ..KINDS[2] }.check();
    Product {
        a: BF16,
        b: BF16,
        ..PLAIN
    }
    .check();
    for (a, b) in [(U8, U8), (S8, U8), (S8, S8)] {
        Product { a, b, ..KINDS[3] }.check();
    }
    for product in KINDS.into_iter().filter(|product| product.kind != "i8") {
        for negate in 1..4 {
            Product { negate, ..product }.check();
        }
    }
}

#[test]
fn every_number_and_place_of_scales() {
    for ids in [[0, 3], [3, 0], [2, 1]] {
        Product {
            scales: Some((".scale_vec::1X", ids)),
            ..KINDS[4]
        }
        .check();
    }
    for (kind, ids) in [("mxf4", [0, 2]), ("mxf4nvf4", [2, 2]), ("mxf4nvf4", [0, 0])] {
        Product {
            kind,
            scales: Some((".block32", ids)),
            ..KINDS[5]
        }
        .check();
    }
    // Powers of two for every sixteen.
    Product { d: 1, ..NVFP4 }.check();
}

/// What the tensor core keeps of A changes nothing, if it was there.
#[test]
fn every_collector_hint() {
    for usage in ["fill", "use", "lastuse", "discard"] {
        let collector = &*format!(".collector::a::{usage}").leak();
        for product in KINDS {
            Product {
                collector,
                ..product
            }
            .check();
        }
    }
}

/// `.ashift`: a row of A is that of the next lane, the last of all its own.
#[test]
fn rows_of_a_can_be_the_next_ones() {
    let one = |i: u32| half::f16::from_f32(i as f32).to_le_bytes();
    let mut input = vec![0; SHARE];
    for lane in 0..128u32 {
        input[32 * lane as usize..][..2].copy_from_slice(&one(lane));
    }
    let b = Tile::plain(B_AT);
    for row in 0..8 {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&one(1));
        b.put(&mut input, row, &bytes);
    }
    let bench = Bench {
        input,
        before: stored(1),
        issue: format!(
            "{} mov.b32 %r18, {:#x};\n\
             tcgen05.mma.cta_group::1.kind::f16.ashift [%r6], [%r6+288], %rd10, %r18, %p0;",
            b.descriptor("%rd10"),
            8 << 24 | 1 << 17 | 1 << 4
        ),
        ..Bench::default()
    };
    let words = bench.words(MmaMode::Exact);
    for lane in 0..128 {
        let from = (lane + 1).min(127);
        assert_eq!(f32::from_bits(words[8 * lane]), from as f32, "lane {lane}");
    }
}

/// Sums of bytes stop at the ends of s32 where bit 3 says so, and go around where not.
#[test]
fn integers_saturate_or_wrap() {
    for (saturate, expected) in [(0, i32::MIN.wrapping_add(24)), (1, i32::MAX)] {
        let mut input = vec![0; SHARE];
        let (a, b) = (Tile::plain(0), Tile::plain(B_AT));
        (0..128).for_each(|row| a.put(&mut input, row, &[1; 32]));
        (0..8).for_each(|row| b.put(&mut input, row, &[1; 32]));
        let bench = Bench {
            input,
            before: format!(
                "mov.b32 %r20, {};\ntcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], \
                 {{%r20,%r20,%r20,%r20,%r20,%r20,%r20,%r20}};\ntcgen05.wait::st.sync.aligned; \
                 tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;",
                i32::MAX - 7
            ),
            issue: format!(
                "{} {} mov.b32 %r18, {:#x};\nsetp.eq.b32 %p0, 0, 0;\n\
                 tcgen05.mma.cta_group::1.kind::i8 [%r6], %rd9, %rd10, %r18, %p0;",
                a.descriptor("%rd9"),
                b.descriptor("%rd10"),
                8 << 24 | 1 << 17 | 2 << 4 | saturate << 3
            ),
            ..Bench::default()
        };
        let words = bench.words(MmaMode::Fast);
        assert!(
            words.iter().all(|word| *word as i32 == expected),
            "{saturate}"
        );
    }
}

/// Eight words of lanes for a pair: the first four are the even CTA's.
#[test]
fn lanes_of_both_ctas_can_be_left_alone() {
    let mut input = vec![0; 2 * SHARE];
    let one: [u8; 32] = std::array::from_fn(|i| if i % 2 == 1 { 0x3c } else { 0 });
    let (a, b) = (Tile::plain(0), Tile::plain(B_AT));
    for part in input.chunks_exact_mut(SHARE) {
        (0..128).for_each(|row| a.put(part, row, &one));
        (0..8).for_each(|row| b.put(part, row, &one));
    }
    let mut random = Random(21);
    let disabled: [u32; 8] = std::array::from_fn(|_| random.next() << 1 ^ random.next());
    let (mut set, mut names) = (String::new(), Vec::new());
    for (i, word) in disabled.iter().enumerate() {
        set += &format!("mov.b32 %r{}, {word:#x};\n", 40 + i);
        names.push(format!("%r{}", 40 + i));
    }
    let mma = "tcgen05.mma.cta_group::2.kind::f16 [%r6], %rd9, %rd10, %r18";
    let bench = Bench {
        input,
        issue: format!(
            "{} {} mov.b32 %r18, {:#x};\n{set}{mma}, %p0;\nsetp.eq.b32 %p0, 0, 0;\n\
             {mma}, {{{}}}, %p0;",
            a.descriptor("%rd9"),
            b.descriptor("%rd10"),
            16 << 24 | 2 << 17 | 1 << 4,
            names.join(",")
        ),
        columns: 16,
        ctas: 2,
        ..Bench::default()
    };
    let words = bench.words(MmaMode::Fast);
    for lane in 0..256 {
        let off = disabled[lane / 32] >> (lane % 32) & 1 == 1;
        let expected = if off { 16.0 } else { 32.0 };
        assert_eq!(f32::from_bits(words[16 * lane]), expected, "lane {lane}");
    }
}
