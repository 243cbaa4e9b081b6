//! The harness's kernels in the emulator, against the same arithmetic on the host: the contents of
//! memory before a call, the checks after it, and which contenders are judged wrong.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytemuck::cast_slice;
use half::f16;
use ptx_emu::{Config, DeviceLimits, DevicePtr, Launch, Memory, Module, Params};

use super::instance::{answers, hidden};
use super::judge::{WireJudged, WireValues};
use super::program::{CHUNK, poisons, wire};
use super::scrub::MEETING_BYTES;
use super::tools_unit;
use crate::backend::call_seed::{CallSeed, Poison};
use crate::backend::pieces::{self, Piece, PieceContents, PieceSource};
use crate::backend::tables::{self, PrivateZones};
use crate::backend::zones::Zones;
use crate::compile::Nvrtc;
use crate::operator::{Axis, GroupOracle, Moves, Operands, Oracle, OutputValues};
use crate::validate::Tolerance;
use dgx_core::config::target;
use dgx_core::domain::{Group, Shape};
use dgx_core::fields::PointedPart;
use dgx_core::operator::{ElementType, Operator, built_in, default_operator};
use dgx_core::record::synthetic::group;

use dgx_core::domain::Distribution;

const CALL_SEED: CallSeed = CallSeed(0x0123_4567_89ab_cde3);

/// Their PTX, and ptxas's report on them; compiled once for each target.
fn compiled_tools(arch: &str) -> (String, String) {
    static COMPILED: Mutex<BTreeMap<String, (String, String)>> = Mutex::new(BTreeMap::new());
    let compile = || {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let unit = tools_unit(arch, None);
        let compiled = compiler.compile(&unit.name, &unit.source, &unit.flags(), &[]);
        let compiled = compiled.expect("the harness's kernels compile");
        (compiled.ptx, compiled.log)
    };
    let mut known = COMPILED.lock().unwrap();
    known.entry(arch.to_owned()).or_insert_with(compile).clone()
}

fn tools() -> Module {
    Module::load(&compiled_tools("sm_90a").0).unwrap()
}

/// Emulated memory with pieces in it and their sources.
struct LaidMemory {
    module: Module,
    memory: Memory,
    pieces: Vec<Piece>,
    operands: Operands,
    groups: Vec<u8>,
    table: DevicePtr,
    chunks: u64,
    base: u64,
}

impl LaidMemory {
    fn new() -> Self {
        // A K whose rows are not whole words, and an M whose tensors are not.
        Self::of(
            default_operator(),
            vec![group(5, 136, 48), group(130, 128, 1024)],
        )
    }

    fn of(operator: &Arc<Operator>, groups: Vec<Group>) -> Self {
        let mut memory = Memory::new();
        let shape = Shape {
            name: "t".to_owned(),
            groups,
        };
        let operands = Operands::draw(operator, &shape, Distribution::Full, 3);
        let zones = tables::reserve_inputs(operator, &shape.groups);
        let tensors = tables::input_bytes(&operands);
        let base = memory.alloc(zones.bytes()).unwrap();
        let mut pieces = pieces::inputs(&zones, base.0, operator, &shape.groups);
        let begun = pieces.iter().find_map(|piece| match piece.what {
            PieceContents::Shuffled { source, of } if of.form == PointedPart::Elements => {
                Some((piece.bytes, PieceContents::Begun { source, of }))
            }
            _ => None,
        });
        let (begun_bytes, begun) = begun.unwrap();
        let mut scratch = Zones::default();
        scratch.add("tables", 1336);
        scratch.add("scratch", 70_001);
        scratch.add("noise", 7001);
        scratch.add("clear", 4099);
        scratch.add("c", 333);
        scratch.add("d", 328);
        scratch.add("e", 77);
        scratch.add("begun", begun_bytes);
        let own = memory.alloc(scratch.bytes()).unwrap();
        let whats = [
            PieceContents::Same(PieceSource::Table(tables::GROUPS)),
            PieceContents::Scratch,
            PieceContents::Noise,
            PieceContents::Zero,
            PieceContents::Poison(ElementType::F16),
            PieceContents::Poison(ElementType::F64),
            PieceContents::Poison(ElementType::E2m1),
            begun,
        ];
        for ((begin, end), what) in scratch.guards().zip([PieceContents::Canary; 9]) {
            pieces.push(Piece {
                at: own.0 + begin,
                bytes: end - begin,
                what,
            });
        }
        for (zone, what) in scratch.all().iter().zip(whats) {
            pieces.push(Piece {
                at: own.0 + zone.offset,
                bytes: zone.bytes,
                what,
            });
        }
        let groups: Vec<u8> = (0..1336).map(|i| (i * 7) as u8).collect();
        let mut put = |bytes: &[u8]| {
            let at = memory.alloc(bytes.len() as u64).unwrap();
            memory.write(at, bytes).unwrap();
            at.0
        };
        let inputs: Vec<u64> = tensors.iter().map(|t| put(t)).collect();
        let groups_at = put(&groups);
        let (wired, chunks) = wire(&pieces, |source| match source {
            PieceSource::Input(zone) => inputs[zone],
            _ => groups_at,
        });
        let table = DevicePtr(put(cast_slice(&wired)));
        Self {
            module: tools(),
            memory,
            pieces,
            operands: operands.clone(),
            groups,
            table,
            chunks,
            base: base.0,
        }
    }

