//! Whether a modelled time can be trusted: what was traced must stand for what was done, and the
//! machine code must have been recognised in it.

use std::ops::RangeInclusive;

use ptx_emu::trace::{Deed, Event, Trace};
use ptx_emu::{Counters, Report};

use crate::call::LaunchTimes;

/// Times as much as a time tells of may have been done.
const UNTOLD: f64 = 2.0;

/// Times as many instructions as any sampled cluster another may execute. Loops that wait differ
/// in length from CTA to CTA.
const STRAGGLER: f64 = 4.0;

/// Instructions of the cubin that one of the PTX may stand for, at least and at most, over a whole
/// kernel. A loop that the compiler unrolled or turned round can be lost, or told for every copy.
const EXPANSION: RangeInclusive<f64> = 0.25..=8.0;

impl LaunchTimes {
    /// Whether the kernel's machine code was recognised in what it did; if not, a sentence.
    pub fn recognised(&self, kernel: &str) -> Result<(), String> {
        match EXPANSION.contains(&self.expansion) {
            true => Ok(()),
            false => Err(format!(
                "{kernel} cannot be modelled: {:.2} instructions of its machine code were found for \
                 each of its PTX, so a loop was lost or told too often",
                self.expansion
            )),
        }
    }
}

/// Whether a trace of some CTAs stands for a launch; if not, a sentence. A kernel can tell which
/// CTAs are watched, and leave the work to the others; or work in what looks like a loop that waits,
/// of which one turn is told.
pub fn telling(kernel: &str, report: &Report, trace: &Trace) -> Result<(), String> {
    let traced = trace.ctas.len() as u64;
    let ran = report.counters.ctas;
    if traced == 0 && ran > 0 {
        return Err(format!("{kernel} does more than can be written down of it"));
    }
    let ptx_emu::Most { of_all, of_traced } = report.most;
    let most = [
        (
            "or its cluster, executes",
            "warp instructions",
            of_all.cluster,
            of_traced.cluster,
        ),
        (
            "in one warp, executes",
            "instructions or sleeps as many ns",
            of_all.warp,
            of_traced.warp,
        ),
    ];
    for (who, what, all, traced) in most {
        if all as f64 > STRAGGLER * traced as f64 {
            return Err(format!(
                "a CTA of {kernel}, {who} {all} {what}, and those that are sampled {traced} at \
                 most: a call takes as long as its longest CTA"
            ));
        }
    }
    let all = if ran > traced { ran } else { 0 };
    for (what, done, of) in measures(&report.counters) {
        let told = told(trace, all, of);
        if done as f64 > UNTOLD * told as f64 {
            return Err(format!(
                "of the {done} {what} of {kernel}, the CTAs that are watched, and of loops that \
                 wait one turn, tell of {told} only"
            ));
        }
    }
    Ok(())
}

/// What is counted of all CTAs, and how much of it an event is.
type Measure = (&'static str, u64, fn(&Event) -> u64);

fn measures(counters: &Counters) -> [Measure; 3] {
    [
        (
            "warp instructions",
            counters.total_instructions(),
            |event| match *event {
                Event::Run { first, end } => u64::from(end - first),
                // Told beside the atomic that it is a part of.
                Event::Did {
                    deed: Deed::Update { .. },
                    ..
                } => 0,
                Event::Did { .. } => 1,
            },
        ),
        (
            "bytes that threads read or write in global memory",
            counters.global_read + counters.global_written,
            |event| match event {
                Event::Did {
                    deed: Deed::Global { at, .. },
                    ..
                } => u64::from(at.bytes),
                _ => 0,
            },
        ),
        (
            "bytes that are copied",
            counters.async_read + counters.async_written,
            |event| match event {
                Event::Did {
                    deed: Deed::LaneCopy { at } | Deed::Bulk { at: Some(at), .. },
                    ..
                } => u64::from(at.bytes),
                _ => 0,
            },
        ),
    ]
}

/// How much of it a launch of so many CTAs does, each taken to do as much as the nearest that was
/// watched; of none, those alone.
fn told(trace: &Trace, ctas: u64, of: fn(&Event) -> u64) -> u64 {
    let mut from = 0;
    let each = trace.ctas.iter().enumerate().map(|(index, cta)| {
        let behind = trace.ctas.get(index + 1);
        let to = behind.map_or(ctas, |next| (cta.cta + next.cta).div_ceil(2));
        let times = if ctas == 0 { 1 } else { to - from };
        from = to;
        times * cta.warps.iter().flatten().map(of).sum::<u64>()
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use ptx_emu::trace::CtaTrace;

    use super::*;
    use crate::{CallTimes, Cause};

    fn report() -> Report {
        Report {
            counters: Counters::default(),
            most: ptx_emu::Most::default(),
            seed: 0,
            ctas_per_sm: 1,
            early_read: None,
            printed: Vec::new(),
        }
    }

    #[test]
    fn what_binds_is_what_most_of_the_way_goes_through() {
        let bound = |cycles: f64, cause: Cause| {
            let mut launch = LaunchTimes {
                cycles,
                ..LaunchTimes::default()
            };
            launch.way[cause as usize] = cycles;
            let call = CallTimes {
                micros: cycles / 1000.0 + 4.0,
                clock_mhz: 1000.0,
                launches: vec![launch],
            };
            call.bound().word()
        };
        assert_eq!(bound(100.0, Cause::Tensor), "launch");
        assert_eq!(bound(1e5, Cause::Tensor), "tensor cores");
        assert_eq!(bound(1e5, Cause::Memory), "memory bandwidth");
    }

    #[test]
    fn what_is_watched_stands_for_what_was_done() {
        let cta = |cta, instructions| CtaTrace {
            cta,
            warps: vec![vec![Event::Run {
                first: 0,
                end: instructions,
            }]],
            ..CtaTrace::default()
        };
        let trace = Trace {
            ctas: vec![cta(0, 10), cta(4, 100), cta(9, 1000)],
            ..Trace::default()
        };
        let [(_, _, of), ..] = measures(&Counters::default());
        assert_eq!(told(&trace, 0, of), 1110);
        assert_eq!(told(&trace, 10, of), 2 * 10 + 5 * 100 + 3 * 1000);
        let launched = |instructions, ctas| {
            let mut report = report();
            report.counters.warp_instructions[0] = instructions;
            report.counters.ctas = ctas;
            telling("k", &report, &trace)
        };
        assert_eq!(launched(7000, 10), Ok(()));
        assert_eq!(launched(2200, 3), Ok(()));
        assert!(launched(2300, 3).is_err(), "a loop that seemed to wait");
        let hidden = launched(8000, 10).unwrap_err();
        assert!(hidden.contains("tell of 3520 only"), "{hidden}");
        let mut one = report();
        one.most.of_all.cluster = 3900;
        one.most.of_traced.cluster = 1000;
        assert_eq!(telling("k", &one, &trace), Ok(()));
        one.most.of_all.cluster = 4100;
        let why = telling("k", &one, &trace).unwrap_err();
        assert!(why.contains("as long as its longest CTA"), "{why}");
        one.most.of_all.cluster = 1000;
        one.most.of_all.warp = 4100;
        one.most.of_traced.warp = 1000;
        let why = telling("k", &one, &trace).unwrap_err();
        assert!(why.contains("in one warp, executes 4100"), "{why}");
        let mut endless = report();
        endless.counters.ctas = 3;
        let why = telling("k", &endless, &Trace::default()).unwrap_err();
        assert!(why.contains("more than can be written down"), "{why}");
    }
}
