//! The findings of `dgx sanitize`, for programs and for test collectors.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::junit::{Case, Fault, Outcome};
use super::pretty;
use dgx_core::domain::{ContenderId, Group, Hazard, Status};
use dgx_core::sanitize::{Deviation, SanitizeReport, SanitizeSettings, SanitizedCell};

/// The JSON that `dgx sanitize --export-json` writes.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "dgx sanitize export")]
struct Export<'e> {
    version: u32,
    /// Seeds of the orders of warps and copies that were tried.
    schedules: &'e [u64],
    /// Whether accesses that hardware tolerates were reported too.
    strict: bool,
    cells: Vec<Cell<'e>>,
    /// Cells that were not examined because the user stopped the command.
    left: Vec<LeftOutCell<'e>>,
    /// Contenders whose status differs from the one their variants declare.
    unexpected: Vec<Unexpected<'e>>,
}

/// A contender on a shape.
#[derive(Serialize, JsonSchema)]
struct Cell<'e> {
    contender: &'e str,
    /// The status its variant declares.
    expect: Status,
    shape: &'e str,
    groups: &'e [Group],
    /// Multiprocessors of the device.
    sms: u32,
    /// The path the shape was chosen to reach; empty for a shape named by the user.
    reaches: &'e str,
    status: Status,
    reason: Option<&'e str>,
    /// Found in any schedule, each once.
    hazards: &'e [Hazard],
    /// Global memory that was not watched, in the schedule with the most of it.
    unwatched_bytes: u64,
    /// The first schedule whose findings differ from the first one's.
    #[serde(rename = "odd")]
    deviation: Option<DeviationEntry<'e>>,
}

impl<'e> Cell<'e> {
    fn of(cell: &'e SanitizedCell, again: &dyn Fn(&SanitizedCell) -> String) -> Self {
        let case = &cell.case;
        let deviation = |deviation: &'e Deviation| DeviationEntry {
            schedule: deviation.schedule,
            what: &deviation.what,
            again: again(cell),
        };
        Self {
            contender: cell.contender.as_str(),
            expect: cell.expect,
            shape: &case.shape.name,
            groups: &case.shape.groups,
            sms: case.sms,
            reaches: case.reaches,
            status: cell.status,
            reason: cell.reason.as_deref(),
            hazards: &cell.hazards,
            unwatched_bytes: cell.unwatched.0,
            deviation: cell.deviation.as_ref().map(deviation),
        }
    }
}

/// A schedule whose findings differ from the first one's.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Odd")]
struct DeviationEntry<'e> {
    schedule: u64,
    what: &'e str,
    /// The command that repeats it.
    again: String,
}

#[derive(Serialize, JsonSchema)]
struct LeftOutCell<'e> {
    contender: &'e str,
    shape: &'e str,
    sms: u32,
}

#[derive(Serialize, JsonSchema)]
struct Unexpected<'e> {
    contender: &'e str,
    what: String,
}

pub(crate) fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<Export<'_>>()
}

/// Every cell with its findings.
pub(crate) fn json(
    report: &SanitizeReport,
    settings: &SanitizeSettings,
    again: &dyn Fn(&SanitizedCell) -> String,
) -> String {
    let cells = report.cells.iter().map(|cell| Cell::of(cell, again));
    let left = report.left.iter().map(|(contender, case)| LeftOutCell {
        contender: contender.as_str(),
        shape: &case.shape.name,
        sms: case.sms,
    });
    let unexpected = report.unexpected();
    pretty(&Export {
        version: 1,
        schedules: &settings.schedules,
        strict: settings.strict,
        cells: cells.collect(),
        left: left.collect(),
        unexpected: unexpected
            .into_iter()
            .map(|(contender, what)| Unexpected {
                contender: contender.as_str(),
                what,
            })
            .collect(),
    })
}

/// JUnit XML: a test case for each cell, and one for each contender that lacks its declared status.
/// Cells that were not examined are skipped.
pub(crate) fn junit(report: &SanitizeReport) -> String {
    let unexpected = report.unexpected();
    let harmless = |cell: &SanitizedCell| matches!(cell.status, Status::Ok | Status::Unsupported);
    let case = |class: &ContenderId, name: &str, outcome| Case {
        class: class.to_string(),
        name: name.to_owned(),
        outcome,
    };
    let examined = report.cells.iter().map(|cell| {
        let stories = || {
            cell.hazards
                .iter()
                .map(Hazard::explanation)
                .collect::<Vec<_>>()
        };
        let outcome = match unexpected.contains_key(&cell.contender) && !harmless(cell) {
            false => Outcome::Passed,
            true => Outcome::Failed(Fault {
                kind: cell.status.to_string(),
                message: cell.reason.clone().unwrap_or_default(),
                text: stories().join("\n\n"),
            }),
        };
        case(&cell.contender, &cell.case.shape.name, outcome)
    });
    let left = report.left.iter().map(|(contender, left)| {
        case(contender, &left.shape.name, Outcome::Skipped("interrupted"))
    });
    let unshown = unexpected.iter().filter(|(contender, _)| {
        let mut cells = report.cells.iter();
        cells.all(|cell| cell.contender != ***contender || harmless(cell))
    });
    let unshown = unshown.map(|(contender, what)| {
        let outcome = Outcome::Failed(Fault {
            kind: "declared".to_owned(),
            message: what.to_string(),
            ..Fault::default()
        });
        case(contender, "as declared", outcome)
    });
    let cases: Vec<Case> = examined.chain(left).chain(unshown).collect();
    super::junit::report("dgx sanitize", "dgx sanitize", &cases)
}
