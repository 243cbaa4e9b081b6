use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::plan::Plan;
use dgx_core::domain::{Timing, counted, printable, typed};
use dgx_core::record::schema::DeviceRecord;
use dgx_core::speech::{Level, can_draw, level};

/// The progress shown on stderr: bars if there is a terminal, otherwise a line for each stage and
/// shape.
pub struct Progress {
    bars: MultiProgress,
    done: Mutex<Vec<String>>,
}

impl Progress {
    pub fn begin() -> Self {
        let target = match level() >= Level::Usual && can_draw() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self {
            bars: MultiProgress::with_draw_target(target),
            done: Mutex::new(Vec::new()),
        }
    }

    /// Prints the round and the device.
    pub(super) fn announce(&self, plan: &Plan, device: &DeviceRecord, cards: usize) {
        let round = &plan.round;
        let place = match device.timing {
            Timing::Measured => format!("{} ({}, measured)", device.name, device.backend),
            Timing::Modelled => {
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                format!(
                    "{cores} CPU cores, PTX emulated; times are modelled for {}",
                    device.name
                )
            }
            Timing::Scripted => format!(
                "{} ({}, scripted: nothing runs)",
                device.name, device.backend
            ),
            Timing::Recorded => device.name.clone(),
        };
        let cards = match cards {
            0 | 1 => String::new(),
            n => format!(", {n} cards"),
        };
        inform!(
            "{}: {} × {}\n  on {place}{cards}",
            round.name,
            counted(plan.contenders.len(), "contender"),
            counted(plan.shapes.len(), "shape"),
        );
    }

    /// A stage with equal steps.
    pub fn stage(&self, name: &'static str, steps: usize) -> Bar<'_> {
        self.weighted_stage(name, steps, steps as f64)
    }

    /// A stage that does not take place: nothing is drawn for it.
    pub(super) fn none(&self, name: &'static str) -> Bar<'_> {
        Bar {
            bar: ProgressBar::hidden(),
            name,
            left: Arc::new(Mutex::new(StageProgress::new(0.0))),
            progress: self,
        }
    }

    /// A few steps, each of which may take long: the time so far is shown.
    pub fn slow(&self, name: &'static str, steps: usize) -> Bar<'_> {
        let bar = self.stage(name, steps);
        let style = "{prefix:>8}  {bar:30}  {pos}/{len}  {wide_msg} {elapsed:>6}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.bar.set_style(style);
        }
        bar.bar.enable_steady_tick(Duration::from_secs(1));
        bar
    }

    /// Runs one step that may take long and returns its result.
    pub fn during<T>(&self, name: &'static str, what: &str, step: impl FnOnce() -> T) -> T {
        let bar = self.slow(name, 1);
        bar.begin(what);
        let found = step();
        bar.done("");
        found
    }

    /// A stage whose steps take time in proportion to their weight; `weight` is the total.
    pub(super) fn weighted_stage(&self, name: &'static str, steps: usize, weight: f64) -> Bar<'_> {
        let bar = self.bars.add(ProgressBar::new(steps as u64));
        let left = Arc::new(Mutex::new(StageProgress::new(weight)));
        let shown = Arc::clone(&left);
        let time_left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let text = shown.lock().map_or(String::new(), |left| left.text());
            // A bar that cannot be drawn is no reason to stop.
            let _ = out.write_str(&text);
        };
        let style = "{prefix:>8}  {bar:30}  {pos}/{len}  {wide_msg} {left:>11}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.with_key("left", time_left));
        }
        bar.set_prefix(name);
        Bar {
            bar,
            name,
            left,
            progress: self,
        }
    }

    /// A line the user should not miss.
    pub(super) fn warn(&self, text: &str) {
        self.tell(&format!("warning: {text}"));
    }

    /// The stages on one line.
    pub(super) fn summary(&self, decision: &str, seconds: f64) {
        let mut parts = match self.done.lock() {
            Ok(done) => done.clone(),
            Err(_) => Vec::new(),
        };
        if !decision.is_empty() {
            parts.push(decision.to_owned());
        }
        parts.push(format!("{seconds:.0} s"));
        inform!("{}\n", parts.join(" · "));
    }

    /// A line above the bars, if there are any.
    fn tell(&self, text: &str) {
        self.bars.suspend(|| remark!("{text}"));
    }

    pub(super) fn resume_hint(&self, path: &Path) {
        remark!(
            "stopped; finished cells are kept: dgx sweep --resume {}",
            typed(path)
        );
    }
}

/// The share of a stage after which the remaining time is estimated.
const FAIR_PART: f64 = 0.25;
/// Seconds between lines of a long stage, if there is no bar.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The finished part of a stage, by weight.
struct StageProgress {
    /// When it began.
    began: Option<Instant>,
    /// When its last line was printed.
    heard: Option<Instant>,
    done: f64,
    total: f64,
}

impl StageProgress {
    fn new(total: f64) -> Self {
        Self {
            began: None,
            heard: None,
            done: 0.0,
            total,
        }
    }

