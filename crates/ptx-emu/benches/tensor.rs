//! Speed of the tensor pieces on one core: MMA FLOP/s per vector level, box copies, warp-wide
//! conversions. Throughput "elements" of the MMA groups are floating-point operations.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptx_emu::bench::{Accumulator, Element, Form, Lanes, Major, Matrix, OperandA, Step};
use ptx_emu::bench::{lanes, load_box, mma};
use ptx_emu::{Fill, Level, MapElement, MmaMode, Swizzle, TensorMap, Tiled};

/// Instructions per commit group: one 64-wide step of K with f16.
const CHAIN: u32 = 4;

fn tile(start: u32) -> Matrix {
    Matrix {
        start,
        leading: 16,
        stride: 1024,
        base_offset: 0,
        swizzle: Swizzle::B128,
        major: Major::K,
    }
}

/// Small f16 numbers, so that sums neither overflow nor become subnormal.
fn operands(bytes: usize) -> Vec<u8> {
    let mut state = 1u32;
    (0..bytes / 2)
        .flat_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (0x3000 | (state >> 16 & 0x8bff) as u16).to_le_bytes()
        })
        .collect()
}

fn wgmma(c: &mut Criterion) {
    let shared = operands(64 * 1024);
    let fragment: Lanes = std::array::from_fn(|i| 0x3100_3200 + i as u32);
    for n in [64, 128, 256] {
        let mut group = c.benchmark_group(format!("wgmma m64n{n}k16 f16 x{CHAIN}"));
        let form = Form::new(
            n,
            Element::F16,
            Element::F16,
            Accumulator::F32,
            false,
            false,
        )
        .expect("a legal form");
        group.throughput(Throughput::Elements(2 * 64 * 16 * u64::from(n * CHAIN)));
        for level in Level::available() {
            for registers in [false, true] {
                let steps: Vec<Step<'_>> = (0..CHAIN)
                    .map(|s| Step {
                        a: match registers {
                            true => OperandA::Registers([[&fragment; 4]; 4]),
                            false => OperandA::Shared(tile(32 * s)),
                        },
                        b: tile(16 * 1024 + 32 * s),
                        accumulate: true,
                    })
                    .collect();
                let mut accumulators = vec![[0u32; 32]; 4 * form.registers()];
                let name = format!("{level:?} {}", if registers { "RS" } else { "SS" });
                group.bench_function(name, |b| {
                    b.iter(|| {
                        let mut d: Vec<&mut Lanes> = accumulators.iter_mut().collect();
                        form.run_at(level, black_box(&steps), &shared, &mut d, MmaMode::Fast)
                            .expect("inside shared memory");
                    });
                });
            }
        }
        group.finish();
    }
}

fn warp_mma(c: &mut Criterion) {
    let shape = (16, 8, 16);
    let form = mma::Form::new(
        shape,
        Element::F16,
        Element::F16,
        mma::Accumulator::F32,
        mma::BitProduct::And,
        false,
    )
    .expect("a legal form");
    let fragment: Lanes = std::array::from_fn(|i| 0x3100_3200 + i as u32);
    let mut group = c.benchmark_group("mma.sync m16n8k16 f16");
    group.throughput(Throughput::Elements(form.flops()));
    group.bench_function("fast", |b| {
        b.iter(|| {
            let a = [black_box(&fragment); 4];
            form.run(&a, &a[..2], &a, MmaMode::Fast)
        });
    });
    group.finish();
}

fn boxes(c: &mut Criterion) {
    let map = TensorMap::tiled(Tiled {
        element: MapElement::F16,
        address: 0,
        dims: &[4096, 1024],
        strides: &[8192],
        box_dims: &[64, 128],
        element_strides: &[1, 1],
        swizzle: Swizzle::B128,
        fill: Fill::Zero,
    })
    .expect("a legal map");
    let global = vec![1u8; 8 << 20];
    let mut shared = vec![0u8; 16 * 1024];
    let mut group = c.benchmark_group("box 128 rows of 128 B, 128 B swizzle");
    group.throughput(Throughput::Bytes(shared.len() as u64));
    group.bench_function("load", |b| {
        b.iter(|| {
            load_box(&map, black_box(&[64, 128]), &global, &mut shared);
        });
    });
    group.finish();
}

fn conversions(c: &mut Criterion) {
    let register: Lanes = std::array::from_fn(|i| 0x3100_3200 + i as u32);
    let mut group = c.benchmark_group("warp-wide");
    group.throughput(Throughput::Elements(1));
    group.bench_function("mul.f16x2", |b| {
        b.iter(|| lanes::mul_f16x2(black_box(&register), &register));
    });
    group.bench_function("fma.f16x2", |b| {
        b.iter(|| lanes::fma_f16x2(black_box(&register), &register, &register));
    });
    group.bench_function("cvt.f16x2.e4m3x2", |b| {
        b.iter(|| lanes::f16x2_from_e4m3x2(black_box(&register)));
    });
    group.bench_function("cvt.f16x2.f32", |b| {
        b.iter(|| lanes::f16x2_from_f32(black_box(&register), &register));
    });
    group.finish();
}

criterion_group!(benches, wgmma, warp_mma, boxes, conversions);
criterion_main!(benches);
