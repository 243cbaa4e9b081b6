//! Speed on ten kernels of different kinds, as a compiler makes them with fast math: warp
//! instructions per second on one core. Each is run once and compared with a result computed here
//! before it is timed. The last lines are the medians of each and of all, and how much longer
//! each takes when all of its warps are traced, and when all of its accesses are listened to for
//! hazards, of which none may be found.
//!
//! `MIX_LEVEL=portable|avx2|avx512` picks a vector level below the machine's best; `MIX_ONLY=sgemm`
//! runs one kernel alone, for a profiler; `MIX_SANITIZE=1` with it or without runs nothing but what is
//! listened to for hazards, and prints how long it takes; `MIX_COUNT=1` counts bank conflicts and
//! the distinct bytes that are touched, too.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use ptx_emu::trace::Watch;
use ptx_emu::{Config, DevicePtr, Launch, Level, Memory, Module, Params, Sanitize};

/// A kernel, its memory and how to tell that it was right.
struct Case {
    name: &'static str,
    ptx: &'static str,
    memory: Memory,
    launch: Launch,
    /// Result buffers, and the bytes they hold before the launch.
    outputs: Vec<(DevicePtr, Vec<u8>)>,
    expected: Vec<Expected>,
}

/// What an output buffer must hold after the first launch.
enum Expected {
    Words(Vec<u32>),
    /// The same numbers in any order, up to the last; zeros behind.
    Set(Vec<u32>),
    Floats(Vec<f32>),
}

/// Numbers that look random.
struct Draws(u32);

impl Draws {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 ^ self.0 >> 15
    }

    fn words(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.word()).collect()
    }

    /// Between −1 and 1.
    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| (self.word() >> 8) as f32 / (1 << 23) as f32 - 1.0)
            .collect()
    }
}

fn word_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn float_bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Lays out a case: inputs, then outputs, as the kernel's parameters are declared.
struct Layout {
    memory: Memory,
    params: Params,
    outputs: Vec<(DevicePtr, Vec<u8>)>,
}

impl Layout {
    fn new() -> Self {
        Self {
            memory: Memory::new(),
            params: Params::new(),
            outputs: Vec::new(),
        }
    }

    fn place(&mut self, bytes: &[u8]) -> DevicePtr {
        let at = self.memory.alloc(bytes.len() as u64).expect("memory");
        self.memory.write(at, bytes).expect("in bounds");
        at
    }

    fn input(mut self, bytes: &[u8]) -> Self {
        let at = self.place(bytes);
        self.params = self.params.pointer(at);
        self
    }

    fn output(mut self, before: Vec<u8>) -> Self {
        let at = self.place(&before);
        self.params = self.params.pointer(at);
        self.outputs.push((at, before));
        self
    }

    fn scalar(mut self, value: u32) -> Self {
        self.params = self.params.u32(value);
        self
    }

    fn case(
        self,
        name: &'static str,
        ptx: &'static str,
        grid: [u32; 2],
        block: [u32; 2],
        expected: Vec<Expected>,
    ) -> Case {
        let config = Config {
            threads: 1,
            level: level(),
            detailed_counters: std::env::var_os("MIX_COUNT").is_some(),
            ..Config::default()
        };
        Case {
            name,
            ptx,
            memory: self.memory,
            launch: Launch::new(name)
                .grid([grid[0], grid[1], 1])
                .block([block[0], block[1], 1])
                .params(self.params)
                .config(config),
            outputs: self.outputs,
            expected,
        }
    }
}

/// What the process has computed for, so that other work on the machine does not count.
fn cpu_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec for the call to fill.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    assert_eq!(status, 0, "this clock is everywhere the benchmark runs");
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Neither the least nor the mean: a virtual machine's clock of the processor is wrong at times, by
/// much.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn level() -> Level {
    match std::env::var("MIX_LEVEL").as_deref() {
        Ok("portable") => Level::Portable,
        Ok("avx2") => Level::Avx2.min(Level::best()),
        _ => Level::best(),
    }
}

fn sanitized_only() -> bool {
    std::env::var_os("MIX_SANITIZE").is_some()
}

fn scan() -> Case {
    const CTAS: usize = 32;
    let input = Draws(1).words(CTAS * 1024);
    let sums = input.chunks(1024).flat_map(|tile| {
        tile.iter().scan(0u32, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        })
    });
    Layout::new()
        .input(&word_bytes(&input))
        .output(vec![0; 4 * input.len()])
        .case(
            "scan",
            include_str!("mix/scan.ptx"),
            [CTAS as u32, 1],
            [1024, 1],
            vec![Expected::Words(sums.collect())],
        )
}

