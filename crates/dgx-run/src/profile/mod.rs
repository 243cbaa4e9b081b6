//! Where the time of a call goes: by stage, by warp role, and as a timeline. In virtual time, from
//! a replay by `ptx-time` of what the emulator recorded; on a GPU, from stamps in the kernels.
//! Nothing here runs a kernel.

mod chrome;
mod page;
mod removal;
mod roles;
mod source;
mod stages;
pub mod stamps;
mod timeline;

use ptx_time::CallTimes;
use serde::Serialize;

pub use chrome::chrome;
pub use page::page;
pub use removal::{Saving, savings};
pub use roles::{RoleShare, activity_word};
pub use source::Sources;
pub use stages::{Stage, StageTime};
pub use timeline::Timeline;

use crate::backend::emu::LaunchLayout;
use dgx_core::domain::{ContenderId, Micros, Timing};

/// One call of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledCell {
    pub contender: ContenderId,
    pub shape: String,
    /// From a replay, or from stamps.
    pub timing: Timing,
    /// The modelled device, or the one it was measured on.
    pub target: String,
    /// The error of modelled times, or the cost of stamps, in words.
    #[serde(rename = "belief")]
    pub accuracy: String,
    pub micros: Micros,
    pub clock_mhz: f64,
    /// They add up to the whole.
    pub stages: Vec<StageTime>,
    pub launches: Vec<LaunchProfile>,
}

/// One launch of it, on the SM that ends last.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchProfile {
    pub kernel: String,
    /// After the start of the call's first CTA.
    pub start: Micros,
    pub micros: Micros,
    pub ctas: u64,
    /// SMs that have work.
    pub active_sms: u64,
    pub sms: u64,
    /// CTAs of one SM, one after the other.
    pub rounds: u64,
    /// Share of the SMs' time without a CTA; modelled as if all were equally long.
    pub idle: f64,
    /// Share of the tensor cores' time on that SM.
    pub tensor: f64,
    pub stages: Vec<StageTime>,
    pub roles: Vec<RoleShare>,
    /// Share of the warps' instructions that are not in the cubin.
    pub homeless: f64,
    #[serde(skip)]
    pub timeline: Timeline,
}

/// The cell of a profile, and its device.
#[derive(Clone, Debug)]
pub struct ProfileLabels<'a> {
    pub contender: &'a ContenderId,
    pub shape: &'a str,
    pub timing: Timing,
    pub target: &'a str,
    pub accuracy: String,
    /// SMs there are.
    pub sms: u64,
}

impl ProfiledCell {
    /// From a replay that kept its spans, or from stamps.
    pub fn new(labels: ProfileLabels<'_>, call: CallTimes, laid: &[LaunchLayout]) -> Self {
        let clock = call.clock_mhz;
        let ends = call.launches.iter().map(|l| l.start + l.cycles);
        let end = ends.fold(0.0, f64::max);
        // The time outside all launches comes first.
        let mut all = vec![StageTime {
            stage: Stage::Launch,
            micros: Micros(call.micros - end / clock),
        }];
        let mut launches = Vec::new();
        let mut covered = 0.0;
        for (times, laid) in call.launches.into_iter().zip(laid) {
            let phases = stages::phases(&times);
            let whole = stages::sum(&phases, &times, f64::NEG_INFINITY, clock);
            // Launches that overlap: the common time counts once, for the first.
            stages::add(
                &mut all,
                Stage::Launch,
                (times.start - covered).max(0.0) / clock,
            );
            for part in stages::sum(&phases, &times, covered - times.start, clock) {
                stages::add(&mut all, part.stage, part.micros.0);
            }
            covered = covered.max(times.start + times.cycles);
            let sms = labels.sms;
            let places = (times.rounds.max(1) * sms) as f64;
            let micros = |cycles: f64| Micros((times.start + cycles) / clock);
            let names = |cta: u64| roles::names(laid.roles.get(&cta));
            let roles = roles::shares(&times, laid);
            let mut timeline = Timeline::at_clock(clock, times.start);
            timeline.ctas = (times.ctas.iter())
                .map(|cta| (cta.cta, micros(cta.start), micros(cta.end)))
                .collect();
            timeline.warps = times.ctas.iter().map(|cta| names(cta.cta)).collect();
            timeline.stages = (phases.iter())
                .map(|phase| (phase.stage, micros(phase.from), micros(phase.to)))
                .collect();
            timeline.keep(times.spans);
            launches.push(LaunchProfile {
                kernel: laid.kernel.clone(),
                start: micros(0.0),
                micros: Micros(times.cycles / clock),
                ctas: laid.ctas,
                active_sms: times.active_sms,
                sms,
                rounds: times.rounds,
                idle: (laid.idle).unwrap_or((1.0 - laid.ctas as f64 / places).max(0.0)),
                tensor: times.tensor_cycles / times.cycles.max(1.0),
                stages: whole,
                roles,
                homeless: times.homeless,
                timeline,
            });
        }
        Self {
            contender: labels.contender.clone(),
            shape: labels.shape.to_owned(),
            timing: labels.timing,
            target: labels.target.to_owned(),
            accuracy: labels.accuracy,
            micros: Micros(call.micros),
            clock_mhz: clock,
            stages: all,
            launches,
        }
    }

    /// The share of a stage in the whole.
    pub fn share(&self, stage: Stage) -> f64 {
        let found = self.stages.iter().find(|part| part.stage == stage);
        found.map_or(0.0, |part| part.micros.0 / self.micros.0)
    }
}

