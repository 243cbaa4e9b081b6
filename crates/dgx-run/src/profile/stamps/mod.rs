//! Turns the records that warps wrote on a GPU (`variants/include/dgx/stamp.cuh`) into launches,
//! CTAs and spans, in the form of a replay.

mod log;

use std::collections::BTreeMap;

use ptx_time::{Activity, CallTimes, CtaTimes, Epilogue, LaunchTimes, Span, WarpTimes};

use crate::backend::emu::{LaunchLayout, WarpRole};
use crate::plan::Stamping;
use dgx_core::domain::Micros;
use log::{StampKind, WarpLog};

/// The part of a call's stamps that could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingStamps {
    /// Warps without records, and warps whose records may be incomplete.
    pub silent: u64,
    pub full: u64,
    pub all: u64,
}

/// One launch: the logs of the warps of each CTA.
type Logs = Vec<Vec<Option<WarpLog>>>;

/// A call's stamps in the form of a replay; `whole` is the call's time by the events around it, and
/// `known` the emulator's description of its launches.
pub fn decode(
    stamps: &[u8],
    stamping: &Stamping,
    whole: Micros,
    sms: u64,
    known: &[LaunchLayout],
) -> Result<(CallTimes, Vec<LaunchLayout>, MissingStamps), String> {
    let launches = read(stamps, stamping);
    let all = || launches.iter().flatten().flatten();
    let logs = || all().flatten();
    let lost = MissingStamps {
        silent: all().filter(|log| log.is_none()).count() as u64,
        full: logs().filter(|log| log.full).count() as u64,
        all: all().count() as u64,
    };
    let base = logs().map(|log| log.nanos.0).min();
    let base = base.ok_or("no warp has written a stamp")?;
    let cycles: u64 = logs().map(|log| log.cycles.1 - log.cycles.0).sum();
    let nanos: u64 = logs().map(|log| log.nanos.1 - log.nanos.0).sum();
    let clock_mhz = cycles as f64 * 1e3 / nanos.max(1) as f64;
    let mut times = Vec::new();
    let mut laid = Vec::new();
    for (index, logs) in launches.iter().enumerate() {
        let geometry = &stamping.call.launches[index];
        let roles = known.get(index).and_then(|laid| laid.roles.values().next());
        let times_of_launch = launch(logs, base, clock_mhz);
        let busy: u64 = ctas_by_sm(logs).into_values().map(covered).sum();
        let all = times_of_launch.cycles * sms.max(1) as f64;
        laid.push(LaunchLayout {
            idle: Some((1.0 - busy as f64 / all.max(1.0)).max(0.0)),
            kernel: geometry.kernel.clone(),
            ctas: logs.len() as u64,
            roles: roles_of(logs, roles),
        });
        times.push(times_of_launch);
    }
    let call = CallTimes {
        micros: whole.0,
        clock_mhz,
        launches: times,
    };
    Ok((call, laid, lost))
}

fn read(stamps: &[u8], stamping: &Stamping) -> Vec<Logs> {
    let rows: Vec<&[u8]> = stamps.chunks_exact(stamping.row_bytes() as usize).collect();
    let launches = stamping.call.launches.iter().enumerate();
    launches
        .map(|(index, geometry)| {
            let warps = geometry.threads_per_block().div_ceil(32) as usize;
            let first = stamping.first_rows[index] as usize;
            let end = (stamping.first_rows[index + 1] as usize).min(rows.len());
            let rows = rows.get(first..end).unwrap_or_default();
            let logs = rows.chunks(warps.max(1));
            logs.map(|cta| cta.iter().map(|row| WarpLog::read(row)).collect())
                .collect()
        })
        .collect()
}

/// The emulator's role for warps of this number; else the one that the stamps show.
fn roles_of(logs: &Logs, known: Option<&Vec<WarpRole>>) -> BTreeMap<u64, Vec<WarpRole>> {
    let role = |warp: usize, log: &Option<WarpLog>| match known.and_then(|roles| roles.get(warp)) {
        Some(role) => *role,
        None if log.as_ref().is_some_and(WarpLog::multiplies) => WarpRole::Consumer,
        None => WarpRole::Other,
    };
    let cta = |logs: &Vec<Option<WarpLog>>| {
        let warps = logs.iter().enumerate();
        warps.map(|(warp, log)| role(warp, log)).collect()
    };
    (0..).zip(logs.iter().map(cta)).collect()
}