fn sort() -> Case {
    const CTAS: usize = 8;
    let keys = Draws(2).words(CTAS * 1024);
    let mut sorted = keys.clone();
    sorted.chunks_mut(1024).for_each(<[u32]>::sort_unstable);
    Layout::new().output(word_bytes(&keys)).case(
        "sort",
        include_str!("mix/sort.ptx"),
        [CTAS as u32, 1],
        [512, 1],
        vec![Expected::Words(sorted)],
    )
}

fn histogram() -> Case {
    let words = Draws(3).words(1 << 17);
    let mut bins = vec![0; 256];
    for byte in word_bytes(&words) {
        bins[usize::from(byte)] += 1;
    }
    Layout::new()
        .input(&word_bytes(&words))
        .output(vec![0; 1024])
        .scalar(words.len() as u32)
        .case(
            "histogram",
            include_str!("mix/histogram.ptx"),
            [64, 1],
            [256, 1],
            vec![Expected::Words(bins)],
        )
}

fn attention() -> Case {
    const D: usize = 32;
    let (queries, keys) = (256, 256);
    let mut draws = Draws(4);
    let q = draws.floats(queries * D);
    let (k, v) = (draws.floats(keys * D), draws.floats(keys * D));
    let mut out = Vec::new();
    for query in q.chunks(D) {
        let score = |key: &[f32]| {
            let sum: f64 = query.iter().zip(key).map(|(a, b)| f64::from(a * b)).sum();
            (sum * 0.17677669).exp()
        };
        let weights: Vec<f64> = k.chunks(D).map(score).collect();
        let all: f64 = weights.iter().sum();
        out.extend((0..D).map(|i| {
            let sum: f64 = weights
                .iter()
                .zip(v.chunks(D))
                .map(|(w, v)| w * f64::from(v[i]))
                .sum();
            (sum / all) as f32
        }));
    }
    Layout::new()
        .input(&float_bytes(&q))
        .input(&float_bytes(&k))
        .input(&float_bytes(&v))
        .output(vec![0; 4 * out.len()])
        .scalar(keys as u32)
        .case(
            "attention",
            include_str!("mix/attention.ptx"),
            [queries as u32 / 64, 1],
            [64, 1],
            vec![Expected::Floats(out)],
        )
}

fn sgemm() -> Case {
    let n = 128;
    let mut draws = Draws(5);
    let (a, b) = (draws.floats(n * n), draws.floats(n * n));
    let product = (0..n * n).map(|at| {
        let (row, column) = (at / n, at % n);
        (0..n)
            .map(|k| f64::from(a[row * n + k]) * f64::from(b[k * n + column]))
            .sum::<f64>() as f32
    });
    let product = product.collect();
    Layout::new()
        .input(&float_bytes(&a))
        .input(&float_bytes(&b))
        .output(vec![0; 4 * n * n])
        .scalar(n as u32)
        .case(
            "sgemm",
            include_str!("mix/sgemm.ptx"),
            [n as u32 / 64, n as u32 / 64],
            [256, 1],
            vec![Expected::Floats(product)],
        )
}

fn stencil() -> Case {
    let n = 512;
    let grid = Draws(6).floats(n * n);
    let next = (0..n * n).map(|at| {
        let (x, y) = (at % n, at / n);
        match (1..n - 1).contains(&x) && (1..n - 1).contains(&y) {
            true => {
                let around = grid[at - 1] + grid[at + 1] + grid[at - n] + grid[at + n];
                grid[at] + 0.2 * (around - 4.0 * grid[at])
            }
            false => grid[at],
        }
    });
    let next = next.collect();
    Layout::new()
        .input(&float_bytes(&grid))
        .output(vec![0; 4 * n * n])
        .scalar(n as u32)
        .case(
            "stencil",
            include_str!("mix/stencil.ptx"),
            [n as u32 / 32, n as u32 / 16],
            [32, 16],
            vec![Expected::Floats(next)],
        )
}

fn transpose() -> Case {
    let n = 512;
    let matrix = Draws(7).words(n * n);
    let turned = (0..n * n).map(|at| matrix[at % n * n + at / n]).collect();
    Layout::new()
        .input(&word_bytes(&matrix))
        .output(vec![0; 4 * n * n])
        .scalar(n as u32)
        .case(
            "transpose",
            include_str!("mix/transpose.ptx"),
            [n as u32 / 32, n as u32 / 32],
            [32, 8],
            vec![Expected::Words(turned)],
        )
}

