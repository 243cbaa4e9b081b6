//! JUnit XML, for test collectors.

use maud::html;

/// A test case: its class, its name, and its result.
pub(super) struct Case {
    pub class: String,
    pub name: String,
    pub outcome: Outcome,
}

pub(super) enum Outcome {
    Passed,
    /// Why it was not run.
    Skipped(&'static str),
    /// The check failed.
    Failed(Fault),
    /// It could not be decided.
    Error(Fault),
}

/// The problem of a case: its kind, one line about it, and the details.
#[derive(Default)]
pub(super) struct Fault {
    pub kind: String,
    pub message: String,
    pub text: String,
}

/// A report of one suite.
pub(super) fn report(name: &str, suite: &str, cases: &[Case]) -> String {
    let count = |of: fn(&Outcome) -> bool| cases.iter().filter(|c| of(&c.outcome)).count();
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let errors = count(|outcome| matches!(outcome, Outcome::Error(_)));
    let tests = cases.len();
    let report = html! {
        testsuites name=(name) tests=(tests) skipped=(skipped) failures=(failures) errors=(errors) {
            "\n"
            testsuite name=(suite) tests=(tests) skipped=(skipped) failures=(failures) errors=(errors) {
                @for case in cases {
                    "\n"
                    testcase name=(case.name) classname=(case.class) {
                        @match &case.outcome {
                            Outcome::Passed => {}
                            Outcome::Skipped(why) => { skipped message=(why) {} }
                            Outcome::Failed(fault) => {
                                failure type=(fault.kind) message=(fault.message) { (fault.text) }
                            }
                            Outcome::Error(fault) => {
                                error type=(fault.kind) message=(fault.message) { (fault.text) }
                            }
                        }
                    }
                }
                "\n"
            }
            "\n"
        }
    };
    let text = report.into_string();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}\n")
}
