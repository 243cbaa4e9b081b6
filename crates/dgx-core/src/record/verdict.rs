use super::Run;
use super::schema::ContenderRecord;
use crate::domain::{Exit, Status};

/// Whether every contender has the status its variant declares. A contender may be `unsupported` on
/// some shapes, but not on all; a design that declares a failure must have it on some shape, and no
/// other.
pub fn verdict_exit(run: &Run) -> Exit {
    let mut contenders = run.header.contenders.iter();
    let expected = contenders.all(|contender| as_declared(run, contender));
    match expected && !idle(run) {
        true => Exit::Done,
        false => Exit::Unexpected,
    }
}

fn statuses<'a>(run: &'a Run, contender: &'a ContenderRecord) -> impl Iterator<Item = Status> + 'a {
    let shapes = run.header.shapes.iter();
    shapes.filter_map(|shape| Some(run.verdict(&contender.id, &shape.name)?.status))
}

fn as_declared(run: &Run, contender: &ContenderRecord) -> bool {
    let statuses: Vec<Status> = statuses(run, contender).collect();
    let harmless = [Status::Ok, Status::Unsupported, Status::NotValidated];
    let allowed = |s: &Status| *s == contender.expect || harmless.contains(s);
    // Without an examination for hazards, a declared hazard cannot show.
    let unlooked = contender.expect == Status::Racy && !looked(run, contender);
    let shown = contender.expect == Status::Ok
        || unlooked
        || statuses.contains(&contender.expect)
        || statuses.contains(&Status::NotValidated);
    statuses.iter().all(allowed) && shown
}

/// Whether any cell of a contender was examined for hazards.
fn looked(run: &Run, contender: &ContenderRecord) -> bool {
    let mut shapes = run.header.shapes.iter();
    shapes.any(|shape| run.was_examined(&contender.id, &shape.name))
}

/// Whether a contender that should run, or every candidate, runs on no shape: then nothing of it
/// was tested. One part of a round does not show this.
fn idle(run: &Run) -> bool {
    let header = &run.header;
    if header.shard.is_some() {
        return false;
    }
    let ran = |c: &ContenderRecord| statuses(run, c).any(|s| s != Status::Unsupported);
    let judged = |c: &ContenderRecord| statuses(run, c).next().is_some();
    let idle = |c: &ContenderRecord| judged(c) && !ran(c) && c.expect != Status::Unsupported;
    // A round is written once, for all machines: a contender without a source for this one is left
    // out, as in `dgx check`.
    let left_out = |c: &ContenderRecord| {
        let mut runners = header.contenders.iter().filter(|c| ran(c));
        c.id != header.baseline && !runners.any(|other| other.arch == c.arch)
    };
    let some_shapes = header.departures.iter().any(|d| d.starts_with("--shape "));
    let excused = |c: &ContenderRecord| left_out(c) || some_shapes;
    let is_candidate = |c: &&ContenderRecord| c.id != header.baseline;
    let mut candidates = header.contenders.iter().filter(is_candidate).peekable();
    let untested = candidates.peek().is_some() && candidates.all(idle);
    untested || header.contenders.iter().any(|c| idle(c) && !excused(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BackendKind, HazardWatch};
    use crate::record::schema::Header;
    use crate::record::synthetic::Synthetic;

    #[test]
    fn exit_code_says_whether_anybody_surprised() {
        let mut run = Synthetic::round4().run();
        assert_eq!(verdict_exit(&run), Exit::Done);
        let declared = |run: &mut Run, place: usize, status: Status| {
            run.header.contenders[place].expect = status;
            verdict_exit(run)
        };
        assert_eq!(declared(&mut run, 3, Status::Ok), Exit::Unexpected);
        assert_eq!(declared(&mut run, 3, Status::Wrong), Exit::Done);
        assert_eq!(declared(&mut run, 0, Status::Hung), Exit::Unexpected);
        // Beside a card there may have been no time to look for races.
        assert_eq!(declared(&mut run, 0, Status::Racy), Exit::Done);
        run.header.settings.hazards = HazardWatch::Some;
        assert_eq!(verdict_exit(&run), Exit::Done);
        run.header.device.backend = BackendKind::Emu;
        assert_eq!(verdict_exit(&run), Exit::Unexpected);
    }

    /// A round with some contenders `unsupported` on every shape.
    fn with_idle(idle: &[&str], change: impl Fn(&mut Header)) -> Exit {
        let mut field = Synthetic::round4();
        field.entries.truncate(3);
        let idle = |name: &str| idle.contains(&name);
        for entry in field.entries.iter_mut().filter(|e| idle(e.name)) {
            entry.status = Status::Unsupported;
        }
        let mut run = field.run();
        for contender in &mut run.header.contenders {
            contender.expect = Status::Ok;
        }
        change(&mut run.header);
        verdict_exit(&run)
    }

    #[test]
    fn a_contender_that_runs_nowhere_was_not_tested() {
        let arch = |name: &'static str, arch: &'static str| {
            move |header: &mut crate::record::schema::Header| {
                let named = header.contenders.iter_mut().filter(|c| c.variant == name);
                named.for_each(|c| c.arch = arch.to_owned());
            }
        };
        assert_eq!(with_idle(&[], |_| ()), Exit::Done);
        assert_eq!(with_idle(&["sequential"], |_| ()), Exit::Unexpected);
        assert_eq!(with_idle(&["two-pass"], |_| ()), Exit::Unexpected);
        // It has no source for this chip; the others were tested.
        let elsewhere = arch("sequential", "sm_100a");
        assert_eq!(with_idle(&["sequential"], elsewhere), Exit::Done);
        let both = with_idle(&["sequential", "interleaved"], elsewhere);
        assert_eq!(both, Exit::Unexpected);
        // As declared.
        let declared = with_idle(&["sequential"], |header| {
            for contender in &mut header.contenders {
                if contender.variant == "sequential" {
                    contender.expect = Status::Unsupported;
                }
            }
        });
        assert_eq!(declared, Exit::Done);
        // Shapes picked by hand may exclude a specialised design.
        let picked = |header: &mut crate::record::schema::Header| {
            header.departures.push("--shape 256x*".to_owned());
        };
        assert_eq!(with_idle(&["sequential"], picked), Exit::Done);
        let none = with_idle(&["sequential", "interleaved"], picked);
        assert_eq!(none, Exit::Unexpected);
    }
}
