//! `cta_group::2`: two CTAs that multiply together.

use super::{Bench, Random, Tile};
use ptx_emu::MmaMode;

/// f16 with M of the pair and N, A rows and B columns halved between the CTAs.
fn product(m: u32, n: u32) -> (Bench, Vec<[f32; 16]>, Vec<[f32; 16]>) {
    let mut random = Random(11);
    let mut rows = |count: u32| -> Vec<[f32; 16]> {
        let row = |_| std::array::from_fn(|_| (random.next() % 9) as f32 - 4.0);
        (0..count).map(row).collect()
    };
    let (a, b) = (rows(m), rows(n));
    let bytes = |row: &[f32; 16]| -> [u8; 32] {
        let halves = row.map(|x| half::f16::from_f32(x).to_le_bytes());
        std::array::from_fn(|i| halves[i / 2][i % 2])
    };
    let mut input = vec![0; 2 * 16384];
    let (at_a, at_b) = (Tile::plain(0), Tile::plain(8192));
    for (half, part) in input.chunks_exact_mut(16384).enumerate() {
        let of = |count: u32| half * count as usize / 2..(half + 1) * count as usize / 2;
        for (row, values) in (0..).zip(&a[of(m)]) {
            at_a.put(part, row, &bytes(values));
        }
        for (row, values) in (0..).zip(&b[of(n)]) {
            at_b.put(part, row, &bytes(values));
        }
    }
    let bench = Bench {
        input,
        issue: format!(
            "{} {} mov.b32 %r18, {:#x};\n\
             tcgen05.mma.cta_group::2.kind::f16 [%r6], %rd9, %rd10, %r18, %p0;",
            at_a.descriptor("%rd9"),
            at_b.descriptor("%rd10"),
            (m / 16) << 24 | (n / 8) << 17 | 1 << 4
        ),
        columns: if m == 256 { n } else { n / 2 },
        ctas: 2,
        ..Bench::default()
    };
    (bench, a, b)
}

#[test]
fn both_ctas_hold_their_part_of_d() {
    for (m, n) in [(256u32, 32u32), (128, 64)] {
        let (bench, a, b) = product(m, n);
        for mode in [MmaMode::Fast, MmaMode::Exact] {
            let words = bench.words(mode);
            let columns = bench.columns as usize;
            for (r, x) in a.iter().enumerate() {
                for (c, y) in b.iter().enumerate() {
                    let rows = m as usize / 2;
                    let (cta, row) = (r / rows, r % rows);
                    let (lane, column) = match m {
                        256 => (row, c),
                        _ => (row + 64 * (c / columns), c % columns),
                    };
                    let word = words[(cta * 128 + lane) * columns + column];
                    let expected: f32 = x.iter().zip(y).map(|(x, y)| x * y).sum();
                    assert_eq!(f32::from_bits(word), expected, "{m} ({r}, {c})");
                }
            }
        }
    }
}

#[test]
fn the_even_cta_issues_for_both() {
    let (bench, ..) = product(256, 32);
    let text = bench.text();
    let odd = text.replace(
        "or.b32 %r16, %r1, %r7;",
        "xor.b32 %r16, %r7, 1; or.b32 %r16, %r16, %r1;",
    );
    assert_ne!(text, odd);
    let told = run(&odd);
    assert!(
        told.contains("by CTA rank 1: the even CTA of the pair issues for both"),
        "{told}"
    );
    let every = text.replace("or.b32 %r16, %r1, %r7;", "or.b32 %r16, %r2, %r7;");
    let told = run(&every);
    assert!(told.contains("executed by 32 threads of a warp"), "{told}");
}

#[test]
fn a_pair_allocates_together() {
    let (bench, ..) = product(256, 32);
    let text = bench.text();
    // Only the even CTA comes.
    let alone = text.replace(
        "setp.ne.u32 %p2, %r2, 0; @%p2 bra ALLOCATED;",
        "setp.ne.u32 %p2, %r2, 0; @%p2 bra ALLOCATED; setp.ne.u32 %p5, %r7, 0; @%p5 bra ALLOCATED;",
    );
    let told = run(&alone);
    assert!(
        told.contains("the other CTA of the pair has not come"),
        "{told}"
    );
}

#[test]
fn nobody_leaves_before_the_tensor_cores_are_done() {
    let (bench, ..) = product(256, 32);
    // The odd CTA frees without waiting.
    let text = bench.text().replace(
        "ISSUED:\n",
        "ISSUED: setp.ne.u32 %p5, %r7, 0; @%p5 bra GONE;\n",
    );
    let text = text
        .replace("@%p2 bra END;", "GONE: @%p2 bra END;")
        .replace(
            "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nGONE",
            "GONE",
        );
    let told = run(&text);
    // It is gone before the product is issued, or before it is done.
    let before = told.contains("which are not all allocated");
    let during = told.contains("while the tcgen05.mma issued at PTX line")
        && told.contains("in both CTAs of the pair");
    assert!(before || during, "{told}");
}

/// How a run of a kernel for a pair ends, in words.
fn run(text: &str) -> String {
    let module = ptx_emu::Module::load(text).expect("it lowers");
    let mut memory = ptx_emu::Memory::new();
    let out = memory.alloc(1 << 20).expect("room");
    let params = ptx_emu::Params::new().pointer(out).pointer(out).u32(16384);
    let launch = ptx_emu::Launch::new("k")
        .grid([2, 1, 1])
        .block([128, 1, 1])
        .cluster([2, 1, 1])
        .params(params)
        .config(ptx_emu::Config {
            limits: ptx_emu::DeviceLimits::B200,
            ..ptx_emu::Config::default()
        });
    match launch.run(&module, &mut memory) {
        Ok(report) => format!("{:?}", report.early_read),
        Err(error) => error.to_string(),
    }
}
