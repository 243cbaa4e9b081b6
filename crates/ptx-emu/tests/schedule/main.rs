//! What a schedule must show: code that relies on luck loses it, and a seed repeats itself.

mod barriers;
mod copies;
mod flags;
mod repeats;
mod residency;
mod stuck;

use ptx_emu::{
    Config, DevicePtr, Finding, Launch, LaunchError, Memory, Module, Params, Report, Sanitize,
};

const HEADER: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

/// Seeds every planted bug is tried with.
const SEEDS: u64 = 120;

/// A kernel that gets the address of its output in `%rd1`, its thread in `%r1`, the place of its
/// word in `%rd3`, its warp in `%r18` and its lane in `%r19`.
fn kernel(body: &str) -> Module {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out, .param .u64 in) {{
            .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<12>; .reg .f32 %f<80>;
            .shared .align 8 .b64 full[8]; .shared .align 8 .b64 empty[8];
            .shared .align 1024 .b8 tile[16384];
            ld.param.u64 %rd1, [out]; ld.param.u64 %rd8, [in]; mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
            shr.u32 %r18, %r1, 5; and.b32 %r19, %r1, 31;
            {body}
            ret; }}"
    );
    Module::load(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// Input words are their own index.
fn run(module: &Module, launch: Launch) -> Result<(Vec<u32>, Report), LaunchError> {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 1 << 16).unwrap();
    let input = memory.alloc_named("in", 1 << 16).unwrap();
    let bytes: Vec<u8> = (0..1u32 << 14).flat_map(u32::to_le_bytes).collect();
    memory.write(input, &bytes).unwrap();
    let report = launch
        .params(Params::new().pointer(out).pointer(input))
        .run(module, &mut memory)?;
    Ok((words(&memory, out, 1 << 14), report))
}

fn words(memory: &Memory, ptr: DevicePtr, count: u64) -> Vec<u32> {
    let bytes = memory.read_vec(ptr, count * 4).unwrap();
    let chunks = bytes.as_chunks::<4>().0;
    chunks.iter().map(|b| u32::from_le_bytes(*b)).collect()
}

fn seeded(seed: u64) -> Config {
    Config {
        seed,
        step_limit: 5_000_000,
        ..Config::default()
    }
}

/// The seeds that notice: another answer than `right`, or a fault.
fn noticed(body: &str, launch: &Launch, right: &dyn Fn(usize) -> u32) -> Vec<u64> {
    let module = kernel(body);
    let threads = launch.grid[0] * launch.block[0];
    let wrong = |seed: &u64| match run(&module, launch.clone().config(seeded(*seed))) {
        Ok((out, _)) => (0..threads as usize).any(|i| out[i] != right(i)),
        Err(LaunchError::Fault(_)) => true,
        Err(other) => panic!("{other}"),
    };
    (0..SEEDS).filter(wrong).collect()
}

/// How many notice a planted bug.
#[derive(Debug, Clone, Copy)]
struct Seen {
    seeds: usize,
    /// Pairs of an even and the next odd seed, as the two data sets of a validation have them.
    pairs: usize,
}

impl Seen {
    fn by(seeds: &[u64]) -> Self {
        let pairs = (0..SEEDS / 2).filter(|pair| seeds.iter().any(|seed| seed / 2 == *pair));
        Self {
            seeds: seeds.len(),
            pairs: pairs.count(),
        }
    }

    #[track_caller]
    fn at_least(self, seeds: usize, pairs: usize) {
        assert!(self.seeds >= seeds && self.pairs >= pairs, "{self:?}");
    }
}

/// A bug planted in a kernel of one CTA.
fn planted(name: &str, good: &str, threads: u32, right: &dyn Fn(usize) -> u32) -> Seen {
    planted_in(&one_cta(threads), name, good, right)
}

fn one_cta(threads: u32) -> Launch {
    Launch::new("k").block([threads, 1, 1])
}

/// A bug planted by taking out what stands between `<<` and `>>`: how many see it. With it in
/// place none may see anything.
fn planted_in(launch: &Launch, name: &str, good: &str, right: &dyn Fn(usize) -> u32) -> Seen {
    let whole = good.replace("<<", "").replace(">>", "");
    let seen = noticed(&whole, launch, right);
    assert_eq!(seen, [], "{name}: the correct kernel is wrong");
    let mut broken = String::new();
    let mut rest = good;
    while let Some((before, after)) = rest.split_once("<<") {
        broken.push_str(before);
        rest = after.split_once(">>").map_or("", |(_, after)| after);
    }
    broken.push_str(rest);
    let seen = Seen::by(&noticed(&broken, launch, right));
    println!("{name}: {seen:?} of {SEEDS}");
    detected(launch, name, &whole, &broken);
    seen
}

/// The detector says nothing of the correct kernel and something of the broken one: with every
/// seed, but where the missing loop around a wait was not needed, and then with the next.
fn detected(launch: &Launch, name: &str, whole: &str, broken: &str) {
    for seed in 0..6 {
        let (found, _) = findings(whole, launch, seed);
        assert!(found.is_empty(), "{name}, correct, seed {seed}: {found:#?}");
    }
    for seed in [0, 2, 4] {
        let (found, faulted) = findings(broken, launch, seed);
        let (after, faulted_after) = findings(broken, launch, seed + 1);
        let all = found.iter().chain(&after);
        assert!(
            faulted || faulted_after || all.count() > 0,
            "{name}, seed {seed}: nothing found"
        );
        for finding in found {
            println!("{name}, seed {seed}: {finding}");
        }
    }
}

fn findings(body: &str, launch: &Launch, seed: u64) -> (Vec<Finding>, bool) {
    let module = kernel(body);
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 1 << 16).unwrap();
    let input = memory.alloc_named("in", 1 << 16).unwrap();
    let launch = launch.clone().config(seeded(seed));
    let launch = launch.params(Params::new().pointer(out).pointer(input));
    let (report, found) = launch.run_sanitized(&module, &mut memory, &Sanitize::default());
    (found.all, report.is_err())
}
