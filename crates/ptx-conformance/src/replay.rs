//! Replaying: each case in the emulator, held against what the GPU answered.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptx_emu::{
    CompileError, Config, DeviceLimits, DevicePtr, Fill, Launch, LaunchError, MapElement, Memory,
    MemoryError, MmaMode, Module, Params, TensorMap, TensorMapError, Tiled,
};

use crate::case::{Case, Compare, ENTRY, MapBuffer, MapSpec, MapType, Swizzle};
use crate::families::{self, Card, FAMILIES};
use crate::golden::{Answer, Golden, GoldenError, Goldens};

/// Why the emulator gave no outputs.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The PTX was refused.
    #[error("refused: {0}")]
    Compile(#[from] CompileError),
    /// A buffer could not be made.
    #[error("memory: {0}")]
    Memory(#[from] MemoryError),
    /// A tensor map breaks the encoder's rules.
    #[error("tensor map: {0}")]
    Map(#[from] TensorMapError),
    /// The launch was refused or the kernel faulted.
    #[error("launch: {0}")]
    Launch(#[from] LaunchError),
}

impl EmulatorError {
    /// Whether the kernel began and was stopped, as a GPU would have stopped it.
    fn is_fault(&self) -> bool {
        matches!(self, Self::Launch(LaunchError::Fault(_)))
    }
}

/// Runs a case in the emulator and returns its outputs.
pub fn emulate(case: &Case, mma_mode: MmaMode) -> Result<Vec<Vec<u8>>, EmulatorError> {
    let module = Module::load(&case.ptx)?;
    let mut memory = Memory::new();
    let mut place = |bytes: &Vec<u8>| -> Result<DevicePtr, MemoryError> {
        let pointer = memory.alloc(bytes.len().max(16) as u64)?;
        memory.write(pointer, bytes)?;
        Ok(pointer)
    };
    let inputs = case
        .inputs
        .iter()
        .map(&mut place)
        .collect::<Result<Vec<_>, _>>()?;
    let outputs = case
        .outputs
        .iter()
        .map(&mut place)
        .collect::<Result<Vec<_>, _>>()?;
    let mut params = Params::new();
    for pointer in inputs.iter().chain(&outputs) {
        params = params.pointer(*pointer);
    }
    for map in &case.maps {
        let pointer = match map.buffer {
            MapBuffer::Input(i) => inputs[i],
            MapBuffer::Output(i) => outputs[i],
        };
        params = params.tensor_map(&encode(map, pointer.0)?);
    }
    let mut launch = Launch::new(ENTRY)
        .grid(case.launch.grid)
        .block(case.launch.block)
        .shared_bytes(case.launch.shared)
        .params(params)
        .config(Config {
            mma_mode,
            step_limit: 2_000_000,
            limits: DeviceLimits::of_target(module.target()).unwrap_or_default(),
            ..Config::default()
        });
    if case.launch.cluster != [1, 1, 1] {
        launch = launch.cluster(case.launch.cluster);
    }
    launch.run(&module, &mut memory)?;
    let read =
        |(pointer, bytes): (&DevicePtr, &Vec<u8>)| memory.read_vec(*pointer, bytes.len() as u64);
    Ok(outputs
        .iter()
        .zip(&case.outputs)
        .map(read)
        .collect::<Result<Vec<_>, _>>()?)
}

fn encode(map: &MapSpec, address: u64) -> Result<TensorMap, TensorMapError> {
    let element = match map.element {
        MapType::U8 => MapElement::U8,
        MapType::U16 => MapElement::U16,
        MapType::U32 => MapElement::U32,
        MapType::S32 => MapElement::S32,
        MapType::U64 => MapElement::U64,
        MapType::S64 => MapElement::S64,
        MapType::F16 => MapElement::F16,
        MapType::F32 => MapElement::F32,
        MapType::F64 => MapElement::F64,
        MapType::Bf16 => MapElement::Bf16,
        MapType::F32Ftz => MapElement::F32Ftz,
        MapType::Tf32 => MapElement::Tf32,
        MapType::Tf32Ftz => MapElement::Tf32Ftz,
        MapType::U4 => MapElement::U4,
        MapType::U4Align16 => MapElement::U4Align16,
        MapType::U6Align16 => MapElement::U6Align16,
    };
    let swizzle = match map.swizzle {
        Swizzle::None => ptx_emu::Swizzle::None,
        Swizzle::B32 => ptx_emu::Swizzle::B32,
        Swizzle::B64 => ptx_emu::Swizzle::B64,
        Swizzle::B128 => ptx_emu::Swizzle::B128,
        Swizzle::B128Atom32 => ptx_emu::Swizzle::B128Atom32,
        Swizzle::B128Atom32Flip8 => ptx_emu::Swizzle::B128Atom32Flip8,
        Swizzle::B128Atom64 => ptx_emu::Swizzle::B128Atom64,
    };
    TensorMap::tiled(Tiled {
        element,
        address,
        dims: &map.dims,
        strides: &map.strides,
        box_dims: &map.extent,
        element_strides: &map.element_strides,
        swizzle,
        fill: if map.nan_fill { Fill::Nan } else { Fill::Zero },
    })
}

/// What a replay found about one case.
#[derive(Debug)]
pub enum Verdict {
    /// The outputs agree by the case's class.
    Agrees {
        /// Bit for bit, whatever the class allows.
        exact: bool,
    },
    /// An output differs.
    Differs(Difference),
    /// The emulator gave no outputs where the GPU did.
    Refused(EmulatorError),
    /// The GPU refused the kernel and the emulator did not.
    NotRefused(String),
    /// The case has changed since it was recorded.
    Stale,
    /// The case was never recorded.
    Missing,
    /// It runs, and no card of its kind has answered yet.
    Unanswered,
}

impl Verdict {
    /// Whether the emulator did not do what the GPU did, or what nobody could hold against it.
    pub fn fails(&self) -> bool {
        !self.agrees() && !matches!(self, Self::Unanswered)
    }

    /// Whether the emulator did what the GPU did.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Agrees { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees { exact: true } => write!(f, "agrees bit for bit"),
            Self::Agrees { exact: false } => write!(f, "agrees within tolerance"),
            Self::Differs(difference) => write!(f, "{difference}"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::NotRefused(message) => write!(f, "runs where the GPU said: {message}"),
            Self::Stale => write!(f, "has changed since it was recorded: record it again"),
            Self::Missing => write!(f, "has no golden: record it"),
            Self::Unanswered => write!(f, "runs; no card has answered yet"),
        }
    }
}

/// Where and how much an output differs.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    output: usize,
    element: usize,
    bytes: usize,
    ours: Vec<u8>,
    golden: Vec<u8>,
    differing: usize,
    of: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} elements of {} bytes differ, first in output {} at {}: {} where the GPU gave {}",
            self.differing,
            self.of,
            self.bytes,
            self.output,
            self.element,
            hex(&self.ours),
            hex(&self.golden)
        )
    }
}

