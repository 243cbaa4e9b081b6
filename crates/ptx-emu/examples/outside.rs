//! Runs PTX that others' compilers made and compares it with a product on the host: Triton's of
//! `tests/ptx/blackwell.py`, CUTLASS's NVFP4 GEMM for a B200 and its f16 GEMMs for an H200. All of it
//! is watched for hazards. docs/internals/emulator.md says how the files come about; none of them is kept
//! here.
//!
//! ```text
//! outside triton FOLDER [NAME]      the kernels that blackwell.py wrote there, for either card
//! outside cutlass PTX HOST M N K    CUTLASS's kernel, launched as the host program HOST says
//! ```

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use ptx_emu::{
    Config, DeviceLimits, DevicePtr, Launch, Memory, MmaMode, Module, Params, Report, Sanitize,
};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["triton", folder] => triton(Path::new(folder), ""),
        ["triton", folder, name] => triton(Path::new(folder), name),
        ["cutlass", ptx, host, m, n, k] => cutlass(ptx, host, [m, n, k]),
        _ => Err("usage: outside triton FOLDER [NAME] | cutlass PTX HOST M N K".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Element types of operands.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    F16,
    Bf16,
    F32,
    E4m3,
    /// Two to a byte.
    E2m1,
}

impl Number {
    fn bits(self) -> usize {
        match self {
            Self::F32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 => 8,
            Self::E2m1 => 4,
        }
    }

    /// A code and its value, from a draw.
    fn draw(self, random: u64) -> (u64, f64) {
        let small = (random % 9) as f64 - 4.0;
        match self {
            Self::F16 => (
                half::f16::from_f64(small / 4.0).to_bits().into(),
                small / 4.0,
            ),
            Self::Bf16 => (
                half::bf16::from_f64(small / 4.0).to_bits().into(),
                small / 4.0,
            ),
            Self::F32 => (((small / 4.0) as f32).to_bits().into(), small / 4.0),
            Self::E4m3 => {
                // Exponents around one, any fraction.
                let code = (random & 0x80) | (0x30 + (random >> 8) % 24);
                (code, e4m3(code as u8))
            }
            Self::E2m1 => (random % 16, e2m1(random % 16)),
        }
    }
}

fn e4m3(code: u8) -> f64 {
    let (biased, fraction) = (i32::from(code >> 3 & 15), f64::from(code & 7) / 8.0);
    let magnitude = match biased {
        0 => fraction * 2f64.powi(-6),
        _ => (1.0 + fraction) * 2f64.powi(biased - 7),
    };
    if code & 0x80 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

fn e2m1(code: u64) -> f64 {
    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code as usize % 8];
    if code & 8 != 0 { -magnitude } else { magnitude }
}

struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// A matrix of `rows` by `k`, K-major: its bytes and its values.
struct Matrix {
    bytes: Vec<u8>,
    values: Vec<f64>,
}

impl Matrix {
    fn draw(number: Number, rows: usize, k: usize, draws: &mut Draws) -> Self {
        let bits = number.bits();
        let mut bytes = vec![0; rows * k * bits / 8];
        let mut values = Vec::with_capacity(rows * k);
        for at in 0..rows * k {
            let (code, value) = number.draw(draws.next());
            match bits {
                4 => bytes[at / 2] |= (code as u8) << (4 * (at % 2)),
                _ => {
                    let each = bits / 8;
                    bytes[at * each..][..each].copy_from_slice(&code.to_le_bytes()[..each]);
                }
            }
            values.push(value);
        }
        Self { bytes, values }
    }

    /// Scales of each `block` along k, applied to the values; as they lie row by row, and in atoms
    /// of 128 rows and 4 scales.
    fn scale(
        &mut self,
        ue8m0: bool,
        rows: usize,
        k: usize,
        block: usize,
        draws: &mut Draws,
    ) -> [Vec<u8>; 2] {
        let each = k / block;
        let mut plain = vec![0; rows * each];
        let mut atoms = vec![0; rows.next_multiple_of(128) * each];
        for (row, j) in (0..rows).flat_map(|row| (0..each).map(move |j| (row, j))) {
            let (code, factor) = match ue8m0 {
                true => {
                    let code = 125 + (draws.next() % 5) as u8;
                    (code, 2f64.powi(i32::from(code) - 127))
                }
                false => {
                    let code = 0x30 + (draws.next() % 16) as u8;
                    (code, e4m3(code))
                }
            };
            plain[row * each + j] = code;
            let atom = row / 128 * (each / 4) + j / 4;
            atoms[512 * atom + row % 32 * 16 + row / 32 % 4 * 4 + j % 4] = code;
            for value in &mut self.values[row * k + j * block..][..block] {
                *value *= factor;
            }
        }
        [plain, atoms]
    }
}

