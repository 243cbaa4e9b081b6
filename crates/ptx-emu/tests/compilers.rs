//! PTX of another compiler runs as well: Triton's softmax, and its matrix product, which builds
//! its tensor maps on the device.

use half::f16;
use ptx_emu::{DevicePtr, Launch, Memory, Module, Params, Sanitize};

fn upload(memory: &mut Memory, bytes: &[u8]) -> DevicePtr {
    let at = memory.alloc(bytes.len() as u64).expect("memory");
    memory.write(at, bytes).expect("in bounds");
    at
}

/// Small integers, whose products and sums are exact in every format used here.
fn numbers(count: usize, mut state: u32) -> Vec<f32> {
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 29) as f32 - 4.0
    };
    (0..count).map(|_| next()).collect()
}

/// Runs a kernel that is neither wrong nor right by luck.
fn run(launch: &Launch, module: &Module, memory: &mut Memory) {
    let (ran, found) = launch.run_sanitized(module, memory, &Sanitize::default());
    ran.unwrap_or_else(|error| panic!("{error}"));
    assert!(found.all.is_empty(), "{:#?}", found.all);
}

#[test]
fn softmax() {
    let module = Module::load(include_str!("ptx/softmax.ptx")).expect("lowers");
    let (rows, n) = (3, 781);
    let x = numbers(rows * n, 1);
    let bytes: Vec<u8> = x.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut memory = Memory::new();
    let input = upload(&mut memory, &bytes);
    let output = upload(&mut memory, &vec![0; bytes.len()]);
    let unused = DevicePtr(0);
    let params = Params::new()
        .pointer(input)
        .pointer(output)
        .u32(n as u32)
        .pointer(unused)
        .pointer(unused);
    let launch = Launch::new("softmax")
        .grid([rows as u32, 1, 1])
        .block([128, 1, 1])
        .shared_bytes(16)
        .params(params);
    run(&launch, &module, &mut memory);
    let found = memory
        .read_vec(output, bytes.len() as u64)
        .expect("in bounds");
    let found: Vec<f32> = found
        .chunks_exact(4)
        .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    for (row, found) in x.chunks(n).zip(found.chunks(n)) {
        let sum: f64 = row.iter().map(|&value| f64::from(value).exp()).sum();
        for (&value, &found) in row.iter().zip(found) {
            let expected = f64::from(value).exp() / sum;
            assert!(
                (f64::from(found) / expected - 1.0).abs() < 1e-5,
                "{found} for {expected}"
            );
        }
    }
}

#[test]
fn matrix_product_with_maps_made_on_the_device() {
    let module = Module::load(include_str!("ptx/matmul.ptx")).expect("lowers");
    let (m, n, k) = (128, 192, 320);
    let (a, b) = (numbers(m * k, 2), numbers(n * k, 3));
    let halves = |values: &[f32]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|&value| f16::from_f32(value).to_le_bytes())
            .collect()
    };
    let mut memory = Memory::new();
    let a_at = upload(&mut memory, &halves(&a));
    let b_at = upload(&mut memory, &halves(&b));
    let c_at = upload(&mut memory, &vec![0xff; m * n * 2]);
    let ctas = (m / 64 * n / 64) as u32;
    // Three maps of 128 bytes for each CTA.
    let scratch = upload(&mut memory, &vec![0; ctas as usize * 3 * 128]);
    let params = Params::new()
        .pointer(a_at)
        .pointer(b_at)
        .pointer(c_at)
        .u32(m as u32)
        .u32(n as u32)
        .u32(k as u32)
        .pointer(scratch)
        .pointer(scratch);
    let launch = Launch::new("matmul")
        .grid([ctas, 1, 1])
        .block([128, 1, 1])
        .shared_bytes(64 << 10)
        .params(params);
    run(&launch, &module, &mut memory);
    let found = memory
        .read_vec(c_at, (m * n * 2) as u64)
        .expect("in bounds");
    for (at, half) in found.chunks_exact(2).enumerate() {
        let (row, column) = (at / n, at % n);
        let expected: f32 = (0..k).map(|i| a[row * k + i] * b[column * k + i]).sum();
        let found = f16::from_le_bytes([half[0], half[1]]);
        assert_eq!(found, f16::from_f32(expected), "row {row}, column {column}");
    }
}
