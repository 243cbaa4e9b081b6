//! Findings made up for tests.

use super::*;
use crate::domain::Access;

pub fn hazard(line: u32) -> Hazard {
    let access = |line: u32| Access {
        deed: "a thread reads".to_owned(),
        lines: vec![format!("x.cu:{line}")],
        ptx_line: line,
        kernel: "k".to_owned(),
        cta: Some([0; 3]),
        warp: 0,
        lanes: 1,
    };
    Hazard {
        kind: "race".to_owned(),
        at: "shared tile".to_owned(),
        here: access(line),
        there: Some(access(3)),
        missing: "a barrier".to_owned(),
        remedy: "one".to_owned(),
        times: 1,
    }
}

pub fn cell(name: &str, expect: Status, status: Status, hazards: Vec<Hazard>) -> SanitizedCell {
    SanitizedCell {
        contender: ContenderId::from_text(name),
        expect,
        case: SanitizeCase {
            shape: Shape {
                name: "s".to_owned(),
                groups: Vec::new(),
            },
            sms: 8,
            reaches: "",
        },
        status,
        reason: None,
        hazards,
        deviation: None,
        unwatched: Bytes(0),
    }
}

/// One cell is done, the other is not.
pub fn half_done() -> (SanitizeReport, SanitizeSettings) {
    let mut racy = cell("a", Status::Ok, Status::Racy, vec![hazard(1)]);
    racy.deviation = Some(Deviation {
        schedule: 1,
        what: "wrong".to_owned(),
    });
    let left = vec![(racy.contender.clone(), racy.case.clone())];
    let cells = vec![racy];
    let settings = SanitizeSettings {
        schedules: vec![0, 1],
        strict: false,
        time_limit: Duration::from_secs(1),
    };
    (SanitizeReport { cells, left }, settings)
}
