//! What `dgx sanitize` found, for programs and for test collectors.

use quick_junit::TestCaseStatus;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::junit::{Failure, case, fault};
use dgx_core::domain::{Group, Hazard, Status};
use dgx_core::sanitize::{Deviation, SanitizeReport, SanitizeSettings, SanitizedCell};

/// What `dgx sanitize --export-json` writes.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "dgx sanitize export")]
struct Export<'e> {
    version: u32,
    /// Seeds of the orders of warps and copies that were tried.
    schedules: &'e [u64],
    /// Whether it was also told what hardware forgives.
    strict: bool,
    cells: Vec<Cell<'e>>,
    /// Cells that were not examined, because somebody asked to stop.
    left: Vec<Left<'e>>,
    /// Contenders that did not do what their variants declare.
    unexpected: Vec<Unexpected<'e>>,
}

/// A contender on a shape.
#[derive(Serialize, JsonSchema)]
struct Cell<'e> {
    contender: &'e str,
    /// What its variant declares.
    expect: Status,
    shape: &'e str,
    groups: &'e [Group],
    /// Multiprocessors of the device.
    sms: u32,
    /// What the shape was chosen to reach; empty for one that was named.
    reaches: &'e str,
    status: Status,
    reason: Option<&'e str>,
    /// Found in any schedule, each once.
    hazards: &'e [Hazard],
    /// Global memory that was not watched, in the schedule with most of it.
    unwatched_bytes: u64,
    /// The first schedule that shows what the first one does not.
    odd: Option<Odd<'e>>,
}

impl<'e> Cell<'e> {
    fn of(cell: &'e SanitizedCell, again: &dyn Fn(&SanitizedCell) -> String) -> Self {
        let case = &cell.case;
        let odd = |odd: &'e Deviation| Odd {
            schedule: odd.schedule,
            what: &odd.what,
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
            odd: cell.deviation.as_ref().map(odd),
        }
    }
}

/// A schedule that shows what the first one does not.
#[derive(Serialize, JsonSchema)]
struct Odd<'e> {
    schedule: u64,
    what: &'e str,
    /// The command that shows it again.
    again: String,
}

#[derive(Serialize, JsonSchema)]
struct Left<'e> {
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
    let left = report.left.iter().map(|(contender, case)| Left {
        contender: contender.as_str(),
        shape: &case.shape.name,
        sms: case.sms,
    });
    let surprises = report.surprises().into_iter();
    let export = Export {
        version: 1,
        schedules: &settings.schedules,
        strict: settings.strict,
        cells: cells.collect(),
        left: left.collect(),
        unexpected: surprises
            .map(|(contender, what)| Unexpected {
                contender: contender.as_str(),
                what,
            })
            .collect(),
    };
    // Texts, numbers and lists have a JSON.
    serde_json::to_string_pretty(&export).unwrap_or_default() + "\n"
}

/// JUnit XML: a test case for each cell, and one for each contender that was
/// to show something and did not. What was not examined is skipped.
pub(crate) fn junit(report: &SanitizeReport) -> String {
    let surprises = report.surprises();
    let harmless = |cell: &SanitizedCell| matches!(cell.status, Status::Ok | Status::Unsupported);
    let examined = report.cells.iter().map(|cell| {
        let status = match surprises.contains_key(&cell.contender) && !harmless(cell) {
            false => TestCaseStatus::success(),
            true => {
                let reason = cell.reason.as_deref().unwrap_or_default();
                let stories: Vec<String> = cell.hazards.iter().map(Hazard::story).collect();
                let mut status = fault(Failure, cell.status.as_str(), reason);
                status.set_description(stories.join("\n\n"));
                status
            }
        };
        case(cell.contender.as_str(), &cell.case.shape.name, status)
    });
    let left = report.left.iter().map(|(contender, left)| {
        let mut status = TestCaseStatus::skipped();
        status.set_message("interrupted");
        case(contender.as_str(), &left.shape.name, status)
    });
    let unshown = surprises.iter().filter(|(contender, _)| {
        let mut cells = report.cells.iter();
        cells.all(|cell| cell.contender != ***contender || harmless(cell))
    });
    let unshown = unshown.map(|(contender, what)| {
        let status = fault(Failure, "declared", what);
        case(contender.as_str(), "as declared", status)
    });
    let cases = examined.chain(left).chain(unshown).collect();
    super::junit::report("dgx sanitize", "dgx sanitize".to_owned(), cases)
}