/// The product of rows of A and rows of B, as CUTLASS and Triton lay it out.
fn product(a: &Matrix, b: &Matrix, [m, n, k]: [usize; 3]) -> Vec<f64> {
    let row = |of: &Matrix, at: usize| of.values[at * k..][..k].to_vec();
    let columns: Vec<Vec<f64>> = (0..n).map(|at| row(b, at)).collect();
    let sums = (0..m).flat_map(|at| {
        let a = row(a, at);
        let dot = |b: &Vec<f64>| a.iter().zip(b).map(|(x, y)| x * y).sum();
        columns.iter().map(dot).collect::<Vec<f64>>()
    });
    sums.collect()
}

/// Compares, relative to the largest value.
fn compare(what: &str, found: &[f64], want: &[f64], allowed: f64, began: Instant) -> Outcome {
    let largest = want.iter().fold(0f64, |most, x| most.max(x.abs()));
    let error = found.iter().zip(want).map(|(x, y)| (x - y).abs() / largest);
    let worst = error.fold(
        0f64,
        |worst, e| if e > worst || e.is_nan() { e } else { worst },
    );
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: worst error {worst:.2e} of the largest value, {seconds:.1} s");
    match worst <= allowed {
        true => Ok(()),
        false => Err(format!("{what}: wrong, {allowed:.0e} is allowed").into()),
    }
}

fn place(memory: &mut Memory, bytes: &[u8]) -> Result<DevicePtr, Box<dyn Error>> {
    let at = memory.alloc(bytes.len().max(16) as u64)?;
    memory.write(at, bytes)?;
    Ok(at)
}

fn floats(
    memory: &Memory,
    at: DevicePtr,
    count: usize,
    number: Number,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let each = number.bits() / 8;
    let bytes = memory.read_vec(at, (count * each) as u64)?;
    Ok(bytes
        .chunks_exact(each)
        .map(|b| match number {
            Number::F16 => half::f16::from_le_bytes([b[0], b[1]]).to_f64(),
            Number::Bf16 => half::bf16::from_le_bytes([b[0], b[1]]).to_f64(),
            _ => f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into(),
        })
        .collect())
}

/// What blackwell.py wrote: file, kernel, operand types, scales (their block, and in atoms or not),
/// the result's type, tile and how many of them a CTA takes.
struct Kernel {
    file: &'static str,
    entry: &'static str,
    types: [Number; 2],
    scales: Option<(usize, bool)>,
    result: Number,
    tile: [usize; 3],
    /// Tiles of a CTA.
    tiles: usize,
}

const fn plain(file: &'static str, types: Number, tile: [usize; 3]) -> Kernel {
    Kernel {
        file,
        entry: "dot_pointers",
        types: [types; 2],
        scales: None,
        result: Number::F32,
        tile,
        tiles: 1,
    }
}

/// Takes two tiles with each CTA.
const fn persistent(file: &'static str) -> Kernel {
    Kernel {
        entry: "dot_persistent",
        result: Number::F16,
        tiles: 2,
        ..plain(file, Number::F16, [128, 64, 64])
    }
}

const fn scaled(
    file: &'static str,
    types: [Number; 2],
    block: usize,
    atoms: bool,
    k: usize,
) -> Kernel {
    Kernel {
        file,
        entry: if atoms {
            "dot_scaled_tma"
        } else {
            "dot_scaled"
        },
        types,
        scales: Some((block, atoms)),
        result: Number::F32,
        tile: [128, 128, k],
        tiles: 1,
    }
}

const FOURS: [Number; 2] = [Number::E2m1; 2];
const EIGHTS: [Number; 2] = [Number::E4m3; 2];
const MIXED: [Number; 2] = [Number::E4m3, Number::E2m1];

