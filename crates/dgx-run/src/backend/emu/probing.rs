//! Launches kernels that read clocks, as a card would.

use ptx_emu::trace::{Trace, Watch};
use ptx_emu::{Config, DeviceLimits, DevicePtr, Launch, Memory, Module, Params};

use super::tensor_map;
use crate::backend::cuda::{ProbeTrial, REPORT_BYTES, SEED};

/// A value that no clock shows.
const UNTOUCHED: u8 = 0xff;

/// The result of one cluster of a trial.
pub struct ProbeTrace {
    pub trace: Trace,
    /// CTAs that fit on an SM.
    pub resident: u32,
    /// The clocks it showed.
    report: Vec<u8>,
}

impl ProbeTrace {
    /// Whether it left two stamps at `place` of its report. Their values do not matter: the
    /// emulator's clocks may stand still.
    pub fn stamped(&self, place: usize) -> bool {
        let stamps = &self.report[8 * place..8 * place + 16];
        stamps.chunks_exact(8).all(|word| word != [UNTOUCHED; 8])
    }
}

/// Calls the first cluster of a trial with this many bytes of data and scratch. Their contents do
/// not matter: probes only load them.
pub fn call(trial: &ProbeTrial<'_>, [data, scratch]: [u64; 2]) -> Result<ProbeTrace, String> {
    let module = Module::load(&trial.image.ptx).map_err(|e| e.to_string())?;
    let mut memory = Memory::new();
    let mut room = |bytes: u64| memory.alloc(bytes).map_err(|e| e.to_string());
    let places = [room(REPORT_BYTES as u64)?, room(data)?, room(scratch)?];
    let [out, data, scratch] = places;
    let filled = memory.fill(out, UNTOUCHED, REPORT_BYTES as u64);
    filled.map_err(|e| e.to_string())?;
    if let Some((into_scratch, offset, map)) = trial.map {
        let base = if into_scratch { scratch } else { data };
        let encoded = tensor_map::encode("map", map, base.0 + offset);
        let encoded = encoded.map_err(|e| e.message)?;
        memory.write(scratch, &encoded).map_err(|e| e.to_string())?;
    }
    let watch = Watch {
        ctas: vec![0],
        only: true,
    };
    let limits = DeviceLimits::of_target(module.target()).unwrap_or_default();
    let ran = launch(trial, places, limits).run_traced(&module, &mut memory, &watch);
    let (report, trace) = ran.map_err(|e| e.to_string())?;
    Ok(ProbeTrace {
        trace,
        resident: report.ctas_per_sm,
        report: (memory.read_vec(out, REPORT_BYTES as u64)).map_err(|e| e.to_string())?,
    })
}

fn launch(
    trial: &ProbeTrial<'_>,
    [out, data, scratch]: [DevicePtr; 3],
    limits: DeviceLimits,
) -> Launch {
    let params = Params::new().pointer(out).pointer(data).pointer(scratch);
    let mut launch = Launch::new("probe")
        .grid([trial.grid, 1, 1])
        .block([trial.block, 1, 1])
        .cluster([trial.cluster, 1, 1])
        .shared_bytes(trial.smem)
        .params(params.u32(SEED))
        // Many calls run at the same time.
        .config(Config {
            threads: 1,
            limits,
            ..Config::default()
        });
    let kernel = trial.image.kernels.first();
    launch.registers = kernel.map(|kernel| kernel.registers).filter(|&n| n > 0);
    launch
}
