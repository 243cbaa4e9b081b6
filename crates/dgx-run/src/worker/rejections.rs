use std::collections::BTreeSet;

use super::protocol::Reply;
use crate::validate::Wrong;
use dgx_core::domain::{ContenderId, Status, Verdict};

/// Contenders that turned out wrong while a shape was timed. A verdict is sent as soon as it is
/// found: it stands, whatever happens to the others and to this process.
pub(super) struct Rejections<'a> {
    shape: String,
    reported: BTreeSet<ContenderId>,
    say: &'a dyn Fn(&Reply),
}

impl<'a> Rejections<'a> {
    pub(super) fn new(shape: &str, say: &'a dyn Fn(&Reply)) -> Self {
        Self {
            shape: shape.to_owned(),
            reported: BTreeSet::new(),
            say,
        }
    }

    /// A contender that passed validation gave a wrong output.
    pub(super) fn wrong(&mut self, contender: &ContenderId, wrong: Wrong) {
        let reason = format!("when called again: {}", wrong.reason);
        self.tell(Verdict {
            reason: Some(reason),
            detail: wrong.detail,
            worst: wrong.worst,
            ..Verdict::new(contender, &self.shape, Status::Wrong)
        });
    }

    /// A time below the roofline does not mean a fast kernel but one that did not do the work.
    pub(super) fn impossible(&mut self, contender: &ContenderId, micros: f64, least: f64) {
        let reason = format!(
            "impossible time: {micros:.2} µs, where the device needs {least:.2} µs at least"
        );
        self.tell(Verdict {
            reason: Some(reason),
            ..Verdict::new(contender, &self.shape, Status::Wrong)
        });
    }

    /// The first verdict on a contender is the one that counts.
    fn tell(&mut self, verdict: Verdict) {
        if self.reported.insert(verdict.contender.clone()) {
            (self.say)(&Reply::Rejected { verdict });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_first_verdict_is_told_at_once_and_is_the_only_one() {
        let replies = RefCell::new(Vec::new());
        let say = |reply: &Reply| match reply {
            Reply::Rejected { verdict } => replies.borrow_mut().push(verdict.clone()),
            other => panic!("{other:?}"),
        };
        let wrong = || Wrong {
            reason: "C is zero".to_owned(),
            detail: None,
            worst: Some(9.0),
            first: None,
        };
        let (lazy, fast) = (
            ContenderId::from_text("lazy"),
            ContenderId::from_text("fast"),
        );
        let mut rejections = Rejections::new("s", &say);
        rejections.wrong(&lazy, wrong());
        assert_eq!(replies.borrow().len(), 1, "not only when all is over");
        rejections.impossible(&lazy, 1.0, 2.0);
        rejections.wrong(&lazy, wrong());
        rejections.impossible(&fast, 1.0, 2.0);
        let replies = replies.borrow();
        let reasons: Vec<&str> = replies.iter().filter_map(|v| v.reason.as_deref()).collect();
        assert_eq!(
            reasons,
            [
                "when called again: C is zero",
                "impossible time: 1.00 µs, where the device needs 2.00 µs at least"
            ]
        );
        let cells: Vec<(&str, &str)> = replies
            .iter()
            .map(|v| (v.contender.as_str(), v.shape.as_str()))
            .collect();
        assert_eq!(cells, [("lazy", "s"), ("fast", "s")]);
        assert!(replies.iter().all(|v| v.status == Status::Wrong));
    }
}