    fn lay(&mut self, call_seed: CallSeed) {
        let params = Params::new()
            .u64(self.table.0)
            .u32(self.pieces.len() as u32)
            .u64(0)
            .u64(call_seed.0)
            .bytes(cast_slice(&poisons(call_seed)));
        self.launch("dgx_lay", self.chunks, params);
    }

    /// The lowest address that changed.
    fn check(&mut self, call_seed: CallSeed) -> Option<u64> {
        self.check_chunks(call_seed, 0..self.chunks)
    }

    fn check_chunks(&mut self, call_seed: CallSeed, chunks: Range<u64>) -> Option<u64> {
        let lowest = self.memory.alloc(8).unwrap();
        let params = Params::new()
            .u64(self.table.0)
            .u32(self.pieces.len() as u32)
            .u64(chunks.start)
            .u64(call_seed.0)
            .u64(lowest.0);
        self.launch("dgx_check", chunks.end - chunks.start, params);
        let word = self.memory.read_vec(lowest, 8).unwrap();
        match u64::from_le_bytes(word.try_into().unwrap()) {
            0 => None,
            word => Some(!word),
        }
    }

    fn launch(&mut self, kernel: &str, chunks: u64, params: Params) {
        Launch::new(kernel)
            .grid([chunks as u32, 1, 1])
            .block([256, 1, 1])
            .params(params)
            .run(&self.module, &mut self.memory)
            .unwrap();
    }

    fn view(&self, piece: &Piece) -> &[u8] {
        self.memory.view(DevicePtr(piece.at), piece.bytes).unwrap()
    }

    fn change(&mut self, address: u64) {
        let old = self.memory.read_vec(DevicePtr(address), 1).unwrap()[0];
        self.memory
            .write(DevicePtr(address), &[old ^ 0x40])
            .unwrap();
    }
}

#[test]
fn the_device_lays_out_memory_as_the_host_does() {
    lays_as_the_host_does(LaidMemory::new());
    // Rows that are not whole words, and four axes of which three are permuted.
    let shapes: [(&str, &[u32]); 5] = [
        ("f16-gemm", &[5, 7, 30]),
        ("rms-norm", &[3, 1000]),
        ("softmax", &[3, 77]),
        ("nvfp4-gemv", &[128, 256, 3]),
        ("attention", &[2, 3, 5, 8]),
    ];
    for (name, sizes) in shapes {
        let operator = Arc::new(built_in(name).unwrap().clone());
        let group = Group::new(operator.sizes.iter().cloned().zip(sizes.iter().copied()));
        lays_as_the_host_does(LaidMemory::of(&operator, vec![group]));
    }
}

fn lays_as_the_host_does(mut laid: LaidMemory) {
    let poisons = Poison::OTHERS.map(|kind| CallSeed(7).with(kind));
    for call_seed in [CALL_SEED, CallSeed(7).with(Poison::Nan)]
        .into_iter()
        .chain(poisons)
    {
        laid.lay(call_seed);
        let operands = laid.operands.shuffled(call_seed.shuffle());
        let tensors = tables::input_bytes(&operands);
        for piece in &laid.pieces {
            let source: &[u8] = match piece.what.source() {
                Some(PieceSource::Input(zone)) => &tensors[zone],
                Some(PieceSource::Table(_)) => &laid.groups,
                _ => &[],
            };
            assert!(
                laid.view(piece) == &*piece.laid(call_seed, source, 0..piece.bytes),
                "{piece:?}"
            );
        }
        assert_eq!(laid.check(call_seed), None);
    }
}

