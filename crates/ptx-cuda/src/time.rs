//! The time of kernels on the device: some CTAs of a launch are traced and replayed with the
//! machine code that ptxas makes of the module.
//!
//! The first launch of a kernel in each shape is modelled; later ones are assumed to take as long.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use ptx_emu::trace::{Trace, Watch};
use ptx_emu::{Launch, LaunchError, Memory, Module, Report};
use ptx_time::{CallTimes, Code, Launched, Machine};
use serde::{Deserialize, Serialize};

use crate::device::settings;
use crate::launch::Shape;

/// The variable that turns modelled times on: JSON of [`Timing`].
pub const TIME: &str = "DGX_RUN_TIME";

/// What a modelled time is computed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The numbers of the device.
    pub machine: Machine,
    /// The assembler.
    pub ptxas: PathBuf,
}

/// CTAs traced of a launch.
const WATCHED: u64 = 6;

/// A modelled launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modelled {
    pub(crate) nanos: u64,
    /// The cause of most of the time.
    pub(crate) bound: &'static str,
}

/// A module's machine code.
#[derive(Debug)]
struct Assembled {
    cubin: Vec<u8>,
    /// Of each kernel.
    registers: BTreeMap<String, u32>,
}

fn assemble(ptx: &str, ptxas: &Path) -> Result<Assembled, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", ptxas.display());
    let folder = Folder::new().map_err(failed)?;
    let (source, cubin) = (folder.0.join("in.ptx"), folder.0.join("out.cubin"));
    std::fs::write(&source, ptx).map_err(failed)?;
    let capability = settings().properties.capability;
    // Machine code for the device's own architecture is also made from PTX for the family.
    let suffix = if capability >= 90 { "a" } else { "" };
    let out = Command::new(ptxas)
        .args(["-v", "-lineinfo"])
        .arg(format!("--gpu-name=sm_{capability}{suffix}"))
        .arg(&source)
        .arg("-o")
        .arg(&cubin)
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(failed)?;
    let log = [out.stdout, out.stderr].concat();
    let log = String::from_utf8_lossy(&log);
    if !out.status.success() {
        let first = log.lines().next().unwrap_or("it failed");
        return Err(format!("ptxas makes no machine code: {first}"));
    }
    Ok(Assembled {
        cubin: std::fs::read(&cubin).map_err(failed)?,
        registers: registers(&log),
    })
}

/// A folder that is removed with its contents.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let own = format!(
            "dgx-time-{}-{}",
            std::process::id(),
            crate::handles::fresh()
        );
        let path = std::env::temp_dir().join(own);
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Registers of each kernel, from the log of ptxas `-v`.
fn registers(log: &str) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let mut kernel = None;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split_once('\'').map(|(name, _)| name);
        }
        let used = line.split_once("Used ").and_then(|(_, rest)| {
            let (count, _) = rest.split_once(" registers")?;
            count.parse().ok()
        });
        if let (Some(kernel), Some(used)) = (kernel, used) {
            found.insert(kernel.to_owned(), used);
        }
    }
    found
}

/// The known times of a module's kernels.
#[derive(Debug)]
pub(crate) struct Timer {
    timing: &'static Timing,
    ptx: String,
    assembled: OnceLock<Result<Assembled, String>>,
    /// By kernel and shape.
    known: Mutex<HashMap<(String, Shape), Option<Modelled>>>,
}

/// The result of a launch, with its modelled time or the reason why that is unknown.
pub(crate) type Timed = (
    Result<Report, LaunchError>,
    Option<Result<Modelled, String>>,
);

impl Timer {
    /// For a module with this text, if times are wanted.
    pub(crate) fn new(ptx: &str) -> Option<Self> {
        settings().time.as_ref().map(|timing| Self {
            timing,
            ptx: ptx.to_owned(),
            assembled: OnceLock::new(),
            known: Mutex::default(),
        })
    }

    /// Runs a launch and models its time, unless that is known.
    pub(crate) fn run(
        &self,
        mut launch: Launch,
        shape: &Shape,
        module: &Module,
        memory: &mut Memory,
    ) -> Timed {
        let code = self
            .assembled
            .get_or_init(|| assemble(&self.ptx, &self.timing.ptxas));
        if let Ok(code) = code {
            launch.registers = code.registers.get(&launch.kernel).copied();
        }
        let key = (launch.kernel.clone(), *shape);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return (launch.run(module, memory), known.map(Ok));
        }
        match launch.run_traced(module, memory, &watch(shape)) {
            Err(error) => (Err(error), None),
            Ok((report, trace)) => {
                let machine = &self.timing.machine;
                let kernel = module.kernel(&launch.kernel);
                let cluster = shape.cluster.or(kernel.and_then(|kernel| kernel.cluster));
                let size = (shape.ctas(), cluster.map_or(1, |c| c.iter().product()));
                let modelled = code.as_ref().map_err(Clone::clone);
                let modelled = modelled
                    .and_then(|code| replay(machine, code, (&key.0, size), (&report, &trace)));
                known.insert(key, modelled.as_ref().ok().copied());
                (Ok(report), Some(modelled))
            }
        }
    }
}

/// A sample of a launch's CTAs: evenly spread, including the first and the last.
fn watch(shape: &Shape) -> Watch {
    let last = shape.ctas().saturating_sub(1);
    let count = WATCHED.min(last + 1);
    Watch {
        ctas: (0..count)
            .map(|index| index * last / (count - 1).max(1))
            .collect(),
        only: false,
    }
}

fn replay(
    machine: &Machine,
    assembled: &Assembled,
    (name, (ctas, cluster)): (&str, (u64, u32)),
    (report, trace): (&Report, &Trace),
) -> Result<Modelled, String> {
    let code = Code::read(&assembled.cubin, name).map_err(|error| error.to_string())?;
    ptx_time::telling(name, report, trace)?;
    if code.leaves(trace) {
        return Err(format!(
            "{name} calls a function that was not inlined, which cannot be modelled"
        ));
    }
    let launch = Launched {
        code: &code,
        trace,
        ctas,
        cluster,
        resident: report.ctas_per_sm,
        dependent: false,
        beside: false,
        fetched: false,
    };
    let call = CallTimes::replay(machine, &[launch], false).map_err(|error| error.to_string())?;
    call.launches
        .iter()
        .try_for_each(|times| times.recognised(name))?;
    match call.micros.is_finite() {
        true => Ok(Modelled {
            nanos: (call.micros * 1e3) as u64,
            bound: call.bound().word(),
        }),
        false => Err(format!("{} µs is no time", call.micros)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_read_for_each_kernel() {
        let log = "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n\
                   ptxas info    : Used 12 registers, used 0 barriers\n\
                   ptxas info    : Compiling entry function 'b' for 'sm_90a'\n\
                   ptxas info    : Used 168 registers, used 1 barriers\n";
        let found = registers(log);
        assert_eq!(found["a"], 12);
        assert_eq!(found["b"], 168);
    }

    #[test]
    fn the_first_and_the_last_cta_are_watched() {
        let watched = |grid| {
            let shape = Shape {
                grid: [grid, 1, 1],
                ..Shape::default()
            };
            watch(&shape).ctas
        };
        assert_eq!(watched(1), [0]);
        assert_eq!(watched(2), [0, 1]);
        assert_eq!(watched(132), [0, 26, 52, 78, 104, 131]);
    }
}