fn spmv() -> Case {
    let n = 8192;
    let mut draws = Draws(8);
    let mut rows = vec![0u32];
    let mut columns = Vec::new();
    for _ in 0..n {
        let length = draws.word() >> 16 & 15;
        columns.extend((0..length).map(|_| (draws.word() >> 8) % n));
        rows.push(columns.len() as u32);
    }
    let (values, x) = (draws.floats(columns.len()), draws.floats(n as usize));
    let y = rows.windows(2).map(|ends| {
        let row = ends[0] as usize..ends[1] as usize;
        row.map(|i| f64::from(values[i]) * f64::from(x[columns[i] as usize]))
            .sum::<f64>() as f32
    });
    let y = y.collect();
    Layout::new()
        .input(&word_bytes(&rows))
        .input(&word_bytes(&columns))
        .input(&float_bytes(&values))
        .input(&float_bytes(&x))
        .output(vec![0; 4 * n as usize])
        .scalar(n)
        .case(
            "spmv",
            include_str!("mix/spmv.ptx"),
            [n / 128, 1],
            [128, 1],
            vec![Expected::Floats(y)],
        )
}

fn nbody() -> Case {
    let (n, time) = (512, 0.5f32);
    let bodies = Draws(9).floats(4 * n);
    let body = |i: usize| -> [f64; 4] { std::array::from_fn(|c| f64::from(bodies[4 * i + c])) };
    let mut out = Vec::new();
    for me in (0..n).map(body) {
        let mut a = [0.0; 3];
        for other in (0..n).map(body) {
            let d: [f64; 3] = std::array::from_fn(|c| other[c] - me[c]);
            let square: f64 = d.iter().map(|x| x * x).sum::<f64>() + 1e-3;
            let pull = other[3] / (square * square.sqrt());
            for c in 0..3 {
                a[c] += d[c] * pull;
            }
        }
        let wave = (me[0] + f64::from(time)).sin() * (-me[3]).exp();
        let size = a[0].hypot(a[1]);
        let all = [a[0] + wave, a[1] + me[1].cos() * wave, a[2], size];
        out.extend(all.map(|x| x as f32));
    }
    Layout::new()
        .input(&float_bytes(&bodies))
        .output(vec![0; 16 * n])
        .scalar(n as u32)
        .scalar(time.to_bits())
        .case(
            "nbody",
            include_str!("mix/nbody.ptx"),
            [n as u32 / 128, 1],
            [128, 1],
            vec![Expected::Floats(out)],
        )
}

fn compact() -> Case {
    let words = Draws(10).words(1 << 17);
    let odd: Vec<u32> = words.iter().copied().filter(|x| x & 1 == 1).collect();
    let count = odd.len() as u32;
    Layout::new()
        .input(&word_bytes(&words))
        .output(vec![0; 4 * words.len()])
        .output(vec![0; 4])
        .scalar(words.len() as u32)
        .case(
            "compact",
            include_str!("mix/compact.ptx"),
            [64, 1],
            [256, 1],
            vec![Expected::Set(odd), Expected::Words(vec![count])],
        )
}

impl Case {
    /// Puts the outputs back as they were, runs, and returns warp instructions and time.
    fn run(&mut self, module: &Module) -> (u64, Duration) {
        for (at, before) in &self.outputs {
            self.memory.write(*at, before).expect("in bounds");
        }
        let began = cpu_time();
        let report = self
            .launch
            .run(module, &mut self.memory)
            .expect("a correct kernel");
        (report.counters.total_instructions(), cpu_time() - began)
    }

