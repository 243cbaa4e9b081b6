//! Calls a kernel that reads clocks as a card would call it.

use ptx_emu::{Launch, Memory, Module, Params};

use super::tensor_map;
use crate::backend::cuda::{REPORT_BYTES, SEED, Trial};

/// What no clock shows.
const UNTOUCHED: u8 = 0xff;

/// Calls one cluster of a trial with so many bytes of data and scratch, and
/// says whether it left two stamps at `place` of its report. What they show
/// does not matter: the emulator's clocks may stand still.
pub(crate) fn stamps(
    trial: &Trial<'_>,
    [data, scratch]: [u64; 2],
    place: usize,
) -> Result<bool, String> {
    let module = Module::load(&trial.image.ptx).map_err(|e| e.to_string())?;
    let mut memory = Memory::new();
    let mut room = |bytes: u64| memory.alloc(bytes).map_err(|e| e.to_string());
    let (out, data, scratch) = (room(REPORT_BYTES as u64)?, room(data)?, room(scratch)?);
    let filled = memory.fill(out, UNTOUCHED, REPORT_BYTES as u64);
    filled.map_err(|e| e.to_string())?;
    if let Some((into_scratch, offset, map)) = trial.map {
        let base = if into_scratch { scratch } else { data };
        let encoded = tensor_map::encode("map", map, base.0 + offset);
        let encoded = encoded.map_err(|e| e.message)?;
        memory.write(scratch, &encoded).map_err(|e| e.to_string())?;
    }
    let params = Params::new().pointer(out).pointer(data).pointer(scratch);
    let launch = Launch::new("probe")
        .grid([trial.cluster, 1, 1])
        .block([trial.block, 1, 1])
        .cluster([trial.cluster, 1, 1])
        .shared_bytes(trial.smem)
        .params(params.u32(SEED));
    let ran = launch.run(&module, &mut memory);
    ran.map_err(|e| e.to_string())?;
    let left = memory.read_vec(out.offset(8 * place as u64), 16);
    let left = left.map_err(|e| e.to_string())?;
    Ok(left.chunks_exact(8).all(|word| word != [UNTOUCHED; 8]))
}
