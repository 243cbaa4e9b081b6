//! Divergence, loops, switches, calls and early exits, against the same computation in Rust.

use ptx_emu::{Config, DevicePtr, Launch, Memory, Module, Params};

const COMPILED: &str = include_str!("ptx/control.ptx");
const WRITTEN: &str = include_str!("ptx/written.ptx");

struct Bench {
    module: Module,
    memory: Memory,
}

impl Bench {
    fn new(text: &str) -> Self {
        Self {
            module: ptx_emu::Module::load(text).expect("the fixture lowers"),
            memory: Memory::new(),
        }
    }

    fn upload(&mut self, values: &[u32]) -> DevicePtr {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let at = self.memory.alloc(bytes.len() as u64).expect("memory");
        self.memory.write(at, &bytes).expect("in bounds");
        at
    }

    fn download(&self, at: DevicePtr, count: usize) -> Vec<u32> {
        let bytes = self
            .memory
            .read_vec(at, 4 * count as u64)
            .expect("in bounds");
        let words = bytes.chunks_exact(4);
        words
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect()
    }

    /// Runs one CTA; the same for several schedules.
    fn run(&mut self, kernel: &str, threads: u32, params: Params, seed: u64) {
        let config = Config {
            seed,
            ..Config::default()
        };
        let launch = Launch::new(kernel)
            .block([threads, 1, 1])
            .params(params)
            .config(config);
        launch
            .run(&self.module, &mut self.memory)
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    }
}

fn inputs() -> Vec<u32> {
    let mut state = 12345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % 1000 + 1
    };
    (0..128).map(|_| next()).collect()
}

/// Runs `kernel(in, out)` on 128 threads and compares every output.
fn check(kernel: &str, expected: impl Fn(u32, &[u32]) -> u32) {
    let mut bench = Bench::new(COMPILED);
    let values = inputs();
    let input = bench.upload(&values);
    for seed in 0..3 {
        let output = bench.upload(&[0; 128]);
        let params = Params::new().pointer(input).pointer(output);
        bench.run(kernel, 128, params, seed);
        let found = bench.download(output, 128);
        for i in 0..128 {
            assert_eq!(
                found[i as usize],
                expected(i, &values),
                "{kernel}, thread {i}"
            );
        }
    }
}

#[test]
fn loops_end_where_each_lane_says() {
    let mut bench = Bench::new(COMPILED);
    let values = inputs();
    let input = bench.upload(&values);
    let output = bench.upload(&[7; 128]);
    let params = Params::new().pointer(input).pointer(output).u32(100);
    bench.run("collatz", 128, params, 0);
    let steps = |mut x: u32| {
        let mut steps = 0;
        while x != 1 && steps < 200 {
            x = if x % 2 == 1 { 3 * x + 1 } else { x / 2 };
            steps += 1;
        }
        steps
    };
    let found = bench.download(output, 128);
    for (i, &steps_found) in found.iter().enumerate() {
        let expected = if i < 100 { steps(values[i]) } else { 7 };
        assert_eq!(steps_found, expected, "thread {i}");
    }
}

#[test]
fn nested_loops_break_and_continue() {
    check("nested", |i, values| {
        let mut sum = 0u32;
        for a in 0..=values[i as usize] % 7 {
            if a == 3 {
                continue;
            }
            for b in 0..10 {
                if b * a > i {
                    break;
                }
                sum = sum.wrapping_add(a * 16 + b);
                if sum & 15 == 5 {
                    sum ^= i;
                    continue;
                }
                sum += 1;
            }
        }
        sum
    });
}

#[test]
fn switches_reach_every_case() {
    check("table", |i, values| {
        let x = values[i as usize];
        match x % 11 {
            0 => x + 7,
            1 => x.reverse_bits(),
            2 => (x ^ 0x5555).wrapping_mul(3),
            3 => x.wrapping_mul(3),
            4 => 99,
            5 => x << (i & 7),
            6 => x.count_ones(),
            7 => x.wrapping_sub(i),
            8 => x / 5,
            _ => !x,
        }
    });
}

fn checked(x: u32) -> u32 {
    if x.is_multiple_of(3) {
        return x.wrapping_add(100);
    }
    let (mut low, mut high) = (x, 1u64);
    for _ in 0..x % 4 {
        if low & 1 == 1 {
            high += u64::from(low);
        }
        low = low.wrapping_mul(5).wrapping_add(1);
    }
    low.wrapping_add(high as u32).wrapping_add(3)
}

#[test]
fn calls_pass_structures_and_return_early() {
    check("calls", |i, values| {
        let mut x = values[i as usize];
        if i % 2 == 1 {
            x = checked(x);
        }
        checked(x.wrapping_add(i))
    });
}

