//! A launch that was executed, told in the instructions of its cubin and replayed.
//!
//! `data/relay.cubin` and `.ptx` are what NVRTC 13.0 makes of `data/relay.cu` with
//! `--gpu-architecture=sm_90a -lineinfo`, and those of `data/atomics.cu`; those of `data/tensor.cu` it
//! makes for `sm_100a`. `data/latch.cubin` is what ptxas 12.9 makes of `data/latch.ptx` with
//! `-lineinfo --gpu-name=sm_90a`.

use ptx_emu::trace::{Deed, Event, Trace, Watch};
use ptx_emu::{Config, DeviceLimits, Launch, Memory, Module, Params};
use ptx_time::{Activity, CallTimes, Code, CubinError, Launched, Machine, ReplayError};

const CUBIN: &[u8] = include_bytes!("data/relay.cubin");
const PTX: &str = include_str!("data/relay.ptx");

/// Words the producer hands on.
const STEPS: u32 = 40;

/// A machine on which everything takes a little.
fn machine() -> Machine {
    let number = |name: &str| match name {
        "clock_mhz" | "rested_clock_mhz" => 1000.0,
        "clock_drop_mhz" => 100.0,
        "sms" => 4.0,
        _ if name.ends_with("_bandwidth") => 1e12,
        "l2_same" => 0.5,
        "l2_spread" => 1.0,
        _ if name.ends_with("_micros") => 1.0,
        _ if name.ends_with("_interval") => 2.0,
        _ => 20.0,
    };
    Machine::from_numbers(|name| Some(number(name))).expect("a number for every name")
}

fn trace(grid: u32, watched: &[u64]) -> Trace {
    let module = Module::load(PTX).expect("PTX the emulator knows");
    let mut memory = Memory::new();
    let bytes = u64::from(STEPS) * 128;
    let (input, output) = (memory.alloc(bytes), memory.alloc(128 * u64::from(grid)));
    let (input, output) = (input.expect("room"), output.expect("room"));
    memory
        .write(input, &vec![7; bytes as usize])
        .expect("in it");
    let launch = Launch::new("relay")
        .grid([grid, 1, 1])
        .block([64, 1, 1])
        .params(Params::new().pointer(input).pointer(output).u32(STEPS));
    let watch = Watch {
        ctas: watched.to_vec(),
        only: true,
    };
    let run = launch.run_traced(&module, &mut memory, &watch);
    run.unwrap_or_else(|e| panic!("{e}")).1
}

fn launched<'l>(code: &'l Code, trace: &'l Trace, ctas: u64) -> Launched<'l> {
    Launched {
        code,
        trace,
        ctas,
        cluster: 1,
        resident: 1,
        dependent: false,
        beside: false,
        fetched: true,
    }
}

fn replay(machine: &Machine, trace: &Trace, ctas: u64) -> CallTimes {
    let code = Code::read(CUBIN, "relay").expect("its code");
    let launch = launched(&code, trace, ctas);
    CallTimes::replay(machine, &[launch], true).expect("an end")
}

#[test]
fn every_deed_finds_the_instruction_that_did_it() {
    let call = replay(&machine(), &trace(1, &[0]), 1);
    let launch = &call.launches[0];
    assert_eq!(launch.homeless, 0.0);
    // Two loops of about twenty instructions, and not one turn of them lost or doubled.
    let turns = f64::from(2 * STEPS);
    let each = launch.issued as f64 / turns;
    assert!((14.0..30.0).contains(&each), "{each} instructions a turn");
}

/// The assembler closes the loop by another branch than the PTX does.
#[test]
fn a_loop_that_a_branch_forward_closes_keeps_all_its_turns() {
    let module = Module::load(include_str!("data/latch.ptx")).expect("PTX the emulator knows");
    let mut memory = Memory::new();
    let output = memory.alloc(256).expect("room");
    let turns = 500;
    let launch = Launch::new("latch")
        .block([64, 1, 1])
        .params(Params::new().pointer(output).u32(turns));
    let watch = Watch {
        ctas: vec![0],
        only: true,
    };
    let ran = launch.run_traced(&module, &mut memory, &watch);
    let trace = ran.unwrap_or_else(|e| panic!("{e}")).1;
    let code = Code::read(include_bytes!("data/latch.cubin"), "latch").expect("its code");
    let launch = launched(&code, &trace, 1);
    let call = CallTimes::replay(&machine(), &[launch], true).expect("an end");
    // Two warps, fifteen instructions a turn.
    let each = call.launches[0].issued as f64 / f64::from(2 * turns);
    assert!((14.0..17.0).contains(&each), "{each} instructions a turn");
}

#[test]
fn the_same_trace_takes_the_same_time() {
    let trace = trace(1, &[0]);
    let (one, two) = (replay(&machine(), &trace, 1), replay(&machine(), &trace, 1));
    assert_eq!(one.micros, two.micros);
    assert_eq!(one.launches[0].spans, two.launches[0].spans);
}

