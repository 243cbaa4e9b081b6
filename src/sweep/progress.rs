use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::plan::Plan;
use crate::record::schema::{Device, Timing};

/// What the user sees while a sweep runs, on stderr. Bars only where there is
/// a terminal to draw them on; the lines that stay are printed either way.
pub struct Progress {
    terminal: bool,
    done: Mutex<Vec<String>>,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            done: Mutex::new(Vec::new()),
        }
    }

    /// Which round, on what.
    pub fn announce(&self, plan: &Plan, device: &Device) {
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
            Timing::Recorded => device.name.clone(),
        };
        eprintln!(
            "{}: {} × {} on {place}",
            round.name,
            count(plan.contenders.len(), "contender"),
            count(plan.shapes.len(), "shape"),
        );
    }

    /// A stage of so many steps.
    pub fn stage(&self, name: &'static str, steps: usize) -> Bar<'_> {
        let bar = ProgressBar::new(steps as u64);
        bar.set_draw_target(match self.terminal {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        });
        let style = "{prefix:>8}  {bar:30}  {pos}/{len}  {wide_msg} {eta:>4}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        Bar {
            bar,
            name,
            progress: self,
        }
    }

    /// A line the user should not miss.
    pub fn warn(&self, text: &str) {
        eprintln!("warning: {text}");
    }

    /// The stages in one line.
    pub fn summary(&self, decision: &str, seconds: f64) {
        let mut parts = match self.done.lock() {
            Ok(done) => done.clone(),
            Err(_) => Vec::new(),
        };
        if !decision.is_empty() {
            parts.push(decision.to_owned());
        }
        parts.push(format!("{seconds:.0} s"));
        eprintln!("{}\n", parts.join(" · "));
    }

    pub fn resume_hint(&self, path: &Path) {
        eprintln!(
            "stopped; what is finished is kept: dgx sweep --resume {}",
            path.display()
        );
    }
}

/// One stage's bar.
pub struct Bar<'a> {
    bar: ProgressBar,
    name: &'static str,
    progress: &'a Progress,
}

impl Bar<'_> {
    pub fn at(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Takes the bar away and keeps a few words for the summary.
    pub fn done(self, words: &str) {
        self.bar.finish_and_clear();
        if let Ok(mut done) = self.progress.done.lock() {
            done.push(format!("{} {words}", self.name));
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}