/// Little-endian bytes as one number.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|b| format!("{b:02x}")).collect()
}

/// Holds outputs against a golden's; `None` if they agree by `compare`.
fn difference(ours: &[Vec<u8>], golden: &[Vec<u8>], compare: Compare) -> Option<Difference> {
    let bytes = match compare {
        Compare::Exact => 4,
        Compare::Near { element, .. } => element.bytes(),
    };
    let mut found: Option<Difference> = None;
    for (output, (ours, golden)) in ours.iter().zip(golden).enumerate() {
        let of = golden.len().div_ceil(bytes);
        for (element, (a, b)) in ours.chunks(bytes).zip(golden.chunks(bytes)).enumerate() {
            if a == b || near(a, b, compare) {
                continue;
            }
            found
                .get_or_insert(Difference {
                    output,
                    element,
                    bytes,
                    ours: a.to_vec(),
                    golden: b.to_vec(),
                    differing: 0,
                    of,
                })
                .differing += 1;
        }
    }
    found
}

/// Whether there is something to hold every byte against.
fn same_sizes(ours: &[Vec<u8>], golden: &[Vec<u8>]) -> bool {
    ours.iter().map(Vec::len).eq(golden.iter().map(Vec::len))
}

/// NaN agrees with NaN alone, an infinity with itself alone (which equal bits have settled).
fn near(ours: &[u8], golden: &[u8], compare: Compare) -> bool {
    let Compare::Near {
        element,
        relative,
        absolute,
    } = compare
    else {
        return false;
    };
    let (ours, golden) = (element.value(ours), element.value(golden));
    if ours.is_nan() || golden.is_nan() {
        return ours.is_nan() && golden.is_nan();
    }
    ours.is_finite()
        && golden.is_finite()
        && (ours - golden).abs() <= absolute + relative * golden.abs()
}