/// The contents of `--json`, which `--over` reads again.
pub fn json(profiles: &[&ProfiledCell]) -> String {
    let document = serde_json::json!({ "profiles": profiles });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use ptx_time::{Activity, CtaTimes, Epilogue, LaunchTimes, Span, WarpTimes};

    use super::*;
    use crate::backend::emu::WarpRole;

    pub(super) fn span(warp: usize, from: f64, to: f64, activity: Activity) -> Span {
        Span {
            cta: 0,
            warp,
            from,
            to,
            activity,
            line: 2,
        }
    }

    fn warp(warp: usize, pieces: &[(Activity, f64)]) -> WarpTimes {
        let mut spent = [0.0; Activity::ALL.len()];
        pieces
            .iter()
            .for_each(|&(s, cycles)| spent[s as usize] = cycles);
        WarpTimes {
            cta: 0,
            warp,
            spent,
        }
    }

    /// One CTA of a producer and a consumer; 1000 cycles at 1000 MHz.
    pub(super) fn profile() -> ProfiledCell {
        let launch = LaunchTimes {
            cycles: 1000.0,
            tensor_cycles: 300.0,
            active_sms: 66,
            rounds: 1,
            ctas: vec![CtaTimes {
                cta: 7,
                start: 100.0,
                first_mma: Some(300.0),
                last_mma: Some(900.0),
                end: 1000.0,
            }],
            epilogues: [(500.0, 550.0), (900.0, 1000.0)]
                .map(|(from, to)| Epilogue {
                    cta: 0,
                    warp: 1,
                    from,
                    to,
                })
                .to_vec(),
            warps: vec![
                warp(0, &[(Activity::Issuing, 100.0), (Activity::Phase, 200.0)]),
                warp(
                    1,
                    &[
                        (Activity::Issuing, 100.0),
                        (Activity::Phase, 200.0),
                        (Activity::Wgmma, 600.0),
                    ],
                ),
            ],
            spans: vec![
                span(0, 100.0, 200.0, Activity::Issuing),
                span(0, 200.0, 400.0, Activity::Phase),
                span(1, 100.0, 300.0, Activity::Phase),
                span(1, 300.0, 900.0, Activity::Wgmma),
                span(1, 900.0, 1000.0, Activity::Issuing),
            ],
            ..LaunchTimes::default()
        };
        let call = CallTimes {
            micros: 4.0,
            clock_mhz: 1000.0,
            launches: vec![launch],
        };
        let laid = LaunchLayout {
            kernel: "gemm".to_owned(),
            ctas: 66,
            idle: None,
            roles: [(7, vec![WarpRole::Producer, WarpRole::Consumer])].into(),
        };
        let labels = ProfileLabels {
            contender: &ContenderId::from_text("x"),
            shape: "s",
            timing: Timing::Modelled,
            target: "NVIDIA H200",
            accuracy: "uncalibrated".to_owned(),
            sms: 132,
        };
        ProfiledCell::new(labels, call, &[laid])
    }

    #[test]
    fn stages_are_told_once_and_add_up() {
        let profile = profile();
        let micros = |stage| profile.share(stage) * 4.0;
        let near = |stage, wanted: f64| {
            let found = micros(stage);
            assert!((found - wanted).abs() < 1e-9, "{stage:?}: {found}");
        };
        near(Stage::Launch, 3.0);
        near(Stage::Start, 0.1);
        near(Stage::Fill, 0.2);
        near(Stage::Computing, 0.3);
        near(Stage::Waiting, 0.25);
        near(Stage::Epilogue, 0.15);
        near(Stage::Other, 0.0);
        assert_eq!(profile.launches[0].idle, 0.5);
    }

    #[test]
    fn warps_are_told_by_what_they_do() {
        let profile = profile();
        let [producer, consumer] = &profile.launches[0].roles[..] else {
            panic!("{:?}", profile.launches[0].roles);
        };
        let share = |role: &RoleShare, activity: Activity| role.spent[activity as usize];
        assert_eq!((producer.role, producer.warps), (WarpRole::Producer, 1));
        assert!((share(producer, Activity::Phase) - 200.0 / 900.0).abs() < 1e-9);
        assert!((producer.ended - 600.0 / 900.0).abs() < 1e-9);
        assert!((share(consumer, Activity::Wgmma) - 600.0 / 900.0).abs() < 1e-9);
        assert!(consumer.ended.abs() < 1e-9);
    }

    #[test]
    fn a_second_launch_that_starts_early_is_not_told_twice() {
        let launch = |start: f64, cycles: f64| LaunchTimes {
            start,
            cycles,
            ctas: vec![CtaTimes {
                end: cycles,
                ..CtaTimes::default()
            }],
            ..LaunchTimes::default()
        };
        let laid = LaunchLayout {
            kernel: "k".to_owned(),
            ctas: 1,
            idle: None,
            roles: Default::default(),
        };
        for (start, outside, inside) in [(600.0, 1.0, 1.6), (1500.0, 1.5, 2.0)] {
            let call = CallTimes {
                micros: 1.0 + (start + 1000.0) / 1000.0,
                clock_mhz: 1000.0,
                launches: vec![launch(0.0, 1000.0), launch(start, 1000.0)],
            };
            let labels = ProfileLabels {
                contender: &ContenderId::from_text("x"),
                shape: "s",
                timing: Timing::Modelled,
                target: "t",
                accuracy: String::new(),
                sms: 1,
            };
            let profile = ProfiledCell::new(labels, call, &[laid.clone(), laid.clone()]);
            let all = profile.micros.0;
            let time_of = |stage| profile.share(stage) * all;
            assert!((time_of(Stage::Launch) - outside).abs() < 1e-9);
            assert!((time_of(Stage::Other) - inside).abs() < 1e-9);
        }
    }
}
