//! The oracle's kernels in the emulator, against the CPU's evaluator.

use std::sync::Arc;

use dgx_core::domain::{Distribution, Group, Shape};
use dgx_core::operator::{ElementType, Number, Operator, built_in, names};
use ptx_emu::{DevicePtr, Launch, Memory, Module, Params};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::compile::Nvrtc;
use crate::operator::{
    GroupOracle, ORACLE_THREADS, Operands, Oracle, OracleDevice, OracleKernels, Recipe,
    evaluate::tests::{expression, operator},
    solve,
};

/// The device's kernels, without the device.
struct Emulated {
    module: Module,
    memory: Memory,
}

impl Emulated {
    fn new(operator: &Operator) -> Self {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let source = OracleKernels::new(operator).source;
        // The machine code is not run, and takes ptxas longest.
        let flags = ["--gpu-architecture=sm_90a", "--ptxas-options=-O0"].map(str::to_owned);
        let compiled = compiler.compile("oracle.cu", &source, &flags, &[]);
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}\n{source}"));
        Self {
            module: Module::load(&compiled.ptx).unwrap(),
            memory: Memory::new(),
        }
    }
}

impl OracleDevice for Emulated {
    type Memory = DevicePtr;

    fn upload(&mut self, bytes: &[u8]) -> Result<DevicePtr, String> {
        let at = self.room(bytes.len() as u64)?;
        self.memory.write(at, bytes).unwrap();
        Ok(at)
    }

    fn room(&mut self, bytes: u64) -> Result<DevicePtr, String> {
        Ok(self.memory.alloc(bytes.max(16)).unwrap())
    }

    fn address(memory: &DevicePtr) -> u64 {
        memory.0
    }

    fn launch(&mut self, kernel: &str, blocks: u32, parameter: &[u8]) -> Result<(), String> {
        let launch = Launch::new(kernel)
            .grid([blocks, 1, 1])
            .block([ORACLE_THREADS, 1, 1])
            .params(Params::new().bytes(parameter));
        let ran = launch.run(&self.module, &mut self.memory);
        ran.map(|_| ()).map_err(|e| e.to_string())
    }

    fn fetch(&mut self, memory: &DevicePtr, into: &mut [u8]) -> Result<(), String> {
        let bytes = self.memory.read_vec(*memory, into.len() as u64).unwrap();
        into.copy_from_slice(&bytes);
        Ok(())
    }
}

fn shape(operator: &Operator, all: &[Vec<u64>]) -> Shape {
    let group = |sizes: &Vec<u64>| {
        let names = operator.sizes.iter().map(String::as_str);
        Group::new(names.zip(sizes.iter().map(|size| *size as u32)))
    };
    Shape {
        name: "t".to_owned(),
        groups: all.iter().map(group).collect(),
    }
}

