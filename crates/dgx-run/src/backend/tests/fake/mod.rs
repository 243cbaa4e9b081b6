//! A backend that runs nothing: times, clocks, outputs and failures come from a script. It tests
//! the whole measuring path without a GPU, with the same workers and the same protocol: the order
//! in which contenders are timed, and the reaction to a wrong output, a dropped clock or a worker
//! that dies. Its times are called scripted in all output, and prove nothing.
//!
//! ```toml
//! journal = "calls.jsonl"            # every call is written down there
//! times   = { plain = 100, quick = 80 }
//! noise   = 0.01
//! [[on]]                             # the 25th timed call of `quick`
//! contender = "quick"
//! call      = 25
//! output    = "wrong"
//! ```

mod journal;
mod script;

use std::path::Path;

use super::{
    Backend, Bench, BenchSetup, CallData, CallInput, CallSeed, ForbiddenWrite, ForbiddenWriteKind,
    Job, Loaded, Observation, RunFailure, Timed, proven,
};
use crate::operator::{Oracle, OutputValues};
use crate::validate::{JudgedImage, Passed, Tolerance};
use dgx_core::config::target;
use dgx_core::domain::{
    ALGORITHM_DIGITS, Algorithm, BackendKind, Card, ContenderId, Device, Group, KernelTime, Micros,
    Tuning,
};
use dgx_core::operator::{ElementType, default_operator};
use journal::Journal;
pub use journal::{JournalEntry, notes};
pub use script::CallStage;
pub(crate) use script::Script;
use script::{CallScript, Output, ScriptState, ScriptedCall};

/// fp16 infinity, which is never the right result.
const WRONG: u64 = 0x7c00;

/// A device controlled by a script.
pub(crate) struct FakeBackend {
    device: Device,
    prompter: ScriptState,
    journal: Journal,
    /// Which of the script's cards it is.
    card: u32,
}

impl FakeBackend {
    pub(crate) fn open(script: &Path, card: u32) -> Result<Self, String> {
        Self::play(Script::read(script)?, card)
    }

    pub(crate) fn play(script: Script, card: u32) -> Result<Self, String> {
        let path = script.journal.as_deref();
        let happened = path.map(notes).unwrap_or_default();
        if card as usize >= script.cards.len().max(1)
            || happened.iter().any(|n| n.gone == Some(card))
        {
            return Err(format!("there is no card {card} (any more)"));
        }
        let happened = happened.into_iter().flat_map(|note| note.once).collect();
        let journal = Journal::open(path).map_err(|e| format!("the script's journal: {e}"))?;
        Ok(Self {
            device: device(&script, card),
            card,
            prompter: ScriptState::new(script, happened),
            journal,
        })
    }

    /// Performs one call as the script says.
    fn act(
        &mut self,
        call: &ScriptedCall<'_>,
        data: Option<CallData>,
        call_seed: CallSeed,
    ) -> Result<CallScript, RunFailure> {
        let cue = self.prompter.cue(call);
        self.journal.note(&JournalEntry {
            worker: std::process::id(),
            act: call.act,
            contender: call.contender.to_string(),
            shape: call.shape.to_owned(),
            process: call.process,
            set: data.map(|data| data.set),
            call_seed: call_seed.0,
            observed: false,
            once: cue.once.clone(),
            card: self.card,
            gone: cue.vanishes.then_some(self.card),
        });
        std::thread::sleep(cue.sleeps);
        if cue.dies || cue.vanishes {
            die();
        }
        match cue.fails.clone() {
            Some(failure) => Err(failure),
            None => Ok(cue),
        }
    }
}

/// Ends the process as a kill would: without clean-up and without a message.
fn die() -> ! {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    std::process::abort()
}

/// The usual device under another name, so that the two are not confused.
fn device(script: &Script, card: u32) -> Device {
    let mut device = target::default_device().clone();
    device.name = "a script".to_owned();
    device.card = script.cards.get(card as usize).map(|uuid| Card {
        uuid: Some(uuid.clone()),
        driver: None,
    });
    device.peaks.clock_mhz = script.device.clock_mhz;
    device.peaks.bandwidth = script.device.bandwidth;
    device.record_origin("the script", &["peaks.clock_mhz", "peaks.bandwidth"]);
    device
}

