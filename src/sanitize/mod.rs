//! Whether contenders are right by luck: every call watched for hazards, in
//! several legal orders of warps and copies, on small shapes. Nothing is timed
//! and no run file written.

mod shapes;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) use shapes::{Course, any_round, parse as parse_shape, spelt};

use crate::backend::emu::EmuBackend;
use crate::backend::{Backend, Data, Emulation, Job, Loaded, Observation, RunFailure, Salt};
use crate::catalog::{Catalog, Contender};
use crate::compile::{Compiler, Image};
use crate::config::Round;
use crate::diagnostic::{CommandError, InputError};
use crate::domain::{
    Bytes, ContenderId, Device, Exit, Found, Hazard, Status, Watch, add_hazard, each_once,
};
use crate::interrupt::{self, Words};
use crate::operator::{Distribution, Operands, Oracle};
use crate::plan::{Plan, Work};
use crate::sweep::{Bar, refusal_of, unit};
use crate::validate::{Exhibit, Finding, Tolerance, examine};

/// Data and canaries are the same in every schedule.
const SEED: u64 = 1;

/// How to look.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    /// Seeds of the orders to try; the first is what the others are held against.
    pub schedules: Vec<u64>,
    pub strict: bool,
    /// How long one call may take.
    pub time_limit: Duration,
}

/// A contender, and where it is sent.
#[derive(Debug)]
pub(crate) struct Task {
    pub contender: Contender,
    pub course: Course,
    plan: Plan,
}

/// What became of one contender on one shape.
#[derive(Clone, Debug)]
pub(crate) struct Examined {
    pub contender: ContenderId,
    /// What its variant declares.
    pub expect: Status,
    pub course: Course,
    pub status: Status,
    pub reason: Option<String>,
    /// Found in any schedule, each once.
    pub hazards: Vec<Hazard>,
    /// The first schedule whose result differs from the first's, or that did
    /// not end.
    pub odd: Option<Odd>,
    /// Global memory that was not watched, in the schedule with most of it.
    pub unwatched: Bytes,
}

/// What became of all of them.
#[derive(Debug, Default)]
pub(crate) struct Inquest {
    pub examined: Vec<Examined>,
    /// Those that were not, because the user asked to stop.
    pub left: Vec<(ContenderId, Course)>,
}

/// A schedule that shows what the first does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Odd {
    pub schedule: u64,
    pub what: String,
}

/// Tasks of a contender on shapes chosen for it.
pub(crate) fn tasks(
    round: &Round,
    contender: &Contender,
    given: &[Course],
    catalog: &Catalog,
    device: &Device,
) -> Result<Vec<Task>, InputError> {
    let courses = match given {
        [] => shapes::chosen(round, contender, catalog, device)?,
        given => given.to_vec(),
    };
    let task = |course: Course| {
        let plan = shapes::plan(round, contender, &course, catalog, device)?;
        Ok(Task {
            contender: contender.clone(),
            course,
            plan,
        })
    };
    courses.into_iter().map(task).collect()
}

impl Task {
    /// Why the contender does not take the shape, if so.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match &self.plan.cells[0].work {
            Work::Unsupported { reason } => Some(reason),
            Work::Run { .. } | Work::Broken(_) => None,
        }
    }

    fn ended(&self, status: Status, reason: impl Into<String>) -> Examined {
        Examined {
            contender: self.contender.id.clone(),
            expect: self.contender.variant.expect,
            course: self.course.clone(),
            status,
            reason: Some(reason.into()),
            hazards: Vec::new(),
            odd: None,
            unwatched: Bytes(0),
        }
    }
}

const EXAMINING: Words = Words {
    first: Some(
        "stopping after the calls under way, with what was found; Ctrl-C again ends at once",
    ),
    second: "ended at once; --export-json has the cells that were done",
};

/// Puts aside what there is so far.
pub(crate) type Keep<'a> = dyn Fn(&Inquest) + Sync + 'a;

