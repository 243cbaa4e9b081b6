//! Triton and Gluon: a script makes the user's Python compile a kernel ahead of time, without a
//! GPU, and returns its PTX.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::json;

use super::process::NoImage;
use super::{CompileLimits, TranslationUnit, ptxas, tool};
use crate::plan::TritonRequest;
use crate::toolkit;
use dgx_core::domain::content_hash;

const SCRIPT: &str = include_str!("triton.py");

/// The Python that compiles Triton's kernels.
#[derive(Clone, Debug)]
pub(super) struct Python {
    program: PathBuf,
    /// Identifies the compiler, on which its output depends.
    pub identity: String,
    /// For people.
    pub described: String,
    /// The ptxas of that Triton, and the flags it always gives it.
    ptxas: PathBuf,
    flags: Vec<String>,
}

#[derive(Deserialize)]
struct Versions {
    python: String,
    executable: String,
    triton: Option<String>,
    /// Size and time of its library.
    build: Option<String>,
    ptxas: Option<PathBuf>,
    #[serde(default)]
    flags: Vec<String>,
    error: Option<String>,
}

impl Python {
    /// `$DGX_PYTHON`, that of an active environment, or `python3`.
    pub(super) fn find(limits: &CompileLimits) -> Result<Self, String> {
        let environment = toolkit::variable("VIRTUAL_ENV").map(|e| e.join("bin/python3"));
        let active = environment.filter(|python| python.is_file());
        let program = toolkit::variable("DGX_PYTHON")
            .or(active)
            .or_else(|| toolkit::program("python3"))
            .ok_or("there is no python3 here to run Triton with: install it, or set DGX_PYTHON")?;
        let mut command = command(&program);
        command.arg("--version");
        let shown = program.display();
        let ran = tool::run(&mut command, Vec::new(), limits, &|| false)
            .map_err(|why| format!("{shown} {}", reason(why)))?;
        let last = ran.stdout.lines().last().unwrap_or_default();
        let Ok(versions) = serde_json::from_str::<Versions>(last) else {
            let words = ran.stderr.lines().last().unwrap_or("nothing");
            return Err(format!(
                "{shown} is no Python 3 that works; it says: {words}"
            ));
        };
        match (versions.triton, versions.error) {
            (Some(triton), None) => Ok(Self {
                described: format!("Triton {triton} ({shown})"),
                program: program.clone(),
                ptxas: versions.ptxas.unwrap_or_default(),
                flags: versions.flags,
                identity: content_hash([
                    SCRIPT,
                    &triton,
                    &versions.python,
                    &versions.executable,
                    &versions.build.unwrap_or_default(),
                ]),
            }),
            (_, error) => Err(error.unwrap_or_else(|| format!("{shown} has no triton"))),
        }
    }

    /// Programs that may assemble its PTX: Triton's own, the second of which supports later PTX,
    /// else that of this machine.
    fn assemblers(&self) -> Result<Vec<PathBuf>, String> {
        let own = [&self.ptxas, &self.ptxas.with_file_name("ptxas-blackwell")];
        let own = own.into_iter().filter(|path| path.is_file());
        let own: Vec<PathBuf> = own.cloned().collect();
        match own.is_empty() {
            true => Ok(vec![ptxas::find()?]),
            false => Ok(own),
        }
    }
}

/// Runs the script without environment variables that could change its output.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-c", SCRIPT]).env_clear();
    for name in [
        "PATH",
        "HOME",
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
        "TMPDIR",
        "LANG",
        "LC_ALL",
    ] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command
}

/// A kernel as Triton compiled it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kernel {
    /// The name of its entry.
    pub kernel: String,
    pub ptx: String,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    warnings: Vec<String>,
    /// Made from exactly that PTX, here: the file shares a process with Triton, and may change
    /// Triton's answer.
    #[serde(skip)]
    pub cubin: Vec<u8>,
    /// ptxas's messages about it.
    #[serde(skip)]
    pub log: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TritonReply {
    Refused {
        refused: String,
        line: Option<u32>,
        /// Whether the file is at fault, not the installation.
        lasting: bool,
    },
    Made {
        made: Box<Kernel>,
    },
}

/// The result for a kernel.
pub(super) enum Outcome {
    Made(Box<Kernel>),
    Refused { message: String, lasting: bool },
}

/// Parameters that Triton adds at the end, which are null if unused.
pub(super) const HIDDEN: u32 = 2;

/// The kernel, or its error.
pub(super) fn compile(
    python: &Python,
    unit: &TranslationUnit,
    request: &TritonRequest,
    limits: &CompileLimits,
    stop: &dyn Fn() -> bool,
) -> Result<Outcome, NoImage> {
    let folder = tempfile::tempdir().map_err(tool::no_room)?;
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
    let mut command = self::command(&python.program);
    command.arg(&result);
    let ran = tool::run(&mut command, job.to_string().into_bytes(), limits, stop)?;
    let died = |why: String| NoImage::Died(format!("Python ended ({}) {why}", ran.status));
    let answer = fs::read(&result).map_err(|_| {
        let words = ran.stderr.lines().last().unwrap_or("nothing");
        died(format!("without an answer; it said: {words}"))
    })?;
    let answer = serde_json::from_slice(&answer)
        .map_err(|why| died(format!("with an answer that is none: {why}")))?;
    let name = &unit.name;
    Ok(match answer {
        TritonReply::Refused {
            refused,
            line,
            lasting,
        } => Outcome::Refused {
            message: match line {
                Some(line) => format!("{name}({line}): error: {refused}"),
                None => format!("{name}: error: {refused}"),
            },
            lasting,
        },
        TritonReply::Made { made } => {
            let mut flags = python.flags.clone();
            if request.options.get("enable_fp_fusion") == Some(&0) {
                flags.push("--fmad=false".to_owned());
            }
            match python.assemblers() {
                Ok(programs) => assembled((&programs, &flags), unit, *made, limits, stop)?,
                Err(message) => Outcome::Refused {
                    message,
                    lasting: false,
                },
            }
        }
    })
}

/// A kernel with machine code, made as Triton would: by the first program that supports its PTX.
fn assembled(
    (programs, flags): (&[PathBuf], &[String]),
    unit: &TranslationUnit,
    made: Kernel,
    limits: &CompileLimits,
    stop: &dyn Fn() -> bool,
) -> Result<Outcome, NoImage> {
    let name = &unit.name;
    let ptx = (name.as_str(), &*made.ptx);
    let (mut cubin, mut log) = (None, String::new());
    for program in programs {
        let assembled = ptxas::assemble(program, ptx, (&unit.arch, flags), limits, stop)?;
        (cubin, log) = (assembled.cubin, assembled.log);
        if !ptxas::is_too_old(&log) {
            break;
        }
    }
    let Some(cubin) = cubin else {
        let message = format!("{name}: error: ptxas: {log}");
        return Ok(Outcome::Refused {
            message,
            lasting: true,
        });
    };
    let warnings = made.warnings.iter();
    let warnings = warnings.map(|warning| format!("{name}(1): warning {warning}\n"));
    Ok(Outcome::Made(Box::new(Kernel {
        cubin,
        log: warnings.collect::<String>() + &log,
        ..made
    })))
}

/// Why there is no image, as a clause.
fn reason(why: NoImage) -> String {
    match why {
        NoImage::TimedOut(spent) => format!("was stopped after {spent}"),
        NoImage::Died(how) | NoImage::Killed(how) => how,
        NoImage::Stopped => "was stopped".to_owned(),
    }
}
