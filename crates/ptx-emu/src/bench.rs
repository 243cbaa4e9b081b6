//! The tensor pieces by themselves, for `benches/tensor.rs`: MMA per vector level, box copies,
//! warp-wide conversions. No part of the interface.

use std::hint::black_box;

use crate::memory::HostBytes;
use crate::numeric::{Lanes, lanes};
use crate::tensor::descriptor::{Major, Matrix};
use crate::tensor::tcgen05::{self, Operands, Product, Source, TensorColumns};
use crate::tensor::wgmma::{Accumulator, Form, OperandA, Step};
use crate::tensor::{Element, mma};
use crate::{Fill, Level, MapElement, MmaMode, Swizzle, TensorMap, Tiled};

/// What one run of a piece does.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Floating-point operations.
    Flops(u64),
    /// Bytes moved.
    Bytes(u64),
    /// One instruction of a warp.
    Instruction,
}

/// Shows every piece to `see`: its group, its name, its work, and what runs it once.
pub fn pieces(see: See<'_>) {
    wgmma(see);
    tcgen05(see);
    warp_mma(see);
    boxes(see);
    conversions(see);
}

/// Is shown the pieces.
pub type See<'a> = &'a mut dyn FnMut(&str, &str, Work, &mut dyn FnMut());

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
        unit: 8,
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

fn wgmma(see: See<'_>) {
    let shared = operands(64 * 1024);
    let fragment: Lanes = std::array::from_fn(|i| 0x3100_3200 + i as u32);
    let (f16, f32) = (Element::F16, Accumulator::F32);
    for n in [64, 128, 256] {
        let form = Form::new(n, f16, f16, f32, false, false).expect("a legal form");
        let work = Work::Flops(2 * 64 * 16 * u64::from(n * CHAIN));
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
                let group = format!("wgmma m64n{n}k16 f16 x{CHAIN}");
                let name = format!("{level:?} {}", if registers { "RS" } else { "SS" });
                see(&group, &name, work, &mut || {
                    let mut d: Vec<&mut Lanes> = accumulators.iter_mut().collect();
                    form.run_at(level, black_box(&steps), &shared, &mut d, MmaMode::Fast)
                        .expect("inside shared memory");
                });
            }
        }
    }
}

/// NVFP4, operands read and scales looked up each time, as the executor does.
fn tcgen05(see: See<'_>) {
    let shared = operands(64 * 1024);
    for n in [64, 128, 256] {
        let bits = 0x0800_0480 | (n / 8) << 17;
        let (kind, scales) = (tcgen05::Kind::Mxf4nvf4, Some(tcgen05::Vector::Four));
        let form =
            tcgen05::Form::decode(kind, scales, (1, false, false), bits).expect("a legal form");
        let work = Work::Flops(2 * 128 * 64 * u64::from(n));
        for level in Level::available() {
            let product = Product {
                form,
                accumulate: true,
                scale_d: 0,
                level,
                mode: MmaMode::Fast,
            };
            let mut words = vec![0x3838_3838; tcgen05::COLUMNS * tcgen05::LANES];
            let at = TensorColumns {
                d: 0,
                half: 0,
                scales: [256, 264],
                metadata: 0,
            };
            let group = format!("tcgen05 m128n{n}k64 nvfp4");
            see(&group, &format!("{level:?}"), work, &mut || {
                let (a, b) = (tile(0), tile(32 * 1024));
                let source = (Source::Shared(a, &shared), b, &shared[..]);
                let operands = Operands::read(&form, black_box(&[source]));
                product.run(&operands.expect("inside"), 0, &mut words, at);
            });
        }
    }
}

fn warp_mma(see: See<'_>) {
    let (f16, f32) = (Element::F16, mma::Accumulator::F32);
    let form = mma::Form::new((16, 8, 16), f16, f16, f32, mma::BitProduct::And, false)
        .expect("a legal form");
    let fragment: Lanes = std::array::from_fn(|i| 0x3100_3200 + i as u32);
    let work = Work::Flops(form.flops());
    see("mma.sync m16n8k16 f16", "fast", work, &mut || {
        let a = [black_box(&fragment); 4];
        let d = form.run(&a, &a[..2], &a, MmaMode::Fast);
        black_box(d).expect("a legal form");
    });
}

fn boxes(see: See<'_>) {
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
    let work = Work::Bytes(shared.len() as u64);
    let group = "box 128 rows of 128 B, 128 B swizzle";
    see(group, "load", work, &mut || {
        let rows = map
            .rows_at(black_box(&[64, 128]), &[])
            .expect("a coordinate per dimension");
        // SAFETY: nobody writes the slice.
        let loaded = unsafe {
            map.load(rows, &mut shared, 0, |from, bytes| {
                let range = from as usize..(from + bytes) as usize;
                global.get(range).map(HostBytes::to_read).ok_or(())
            })
        };
        loaded.expect("a box inside the tensor");
    });
}

fn conversions(see: See<'_>) {
    let register: Lanes = std::array::from_fn(|i| 0x3100_3200 + i as u32);
    let mut piece = |name: &str, run: &dyn Fn(&Lanes) -> Lanes| {
        see("warp-wide", name, Work::Instruction, &mut || {
            black_box(run(black_box(&register)));
        });
    };
    piece("mul.f16x2", &|r| lanes::mul_f16x2(r, &register));
    piece("fma.f16x2", &|r| lanes::fma_f16x2(r, &register, &register));
    piece("cvt.f16x2.e4m3x2", &|r| lanes::f16x2_from_e4m3x2(r));
    piece("cvt.f16x2.f32", &|r| lanes::f16x2_from_f32(r, &register));
}