/// Replays one case against its golden.
pub fn judge(case: &Case, golden: Option<&Golden>, mma_mode: MmaMode) -> Verdict {
    let Some(golden) = golden else {
        return Verdict::Missing;
    };
    if golden.fingerprint != case.fingerprint() {
        return Verdict::Stale;
    }
    match (emulate(case, mma_mode), &golden.answer) {
        (Ok(ours), Answer::Outputs(theirs)) if !same_sizes(&ours, theirs) => Verdict::Stale,
        (Ok(ours), Answer::Outputs(theirs)) => match difference(&ours, theirs, case.compare) {
            None => Verdict::Agrees {
                exact: ours == *theirs,
            },
            Some(difference) => Verdict::Differs(difference),
        },
        (Err(error), Answer::Failed(_)) if error.is_fault() => Verdict::Agrees { exact: true },
        (Err(error), _) => Verdict::Refused(error),
        (Ok(_), Answer::Failed(message)) => Verdict::NotRefused(message.clone()),
    }
}

/// The first elements in which the emulator and the GPU differ, with the input elements of
/// the same index where a buffer has as many.
pub fn explain(case: &Case, golden: Option<&Golden>) -> Vec<String> {
    const MOST: usize = 24;
    let verdict = judge(case, golden, MmaMode::Exact);
    let (Ok(ours), Some(Answer::Outputs(theirs))) =
        (emulate(case, MmaMode::Exact), golden.map(|g| &g.answer))
    else {
        return vec![verdict.to_string()];
    };
    let mut lines = vec![verdict.to_string()];
    // Elementwise cases have as many elements as threads that take part; the first input tells.
    let widths = [8, 4, 2, 1];
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let Some(width) = widths.into_iter().find(|w| ours.len().is_multiple_of(*w)) else {
            continue;
        };
        let width = case
            .inputs
            .first()
            .and_then(|input| {
                widths
                    .into_iter()
                    .find(|w| input.len() / w * width == ours.len())
            })
            .map_or(width.min(4), |_| width);
        let count = ours.len() / width;
        for element in (0..count)
            .filter(|i| ours[i * width..][..width] != theirs[i * width..][..width])
            .take(MOST)
        {
            let at = |bytes: &[u8]| {
                let width = (bytes.len() / count).max(1);
                hex(bytes
                    .get(element * width..(element + 1) * width)
                    .unwrap_or(&[]))
            };
            let inputs: Vec<String> = case.inputs.iter().map(|input| at(input)).collect();
            lines.push(format!(
                "output {index} element {element}: {} where the GPU gave {} from {}",
                at(ours),
                at(theirs),
                inputs.join(" ")
            ));
        }
    }
    lines
}

/// All goldens of the suite's folder, by case name.
pub fn read_goldens(folder: &Path) -> Result<HashMap<String, Golden>, GoldenError> {
    read_groups(folder, |group, there| {
        there || families::card(group) == Card::Hopper
    })
}

/// The goldens that one card has left in a folder.
pub fn read_recorded(folder: &Path) -> Result<HashMap<String, Golden>, GoldenError> {
    read_groups(folder, |_, there| there)
}

fn read_groups(
    folder: &Path,
    wanted: impl Fn(&str, bool) -> bool,
) -> Result<HashMap<String, Golden>, GoldenError> {
    let mut goldens = HashMap::new();
    for group in families::groups() {
        let path = folder.join(group).with_extension("golden");
        if !wanted(group, path.exists()) {
            continue;
        }
        let file = Goldens::read(&path)?;
        goldens.extend(
            file.cases
                .into_iter()
                .map(|golden| (golden.name.clone(), golden)),
        );
    }
    Ok(goldens)
}