#[test]
fn the_device_finds_the_first_byte_that_changed_wherever_it_is() {
    let mut laid = LaidMemory::new();
    laid.lay(CALL_SEED);
    let pieces = laid.pieces.clone();
    // Chunks are checked one by one: the others change nothing.
    let mut chunks = 0..0;
    for piece in &pieces {
        let watched = piece.what.broken().is_some();
        chunks = chunks.end..chunks.end + piece.bytes.div_ceil(CHUNK);
        for place in [0, piece.bytes / 2, piece.bytes - 1] {
            let address = piece.at + place;
            laid.change(address);
            assert_eq!(
                laid.check_chunks(CALL_SEED, chunks.clone()),
                watched.then_some(address),
                "{piece:?}"
            );
            laid.change(address);
        }
    }
    let (first, later) = (laid.base + 5, laid.base + 5000);
    laid.change(later);
    laid.change(first);
    assert_eq!(laid.check(CALL_SEED), Some(first));
    // No value of an earlier call is right in a later one.
    laid.lay(CALL_SEED);
    assert!(laid.check(CallSeed(8)).is_some());
}

#[test]
fn the_device_calls_wrong_what_the_host_does() {
    let module = tools();
    let (m, n) = (3_u64, 200_u64);
    let products = |group: u64| {
        let places = group * m * n..(group + 1) * m * n;
        let gate = |i: u64| match i % 100 {
            17 => 70_000.0,
            18 => f32::NAN,
            _ => (i as f32 - 600.0) * 0.04,
        };
        GroupOracle {
            rows: m as usize,
            columns: n as usize,
            gate: places.clone().map(gate).collect(),
            up: places.map(|i| 2.9 - (i % 9) as f32 * 0.61).collect(),
            values: Vec::new(),
        }
    };
    let oracle = Oracle {
        groups: [0, 1].map(products).to_vec(),
    };
    let answer = oracle.shuffled(CALL_SEED.shuffle(), default_operator(), &[]);
    let expected: Vec<f64> = (answer.groups.iter())
        .flat_map(|group| (0..group.gate.len()).map(|i| group.c(i)))
        .collect();
    let right: Vec<u16> = expected
        .iter()
        .map(|c| f16::from_f64(*c).to_bits())
        .collect();
    let wrong = |c: &[u16]| -> u64 {
        let mut memory = Memory::new();
        let mut put = |bytes: &[u8]| {
            let at = memory.alloc(bytes.len() as u64).unwrap();
            memory.write(at, bytes).unwrap();
            at.0
        };
        let halves: Vec<u8> = c.iter().flat_map(|h| h.to_le_bytes()).collect();
        let (seal, c, count) = (99, put(&halves), put(&[0; 8]));
        let answers = put(cast_slice(&hidden(&answers(&oracle), seal)));
        let groups: Vec<WireJudged> = (0..2)
            .map(|group| WireJudged {
                c: c + group * m * n * 2,
                expected: answers,
                rows: m,
                columns: n,
                gate: group * m * n,
                up: (2 + group) * m * n,
                group,
            })
            .collect();
        let table = put(cast_slice(&groups));
        let params = Params::new()
            .u64(table)
            .u64(CALL_SEED.0)
            .u32(CALL_SEED.poison(ElementType::F16) as u32)
            .u64(seal)
            .f32(1e-3)
            .f32(1e-3)
            .u64(count);
        Launch::new("dgx_judge")
            .grid([2, 2, 1])
            .block([256, 1, 1])
            .params(params)
            .run(&module, &mut memory)
            .unwrap();
        let word = memory.read_vec(DevicePtr(count), 8).unwrap();
        u64::from_le_bytes(word.try_into().unwrap())
    };
    assert_eq!(wrong(&right), 0);
    // The sign of an earlier call, NaN, poison, infinity, nothing, nearly right.
    let large = |c: &&f64| (1.0..100.0).contains(&c.abs());
    let first = expected.iter().position(|c| large(&c)).unwrap();
    let nearly = f16::from_f64(expected[first] * 1.01).to_bits();
    for bits in [
        right[first] ^ 0x8000,
        0x7fff,
        CALL_SEED.poison(ElementType::F16) as u16,
        0x7c00,
        0,
        nearly,
    ] {
        let mut c = right.clone();
        c[first] = bits;
        assert_eq!(wrong(&c), 1, "{bits:#x}");
    }
    // The right result for the operands of an earlier call.
    let earlier: Vec<u16> = (oracle.groups.iter())
        .flat_map(|group| (0..group.gate.len()).map(|i| f16::from_f64(group.c(i)).to_bits()))
        .collect();
    assert!(wrong(&earlier) > m * n);
    assert_eq!(
        wrong(&vec![
            CALL_SEED.poison(ElementType::F16) as u16;
            right.len()
        ]),
        2 * m * n
    );
    // Saturation, infinity of the other sign; a number for NaN.
    let infinite = expected.iter().position(|c| c.abs() > 65520.0).unwrap();
    let nan = expected.iter().position(|c| c.is_nan()).unwrap();
    let sign = right[infinite] & 0x8000;
    for (place, bits) in [
        (infinite, sign | 0x7bff),
        (infinite, sign ^ 0xfc00),
        (nan, 0),
    ] {
        let mut c = right.clone();
        c[place] = bits;
        assert_eq!(wrong(&c), 1, "{place}");
    }
}

