//! What `dgx sanitize` found, for programs and for test collectors.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use dgx_core::domain::{Group, Hazard, Status};
use dgx_core::examination::Course;

use dgx_core::examination::Inquiry;

use dgx_core::examination::Inquest;

use dgx_core::examination::Examined;

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
        let Examined {
            contender,
            expect,
            course:
                Course {
                    shape,
                    sms,
                    reaches,
                },
            status,
            reason,
            hazards,
            odd,
            unwatched,
        } = cell;
        Self {
            contender: contender.as_str(),
            expect: *expect,
            shape: &shape.name,
            groups: &shape.groups,
            sms: *sms,
            reaches,
            status: *status,
            reason: reason.as_deref(),
            hazards,
            unwatched_bytes: unwatched.0,
            odd: odd.as_ref().map(|odd| Odd {
                schedule: odd.schedule,
                what: &odd.what,
                again: again(cell),
            }),
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
    let examined = &inquest.examined;
    let mut suite = TestSuite::new("dgx sanitize");
    for cell in examined {
        let surprising = surprises.contains_key(&cell.contender);
        let harmless = matches!(cell.status, Status::Ok | Status::Unsupported);
        let status = match surprising && !harmless {
            false => TestCaseStatus::success(),
            true => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let stories: Vec<String> = cell.hazards.iter().map(Hazard::story).collect();
                status
                    .set_type(cell.status.as_str())
                    .set_message(cell.reason.as_deref().unwrap_or_default())
                    .set_description(stories.join("\n\n"));
                status
            }
        };
        let mut case = TestCase::new(cell.course.shape.name.as_str(), status);
        case.set_classname(cell.contender.as_str());
        suite.add_test_case(case);
    }
    for (contender, course) in &inquest.left {
        let mut status = TestCaseStatus::skipped();
        status.set_message("interrupted");
        let mut case = TestCase::new(course.shape.name.as_str(), status);
        case.set_classname(contender.as_str());
        suite.add_test_case(case);
    }
    for (contender, what) in &surprises {
        let mut cells = examined.iter().filter(|cell| cell.contender == **contender);
        if cells.all(|cell| matches!(cell.status, Status::Ok | Status::Unsupported)) {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("declared").set_message(what.as_str());
            let mut case = TestCase::new("as declared", status);
            case.set_classname(contender.as_str());
            suite.add_test_case(case);
        }
    }
    let mut all = Report::new("dgx sanitize");
    all.add_test_suite(suite);
    all.to_string().expect("text is written to memory")
}
