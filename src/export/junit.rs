//! JUnit XML, for test collectors.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

pub(super) use NonSuccessKind::{Error, Failure};

/// A report of one suite.
pub(super) fn report(name: &str, suite: String, cases: Vec<TestCase>) -> String {
    let mut all = Report::new(name);
    let mut suite = TestSuite::new(suite);
    suite.add_test_cases(cases);
    all.add_test_suite(suite);
    all.to_string().expect("text is written to memory")
}

pub(super) fn case(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}

/// What is wrong with a case, of which kind, in words.
pub(super) fn fault(severity: NonSuccessKind, kind: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(severity);
    status.set_type(kind).set_message(message);
    status
}