/// Compiles and examines them all, in their order, or as many as the user waits
/// for. What there is of it is `kept` whenever there is more, lest it be lost
/// with the process.
pub(crate) fn examine_all(
    tasks: &[Task],
    inquiry: &Inquiry,
    compiler: &Compiler,
    bar: &Bar<'_>,
    kept: Option<&Keep<'_>>,
) -> Result<Inquest, CommandError> {
    interrupt::install(EXAMINING);
    let builds: Vec<_> = tasks
        .iter()
        .flat_map(|t| &t.plan.builds)
        .map(unit)
        .collect();
    let compiled = compiler.compile_all(&builds, |_, _| {}, interrupt::requested);
    let compiled = compiled.map_err(|error| {
        let remedy = "`dgx doctor` shows what is here and what is missing";
        CommandError::new(Exit::CouldNotRun, error.to_string(), remedy)
    })?;
    // A task has one build at most.
    let mut images = compiled.into_iter();
    let images: Vec<Option<Result<Image, String>>> = tasks
        .iter()
        .map(|task| match task.plan.builds.is_empty() {
            true => None,
            false => images.next().flatten().map(|compiled| compiled.outcome),
        })
        .collect();
    let ended: Vec<OnceLock<Examined>> = tasks.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let keeping = Mutex::new(());
    // Threads of their own: one of rayon's that waits for the CTAs of a call
    // could take up another cell meanwhile, and the call's time would run out.
    let work = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(task) = tasks.get(index)
            && !interrupt::requested()
        {
            // Hundreds of cells: on a terminal a bar shows them, in a log nobody
            // reads them unless they were asked for.
            let (contender, shape) = (&task.contender.id, &task.course.shape.name);
            bar.at(format!("{contender} on {shape}"));
            let Some(examined) = examined(task, images[index].as_ref(), inquiry) else {
                continue;
            };
            // Each index is taken once.
            let _ = ended[index].set(examined);
            if let Some(kept) = kept {
                let _alone = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                kept(&Inquest::of(tasks, &ended));
            }
            bar.step(1.0);
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores.min(tasks.len()) {
            scope.spawn(work);
        }
    });
    Ok(Inquest::of(tasks, &ended))
}

fn examined(
    task: &Task,
    image: Option<&Result<Image, String>>,
    inquiry: &Inquiry,
) -> Option<Examined> {
    let ended = |status, why: &str| Some(task.ended(status, why));
    let call = match &task.plan.cells[0].work {
        Work::Unsupported { reason } => return ended(Status::Unsupported, reason),
        Work::Broken(why) => return ended(Status::CompileError, &why.to_string()),
        Work::Run { call, .. } => call,
    };
    let image = match image {
        Some(Ok(image)) => image,
        Some(Err(message)) => return ended(Status::CompileError, message),
        // The user did not wait for it.
        None => return None,
    };
    if let Some(why) = refusal_of(&task.plan.device.limits, &image.kernels, call) {
        return ended(Status::LaunchError, &why);
    }
    let mut emulator = EmuBackend::new(task.plan.device.clone());
    let job = Job {
        contender: &task.contender.id,
        image,
        call,
    };
    match emulator.load(job) {
        Ok(mut loaded) => explore(task, loaded.as_mut(), inquiry),
        Err(failure) => ended(failure.status, &failure.message),
    }
}

/// Calls it in every schedule, unless the user asks to stop.
fn explore(task: &Task, loaded: &mut dyn Loaded, inquiry: &Inquiry) -> Option<Examined> {
    let shape = &task.course.shape;
    let operands = Operands::draw(shape, Distribution::Benchmark, SEED);
    let salt = Salt::of_call(SEED, 0);
    let oracle = Oracle::compute(&operands).shuffled(salt.shuffle());
    let posed = operands.shuffled(salt.shuffle());
    let validation = &task.plan.round.validation;
    let tolerance = Tolerance {
        rtol: validation.rtol,
        atol: validation.atol,
    };
    let mut log = Log::default();
    for &schedule in &inquiry.schedules {
        if interrupt::requested() {
            return None;
        }
        let ran = loaded.call(&Data {
            operands: &operands,
            key: &shape.name,
            salt,
            time_limit: inquiry.time_limit,
            timed: false,
            emulation: Emulation {
                schedule,
                watch: match inquiry.strict {
                    true => Watch::Strict,
                    false => Watch::All,
                },
                ..Emulation::default()
            },
        });
        let judged = match ran {
            Ok(observation) => {
                let trespasses: Vec<String> = observation
                    .trespasses
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let exhibit = Exhibit {
                    c: &observation.c,
                    trespasses: &trespasses,
                };
                let finding = examine(exhibit, &posed, &oracle, tolerance);
                Ok((observation, finding))
            }
            Err(failure) => Err(failure),
        };
        log.take(schedule, judged);
    }
    Some(log.ended(task))
}

/// What the schedules of one cell showed so far.
#[derive(Default)]
struct Log {
    reference: Option<Vec<Vec<u16>>>,
    hazards: Vec<Hazard>,
    failure: Option<(Status, String)>,
    odd: Option<Odd>,
    unwatched: u64,
    seen: u64,
}