    /// Runs for two seconds, for a profiler, and prints the speed.
    fn repeat(&mut self) {
        let module = Module::load(self.ptx).expect("the benchmark's own PTX");
        let (mut times, mut executed) = (Vec::new(), 0);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            let time = match sanitized_only() {
                true => self.sanitize(&module),
                false => {
                    let (instructions, time) = self.run(&module);
                    executed = instructions;
                    time
                }
            };
            self.check();
            times.push(time);
        }
        let time = median(times).as_secs_f64();
        match sanitized_only() {
            true => println!("{:>10} {:8.2} ms when listened to", self.name, time * 1e3),
            false => {
                let speed = executed as f64 / time / 1e6;
                println!("{:>10} {speed:8.2} M warp instructions/s", self.name);
            }
        }
    }

    /// The same with everything listened to for hazards, of which there are none.
    fn sanitize(&mut self, module: &Module) -> Duration {
        for (at, before) in &self.outputs {
            self.memory.write(*at, before).expect("in bounds");
        }
        let began = cpu_time();
        let all = Sanitize::default();
        let (ran, found) = self.launch.run_sanitized(module, &mut self.memory, &all);
        let time = cpu_time() - began;
        ran.expect("a correct kernel");
        assert!(found.all.is_empty(), "{}: {:#?}", self.name, found.all);
        time
    }

    /// The same with everything traced: the time it takes.
    fn trace(&mut self, module: &Module) -> Duration {
        for (at, before) in &self.outputs {
            self.memory.write(*at, before).expect("in bounds");
        }
        let ctas = self.launch.grid.iter().map(|&n| u64::from(n)).product();
        let watch = Watch {
            ctas: (0..ctas).collect(),
            only: false,
        };
        let began = cpu_time();
        let traced = self.launch.run_traced(module, &mut self.memory, &watch);
        traced.expect("a correct kernel");
        cpu_time() - began
    }

    fn check(&self) {
        for ((at, before), expected) in self.outputs.iter().zip(&self.expected) {
            let bytes = self.memory.view(*at, before.len() as u64).expect("bytes");
            let (words, _) = bytes.as_chunks::<4>();
            let mut words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
            match expected {
                Expected::Words(expected) => assert_eq!(&words, expected, "{}", self.name),
                Expected::Set(expected) => {
                    let mut expected = expected.clone();
                    assert!(words.drain(expected.len()..).all(|x| x == 0));
                    words.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(words, expected, "{}", self.name);
                }
                Expected::Floats(expected) => {
                    assert_eq!(words.len(), expected.len());
                    for (i, (&word, want)) in words.iter().zip(expected).enumerate() {
                        let got = f32::from_bits(word);
                        let near = (got - want).abs() <= 1e-4 * (1.0 + want.abs());
                        assert!(near, "{}[{i}]: {got} instead of {want}", self.name);
                    }
                }
            }
        }
    }
}

fn main() {
    let cases: [fn() -> Case; 10] = [
        scan, sort, histogram, attention, sgemm, stencil, transpose, spmv, nbody, compact,
    ];
    if let Ok(only) = std::env::var("MIX_ONLY") {
        let mut chosen = cases.map(|case| case());
        let case = chosen.iter_mut().find(|case| case.name == only);
        return case.expect("a kernel of that name").repeat();
    }
    if sanitized_only() {
        return cases.iter().for_each(|case| case().repeat());
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut speeds: Vec<(&str, f64)> = Vec::new();
    let mut slower: Vec<(&str, f64, f64)> = Vec::new();
    for case in cases {
        let mut case = case();
        let module = Module::load(case.ptx).expect("the benchmark's own PTX");
        let (instructions, _) = case.run(&module);
        case.check();
        let mut times = Vec::new();
        let mut group = criterion.benchmark_group("mix");
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(1));
        group.warm_up_time(Duration::from_millis(1));
        group.throughput(Throughput::Elements(instructions));
        group.bench_function(case.name, |b| {
            b.iter_custom(|calls| {
                let one = |_| {
                    let (_, time) = case.run(&module);
                    times.push(time);
                    time
                };
                (0..calls).map(one).sum()
            });
        });
        group.finish();
        let plain = median(times).as_secs_f64();
        speeds.push((case.name, instructions as f64 / plain / 1e6));
        let traced = median((0..5).map(|_| case.trace(&module)).collect());
        let sanitized = median((0..5).map(|_| case.sanitize(&module)).collect());
        let times = |slow: Duration| slow.as_secs_f64() / plain;
        slower.push((case.name, times(traced), times(sanitized)));
    }
    criterion.final_summary();
    for (name, speed) in &speeds {
        println!("{name:>10} {speed:8.2} M warp instructions/s");
    }
    speeds.sort_by(|a, b| a.1.total_cmp(&b.1));
    let median = (speeds[4].1 + speeds[5].1) / 2.0;
    println!("{:>10} {median:8.2} M warp instructions/s", "median");
    for (name, traced, sanitized) in &slower {
        println!(
            "{name:>10} {traced:8.2} times as long when traced, {sanitized:.2} when listened to"
        );
    }
}
