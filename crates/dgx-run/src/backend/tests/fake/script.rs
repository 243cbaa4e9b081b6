//! A script, and its effect on one call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::RunFailure;
use dgx_core::domain::mix;
use dgx_core::domain::{ContenderId, Status};

/// Microseconds of contenders that the script does not name.
const USUAL: f64 = 100.0;

/// A script as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// File beside the script with the record of every call.
    pub journal: Option<PathBuf>,
    /// The library of the yardstick; without it there is none.
    pub yardstick: Option<String>,
    /// The uuids of its cards, if they have one; by default one card.
    #[serde(default)]
    pub cards: Vec<String>,
    /// Data sets there is room for.
    pub sets: Option<usize>,
    #[serde(default)]
    pub device: PeakRates,
    /// Microseconds by contender.
    #[serde(default)]
    times: BTreeMap<String, f64>,
    /// The largest deviation of a time from that, as a share.
    #[serde(default)]
    noise: f64,
    /// Special events, and the calls they happen in.
    #[serde(default)]
    on: Vec<Event>,
}

/// The peak rates that the device claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PeakRates {
    pub clock_mhz: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

impl Default for PeakRates {
    fn default() -> Self {
        Self {
            clock_mhz: 1700.0,
            bandwidth: 4.8e12,
        }
    }
}

/// The purpose of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallStage {
    Validation,
    Rehearsal,
    #[default]
    Timing,
    /// To measure each kernel.
    Dissection,
}

/// The calls that match, and what happens in them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    contender: Option<String>,
    shape: Option<String>,
    process: Option<u32>,
    card: Option<u32>,
    #[serde(default, rename = "in")]
    act: CallStage,
    /// Only this one of a worker's matching calls, counted from 1.
    call: Option<u64>,
    /// This one and all later ones.
    from: Option<u64>,
    /// In one worker only, of all that share the script's journal.
    #[serde(default)]
    once: bool,
    micros: Option<f64>,
    clock_mhz: Option<f64>,
    output: Option<Output>,
    /// The device's own judge misses it.
    #[serde(default)]
    unnoticed: bool,
    /// The backend reports this status.
    fails: Option<Status>,
    /// Seconds by which the call delays its worker.
    #[serde(default)]
    sleeps: f64,
    /// The worker's process ends.
    #[serde(default)]
    dies: bool,
    /// The card is gone, and its worker with it.
    #[serde(default)]
    vanishes: bool,
    prints: Option<String>,
}

/// The output of a call, if it is not the right result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Output {
    Wrong,
    /// The output of the call before.
    Stale,
    /// The right result, but an input is changed too.
    Trespass,
}

/// One call, as the script sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptedCall<'a> {
    pub act: CallStage,
    pub contender: &'a ContenderId,
    pub shape: &'a str,
    pub process: u32,
    pub card: u32,
}

/// The script's instructions for a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallScript {
    pub micros: f64,
    pub clock_mhz: f64,
    pub output: Option<Output>,
    pub unnoticed: bool,
    pub fails: Option<RunFailure>,
    pub sleeps: Duration,
    pub dies: bool,
    pub vanishes: bool,
    pub prints: String,
    /// Events that happen once, by their indices.
    pub once: Vec<usize>,
}

impl Script {
    /// Reads a script; an error names its file and the place there.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let said = |e: &dyn std::fmt::Display| format!("script {}: {e}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| said(&e))?;
        let mut script = Self::parse(&text).map_err(|e| said(&e))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        script.journal = script.journal.map(|journal| folder.join(journal));
        Ok(script)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let script: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        let times = script
            .times
            .iter()
            .map(|(name, time)| (name.as_str(), time));
        let events = script.on.iter().filter_map(|event| event.micros.as_ref());
        let invalid = (times.chain(events.map(|time| ("an event", time))))
            .find(|(_, time)| !(time.is_finite() && **time > 0.0));
        if let Some((whose, time)) = invalid {
            return Err(format!("{time} µs is no time, for {whose}"));
        }
        let silent = script.on.iter().position(|event| !event.happens());
        if let Some(place) = silent {
            return Err(format!("event {} says of no call what happens", place + 1));
        }
        if script.on.iter().any(|e| e.once || e.vanishes) && script.journal.is_none() {
            return Err("an event that happens once needs a `journal`".to_owned());
        }
        Ok(script)
    }
}

impl Event {
    fn happens(&self) -> bool {
        let said = self.micros.is_some() || self.clock_mhz.is_some() || self.prints.is_some();
        said || self.output.is_some()
            || self.fails.is_some()
            || self.dies
            || self.vanishes
            || self.sleeps > 0.0
    }

    fn is_about(&self, call: &ScriptedCall<'_>) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|w| w == is);
        self.act == call.act
            && same(&self.contender, call.contender.as_str())
            && same(&self.shape, call.shape)
            && self.process.is_none_or(|process| process == call.process)
            && self.card.is_none_or(|card| card == call.card)
    }

    /// Whether it happens in this one of its matching calls.
    fn is_due(&self, met: u64) -> bool {
        self.call.is_none_or(|call| call == met) && self.from.is_none_or(|from| from <= met)
    }
}

/// The state of a script: how often each contender was called.
#[derive(Debug)]
pub(super) struct ScriptState {
    script: Script,
    /// The number of matching calls of each event.
    met: Vec<u64>,
    /// Events that have happened and need not happen again.
    happened: Vec<usize>,
    calls: BTreeMap<(String, String, u32), u64>,
}

