//! Reads the records of one warp.

use ptx_time::Activity;

use crate::plan::{HEAD_BYTES, RECORD_BYTES};

/// The kind of a record. Keep in step with stamp.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StampKind {
    /// A wait that has ended.
    Wait(Activity),
    /// A wait for some products, while others are in flight.
    SomeProducts,
    /// Products begin.
    Multiply,
    /// The products of a tile have ended.
    Epilogue,
}

impl StampKind {
    fn read(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Wait(Activity::Phase),
            2 => Self::Wait(Activity::Barrier),
            3 => Self::Wait(Activity::Wgmma),
            4 => Self::Wait(Activity::Copies),
            5 => Self::Wait(Activity::Launch),
            6 => Self::Multiply,
            7 => Self::Epilogue,
            8 => Self::SomeProducts,
            _ => return None,
        })
    }

    pub(super) fn activity(self) -> Option<Activity> {
        match self {
            Self::Wait(activity) => Some(activity),
            Self::SomeProducts => Some(Activity::Wgmma),
            Self::Multiply | Self::Epilogue => None,
        }
    }
}

/// From and to are cycles of its SM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    pub what: StampKind,
    pub from: u64,
    pub to: u64,
}

/// The records of one warp.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WarpLog {
    /// By the card's clock, and by its SM's.
    pub nanos: (u64, u64),
    pub cycles: (u64, u64),
    pub sm: u32,
    /// The log is full, so records may be missing.
    pub full: bool,
    pub records: Vec<Record>,
}

impl WarpLog {
    pub(super) fn read(row: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = row.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let (nanos, cycles) = ((word(0)?, word(16)?), (word(8)?, word(24)?));
        // Nothing is read from a warp that has not ended.
        if nanos.1 < nanos.0.max(1) || cycles.1 < cycles.0 {
            return None;
        }
        let place = word(32)?;
        let left = (place >> 32) as usize;
        let room = (row.len() - HEAD_BYTES as usize) / RECORD_BYTES as usize;
        let written = row[HEAD_BYTES as usize..].chunks_exact(RECORD_BYTES as usize);
        // Records have the lower half of the clock: each begins after the one before.
        let mut last = cycles.0;
        let mut records = Vec::new();
        for bytes in written.take(room.saturating_sub(left)) {
            let word = u64::from_le_bytes(bytes.try_into().ok()?);
            let (low, rest) = (word as u32, (word >> 32) as u32);
            let from = last + u64::from(low.wrapping_sub(last as u32));
            let to = from + u64::from(rest >> 4);
            last = from;
            if to <= cycles.1 {
                let what = StampKind::read(rest & 15)?;
                records.push(Record { what, from, to });
            }
        }
        Some(Self {
            nanos,
            cycles,
            sm: place as u32,
            full: left == 0,
            records,
        })
    }

    pub(super) fn multiplies(&self) -> bool {
        self.records.iter().any(|r| r.what == StampKind::Multiply)
    }

    /// Whether it waits for products.
    fn awaits(&self) -> bool {
        let mut records = self.records.iter();
        records.any(|r| r.what == StampKind::Wait(Activity::Wgmma))
    }

    /// When its products were in flight.
    fn products(&self) -> Vec<(u64, u64)> {
        let waits = |r: &&Record| r.what == StampKind::Wait(Activity::Wgmma);
        let asynchronous = self.awaits();
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut since = None;
        for record in &self.records {
            if let Some(from) = since
                && (!asynchronous || waits(&record))
            {
                let to = if asynchronous { record.to } else { record.from };
                found.push((from, to));
                since = None;
            }
            if record.what == StampKind::Multiply {
                since.get_or_insert(record.from);
            }
        }
        found
    }
}

/// When products of a CTA were in flight. If one warp issues them and others wait for them, they
/// are in flight until those waits end.
pub(super) fn products_of(warps: &[&WarpLog]) -> Vec<(u64, u64)> {
    let apart = |log: &&&WarpLog| log.awaits() && !log.multiplies();
    let mut ends: Vec<u64> = warps
        .iter()
        .filter(apart)
        .flat_map(|log| &log.records)
        .filter(|r| r.what == StampKind::Wait(Activity::Wgmma))
        .map(|r| r.to)
        .collect();
    ends.sort_unstable();
    let mut found = Vec::new();
    for log in warps.iter().filter(|log| log.multiplies()) {
        if log.awaits() || ends.is_empty() {
            found.extend(log.products());
            continue;
        }
        let mut until = 0;
        for record in log.records.iter().filter(|r| r.what == StampKind::Multiply) {
            if record.from < until {
                continue;
            }
            // No warp may wait for the last ones.
            let end = ends.iter().find(|end| **end > record.from);
            until = end.copied().unwrap_or(log.cycles.1);
            found.push((record.from, until));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(records: &[(StampKind, u64, u64)]) -> WarpLog {
        WarpLog {
            nanos: (0, 1000),
            cycles: (0, 1000),
            sm: 0,
            full: false,
            records: records
                .iter()
                .map(|&(what, from, to)| Record { what, from, to })
                .collect(),
        }
    }

    #[test]
    fn products_that_others_wait_for_end_with_their_wait() {
        let issues = log(&[
            (StampKind::Wait(Activity::Phase), 0, 10),
            (StampKind::Multiply, 10, 10),
            (StampKind::Multiply, 40, 40),
            (StampKind::Multiply, 70, 70),
            (StampKind::Multiply, 120, 120),
        ]);
        let waits = log(&[
            (StampKind::Wait(Activity::Wgmma), 5, 60),
            (StampKind::Epilogue, 60, 60),
            (StampKind::Wait(Activity::Wgmma), 90, 150),
        ]);
        let found = products_of(&[&waits, &issues]);
        assert_eq!(found, [(10, 60), (70, 150)]);
        let alone = products_of(&[&issues]);
        assert_eq!(alone, [(10, 40), (40, 70), (70, 120)]);
    }

    #[test]
    fn products_that_follow_on_are_under_way_until_the_last_has_ended() {
        let piped = log(&[
            (StampKind::Multiply, 10, 10),
            (StampKind::SomeProducts, 20, 30),
            (StampKind::Multiply, 40, 40),
            (StampKind::Wait(Activity::Wgmma), 50, 90),
        ]);
        assert_eq!(piped.products(), [(10, 90)]);
        // An mma has ended when the warp continues.
        let plain = log(&[
            (StampKind::Multiply, 10, 10),
            (StampKind::Wait(Activity::Phase), 60, 80),
            (StampKind::Multiply, 80, 80),
            (StampKind::Epilogue, 95, 95),
        ]);
        assert_eq!(plain.products(), [(10, 60), (80, 95)]);
    }
}