/// A launch on the SM that ends last, of those whose warps issue products: the odd CTA of a pair
/// only provides its tensor core.
fn launch(logs: &Logs, base: u64, clock_mhz: f64) -> LaunchTimes {
    let all = || logs.iter().flatten().flatten();
    let issues = |warps: &&Vec<Option<WarpLog>>| warps.iter().flatten().any(WarpLog::multiplies);
    let issuing = logs.iter().filter(issues).flatten().flatten();
    let (Some(begin), Some(last)) = (
        all().map(|log| log.nanos.0).min(),
        issuing
            .max_by_key(|log| log.nanos.1)
            .or_else(|| all().max_by_key(|log| log.nanos.1)),
    ) else {
        return LaunchTimes::default();
    };
    let cycles_of = |nanos: u64| nanos as f64 * clock_mhz / 1e3;
    let sm = last.sm;
    let here = || all().filter(|log| log.sm == sm);
    let zero = here().map(|log| log.cycles.0).min().unwrap_or(0);
    // The card's clock advances in steps, and shows the last one: the latest reading of the SM's
    // clock is the best.
    let shift = |nanos: u64, cycles: u64| cycles_of(nanos - begin) - (cycles - zero) as f64;
    let shifts = here().flat_map(|log| {
        let (nanos, cycles) = (log.nanos, log.cycles);
        [shift(nanos.0, cycles.0), shift(nanos.1, cycles.1)]
    });
    let shift = shifts.fold(0.0, f64::max);
    let at = |cycles: u64| (cycles - zero) as f64 + shift;
    let end = here().map(|log| at(log.cycles.1)).fold(0.0, f64::max);
    let mut times = LaunchTimes {
        start: cycles_of(begin - base),
        cycles: end,
        ..LaunchTimes::default()
    };
    let mut placed: Vec<(u64, &Vec<Option<WarpLog>>)> = (0..).zip(logs).collect();
    placed.retain(|(_, warps)| warps.iter().flatten().any(|log| log.sm == sm));
    placed.sort_by_key(|(_, warps)| warps.iter().flatten().map(|log| log.cycles.0).min());
    let mut products = Vec::new();
    for (cta, (number, warps)) in placed.iter().enumerate() {
        let logs = || warps.iter().flatten();
        let under_way = log::products_of(&logs().collect::<Vec<_>>());
        let marks = || under_way.iter();
        products.extend(marks());
        times.ctas.push(CtaTimes {
            cta: *number,
            start: logs().map(|l| at(l.cycles.0)).fold(f64::MAX, f64::min),
            first_mma: marks().map(|p| p.0).min().map(at),
            last_mma: marks().map(|p| p.1).max().map(at),
            end: logs().map(|l| at(l.cycles.1)).fold(0.0, f64::max),
        });
        for (warp, log) in warps.iter().enumerate() {
            if let Some(log) = log {
                add_warp(&mut times, log, (cta, warp), &under_way, at);
            }
        }
    }
    times.tensor_cycles = covered(products) as f64;
    let mut sms: Vec<u32> = all().map(|log| log.sm).collect();
    sms.sort_unstable();
    sms.dedup();
    times.active_sms = sms.len() as u64;
    times.rounds = rounds(logs);
    times
}

/// Adds the times of a warp in a CTA whose products were `under_way`.
fn add_warp(
    times: &mut LaunchTimes,
    log: &WarpLog,
    (cta, warp): (usize, usize),
    under_way: &[(u64, u64)],
    at: impl Fn(u64) -> f64 + Copy,
) {
    let of_warp = spans(log, (cta, warp), at);
    let mut spent = [0.0; Activity::ALL.len()];
    of_warp
        .iter()
        .for_each(|span| spent[span.activity as usize] += span.to - span.from);
    times.warps.push(WarpTimes { cta, warp, spent });
    times.spans.extend(of_warp);
    let hidden = match log.multiplies() {
        true => &[][..],
        false => under_way,
    };
    for (from, to) in uncovered(epilogues(log), hidden) {
        let (from, to) = (at(from), at(to));
        times.epilogues.push(Epilogue {
            cta,
            warp,
            from,
            to,
        });
    }
}

