//! Products with a sparse A, beside the sum of the codes that its metadata picks.

use super::product::*;
use crate::{Bench, Random, Tile};
use ptx_emu::MmaMode;

/// Two words of metadata for each lane, behind the scales.
const METADATA_AT: u32 = 26624;

#[test]
fn every_kind_with_a_sparse_a() {
    for product in KINDS {
        for (m, ctas) in [(128, 1), (256, 2)] {
            for swizzle in [0, 2] {
                let product = Product {
                    m,
                    ctas,
                    swizzle,
                    n: 32,
                    ..product
                };
                check(&product, 0);
            }
        }
    }
    check(&KINDS[0], 1);
    check(&KINDS[1], 1);
}

/// Of each stored element, its place in the whole depth.
fn places(product: &Product, random: &mut Random) -> Vec<usize> {
    let mut all = Vec::new();
    while all.len() < product.depth() {
        let chunk = 2 * all.len();
        let [x, y] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]][random.next() as usize % 6];
        match product.kind {
            "tf32" => all.push(chunk + x % 2),
            kind if kind.starts_with("mxf4") => {
                all.extend([2 * x, 2 * x + 1, 2 * y, 2 * y + 1].map(|i| chunk + i));
            }
            _ => all.extend([chunk + x, chunk + y]),
        }
    }
    all
}

/// The four bits of each chunk.
fn chunks(product: &Product, places: &[usize]) -> Vec<u32> {
    let index = |i: usize, among: usize| (places[i] % among) as u32;
    let each = |of: usize| (0..places.len()).step_by(of);
    match product.kind {
        "tf32" => each(1)
            .map(|i| [0b0100, 0b1110][index(i, 2) as usize])
            .collect(),
        kind if kind.starts_with("mxf4") => each(4)
            .map(|i| [i, i + 2].map(|i| index(i, 8) / 2))
            .map(|[first, second]| first | second << 2)
            .collect(),
        _ => each(2)
            .map(|i| index(i, 4) | index(i + 1, 4) << 2)
            .collect(),
    }
}

/// Puts a row's chunks where they lie in tensor memory.
fn put(product: &Product, selector: u32, metadata: &mut [[u32; 2]; 128], row: usize, of: &[u32]) {
    for (chunk, bits) in of.iter().enumerate() {
        let (lane, column, shift) = match product.kind {
            "f16" | "tf32" => (
                row / 16 * 16 + chunk / 4 * 8 + row % 8,
                selector as usize,
                row / 8 % 2 * 16 + chunk % 4 * 4,
            ),
            _ => (row, chunk / 8, chunk % 8 * 4),
        };
        metadata[lane][column] |= bits << shift;
    }
}

/// A tile of columns of 64 bytes, and its second half.
fn halves(swizzle: u32) -> [Tile; 2] {
    let stride = |tile: Tile| match swizzle {
        0 => Tile {
            stride: 512,
            ..tile
        },
        _ => tile,
    };
    let further = if swizzle == 0 { 256 } else { 32 };
    [B_AT, B_AT + further].map(|start| stride(Tile::coded(start, swizzle)))
}

