//! A plain roofline of the emulator's counters on an H200: for each launch the
//! slowest of its resources, each at its peak, with idle multiprocessors
//! counted, plus a fixed cost per launch. What cannot overlap is assumed to
//! overlap, so it is a lower bound; it ranks designs by the work they make,
//! and is never shown beside measured times. docs/emulator.md derives it.

use ptx_emu::{Class, Counters, Report};

use super::PROFILE;
use crate::backend::Modelled;
use crate::domain::{BackendKind, Bytes, Micros};
use crate::record::schema::Device;

/// SM clock under tensor load, as measured on an H200, in MHz.
const CLOCK_MHZ: f64 = 1700.0;
/// Dense fp16 tensor operations per clock and SM.
const TENSOR_FLOPS: f64 = 4096.0;
/// Warp instructions per clock and SM.
const ISSUE: f64 = 4.0;
/// Special-function lanes per clock and SM.
const MUFU_LANES: f64 = 16.0;
/// Shared-memory bytes per clock and SM.
const SHARED_BYTES: f64 = 128.0;
/// Bytes per second between L2 and all SMs, as measured on an H200.
const L2_BANDWIDTH: f64 = 5.7e12;
/// Bytes per second of device memory that a copy reached on an H200.
const MEMORY_BANDWIDTH: f64 = 4.3e12;
/// Microseconds before a launch's first instruction, and from its last on.
const LAUNCH_MICROS: f64 = 3.0;

/// What the record says of the emulated device.
pub fn device() -> Device {
    Device {
        backend: BackendKind::Emu,
        timing: BackendKind::Emu.timing(),
        name: "NVIDIA H200".to_owned(),
        uuid: None,
        driver: None,
        sms: PROFILE.sms,
        l2: Bytes(50 << 20),
        memory: Bytes(141_000_000_000),
        clock_mhz: CLOCK_MHZ,
        bandwidth: MEMORY_BANDWIDTH,
        tensor_flops_per_clock: TENSOR_FLOPS,
        smem_per_block: Bytes(u64::from(PROFILE.shared_per_cta)),
    }
}

/// The time of a call: its launches one after another. What bounds the
/// longest of them bounds the call.
pub fn modelled(reports: &[Report]) -> Modelled {
    let launches: Vec<(&str, f64)> = reports.iter().map(|r| slowest(&r.counters)).collect();
    let longest = launches.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let busy: f64 = launches.iter().map(|l| l.1).sum();
    Modelled {
        micros: Micros(busy + LAUNCH_MICROS * launches.len() as f64),
        bound: longest.map_or("launch", |l| l.0).to_owned(),
    }
}

/// The resource a launch keeps busy longest, and for how many microseconds.
fn slowest(counters: &Counters) -> (&'static str, f64) {
    let sms = f64::from(PROFILE.sms);
    let ctas = counters.ctas.max(1) as f64;
    // SMs that stand idle in the last wave lengthen everything an SM does.
    let waves = (ctas / sms).ceil() * sms / ctas;
    let per_sm = |amount: f64, rate: f64| amount * waves / (sms * rate * CLOCK_MHZ);
    let conflicts = counters.bank_conflicts as f64 * SHARED_BYTES;
    let shared = (counters.shared_read + counters.shared_written) as f64 + conflicts;
    let l2 = counters.global_read
        + counters.global_written
        + counters.async_read
        + counters.async_written;
    let memory = counters.global_unique_read + counters.global_unique_written;
    let mufu = counters.instructions(Class::Mufu) as f64 * 32.0;
    let resources = [
        ("tensor", per_sm(counters.mma_flops as f64, TENSOR_FLOPS)),
        ("issue", per_sm(counters.total_instructions() as f64, ISSUE)),
        ("mufu", per_sm(mufu, MUFU_LANES)),
        ("shared", per_sm(shared, SHARED_BYTES)),
        ("L2", l2 as f64 / L2_BANDWIDTH * 1e6),
        ("memory", memory as f64 / MEMORY_BANDWIDTH * 1e6),
    ];
    resources
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or(("launch", 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(counters: Counters) -> Report {
        Report {
            counters,
            seed: 0,
            ctas_per_sm: 1,
            early_read: None,
            printed: String::new(),
        }
    }

    #[test]
    fn idle_multiprocessors_lengthen_what_the_busy_ones_do() {
        let full = report(Counters {
            mma_flops: 1 << 40,
            ctas: 132,
            ..Counters::default()
        });
        let ragged = report(Counters {
            ctas: 133,
            ..full.counters
        });
        let (full, ragged) = (modelled(&[full]), modelled(&[ragged]));
        assert_eq!(full.bound, "tensor");
        assert!(ragged.micros.0 > 1.9 * full.micros.0 - LAUNCH_MICROS);
    }

    #[test]
    fn a_call_is_bound_by_its_longest_launch() {
        let gemm = report(Counters {
            mma_flops: 1 << 36,
            ctas: 132,
            ..Counters::default()
        });
        let gate = report(Counters {
            global_unique_read: 1 << 20,
            ctas: 132,
            ..Counters::default()
        });
        let both = modelled(&[gemm.clone(), gate]);
        assert_eq!(both.bound, "tensor");
        assert!(both.micros.0 > modelled(&[gemm]).micros.0 + LAUNCH_MICROS);
    }
}
