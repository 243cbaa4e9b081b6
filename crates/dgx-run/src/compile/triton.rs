//! Triton and Gluon: a script asks the user's Python to compile a kernel ahead
//! of time, without a GPU, and hands back its PTX.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde_json::json;

use super::process::NoImage;
use super::{Limits, Unit, tool};
use crate::plan::TritonRequest;
use crate::toolkit;

const SCRIPT: &str = include_str!("triton.py");

/// The Python that compiles.
#[derive(Clone, Debug)]
pub(super) struct Python {
    program: PathBuf,
    /// Names the compiler: what it makes depends on it.
    pub identity: String,
}

#[derive(Deserialize)]
struct Versions {
    python: String,
    executable: String,
    triton: Option<String>,
    error: Option<String>,
}

impl Python {
    /// `$DGX_PYTHON`, that of an active environment, or `python3`.
    pub(super) fn find(limits: &Limits) -> Result<Self, String> {
        let environment = toolkit::variable("VIRTUAL_ENV").map(|e| e.join("bin/python3"));
        let active = environment.filter(|python| python.is_file());
        let program = toolkit::variable("DGX_PYTHON")
            .or(active)
            .or_else(|| toolkit::program("python3"))
            .ok_or("there is no python3 here to run Triton with: install it, or set DGX_PYTHON")?;
        let mut command = Command::new(&program);
        command.args(["-c", SCRIPT, "--version"]);
        let shown = program.display();
        let ran = tool::run(&mut command, Vec::new(), limits, &|| false)
            .map_err(|why| format!("{shown} {}", told(why)))?;
        let last = ran.stdout.lines().last().unwrap_or_default();
        let Ok(versions) = serde_json::from_str::<Versions>(last) else {
            let words = ran.stderr.lines().last().unwrap_or("nothing");
            return Err(format!(
                "{shown} is no Python 3 that works; it says: {words}"
            ));
        };
        match (versions.triton, versions.error) {
            (Some(triton), _) => Ok(Self {
                program,
                identity: format!(
                    "Triton {triton}, Python {} at {}",
                    versions.python, versions.executable
                ),
            }),
            (None, error) => Err(error.unwrap_or_else(|| "it has no triton".to_owned())),
        }
    }
}

/// A kernel as Triton made it.
#[derive(Debug, Deserialize)]
pub(super) struct Kernel {
    /// The name of its entry.
    pub kernel: String,
    pub ptx: String,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Which of the arguments it takes, in order.
    order: Vec<usize>,
    /// Bytes for each CTA.
    global_scratch: (Option<u64>, Option<u64>),
    profile_scratch: (Option<u64>, Option<u64>),
    /// Files beside it that it imports.
    imports: Vec<String>,
    maps: Option<Vec<serde_json::Value>>,
    warnings: Vec<String>,
    #[serde(skip)]
    pub cubin: Vec<u8>,
    /// What ptxas said of it.
    #[serde(skip)]
    pub log: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Refused { error: String, line: Option<u32> },
    Made(Box<Kernel>),
}

/// Parameters that Triton adds at the end, and which are null where they are
/// not used.
pub(super) const HIDDEN: u32 = 2;

impl Kernel {
    /// Why dgx cannot launch it.
    fn refusal(&self) -> Option<String> {
        if !self.order.iter().copied().eq(0..self.order.len()) {
            return Some("Triton left out some of its arguments".to_owned());
        }
        if let Some(file) = self.imports.first() {
            return Some(format!(
                "it imports {file}, which no record would cover: a contender is one file"
            ));
        }
        if self.maps.as_ref().is_some_and(|maps| !maps.is_empty()) {
            return Some(
                "it takes tensor descriptors made on the host, which dgx does not make: \
                 use pointers, or descriptors made in the kernel"
                    .to_owned(),
            );
        }
        let scratch = [self.global_scratch, self.profile_scratch];
        let bytes: u64 = scratch.iter().filter_map(|(bytes, _)| *bytes).sum();
        (bytes > 0).then(|| {
            format!(
                "it needs {bytes} bytes of global scratch for each CTA, which dgx does not give"
            )
        })
    }
}

/// The kernel, or what is wrong with it.
pub(super) fn compile(
    python: &Python,
    unit: &Unit,
    request: &TritonRequest,
    limits: &Limits,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Kernel, String>, NoImage> {
    let unusable = |e: std::io::Error| NoImage::Died(format!("Triton has no room to work in: {e}"));
    let folder = tempfile::tempdir().map_err(unusable)?;
    let result = folder.path().join("result");
    let digits = unit.arch.chars().filter(char::is_ascii_digit);
    let arch: u32 = digits.collect::<String>().parse().unwrap_or(0);
    let job = json!({
        "file": unit.name,
        "source": &*unit.source,
        "kernel": unit.kernels.first(),
        "arch": arch,
        "args": request.types,
        "constants": request.constants,
        "options": request.options,
    });
    let mut command = Command::new(&python.program);
    command.args(["-c", SCRIPT]).arg(&result);
    let ran = tool::run(&mut command, job.to_string().into_bytes(), limits, stop)?;
    let answer = fs::read(&result).ok();
    let answer = answer.and_then(|bytes| serde_json::from_slice::<Answer>(&bytes).ok());
    let Some(answer) = answer else {
        let (how, words) = (ran.status, ran.stderr.lines().last().unwrap_or("nothing"));
        return Err(NoImage::Died(format!(
            "Python ended ({how}) without an answer; it said: {words}"
        )));
    };
    let name = &unit.name;
    Ok(match answer {
        Answer::Refused { error, line: None } => Err(format!("{name}: error: {error}")),
        Answer::Refused {
            error,
            line: Some(line),
        } => Err(format!("{name}({line}): error: {error}")),
        Answer::Made(kernel) => match kernel.refusal() {
            Some(why) => Err(format!("{name}: error: {why}")),
            None => {
                let log = fs::read(result.with_extension("log")).unwrap_or_default();
                let warnings = kernel.warnings.iter();
                let warnings = warnings.map(|warning| format!("{name}(1): warning {warning}\n"));
                let log = warnings.collect::<String>() + &String::from_utf8_lossy(&log);
                Ok(Kernel {
                    cubin: fs::read(result.with_extension("cubin")).map_err(unusable)?,
                    log,
                    ..*kernel
                })
            }
        },
    })
}

/// Why nothing came back, as a clause.
pub(super) fn told(why: NoImage) -> String {
    match why {
        NoImage::TimedOut(spent) => format!("was stopped after {spent}"),
        NoImage::Died(how) | NoImage::Killed(how) => how,
        NoImage::Stopped => "was stopped".to_owned(),
    }
}