fn check(product: &Product, selector: u32) {
    let mut random = Random(product.n.into());
    let [a, low, high] = [
        (product.a, product.m),
        (product.b, product.n),
        (product.b, product.n),
    ]
    .map(|(of, rows)| product.codes(of, rows, &mut random));
    let rows: Vec<Vec<usize>> = a.iter().map(|_| places(product, &mut random)).collect();
    let mut scales = |rows: u32| -> Vec<[u8; 4]> {
        let (low, some) = if product.d == 0 { (0x30, 16) } else { (125, 5) };
        let four = |_| std::array::from_fn(|_| low + (random.next() % some) as u8);
        (0..rows).map(four).collect()
    };
    let (sa, sb) = (scales(product.m), scales(product.n));
    let stored = Stored {
        codes: &a,
        places: &rows,
        scales: &sa,
    };
    let bench = bench(product, selector, &stored, ([&low, &high], &sb));
    let ids = product.scales.map_or([0, 0], |(_, ids)| ids);
    for mode in [MmaMode::Fast, MmaMode::Exact] {
        let words = bench.words(mode);
        for (r, (x, places)) in a.iter().zip(&rows).enumerate() {
            for (c, (low, high)) in low.iter().zip(&high).enumerate() {
                let y: Vec<u32> = low.iter().chain(high).copied().collect();
                let (mut sum, mut size) = (0.0, 0.0);
                for (k, &place) in places.iter().enumerate() {
                    let scale = product.scale(sa[r][product.scale_of(k, ids[0])])
                        * product.scale(sb[c][product.scale_of(k, ids[1])]);
                    let term = (product.a.value)(x[k]) * (product.b.value)(y[place]) * scale;
                    sum += term;
                    size += term.abs();
                }
                let found = product.read(words[product.place(r, c)]);
                assert!(
                    (found - sum).abs() <= size * 1e-6,
                    "{} {mode:?} ({r}, {c}): {found} is not {sum}",
                    product.name()
                );
            }
        }
    }
}

/// What A stores, and where each element belongs.
struct Stored<'s> {
    codes: &'s [Vec<u32>],
    places: &'s [Vec<usize>],
    scales: &'s [[u8; 4]],
}

/// The dense product's kernel, with an instruction, metadata and a second half of B's tile more.
fn bench(
    product: &Product,
    selector: u32,
    a: &Stored<'_>,
    ([low, high], sb): ([&[Vec<u32>]; 2], &[[u8; 4]]),
) -> Bench {
    let mut bench = product.bench((a.codes, low), (a.scales, sb));
    let g = product.ctas as usize;
    let tiles = halves(product.swizzle);
    for (cta, part) in bench.input.chunks_exact_mut(SHARE).enumerate() {
        let own = |rows: usize| cta * rows / g..(cta + 1) * rows / g;
        for (tile, codes) in tiles.iter().zip([low, high]) {
            for (row, codes) in (0..).zip(&codes[own(codes.len())]) {
                tile.put(part, row, &product.shared(product.b, codes));
            }
        }
        let mut metadata = [[0; 2]; 128];
        for (row, places) in a.places[own(a.places.len())].iter().enumerate() {
            let chunks = chunks(product, places);
            put(product, selector, &mut metadata, row, &chunks);
        }
        for (i, word) in metadata.as_flattened().iter().enumerate() {
            part[METADATA_AT as usize + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
        }
    }
    let dense = format!("mov.b32 %r18, {:#x}", product.descriptor());
    let sparse = format!("mov.b32 %r18, {:#x}", product.descriptor() | 4 | selector);
    let issue = bench.issue.replace(&dense, &sparse);
    // One product, not a second on top of it.
    let [first, _] = issue
        .split_once("setp.eq.b32 %p0, 0, 0;")
        .map(<[_; 2]>::from)
        .expect("two products");
    let b = Tile::coded(B_AT, product.swizzle).descriptor("%rd10");
    bench.issue = first
        .replace("tcgen05.mma.", "tcgen05.mma.sp.")
        .replace("%rd10, %r18", "%rd10, [%r6+304], %r18")
        .replace(&b, &tiles[0].descriptor("%rd10"));
    bench.before = place_metadata(product.ctas);
    bench
}

/// Has each thread store two words of shared memory in its lane, from column 304 on.
fn place_metadata(ctas: u32) -> String {
    let together = match ctas {
        1 => "bar.sync 0;",
        _ => "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    };
    format!(
        "mad.lo.u32 %r18, %r1, 8, %r3;\n\
         ld.shared.v2.b32 {{%r20,%r21}}, [%r18+{METADATA_AT}];\n\
         tcgen05.st.sync.aligned.32x32b.x2.b32 [%r8+304], {{%r20,%r21}};\n\
         tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n\
         {together}\ntcgen05.fence::after_thread_sync;\n"
    )
}