#[test]
fn what_is_slower_never_makes_it_faster() {
    let trace = trace(1, &[0]);
    let base = replay(&machine(), &trace, 1).micros;
    let mut moved = 0;
    for name in Machine::NAMES {
        let mut slower = machine();
        let number = slower.number_mut(name).expect("its own name");
        let fast_is_large = [
            "clock_mhz",
            "rested_clock_mhz",
            "sms",
            "sectors_per_cycle",
            "l2_port",
            "store_port",
            "remote_port",
        ];
        let queues = ["queue_cycles", "l2_queue_cycles"];
        *number *= match () {
            () if fast_is_large.contains(name) || queues.contains(name) => 0.5,
            () if name.ends_with("_bandwidth") => 0.5,
            () => 2.0,
        };
        let micros = replay(&slower, &trace, 1).micros;
        assert!(micros >= base - 1e-9, "{name}: {micros} after {base}");
        moved += u32::from(micros > base);
    }
    assert!(moved > 12, "only {moved} numbers matter to it");
}

#[test]
fn a_consumer_waits_for_what_its_producer_waits_for() {
    let trace = trace(1, &[0]);
    let mut far = machine();
    far.l2_latency = 500.0;
    let (near, far) = (replay(&machine(), &trace, 1), replay(&far, &trace, 1));
    let phase = |call: &CallTimes| call.launches[0].spent[Activity::Phase as usize];
    assert!(
        phase(&far) > 4.5 * phase(&near),
        "{} {}",
        phase(&far),
        phase(&near)
    );
    // Forty loads one after the other, each 480 cycles later.
    let later = (far.micros - near.micros) * near.clock_mhz;
    assert!((0.8..1.1).contains(&(later / (40.0 * 480.0))), "{later}");
}

#[test]
fn more_ctas_than_sms_come_one_after_the_other() {
    let trace = trace(8, &[0, 7]);
    let (one, two) = (replay(&machine(), &trace, 4), replay(&machine(), &trace, 8));
    assert_eq!((one.launches[0].rounds, two.launches[0].rounds), (1, 2));
    let ratio = two.launches[0].cycles / one.launches[0].cycles;
    // The second finds the parameters there, and what the first has read.
    assert!((1.85..2.1).contains(&ratio), "{ratio}");
    // Two were watched and did the same: one of them is replayed.
    assert_eq!(one.launches[0].ctas.len(), 1);
}

#[test]
fn a_call_finds_warm_what_it_left_there() {
    let trace = trace(1, &[0]);
    let code = Code::read(CUBIN, "relay").expect("its code");
    let launches = [launched(&code, &trace, 1)];
    let cold = CallTimes::replay(&machine(), &launches, false).expect("an end");
    let warm = CallTimes::replay_warm(&machine(), &launches, false).expect("an end");
    assert!(warm.micros < cold.micros);
}

#[test]
fn a_trace_that_lacks_an_arrival_stands_still_and_says_so() {
    let mut trace = trace(1, &[0]);
    let producer = &mut trace.ctas[0].warps[0];
    let arrives = |event: &Event| {
        matches!(
            event,
            Event::Did {
                deed: Deed::Arrive { .. },
                ..
            }
        )
    };
    let last = producer.iter().rposition(arrives).expect("an arrival");
    producer.remove(last);
    let code = Code::read(CUBIN, "relay").expect("its code");
    let stuck = CallTimes::replay(&machine(), &[launched(&code, &trace, 1)], false);
    let stuck = stuck.expect_err("a consumer that waits for ever");
    assert!(matches!(&stuck, ReplayError::Stuck(stuck) if stuck.waiting == 1));
    assert!(stuck.to_string().contains("1 warps wait"), "{stuck}");
}

#[test]
fn cubins_that_cannot_be_read_are_named() {
    let refused = |cubin: &[u8], kernel| Code::read(cubin, kernel).expect_err("refused");
    assert_eq!(
        refused(CUBIN, "other"),
        CubinError::NoKernel("other".into())
    );
    assert!(matches!(refused(b"", "relay"), CubinError::Broken(_)));
    assert!(matches!(
        refused(&CUBIN[..700], "relay"),
        CubinError::Broken(_)
    ));
    // Torn anywhere, it is refused, or read and replayed, and nothing panics.
    let trace = trace(1, &[0]);
    for cut in (0..CUBIN.len()).step_by(97) {
        let _ = Code::read(&CUBIN[..cut], "relay");
        let mut torn = CUBIN.to_vec();
        torn[cut] ^= 0xff;
        if let Ok(code) = Code::read(&torn, "relay") {
            let _ = CallTimes::replay(&machine(), &[launched(&code, &trace, 1)], true);
        }
    }
    // Without its table of lines.
    let mut bare = CUBIN.to_vec();
    let name = b".nv_debug_line_sass";
    let found = bare
        .windows(name.len())
        .position(|w| w == name)
        .expect("its name");
    bare[found + 1] = b'x';
    assert_eq!(refused(&bare, "relay"), CubinError::NoLines);
}