impl ScriptState {
    pub(super) fn new(script: Script, happened: Vec<usize>) -> Self {
        Self {
            met: vec![0; script.on.len()],
            happened,
            calls: BTreeMap::new(),
            script,
        }
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// The instructions for the next call.
    pub(super) fn cue(&mut self, call: &ScriptedCall<'_>) -> CallScript {
        let mut cue = CallScript {
            micros: self.default_micros(call),
            clock_mhz: self.script.device.clock_mhz,
            output: None,
            unnoticed: false,
            fails: None,
            sleeps: Duration::ZERO,
            dies: false,
            vanishes: false,
            prints: String::new(),
            once: Vec::new(),
        };
        for (place, event) in self.script.on.iter().enumerate() {
            if !event.is_about(call) {
                continue;
            }
            self.met[place] += 1;
            if !event.is_due(self.met[place]) || self.happened.contains(&place) {
                continue;
            }
            if event.once {
                self.happened.push(place);
                cue.once.push(place);
            }
            event.happen(&mut cue);
        }
        cue
    }

    /// The contender's own time, with noise that repeats in every run.
    fn default_micros(&mut self, call: &ScriptedCall<'_>) -> f64 {
        let name = call.contender.as_str();
        let key = (name.to_owned(), call.shape.to_owned(), call.process);
        let seed = (key.0.bytes().chain(key.1.bytes()))
            .fold(u64::from(call.process), |seed, byte| {
                mix(seed ^ u64::from(byte))
            });
        let calls = self.calls.entry(key).or_default();
        *calls += 1;
        let draw = mix(seed ^ mix(*calls)) as f64 / u64::MAX as f64;
        let time = self.script.times.get(name).copied().unwrap_or(USUAL);
        time * (1.0 + self.script.noise * (2.0 * draw - 1.0))
    }
}

impl Event {
    fn happen(&self, cue: &mut CallScript) {
        cue.micros = self.micros.unwrap_or(cue.micros);
        cue.clock_mhz = self.clock_mhz.unwrap_or(cue.clock_mhz);
        cue.output = self.output.or(cue.output);
        cue.unnoticed |= self.unnoticed;
        cue.sleeps += Duration::try_from_secs_f64(self.sleeps).unwrap_or(Duration::MAX);
        cue.dies |= self.dies;
        cue.vanishes |= self.vanishes;
        cue.prints.push_str(self.prints.as_deref().unwrap_or(""));
        if let Some(status) = self.fails {
            cue.fails = Some(RunFailure {
                fatal: matches!(status, Status::Crashed | Status::Hung),
                ..RunFailure::new(status, format!("the script says {status}"))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompter(text: &str) -> ScriptState {
        ScriptState::new(Script::parse(text).unwrap(), Vec::new())
    }

    fn call(contender: &ContenderId) -> ScriptedCall<'_> {
        ScriptedCall {
            act: CallStage::Timing,
            contender,
            shape: "s",
            process: 0,
            card: 0,
        }
    }

    #[test]
    fn events_happen_in_the_calls_they_are_about() {
        let (a, b) = (ContenderId::from_text("a"), ContenderId::from_text("b"));
        let mut prompter = prompter(
            "times = { a = 50.0 }\n\
             [[on]]\ncontender = \"a\"\ncall = 2\nclock_mhz = 800.0\n\
             [[on]]\nprocess = 0\nfrom = 4\noutput = \"wrong\"\n\
             [[on]]\nin = \"rehearsal\"\nmicros = 1.0\n",
        );
        let cues: Vec<CallScript> = [&a, &b, &a, &b]
            .map(|who| prompter.cue(&call(who)))
            .to_vec();
        let clocks: Vec<f64> = cues.iter().map(|c| c.clock_mhz).collect();
        assert_eq!(clocks, [1700.0, 1700.0, 800.0, 1700.0]);
        let outputs: Vec<_> = cues.iter().map(|c| c.output).collect();
        assert_eq!(outputs, [None, None, None, Some(Output::Wrong)]);
        let times: Vec<f64> = cues.iter().map(|c| c.micros).collect();
        assert_eq!(times, [50.0, USUAL, 50.0, USUAL]);
    }

    #[test]
    fn noise_is_bounded_repeats_and_differs_by_call_and_process() {
        let a = ContenderId::from_text("a");
        let times = |process| -> Vec<f64> {
            let mut prompter = prompter("noise = 0.01\n");
            let call = ScriptedCall {
                process,
                ..call(&a)
            };
            (0..50).map(|_| prompter.cue(&call).micros).collect()
        };
        assert_eq!(times(0), times(0));
        assert_ne!(times(0), times(1));
        assert!(times(0).iter().all(|t| (99.0..=101.0).contains(t)));
        assert!(times(0).windows(2).all(|w| w[0] != w[1]));
    }

    #[test]
    fn what_happens_once_has_happened_to_the_next_worker() {
        let a = ContenderId::from_text("a");
        let text = "journal = \"j\"\n[[on]]\ncall = 1\nonce = true\ndies = true\n";
        let script = Script::parse(text).unwrap();
        let mut first = ScriptState::new(script.clone(), Vec::new());
        let cue = first.cue(&call(&a));
        assert!(cue.dies && cue.once == [0]);
        assert!(!ScriptState::new(script, cue.once).cue(&call(&a)).dies);
    }

    #[test]
    fn a_script_that_makes_no_sense_is_refused() {
        for (text, why) in [
            ("time = 3\n", "unknown field `time`"),
            ("[[on]]\ncall = 3\n", "event 1 says of no call what happens"),
            ("times = { a = -1.0 }\n", "-1 µs is no time, for a"),
            ("[[on]]\nonce = true\ndies = true\n", "needs a `journal`"),
            ("[[on]]\nfails = \"tired\"\n", "unknown variant `tired`"),
        ] {
            let said = Script::parse(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