/// Names of the cases that no card has answered: those of groups without any golden.
pub fn unanswered(goldens: &HashMap<String, Golden>) -> HashSet<String> {
    let mut names = HashSet::new();
    for group in families::groups() {
        if families::card(group) == Card::Hopper {
            continue;
        }
        let of_group = FAMILIES.iter().filter(|f| f.group == group);
        let cases: Vec<Case> = of_group.flat_map(|f| (f.cases)()).collect();
        if !cases.iter().any(|case| goldens.contains_key(&case.name)) {
            names.extend(cases.into_iter().map(|case| case.name));
        }
    }
    names
}

/// The instruction forms that were run and held against nothing.
pub fn unanswered_forms(verdicts: &[(Case, Verdict)]) -> usize {
    let run = |(case, verdict): &'_ (Case, Verdict)| match verdict {
        Verdict::Unanswered => case.forms.clone(),
        _ => Vec::new(),
    };
    verdicts.iter().flat_map(run).collect::<HashSet<_>>().len()
}

/// Replays every case whose name contains `part`, on all cores, in the suite's order.
pub fn replay(
    goldens: &HashMap<String, Golden>,
    part: &str,
    mma_mode: MmaMode,
) -> Vec<(Case, Verdict)> {
    replay_cases(families::all(), goldens, part, mma_mode)
}

/// The same for the groups that have goldens alone: what one card has recorded.
pub fn replay_recorded(
    goldens: &HashMap<String, Golden>,
    part: &str,
    mma_mode: MmaMode,
) -> Vec<(Case, Verdict)> {
    let mut cases = Vec::new();
    for group in families::groups() {
        let of_group = FAMILIES.iter().filter(|f| f.group == group);
        let of_group: Vec<Case> = of_group.flat_map(|f| (f.cases)()).collect();
        if of_group.iter().any(|case| goldens.contains_key(&case.name)) {
            cases.extend(of_group);
        }
    }
    replay_cases(cases, goldens, part, mma_mode)
}

fn replay_cases(
    mut cases: Vec<Case>,
    goldens: &HashMap<String, Golden>,
    part: &str,
    mma_mode: MmaMode,
) -> Vec<(Case, Verdict)> {
    cases.retain(|case| case.name.contains(part));
    let unanswered = unanswered(goldens);
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = match unanswered.contains(&case.name) {
                        true => match emulate(case, mma_mode) {
                            Ok(_) => Verdict::Unanswered,
                            Err(error) => Verdict::Refused(error),
                        },
                        false => judge(case, goldens.get(&case.name), mma_mode),
                    };
                    verdicts
                        .lock()
                        .unwrap_or_else(|e| e.into_inner())
                        .push((case.name.clone(), verdict));
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(|e| e.into_inner());
    let mut by_name: HashMap<String, Verdict> = verdicts.into_iter().collect();
    cases
        .into_iter()
        .map(|case| {
            let verdict = by_name.remove(&case.name).unwrap_or(Verdict::Missing);
            (case, verdict)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Element;

    const NEAR: Compare = Compare::Near {
        element: Element::F32,
        relative: 0.0,
        absolute: 0.5,
    };

    fn words(values: &[f32]) -> Vec<Vec<u8>> {
        vec![values.iter().flat_map(|v| v.to_le_bytes()).collect()]
    }

    #[test]
    fn nan_and_infinity_agree_with_themselves_alone() {
        let differ = |a: f32, b: f32| difference(&words(&[a]), &words(&[b]), NEAR).is_some();
        assert!(!differ(f32::NAN, -f32::NAN));
        assert!(differ(f32::NAN, 1.0));
        assert!(differ(1.0, f32::NAN));
        assert!(differ(f32::MAX, f32::INFINITY));
        assert!(!differ(f32::INFINITY, f32::INFINITY));
        assert!(!differ(1.0, 1.5));
        assert!(differ(1.0, 1.75));
    }

    #[test]
    fn exact_counts_every_differing_word() {
        let found = difference(
            &words(&[1.0, 2.0, 3.0]),
            &words(&[1.0, 2.5, 3.5]),
            Compare::Exact,
        );
        assert_eq!(
            found.map(|d| (d.element, d.differing, d.of)),
            Some((1, 2, 3))
        );
    }
}