/// When each SM had CTAs, by its clock.
fn ctas_by_sm(logs: &Logs) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut found: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for warps in logs {
        let logs = || warps.iter().flatten();
        if let (Some(first), Some(begin), Some(end)) = (
            logs().next(),
            logs().map(|l| l.cycles.0).min(),
            logs().map(|l| l.cycles.1).max(),
        ) {
            found.entry(first.sm).or_default().push((begin, end));
        }
    }
    found
}

/// CTAs, one after another, of the SM that has most.
fn rounds(logs: &Logs) -> u64 {
    let chain = |mut ctas: Vec<(u64, u64)>| {
        ctas.sort_by_key(|cta| cta.1);
        let mut free = 0;
        let mut count = 0;
        for (begin, end) in ctas {
            if count == 0 || begin >= free {
                (free, count) = (end, count + 1);
            }
        }
        count
    };
    let counts = ctas_by_sm(logs).into_values().map(chain);
    counts.max().unwrap_or(1)
}

fn spans(log: &WarpLog, (cta, warp): (usize, usize), at: impl Fn(u64) -> f64) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut until = log.cycles.0;
    let mut tell = |from: u64, to: u64, activity| {
        if to > from {
            let (from, to) = (at(from), at(to));
            spans.push(Span {
                cta,
                warp,
                from,
                to,
                activity,
                line: 0,
            });
        }
    };
    for record in &log.records {
        if let Some(activity) = record.what.activity() {
            tell(until, record.from.max(until), Activity::Issuing);
            tell(record.from.max(until), record.to, activity);
            until = until.max(record.to);
        }
    }
    tell(until, log.cycles.1, Activity::Issuing);
    spans
}

/// From the last product of a tile to the first of the next; for a warp that does not multiply
/// itself, until it waits for products again.
fn epilogues(log: &WarpLog) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut since = None;
    for record in &log.records {
        match record.what {
            StampKind::Epilogue => since = since.or(Some(record.from)),
            StampKind::Multiply | StampKind::Wait(Activity::Wgmma) => {
                let ended = since.take().map(|from| (from, record.from));
                found.extend(ended);
            }
            _ => {}
        }
    }
    found.extend(since.map(|from| (from, log.cycles.1)));
    found
}

/// The parts of `pieces` that the others do not cover.
fn uncovered(pieces: Vec<(u64, u64)>, others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    others.iter().fold(pieces, |left, &(from, to)| {
        let parts = |(begin, end): (u64, u64)| [(begin, end.min(from)), (begin.max(to), end)];
        let parts = left.into_iter().flat_map(parts);
        parts.filter(|(begin, end)| begin < end).collect()
    })
}