/// Checks that both results for data of a shape are the same, and pass spot checks.
fn compare(device: &mut Emulated, operator: &Arc<Operator>, shape: &Shape, how: Distribution) {
    let operands = Operands::draw(operator, shape, how, 5);
    let solved = solve(device, &operands).unwrap();
    let name = &operator.file.text;
    let computed = Oracle::compute(&operands);
    assert_eq!(solved.groups.len(), computed.groups.len());
    for (one, other) in solved.groups.iter().zip(&computed.groups) {
        assert_eq!((one.rows, one.columns), (other.rows, other.columns));
        let same = |a: &f32, b: &f32| a == b || a.is_nan() && b.is_nan();
        assert!(one.gate.iter().zip(&other.gate).all(|(a, b)| same(a, b)));
        assert!(one.up.iter().zip(&other.up).all(|(a, b)| same(a, b)));
        let size = root_mean_square(other);
        for (place, (a, b)) in one.values.iter().zip(&other.values).enumerate() {
            let near = (a - b).abs() <= 1e-11 * (b.abs() + size);
            let same = near || a == b || a.is_nan() && b.is_nan();
            assert!(same, "{how}, {place}: {a}, by the CPU {b}\n{name}");
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    if let Err(departure) = solved.spot_check(&operands, &mut rng) {
        panic!("{how}: {departure}\n{name}");
    }
}

fn root_mean_square(answer: &GroupOracle) -> f64 {
    let finite = answer.values.iter().filter(|value| value.is_finite());
    let squares = finite.clone().map(|value| value * value);
    (squares.sum::<f64>() / finite.count().max(1) as f64).sqrt()
}

#[test]
fn every_operator_that_dgx_brings_has_the_same_answers_on_a_device() {
    for name in names() {
        let operator = dgx_core::operator::named(Some(name)).unwrap();
        assert_eq!(operator.name, built_in(name).unwrap().name);
        let mut device = Emulated::new(&operator);
        let mut shapes = vec![shape(&operator, &operator.small)];
        if !operator.groups {
            let each = operator.small.iter();
            shapes = each
                .map(|sizes| shape(&operator, std::slice::from_ref(sizes)))
                .collect();
        }
        let has_exact = Recipe::of(&operator).is_some();
        let drawn = |how: &Distribution| has_exact || *how != Distribution::Exact;
        for shape in &shapes {
            for how in Distribution::ALL.into_iter().filter(drawn) {
                compare(&mut device, &operator, shape, how);
            }
        }
    }
}

/// Sums of both products of the dual GEMM, with partial tiles.
#[test]
fn ragged_groups_of_the_dual_gemm_have_the_same_bits() {
    let operator = dgx_core::operator::default_operator();
    let mut device = Emulated::new(operator);
    let sizes = [vec![70, 256, 512], vec![1, 128, 256], vec![64, 192, 64]];
    for how in Distribution::ALL {
        compare(&mut device, operator, &shape(operator, &sizes), how);
    }
}

/// Each type is read, rounded to, multiplied and summed.
#[test]
fn every_type_is_read_and_rounded_to_as_on_the_cpu() {
    for element in ElementType::ALL {
        let (name, number) = (element.name(), element.number());
        // Casts are to plain types.
        let cast = match element.scale() {
            Some(_) => "f16".to_owned(),
            None => name.to_owned(),
        };
        let value = match number {
            Number::Truth => "where(x, 1.5, 2.5) * where(y, 2, 3)".to_owned(),
            _ => format!("{cast}(x * 0.37 + y) + (x @ y.T) @ y + mean(x, -1)"),
        };
        let range = match number {
            Number::Integer => "range = [0, 9]\n",
            _ => "",
        };
        let text = format!(
            "summary = \"test\"\nsizes = [\"m\"]\nsmall = [{{ m = 64 }}]\n\
             [in.x]\ntype = {name:?}\nsize = [\"m\", 64]\n{range}\
             [in.y]\ntype = {name:?}\nsize = [\"m\", 64]\n{range}\
             [out.z]\ntype = \"f32\"\nsize = [\"m\", 64]\nvalue = {value:?}\n"
        );
        let operator = Arc::new(operator(&text));
        let mut device = Emulated::new(&operator);
        for how in [Distribution::Benchmark, Distribution::Full] {
            compare(&mut device, &operator, &shape(&operator, &[vec![67]]), how);
        }
    }
}

/// Functions, slices, sorts, gathers and sums along other axes.
#[test]
fn every_function_is_computed_as_on_the_cpu() {
    let values = [
        "gelu(x) + silu(y) + sigmoid(x) + tanh(v) + erf(y) + relu(x)",
        "exp(x) + exp2(y) + sin(x) * cos(y) + floor(x) + round(y) + sign(v)",
        "log(abs(x) + 1) + log2(abs(y) + 1) + sqrt(abs(x)) + rsqrt(abs(y) + 1) + pow(abs(x), 1.5)",
        "maximum(x, y) // 3 + minimum(x, v) % 2 + where(x < y and x > -1 or y == v, x / 4, -y)",
        "softmax(x, -2) * cumsum(y, -1) + sum(x, -2) + max(y, -1) - min(v, -1)",
        "take(x, argsort(y, -1), -1) + i(-1) * 2 + i(-2) // 3 + m",
        "x @ (y.T @ x) + exp(mean(x @ y.T, -1))",
        "permute(permute(x, 1, 0) * 2, 1, 0) + (y * y)[:, :1] + (x + y)[:, n - 1:]",
    ];
    for value in values {
        let operator = Arc::new(expression("\"m\", \"n\"", value, "{ m = 4, n = 6 }"));
        let mut device = Emulated::new(&operator);
        let shape = shape(&operator, &[vec![5, 71]]);
        for how in [Distribution::Benchmark, Distribution::Full] {
            compare(&mut device, &operator, &shape, how);
        }
    }
}

/// A later output reads the rounded first one.
#[test]
fn outputs_that_name_others_read_what_was_written() {
    let text = "summary = \"test\"\nsizes = [\"m\", \"n\", \"t\"]\nrequires = [\"t <= n\"]\n\
                small = [{ m = 8, n = 64, t = 4 }]\n[in.x]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\n\
                [out.idx]\ntype = \"i32\"\nsize = [\"m\", \"t\"]\nvalue = \"argsort(-x, -1)[..., :t]\"\n\
                [out.s]\ntype = \"bf16\"\nsize = [\"m\", 1]\nvalue = \"sum(x, -1)\"\n\
                [out.p]\ntype = \"f32\"\nsize = [\"m\", \"t\"]\n\
                value = \"take(softmax(x, -1), idx, -1) + s\"\n";
    let operator = Arc::new(operator(text));
    let mut device = Emulated::new(&operator);
    let shape = shape(&operator, &[vec![6, 37, 5]]);
    compare(&mut device, &operator, &shape, Distribution::Full);
}

/// Attention's heads may be computed one after another; a product of products may not.
#[test]
fn leading_axes_are_cut_where_nothing_is_read_across_them() {
    let slices =
        |operator: &Operator, sizes: &[u64]| OracleKernels::new(operator).answers[0].slices(sizes);
    assert_eq!(slices(built_in("attention").unwrap(), &[3, 5, 64, 32]), 15);
    assert_eq!(slices(built_in("softmax").unwrap(), &[64, 32]), 1);
    let across = operator(
        "summary = \"test\"\nsizes = [\"b\", \"m\"]\nsmall = [{ b = 2, m = 4 }]\n\
         [in.x]\ntype = \"f32\"\nsize = [\"b\", \"m\", \"m\"]\n\
         [out.y]\ntype = \"f32\"\nsize = [\"b\", \"m\", \"m\"]\nvalue = \"x - sum(x @ x, -3)\"\n",
    );
    assert_eq!(slices(&across, &[7, 16]), 1);
}
