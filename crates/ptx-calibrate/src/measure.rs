//! Puts the cases to the GPU here, and writes down what it answers.

use std::collections::HashMap;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::answers::{Answer, Answers, AnswersHeader, SCHEMA};
use super::only::Only;
use super::probe::{Case, L2, Probe, Read, cases, unit};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{BackendKind, Chip};
use dgx_core::record::argv;
use dgx_core::record::schema::DeviceRecord;
use dgx_run::backend::cuda::{self, GpuPresence, ProbeBench, ProbeReading, ProbeTrial, tools_unit};
use dgx_run::compile::{Compiler, Image, TranslationUnit};
use dgx_run::sweep::{git_state, host, started};

/// How often each case is called.
const TIMES: u32 = 5;
/// What probes read: any bits do, but the same in every run.
const DATA_SEED: u64 = 0x0d67;

/// What the GPU answers to the cases that are meant, and how many of them ask about what it does
/// not have.
pub fn measure(only: &Only, compiler: &Compiler) -> Result<(Answers, usize), CommandError> {
    let chip = present()?;
    let meant: Chosen = only.of(cases(), |(_, case)| &case.name)?;
    let all = meant.len();
    let suit = meant.into_iter().filter(|(_, case)| case.suits(chip));
    let chosen: Chosen = suit.collect();
    let images = compiled(&chosen, chip, compiler)?;
    let tools = tools(chip, compiler)?;
    let (data, scratch) = memory(&chosen);
    let mut bench =
        ProbeBench::open(&tools, &data, scratch).map_err(|e| could_not_run(&e.to_string()))?;
    let asked = AnswersHeader {
        schema: SCHEMA,
        started: started(),
        argv: argv(),
        dgx: env!("CARGO_PKG_VERSION").to_owned(),
        git: git_state(),
        host: host(),
        device: DeviceRecord::new(BackendKind::Cuda, bench.device()),
        compiler: compiler.version(),
        times: TIMES,
        cases: Some(chosen.len()),
    };
    let unasked = all - chosen.len();
    let mut answers = Vec::with_capacity(chosen.len());
    for ((_, case), image) in chosen.iter().zip(&images) {
        let readings = bench.run(&trial(case, image), TIMES);
        let readings = readings.map_err(|e| failed(case, &e.message))?;
        answers.push(answer(case, image, &readings)?);
    }
    Ok((Answers { asked, answers }, unasked))
}

/// The chip of the GPU here; there must be one that runs the probes.
fn present() -> Result<Chip, CommandError> {
    match cuda::presence() {
        GpuPresence::Gpu { chip, .. } if is_asked(chip) => Ok(chip),
        GpuPresence::Gpu { chip, .. } => Err(could_not_run(&format!(
            "the probes are for sm_90a and sm_100a, and the GPU here is {chip}"
        ))),
        GpuPresence::NoDriver => Err(no_gpu("no NVIDIA driver is installed")),
        GpuPresence::NoGpu(why) => Err(no_gpu(&why)),
    }
}

/// Whether probes are put to a chip.
fn is_asked(chip: Chip) -> bool {
    matches!((chip.major, chip.minor), (9 | 10, 0))
}

type Chosen = Vec<(&'static Probe, &'static Case)>;

/// An image for each case; those of one unit share it.
pub(super) fn compiled(
    chosen: &[(&Probe, &Case)],
    chip: Chip,
    compiler: &Compiler,
) -> Result<Vec<Image>, CommandError> {
    let mut units: Vec<TranslationUnit> = Vec::new();
    let mut places = HashMap::new();
    let mut of_case = Vec::new();
    for (probe, case) in chosen {
        let place = *places
            .entry((probe.name, &case.defines))
            .or_insert_with(|| {
                units.push(unit(probe, case, chip));
                units.len() - 1
            });
        of_case.push(place);
    }
    let compiled = compiler.compile_all(&units, |_, _| (), || false);
    let compiled = compiled.map_err(|e| could_not_run(&e.to_string()))?;
    let take = |(place, (_, case)): (usize, &(&Probe, &Case))| match compiled[place]
        .as_ref()
        .map(|c| &c.outcome)
    {
        Some(Ok(image)) => Ok(image.clone()),
        Some(Err(log)) => Err(failed(case, &format!("it does not compile:\n{log}"))),
        None => Err(could_not_run("compiling was stopped")),
    };
    of_case.into_iter().zip(chosen).map(take).collect()
}

fn tools(chip: Chip, compiler: &Compiler) -> Result<Image, CommandError> {
    let compiled = compiler.compile(&tools_unit(&chip.target(), None));
    let compiled = compiled.map_err(|e| could_not_run(&e.to_string()))?;
    compiled.outcome.map_err(|message| could_not_run(&message))
}

/// Enough for every case: random data, and so many bytes of scratch.
fn memory(chosen: &Chosen) -> (Vec<u8>, u64) {
    let most = |of: fn(&Case) -> u64| chosen.iter().map(|(_, case)| of(case)).max();
    let mut data = vec![0; most(|case| case.data).unwrap_or(0) as usize];
    ChaCha8Rng::seed_from_u64(DATA_SEED).fill(&mut data[..]);
    (data, most(|case| case.scratch).unwrap_or(0))
}

pub(super) fn trial<'a>(case: &'a Case, image: &'a Image) -> ProbeTrial<'a> {
    let map = case.map.as_ref();
    ProbeTrial {
        image,
        grid: case.grid,
        block: case.block,
        cluster: case.cluster,
        smem: case.smem,
        launches: case.launches,
        overlap: case.overlap,
        cold: case.l2 == L2::Cold,
        map: map.map(|map| (map.into_scratch, map.offset, &map.geometry)),
    }
}

fn answer(case: &Case, image: &Image, readings: &[ProbeReading]) -> Result<Answer, CommandError> {
    let registers = image.kernels.first().map_or(0, |kernel| kernel.registers);
    let mut answer = Answer::to(case, registers);
    for reading in readings {
        let value = match case.read {
            Read::Cycles => reading.cycles,
            Read::Nanos => reading.nanos,
            Read::Micros => Some(reading.micros),
        };
        let value = value.ok_or_else(|| failed(case, "its kernel reported no time"))?;
        answer.values.push(value);
        answer.cycles.extend(reading.cycles);
        answer.nanos.extend(reading.nanos);
        answer.micros.push(reading.micros);
        answer.mhz.extend(reading.mhz);
    }
    Ok(answer)
}

pub(super) fn failed(case: &Case, why: &str) -> CommandError {
    could_not_run(&format!("{}: {why}", case.name))
}

fn no_gpu(why: &str) -> CommandError {
    CommandError::could_not_run(
        format!("there is no GPU to ask: {why}"),
        "run this on a machine with one; dgx doctor says what is here",
    )
}

pub(super) fn could_not_run(message: &str) -> CommandError {
    CommandError::could_not_run(message, "dgx doctor says what is here")
}