const KERNELS: &[Kernel] = &[
    Kernel {
        entry: "matmul",
        result: Number::F16,
        ..plain("dot_f16", Number::F16, [128, 128, 64])
    },
    plain("dot_ptr_f16", Number::F16, [128, 64, 64]),
    plain("dot_ptr_f8", Number::E4m3, [128, 64, 128]),
    plain("dot_ptr_bf16_m64", Number::Bf16, [64, 64, 64]),
    plain("dot_ptr_tf32", Number::F32, [128, 64, 32]),
    plain("dot_ptr_f16_8w", Number::F16, [128, 256, 64]),
    persistent("persistent"),
    persistent("specialized"),
    scaled("scaled_nvfp4", FOURS, 16, false, 256),
    scaled("scaled_tma_nvfp4", FOURS, 16, true, 256),
    scaled("scaled_mxfp4", FOURS, 32, false, 128),
    scaled("scaled_tma_mxfp4", FOURS, 32, true, 128),
    scaled("scaled_mxfp8", EIGHTS, 32, false, 128),
    scaled("scaled_tma_mxfp8", EIGHTS, 32, true, 128),
    scaled("scaled_mxmixed", MIXED, 32, false, 128),
    scaled("scaled_tma_mxmixed", MIXED, 32, true, 128),
];

