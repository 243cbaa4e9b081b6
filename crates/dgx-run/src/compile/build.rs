//! How each compiler makes an image of a unit, and what that image depends on.

use super::process::{NoImage, Process};
use super::serve::{NvrtcReply, NvrtcRequest};
use super::triton::{self, Outcome, Python};
use super::{CompileLimits, Compiler, CompilerKind, Error, Image, TranslationUnit};
use super::{diagnostics, entries, ptxas};
use crate::catalog::is_identifier;
use crate::plan::TritonRequest;
use crate::toolkit;
use dgx_core::domain::content_hash;

/// The result of compiling.
pub(super) enum CompileOutcome {
    /// The compiler's answer: it would be the same again.
    Said(Result<Image, String>),
    /// The compiler gave up, or was stopped.
    Gave(String),
    Stopped,
}

impl Compiler {
    pub(super) fn key(&self, unit: &TranslationUnit) -> String {
        let mut parts = vec![
            "dgx image 7".to_owned(),
            self.identity(unit),
            unit.name.clone(),
            unit.source.to_string(),
        ];
        parts.extend(unit.flags());
        parts.push(unit.kernels.join("\n"));
        for (name, text) in unit.headers.texts() {
            parts.extend([name.to_owned(), text]);
        }
        content_hash(&parts)
    }

    /// The compiler of a unit, and its options besides the flags.
    fn identity(&self, unit: &TranslationUnit) -> String {
        match &unit.compiler {
            CompilerKind::Nvrtc => self.nvrtc.identity(),
            CompilerKind::Ptxas => ptxas::find().map_or_else(|why| why, |p| toolkit::identity(&p)),
            CompilerKind::Triton(request) => {
                let python = self.python().map_or_else(|why| why, |p| &p.identity);
                format!("{python} {request:?}")
            }
        }
    }

    pub(super) fn python(&self) -> Result<&Python, &str> {
        let found = self.python.get_or_init(|| Python::find(&self.limits));
        found.as_ref().map_err(String::as_str)
    }