impl Backend for FakeBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Fake
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn load<'a>(&'a mut self, job: Job<'a>) -> Result<Box<dyn Loaded + 'a>, RunFailure> {
        Ok(Box::new(FakeCell {
            contender: job.contender,
            backend: self,
            memory: Memory::default(),
        }))
    }

    fn bench<'a>(&'a mut self, setup: &BenchSetup<'_>) -> Result<Box<dyn Bench + 'a>, String> {
        let room = self.prompter.script().sets.unwrap_or(setup.sets.len());
        let answers = setup.sets.iter().take(room);
        Ok(Box::new(FakeBench {
            shape: setup.shape.name.clone(),
            process: setup.process,
            groups: setup.shape.groups.clone(),
            answers: answers.map(|set| set.oracle.clone()).collect(),
            entries: Vec::new(),
            memories: Vec::new(),
            kernels: Vec::new(),
            backend: self,
        }))
    }

    fn yardstick(&self) -> Result<String, String> {
        let named = self.prompter.script().yardstick.clone();
        named.ok_or_else(|| "the script has none".to_owned())
    }
}

/// A contender as validation calls it.
struct FakeCell<'a> {
    contender: &'a ContenderId,
    backend: &'a mut FakeBackend,
    memory: Memory,
}

impl Loaded for FakeCell<'_> {
    fn call(&mut self, data: &CallInput<'_>) -> Result<Observation, RunFailure> {
        let call = ScriptedCall {
            card: self.backend.card,
            act: CallStage::Validation,
            contender: self.contender,
            // The last two words are the distribution and the seed.
            shape: data.key.rsplitn(3, ' ').last().unwrap_or_default(),
            process: 0,
        };
        let cue = self.backend.act(&call, None, data.call_seed)?;
        let oracle = Oracle::compute(data.operands);
        self.memory.write(&cue, rounded(&oracle, data.call_seed));
        Ok(Observation {
            printed: cue.prints,
            ..self.memory.read()
        })
    }
}

/// The state that one contender's calls leave behind.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// C after the last call.
    outputs: Vec<OutputValues>,
    trespass: bool,
}

impl Memory {
    fn write(&mut self, cue: &CallScript, answer: Vec<OutputValues>) {
        self.trespass = cue.output == Some(Output::Trespass);
        if cue.output == Some(Output::Stale) && !self.outputs.is_empty() {
            return;
        }
        self.outputs = answer;
        if cue.output == Some(Output::Wrong) {
            self.outputs[0].set(0, WRONG);
        }
    }

    fn read(&self) -> Observation {
        let changed = ForbiddenWrite {
            buffer: "a of group 0".to_owned(),
            kind: ForbiddenWriteKind::InputChanged,
            offset: 0,
            by: None,
        };
        Observation {
            outputs: self.outputs.clone(),
            trespasses: self.trespass.then_some(changed).into_iter().collect(),
            ..Observation::default()
        }
    }
}

/// The right output of a call, group after group.
fn rounded(oracle: &Oracle, call_seed: CallSeed) -> Vec<OutputValues> {
    // Scripts are for gated products, whose shapes follow from the oracle.
    let oracle = oracle.shuffled(call_seed.shuffle(), default_operator(), &[]);
    let groups = oracle.groups.iter();
    groups
        .map(|group| OutputValues::rounded(ElementType::F16, (0..group.len()).map(|i| group.c(i))))
        .collect()
}

/// The contenders of one shape, ready to be called and timed.
struct FakeBench<'a> {
    shape: String,
    process: u32,
    groups: Vec<Group>,
    /// One for each data set.
    answers: Vec<Oracle>,
    entries: Vec<JudgedImage>,
    /// One for each entry.
    memories: Vec<Memory>,
    /// Those of each entry's call, by name.
    kernels: Vec<Vec<String>>,
    backend: &'a mut FakeBackend,
}