#[test]
fn calls_through_pointers() {
    let mut bench = Bench::new(COMPILED);
    let values = inputs();
    let input = bench.upload(&values);
    for which in 0..2 {
        let output = bench.upload(&[0; 128]);
        let params = Params::new().pointer(input).pointer(output).u32(which);
        bench.run("pointers", 128, params, 0);
        let chosen = |x: u32| {
            if which == 1 {
                x + 13
            } else {
                x.wrapping_sub(17)
            }
        };
        for (i, &found) in bench.download(output, 128).iter().enumerate() {
            let expected = chosen(values[i]).wrapping_add(chosen(i as u32));
            assert_eq!(found, expected, "thread {i}");
        }
    }
}

#[test]
fn lanes_that_left_do_not_hold_a_barrier() {
    let mut bench = Bench::new(COMPILED);
    // Whole warps and parts of warps leave; the barrier counts warps that have lanes left.
    for n in [128, 96, 70, 33] {
        let output = bench.upload(&[7; 128]);
        let params = Params::new().pointer(output).u32(n);
        bench.run("leave_before_barrier", 128, params, 0);
        for (i, &found) in bench.download(output, 128).iter().enumerate() {
            let i = i as u32;
            let expected = if i < n { (n - 1 - i).pow(2) } else { 7 };
            assert_eq!(found, expected, "{n} threads stay, thread {i}");
        }
    }
}

#[test]
fn shuffles_and_barriers_reduce() {
    let mut bench = Bench::new(COMPILED);
    let values = inputs();
    let input = bench.upload(&values);
    let output = bench.upload(&[0]);
    let params = Params::new().pointer(input).pointer(output);
    bench.run("reduction", 128, params, 0);
    assert_eq!(bench.download(output, 1), [values.iter().sum::<u32>()]);
}

#[test]
fn local_arrays_are_each_lanes_own() {
    check("local_array", |i, values| {
        let mut cells = [0u32; 16];
        for k in 0..16 {
            cells[((k * 5 + i) % 16) as usize] = values[((i + k) % 128) as usize] + k;
        }
        let strided = cells.iter().step_by(1 + i as usize % 3);
        strided.fold(0u32, |sum, &cell| sum.wrapping_mul(31).wrapping_add(cell))
    });
}

#[test]
fn jump_tables_meet_again() {
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0; 32]);
    bench.run("jump", 32, Params::new().pointer(output), 0);
    for (i, &found) in bench.download(output, 32).iter().enumerate() {
        let expected = [1, 10, 100, 1100, 1][i % 5];
        assert_eq!(found, 32 * 65536 + expected, "thread {i}");
    }
}

#[test]
fn register_parameters_and_guarded_returns() {
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0; 32]);
    bench.run("divisor", 32, Params::new().pointer(output), 0);
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    for (i, &found) in bench.download(output, 32).iter().enumerate() {
        assert_eq!(found, gcd(i as u32 + 12, 360), "thread {i}");
    }
}

#[test]
fn blocks_have_their_own_labels_and_registers() {
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0; 64]);
    bench.run("blocks", 32, Params::new().pointer(output), 0);
    let found = bench.download(output, 64);
    for i in 0..32u32 {
        // The last comparison left the predicate true, so it is `i > 15` and its opposite.
        let side = if i > 15 { 10_000 } else { 20_000 };
        assert_eq!(found[i as usize], 10 + 100 * (i & 3) + side, "thread {i}");
        assert_eq!(found[32 + i as usize], u32::from(i < 16), "thread {i}");
    }
}

#[test]
fn a_fault_names_the_source_line() {
    let mut bench = Bench::new(COMPILED);
    let output = bench.upload(&[0; 4]);
    let params = Params::new().pointer(DevicePtr(64)).pointer(output).u32(1);
    let launch = Launch::new("collatz").block([32, 1, 1]).params(params);
    let error = launch
        .run(&bench.module, &mut bench.memory)
        .expect_err("a wild read");
    let line = include_str!("ptx/control.cu")
        .lines()
        .position(|line| line.contains("u32 x = in[i], steps = 0;"))
        .expect("the line is there");
    let text = error.to_string();
    assert!(text.contains(&format!("control.cu:{}", line + 1)), "{text}");
}

#[test]
fn functions_call_themselves() {
    fn ackermann(m: u32, n: u32) -> u32 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ackermann(m - 1, 1),
            (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
        }
    }
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0; 32]);
    bench.run("recursion", 32, Params::new().pointer(output), 0);
    for (i, &found) in bench.download(output, 32).iter().enumerate() {
        let i = i as u32;
        assert_eq!(found, ackermann(i % 3, i >> 3), "thread {i}");
    }
}

#[test]
fn bottomless_recursion_is_a_fault() {
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0]);
    let launch = Launch::new("too_deep")
        .block([32, 1, 1])
        .params(Params::new().pointer(output));
    let error = launch
        .run(&bench.module, &mut bench.memory)
        .expect_err("no stack is that deep");
    assert!(error.to_string().contains("recursion"), "{error}");
}

#[test]
fn lanes_call_functions_of_their_own() {
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0; 32]);
    bench.run("chosen", 32, Params::new().pointer(output), 0);
    for (i, &found) in bench.download(output, 32).iter().enumerate() {
        let i = i as u32;
        let expected = if i.is_multiple_of(2) {
            i * 10
        } else {
            i.wrapping_neg()
        };
        assert_eq!(found, expected, "thread {i}");
    }
}