/// One axis that is not changed.
fn still(extent: usize, bits: u64) -> Moves {
    let axis = Axis {
        extent: extent as u32,
        unit: 1,
        ..Axis::default()
    };
    Moves::new(&[axis], 0, bits)
}

/// How many of these outputs, one of each type, the device does not accept.
fn wrong_values(
    module: &Module,
    outputs: &[(OutputValues, Vec<f64>)],
    tolerance: Tolerance,
) -> u64 {
    let mut memory = Memory::new();
    let mut put = |bytes: &[u8]| {
        let at = memory.alloc(bytes.len() as u64).unwrap();
        memory.write(at, bytes).unwrap();
        at.0
    };
    let answers: Vec<f32> = outputs
        .iter()
        .flat_map(|(_, right)| right.iter().map(|value| *value as f32))
        .collect();
    let (seal, count) = (99, put(&[0; 8]));
    let expected = put(cast_slice(&hidden(&answers, seal)));
    let mut table = Vec::new();
    let mut first = 0;
    for (written, right) in outputs {
        table.push(WireValues {
            output: put(written.bytes()),
            expected,
            count: right.len() as u64,
            first,
            rows: 0,
            element: written.element as u32,
            rtol: tolerance.rtol as f32,
            atol: tolerance.atol as f32,
            step: written.element.least_step() as f32,
            moves: still(right.len(), written.element.bits()),
        });
        first += right.len() as u64;
    }
    let params = Params::new()
        .u64(put(cast_slice(&table)))
        .u64(CALL_SEED.0)
        .bytes(cast_slice(&poisons(CALL_SEED)))
        .u64(seal)
        .u64(count);
    Launch::new("dgx_judge_values")
        .grid([2, outputs.len() as u32, 1])
        .block([256, 1, 1])
        .params(params)
        .run(module, &mut memory)
        .unwrap();
    let word = memory.read_vec(DevicePtr(count), 8).unwrap();
    u64::from_le_bytes(word.try_into().unwrap())
}

#[test]
fn the_device_judges_elements_of_every_type_as_the_host_does() {
    let module = tools();
    let tolerance = Tolerance {
        rtol: 1e-3,
        atol: 1e-3,
    };
    let types = ElementType::ALL.into_iter().filter(|e| e.scale().is_none());
    let mut outputs = Vec::new();
    for element in types {
        let right: Vec<f64> = (0..600).map(|i| f64::from(i % 2)).collect();
        let written = OutputValues::rounded(element, right.iter().copied());
        outputs.push((written, right));
    }
    assert_eq!(wrong_values(&module, &outputs, tolerance), 0);
    for place in 0..outputs.len() {
        let mut changed = outputs.clone();
        let (written, right) = &mut changed[place];
        // Another number, and NaN or poison if the type has them.
        right[17] = 0.0;
        if written.element.has_nan() {
            right[18] = f64::NAN;
            let poison = CALL_SEED.poison(written.element);
            written.set(19, poison);
            written.set(20, poison);
            right[20] = f64::NAN;
        }
        let right = right.clone();
        let host = (0..600).filter(|i| {
            let found = OutputValues::new(
                written.element,
                written.bytes().to_vec(),
                CALL_SEED.poison(written.element),
            );
            !tolerance.accepts(found.at(*i), right[*i])
        });
        let host = host.count() as u64;
        let least = if written.element.has_nan() { 4 } else { 1 };
        let name = written.element.name();
        assert_eq!(host, least, "{name}");
        assert_eq!(wrong_values(&module, &changed, tolerance), host, "{name}");
    }
    // A NaN made by arithmetic is right if one is expected.
    let nan = OutputValues::rounded(ElementType::F32, [f64::NAN].into_iter());
    assert_eq!(
        wrong_values(&module, &[(nan, vec![f64::NAN])], tolerance),
        0
    );
}