/// A tile of so many products on a Blackwell.
fn tensor(steps: u32) -> Trace {
    let ptx = include_str!("data/tensor.ptx");
    let module = Module::load(ptx).expect("PTX the emulator knows");
    let mut memory = Memory::new();
    let out = memory.alloc(128 * 64 * 4).expect("room");
    let config = Config {
        limits: DeviceLimits::B200,
        ..Config::default()
    };
    let launch = Launch::new("tensor")
        .block([128, 1, 1])
        .shared_bytes(26 * 1024)
        .config(config)
        .params(Params::new().pointer(out).u32(steps));
    let watch = Watch {
        ctas: vec![0],
        only: true,
    };
    let run = launch.run_traced(&module, &mut memory, &watch);
    run.unwrap_or_else(|e| panic!("{e}")).1
}

#[test]
fn deeds_in_tensor_memory_find_their_instructions_and_take_their_time() {
    let code = Code::read(include_bytes!("data/tensor.cubin"), "tensor").expect("its code");
    let replay = |steps| {
        let trace = tensor(steps);
        let call = CallTimes::replay(&machine(), &[launched(&code, &trace, 1)], false);
        let call = call.expect("an end");
        assert_eq!(call.launches[0].homeless, 0.0);
        call.launches[0].clone()
    };
    let (few, many) = (replay(10), replay(30));
    // 64 columns at twenty cycles each.
    let each = (many.cycles - few.cycles) / 20.0;
    assert!((each - 64.0 * 20.0).abs() < 1.0, "{each}");
    assert_eq!(many.tensor_cycles, 30.0 * 64.0 * 20.0);
    // Every warp read its quarter after the last of them.
    let last = many.ctas[0].last_mma.expect("products");
    assert_eq!(many.epilogues.len(), 4);
    assert!(many.epilogues.iter().all(|tile| tile.from > last));
}

const ATOMIC_CUBIN: &[u8] = include_bytes!("data/atomics.cubin");
const ATOMIC_PTX: &str = include_str!("data/atomics.ptx");

/// CTAs and threads of each that add.
const ADDING: (u32, u32) = (8, 256);

/// Cycles of a kernel whose threads each add once; `bins` words are what they are told to add to.
fn adding(kernel: &str, bins: u32) -> f64 {
    let module = Module::load(ATOMIC_PTX).expect("PTX the emulator knows");
    let mut memory = Memory::new();
    let (ctas, threads) = ADDING;
    let sums = memory.alloc(u64::from(4 * ctas * threads)).expect("room");
    let [values, places] = [(); 2].map(|()| memory.alloc(u64::from(4 * threads)).expect("room"));
    let told: Vec<u8> = (0..threads)
        .flat_map(|i| (i % bins).to_le_bytes())
        .collect();
    memory.write(places, &told).expect("in it");
    let params = Params::new().pointer(sums).pointer(values).pointer(places);
    let launch = Launch::new(kernel)
        .grid([ctas, 1, 1])
        .block([threads, 1, 1])
        .params(params);
    let watch = Watch {
        ctas: vec![0, 3, 7],
        only: false,
    };
    let run = launch.run_traced(&module, &mut memory, &watch);
    let trace = run.unwrap_or_else(|e| panic!("{e}")).1;
    let code = Code::read(ATOMIC_CUBIN, kernel).expect("its code");
    let launches = [launched(&code, &trace, ctas.into())];
    let call = CallTimes::replay_warm(&machine(), &launches, false).expect("an end");
    assert_eq!(call.launches[0].homeless, 0.0, "{kernel}");
    call.launches[0].cycles
}

#[test]
fn who_adds_to_one_word_waits_for_all_others_who_do() {
    let (ctas, threads) = ADDING;
    let adds = f64::from(ctas * threads);
    let (same, apart) = (adding("same", 1), adding("apart", 1));
    assert!(
        same > adds,
        "{same}: {adds} updates of one word, one a cycle"
    );
    assert!(apart < same / 3.0, "{apart} and {same}");
    // Eight words of one sector, each for an eighth of the threads; all for one.
    let (few, one) = (adding("bins", 8), adding("bins", 1));
    assert!(few > adds / 8.0 && one > adds, "{few} and {one}");
    assert!(few < one / 2.0, "{few} and {one}");
    // One lane of each warp adds.
    let counted = adding("counted", 1);
    assert!(counted < same / 3.0, "{counted} and {same}");
}

#[test]
fn who_adds_to_one_word_of_shared_memory_waits_for_its_neighbours() {
    let (same, apart) = (adding("shared_same", 1), adding("shared_apart", 1));
    // A loop for floats: 31 turns more, each as long as a load and an atomic.
    assert!(same > apart + 31.0 * 40.0, "{same} and {apart}");
    let (one, spread) = (adding("shared_bins", 1), adding("shared_bins", 32));
    // Of integers each lane takes two cycles, in eight warps of two CTAs one after the other.
    assert!(
        one > spread + 0.9 * (2.0 * 8.0 * 31.0 * 2.0),
        "{one} and {spread}"
    );
    // Shared memory counts lanes at once.
    let counted = adding("shared_counted", 1);
    assert!(counted < spread + 50.0, "{counted} and {spread}");
}