#[test]
fn a_barrier_gathers_lanes_from_every_path() {
    let mut bench = Bench::new(WRITTEN);
    for seed in 0..2 {
        let output = bench.upload(&[7; 64]);
        bench.run("gathering", 64, Params::new().pointer(output), seed);
        for (i, &found) in bench.download(output, 64).iter().enumerate() {
            let expected = if i % 8 == 5 { 7 } else { 56 };
            assert_eq!(found, expected, "thread {i}");
        }
    }
}

#[test]
fn votes_are_among_the_lanes_named() {
    let mut bench = Bench::new(WRITTEN);
    let output = bench.upload(&[0; 64]);
    bench.run("voting", 32, Params::new().pointer(output), 0);
    let found = bench.download(output, 64);
    for i in 0..32 {
        let ballot = if i < 16 { 0x0000_2222 } else { 0x2222_0000 };
        assert_eq!(found[i], ballot + 1, "thread {i}");
        let together = if i == 7 { 0 } else { !(1 << 7) };
        assert_eq!(found[32 + i], together, "thread {i}");
    }
}

#[test]
fn kernels_print() {
    let mut bench = Bench::new(COMPILED);
    let launch = Launch::new("shout")
        .grid([2, 1, 1])
        .block([32, 1, 1])
        .params(Params::new().u32(2));
    let report = launch
        .run(&bench.module, &mut bench.memory)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        report
            .printed
            .iter()
            .map(|print| print.text.as_str())
            .collect::<String>(),
        "cta 0 thread 0:  0.00 hey ff|7   |-5 q %\n\
         cta 0 thread 1:  1.50 hey ff|7   |-5 q %\n\
         cta 1 thread 0:  0.00 hey ff|7   |-5 q %\n\
         cta 1 thread 1:  1.50 hey ff|7   |-5 q %\n"
    );
    let last = report.printed.last().expect("four lines");
    assert_eq!((last.cta, last.thread), ([1, 0, 0], [1, 0, 0]));
}

/// Runs a body on one warp, `%r1` being the lane; `%r9` is what each leaves.
fn of_a_warp(body: &str) -> Result<Vec<u32>, ptx_emu::LaunchError> {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64
         .visible .entry k(.param .u64 out) {{
         .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
         mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out];
         {body}
         mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r9;
         ret; }}"
    );
    let mut bench = Bench::new(&text);
    let out = bench.upload(&[0; 32]);
    let params = Params::new().pointer(out);
    let launch = Launch::new("k").block([32, 1, 1]).params(params);
    launch.run(&bench.module, &mut bench.memory)?;
    Ok(bench.download(out, 32))
}

#[test]
fn lanes_exchange_values_at_copies_of_one_instruction() {
    let parted = |one: &str, other: &str| {
        let body = format!(
            "mul.lo.u32 %r2, %r1, 10; add.u32 %r3, %r1, 1000; setp.lt.u32 %p1, %r1, 12;
             and.b32 %r8, %r1, 1; setp.ne.u32 %p2, %r8, 0;
             @%p1 bra ONE; {other} add.u32 %r9, %r9, 1; bra MEET;
             ONE: {one} MEET: add.u32 %r9, %r9, 5000;"
        );
        of_a_warp(&body).map_err(|error| error.to_string())
    };
    // What a lane gives: the first twelve ten times their number, the others a thousand more.
    let given = |lane: u32| if lane < 12 { 10 * lane } else { 1000 + lane };
    let own = |lane: u32| 5000 + u32::from(lane >= 12);
    let all = |value: &dyn Fn(u32) -> u32| (0..32).map(|i| value(i) + own(i)).collect();
    let shuffled = parted(
        "shfl.sync.bfly.b32 %r9, %r2, 16, 31, -1;",
        "shfl.sync.bfly.b32 %r9, %r3, 16, 31, -1;",
    );
    assert_eq!(shuffled, Ok(all(&|i| given(i ^ 16))));
    let summed = parted(
        "redux.sync.add.u32 %r9, %r2, -1;",
        "redux.sync.add.u32 %r9, %r3, -1;",
    );
    let sum: u32 = (0..32).map(given).sum();
    assert_eq!(summed, Ok(all(&|_| sum)));
    let voted = parted(
        "vote.sync.ballot.b32 %r9, %p2, -1;",
        "vote.sync.ballot.b32 %r9, !%p2, -1;",
    );
    let ballot = 0x0000_0aaa_u32 | 0x5555_5000;
    let ballot = |i: u32| ballot.wrapping_add(own(i));
    assert_eq!(voted, Ok((0..32).map(ballot).collect()));
    // Nobody says what becomes of two that differ.
    let other = parted(
        "shfl.sync.up.b32 %r9, %r2, 1, 0, -1;",
        "shfl.sync.down.b32 %r9, %r3, 1, 31, -1;",
    );
    let reason = other.expect_err("no defined values");
    assert!(reason.contains("not emulated: lanes"), "{reason}");
}