    pub(super) fn build(
        &self,
        unit: &TranslationUnit,
        key: &str,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<CompileOutcome, Error> {
        let built = match &unit.compiler {
            CompilerKind::Nvrtc => return self.by_nvrtc(unit, key, stop),
            CompilerKind::Ptxas => self.by_ptxas(unit, key, stop),
            CompilerKind::Triton(request) => self.by_triton(unit, request, key, stop),
        };
        Ok(match built {
            Ok(built) => built,
            Err(NoImage::Stopped) => CompileOutcome::Stopped,
            Err(NoImage::TimedOut(spent)) => CompileOutcome::Gave(stopped_after(&spent)),
            Err(NoImage::Died(how) | NoImage::Killed(how)) => CompileOutcome::Gave(how),
        })
    }

    fn by_ptxas(
        &self,
        unit: &TranslationUnit,
        key: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<CompileOutcome, NoImage> {
        let program = match ptxas::find() {
            Ok(program) => program,
            Err(missing) => return Ok(CompileOutcome::Gave(missing)),
        };
        let ptx = (unit.name.as_str(), &*unit.source);
        let made = ptxas::assemble(&program, ptx, (&unit.arch, &[]), &self.limits, stop)?;
        Ok(CompileOutcome::Said(match made.cubin {
            Some(cubin) => {
                let ptx = unit.source.to_string();
                Ok(image(unit, key, (cubin, ptx), &made.log, &[]))
            }
            None => Err(self.complaint(unit, &made.log, &unit.source)),
        }))
    }

    fn by_triton(
        &self,
        unit: &TranslationUnit,
        request: &TritonRequest,
        key: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<CompileOutcome, NoImage> {
        let python = match self.python() {
            Ok(python) => python,
            Err(missing) => return Ok(CompileOutcome::Gave(missing.to_owned())),
        };
        let made = triton::compile(python, unit, request, &self.limits, stop)?;
        let kernel = match made {
            Outcome::Made(kernel) => *kernel,
            Outcome::Refused {
                message,
                lasting: true,
            } => return Ok(CompileOutcome::Said(Err(message))),
            Outcome::Refused { message, .. } => return Ok(CompileOutcome::Gave(message)),
        };
        let lowered = unit
            .kernels
            .iter()
            .map(|name| (name.clone(), kernel.kernel.clone()));
        let lowered: Vec<_> = lowered.collect();
        let mut image = image(unit, key, (kernel.cubin, kernel.ptx), &kernel.log, &lowered);
        for report in &mut image.kernels {
            report.dynamic_smem = kernel.shared;
            report.hidden_params = triton::HIDDEN;
        }
        Ok(CompileOutcome::Said(Ok(image)))
    }

    fn by_nvrtc(
        &self,
        unit: &TranslationUnit,
        key: &str,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<CompileOutcome, Error> {
        let order = order(unit);
        let CompileLimits { time, memory } = self.limits;
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let used = idle.is_some();
        let Some(mut process) = idle.map_or_else(|| self.fresh(stop), |p| Ok(Some(p)))? else {
            return Ok(CompileOutcome::Stopped);
        };
        let mut made = process.make(&order, time, stop);
        // A used process also has the heap of earlier units, and any process can be killed from
        // outside: the unit is to blame only if a fresh one fails too.
        let perhaps_innocent = match &made {
            Ok((delivery, _)) => used && delivery.gave_up(),
            Err(NoImage::Died(_)) => used,
            Err(NoImage::Killed(_)) => true,
            Err(NoImage::TimedOut(_) | NoImage::Stopped) => false,
        };
        if perhaps_innocent {
            drop(process);
            process = match self.fresh(stop)? {
                Some(process) => process,
                None => return Ok(CompileOutcome::Stopped),
            };
            made = process.make(&order, time, stop);
        }
        let (delivery, cubin) = match made {
            Ok(made) => made,
            Err(NoImage::Stopped) => return Ok(CompileOutcome::Stopped),
            Err(NoImage::TimedOut(spent)) => {
                return Ok(CompileOutcome::Gave(stopped_after(&spent)));
            }
            Err(NoImage::Died(how) | NoImage::Killed(how)) => {
                return Ok(CompileOutcome::Gave(format!(
                    "the compiler {how}; it may take {memory} of memory"
                )));
            }
        };
        let gave_up = delivery.gave_up();
        if let (false, Ok(mut idle)) = (gave_up, self.idle.lock()) {
            idle.push(process);
        }
        Ok(match delivery {
            NvrtcReply::Failed { reason } => CompileOutcome::Gave(reason),
            NvrtcReply::Ready => {
                CompileOutcome::Gave("the compiling process spoke out of turn".to_owned())
            }
            NvrtcReply::Refused { ptx, log } if gave_up => {
                let message = self.complaint(unit, &log, &ptx);
                CompileOutcome::Gave(format!("out of memory: it may take {memory}\n{message}"))
            }
            NvrtcReply::Refused { ptx, log } => {
                CompileOutcome::Said(Err(self.complaint(unit, &log, &ptx)))
            }
            NvrtcReply::Compiled {
                ptx, log, lowered, ..
            } => {
                let code = (cubin, relative(ptx));
                CompileOutcome::Said(Ok(image(unit, key, code, &log, &lowered)))
            }
        })
    }

    pub(super) fn complaint(&self, unit: &TranslationUnit, log: &str, ptx: &str) -> String {
        diagnostics::error_message(log, ptx, &unit.name, &unit.headers)
    }

    /// A ready process that has compiled nothing yet; `None` if the user asked to stop.
    pub(super) fn fresh(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Option<Process>, Error> {
        let reason = match Process::start(&self.program, &self.limits, stop) {
            Ok(process) => return Ok(Some(process)),
            Err(NoImage::Stopped) => return Ok(None),
            Err(NoImage::TimedOut(spent)) => format!("is not ready after {spent}"),
            Err(NoImage::Died(how) | NoImage::Killed(how)) => how,
        };
        let reason = format!("the compiling process {reason}");
        Err(Error::NoProcess { reason })
    }
}

pub(super) fn stopped_after(spent: &str) -> String {
    format!("the compiler was stopped after {spent}; --compile-timeout SECONDS allows more")
}

/// The image of machine code and PTX, with the properties from the log and the PTX; `lowered` are
/// the entries of the instances.
fn image(
    unit: &TranslationUnit,
    key: &str,
    (cubin, ptx): (Vec<u8>, String),
    log: &str,
    lowered: &[(String, String)],
) -> Image {
    let (mut kernels, remarks) = diagnostics::resources(log);
    entries::describe(&mut kernels, &ptx);
    entries::name(&mut kernels, &unit.kernels, lowered);
    Image {
        key: key.to_owned(),
        cubin,
        ptx,
        kernels,
        remarks,
    }
}

pub(super) fn order(unit: &TranslationUnit) -> NvrtcRequest {
    let texts = unit.headers.texts();
    let is_instance = |name: &&String| !is_identifier(name);
    NvrtcRequest {
        name: unit.name.clone(),
        source: unit.source.to_string(),
        flags: unit.flags(),
        headers: texts.map(|(name, text)| (name.to_owned(), text)).collect(),
        instances: unit.kernels.iter().filter(is_instance).cloned().collect(),
    }
}

/// Replaces names of source files by those a user would type. NVRTC writes its working folder
/// before every relative name; an image must not depend on where the repository was when it was
/// made.
fn relative(ptx: String) -> String {
    match std::env::current_dir() {
        Ok(here) => ptx.replace(&format!("\"{}/", here.display()), "\""),
        Err(_) => ptx,
    }
}
