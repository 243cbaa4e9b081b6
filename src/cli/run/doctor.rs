use std::collections::BTreeMap;

use crate::cli::Globals;
use dgx_core::config::target;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Exit, Joined};
use dgx_run::backend::cuda::{self, CudaBackend, GpuPresence};
use dgx_run::catalog::Catalog;
use dgx_run::compile::{Nvrtc, cache_root, ptxas, triton};

/// Report driver, GPU and compiler, and where each was found.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(_args: Args, globals: &Globals) -> Result<Exit, CommandError> {
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
        (
            "ptxas",
            ptxas().unwrap_or_else(|why| format!("none: {why}")),
        ),
        (
            "triton",
            triton().unwrap_or_else(|why| format!("none: {why}")),
        ),
        ("cache", cache()),
        ("variants", variants(globals)),
        ("targets", targets()),
        (
            "backend",
            match gpu {
                Ok(_) => "cuda: times are measured".to_owned(),
                Err(_) => "emu: PTX is emulated, times are modelled".to_owned(),
            },
        ),
    ];
    let style = crate::cli::runs::style(globals).narrower(10);
    for (name, value) in rows {
        let folded = style.fold(&value, 0).replace('\n', &format!("\n{:10}", ""));
        say!("{name:>8}  {folded}");
    }
    match compiler {
        Ok(_) => Ok(Exit::Done),
        Err(_) => Ok(Exit::CouldNotRun),
    }
}

fn host() -> String {
    let host = dgx_run::sweep::host();
    format!(
        "{} {}, {} ({} cores)",
        host.os, host.arch, host.cpu, host.cores
    )
}

fn gpu() -> Result<String, String> {
    match cuda::presence() {
        GpuPresence::NoDriver => return Err("none: no NVIDIA driver".to_owned()),
        GpuPresence::NoGpu(why) => return Err(format!("none: {why}")),
        GpuPresence::Gpu { .. } => {}
    }
    let device = CudaBackend::try_out().map_err(|e| format!("unusable: {e}"))?;
    let driver = device.card.as_ref().and_then(|card| card.driver.as_deref());
    Ok(format!(
        "{} ({}), {} SMs, {} memory, {} L2, up to {:.0} MHz, driver {}",
        device.name,
        device.chip,
        device.limits.sms,
        device.limits.memory,
        device.limits.l2,
        device.peaks.clock_mhz,
        driver.unwrap_or("unknown"),
    ))
}

/// The number of sources for each chip.
fn variants(globals: &Globals) -> String {
    let Ok(catalog) = Catalog::open(&globals.variants) else {
        return "none here".to_owned();
    };
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for source in catalog.names().flat_map(|name| catalog.sources(name)) {
        let arch = source.map_or("broken".to_owned(), |source| source.arch.clone());
        *counts.entry(arch).or_default() += 1;
    }
    counts
        .iter()
        .map(|(arch, n)| format!("{n} for {arch}"))
        .joined(", ")
}

/// The targets that can be emulated by name.
fn targets() -> String {
    let named = target::built_in().map(|(name, device)| format!("{name} ({})", device.chip));
    named.joined(", ")
}

fn cache() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let root = cache_root(&here);
    let images = std::fs::read_dir(root.join("images")).map_or(0, Iterator::count);
    format!("{} ({images} images)", root.display())
}