    /// Empty before enough is done: the first steps also start workers, and small shapes take
    /// longer than their weight.
    fn text(&self) -> String {
        let fair = self.done > 0.0 && self.done >= FAIR_PART * self.total;
        let Some(began) = self.began.filter(|_| fair) else {
            return String::new();
        };
        let rest = (self.total - self.done).max(0.0) / self.done;
        time_left(began.elapsed().as_secs_f64() * rest)
    }
}

impl StageProgress {
    /// The text on the remaining time, if a line is due.
    fn line_if_due(&mut self, now: Instant) -> Option<String> {
        let last = self.heard.or(self.began)?;
        if now.duration_since(last) < HEARTBEAT {
            return None;
        }
        self.heard = Some(now);
        let text = self.text();
        Some(match text.is_empty() {
            true => text,
            false => format!(" · {text}"),
        })
    }
}

/// `9 s left`, `4 min left`, `3 h left`.
fn time_left(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s left"),
        s if s < 5970.0 => format!("{:.0} min left", s / 60.0),
        s => format!("{:.0} h left", s / 3600.0),
    }
}

/// One stage's bar.
pub struct Bar<'a> {
    bar: ProgressBar,
    name: &'static str,
    left: Arc<Mutex<StageProgress>>,
    progress: &'a Progress,
}

impl Bar<'_> {
    pub fn at(&self, what: impl Into<String>) {
        if let Ok(mut left) = self.left.lock() {
            left.began.get_or_insert_with(Instant::now);
        }
        let what = what.into();
        if level() >= Level::Verbose {
            self.progress.tell(&format!("{} {what}", self.name));
        }
        self.bar.set_message(printable(&what));
    }

    /// Begins a step; without a bar, prints a line.
    pub fn begin(&self, what: &str) {
        self.at(what);
        if !can_draw() && level() < Level::Verbose {
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            inform!("{} {}/{all}: {what}", self.name, done + 1);
        }
    }

    /// Reports that a shape is done, and the remaining time, if there is no bar.
    pub(crate) fn past(&self, shape: &str) {
        if level() < Level::Usual || can_draw() {
            return;
        }
        let left = self.left.lock().map_or(String::new(), |left| left.text());
        let left = match left.is_empty() {
            true => left,
            false => format!(" · {left}"),
        };
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        inform!("{} {done}/{all}: {shape}{left}", self.name);
    }

    /// Without a bar, prints about every ten seconds how many steps are done.
    pub fn heartbeat(&self) {
        if level() != Level::Usual || can_draw() {
            return;
        }
        let Some(left) = self
            .left
            .lock()
            .ok()
            .and_then(|mut left| left.line_if_due(Instant::now()))
        else {
            return;
        };
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        inform!("{} {done}/{all}{left}", self.name);
    }

    pub fn step(&self, weight: f64) {
        self.count(|left| left.done += weight);
    }

    /// A step that took no time because it was done before: it is not used to estimate the others.
    pub(super) fn pass_by(&self, weight: f64) {
        self.count(|left| left.total -= weight);
    }

    fn count(&self, change: impl FnOnce(&mut StageProgress)) {
        // The bar locks itself, and reads what is left while it draws: no thread holds both locks.
        if let Ok(mut left) = self.left.lock() {
            change(&mut left);
        }
        self.bar.inc(1);
    }

    /// Removes the bar and keeps a few words for the summary.
    pub fn done(&self, words: &str) {
        self.bar.finish_and_clear();
        if !can_draw() && !words.is_empty() {
            inform!("{} {words}", self.name);
        }
        if let Ok(mut done) = self.progress.done.lock() {
            done.push(format!("{} {words}", self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_in_a_unit_that_fits() {
        assert_eq!(time_left(0.4), "0 s left");
        assert_eq!(time_left(99.0), "99 s left");
        assert_eq!(time_left(100.0), "2 min left");
        assert_eq!(time_left(7200.0), "2 h left");
    }

    #[test]
    fn no_time_is_estimated_from_the_first_steps() {
        let mut left = StageProgress::new(100.0);
        left.began = Some(Instant::now());
        left.done = 24.0;
        assert_eq!(left.text(), "");
        left.done = 25.0;
        assert_eq!(left.text(), "0 s left");
    }

    #[test]
    fn a_long_stage_says_a_line_every_ten_seconds() {
        let mut left = StageProgress::new(9.0);
        let began = Instant::now();
        assert_eq!(left.line_if_due(began), None, "it has not begun");
        left.began = Some(began);
        let lines = (0..25).filter(|s| left.line_if_due(began + Duration::from_secs(*s)).is_some());
        assert_eq!(lines.collect::<Vec<u64>>(), [10, 20]);
    }

    #[test]
    fn steps_done_before_do_not_count() {
        let progress = Progress::begin();
        let bar = progress.weighted_stage("test", 3, 9.0);
        bar.pass_by(5.0);
        assert_eq!(bar.left.lock().unwrap().text(), "");
        bar.step(1.0);
        let left = bar.left.lock().unwrap();
        assert_eq!((left.done, left.total), (1.0, 4.0));
    }
}
