//! The devices and compilers of this machine.

use std::time::Duration;

use crate::cli::runs::seconds;
use dgx_core::config::target;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Chip, Device};
use dgx_run::backend::cuda::CudaBackend;
use dgx_run::compile::{CompileLimits, Compiler, cache_root};
use dgx_run::sweep::{BackendChoice, choose};

/// The help of `--target`: its purpose, the built-in targets, and the rest.
pub(super) fn target_help(purpose: &str, more: &str) -> String {
    let names: Vec<&str> = target::names().collect();
    format!("{purpose}: {}{more}", names.join(", "))
}

/// The device of a sweep: the named target, the card here if `choice` allows one, or else the usual
/// emulated device.
pub(super) fn device(
    target: Option<&str>,
    choice: BackendChoice,
) -> Result<(Device, Option<Chip>), CommandError> {
    if let Some(word) = target {
        return Ok((target::find(word)?, None));
    }
    let Some((chip, _)) = choose(choice)? else {
        return Ok((target::default_device().clone(), None));
    };
    let device = CudaBackend::describe()
        .map_err(|e| CommandError::could_not_run(e.to_string(), "`dgx doctor` prints more"))?;
    Ok((device, Some(chip)))
}

/// The device to emulate: the named target, one like the card here, or else the usual one. A sweep
/// uses the sources for the card, so every other command about them must use the same.
pub(super) fn emulated(target: Option<&str>) -> Result<Device, CommandError> {
    let (device, card) = device(target, BackendChoice::Auto)?;
    let alike = || target::like(&device.name, card).unwrap_or(target::default_device());
    Ok(match card {
        Some(_) => alike().clone(),
        None => device,
    })
}

/// NVRTC and the cache of this folder, for commands that compile but run nothing.
pub(super) fn compiler(limits: CompileLimits) -> Result<Compiler, CommandError> {
    let here = std::env::current_dir().unwrap_or_default();
    Ok(Compiler::new(&cache_root(&here), limits)?)
}

/// Limits of compiling.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct CompileLimitFlags {
    /// Limit for compiling one image, in seconds of processor time
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = seconds)]
    pub compile_timeout: f64,
}

impl CompileLimitFlags {
    pub(super) fn limits(self) -> CompileLimits {
        CompileLimits {
            time: Duration::from_secs_f64(self.compile_timeout),
            ..CompileLimits::default()
        }
    }
}