impl FakeBench<'_> {
    fn add_entry(
        &mut self,
        contender: &ContenderId,
        image: String,
        kernels: Vec<String>,
    ) -> JudgedImage {
        let subject = JudgedImage {
            contender: contender.clone(),
            shape: self.shape.clone(),
            image,
        };
        self.entries.push(subject.clone());
        self.memories.push(Memory::default());
        self.kernels.push(kernels);
        subject
    }

    fn place(&self, subject: &JudgedImage) -> Result<usize, RunFailure> {
        let places: Vec<(usize, &JudgedImage)> = self.entries.iter().enumerate().collect();
        proven(&places, |(_, entry)| *entry, subject).map(|(place, _)| *place)
    }

    /// One call: the script's cue, and whether the device suspects an error.
    fn call(
        &mut self,
        act: CallStage,
        subject: &JudgedImage,
        data: CallData,
    ) -> Result<(CallScript, bool), RunFailure> {
        let place = self.place(subject)?;
        let call = ScriptedCall {
            card: self.backend.card,
            act,
            contender: &subject.contender,
            shape: &self.shape,
            process: self.process,
        };
        let cue = self.backend.act(&call, Some(data), data.call_seed)?;
        let memory = &mut self.memories[place];
        let answer = rounded(&self.answers[data.set], data.call_seed);
        memory.write(&cue, answer.clone());
        let seen = memory.read();
        let right = seen.outputs == answer && seen.trespasses.is_empty();
        let suspect = !right && !cue.unnoticed;
        Ok((cue, suspect))
    }
}

impl Bench for FakeBench<'_> {
    fn sets(&self) -> usize {
        self.answers.len()
    }

    fn enter(&mut self, job: &Job<'_>, _tolerance: Tolerance) -> Result<JudgedImage, RunFailure> {
        let launches = job.call.launches.iter();
        let kernels = launches.map(|launch| launch.kernel.clone()).collect();
        Ok(self.add_entry(job.contender, job.image.key.clone(), kernels))
    }

    fn enter_yardstick(
        &mut self,
        name: &ContenderId,
        kept: Option<&Tuning>,
        _tolerance: Tolerance,
    ) -> Result<(JudgedImage, Option<Tuning>), String> {
        let library = self.backend.yardstick()?;
        let algorithm = Algorithm {
            code: "0".repeat(ALGORITHM_DIGITS),
            text: "scripted".to_owned(),
            micros: Micros(1.0),
            candidates: 1,
        };
        let found = Tuning {
            shape: self.shape.clone(),
            library: library.clone(),
            gemms: vec![algorithm; self.groups.len()],
        };
        let tuning = kept.cloned().unwrap_or(found);
        Ok((self.add_entry(name, library, Vec::new()), Some(tuning)))
    }

    fn rehearse(&mut self, subject: &JudgedImage, data: CallData) -> Result<bool, RunFailure> {
        let (_, suspect) = self.call(CallStage::Rehearsal, subject, data)?;
        Ok(suspect)
    }

    fn time(&mut self, passed: Passed, data: CallData) -> Result<Timed, RunFailure> {
        let (cue, suspect) = self.call(CallStage::Timing, passed.subject(), data)?;
        Ok(Timed {
            micros: Micros(cue.micros),
            clock_mhz: Some(cue.clock_mhz),
            spent: passed.spend(suspect),
        })
    }

    /// All kernels take the same time.
    fn kernels(&mut self, passed: &Passed, data: CallData) -> Result<Vec<KernelTime>, RunFailure> {
        let place = self.place(passed.subject())?;
        let names = self.kernels[place].clone();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let (cue, _) = self.call(CallStage::Dissection, passed.subject(), data)?;
        let each = cue.micros / names.len() as f64;
        let kernels = names.into_iter().enumerate();
        let times = kernels.map(|(nth, name)| KernelTime {
            name,
            start: Micros(each * nth as f64),
            micros: Micros(each),
        });
        Ok(times.collect())
    }

    fn observe(
        &mut self,
        subject: &JudgedImage,
        data: CallData,
    ) -> Result<Observation, RunFailure> {
        let place = self.place(subject)?;
        self.backend.journal.note(&JournalEntry {
            worker: std::process::id(),
            act: CallStage::Timing,
            contender: subject.contender.to_string(),
            shape: self.shape.clone(),
            process: self.process,
            set: Some(data.set),
            call_seed: data.call_seed.0,
            observed: true,
            once: Vec::new(),
            card: self.backend.card,
            gone: None,
        });
        Ok(self.memories[place].read())
    }
}