/// Cycles covered by at least one of them.
fn covered(mut pieces: Vec<(u64, u64)>) -> u64 {
    pieces.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for (from, to) in pieces {
        sum += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{HEAD_BYTES, LaunchGeometry, OperatorCall};

    fn stamping() -> Stamping {
        let call = OperatorCall {
            group_order: vec![0],
            tile_begin: vec![0],
            tile_count: 1,
            deal: None,
            scratch: Vec::new(),
            maps: Vec::new(),
            launches: vec![LaunchGeometry {
                kernel: "gemm".to_owned(),
                grid: [2, 1, 1],
                block: [64, 1, 1],
                cluster: [1; 3],
                smem: 0,
                pdl: false,
                ..LaunchGeometry::default()
            }],
        };
        Stamping::of(&call).unwrap()
    }

    fn row(stamping: &Stamping, sm: u32, head: [u64; 4], records: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut words = head.to_vec();
        let left = stamping.records - records.len() as u64;
        words.push(u64::from(sm) | left << 32);
        words.resize(HEAD_BYTES as usize / 8, 0);
        let record = |&(what, from, to): &(u32, u32, u32)| {
            let rest = to.wrapping_sub(from) << 4 | what;
            u64::from(from) | u64::from(rest) << 32
        };
        words.extend(records.iter().map(record));
        words.resize(stamping.row_bytes() as usize / 8, 0);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Two CTAs on two SMs whose clocks differ: a producer and a consumer each.
    fn stamps() -> Vec<u8> {
        let stamping = stamping();
        let base = u64::from(u32::MAX) - 50;
        let at = |cycle: u64| (base + cycle) as u32;
        let head =
            |ns: u64, cycle: u64, end_ns: u64, end: u64| [ns, base + cycle, end_ns, base + end];
        [
            row(&stamping, 3, head(1000, 0, 1500, 500), &[]),
            row(&stamping, 3, head(1000, 0, 1500, 500), &[]),
            row(
                &stamping,
                4,
                head(1100, 0, 2100, 1000),
                &[(1, at(100), at(400))],
            ),
            row(
                &stamping,
                4,
                head(1100, 0, 2100, 1000),
                &[
                    (1, at(20), at(120)),
                    (6, at(130), at(130)),
                    (3, at(140), at(300)),
                    (6, at(400), at(400)),
                    (3, at(500), at(600)),
                    (7, at(600), at(600)),
                ],
            ),
        ]
        .concat()
    }

    #[test]
    fn stamps_are_told_like_a_replay() {
        let (call, laid, lost) = decode(&stamps(), &stamping(), Micros(4.0), 4, &[]).unwrap();
        assert_eq!((call.micros, call.clock_mhz), (4.0, 1000.0));
        assert_eq!((lost.silent, lost.full, lost.all), (0, 0, 4));
        let times = &call.launches[0];
        // The second CTA's SM ends last, and began 100 ns after the launch.
        assert_eq!((times.start, times.cycles), (0.0, 1100.0));
        assert_eq!((times.active_sms, times.rounds), (2, 1));
        let cta = times.ctas[0];
        assert_eq!((cta.cta, cta.start, cta.end), (1, 100.0, 1100.0));
        assert_eq!((cta.first_mma, cta.last_mma), (Some(230.0), Some(700.0)));
        assert_eq!(times.tensor_cycles, 170.0 + 200.0);
        let epilogue = times.epilogues[0];
        assert_eq!(
            (epilogue.warp, epilogue.from, epilogue.to),
            (1, 700.0, 1100.0)
        );
        for warp in 0..2 {
            let spans: Vec<&Span> = times.spans.iter().filter(|s| s.warp == warp).collect();
            let sum: f64 = spans.iter().map(|s| s.to - s.from).sum();
            assert_eq!(sum, 1000.0, "{spans:?}");
        }
        let spent = |warp: usize, activity: Activity| times.warps[warp].spent[activity as usize];
        assert_eq!(
            (spent(0, Activity::Phase), spent(1, Activity::Phase)),
            (300.0, 100.0)
        );
        assert_eq!(spent(1, Activity::Wgmma), 160.0 + 100.0);
        assert_eq!(laid[0].roles[&1], [WarpRole::Other, WarpRole::Consumer]);
        // Of four SMs one was busy for 500 cycles of 1100, one for 1000.
        let idle = laid[0].idle.unwrap();
        assert!((idle - (1.0 - 1500.0 / 4400.0)).abs() < 1e-9, "{idle}");
    }

    #[test]
    fn an_epilogue_under_products_is_hidden() {
        let left = uncovered(vec![(10, 50), (60, 90)], &[(20, 30), (45, 70)]);
        assert_eq!(left, [(10, 20), (30, 45), (70, 90)]);
        assert_eq!(uncovered(vec![(10, 50)], &[]), [(10, 50)]);
        assert!(uncovered(vec![(10, 50)], &[(0, 60)]).is_empty());
    }

    #[test]
    fn warps_that_say_nothing_or_too_much_are_counted() {
        let stamping = stamping();
        let mut bytes = vec![0; 4 * stamping.row_bytes() as usize];
        assert!(decode(&bytes, &stamping, Micros(1.0), 1, &[]).is_err());
        let full = vec![(2, 10, 20); stamping.records as usize];
        let row = row(&stamping, 0, [5, 0, 1000, 995], &full);
        bytes[..row.len()].copy_from_slice(&row);
        let (call, _, lost) = decode(&bytes, &stamping, Micros(1.0), 1, &[]).unwrap();
        assert_eq!((lost.silent, lost.full), (3, 1));
        assert!(call.launches[0].spans.iter().all(|s| s.to >= s.from));
        // Invalid records are ignored.
        bytes[HEAD_BYTES as usize + 4] = 15;
        assert!(decode(&bytes, &stamping, Micros(1.0), 1, &[]).is_err());
    }
}