impl Log {
    fn take(&mut self, schedule: u64, ran: Result<(Observation, Finding), RunFailure>) {
        let first = self.seen == 0;
        self.seen += 1;
        let (hazards, failed) = match ran {
            Err(failure) => {
                let RunFailure {
                    status,
                    message,
                    hazards,
                    ..
                } = failure;
                (hazards, Some((status, message)))
            }
            Ok((observation, finding)) => {
                let differs = match &self.reference {
                    Some(reference) => *reference != observation.c,
                    None => false,
                };
                self.unwatched = self.unwatched.max(observation.unwatched.0);
                if first {
                    self.reference = Some(observation.c);
                }
                let failed = match finding {
                    Finding::Wrong(wrong) => Some((Status::Wrong, wrong.reason)),
                    Finding::Right { .. } => None,
                };
                if differs && failed.is_none() && self.odd.is_none() {
                    // Sums in another order are no mistake.
                    let what = "other bits, within tolerance".to_owned();
                    self.odd = Some(Odd { schedule, what });
                }
                (observation.hazards, failed)
            }
        };
        for hazard in hazards {
            add_hazard(&mut self.hazards, hazard);
        }
        if let Some((status, why)) = failed.filter(|_| self.failure.is_none()) {
            let what = format!("{status}: {why}");
            self.odd = Some(Odd { schedule, what });
            self.failure = Some((status, why));
        }
    }

    fn ended(self, task: &Task) -> Examined {
        let found = self.hazards.first().map(ToString::to_string);
        let (status, reason) = match (self.failure, found) {
            (Some((status, why)), _) => (status, Some(why)),
            (None, Some(found)) => (Status::Racy, Some(found)),
            (None, None) => (Status::Ok, None),
        };
        Examined {
            reason,
            hazards: self.hazards,
            odd: self.odd,
            unwatched: Bytes(self.unwatched),
            ..task.ended(status, "")
        }
    }
}

impl Inquest {
    /// As far as they have ended.
    fn of(tasks: &[Task], ended: &[OnceLock<Examined>]) -> Self {
        let mut inquest = Self::default();
        for (task, ended) in tasks.iter().zip(ended) {
            match ended.get() {
                Some(examined) => inquest.examined.push(examined.clone()),
                None => {
                    let left = (task.contender.id.clone(), task.course.clone());
                    inquest.left.push(left);
                }
            }
        }
        inquest
    }

    /// The same with its texts, which name files, as somebody else `tells` them.
    pub(crate) fn told(&self, tells: &dyn Fn(&str) -> String) -> Self {
        let mut examined = self.examined.clone();
        for cell in &mut examined {
            let hazards = cell.hazards.iter_mut();
            let accesses = hazards.flat_map(|hazard| {
                let Hazard { here, there, .. } = hazard;
                std::iter::once(here).chain(there)
            });
            let lines = accesses.flat_map(|access| &mut access.lines);
            let what = cell.odd.as_mut().map(|odd| &mut odd.what);
            for text in lines.chain(what).chain(&mut cell.reason) {
                *text = tells(text);
            }
        }
        Self {
            examined,
            left: self.left.clone(),
        }
    }

