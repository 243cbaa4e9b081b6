use super::Globals;
use crate::backend::cuda::{self, CudaBackend, Presence};
use crate::compile::{Nvrtc, cache_root};
use crate::diagnostic::CommandError;
use crate::domain::Exit;

/// Say what is here: driver, GPU, compiler, and where each was found.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    let compiler = Nvrtc::find();
    let gpu = gpu();
    let rows = [
        ("dgx", env!("CARGO_PKG_VERSION").to_owned()),
        ("host", host()),
        (
            "compiler",
            match &compiler {
                Ok(nvrtc) => format!(
                    "{} ({}: {})",
                    nvrtc.version_text(),
                    nvrtc.found.origin,
                    nvrtc.found.path.display()
                ),
                Err(error) => error.to_string(),
            },
        ),
        ("gpu", gpu.clone().unwrap_or_else(|why| why)),
        (
            "cublas",
            cuda::find_cublas().unwrap_or_else(|why| format!("none: {why}")),
        ),
        ("cache", cache()),
        (
            "backend",
            match gpu {
                Ok(_) => "cuda: times are measured".to_owned(),
                Err(_) => "emu: PTX is emulated, times are modelled".to_owned(),
            },
        ),
    ];
    for (name, value) in rows {
        say!("{name:>8}  {value}");
    }
    match compiler {
        Ok(_) => Ok(Exit::Done),
        Err(_) => Ok(Exit::CouldNotRun),
    }
}

fn host() -> String {
    let host = crate::sweep::host();
    format!(
        "{} {}, {} ({} cores)",
        host.os, host.arch, host.cpu, host.cores
    )
}

fn gpu() -> Result<String, String> {
    match cuda::presence() {
        Presence::NoDriver => return Err("none: no NVIDIA driver".to_owned()),
        Presence::NoGpu(why) => return Err(format!("none: {why}")),
        Presence::Gpu { .. } => {}
    }
    let device = CudaBackend::describe().map_err(|e| format!("unusable: {e}"))?;
    let driver = device.card.as_ref().and_then(|card| card.driver.as_deref());
    Ok(format!(
        "{}, {} SMs, {} memory, {} L2, up to {:.0} MHz, driver {}",
        device.name,
        device.limits.sms,
        device.limits.memory,
        device.limits.l2,
        device.peaks.clock_mhz,
        driver.unwrap_or("unknown"),
    ))
}

fn cache() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let root = cache_root(&here);
    let images = std::fs::read_dir(root.join("images")).map_or(0, Iterator::count);
    format!("{} ({images} images)", root.display())
}