#[test]
fn scratch_and_tables_of_a_call_are_all_accounted_for() {
    let mut zones = Zones::default();
    let scratch = zones.add("scratch counters of group 0", 64);
    let private = PrivateZones {
        tables: vec![
            zones.add("groups", 168),
            zones.add("maps", 0),
            zones.add("deal", 12),
            zones.add("arrays", 128),
        ],
        scratch: vec![tables::ScratchZone {
            zone: scratch,
            zero: true,
        }],
        slots: vec![vec![scratch]],
        zones,
    };
    let pieces = pieces::private(&private, 0x1000);
    let mut covered: Vec<(u64, u64)> = pieces.iter().map(|p| (p.at, p.at + p.bytes)).collect();
    covered.sort_unstable();
    assert_eq!(covered[0].0, 0x1000);
    assert!(covered.windows(2).all(|w| w[0].1 == w[1].0), "{covered:?}");
    assert_eq!(covered.last().unwrap().1, 0x1000 + private.zones.bytes());
}

/// Runs a kernel that overwrites what launches leave, on this many SMs: how many CTAs came, on how
/// many SMs, and how many gave up waiting for the others.
fn scrubbed(target: &str, kernel: &str, sms: u32) -> [u32; 3] {
    let device = target::find(&format!("{target},sms={sms}")).unwrap();
    let module = Module::load(&compiled_tools(&device.chip.target()).0).unwrap();
    let mut memory = Memory::new();
    let meeting = memory.alloc(MEETING_BYTES).unwrap();
    let shared = device.limits.shared_per_block.0 as u32;
    let limits = DeviceLimits {
        capability: 10 * device.chip.major + device.chip.minor,
        sms,
        tensor_columns: if device.chip.major == 10 { 512 } else { 0 },
        ..DeviceLimits::H200
    };
    let all = kernel == "dgx_scrub";
    let launch = Launch::new(kernel)
        .grid([if all { sms } else { 4 * sms }, 1, 1])
        .block([512, 1, 1])
        .shared_bytes(if all { shared } else { 0 })
        .config(Config {
            limits,
            ..Config::default()
        });
    let params = Params::new().u64(CALL_SEED.0);
    let params = match all {
        // Nothing is reserved here.
        true => params.u32(shared).u32(0).u64(meeting.0),
        false => params.u64(meeting.0),
    };
    launch.params(params).run(&module, &mut memory).unwrap();
    let words = memory.read_vec(meeting, 12).unwrap();
    let word = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().unwrap());
    [0, 4, 8].map(word)
}

#[test]
fn what_launches_leave_is_overwritten_on_every_sm() {
    assert_eq!(scrubbed("h200", "dgx_scrub", 6), [6, 6, 0]);
    // With tensor memory.
    assert_eq!(scrubbed("b200", "dgx_scrub", 6), [6, 6, 0]);
    assert_eq!(scrubbed("h200", "dgx_scrub_local_2k", 3), [12, 3, 0]);
}

#[test]
fn the_whole_register_file_is_overwritten() {
    for arch in ["sm_90a", "sm_100a"] {
        let (_, log) = compiled_tools(arch);
        let of = |kernel: &str| {
            let (_, rest) = log.split_once(&format!("'{kernel}' for")).unwrap();
            rest.split("Compiling entry").next().unwrap().to_owned()
        };
        let scrub = of("dgx_scrub");
        assert!(scrub.contains("Used 128 registers"), "{scrub}");
        assert!(scrub.contains("0 bytes spill stores"), "{scrub}");
        // All threads of an SM fit side by side.
        let local = of("dgx_scrub_local_32k");
        let used = local.split_once("Used ").unwrap().1;
        let used: u32 = used.split_once(" registers").unwrap().0.parse().unwrap();
        assert!(used <= 32, "{local}");
        assert!(local.contains("32768 bytes stack frame"), "{local}");
    }
}