    /// Every hazard once for each contender, in the order of the cells.
    pub(crate) fn found(&self) -> Vec<Found<'_>> {
        each_once(self.examined.iter().flat_map(|cell| {
            let shape = cell.course.shape.name.as_str();
            let hazards = cell.hazards.iter();
            hazards.map(move |hazard| (&cell.contender, shape, hazard))
        }))
    }

    /// Contenders that did not do what their variants declare, with what they did
    /// instead. Who declares to be racy may be wrong as well, since luck runs out;
    /// who was not on all its shapes may yet show it.
    pub(crate) fn surprises(&self) -> BTreeMap<&ContenderId, String> {
        let mut surprises = BTreeMap::new();
        let mut shown: BTreeMap<&ContenderId, bool> = BTreeMap::new();
        for cell in &self.examined {
            let racy = !cell.hazards.is_empty();
            let harmless = matches!(cell.status, Status::Ok | Status::Unsupported);
            let as_declared = match cell.expect {
                Status::Racy => harmless || racy,
                expect => (harmless || cell.status == expect) && !racy,
            };
            if !as_declared {
                let what = cell
                    .reason
                    .clone()
                    .unwrap_or_else(|| cell.status.to_string());
                surprises.entry(&cell.contender).or_insert(what);
            }
            let declared = match cell.expect {
                Status::Ok => true,
                Status::Racy => racy,
                expect => cell.status == expect,
            };
            *shown.entry(&cell.contender).or_default() |= declared;
        }
        let left = |contender: &ContenderId| self.left.iter().any(|(id, _)| id == contender);
        for (contender, _) in shown.into_iter().filter(|(id, shown)| !shown && !left(id)) {
            let mut cells = self.examined.iter();
            let expect = cells.find(|cell| cell.contender == *contender);
            let expect = expect.map_or(Status::Ok, |cell| cell.expect);
            let what = format!("expect = \"{expect}\", and nothing of it was seen");
            surprises.entry(contender).or_insert(what);
        }
        surprises
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::{Access, Shape};

    fn hazard(line: u32) -> Hazard {
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

    fn cell(name: &str, expect: Status, status: Status, hazards: Vec<Hazard>) -> Examined {
        Examined {
            contender: ContenderId::from_text(name),
            expect,
            course: Course {
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
            odd: None,
            unwatched: Bytes(0),
        }
    }

    /// One cell is done, the other is not.
    pub(crate) fn half_done() -> (Inquest, Inquiry) {
        let mut racy = cell("a", Status::Ok, Status::Racy, vec![hazard(1)]);
        racy.odd = Some(Odd {
            schedule: 1,
            what: "wrong".to_owned(),
        });
        let left = vec![(racy.contender.clone(), racy.course.clone())];
        let examined = vec![racy];
        let inquiry = Inquiry {
            schedules: vec![0, 1],
            strict: false,
            time_limit: Duration::from_secs(1),
        };
        (Inquest { examined, left }, inquiry)
    }

    #[test]
    fn who_declares_to_be_racy_must_be_and_nobody_else_may() {
        let names = |cells: Vec<Examined>| -> Vec<String> {
            let inquest = Inquest {
                examined: cells,
                left: Vec::new(),
            };
            inquest
                .surprises()
                .keys()
                .map(ToString::to_string)
                .collect()
        };
        let as_declared = vec![
            cell("right", Status::Ok, Status::Ok, vec![]),
            cell("right", Status::Ok, Status::Unsupported, vec![]),
            cell("lucky", Status::Racy, Status::Racy, vec![hazard(1)]),
            cell("lucky", Status::Racy, Status::Ok, vec![]),
            cell("unlucky", Status::Racy, Status::Hung, vec![hazard(1)]),
            cell("wrong", Status::Wrong, Status::Wrong, vec![]),
        ];
        assert_eq!(names(as_declared), Vec::<String>::new());
        let surprising = vec![
            cell("a", Status::Ok, Status::Racy, vec![hazard(1)]),
            cell("b", Status::Racy, Status::Ok, vec![]),
            cell("c", Status::Wrong, Status::Wrong, vec![hazard(1)]),
            cell("d", Status::Racy, Status::Wrong, vec![]),
        ];
        assert_eq!(names(surprising), ["a", "b", "c", "d"]);
    }

    #[test]
    fn who_was_not_on_all_its_shapes_may_yet_show_what_it_declares() {
        let lucky = cell("lucky", Status::Racy, Status::Ok, vec![]);
        let left = vec![(lucky.contender.clone(), lucky.course.clone())];
        let examined = vec![
            lucky,
            cell("bad", Status::Ok, Status::Racy, vec![hazard(1)]),
        ];
        let inquest = Inquest { examined, left };
        let names: Vec<&str> = inquest.surprises().keys().map(|id| id.as_str()).collect();
        assert_eq!(names, ["bad"]);
    }

    #[test]
    fn the_first_schedule_that_differs_is_kept_and_a_failure_outranks_it() {
        let ran = |bits: u16| {
            let observation = Observation {
                c: vec![vec![bits]],
                ..Observation::default()
            };
            Ok((observation, Finding::Right { worst: 0.1 }))
        };
        let mut log = Log::default();
        for (schedule, bits) in [(0, 5), (1, 5), (2, 6), (3, 7)] {
            log.take(schedule, ran(bits));
        }
        assert_eq!(log.odd.as_ref().map(|odd| odd.schedule), Some(2));
        assert_eq!(log.failure, None);
        log.take(4, Err(RunFailure::hung("waits")));
        log.take(5, Err(RunFailure::crashed("dies")));
        let odd = log.odd.clone().unwrap();
        assert_eq!((odd.schedule, odd.what.as_str()), (4, "hung: waits"));
    }

    #[test]
    fn a_hazard_met_in_several_schedules_is_told_once() {
        let mut log = Log::default();
        for schedule in 0..3 {
            let observation = Observation {
                hazards: vec![hazard(1), hazard(2)],
                ..Observation::default()
            };
            log.take(schedule, Ok((observation, Finding::Right { worst: 0.0 })));
        }
        let times: Vec<u64> = log.hazards.iter().map(|h| h.times).collect();
        assert_eq!(times, [3, 3]);
        let examined = vec![
            cell("x", Status::Ok, Status::Racy, log.hazards.clone()),
            cell("x", Status::Ok, Status::Racy, log.hazards),
        ];
        let inquest = Inquest {
            examined,
            left: Vec::new(),
        };
        let shapes: Vec<usize> = inquest.found().iter().map(|f| f.shapes.len()).collect();
        assert_eq!(shapes, [2, 2]);
    }
}
