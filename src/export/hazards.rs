//! What `dgx sanitize` found, for programs and for test collectors.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

use crate::domain::{Hazard, Status};
use crate::sanitize::{Examined, Inquiry, surprises};

/// Every cell with its findings.
pub(crate) fn json(
    examined: &[Examined],
    inquiry: &Inquiry,
    again: &dyn Fn(&Examined) -> String,
) -> String {
    let cell = |cell: &Examined| -> Value {
        json!({
            "contender": cell.contender.as_str(),
            "expect": cell.expect,
            "shape": cell.course.shape.name,
            "groups": cell.course.shape.groups,
            "sms": cell.course.sms,
            "reaches": cell.course.reaches,
            "status": cell.status,
            "reason": cell.reason,
            "hazards": cell.hazards,
            "unwatched_bytes": cell.unwatched.0,
            "odd": cell.odd.as_ref().map(|odd| json!({
                "schedule": odd.schedule,
                "what": odd.what,
                "again": again(cell),
            })),
        })
    };
    let value = json!({
        "version": 1,
        "schedules": inquiry.schedules,
        "strict": inquiry.strict,
        "cells": examined.iter().map(cell).collect::<Vec<_>>(),
        "unexpected": surprises(examined).into_iter()
            .map(|(contender, what)| json!({ "contender": contender.as_str(), "what": what }))
            .collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

/// JUnit XML: a test case for each cell, and one for each contender that was
/// to show something and did not.
pub(crate) fn junit(examined: &[Examined]) -> String {
    let surprises = surprises(examined);
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