fn triton(folder: &Path, only: &str) -> Outcome {
    let mut failed = Vec::new();
    // Not every card has all of them.
    let here = |k: &&Kernel| folder.join(k.file).with_extension("ptx").exists();
    let kernels: Vec<&Kernel> = KERNELS
        .iter()
        .filter(|k| only.is_empty() || k.file == only)
        .filter(here)
        .collect();
    if kernels.is_empty() {
        return Err(format!("{} has none of the kernels", folder.display()).into());
    }
    for kernel in kernels {
        for (seed, mma_mode) in [(0, MmaMode::Fast), (1, MmaMode::Exact)] {
            if let Err(error) = run_triton(folder, kernel, seed, mma_mode) {
                eprintln!("{}: {error}", kernel.file);
                failed.push(kernel.file);
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("{} runs failed", failed.len()).into()),
    }
}

fn run_triton(folder: &Path, kernel: &Kernel, seed: u64, mma_mode: MmaMode) -> Outcome {
    let text = std::fs::read_to_string(folder.join(kernel.file).with_extension("ptx"))?;
    let meta = std::fs::read_to_string(folder.join(kernel.file).with_extension("shared"))?;
    let shared: u32 = meta.trim().parse()?;
    let module = Module::load(&text)?;
    let [bm, bn, bk] = kernel.tile;
    let [m, n, k] = [2 * bm, 2 * bn, 4 * bk];
    let mut draws = Draws(seed + 1);
    let mut a = Matrix::draw(kernel.types[0], m, k, &mut draws);
    let mut b = Matrix::draw(kernel.types[1], n, k, &mut draws);
    let mut memory = Memory::new();
    let mut params = Params::new();
    let operands = [(&mut a, m), (&mut b, n)];
    for (matrix, rows) in operands {
        let at = place(&mut memory, &matrix.bytes)?;
        params = params.pointer(at);
        if let Some((block, atoms)) = kernel.scales {
            let scales = matrix.scale(block == 32, rows, k, block, &mut draws);
            let at = place(&mut memory, &scales[usize::from(atoms)])?;
            params = params.pointer(at);
        }
    }
    let bytes = m * n * kernel.result.bits() / 8;
    let c = place(&mut memory, &vec![0xff; bytes])?;
    let ctas = (m / bm * (n / bn) / kernel.tiles) as u32;
    let scratch = memory.alloc(1024 * u64::from(ctas))?;
    let params = params
        .pointer(c)
        .u32(m as u32)
        .u32(n as u32)
        .u32(k as u32)
        .pointer(scratch)
        .pointer(DevicePtr(0));
    let began = Instant::now();
    let launch = Launch::new(kernel.entry)
        .grid([ctas, 1, 1])
        .block([threads(&text)?, 1, 1])
        .shared_bytes(shared)
        .params(params)
        .config(Config {
            seed,
            mma_mode,
            scoreboard: true,
            limits: DeviceLimits::of_target(module.target()).unwrap_or_default(),
            ..Config::default()
        });
    run(&launch, &module, &mut memory)?;
    let found = floats(&memory, c, m * n, kernel.result)?;
    let what = format!("{} {m}x{n}x{k} {mma_mode:?}", kernel.file);
    compare(&what, &found, &product(&a, &b, [m, n, k]), 1e-3, began)
}

/// As many as the compiler says; more than it was asked for where warps have tasks of their own.
fn threads(ptx: &str) -> Result<u32, Box<dyn Error>> {
    let (_, after) = ptx.split_once(".reqntid ").ok_or("no .reqntid")?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next();
    Ok(digits.unwrap_or_default().parse()?)
}

/// Runs a kernel, and says what it does that is right by luck.
fn run(launch: &Launch, module: &Module, memory: &mut Memory) -> Result<Report, Box<dyn Error>> {
    let (report, found) = launch.run_sanitized(module, memory, &Sanitize::default());
    for finding in &found.all {
        println!("{finding}");
    }
    match found.all.len() {
        0 => Ok(report?),
        count => Err(format!("{count} hazards").into()),
    }
}

/// CUTLASS's own host code says how its kernel is launched, given where its operands lie.
fn cutlass(ptx: &str, host: &str, size: [&str; 3]) -> Outcome {
    let [m, n, k]: [usize; 3] = [size[0].parse()?, size[1].parse()?, size[2].parse()?];
    let text = std::fs::read_to_string(ptx)?;
    let module = Module::load(&text)?;
    // Which operands it takes goes with the card.
    let hopper = module.target() == "sm_90a";
    let number = if hopper { Number::F16 } else { Number::E2m1 };
    for (name, reason) in module.refused() {
        println!("refused {}…: {reason}", &name[..name.len().min(40)]);
    }
    let kernel = module
        .kernels()
        .map(|kernel| kernel.name.to_owned())
        .find(|name| name.contains("device_kernel") || name.contains("cutlass6Kernel"))
        .ok_or("no kernel of CUTLASS can run")?;
    for (seed, mma_mode) in [(0, MmaMode::Fast), (1, MmaMode::Exact)] {
        let mut draws = Draws(seed + 1);
        let mut a = Matrix::draw(number, m, k, &mut draws);
        let mut b = Matrix::draw(number, n, k, &mut draws);
        let mut scale = |matrix: &mut Matrix, rows| match hopper {
            true => Vec::new(),
            false => matrix.scale(false, rows, k, 16, &mut draws)[1].clone(),
        };
        let (sfa, sfb) = (scale(&mut a, m), scale(&mut b, n));
        let mut memory = Memory::new();
        let c = vec![0xff; m * n * 2];
        let mut places = Vec::new();
        for bytes in [&a.bytes, &b.bytes, &sfa, &sfb, &c, &c, &vec![0; 1 << 20]] {
            places.push(place(&mut memory, bytes)?);
        }
        let file = std::env::temp_dir().join(format!("cutlass-params-{}", std::process::id()));
        let mut words: Vec<String> = size.iter().map(|word| (*word).to_owned()).collect();
        words.extend(places.iter().map(|at| format!("{:#x}", at.0)));
        let told = Command::new(host).args(&words).arg(&file).output()?;
        if !told.status.success() {
            return Err(String::from_utf8_lossy(&told.stderr).into());
        }
        let params = std::fs::read(&file)?;
        std::fs::remove_file(&file)?;
        let told = String::from_utf8(told.stdout)?;
        let numbers: Vec<u32> = told
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let &[gx, gy, gz, bx, by, bz, cx, cy, cz, shared, ..] = &numbers[..] else {
            return Err(format!("the host program said: {told}").into());
        };
        let began = Instant::now();
        let launch = Launch::new(&kernel)
            .grid([gx, gy, gz])
            .block([bx, by, bz])
            .cluster([cx, cy, cz])
            .shared_bytes(shared)
            .params(Params::new().bytes(&params))
            .config(Config {
                seed,
                mma_mode,
                step_limit: 500_000_000,
                scoreboard: true,
                limits: DeviceLimits::of_target(module.target()).unwrap_or_default(),
                ..Config::default()
            });
        let report = run(&launch, &module, &mut memory)?;
        if let Some(early) = report.early_read {
            println!("early read: {}", early.what);
        }
        let found = floats(&memory, places[5], m * n, Number::Bf16)?;
        let what = format!("{ptx} {m}x{n}x{k}, cluster {cx}x{cy}, {mma_mode:?}");
        // bf16 results have eight bits, and parts of a sum may be rounded one by one.
        compare(&what, &found, &product(&a, &b, [m, n, k]), 8e-3, began)?;
    }
    Ok(())
}
