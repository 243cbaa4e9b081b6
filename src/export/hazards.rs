//! What `dgx sanitize` found, for programs and for test collectors.

use quick_junit::TestCaseStatus;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::junit::{Failure, case, fault};
use dgx_core::domain::{Group, Hazard, Status};
use dgx_core::examination::{Examined, Inquest, Inquiry};

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
    fn of(cell: &'e Examined, again: &dyn Fn(&Examined) -> String) -> Self {
        let course = &cell.course;
        let odd = |odd: &'e dgx_core::examination::Odd| Odd {
            schedule: odd.schedule,
            what: &odd.what,
            again: again(cell),
        };
        Self {
            contender: cell.contender.as_str(),
            expect: cell.expect,
            shape: &course.shape.name,
            groups: &course.shape.groups,
            sms: course.sms,
            reaches: course.reaches,
            status: cell.status,
            reason: cell.reason.as_deref(),
            hazards: &cell.hazards,
            unwatched_bytes: cell.unwatched.0,
            odd: cell.odd.as_ref().map(odd),
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
    inquest: &Inquest,
    inquiry: &Inquiry,
    again: &dyn Fn(&Examined) -> String,
) -> String {
    let cells = inquest.examined.iter().map(|cell| Cell::of(cell, again));
    let left = inquest.left.iter().map(|(contender, course)| Left {
        contender: contender.as_str(),
        shape: &course.shape.name,
        sms: course.sms,
    });
    let surprises = inquest.surprises().into_iter();
    let export = Export {
        version: 1,
        schedules: &inquiry.schedules,
        strict: inquiry.strict,
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
pub(crate) fn junit(inquest: &Inquest) -> String {
    let surprises = inquest.surprises();
    let harmless = |cell: &Examined| matches!(cell.status, Status::Ok | Status::Unsupported);
    let examined = inquest.examined.iter().map(|cell| {
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
        case(cell.contender.as_str(), &cell.course.shape.name, status)
    });
    let left = inquest.left.iter().map(|(contender, course)| {
        let mut status = TestCaseStatus::skipped();
        status.set_message("interrupted");
        case(contender.as_str(), &course.shape.name, status)
    });
    let unshown = surprises.iter().filter(|(contender, _)| {
        let mut cells = inquest.examined.iter();
        cells.all(|cell| cell.contender != ***contender || harmless(cell))
    });
    let unshown = unshown.map(|(contender, what)| {
        let status = fault(Failure, "declared", what);
        case(contender.as_str(), "as declared", status)
    });
    let cases = examined.chain(left).chain(unshown).collect();
    super::junit::report("dgx sanitize", "dgx sanitize".to_owned(), cases)
}
